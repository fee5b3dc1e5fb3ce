//! One rank of a solver: a device or the host, with its block of the matrix.

mod batch;
pub(crate) mod columns;
mod multigrid;
pub(crate) mod operator;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::columns::{Columns, ColumnsEnded};
use self::multigrid::HasLevels;
pub(crate) use self::multigrid::{Multigrid, WentOn};
use super::iterate::{Mixed, Plain};
use super::memory_check::beside_rows;
use super::monitor::{Monitor, Seen};
use super::setup::Setup;
use super::watch::Watch;
use super::whole::Whole;
use crate::backend::basis::BasisBackend;
use crate::backend::host::HostBackend;
use crate::backend::machine::Machine;
use crate::backend::opencl::OpenClBackend;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{Kind, MATRIX};
use crate::backend::{Backend, LinearOperator};
use crate::comm::{Alone, Board, Links};
use crate::device::{Context, Info, SharedContext};
use crate::error::Result;
use crate::kernels::{Kernels, Shape, Tuning};
use crate::krylov::{
    Application, Gmres, Indefinite, Iterate, Method, Preconditioned, Reason, Through, Verdict, Workspace, cg_classic,
    cg_flexible, curvature, gmres, run,
};
use crate::matrix::Csr;
use crate::operator::choice::{FormatCandidate, FormatChoice, Why};
use crate::operator::device_rows::DeviceRows;
use crate::operator::host::HostBlock;
use crate::operator::opencl::DeviceBlock;
use crate::operator::sell::moved::can_be_scaled;
use crate::operator::{Exchange, Format};
use crate::partition::{ColumnIndices, HaloPlan, NewValues, Part, Unscaled};
use crate::precond::amg::on_device::OfRanks;
use crate::precond::given::Given;
use crate::precond::scaling::{RankScaling, Scaling};
use crate::precond::{OnRank, Precond, Rows};
use crate::real::{Precision, Real};
use crate::timeline::stages::stage;
use crate::timeline::{Split, Timeline};
use crate::tune::Tune;
use crate::tune::formats::{self, Uploaded, Wanted};
use crate::tune::kept;
use crate::tune::store::{Known, Store};

/// A rank, whatever it runs on.
pub(crate) trait Rank: Send {
    /// Bytes that a product moves, with each matrix.
    fn product_bytes(&self) -> Vec<u64>;

    /// How the rows are stored.
    fn stored(&self) -> Stored;

    /// Solves for this rank's part of the right-hand side, from and to its part of the iterate.
    fn run(&mut self, links: Links, stretch: Stretch<'_>, monitor: Monitor<'_>) -> Result<Ended>;

    /// Takes the values of `rows` of a system with the same pattern, and with a scaling if it has one; tells whether it did. If not, or after
    /// an error, it can't be run any more. Slices need their columns.
    fn take_values(&mut self, system: &System<'_>, rows: &Range<usize>, col_idx: ColumnIndices<'_>) -> Result<bool>;

    /// Goes on with multigrid in place of the diagonal, if it can have that in kernels: its rows stay where they are, scaled if they are. Else
    /// nothing has changed.
    fn go_on_with(&mut self, of: &Multigrid<'_>) -> Result<Option<WentOn>>;

    /// Whether it can [`run_columns`](Self::run_columns).
    fn takes_columns(&self) -> bool;

    /// Whether it can solve for so many right-hand sides at a time, each by a work-group, if it is alone.
    fn has_batch(&mut self, columns: usize) -> bool;

    /// Solves for this rank's part of several right-hand sides at a time.
    fn run_columns(&mut self, links: Links, columns: Columns<'_>, watch: Watch<'_>) -> Result<ColumnsEnded>;
}

/// A rank's part of what a run is about.
pub(crate) struct Stretch<'a> {
    pub(crate) b: &'a [f64],
    pub(crate) x: &'a mut [f64],
    /// The direction to go on in, if there is one.
    pub(crate) p: Option<&'a [f64]>,
}

/// How a rank stores its rows.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) format: Format,
    /// How it came to that.
    pub(crate) choice: FormatChoice,
    /// The memory that they take: on the host, beside the matrix that is shared.
    pub(crate) bytes: u64,
}

