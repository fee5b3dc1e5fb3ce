//! Right-hand sides and first guesses of which each process has its rows.

use std::ops::Range;
use std::path::Path;

use declive::distributed::{Processes, Rows, agreed, from_first};
use declive::matrix::AnyVectors;
use declive::{Error, npz};

use crate::cli::failure::Failure;
use crate::cli::input::Input;
use crate::cli::progress::Screen;
use crate::cli::rhs::Recipe;
use crate::cli::solve::plan::{Plan, Rhs};

/// This process's parts of vectors.
pub(super) struct Vectors {
    pub(super) b: Vec<Vec<f64>>,
    /// None, one for all columns, or one for each.
    x0: Vec<Vec<f64>>,
    /// Where b comes from, and whether that was nobody's choice.
    pub(super) source: String,
    pub(super) is_default: bool,
}

impl Vectors {
    pub(super) fn new(plan: &Plan, processes: &dyn Processes, rows: &Rows, screen: Screen) -> Result<Self, Failure> {
        let own = rows.own(processes);
        let (b, is_default) = match &plan.rhs {
            Rhs::Input(input) => (read(input, processes, rows, screen)?, false),
            Rhs::Made(recipe) => (made(*recipe, rows, own), false),
            Rhs::Default => (made(Recipe::default(), rows, own), true),
        };
        let x0 = plan.x0.as_ref().map_or(Ok(Vec::new()), |input| read(input, processes, rows, screen))?;
        if x0.len() > 1 && x0.len() != b.len() {
            return Err(Failure::usage(format!(
                "the initial guess has {} columns, but the right-hand side {}; give one, or one for each",
                x0.len(),
                b.len()
            )));
        }
        Ok(Self { b, x0, source: plan.rhs.to_string(), is_default })
    }

    pub(super) fn x0(&self, k: usize) -> Option<&[f64]> {
        self.x0.get(k).or(self.x0.first()).map(Vec::as_slice)
    }
}

/// The right-hand sides of a recipe.
fn made(recipe: Recipe, rows: &Rows, own: Range<u64>) -> Vec<Vec<f64>> {
    recipe.make_part(own, |x| rows.product(x))
}

/// This process's rows of vectors in a file: of an array of NumPy's, each reads its own.
fn read(input: &Input, processes: &dyn Processes, rows: &Rows, screen: Screen) -> Result<Vec<Vec<f64>>, Failure> {
    if let Input::File(path) = input {
        // a file may be there on one host alone
        let mut can_all = vec![0; processes.count()];
        processes.gather(&[u64::from(npz::is_npy(path))], &mut can_all)?;
        if can_all.iter().all(|can| *can == 1) {
            return own_rows(path, input, processes, rows);
        }
    }
    let read = || real(input.columns(screen)?, input).and_then(|vectors| of_length(vectors, input, rows.n_rows()));
    let mut whole = of_all(processes, if processes.process() == 0 { read() } else { Ok(Vec::new()) })?;
    let mut counts = vec![0; processes.count()];
    processes.gather(&[whole.len() as u64], &mut counts)?;
    whole.resize(counts[0] as usize, Vec::new());
    let part = |column: Vec<f64>| {
        let mut rest = &column[..];
        from_first(processes, rows.starts(), &mut |piece| {
            let (next, behind) = rest.split_at(piece.len());
            piece.copy_from_slice(next);
            rest = behind;
        })
    };
    Ok(whole.into_iter().map(part).collect::<Result<_, _>>()?)
}

/// This process's rows of an array.
fn own_rows(path: &Path, input: &Input, processes: &dyn Processes, rows: &Rows) -> Result<Vec<Vec<f64>>, Failure> {
    let read = || {
        let (all, vectors) = npz::read_rows(path, rows.own(processes))?;
        if all != rows.n_rows() {
            return Err(wrong_length(input, all, rows.n_rows()));
        }
        let vectors = real(vectors, input)?;
        match vectors.iter().flatten().position(|v| !v.is_finite()) {
            Some(_) => Err(Failure::usage(format!("{input} has elements that are infinite or no numbers"))),
            None => Ok(vectors),
        }
    };
    of_all(processes, read())
}

fn real(vectors: AnyVectors, input: &Input) -> Result<Vec<Vec<f64>>, Failure> {
    vectors.into_real().ok_or_else(|| Failure::usage(format!("{input} is complex, but the matrix is real")))
}

fn of_length(vectors: Vec<Vec<f64>>, input: &Input, rows: u64) -> Result<Vec<Vec<f64>>, Failure> {
    match vectors.iter().find(|v| v.len() as u64 != rows) {
        Some(wrong) => Err(wrong_length(input, wrong.len() as u64, rows)),
        None => Ok(vectors),
    }
}

fn wrong_length(input: &Input, found: u64, rows: u64) -> Failure {
    Failure::usage(format!("{input} has {found} rows, but the matrix has {rows}"))
}

/// What all have, if none has failed: else its own failure, or that another one has.
fn of_all<R>(processes: &dyn Processes, own: Result<R, Failure>) -> Result<R, Failure> {
    let told = agreed(processes, own.as_ref().map(|_| ()).map_err(|failure| Error::Usage(failure.to_string())));
    let own = own?;
    told?;
    Ok(own)
}
