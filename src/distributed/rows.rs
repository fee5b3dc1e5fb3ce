//! What one process holds of a matrix.

use std::ops::Range;

use rayon::prelude::*;

use super::assembly::Assembly;
use super::entry::by_owner;
use crate::comm::processes::{Processes, agreed, gathered};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix_market::Zeros;
use crate::memory::zeros;
use crate::partition::cost_of;

/// Entries that a process sends at a time.
const ROUND: usize = 1 << 22;

/// The rows of a matrix that one process has, with global columns, in each row sorted and without duplicates.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Rows of the whole matrix.
    pub(crate) n_rows: u64,
    /// Its columns.
    pub(crate) n_cols: u64,
    /// The first row of each process, and the end of the last one's: the same on all.
    pub(crate) starts: Vec<u64>,
    /// Where each own row begins in the arrays, and the end of the last.
    pub(crate) row_ptr: Vec<usize>,
    /// The column of each entry.
    pub(crate) columns: Vec<u64>,
    /// Its value.
    pub(crate) values: Vec<f64>,
}

/// Entries in any order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Triplets {
    /// Rows.
    pub rows: Vec<u64>,
    /// Columns.
    pub columns: Vec<u64>,
    /// Values.
    pub values: Vec<f64>,
}

impl Rows {
    /// Makes rows of the entries that all processes bring: each goes to the process that has its row. What shares a place is
    /// added, in the order of processes and then of entries; gives the number of entries that were added to another one. Collective.
    ///
    /// # Errors
    /// [`Error::NotFinite`] for a sum that is infinite, [`Error::OutOfMemory`], [`Error::Usage`] if a process had 2³² rows; a failed
    /// process.
    ///
    /// # Panics
    /// If `starts` are not one more than processes, or fall, or an entry has no owner.
    pub fn assemble(
        processes: &dyn Processes,
        dims: [u64; 2],
        starts: Vec<u64>,
        entries: Triplets,
    ) -> Result<(Self, u64)> {
        Self::assemble_by(processes, dims, starts, entries, ROUND)
    }

    /// The same with so many entries of a process at a time.
    pub(super) fn assemble_by(
        processes: &dyn Processes,
        dims: [u64; 2],
        starts: Vec<u64>,
        entries: Triplets,
        round: usize,
    ) -> Result<(Self, u64)> {
        let Triplets { rows, columns, values } = entries;
        assert!(rows.len() == columns.len() && rows.len() == values.len(), "entries of different lengths");
        let mut assembly = Assembly::new(processes, dims, starts)?;
        let longest = gathered(processes, rows.len() as u64)?.into_iter().max().unwrap_or(0) as usize;
        for begin in (0..longest).step_by(round) {
            let part = begin.min(rows.len())..(begin + round).min(rows.len());
            let entries = part.map(|k| (rows[k], columns[k], values[k]));
            let block = by_owner(assembly.starts(), entries);
            assembly.round(vec![block])?;
        }
        drop((rows, columns, values));
        let made = agreed(processes, assembly.finish(Zeros::Keep))?;
        let own = made.infinite.map_or(Ok(()), |infinite| {
            let (what, index) = (format!("row {} of the matrix", infinite.row + 1), infinite.column as usize + 1);
            Err(Error::NotFinite { what, index, value: f64::INFINITY })
        });
        agreed(processes, own)?;
        let duplicates = gathered(processes, made.diagonal + made.off_diagonal)?.into_iter().sum();
        Ok((made.rows, duplicates))
    }