/// The method, the operations, the matrix, the iterate, the preconditioner and the vectors of a rank.
struct Engine<O: PassBackend + BasisBackend, A, I> {
    method: Method,
    restart: u32,
    backend: O,
    /// A, and Aᵀ if the method multiplies by it, or those of the preconditioner.
    operators: Vec<A>,
    stored: Stored,
    iterate: I,
    /// The preconditioner and what it is set up for, if the method applies it.
    precond: Option<(Precond, Rows)>,
    /// The caller's own, and which rows of it are this rank's.
    given: Option<(Arc<Given>, Range<usize>)>,
    /// What does the same on this rank, if it can.
    on_rank: Option<Box<dyn OnRank<O>>>,
    /// D⁻¹ of the rank's rows, if that preconditioner is one of an auxiliary space.
    through: Option<Vec<f64>>,
    scaling: Option<RankScaling<O>>,
    /// Whether the system is the real form of a complex one.
    is_complex: bool,
    w: Workspace<O>,
    /// Once the other ranks are known.
    way: Option<Way<O>>,
    /// What iterates for so many right-hand sides, once it was asked whether there is such a thing.
    batch: Option<(usize, Option<Batch<O>>)>,
    /// How long the compiler took for it, if no account has that yet.
    batch_compiled: Duration,
}

/// Ranks share levels of multigrid that have more entries than that: of fewer, to exchange halos takes longer than to have all.
pub(crate) const SHARED_LEVEL: usize = 1 << 23;

/// A preconditioner on a device.
type OnDevice<T, A> = Option<Box<dyn OnRank<OpenClBackend<T, A>>>>;

/// What iterates for many right-hand sides.
type Batch<O> = Box<dyn crate::backend::batch::Batch<O>>;

/// What runs a method.
enum Way<O: PassBackend + BasisBackend> {
    /// One that is a text,
    Text(Machine<O>),
    /// `gmres`,
    Cycles(Gmres<O>),
    /// `cg` with a preconditioner that may vary,
    Flexible(Preconditioned<O>),
    /// or `cg-classic`.
    Classic,
}

impl<O: PassBackend + BasisBackend> Way<O> {
    /// The preconditioner in kernels of its own, if there is one.
    fn on_rank(&mut self) -> Option<&mut dyn OnRank<O>> {
        match self {
            Self::Cycles(cycles) => cycles.application()?.on_rank(),
            Self::Flexible(m) => m.application().on_rank(),
            Self::Text(_) | Self::Classic => None,
        }
    }
}

/// The system whose rows are given to ranks.
#[derive(Clone, Copy)]
pub(crate) struct System<'a> {
    /// A, and Aᵀ if the method multiplies by it, or those of the preconditioner.
    pub(crate) matrices: &'a [Arc<Csr>],
    /// What A is scaled by, if it is.
    pub(crate) scaling: Option<&'a Scaling>,
    /// What A is multiplied by.
    pub(crate) factor: f64,
    /// A preconditioner of the caller's own.
    pub(crate) given: Option<&'a Arc<Given>>,
}

impl<'a> System<'a> {
    pub(crate) fn of(whole: &'a Whole, matrices: &'a [Arc<Csr>], scaling: Option<&'a Scaling>) -> Self {
        Self { matrices, scaling, factor: whole.factor, given: whole.given.as_ref() }
    }
}

impl System<'_> {
    /// The scaled values of some rows of A, if it is scaled.
    fn scaled(&self, rows: &Range<usize>) -> Result<Option<Vec<f64>>> {
        let Some(scaling) = self.scaling else { return Ok(None) };
        let _scaling = stage("scale");
        let scaled = scaling.values(&self.matrices[MATRIX], rows.clone())?;
        log::debug!("{} rows are scaled", rows.len());
        Ok(Some(scaled))
    }
}

