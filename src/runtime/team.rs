//! The ranks of a system: opened on devices with rows, at first and anew, and run.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;

use super::memory_check;
use super::monitor::Monitor;
use super::rank::columns::{Columns, ColumnsEnded};
use super::rank::operator::OfPreconditioner;
use super::rank::{self, Ended, Multigrid, Opened, Place, Rank, Stored, Stretch, System, WentOn};
use super::rebalance::{self, Balance};
use super::setup::{OnFailure, Setup};
use super::shares::ShareSource;
use super::snapshot::Position;
use super::watch::Watch;
use super::whole::Whole;
use crate::backend::text::MATRIX;
use crate::comm::among::Group;
use crate::comm::{Board, Failed, Failure, Links, in_threads};
use crate::device::{Choice, Info, Kind, Rejected, SharedContext};
use crate::error::Error;
use crate::kernels::MAX_COLUMNS;
use crate::krylov::OF_SCALED;
use crate::matrix::Csr;
use crate::named::as_text;
use crate::operator::choice::FormatChoice;
use crate::operator::distributed::Distributed;
use crate::operator::{Exchange, Format};
use crate::partition::{HaloPlan, Part, join_neighbours, split};
use crate::precond::scaling::Scaling;
use crate::timeline::stages::stage;
use crate::tune::{Tune, kept};

/// Which devices work, and on which rows: one of each for a rank.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    /// `None` is the host.
    pub(crate) devices: Vec<Option<Info>>,
    /// In order; those of a rank may be none.
    pub(crate) rows: Vec<Range<usize>>,
    /// Where the shares come from.
    pub(crate) source: ShareSource,
}

/// One rank: a device and its share of the system.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankInfo {
    /// The device's name.
    pub device: String,
    /// What it is.
    #[serde(serialize_with = "as_text")]
    pub kind: Kind,
    /// Its number in `declive devices`; none for the host.
    pub index: Option<usize>,
    /// Rows that it owns.
    pub rows: usize,
    /// Entries in those rows.
    pub nnz: usize,
    /// The part of an iteration's work that they are, from 0 to 1: of all entries and 7 for each row.
    pub share: f64,
    /// Where that comes from.
    pub share_source: ShareSource,
    /// Elements of vectors that it receives from other ranks: for a product, or for one with A and one with Aᵀ.
    pub halo: usize,
    /// Entries of its rows in columns of other ranks: both ends of an edge of the matrix's graph that is cut have one.
    pub cut: usize,
    /// Memory that the rank takes on its device.
    pub bytes: u64,
    /// How the rows are stored.
    pub format: Format,
    /// Why so, and what else was considered.
    #[serde(flatten)]
    pub format_choice: FormatChoice,
}

/// Where the time before the first iteration went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct SetupTimes {
    /// Checks, another order of the rows, partition, halo plans, opening devices.
    pub prepare: Duration,
    /// Building kernels, on the device that it took longest on. Some drivers put a part of it off to the first launch of a kernel.
    pub compile: Duration,
    /// The part of `prepare` that went into the order of the rows: see [`Reordering::time`](crate::solve::Reordering::time).
    pub reorder: Duration,
    /// Moving the matrix to the devices.
    pub upload: Duration,
    /// Making the levels of [`Precond::Amg`](crate::solve::Precond::Amg), or the matrices that another preconditioner multiplies by.
    pub precond: Duration,
    /// Finding launch parameters, in former runs' results or by measurement, and comparing formats.
    pub tune: Duration,
}

/// The most columns of vectors at a time where rows hardly read anything of the matrix: with more, neighbouring rows of x leave the cache
/// sooner (`docs/measurements.md`).
const MOST_BY_DICTIONARY: usize = 8;

/// Bytes of rows that stay in the cache of a GPU while all of its work-groups read them.
const CACHED_BYTES: u64 = 16 << 20;

