//! Large transfers through pinned memory, piece by piece: threads make one piece while the one before travels.
//!
//! What lies in other memory, a driver copies to its own first, with one thread.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use opencl3::event::Event;
use opencl3::types::CL_NON_BLOCKING;

use super::memory::DeviceVec;
use super::pinned::Pinned;
use super::{Call, Context, Doing, Queue};
use crate::error::Result;
use crate::memory::{Plain, copy};

/// Bytes of a piece.
pub(super) const PIECE: usize = 8 << 20;

/// Two pieces of pinned memory that take turns. A context keeps them from its first large transfer on.
pub(super) struct Staging {
    halves: [Pinned<u8>; 2],
}

/// The commands that read or write the two pieces. Nobody touches a piece before its command is done.
struct UnderWay<'c> {
    ctx: &'c Context,
    staging: MutexGuard<'c, Option<Staging>>,
    events: [Option<Event>; 2],
    next: usize,
    /// When the first piece was begun, bytes so far, and how long threads took to make them.
    began: Instant,
    bytes: usize,
    making: Duration,
}

impl<'c> UnderWay<'c> {
    /// The pieces of a context, if transfers of so many bytes go through them, and it has such memory.
    fn of(ctx: &'c Context, bytes: usize) -> Option<Self> {
        if !ctx.stages || bytes < PIECE {
            return None;
        }
        let mut staging = ctx.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if staging.is_none() {
            let half = || {
                let made = Pinned::zeros(ctx, PIECE);
                made.inspect_err(|e| log::debug!("large transfers go without pinned memory: {e}")).ok()
            };
            *staging = Some(Staging { halves: [half()?, half()?] });
        }
        let (began, bytes, making) = (Instant::now(), 0, Duration::ZERO);
        Some(Self { ctx, staging, events: [None, None], next: 0, began, bytes, making })
    }

    /// Waits for all pieces that are written.
    fn finish(&mut self, what: &'static str) -> Result<()> {
        (0..2).try_for_each(|half| self.wait(half, what))?;
        let (took, gigabytes) = (self.began.elapsed(), 1e-9 * self.bytes as f64);
        let rate = gigabytes / took.as_secs_f64().max(1e-9);
        log::debug!(
            "{what}: {gigabytes:.3} GB to the device at {rate:.1} GB/s, in {took:.1?}; made in {:.1?}",
            self.making
        );
        Ok(())
    }

    /// Waits for what reads or writes a piece.
    fn wait(&mut self, half: usize, what: &'static str) -> Result<()> {
        self.events[half].as_ref().map_or(Ok(()), |event| self.ctx.wait(event, what))?;
        self.events[half] = None;
        Ok(())
    }

    fn piece<T: Plain>(&mut self, half: usize, len: usize) -> &mut [T] {
        let staging = self.staging.as_mut().unwrap_or_else(|| unreachable!("made with this"));
        staging.halves[half].elements(len)
    }

    /// Starts to write elements that `fill` makes.
    fn write<T: Plain>(&mut self, to: &DeviceVec<T>, at: Range<usize>, fill: impl FnOnce(&mut [T])) -> Result<()> {
        let (ctx, half, what) = (self.ctx, self.next, to.what);
        self.wait(half, what)?;
        let making = Instant::now();
        let piece = self.piece(half, at.len());
        fill(piece);
        let made = making.elapsed();
        let offset = at.start * size_of::<T>();
        // SAFETY: the caller has checked the range. The piece stays where it is, and is left alone until the event that is kept here has come.
        let event = ctx.call(Doing(Call::Write, what), "clEnqueueWriteBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_write_buffer(&mut to.handle(), CL_NON_BLOCKING, offset, piece, &[])
        })?;
        ctx.flush(Queue::Compute)?;
        self.events[half] = Some(event);
        self.next = 1 - half;
        (self.making, self.bytes) = (self.making + made, self.bytes + at.len() * size_of::<T>());
        Ok(())
    }

    /// Starts to read elements into a piece.
    fn read<T: Plain>(&mut self, from: &DeviceVec<T>, at: &Range<usize>, half: usize) -> Result<()> {
        let (ctx, offset) = (self.ctx, at.start * size_of::<T>());
        let piece = self.piece(half, at.len());
        // SAFETY: as for `write`.
        let event = ctx.call(Doing(Call::Read, from.what), "clEnqueueReadBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_read_buffer(&from.buffer, CL_NON_BLOCKING, offset, piece, &[])
        })?;
        ctx.flush(Queue::Compute)?;
        self.events[half] = Some(event);
        Ok(())
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // one after the other, in a queue that is in order
        if self.events.iter().flatten().any(|event| event.wait().is_err()) {
            // whether the device still reads or writes is unknown, so the memory is left alone
            std::mem::forget(self.staging.take());
        }
    }
}

