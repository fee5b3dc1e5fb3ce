//! The facts about a solve as one JSON document, by the names that the command's has.

use std::time::Duration;

use declive::Outcome;
use declive::device::Rejected;
use declive::matrix::Equilibrated;
use declive::matrix::stats::Stats;
use declive::solve::{
    DenseFactors, DeviceFailure, Forecast, Hierarchy, Method, Move, OperatorSolver, Options, Precond, RankInfo,
    Remembered, Setup, SetupTimes, Solver, Split, Stop, Switch,
};
use serde::Serialize;

use crate::devices::json;

/// How one right-hand side went.
#[derive(Serialize)]
pub(crate) struct Solve {
    converged: bool,
    reason: &'static str,
    reason_text: String,
    iterations: u64,
    restarts: u32,
    side_by_side: usize,
    rel_residual_2: f64,
    recurrence_rel_residual_2: f64,
    backward_error: f64,
    optimality: Option<f64>,
    residual_2: f64,
    residual_inf: f64,
    rhs_2: f64,
    bytes_per_iteration: u64,
    microseconds_per_iteration: Option<f64>,
    gigabytes_per_second: Option<f64>,
    switches: Vec<Switch>,
    moves: Vec<Move>,
    seconds: Seconds,
    split: Vec<Split>,
}

/// Where its time went.
#[derive(Serialize)]
struct Seconds {
    compile: f64,
    upload: f64,
    precond: f64,
    solve: f64,
    gather: f64,
    verify: f64,
}

impl Solve {
    pub(crate) fn new<X>(outcome: &Outcome<X>) -> Self {
        let (seconds, count) = (outcome.solve.as_secs_f64(), (outcome.iterations - outcome.done) as f64);
        let has_rate = count > 0.0 && seconds > 0.0;
        Self {
            converged: outcome.reason.converged(),
            reason: outcome.reason.name(),
            reason_text: outcome.reason.text(),
            iterations: outcome.iterations,
            restarts: outcome.restarts,
            side_by_side: outcome.side_by_side,
            rel_residual_2: outcome.residual.relative_2,
            recurrence_rel_residual_2: outcome.recurrence_rel_residual_2,
            backward_error: outcome.residual.backward_error,
            optimality: outcome.residual.optimality,
            residual_2: outcome.residual.norm_2,
            residual_inf: outcome.residual.norm_inf,
            rhs_2: outcome.residual.rhs_norm_2,
            bytes_per_iteration: outcome.bytes_per_iteration,
            microseconds_per_iteration: has_rate.then(|| 1e6 * seconds / count),
            gigabytes_per_second: has_rate.then(|| 1e-9 * outcome.bytes_per_iteration as f64 * count / seconds),
            switches: outcome.switches.clone(),
            moves: outcome.moves.clone(),
            seconds: Seconds {
                compile: outcome.compile.as_secs_f64(),
                upload: outcome.upload.as_secs_f64(),
                precond: outcome.precond.as_secs_f64(),
                solve: seconds,
                gather: outcome.gather.as_secs_f64(),
                verify: outcome.verify.as_secs_f64(),
            },
            split: outcome.split.clone(),
        }
    }
}

/// What all right-hand sides have in common.
#[derive(Serialize)]
struct Common<'a> {
    declive: &'static str,
    method: Method,
    precond: Precond,
    method_reason: Option<String>,
    setup: &'a Setup,
    stop: &'a Stop,
    seconds: SetupSeconds,
    ranks: &'a [RankInfo],
    note: Option<&'a str>,
    #[serde(flatten)]
    of_matrix: Option<OfMatrix<'a>>,
}

/// What is known where there is a matrix.
#[derive(Serialize)]
struct OfMatrix<'a> {
    matrix: Matrix,
    order: String,
    equilibrated: Option<Equilibrated>,
    remembered: Option<&'a Remembered>,
    hierarchy: Option<&'a Hierarchy>,
    dense: Option<DenseFactors>,
    precond_entries: &'a [usize],
    rejected: Vec<NotUsed<'a>>,
    failures: Vec<Failed<'a>>,
    forecast: &'a Forecast,
}

