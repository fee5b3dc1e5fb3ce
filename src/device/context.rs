//! A device made ready: its context, its queues, its programs.

use std::cell::RefCell;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cl3::program::build_program;
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context as ClContext;
use opencl3::device::Device;
use opencl3::error_codes::{
    CL_INVALID_BUILD_OPTIONS, CL_OUT_OF_RESOURCES, CL_SUCCESS, ClError, DLOPEN_FUNCTION_NOT_AVAILABLE,
};
use opencl3::event::Event;
use opencl3::kernel::Kernel as ClKernel;
use opencl3::program::Program;
use opencl3::types::{cl_device_id, cl_event};

use super::faults::{Call, Doing, Faults};
use super::idle::idle;
use super::programs::{self, Programs};
use super::shared::SharedContext;
use super::staging::Staging;
use super::transfers::PendingWrite;
use super::{ClResult, Info, Kind};
use crate::error::{Error, Result};

/// How many work-groups of how many work-items a kernel runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Work-groups.
    pub(crate) groups: usize,
    /// Work-items of each.
    pub(crate) group_size: usize,
}

/// Which of a device's in-order queues: one runs kernels, the other moves halos meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Kernels, and transfers that must come after them.
    Compute,
    /// Transfers beside running kernels. They write the halo of a vector while a kernel reads its owned part: disjoint ranges
    /// of one buffer. OpenCL's text allows this only between sub-buffers; the runtimes known (NVIDIA, PoCL, Oclgrind) keep
    /// device buffers in place, where ranges are independent.
    Transfer,
}

/// A device's part of an OpenCL context, mostly one of its own: NVIDIA's driver does one launch at a time for all devices of a
/// context, and moves whole arrays between them. The operations of two precisions on one device share one.
pub(crate) struct Context {
    info: Info,
    /// Above so many bytes, arrays of a matrix are cut into segments: the device's largest buffer, if nobody lowers it.
    pub(crate) max_band_bytes: u64,
    pub(super) context: Arc<ClContext>,
    /// Whether it is of this device alone.
    is_own: bool,
    /// Whether a call of OpenCL has failed in it: the driver may have given it up.
    has_failed: Arc<AtomicBool>,
    /// Whether large transfers go through pinned memory: to other memory than the host's, that is.
    pub(super) stages: bool,
    /// That memory.
    pub(super) staging: Mutex<Option<Staging>>,
    /// Of the queues for kernels, that whose commands are not timed: timing costs NVIDIA's driver (580.159) some 15 µs a command that
    /// the host waits for.
    untimed: CommandQueue,
    /// The other. What is in one of them comes before what is put into the other later.
    timed: CommandQueue,
    transfer: CommandQueue,
    timings: Mutex<Timings>,
    /// Nanoseconds that the compiler took so far, and the making of kernels of what it made in former runs.
    compiling: AtomicU64,
    /// The iteration that is being enqueued, for errors; 0 outside.
    iteration: AtomicU64,
    /// Failures on request.
    faults: Option<Faults>,
}

/// What commands are in, and what a failing device is asked for.
const THE_DEVICE: &str = "the device";
/// What compilers make.
const THE_KERNELS: &str = "the kernels";
/// The call that waits for all of it.
pub(super) const FINISH: &str = "clFinish";
/// What is in the compute queue.
const COMMANDS: &str = "what is in the queue";

/// Kernels that the device times.
#[derive(Default)]
struct Timings {
    /// The tag of the kernels to be timed, if any.
    tag: Option<u64>,
    timed: Vec<(u64, &'static str, Event)>,
}

/// When a kernel ran, by the device's clock in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timed {
    /// As set with [`Context::set_timing`].
    pub(crate) tag: u64,
    /// The kernel's name.
    pub(crate) kernel: &'static str,
    /// When it began.
    pub(crate) start: u64,
    /// When it ended.
    pub(crate) end: u64,
}

impl Timed {
    /// How long it took.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }
}

/// A kernel and its name.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// What `real` and `acc` stand for in it, for the check of its arguments.
    pub(crate) types: [&'static str; 2],
    pub(crate) kernel: ClKernel,
    /// What its arguments were last set to, by whoever sets them: most are the same from launch to launch.
    pub(crate) bound: RefCell<Vec<Option<u64>>>,
}