/// An array on its way to a device, made one piece after the other: a new one, or one that is there.
pub(crate) struct Filling<'c, T: Plain, V = DeviceVec<T>> {
    ctx: &'c Context,
    vec: V,
    /// Elements that are there, or under way.
    done: usize,
    under_way: Option<UnderWay<'c>>,
    /// For pieces of others, and those that are too long.
    spare: Vec<T>,
}

impl<'c, T: Plain> Filling<'c, T> {
    /// An array of `len` elements, of which nothing is there yet; `what` names it in errors.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    pub(crate) fn new(ctx: &'c Context, len: usize, what: &'static str) -> Result<Self> {
        Ok(Self::of(ctx, DeviceVec::uninit(ctx, len, what)?))
    }

    /// The elements of a piece of usual length.
    pub(crate) const fn piece_len() -> usize {
        PIECE / size_of::<T>()
    }
}

impl<'c, T: Plain, V: Borrow<DeviceVec<T>>> Filling<'c, T, V> {
    /// All elements of `vec` anew.
    pub(crate) fn of(ctx: &'c Context, vec: V) -> Self {
        let under_way = UnderWay::of(ctx, vec.borrow().len * size_of::<T>());
        Self { ctx, vec, done: 0, under_way, spare: Vec::new() }
    }

    /// All of them, in pieces of a multiple of `grain` elements but for the last, which `fill` makes one after the other: it gets the
    /// numbers of the elements, and their place.
    fn whole(mut self, grain: usize, mut fill: impl FnMut(Range<usize>, &mut [T])) -> Result<V> {
        let all = 0..self.vec.borrow().len;
        for at in pieces(all, Filling::<T>::piece_len() / grain.max(1) * grain.max(1)) {
            self.put(at.len(), |piece| fill(at, piece))?;
        }
        self.finish()
    }

    /// The next `len` elements, which `fill` makes; what it gets is not zero.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    ///
    /// # Panics
    /// If there is no room for them.
    pub(crate) fn put(&mut self, len: usize, fill: impl FnOnce(&mut [T])) -> Result<()> {
        let Self { ctx, vec, done, under_way, spare } = self;
        let (vec, at) = ((*vec).borrow(), *done..*done + len);
        assert!(at.end <= vec.len, "writing {at:?} of {}", vec.len);
        let written = match under_way.as_mut().filter(|_| len <= Filling::<T>::piece_len()) {
            Some(under_way) => under_way.write(vec, at, fill),
            None => {
                spare.resize(len.max(spare.len()), T::default());
                fill(&mut spare[..len]);
                vec.write_plainly(ctx, at.start, &spare[..len])
            }
        };
        *done += len;
        written.map_err(|e| vec.first_use(ctx, e))
    }

    /// The array, once all of it is there.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    ///
    /// # Panics
    /// If elements are missing.
    pub(crate) fn finish(mut self) -> Result<V> {
        let vec = self.vec.borrow();
        assert_eq!(self.done, vec.len, "elements of an array");
        if let Some(mut under_way) = self.under_way.take() {
            under_way.finish(vec.what).map_err(|e| vec.first_use(self.ctx, e))?;
        }
        Ok(self.vec)
    }
}

