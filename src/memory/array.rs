//! Arrays that are written for the first time by many threads.

use bytemuck::Zeroable;
use rayon::prelude::*;

use super::available::available_bytes;
use super::pages::prefer_huge_pages_of;

/// There is no memory for so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoMemory(pub(crate) u64);

impl NoMemory {
    /// The error, naming what the memory was for.
    pub(crate) fn into_error(self, what: &str) -> crate::Error {
        crate::Error::OutOfMemory { what: what.into(), bytes: self.0 }
    }
}

/// From so many bytes on it is looked up whether there is memory.
const CHECKED: u64 = 64 << 20;

/// `len` zeros, or the word that there is no memory for them.
///
/// The pages come from the operating system when they are first written, so that a large array costs nothing until
/// then, and the threads that fill it share that cost. It asks for huge pages: a page of 4 KiB costs about a
/// microsecond to get, which for arrays that are written once is more than filling them.
pub(crate) fn zeros<T: Zeroable>(len: usize) -> Result<Vec<T>, NoMemory> {
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    // a system that promises more than it has kills who uses it
    if bytes >= CHECKED && available_bytes().is_some_and(|free| bytes > free) {
        return Err(NoMemory(bytes));
    }
    let array: Box<[T]> = bytemuck::allocation::try_zeroed_slice_box(len).map_err(|()| NoMemory(bytes))?;
    prefer_huge_pages_of(&array);
    Ok(array.into_vec())
}

/// Elements that a thread copies at a time.
const COPIED: usize = 1 << 15;

/// A copy, by all threads if it is large.
pub(crate) fn copied<T: Zeroable + Copy + Send + Sync>(v: &[T]) -> Vec<T> {
    match zeros(v.len()) {
        Ok(mut all) if v.len() > COPIED => {
            copy(v, &mut all);
            all
        }
        _ => v.to_vec(), // without memory, as with any vector
    }
}

/// Copies, by all threads if it is much.
///
/// # Panics
/// If there are not as many elements.
pub(crate) fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len(), "elements of a copy");
    if from.len() <= COPIED {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(COPIED).zip(from.par_chunks(COPIED)).for_each(|(to, from)| to.copy_from_slice(from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_any_length() {
        for len in [0, 1, 1000, 3 << 20] {
            let array = zeros::<f64>(len).unwrap();
            assert!(array.len() == len && array.iter().all(|v| v.to_bits() == 0));
        }
    }

    #[test]
    fn copies_of_any_length() {
        for len in [0, 1, 1000, 3 << 18] {
            let array: Vec<u64> = (0..len).collect();
            assert_eq!(copied(&array), array);
        }
    }

    #[test]
    fn more_than_there_is() {
        assert_eq!(zeros::<u64>(1 << 58), Err(NoMemory(1 << 61)));
        assert_eq!(zeros::<u64>(usize::MAX), Err(NoMemory(u64::MAX)));
    }
}