impl Context {
    /// Opens `device` in a context of its own: one that is idle, if there is one.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the driver refuses a context or a queue.
    pub(crate) fn open(device: &Info) -> Result<Self> {
        let new = || ClContext::from_device(&Device::new(id_of(device))).map(Arc::new);
        let take = || idle().take(device);
        Self::open_by(device, true, Arc::default(), || take().map_or_else(new, Ok))
    }

    /// Opens `device` in the context that it shares with others.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the driver refuses a queue.
    pub(crate) fn open_in(device: &Info, shared: &SharedContext) -> Result<Self> {
        Self::open_by(device, false, Arc::default(), || Ok(Arc::clone(&shared.context)))
    }

    fn open_by(
        device: &Info,
        is_own: bool,
        has_failed: Arc<AtomicBool>,
        context: impl FnOnce() -> ClResult<Arc<ClContext>>,
    ) -> Result<Self> {
        let faults = Faults::of_device(device.index)?;
        let fail = |call| opening(device, call);
        faults.as_ref().map_or(Ok(()), |faults| faults.check(Call::Open)).map_err(fail("clCreateContext"))?;
        let id = id_of(device);
        let context = context().map_err(fail("clCreateContext"))?;
        // Version 1.2's call works on every platform.
        #[allow(deprecated)]
        // SAFETY: `id` is a device that the context was made for.
        let queue = |properties| unsafe { CommandQueue::create(&context, id, properties) };
        let [untimed, timed, transfer] =
            [0, CL_QUEUE_PROFILING_ENABLE, 0].map(|properties| queue(properties).map_err(fail("clCreateCommandQueue")));
        let (untimed, timed, transfer) = (untimed?, timed?, transfer?);
        let (info, max_band_bytes) = (device.clone(), device.max_buffer_bytes);
        let (stages, staging) = (device.kind != Kind::Cpu, Mutex::default());
        let (timings, compiling, iteration) = Default::default();
        Ok(Self {
            info,
            max_band_bytes,
            context,
            is_own,
            has_failed,
            stages,
            staging,
            untimed,
            timed,
            transfer,
            timings,
            compiling,
            iteration,
            faults,
        })
    }

    /// The same device once more, with queues of its own for the same memory and kernels.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the driver refuses a queue.
    pub(crate) fn beside(&self) -> Result<Self> {
        Self::open_by(&self.info, self.is_own, Arc::clone(&self.has_failed), || Ok(Arc::clone(&self.context)))
    }

    /// The device.
    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    /// The driver's name of the device.
    pub(super) fn id(&self) -> cl_device_id {
        id_of(&self.info)
    }

    fn timings(&self) -> MutexGuard<'_, Timings> {
        self.timings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queue(&self, queue: Queue) -> &CommandQueue {
        match queue {
            Queue::Compute => self.compute(self.timings().tag.is_some()),
            Queue::Transfer => &self.transfer,
        }
    }

    fn compute(&self, is_timed: bool) -> &CommandQueue {
        if is_timed { &self.timed } else { &self.untimed }
    }

    /// The iteration, counted over all runs of a solve, that is enqueued from now on; 0 outside of iterations.
    pub(crate) fn set_iteration(&self, iteration: u64) {
        self.iteration.store(iteration, Ordering::Relaxed);
    }

    /// An error of this device in `call` of OpenCL.
    pub(crate) fn error(&self, doing: Doing, call: &'static str) -> impl FnOnce(ClError) -> Error {
        move |e| {
            self.has_failed.store(true, Ordering::Relaxed);
            opencl_error(&self.info, doing, self.iteration.load(Ordering::Relaxed), call, e)
        }
    }

    /// Fails if that was asked for, as the driver would.
    pub(super) fn check_fault(&self, call: Call) -> ClResult<()> {
        self.faults.as_ref().map_or(Ok(()), |faults| faults.check(call))
    }

    /// Calls OpenCL.
    ///
    /// # Errors
    /// [`Error::OpenCl`] with what this was for.
    pub(super) fn call<R>(&self, doing: Doing, call: &'static str, f: impl FnOnce() -> ClResult<R>) -> Result<R> {
        self.check_fault(doing.0).and_then(|()| f()).map_err(self.error(doing, call))
    }