/// The ranks of a solver. Empty after a failure, which leaves devices in no known state.
pub(crate) struct Ranks<'a> {
    ranks: Vec<Box<dyn Rank + 'a>>,
    /// How many ranks of this process receive from each.
    receivers: Vec<usize>,
    /// All ranks, if other processes have some.
    group: Option<Group>,
    /// Whether others go on when a device fails.
    others_go_on: bool,
    pub(crate) placement: Placement,
    pub(crate) infos: Vec<RankInfo>,
    /// Devices that were left out since the solver was made, with the reason.
    pub(crate) left_out: Vec<Rejected>,
    /// The work of each rank's rows.
    costs: Vec<f64>,
    /// Which ranks could hold the whole system.
    holds_all: Vec<bool>,
    /// Whether the preconditioner changes anything;
    is_preconditioned: bool,
    /// whether levels of multigrid are for a scaled system;
    scales_levels: bool,
    /// and the entries of the matrices that it multiplies by.
    pub(crate) entries_of_precond: Vec<usize>,
    /// Changes what the ranks are watched for.
    #[cfg(test)]
    pub(crate) altered: Option<fn(&mut Balance)>,
    /// Where the time to open them went.
    pub(crate) times: SetupTimes,
}

impl Ranks<'_> {
    /// The number of this process's first rank.
    pub(crate) fn first_rank(&self) -> usize {
        self.group.as_ref().map_or(0, |group| group.own().start)
    }
}

