//! The facts about a solve.

use std::ops::Add;
use std::time::{Duration, Instant};

use declive::device::Rejected;
use declive::distributed::ProcessInfo;
use declive::matrix::Equilibrated;
use declive::matrix::stats::Stats;
use declive::solve::{
    Cause, DenseFactors, DeviceFailure, Forecast, Hierarchy, Indefinite, Move, Outcome, Precision, RankInfo,
    Remembered, Reordering, Setup, Solver, Split, Stop, Switch,
};
use declive::timeline::stages;
use serde::Serialize;

use super::in_flags;
use super::units::{bytes, count, plural};

/// All that is known about a solve.
///
/// The [`Figures`] at the top are over all right-hand sides: counts, times and rates together; residuals the largest;
/// the reason that of the first right-hand side that didn't converge, or of the last if all did. For a single
/// right-hand side they are simply its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    /// Over all right-hand sides.
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) seconds: Seconds,
    /// In the order of their beginnings.
    pub(super) timeline: Vec<Stage>,
    pub(super) host_memory: HostMemory,
    pub(super) matrix: Matrix,
    pub(super) rhs: Rhs,
    pub(super) x0: Option<String>,
    pub(super) options: Options,
    pub(super) order: Order,
    /// How the system was permuted and scaled by a transversal, if it was.
    pub(super) equilibrated: Option<Equilibrated>,
    /// What `auto` began with, if former solves of the system were remembered, and what these took.
    pub(super) remembered: Option<Remembered>,
    /// The levels of a multigrid preconditioner, if there is one.
    pub(super) hierarchy: Option<Hierarchy>,
    /// The factors of a dense matrix.
    pub(super) dense: Option<DenseFactors>,
    /// Entries of the matrices of a preconditioner that has some.
    pub(super) precond_entries: Vec<usize>,
    /// Those of this process, the first.
    pub(super) ranks: Vec<Rank>,
    /// All processes, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) processes: Vec<ProcessInfo>,
    pub(super) halos: Halos,
    pub(super) rejected: Vec<NotUsed>,
    /// Devices that failed, so that others took over.
    pub(super) failures: Vec<Failed>,
    /// What the user should know about the choice of devices.
    pub(super) note: Option<String>,
    /// What was expected before the solve.
    pub(super) forecast: Forecast,
    #[serde(flatten)]
    pub(crate) files: Files,
    /// One for each right-hand side.
    pub(super) solves: Vec<Solve>,
}

/// Files that were read or written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Files {
    /// The checkpoint that this went on from.
    pub(crate) resumed: Option<String>,
    /// Where the last checkpoint was written.
    pub(crate) checkpoint: Option<String>,
    /// Where the solution was written.
    pub(crate) output: Option<String>,
    /// Where the history was written.
    pub(crate) history: Option<String>,
    /// Where the page was written.
    pub(crate) report: Option<String>,
    /// Where the trace was written.
    pub(crate) trace: Option<String>,
}

/// How one or several solves went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(super) converged: bool,
    /// Name of the reason.
    pub(super) reason: &'static str,
    /// Name and explanation.
    pub(super) reason_text: String,
    /// Those before a resumed checkpoint among them.
    pub(super) iterations: u64,
    /// Iterations before the checkpoint that this went on from.
    pub(super) resumed_iterations: u64,
    pub(super) restarts: u32,
    /// Right-hand sides that were solved for at a time, at the most.
    pub(super) side_by_side: usize,
    /// ‖b − A x‖₂ / ‖b‖₂, recomputed.
    pub(super) rel_residual_2: f64,
    /// The same by the recurrence.
    pub(super) recurrence_rel_residual_2: f64,
    pub(super) backward_error: f64,
    /// ‖Aᵀ r‖₂ / (α ‖r‖₂) for r = b − A x and the root mean square α of the norms of columns, of a method that minimises ‖r‖₂.
    pub(super) optimality: Option<f64>,
    /// ‖b − A x‖₂.
    pub(super) residual_2: f64,
    /// max |b − A x|.
    pub(super) residual_inf: f64,
    /// ‖b‖₂.
    pub(super) rhs_2: f64,
    pub(super) bytes_per_iteration: u64,
    pub(super) microseconds_per_iteration: Option<f64>,
    /// Bytes of all iterations by the byte rule over the time of the iterations.
    pub(super) gigabytes_per_second: Option<f64>,
    /// When other methods took over, over all right-hand sides.
    pub(super) switches: Vec<Switch>,
}