    /// Compiles `source`, or takes what a former run has made of it.
    ///
    /// # Errors
    /// [`Error::KernelBuild`] with the compiler's log.
    pub(crate) fn build(&self, source: &str, options: &str) -> Result<Program> {
        let start = Instant::now();
        let programs = Programs::of_user(&self.info, options);
        let built = programs::build(self, source, options, programs.as_ref()).map(|(program, _)| program);
        self.compiling.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        built
    }

    /// What all [builds](Self::build) took so far.
    pub(crate) fn compiled(&self) -> Duration {
        Duration::from_nanos(self.compiling.load(Ordering::Relaxed))
    }

    /// Makes a program of what the driver gave as its binary.
    pub(super) fn load(&self, binary: &[u8], options: &str) -> ClResult<Program> {
        self.check_fault(Call::Build)?;
        // SAFETY: the device is one of the context's. Of one binary, the driver gets its length and its address.
        let program = unsafe { Program::create_from_binary(&self.context, &[self.id()], &[binary]) }?;
        self.build_for_device(&program, options)?;
        Ok(program)
    }

    /// Builds `program` for this device alone. [`Program::build`] asks for the names of its kernels, too, which NVIDIA's driver
    /// (580.159) refuses if the program is not built for the first device of the context.
    fn build_for_device(&self, program: &Program, options: &str) -> ClResult<()> {
        let options = CString::new(options).map_err(|_| ClError(CL_INVALID_BUILD_OPTIONS))?;
        build_program(program.get(), &[self.id()], &options, None, ptr::null_mut()).map_err(ClError)
    }

    /// Compiles `source`, without a look at what is kept.
    ///
    /// # Errors
    /// [`Error::KernelBuild`] with the compiler's log.
    pub(crate) fn compile(&self, source: &str, options: &str) -> Result<Program> {
        let doing = Doing(Call::Build, THE_KERNELS);
        let program = Program::create_from_source(&self.context, source)
            .map_err(self.error(doing, "clCreateProgramWithSource"))?;
        let built = self.check_fault(Call::Build).and_then(|()| self.build_for_device(&program, options));
        built.map_err(|e| Error::KernelBuild {
            device: self.info.label(),
            code: code_name(e),
            log: program.get_build_log(self.id()).unwrap_or_default(),
        })?;
        Ok(program)
    }

