//! Arrays on a device, and pinned arrays on the host that it reaches fast. Both know their length.

use std::ops::{Deref, DerefMut, Range};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_command_queue, cl_mem};

use super::{Call, Context, Doing, Queue};
use crate::device::Kind;
use crate::error::{Error, Result};
use crate::real::Real;

/// Plain numbers, whose bytes a device may read and write.
///
/// # Safety
/// Every bit pattern must be a value, and there must be no padding.
pub(crate) unsafe trait Plain: Copy + Default + Send + Sync + 'static {}
// SAFETY: numbers and arrays of numbers.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for [u32; 2] {}

/// An array in a device's memory: a handle, through which kernels in the queue may write also where it is shared.
pub(crate) struct DeviceVec<T> {
    buffer: Buffer<T>,
    len: usize,
    /// Unlike a handle, never that of another array.
    id: u64,
    /// Its name in errors.
    what: &'static str,
}

/// Every array takes a multiple of so many bytes, the longest pattern that OpenCL fills with.
const GRAIN: usize = 128;
/// Up to so many bytes are filled with patterns of 16 bytes, which is fastest on NVIDIA's driver (580.159). That counts
/// patterns in 32 bits: above 2³¹ of them it hangs, fails, or leaves bytes out.
const SHORT_PATTERNS: usize = 16 << 30;

/// The arrays made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

impl<T: Plain> DeviceVec<T> {
    /// An array of `len` zeros; `what` names it in errors.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`] above the device's largest buffer, or when the device has no room.
    pub(crate) fn zeros(ctx: &Context, len: usize, what: &'static str) -> Result<Self> {
        let vec = Self::uninit(ctx, len, what)?;
        vec.fill(ctx, 0).and_then(|_| ctx.finish()).map_err(|e| vec.first_use(ctx, e))?;
        Ok(vec)
    }

