//! What preconditioners take and save.

use std::fmt;
use std::time::Duration;

use declive::solve::{Hierarchy, Method, Precision, Precond, Solver};
use declive::{Outcome, Reason};
use serde::Serialize;

use super::bench::Matrix;
use super::distinct;
use super::layout::Text;
use super::units::{count, exact, figure, percent, plural, scientific};

/// All that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) matrix: Matrix,
    pub(crate) precision: Precision,
    pub(crate) devices: String,
    pub(crate) rtol: f64,
    pub(crate) max_iters: u64,
    /// Set-ups and solves of each.
    pub(crate) repeat: usize,
    pub(crate) entries: Vec<Entry>,
    /// What could not be measured.
    pub(crate) notes: Vec<String>,
}

/// A preconditioner on a device or on all: medians over its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Entry {
    /// `[0]`, `host` or `all`.
    label: String,
    method: Method,
    precond: Precond,
    /// To set it up, and nothing else.
    set_up_seconds: f64,
    /// The iterations.
    solve_seconds: f64,
    iterations: u64,
    iteration_seconds: Option<f64>,
    /// What an iteration takes more than one without a preconditioner, which may be less than nothing to speak of.
    application_seconds: Option<f64>,
    converged: bool,
    reason: &'static str,
    /// ‖b − A x‖₂ / ‖b‖₂, recomputed; the largest of all runs.
    rel_residual_2: f64,
    /// Entries of its matrices, if it has some.
    entries: Vec<usize>,
    /// Of multigrid, level by level.
    hierarchy: Option<Hierarchy>,
}

impl Entry {
    /// Of a solver, and at least one run; an iteration without a preconditioner takes `bare`.
    pub(crate) fn new(label: &str, solver: &Solver, runs: &[(Duration, Outcome)], bare: Option<Duration>) -> Self {
        let outcomes = || runs.iter().map(|(_, outcome)| outcome);
        let solve_seconds = median(outcomes().map(|outcome| outcome.solve.as_secs_f64()));
        let iterations = outcomes().map(|outcome| outcome.iterations).max().unwrap_or(0);
        let iteration_seconds = (iterations > 0).then(|| solve_seconds / iterations as f64);
        let bare = bare.filter(|_| solver.precond() != Precond::None);
        let failed = outcomes().map(|outcome| outcome.reason).find(|reason| !reason.converged());
        Self {
            label: label.into(),
            method: solver.method(),
            precond: solver.precond(),
            set_up_seconds: median(runs.iter().map(|(set_up, _)| set_up.as_secs_f64())),
            solve_seconds,
            iterations,
            iteration_seconds,
            application_seconds: iteration_seconds.zip(bare).map(|(each, bare)| each - bare.as_secs_f64()),
            converged: failed.is_none(),
            reason: failed
                .or(outcomes().map(|outcome| outcome.reason).next())
                .map_or("", |reason: Reason| reason.name()),
            rel_residual_2: outcomes().map(|outcome| outcome.residual.relative_2).fold(0.0, f64::max),
            entries: solver.precond_entries().to_vec(),
            hierarchy: solver.hierarchy().cloned(),
        }
    }

    fn row(&self) -> [String; 7] {
        let micros = |seconds: Option<f64>| seconds.map_or_else(|| "–".into(), |seconds| figure(1e6 * seconds));
        let in_all = 1e3 * (self.set_up_seconds + self.solve_seconds);
        [
            self.precond.to_string(),
            millis(self.set_up_seconds),
            micros(self.iteration_seconds),
            micros(self.application_seconds.map(|seconds| seconds.max(0.0))),
            count(self.iterations),
            if self.converged { figure(in_all) } else { self.reason.into() },
            scientific(self.rel_residual_2),
        ]
    }
}

/// Milliseconds, of what took some microseconds at least.
fn millis(seconds: f64) -> String {
    if seconds < 2e-6 { "–".into() } else { figure(1e3 * seconds) }
}

fn median(seconds: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = seconds.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        text.paragraph(&format!(
            "Solves to a relative residual of {}, at most {}: medians of {}.",
            exact(self.rtol),
            plural(self.max_iters, "iteration"),
            plural(self.repeat, "run")
        ));
        text.section("System");
        let matrix = &self.matrix;
        let entries = count(matrix.nnz);
        text.line("matrix", &format!("{}, {}, {entries} entries", matrix.source, plural(matrix.rows, "row")));
        text.line("precision", self.precision.name());
        for label in distinct(self.entries.iter().map(|entry| &*entry.label)) {
            self.table(&mut text, label);
        }
        for note in &self.notes {
            text.gap();
            text.paragraph(&format!("Note: {note}."));
        }
        text.gap();
        text.paragraph(
            "Set-up is that of the preconditioner alone. Each is an iteration; apply is what it takes more than one without a \
             preconditioner. In all is set-up and iterations, or why a solve has ended without meeting its test. The residual is \
             recomputed on the host.",
        );
        f.write_str(&text.finish())
    }
}

impl Report {
    /// The preconditioners on a device, and the levels of multigrid.
    fn table(&self, text: &mut Text, label: &str) {
        let entries: Vec<&Entry> = self.entries.iter().filter(|entry| entry.label == label).collect();
        let method = entries.first().map_or("", |entry| entry.method.name());
        text.section(&format!("{method} on {label}"));
        let head = ["precond", "set-up ms", "each µs", "apply µs", "iterations", "in all ms", "residual"];
        let left = [true, false, false, false, false, false, false];
        let rows: Vec<[String; 7]> = entries.iter().map(|entry| entry.row()).collect();
        text.table(head, left, &rows);
        for hierarchy in entries.iter().filter_map(|entry| entry.hierarchy.as_ref()) {
            text.gap();
            levels(text, hierarchy);
        }
    }
}

fn levels(text: &mut Text, hierarchy: &Hierarchy) {
    let whole = hierarchy.levels.first().map_or(1, |first| first.nnz.max(1)) as f64;
    let rows: Vec<[String; 5]> = hierarchy
        .levels
        .iter()
        .enumerate()
        .map(|(k, level)| {
            [
                k.to_string(),
                count(level.rows),
                count(level.nnz),
                percent(level.nnz as f64, whole),
                millis(level.time.as_secs_f64()),
            ]
        })
        .collect();
    text.table(["level of amg", "rows", "entries", "", "set-up ms"], [false; 5], &rows);
}
