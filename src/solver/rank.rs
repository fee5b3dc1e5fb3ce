//! One rank of a solver: a device or the host, with its block of the matrix.

use std::ops::Range;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use super::cg::cg;
use super::cg_classic::cg_classic;
use super::monitor::{Monitor, Seen, Verdict};
use super::scaling::{Scaling, Share};
use super::workspace::Workspace;
use super::{Format, Method, Precond, Reason, Setup, Split, Tune};
use crate::comm::{Alone, Communicator, Outbox};
use crate::device::{Context, Info};
use crate::error::Result;
use crate::kernels::{Kernels, Shape, Tuning};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::operator::host::HostBlock;
use crate::operator::opencl::DeviceBlock;
use crate::ops::Ops;
use crate::ops::host::HostOps;
use crate::ops::opencl::OpenClOps;
use crate::partition::Part;
use crate::precond::Preconditioner;
use crate::real::Real;
use crate::timeline::Timeline;
use crate::tune::kept;
use crate::tune::store::{Known, Store};

/// A rank, whatever it runs on.
pub(super) enum Rank<T: Real> {
    /// The host's threads.
    Host(Box<Engine<HostOps<T>, HostBlock<T>>>),
    /// A device that sums in double precision.
    Device(Box<Engine<OpenClOps<T, f64>, DeviceBlock<T>>>),
    /// A device without double precision.
    SingleDevice(Box<Engine<OpenClOps<T, f32>, DeviceBlock<T>>>),
}

/// The operations, the matrix, the preconditioner and the vectors of a rank.
pub(super) struct Engine<O: Ops, A> {
    ops: O,
    a: A,
    m: Preconditioner<O::Vector>,
    scaling: Option<Share<O>>,
    w: Workspace<O>,
}

/// The system whose rows are given to ranks.
#[derive(Clone, Copy)]
pub(super) struct System<'a> {
    pub(super) a: &'a Arc<Csr>,
    /// That of A.
    pub(super) diagonal: &'a [f64],
    /// What A is scaled by, if it is.
    pub(super) scaling: Option<&'a Scaling>,
    /// What A is multiplied by.
    pub(super) factor: f64,
}

/// What an engine is made for.
struct Plan<'a> {
    diagonal: Option<&'a [f64]>,
    /// The scaling of the system, and which rows of it are this rank's.
    scaling: Option<(&'a Scaling, Range<usize>)>,
    factor: f64,
    stores_z: bool,
    /// Launch parameters of the device, from former runs.
    known: Option<&'a Known>,
    /// Whether iterations look for others.
    tries: bool,
    /// How rows are stored.
    format: Format,
}

/// A rank made ready.
pub(super) struct Opened<T: Real> {
    pub(super) rank: Rank<T>,
    pub(super) outbox: Outbox<T>,
    /// Time to open the device and build its kernels.
    pub(super) prepare: Duration,
    /// Time to move the matrix.
    pub(super) upload: Duration,
}

/// How one rank's iteration ended.
pub(super) struct Ended {
    pub(super) reason: Option<Reason>,
    pub(super) seen: Seen,
    pub(super) split: Split,
    pub(super) timeline: Timeline,
    pub(super) upload: Duration,
    pub(super) solve: Duration,
    pub(super) gather: Duration,
}

