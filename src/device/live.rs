//! Live memory: memory of the host in which processors and running kernels see at once what the other has written.
//!
//! OpenCL 1.2 has no such memory: what a kernel has written is the host's to see when the kernel is over. Later versions and extensions
//! have it, and some drivers have it all the same. Whether a device does is never believed but found out by asking a running kernel
//! (`experiments::live`).

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::AtomicU64;

use opencl3::device::{CL_DEVICE_SVM_ATOMICS, CL_DEVICE_SVM_FINE_GRAIN_BUFFER, Device};
use opencl3::error_codes::{CL_SUCCESS, ClError};
use opencl3::memory::{
    Buffer, CL_MEM_READ_WRITE, CL_MEM_SVM_ATOMICS, CL_MEM_SVM_FINE_GRAIN_BUFFER, ClMem, svm_alloc, svm_free,
};
use opencl3::types::{cl_command_queue, cl_context, cl_int, cl_kernel, cl_mem, cl_mem_flags, cl_uint};

use super::memory::new_id;
use super::{Call, ClKernel, ClResult, Context, Doing, Pinned, Queue};
use crate::error::Result;

/// The memory of one device. No other device takes it.
pub(crate) struct LiveMemory {
    kind: Kind,
    data: *const AtomicU64,
    len: usize,
    id: u64,
}

/// Where it is from.
enum Kind {
    /// A buffer that stays mapped.
    Mapped(Pinned<u64>),
    /// Fine-grained shared virtual memory.
    Shared(Owner),
    /// Host memory of Intel's unified shared memory.
    Unified(Owner, Unified),
}

/// The context that memory is of, and the queue of the kernels that use it, which live as long.
struct Owner {
    context: cl_context,
    queue: cl_command_queue,
}

impl Owner {
    fn of(ctx: &Context) -> Option<Self> {
        let (context, queue) = (ctx.context.get(), ctx.queue(Queue::Compute).get());
        // SAFETY: both are alive; `drop` gives the references back.
        unsafe {
            cl3::context::retain_context(context).ok()?;
            cl3::command_queue::retain_command_queue(queue).ok()?;
        }
        Some(Self { context, queue })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: they were retained for this. Nothing can be done about a failure here.
        unsafe {
            let _ = cl3::command_queue::release_command_queue(self.queue);
            let _ = cl3::context::release_context(self.context);
        }
    }
}

// SAFETY: all access is by atomic numbers, see `deref`; OpenCL's functions may be called by any thread.
unsafe impl Send for LiveMemory {}
// SAFETY: the same.
unsafe impl Sync for LiveMemory {}

/// `clCreateBufferNV` of `cl_nv_create_buffer`: the second flags say where the buffer is.
type CreateBufferNv =
    unsafe extern "system" fn(cl_context, cl_mem_flags, cl_mem_flags, usize, *mut c_void, *mut cl_int) -> cl_mem;

/// Of these flags: in the host's memory.
const LOCATION_HOST_NV: cl_mem_flags = 1;

/// `clHostMemAllocINTEL` of `cl_intel_unified_shared_memory`: properties, bytes, alignment.
type HostMemAllocIntel = unsafe extern "system" fn(cl_context, *const u64, usize, cl_uint, *mut cl_int) -> *mut c_void;
/// `clMemBlockingFreeINTEL`, which waits for kernels.
type MemBlockingFreeIntel = unsafe extern "system" fn(cl_context, *mut c_void) -> cl_int;
/// `clSetKernelArgMemPointerINTEL`.
type SetKernelArgMemPointerIntel = unsafe extern "system" fn(cl_kernel, cl_uint, *const c_void) -> cl_int;

/// Functions of `cl_intel_unified_shared_memory`.
#[derive(Clone, Copy)]
struct Unified {
    alloc: HostMemAllocIntel,
    free: MemBlockingFreeIntel,
    set_arg: SetKernelArgMemPointerIntel,
}