/// Wall-clock time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Seconds {
    /// Reading or generating the system, and looking it over.
    pub(super) read: f64,
    pub(super) prepare: f64,
    /// Of `prepare`, what went into the order of the rows.
    pub(super) reorder: f64,
    /// Building kernels.
    pub(super) compile: f64,
    pub(super) upload: f64,
    /// Making the levels of a multigrid preconditioner.
    pub(super) precond: f64,
    pub(super) tune: f64,
    pub(super) solve: f64,
    pub(super) gather: f64,
    pub(super) verify: f64,
    /// Writing the results.
    pub(super) write: f64,
    /// From the start of the program, without what it takes to write the page and the trace.
    pub(super) total: f64,
}

/// What a thread of the command did at a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Stage {
    pub(super) stage: &'static str,
    /// The name of the thread.
    pub(super) lane: String,
    /// From the start of the command, in seconds.
    pub(super) start: f64,
    pub(super) seconds: f64,
}

impl Stage {
    /// One of a command that began so and has taken `total`; what goes on is cut off there.
    fn new(stage: stages::Stage, began: Instant, total: Duration) -> Self {
        let since = |at: Instant| at.saturating_duration_since(began).min(total);
        let (start, end) = (since(stage.start), stage.end.map_or(total, since));
        Self { stage: stage.name, lane: stage.lane, start: start.as_secs_f64(), seconds: (end - start).as_secs_f64() }
    }

    pub(super) fn end(&self) -> f64 {
        self.start + self.seconds
    }
}

/// Memory of the host, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct HostMemory {
    /// The most that the command had at one time, if the system tells.
    pub(super) peak: Option<u64>,
    /// Of it, the matrix by rows, as it was read: of a complex one, the real form.
    pub(super) matrix: u64,
}

impl HostMemory {
    fn new(stats: &Stats) -> Self {
        let (places, entries) = (size_of::<usize>(), size_of::<u32>() + size_of::<f64>());
        let matrix = (places * (stats.n_rows + 1) + entries * stats.nnz) as u64;
        Self { peak: declive::peak_bytes(), matrix }
    }

    /// In words.
    pub(super) fn text(self) -> Option<String> {
        Some(format!("{} at the peak, of it {} the matrix", bytes(self.peak?), bytes(self.matrix)))
    }
}

/// The matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matrix {
    pub(super) source: String,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) nnz: usize,
    pub(super) complex: bool,
    /// Whether it is its own transpose.
    pub(super) symmetric: bool,
    /// Whether it is its own conjugate transpose: of a real matrix, the same.
    pub(super) hermitian: bool,
    /// The real system that is solved in place of a complex one.
    pub(super) real_form: Option<RealForm>,
    pub(super) bandwidth: usize,
    pub(super) row_min: usize,
    pub(super) row_max: usize,
    pub(super) row_mean: f64,
    /// Entries of the file that fell on others and were added.
    pub(super) duplicates: u64,
}

/// A real matrix of twice the order, with a block of 2 × 2 for each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct RealForm {
    pub(super) rows: usize,
    pub(super) nnz: usize,
}

impl Matrix {
    /// The matrix of a solver, or the complex one that this is the real form of.
    fn new(source: String, stats: &Stats, complex: Option<Complex>, duplicates: u64) -> Self {
        // the real form has an even bandwidth more one, and twice as long rows
        let parts = if complex.is_some() { 2 } else { 1 };
        let hermitian = stats.numerically_symmetric;
        Self {
            source,
            rows: stats.n_rows / parts,
            columns: stats.n_cols / parts,
            nnz: stats.nnz / (parts * parts),
            complex: complex.is_some(),
            symmetric: complex.map_or(hermitian, |complex| complex.is_symmetric),
            hermitian,
            real_form: complex.map(|_| RealForm { rows: stats.n_rows, nnz: stats.nnz }),
            bandwidth: stats.bandwidth / parts,
            row_min: stats.row_min / parts,
            row_max: stats.row_max / parts,
            row_mean: stats.row_mean / parts as f64,
            duplicates,
        }
    }
}

/// The right-hand sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rhs {
    /// The file, or how they were made.
    pub(crate) source: String,
    /// Whether nothing was said about them.
    pub(crate) default: bool,
    pub(crate) columns: usize,
}

