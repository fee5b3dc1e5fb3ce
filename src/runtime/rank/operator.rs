//! Ranks of an operator that is known by its products alone, on devices and the host.

use std::ops::Range;
use std::sync::Arc;

use super::{
    Alone, Backend, Board, Context, Csr, DeviceBlock, Engine, Exchange, Format, FormatChoice, HostBackend, Info,
    Instant, Iterate, Kernels, LinearOperator, Mixed, SharedContext, Store,
};
use super::{
    OpenClBackend, Plain, Plan, Precision, Rank, Real, Result, Rows, Scaling, Setup, Shape, Stored, Tune, Tuning,
};
use crate::comm::{Failed, Failure, in_threads};
use crate::operator::distributed::{Distributed, HostProducts, MatrixRows, OwnRows, ProductsIn};
use crate::partition::{HaloPlan, Part, join_plans, plans, plans_of, split};
use crate::precond::Precond;
use crate::precond::given::Given;

/// Ranks that are open.
pub(crate) struct OpenRanks<'a> {
    pub(crate) ranks: Vec<Box<dyn Rank + 'a>>,
    /// How many ranks receive from each.
    pub(crate) receivers: Vec<usize>,
    /// Elements that each receives for a product.
    pub(crate) halos: Vec<usize>,
    /// Whether the preconditioner changes anything.
    pub(crate) is_preconditioned: bool,
}

/// What the preconditioner of an operator has beside that.
#[derive(Debug, Default)]
pub(crate) struct OfPreconditioner {
    /// The matrices that it multiplies by.
    pub(crate) matrices: Vec<Csr>,
    /// The diagonal of the operator, or what stands for it; empty if it is not known.
    pub(crate) diagonal: Vec<f64>,
    /// The caller's own, or levels of multigrid;
    pub(crate) given: Option<Arc<Given>>,
    /// and whether the levels are for an auxiliary space: those matrices are then Pᵀ and P.
    pub(crate) is_through: bool,
}

/// Rows that are tried to see how fast a device is, at the most, and products with them.
const TRIED: usize = 1 << 18;
const PRODUCTS: usize = 5;

/// How many rows of an operator a device, or the host, multiplies by in a second, alone.
///
/// # Errors
/// Errors of the device.
pub(crate) fn rows_a_second<'a>(a: &dyn Distributed<'a>, precision: Precision, device: Option<&Info>) -> Result<f64> {
    let rows = 0..(TRIED / a.unit()).clamp(1, (a.order() / a.unit()).max(1)) * a.unit();
    let own = OwnRows { halo: a.halo(&rows), rows };
    match (precision, device) {
        (Precision::F64, _) => speed::<f64, f64>(a, own, device),
        (_, Some(device)) if !device.has_f64 => speed::<f32, f32>(a, own, Some(device)),
        _ => speed::<f32, f64>(a, own, device),
    }
}

fn speed<'a, T: Real, A: Real>(
    a: &(impl ProductsIn<'a, T> + ?Sized),
    own: OwnRows,
    device: Option<&Info>,
) -> Result<f64> {
    let (n, halo) = (own.rows.len(), HaloPlan { len: own.halo.len(), ..HaloPlan::default() });
    let seconds = match device {
        Some(device) => {
            let ctx = Arc::new(Context::open(device)?);
            let kernels = Kernels::<T, A>::build(&ctx, Tuning::default_for(device, Shape::of(device)))?;
            let backend = OpenClBackend::new(ctx, kernels, n, Box::new(Alone::default()))?;
            let rows = a.on_device(&backend.ctx, &own, None)?;
            let block = DeviceBlock::of_operator(&backend.ctx, rows, n, (&halo, Exchange::HostStaged))?;
            seconds(&backend, &block)?
        }
        None => {
            let backend = HostBackend::new(n, Box::new(Alone::default()));
            seconds(&backend, &HostProducts::new(a.on_host(&own), n, &halo, None))?
        }
    };
    Ok(n as f64 / seconds.max(1e-9))
}

