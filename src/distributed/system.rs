//! Rows as they come from files, generators and callers.

use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::Rows;
use super::npz::read_npz;
use super::read::read_matrix_market;
use crate::comm::Processes;
use crate::comm::processes::{agreed, gathered};
use crate::error::{Error, Result};
use crate::matrix_market::Zeros;
use crate::npz;

/// Reads a matrix from a Matrix Market or `.npz` file, so that each process has some rows, which cost about as much on all; tells how many
/// entries were added to an earlier one. The matrix is the same to the bit as that of [`read_matrix`](crate::matrix_market::read_matrix).
/// Collective.
///
/// # Errors
/// As [`read_matrix`](crate::matrix_market::read_matrix) and [`npz::read`], on at least one process, while others have
/// [`Error::ProcessFailed`] with what it says; [`Error::Usage`] for complex matrices and arrays, which only one process can read.
pub fn read(processes: &dyn Processes, path: &Path, zeros: Zeros) -> Result<(Rows, u64)> {
    let read = match npz::is_npz(path) {
        true => read_npz(processes, path)?,
        false => read_matrix_market(processes, path, zeros)?.map(|(rows, _, duplicates)| (rows, duplicates)),
    };
    read.ok_or_else(|| {
        let name = path.display();
        Error::Usage(format!("{name}: complex matrices and arrays are for one process; several can't share them"))
    })
}

impl Rows {
    /// A matrix of `n` rows and columns, of which this process has those from `first` on, the processes one behind the other: row k has
    /// `columns[row_ptr[k]..row_ptr[k + 1]]`, which rise, and the `values` there. Collective.
    ///
    /// # Errors
    /// [`Error::Usage`] for rows that don't follow each other, or what is no such matrix, on all processes.
    pub fn new(
        processes: &dyn Processes,
        n: u64,
        first: u64,
        row_ptr: Vec<usize>,
        columns: Vec<u64>,
        values: Vec<f64>,
    ) -> Result<Self> {
        let process = processes.process();
        let rows = row_ptr.len().saturating_sub(1) as u64;
        let own = check([n, first], &row_ptr, &columns, &values)
            .map_err(|what| Error::Usage(format!("the rows of process {process}: {what}")));
        agreed(processes, own)?;
        let (mut starts, lengths) = (gathered(processes, first)?, gathered(processes, rows)?);
        starts.push(n);
        if starts[0] != 0 {
            return Err(Error::Usage(format!("the rows of process 0 begin with row {}, not with 0", starts[0])));
        }
        let ends = |k: usize| starts[k] + lengths[k] == starts[k + 1];
        if let Some(k) = (0..lengths.len()).find(|&k| !ends(k)) {
            let (end, next) = (starts[k] + lengths[k], starts[k + 1]);
            return Err(Error::Usage(format!(
                "the rows of process {k} end before row {end}, but the next begin with {next}"
            )));
        }
        Ok(Self { n_rows: n, n_cols: n, starts, row_ptr, columns, values })
    }

    /// Rows of the whole matrix.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// The first row of each process, and the end of the last.
    #[must_use]
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// Which rows a process has.
    #[must_use]
    pub fn own(&self, processes: &dyn Processes) -> Range<u64> {
        let process = processes.process();
        self.starts[process]..self.starts[process + 1]
    }

    /// These rows of A x, for an x with such elements, row by row.
    #[must_use]
    pub fn product(&self, x: &(dyn Fn(u64) -> f64 + Sync)) -> Vec<f64> {
        let row = |ends: &[usize]| {
            let entries = self.columns[ends[0]..ends[1]].iter().zip(&self.values[ends[0]..ends[1]]);
            entries.fold(0.0, |sum, (&j, v)| sum + v * x(j))
        };
        self.row_ptr.par_windows(2).map(row).collect()
    }
}

