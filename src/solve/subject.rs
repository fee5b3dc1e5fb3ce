//! What a solve is about: a matrix, or a function in its place.

use std::borrow::Cow;

use super::null_space::NullSpace;
use crate::distributed::share::Share;
use crate::error::Result;
use crate::runtime::{Setup, Whole};
use crate::verify::Residual;

/// A system as the rounds of a solve see it.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// A matrix, from which ranks can be opened anew, and what is known of its null space.
    Matrix(&'a Whole, Option<&'a NullSpace>),
    /// A function, on the host alone.
    Function {
        n: usize,
        setup: &'a Setup,
        /// Measures b − A x.
        residual: &'a (dyn Fn(&[f64], &[f64]) -> Residual + Sync),
    },
}

impl<'a> Subject<'a> {
    /// Where the rows are among those of other processes, if there are any.
    pub(super) fn share(self) -> Option<&'a Share> {
        self.whole().and_then(|whole| whole.share.as_deref())
    }

    /// Rows of the system, of all processes.
    pub(crate) fn order(self) -> usize {
        self.whole().map_or_else(|| self.n_rows(), Whole::order_of_all)
    }

    /// Elements of b.
    pub(crate) fn n_rows(self) -> usize {
        match self {
            Self::Matrix(whole, _) => whole.a.n_rows(),
            Self::Function { n, .. } => n,
        }
    }

    /// Elements of x.
    pub(crate) fn n_cols(self) -> usize {
        match self {
            Self::Matrix(whole, _) => whole.a.n_cols(),
            Self::Function { n, .. } => n,
        }
    }

    /// How it is solved.
    pub(crate) fn setup(self) -> &'a Setup {
        match self {
            Self::Matrix(whole, _) => &whole.setup,
            Self::Function { setup, .. } => setup,
        }
    }

    /// b − A x, in the order and units given.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn residual(self, b: &[f64], x: &[f64]) -> Result<Residual> {
        match self {
            Self::Matrix(whole, _) => whole.residual(b, x),
            Self::Function { .. } => Ok(self.residual_alone(b, x)),
        }
    }

    /// The same where there are no other processes.
    pub(crate) fn residual_alone(self, b: &[f64], x: &[f64]) -> Residual {
        match self {
            Self::Matrix(whole, _) => whole.residual_alone(b, x),
            Self::Function { residual, .. } => residual(b, x),
        }
    }

    /// What ranks can be opened from anew, if anything.
    pub(crate) fn whole(self) -> Option<&'a Whole> {
        match self {
            Self::Matrix(whole, _) => Some(whole),
            Self::Function { .. } => None,
        }
    }

    /// What is known of its null space, if the method needs to know: one that minimises ‖b − A x‖ does not.
    pub(super) fn null_space(self) -> Option<&'a NullSpace> {
        match self {
            Self::Matrix(whole, null_space) => null_space.filter(|_| !whole.setup.method.minimises()),
            Self::Function { .. } => None,
        }
    }

    /// What the ranks' matrix is multiplied by.
    pub(crate) fn factor(self) -> f64 {
        self.whole().map_or(1.0, |whole| whole.factor)
    }

    /// A right-hand side in the order of the ranks.
    pub(crate) fn rhs_of_ranks<'v>(self, b: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match self {
            Self::Matrix(whole, _) => whole.rhs_of_ranks(b),
            Self::Function { .. } => b,
        }
    }

    /// An iterate in the order of the ranks, and in their units if these are others.
    pub(crate) fn iterate_of_ranks<'v>(self, x: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match self {
            Self::Matrix(whole, _) => whole.iterate_of_ranks(x),
            Self::Function { .. } => x,
        }
    }

    /// And back, into `x`.
    pub(crate) fn iterate_as_given(self, y: &[f64], x: &mut [f64]) {
        match self {
            Self::Matrix(whole, _) => whole.iterate_as_given(y, x),
            Self::Function { .. } => x.copy_from_slice(y),
        }
    }

    /// The root mean square of the norms of the columns of the ranks' matrix, if its least squares are looked for; else 0.
    pub(crate) fn column_norm(self) -> f64 {
        let least_squares = self.whole().and_then(|whole| whole.least_squares.as_ref());
        least_squares.map_or(0.0, |least_squares| least_squares.column_norm() * self.factor())
    }
}
