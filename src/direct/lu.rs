//! A = L U.

use std::result::Result as StdResult;

use super::Singular;
use super::multifrontal::{self, Eliminated, Multifrontal};
use super::pivoting::{self, Pivoting};
use super::side::Side;
use super::square::Square;
use super::tree::{Tree, Upper};
use crate::error::Result;
use crate::matrix::power::nearest;
use crate::matrix::{Csr, Transversal};

/// The least pivot, of a matrix whose entries are at most 1 in size.
pub(super) const TINY: f64 = 1e-13;

/// So many elements any factor may have.
const SMALL: u64 = 1 << 21;

/// What the memory is for.
pub(super) const WHAT: &str = "the LU factor";

/// Where rows and columns go, and the structure of the factor: that of the Cholesky factor of a matrix with the pattern of B + Bᵀ, if
/// B is the matrix as it is arranged.
#[derive(Debug)]
pub(super) struct Analysis {
    pub(super) tree: Tree,
    pub(super) arranged: Arranged,
    elements: u64,
    /// The most elements of a factor with other pivots.
    most: usize,
}

/// The matrix as it is eliminated: with the transversal of the largest product on its diagonal, scaled by powers of two so that
/// these entries are about 1, and no other is more, its rows and columns in an order with little fill.
#[derive(Debug)]
pub(super) struct Arranged {
    pub(super) rows: Side,
    pub(super) cols: Side,
    /// What a factorisation takes.
    pub(super) bytes: u64,
}

impl Arranged {
    /// The matrix in this arrangement.
    pub(super) fn eliminated<'a>(&'a self, a: &'a Csr) -> Eliminated<'a> {
        Eliminated { a, rows: &self.rows, cols: &self.cols, is_symmetric: false, what: WHAT, bytes: self.bytes }
    }
}

impl Analysis {
    pub(super) fn new(a: &Csr) -> Result<StdResult<Self, Singular>> {
        let transversal = match Transversal::maximum_product(a)? {
            Ok(transversal) => transversal,
            Err(deficiency) => return Ok(Err(Singular::Structurally(deficiency))),
        };
        let (n, col_of_row) = (a.n_rows(), &transversal.col_of_row);
        let entries = (0..n).flat_map(|i| a.row(i).0.iter().map(move |&j| (col_of_row[i] as usize, j as usize)));
        let symbolic = Upper::of(n, entries).symbolic()?;
        let tree = Tree::of(&symbolic);
        let mut of_col = vec![0u32; n];
        match symbolic.perm() {
            Some(perm) => of_col.iter_mut().zip(perm.arrays().1).for_each(|(to, &place)| *to = place as u32),
            None => of_col.iter_mut().zip(0..).for_each(|(to, place)| *to = place),
        }
        let of_row = col_of_row.iter().map(|&j| of_col[j as usize]).collect();
        let exponents = |logs: &[f64]| logs.iter().map(|&log| nearest(log)).collect();
        let rows = Side { place: of_row, exponent: exponents(&transversal.row_log2) };
        let cols = Side { place: of_col, exponent: exponents(&transversal.col_log2) };
        let elements = tree.elements::<Square>();
        let numbers = 8 * (elements + tree.most_below::<Square>());
        let places = n * 2 * (4 + 4);
        let beside = multifrontal::bytes_beside(tree.len(), n, a.nnz()) + places;
        let bytes = numbers + tree.bytes() + beside as u64;
        // no more than what the factor takes already, unless that is little
        let most = (bytes / 24).max((n as u64 * (n as u64 + 1)).min(SMALL)) as usize;
        let bytes = bytes.max((pivoting::bytes(most, n, a.nnz()) + places) as u64);
        Ok(Ok(Self { tree, arranged: Arranged { rows, cols, bytes }, elements, most }))
    }

    pub(super) fn elements(&self) -> u64 {
        self.elements
    }

    pub(super) fn flops(&self) -> f64 {
        self.tree.flops::<Square>()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.arranged.bytes
    }
}

/// The factor, with its rows and columns.
#[derive(Debug)]
pub(super) struct Factor {
    rows: Side,
    cols: Side,
    numbers: Numbers,
    perturbed: Vec<u32>,
}

#[derive(Debug)]
enum Numbers {
    Multifrontal(Multifrontal<Square>),
    Pivoting(Pivoting),
}

impl Factor {
    /// Factorises with the pivots that there are within supernodes. If some of these were too small, factorises anew, column by
    /// column, with pivots from all rows, unless that takes more memory than there is for it.
    pub(super) fn new(analysis: Analysis, a: &Csr) -> Result<Self> {
        let Analysis { tree, arranged, most, .. } = analysis;
        let (factor, perturbed) = Multifrontal::new(Square, &arranged.eliminated(a), tree)?;
        let (numbers, perturbed) = if perturbed.is_empty() {
            (Numbers::Multifrontal(factor), perturbed)
        } else {
            let tree = factor.into_tree();
            if let Some((factor, perturbed)) = Pivoting::new(&arranged, a, most)? {
                (Numbers::Pivoting(factor), perturbed)
            } else {
                (Numbers::Multifrontal(Multifrontal::new(Square, &arranged.eliminated(a), tree)?.0), perturbed)
            }
        };
        let Arranged { rows, cols, .. } = arranged;
        let perturbed = rows.at(&perturbed);
        Ok(Self { rows, cols, numbers, perturbed })
    }

    pub(super) fn perturbed(&self) -> &[u32] {
        &self.perturbed
    }

    pub(super) fn solve(&self, b: &[f64], x: &mut [f64]) {
        let n = self.rows.place.len();
        assert_eq!((b.len(), x.len()), (n, n), "one element a row");
        let mut y = vec![0.0; n];
        self.rows.gather(b, &mut y);
        match &self.numbers {
            Numbers::Multifrontal(factor) => factor.solve(&mut y),
            Numbers::Pivoting(factor) => factor.solve(&mut y),
        }
        self.cols.scatter(&y, x);
    }
}
