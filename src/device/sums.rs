//! Sums on their way to the host.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::memory::DeviceVec;
use super::pinned::Pinned;
use super::transfers::PendingRead;
use super::{Context, Queue};
use crate::error::Result;
use crate::real::Real;

/// What they are in errors.
const PARTIAL_SUMS: &str = "partial sums";
/// Bits of a number that no computation leaves: a NaN of no device's making, twice that in single precision.
const NOTHING_YET: u32 = 0x7FF9_D5A3;
/// How often memory is looked at for what has yet to arrive, before the driver is asked to wait for it.
const LOOKS: u32 = 20_000;

impl<T: Real> Pinned<T> {
    const WORDS: usize = size_of::<T>() / 4;

    /// Elements of several arrays of sums, on their way to this memory; [`SumsRead::wait`] looks for them there.
    pub(crate) fn await_sums(self, ctx: &Context, pieces: &[(&DeviceVec<T>, Range<usize>)]) -> Result<SumsRead<T>> {
        let len = pieces.iter().map(|(_, elements)| elements.len()).sum();
        assert!(len <= self.len, "{len} sums in room for {}", self.len);
        let is_watched = ctx.info().shows_transfers_under_way();
        if is_watched {
            // SAFETY: the memory has so many elements, and any bits are a value.
            unsafe { std::slice::from_raw_parts_mut(self.data.cast::<u32>(), len * Self::WORDS) }.fill(NOTHING_YET);
        }
        Ok(SumsRead {
            read: DeviceVec::start_reads(ctx, Queue::Compute, pieces, self, None, PARTIAL_SUMS)?,
            len,
            is_watched,
        })
    }

    /// Looks for a while whether so many elements are there.
    fn has_arrived(&self, len: usize) -> bool {
        let words = self.data.cast::<u32>();
        let mut looks = 0;
        for k in 0..len * Self::WORDS {
            // SAFETY: inside the memory, which the device may be writing: each word is looked at anew.
            while unsafe { words.add(k).read_volatile() } == NOTHING_YET {
                looks += 1;
                if looks > LOOKS {
                    return false;
                }
                std::hint::spin_loop();
            }
        }
        std::sync::atomic::fence(Ordering::Acquire);
        true
    }
}

/// Sums on their way to the host. Where [the driver lets it](super::Info::shows_transfers_under_way), a waiting thread looks at
/// the memory itself: it sees them some 4 µs earlier than through NVIDIA's driver (580.159), whose locks it leaves to the others.
pub(crate) struct SumsRead<T: Real> {
    read: PendingRead<Pinned<T>>,
    len: usize,
    is_watched: bool,
}

impl<T: Real> SumsRead<T> {
    /// Waits for them, and gives the memory back.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if the transfer, or a kernel before it, failed.
    pub(crate) fn wait(mut self, ctx: &Context) -> Result<Pinned<T>> {
        if self.is_watched
            && let Some(to) = &self.read.to
            && to.has_arrived(self.len)
            && let Some(to) = self.read.to.take()
        {
            return Ok(to);
        }
        self.read.wait(ctx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Info, list};

    #[test]
    fn only_nvidias_driver_shows_transfers_under_way() {
        let device = list().devices.remove(0);
        let of = |platform: &str| Info { platform: platform.into(), ..device.clone() };
        assert!(of("NVIDIA CUDA").shows_transfers_under_way());
        for other in ["Portable Computing Language", "AMD Accelerated Parallel Processing", "rusticl"] {
            assert!(!of(other).shows_transfers_under_way(), "{other}");
        }
    }

    #[test]
    fn sums_arrive_watched_or_not() {
        let ctx = Context::open(&list().devices.remove(0)).unwrap();
        let (one, two) =
            (DeviceVec::from_slice(&ctx, &[1.5, 2.5, 3.5], "one"), DeviceVec::from_slice(&ctx, &[4.5], "two"));
        let (one, two) = (one.unwrap(), two.unwrap());
        let room = Pinned::<f64>::zeros(&ctx, 5).unwrap();
        let sums = room.await_sums(&ctx, &[(&one, 1..3), (&two, 0..1)]).unwrap();
        assert_eq!(sums.is_watched, ctx.info().shows_transfers_under_way());
        assert_eq!(sums.wait(&ctx).unwrap()[..3], [2.5, 3.5, 4.5]);
    }
}