    /// A process's rows of a matrix that it has: those from `first` on, of so many columns and rows in all.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn of(a: &Csr, [first, last]: [usize; 2], starts: Vec<u64>, n_rows: u64) -> Result<Self> {
        let out_of_memory = |bytes: crate::memory::NoMemory| bytes.into_error("the rows of a process");
        let entries = a.row_ptr()[first]..a.row_ptr()[last];
        let mut columns: Vec<u64> = zeros(entries.len()).map_err(out_of_memory)?;
        columns.iter_mut().zip(&a.col_idx()[entries.clone()]).for_each(|(to, &column)| *to = column.into());
        let row_ptr = a.row_ptr()[first..=last].iter().map(|at| at - entries.start).collect();
        let values = a.values()[entries].to_vec();
        Ok(Self { n_rows, n_cols: a.n_cols() as u64, starts, row_ptr, columns, values })
    }

    /// Some of the own rows of process `process`, and places for the columns of others: a square matrix, in which the columns are in the same
    /// order.
    ///
    /// # Errors
    /// More rows and columns than 32-bit indices have numbers for.
    pub(crate) fn excerpt(&self, process: usize, rows: Range<usize>) -> Result<Csr> {
        let entries = self.row_ptr[rows.start]..self.row_ptr[rows.end];
        let [first, last] = [rows.start, rows.end].map(|row| self.starts[process] + row as u64);
        let columns = &self.columns[entries.clone()];
        let mut others: Vec<u64> = columns.par_iter().copied().filter(|j| !(first..last).contains(j)).collect();
        others.par_sort_unstable();
        others.dedup();
        let before = others.partition_point(|j| *j < first);
        let place = |j: &u64| {
            if (first..last).contains(j) {
                return (j - first) as u32 + before as u32;
            }
            let (Ok(k) | Err(k)) = others.binary_search(j);
            if k < before { k as u32 } else { (k + rows.len()) as u32 }
        };
        let order = rows.len() + others.len();
        let mut row_ptr = vec![0; before];
        row_ptr.extend(self.row_ptr[rows.start..=rows.end].iter().map(|at| at - entries.start));
        row_ptr.resize(order + 1, entries.len());
        Csr::new(order, order, row_ptr, columns.par_iter().map(place).collect(), self.values[entries].to_vec())
    }

    /// What an iteration costs on the own rows, see [`cost_of`].
    pub(crate) fn cost(&self) -> u64 {
        self.cost_before(self.len())
    }

    /// The number of own rows.
    pub(crate) fn len(&self) -> usize {
        self.row_ptr.len() - 1
    }

    /// The number of own entries.
    pub(crate) fn nnz(&self) -> usize {
        self.columns.len()
    }

    /// What the own rows before row `k` of them cost, see [`cost_of`].
    pub(super) fn cost_before(&self, k: usize) -> u64 {
        cost_of(k, self.row_ptr[k]) as u64
    }
}

