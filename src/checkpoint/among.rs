//! The same where the rows lie in several processes: the files are the same, so that any number of processes goes on from those of any other.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::source::{Bad, Source};
use super::{Column, Identity, PIECE};
use crate::cache::Digest;
use crate::comm::Processes;
use crate::comm::processes::{agreed, exchange, gathered, told};
use crate::distributed::{Columns, Rows, from_first};
use crate::error::{Error, Result};

impl Identity {
    /// As [`Identity::of`], of rows that several processes have, and their parts of columns of b: the same for all of them. Each hashes its
    /// own part. Collective.
    ///
    /// # Errors
    /// [`Error::ProcessFailed`].
    pub fn among(processes: &dyn Processes, rows: &Rows, b: &[Vec<f64>]) -> Result<Self> {
        let (process, starts) = (processes.process(), &rows.starts);
        let entries = gathered(processes, rows.nnz() as u64)?;
        let before: u64 = entries[..process].iter().sum();
        let first = starts[process] - starts[0];
        // the end of the last row is the last one's
        let ends = rows.len() + usize::from(process + 1 == processes.count());
        let arrays = [
            hash(processes, first, ends, |at| bytes_of(&rows.row_ptr[at], |v| (before + *v as u64).to_le_bytes()))?,
            match u32::try_from(rows.n_cols) {
                Ok(_) => hash(processes, before, rows.nnz(), |at| {
                    bytes_of(&rows.columns[at], |v| (*v as u32).to_le_bytes())
                })?,
                // more columns than one process can have
                Err(_) => hash(processes, before, rows.nnz(), |at| bytes_of(&rows.columns[at], |v| v.to_le_bytes()))?,
            },
            hash(processes, before, rows.nnz(), |at| bytes_of(&rows.values[at], |v| v.to_le_bytes()))?,
        ];
        let of_column = |b: &Vec<f64>| hash(processes, first, rows.len(), |at| bytes_of(&b[at], |v| v.to_le_bytes()));
        let columns: Vec<Digest> = b.iter().map(of_column).collect::<Result<_>>()?;
        Ok(Self {
            unknowns: rows.n_cols,
            entries: entries.iter().sum(),
            columns: b.len() as u64,
            a: Digest::of(arrays.iter().map(|d| &d.0[..])),
            b: Digest::of(columns.iter().map(|d| &d.0[..])),
        })
    }

    /// As [`Identity::write`], in the first process, of columns of which each process has its rows; `facts` are the iterations and the residual
    /// of each. The others [let them go](Columns::finish).
    ///
    /// # Errors
    /// Those of `out`; what is not finite; a failed process.
    ///
    /// # Panics
    /// If there are not as many facts as columns, or if these don't have as many elements as the matrix has columns.
    pub fn write_columns(
        &self,
        out: &mut dyn Write,
        note: &str,
        facts: &[(u64, f64)],
        columns: &mut Columns<'_>,
    ) -> io::Result<()> {
        assert_eq!(columns.shape(), [self.unknowns, facts.len() as u64], "elements and columns");
        self.write_by(out, note, facts, |put| {
            for _ in facts {
                columns.next(&mut |piece| {
                    if piece.iter().all(|v| v.is_finite()) {
                        return put(piece);
                    }
                    Err(io::Error::new(io::ErrorKind::InvalidData, "x is not finite"))
                })?;
            }
            Ok(())
        })
    }

    /// The columns of a file of this system, which the first process reads: of each this one's rows, where those of each begin with `starts`.
    /// With them comes what the file says of itself. Collective.
    ///
    /// # Errors
    /// As [`Saved::read`](super::Saved::read) and [`Saved::of`](super::Saved::of), in the first process, and [`Error::ProcessFailed`] in others.
    pub fn saved_among(&self, processes: &dyn Processes, starts: &[u64], path: &Path) -> Result<(String, Vec<Column>)> {
        let bad = |bad: Bad| bad.of(path);
        let is_first = processes.process() == 0;
        let opened = || {
            let mut source = Source::open(path)?;
            let head = source.head().map_err(bad)?;
            self.check(&head.identity, path)?;
            Ok((source, head))
        };
        let mut opened = agreed(processes, if is_first { opened().map(Some) } else { Ok(None) })?;
        let facts = opened.as_ref().map_or(&[][..], |(_, head)| &head.facts);
        let words = facts.iter().flat_map(|(iterations, rel_residual_2)| [*iterations, rel_residual_2.to_bits()]);
        let told_words = told(processes, 0, words.flat_map(u64::to_le_bytes).collect())?;
        let words: Vec<u64> = told_words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (mut columns, mut failed) = (Vec::new(), None);
        for &[iterations, rel_residual_2] in words.as_chunks::<2>().0 {
            let x = from_first(processes, starts, &mut |piece| {
                let read = opened.as_mut().map_or(Ok(()), |(source, _)| source.elements(piece));
                failed = failed.take().or(read.err());
            })?;
            columns.push(Column { iterations, rel_residual_2: f64::from_bits(rel_residual_2), x });
        }
        let end = || match (failed, opened) {
            (Some(e), _) => Err(Bad::Io(e).of(path)),
            (None, Some((source, head))) => source.end(head).map_err(bad),
            (None, None) => Ok(String::new()),
        };
        Ok((agreed(processes, end())?, columns))
    }
}

fn bytes_of<T, const N: usize>(elements: &[T], bytes: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    elements.iter().flat_map(bytes).collect()
}

/// The hash of an array of which this process has so many elements, from `first` on, as [`of_pieces`](super::of_pieces) has it. Whoever has the
/// first element of a piece hashes it. Collective.
fn hash(
    processes: &dyn Processes,
    first: u64,
    len: usize,
    bytes: impl Fn(Range<usize>) -> Vec<u8> + Sync,
) -> Result<Digest> {
    let (count, piece) = (processes.count(), PIECE as u64);
    let firsts = gathered(processes, first)?;
    // what belongs to a piece that begins before
    let begin = (first.next_multiple_of(piece) - first).min(len as u64) as usize;
    let mut to_each = vec![Vec::new(); count];
    if begin > 0 {
        let start = first / piece * piece;
        to_each[firsts.partition_point(|first| *first <= start) - 1] = bytes(0..begin);
    }
    let rest = exchange(processes, to_each)?.concat();
    let pieces: Vec<Range<usize>> = (begin..len).step_by(PIECE).map(|at| at..len.min(at + PIECE)).collect();
    let of_piece = |own: &Range<usize>| {
        let mut own_bytes = bytes(own.clone());
        if own.end == len {
            own_bytes.extend(&rest);
        }
        Digest::of([&own_bytes[..]]).0
    };
    let digests: Vec<[u8; 32]> = pieces.par_iter().map(of_piece).collect();
    let mut to_each = vec![Vec::new(); count];
    to_each[0] = digests;
    let digests = exchange(processes, to_each)?.concat();
    let whole = (processes.process() == 0).then(|| Digest::of(digests.iter().map(|digest| &digest[..])).0.to_vec());
    let whole = told(processes, 0, whole.unwrap_or_default())?;
    whole.try_into().map(Digest).map_err(|_| Error::PeerFailed)
}

#[cfg(test)]
mod tests;