impl Ranks<'static> {
    /// Opens the devices of `placement`, and gives them their rows of the system: `rows`, if somebody has the matrix in
    /// the order of the ranks, which need not keep it.
    ///
    /// # Errors
    /// A block that its device can't hold; errors of devices.
    pub(crate) fn open(
        whole: &Whole,
        rows: Option<Arc<Csr>>,
        placement: Placement,
        cancel: Option<&AtomicBool>,
    ) -> Result<Self, Failed> {
        let preparing = stage("prepare");
        let setup = &whole.setup_of_ranks();
        whole.given.iter().for_each(|given| given.set_factor(whole.factor));
        let rows = rows.map_or_else(|| whole.rows(), Ok)?;
        let before = preparing.end();
        let making = setup.method.applies(setup.precond).then(|| stage("precond"));
        let own = whole.of_preconditioner(&rows, &placement.devices)?;
        let making = making.map_or(Duration::ZERO, |making| making.end());
        let preparing = stage("prepare");
        let matrices = whole.matrices(rows, own)?;
        let a = &matrices[MATRIX];
        let (mut parts, group) = whole.split(&matrices, &placement.rows)?;
        join_neighbours(&mut parts);
        memory_check::check(&parts, &placement.devices, setup)?;
        let diagonal = whole.diagonal(a)?;
        let costs: Vec<f64> = placement.rows.iter().map(|rows| whole.cost(a, rows) as f64).collect();
        let whole_cost = whole.sum(costs.iter().sum())?.max(1.0);
        let share = |cost: &f64| (cost / whole_cost, placement.source);
        let parts: Vec<Vec<Part<'_>>> = of_each_rank(parts);
        let info = |((device, parts), cost): ((&Option<Info>, &Vec<Part<'_>>), _)| {
            let rows = whole.rows_in(&parts[MATRIX].rows);
            info(device.as_ref(), rows, parts, share(cost))
        };
        let infos = placement.devices.iter().zip(&parts).zip(&costs).map(info).collect();
        let holds_all = placement.devices.iter().map(|device| memory_check::holds(a, device.as_ref(), setup)).collect();
        let beside_rows: Vec<u64> = parts.iter().map(|parts| memory_check::beside_rows(parts, setup)).collect();
        let is_local = |to: usize| group.as_ref().is_none_or(|group| group.own().contains(&to));
        let local = |plan: &HaloPlan| plan.receivers.iter().filter(|one| is_local(one.to)).count();
        let receivers = parts.iter().map(|parts| local(&parts[MATRIX].halo)).collect();
        let entries_of_precond = whole.entries_of_preconditioner(&matrices);
        let mut times = SetupTimes { prepare: before + preparing.end(), ..SetupTimes::default() };

        let tuning = stage("tune");
        let of_matrix = parts.iter().map(|parts| &parts[MATRIX]);
        let known = kept::of_ranks(&placement.devices, of_matrix, (setup.tune, setup.precision), cancel);
        times.tune = tuning.end();

        let preparing = stage("prepare");
        let scaling = whole.scaling(&diagonal)?;
        times.prepare += preparing.end();
        let index = |device: &Option<Info>| device.as_ref().map(|device| device.index);
        let sharers =
            |device: &Option<Info>| placement.devices.iter().filter(|d| index(d) == index(device)).count() as u64;
        let shared = match setup.exchange {
            Exchange::SharedContext if placement.devices.len() > 1 => Some(SharedContext::among(&placement.devices)?),
            _ => None,
        };
        let place = |((device, known), board)| Place {
            device: Option::as_ref(device),
            shared: shared.as_ref(),
            known,
            sharers: sharers(device),
            board,
        };
        let size = placement.devices.len();
        let are_devices = whole.all(placement.devices.iter().all(Option::is_some))?;
        let boards: Vec<Option<Board>> = match &group {
            Some(group) if are_devices => Board::among(group).into_iter().map(Some).collect(),
            None if are_devices && size > 1 => Board::of(size).into_iter().map(Some).collect(),
            _ => (0..size).map(|_| None).collect(),
        };
        let jobs = placement.devices.iter().zip(known).zip(boards).map(place).zip(parts).collect();
        let system = System::of(whole, &matrices, scaling.as_ref());
        let open = |(place, parts): (Place<'_>, Vec<Part<'_>>)| rank::open(&place, parts, &system, setup);
        let others_go_on = setup.on_failure == OnFailure::Continue;
        let opened: Vec<Opened> = in_threads(&failure_of(group.as_ref(), others_go_on), jobs, open)?;
        let longest = |time: fn(&Opened) -> Duration| opened.iter().map(time).max().unwrap_or_default();
        times.prepare += longest(|o| o.prepare);
        times.compile = longest(|o| o.compile);
        times.upload = longest(|o| o.upload);
        times.precond = making + longest(|o| o.precond);
        times.tune += longest(|o| o.tune);
        let ranks = opened.into_iter().map(|opened| opened.rank).collect();
        let mut ranks = Self {
            ranks,
            receivers,
            group,
            others_go_on,
            placement,
            infos,
            left_out: Vec::new(),
            costs,
            holds_all,
            is_preconditioned: is_preconditioned(whole, &diagonal, scaling.as_ref()),
            scales_levels: false,
            entries_of_precond,
            #[cfg(test)]
            altered: None,
            times,
        };
        ranks.note_storage(beside_rows);
        Ok(ranks)
    }

    /// Gives the ranks the values of `rows`, whose pattern is that of the rows that they have; tells whether all have taken them. If
    /// not, or after an error, they have to be opened anew.
    ///
    /// # Errors
    /// Errors of devices.
    pub(crate) fn take_values(&mut self, whole: &Whole, rows: &Arc<Csr>) -> Result<bool, Failed> {
        let preparing = stage("prepare");
        whole.given.iter().for_each(|given| given.set_factor(whole.factor));
        let diagonal = whole.diagonal(rows)?;
        let scaling = whole.scaling(&diagonal)?;
        self.is_preconditioned = is_preconditioned(whole, &diagonal, scaling.as_ref());
        let columns: Vec<_> = split(rows, &self.placement.rows).into_iter().map(|part| part.col_idx).collect();
        drop(preparing);
        let matrices = std::slice::from_ref(rows);
        let system = System::of(whole, matrices, scaling.as_ref());
        let jobs = self.ranks.iter_mut().zip(&self.placement.rows).zip(columns).collect();
        let take =
            |((rank, own), columns): ((&mut Box<dyn Rank>, &Range<usize>), _)| rank.take_values(&system, own, columns);
        let taken = in_threads(&Failure::default(), jobs, take)?;
        Ok(!taken.is_empty() && taken.into_iter().all(|is_taken| is_taken))
    }
}