/// Where the time of the set-up went.
#[derive(Default, Serialize)]
struct SetupSeconds {
    prepare: f64,
    reorder: f64,
    compile: f64,
    upload: f64,
    precond: f64,
    tune: f64,
}

impl From<SetupTimes> for SetupSeconds {
    fn from(times: SetupTimes) -> Self {
        let SetupTimes { prepare, reorder, compile, upload, precond, tune, .. } = times;
        let [prepare, reorder, compile, upload, precond, tune] =
            [prepare, reorder, compile, upload, precond, tune].map(|time: Duration| time.as_secs_f64());
        Self { prepare, reorder, compile, upload, precond, tune }
    }
}

#[derive(Serialize)]
struct Matrix {
    rows: usize,
    columns: usize,
    nnz: usize,
    complex: bool,
    hermitian: bool,
    bandwidth: usize,
    row_min: usize,
    row_max: usize,
    row_mean: f64,
}

impl Matrix {
    /// That of these, or the complex one that they are the real form of.
    fn new(stats: &Stats, is_complex: bool) -> Self {
        let parts = if is_complex { 2 } else { 1 };
        Self {
            rows: stats.n_rows / parts,
            columns: stats.n_cols / parts,
            nnz: stats.nnz / (parts * parts),
            complex: is_complex,
            hermitian: stats.numerically_symmetric,
            bandwidth: stats.bandwidth / parts,
            row_min: stats.row_min / parts,
            row_max: stats.row_max / parts,
            row_mean: stats.row_mean / parts as f64,
        }
    }
}

#[derive(Serialize)]
struct NotUsed<'a> {
    device: &'a str,
    index: usize,
    reason: &'a str,
}

impl<'a> From<&'a Rejected> for NotUsed<'a> {
    fn from(rejected: &'a Rejected) -> Self {
        Self { device: &rejected.device.name, index: rejected.device.index, reason: &rejected.reason }
    }
}

#[derive(Serialize)]
struct Failed<'a> {
    device: &'a str,
    index: usize,
    error: String,
    iterations: Option<u64>,
    lost_iterations: u64,
}

impl<'a> From<&'a DeviceFailure> for Failed<'a> {
    fn from(failure: &'a DeviceFailure) -> Self {
        Self {
            device: &failure.device,
            index: failure.index,
            error: failure.error.to_string(),
            iterations: failure.iterations,
            lost_iterations: failure.lost_iterations,
        }
    }
}

/// The document of a solver of a matrix, which may be the real form of a complex one.
pub(crate) fn of_solver(solver: &Solver, method_reason: Option<String>, is_complex: bool, options: &Options) -> String {
    json(&Common {
        declive: env!("CARGO_PKG_VERSION"),
        method: solver.method(),
        precond: solver.precond(),
        method_reason,
        setup: &options.setup,
        stop: &options.stop,
        seconds: solver.times().into(),
        ranks: solver.ranks(),
        note: solver.note(),
        of_matrix: Some(OfMatrix {
            matrix: Matrix::new(solver.stats(), is_complex),
            order: solver.reordering().to_string(),
            equilibrated: solver.equilibrated(),
            remembered: solver.remembered(),
            hierarchy: solver.hierarchy(),
            dense: solver.dense_factors(),
            precond_entries: solver.precond_entries(),
            rejected: solver.rejected().iter().map(NotUsed::from).collect(),
            failures: solver.failures().iter().map(Failed::from).collect(),
            forecast: solver.forecast(),
        }),
    })
}

/// The same of a solver of a function.
pub(crate) fn of_operator(solver: &OperatorSolver<'_>, options: &Options) -> String {
    json(&Common {
        declive: env!("CARGO_PKG_VERSION"),
        method: solver.method(),
        precond: solver.precond(),
        method_reason: solver.method_reason().map(|reason| reason.to_string()),
        setup: &options.setup,
        stop: &options.stop,
        seconds: SetupSeconds::default(),
        ranks: solver.ranks(),
        note: solver.note(),
        of_matrix: None,
    })
}
