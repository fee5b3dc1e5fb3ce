//! A system as all ranks share it, whoever they are: what ranks are opened from, at first and anew.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, Weak};

use rayon::prelude::*;

use super::setup::Setup;
use crate::device::Info;
use crate::error::Result;
use crate::krylov::{IsFor, Method};
use crate::matrix::Csr;
use crate::matrix::reorder::{Permutation, permuted};
use crate::partition::part_alone;
use crate::precond::Precond;
use crate::precond::scaling::Scaling;
use crate::tune::formats::fingerprint;
use crate::tune::store::{PaceKey, Store, kinds, unusual};

/// A matrix, and what ranks make of it before they have it.
pub(crate) struct Whole {
    /// As given.
    pub(crate) a: Arc<Csr>,
    /// The order of the rows on the ranks, if it is not that given.
    pub(crate) order: Option<Permutation>,
    /// In the order of the ranks, as long as somebody has it.
    rows: Weak<Csr>,
    /// What the ranks' matrix is multiplied by.
    pub(crate) factor: f64,
    /// How it is to be solved: by a method that ranks know, and never by [`Method::Auto`].
    pub(crate) setup: Setup,
    /// What is kept of devices together.
    pub(crate) store: Store,
    /// A hash of the rows in the order of the ranks, once it was asked for.
    hash: OnceLock<String>,
}

impl Whole {
    /// Of `a`, which the ranks get as `rows`, in the order `order`. [`Method::Auto`] is `cg`: whoever knows better says so.
    pub(crate) fn new(
        a: Arc<Csr>,
        rows: &Arc<Csr>,
        order: Option<Permutation>,
        factor: f64,
        setup: &Setup,
        store: Store,
    ) -> Self {
        let method = if setup.method == Method::Auto { Method::Cg } else { setup.method };
        let (rows, setup) = (Arc::downgrade(rows), Setup { method, ..setup.clone() });
        Self { a, order, rows, factor, setup, store, hash: OnceLock::new() }
    }

    /// The matrix in the order of the ranks. If another order was made and nobody has the result any more, it is made
    /// again: to keep it would double the memory of the matrix.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the reordered matrix.
    pub(crate) fn rows(&self) -> Result<Arc<Csr>> {
        match (self.rows.upgrade(), &self.order) {
            (Some(rows), _) => Ok(rows),
            (None, Some(order)) => Ok(Arc::new(permuted(&self.a, order)?)),
            (None, None) => Ok(Arc::clone(&self.a)),
        }
    }

    /// A vector from the order given to that of the ranks.
    pub(crate) fn in_ranks_order<'v>(&self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match &self.order {
            Some(order) => Cow::Owned(order.apply(&v)),
            None => v,
        }
    }

    /// And back, into `to`.
    pub(crate) fn to_given_order(&self, v: &[f64], to: &mut [f64]) {
        match &self.order {
            Some(order) => order.undo_into(v, to),
            None => to.copy_from_slice(v),
        }
    }

    /// What the store knows the pace of ranks on these devices by; `rows` are in the order of the ranks.
    pub(crate) fn pace_key(&self, devices: &[Option<Info>], rows: &Csr) -> PaceKey {
        let hash = || fingerprint(&part_alone(rows, 0..rows.n_rows()), self.factor);
        self.key(devices, self.hash.get_or_init(hash))
    }

    /// The same, if somebody has asked for it before.
    pub(crate) fn known_pace_key(&self, devices: &[Option<Info>]) -> Option<PaceKey> {
        Some(self.key(devices, self.hash.get()?))
    }

    fn key(&self, devices: &[Option<Info>], hash: &str) -> PaceKey {
        let Setup { method, precond, precision, format, exchange, .. } = self.setup;
        PaceKey {
            system: hash.into(),
            rows: self.a.n_rows() as u64,
            entries: self.a.nnz() as u64,
            method: format!("{method}, {precond}, {precision}, {format}{}", unusual(exchange)),
            devices: kinds(devices),
            declive: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// The diagonal of `rows`, if the method asks for it; where it need not be positive, its absolute value, or, where that is 0,
    /// the largest absolute value of the row.
    pub(crate) fn diagonal(&self, rows: &Csr) -> Vec<f64> {
        if self.setup.precond != Precond::Jacobi {
            return Vec::new();
        }
        let mut diagonal = rows.diagonal();
        if self.setup.method.facts().is_for == IsFor::Symmetric {
            diagonal.par_iter_mut().enumerate().for_each(|(row, d)| {
                let values = &rows.values()[rows.row_ptr()[row]..rows.row_ptr()[row + 1]];
                let largest = || values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                *d = if *d == 0.0 { largest() } else { d.abs() };
            });
        }
        diagonal
    }

    /// What the system is scaled by, if that changes anything.
    pub(crate) fn scaling(&self, diagonal: &[f64]) -> Option<Scaling> {
        let scales = self.setup.method.facts().scales && self.setup.precond == Precond::Jacobi;
        scales.then(|| Scaling::of(diagonal, self.factor)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    #[test]
    fn rows_are_there_again() {
        let a = Arc::new(gallery::poisson2d([7, 5]).unwrap());
        let order = Permutation::new((0..35).rev().collect()).unwrap();
        let rows = Arc::new(permuted(&a, &order).unwrap());
        let expected = (*rows).clone();
        let whole = Whole::new(Arc::clone(&a), &rows, Some(order), 1.0, &Setup::default(), Store::none());
        assert!(Arc::ptr_eq(&whole.rows().unwrap(), &rows));
        drop(rows);
        assert_eq!(*whole.rows().unwrap(), expected);
        let same = Whole::new(Arc::clone(&a), &a, None, 1.0, &Setup::default(), Store::none());
        assert!(Arc::ptr_eq(&same.rows().unwrap(), &a));
    }
}