    /// The kernel `name` of `program`, in which `real` and `acc` stand for `types`.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if there is none of that name.
    pub(crate) fn kernel(&self, program: &Program, name: &'static str, types: [&'static str; 2]) -> Result<Kernel> {
        let kernel = ClKernel::create(program, name).map_err(self.error(Doing(Call::Build, name), "clCreateKernel"))?;
        Ok(Kernel { name, types, kernel, bound: RefCell::default() })
    }

    /// The largest work-group that this device runs `kernel` with.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    pub(crate) fn max_group_size(&self, kernel: &Kernel) -> Result<usize> {
        let device = self.id();
        kernel
            .kernel
            .get_work_group_size(device)
            .map_err(self.error(Doing(Call::Build, kernel.name), "clGetKernelWorkGroupInfo"))
    }

    /// The number of work-items of which multiples suit this device, for `kernel`.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    pub(crate) fn preferred_multiple(&self, kernel: &Kernel) -> Result<usize> {
        let device = self.id();
        kernel
            .kernel
            .get_work_group_size_multiple(device)
            .map_err(self.error(Doing(Call::Build, kernel.name), "clGetKernelWorkGroupInfo"))
    }

    /// The compute capability of a device of NVIDIA's, by `cl_nv_device_attribute_query`.
    pub(crate) fn compute_capability(&self) -> Option<(u32, u32)> {
        let device = Device::new(self.id());
        let has_query = device.extensions().ok()?.split(' ').any(|name| name == "cl_nv_device_attribute_query");
        let major = || device.compute_capability_major_nv().ok();
        has_query.then(|| Some((major()?, device.compute_capability_minor_nv().ok()?))).flatten()
    }

    /// Options of the compiler, `-cl-std` among them, with which a kernel's groups can order what they write for each other;
    /// `None` if there is no way. NVIDIA's compiler takes instructions of its own for that, by the compute capability.
    pub(crate) fn fence_options(&self) -> Option<String> {
        let device = Device::new(self.id());
        let versions: Vec<u32> =
            device.opencl_c_all_versions().unwrap_or_default().iter().map(|version| version.version >> 22).collect();
        let features = device.opencl_c_features().unwrap_or_default();
        let has = |wanted: &str| features.iter().any(|f| f.name.split(|&c| c == 0).next() == Some(wanted.as_bytes()));
        if let Some((major, minor)) = self.compute_capability() {
            Some(format!("-cl-std=CL1.2 -D COMPUTE_CAPABILITY={major}{minor}"))
        } else if versions.contains(&2) || device.opencl_c_version().is_ok_and(|v| v.starts_with("OpenCL C 2.")) {
            Some("-cl-std=CL2.0".into())
        } else if versions.contains(&3)
            && has("__opencl_c_atomic_order_acq_rel")
            && has("__opencl_c_atomic_scope_device")
        {
            Some("-cl-std=CL3.0".into())
        } else {
            None
        }
    }

    /// Enqueues `kernel` on the compute queue. Between launches that are not timed there are no events: each costs the driver
    /// some microseconds.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the driver refuses the launch.
    ///
    /// # Safety
    /// Every argument of the kernel must be set, to a value of its type, and buffers must be as long as the kernel
    /// will address.
    pub(crate) unsafe fn launch(&self, kernel: &Kernel, grid: Grid) -> Result<()> {
        let (global, local) = (grid.groups * grid.group_size, grid.group_size);
        let mut event = ptr::null_mut();
        let timed_as = self.timings().tag;
        let event_out = if timed_as.is_some() { &raw mut event } else { ptr::null_mut() };
        let doing = Doing(Call::Launch, kernel.name);
        self.check_fault(Call::Launch).map_err(self.error(doing, "clEnqueueNDRangeKernel"))?;
        let status = match cl3::load_library() {
            // The sizes and the place for the event live until the call returns; the rest is the caller's promise.
            Ok(opencl) => opencl.clEnqueueNDRangeKernel(
                self.compute(timed_as.is_some()).get(),
                kernel.kernel.get(),
                1,
                ptr::null(),
                &raw const global,
                &raw const local,
                0,
                ptr::null(),
                event_out,
            ),
            Err(_) => None,
        };
        match status {
            Some(CL_SUCCESS) => {
                if let Some(tag) = timed_as {
                    self.timings().timed.push((tag, kernel.name, Event::new(event)));
                }
                Ok(())
            }
            Some(code) => Err(self.error(doing, "clEnqueueNDRangeKernel")(ClError(code))),
            None => Err(self.error(doing, "clEnqueueNDRangeKernel")(ClError(DLOPEN_FUNCTION_NOT_AVAILABLE))),
        }
    }

    /// Hands what is enqueued to the device, unless the driver has.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if the device is lost.
    pub(crate) fn flush(&self, queue: Queue) -> Result<()> {
        if self.info.needs_no_flush() {
            return Ok(());
        }
        self.queue(queue).flush().map_err(self.error(Doing(Call::Wait, COMMANDS), "clFlush"))
    }

    /// Waits until the compute queue is empty.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if a command failed.
    pub(crate) fn finish(&self) -> Result<()> {
        self.call(Doing(Call::Wait, COMMANDS), FINISH, || self.queue(Queue::Compute).finish())
    }

    /// Lets what is put into the compute queue from now on wait for transfers of the other queue.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    pub(crate) fn compute_after(&self, transfers: &[PendingWrite]) -> Result<()> {
        let events: Vec<_> = transfers.iter().map(|transfer| transfer.event().get()).collect();
        if events.is_empty() {
            return Ok(()); // a barrier that waits for nothing waits for all that came before
        }
        // SAFETY: the events are alive; the queue keeps them as long as it needs them.
        unsafe { self.compute_after_all(&events) }
    }

    /// The same for a command of another queue of the device.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    pub(crate) fn compute_after_event(&self, event: &Event) -> Result<()> {
        // SAFETY: the event is alive; the queue keeps it as long as it needs it.
        unsafe { self.compute_after_all(&[event.get()]) }
    }

    /// # Safety
    /// The events must be alive.
    unsafe fn compute_after_all(&self, events: &[cl_event]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.queue(Queue::Compute).enqueue_barrier_with_wait_list(events) }
            .map_err(self.error(Doing(Call::Wait, COMMANDS), "clEnqueueBarrierWithWaitList"))?;
        Ok(())
    }

    /// Waits for one command, that of `what`.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if it failed.
    pub(crate) fn wait(&self, event: &Event, what: &'static str) -> Result<()> {
        self.call(Doing(Call::Wait, what), "clWaitForEvents", || event.wait())
    }

    /// From now on the device times kernels, under this tag, or doesn't. Tags must not fall while timings wait to be taken.
    /// Gives the former tag.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    pub(crate) fn set_timing(&self, tag: Option<u64>) -> Result<Option<u64>> {
        let former = self.timings().tag;
        if former.is_some() != tag.is_some() {
            let before = self.marker()?;
            self.flush(Queue::Compute)?;
            // SAFETY: the event is alive; the queue keeps it as long as it needs it.
            unsafe { self.compute(tag.is_some()).enqueue_barrier_with_wait_list(&[before.get()]) }
                .map_err(self.error(Doing(Call::Wait, COMMANDS), "clEnqueueBarrierWithWaitList"))?;
        }
        self.timings().tag = tag;
        Ok(former)
    }

    /// Timings not yet taken.
    pub(crate) fn timed_count(&self) -> usize {
        self.timings().timed.len()
    }

    /// Waits for the kernels timed with tags up to `last`, and hands them out; later ones stay.
    ///
    /// # Errors
    /// [`Error::OpenCl`] if one failed.
    pub(crate) fn take_timed(&self, last: u64) -> Result<Vec<Timed>> {
        let timed: Vec<_> = {
            let waiting = &mut self.timings().timed;
            let count = waiting.partition_point(|(tag, ..)| *tag <= last);
            waiting.drain(..count).collect()
        };
        if let Some((_, name, last)) = timed.last() {
            self.wait(last, name)?;
        }
        let read = |(tag, kernel, event): &(u64, &'static str, Event)| {
            let (start, end) = (event.profiling_command_start().ok()?, event.profiling_command_end().ok()?);
            Some(Timed { tag: *tag, kernel, start, end })
        };
        Ok(timed.iter().filter_map(read).collect())
    }

    /// Takes no interest in the kernels timed so far.
    pub(crate) fn forget_timed(&self) {
        self.timings().timed.clear();
    }

    /// An event that comes when all that is in the compute queue is done.
    ///
    /// # Errors
    /// [`Error::OpenCl`].
    pub(crate) fn marker(&self) -> Result<Event> {
        // SAFETY: there is no wait list.
        unsafe { self.queue(Queue::Compute).enqueue_marker_with_wait_list(&[]) }
            .map_err(self.error(Doing(Call::Wait, COMMANDS), "clEnqueueMarkerWithWaitList"))
    }
}

