//! Reading the system.

use std::sync::Arc;

use declive::matrix_market::Zeros;
use declive::{Csr, Error};

use super::plan::{Plan, Rhs};
use crate::cli::failure::Failure;
use crate::cli::input::{Loaded, of_length};
use crate::cli::progress::Screen;
use crate::cli::rhs::Recipe;

/// A x = b with the initial guesses, all of matching sizes.
#[derive(Debug)]
pub(super) struct System {
    pub(super) a: Arc<Csr>,
    pub(super) duplicates: u64,
    /// Columns of b, at least one.
    pub(super) b: Vec<Vec<f64>>,
    /// Where b comes from, and whether that was nobody's choice.
    pub(super) rhs: (String, bool),
    /// None, one for all columns, or one for each.
    x0: Vec<Vec<f64>>,
}

impl System {
    /// Reads or makes all parts.
    pub(super) fn read(plan: &Plan, screen: Screen) -> Result<Self, Failure> {
        let Loaded { a, duplicates, b: beside, .. } = plan.source.load(Zeros::Keep, true, screen)?;
        let a = plan.source.real(a)?;
        if a.n_rows() != a.n_cols() {
            let error = Error::NotSquare { rows: a.n_rows(), cols: a.n_cols() };
            return Err(Failure::about(&plan.source, error));
        }
        let named = (plan.rhs.to_string(), false);
        let (b, rhs) = match (&plan.rhs, beside) {
            (Rhs::Input(input), _) => (input.columns(a.n_rows(), screen)?, named),
            (Rhs::Made(recipe), _) => (vec![recipe.make(&a)], named),
            (Rhs::Default, Some(b)) => {
                let name = format!("the right-hand side in {}", plan.source);
                (of_length(b, a.n_rows(), name.clone())?, (name, false))
            }
            (Rhs::Default, None) => (vec![Recipe::default().make(&a)], (Recipe::default().to_string(), true)),
        };
        let x0 = match &plan.x0 {
            Some(input) => {
                let x0 = input.columns(a.n_rows(), screen)?;
                if x0.len() != 1 && x0.len() != b.len() {
                    return Err(Failure::usage(format!(
                        "{input} has {} columns, but the right-hand side ({}) has {}; give one, or one for each",
                        x0.len(),
                        rhs.0,
                        b.len()
                    )));
                }
                x0
            }
            None => Vec::new(),
        };
        Ok(Self { a: Arc::new(a), duplicates, b, rhs, x0 })
    }

    /// The initial guess for column `k` of b.
    pub(super) fn x0(&self, k: usize) -> Option<&[f64]> {
        self.x0.get(k).or(self.x0.first()).map(Vec::as_slice)
    }
}
