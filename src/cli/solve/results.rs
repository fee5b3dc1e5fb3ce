//! Writing what a solve gave.

use std::io::{self, Write};

use declive::Outcome;
use declive::matrix::equivalent::Form;
use declive::matrix_market::write_vectors;

use super::plan::Plan;
use super::system::System;
use crate::report::DECLIVE;

/// Writes the solutions as the columns of one Matrix Market file, complex as the system is.
pub(super) fn solution(out: &mut dyn Write, plan: &Plan, system: &System, outcomes: &[Outcome]) -> io::Result<()> {
    let mut comments = vec![
        format!("x of A x = b, by declive {DECLIVE}"),
        format!("A: {}", one_line(&plan.source.to_string())),
        format!("b: {}", one_line(&system.rhs.0)),
    ];
    comments.extend(outcomes.iter().enumerate().map(|(k, outcome)| {
        format!("column {}: {}; relative residual {:.2e}", k + 1, outcome.reason, outcome.residual.relative_2)
    }));
    let columns = outcomes.iter().map(|outcome| outcome.x.as_slice());
    if system.complex.is_some() {
        let columns: Vec<_> = columns.map(|x| Form::General.solution(x)).collect();
        return write_vectors(out, &columns, &comments);
    }
    write_vectors(out, &columns.collect::<Vec<_>>(), &comments)
}

/// Writes the residual of each iteration.
pub(super) fn history(out: &mut dyn Write, outcomes: &[Outcome]) -> io::Result<()> {
    writeln!(out, "rhs,iteration,rel_residual_2")?;
    for (k, outcome) in outcomes.iter().enumerate() {
        for (iteration, residual) in (outcome.done..).zip(&outcome.history) {
            writeln!(out, "{},{iteration},{residual:e}", k + 1)?;
        }
    }
    Ok(())
}

/// A comment has one line, but a file's name may have more.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, "?")
}
