//! Memory of arrays that come and go, used again: a driver takes some 60 µs to find a buffer a place and to give it back, and waits for
//! its kernels before that.

use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use opencl3::memory::{Buffer, ClMem};

use super::{Context, DeviceVec};
use crate::error::Result;
use crate::memory::Plain;

/// Arrays of so many bytes or fewer have buffers of so many, and any of these serves each of them.
const SMALL: usize = 1 << 20;

/// Buffers of one context that wait to be used again, in the order of its compute queue: what works on an array is enqueued there before
/// anything that works on the next one in its place.
#[derive(Default)]
pub(crate) struct Pool {
    /// Each with its bytes.
    free: Mutex<Vec<(usize, Buffer<u8>)>>,
}

/// How long an array is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// For a while: any buffer that is large enough will do.
    Short,
    /// As long as what is made: the buffer should hardly be larger than it has to be.
    Long,
}

impl Pool {
    /// An array of `len` elements, which may be anything; `what` names it in errors.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    pub(crate) fn array<T: Plain>(
        self: &Arc<Self>,
        ctx: &Context,
        len: usize,
        stay: Stay,
        what: &'static str,
    ) -> Result<DeviceVec<T>> {
        let bytes = DeviceVec::<T>::room(len.max(1)).max(SMALL);
        let most = if stay == Stay::Short { usize::MAX } else { bytes + bytes / 8 };
        let mut vec = match self.take(bytes, most) {
            Some((bytes, buffer)) => {
                let buffer = ManuallyDrop::new(buffer); // goes on as one of other elements
                DeviceVec::in_buffer((Buffer::new(buffer.get()), bytes), len, what)
            }
            None => DeviceVec::with_room(ctx, (len, bytes), what)?,
        };
        vec.pool = Some(Arc::clone(self));
        Ok(vec)
    }

    /// The smallest buffer of so many bytes.
    fn take(&self, least: usize, most: usize) -> Option<(usize, Buffer<u8>)> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = free.iter().enumerate().filter(|(_, (bytes, _))| (least..=most).contains(bytes));
        let (best, _) = fitting.min_by_key(|(_, (bytes, _))| *bytes)?;
        Some(free.swap_remove(best))
    }

    /// Takes a buffer back.
    pub(super) fn put(&self, bytes: usize, buffer: Buffer<u8>) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push((bytes, buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn buffers_are_used_again() {
        let ctx = Context::open(&list().devices.remove(0)).unwrap();
        let pool = Arc::new(Pool::default());
        let array = |len: usize, stay| pool.array::<u32>(&ctx, len, stay, "a test array").unwrap();
        let mems = |arrays: &[DeviceVec<u32>]| arrays.iter().map(DeviceVec::mem).collect::<Vec<_>>();
        let large = array(1 << 20, Stay::Short);
        let small = array(5, Stay::Long);
        let used = mems(&[large, small]);
        // the smallest that will do, but a large one only for a while
        let again = [array(1 << 18, Stay::Long), array(300_000, Stay::Short), array(0, Stay::Short)];
        assert_eq!(mems(&again)[..2], [used[1], used[0]]);
        assert!(!used.contains(&again[2].mem()));
        drop(again);
        assert!(!used.contains(&array(300_000, Stay::Long).mem()));
        // of its own length, with elements of its own
        let mut other = pool.array::<f32>(&ctx, 3, Stay::Short, "another").unwrap();
        other.write(&ctx, 0, &[1.0, 2.0, 3.0]).unwrap();
        let mut back = [0.0; 3];
        other.read(&ctx, 0, &mut back).unwrap();
        assert_eq!((back, other.len()), ([1.0, 2.0, 3.0], 3));
    }
}