/// What is needed to run the solve again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Options {
    /// With the method that the ranks followed at the end.
    #[serde(flatten)]
    pub(super) setup: Setup,
    /// Why `auto` began with that rather than with `cg`, if it did.
    pub(super) method_reason: Option<String>,
    /// In seconds; none without checkpoints.
    pub(super) checkpoint_every: Option<f64>,
    /// With the limit on iterations that was in force, given or not.
    #[serde(flatten)]
    pub(super) stop: Stop,
}

/// The order of the rows on the ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Order {
    /// Whether it is that of reverse Cuthill–McKee.
    pub(super) rcm: bool,
    pub(super) cause: Cause,
    /// What was done, and why.
    pub(super) text: String,
    /// Cache lines of x that a window of rows touches in the order given, if that was looked at.
    pub(super) lines_given: Option<f64>,
    /// The same by reverse Cuthill–McKee, if that was made.
    pub(super) lines_rcm: Option<f64>,
}

/// A device at work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rank {
    #[serde(flatten)]
    pub(super) info: RankInfo,
    pub(super) row_share: f64,
    pub(super) nnz_share: f64,
    /// Over all right-hand sides.
    pub(super) split: Split,
}

/// What the ranks exchange for a product, all together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Halos {
    /// Elements that ranks receive.
    pub(super) elements: usize,
    /// Bytes of them.
    pub(super) bytes: u64,
    /// Entries in columns of other ranks than the row's: twice the edge cut, if the pattern is symmetric.
    pub(super) cut_entries: usize,
    /// The part of all entries that these are.
    pub(super) cut_share: f64,
}

impl Halos {
    fn new(ranks: &[RankInfo], precision: Precision, nnz: usize) -> Self {
        let [elements, cut_entries]: [usize; 2] =
            [|rank: &RankInfo| rank.halo, |rank: &RankInfo| rank.cut].map(|of| ranks.iter().map(of).sum());
        let size = if precision == Precision::F64 { 8 } else { 4 };
        let cut_share = cut_entries as f64 / nnz.max(1) as f64;
        Self { elements, bytes: size * elements as u64, cut_entries, cut_share }
    }
}

/// A device that does not take part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct NotUsed {
    pub(super) device: String,
    pub(super) kind: String,
    pub(super) index: usize,
    pub(super) reason: String,
}

/// A device whose rows others took over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Failed {
    /// Whose it is, of several processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) process: Option<usize>,
    pub(super) device: String,
    pub(super) index: usize,
    /// What it was doing, and what went wrong.
    pub(super) error: String,
    /// Iterations done then; none if the devices were being prepared.
    pub(super) iterations: Option<u64>,
    /// How many of these were done again.
    pub(super) lost_iterations: u64,
}

/// One right-hand side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Solve {
    /// Its column, from 1.
    pub(super) rhs: usize,
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) seconds: SolveSeconds,
    /// When rows were moved.
    pub(super) moves: Vec<Move>,
    /// For each rank.
    pub(super) split: Vec<Split>,
}

/// The part of [`Seconds`] that belongs to one right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct SolveSeconds {
    pub(super) solve: f64,
    pub(super) gather: f64,
    pub(super) verify: f64,
}

/// What its real form does not tell of a complex matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Complex {
    /// Whether it is its own transpose.
    pub(crate) is_symmetric: bool,
}

/// What a [`Report`] is made from.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// File of the matrix, or its recipe.
    pub(crate) source: String,
    /// Entries of the file that fell on others.
    pub(crate) duplicates: u64,
    /// The right-hand sides.
    pub(crate) rhs: Rhs,
    /// File of the initial guess.
    pub(crate) x0: Option<String>,
    /// What is known of a complex matrix; none if it is real.
    pub(crate) complex: Option<Complex>,
    /// What was solved with: for a complex matrix, with its real form.
    pub(crate) solver: &'a Solver,
    /// Why the method is not `cg`, if that was chosen for the matrix.
    pub(crate) method_reason: Option<Indefinite>,
    /// As the solver was built.
    pub(crate) setup: &'a Setup,
    /// As it was to stop.
    pub(crate) stop: &'a Stop,
    /// How often there was a checkpoint.
    pub(crate) checkpoint_every: Option<Duration>,
    /// What was read and written.
    pub(crate) files: Files,
    /// At least one.
    pub(crate) outcomes: &'a [Outcome],
    /// Those that have solved it together, if there are several.
    pub(crate) processes: Vec<ProcessInfo>,
    /// Reading.
    pub(crate) read: Duration,
    /// Writing.
    pub(crate) write: Duration,
    /// When the command began.
    pub(crate) began: Instant,
    /// All.
    pub(crate) total: Duration,
}

