//! Typed launchers for the kernels in `cl/`: one file for each `.cl` file, one function for each kernel.
//!
//! OpenCL's kernel arguments are untyped. Here, and only here, they are bound; in builds with debug assertions the type of
//! each is compared with what the compiled kernel declares.

#![allow(clippy::too_many_arguments)] // a launcher takes what its kernel takes

pub(crate) mod amg;
pub(crate) mod basis;
pub(crate) mod batch;
pub(crate) mod block_tridiagonal;
pub(crate) mod coarse;
pub(crate) mod columns;
pub(crate) mod convert;
pub(crate) mod csr;
pub(crate) mod cycle;
pub(crate) mod dense;
pub(crate) mod dictionary;
pub(crate) mod dot;
pub(crate) mod elements;
pub(crate) mod fdtd;
pub(crate) mod fsai;
pub(crate) mod gemm;
pub(crate) mod halo;
pub(crate) mod lattice;
pub(crate) mod live;
pub(crate) mod lu_panel;
pub(crate) mod own_rows;
pub(crate) mod pass;
pub(crate) mod persistent;
pub(crate) mod primitives;
pub(crate) mod products;
pub(crate) mod sell;
pub(crate) mod sell_layout;
pub(crate) mod stream;
pub(crate) mod tridiagonal;
mod tuning;
pub(crate) mod update;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use crate::device::{Call, ClKernel, ClResult, Context, DeviceVec, Doing, Grid, Info, Kernel, Kind, Program};
use crate::error::Result;
use crate::memory::Plain;
use crate::real::Real;
pub(crate) use basis::KERNELS as BASIS;
pub(crate) use convert::KERNELS as CONVERSIONS;
pub(crate) use csr::KERNELS as PRODUCTS;
use products::Products;
pub(crate) use tuning::{Launch, MAX_LANES, Shape, Tuning, lanes, load_bytes, parts, persistent_group, tiles};

/// The kernel families: file name, source, kernels.
pub(crate) const FAMILIES: &[(&str, &str, &[&str])] = &[
    ("dot.cl", include_str!("../../cl/dot.cl"), dot::KERNELS),
    ("update.cl", include_str!("../../cl/update.cl"), update::KERNELS),
    ("csr.cl", include_str!("../../cl/csr.cl"), csr::KERNELS),
    ("dictionary.cl", include_str!("../../cl/dictionary.cl"), dictionary::KERNELS),
    ("sell.cl", include_str!("../../cl/sell.cl"), sell::KERNELS),
    ("basis.cl", include_str!("../../cl/basis.cl"), basis::KERNELS),
    ("convert.cl", include_str!("../../cl/convert.cl"), convert::KERNELS),
    ("halo.cl", include_str!("../../cl/halo.cl"), halo::KERNELS),
    ("stream.cl", include_str!("../../cl/stream.cl"), stream::KERNELS),
];

/// The kernels of the files that have products.
pub(crate) const PRODUCT_FILES: [&[&str]; 3] = [PRODUCTS, dictionary::KERNELS, sell::KERNELS];

/// Elements side by side of which x is updated or its update deferred together (`cl/passes.cl`).
pub(crate) const RUN: usize = 4096;

/// The most entries of a main pattern of rows (`cl/dictionary.cl`).
pub(crate) const MOST_MAIN: usize = 32;

const PRELUDE: &str = include_str!("../../cl/prelude.cl");
const PASSES: &str = include_str!("../../cl/passes.cl");
const COLUMNS: &str = include_str!("../../cl/columns.cl");
const PERSISTENT: &str = include_str!("../../cl/persistent.cl");
const BATCH: &str = include_str!("../../cl/batch.cl");
const WORDS: &str = include_str!("../../cl/words.cl");
const TOGETHER: &str = include_str!("../../cl/together.cl");

/// The option with which products put what other ranks need into live memory.
const SENDS: &str = " -D SENDS=1";

/// All kernels for elements `T` and sums `A`, compiled for one device.
pub(crate) struct Kernels<T, A> {
    pub(crate) tuning: Tuning,
    /// Those of vectors.
    usual: Vec<Kernel>,
    /// The kernels of each of [`PRODUCT_FILES`] by the entries of a main pattern, and by [what they are for](ProductsFor): compiled when they
    /// are first asked for, as most are of use to one format alone.
    products: [[[OnceCell<Vec<Kernel>>; VARIANTS]; MOST_MAIN + 1]; PRODUCT_FILES.len()],
    /// Those of a Krylov basis, which few methods ask for.
    basis: OnceCell<Vec<Kernel>>,
    /// Those of an operator that is of no family.
    own: OnceCell<Vec<Kernel>>,
    /// Where programs come from, if not from former runs or the compiler.
    made: Option<Made>,
    types: PhantomData<fn() -> (T, A)>,
}

