//! Several unknowns at each node of a mesh: rows that belong together.

use rayon::prelude::*;

use super::rows::Rows;
use crate::comm::processes::{Processes, any};
use crate::error::Result;
use crate::matrix::blocks::SIZES;

/// How many unknowns a node has: the largest size from 2 to 6 of which all of a square matrix is made of full blocks, else 1, as
/// [`matrix::blocks`](crate::matrix::blocks) has it. Of a node whose rows are several processes', only these rows are looked at. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn unknowns(processes: &dyn Processes, rows: &Rows) -> Result<usize> {
    for size in SIZES {
        let is_possible = rows.n_rows == rows.n_cols && rows.n_rows > 0 && rows.n_rows.is_multiple_of(size as u64);
        if is_possible && !any(processes, !is_full(rows, rows.starts[processes.process()], size))? {
            return Ok(size);
        }
    }
    Ok(1)
}

/// Whether the entries of rows from `first` on are those of full blocks of that size.
fn is_full(rows: &Rows, first: u64, size: usize) -> bool {
    let of_row = |i: usize| &rows.columns[rows.row_ptr[i]..rows.row_ptr[i + 1]];
    let is_row = |i: usize| {
        let columns = of_row(i);
        let of_blocks = columns.chunks(size).all(|block| {
            block.len() == size
                && block[0].is_multiple_of(size as u64)
                && block.windows(2).all(|two| two[0] + 1 == two[1])
        });
        let is_first = (first + i as u64).is_multiple_of(size as u64);
        of_blocks && (is_first || i == 0 || of_row(i - 1) == columns)
    };
    let n = rows.len();
    n == 0 || is_row(n / 2) && (0..n).into_par_iter().with_min_len(1 << 10).all(is_row)
}

/// Boundaries of rows between nodes of so many unknowns: each moved back by less than a node.
pub(crate) fn between(starts: &[u64], unknowns: usize) -> Vec<u64> {
    starts.iter().map(|start| start - start % unknowns as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::divided;
    use super::*;
    use crate::comm::processes::simulated::processes;
    use crate::matrix::gallery::Spec;
    use crate::matrix::{Csr, blocks};

    fn found(a: &Csr, starts: &[u64]) -> usize {
        let all =
            processes(starts.len() - 1, |all| unknowns(&*all, &divided(a, starts).swap_remove(all.process())).unwrap());
        assert!(all.iter().all(|other| *other == all[0]));
        all[0]
    }

    #[test]
    fn of_processes_as_of_one() {
        for spec in ["elasticity3d:3", "poisson3d:6", "tetrahedra:3", "helmholtz3d:4"] {
            let a = spec.parse::<Spec>().unwrap().build().unwrap();
            let n = a.n_rows() as u64;
            for starts in [vec![0, n], vec![0, n / 2, n], vec![0, 1, 1, n - 2, n]] {
                assert_eq!(found(&a, &starts), blocks::unknowns(&a), "{spec}, {starts:?}");
            }
        }
        // blocks of 2 but for one entry, in the second process
        let full = |missing: usize| {
            let entries = |i: usize| (0..4).filter(move |j| (i, *j) != (missing, 3)).map(|j| j as u32);
            let columns: Vec<Vec<u32>> = (0..4).map(|i| entries(i).collect()).collect();
            let row_ptr = (0..=4).map(|i| columns[..i].iter().map(Vec::len).sum()).collect();
            let columns = columns.concat();
            let values = vec![1.0; columns.len()];
            Csr::new(4, 4, row_ptr, columns, values).unwrap()
        };
        assert_eq!((found(&full(9), &[0, 2, 4]), found(&full(3), &[0, 2, 4]), found(&full(3), &[0, 4])), (4, 1, 1));
        assert_eq!(between(&[0, 5, 6, 12], 3), [0, 3, 6, 12]);
    }
}