impl<'a> Ranks<'a> {
    /// The ranks of an operator that is known by its products alone: devices, or the host where there is none, with rows of each.
    ///
    /// # Errors
    /// Errors of devices.
    pub(crate) fn of_operator(
        a: &dyn Distributed<'a>,
        setup: &Setup,
        of_precond: &OfPreconditioner,
        placement: Placement,
    ) -> Result<Self, Failed> {
        let opening = stage("open");
        let opened = rank::operator::open(a, setup, of_precond, (&placement.devices, &placement.rows))?;
        let count = placement.rows.len();
        let n = a.order().max(1) as f64;
        let info = |(k, device): (usize, &Option<Info>)| {
            let rows = placement.rows[k].len();
            let stored = opened.ranks[k].stored();
            RankInfo {
                device: device.as_ref().map_or_else(host_name, |d| d.name.clone()),
                kind: device.as_ref().map_or(Kind::Host, |d| d.kind),
                index: device.as_ref().map(|d| d.index),
                rows,
                nnz: 0,
                share: rows as f64 / n,
                share_source: placement.source,
                halo: opened.halos[k],
                cut: 0,
                bytes: stored.bytes,
                format: stored.format,
                format_choice: stored.choice,
            }
        };
        let infos = placement.devices.iter().enumerate().map(info).collect();
        Ok(Self {
            ranks: opened.ranks,
            receivers: opened.receivers,
            group: None,
            others_go_on: false,
            costs: placement.rows.iter().map(|rows| rows.len() as f64).collect(),
            placement,
            infos,
            left_out: Vec::new(),
            holds_all: vec![false; count],
            is_preconditioned: opened.is_preconditioned,
            scales_levels: false,
            entries_of_precond: of_precond.matrices.iter().map(Csr::nnz).collect(),
            #[cfg(test)]
            altered: None,
            times: SetupTimes { prepare: opening.end(), ..SetupTimes::default() },
        })
    }

    /// Says of each rank how its rows are stored, which is known when they are there.
    fn note_storage(&mut self, beside_rows: Vec<u64>) {
        for ((info, rank), beside) in self.infos.iter_mut().zip(&self.ranks).zip(beside_rows) {
            let Stored { format, choice, bytes } = rank.stored();
            log::info!("{}: {} rows stored as {format} ({})", info.device, info.rows, choice.why);
            (info.format, info.format_choice, info.bytes) = (format, choice, bytes + beside);
        }
    }

    /// The byte rule: each array that an operation reads counts once, and each that it writes. What replaces residuals
    /// in mixed precision is not counted, as it is not part of every iteration.
    pub(crate) fn bytes_per_iteration(&self, setup: &Setup, n: usize) -> u64 {
        let vectors = if setup.applies_given() {
            let of_scaled = if self.scales_levels { OF_SCALED } else { 0 };
            of_scaled + setup.method.vectors_moved_beside_given(setup.restart, setup.is_complex)
        } else {
            setup.method.vectors_moved((setup.precond, self.is_preconditioned), setup.restart, setup.is_complex)
        };
        self.product_bytes(setup) + vectors * n as u64 * setup.precision.bytes()
    }

    /// Those of all products of an iteration.
    fn product_bytes(&self, setup: &Setup) -> u64 {
        let counts = setup.method.products(setup.precond);
        let of_each = |rank: &dyn Rank| -> u64 {
            rank.product_bytes().iter().zip(&counts).map(|(bytes, count)| bytes * count).sum()
        };
        self.ranks.iter().map(|rank| of_each(&**rank)).sum()
    }