impl Unified {
    fn of(device: &Device) -> Option<Self> {
        let function = |name| extension_function(device, "cl_intel_unified_shared_memory", name);
        let all = [c"clHostMemAllocINTEL", c"clMemBlockingFreeINTEL", c"clSetKernelArgMemPointerINTEL"].map(function);
        let [Some(alloc), Some(free), Some(set_arg)] = all else { return None };
        // SAFETY: the extension, which the device has, declares these functions of these types.
        unsafe {
            Some(Self {
                alloc: std::mem::transmute::<*mut c_void, HostMemAllocIntel>(alloc),
                free: std::mem::transmute::<*mut c_void, MemBlockingFreeIntel>(free),
                set_arg: std::mem::transmute::<*mut c_void, SetKernelArgMemPointerIntel>(set_arg),
            })
        }
    }
}

/// A function of an extension, if the device has it.
fn extension_function(device: &Device, extension: &str, name: &std::ffi::CStr) -> Option<*mut c_void> {
    if !device.extensions().is_ok_and(|all| all.split(' ').any(|name| name == extension)) {
        return None;
    }
    let library = cl3::load_library().as_ref().ok()?;
    let address = library.clGetExtensionFunctionAddressForPlatform(device.platform().ok()?, name.as_ptr())?;
    (!address.is_null()).then_some(address)
}

impl LiveMemory {
    /// Memory for `len` numbers, all 0: with `cl_nv_create_buffer` in the host's memory; with fine-grained buffers of shared virtual memory,
    /// or Intel's unified shared memory, such; else what the driver allocates for the host to map.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl) if the driver has no such memory.
    pub(crate) fn zeros(ctx: &Context, len: usize) -> Result<Self> {
        let device = Device::new(ctx.id());
        if let Some(create) = extension_function(&device, "cl_nv_create_buffer", c"clCreateBufferNV") {
            return Ok(Self::mapped(Pinned::in_buffer(ctx, in_host_memory(ctx, create, len)?, len)?));
        }
        Self::shared(ctx, &device, len)
            .or_else(|| Self::unified(ctx, &device, len))
            .map_or_else(|| Pinned::zeros(ctx, len).map(Self::mapped), Ok)
    }

    /// Whether the driver names such memory as something that it has; whether it has, a kernel shows that runs.
    pub(crate) fn is_offered(ctx: &Context) -> bool {
        let device = Device::new(ctx.id());
        cfg!(test)
            || extension_function(&device, "cl_nv_create_buffer", c"clCreateBufferNV").is_some()
            || device.svm_mem_capability() & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0
            || Unified::of(&device).is_some()
    }

    /// Memory of every kind that the device has.
    #[cfg(test)]
    pub(crate) fn all(ctx: &Context, len: usize) -> Vec<Self> {
        let device = Device::new(ctx.id());
        let others = [Self::shared(ctx, &device, len), Self::unified(ctx, &device, len)].into_iter().flatten();
        let usual = [Self::zeros(ctx, len), Pinned::zeros(ctx, len).map(Self::mapped)];
        usual.into_iter().map(|memory| memory.unwrap_or_else(|e| panic!("{e}"))).chain(others).collect()
    }

    fn mapped(memory: Pinned<u64>) -> Self {
        let (data, len) = (memory.data.cast_const().cast(), memory.len);
        Self { kind: Kind::Mapped(memory), data, len, id: new_id() }
    }

    /// Fine-grained shared virtual memory, if the device has it.
    fn shared(ctx: &Context, device: &Device, len: usize) -> Option<Self> {
        let capabilities = device.svm_mem_capability();
        if capabilities & CL_DEVICE_SVM_FINE_GRAIN_BUFFER == 0 {
            return None;
        }
        let atomics = if capabilities & CL_DEVICE_SVM_ATOMICS == 0 { 0 } else { CL_MEM_SVM_ATOMICS };
        let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | atomics;
        let owner = Owner::of(ctx)?;
        // SAFETY: the context is alive.
        let data = unsafe { svm_alloc(owner.context, flags, bytes(len), ALIGNMENT) }.ok()?;
        Some(Self::zeroed(Kind::Shared(owner), data, len))
    }