/// What is wrong with rows.
fn check([n, first]: [u64; 2], row_ptr: &[usize], columns: &[u64], values: &[f64]) -> std::result::Result<(), String> {
    let Some(rows) = row_ptr.len().checked_sub(1) else { return Err("row_ptr has no element".into()) };
    if row_ptr[0] != 0 || row_ptr[rows] != columns.len() || columns.len() != values.len() {
        let (columns, values) = (columns.len(), values.len());
        return Err(format!(
            "row_ptr is from {} to {}, with {columns} columns and {values} values",
            row_ptr[0], row_ptr[rows]
        ));
    }
    if first.checked_add(rows as u64).is_none_or(|end| end > n) {
        return Err(format!("{rows} from row {first} on are beyond the {n} of the matrix"));
    }
    let is_wrong = |ends: &[usize]| {
        let (Some(of_row), Some(values)) = (columns.get(ends[0]..ends[1]), values.get(ends[0]..ends[1])) else {
            return true;
        };
        let rises = of_row.windows(2).all(|pair| pair[0] < pair[1]);
        !rises || of_row.last().is_some_and(|j| *j >= n) || values.iter().any(|v| !v.is_finite())
    };
    match row_ptr.par_windows(2).position_first(is_wrong) {
        Some(row) => {
            let row = first + row as u64 + 1;
            Err(format!("row {row}: columns must rise and be below {n}, and values be finite"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::processes::simulated::processes;

    #[test]
    fn rows_of_a_caller() {
        // [2 0 1; 0 3 0; 1 0 4] on two processes
        let found = processes(2, |all| {
            let rows = match all.process() {
                0 => Rows::new(&*all, 3, 0, vec![0, 2], vec![0, 2], vec![2.0, 1.0]),
                _ => Rows::new(&*all, 3, 1, vec![0, 1, 3], vec![1, 0, 2], vec![3.0, 1.0, 4.0]),
            };
            let rows = rows.unwrap();
            assert_eq!((rows.n_rows(), rows.starts()), (3, &[0, 1, 3][..]));
            assert_eq!(rows.own(&*all), [0..1, 1..3][all.process()]);
            rows.product(&|j| (j + 1) as f64)
        });
        assert_eq!(found, [vec![5.0], vec![6.0, 13.0]]);
    }

    #[test]
    fn what_are_no_rows() {
        let wrong = |first: u64, row_ptr: &[usize], columns: &[u64]| {
            let found = processes(2, |all| {
                let of_two = (first, row_ptr.to_vec(), columns.to_vec());
                let (first, row_ptr, columns) = if all.process() == 0 { (0, vec![0, 0], vec![]) } else { of_two };
                let values = vec![1.0; columns.len()];
                Rows::new(&*all, 3, first, row_ptr, columns, values).unwrap_err().to_string()
            });
            assert!(found.iter().all(|text| text.contains(&found[1])), "{found:?}");
            found[1].clone()
        };
        assert!(wrong(2, &[0, 0], &[]).contains("end before row 1, but the next begin with 2"));
        assert!(wrong(1 << 33, &[0, 0], &[]).contains("1 from row 8589934592 on are beyond the 3 of the matrix"));
        assert!(wrong(1, &[0, 1, 1], &[3]).contains("row 2: columns must rise"));
        assert!(wrong(1, &[0, 2, 2], &[1, 1]).contains("row 2: columns must rise"));
        assert!(wrong(1, &[0, 2, 1], &[1]).contains("row 2"));
        assert!(wrong(1, &[], &[]).contains("no element"));
        assert!(wrong(1, &[0, 1, 2, 3], &[0, 0, 0]).contains("beyond the 3"));
        assert!(wrong(1, &[1, 1, 1], &[0]).contains("row_ptr is from 1 to 1, with 1 columns"));
    }

    #[test]
    fn all_rows_have_an_owner() {
        let base = 5_000_000_000;
        let errors = processes(2, |all| {
            let first = base + all.process() as u64;
            Rows::new(&*all, base + 2, first, vec![0, 1], vec![base], vec![1.0]).unwrap_err().to_string()
        });
        assert!(errors.iter().all(|error| error.contains("begin with row 5000000000, not with 0")), "{errors:?}");
    }

    /// Text, and what is generated, have at most 2³² − 1 rows, of several processes, too: that is told, and nothing is cut off.
    #[test]
    fn files_and_generators_beyond_32_bits_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        let text = "%%MatrixMarket matrix coordinate real general\n5000000000 5000000000 1\n4294967297 1 1.0\n";
        std::fs::write(&path, text).unwrap();
        let spec: crate::matrix::gallery::Spec = "poisson3d:1700".parse().unwrap();
        for count in [1, 3] {
            let errors = processes(count, |all| {
                let of_file = super::super::read(&*all, &path, Zeros::Keep).unwrap_err().to_string();
                let generated = super::super::generated(&*all, &spec).unwrap_err().to_string();
                [of_file, generated]
            });
            for [of_file, generated] in errors {
                assert!(of_file.contains("5000000000") && of_file.contains("4294967295"), "{of_file}");
                assert!(generated.contains("32-bit") || generated.contains("4294967295"), "{generated}");
            }
        }
    }
}
