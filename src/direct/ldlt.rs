//! A = L D Lᵀ of symmetric matrices that are not definite.

use std::result::Result as StdResult;

use super::Singular;
use super::multifrontal::{self, Eliminated, Multifrontal};
use super::pairs::Groups;
use super::side::Side;
use super::symmetric::Symmetric;
use super::tree::{Tree, Upper};
use crate::error::{Error, Result};
use crate::matrix::power::nearest;
use crate::matrix::{Csr, Transversal};
use crate::memory::zeros;

/// What the memory is for.
const WHAT: &str = "the LDLᵀ factor";

/// Where rows go, and the structure of the factor.
#[derive(Debug)]
pub(super) struct Analysis {
    tree: Tree,
    side: Side,
    bytes: u64,
}

/// The entries with column ≤ row.
fn lower(a: &Csr) -> impl Iterator<Item = (usize, usize)> + Clone {
    (0..a.n_rows()).flat_map(|i| a.row(i).0.iter().map(move |&j| (i, j as usize)).take_while(move |&(_, j)| j <= i))
}

impl Analysis {
    /// Scales the matrix, by powers of two on both sides alike, so that entries are at most about 1; puts rows that are pivots
    /// together into [groups](Groups), and those in an order with little fill. Rows of a group have the same pattern in the
    /// factor, and are in one supernode.
    pub(super) fn new(a: &Csr) -> Result<StdResult<Self, Singular>> {
        let transversal = match Transversal::maximum_product(a)? {
            Ok(transversal) => transversal,
            Err(deficiency) => return Ok(Err(Singular::Structurally(deficiency))),
        };
        let n = a.n_rows();
        let logs = transversal.row_log2.iter().zip(&transversal.col_log2);
        let exponent: Vec<i32> = logs.map(|(row, col)| nearest(0.5 * (row + col))).collect();
        let groups = Groups::of(a, &transversal, &exponent);
        drop(transversal);
        let of_row = &groups.of_row;
        let entries = lower(a).map(|(i, j)| (of_row[i] as usize, of_row[j] as usize));
        let symbolic = Upper::of(groups.sizes.len(), entries).symbolic()?;
        let place: Vec<u32> = match symbolic.perm() {
            Some(perm) => perm.arrays().1.iter().map(|&place| place as u32).collect(),
            None => (0..groups.sizes.len() as u32).collect(),
        };
        let tree = Tree::of(&symbolic).expanded(&groups.first_places(&place));
        let side = Side { place: groups.places(&place), exponent };
        let work = tree.most(Symmetric::work) as u64;
        let numbers = 8 * (tree.elements::<Symmetric>() + tree.most_below::<Symmetric>() + work);
        let places = n * (4 + 4);
        let beside = multifrontal::bytes_beside(tree.len(), n, lower(a).count()) + places;
        let bytes = numbers + tree.bytes() + beside as u64;
        Ok(Ok(Self { tree, side, bytes }))
    }

    pub(super) fn elements(&self) -> u64 {
        self.tree.elements::<Symmetric>()
    }

    pub(super) fn flops(&self) -> f64 {
        self.tree.flops::<Symmetric>()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The factor, with its rows.
#[derive(Debug)]
pub(super) struct Factor {
    side: Side,
    numbers: Multifrontal<Symmetric>,
    perturbed: Vec<u32>,
}

impl Factor {
    pub(super) fn new(analysis: Analysis, a: &Csr) -> Result<Self> {
        let Analysis { tree, side, bytes } = analysis;
        let matrix = Eliminated { a, rows: &side, cols: &side, is_symmetric: true, what: WHAT, bytes };
        let work = zeros(tree.most(Symmetric::work)).map_err(|_| Error::OutOfMemory { what: WHAT.into(), bytes })?;
        let (numbers, perturbed) = Multifrontal::new(Symmetric::new(work), &matrix, tree)?;
        let perturbed = side.at(&perturbed);
        Ok(Self { side, numbers, perturbed })
    }

    pub(super) fn perturbed(&self) -> &[u32] {
        &self.perturbed
    }

    pub(super) fn solve(&self, b: &[f64], x: &mut [f64]) {
        let n = self.side.place.len();
        assert_eq!((b.len(), x.len()), (n, n), "one element a row");
        let mut y = vec![0.0; n];
        self.side.gather(b, &mut y);
        self.numbers.solve(&mut y);
        self.side.scatter(&y, x);
    }
}
