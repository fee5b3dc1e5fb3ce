//! Writing what a solve gave.

use std::io::{self, Write};

use declive::distributed::Columns;
use declive::matrix::Complex64;
use declive::matrix::equivalent::Form;
use declive::matrix_market::{head_of_vectors, write_elements, write_vectors};
use declive::{Outcome, npz};

use super::plan::Plan;
use crate::report::DECLIVE;

/// Writes the solutions as the columns of one Matrix Market file, or of a `.npy` one, complex as the system is; b came from `rhs`.
pub(super) fn solution(
    out: &mut dyn Write,
    plan: &Plan,
    (rhs, is_complex): (&str, bool),
    outcomes: &[Outcome],
) -> io::Result<()> {
    let comments = comments(plan, rhs, outcomes);
    let columns: Vec<&[f64]> = outcomes.iter().map(|outcome| outcome.x.as_slice()).collect();
    if is_npy(plan) {
        npy(out, is_complex, &columns)
    } else if is_complex {
        write_vectors(out, &complex(&columns), &comments)
    } else {
        write_vectors(out, &columns, &comments)
    }
}

/// The same of columns of which several processes have parts, as they come.
pub(super) fn solution_of_several(
    out: &mut dyn Write,
    plan: &Plan,
    rhs: &str,
    outcomes: &[Outcome],
    columns: &mut Columns<'_>,
) -> io::Result<()> {
    let (shape, is_npy) = (columns.shape(), is_npy(plan));
    if is_npy {
        out.write_all(&npz::vectors_header::<f64>(shape))?;
    } else {
        out.write_all(head_of_vectors::<f64>(shape, &comments(plan, rhs, outcomes)).as_bytes())?;
    }
    for column in 0..outcomes.len() {
        let mut before = 0;
        columns.next(&mut |piece| {
            if is_npy {
                return out.write_all(bytemuck::cast_slice(piece));
            }
            write_elements(&mut *out, piece, [column, before])?;
            before += piece.len();
            Ok(())
        })?;
    }
    Ok(())
}

/// What a Matrix Market file says of the solutions.
fn comments(plan: &Plan, rhs: &str, outcomes: &[Outcome]) -> Vec<String> {
    let mut comments = vec![
        format!("x of A x = b, by declive {DECLIVE}"),
        format!("A: {}", one_line(&plan.source.to_string())),
        format!("b: {}", one_line(rhs)),
    ];
    comments.extend(outcomes.iter().enumerate().map(|(k, outcome)| {
        format!("column {}: {}; relative residual {:.2e}", k + 1, outcome.reason, outcome.residual.relative_2)
    }));
    comments
}

/// Whether the solution becomes a `.npy` file, which says nothing of how it was found.
pub(super) fn is_npy(plan: &Plan) -> bool {
    plan.output.as_ref().is_some_and(|output| output.has_extension("npy"))
}

/// Writes columns as a solution in a `.npy` file.
pub(super) fn npy(out: &mut dyn Write, is_complex: bool, columns: &[&[f64]]) -> io::Result<()> {
    if !is_complex {
        return npz::write_vectors(out, columns);
    }
    let columns = complex(columns);
    let slices: Vec<&[Complex64]> = columns.iter().map(Vec::as_slice).collect();
    npz::write_vectors(out, &slices)
}

fn complex(columns: &[&[f64]]) -> Vec<Vec<Complex64>> {
    columns.iter().map(|x| Form::General.solution(x)).collect()
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
