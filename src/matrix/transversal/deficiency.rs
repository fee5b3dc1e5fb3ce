//! Why a matrix is singular whatever the values of its entries.

use std::fmt;

use super::NONE;
use super::cardinality::{Matching, columns};
use crate::matrix::Csr;

/// How many free rows are looked at for one that explains itself by few rows.
const TRIALS: usize = 100;

/// How many rows a message names.
const NAMED: usize = 8;

/// A matrix of less structural rank than it has rows, with the reason: k rows whose entries lie in k − 1 columns
/// (P. Hall, "On representatives of subsets", J. London Math. Soc. 10 (1935), doi 10.1112/jlms/s1-10.37.26). No part of them
/// would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deficiency {
    /// The structural rank.
    pub(crate) rank: usize,
    /// Rows of the matrix.
    pub(crate) n_rows: usize,
    /// The k rows, from 0, rising.
    pub(crate) rows: Vec<u32>,
}

impl Deficiency {
    /// Explains why `matching`, the largest of `a`, leaves rows without a column; `None` if it leaves none.
    ///
    /// These are the rows that alternating paths from a free row lead to: as no path leads to a free column, each column that
    /// they have entries in is that of another of them. Of 100 free rows at most, the one with the fewest. O(nnz) each.
    pub(crate) fn of(a: &Csr, matching: &Matching) -> Option<Self> {
        let mut mark = vec![NONE; a.n_rows()];
        let mut best: Option<Vec<u32>> = None;
        for root in matching.free_rows().take(TRIALS) {
            let limit = best.as_ref().map_or(usize::MAX, Vec::len);
            let Some(rows) = reached(a, matching, root, &mut mark, limit) else { continue };
            best = Some(rows);
        }
        let mut rows = best?;
        rows.sort_unstable();
        Some(Self { rank: matching.len(), n_rows: a.n_rows(), rows })
    }
}

/// The rows that alternating paths from `root` lead to, if they are fewer than `limit`. Marks them by the root's number.
fn reached(a: &Csr, matching: &Matching, root: u32, mark: &mut [u32], limit: usize) -> Option<Vec<u32>> {
    let mut rows = vec![root];
    mark[root as usize] = root;
    let mut at = 0;
    while let Some(&i) = rows.get(at) {
        if rows.len() >= limit {
            return None;
        }
        at += 1;
        for j in columns(a, i as usize) {
            let other = matching.row_of_col[j as usize];
            debug_assert_ne!(other, NONE, "the matching is the largest");
            if mark[other as usize] != root {
                mark[other as usize] = root;
                rows.push(other);
            }
        }
    }
    Some(rows)
}

impl fmt::Display for Deficiency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.in_short().fmt(f)
    }
}

/// Why a matrix is singular whatever the values of its entries: some rows have entries in one column less than they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// The structural rank.
    pub rank: usize,
    /// Rows of the matrix.
    pub n_rows: usize,
    /// How many rows have too few columns.
    pub rows: usize,
    /// The first of them, from 1; 0 where there are no more.
    pub named: [u32; NAMED],
}

impl Shortage {
    /// Why `a` is singular whatever the values of its entries, if it is. O(√n nnz) at worst.
    pub(crate) fn of(a: &Csr) -> Option<Self> {
        Deficiency::of(a, &Matching::maximum(a)).map(|found| found.in_short())
    }
}

impl Deficiency {
    /// Without the names of all rows.
    pub(crate) fn in_short(&self) -> Shortage {
        let mut named = [0; NAMED];
        named.iter_mut().zip(&self.rows).for_each(|(name, row)| *name = row + 1);
        Shortage { rank: self.rank, n_rows: self.n_rows, rows: self.rows.len(), named }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (k, rank, n) = (self.rows, self.rank, self.n_rows);
        write!(f, "structural rank {rank} of {n}: ")?;
        if k == 1 {
            return write!(f, "row {} has no entry other than 0", self.named[0]);
        }
        let named: Vec<String> = self.named.iter().take(k).map(ToString::to_string).collect();
        let more = if k > NAMED { ", …" } else { "" };
        let columns = if k == 2 { "1 column".into() } else { format!("{} columns", k - 1) };
        write!(f, "{k} rows ({}{more}) have entries in {columns} only", named.join(", "))
    }
}