/// So many rows in even parts, one for each process: the first row of each, and the end.
pub(super) fn even_starts(n_rows: u64, count: usize) -> Vec<u64> {
    (0..=count as u128).map(|k| (u128::from(n_rows) * k / count as u128) as u64).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::comm::processes::simulated::processes;

    /// All rows of all processes, as they are in one matrix.
    pub(in crate::distributed) fn joined(parts: &[Rows]) -> Csr {
        let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for (k, part) in parts.iter().enumerate() {
            assert_eq!((part.n_rows, part.n_cols, &part.starts), (parts[0].n_rows, parts[0].n_cols, &parts[0].starts));
            assert_eq!(part.starts[k + 1] - part.starts[k], part.len() as u64);
            assert_eq!((part.row_ptr[0], part.row_ptr[part.len()]), (0, part.nnz()));
            row_ptr.extend(part.row_ptr[1..].iter().map(|at| at + columns.len()));
            columns.extend(part.columns.iter().map(|&column| column as u32));
            values.extend_from_slice(&part.values);
        }
        assert_eq!((parts[0].starts.len(), parts[0].starts[0]), (parts.len() + 1, 0));
        Csr::new(parts[0].n_rows as usize, parts[0].n_cols as usize, row_ptr, columns, values).unwrap()
    }

    /// The rows of each process of a matrix, between the given boundaries.
    pub(crate) fn divided(a: &Csr, starts: &[u64]) -> Vec<Rows> {
        let part = |ends: &[u64]| {
            Rows::of(a, [ends[0] as usize, ends[1] as usize], starts.to_vec(), a.n_rows() as u64).unwrap()
        };
        starts.windows(2).map(part).collect()
    }

    /// The same rows of a matrix with so many empty ones before them, which nobody has.
    pub(crate) fn shifted(rows: Rows, by: u64) -> Rows {
        let moved = |numbers: Vec<u64>| numbers.into_iter().map(|number| number + by).collect();
        Rows {
            n_rows: rows.n_rows + by,
            n_cols: rows.n_cols + by,
            starts: moved(rows.starts),
            columns: moved(rows.columns),
            ..rows
        }
    }

    #[test]
    fn even_parts() {
        assert_eq!(even_starts(10, 3), [0, 3, 6, 10]);
        assert_eq!(even_starts(0, 2), [0, 0, 0]);
        assert_eq!(even_starts(1 << 62, 4)[3], 3 << 60);
    }

    #[test]
    fn rows_beyond_32_bits() {
        let base: u64 = 1 << 40;
        let n = base + 5;
        let starts = vec![base, base + 2, n];
        let found = processes(2, |all| {
            // each brings entries of the other, too; (base + 3, 7) comes three times, twice from the first
            let entries = match all.process() {
                0 => Triplets {
                    rows: vec![base + 3, base, base + 3, base + 4],
                    columns: vec![7, n - 1, 7, base],
                    values: vec![1.0, 2.0, 1e-20, 3.0],
                },
                _ => Triplets {
                    rows: vec![base + 3, base, base + 3],
                    columns: vec![1 << 33, 3, 7],
                    values: vec![4.0, 5.0, -1.0],
                },
            };
            [1, 2, 100].map(|round| {
                let (rows, duplicates) =
                    Rows::assemble_by(&*all, [n, n], starts.clone(), entries.clone(), round).unwrap();
                assert_eq!((duplicates, &rows.starts, rows.n_cols), (2, &starts, n));
                (rows.row_ptr, rows.columns, rows.values)
            })
        });
        for (first, second) in found[0].iter().zip(&found[1]) {
            assert_eq!(*first, (vec![0, 2, 2], vec![3, n - 1], vec![5.0, 2.0]));
            // (1 + 1e-20) − 1, in this order
            assert_eq!(*second, (vec![0, 0, 2, 3], vec![7, 1 << 33, base], vec![0.0, 4.0, 3.0]));
        }
    }

    #[test]
    fn sums_beyond_all_bounds() {
        let errors = processes(3, |all| {
            let entries = Triplets { rows: vec![4], columns: vec![1], values: vec![f64::MAX] };
            Rows::assemble(&*all, [6, 6], vec![0, 2, 4, 6], entries).unwrap_err().to_string()
        });
        assert!(errors[2].contains("row 5 of the matrix"), "{errors:?}");
        assert!(errors[0] == errors[1] && errors[0].starts_with("process 2 failed: "), "{errors:?}");
    }

    #[test]
    fn too_many_rows_for_a_process() {
        let errors = processes(2, |all| {
            Rows::assemble(&*all, [1 << 34, 1], vec![0, 1, 1 << 34], Triplets::default()).unwrap_err().to_string()
        });
        assert!(errors.iter().all(|error| error.contains("rows")), "{errors:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn as_from_triplets(
            n in 1u32..40,
            m in 1u32..30,
            count in 1usize..6,
            round in 1usize..50,
            places in prop::collection::vec((any::<u32>(), any::<u32>(), -8i32..8), 0..200),
            cuts in prop::collection::vec(any::<u32>(), 4),
        ) {
            let rows: Vec<u32> = places.iter().map(|place| place.0 % n).collect();
            let columns: Vec<u32> = places.iter().map(|place| place.1 % m).collect();
            let values: Vec<f64> = places.iter().map(|place| f64::from(place.2) * 0.1).collect();
            let mut starts: Vec<u64> = cuts[..count - 1].iter().map(|cut| u64::from(cut % (n + 1))).collect();
            starts.extend([0, n.into()]);
            starts.sort_unstable();
            let expected = Csr::from_triplets(n as usize, m as usize, &rows, &columns, &values).unwrap();
            let found = processes(count, |all| {
                let k = all.process();
                let part = places.len() * k / count..places.len() * (k + 1) / count;
                let entries = Triplets {
                    rows: rows[part.clone()].iter().map(|&i| i.into()).collect(),
                    columns: columns[part.clone()].iter().map(|&j| j.into()).collect(),
                    values: values[part].to_vec(),
                };
                Rows::assemble_by(&*all, [n.into(), m.into()], starts.clone(), entries, round).unwrap()
            });
            prop_assert!(found.iter().all(|(_, duplicates)| *duplicates as usize == places.len() - expected.nnz()));
            let parts: Vec<Rows> = found.into_iter().map(|(rows, _)| rows).collect();
            prop_assert_eq!(joined(&parts), expected);
        }
    }
}
