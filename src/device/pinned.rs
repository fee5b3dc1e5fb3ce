//! Pinned memory of the host.

use std::ops::{Deref, DerefMut};
use std::ptr;

use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::{CL_BLOCKING, cl_command_queue, cl_mem};

use super::{Call, Context, Doing, Queue};
use crate::error::Result;
use crate::memory::Plain;

/// Host memory that the device's driver keeps in place, so that transfers run at full speed.
pub(crate) struct Pinned<T: Plain> {
    pub(super) buffer: Buffer<T>,
    /// The queue that unmaps it, kept alive until then.
    queue: cl_command_queue,
    pub(super) data: *mut T,
    pub(super) len: usize,
}

// SAFETY: `data` is plain memory that only this value refers to.
unsafe impl<T: Plain> Send for Pinned<T> {}
// SAFETY: shared access only reads.
unsafe impl<T: Plain> Sync for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    /// `len` zeros.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if the driver has no such memory.
    pub(crate) fn zeros(ctx: &Context, len: usize) -> Result<Self> {
        let flags = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        let doing = Doing(Call::Allocate, "pinned memory");
        // SAFETY: no host pointer is given.
        let buffer = ctx.call(doing, "clCreateBuffer", || unsafe {
            Buffer::<T>::create(&ctx.context, flags, len.max(1), ptr::null_mut())
        })?;
        Self::in_buffer(ctx, buffer, len)
    }

    /// `len` zeros in a buffer with room for them, and for one at least, which the host may map.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if it may not.
    pub(super) fn in_buffer(ctx: &Context, buffer: Buffer<T>, len: usize) -> Result<Self> {
        let doing = Doing(Call::Allocate, "pinned memory");
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

impl Pinned<u8> {
    /// The first `len` elements of another type.
    ///
    /// # Panics
    /// If there is no room for so many.
    pub(super) fn elements<T: Plain>(&mut self, len: usize) -> &mut [T] {
        let data = self.data.cast::<T>();
        assert!(len * size_of::<T>() <= self.len && data.is_aligned());
        // SAFETY: the mapping has room for them, is aligned for them, and any bytes are a `Plain` value; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(data, len) }
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        let (mem, data) = (self.buffer.get_mut(), self.data.cast());
        // SAFETY: `data` is this buffer's mapping, which nothing refers to any more; the queue was retained for this. Nothing can
        // be done about a failure here.
        unsafe {
            let unmapped = cl3::command_queue::enqueue_unmap_mem_object(self.queue, mem, data, 0, ptr::null());
            // The program may end next: Intel's runtime (2026.22.10) crashes if one of its threads unmaps while others clean up.
            let _ = unmapped.map(|event| Event::new(event).wait());
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
