//! Arrays on a device, which know their length.

use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::{CL_BLOCKING, cl_mem};

use super::context::FINISH;
use super::pool::Pool;
use super::{Call, Context, Doing, Queue};
use crate::error::{Error, Result};
use crate::memory::Plain;

/// An array in a device's memory: a handle, through which kernels in the queue may write also where it is shared.
pub(crate) struct DeviceVec<T> {
    /// Until it is dropped.
    pub(super) buffer: ManuallyDrop<Buffer<T>>,
    /// Its bytes,
    bytes: usize,
    /// and who has it then, if it is to be used again.
    pub(super) pool: Option<Arc<Pool>>,
    pub(super) len: usize,
    /// Unlike a handle, never that of another array.
    id: u64,
    /// Its name in errors.
    pub(super) what: &'static str,
}

impl<T> Drop for DeviceVec<T> {
    fn drop(&mut self) {
        let mem = self.buffer.get();
        match self.pool.take() {
            Some(pool) => pool.put(self.bytes, Buffer::new(mem)),
            // SAFETY: this is the last use.
            None => unsafe { ManuallyDrop::drop(&mut self.buffer) },
        }
    }
}

/// Every array takes a multiple of so many bytes, the longest pattern that OpenCL fills with.
const GRAIN: usize = 128;
/// Up to so many bytes are filled with patterns of 16 bytes, which is fastest on NVIDIA's driver (580.159). That counts
/// patterns in 32 bits: above 2³¹ of them it hangs, fails, or leaves bytes out.
const SHORT_PATTERNS: usize = 16 << 30;

