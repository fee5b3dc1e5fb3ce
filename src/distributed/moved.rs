//! The same rows between other boundaries.

use bytemuck::Pod;

use super::rows::Rows;
use crate::comm::processes::{Processes, agreed, exchange, gathered};
use crate::error::{Error, Result};
use crate::memory::{NoMemory, zeros};

/// Elements that a process sends at a time.
const ROUND: usize = 1 << 22;

impl Rows {
    /// The same matrix with other boundaries, of the same rows in all. Columns are moved and forgotten before values are, so that
    /// some 24 bytes an entry are held meanwhile. Collective.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Usage`] if a process had 2³² rows; a failed process.
    ///
    /// # Panics
    /// If `starts` are not one more than processes, or fall, or don't begin and end where those before do.
    pub(crate) fn moved(self, processes: &dyn Processes, starts: Vec<u64>) -> Result<Self> {
        self.moved_by(processes, starts, ROUND)
    }

    /// The same with so many elements of a process at a time.
    fn moved_by(self, processes: &dyn Processes, starts: Vec<u64>, round: usize) -> Result<Self> {
        let (own, count) = (processes.process(), processes.count());
        assert!(starts.len() == count + 1 && starts.is_sorted(), "boundaries {starts:?}");
        assert!(starts[0] == self.starts[0] && starts[count] == self.starts[count], "boundaries {starts:?}");
        if starts == self.starts {
            return Ok(self);
        }
        if starts.windows(2).any(|ends| ends[1] - ends[0] > u32::MAX.into()) {
            return Err(Error::Usage("there are too many rows for a process: use more of them".into()));
        }
        let Self { n_rows, n_cols, starts: before, row_ptr, columns, values } = self;
        let own_rows = before[own]..before[own + 1];
        let rows: Vec<usize> = starts
            .iter()
            .map(|start| ((*start).clamp(own_rows.start, own_rows.end) - own_rows.start) as usize)
            .collect();
        let entries: Vec<usize> = rows.iter().map(|row| row_ptr[*row]).collect();
        let lengths: Vec<u64> = row_ptr.windows(2).map(|ends| (ends[1] - ends[0]) as u64).collect();
        drop(row_ptr);
        let lengths = sent(processes, lengths, &rows, round)?;
        let columns = sent(processes, columns, &entries, round)?;
        let values = sent(processes, values, &entries, round)?;
        let mut end = 0;
        let ends = lengths.into_iter().map(|len| {
            end += len as usize;
            end
        });
        let row_ptr = std::iter::once(0).chain(ends).collect();
        Ok(Self { n_rows, n_cols, starts, row_ptr, columns, values })
    }
}

/// Sends elements `cuts[k]..cuts[k + 1]` to process `k`, and gives what came, in the order of processes. Collective.
fn sent<T: Pod + Send + Sync>(
    processes: &dyn Processes,
    elements: Vec<T>,
    cuts: &[usize],
    round: usize,
) -> Result<Vec<T>> {
    let (own, count) = (processes.process(), processes.count());
    let counts: Vec<u64> = cuts.windows(2).map(|ends| (ends[1] - ends[0]) as u64).collect();
    let mut all = vec![0; count * count];
    processes.gather(&counts, &mut all)?;
    // where what comes next from each process goes
    let mut places = Vec::with_capacity(count);
    let mut len = 0;
    for from in 0..count {
        places.push(len);
        len += all[from * count + own] as usize;
    }
    let room = zeros(len).map_err(|bytes: NoMemory| bytes.into_error("the rows of a process"));
    let mut arrived: Vec<T> = agreed(processes, room)?;
    let longest = gathered(processes, elements.len() as u64)?.into_iter().max().unwrap_or(0) as usize;
    for begin in (0..longest).step_by(round) {
        let part = |ends: &[usize]| {
            let end = ends[1].min(begin + round);
            elements.get(ends[0].max(begin)..end).unwrap_or_default().to_vec()
        };
        let received = exchange(processes, cuts.windows(2).map(part).collect())?;
        for (place, elements) in places.iter_mut().zip(received) {
            arrived[*place..*place + elements.len()].copy_from_slice(&elements);
            *place += elements.len();
        }
    }
    Ok(arrived)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rows::tests::{divided, joined};
    use super::*;
    use crate::comm::processes::simulated::processes;
    use crate::matrix::Csr;

    #[test]
    fn beyond_32_bits() {
        let base: u64 = 1 << 33;
        let found = processes(3, |all| {
            let (row_ptr, columns, values) = match all.process() {
                0 => (vec![0, 2, 3], vec![1, base, 4], vec![1.0, 2.0, 3.0]),
                1 => (vec![0], vec![], vec![]),
                _ => (vec![0, 0, 1], vec![base + 3], vec![4.0]),
            };
            let starts = vec![base, base + 2, base + 2, base + 4];
            let rows = Rows { n_rows: base + 4, n_cols: base + 4, starts, row_ptr, columns, values };
            rows.moved(&*all, vec![base, base, base + 3, base + 4]).unwrap()
        });
        let parts: Vec<_> =
            found.into_iter().map(|rows| (rows.starts[1] - base, rows.row_ptr, rows.columns, rows.values)).collect();
        assert_eq!(parts[0], (0, vec![0], vec![], vec![]));
        assert_eq!(parts[1], (0, vec![0, 2, 3, 3], vec![1, base, 4], vec![1.0, 2.0, 3.0]));
        assert_eq!(parts[2], (0, vec![0, 1], vec![base + 3], vec![4.0]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_is_lost(
            lens in prop::collection::vec(0usize..9, 0..40),
            count in 1usize..6,
            round in 1usize..40,
            cuts in prop::collection::vec((any::<usize>(), any::<usize>()), 4),
        ) {
            let n = lens.len();
            let row_ptr: Vec<usize> = (0..=n).map(|i| lens[..i].iter().sum()).collect();
            let columns = lens.iter().flat_map(|len| 0..*len as u32).collect();
            let values = (0..row_ptr[n]).map(|k| k as f64).collect();
            let a = Csr::new(n, 9, row_ptr, columns, values).unwrap();
            let starts = |cut: fn(&(usize, usize)) -> usize| {
                let mut starts: Vec<u64> = cuts[..count - 1].iter().map(|both| (cut(both) % (n + 1)) as u64).collect();
                starts.extend([0, n as u64]);
                starts.sort_unstable();
                starts
            };
            let (before, after) = (starts(|cut| cut.0), starts(|cut| cut.1));
            let parts = divided(&a, &before);
            let found =
                processes(count, |all| parts[all.process()].clone().moved_by(&*all, after.clone(), round).unwrap());
            prop_assert_eq!(&found, &divided(&a, &after));
            prop_assert_eq!(joined(&found), a);
        }
    }
}