impl Report {
    /// Puts the facts in order.
    pub(crate) fn new(facts: Facts<'_>) -> Self {
        let (solver, outcomes) = (facts.solver, facts.outcomes);
        let (stats, times) = (solver.stats(), solver.times());
        let sum = |part: fn(&Outcome) -> Duration| outcomes.iter().map(part).sum::<Duration>().as_secs_f64();
        // of former solves, those on the same ranks
        let same = |o: &&Outcome| o.split.len() == solver.ranks().len();
        let ranks = solver.ranks().iter().enumerate().map(|(k, rank)| {
            let split = outcomes.iter().filter(same).map(|o| o.split[k]).fold(Split::default(), Add::add);
            Rank::new(rank, stats, split)
        });
        let max_iters = facts.stop.max_iters.unwrap_or_else(|| Stop::default_max_iters(stats.n_rows));
        Self {
            figures: Figures::over(outcomes),
            seconds: Seconds {
                read: facts.read.as_secs_f64(),
                prepare: times.prepare.as_secs_f64(),
                reorder: times.reorder.as_secs_f64(),
                compile: times.compile.as_secs_f64() + sum(|o| o.compile),
                upload: times.upload.as_secs_f64() + sum(|o| o.upload),
                precond: times.precond.as_secs_f64() + sum(|o| o.precond),
                tune: times.tune.as_secs_f64(),
                solve: sum(|o| o.solve),
                gather: sum(|o| o.gather),
                verify: sum(|o| o.verify),
                write: facts.write.as_secs_f64(),
                total: facts.total.as_secs_f64(),
            },
            timeline: stages::recorded().into_iter().map(|stage| Stage::new(stage, facts.began, facts.total)).collect(),
            host_memory: HostMemory::new(stats),
            matrix: Matrix::new(facts.source, stats, facts.complex, facts.duplicates),
            rhs: facts.rhs,
            x0: facts.x0,
            options: Options {
                setup: setup_of(solver, facts.setup, outcomes),
                method_reason: facts.method_reason.map(|reason| reason.to_string()),
                checkpoint_every: facts.checkpoint_every.map(|every| every.as_secs_f64()),
                stop: facts.stop.clone().with_max_iters(max_iters),
            },
            order: Order::new(solver.reordering()),
            equilibrated: solver.equilibrated(),
            remembered: solver.remembered().cloned(),
            hierarchy: solver.hierarchy().cloned(),
            dense: solver.dense_factors(),
            precond_entries: solver.precond_entries().to_vec(),
            ranks: ranks.collect(),
            processes: facts.processes,
            halos: Halos::new(solver.ranks(), facts.setup.precision, stats.nnz),
            rejected: solver.rejected().iter().map(NotUsed::new).collect(),
            failures: solver.failures().iter().map(Failed::new).collect(),
            note: solver.note().map(in_flags),
            forecast: solver.forecast().clone(),
            files: facts.files,
            solves: outcomes.iter().enumerate().map(|(k, outcome)| Solve::new(k + 1, outcome)).collect(),
        }
    }

    /// Whether every right-hand side converged.
    pub(crate) fn converged(&self) -> bool {
        self.figures.converged
    }
}

/// The set-up with the method at the end, and the preconditioner that was remembered, if it is that.
fn setup_of(solver: &Solver, setup: &Setup, outcomes: &[Outcome]) -> Setup {
    let mut setup = setup.clone().with_method(solver.method());
    let has_switched = outcomes.iter().any(|outcome| !outcome.switches.is_empty());
    if let Some(remembered) = solver.remembered().filter(|_| !has_switched) {
        setup.precond = remembered.best.candidate.precond;
    }
    setup
}