impl<T: Plain> DeviceVec<T> {
    /// An array of `len` elements that `fill` makes in pieces, one after the other, each of a multiple of `grain` elements but for the
    /// last: it gets the numbers of the elements, and their place.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    pub(crate) fn made(
        ctx: &Context,
        len: usize,
        grain: usize,
        what: &'static str,
        fill: impl FnMut(Range<usize>, &mut [T]),
    ) -> Result<Self> {
        Filling::new(ctx, len, what)?.whole(grain, fill)
    }

    /// Makes all elements anew where they are, as [`made`](Self::made) does.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    pub(crate) fn make_anew(
        &self,
        ctx: &Context,
        grain: usize,
        fill: impl FnMut(Range<usize>, &mut [T]),
    ) -> Result<()> {
        Filling::of(ctx, self).whole(grain, fill).map(|_| ())
    }

    /// Writes a large array through pinned memory; tells whether it did.
    pub(super) fn write_staged(&mut self, ctx: &Context, offset: usize, data: &[T]) -> Result<bool> {
        let Some(mut under_way) = UnderWay::of(ctx, size_of_val(data)) else { return Ok(false) };
        for at in pieces(offset..offset + data.len(), Filling::<T>::piece_len()) {
            let part = &data[at.start - offset..at.end - offset];
            under_way.write(self, at, |piece| copy(part, piece))?;
        }
        under_way.finish(self.what)?;
        Ok(true)
    }

    /// Reads a large array through pinned memory; tells whether it did.
    pub(super) fn read_staged(&self, ctx: &Context, offset: usize, data: &mut [T]) -> Result<bool> {
        let Some(mut under_way) = UnderWay::of(ctx, size_of_val(data)) else { return Ok(false) };
        let all: Vec<Range<usize>> = pieces(offset..offset + data.len(), Filling::<T>::piece_len()).collect();
        under_way.read(self, &all[0], 0)?;
        for (k, at) in all.iter().enumerate() {
            if let Some(next) = all.get(k + 1) {
                under_way.read(self, next, (k + 1) % 2)?;
            }
            under_way.wait(k % 2, self.what)?;
            copy(under_way.piece(k % 2, at.len()), &mut data[at.start - offset..at.end - offset]);
        }
        Ok(true)
    }
}

/// A range in pieces of `len`, at least 1.
fn pieces(all: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    let len = len.max(1);
    all.clone().step_by(len).map(move |begin| begin..all.end.min(begin + len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn pieces_of_ranges() {
        let of = |all, len| pieces(all, len).collect::<Vec<Range<usize>>>();
        assert!(of(3..3, 2).is_empty());
        assert_eq!(of(3..10, 3), [3..6, 6..9, 9..10]);
        assert_eq!(of(3..5, 0), [3..4, 4..5]);
    }

    #[test]
    fn large_arrays_there_and_back() {
        let mut ctx = Context::open(&list().devices.remove(0)).unwrap();
        for stages in [true, false] {
            ctx.stages = stages;
            let piece = Filling::<u64>::piece_len();
            for len in [0, 1, piece - 1, piece, piece + 1, 3 * piece + 5] {
                let number = |k: usize| (k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let data: Vec<u64> = (0..len).map(number).collect();
                let mut vec = DeviceVec::from_slice(&ctx, &data, "numbers").unwrap();
                let mut back = vec![1; len];
                vec.read(&ctx, 0, &mut back).unwrap();
                assert!(back == data, "{len}, {stages}");
                // in pieces of their own, of whole grains
                let grain = 1000;
                let made = DeviceVec::made(&ctx, len, grain, "numbers", |at, piece| {
                    assert!(
                        at.len() == piece.len() && at.start % grain == 0 && (at.end == len || at.len() % grain == 0)
                    );
                    piece.iter_mut().zip(at).for_each(|(to, k)| *to = number(k));
                });
                back.fill(1);
                made.unwrap().read(&ctx, 0, &mut back).unwrap();
                assert!(back == data, "{len}, {stages}");
                // a part in the middle
                if len > piece {
                    vec.write(&ctx, 3, &data[..len - 5]).unwrap();
                    vec.read(&ctx, 2, &mut back[..len - 3]).unwrap();
                    assert!(back[0] == data[2] && back[1..len - 4] == data[..len - 5], "{len}, {stages}");
                    assert_eq!(back[len - 4], data[len - 2]);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "elements of an array")]
    fn arrays_are_filled_to_the_end() {
        let ctx = Context::open(&list().devices.remove(0)).unwrap();
        let mut filling = Filling::<u32>::new(&ctx, 5, "numbers").unwrap();
        filling.put(3, |piece| piece.fill(1)).unwrap();
        let _ = filling.finish();
    }
}