impl Drop for Context {
    /// The last that has the context leaves it to who opens the device next.
    fn drop(&mut self) {
        if self.is_own && !self.has_failed.load(Ordering::Relaxed) && Arc::strong_count(&self.context) == 1 {
            idle().keep(&self.info, Arc::clone(&self.context));
        }
    }
}

pub(super) fn id_of(device: &Info) -> cl_device_id {
    device.id as cl_device_id
}

/// The error of a device that can't be opened, as `call` fails.
pub(super) fn opening(device: &Info, call: &'static str) -> impl FnOnce(ClError) -> Error {
    move |e| opencl_error(device, Doing(Call::Open, THE_DEVICE), 0, call, e)
}

fn opencl_error(device: &Info, doing: Doing, iteration: u64, call: &'static str, e: ClError) -> Error {
    let text = if iteration == 0 { doing.to_string() } else { format!("{doing} in iteration {iteration}") };
    Error::OpenCl { device: device.label(), doing: text, call, meaning: meaning(e.0, doing.0), code: code_name(e) }
}

/// What a code means that does not say so, for users of a device on which this was done.
fn meaning(code: i32, doing: Call) -> &'static str {
    match (code, doing) {
        (CL_OUT_OF_RESOURCES, Call::Allocate | Call::Open | Call::Build) => "",
        // NVIDIA's driver has no other code for it
        (CL_OUT_OF_RESOURCES, _) => " (a kernel failed, or the device is lost)",
        _ => "",
    }
}

/// OpenCL's name of an error, or its number: drivers have codes of their own.
pub(super) fn code_name(e: ClError) -> String {
    match e.to_string() {
        name if name.starts_with("CL_") => name,
        _ => format!("code {}", e.0),
    }
}