/// What an engine is made for.
struct Plan<'a> {
    precond: Option<(Precond, Rows)>,
    given: Option<(Arc<Given>, Range<usize>)>,
    /// D⁻¹ of the rank's rows, if what is given is for an auxiliary space.
    through: Option<Vec<f64>>,
    /// The scaling of the system, and which rows of it are this rank's.
    scaling: Option<(&'a Scaling, Range<usize>)>,
    /// The scaling and its matrix, if the rows are not scaled yet.
    unscaled: Option<(&'a Scaling, &'a Csr)>,
    factor: f64,
    is_complex: bool,
    method: Method,
    /// Steps of a cycle, if it has cycles.
    restart: u32,
    /// Launch parameters of the device, from former runs.
    known: Option<&'a Known>,
    /// How rows are stored.
    format: Format,
    tune: Tune,
    /// Memory of the device that the rows may take, in bytes.
    room: u64,
    /// How halos are exchanged.
    exchange: Exchange,
    board: Option<&'a Board>,
}

/// A rank made ready.
pub(crate) struct Opened {
    pub(crate) rank: Box<dyn Rank>,
    /// Time to open the device.
    pub(crate) prepare: Duration,
    /// Time to build its kernels.
    pub(crate) compile: Duration,
    /// Time to move the matrix.
    pub(crate) upload: Duration,
    /// Time to set a preconditioner up.
    pub(crate) precond: Duration,
    /// Time to compare formats.
    pub(crate) tune: Duration,
}

/// A device with its launch parameters, or the host.
pub(crate) struct Place<'a> {
    pub(crate) device: Option<&'a Info>,
    /// The context that it shares with the other ranks' devices, if it does.
    pub(crate) shared: Option<&'a SharedContext>,
    pub(crate) known: Option<Known>,
    /// Ranks that share the device.
    pub(crate) sharers: u64,
    /// What leads to the other ranks while a preconditioner is made, if all of them are devices.
    pub(crate) board: Option<Board>,
}

/// How one rank's iteration ended.
pub(crate) struct Ended {
    /// `None` once the test is met, or if the iteration is to go on with other shares.
    pub(crate) reason: Option<Reason>,
    /// The direction to go on in with other shares, if so.
    pub(crate) p: Option<Vec<f64>>,
    pub(crate) seen: Seen,
    pub(crate) split: Split,
    pub(crate) timeline: Timeline,
    pub(crate) compile: Duration,
    pub(crate) upload: Duration,
    pub(crate) solve: Duration,
    pub(crate) gather: Duration,
}

/// Opens a device, or the host, and gives it its part of each matrix of `system`.
pub(crate) fn open(
    Place { device, shared, known, sharers, board }: &Place<'_>,
    mut parts: Vec<Part<'_>>,
    system: &System<'_>,
    setup: &Setup,
) -> Result<Opened> {
    let start = Instant::now();
    let System { matrices, scaling, factor, given } = *system;
    let (a, part) = (&matrices[MATRIX], &mut parts[MATRIX]);
    // which the host does while the device is opened, if the device is not to do it
    let is_scaled_later = scaling.is_some()
        && setup.precision == Precision::F64
        && device.is_some_and(|device| Shape::of(device) == Shape::Gpu)
        && can_be_scaled(part);
    if !is_scaled_later && let Some(scaled) = system.scaled(&part.rows)? {
        (part.values, part.of) = (scaled.into(), None);
    }
    let plan = Plan {
        precond: setup
            .method
            .applies(setup.precond)
            .then(|| (setup.precond, Rows::Matrix(Arc::clone(a), part.rows.clone(), factor))),
        given: given.filter(|_| setup.applies_given()).map(|given| (Arc::clone(given), part.rows.clone())),
        through: None,
        scaling: scaling.map(|scaling| (scaling, part.rows.clone())),
        unscaled: scaling.filter(|_| is_scaled_later).map(|scaling| (scaling, &**a)),
        factor,
        is_complex: setup.is_complex,
        method: setup.method,
        restart: setup.restart,
        known: known.as_ref(),
        format: setup.format,
        tune: setup.tune,
        room: device.map_or(0, |device| device.memory_bytes / sharers).saturating_sub(beside_rows(&parts, setup)),
        exchange: setup.exchange,
        board: board.as_ref(),
    };
    let Some(device) = *device else {
        let _uploading = stage("upload");
        let rank = match setup.precision {
            Precision::F64 => plan.on_host::<f64>(matrices, parts)?,
            Precision::F32 => plan.on_host::<f32>(matrices, parts)?,
            Precision::Mixed => plan.mixed_on_host(matrices, parts)?,
        };
        let [prepare, compile, precond, tune] = [Duration::ZERO; 4];
        return Ok(Opened { rank, prepare, compile, upload: start.elapsed(), precond, tune });
    };
    let opening = stage("open");
    let ctx = Arc::new(shared.map_or_else(|| Context::open(device), |shared| Context::open_in(device, shared))?);
    let took = opening.end();
    log::debug!("{}: opened, {took:?}", device.name);
    match setup.precision {
        Precision::F64 => plan.on_device::<f64, f64>(ctx, parts, start),
        Precision::F32 if device.has_f64 => plan.on_device::<f32, f64>(ctx, parts, start),
        Precision::F32 => plan.on_device::<f32, f32>(ctx, parts, start),
        Precision::Mixed => plan.mixed_on_device(ctx, parts, start),
    }
}

