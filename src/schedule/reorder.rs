//! The order of rows on the ranks: as given, or by reverse Cuthill–McKee where that pays.
//!
//! Whether it pays is told by the bytes that an iteration moves for a row:
//!
//! ```text
//! 12 · entries + 76      what is read and written whatever the order
//! + 32 · lines           cache lines of x, for each row, of a window of 64 neighbouring rows
//! + 64 · halo            elements of x that other ranks receive, for each row
//! ```
//!
//! A line that the rows before have not left in a near cache comes from a shared one, or from memory, and costs half of
//! its 64 bytes: a grid of 10⁶ rows, numbered at random, takes 2.7 times the time an iteration that it takes by reverse
//! Cuthill–McKee on two cores (2.0 by this rule); a mesh of 86,490 rows with 43 entries each, whose x almost fits into
//! a near cache, 1.6 to 1.9 times (2.8); a random matrix of 10⁶ rows with 17 entries takes 184 µs on an H200 (198 by
//! this rule at 4 TB/s). An element of the halo is written and read once on each side, over a link that has a quarter
//! of the rate of a processor's memory.
//!
//! `auto` looks in three steps, each only if the one before leaves it open:
//!
//! 1. x takes less than 256 KiB: a near cache holds it in any order.
//! 2. A [sample](Locality), which takes some milliseconds at most: at best, rows share all lines but one each, and
//!    nothing is received. If that saves less than a fifth of the bytes, the order is good enough, as that of every
//!    grid and most meshes is.
//! 3. [Neighbourhoods](growth) that grow like those of a random graph, threefold with each step: no order helps.
//!
//! Otherwise the new order is made, and taken if the sample of it saves a tenth of the bytes. What it takes to make it
//! is paid back before the first iteration, or soon after: the check that the matrix is symmetric looks up the mirror
//! of each entry, all over memory in a bad order. It then looks at the reordered matrix. `docs/measurements.md` has the
//! figures.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::blocks;
use crate::matrix::equivalent::is_real_form;
use crate::matrix::reorder::{Locality, Permutation, growth, permuted, rcm, rcm_of_symmetric};
use crate::named::named;
use crate::partition::ENTRY_BYTES;
use crate::runtime::Reorder;

/// Bytes of x that a near cache holds.
const NEAR: usize = 256 << 10;

/// Bytes that a cache line of x is worth.
const LINE: f64 = 32.0;

/// Bytes that an element of the halo is worth.
const HALO: f64 = 64.0;

/// The part of the bytes that a new order must promise to save, as it takes time to look for it.
const PROMISED: f64 = 0.2;

/// The part that it must save once it is there.
const SAVED: f64 = 0.1;

/// Growth of neighbourhoods beyond which there is no order that helps.
const GROWTH: f64 = 3.0;

/// The order of the rows on the ranks, and why it is so.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Reordering {
    /// What decided.
    pub cause: Cause,
    /// In the order as given, if that was looked at.
    pub given: Option<Locality>,
    /// By reverse Cuthill–McKee, if that was made.
    pub rcm: Option<Locality>,
    /// Time to look at the order, and to make another.
    pub time: Duration,
}

named! {
    /// What decided on the order of the rows.
    Cause, "cause of an order":
    KeepAsked = "keep-asked", "As given: it was asked for.";
    RcmAsked = "rcm-asked", "Reverse Cuthill–McKee: it was asked for.";
    Small = "small", "As given: near caches hold x in any order.";
    Local = "local", "As given: neighbouring rows share most of what they need of x.";
    Random = "random", "As given: neighbourhoods grow like those of a random graph, so that no order helps.";
    NoGain = "no-gain", "As given: reverse Cuthill–McKee was tried, and is no better.";
    Gain = "gain", "Reverse Cuthill–McKee: it saves a tenth of an iteration's time or more.";
}

impl Reordering {
    /// Whether the ranks have the rows by reverse Cuthill–McKee.
    #[must_use]
    pub fn is_rcm(&self) -> bool {
        matches!(self.cause, Cause::RcmAsked | Cause::Gain)
    }
}

impl fmt::Display for Reordering {
    /// `as given`, or `rcm: 31 lines of x a window in place of 118, 0.21 s`: what was done, and why.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |of: Option<Locality>| of.map_or(0.0, |of| of.lines);
        let (given, rcm) = (lines(self.given), lines(self.rcm));
        let seconds = self.time.as_secs_f64();
        match self.cause {
            Cause::KeepAsked => f.write_str("as given"),
            Cause::Small => f.write_str("as given: x is small"),
            Cause::Local => write!(f, "as given: {given:.0} lines of x a window"),
            Cause::Random => {
                write!(f, "as given: {given:.0} lines of x a window, but as random as a graph can be")?;
                write!(f, ", {seconds:.2} s")
            }
            Cause::NoGain => write!(f, "as given: {given:.0} lines of x a window, rcm has {rcm:.0}, {seconds:.2} s"),
            Cause::RcmAsked | Cause::Gain => {
                write!(f, "rcm: {rcm:.0} lines of x a window in place of {given:.0}")?;
                let sent = |of: Option<Locality>| of.map_or(0.0, |of| of.sent);
                if sent(self.given) > 0.0 {
                    let (given, rcm) = (sent(self.given), sent(self.rcm));
                    write!(f, ", {rcm:.2} elements of halos a row in place of {given:.2}")?;
                }
                write!(f, ", {seconds:.2} s")
            }
        }
    }
}

