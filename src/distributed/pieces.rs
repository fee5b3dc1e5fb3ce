//! Vectors on their way to the first process, or from there, in pieces: what is on its way takes a few MiB, however long they are.
//!
//! Only what is handed over has a part in it, and no collective call is made: so it may be done beside other work, by one thread of each
//! process.

use std::io;
use std::sync::Arc;

use crate::comm::processes::VECTORS;
use crate::comm::{Bytes, HostMemory, Processes};
use crate::error::{Error, Result};

/// Elements of a piece.
const PIECE: usize = 1 << 17;

/// Columns of which each process has its rows, on their way to the first process: it gets them one after the other, in the order of the
/// rows.
pub struct Columns<'a> {
    processes: &'a dyn Processes,
    /// The first row of each process, and the end of the last.
    starts: &'a [u64],
    parts: Vec<&'a [f64]>,
    /// Columns that have gone.
    done: usize,
    failed: Option<Error>,
}

impl<'a> Columns<'a> {
    /// Those of which this process has these parts; all processes have as many.
    #[must_use]
    pub fn new(processes: &'a dyn Processes, starts: &'a [u64], parts: Vec<&'a [f64]>) -> Self {
        Self { processes, starts, parts, done: 0, failed: None }
    }

    /// Elements of a column, and how many columns there are.
    #[must_use]
    pub fn shape(&self) -> [u64; 2] {
        [self.starts[self.starts.len() - 1] - self.starts[0], self.parts.len() as u64]
    }

    /// In the first process, gives `take` the pieces of the next column.
    ///
    /// # Errors
    /// What `take` gives, after which the rest of the column has gone, too; a failed process.
    ///
    /// # Panics
    /// If there is no other column.
    pub fn next(&mut self, take: &mut dyn FnMut(&[f64]) -> io::Result<()>) -> io::Result<()> {
        let column = self.parts[self.done];
        self.done += 1;
        match to_first(self.processes, self.starts, column, take) {
            Ok(taken) => taken,
            Err(error) => {
                let told = io::Error::other(error.to_string());
                self.failed.get_or_insert(error);
                Err(told)
            }
        }
    }

    /// Lets go what nobody has taken: all of it, in processes other than the first.
    ///
    /// # Errors
    /// A failed process.
    pub fn finish(mut self) -> Result<()> {
        while self.failed.is_none() && self.done < self.parts.len() {
            let _ = self.next(&mut |_| Ok(())); // a failure is kept
        }
        self.failed.map_or(Ok(()), Err)
    }
}

/// Brings a column to the first process, which gives `take` its pieces; tells what that said.
fn to_first(
    processes: &dyn Processes,
    starts: &[u64],
    own: &[f64],
    take: &mut dyn FnMut(&[f64]) -> io::Result<()>,
) -> Result<io::Result<()>> {
    if processes.process() > 0 {
        for (k, piece) in own.chunks(PIECE).enumerate() {
            send(processes, 0, piece.to_vec())?;
            if k > 0 {
                await_receipt(processes, 0)?; // of the piece before
            }
        }
        return if own.is_empty() { Ok(Ok(())) } else { await_receipt(processes, 0).map(Ok) };
    }
    let mut taken = own.chunks(PIECE).try_for_each(&mut *take);
    let mut piece = Vec::new();
    for (from, ends) in starts.windows(2).enumerate().skip(1) {
        let mut left = (ends[1] - ends[0]) as usize;
        while left > 0 {
            piece.resize(left.min(PIECE), 0.0);
            receive(processes, from, &mut piece)?;
            left -= piece.len();
            taken = taken.and_then(|()| take(&piece));
        }
    }
    Ok(taken)
}

