//! Reading the system.

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::sync::Arc;

use declive::matrix_market::{read_matrix_with, read_vectors, read_vectors_from};
use declive::{Csr, Error};

use super::plan::{Input, Plan, Rhs, Source};
use crate::cli::failure::Failure;
use crate::cli::progress::Screen;
use crate::cli::rhs::Recipe;

/// A x = b with the initial guesses, all of matching sizes.
#[derive(Debug)]
pub(super) struct System {
    pub(super) a: Arc<Csr>,
    pub(super) duplicates: u64,
    /// Columns of b, at least one.
    pub(super) b: Vec<Vec<f64>>,
    /// None, one for all columns, or one for each.
    x0: Vec<Vec<f64>>,
}

impl System {
    /// Reads or makes all parts.
    pub(super) fn read(plan: &Plan, screen: Screen) -> Result<Self, Failure> {
        let (a, duplicates) = match &plan.source {
            Source::Input(input) => matrix(input, screen)?,
            Source::Generated(spec) => {
                let _shown = screen.working(&format!("generating {spec}"));
                (spec.build()?, 0)
            }
        };
        log::info!("{}: {} rows, {} entries", plan.source, a.n_rows(), a.nnz());
        if a.n_rows() != a.n_cols() {
            let error = Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() };
            return Err(Failure::about(&plan.source, error));
        }
        let b = match &plan.rhs {
            Rhs::Input(input) => columns(input, a.n_rows(), screen)?,
            Rhs::Made(recipe) => vec![recipe.make(&a)],
            Rhs::Default => vec![Recipe::default().make(&a)],
        };
        let x0 = match &plan.x0 {
            Some(input) => {
                let x0 = columns(input, a.n_rows(), screen)?;
                if x0.len() != 1 && x0.len() != b.len() {
                    let (guesses, rhs) = (x0.len(), b.len());
                    return Err(Failure::usage(format!(
                        "{input} has {guesses} columns, but the right-hand side ({}) has {rhs}; give one, or one for each",
                        plan.rhs
                    )));
                }
                x0
            }
            None => Vec::new(),
        };
        Ok(Self { a: Arc::new(a), duplicates, b, x0 })
    }

    /// The initial guess for column `k` of b.
    pub(super) fn x0(&self, k: usize) -> Option<&[f64]> {
        self.x0.get(k).or(self.x0.first()).map(Vec::as_slice)
    }
}

fn matrix(input: &Input, screen: Screen) -> Result<(Csr, u64), Failure> {
    let name = input.to_string();
    log::info!("reading {name}");
    let bar = screen.entries(&name);
    let mut progress = |read, claimed| bar.update(read, claimed);
    let reader: Box<dyn BufRead> = match input {
        Input::Stdin => Box::new(stdin().lock()),
        Input::File(path) => Box::new(BufReader::new(File::open(path).map_err(|e| Error::io(path, e))?)),
    };
    let matrix = read_matrix_with(reader, &name, &mut progress)?;
    Ok((matrix.a, matrix.duplicates as u64))
}

fn columns(input: &Input, rows: usize, screen: Screen) -> Result<Vec<Vec<f64>>, Failure> {
    let name = input.to_string();
    let _shown = screen.working(&format!("reading {name}"));
    let columns = match input {
        Input::Stdin => read_vectors_from(stdin().lock(), &name)?,
        Input::File(path) => read_vectors(path)?,
    };
    match columns.first() {
        None => Err(Failure::usage(format!("{name} has no columns"))),
        Some(first) if first.len() != rows => {
            Err(Error::SizeMismatch { what: name, expected: rows, found: first.len() }.into())
        }
        Some(_) => Ok(columns),
    }
}