impl<T: Real, A: Real> Kernels<T, A> {
    /// Compiles them, or takes what was compiled in a former run; those of single formats when they are asked
    /// for.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, tuning: Tuning) -> Result<Self> {
        Self::new(ctx, tuning, None)
    }

    /// Compiles what is not among the programs `made` so far, and keeps nothing beyond them. Products are apart from the
    /// other kernels, which so are compiled once for all sizes of row blocks.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn compile(ctx: &Context, tuning: Tuning, made: &Made) -> Result<Self> {
        Self::new(ctx, tuning, Some(made.clone()))
    }

    fn new(ctx: &Context, tuning: Tuning, made: Option<Made>) -> Result<Self> {
        // compressed rows are for all matrices
        let of_vectors = |kernels: &&[&str]| *kernels != BASIS && !PRODUCT_FILES.contains(kernels);
        let usual = |kernels: &[&str]| kernels == PRODUCTS || of_vectors(&kernels);
        let programs = Programs::new::<T, A>(ctx, &tuning, made.as_ref(), ("", 1), &usual)?;
        let of_vectors = FAMILIES.iter().map(|(_, _, kernels)| *kernels).filter(of_vectors);
        let usual =
            of_vectors.map(|file| programs.kernels(ctx, file)).collect::<Result<Vec<_>>>()?.into_iter().flatten();
        let products =
            [const { [const { [const { OnceCell::new() }; VARIANTS] }; MOST_MAIN + 1] }; PRODUCT_FILES.len()];
        let (usual, basis, own) = (usual.collect(), OnceCell::new(), OnceCell::new());
        let all = Self { tuning, usual, products, basis, own, made, types: PhantomData };
        let kernels = programs.kernels(ctx, PRODUCTS)?;
        all.products[0][0][0].get_or_init(|| kernels);
        Ok(all)
    }

    /// A kernel of vectors.
    fn kernel(&self, name: &str) -> &Kernel {
        let kernel = self.usual.iter().find(|kernel| kernel.name == name);
        kernel.unwrap_or_else(|| unreachable!("{name} is in the table of files"))
    }

    /// A kernel of a Krylov basis.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    fn basis_kernel(&self, ctx: &Context, name: &str) -> Result<&Kernel> {
        let kernels = match self.basis.get() {
            Some(kernels) => kernels,
            None => {
                let of_file = |kernels: &[&str]| kernels == BASIS;
                let programs = Programs::new::<T, A>(ctx, &self.tuning, self.made.as_ref(), ("", 1), &of_file)?;
                let kernels = programs.kernels(ctx, BASIS)?;
                self.basis.get_or_init(|| kernels)
            }
        };
        let kernel = kernels.iter().find(|kernel| kernel.name == name);
        Ok(kernel.unwrap_or_else(|| unreachable!("{name} is in its file")))
    }

    /// One of the kernels of a format's products.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    fn of_products(&self, ctx: &Context, products: Products, index: usize, of: ProductsFor) -> Result<&Kernel> {
        let name = products.names[index];
        let file = PRODUCT_FILES.iter().position(|kernels| kernels.contains(&name));
        let file = file.unwrap_or_else(|| unreachable!("{name} is in the table of files"));
        let place = &self.products[file][products.main][of.number()];
        let kernels = match place.get() {
            Some(kernels) => kernels,
            None => {
                let of_file = |kernels: &[&str]| kernels == PRODUCT_FILES[file];
                let more = main_option(products.main) + if of == ProductsFor::Sending { SENDS } else { "" };
                let columns = if let ProductsFor::Columns(columns) = of { columns } else { 1 };
                let tuning = match of {
                    ProductsFor::Several => &self.tuning.clone().in_groups_of(persistent_group(ctx.info())),
                    _ => &self.tuning,
                };
                let programs = Programs::new::<T, A>(ctx, tuning, self.made.as_ref(), (&more, columns), &of_file)?;
                let kernels = programs.kernels(ctx, PRODUCT_FILES[file])?;
                place.get_or_init(|| kernels)
            }
        };
        let kernel = kernels.iter().find(|kernel| kernel.name == name);
        Ok(kernel.unwrap_or_else(|| unreachable!("{name} is in its file")))
    }

    /// The largest work-group that the device runs a kernel with; `None` if there is no kernel of this name.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    pub(crate) fn max_group_size(&self, ctx: &Context, name: &str) -> Result<Option<usize>> {
        self.with(name, |kernel| ctx.max_group_size(kernel))
    }

    /// The number of work-items of which multiples suit the device, for a kernel; `None` if there is no kernel of this name.
    ///
    /// # Errors
    /// [`Error::OpenCl`](crate::Error::OpenCl).
    pub(crate) fn preferred_multiple(&self, ctx: &Context, name: &str) -> Result<Option<usize>> {
        self.with(name, |kernel| ctx.preferred_multiple(kernel))
    }

    /// Looks at a kernel, if it is compiled.
    fn with<R>(&self, name: &str, look: impl FnOnce(&Kernel) -> Result<R>) -> Result<Option<R>> {
        let products = self.products.iter().flatten().flatten().filter_map(OnceCell::get).flatten();
        let kernel = self.usual.iter().chain(products).find(|kernel| kernel.name == name);
        kernel.map(look).transpose()
    }
}