    /// Fills every byte of the array, in the order of the compute queue.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    pub(crate) fn fill(&self, ctx: &Context, byte: u8) -> Result<Event> {
        let bytes = Self::room(self.len.max(1));
        let pattern = [byte; GRAIN];
        let pattern = if bytes <= SHORT_PATTERNS { &pattern[..16] } else { &pattern[..] };
        // A `Buffer` is a handle; this one, of bytes, must not release the memory too.
        let mut view = std::mem::ManuallyDrop::new(Buffer::<u8>::new(self.buffer.get()));
        // SAFETY: the buffer has this size, and any bytes are a value of a `Plain` type.
        ctx.call(Doing(Call::Fill, self.what), "clEnqueueFillBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_fill_buffer(&mut view, pattern, 0, bytes, &[])
        })
    }

    /// Bytes of the buffer of an array of `len` elements.
    const fn room(len: usize) -> usize {
        (len * size_of::<T>()).next_multiple_of(GRAIN)
    }

    /// A copy of `data` on the device; `what` names it in errors.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    pub(crate) fn from_slice(ctx: &Context, data: &[T], what: &'static str) -> Result<Self> {
        let mut vec = Self::uninit(ctx, data.len(), what)?;
        vec.write(ctx, 0, data).map_err(|e| vec.first_use(ctx, e))?;
        Ok(vec)
    }

    fn uninit(ctx: &Context, len: usize, what: &'static str) -> Result<Self> {
        let bytes = (len * size_of::<T>()) as u64;
        let limit = ctx.info().max_buffer_bytes;
        if bytes > limit {
            return Err(Error::OutOfDeviceMemory {
                device: ctx.info().label(),
                what: what.into(),
                need_bytes: bytes,
                limit: "its largest buffer",
                have_bytes: limit,
                hint: "more devices share the system into smaller blocks, and --devices host has no such limit".into(),
            });
        }
        const { assert!(GRAIN.is_multiple_of(size_of::<T>())) };
        let room = Self::room(len.max(1)) / size_of::<T>(); // empty buffers are not allowed
        // SAFETY: no host pointer is given.
        let buffer = ctx.call(Doing(Call::Allocate, what), "clCreateBuffer", || unsafe {
            Buffer::create(&ctx.context, CL_MEM_READ_WRITE, room, ptr::null_mut())
        });
        let buffer = buffer.map_err(|e| no_room(ctx, what, bytes, e))?;
        Ok(Self { buffer, len, id: MADE.fetch_add(1, Ordering::Relaxed), what })
    }

    /// Drivers allocate late: the first use of a buffer fails where its creation did not.
    fn first_use(&self, ctx: &Context, error: Error) -> Error {
        no_room(ctx, self.what, (self.len * size_of::<T>()) as u64, error)
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A number that no other array has, has had or will have.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The handle for a kernel's argument.
    pub(crate) fn mem(&self) -> cl_mem {
        self.buffer.get()
    }

    /// Writes `data` from element `offset` on, and waits.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If the range is not inside the array.
    pub(crate) fn write(&mut self, ctx: &Context, offset: usize, data: &[T]) -> Result<()> {
        assert!(offset + data.len() <= self.len, "writing {} at {offset} of {}", data.len(), self.len);
        if data.is_empty() {
            return Ok(());
        }
        let offset = offset * size_of::<T>();
        // SAFETY: the range was checked; the call blocks, so `data` outlives the transfer.
        ctx.call(Doing(Call::Write, self.what), "clEnqueueWriteBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_write_buffer(&mut self.buffer, CL_BLOCKING, offset, data, &[])
        })?;
        Ok(())
    }

    /// Starts to write a part of `from`, from element `offset` on, and comes back at once.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If one of the ranges is not inside its array.
    pub(crate) fn start_write<M: Deref<Target = [T]> + ?Sized>(
        &mut self,
        ctx: &Context,
        queue: Queue,
        offset: usize,
        from: Arc<M>,
        part: Range<usize>,
    ) -> Result<PendingWrite<M>> {
        let data = &from[part];
        assert!(offset + data.len() <= self.len, "writing {} at {offset} of {}", data.len(), self.len);
        let offset = offset * size_of::<T>();
        let what = self.what;
        // SAFETY: the range was checked. `from` moves into the `PendingWrite`, which lets go of it only after the transfer; until
        // then nobody can change it, as it is shared.
        let event = ctx.call(Doing(Call::Write, what), "clEnqueueWriteBuffer", || unsafe {
            ctx.queue(queue).enqueue_write_buffer(&mut self.buffer, CL_NON_BLOCKING, offset, data, &[])
        })?;
        Ok(PendingWrite { event, from: Some(from) })
    }

    /// Reads from element `offset` on, and waits.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If the range is not inside the array.
    pub(crate) fn read(&self, ctx: &Context, offset: usize, data: &mut [T]) -> Result<()> {
        assert!(offset + data.len() <= self.len, "reading {} at {offset} of {}", data.len(), self.len);
        if data.is_empty() {
            return Ok(());
        }
        let offset = offset * size_of::<T>();
        // SAFETY: the range was checked; the call blocks, so `data` outlives the transfer.
        ctx.call(Doing(Call::Read, self.what), "clEnqueueReadBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_read_buffer(&self.buffer, CL_BLOCKING, offset, data, &[])
        })?;
        Ok(())
    }

    /// Starts to read elements of several arrays, one behind the other into `to`, and comes back at once.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If they are not inside the arrays, or `to` is too short, or there is nothing to read.
    pub(crate) fn start_reads(
        ctx: &Context,
        pieces: &[(&Self, Range<usize>)],
        mut to: Pinned<T>,
    ) -> Result<PendingRead<T>> {
        let queue = ctx.queue(Queue::Compute);
        let (mut rest, mut last) = (&mut to[..], None);
        for (array, elements) in pieces {
            assert!(elements.end <= array.len, "reading {elements:?} of {}", array.len);
            let (piece, others) = rest.split_at_mut(elements.len());
            let offset = elements.start * size_of::<T>();
            rest = others;
            // SAFETY: the range was checked. `to` moves into the `PendingRead`, which gives it back, or drops it, only after the last
            // transfer, which in an ordered queue comes after the others; where one is refused, `finish` waits for those.
            let read = ctx.call(Doing(Call::Read, array.what), "clEnqueueReadBuffer", || unsafe {
                queue.enqueue_read_buffer(&array.buffer, CL_NON_BLOCKING, offset, piece, &[])
            });
            let event = read.inspect_err(|_| drop(queue.finish()))?;
            last = Some((event, array.what));
        }
        let Some((event, what)) = last else { unreachable!("there is nothing to read") };
        Ok(PendingRead { event, to: Some(to), what })
    }

    /// Starts to read the first elements into `to` and comes back at once.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If `to` is longer than the array.
    pub(crate) fn start_read(&self, ctx: &Context, to: Pinned<T>) -> Result<PendingRead<T>> {
        Self::start_reads(ctx, &[(self, 0..to.len())], to)
    }

    /// Starts to read runs of elements, one behind the other into `to`, on a queue of choice, once the command `after` is done;
    /// `what` names them in errors.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If a run is not inside the array, or `to` is not as long as all of them, or there is none.
    pub(crate) fn start_read_runs(
        &self,
        ctx: &Context,
        queue: Queue,
        runs: &[Range<usize>],
        mut to: Pinned<T>,
        after: Option<&Event>,
        what: &'static str,
    ) -> Result<PendingRead<T>> {
        assert_eq!(runs.iter().map(Range::len).sum::<usize>(), to.len());
        let (queue, mut after) = (ctx.queue(queue), after.map(|event| event.get()));
        let (mut rest, mut last) = (&mut to[..], None);
        for run in runs {
            assert!(run.end <= self.len, "reading {run:?} of {}", self.len);
            let (piece, others) = rest.split_at_mut(run.len());
            let (offset, waits) = (run.start * size_of::<T>(), after.take());
            rest = others;
            // SAFETY: as in `start_reads`, and `after` is alive.
            let read = ctx.call(Doing(Call::Read, what), "clEnqueueReadBuffer", || unsafe {
                queue.enqueue_read_buffer(&self.buffer, CL_NON_BLOCKING, offset, piece, waits.as_slice())
            });
            last = Some(read.inspect_err(|_| drop(queue.finish()))?);
        }
        let Some(event) = last else { unreachable!("there is nothing to read") };
        Ok(PendingRead { event, to: Some(to), what })
    }

    /// Copies the first `len` elements to another array of this device, in the order of the compute queue.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If either array is shorter.
    pub(crate) fn copy_to(&self, ctx: &Context, to: &mut Self, len: usize) -> Result<()> {
        assert!(len <= self.len && len <= to.len, "copying {len} of {} to {}", self.len, to.len);
        if len == 0 {
            return Ok(());
        }
        let bytes = len * size_of::<T>();
        // SAFETY: the ranges were checked, and the two are different buffers.
        ctx.call(Doing(Call::Copy, self.what), "clEnqueueCopyBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_copy_buffer(&self.buffer, &mut to.buffer, 0, 0, bytes, &[])
        })?;
        Ok(())
    }
}

