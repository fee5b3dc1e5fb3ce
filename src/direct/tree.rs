//! Which columns are eliminated when, and what that takes.

use faer::Side;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering, factorize_symbolic_cholesky,
};
use faer::sparse::linalg::{SupernodalThreshold, amd};
use faer::sparse::{FaerError, SymbolicSparseColMatRef};

use super::front::{Elimination, Size};
use crate::error::{Error, Result};

/// The upper triangle of a symmetric pattern, by columns, or its lower triangle by rows: rows rise strictly within a column.
pub(super) struct Upper {
    pub(super) col_ptr: Vec<usize>,
    pub(super) rows: Vec<usize>,
}

impl Upper {
    /// Of the pattern of B + Bᵀ, given the rows and columns of B's entries. Two passes over them; 16 bytes each.
    pub(super) fn of(n: usize, entries: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut col_ptr = vec![0; n + 1];
        for (i, j) in entries.clone() {
            col_ptr[i.max(j) + 1] += 1;
        }
        for j in 0..n {
            col_ptr[j + 1] += col_ptr[j];
        }
        let mut next = col_ptr.clone();
        let mut rows = vec![0; col_ptr[n]];
        for (i, j) in entries {
            let next = &mut next[i.max(j)];
            rows[*next] = i.min(j);
            *next += 1;
        }
        let mut end = 0;
        for j in 0..n {
            let range = col_ptr[j]..col_ptr[j + 1];
            rows[range.clone()].sort_unstable();
            col_ptr[j] = end;
            for k in range {
                if end == col_ptr[j] || rows[end - 1] != rows[k] {
                    rows[end] = rows[k];
                    end += 1;
                }
            }
        }
        col_ptr[n] = end;
        rows.truncate(end);
        Self { col_ptr, rows }
    }

    pub(super) fn view(&self) -> SymbolicSparseColMatRef<'_, usize> {
        let n = self.col_ptr.len() - 1;
        SymbolicSparseColMatRef::new_checked(n, n, &self.col_ptr, None, &self.rows)
    }

    /// The structure of the Cholesky factor, in supernodes, of rows and columns in the order of least degree.
    ///
    /// P. R. Amestoy, T. A. Davis, I. S. Duff, "An approximate minimum degree ordering algorithm", SIAM J. Matrix Anal. Appl. 17
    /// (1996), doi 10.1137/S0895479894278952.
    pub(super) fn symbolic(&self) -> Result<SymbolicCholesky<usize>> {
        let params = CholeskySymbolicParams {
            amd_params: amd::Control::default(),
            // single columns are at best a little faster, where nothing takes long
            // (FORCE_SUPERNODAL does not force it for diagonal matrices)
            supernodal_flop_ratio_threshold: SupernodalThreshold(-1.0),
            ..Default::default()
        };
        factorize_symbolic_cholesky(self.view(), Side::Upper, SymmetricOrdering::Amd, params)
            .map_err(|e| no_memory(&e, "the order of a factorisation", 16 * self.rows.len() as u64))
    }
}

/// What a failure of faer's means.
pub(super) fn no_memory(_: &FaerError, what: &str, bytes: u64) -> Error {
    Error::OutOfMemory { what: what.into(), bytes }
}

/// The supernodes: columns with the same pattern, which are eliminated together. Places count in the order of elimination.
#[derive(Debug)]
pub(super) struct Tree {
    /// The first column of each supernode, and n.
    pub(super) begin: Vec<usize>,
    /// Where the pattern of each supernode begins in `pattern`.
    pattern_ptr: Vec<usize>,
    /// Of each supernode, the places below its own where it has entries, rising.
    pattern: Vec<u32>,
    /// The supernode that takes what is left of each, as the one of its first place below; none for the last of a tree.
    parent: Vec<Option<usize>>,
}

