//! Live memory: memory of the host in which processors and running kernels see at once what the other has written.
//!
//! OpenCL 1.2 has no such memory: what a kernel has written is the host's to see when the kernel is over. Some drivers have it all the
//! same. Whether a device does is never believed but found out by asking a running kernel (`experiments::live`).

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::AtomicU64;

use opencl3::device::Device;
use opencl3::error_codes::{CL_INVALID_OPERATION, CL_SUCCESS, ClError};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::{cl_context, cl_int, cl_mem, cl_mem_flags};

use super::memory::new_id;
use super::{Call, ClKernel, ClResult, Context, Doing, Pinned};
use crate::error::Result;

/// The memory of one device: a buffer of its context that stays mapped. No other device takes it.
pub(crate) struct LiveMemory {
    words: Pinned<u64>,
    id: u64,
}

// SAFETY: all access is by atomic numbers, see `deref`.
unsafe impl Send for LiveMemory {}
// SAFETY: the same.
unsafe impl Sync for LiveMemory {}

/// `clCreateBufferNV` of `cl_nv_create_buffer`: the second flags say where the buffer is.
type CreateBufferNv =
    unsafe extern "system" fn(cl_context, cl_mem_flags, cl_mem_flags, usize, *mut c_void, *mut cl_int) -> cl_mem;

/// Of these flags: in the host's memory.
const LOCATION_HOST_NV: cl_mem_flags = 1;

impl LiveMemory {
    /// Memory for `len` numbers, all 0: with `cl_nv_create_buffer` in the host's memory, else what the driver allocates for the host to
    /// map.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if the driver has no such memory.
    pub(crate) fn zeros(ctx: &Context, len: usize) -> Result<Self> {
        let device = Device::new(ctx.id());
        let has_nv = device.extensions().is_ok_and(|all| all.split(' ').any(|name| name == "cl_nv_create_buffer"));
        let words =
            if has_nv { Pinned::in_buffer(ctx, in_host_memory(ctx, len)?, len)? } else { Pinned::zeros(ctx, len)? };
        Ok(Self { words, id: new_id() })
    }

    /// A number that no other memory or array has, has had or will have.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Binds it to a kernel's argument.
    ///
    /// # Errors
    /// OpenCL's own.
    ///
    /// # Safety
    /// The argument must be a pointer to global numbers of 64 bits.
    pub(crate) unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
        // SAFETY: the caller's promise.
        unsafe { kernel.set_arg(index, &self.words.buffer.get()) }
    }
}

impl Deref for LiveMemory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `len` numbers, aligned as such, which live as long as `self`; nobody has a reference to them as
        // plain ones. Kernels change them as another thread would.
        unsafe { std::slice::from_raw_parts(self.words.data.cast::<AtomicU64>(), self.words.len) }
    }
}

/// A buffer in the host's memory, by NVIDIA's extension.
fn in_host_memory(ctx: &Context, len: usize) -> Result<Buffer<u64>> {
    const CREATE: &str = "clCreateBufferNV";
    ctx.call(Doing(Call::Allocate, "live memory"), CREATE, || {
        let platform = Device::new(ctx.id()).platform()?;
        let library = cl3::load_library().as_ref().map_err(|_| ClError(CL_INVALID_OPERATION))?;
        let address = library
            .clGetExtensionFunctionAddressForPlatform(platform, c"clCreateBufferNV".as_ptr())
            .unwrap_or_default();
        if address.is_null() {
            return Err(ClError(CL_INVALID_OPERATION));
        }
        // SAFETY: the extension, which the device has, declares this function of this type.
        let create = unsafe { std::mem::transmute::<*mut c_void, CreateBufferNv>(address) };
        let (bytes, mut status) = (len.max(1) * size_of::<u64>(), CL_SUCCESS);
        // SAFETY: the context is alive, and no host pointer is given.
        let buffer = unsafe {
            create(ctx.context.get(), CL_MEM_READ_WRITE, LOCATION_HOST_NV, bytes, ptr::null_mut(), &raw mut status)
        };
        if status == CL_SUCCESS { Ok(Buffer::new(buffer)) } else { Err(ClError(status)) }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::device::list;

    #[test]
    fn begins_with_zeros_and_keeps_what_the_host_writes() {
        let ctx = Context::open(&list().devices.remove(0)).unwrap();
        for len in [0, 1, 7, 64] {
            let memory = LiveMemory::zeros(&ctx, len).unwrap();
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            memory.iter().zip(1..).for_each(|(word, k)| word.store(k, Ordering::Relaxed));
            assert!(memory.iter().zip(1..).all(|(word, k)| word.load(Ordering::Relaxed) == k));
        }
    }
}