/// A transfer to the device that is under way, and the memory that it comes from.
pub(crate) struct PendingWrite<M: ?Sized> {
    event: Event,
    from: Option<Arc<M>>,
}

impl<M: ?Sized> PendingWrite<M> {
    /// The transfer.
    pub(super) fn event(&self) -> &Event {
        &self.event
    }
}

impl<M: ?Sized> Drop for PendingWrite<M> {
    fn drop(&mut self) {
        if self.from.is_some() && self.event.wait().is_err() {
            // The device is lost: whether it still reads is unknown, so the memory is left alone.
            std::mem::forget(self.from.take());
        }
    }
}

/// What `error` means for an array that has just been made.
fn no_room(ctx: &Context, what: &str, bytes: u64, error: Error) -> Error {
    // codes by which drivers say so
    let of_memory = ["CL_MEM_OBJECT_ALLOCATION_FAILURE", "CL_OUT_OF_RESOURCES", "CL_OUT_OF_HOST_MEMORY"];
    let Error::OpenCl { call, code, .. } = &error else { return error };
    if !of_memory.contains(&code.as_str()) {
        return error;
    }
    Error::OutOfDeviceMemory {
        device: ctx.info().label(),
        what: what.into(),
        need_bytes: bytes,
        limit: "its memory, partly in use,",
        have_bytes: ctx.info().memory_bytes,
        hint: format!(
            "{call} failed: {code}; more devices share the system into smaller blocks; --precision f32 halves it"
        ),
    }
}

/// A transfer to pinned memory that is under way.
pub(crate) struct PendingRead<T: Plain> {
    event: Event,
    to: Option<Pinned<T>>,
    what: &'static str,
}

impl<T: Plain> PendingRead<T> {
    /// Waits for the transfer and gives the memory back.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the transfer, or a kernel before it, failed.
    pub(crate) fn wait(mut self, ctx: &Context) -> Result<Pinned<T>> {
        ctx.wait(&self.event, self.what)?;
        Ok(self.to.take().unwrap_or_else(|| unreachable!("taken only here and in drop")))
    }
}

/// Bits of a number that no computation leaves: a NaN of no device's making, twice that in single precision.
const NOTHING_YET: u32 = 0x7FF9_D5A3;
/// How often memory is looked at for what has yet to arrive, before the driver is asked to wait for it.
const LOOKS: u32 = 20_000;

