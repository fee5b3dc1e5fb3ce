//! Typed launchers for the kernels in `cl/`: one file for each `.cl` file, one function for each kernel.
//!
//! OpenCL's kernel arguments are untyped. Here, and only here, they are bound; in builds with debug assertions the type of
//! each is compared with what the compiled kernel declares.

#![allow(clippy::too_many_arguments)] // a launcher takes what its kernel takes

pub(crate) mod cg;
pub(crate) mod csr;
pub(crate) mod dot;
pub(crate) mod halo;
pub(crate) mod stream;
pub(crate) mod update;

use std::marker::PhantomData;

use crate::device::{ClKernel, ClResult, Context, DeviceVec, Grid, Info, Kernel, Kind, Plain};
use crate::error::Result;
use crate::real::Real;

/// The kernel families: file name, source, kernels. The only list of them.
pub(crate) const FAMILIES: &[(&str, &str, &[&str])] = &[
    ("dot.cl", include_str!("../../cl/dot.cl"), &["dot_partial"]),
    (
        "update.cl",
        include_str!("../../cl/update.cl"),
        &["next_iterate", "next_residual", "next_direction", "scale_diagonal"],
    ),
    ("csr.cl", include_str!("../../cl/csr.cl"), &["spmv_csr", "spmv_dot_csr", "residual_csr"]),
    (
        "cg.cl",
        include_str!("../../cl/cg.cl"),
        &["cg_step", "cg_step_diagonal", "cg_direction", "cg_direction_diagonal"],
    ),
    ("halo.cl", include_str!("../../cl/halo.cl"), &["halo_pack"]),
    ("stream.cl", include_str!("../../cl/stream.cl"), &["stream_copy"]),
];

const PRELUDE: &str = include_str!("../../cl/prelude.cl");

/// How kernels are written for a device: see `cl/prelude.cl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Groups of one work-item, each with a contiguous chunk.
    Cpu,
    /// Groups of many work-items on neighbouring elements.
    Gpu,
}

impl Shape {
    /// The shape for a device. The environment variable `DECLIVE_SHAPE`, `cpu` or `gpu`, overrides it: a CPU's runtime can so
    /// check the kernels for GPUs.
    pub(crate) fn of(device: &Info) -> Self {
        let own = if device.kind == Kind::Gpu { Self::Gpu } else { Self::Cpu };
        match std::env::var("DECLIVE_SHAPE").as_deref() {
            Ok("gpu") => Self::Gpu,
            Ok("cpu") => Self::Cpu,
            Ok(other) => {
                log::warn!("DECLIVE_SHAPE is '{other}', which is neither cpu nor gpu: ignored");
                own
            }
            Err(_) => own,
        }
    }
}

/// The launch parameters that are compiled in, and the number of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// CPU or GPU.
    pub(crate) shape: Shape,
    /// Work-items of a group: a power of two.
    pub(crate) group_size: usize,
    /// Entries of a row block that fit into local memory.
    pub(crate) block_nnz: usize,
    /// At most so many groups.
    pub(crate) max_groups: usize,
}

impl Tuning {
    /// Sane values for a device never seen.
    pub(crate) fn default_for(device: &Info, shape: Shape) -> Self {
        let units = device.compute_units.max(1) as usize;
        match shape {
            // A few chunks for each core even out what else the machine does.
            Shape::Cpu => Self { shape, group_size: 1, block_nnz: 1, max_groups: 4 * units },
            // 256 rows of a 7-point stencil have 1792 entries; 16 KiB of products leave room for 8 groups on a compute unit.
            Shape::Gpu => {
                let group_size = 256.min(1 << device.max_work_group.max(1).ilog2());
                Self { shape, group_size, block_nnz: 2048.max(group_size), max_groups: 8 * units }
            }
        }
    }

    /// The grid for one work-item an element.
    pub(crate) fn grid(&self, n: usize) -> Grid {
        let least = match self.shape {
            Shape::Cpu => 1024, // elements that are worth a group
            Shape::Gpu => self.group_size,
        };
        Grid { groups: n.div_ceil(least).clamp(1, self.max_groups), group_size: self.group_size }
    }

    /// The grid for `count` row blocks.
    pub(crate) fn block_grid(&self, count: usize) -> Grid {
        Grid { groups: count.clamp(1, self.max_groups), group_size: self.group_size }
    }
}

/// All kernels for elements `T` and sums `A`, compiled for one device.
pub(crate) struct Kernels<T, A> {
    pub(crate) tuning: Tuning,
    pub(crate) dot: dot::Dot<T, A>,
    pub(crate) update: update::Update<T>,
    pub(crate) csr: csr::Csr<T, A>,
    pub(crate) cg: cg::Cg<T, A>,
    pub(crate) halo: halo::Halo<T>,
    pub(crate) stream: stream::Stream<T>,
}

impl<T: Real, A: Real> Kernels<T, A> {
    /// Compiles them.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, tuning: Tuning) -> Result<Self> {
        // so that a compiler's complaint names the file
        let named = |(file, text): (&str, &str)| format!("#line 1 \"{file}\"\n{text}");
        let files = std::iter::once(("prelude.cl", PRELUDE)).chain(FAMILIES.iter().map(|f| (f.0, f.1)));
        let source: String = files.map(named).collect();
        let program = ctx.build(&source, &options::<T, A>(ctx.info(), &tuning))?;
        ctx.types.set([T::CL_NAME, A::CL_NAME]);
        Ok(Self {
            tuning,
            dot: dot::Dot::load(ctx, &program)?,
            update: update::Update::load(ctx, &program)?,
            csr: csr::Csr::load(ctx, &program)?,
            cg: cg::Cg::load(ctx, &program)?,
            halo: halo::Halo::load(ctx, &program)?,
            stream: stream::Stream::load(ctx, &program)?,
        })
    }
}