/// The arrays made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A number for an array.
pub(super) fn new_id() -> u64 {
    MADE.fetch_add(1, Ordering::Relaxed)
}

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
        // SAFETY: the buffer has this size, and any bytes are a value of a `Plain` type.
        ctx.call(Doing(Call::Fill, self.what), "clEnqueueFillBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_fill_buffer(&mut self.handle::<u8>(), pattern, 0, bytes, &[])
        })
    }

    /// Another handle of the same memory, which does not release it, too.
    pub(super) fn handle<E>(&self) -> ManuallyDrop<Buffer<E>> {
        ManuallyDrop::new(Buffer::new(self.buffer.get()))
    }

    /// Bytes of the buffer of an array of `len` elements.
    pub(super) const fn room(len: usize) -> usize {
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

    /// An array of `len` elements, which may be anything.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    pub(crate) fn uninit(ctx: &Context, len: usize, what: &'static str) -> Result<Self> {
        Self::with_room(ctx, (len, Self::room(len.max(1))), what) // empty buffers are not allowed
    }

    /// The same in a buffer of so many bytes, which are enough for it.
    pub(super) fn with_room(ctx: &Context, (len, room): (usize, usize), what: &'static str) -> Result<Self> {
        let bytes = (len * size_of::<T>()) as u64;
        let limit = ctx.info().max_buffer_bytes;
        if bytes > limit {
            return Err(Error::OutOfDeviceMemory {
                device: ctx.info().label(),
                what: what.into(),
                need_bytes: bytes,
                limit: "its largest buffer",
                have_bytes: limit,
                hint: "more devices share the system into smaller blocks, and devices = host has no such limit".into(),
            });
        }
        const { assert!(GRAIN.is_multiple_of(size_of::<T>())) };
        // SAFETY: no host pointer is given.
        let buffer = ctx.call(Doing(Call::Allocate, what), "clCreateBuffer", || unsafe {
            Buffer::create(&ctx.context, CL_MEM_READ_WRITE, room / size_of::<T>(), ptr::null_mut())
        });
        Ok(Self::in_buffer((buffer.map_err(|e| no_room(ctx, what, bytes, e))?, room), len, what))
    }

    /// An array in a buffer of so many bytes, which are enough for it.
    pub(super) fn in_buffer((buffer, bytes): (Buffer<T>, usize), len: usize, what: &'static str) -> Self {
        assert!(bytes >= Self::room(len.max(1)));
        Self { buffer: ManuallyDrop::new(buffer), bytes, pool: None, len, id: new_id(), what }
    }

    /// Drivers allocate late: the first use of a buffer fails where its creation did not.
    pub(super) fn first_use(&self, ctx: &Context, error: Error) -> Error {
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
        if self.write_staged(ctx, offset, data)? { Ok(()) } else { self.write_plainly(ctx, offset, data) }
    }

    /// The same from where the elements are.
    pub(super) fn write_plainly(&self, ctx: &Context, offset: usize, data: &[T]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let offset = offset * size_of::<T>();
        // SAFETY: the range was checked; the call blocks, so `data` outlives the transfer.
        ctx.call(Doing(Call::Write, self.what), "clEnqueueWriteBuffer", || unsafe {
            let queue = ctx.queue(Queue::Compute);
            let written = queue.enqueue_write_buffer(&mut self.handle(), CL_BLOCKING, offset, data, &[])?;
            // "Blocking" is only that `data` is free again: Intel's runtime (2026.22.10) copies below 1 KiB and writes later.
            written.wait()
        })
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
        if data.is_empty() || self.read_staged(ctx, offset, data)? {
            return Ok(());
        }
        let offset = offset * size_of::<T>();
        // SAFETY: the range was checked; the call blocks, so `data` outlives the transfer.
        ctx.call(Doing(Call::Read, self.what), "clEnqueueReadBuffer", || unsafe {
            ctx.queue(Queue::Compute).enqueue_read_buffer(&self.buffer, CL_BLOCKING, offset, data, &[])
        })?;
        Ok(())
    }

    /// Copies the first `len` elements to another array of this device, in the order of the compute queue.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If either array is shorter.
    pub(crate) fn copy_to(&self, ctx: &Context, to: &mut Self, len: usize) -> Result<()> {
        self.copy_part(ctx, 0..len, to, 0)
    }

    /// A copy, in the order of the compute queue.
    ///
    /// # Errors
    /// As [`DeviceVec::zeros`].
    pub(crate) fn copied(&self, ctx: &Context) -> Result<Self> {
        let mut copy = Self::uninit(ctx, self.len, self.what)?;
        self.copy_to(ctx, &mut copy, self.len)?;
        Ok(copy)
    }

    /// The same with some elements, to those from `place` on.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    ///
    /// # Panics
    /// If they are not inside the arrays.
    pub(crate) fn copy_part(&self, ctx: &Context, part: Range<usize>, to: &mut Self, place: usize) -> Result<()> {
        if !part.is_empty() {
            to.start_copy(ctx, Queue::Compute, place, (self, part), None, self.what)?;
        }
        Ok(())
    }
}

/// What `error` means for an array that is being made. Some codes by which drivers say that there is no room, NVIDIA's driver
/// has also for a kernel that failed before and for a lost device: so a wait that fails by them is no lack of memory, and
/// nothing is where the device does not work any more.
fn no_room(ctx: &Context, what: &str, bytes: u64, error: Error) -> Error {
    let Error::OpenCl { call, code, .. } = &error else { return error };
    let is_lack = match code.as_str() {
        "CL_MEM_OBJECT_ALLOCATION_FAILURE" => true,
        "CL_OUT_OF_RESOURCES" | "CL_OUT_OF_HOST_MEMORY" => *call != FINISH,
        _ => false,
    };
    if !is_lack || ctx.finish().is_err() {
        return error;
    }
    Error::OutOfDeviceMemory {
        device: ctx.info().label(),
        what: what.into(),
        need_bytes: bytes,
        limit: "its memory, partly in use,",
        have_bytes: ctx.info().memory_bytes,
        hint: format!(
            "{call} failed: {code}; more devices share the system into smaller blocks; precision = f32 halves it"
        ),
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