    /// What is needed to watch the ranks for shares that had better be others: nothing of one alone, where shares were
    /// asked for, or where nothing may be measured. `moved` is how often rows were moved already.
    pub(crate) fn balance(&self, setup: &Setup, moved: u32) -> Option<Balance> {
        let measures = matches!(setup.tune, Tune::Quick | Tune::Full);
        #[cfg(test)]
        let measures = measures || self.altered.is_some();
        if self.ranks.len() < 2
            || self.group.is_some()
            || !measures
            || !setup.method.facts().moves
            || setup.applies_given() // the time of which is the host's
            || self.placement.source == ShareSource::ByHand
            || moved >= rebalance::MOVES
        {
            return None;
        }
        let SetupTimes { prepare, compile, upload, precond, tune, .. } = self.times;
        let is_free = setup.devices == Choice::Auto; // to leave devices out
        let balance = Balance {
            costs: self.costs.clone(),
            can_be_alone: self.holds_all.iter().map(|holds| is_free && *holds).collect(),
            moving: (prepare + compile + upload + precond + tune).as_secs_f64().max(rebalance::LEAST_MOVING),
            #[cfg(test)]
            injected: None,
        };
        #[cfg(test)]
        let balance = self.altered.into_iter().fold(balance, |mut balance, alter| {
            alter(&mut balance);
            balance
        });
        Some(balance)
    }

    /// Goes on with the multigrid of `whole` in place of the diagonal, on the devices that have the rows already, and tells how long compiling
    /// took, and the levels; `None` if one of them can't: then the ranks are to be opened anew. For a process alone.
    ///
    /// # Errors
    /// Errors of devices, after which the ranks are gone.
    pub(crate) fn go_on_with_multigrid(&mut self, whole: &Whole) -> Result<Option<[Duration; 2]>, Failed> {
        let Some(given) = whole.given.as_ref().filter(|_| self.group.is_none()) else { return Ok(None) };
        if self.ranks.is_empty() || self.placement.devices.iter().any(Option::is_none) {
            return Ok(None);
        }
        given.set_factor(whole.factor);
        let size = self.ranks.len();
        let boards = if size > 1 { Board::of(size).into_iter().map(Some).collect() } else { vec![None] };
        let ranks = self.ranks.iter_mut().zip(&self.placement.rows).zip(boards);
        let jobs = ranks.map(|((rank, rows), board)| (rank, rows, board)).collect();
        let made = in_threads(
            &Failure::default(),
            jobs,
            |(rank, rows, board): (&mut Box<dyn Rank + '_>, _, Option<Board>)| {
                rank.go_on_with(&Multigrid { given, rows, factor: whole.factor, board: board.as_ref() })
            },
        );
        let Ok(made) = made else {
            self.ranks.clear();
            return made.map(|_| None);
        };
        let Some(made) = made.into_iter().collect::<Option<Vec<WentOn>>>() else { return Ok(None) };
        let longest = |time: fn(&WentOn) -> Duration| made.iter().map(time).max().unwrap_or_default();
        self.is_preconditioned = true;
        self.scales_levels = made.iter().any(|went_on| went_on.is_scaled);
        Ok(Some([longest(|went_on| went_on.compile), longest(|went_on| went_on.precond)]))
    }

    /// Frees what ranks have on their devices.
    pub(crate) fn close(&mut self) {
        self.ranks.clear();
    }

