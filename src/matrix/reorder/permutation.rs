//! Permutations of rows and columns.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::matrix::{Csr, Scalar};
use crate::memory::{NoMemory, zeros};

/// Entries below which a block of rows is not split further.
const ENTRIES: usize = 1 << 15;

/// A new order of n things: place k of the new order is taken by number `order[k]` of the old one.
///
/// As a matrix P has a one at (k, `order[k]`) for each k, so that `apply` is P x, and `undo` is Pᵀ x.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    order: Vec<u32>,
}

impl Permutation {
    /// Takes the old numbers in their new order, after checking that each number from 0 to n − 1 is there once. O(n).
    ///
    /// # Errors
    /// [`Error::InvalidPermutation`] with the first number that is out of range or there twice.
    pub fn new(order: Vec<u32>) -> Result<Self> {
        let n = order.len();
        let mut seen = vec![false; n];
        for (k, &old) in order.iter().enumerate() {
            match seen.get_mut(old as usize) {
                None => return Err(Error::InvalidPermutation(format!("place {k} has {old}, which is not below {n}"))),
                Some(true) => return Err(Error::InvalidPermutation(format!("place {k} has {old} a second time"))),
                Some(seen) => *seen = true,
            }
        }
        Ok(Self { order })
    }

    /// The order that changes nothing.
    ///
    /// # Panics
    /// If `n` is beyond 32-bit indices.
    #[must_use]
    pub fn identity(n: usize) -> Self {
        assert!(n <= Csr::MAX_DIM, "{n} is beyond 32-bit indices");
        Self { order: (0..n as u32).collect() }
    }

    /// Takes an order that is one by construction.
    pub(in crate::matrix) fn of_order(order: Vec<u32>) -> Self {
        debug_assert!(Self::new(order.clone()).is_ok());
        Self { order }
    }

    /// The same order of groups of `size` neighbours, each where the first of it was: those from k `size` on stay side by side. O(n).
    pub(crate) fn in_groups(&self, size: usize) -> Self {
        let mut seen = vec![false; self.order.len() / size];
        let is_first = |old: &&u32| !std::mem::replace(&mut seen[**old as usize / size], true);
        let size = size as u32;
        let firsts = self.order.iter().filter(is_first).map(|old| old - old % size);
        Self::of_order(firsts.flat_map(|old| old..old + size).collect())
    }

    /// How many things it orders.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is nothing to order.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The old numbers in their new order.
    #[must_use]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The permutation that leads back; its `order` tells the new place of each old number. O(n).
    #[must_use]
    pub fn inverse(&self) -> Self {
        let mut places = vec![0; self.order.len()];
        for (k, &old) in self.order.iter().enumerate() {
            places[old as usize] = k as u32;
        }
        Self { order: places }
    }

    /// P x: element k is `x[order[k]]`.
    ///
    /// # Panics
    /// If `x` has another length.
    #[must_use]
    pub fn apply<T: Copy + Send + Sync>(&self, x: &[T]) -> Vec<T> {
        assert_eq!(x.len(), self.len(), "x must have one element a place");
        self.order.par_iter().map(|&old| x[old as usize]).collect()
    }

    /// Pᵀ y: element `order[k]` is `y[k]`, so that `undo(&apply(x))` is `x`.
    ///
    /// # Panics
    /// If `y` has another length.
    #[must_use]
    pub fn undo<T: Copy + Send + Sync>(&self, y: &[T]) -> Vec<T> {
        let mut x = y.to_vec();
        self.undo_into(y, &mut x);
        x
    }

    /// The same, into `x`.
    ///
    /// # Panics
    /// If `y` or `x` has another length.
    pub fn undo_into<T: Copy>(&self, y: &[T], x: &mut [T]) {
        assert_eq!([y.len(), x.len()], [self.len(); 2], "x and y must have one element a place");
        for (&old, &v) in self.order.iter().zip(y) {
            x[old as usize] = v;
        }
    }
}

/// P A Pᵀ: rows and columns of a square matrix in a new order. Then A x = b if (P A Pᵀ) (P x) = P b.
///
/// Rows in parallel, O(nnz log(longest row)); the memory of the result, and 4 bytes a row.
///
/// # Errors
/// [`Error::NotSquare`], [`Error::SizeMismatch`]; [`Error::OutOfMemory`] for the result.
pub fn permuted<T: Scalar>(a: &Csr<T>, p: &Permutation) -> Result<Csr<T>> {
    let n = a.n_rows();
    if n != a.n_cols() {
        return Err(Error::NotSquare { rows: n, cols: a.n_cols() });
    }
    if p.len() != n {
        return Err(Error::SizeMismatch { what: "the permutation".into(), expected: n, found: p.len() });
    }
    let places = p.inverse();
    let mut row_ptr = vec![0; n + 1];
    row_ptr[1..].par_iter_mut().zip(p.order()).for_each(|(length, &old)| *length = a.row(old as usize).0.len());
    let mut end = 0;
    for length in &mut row_ptr {
        end += *length;
        *length = end;
    }
    let no_memory = |e: NoMemory| e.into_error("the reordered matrix");
    let mut cols = zeros(a.nnz()).map_err(no_memory)?;
    let mut values = zeros(a.nnz()).map_err(no_memory)?;
    fill(a, p.order(), places.order(), (&row_ptr, &mut cols, &mut values));
    Ok(Csr::assembled(n, n, row_ptr, cols, values))
}

