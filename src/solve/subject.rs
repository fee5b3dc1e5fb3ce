//! What a solve is about: a matrix, or a function in its place.

use std::borrow::Cow;

use super::null_space::NullSpace;
use crate::runtime::{Setup, Whole};
use crate::verify::{self, Residual};

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
    /// Rows.
    pub(crate) fn n_rows(self) -> usize {
        match self {
            Self::Matrix(whole, _) => whole.a.n_rows(),
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
    pub(crate) fn residual(self, b: &[f64], x: &[f64]) -> Residual {
        match self {
            Self::Matrix(whole, _) => verify::residual(&whole.a, b, x),
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

    /// What is known of its null space.
    pub(super) fn null_space(self) -> Option<&'a NullSpace> {
        match self {
            Self::Matrix(_, null_space) => null_space,
            Self::Function { .. } => None,
        }
    }

    /// What the ranks' matrix is multiplied by.
    pub(crate) fn factor(self) -> f64 {
        self.whole().map_or(1.0, |whole| whole.factor)
    }

    /// A vector from the order given to that of the ranks.
    pub(crate) fn in_ranks_order<'v>(self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match self {
            Self::Matrix(whole, _) => whole.in_ranks_order(v),
            Self::Function { .. } => v,
        }
    }

    /// And back, into `to`.
    pub(crate) fn to_given_order(self, v: &[f64], to: &mut [f64]) {
        match self {
            Self::Matrix(whole, _) => whole.to_given_order(v, to),
            Self::Function { .. } => to.copy_from_slice(v),
        }
    }
}