impl<T: Real> Rank<T> {
    /// Opens `device`, or the host, and gives it `part` of `system`; `known` are the device's launch parameters.
    pub(super) fn open(
        device: Option<&Info>,
        mut part: Part<'_>,
        system: &System<'_>,
        setup: &Setup,
        known: Option<&Known>,
    ) -> Result<Opened<T>> {
        let start = Instant::now();
        let System { a, diagonal, scaling, factor } = *system;
        if let Some(scaling) = scaling {
            part.values = scaling.values(a, part.rows.clone()).into();
        }
        let multiplies = setup.method == Method::CgClassic && setup.precond == Precond::Jacobi;
        let plan = Plan {
            diagonal: multiplies.then(|| &diagonal[part.rows.clone()]),
            scaling: scaling.map(|scaling| (scaling, part.rows.clone())),
            factor,
            stores_z: multiplies,
            known,
            tries: setup.tune == Tune::Quick,
            format: setup.format,
        };
        let Some(device) = device else {
            let (n, sent) = (part.n_owned(), part.halo.send.len());
            let matrix = HostBlock::new(a, part, factor, setup.format)?;
            let ops = HostOps::new(n, Box::new(Alone::default()));
            let engine = Engine::new(ops, matrix, &plan)?;
            let outbox = Arc::new(RwLock::new(vec![T::default(); sent]));
            let upload = start.elapsed();
            return Ok(Opened { rank: Self::Host(Box::new(engine)), outbox, prepare: Duration::ZERO, upload });
        };
        let ctx = Context::open(device)?;
        if device.has_f64 {
            Ok(Engine::on_device(ctx, part, &plan, start)?.into_opened(Self::Device))
        } else {
            Ok(Engine::on_device(ctx, part, &plan, start)?.into_opened(Self::SingleDevice))
        }
    }

    /// Bytes that the matrix's part of an iteration moves.
    pub(super) fn product_bytes(&self) -> u64 {
        match self {
            Self::Host(e) => e.a.bytes(),
            Self::Device(e) => LinearOperator::<OpenClOps<T, f64>>::bytes(&e.a),
            Self::SingleDevice(e) => LinearOperator::<OpenClOps<T, f32>>::bytes(&e.a),
        }
    }

    /// How the rows are stored, and the memory that they take: on the host, beside the matrix that is shared.
    pub(super) fn stored(&self) -> (Format, u64) {
        match self {
            Self::Host(e) => (e.a.format(), e.a.memory()),
            Self::Device(e) => (e.a.format(), e.a.memory()),
            Self::SingleDevice(e) => (e.a.format(), e.a.memory()),
        }
    }

    /// Solves for this rank's part `b`, from and to its part `x`.
    pub(super) fn run(
        &mut self,
        comm: Box<dyn Communicator<T>>,
        method: Method,
        b: &[T],
        x: &mut [T],
        monitor: Monitor<'_>,
    ) -> Result<Ended> {
        match self {
            Self::Host(e) => {
                e.ops.set_comm(comm);
                e.run(method, b, x, monitor)
            }
            Self::Device(e) => e.run_on_device(comm, method, b, x, monitor),
            Self::SingleDevice(e) => e.run_on_device(comm, method, b, x, monitor),
        }
    }
}

/// An engine on a device, and how long it took.
struct OnDevice<T: Real, A: Real> {
    engine: Engine<OpenClOps<T, A>, DeviceBlock<T>>,
    outbox: Outbox<T>,
    prepare: Duration,
    upload: Duration,
}

impl<T: Real, A: Real> OnDevice<T, A> {
    fn into_opened(self, rank: impl FnOnce(Box<Engine<OpenClOps<T, A>, DeviceBlock<T>>>) -> Rank<T>) -> Opened<T> {
        let Self { engine, outbox, prepare, upload } = self;
        Opened { rank: rank(Box::new(engine)), outbox, prepare, upload }
    }
}

impl<T: Real, A: Real> Engine<OpenClOps<T, A>, DeviceBlock<T>> {
    fn on_device(ctx: Context, part: Part<'_>, plan: &Plan<'_>, start: Instant) -> Result<OnDevice<T, A>> {
        let Plan { known, tries, .. } = *plan;
        let tuning = match known {
            Some(known) => kept::tuning::<T, A>(known, ctx.info(), part.n_owned(), part.nnz()),
            None => Tuning::default_for(ctx.info(), Shape::of(ctx.info())),
        };
        let kernels = Kernels::build(&ctx, tuning)?;
        let prepare = start.elapsed();
        let n = part.n_owned();
        let (matrix, outbox) = DeviceBlock::upload(&ctx, &kernels.tuning, &part, plan.factor, plan.format)?;
        drop(part); // renumbered columns may take as much memory as those of the matrix
        let ops = OpenClOps::new(ctx, kernels, n, Box::new(Alone::default()), tries)?;
        let engine = Engine::new(ops, matrix, plan)?;
        Ok(OnDevice { engine, outbox, prepare, upload: start.elapsed() - prepare })
    }

