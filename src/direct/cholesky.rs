//! A = L Lᵀ of symmetric positive definite matrices.

use std::result::Result as StdResult;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, LltRegularization};
use faer::sparse::SparseColMatRef;
use faer::sparse::linalg::cholesky::supernodal::SupernodalLltRef;
use faer::sparse::linalg::cholesky::{LltRef, SymbolicCholesky, SymbolicCholeskyRaw};
use faer::{ColMut, Conj, Par, Side};

use super::Singular;
use super::square::Square;
use super::tree::{Tree, Upper};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::power::{nearest, scaled};
use crate::memory::zeros;

/// A pivot of the matrix scaled to ones on the diagonal that is below is made of rounding errors.
const TINY: f64 = 100.0 * f64::EPSILON;

/// What the memory is for.
const WHAT: &str = "the Cholesky factor";

/// The structure of the factor, and the scaling.
#[derive(Debug)]
pub(super) struct Analysis {
    symbolic: SymbolicCholesky<usize>,
    /// S A S with S = diag(2ᵉ) has a diagonal between 1/2 and 2.
    exponents: Vec<i32>,
    nnz: usize,
    bytes_of_structure: u64,
    flops: f64,
}

impl Analysis {
    pub(super) fn new(a: &Csr) -> Result<StdResult<Self, Singular>> {
        let diagonal = a.diagonal();
        if let Some(row) = diagonal.iter().position(|&d| d <= 0.0) {
            return Ok(Err(Singular::NotPositiveDefinite { row }));
        }
        let exponents = diagonal.iter().map(|d| nearest(-0.5 * d.log2())).collect();
        let upper = lower_rows(a);
        let symbolic = upper.symbolic()?;
        let tree = Tree::of(&symbolic);
        // half of those of the LU of the same structure
        let flops = 0.5 * tree.flops::<Square>();
        // the structure of faer has 64-bit indices, by columns and by rows
        let bytes_of_structure = 6 * tree.bytes() + 16 * a.n_rows() as u64;
        Ok(Ok(Self { symbolic, exponents, nnz: upper.rows.len(), bytes_of_structure, flops }))
    }

    pub(super) fn elements(&self) -> u64 {
        self.symbolic.len_val() as u64
    }

    pub(super) fn flops(&self) -> f64 {
        self.flops
    }

    pub(super) fn bytes(&self) -> u64 {
        let work =
            self.symbolic.factorize_numeric_llt_scratch::<f64>(Par::Seq, Default::default()).unaligned_bytes_required();
        let of_a = 16 * self.nnz + 8 * self.exponents.len();
        8 * self.elements() + work as u64 + of_a as u64 + 4 * self.exponents.len() as u64 + self.bytes_of_structure
    }
}

/// The entries with column ≤ row, which by rows are the upper triangle of the transpose by columns.
fn lower_rows(a: &Csr) -> Upper {
    let mut upper = Upper { col_ptr: vec![0], rows: Vec::with_capacity((a.nnz() + a.n_rows()) / 2) };
    for i in 0..a.n_rows() {
        let (cols, _) = a.row(i);
        upper.rows.extend(cols.iter().map(|&j| j as usize).take_while(|&j| j <= i));
        upper.col_ptr.push(upper.rows.len());
    }
    upper
}

/// The numbers of the factor.
#[derive(Debug)]
pub(super) struct Factor {
    symbolic: SymbolicCholesky<usize>,
    exponents: Vec<i32>,
    values: Vec<f64>,
}

impl Factor {
    pub(super) fn new(analysis: Analysis, a: &Csr) -> Result<StdResult<Self, Singular>> {
        let bytes = analysis.bytes();
        let no_memory = || Error::OutOfMemory { what: WHAT.into(), bytes };
        let Analysis { symbolic, exponents, .. } = analysis;
        let mut values = zeros::<f64>(symbolic.len_val()).map_err(|_| no_memory())?;
        let work = symbolic.factorize_numeric_llt_scratch::<f64>(Par::Seq, Default::default());
        let mut work = MemBuffer::try_new(work).map_err(|_| no_memory())?;
        let of_a = lower_rows(a);
        let entries = (0..a.n_rows()).flat_map(|i| {
            let (cols, values) = a.row(i);
            let row = cols.iter().zip(values).map(|(&j, &v)| (j as usize, v)).take_while(move |&(j, _)| j <= i);
            row.map(move |(j, v)| (i, j, v))
        });
        let mut scaled_values = Vec::with_capacity(of_a.rows.len());
        scaled_values.extend(entries.map(|(i, j, v)| scaled(v, exponents[i] + exponents[j])));
        let a = SparseColMatRef::new(of_a.view(), &scaled_values[..]);
        let found = symbolic.factorize_numeric_llt(
            &mut values,
            a,
            Side::Upper,
            LltRegularization::default(),
            Par::Seq,
            MemStack::new(&mut work),
            Default::default(),
        );
        match found {
            Ok(_) => {}
            Err(LltError::NonPositivePivot { index }) => {
                return Ok(Err(Singular::NotPositiveDefinite { row: row_at(&symbolic, index) }));
            }
        }
        Ok(match tiny_pivot(&symbolic, &values) {
            Some(place) => Err(Singular::NotPositiveDefinite { row: row_at(&symbolic, place) }),
            None => Ok(Self { symbolic, exponents, values }),
        })
    }

    pub(super) fn solve(&self, b: &[f64], x: &mut [f64]) {
        for ((x, b), &e) in x.iter_mut().zip(b).zip(&self.exponents) {
            *x = scaled(*b, e);
        }
        let mut work = MemBuffer::new(self.symbolic.solve_in_place_scratch::<f64>(1, Par::Seq));
        LltRef::new(&self.symbolic, &self.values).solve_in_place_with_conj(
            Conj::No,
            ColMut::from_slice_mut(x).as_mat_mut(),
            Par::Seq,
            MemStack::new(&mut work),
        );
        for (x, &e) in x.iter_mut().zip(&self.exponents) {
            *x = scaled(*x, e);
        }
    }
}

/// The row that is eliminated at a place.
fn row_at(symbolic: &SymbolicCholesky<usize>, place: usize) -> usize {
    symbolic.perm().and_then(|perm| perm.arrays().0.get(place).copied()).unwrap_or(place)
}

/// The place of a pivot, the square of an element of L's diagonal, that is nothing but rounding errors, or NaN.
fn tiny_pivot(symbolic: &SymbolicCholesky<usize>, values: &[f64]) -> Option<usize> {
    let SymbolicCholeskyRaw::Supernodal(nodes) = symbolic.raw() else { return None };
    let factor = SupernodalLltRef::new(nodes, values);
    (0..nodes.n_supernodes()).find_map(|s| {
        let node = factor.supernode(s);
        let block = node.val();
        let is_tiny = |pivot: f64| pivot < TINY || pivot.is_nan();
        (0..block.ncols()).find(|&k| is_tiny(block[(k, k)] * block[(k, k)])).map(|k| node.start() + k)
    })
}