/// Writes the old rows `order` of `a` one behind the other, by halves until a task is small.
fn fill<T: Scalar>(
    a: &Csr<T>,
    order: &[u32],
    places: &[u32],
    (row_ptr, cols, values): (&[usize], &mut [u32], &mut [T]),
) {
    if order.len() > 1 && cols.len() > ENTRIES {
        let half = order.len() / 2;
        let (order_1, order_2) = order.split_at(half);
        let (cols_1, cols_2) = cols.split_at_mut(row_ptr[half] - row_ptr[0]);
        let (values_1, values_2) = values.split_at_mut(cols_1.len());
        rayon::join(
            || fill(a, order_1, places, (&row_ptr[..=half], cols_1, values_1)),
            || fill(a, order_2, places, (&row_ptr[half..], cols_2, values_2)),
        );
        return;
    }
    // Each step for all rows, as numbers from all over the matrix are then under way at once.
    let ranges: Vec<_> = order.iter().map(|&old| a.row_ptr()[old as usize]..a.row_ptr()[old as usize + 1]).collect();
    let mut entries = Vec::with_capacity(cols.len());
    for range in ranges {
        let places = a.col_idx()[range.clone()].iter().map(|&j| places[j as usize]);
        entries.extend(places.zip(a.values()[range].iter().copied()));
    }
    for row in row_ptr.windows(2) {
        entries[row[0] - row_ptr[0]..row[1] - row_ptr[0]].sort_unstable_by_key(|e| e.0);
    }
    for ((col, value), (j, v)) in cols.iter_mut().zip(values).zip(entries) {
        (*col, *value) = (j, v);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matrix::{Complex64, gallery};

    #[test]
    fn by_hand() {
        let p = Permutation::new(vec![2, 0, 1]).unwrap();
        assert_eq!(p.apply(&["a", "b", "c"]), ["c", "a", "b"]);
        assert_eq!(p.undo(&["c", "a", "b"]), ["a", "b", "c"]);
        assert_eq!(p.inverse().order(), [1, 2, 0]);
        let a = Csr::new(3, 3, vec![0, 2, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
        let b = permuted(&a, &p).unwrap();
        // rows and columns 2, 0, 1 of A
        assert_eq!(b, Csr::new(3, 3, vec![0, 1, 3, 3], vec![2, 0, 1], vec![3.0, 2.0, 1.0]).unwrap());
    }

    #[test]
    fn orders_that_are_none() {
        let error = |order: Vec<u32>| Permutation::new(order).unwrap_err().to_string();
        assert!(error(vec![0, 2]).contains("place 1 has 2, which is not below 2"));
        assert!(error(vec![1, 0, 1]).contains("place 2 has 1 a second time"));
        assert!(Permutation::new(vec![]).unwrap().is_empty());
    }

    #[test]
    fn sizes_must_agree() {
        let wide = Csr::new(1, 2, vec![0, 0], vec![], Vec::<f64>::new()).unwrap();
        assert!(matches!(permuted(&wide, &Permutation::identity(1)), Err(Error::NotSquare { rows: 1, cols: 2 })));
        let square = Csr::new(2, 2, vec![0, 0, 0], vec![], Vec::<Complex64>::new()).unwrap();
        let error = permuted(&square, &Permutation::identity(3)).unwrap_err();
        assert_eq!(error.to_string(), "the permutation has 3 rows, but the matrix has 2");
        assert_eq!(permuted(&square, &Permutation::identity(2)).unwrap(), square);
    }

    #[test]
    fn large_matrices_are_split_among_tasks() {
        let a = gallery::random_spd(20_000, 8, 1).unwrap();
        let p = Permutation::new((0..20_000).map(|k| (k * 7919 + 13) % 20_000).collect()).unwrap();
        let b = permuted(&a, &p).unwrap();
        assert!(b.nnz() > 4 * ENTRIES);
        let x = gallery::random_vector(20_000, 1);
        // the same products, added in another order
        for (y, z) in b.mul_vec(&p.apply(&x)).iter().zip(p.apply(&a.mul_vec(&x))) {
            assert!((y - z).abs() < 1e-12 * z.abs().max(1.0));
        }
        assert_eq!(permuted(&b, &p.inverse()).unwrap(), a);
    }

    proptest! {
        #[test]
        fn there_and_back(order in Just((0u32..50).collect::<Vec<_>>()).prop_shuffle()) {
            let p = Permutation::new(order).unwrap();
            let x: Vec<u32> = (100..150).collect();
            prop_assert_eq!(p.undo(&p.apply(&x)), x.clone());
            prop_assert_eq!(p.inverse().apply(&x), p.undo(&x));
            prop_assert_eq!(p.inverse().inverse(), p);
        }
    }
}