impl<T: Real> Pinned<T> {
    /// Elements of several arrays of sums, on their way to this memory; [`SumsRead::wait`] looks for them there.
    pub(crate) fn await_sums(self, ctx: &Context, pieces: &[(&DeviceVec<T>, Range<usize>)]) -> Result<SumsRead<T>> {
        let len = pieces.iter().map(|(_, elements)| elements.len()).sum();
        assert!(len <= self.len, "{len} sums in room for {}", self.len);
        let is_watched = ctx.info().kind == Kind::Gpu;
        if is_watched {
            // SAFETY: the memory has so many elements, and any bits are a value.
            unsafe { std::slice::from_raw_parts_mut(self.data.cast::<u32>(), len * Self::WORDS) }.fill(NOTHING_YET);
        }
        Ok(SumsRead { read: DeviceVec::start_reads(ctx, pieces, self)?, len, is_watched })
    }

    const WORDS: usize = size_of::<T>() / 4;
}

/// Sums on their way to the host. A waiting thread that looks at the memory itself sees them some 4 µs earlier than through
/// NVIDIA's driver (580.159), whose locks it leaves to the others. On a processor it would take a core from the kernels.
pub(crate) struct SumsRead<T: Real> {
    read: PendingRead<T>,
    len: usize,
    is_watched: bool,
}

impl<T: Real> SumsRead<T> {
    /// Waits for them, and gives the memory back.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the transfer, or a kernel before it, failed.
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

impl<T: Real> Pinned<T> {
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

impl<T: Plain> Drop for PendingRead<T> {
    fn drop(&mut self) {
        if self.to.is_some() && self.event.wait().is_err() {
            // The device is lost: whether it still writes is unknown, so the memory is left alone.
            std::mem::forget(self.to.take());
        }
    }
}

/// Host memory that the device's driver keeps in place, so that transfers run at full speed.
pub(crate) struct Pinned<T: Plain> {
    buffer: Buffer<T>,
    /// The queue that unmaps it, kept alive until then.
    queue: cl_command_queue,
    data: *mut T,
    len: usize,
}

// SAFETY: `data` is plain memory that only this value refers to.
unsafe impl<T: Plain> Send for Pinned<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Plain> Sync for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the driver has no such memory.
    pub(crate) fn zeros(ctx: &Context, len: usize) -> Result<Self> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        let doing = Doing(Call::Allocate, "pinned memory");
        // SAFETY: no host pointer is given.
        let buffer = ctx.call(doing, "clCreateBuffer", || unsafe {
            Buffer::<T>::create(&ctx.context, flags, len.max(1), ptr::null_mut())
        })?;
        let bytes = len.max(1) * size_of::<T>();
        let mut data: cl_mem = ptr::null_mut();
        // SAFETY: the range is the whole buffer; the call blocks until the pointer is valid.
        unsafe {
            ctx.queue(Queue::Compute).enqueue_map_buffer(
                &buffer,
                CL_BLOCKING,
                CL_MAP_READ | CL_MAP_WRITE,
                0,
                bytes,
                &mut data,
                &[],
            )
        }
        .map_err(ctx.error(doing, "clEnqueueMapBuffer"))?;
        let data = data.cast::<T>();
        // SAFETY: the mapping has `bytes` bytes, aligned for every basic type, and zero bytes are a `Plain` value.
        unsafe { ptr::write_bytes(data, 0, len.max(1)) };
        let queue = ctx.queue(Queue::Compute).get();
        // SAFETY: the queue is alive; `drop` gives the reference back.
        unsafe { cl3::command_queue::retain_command_queue(queue) }
            .map_err(|code| ctx.error(doing, "clRetainCommandQueue")(code.into()))?;
        Ok(Self { buffer, queue, data, len })
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        let (mem, data) = (self.buffer.get_mut(), self.data.cast());
        // SAFETY: `data` is this buffer's mapping, which nothing refers to any more; the queue was retained for this. Nothing can
        // be done about a failure here.
        unsafe {
            let unmapped = cl3::command_queue::enqueue_unmap_mem_object(self.queue, mem, data, 0, ptr::null());
            drop(unmapped.map(Event::new));
            let _ = cl3::command_queue::release_command_queue(self.queue);
        }
    }
}

impl<T: Plain> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `len` initialised elements and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Plain> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn filled_to_the_last_element() {
        let ctx = Context::open(&list().devices.remove(0)).unwrap();
        for len in [1, 3, 4, 5, 31, 32, 33, 1000] {
            let vec = DeviceVec::from_slice(&ctx, &vec![7_u32; len], "sevens").unwrap();
            vec.fill(&ctx, 0xFF).unwrap();
            let mut back = vec![0; len];
            vec.read(&ctx, 0, &mut back).unwrap();
            assert_eq!(back, vec![u32::MAX; len]);
        }
    }
}
