//! The transpose.

use std::ops::Range;

use rayon::prelude::*;

use super::assemble::zeroed;
use super::{Csr, Scalar};
use crate::error::Result;

impl<T: Scalar> Csr<T> {
    /// Aᵀ. Each thread gathers a range of the columns from all rows: O(nnz + m log of a row's entries) for each of them, and no memory
    /// beyond the result but 8 bytes a column. The same for any number of threads.
    ///
    /// ```
    /// let a = declive::Csr::from_triplets(2, 3, &[0, 0, 1], &[0, 2, 2], &[1.0, 2.0, 3.0])?;
    /// let transpose = a.transposed()?;
    /// assert_eq!((transpose.n_rows(), transpose.row(2)), (3, ([0, 1].as_slice(), [2.0, 3.0].as_slice())));
    /// # Ok::<(), declive::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory) for the result.
    pub fn transposed(&self) -> Result<Self> {
        let (m, n) = (self.n_rows(), self.n_cols());
        let width = n.div_ceil(rayon::current_num_threads()).max(1);
        let ranges: Vec<Range<usize>> = (0..n).step_by(width).map(|first| first..n.min(first + width)).collect();
        let mut row_ptr: Vec<usize> = zeroed(n + 1, "the row pointers")?;
        row_ptr[1..].par_chunks_mut(width).zip(&ranges).for_each(|(lengths, range)| {
            (0..m).flat_map(|i| self.within(i, range)).for_each(|(j, _)| lengths[j - range.start] += 1);
        });
        for j in 0..n {
            row_ptr[j + 1] += row_ptr[j];
        }
        let mut cols: Vec<u32> = zeroed(self.nnz(), "the column indices")?;
        let mut values: Vec<T> = zeroed(self.nnz(), "the values")?;
        let (mut cols_left, mut values_left) = (cols.as_mut_slice(), values.as_mut_slice());
        let mut pieces = Vec::new();
        for range in ranges {
            let len = row_ptr[range.end] - row_ptr[range.start];
            let (own_cols, own_values);
            (own_cols, cols_left) = cols_left.split_at_mut(len);
            (own_values, values_left) = values_left.split_at_mut(len);
            pieces.push((range, own_cols, own_values));
        }
        pieces.into_par_iter().for_each(|(range, cols, values)| {
            let mut next: Vec<usize> = row_ptr[range.clone()].iter().map(|at| at - row_ptr[range.start]).collect();
            for i in 0..m {
                for (j, value) in self.within(i, &range) {
                    let at = &mut next[j - range.start];
                    (cols[*at], values[*at]) = (i as u32, value);
                    *at += 1;
                }
            }
        });
        Ok(Self::assembled(n, m, row_ptr, cols, values))
    }

    /// The entries of row `i` in these columns.
    fn within(&self, i: usize, range: &Range<usize>) -> impl Iterator<Item = (usize, T)> {
        let (cols, values) = self.row(i);
        let [begin, end] = [range.start, range.end].map(|at| cols.partition_point(|&j| (j as usize) < at));
        cols[begin..end].iter().zip(&values[begin..end]).map(|(&j, &value)| (j as usize, value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn entries_change_places(
            m in 0usize..20,
            n in 0usize..20,
            places in prop::collection::btree_set((0u32..20, 0u32..20), 0..120),
            threads in 1usize..6,
        ) {
            let inside = |&(i, j): &(u32, u32)| (i as usize) < m && (j as usize) < n;
            let (rows, cols): (Vec<u32>, Vec<u32>) = places.into_iter().filter(inside).unzip();
            let values: Vec<f64> = (0..rows.len()).map(|k| k as f64).collect();
            let a = Csr::from_triplets(m, n, &rows, &cols, &values).unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let transpose = pool.install(|| a.transposed().unwrap());
            prop_assert_eq!(&transpose, &Csr::from_triplets(n, m, &cols, &rows, &values).unwrap());
            prop_assert_eq!(transpose.transposed().unwrap(), a);
        }
    }
}