/// Those of a product, the first of which is not counted.
fn seconds<O: Backend>(backend: &O, a: &impl LinearOperator<O>) -> Result<f64> {
    let [mut x, mut y] = [backend.vector(a.halo(), "x")?, backend.vector(a.halo(), "y")?];
    let mut start = Instant::now();
    for product in 0..=PRODUCTS {
        a.apply(backend, &mut x, &mut y)?;
        if product == 0 {
            backend.finish(0)?;
            start = Instant::now();
        }
    }
    backend.finish(0)?;
    Ok(start.elapsed().as_secs_f64() / PRODUCTS as f64)
}

/// A rank that is to be opened.
struct Job<'p> {
    device: &'p Option<Info>,
    own: OwnRows,
    halo: HaloPlan,
    /// Its rows of the matrices of the preconditioner, and those of the matrix of levels.
    parts: Vec<Part<'p>>,
    of_levels: Option<HaloPlan>,
    board: Option<Board>,
}

/// Opens devices, or the host where there is none, with rows of each.
///
/// # Errors
/// Errors of devices.
pub(crate) fn open<'a>(
    a: &dyn Distributed<'a>,
    setup: &Setup,
    of_precond: &OfPreconditioner,
    (devices, rows): (&[Option<Info>], &[Range<usize>]),
) -> std::result::Result<OpenRanks<'a>, Failed> {
    let method = setup.method;
    let OfPreconditioner { diagonal, given, is_through, .. } = of_precond;
    let is_scaled = setup.precond.is_diagonal() && method.facts().scales && !diagonal.is_empty();
    let size = || diagonal.iter().map(|d| d.abs()).collect::<Vec<_>>();
    let scaling = if is_scaled { Scaling::of(&size(), 1.0) } else { None };
    let has_bound = setup.precond == Precond::Chebyshev;
    let bound = if has_bound { a.largest_of_scaled().unwrap_or(1.0) } else { 1.0 };
    // kernels of others can't exchange while they run
    let model = if setup.exchange.is_live() { Exchange::HostStaged } else { setup.exchange };
    let shared = match model {
        Exchange::SharedContext if devices.len() > 1 => Some(SharedContext::among(devices)?),
        _ => None,
    };
    let jobs = jobs(a, of_precond, devices, rows);
    let receivers = jobs.iter().map(|job| job.halo.receivers.len()).collect();
    let halos = jobs.iter().map(|job| job.own.halo.len()).collect();
    let of_diagonal = |own: &Range<usize>| diagonal.get(own.clone()).map(<[f64]>::to_vec).unwrap_or_default();
    let one = |job: Job<'_>| {
        let own = job.own.rows.clone();
        let plan = Plan {
            precond: method.applies(setup.precond).then(|| (setup.precond, Rows::Function(of_diagonal(&own), bound))),
            given: given.as_ref().filter(|_| setup.applies_given()).map(|given| (Arc::clone(given), own.clone())),
            through: is_through.then(|| of_diagonal(&own).iter().map(|d| d.recip()).collect()),
            scaling: scaling.as_ref().map(|scaling| (scaling, own)),
            unscaled: None,
            factor: 1.0,
            is_complex: false,
            method,
            restart: setup.restart,
            known: None,
            format: Format::Auto,
            tune: Tune::Off,
            room: job.device.as_ref().map_or(0, |device| device.memory_bytes),
            exchange: model,
            board: job.board.as_ref(),
        };
        let Some(device) = job.device else {
            return match setup.precision {
                Precision::F32 => on_host::<f32>(a, &job, &plan),
                Precision::F64 => on_host::<f64>(a, &job, &plan),
                Precision::Mixed => mixed_on_host(a, &job, &plan),
            };
        };
        let open = || Context::open(device);
        let ctx = Arc::new(shared.as_ref().map_or_else(open, |shared| Context::open_in(device, shared))?);
        match setup.precision {
            Precision::F64 => on_device::<f64, f64>(a, &job, &plan, ctx),
            Precision::F32 if device.has_f64 => on_device::<f32, f64>(a, &job, &plan, ctx),
            Precision::F32 => on_device::<f32, f32>(a, &job, &plan, ctx),
            Precision::Mixed => mixed_on_device(a, &job, &plan, ctx),
        }
    };
    let ranks = in_threads(&Failure::default(), jobs, one)?;
    let varies = || diagonal.iter().any(|d| *d != diagonal[0]);
    let is_applied = method.applies(setup.precond) && (setup.precond.multiplies() || varies());
    Ok(OpenRanks { ranks, receivers, halos, is_preconditioned: scaling.is_some() || is_applied })
}

