//! The facts about a solve.

use std::time::Duration;

use declive::device::Rejected;
use declive::matrix::stats::Stats;
use declive::solve::{
    Candidate, DeviceFailure, DeviceSet, Forecast, Indefinite, Method, Move, Outcome, Precision, RankInfo, Reordering,
    Setup, SetupTimes, Split, Stop, Switch,
};
use serde::Serialize;

use super::units::{count, plural};
use super::{DECLIVE, VERSION, in_flags};

/// All that is known about a solve.
///
/// The [`Figures`] at the top are over all right-hand sides: counts, times and rates together; residuals the largest;
/// the reason that of the first right-hand side that didn't converge, or of the last if all did. For a single
/// right-hand side they are simply its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(super) version: u32,
    pub(super) declive: &'static str,
    /// Over all right-hand sides.
    #[serde(flatten)]
    pub(super) figures: Figures,
    pub(super) seconds: Seconds,
    pub(super) matrix: Matrix,
    pub(super) rhs: Rhs,
    pub(super) x0: Option<String>,
    pub(super) options: Options,
    pub(super) order: Order,
    pub(super) ranks: Vec<Rank>,
    pub(super) halos: Halos,
    pub(super) rejected: Vec<NotUsed>,
    /// Devices that failed, so that others took over.
    pub(super) failures: Vec<Failed>,
    /// What the user should know about the choice of devices.
    pub(super) note: Option<String>,
    /// The checkpoint that this went on from.
    pub(super) resumed: Option<String>,
    /// Where the last checkpoint was written.
    pub(super) checkpoint: Option<String>,
    /// What was expected before the solve.
    pub(super) forecast: Expected,
    /// Where the solution was written.
    pub(super) output: Option<String>,
    /// Where the history was written.
    pub(super) history: Option<String>,
    /// Where the page was written.
    pub(super) report: Option<String>,
    /// Where the trace was written.
    pub(super) trace: Option<String>,
    /// One for each right-hand side.
    pub(super) solves: Vec<Solve>,
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
    /// ‖b − A x‖₂ / ‖b‖₂, recomputed.
    pub(super) rel_residual_2: f64,
    /// The same by the recurrence.
    pub(super) recurrence_rel_residual_2: f64,
    pub(super) backward_error: f64,
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
    /// When another method took over, if one did: over several right-hand sides, the first time.
    pub(super) switch: Option<Switched>,
}

/// Wall-clock time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Seconds {
    /// Reading or generating the system, and looking it over.
    pub(super) read: f64,
    pub(super) prepare: f64,
    /// Of `prepare`, what went into the order of the rows.
    pub(super) reorder: f64,
    pub(super) upload: f64,
    pub(super) tune: f64,
    pub(super) solve: f64,
    pub(super) gather: f64,
    pub(super) verify: f64,
    /// Writing the results.
    pub(super) write: f64,
    /// From the start of the program, without what it takes to write the page and the trace.
    pub(super) total: f64,
}

/// The matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Matrix {
    pub(super) source: String,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) nnz: usize,
    pub(super) symmetric: bool,
    pub(super) bandwidth: usize,
    pub(super) row_min: usize,
    pub(super) row_max: usize,
    pub(super) row_mean: f64,
    /// Entries of the file that fell on others and were added.
    pub(super) duplicates: u64,
}

/// The right-hand sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rhs {
    /// The file, or how they were made.
    pub(super) source: String,
    /// Whether nothing was said about them.
    pub(super) default: bool,
    pub(super) columns: usize,
}

/// What is needed to run the solve again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Options {
    /// The one that the ranks followed, at the end.
    pub(super) method: &'static str,
    /// Why `auto` began with that rather than with `cg`, if it did.
    pub(super) method_reason: Option<String>,
    pub(super) precond: &'static str,
    pub(super) precision: &'static str,
    pub(super) devices: String,
    pub(super) assume_symmetric: bool,
    pub(super) tune: &'static str,
    pub(super) format: &'static str,
    /// As given by hand.
    pub(super) shares: Option<String>,
    pub(super) reorder: &'static str,
    pub(super) exchange: &'static str,
    pub(super) on_failure: &'static str,
    /// In seconds; none without checkpoints.
    pub(super) checkpoint_every: Option<f64>,
    pub(super) rtol: f64,
    pub(super) atol: f64,
    /// The limit in force, given or not.
    pub(super) max_iters: u64,
    /// In seconds.
    pub(super) time_limit: Option<f64>,
}

