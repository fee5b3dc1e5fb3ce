//! A system as all ranks share it, whoever they are: what ranks are opened from, at first and anew.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, Weak};

use rayon::prelude::*;

use super::scaling::Scaling;
use super::{Method, Precond, Setup};
use crate::device::Info;
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::reorder::{Permutation, permuted};
use crate::partition::part_alone;
use crate::tune::formats::fingerprint;
use crate::tune::store::{PaceKey, Store, kinds, unusual};

/// A matrix, and what ranks make of it before they have it.
pub(super) struct Whole {
    /// As given.
    pub(super) a: Arc<Csr>,
    /// The order of the rows on the ranks, if it is not that given.
    pub(super) order: Option<Permutation>,
    /// In the order of the ranks, as long as somebody has it.
    rows: Weak<Csr>,
    /// What the ranks' matrix is multiplied by.
    pub(super) factor: f64,
    /// How it is to be solved: by a method that ranks know, and never by [`Method::Auto`].
    pub(super) setup: Setup,
    /// Whether that method was left to be chosen.
    pub(super) chooses_method: bool,
    /// What is kept of devices together.
    pub(super) store: Store,
    /// A hash of the rows in the order of the ranks, once it was asked for.
    hash: OnceLock<String>,
}

impl Whole {
    /// Of `a`, which the ranks get as `rows`, in the order `order`. As long as nothing else is [chosen](Whole::choose_method),
    /// [`Method::Auto`] stands for `cg`.
    pub(super) fn new(
        a: Arc<Csr>,
        rows: &Arc<Csr>,
        order: Option<Permutation>,
        factor: f64,
        setup: &Setup,
        store: Store,
    ) -> Self {
        let chooses_method = setup.method == Method::Auto;
        let method = if chooses_method { Method::Cg } else { setup.method };
        let (rows, setup) = (Arc::downgrade(rows), Setup { method, ..setup.clone() });
        Self { a, order, rows, factor, setup, chooses_method, store, hash: OnceLock::new() }
    }

    /// Several ranks follow this method from now on, if it was left to be chosen.
    pub(super) fn choose_method(&mut self, method: Method) {
        if self.chooses_method {
            self.setup.method = method;
        }
    }

    /// The method of so many ranks. One alone meets nobody: where it was left to be chosen, that is `cg`.
    pub(super) fn method(&self, ranks: usize) -> Method {
        if self.chooses_method && ranks == 1 { Method::Cg } else { self.setup.method }
    }

    /// The matrix in the order of the ranks. If another order was made and nobody has the result any more, it is made
    /// again: to keep it would double the memory of the matrix.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the reordered matrix.
    pub(super) fn rows(&self) -> Result<Arc<Csr>> {
        match (self.rows.upgrade(), &self.order) {
            (Some(rows), _) => Ok(rows),
            (None, Some(order)) => Ok(Arc::new(permuted(&self.a, order)?)),
            (None, None) => Ok(Arc::clone(&self.a)),
        }
    }

    /// A vector from the order given to that of the ranks.
    pub(super) fn in_ranks_order<'v>(&self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match &self.order {
            Some(order) => Cow::Owned(order.apply(&v)),
            None => v,
        }
    }

    /// And back.
    pub(super) fn in_given_order<'v>(&self, v: Cow<'v, [f64]>) -> Cow<'v, [f64]> {
        match &self.order {
            Some(order) => Cow::Owned(order.undo(&v)),
            None => v,
        }
    }

    /// What the store knows the pace of ranks on these devices by; `rows` are in the order of the ranks.
    pub(super) fn pace_key(&self, method: Method, devices: &[Option<Info>], rows: &Csr) -> PaceKey {
        let hash = || fingerprint(&part_alone(rows, 0..rows.n_rows()), self.factor);
        self.key(method, devices, self.hash.get_or_init(hash))
    }

    /// The same, if somebody has asked for it before.
    pub(super) fn known_pace_key(&self, method: Method, devices: &[Option<Info>]) -> Option<PaceKey> {
        Some(self.key(method, devices, self.hash.get()?))
    }

    fn key(&self, method: Method, devices: &[Option<Info>], hash: &str) -> PaceKey {
        let Setup { precond, precision, format, exchange, .. } = self.setup;
        PaceKey {
            system: hash.into(),
            rows: self.a.n_rows() as u64,
            entries: self.a.nnz() as u64,
            method: format!("{method}, {precond}, {precision}, {format}{}", unusual(exchange)),
            devices: kinds(devices),
            declive: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// The diagonal of `rows`, if the method asks for it.
    pub(super) fn diagonal(&self, rows: &Csr) -> Vec<f64> {
        if self.setup.precond == Precond::Jacobi { rows.diagonal() } else { Vec::new() }
    }

    /// What the system is scaled by, if that changes anything.
    pub(super) fn scaling(&self, diagonal: &[f64]) -> Option<Scaling> {
        self.scales().then(|| Scaling::of(diagonal, self.factor)).flatten()
    }

    /// Whether there is such a scaling for these rows.
    pub(super) fn is_scaled(&self, rows: &Csr) -> bool {
        let is_first = |i: usize| rows.get(i, i) == rows.get(0, 0);
        self.scales() && !(1..rows.n_rows()).into_par_iter().all(is_first)
    }

    fn scales(&self) -> bool {
        self.setup.method.scales() && self.setup.precond == Precond::Jacobi
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    #[test]
    fn a_method_is_chosen_where_it_may_be() {
        let a = Arc::new(gallery::poisson2d([7, 5]).unwrap());
        let of = |method| {
            let setup = Setup { method, ..Setup::default() };
            Whole::new(Arc::clone(&a), &a, None, 1.0, &setup, Store::none())
        };
        let mut auto = of(Method::Auto);
        assert_eq!([1, 2].map(|ranks| auto.method(ranks)), [Method::Cg; 2]);
        auto.choose_method(Method::CgPipelined);
        assert_eq!([1, 2].map(|ranks| auto.method(ranks)), [Method::Cg, Method::CgPipelined]);
        let mut forced = of(Method::CgSingleReduction);
        forced.choose_method(Method::Cg);
        assert_eq!([1, 2].map(|ranks| forced.method(ranks)), [Method::CgSingleReduction; 2]);
    }

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
