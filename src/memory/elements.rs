//! Large arrays that stay as they are, wherever they lie.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::AnyBitPattern;
use yoke::Yoke;

use super::Map;

/// An array that nobody changes: memory of its own, or a part of something that others may hold, too, such as a mapped file,
/// used where it is.
///
/// What is mapped changes if another program changes the file. Nothing of this crate that goes without checks, such as
/// a kernel on a device, may rely on two looks at it being the same.
#[derive(Clone)]
pub(crate) enum Elements<E: 'static> {
    /// Memory of its own, with which copies share it.
    Owned(Arc<Vec<E>>),
    /// A part of something, which stays as long as somebody has it.
    Shared(Yoke<&'static [E], Arc<Owner>>),
}

/// Whatever has arrays.
type Owner = dyn Any + Send + Sync;

impl<E> Elements<E> {
    /// The part of `owner` that `part` gives.
    pub(crate) fn shared<O: Any + Send + Sync>(owner: &Arc<O>, part: impl FnOnce(&O) -> &[E]) -> Self {
        let given = Self::try_shared(owner, |owner| Some(part(owner)));
        given.unwrap_or_else(|| unreachable!("the part is there"))
    }

    /// The same of one that may have no such part.
    fn try_shared<O: Any + Send + Sync>(owner: &Arc<O>, part: impl FnOnce(&O) -> Option<&[E]>) -> Option<Self> {
        let cart: Arc<Owner> = Arc::<O>::clone(owner);
        Yoke::try_attach_to_cart(cart, |cart| cart.downcast_ref().and_then(part).ok_or(())).ok().map(Self::Shared)
    }
}

impl<E: AnyBitPattern> Elements<E> {
    /// The `len` elements from byte `start` of a file on; `None` if the file ends before, or they are not aligned.
    pub(crate) fn mapped(map: &Arc<Map>, start: usize, len: usize) -> Option<Self> {
        let bytes = start..start.checked_add(len.checked_mul(size_of::<E>())?)?;
        Self::try_shared(map, |map| bytemuck::try_cast_slice(map.get(bytes)?).ok())
    }
}

impl<E: Clone> Elements<E> {
    /// Forgets all elements but the first `len`.
    #[must_use]
    pub(crate) fn truncated(self, len: usize) -> Self {
        match self {
            Self::Owned(mut elements) => {
                Arc::make_mut(&mut elements).truncate(len);
                Self::Owned(elements)
            }
            Self::Shared(elements) => Self::Shared(elements.map_project(|all, _| &all[..all.len().min(len)])),
        }
    }

    /// The elements in memory of their own, which for those that are shared is a copy.
    pub(crate) fn into_vec(self) -> Vec<E> {
        match self {
            Self::Owned(elements) => Arc::unwrap_or_clone(elements),
            Self::Shared(elements) => elements.get().to_vec(),
        }
    }

    /// Whether the elements are those of a file.
    #[cfg(test)]
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Self::Shared(part) if part.backing_cart().is::<Map>())
    }
}

impl<E> Deref for Elements<E> {
    type Target = [E];

    #[inline]
    fn deref(&self) -> &[E] {
        match self {
            Self::Owned(elements) => elements,
            Self::Shared(elements) => elements.get(),
        }
    }
}

impl<E> From<Vec<E>> for Elements<E> {
    fn from(elements: Vec<E>) -> Self {
        Self::Owned(Arc::new(elements))
    }
}

impl<E: PartialEq> PartialEq for Elements<E> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<E: fmt::Debug> fmt::Debug for Elements<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file with the bytes 0, 1, …, 39.
    fn map() -> Arc<Map> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&(0..40).collect::<Vec<u8>>()).unwrap();
        Arc::new(Map::of(&file).unwrap().unwrap())
    }

    #[test]
    fn aligned_parts_of_a_file() {
        let map = map();
        let two = Elements::<u32>::mapped(&map, 4, 2).unwrap();
        let expected = [4u8, 8].map(|k| u32::from_ne_bytes([k, k + 1, k + 2, k + 3]));
        assert!(two.is_mapped() && *two == expected);
        assert_eq!(two, Elements::from(expected.to_vec()));
        assert_eq!(format!("{two:?}"), format!("{expected:?}"));
        assert_eq!((two.clone().into_vec(), two.clone().is_mapped()), (expected.to_vec(), true));
        assert_eq!(Elements::<f64>::mapped(&map, 8, 4).unwrap().len(), 4);
        assert!(Elements::<u8>::mapped(&map, 40, 0).unwrap().is_empty());
        drop(map);
        assert_eq!(two[1], expected[1]);
    }

    #[test]
    fn parts_that_can_not_be_used_where_they_are() {
        let map = map();
        for start in [1, 2, 3, 5, 7] {
            assert!(Elements::<u32>::mapped(&map, start, 1).is_none(), "{start}");
        }
        assert!(Elements::<f64>::mapped(&map, 4, 1).is_none());
        for (start, len) in [(8, 5), (40, 1), (48, 0), (0, usize::MAX), (usize::MAX - 7, 1)] {
            assert!(Elements::<f64>::mapped(&map, start, len).is_none(), "{len} from {start}");
        }
    }

    #[test]
    fn the_first_of_them() {
        let mapped = Elements::<u64>::mapped(&map(), 0, 5).unwrap();
        for elements in [mapped.clone(), mapped.clone().into_vec().into()] {
            for len in [9, usize::MAX, 5, 2, 0] {
                let first = elements.clone().truncated(len);
                assert_eq!(first[..], mapped[..len.min(5)]);
                assert_eq!(first.is_mapped(), elements.is_mapped());
            }
        }
    }
}