/// The order of the rows on the ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Order {
    /// Whether it is that of reverse Cuthill–McKee.
    pub(super) rcm: bool,
    /// Name of what decided.
    pub(super) cause: &'static str,
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
    pub(super) device: String,
    pub(super) kind: String,
    /// Number in `declive devices`; none for the host.
    pub(super) index: Option<usize>,
    pub(super) rows: usize,
    pub(super) row_share: f64,
    pub(super) nnz: usize,
    pub(super) nnz_share: f64,
    /// The part of an iteration's work, by which rows are cut.
    pub(super) share: f64,
    /// Where that comes from.
    pub(super) share_source: &'static str,
    /// Elements received for each product.
    pub(super) halo: usize,
    /// Entries in columns of other ranks.
    pub(super) cut: usize,
    pub(super) bytes: u64,
    /// How the rows are stored.
    pub(super) format: &'static str,
    /// Why so.
    pub(super) format_why: &'static str,
    /// What was considered, the format taken first.
    pub(super) formats: Vec<Candidate>,
    /// Over all right-hand sides.
    pub(super) split: SplitSeconds,
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

/// Where a rank's time in the iteration went, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct SplitSeconds {
    pub(super) kernels: f64,
    pub(super) sums: f64,
    pub(super) halos: f64,
    pub(super) host_wait: f64,
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
    pub(super) device: String,
    pub(super) index: usize,
    /// What it was doing, and what went wrong.
    pub(super) error: String,
    /// Iterations done then; none if the devices were being prepared.
    pub(super) iterations: Option<u64>,
    /// How many of these were done again.
    pub(super) lost_iterations: u64,
}

/// What was expected of an iteration before the solve.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Expected {
    /// If anything was known.
    pub(super) microseconds_per_iteration: Option<f64>,
    /// The sets of devices that were compared, if there was a choice.
    pub(super) considered: Vec<Considered>,
}

/// A set of devices that could have worked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Considered {
    /// Their numbers; none for the host.
    pub(super) devices: Vec<Option<usize>>,
    pub(super) microseconds_per_iteration: f64,
    /// Whether a former solve took so long, rather than a model's.
    pub(super) remembered: bool,
}

/// Rows that were moved in the course of a solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Moved {
    /// Iterations done before.
    pub(super) iterations: u64,
    /// Time of each rank's kernels an iteration before.
    pub(super) kernel_microseconds: Vec<f64>,
    /// The share of each of these ranks afterwards.
    pub(super) shares: Vec<f64>,
    /// Time that it took.
    pub(super) seconds: f64,
}

/// A method that took over from another in the course of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Switched {
    /// Iterations done before.
    pub(super) iteration: u64,
    /// The method before.
    pub(super) from: &'static str,
    /// The method that went on.
    pub(super) to: &'static str,
    /// p·A p of the direction that showed that the matrix is not positive definite.
    pub(super) curvature: f64,
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
    pub(super) moves: Vec<Moved>,
    /// For each rank.
    pub(super) split: Vec<SplitSeconds>,
}

/// The part of [`Seconds`] that belongs to one right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct SolveSeconds {
    pub(super) solve: f64,
    pub(super) gather: f64,
    pub(super) verify: f64,
}

