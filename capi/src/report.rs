//! What is known of a solver and its last solve, as JSON. Fields are called as in the report of the command.

use std::time::Duration;

use declive::matrix::AnyCsr;
use declive::solve::Options;
use declive::{Outcome, Solver};
use serde_json::{Value, json};

/// One document.
pub(crate) fn json(solver: &Solver, a: &AnyCsr, options: &Options, outcomes: &[Outcome<()>]) -> String {
    let times = solver.times();
    let rejected = solver.rejected().iter().map(|one| {
        json!({ "device": one.device.name, "index": one.device.index, "kind": one.device.kind.to_string(), "reason": one.reason })
    });
    let failures = solver.failures().iter().map(
        |one| json!({ "device": one.device, "index": one.index, "error": one.error, "iterations": one.iterations }),
    );
    let report = json!({
        "matrix": { "rows": a.n_rows(), "columns": a.n_cols(), "nnz": a.nnz(), "complex": a.is_complex() },
        "options": { "setup": options.setup, "stop": options.stop },
        "method": solver.method().name(),
        "precond": solver.precond().name(),
        "method_reason": solver.method_reason().map(|why| why.to_string()),
        "order": solver.reordering().to_string(),
        "hierarchy": solver.hierarchy(),
        "ranks": solver.ranks(),
        "rejected": rejected.collect::<Vec<Value>>(),
        "failures": failures.collect::<Vec<Value>>(),
        "note": solver.note(),
        "seconds": {
            "prepare": seconds(times.prepare),
            "reorder": seconds(times.reorder),
            "compile": seconds(times.compile),
            "upload": seconds(times.upload),
            "precond": seconds(times.precond),
            "tune": seconds(times.tune),
        },
        "solves": outcomes.iter().map(of_solve).collect::<Vec<Value>>(),
    });
    report.to_string()
}

/// How it went for one right-hand side.
fn of_solve(outcome: &Outcome<()>) -> Value {
    let residual = &outcome.residual;
    json!({
        "converged": outcome.reason.converged(),
        "reason": outcome.reason.name(),
        "reason_text": outcome.reason.to_string(),
        "iterations": outcome.iterations,
        "restarts": outcome.restarts,
        "side_by_side": outcome.side_by_side,
        "rel_residual_2": residual.relative_2,
        "recurrence_rel_residual_2": outcome.recurrence_rel_residual_2,
        "backward_error": residual.backward_error,
        "optimality": residual.optimality,
        "residual_2": residual.norm_2,
        "residual_inf": residual.norm_inf,
        "rhs_2": residual.rhs_norm_2,
        "bytes_per_iteration": outcome.bytes_per_iteration,
        "switches": outcome.switches,
        "moves": outcome.moves,
        "seconds": {
            "compile": seconds(outcome.compile),
            "upload": seconds(outcome.upload),
            "precond": seconds(outcome.precond),
            "solve": seconds(outcome.solve),
            "gather": seconds(outcome.gather),
            "verify": seconds(outcome.verify),
        },
    })
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
