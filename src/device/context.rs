//! A device made ready: its context, its queues, its programs.

use std::ptr;

use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context as ClContext;
use opencl3::device::Device;
use opencl3::error_codes::ClError;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::program::Program;

use super::Info;
use crate::error::{Error, Result};

/// How many work-groups of how many work-items a kernel runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Work-groups.
    pub(crate) groups: usize,
    /// Work-items of each.
    pub(crate) group_size: usize,
}

/// Which of a device's two in-order queues: one runs kernels, the other moves halos meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Kernels, and transfers that must come after them.
    Compute,
    /// Transfers beside running kernels.
    Transfer,
}

/// One OpenCL context for one device. Contexts are never shared between devices: NVIDIA's driver migrates whole
/// buffers between the devices of a shared context.
pub(crate) struct Context {
    info: Info,
    pub(super) context: ClContext,
    compute: CommandQueue,
    transfer: CommandQueue,
}

impl Context {
    /// Opens `device`.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the driver refuses a context or a queue.
    pub(crate) fn open(device: &Info) -> Result<Self> {
        let fail = |call: &'static str| move |e: ClError| opencl_error(&device.name, call, e);
        let id = device.id as opencl3::types::cl_device_id;
        let context = ClContext::from_device(&Device::new(id)).map_err(fail("clCreateContext"))?;
        // Version 1.2's call works on every platform.
        #[allow(deprecated)]
        // SAFETY: `id` is the device that the context was made for.
        let queue = || unsafe { CommandQueue::create(&context, id, CL_QUEUE_PROFILING_ENABLE) };
        let compute = queue().map_err(fail("clCreateCommandQueue"))?;
        let transfer = queue().map_err(fail("clCreateCommandQueue"))?;
        Ok(Self { info: device.clone(), context, compute, transfer })
    }

    /// The device.
    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    pub(super) fn queue(&self, queue: Queue) -> &CommandQueue {
        match queue {
            Queue::Compute => &self.compute,
            Queue::Transfer => &self.transfer,
        }
    }

    /// An error of this device.
    pub(crate) fn error(&self, call: &'static str) -> impl FnOnce(ClError) -> Error {
        move |e| opencl_error(&self.info.name, call, e)
    }

    /// Compiles `source`.
    ///
    /// # Errors
    /// [`Error::KernelBuild`] with the compiler's log.
    pub(crate) fn build(&self, source: &str, options: &str) -> Result<Program> {
        let mut program =
            Program::create_from_source(&self.context, source).map_err(self.error("clCreateProgramWithSource"))?;
        program.build(self.context.devices(), options).map_err(|e| Error::KernelBuild {
            device: self.info.name.clone(),
            code: e.to_string(),
            log: program.get_build_log(self.context.default_device()).unwrap_or_default(),
        })?;
        Ok(program)
    }

    /// The kernel `name` of `program`.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if there is none of that name.
    pub(crate) fn kernel(&self, program: &Program, name: &str) -> Result<Kernel> {
        Kernel::create(program, name).map_err(self.error("clCreateKernel"))
    }

    /// Enqueues `kernel` on the compute queue.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the driver refuses the launch.
    ///
    /// # Safety
    /// Every argument of the kernel must be set, to a value of its type, and buffers must be as long as the kernel
    /// will address.
    pub(crate) unsafe fn launch(&self, kernel: &Kernel, grid: Grid) -> Result<Event> {
        let global = grid.groups * grid.group_size;
        // SAFETY: both sizes live until the call returns; the rest is the caller's promise.
        unsafe {
            self.compute.enqueue_nd_range_kernel(
                kernel.get(),
                1,
                ptr::null(),
                &raw const global,
                &raw const grid.group_size,
                &[],
            )
        }
        .map_err(self.error("clEnqueueNDRangeKernel"))
    }

    /// Hands what is enqueued to the device.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the device is lost.
    pub(crate) fn flush(&self, queue: Queue) -> Result<()> {
        self.queue(queue).flush().map_err(self.error("clFlush"))
    }

    /// Waits until the compute queue is empty.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if a command failed.
    pub(crate) fn finish(&self) -> Result<()> {
        self.compute.finish().map_err(self.error("clFinish"))
    }

    /// Waits for one command.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if it failed.
    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        event.wait().map_err(self.error("clWaitForEvents"))
    }

    /// How long a finished command ran on the device.
    pub(crate) fn duration(&self, event: &Event) -> Option<std::time::Duration> {
        let (start, end) = (event.profiling_command_start().ok()?, event.profiling_command_end().ok()?);
        Some(std::time::Duration::from_nanos(end.saturating_sub(start)))
    }
}

fn opencl_error(device: &str, call: &'static str, e: ClError) -> Error {
    Error::OpenCl { device: device.into(), call, code: e.to_string() }
}