/// What a [`Report`] is made from.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// File of the matrix, or its recipe.
    pub(crate) source: String,
    /// About the matrix.
    pub(crate) stats: &'a Stats,
    /// Entries of the file that fell on others.
    pub(crate) duplicates: u64,
    /// File or recipe of the right-hand sides.
    pub(crate) rhs: String,
    /// Whether nothing was said about the right-hand side.
    pub(crate) rhs_default: bool,
    /// File of the initial guess.
    pub(crate) x0: Option<String>,
    /// As the solver was built.
    pub(crate) setup: &'a Setup,
    /// The method that it came to.
    pub(crate) method: Method,
    /// Why not `cg`, if it had the choice.
    pub(crate) method_reason: Option<Indefinite>,
    /// The order of the rows.
    pub(crate) reordering: &'a Reordering,
    /// As it was to stop.
    pub(crate) stop: &'a Stop,
    /// The ranks.
    pub(crate) ranks: &'a [RankInfo],
    /// The other devices.
    pub(crate) rejected: &'a [Rejected],
    /// What was expected.
    pub(crate) forecast: &'a Forecast,
    /// About the choice of devices.
    pub(crate) note: Option<&'a str>,
    /// Devices that failed.
    pub(crate) failures: &'a [DeviceFailure],
    /// Where the last checkpoint went.
    pub(crate) checkpoint: Option<String>,
    /// How often there was one.
    pub(crate) checkpoint_every: Option<Duration>,
    /// The checkpoint that this went on from.
    pub(crate) resume: Option<String>,
    /// Where the solution went.
    pub(crate) output: Option<String>,
    /// Where the history went.
    pub(crate) history: Option<String>,
    /// At least one.
    pub(crate) outcomes: &'a [Outcome],
    /// Reading.
    pub(crate) read: Duration,
    /// Building the solver.
    pub(crate) times: SetupTimes,
    /// Writing.
    pub(crate) write: Duration,
    /// All.
    pub(crate) total: Duration,
}

impl Report {
    /// Puts the facts in order.
    pub(crate) fn new(facts: &Facts<'_>) -> Self {
        let (stats, outcomes) = (facts.stats, facts.outcomes);
        let sum = |part: fn(&Outcome) -> Duration| outcomes.iter().map(part).sum::<Duration>().as_secs_f64();
        // of former solves, those on the same ranks
        let same = |o: &&Outcome| o.split.len() == facts.ranks.len();
        let ranks = facts.ranks.iter().enumerate().map(|(k, rank)| {
            let split = outcomes
                .iter()
                .filter(same)
                .filter_map(|o| o.split.get(k))
                .fold(SplitSeconds::default(), SplitSeconds::plus);
            Rank::new(rank, stats, split)
        });
        Self {
            version: VERSION,
            declive: DECLIVE,
            figures: Figures::over(outcomes),
            seconds: Seconds {
                read: facts.read.as_secs_f64(),
                prepare: facts.times.prepare.as_secs_f64(),
                reorder: facts.times.reorder.as_secs_f64(),
                upload: facts.times.upload.as_secs_f64() + sum(|o| o.upload),
                tune: facts.times.tune.as_secs_f64(),
                solve: sum(|o| o.solve),
                gather: sum(|o| o.gather),
                verify: sum(|o| o.verify),
                write: facts.write.as_secs_f64(),
                total: facts.total.as_secs_f64(),
            },
            matrix: Matrix {
                source: facts.source.clone(),
                rows: stats.n_rows,
                columns: stats.n_cols,
                nnz: stats.nnz,
                symmetric: stats.numerically_symmetric,
                bandwidth: stats.bandwidth,
                row_min: stats.row_min,
                row_max: stats.row_max,
                row_mean: stats.row_mean,
                duplicates: facts.duplicates,
            },
            rhs: Rhs { source: facts.rhs.clone(), default: facts.rhs_default, columns: outcomes.len() },
            x0: facts.x0.clone(),
            options: Options {
                method: facts.method.name(),
                method_reason: facts.method_reason.map(|reason| reason.to_string()),
                precond: facts.setup.precond.name(),
                precision: facts.setup.precision.name(),
                devices: facts.setup.devices.to_string(),
                assume_symmetric: facts.setup.assume_symmetric,
                tune: facts.setup.tune.name(),
                format: facts.setup.format.name(),
                shares: facts.setup.shares.as_ref().map(ToString::to_string),
                reorder: facts.setup.reorder.name(),
                exchange: facts.setup.exchange.name(),
                on_failure: facts.setup.on_failure.name(),
                checkpoint_every: facts.checkpoint_every.map(|every| every.as_secs_f64()),
                rtol: facts.stop.rtol,
                atol: facts.stop.atol,
                max_iters: facts.stop.max_iters.unwrap_or_else(|| Stop::default_max_iters(stats.n_rows)),
                time_limit: facts.stop.time_limit.map(|limit| limit.as_secs_f64()),
            },
            order: Order::new(facts.reordering),
            ranks: ranks.collect(),
            halos: Halos::new(facts.ranks, facts.setup.precision, stats.nnz),
            rejected: facts.rejected.iter().map(NotUsed::new).collect(),
            failures: facts.failures.iter().map(Failed::new).collect(),
            note: facts.note.map(in_flags),
            resumed: facts.resume.clone(),
            checkpoint: facts.checkpoint.clone(),
            forecast: Expected::new(facts.forecast),
            output: facts.output.clone(),
            history: facts.history.clone(),
            report: None,
            trace: None,
            solves: outcomes.iter().enumerate().map(|(k, outcome)| Solve::new(k + 1, outcome)).collect(),
        }
    }