/// Programs by source and options, for who tries many launch parameters.
#[derive(Clone, Default)]
pub(crate) struct Made(Arc<Mutex<BTreeMap<[String; 2], Arc<Program>>>>);

impl Made {
    fn get(&self, ctx: &Context, source: &str, options: &str) -> Result<Arc<Program>> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = [source.into(), options.into()];
        if let Some(program) = made.get(&key) {
            return Ok(program.clone());
        }
        let program = Arc::new(ctx.compile(source, options)?);
        made.insert(key, program.clone());
        Ok(program)
    }
}

/// What kernels of one program have in common: the size of groups, which is compiled in, and whether they are products, if those
/// are apart.
type Common = (usize, bool);

/// A program for each combination that is used, with the families that have such kernels.
struct Programs {
    programs: BTreeMap<Common, Arc<Program>>,
    tuning: Tuning,
    apart: bool,
    /// What `real` and `acc` stand for.
    types: [&'static str; 2],
}

impl Programs {
    /// Programs with the families whose kernels are `wanted`, compiled with `more` options for vectors of so many columns: among those
    /// `made`, or else from a former run.
    fn new<T: Real, A: Real>(
        ctx: &Context,
        tuning: &Tuning,
        made: Option<&Made>,
        (more, columns): (&str, usize),
        wanted: &dyn Fn(&[&str]) -> bool,
    ) -> Result<Self> {
        // so that a compiler's complaint names the file
        let named = |file: &str, text: &str| format!("#line 1 \"{file}\"\n{text}");
        let types = [T::CL_NAME, A::CL_NAME];
        let mut all = Self { programs: BTreeMap::new(), tuning: tuning.clone(), apart: made.is_some(), types };
        let mut sources: BTreeMap<Common, (String, bool, usize)> = BTreeMap::new();
        for (file, text, kernels) in FAMILIES.iter().filter(|(_, _, kernels)| wanted(kernels)) {
            let commons: BTreeSet<Common> = kernels.iter().map(|kernel| all.common(kernel)).collect();
            for common in commons {
                // products with several columns are apart
                let (source, has_products, _) = sources
                    .entry(common)
                    .or_insert_with(|| (named("prelude.cl", PRELUDE), false, load_bytes(kernels[0])));
                source.push_str(&named(file, text));
                *has_products |= kernels.iter().any(|kernel| PRODUCTS.contains(kernel));
            }
        }
        for (common, (source, has_products, loads)) in sources {
            let (group_size, _) = common;
            // row blocks are no matter of other kernels
            let block_nnz = if has_products { tuning.block_nnz } else { group_size };
            let options = options_of::<T, A>(USUAL_STD, ctx.info(), group_size, block_nnz)
                + &columns_options::<T>(columns, group_size, loads)
                + more;
            let program = match made {
                Some(made) => made.get(ctx, &source, &options)?,
                None => Arc::new(ctx.build(&source, &options)?),
            };
            all.programs.insert(common, program);
        }
        Ok(all)
    }