impl Plan<'_> {
    /// A rank of the host's threads.
    fn on_host<T: Real>(&self, matrices: &[Arc<Csr>], parts: Vec<Part<'_>>) -> Result<Box<dyn Rank>> {
        let (backend, operators) = self.host_rows::<T>(matrices, parts)?;
        let (iterate, stored) = (Plain::new(&backend)?, self.stored_on_host(&operators));
        Ok(Box::new(Engine::new(backend, (operators, stored), iterate, self)?))
    }

    /// The same in mixed precision.
    fn mixed_on_host(&self, matrices: &[Arc<Csr>], parts: Vec<Part<'_>>) -> Result<Box<dyn Rank>> {
        let of_iterate = parts.iter().take(self.of_system(parts.len())).cloned().collect();
        let (wide_backend, wide) = self.host_rows::<f64>(matrices, of_iterate)?;
        let (backend, operators) = self.host_rows::<f32>(matrices, parts)?;
        let wide_bytes = wide.iter().map(HostBlock::memory).sum();
        let (iterate, stored) = (Mixed::new(wide_backend, wide, wide_bytes)?, self.stored_on_host(&operators));
        Ok(Box::new(Engine::new(backend, (operators, stored), iterate, self)?))
    }

    /// How many of the matrices are those of the system: A, and Aᵀ if there is one. The others are the preconditioner's: they are made for the
    /// matrix as ranks have it, in the format that suits them, and for the iteration alone.
    fn of_system(&self, matrices: usize) -> usize {
        if self.method.minimises() { matrices } else { MATRIX + 1 }
    }

    /// Moves a rank's part of a matrix to its device.
    fn upload<T: Real, A: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        part: &Part<'_>,
        wanted: &mut Wanted<'_>,
        is_of_system: bool,
    ) -> Result<Uploaded<T>> {
        let (factor, format) = if is_of_system { (self.factor, wanted.format) } else { (1.0, Format::Auto) };
        let one = formats::upload(backend, part, factor, Wanted { format, ..*wanted })?;
        wanted.unscaled = None;
        wanted.room = wanted.room.saturating_sub(one.block.memory());
        Ok(one)
    }

    /// The host measures nothing.
    fn stored_on_host<T: Real>(&self, operators: &[HostBlock<T>]) -> Stored {
        let block = &operators[MATRIX];
        let why = if self.format == Format::Auto { Why::FewestBytes } else { Why::Forced };
        let choice = FormatChoice::only(why, FormatCandidate::new(block.format(), block.bytes()));
        Stored { format: block.format(), choice, bytes: operators.iter().map(HostBlock::memory).sum() }
    }

    fn host_rows<T: Real>(
        &self,
        matrices: &[Arc<Csr>],
        parts: Vec<Part<'_>>,
    ) -> Result<(HostBackend<T>, Vec<HostBlock<T>>)> {
        let backend = HostBackend::new(parts[MATRIX].n_owned(), Box::new(Alone::default()));
        let count = self.of_system(matrices.len());
        let block = |(k, (a, part))| {
            let (factor, format) = if k < count { (self.factor, self.format) } else { (1.0, Format::Auto) };
            Ok(HostBlock::new(a, part, factor, format)?.exchanged_by(self.exchange))
        };
        let blocks = matrices.iter().zip(parts).enumerate().map(block);
        Ok((backend, blocks.collect::<Result<_>>()?))
    }

    /// A rank of a device, on which sums are in `A`.
    fn on_device<T: Real, A: Real>(&self, ctx: Arc<Context>, parts: Vec<Part<'_>>, start: Instant) -> Result<Opened> {
        let compiling = stage("compile");
        let kernels = self.kernels::<T, A>(&ctx, &parts[MATRIX])?;
        drop(compiling);
        let prepare = start.elapsed().saturating_sub(ctx.compiled());
        let _uploading = stage("upload");
        let store = Store::open();
        let mut wanted = self.wanted(&store);
        let backend = OpenClBackend::new(ctx, kernels, parts[MATRIX].n_owned(), Box::new(Alone::default()))?;
        let (mut operators, mut choices, mut comparing) = (Vec::new(), Vec::new(), Duration::ZERO);
        let count = self.of_system(parts.len());
        for (k, part) in parts.into_iter().enumerate() {
            // a part goes when it is moved: renumbered columns may take as much memory as those of the matrix
            let one = self.upload(&backend, &part, &mut wanted, k < count)?;
            comparing += one.comparing;
            operators.push(one.block);
            choices.push(one.choice);
        }
        let (format, bytes) = (operators[MATRIX].format(), operators.iter().map(DeviceBlock::memory).sum());
        let (iterate, stored) = (Plain::new(&backend)?, Stored { format, choice: choices.swap_remove(MATRIX), bytes });
        let (on_rank, precond) = self.on_rank(&backend, (operators[MATRIX].plan(), Some(operators[MATRIX].rows())))?;
        let compile = backend.compiled();
        let rank = Box::new(Engine { on_rank, ..Engine::new(backend, (operators, stored), iterate, self)? });
        let upload = start.elapsed().saturating_sub(prepare + compile + precond + comparing);
        Ok(Opened { rank, prepare, compile, upload, precond, tune: comparing })
    }

    /// The same in mixed precision.
    fn mixed_on_device(&self, ctx: Arc<Context>, parts: Vec<Part<'_>>, start: Instant) -> Result<Opened> {
        let compiling = stage("compile");
        let wide_kernels = self.kernels::<f64, f64>(&ctx, &parts[MATRIX])?;
        let kernels = self.kernels::<f32, f64>(&ctx, &parts[MATRIX])?;
        drop(compiling);
        let prepare = start.elapsed().saturating_sub(ctx.compiled());
        let _uploading = stage("upload");
        let store = Store::open();
        let (n, mut wanted) = (parts[MATRIX].n_owned(), self.wanted(&store));
        let wide_backend = OpenClBackend::new(ctx.clone(), wide_kernels, n, Box::new(Alone::default()))?;
        let backend = OpenClBackend::new(ctx, kernels, n, Box::new(Alone::default()))?;
        let (mut wide, mut operators, mut choices, mut comparing) =
            (Vec::new(), Vec::new(), Vec::new(), Duration::ZERO);
        let count = self.of_system(parts.len());
        for (k, part) in parts.into_iter().enumerate() {
            if k < count {
                // products in double precision are too few to be worth a measurement
                let mut few = Wanted { tune: Tune::Stored, ..wanted };
                wide.push(self.upload(&wide_backend, &part, &mut few, true)?.block);
                wanted.room = few.room;
            }
            let one = self.upload(&backend, &part, &mut wanted, k < count)?;
            comparing += one.comparing;
            operators.push(one.block);
            choices.push(one.choice);
        }
        let of_wide = wide.iter().map(DeviceBlock::memory).sum();
        let iterate = Mixed::new(wide_backend, wide, of_wide)?;
        let (format, bytes) = (operators[MATRIX].format(), operators.iter().map(DeviceBlock::memory).sum());
        let stored = Stored { format, choice: choices.swap_remove(MATRIX), bytes };
        let (on_rank, precond) = self.on_rank(&backend, (operators[MATRIX].plan(), Some(operators[MATRIX].rows())))?;
        let compile = backend.compiled();
        let rank = Box::new(Engine { on_rank, ..Engine::new(backend, (operators, stored), iterate, self)? });
        let upload = start.elapsed().saturating_sub(prepare + compile + precond + comparing);
        Ok(Opened { rank, prepare, compile, upload, precond, tune: comparing })
    }

    /// A multigrid cycle on the device, if it can have one; and the time that it took, but for compiling. The matrix of its levels has this halo,
    /// and the device has these rows of it.
    fn on_rank<T: Real, A: Real>(
        &self,
        backend: &OpenClBackend<T, A>,
        (halo, rows): (&HaloPlan, Option<&DeviceRows<T>>),
    ) -> Result<(OnDevice<T, A>, Duration)> {
        let Some((given, of_given)) = &self.given else { return Ok((None, Duration::ZERO)) };
        let of = Multigrid { given, rows: of_given, factor: self.factor, board: self.board };
        of.on_device(backend, halo, OfRanks { factor: self.factor, rows, scaled_by: None })
    }

    fn kernels<T: Real, A: Real>(&self, ctx: &Context, part: &Part<'_>) -> Result<Kernels<T, A>> {
        let tuning = match self.known {
            Some(known) => kept::tuning::<T, A>(known, ctx.info(), part.n_owned(), part.nnz()),
            None => Tuning::default_for(ctx.info(), Shape::of(ctx.info())),
        };
        let kernels = Kernels::build(ctx, tuning)?;
        Ok(kernels)
    }

    fn wanted<'a>(&'a self, store: &'a Store) -> Wanted<'a> {
        Wanted {
            format: self.format,
            tune: self.tune,
            known: self.known,
            store,
            room: self.room,
            exchange: self.exchange,
            set_up: formats::SET_UP_TIME,
            unscaled: self.unscaled,
        }
    }
}