    /// Adds the files that were made from this report.
    pub(crate) fn shown_in(&mut self, report: Option<String>, trace: Option<String>) {
        (self.report, self.trace) = (report, trace);
    }

    /// Whether every right-hand side converged.
    pub(crate) fn converged(&self) -> bool {
        self.figures.converged
    }
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
            rel_residual_2: worst(|o| o.residual.relative_2),
            recurrence_rel_residual_2: worst(|o| o.recurrence_rel_residual_2),
            backward_error: worst(|o| o.residual.backward_error),
            residual_2: worst(|o| o.residual.norm_2),
            residual_inf: worst(|o| o.residual.norm_inf),
            rhs_2: worst(|o| o.residual.rhs_norm_2),
            bytes_per_iteration: outcomes.iter().map(|o| o.bytes_per_iteration).max().unwrap_or(0),
            microseconds_per_iteration: rates.then(|| 1e6 * seconds / timed as f64),
            gigabytes_per_second: rates.then(|| 1e-9 * bytes / seconds),
            switch: outcomes.iter().find_map(|o| o.switch.as_ref()).map(Switched::new),
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
            cause: reordering.cause.name(),
            text: reordering.to_string(),
            lines_given: reordering.given.map(|given| given.lines),
            lines_rcm: reordering.rcm.map(|rcm| rcm.lines),
        }
    }
}

impl Rank {
    fn new(rank: &RankInfo, stats: &Stats, split: SplitSeconds) -> Self {
        let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Self {
            device: rank.device.clone(),
            kind: rank.kind.to_string(),
            index: rank.index,
            rows: rank.rows,
            row_share: share(rank.rows, stats.n_rows),
            nnz: rank.nnz,
            nnz_share: share(rank.nnz, stats.nnz),
            share: rank.share,
            share_source: rank.share_source.name(),
            halo: rank.halo,
            cut: rank.cut,
            bytes: rank.bytes,
            format: rank.format.name(),
            format_why: rank.format_choice.why.name(),
            formats: rank.format_choice.candidates.clone(),
            split,
        }
    }
}

impl Failed {
    fn new(failure: &DeviceFailure) -> Self {
        Self {
            device: failure.device.clone(),
            index: failure.index,
            error: in_flags(&failure.error),
            iterations: failure.iterations,
            lost_iterations: failure.lost_iterations,
        }
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
            moves: outcome.moves.iter().map(Moved::new).collect(),
            split: outcome.split.iter().map(|s| SplitSeconds::default().plus(s)).collect(),
        }
    }
}

impl Expected {
    fn new(forecast: &Forecast) -> Self {
        let considered = |set: &DeviceSet| Considered {
            devices: set.devices.clone(),
            microseconds_per_iteration: 1e6 * set.seconds,
            remembered: set.is_remembered,
        };
        Self {
            microseconds_per_iteration: forecast.seconds.map(|seconds| 1e6 * seconds),
            considered: forecast.considered.iter().map(considered).collect(),
        }
    }
}

impl Moved {
    fn new(one: &Move) -> Self {
        Self {
            iterations: one.iteration,
            kernel_microseconds: one.kernels.iter().map(|seconds| 1e6 * seconds).collect(),
            shares: one.shares.clone(),
            seconds: one.time.as_secs_f64(),
        }
    }
}

impl Switched {
    fn new(one: &Switch) -> Self {
        Self { iteration: one.iteration, from: one.from.name(), to: one.to.name(), curvature: one.curvature }
    }
}

impl SplitSeconds {
    fn plus(self, split: &Split) -> Self {
        Self {
            kernels: self.kernels + split.kernels.as_secs_f64(),
            sums: self.sums + split.sums.as_secs_f64(),
            halos: self.halos + split.halos.as_secs_f64(),
            host_wait: self.host_wait + split.host_wait.as_secs_f64(),
        }
    }
}
