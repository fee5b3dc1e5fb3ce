//! SciPy's files, of which each process looks at its part.

use std::path::Path;

use super::assembly::{Made, tidied};
use super::balance::{balanced, rebalanced};
use super::rows::Rows;
use crate::comm::processes::{Processes, agreed, any, gathered};
use crate::matrix_market::Zeros;
use crate::npz::parts::{Opened, Stored};
use crate::partition::{cost_of, row_ranges_of};
use crate::{Result, npz};

/// Reads a matrix from a `.npz` file, so that each process has some rows, which cost about as much on all; gives the number
/// of entries that were added to an earlier one, too. None for a complex matrix. Collective.
///
/// Of stored `csr` files, each process reads its own rows, and where all rows start. Others, and what is compressed, the
/// first process reads as a whole, and hands the rows on. Checksums are verified either way.
///
/// # Errors
/// As [`npz::read`]: on at least one process; others have
/// [`Error::ProcessFailed`](crate::Error::ProcessFailed) with what it says.
pub(crate) fn read_npz(processes: &dyn Processes, path: &Path) -> Result<Option<(Rows, u64)>> {
    let opened = agreed(processes, Opened::open(path))?;
    match agreed(processes, opened.rows())? {
        Some(stored) => own_rows(processes, stored).map(Some),
        None => handed_on(processes, path),
    }
}

/// Reads the own rows.
fn own_rows(processes: &dyn Processes, stored: Stored) -> Result<(Rows, u64)> {
    let (own, count, [n_rows, n_cols]) = (processes.process(), processes.count(), stored.dims());
    let starts = stored.starts();
    let ranges = row_ranges_of(n_rows as usize, |row| cost_of(row, starts[row]), &vec![1.0; count]);
    let mut bounds: Vec<u64> = ranges.iter().map(|range| range.start as u64).collect();
    bounds.push(n_rows);
    let range = ranges[own].clone();
    let first = starts[range.start];
    // room behind all entries has a part in the checksum
    let end = |process: usize| if process + 1 == count { stored.room() } else { starts[ranges[process].end] };
    let entries = agreed(processes, stored.entries(first..end(own)))?;
    let mut sums = vec![0; 2 * count];
    processes.gather(&entries.sums.map(u64::from), &mut sums)?;
    let sums = |of: usize| -> Vec<(u32, usize)> {
        (0..count).map(|k| (sums[2 * k + of] as u32, end(k) - starts[ranges[k].start])).collect()
    };
    let [columns_checked, values_checked] = entries.checked;
    // the same on all, before what is wrong with some element
    stored.expect_column_sums(&sums(0))?;
    agreed(processes, columns_checked)?;
    stored.expect_value_sums(&sums(1))?;
    agreed(processes, values_checked)?;
    let row_ptr = starts[range.start..=range.end].iter().map(|start| start - first).collect();
    let (columns, values) = (entries.columns, entries.values);
    let rows = Rows { n_rows, n_cols, starts: bounds, row_ptr, columns, values };
    let Made { rows, diagonal, off_diagonal, infinite } = tidied(rows, range.start as u64, Zeros::Keep);
    let finite = infinite.map_or(Ok(()), |infinite| Err(stored.sum_not_finite(infinite.row, infinite.column)));
    agreed(processes, finite)?;
    let duplicates = gathered(processes, diagonal + off_diagonal)?.into_iter().sum();
    // sums may have left less on one process
    Ok((rebalanced(processes, rows)?, duplicates))
}

/// Lets the first process read all of it, and takes the own rows from it.
fn handed_on(processes: &dyn Processes, path: &Path) -> Result<Option<(Rows, u64)>> {
    let (is_first, count) = (processes.process() == 0, processes.count());
    let read = || {
        if !is_first {
            return Ok(None);
        }
        let npz::Matrix { a, duplicates, .. } = npz::read_with(path, &|_, _| {})?;
        Ok(a.into_real().map(|a| (a, duplicates)))
    };
    let whole = agreed(processes, read())?;
    if !any(processes, whole.is_some())? {
        return Ok(None);
    }
    let own = whole.as_ref().map_or([0; 3], |(a, duplicates)| [a.n_rows() as u64, a.n_cols() as u64, *duplicates]);
    let mut all = vec![0; 3 * count];
    processes.gather(&own, &mut all)?;
    let (n_rows, n_cols, duplicates) = (all[0], all[1], all[2]);
    let mut starts = vec![n_rows; count + 1];
    starts[0] = 0;
    let rows = match &whole {
        Some((a, _)) => Rows::of(a, [0, a.n_rows()], starts, n_rows),
        None => Ok(Rows { n_rows, n_cols, starts, row_ptr: vec![0], columns: Vec::new(), values: Vec::new() }),
    };
    drop(whole);
    let rows = agreed(processes, rows)?;
    let starts = balanced(processes, &rows, &vec![1.0; count])?;
    Ok(Some((rows.moved(processes, starts)?, duplicates)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::rows::tests::joined;
    use super::*;
    use crate::comm::processes::simulated::processes;
    use crate::matrix::gallery::poisson3d;

    /// What several processes read is what one reads alone.
    fn compare(path: &Path) {
        let npz::Matrix { a, duplicates, .. } = npz::read_with(path, &|_, _| {}).unwrap();
        let a = a.into_real();
        for count in [1, 2, 3, 5] {
            let found = processes(count, |all| read_npz(&*all, path).unwrap());
            match &a {
                None => assert!(found.iter().all(Option::is_none)),
                Some(a) => {
                    let (parts, of_each): (Vec<Rows>, Vec<u64>) = found.into_iter().flatten().unzip();
                    assert_eq!((joined(&parts), of_each), (a.clone(), vec![duplicates; count]), "{}", path.display());
                }
            }
        }
    }

    #[test]
    fn every_file_there_is() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/npz");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "npz")).collect();
        assert!(files.len() > 5);
        files.iter().for_each(|path| compare(path));
    }

    #[test]
    fn files_of_this_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        for a in [poisson3d([7, 8, 9]).unwrap(), poisson3d([1; 3]).unwrap()] {
            npz::write(std::fs::File::create(&path).unwrap(), &a).unwrap();
            compare(&path);
        }
    }

    #[test]
    fn damage_is_found_by_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let a = poisson3d([9; 3]).unwrap();
        let mut bytes = Vec::new();
        npz::write(std::io::Cursor::new(&mut bytes), &a).unwrap();
        // within columns or values, wherever they are
        for part in [0.2, 0.6, 0.9] {
            let mut bytes = bytes.clone();
            let at = (bytes.len() as f64 * part) as usize;
            bytes[at] ^= 1;
            std::fs::File::create(&path).unwrap().write_all(&bytes).unwrap();
            let expected = npz::read(&path).unwrap_err().to_string();
            for count in [1, 2, 3] {
                let found = processes(count, |all| read_npz(&*all, &path).unwrap_err().to_string());
                assert!(found.iter().all(|error| error.ends_with(&expected)), "{found:?} {expected}");
            }
        }
    }
}
