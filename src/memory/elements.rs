//! Large arrays that stay as they are, wherever they lie.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::AnyBitPattern;

use super::Map;

/// An array that nobody changes: memory of its own, or a part of a mapped file, used where it is.
///
/// What is mapped changes if another program changes the file. Nothing of this crate that goes without checks, such as
/// a kernel on a device, may rely on two looks at it being the same.
#[derive(Clone)]
pub(crate) struct Elements<E>(Place<E>);

#[derive(Clone)]
enum Place<E> {
    Owned(Vec<E>),
    Mapped(View<E>),
}

/// Bytes of a mapped file that are elements.
#[derive(Clone)]
struct View<E> {
    map: Arc<Map>,
    bytes: Range<usize>,
    elements: PhantomData<E>,
}

impl<E: AnyBitPattern> Elements<E> {
    /// The `len` elements from byte `start` of a file on; `None` if the file ends before, or they are not aligned.
    pub(crate) fn mapped(map: &Arc<Map>, start: usize, len: usize) -> Option<Self> {
        let bytes = start..start.checked_add(len.checked_mul(size_of::<E>())?)?;
        bytemuck::try_cast_slice::<u8, E>(map.get(bytes.clone())?).ok()?;
        Some(Self(Place::Mapped(View { map: Arc::clone(map), bytes, elements: PhantomData })))
    }

    /// Forgets all elements but the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Place::Owned(elements) => elements.truncate(len),
            Place::Mapped(View { bytes, .. }) => {
                bytes.end = bytes.end.min(bytes.start.saturating_add(len.saturating_mul(size_of::<E>())));
            }
        }
    }

    /// The elements in memory of their own, which for those of a file is a copy.
    pub(crate) fn into_vec(self) -> Vec<E> {
        match self.0 {
            Place::Owned(elements) => elements,
            Place::Mapped(_) => self.to_vec(),
        }
    }

    /// Whether the elements are those of a file.
    #[cfg(test)]
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.0, Place::Mapped(_))
    }
}

impl<E: AnyBitPattern> Deref for Elements<E> {
    type Target = [E];

    #[inline]
    fn deref(&self) -> &[E] {
        match &self.0 {
            Place::Owned(elements) => elements,
            Place::Mapped(View { map, bytes, .. }) => bytemuck::cast_slice(&map[bytes.clone()]),
        }
    }
}

impl<E> From<Vec<E>> for Elements<E> {
    fn from(elements: Vec<E>) -> Self {
        Self(Place::Owned(elements))
    }
}

impl<E: AnyBitPattern + PartialEq> PartialEq for Elements<E> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<E: AnyBitPattern + fmt::Debug> fmt::Debug for Elements<E> {
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
                let mut first = elements.clone();
                first.truncate(len);
                assert_eq!(first[..], mapped[..len.min(5)]);
                assert_eq!(first.is_mapped(), elements.is_mapped());
            }
        }
    }
}