/// Gives each process its rows of a column of which the first one fills pieces, in order; `starts` are the first row of each process, and the
/// end of the last. Collective.
///
/// # Errors
/// [`Error::ProcessFailed`].
pub fn from_first(processes: &dyn Processes, starts: &[u64], fill: &mut dyn FnMut(&mut [f64])) -> Result<Vec<f64>> {
    let process = processes.process();
    let mut own = vec![0.0; (starts[process + 1] - starts[process]) as usize];
    if process > 0 {
        own.chunks_mut(PIECE).try_for_each(|piece| receive(processes, 0, piece))?;
        return Ok(own);
    }
    own.chunks_mut(PIECE).for_each(&mut *fill);
    let mut before = None;
    for (to, ends) in starts.windows(2).enumerate().skip(1) {
        let mut left = (ends[1] - ends[0]) as usize;
        while left > 0 {
            let mut piece = vec![0.0; left.min(PIECE)];
            fill(&mut piece);
            left -= piece.len();
            send(processes, to, piece)?;
            if let Some(before) = before.replace(to) {
                await_receipt(processes, before)?;
            }
        }
    }
    before.map_or(Ok(()), |before| await_receipt(processes, before))?;
    Ok(own)
}

fn send(processes: &dyn Processes, to: usize, piece: Vec<f64>) -> Result<()> {
    let len = piece.len();
    let piece: Arc<dyn HostMemory<f64>> = Arc::new(piece);
    processes.send(to, VECTORS, Bytes::of(piece, 0..len))
}

/// Receives a piece, and says so.
fn receive(processes: &dyn Processes, from: usize, piece: &mut [f64]) -> Result<()> {
    processes.receive(from, VECTORS, bytemuck::cast_slice_mut(piece))?;
    let receipt: Arc<dyn HostMemory<u8>> = Arc::new(vec![1_u8]);
    processes.send(from, VECTORS, Bytes::of(receipt, 0..1))
}

fn await_receipt(processes: &dyn Processes, from: usize) -> Result<()> {
    processes.receive(from, VECTORS, &mut [0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::processes::simulated::processes;

    #[test]
    fn there_and_back() {
        let (long, n) = (2 * PIECE as u64 + 3, 3 * PIECE as u64 + 7);
        let column = |k: u64| (0..n).map(|i| (i * (k + 2)) as f64).collect::<Vec<_>>();
        for starts in [vec![0, n], vec![0, 3, n], vec![0, 0, long, long, n], vec![0, long, n, n]] {
            processes(starts.len() - 1, |all| {
                let own = starts[all.process()] as usize..starts[all.process() + 1] as usize;
                let both = [column(0), column(1)];
                let mut next = 0;
                let part = from_first(&*all, &starts, &mut |piece| {
                    piece.copy_from_slice(&both[0][next..next + piece.len()]);
                    next += piece.len();
                });
                assert_eq!(part.unwrap(), both[0][own.clone()]);
                let parts = both.iter().map(|column| &column[own.clone()]).collect();
                let mut columns = Columns::new(&*all, &starts, parts);
                if all.process() == 0 {
                    let mut taken = Vec::new();
                    // one is taken, the other one nobody wants after its first piece
                    let mut take = |piece: &[f64]| {
                        taken.extend_from_slice(piece);
                        Ok(())
                    };
                    columns.next(&mut take).unwrap();
                    assert_eq!(taken, both[0]);
                    let full = columns.next(&mut |_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
                    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
                }
                columns.finish().unwrap();
            });
        }
    }

    #[test]
    fn who_fails_keeps_nobody_waiting() {
        let n = 4 * PIECE as u64;
        let errors = processes(3, |all| {
            if all.process() == 2 {
                all.fail("it is gone");
                return None;
            }
            let starts = [0, 5, 2 * PIECE as u64, n];
            let own = vec![1.0; (starts[all.process() + 1] - starts[all.process()]) as usize];
            Columns::new(&*all, &starts, vec![&own]).finish().err().map(|error| error.to_string())
        });
        assert!(errors[0].as_ref().is_some_and(|why| why.contains("it is gone")), "{errors:?}");
    }
}