/// What each rank is opened with: its rows, and what it exchanges, so that all products have the same neighbours.
fn jobs<'p>(
    a: &dyn Distributed<'_>,
    of_precond: &'p OfPreconditioner,
    devices: &'p [Option<Info>],
    rows: &[Range<usize>],
) -> Vec<Job<'p>> {
    let halos: Vec<Vec<u32>> = rows.iter().map(|rows| a.halo(rows)).collect();
    let mut plans = plans(rows, &halos);
    let mut parts: Vec<_> = of_precond.matrices.iter().map(|matrix| split(matrix, rows)).collect();
    {
        let own = plans.iter_mut().collect();
        let mut all: Vec<_> = std::iter::once(own).chain(parts.iter_mut().map(|parts| plans_of(parts))).collect();
        join_plans(&mut all);
    }
    let levels = of_precond.given.as_ref().and_then(|given| given.levels());
    let of_levels = levels.map(|levels| split(&levels.a, rows).into_iter().map(|part| part.halo).collect::<Vec<_>>());
    let boards = match of_levels.is_some() && devices.len() > 1 && devices.iter().all(Option::is_some) {
        true => Board::of(devices.len()).into_iter().map(Some).collect(),
        false => devices.iter().map(|_| None).collect::<Vec<_>>(),
    };
    let mut of_levels = of_levels.map(Vec::into_iter);
    let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
    devices
        .iter()
        .zip(rows.iter().zip(halos))
        .zip(plans.into_iter().zip(boards))
        .map(|((device, (rows, halo)), (plan, board))| Job {
            device,
            own: OwnRows { rows: rows.clone(), halo },
            halo: plan,
            parts: parts.iter_mut().filter_map(Iterator::next).collect(),
            of_levels: of_levels.as_mut().and_then(Iterator::next),
            board,
        })
        .collect()
}

/// S of the columns of a rank, if the system is scaled.
fn scale_of<T: Real>(plan: &Plan<'_>, own: &OwnRows) -> Option<Vec<T>> {
    let (scaling, _) = plan.scaling.as_ref()?;
    let roots = scaling.roots();
    Some(own.columns().map(|column| T::from_f64(1.0 / roots[column].abs())).collect())
}

fn no_storage(bytes: u64) -> Stored {
    Stored { format: Format::Auto, choice: FormatChoice::unknown(), bytes }
}

type Host<'a, T> = (HostBackend<T>, HostProducts<'a, T>);

fn host_rows<'a, T: Real>(a: &(impl ProductsIn<'a, T> + ?Sized), job: &Job<'_>, plan: &Plan<'_>) -> Host<'a, T> {
    let own = job.own.rows.len();
    let backend = HostBackend::new(own, Box::new(Alone::default()));
    (backend, HostProducts::new(a.on_host(&job.own), own, &job.halo, scale_of(plan, &job.own)))
}

/// The operator, and the matrices of the preconditioner behind it.
fn host_operators<'a, T: Real>(a: HostProducts<'a, T>, job: &Job<'_>) -> Vec<HostProducts<'a, T>> {
    let of_part =
        |part: &Part<'_>| HostProducts::new(Box::new(MatrixRows::new(part)), part.n_owned(), &part.halo, None);
    std::iter::once(a).chain(job.parts.iter().map(of_part)).collect()
}