    /// Runs all ranks to their end, for the right-hand side `b`, from and to a position.
    ///
    /// # Errors
    /// Those of the ranks, after which they are gone; [`Error::SolverBroken`] if they were.
    pub(crate) fn run<'m>(
        &mut self,
        b: &[f64],
        position: &mut Position,
        monitor: &(dyn Fn() -> Monitor<'m> + Sync),
    ) -> Result<Vec<Ended>, Failed> {
        if self.ranks.is_empty() {
            return Err(Error::SolverBroken.into());
        }
        let failure = Arc::new(failure_of(self.group.as_ref(), self.others_go_on));
        let links = match &self.group {
            Some(group) => Links::among(&self.receivers, group, &failure),
            None => Links::new(&self.receivers, &failure),
        };
        // those before are others'
        let before = self.placement.rows.first().map_or(0, |rows| rows.start);
        let mut rest = &mut position.x[before..];
        let direction = position.p.take();
        let mut jobs = Vec::new();
        for ((rank, links), rows) in self.ranks.iter_mut().zip(links).zip(&self.placement.rows) {
            let (own, others) = rest.split_at_mut(rows.len());
            rest = others;
            let p = direction.as_ref().map(|p| &p[rows.clone()]);
            jobs.push((rank, links, Stretch { b: &b[rows.clone()], x: own, p }));
        }
        let ended = in_threads(&failure, jobs, |(rank, links, stretch)| rank.run(links, stretch, monitor()));
        let Ok(mut ended) = ended else {
            self.ranks.clear();
            return ended;
        };
        let directions: Option<Vec<_>> = ended.iter_mut().map(|ended| ended.p.take()).collect();
        position.p = directions.map(|parts| parts.concat()).filter(|_| self.group.is_none());
        Ok(ended)
    }
}

impl Ranks<'_> {
    /// Whether all ranks take several right-hand sides at a time.
    pub(crate) fn take_columns(&self) -> bool {
        !self.ranks.is_empty() && self.ranks.iter().all(|rank| rank.takes_columns())
    }

    /// Whether all ranks are GPUs.
    pub(crate) fn are_on_gpus(&self) -> bool {
        self.placement.devices.iter().all(|device| device.as_ref().is_some_and(|device| device.kind == Kind::Gpu))
    }

    /// The most right-hand sides that all ranks have room for at a time, and the set-up wants.
    pub(crate) fn most_columns(&self, setup: &Setup) -> usize {
        let devices = &self.placement.devices;
        let of_rank = |(k, device): (usize, &Option<Info>)| {
            let Some(device) = device else { return setup.columns.min(MAX_COLUMNS) };
            let is_same = |other: &&Option<Info>| other.as_ref().is_some_and(|other| other.index == device.index);
            let sharers = devices.iter().filter(is_same).count() as u64;
            let room = (device.memory_bytes / sharers).saturating_sub(self.infos[k].bytes);
            let elements = (self.infos[k].rows + self.infos[k].halo) as u64;
            let most = memory_check::most_columns(elements, room, device.max_buffer_bytes, setup);
            if self.infos[k].format == Format::Dictionary { most.min(MOST_BY_DICTIONARY) } else { most }
        };
        let most = devices.iter().enumerate().map(of_rank).min().unwrap_or(1);
        if most < 2 { 1 } else { 1 << most.ilog2() }
    }

    /// How many of so many right-hand sides a device that is alone has room for if a work-group iterates for each, and the set-up wants; 0 where
    /// that can't be done, or would read the matrix from memory once for each, as no cache has room for it.
    pub(crate) fn most_in_batch(&self, count: usize, setup: &Setup) -> usize {
        let ([Some(device)], [info]) = (&self.placement.devices[..], &self.infos[..]) else { return 0 };
        if setup.columns <= MAX_COLUMNS || info.bytes > CACHED_BYTES {
            return 0;
        }
        let room = device.memory_bytes.saturating_sub(info.bytes);
        count.min(memory_check::most_in_batch(info.rows as u64, room, device.max_buffer_bytes, setup))
    }

    /// Compiles what iterates for so many, unless that was done; says whether there is such a thing.
    pub(crate) fn has_batch(&mut self, count: usize) -> bool {
        self.ranks.first_mut().is_some_and(|rank| rank.has_batch(count))
    }

    /// Compute units of the first rank's device.
    pub(crate) fn compute_units(&self) -> u32 {
        self.placement.devices.iter().flatten().next().map_or(1, |device| device.compute_units)
    }

    /// The bytes of an iteration for one of so many right-hand sides: its own, and its share of those of the matrix.
    pub(crate) fn bytes_per_column(&self, setup: &Setup, n: usize, count: usize) -> u64 {
        let width = rank::columns::width(count) as u64;
        let vectors = setup.method.products(setup.precond)[MATRIX] * 2 * n as u64 * setup.precision.bytes();
        let matrix = self.product_bytes(setup).saturating_sub(vectors);
        self.bytes_per_iteration(setup, n) - matrix + matrix / width
    }

    /// Runs all ranks for several right-hand sides at a time, from and to `x`, until each has ended; `in_batch` by a work-group each.
    ///
    /// # Errors
    /// Those of the ranks, after which they are gone; [`Error::SolverBroken`] if they were.
    pub(crate) fn run_columns<'m>(
        &mut self,
        b: &[&[f64]],
        x: &mut [Vec<f64>],
        in_batch: bool,
        watch: &(dyn Fn() -> Watch<'m> + Sync),
    ) -> Result<Vec<ColumnsEnded>, Failed> {
        if self.ranks.is_empty() {
            return Err(Error::SolverBroken.into());
        }
        let failure = Arc::new(Failure::default());
        let links = Links::new(&self.receivers, &failure);
        let mut rest: Vec<&mut [f64]> = x.iter_mut().map(|x| &mut x[..]).collect();
        let mut jobs = Vec::new();
        for ((rank, links), rows) in self.ranks.iter_mut().zip(links).zip(&self.placement.rows) {
            let own;
            (own, rest) = rest.into_iter().map(|rest| rest.split_at_mut(rows.len())).unzip();
            let b = b.iter().map(|b| &b[rows.clone()]).collect();
            jobs.push((rank, links, Columns { b, x: own, in_batch }));
        }
        let ended = in_threads(&failure, jobs, |(rank, links, columns)| rank.run_columns(links, columns, watch()));
        if ended.is_err() {
            self.ranks.clear();
        }
        ended
    }
}