impl Figures {
    fn over(outcomes: &[Outcome]) -> Self {
        let worst = |part: fn(&Outcome) -> f64| outcomes.iter().map(part).fold(0.0, larger_or_nan);
        let reason = outcomes.iter().map(|o| o.reason).find(|r| !r.converged()).or(outcomes.last().map(|o| o.reason));
        let iterations: u64 = outcomes.iter().map(|o| o.iterations).sum();
        let resumed_iterations = outcomes.iter().map(|o| o.done).sum();
        let timed = iterations - resumed_iterations;
        let seconds = outcomes.iter().map(|o| o.solve).sum::<Duration>().as_secs_f64();
        let bytes: f64 = outcomes.iter().map(|o| o.bytes_per_iteration as f64 * (o.iterations - o.done) as f64).sum();
        let rates = timed > 0 && seconds > 0.0;
        Self {
            converged: reason.is_some_and(|r| r.converged()),
            reason: reason.map_or("", |r| r.name()),
            reason_text: reason.map_or_else(String::new, |r| r.to_string()),
            iterations,
            resumed_iterations,
            restarts: outcomes.iter().map(|o| o.restarts).sum(),
            side_by_side: outcomes.iter().map(|o| o.side_by_side).max().unwrap_or(1),
            rel_residual_2: worst(|o| o.residual.relative_2),
            recurrence_rel_residual_2: worst(|o| o.recurrence_rel_residual_2),
            backward_error: worst(|o| o.residual.backward_error),
            optimality: outcomes.iter().filter_map(|o| o.residual.optimality).reduce(larger_or_nan),
            residual_2: worst(|o| o.residual.norm_2),
            residual_inf: worst(|o| o.residual.norm_inf),
            rhs_2: worst(|o| o.residual.rhs_norm_2),
            bytes_per_iteration: outcomes.iter().map(|o| o.bytes_per_iteration).max().unwrap_or(0),
            microseconds_per_iteration: rates.then(|| 1e6 * seconds / timed as f64),
            gigabytes_per_second: rates.then(|| 1e-9 * bytes / seconds),
            switches: outcomes.iter().flat_map(|o| o.switches.iter().copied()).collect(),
        }
    }
}

/// A residual that is not a number is the worst of all; `f64::max` would hide it.
fn larger_or_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

impl Order {
    fn new(reordering: &Reordering) -> Self {
        Self {
            rcm: reordering.is_rcm(),
            cause: reordering.cause,
            text: reordering.to_string(),
            lines_given: reordering.given.map(|given| given.lines),
            lines_rcm: reordering.rcm.map(|rcm| rcm.lines),
        }
    }
}

impl Rank {
    fn new(rank: &RankInfo, stats: &Stats, split: Split) -> Self {
        let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Self {
            row_share: share(rank.rows, stats.n_rows),
            nnz_share: share(rank.nnz, stats.nnz),
            info: rank.clone(),
            split,
        }
    }
}

impl Failed {
    fn new(failure: &DeviceFailure) -> Self {
        Self {
            process: failure.process,
            device: failure.device.clone(),
            index: failure.index,
            error: in_flags(&failure.error),
            iterations: failure.iterations,
            lost_iterations: failure.lost_iterations,
        }
    }

    /// Which device.
    pub(super) fn name(&self) -> String {
        let of = self.process.map_or_else(String::new, |process| format!(" of process {process}"));
        format!("{} ({}){of}", self.device, self.index)
    }

    /// When, and at what cost.
    pub(super) fn story(&self) -> String {
        match self.iterations {
            None => "before the first iteration; the others took its rows".into(),
            Some(done) => {
                let from = done - self.lost_iterations;
                format!("after {}; the others went on from iteration {}", plural(done, "iteration"), count(from))
            }
        }
    }
}

impl NotUsed {
    fn new(rejected: &Rejected) -> Self {
        Self {
            device: rejected.device.name.clone(),
            kind: rejected.device.kind.to_string(),
            index: rejected.device.index,
            reason: in_flags(&rejected.reason),
        }
    }
}

impl Solve {
    fn new(rhs: usize, outcome: &Outcome) -> Self {
        Self {
            rhs,
            figures: Figures::over(std::slice::from_ref(outcome)),
            seconds: SolveSeconds {
                solve: outcome.solve.as_secs_f64(),
                gather: outcome.gather.as_secs_f64(),
                verify: outcome.verify.as_secs_f64(),
            },
            moves: outcome.moves.clone(),
            split: outcome.split.clone(),
        }
    }
}
