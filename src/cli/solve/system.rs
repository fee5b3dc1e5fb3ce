//! Reading the system.

use std::sync::Arc;

use declive::Csr;
use declive::matrix::equivalent::{Form, real_form};
use declive::matrix::symmetry::Symmetries;
use declive::matrix::{AnyCsr, AnyVectors, Complex64};
use declive::matrix_market::Zeros;
use declive::solve::NearNull;

use super::plan::{Plan, Rhs};
use crate::cli::failure::Failure;
use crate::cli::input::{Loaded, of_length};
use crate::cli::progress::Screen;
use crate::cli::rhs::Recipe;

/// A x = b with the initial guesses, all of matching sizes. If they are complex, A is the real form, and vectors are real and
/// imaginary parts by turns.
#[derive(Debug)]
pub(super) struct System {
    pub(super) a: Arc<Csr>,
    /// The matrix as it was read, if it is complex.
    pub(super) complex: Option<Complex>,
    pub(super) duplicates: u64,
    /// Columns of b, at least one.
    pub(super) b: Vec<Vec<f64>>,
    /// Where b comes from, and whether that was nobody's choice.
    pub(super) rhs: (String, bool),
    /// None, one for all columns, or one for each.
    x0: Vec<Vec<f64>>,
    /// What multigrid interpolates well, if something was said about that.
    pub(super) near_null: Option<NearNull>,
}

/// A complex matrix.
#[derive(Debug)]
pub(super) struct Complex {
    pub(super) a: Arc<Csr<Complex64>>,
    /// Whether it is its own transpose.
    pub(super) is_symmetric: bool,
}

impl System {
    /// Reads or makes all parts.
    pub(super) fn read(plan: &Plan, screen: Screen) -> Result<Self, Failure> {
        let Loaded { a, duplicates, b: beside, .. } = plan.source.load(Zeros::Keep, true, screen)?;
        let named = (plan.rhs.to_string(), false);
        let (b, rhs) = match (&plan.rhs, beside) {
            (Rhs::Input(input), _) => (vectors_for(&a, a.n_rows(), input.columns(screen)?, input.to_string())?, named),
            (Rhs::Made(recipe), _) => (made(*recipe, &a), named),
            (Rhs::Default, Some(b)) => {
                let name = format!("the right-hand side in {}", plan.source);
                (vectors_for(&a, a.n_rows(), b, name.clone())?, (name, false))
            }
            (Rhs::Default, None) => (made(Recipe::default(), &a), (Recipe::default().to_string(), true)),
        };
        let x0 = match &plan.x0 {
            Some(input) => {
                let x0 = vectors_for(&a, a.n_cols(), input.columns(screen)?, input.to_string())?;
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
        let (a, complex) = match a {
            AnyCsr::Real(a) => (a, None),
            AnyCsr::Complex(a) => {
                let form = real_form(&a).map_err(|error| Failure::about(&plan.source, error))?;
                let is_symmetric = Symmetries::of(&a).is_some_and(|found| found.symmetric.holds);
                (form, Some(Complex { a: Arc::new(a), is_symmetric }))
            }
        };
        let near_null = plan.near.read(&a, complex.is_some(), screen)?;
        Ok(Self { a: Arc::new(a), complex, duplicates, b, rhs, x0, near_null })
    }

    /// The initial guess for column `k` of b.
    pub(super) fn x0(&self, k: usize) -> Option<&[f64]> {
        self.x0.get(k).or(self.x0.first()).map(Vec::as_slice)
    }
}

/// Vectors of `n` elements that were read, as a system of `a` has them. A real system has no complex ones.
fn vectors_for(a: &AnyCsr, n: usize, vectors: AnyVectors, name: String) -> Result<Vec<Vec<f64>>, Failure> {
    match (a, vectors) {
        (AnyCsr::Real(_), AnyVectors::Real(vectors)) => of_length(vectors, n, name),
        (AnyCsr::Real(_), AnyVectors::Complex(_)) => Err(Failure::usage(format!(
            "{name} is complex, but the matrix is real; give the real and the imaginary parts as columns of a real file"
        ))),
        (AnyCsr::Complex(_), vectors) => {
            let vectors = of_length(vectors.into_complex(), n, name)?;
            Ok(vectors.iter().map(|v| Form::General.right_hand_side(v)).collect())
        }
    }
}

fn made(recipe: Recipe, a: &AnyCsr) -> Vec<Vec<f64>> {
    match a {
        AnyCsr::Real(a) => recipe.make(a),
        AnyCsr::Complex(a) => recipe.make(a).iter().map(|b| Form::General.right_hand_side(b)).collect(),
    }
}