    /// [`Engine::run`], and keeps the launch parameters that were found in the course of it.
    fn run_on_device(
        &mut self,
        comm: Box<dyn Communicator<T>>,
        method: Method,
        b: &[T],
        x: &mut [T],
        monitor: Monitor<'_>,
    ) -> Result<Ended> {
        self.ops.set_comm(comm);
        let ended = self.run(method, b, x, monitor)?;
        let found = self.ops.take_found();
        if !found.is_empty() {
            let (device, (rows, nnz)) = (self.ops.ctx.info(), self.a.size());
            kept::keep_tried::<T, A>(&Store::open(), device, rows, nnz, &self.ops.kernels.tuning, &found);
        }
        Ok(ended)
    }
}

impl<O: Ops, A: LinearOperator<O>> Engine<O, A> {
    fn new(ops: O, a: A, plan: &Plan<'_>) -> Result<Self> {
        let m = match plan.diagonal {
            Some(diagonal) => Preconditioner::jacobi(&ops, diagonal, plan.factor)?,
            None => Preconditioner::Identity,
        };
        let scaling = match &plan.scaling {
            Some((scaling, rows)) => Some(scaling.share(&ops, rows.clone())?),
            None => None,
        };
        let w = Workspace::new(&ops, &a, plan.stores_z)?;
        Ok(Self { ops, a, m, scaling, w })
    }

    fn run(&mut self, method: Method, b: &[O::Real], x: &mut [O::Real], mut monitor: Monitor<'_>) -> Result<Ended> {
        let Self { ops, a, m, scaling, w } = self;
        let start = Instant::now();
        let before = monitor.iterations();
        match scaling {
            Some(scaling) => {
                ops.write(&scaling.of_rhs(b), &mut w.b)?;
                ops.write(&scaling.of_iterate(x), &mut w.x)?;
            }
            None => {
                ops.write(b, &mut w.b)?;
                ops.write(x, &mut w.x)?;
            }
        }
        ops.copy(&w.x, &mut w.x_first)?;
        ops.finish(0)?;
        ops.comm().sum(&mut [])?; // all ranks are there
        if let Some(origin) = monitor.timeline() {
            ops.record(origin, before)?;
        }
        let upload = start.elapsed();

        let start = Instant::now();
        let reason = loop {
            let verdict = match method {
                Method::Cg => cg(ops, a, scaling.as_ref(), w, &mut monitor)?,
                Method::CgClassic => cg_classic(ops, a, m, w, &mut monitor)?,
            };
            ops.end_run(monitor.run_iterations())?;
            match verdict {
                Verdict::Converged => break None,
                Verdict::Presumed => {}
                Verdict::Stalled { worse } => {
                    if worse {
                        ops.copy(&w.x_first, &mut w.x)?;
                    }
                    break Some(Reason::Stagnation);
                }
                Verdict::Ended(reason) => {
                    if matches!(reason, Reason::Divergence | Reason::NonFinite(_) | Reason::Breakdown(_)) {
                        ops.copy(&w.x_first, &mut w.x)?;
                    }
                    break Some(reason);
                }
            }
        };
        let seen = monitor.into_seen();
        let split = ops.finish(seen.iterations - before)?;
        let solve = start.elapsed();

        let start = Instant::now();
        ops.read(&w.x, x)?;
        if let Some(scaling) = scaling {
            scaling.undo(x);
        }
        let gather = start.elapsed();
        Ok(Ended { reason, seen, split, timeline: ops.take_timeline()?, upload, solve, gather })
    }
}