impl<O: PassBackend + BasisBackend, A: LinearOperator<O>, I: Iterate<O>> Engine<O, A, I> {
    fn new(backend: O, (operators, stored): (Vec<A>, Stored), iterate: I, plan: &Plan<'_>) -> Result<Self> {
        let scaling = match &plan.scaling {
            Some((scaling, rows)) => Some(scaling.share(&backend, rows.clone())?),
            None => None,
        };
        let w = Workspace::new(&backend, &operators)?;
        Ok(Self {
            method: plan.method,
            restart: plan.restart,
            backend,
            operators,
            stored,
            iterate,
            precond: plan.precond.clone(),
            given: plan.given.clone(),
            on_rank: None,
            through: plan.through.clone(),
            scaling,
            is_complex: plan.is_complex,
            w,
            way: None,
            batch: None,
            batch_compiled: Duration::ZERO,
        })
    }
}

impl<O: PassBackend + BasisBackend, A: LinearOperator<O>, I: Iterate<O>> Engine<O, A, I> {
    /// Whether the method can have several columns.
    fn takes_texts_of_columns(&self) -> bool {
        // parts of a number are neighbours, and so are columns
        let is_real = !(self.is_complex && self.method.facts().is_complex);
        is_real && self.given.is_none() && self.method.facts().text.is_some() && self.iterate.takes_columns()
    }
}