/// A matrix as the ranks get it.
pub(crate) struct Ordered {
    /// The matrix as given, or in a new order.
    pub(crate) a: Arc<Csr>,
    /// The new order, if there is one.
    pub(crate) order: Option<Permutation>,
    pub(crate) reordering: Reordering,
}

impl Ordered {
    /// Decides on the order of the rows of a square matrix for `ranks` ranks, and makes it. An iteration moves `row_bytes` for a row
    /// beside its entries. The real and imaginary part of a complex row stay together, and so do the rows of a node, of so many if that is known.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the reordered matrix.
    pub(crate) fn new(
        a: &Arc<Csr>,
        wanted: Reorder,
        ranks: usize,
        row_bytes: f64,
        unknowns: Option<usize>,
    ) -> Result<Self> {
        let start = Instant::now();
        let in_groups = |p: Permutation| match unknowns.unwrap_or_else(|| blocks::unknowns(a)) {
            of_node if of_node % 2 == 1 && is_real_form(a) => p.in_groups(2),
            1 => p,
            of_node => p.in_groups(of_node),
        };
        let mut reordering = Reordering { cause: Cause::KeepAsked, given: None, rcm: None, time: Duration::ZERO };
        let order = match wanted {
            Reorder::None => None,
            Reorder::Rcm => {
                reordering.cause = Cause::RcmAsked;
                reordering.given = Some(Locality::of(a, ranks));
                let p = in_groups(rcm(a)?);
                reordering.rcm = Some(Locality::reordered(a, ranks, &p));
                Some(p)
            }
            Reorder::Auto => reordering.find(a, ranks, row_bytes, &in_groups),
        };
        let rows = match &order {
            Some(p) => Arc::new(permuted(a, p)?),
            None => Arc::clone(a),
        };
        reordering.time = start.elapsed();
        log::info!("order of the rows {reordering}");
        Ok(Self { a: rows, order, reordering })
    }
}

/// Whether the order as given stays, or is good enough for one rank, by a quick look.
pub(crate) fn is_in_good_order(a: &Csr, wanted: Reorder, row_bytes: f64) -> bool {
    match wanted {
        Reorder::None => true,
        Reorder::Rcm => false,
        Reorder::Auto if size_of::<f64>() * a.n_rows() < NEAR => true,
        Reorder::Auto => is_local(a, row_bytes, &Locality::of(a, 1)),
    }
}

/// Whether the best order would save too little.
fn is_local(a: &Csr, row_bytes: f64, given: &Locality) -> bool {
    let best = Locality { lines: given.lines.min(Locality::ROWS as f64), sent: 0.0 };
    bytes(a, row_bytes, &best) >= (1.0 - PROMISED) * bytes(a, row_bytes, given)
}

impl Reordering {
    /// The new order, if there is one that pays; notes why.
    fn find(
        &mut self,
        a: &Csr,
        ranks: usize,
        row_bytes: f64,
        in_groups: &dyn Fn(Permutation) -> Permutation,
    ) -> Option<Permutation> {
        self.cause = Cause::Small;
        if size_of::<f64>() * a.n_rows() < NEAR {
            return None;
        }
        let given = Locality::of(a, ranks);
        let bytes = |locality: &Locality| bytes(a, row_bytes, locality);
        let now = bytes(&given);
        let saves = |part: f64, locality: &Locality| bytes(locality) < (1.0 - part) * now;
        self.given = Some(given);
        self.cause = Cause::Local;
        if is_local(a, row_bytes, &given) {
            return None;
        }
        self.cause = Cause::Random;
        if growth(a) > GROWTH {
            return None;
        }
        // A pattern that is not symmetric gives an order, too, if not the best one; whether it is symmetric is found
        // out in the new order.
        let p = in_groups(rcm_of_symmetric(a));
        let found = Locality::reordered(a, ranks, &p);
        self.rcm = Some(found);
        let is_better = saves(SAVED, &found);
        self.cause = if is_better { Cause::Gain } else { Cause::NoGain };
        is_better.then_some(p)
    }
}