    /// Host memory of Intel's unified shared memory, if the device has it.
    fn unified(ctx: &Context, device: &Device, len: usize) -> Option<Self> {
        let unified = Unified::of(device)?;
        let (owner, mut status) = (Owner::of(ctx)?, CL_SUCCESS);
        // SAFETY: the context is alive; no properties are given.
        let data = unsafe { (unified.alloc)(owner.context, ptr::null(), bytes(len), ALIGNMENT, &raw mut status) };
        (!data.is_null()).then(|| Self::zeroed(Kind::Unified(owner, unified), data, len))
    }

    fn zeroed(kind: Kind, data: *mut c_void, len: usize) -> Self {
        // SAFETY: the memory has so many bytes, and nobody else knows it yet.
        unsafe { ptr::write_bytes(data.cast::<u8>(), 0, bytes(len)) };
        Self { kind, data: data.cast_const().cast(), len, id: new_id() }
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
        let data = self.data.cast::<c_void>();
        // SAFETY: the caller's promise.
        unsafe {
            match &self.kind {
                Kind::Mapped(memory) => kernel.set_arg(index, &memory.buffer.get()),
                Kind::Shared(_) => cl3::kernel::set_kernel_arg_svm_pointer(kernel.get(), index, data).map_err(ClError),
                Kind::Unified(_, unified) => match (unified.set_arg)(kernel.get(), index, data) {
                    CL_SUCCESS => Ok(()),
                    code => Err(ClError(code)),
                },
            }
        }
    }
}

/// A cache line.
const ALIGNMENT: cl_uint = 64;

/// Bytes of so many numbers, one at least.
fn bytes(len: usize) -> usize {
    len.max(1) * size_of::<u64>()
}

impl Drop for LiveMemory {
    fn drop(&mut self) {
        let data = self.data.cast_mut().cast::<c_void>();
        // SAFETY: nothing refers to the memory any more, but kernels that run, which are waited for. Nothing can be done about a failure
        // here.
        unsafe {
            match &self.kind {
                Kind::Mapped(_) => {}
                Kind::Shared(Owner { context, queue }) => {
                    let _ = cl3::command_queue::finish(*queue);
                    let _ = svm_free(*context, data);
                }
                Kind::Unified(Owner { context, .. }, unified) => {
                    (unified.free)(*context, data);
                }
            }
        }
    }
}

impl Deref for LiveMemory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the memory holds `len` numbers, aligned as such, and lives as long as `self`; nobody has a reference to them as
        // plain ones. Kernels change them as another thread would.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// A buffer in the host's memory, by NVIDIA's extension.
fn in_host_memory(ctx: &Context, create: *mut c_void, len: usize) -> Result<Buffer<u64>> {
    ctx.call(Doing(Call::Allocate, "live memory"), "clCreateBufferNV", || {
        // SAFETY: the extension, which the device has, declares this function of this type.
        let create = unsafe { std::mem::transmute::<*mut c_void, CreateBufferNv>(create) };
        let mut status = CL_SUCCESS;
        // SAFETY: the context is alive, and no host pointer is given.
        let buffer = unsafe {
            create(ctx.context.get(), CL_MEM_READ_WRITE, LOCATION_HOST_NV, bytes(len), ptr::null_mut(), &raw mut status)
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
        for (len, memory) in
            [0, 1, 7, 64].into_iter().flat_map(|len| LiveMemory::all(&ctx, len).into_iter().map(move |m| (len, m)))
        {
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            memory.iter().zip(1..).for_each(|(word, k)| word.store(k, Ordering::Relaxed));
            assert!(memory.iter().zip(1..).all(|(word, k)| word.load(Ordering::Relaxed) == k));
        }
    }
}