/// Options for the device's compiler. The environment variable `DECLIVE_BUILD_OPTIONS` adds to them, for experiments.
fn options<T: Real, A: Real>(device: &Info, tuning: &Tuning) -> String {
    let fp64 = if device.has_f64 { " -D USE_FP64" } else { "" };
    let arg_info = if cfg!(debug_assertions) { " -cl-kernel-arg-info" } else { "" };
    let extra = std::env::var("DECLIVE_BUILD_OPTIONS").unwrap_or_default();
    format!(
        "-cl-std=CL1.2 -D REAL={} -D ACC={} -D OFFSET=uint -D GROUP_SIZE={} -D BLOCK_NNZ={} -D SHAPE_CPU={}{fp64}{arg_info} {extra}",
        T::CL_NAME,
        A::CL_NAME,
        tuning.group_size,
        tuning.block_nnz,
        i32::from(tuning.shape == Shape::Cpu),
    )
}

/// A value that can be bound to a kernel's argument.
pub trait Argument {
    /// Its type in OpenCL C.
    fn cl_type(&self) -> String;

    /// Binds it.
    ///
    /// # Errors
    /// OpenCL's own.
    ///
    /// # Safety
    /// The argument must be declared with this type.
    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()>;
}

macro_rules! scalar_argument {
    ($($rust:ty = $cl:literal),+) => {$(
        impl Argument for $rust {
            fn cl_type(&self) -> String {
                $cl.into()
            }

            unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
                // SAFETY: the caller's promise.
                unsafe { kernel.set_arg(index, self) }
            }
        }
    )+};
}
scalar_argument!(u32 = "uint", f32 = "float", f64 = "double");

/// The name of an element type in OpenCL C.
pub(crate) trait Element: Plain {
    const CL_NAME: &'static str;
}
impl Element for i32 {
    const CL_NAME: &'static str = "int";
}
impl Element for u32 {
    const CL_NAME: &'static str = "uint";
}
impl Element for [u32; 2] {
    const CL_NAME: &'static str = "uint2";
}
impl<T: Real> Element for T {
    const CL_NAME: &'static str = T::CL_NAME;
}

impl<T: Element> Argument for DeviceVec<T> {
    fn cl_type(&self) -> String {
        format!("{}*", T::CL_NAME)
    }

    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
        // SAFETY: the caller's promise.
        unsafe { kernel.set_arg(index, &self.mem()) }
    }
}

/// Binds `args` in order and enqueues `kernel`.
///
/// # Errors
/// [`Error::OpenCl`](crate::Error::OpenCl).
///
/// # Safety
/// `args` must match the kernel's declaration, and buffers must be as long as the kernel will address.
unsafe fn launch(ctx: &Context, kernel: &Kernel, grid: Grid, args: &[&dyn Argument]) -> Result<()> {
    if cfg!(debug_assertions) {
        check_types(ctx, kernel, args)?;
    }
    for (index, arg) in args.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { arg.bind(&kernel.kernel, index as u32) }.map_err(ctx.error("clSetKernelArg"))?;
    }
    // SAFETY: all arguments are bound; the rest is the caller's promise.
    unsafe { ctx.launch(kernel, grid) }
}

fn check_types(ctx: &Context, kernel: &Kernel, args: &[&dyn Argument]) -> Result<()> {
    let count = kernel.kernel.num_args().map_err(ctx.error("clGetKernelInfo"))?;
    let name = kernel.name;
    assert_eq!(count as usize, args.len(), "number of arguments of {name}");
    for (index, arg) in args.iter().enumerate() {
        // Some runtimes keep no argument information.
        let Ok(declared) = kernel.kernel.get_arg_type_name(index as u32) else { return Ok(()) };
        let [real, acc] = ctx.types.get();
        let declared =
            declared.trim_end_matches('\0').replace("offset_t", "uint").replace("real", real).replace("acc", acc);
        assert_eq!(declared, arg.cl_type(), "argument {index} of {name}");
    }
    Ok(())
}

/// The most elements of a vector on a rank, by the kernels' index arithmetic in 32 bits.
pub(crate) const MAX_COUNT: usize = (1 << 31) - 1;

/// A count of elements as the kernels take it.
///
/// # Panics
/// Above [`MAX_COUNT`]: whoever makes vectors checks before.
pub(crate) fn count(n: usize) -> u32 {
    assert!(n <= MAX_COUNT, "{n} elements on one device");
    n as u32
}

type Types<T> = PhantomData<fn() -> T>;

/// Declares a family of kernels with its loader.
macro_rules! family {
    ($(#[$doc:meta])* $name:ident<$($t:ident),+> { $($kernel:ident),+ $(,)? }) => {
        $(#[$doc])*
        pub(crate) struct $name<$($t),+> {
            $($kernel: $crate::device::Kernel,)+
            types: $crate::kernels::Types<($($t,)+)>,
        }

        impl<$($t: $crate::real::Real),+> $name<$($t),+> {
            /// Finds the kernels in the compiled program.
            ///
            /// # Errors
            /// [`Error::OpenCl`](crate::Error::OpenCl) if one is missing.
            pub(crate) fn load(ctx: &$crate::device::Context, program: &$crate::device::Program) -> $crate::error::Result<Self> {
                Ok(Self {
                    $($kernel: ctx.kernel(program, stringify!($kernel))?,)+
                    types: std::marker::PhantomData,
                })
            }
        }
    };
}
pub(crate) use family;

#[cfg(test)]
mod tests;