    fn common(&self, kernel: &str) -> Common {
        (self.tuning.launch(kernel).group_size, self.apart && PRODUCTS.contains(&kernel))
    }

    /// The kernels of these names.
    fn kernels(&self, ctx: &Context, names: &[&'static str]) -> Result<Vec<Kernel>> {
        names.iter().map(|name| ctx.kernel(self.of(name), name, self.types)).collect()
    }

    /// The program that has a kernel.
    fn of(&self, kernel: &str) -> &Program {
        &self.programs[&self.common(kernel)]
    }
}

/// Who generated passes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassesFor {
    /// A device whose passes have nothing to do with others,
    One,
    /// several ranks that iterate ahead of the host (`cl/together.cl`),
    Ranks,
    /// or vectors of so many columns (`cl/columns.cl`).
    Columns(usize),
}

/// Compiles generated passes, in groups of `group_size`: see `cl/passes.cl`.
///
/// # Errors
/// [`Error::KernelBuild`](crate::Error::KernelBuild).
pub(crate) fn build_generated<T: Real, A: Real>(
    ctx: &Context,
    passes: &str,
    group_size: usize,
    of: PassesFor,
) -> Result<Program> {
    let more: &[(&str, &str)] = match of {
        PassesFor::One => &[],
        PassesFor::Ranks => &[("persistent", PERSISTENT), ("words", WORDS), ("together", TOGETHER)],
        PassesFor::Columns(_) => &[("columns", COLUMNS)],
    };
    let (before, generated) = ([("prelude", PRELUDE), ("passes", PASSES)], [("generated", passes)]);
    let files = before.iter().chain(more).chain(&generated);
    let source: String = files.map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
    let fence = ctx.fence_options().filter(|_| of == PassesFor::Ranks);
    let std = fence.as_deref().unwrap_or(USUAL_STD);
    let columns = if let PassesFor::Columns(columns) = of { format!(" -D COLUMNS={columns}") } else { String::new() };
    ctx.build(&source, &(options_of::<T, A>(std, ctx.info(), group_size, group_size) + &columns))
}

/// The version of OpenCL C that kernels are in.
const USUAL_STD: &str = "-cl-std=CL1.2";

/// Options for the device's compiler, with a version of OpenCL C.
fn options_of<T: Real, A: Real>(std: &str, device: &Info, group_size: usize, block_nnz: usize) -> String {
    format!(
        "{std} {} -D GROUP_SIZE={group_size} -D BLOCK_NNZ={} -D SHAPE_CPU={} -D READ_EARLY={} -D RUN={RUN}",
        types_and_extras::<T, A>(device),
        block_nnz.max(group_size),
        i32::from(Shape::of_group(group_size) == Shape::Cpu),
        i32::from(device.kind == Kind::Gpu),
    )
}

/// The option that tells the entries of the main pattern of rows (`cl/dictionary.cl`), if there is one.
fn main_option(main: usize) -> String {
    if main > 0 { format!(" -D MAIN={main}") } else { String::new() }
}

/// The options that tell how many columns vectors of products have, and how many of them a work-item takes, if there are several.
fn columns_options<T>(columns: usize, group_size: usize, loads: usize) -> String {
    if columns == 1 {
        return String::new();
    }
    format!(" -D COLUMNS={columns} -D WIDE={}", columns / parts::<T>(columns, group_size, loads))
}

/// The most columns of vectors that are multiplied together: those of OpenCL's longest vectors, and of any group's lanes.
pub(crate) const MAX_COLUMNS: usize = 16;

/// What products are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProductsFor {
    /// Vectors of 1, 2, 4, 8 or 16 columns,
    Columns(usize),
    /// one column that is sent to other ranks,
    Sending,
    /// or one column, in groups of the size of launches of several iterations.
    Several,
}

/// The numbers that [they](ProductsFor) have.
const VARIANTS: usize = 7;

impl ProductsFor {
    /// # Panics
    /// With other numbers of columns.
    fn number(self) -> usize {
        match self {
            Self::Columns(columns) => {
                assert!(columns.is_power_of_two() && columns <= MAX_COLUMNS, "{columns} columns");
                columns.ilog2() as usize
            }
            Self::Sending => VARIANTS - 2,
            Self::Several => VARIANTS - 1,
        }
    }
}

/// Those that set no launch parameters. The environment variable `DECLIVE_BUILD_OPTIONS` adds to them, for experiments.
pub(crate) fn general_options<T: Real, A: Real>(device: &Info) -> String {
    format!("{USUAL_STD} {}", types_and_extras::<T, A>(device))
}