fn on_host<'a, T: Real>(
    a: &(impl ProductsIn<'a, T> + ?Sized),
    job: &Job<'_>,
    plan: &Plan<'_>,
) -> Result<Box<dyn Rank + 'a>> {
    let (backend, block) = host_rows(a, job, plan);
    let iterate = Plain::new(&backend)?;
    Ok(Box::new(Engine::new(backend, (host_operators(block, job), no_storage(0)), iterate, plan)?))
}

fn mixed_on_host<'a>(a: &dyn Distributed<'a>, job: &Job<'_>, plan: &Plan<'_>) -> Result<Box<dyn Rank + 'a>> {
    let (wide_backend, wide) = host_rows::<f64>(a, job, plan);
    let (backend, block) = host_rows::<f32>(a, job, plan);
    let iterate = Mixed::new(wide_backend, vec![wide], 0)?;
    Ok(Box::new(Engine::new(backend, (host_operators(block, job), no_storage(0)), iterate, plan)?))
}

type Device<T, A> = (OpenClBackend<T, A>, DeviceBlock<T>);

fn device_rows<'a, T: Real, A: Real>(
    a: &(impl ProductsIn<'a, T> + ?Sized),
    job: &Job<'_>,
    plan: &Plan<'_>,
    ctx: Arc<Context>,
) -> Result<Device<T, A>> {
    let tuning = Tuning::default_for(ctx.info(), Shape::of(ctx.info()));
    let kernels = Kernels::<T, A>::build(&ctx, tuning)?;
    let own = job.own.rows.len();
    let backend = OpenClBackend::new(ctx, kernels, own, Box::new(Alone::default()))?;
    let scale = scale_of::<T>(plan, &job.own);
    let rows = a.on_device(&backend.ctx, &job.own, scale.as_deref())?;
    let block = DeviceBlock::of_operator(&backend.ctx, rows, own, (&job.halo, plan.exchange))?;
    block.compile(&backend.ctx, &backend.kernels)?;
    Ok((backend, block))
}

/// The rank of an operator on a device, with the matrices of the preconditioner behind it.
fn engine<'a, T: Real, A: Real, I: Iterate<OpenClBackend<T, A>> + 'a>(
    (backend, block): Device<T, A>,
    iterate: I,
    job: &Job<'_>,
    plan: &Plan<'_>,
) -> Result<Box<dyn Rank + 'a>>
where
    Engine<OpenClBackend<T, A>, DeviceBlock<T>, I>: Rank,
{
    let mut operators = vec![block];
    let store = Store::none();
    for part in &job.parts {
        operators.push(plan.upload(&backend, part, &mut plan.wanted(&store), false)?.block);
    }
    let bytes = operators.iter().map(DeviceBlock::memory).sum();
    let on_rank = match &job.of_levels {
        Some(halo) => plan.on_rank(&backend, (halo, None))?.0,
        None => None,
    };
    Ok(Box::new(Engine { on_rank, ..Engine::new(backend, (operators, no_storage(bytes)), iterate, plan)? }))
}

fn on_device<'a, T: Real, A: Real>(
    a: &(impl ProductsIn<'a, T> + ?Sized),
    job: &Job<'_>,
    plan: &Plan<'_>,
    ctx: Arc<Context>,
) -> Result<Box<dyn Rank + 'a>> {
    let of_device = device_rows::<T, A>(a, job, plan, ctx)?;
    let iterate = Plain::new(&of_device.0)?;
    engine(of_device, iterate, job, plan)
}

fn mixed_on_device<'a>(
    a: &dyn Distributed<'a>,
    job: &Job<'_>,
    plan: &Plan<'_>,
    ctx: Arc<Context>,
) -> Result<Box<dyn Rank + 'a>> {
    let (wide_backend, wide) = device_rows::<f64, f64>(a, job, plan, Arc::clone(&ctx))?;
    let of_device = device_rows::<f32, f64>(a, job, plan, ctx)?;
    let of_wide = wide.memory();
    engine(of_device, Mixed::new(wide_backend, vec![wide], of_wide)?, job, plan)
}