/// What an iteration moves for a row, in bytes, of which `row_bytes` are not for its entries and what it reads of others.
fn bytes(a: &Csr, row_bytes: f64, locality: &Locality) -> f64 {
    let entries = a.nnz() as f64 / a.n_rows() as f64;
    ENTRY_BYTES * entries + row_bytes + LINE * locality.lines / Locality::ROWS as f64 + HALO * locality.sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery::{self, Spec};

    fn auto(spec: &str, ranks: usize) -> Ordered {
        let a = Arc::new(spec.parse::<Spec>().unwrap().build().unwrap());
        let ordered = Ordered::new(&a, Reorder::Auto, ranks, 76.0, None).unwrap();
        assert_eq!(ordered.order.is_some(), ordered.reordering.is_rcm());
        match &ordered.order {
            Some(p) => assert_eq!(*ordered.a, permuted(&a, p).unwrap()),
            None => assert!(Arc::ptr_eq(&a, &ordered.a)),
        }
        ordered
    }

    #[test]
    fn good_orders_are_left_alone() {
        let systems = [
            "poisson2d:300",
            "poisson3d:40",
            "poisson3d27:40",
            "anisotropic:40",
            "jumps:40",
            "variable:40",
            "elasticity3d:24",
            "tetrahedra:24",
            "tridiagonal:100000",
            "band:100000",
        ];
        for spec in systems {
            for ranks in [1, 2, 5] {
                assert_eq!(auto(spec, ranks).reordering.cause, Cause::Local, "{spec}, {ranks}");
            }
        }
    }

    #[test]
    fn small_systems_are_left_alone() {
        for spec in ["tridiagonal:1", "poisson3d:31,scramble=1"] {
            assert_eq!(auto(spec, 2).reordering.cause, Cause::Small, "{spec}");
        }
    }

    #[test]
    fn scrambled_meshes_are_reordered() {
        for spec in ["poisson2d:300,scramble=1", "poisson3d:40,scramble=2", "tetrahedra:24,scramble=3"] {
            for ranks in [1, 3] {
                let reordering = auto(spec, ranks).reordering;
                assert_eq!(reordering.cause, Cause::Gain, "{spec}");
                let (given, rcm) = (reordering.given.unwrap(), reordering.rcm.unwrap());
                assert!(rcm.lines < 0.3 * given.lines && (ranks == 1 || rcm.sent < 0.3 * given.sent));
            }
        }
    }

    /// Whoever has a full row needs all of x in any order.
    #[test]
    fn dense_rows_are_left_alone() {
        assert_eq!(auto("dense-rows:40000", 1).reordering.cause, Cause::Local);
        let two = auto("dense-rows:40000", 2).reordering;
        assert!(two.cause == Cause::Random && two.given.unwrap().sent >= 1.0, "{two:?}");
    }

    #[test]
    fn random_graphs_are_left_alone() {
        for spec in ["random-spd:40000", "graph-laplacian:40000", "random-spd:40000,scramble=1"] {
            assert_eq!(auto(spec, 1).reordering.cause, Cause::Random, "{spec}");
        }
    }

    /// Every other line of a grid, then the rest: few lines of x, but one of two ranks needs all elements of the other.
    #[test]
    fn halos_count() {
        let grid = gallery::poisson2d([4, 20_000]).unwrap();
        let lines = (0..20_000).step_by(2).chain((1..20_000).step_by(2));
        let p = Permutation::new(lines.flat_map(|line| 4 * line..4 * line + 4).collect()).unwrap();
        let a = Arc::new(permuted(&grid, &p).unwrap());
        let reordering = |ranks| Ordered::new(&a, Reorder::Auto, ranks, 76.0, None).unwrap().reordering;
        assert_eq!(reordering(1).cause, Cause::Local);
        let two = reordering(2);
        assert_eq!(two.cause, Cause::Gain);
        assert!(two.given.unwrap().sent > 0.9 && two.rcm.unwrap().sent < 0.1, "{two:?}");
    }

    #[test]
    fn the_model_by_hand() {
        let a = "tridiagonal:100".parse::<Spec>().unwrap().build().unwrap();
        let alone = Locality { lines: 128.0, sent: 0.0 };
        assert!((bytes(&a, 76.0, &alone) - (12.0 * 2.98 + 76.0 + 64.0)).abs() < 1e-9);
        assert!((bytes(&a, 76.0, &Locality { sent: 0.5, ..alone }) - bytes(&a, 76.0, &alone) - 32.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_said() {
        let locality = |lines, sent| Some(Locality { lines, sent });
        let time = Duration::from_millis(214);
        let said = |cause, given, rcm| Reordering { cause, given, rcm, time }.to_string();
        assert_eq!(said(Cause::KeepAsked, None, None), "as given");
        assert_eq!(said(Cause::Local, locality(43.2, 0.0), None), "as given: 43 lines of x a window");
        assert_eq!(
            said(Cause::Gain, locality(118.0, 0.0), locality(31.4, 0.0)),
            "rcm: 31 lines of x a window in place of 118, 0.21 s"
        );
        assert!(
            said(Cause::Gain, locality(118.0, 1.5), locality(31.4, 0.04)).contains("0.04 elements of halos a row in")
        );
        assert!(said(Cause::NoGain, locality(118.0, 0.0), locality(110.0, 0.0)).contains("rcm has 110"));
    }
}