fn types_and_extras<T: Real, A: Real>(device: &Info) -> String {
    let fp64 = if device.has_f64 { " -D USE_FP64" } else { "" };
    let arg_info = if cfg!(test) { " -cl-kernel-arg-info" } else { "" };
    let extra = std::env::var("DECLIVE_BUILD_OPTIONS").unwrap_or_default();
    let extra = if extra.is_empty() { extra } else { format!(" {extra}") };
    format!("-D REAL={} -D ACC={}{fp64}{arg_info}{extra}", T::CL_NAME, A::CL_NAME)
}

/// The text that a kernel is compiled from, part by part.
pub(crate) fn sources(kernel: &str) -> [&'static str; 2] {
    let family = FAMILIES.iter().find(|(_, _, kernels)| kernels.contains(&kernel));
    [PRELUDE, family.map_or("", |(_, text, _)| text)]
}

/// A value that can be bound to a kernel's argument.
pub trait Argument {
    /// Its type in OpenCL C.
    fn cl_type(&self) -> String;

    /// Tells values of this type apart.
    fn key(&self) -> u64;

    /// Binds it.
    ///
    /// # Errors
    /// OpenCL's own.
    ///
    /// # Safety
    /// The argument must be declared with this type.
    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()>;
}

impl Argument for u32 {
    fn cl_type(&self) -> String {
        "uint".into()
    }

    fn key(&self) -> u64 {
        u64::from(*self)
    }

    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
        // SAFETY: the caller's promise.
        unsafe { kernel.set_arg(index, self) }
    }
}

impl Argument for u64 {
    fn cl_type(&self) -> String {
        "ulong".into()
    }

    fn key(&self) -> u64 {
        *self
    }

    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
        // SAFETY: the caller's promise.
        unsafe { kernel.set_arg(index, self) }
    }
}

impl<T: Real> Argument for T {
    fn cl_type(&self) -> String {
        T::CL_NAME.into()
    }

    fn key(&self) -> u64 {
        self.to_f64().to_bits()
    }

    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
        // SAFETY: the caller's promise.
        unsafe { kernel.set_arg(index, self) }
    }
}

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
impl Element for u64 {
    const CL_NAME: &'static str = "ulong";
}
impl Element for u8 {
    const CL_NAME: &'static str = "uchar";
}
impl Element for u16 {
    const CL_NAME: &'static str = "ushort";
}
impl Element for [u32; 2] {
    const CL_NAME: &'static str = "uint2";
}
impl Element for [f32; 4] {
    const CL_NAME: &'static str = "float4";
}
impl<T: Real> Element for T {
    const CL_NAME: &'static str = T::CL_NAME;
}

impl<T: Element> Argument for DeviceVec<T> {
    fn cl_type(&self) -> String {
        format!("{}*", T::CL_NAME)
    }

    fn key(&self) -> u64 {
        self.id()
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
    let mut bound = kernel.bound.borrow_mut();
    bound.resize(args.len(), None);
    for (index, (arg, bound)) in args.iter().zip(&mut *bound).enumerate() {
        let key = Some(arg.key());
        if *bound != key {
            *bound = None;
            // SAFETY: the caller's promise.
            unsafe { arg.bind(&kernel.kernel, index as u32) }
                .map_err(ctx.error(Doing(Call::Launch, kernel.name), "clSetKernelArg"))?;
            *bound = key;
        }
    }
    // SAFETY: all arguments are bound; the rest is the caller's promise.
    unsafe { ctx.launch(kernel, grid) }
}

fn check_types(ctx: &Context, kernel: &Kernel, args: &[&dyn Argument]) -> Result<()> {
    let count = kernel.kernel.num_args().map_err(ctx.error(Doing(Call::Launch, kernel.name), "clGetKernelInfo"))?;
    let name = kernel.name;
    assert_eq!(count as usize, args.len(), "number of arguments of {name}");
    for (index, arg) in args.iter().enumerate() {
        // Some runtimes keep no argument information.
        let Ok(declared) = kernel.kernel.get_arg_type_name(index as u32) else { return Ok(()) };
        let [real, acc] = kernel.types;
        let declared = declared.trim_end_matches('\0').replace("real", real).replace("acc", acc);
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

#[cfg(test)]
mod tests;