/// What the failures of ranks are reported to.
fn failure_of(group: Option<&Group>, others_go_on: bool) -> Failure {
    group.map_or_else(Failure::default, |group| Failure::among(Arc::clone(&group.processes), others_go_on))
}

/// Whether the preconditioner changes anything.
fn is_preconditioned(whole: &Whole, diagonal: &[f64], scaling: Option<&Scaling>) -> bool {
    let Setup { method, precond, .. } = whole.setup;
    let changes = || precond.multiplies() || diagonal.iter().any(|d| *d != diagonal[0]);
    let is_applied = || method.applies(precond) && changes();
    scaling.is_some() || is_applied()
}

/// The parts of each rank, for those of each matrix.
fn of_each_rank(matrices: Vec<Vec<Part<'_>>>) -> Vec<Vec<Part<'_>>> {
    let ranks = matrices.first().map_or(0, Vec::len);
    let mut of_ranks: Vec<Vec<Part<'_>>> = (0..ranks).map(|_| Vec::new()).collect();
    for parts in matrices {
        of_ranks.iter_mut().zip(parts).for_each(|(of_rank, part)| of_rank.push(part));
    }
    of_ranks
}

/// A rank with so many rows, before it has them.
fn info(device: Option<&Info>, rows: usize, parts: &[Part<'_>], (share, share_source): (f64, ShareSource)) -> RankInfo {
    let sum = |of: fn(&Part<'_>) -> usize| parts.iter().map(of).sum();
    RankInfo {
        device: device.map_or_else(host_name, |d| d.name.clone()),
        kind: device.map_or(Kind::Host, |d| d.kind),
        index: device.map(|d| d.index),
        rows,
        nnz: parts[MATRIX].nnz(),
        share,
        share_source,
        halo: sum(|part| part.halo.len),
        cut: parts[MATRIX].cut(),
        bytes: 0,
        format: Format::Auto,
        format_choice: FormatChoice::unknown(),
    }
}

/// The host in reports.
fn host_name() -> String {
    format!("host, {} threads", rayon::current_num_threads())
}