impl<O: HasLevels<A> + BasisBackend, A: LinearOperator<O>, I: Iterate<O>> Rank for Engine<O, A, I>
where
    Self: Send,
{
    fn product_bytes(&self) -> Vec<u64> {
        self.operators.iter().map(LinearOperator::bytes).collect()
    }

    fn go_on_with(&mut self, of: &Multigrid<'_>) -> Result<Option<WentOn>> {
        self.go_on_with(of)
    }

    fn takes_columns(&self) -> bool {
        // vectors of a preconditioner are those of one column: a halo of several is none of theirs
        let fits = |a: &A| a.takes_columns() && (self.precond.is_none() || a.halo() == 0);
        let is_one = matches!(&self.operators[..], [a] if fits(a));
        is_one && self.takes_texts_of_columns()
    }

    fn has_batch(&mut self, columns: usize) -> bool {
        self.has_batch(columns)
    }

    fn run_columns(&mut self, links: Links, columns: Columns<'_>, watch: Watch<'_>) -> Result<ColumnsEnded> {
        if columns.in_batch {
            self.solve_batch(links, columns, watch)
        } else {
            self.solve_columns(links, columns, watch)
        }
    }

    fn take_values(&mut self, system: &System<'_>, rows: &Range<usize>, col_idx: ColumnIndices<'_>) -> Result<bool> {
        let Self { backend, operators, iterate, scaling, .. } = self;
        let ([a], [operator]) = (system.matrices, &mut operators[..]) else { return Ok(false) };
        if system.scaling.is_some() != scaling.is_some() {
            return Ok(false);
        }
        let _uploading = stage("upload");
        let scale = || Ok(system.scaled(rows)?.unwrap_or_default());
        let new = match system.scaling {
            Some(scaling) => {
                let unscaled = Unscaled { roots: scaling.roots(), scale: &scale };
                NewValues::unscaled(a, rows.clone(), col_idx, unscaled, system.factor)
            }
            None => NewValues::new(a, rows.clone(), col_idx, None, system.factor),
        };
        if !(operator.take_values(backend, &new)? && iterate.take_values(&new)?) {
            return Ok(false);
        }
        *scaling = None; // its memory is that of the next
        *scaling = system.scaling.map(|scaling| scaling.share(backend, rows.clone())).transpose()?;
        Ok(true)
    }

    fn stored(&self) -> Stored {
        Stored { bytes: self.stored.bytes + self.iterate.stored(), ..self.stored.clone() }
    }

    fn run(&mut self, mut links: Links, Stretch { b, x, p }: Stretch<'_>, mut monitor: Monitor<'_>) -> Result<Ended> {
        let Self {
            method,
            restart,
            backend,
            operators,
            iterate,
            precond,
            given,
            on_rank,
            through,
            scaling,
            is_complex,
            w,
            way,
            ..
        } = self;
        let of_precond = std::mem::replace(&mut links.precond, Box::new(Alone::default()));
        iterate.connect(backend, links);
        let (uploading, compiled) = (stage("upload"), backend.compiled());
        let way = match way {
            Some(way) => way,
            None => {
                let set_up = |(precond, rows): &(Precond, Rows)| precond.set_up(rows, backend.comm());
                let m = precond.as_ref().map(set_up).transpose()?.flatten();
                let varies = given.is_some() || m.as_ref().is_some_and(|m| m.varies());
                let text = method.program(Kind { is_scaled: scaling.is_some(), is_complex: *is_complex }, m);
                let of_given = |(m, rows): &(Arc<Given>, Range<usize>)| Application::Given(Arc::clone(m), rows.clone());
                let given = on_rank.take().map(Application::OnRank).or_else(|| given.as_ref().map(of_given));
                let given = match (given, through) {
                    (Some(c), Some(diagonal)) => {
                        let through = Through::new(backend, operators, diagonal, c)?;
                        Some(Application::Through(Box::new(through)))
                    }
                    (given, _) => given,
                };
                way.insert(match (&*method, given, text) {
                    (Method::Gmres, given, text) => {
                        let text = text.map(|text| Machine::new(backend, operators, text).map(Application::Text));
                        let application = given.map_or(text, |given| Some(Ok(given))).transpose()?;
                        Way::Cycles(Gmres::new(backend, (*restart, *is_complex), (application, varies))?)
                    }
                    (_, Some(given), _) => Way::Flexible(Preconditioned::new(backend, operators, given)?),
                    (_, None, Some(text)) => Way::Text(Machine::new(backend, operators, text)?),
                    (_, None, None) => Way::Classic,
                })
            }
        };
        if let Way::Cycles(cycles) = way {
            cycles.begin();
        }
        if let Some(on_rank) = way.on_rank() {
            on_rank.connect(of_precond);
        }
        let before = monitor.iterations();
        match scaling {
            Some(scaling) => iterate.write(backend, w, &scaling.of_rhs(b), &scaling.of_iterate(x))?,
            None => iterate.write(backend, w, b, x)?,
        }
        if let Some(p) = p {
            let p = scaling.as_ref().map_or_else(|| p.to_vec(), |scaling| scaling.of_iterate(p));
            backend.write(&O::Real::scaled(&p, 1.0), &mut w.p)?;
        }
        iterate.keep(backend, w)?;
        backend.finish(0)?;
        log::debug!("the right-hand side is there");
        backend.comm().sum(&mut [])?; // all ranks are there
        if let Some(origin) = monitor.timeline() {
            backend.record(origin, before)?;
        }
        let compile = backend.compiled() - compiled;
        let upload = uploading.end().saturating_sub(compile);

        let solving = stage("solve");
        let mut moves = false;
        let reason = loop {
            backend.count_from(monitor.iterations());
            let verdict = match way {
                Way::Text(machine) => run(backend, operators, iterate, scaling.as_mut(), w, machine, &mut monitor)?,
                Way::Cycles(cycles) => gmres(backend, operators, iterate, w, cycles, &mut monitor)?,
                Way::Flexible(m) => cg_flexible(backend, operators, iterate, scaling.as_ref(), m, w, &mut monitor)?,
                Way::Classic => cg_classic(backend, &operators[MATRIX], iterate, scaling.as_ref(), w, &mut monitor)?,
            };
            backend.end_run(monitor.run_iterations())?;
            match verdict {
                Verdict::Converged | Verdict::Minimised => break None,
                Verdict::Presumed => {}
                Verdict::Replaces => monitor.replaces(),
                Verdict::Moves => {
                    moves = true;
                    break None;
                }
                Verdict::Stalled { worse } => {
                    if worse {
                        iterate.restore(backend, w)?;
                    }
                    break Some(Reason::Stagnation);
                }
                Verdict::BreaksDown => {
                    if !monitor.starts_anew() {
                        iterate.restore(backend, w)?;
                        break Some(Reason::Breakdown);
                    }
                }
                Verdict::Ended(mut reason) => {
                    // what a more precise iteration might not have met
                    let is_imprecise = match &mut reason {
                        Reason::IndefiniteOperator(Indefinite::Direction { curvature: found, .. }) => {
                            if matches!(way, Way::Text(machine) if machine.derives_curvature()) {
                                *found = curvature(backend, &operators[MATRIX], w)?;
                                if *found > 0.0 {
                                    if monitor.starts_anew() {
                                        continue;
                                    }
                                    iterate.restore(backend, w)?;
                                    break Some(Reason::Stagnation);
                                }
                            }
                            *found = iterate.curvature(backend, w)?.unwrap_or(*found);
                            *found > 0.0
                        }
                        Reason::Divergence => {
                            iterate.restore(backend, w)?;
                            monitor.may_try_anew()
                        }
                        Reason::NonFinite(_) => {
                            iterate.restore(backend, w)?;
                            false
                        }
                        // residuals that rise and fall may be above where the run began
                        Reason::MaxIters | Reason::TimeLimit | Reason::Interrupted
                            if !method.needs_symmetric() && !method.minimises() && monitor.is_worse() =>
                        {
                            iterate.restore(backend, w)?;
                            false
                        }
                        _ => false,
                    };
                    if !is_imprecise {
                        break Some(reason);
                    }
                    if !monitor.gives_up_direction() {
                        break Some(Reason::Stagnation);
                    }
                }
            }
        };
        let seen = monitor.into_seen();
        let split = backend.finish(seen.iterations - before)?;
        let solve = solving.end();

        let gathering = stage("gather");
        let mut p = if moves { Some(vec![0.0; x.len()]) } else { None };
        if let Some(p) = &mut p {
            O::Real::fill(p, |p| backend.read(&w.p, p))?;
        }
        iterate.read(backend, w, x)?;
        if let Some(scaling) = scaling {
            scaling.undo(x);
            p.iter_mut().for_each(|p| scaling.undo(p));
        }
        let gather = gathering.end();
        Ok(Ended { reason, p, seen, split, timeline: backend.take_timeline()?, compile, upload, solve, gather })
    }
}
