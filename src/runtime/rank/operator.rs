//! Ranks of an operator that is known by its products alone, on devices and the host.

use std::ops::Range;
use std::sync::Arc;

use super::{
    Alone, Context, DeviceBlock, Engine, Exchange, Format, FormatChoice, HostBackend, Info, Kernels, Mixed,
    SharedContext,
};
use super::{
    OpenClBackend, Plain, Plan, Precision, Rank, Real, Result, Rows, Scaling, Setup, Shape, Stored, Tune, Tuning,
};
use crate::comm::{Failed, Failure, in_threads};
use crate::operator::distributed::{Distributed, HostProducts, OwnRows, ProductsIn};
use crate::partition::{HaloPlan, plans};
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

/// A rank that is to be opened.
struct Job<'p> {
    device: &'p Option<Info>,
    own: OwnRows,
    halo: HaloPlan,
}

/// Opens devices, or the host where there is none, with rows of each.
///
/// # Errors
/// Errors of devices.
pub(crate) fn open<'a>(
    a: &dyn Distributed<'a>,
    setup: &Setup,
    given: Option<&Arc<Given>>,
    (devices, rows): (&[Option<Info>], &[Range<usize>]),
) -> std::result::Result<OpenRanks<'a>, Failed> {
    let method = setup.method;
    let needs_diagonal = setup.precond.is_diagonal() || setup.precond.multiplies();
    let diagonal = if needs_diagonal { a.diagonal().unwrap_or_default() } else { Vec::new() };
    let is_scaled = setup.precond.is_diagonal() && method.facts().scales && !diagonal.is_empty();
    let size = || diagonal.iter().map(|d| d.abs()).collect::<Vec<_>>();
    let scaling = if is_scaled { Scaling::of(&size(), 1.0) } else { None };
    let bound = if setup.precond.multiplies() { a.largest_of_scaled().unwrap_or(1.0) } else { 1.0 };
    // kernels of others can't exchange while they run
    let model = if setup.exchange.is_live() { Exchange::HostStaged } else { setup.exchange };
    let shared = match model {
        Exchange::SharedContext if devices.len() > 1 => Some(SharedContext::among(devices)?),
        _ => None,
    };
    let halos: Vec<Vec<u32>> = rows.iter().map(|rows| a.halo(rows)).collect();
    let plans = plans(rows, &halos);
    let (receivers, lens) =
        (plans.iter().map(|plan| plan.receivers).collect(), halos.iter().map(Vec::len).collect::<Vec<_>>());
    let jobs: Vec<Job<'_>> = devices
        .iter()
        .zip(rows.iter().zip(halos))
        .zip(plans)
        .map(|((device, (rows, halo)), plan)| Job { device, own: OwnRows { rows: rows.clone(), halo }, halo: plan })
        .collect();
    let one = |job: Job<'_>| {
        let own = job.own.rows.clone();
        let plan = Plan {
            precond: method
                .applies(setup.precond)
                .then(|| (setup.precond, Rows::Function(diagonal[own.clone()].to_vec(), bound))),
            given: given.filter(|_| setup.applies_given()).map(|given| (Arc::clone(given), own.clone())),
            scaling: scaling.as_ref().map(|scaling| (scaling, own)),
            factor: 1.0,
            is_complex: false,
            method,
            restart: setup.restart,
            known: None,
            format: Format::Auto,
            tune: Tune::Off,
            room: 0,
            exchange: model,
            board: None,
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
    Ok(OpenRanks { ranks, receivers, halos: lens, is_preconditioned: scaling.is_some() || is_applied })
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

fn on_host<'a, T: Real>(
    a: &(impl ProductsIn<'a, T> + ?Sized),
    job: &Job<'_>,
    plan: &Plan<'_>,
) -> Result<Box<dyn Rank + 'a>> {
    let (backend, block) = host_rows(a, job, plan);
    let iterate = Plain::new(&backend)?;
    Ok(Box::new(Engine::new(backend, (vec![block], no_storage(0)), iterate, plan)?))
}

fn mixed_on_host<'a>(a: &dyn Distributed<'a>, job: &Job<'_>, plan: &Plan<'_>) -> Result<Box<dyn Rank + 'a>> {
    let (wide_backend, wide) = host_rows::<f64>(a, job, plan);
    let (backend, block) = host_rows::<f32>(a, job, plan);
    let iterate = Mixed::new(wide_backend, vec![wide], 0)?;
    Ok(Box::new(Engine::new(backend, (vec![block], no_storage(0)), iterate, plan)?))
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

fn on_device<'a, T: Real, A: Real>(
    a: &(impl ProductsIn<'a, T> + ?Sized),
    job: &Job<'_>,
    plan: &Plan<'_>,
    ctx: Arc<Context>,
) -> Result<Box<dyn Rank + 'a>> {
    let (backend, block) = device_rows::<T, A>(a, job, plan, ctx)?;
    let (iterate, stored) = (Plain::new(&backend)?, no_storage(block.memory()));
    Ok(Box::new(Engine::new(backend, (vec![block], stored), iterate, plan)?))
}

fn mixed_on_device<'a>(
    a: &dyn Distributed<'a>,
    job: &Job<'_>,
    plan: &Plan<'_>,
    ctx: Arc<Context>,
) -> Result<Box<dyn Rank + 'a>> {
    let (wide_backend, wide) = device_rows::<f64, f64>(a, job, plan, Arc::clone(&ctx))?;
    let (backend, block) = device_rows::<f32, f64>(a, job, plan, ctx)?;
    let (of_wide, stored) = (wide.memory(), no_storage(block.memory()));
    let iterate = Mixed::new(wide_backend, vec![wide], of_wide)?;
    Ok(Box::new(Engine::new(backend, (vec![block], stored), iterate, plan)?))
}