impl Tree {
    /// Takes what is needed from a structure.
    pub(super) fn of(symbolic: &SymbolicCholesky<usize>) -> Self {
        let SymbolicCholeskyRaw::Supernodal(nodes) = symbolic.raw() else {
            debug_assert_eq!(symbolic.nrows(), 0, "supernodes were asked for");
            return Self { begin: vec![0], pattern_ptr: vec![0], pattern: Vec::new(), parent: Vec::new() };
        };
        let count = nodes.n_supernodes();
        let begin: Vec<usize> = nodes.supernode_begin().iter().take(count).copied().chain([nodes.nrows()]).collect();
        let mut pattern_ptr = vec![0];
        let mut pattern = Vec::with_capacity(nodes.nnz_per_super().iter().sum());
        for s in 0..count {
            let start = nodes.col_ptr_for_row_idx()[s];
            pattern.extend(nodes.row_idx()[start..start + nodes.nnz_per_super()[s]].iter().map(|&i| i as u32));
            pattern_ptr.push(pattern.len());
        }
        let mut tree = Self { begin, pattern_ptr, pattern, parent: Vec::new() };
        let of_place = |place: u32| tree.begin.partition_point(|&begin| begin <= place as usize) - 1;
        tree.parent = (0..count).map(|s| tree.pattern(s).first().map(|&place| of_place(place))).collect();
        tree
    }

    /// The tree where each place is one of so many rows: `first` tells the first of each, and how many there are in all.
    pub(super) fn expanded(self, first: &[usize]) -> Self {
        let begin = self.begin.iter().map(|&place| first[place]).collect();
        let mut pattern_ptr = vec![0];
        let mut pattern = Vec::with_capacity(2 * self.pattern.len());
        for s in 0..self.len() {
            let rows = |&place: &u32| first[place as usize] as u32..first[place as usize + 1] as u32;
            pattern.extend(self.pattern(s).iter().flat_map(rows));
            pattern_ptr.push(pattern.len());
        }
        pattern.shrink_to_fit();
        Self { begin, pattern_ptr, pattern, parent: self.parent }
    }

    /// How many supernodes there are.
    pub(super) fn len(&self) -> usize {
        self.begin.len() - 1
    }

    /// The pattern of supernode `s` below its own places.
    pub(super) fn pattern(&self, s: usize) -> &[u32] {
        &self.pattern[self.pattern_ptr[s]..self.pattern_ptr[s + 1]]
    }

    /// The largest of what there is of each front.
    pub(super) fn most(&self, of: impl Fn(Size) -> usize) -> usize {
        (0..self.len()).map(|s| of(self.size(s))).max().unwrap_or_default()
    }

    /// How large the front of supernode `s` is.
    pub(super) fn size(&self, s: usize) -> Size {
        Size { own: self.begin[s + 1] - self.begin[s], below: self.pattern_ptr[s + 1] - self.pattern_ptr[s] }
    }

    /// Of each supernode, those whose rest it takes.
    pub(super) fn children(&self) -> Children {
        let mut children = Children { first: vec![None; self.len()], next: vec![None; self.len()] };
        for (s, parent) in self.parent.iter().enumerate().rev() {
            if let Some(parent) = *parent {
                children.next[s] = children.first[parent].replace(s);
            }
        }
        children
    }

    /// Elements of the factor.
    pub(super) fn elements<E: Elimination>(&self) -> u64 {
        (0..self.len()).map(|s| E::elements(self.size(s)) as u64).sum()
    }

    /// The most elements of rests at one time.
    pub(super) fn most_below<E: Elimination>(&self) -> u64 {
        let children = self.children();
        let rest = |s| E::rest(self.size(s)) as u64;
        let (mut now, mut most) = (0u64, 0u64);
        for s in 0..self.len() {
            now += rest(s);
            most = most.max(now);
            now -= children.of(s).map(rest).sum::<u64>();
        }
        most
    }

    /// Bytes of the structure itself.
    pub(super) fn bytes(&self) -> u64 {
        (4 * self.pattern.len() + self.len() * (2 * size_of::<usize>() + size_of::<Option<usize>>())) as u64
    }

    /// Multiplications and additions.
    pub(super) fn flops<E: Elimination>(&self) -> f64 {
        (0..self.len()).map(|s| E::flops(self.size(s))).sum()
    }
}

/// Lists of supernodes, each linked to the next.
pub(super) struct Children {
    first: Vec<Option<usize>>,
    next: Vec<Option<usize>>,
}

impl Children {
    pub(super) fn of(&self, s: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.first[s], |&child| self.next[child])
    }
}
