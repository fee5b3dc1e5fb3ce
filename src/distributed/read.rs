//! Matrix Market files, read by all processes together.
//!
//! Of a mapped file, each process parses the lines that begin in its part of the bytes, some megabytes at a time, and hands
//! the entries to the owners of their rows. What is compressed, or no file, the first process reads for all.
//!
//! Whoever meets a wrong line tells the others when it has read what it reads at a time. Then the first process looks
//! through the lines as if it were alone, and so finds what is wrong first in the file, and in which line. Entries that are
//! wrong only together are found when rows are made. To find their lines, all is read once more, with the number of its line
//! in the place of each value.

use std::path::Path;

use rayon::prelude::*;

use super::assembly::{Assembly, Infinite, Made};
use super::balance::rebalanced;
use super::entry::{Packed, by_owner};
use super::rows::{Rows, even_starts};
use crate::comm::processes::{Processes, agreed, any, gathered, told};
use crate::error::matrix_market::{Error, ErrorKind};
use crate::matrix_market::parts::{
    Batch, Given, Listener, Mapped, Opened, Streamed, from_text, has_parts, mirror, to_text,
};
use crate::matrix_market::{Header, Symmetry, Zeros};
use crate::{Error as AnyError, Result};

/// Text that a process reads before it hands on the entries.
const WAVE: usize = 16 << 20;

/// Reads a matrix from a file, so that each process has some rows, which cost about as much on all; gives what the file says
/// about itself, too, and how many entries were added to an earlier one. None if the file is complex or an array: those are
/// left to [`read_matrix`](crate::matrix_market::read_matrix). The matrix is the same to the bit as with that. Collective.
///
/// A process needs memory for its own entries, 20 bytes for each before it makes rows of them and 16 in rows, and some hundred
/// megabytes for what is on its way.
///
/// # Errors
/// As [`read_matrix`](crate::matrix_market::read_matrix), with the same line: on at least one process; others have
/// [`Error::ProcessFailed`](crate::Error::ProcessFailed) with what it says.
/// [`Error::Io`](crate::Error::Io) also for what can be read but once, with entries of the same place in both triangles.
pub(crate) fn read_matrix_market(
    processes: &dyn Processes,
    path: &Path,
    zeros: Zeros,
) -> Result<Option<(Rows, Header, u64)>> {
    read_by(processes, path, zeros, WAVE)
}

/// The same with about so many bytes of text at a time.
fn read_by(processes: &dyn Processes, path: &Path, zeros: Zeros, wave: usize) -> Result<Option<(Rows, Header, u64)>> {
    let Some(read) = Read::of(processes, path, Kept::Values, wave)? else { return Ok(None) };
    let Read { name, header, assembly, triangles } = read;
    let Made { rows, diagonal, off_diagonal, infinite } = agreed(processes, assembly.finish(zeros))?;
    let mirrors = header.symmetry.mirrors();
    let [diagonal, off_diagonal] = [diagonal, off_diagonal].map(|own| gathered(processes, own));
    let (diagonal, off_diagonal) = (diagonal?.iter().sum::<u64>(), off_diagonal?.iter().sum::<u64>());
    let both = mirrors && off_diagonal > 0 && any(processes, triangles[0])? && any(processes, triangles[1])?;
    if both || any(processes, infinite.is_some())? {
        drop(rows);
        let lines = lines(processes, path, wave)?;
        if both && let Some(error) = both_triangles(processes, &name, header.symmetry, &lines)? {
            return Err(error);
        }
        if let Some(error) = sum_not_finite(processes, &name, infinite, &lines)? {
            return Err(error);
        }
        // there are duplicates, and entries in both triangles, but never at the same place
        drop(lines);
        let Some(read) = Read::of(processes, path, Kept::Values, wave)? else { return Ok(None) };
        let made = agreed(processes, read.assembly.finish(zeros))?;
        return done(processes, made.rows, header, diagonal + off_diagonal / 2).map(Some);
    }
    // off the diagonal each duplicate was met twice, once a triangle
    let duplicates = diagonal + if mirrors { off_diagonal / 2 } else { off_diagonal };
    done(processes, rows, header, duplicates).map(Some)
}

fn done(processes: &dyn Processes, rows: Rows, header: Header, duplicates: u64) -> Result<(Rows, Header, u64)> {
    Ok((rebalanced(processes, rows)?, header, duplicates))
}

/// What stands in the place of the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Values,
    /// The line, and whether an entry is a mirror image.
    Lines,
}

/// What a process has of a file.
struct Read<'a> {
    /// What errors call the file.
    name: String,
    header: Header,
    assembly: Assembly<'a>,
    /// Whether there were entries above the diagonal, and below it, in what it read.
    triangles: [bool; 2],
}

/// How far a process is after a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    More,
    Done,
    Failed,
    /// There is something in the file that is read in no parts.
    Other,
}

impl<'a> Read<'a> {
    /// Reads a file; none if its entries can't be read in parts. Collective.
    fn of(processes: &'a dyn Processes, path: &Path, kept: Kept, wave: usize) -> Result<Option<Self>> {
        let is_first = processes.process() == 0;
        // what can be opened but once is left to the first
        let opened = agreed(processes, if is_first { Opened::open(path).map(Some) } else { Ok(None) })?;
        let is_mapped = matches!(&opened, Some(Opened::Mapped(_)));
        if any(processes, is_mapped)? {
            let mapped = match opened {
                Some(Opened::Mapped(mapped)) => Ok(mapped),
                _ => Opened::open(path).and_then(|opened| match opened {
                    Opened::Mapped(mapped) => Ok(mapped),
                    Opened::Streamed(_) => Err(changed(path)),
                }),
            };
            return Self::of_mapped(processes, path, &agreed(processes, mapped)?, kept, wave);
        }
        match opened {
            Some(Opened::Streamed(streamed)) => Sender::read(processes, streamed, kept),
            _ => Self::arriving(processes, kept),
        }
    }

    /// For entries of a file with this header.
    fn new(processes: &'a dyn Processes, name: &str, header: &Header) -> Result<Self> {
        let [n_rows, n_cols] = [header.rows, header.cols].map(|dimension| dimension as u64);
        let assembly = Assembly::new(processes, [n_rows, n_cols], even_starts(n_rows, processes.count()))?;
        Ok(Self { name: name.into(), header: header.clone(), assembly, triangles: [false; 2] })
    }

    /// Reads the own part of a mapped file, and takes what others read.
    fn of_mapped(
        processes: &'a dyn Processes,
        path: &Path,
        mapped: &Mapped,
        kept: Kept,
        wave: usize,
    ) -> Result<Option<Self>> {
        let (own, count, header) = (processes.process(), processes.count(), mapped.header());
        if !has_parts(header) {
            return Ok(None);
        }
        let mut line = mapped.first_line();
        if kept == Kept::Lines {
            let lines = gathered(processes, mapped.part(own, count, 1).count_lines())?;
            line += lines[..own].iter().sum::<u64>();
        }
        let mut part = mapped.part(own, count, line);
        let mut read = Self::new(processes, mapped.name(), header)?;
        loop {
            let (state, batch) = match part.next(wave) {
                Ok(Some(batch)) => (State::More, batch),
                Ok(None) => (State::Done, Batch::empty()),
                Err(_) => (State::Failed, Batch::empty()),
            };
            let (states, counts) = State::of_all(processes, state, part.count())?;
            let surplus = counts > header.entries;
            let done = states.iter().all(|state| *state == State::Done);
            if states.contains(&State::Failed) || surplus || done && counts < header.entries {
                // it alone tells which is the first error, and where
                agreed(processes, if own == 0 { mapped.check() } else { Ok(()) })?;
                return Err(changed(path));
            }
            if done {
                return Ok(Some(read));
            }
            read.round(&batch, kept)?;
        }
    }

    /// Takes what the first process reads.
    fn arriving(processes: &'a dyn Processes, kept: Kept) -> Result<Option<Self>> {
        agreed(processes, Ok(()))?;
        let name = told(processes, 0, Vec::new())?;
        let header = from_text(&told(processes, 0, Vec::new())?, &String::from_utf8_lossy(&name))?;
        if !has_parts(&header) {
            return Ok(None);
        }
        let mut read = Self::new(processes, &String::from_utf8_lossy(&name), &header)?;
        loop {
            let (states, _) = State::of_all(processes, State::Done, 0)?;
            match states[0] {
                State::More => read.round(&Batch::empty(), kept)?,
                State::Done => return Ok(Some(read)),
                State::Other => return Ok(None),
                State::Failed => {
                    agreed(processes, Ok(()))?;
                }
            }
        }
    }

    /// Hands on what was read, and takes what comes. Collective.
    fn round(&mut self, batch: &Batch, kept: Kept) -> Result<()> {
        let blocks = batch.blocks();
        for block in &blocks {
            let [above, below] = block.triangles();
            self.triangles = [self.triangles[0] | above, self.triangles[1] | below];
        }
        let (starts, header) = (self.assembly.starts(), &self.header);
        let mut divided: Vec<_> = blocks.par_iter().map(|block| divided(block, header, starts, kept)).collect();
        if divided.is_empty() {
            divided.push(by_owner(starts, std::iter::empty()));
        }
        self.assembly.round(divided)
    }
}

/// The entries of a block and their mirror images, by owner.
fn divided(block: &Given, header: &Header, starts: &[u64], kept: Kept) -> Vec<Vec<Packed>> {
    let value = |k: usize, is_mirror: bool| match kept {
        Kept::Values if is_mirror => mirror(header, block.value(k)),
        Kept::Values => block.value(k),
        Kept::Lines => tagged(block.line(k), is_mirror),
    };
    let given = (0..block.len()).map(|k| {
        let (row, column) = block.place(k);
        (u64::from(row), u64::from(column), value(k, false))
    });
    if !header.symmetry.mirrors() {
        return by_owner(starts, given);
    }
    let both = given.enumerate().flat_map(|(k, (row, column, given))| {
        let mirrored = (row != column).then(|| (column, row, value(k, true)));
        [Some((row, column, given)), mirrored].into_iter().flatten()
    });
    by_owner(starts, both)
}

/// A line in the place of a value.
fn tagged(line: u64, is_mirror: bool) -> f64 {
    f64::from_bits(line << 1 | u64::from(is_mirror))
}

/// The line, and whether it gives the mirror image.
fn line_of(value: f64) -> (u64, bool) {
    (value.to_bits() >> 1, value.to_bits() & 1 == 1)
}

impl State {
    /// The states of all processes, and how many entries they have read together. Collective.
    fn of_all(processes: &dyn Processes, own: Self, count: u64) -> Result<(Vec<Self>, u64)> {
        let mut all = vec![0; 2 * processes.count()];
        processes.gather(&[own as u64, count], &mut all)?;
        let known = |code: u64| [Self::More, Self::Done, Self::Failed].into_iter().find(|state| *state as u64 == code);
        let states = all.iter().step_by(2).map(|code| known(*code).unwrap_or(Self::Other)).collect();
        // each count is at most that of the header, and a surplus is a surplus whatever it is
        Ok((states, all.iter().skip(1).step_by(2).fold(0, |sum, count| sum.saturating_add(*count))))
    }
}

/// What was read before has become something else.
fn changed(path: &Path) -> AnyError {
    AnyError::io(path, std::io::Error::other("the file was changed while it was read"))
}

/// The first process, which reads a stream for all.
struct Sender<'a> {
    processes: &'a dyn Processes,
    kept: Kept,
    /// What the header has made of it.
    read: Option<Read<'a>>,
    state: Announced,
}

/// What the others know of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Announced {
    Nothing,
    /// The header, and that entries come.
    Entries,
    /// The header, and that none come.
    NoEntries,
    /// That entries came; there are others in the file.
    Others,
}

impl<'a> Sender<'a> {
    fn read(processes: &'a dyn Processes, streamed: Streamed, kept: Kept) -> Result<Option<Read<'a>>> {
        let mut sender = Self { processes, kept, read: None, state: Announced::Nothing };
        let ended = streamed.read(&mut sender);
        match (sender.state, ended) {
            // whatever else is wrong is found by who reads it alone
            (Announced::NoEntries, _) => Ok(None),
            (Announced::Nothing, ended) => agreed(processes, ended).and(Ok(None)),
            (Announced::Entries | Announced::Others, Err(error)) => {
                State::of_all(processes, State::Failed, 0)?;
                agreed(processes, Err(error))
            }
            (Announced::Others, Ok(())) => State::of_all(processes, State::Other, 0).map(|_| None),
            (Announced::Entries, Ok(())) => State::of_all(processes, State::Done, 0).map(|_| sender.read),
        }
    }
}

impl Listener for Sender<'_> {
    fn header(&mut self, name: &str, header: &Header) -> Result<bool> {
        if self.state != Announced::Nothing {
            // an archive with the matrix twice
            if self.state == Announced::Entries {
                self.state = Announced::Others;
            }
            return Ok(false);
        }
        agreed(self.processes, Ok(()))?;
        told(self.processes, 0, name.as_bytes().to_vec())?;
        told(self.processes, 0, to_text(header).into_bytes())?;
        self.state = if has_parts(header) { Announced::Entries } else { Announced::NoEntries };
        if self.state == Announced::Entries {
            self.read = Some(Read::new(self.processes, name, header)?);
        }
        Ok(self.state == Announced::Entries)
    }

    fn entries(&mut self, batch: Batch) -> Result<()> {
        State::of_all(self.processes, State::More, 0)?;
        match &mut self.read {
            Some(read) => read.round(&batch, self.kept),
            None => Ok(()),
        }
    }
}

/// The own rows once more, with lines in the place of values, in the order in which entries came. Collective.
fn lines(processes: &dyn Processes, path: &Path, wave: usize) -> Result<Rows> {
    let is_file = || match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => {
            let why = "entries share a place or add up to something infinite; to tell their lines takes a file that can be read twice";
            Err(AnyError::io(path, std::io::Error::other(why)))
        }
        Err(error) => Err(AnyError::io(path, error)),
    };
    agreed(processes, if processes.process() == 0 { is_file() } else { Ok(()) })?;
    match Read::of(processes, path, Kept::Lines, wave)? {
        Some(read) => agreed(processes, read.assembly.unsorted()),
        None => Err(changed(path)),
    }
}

/// The error for the first entry whose mirror image was there before it, if there is one; the same on all. Collective.
fn both_triangles(processes: &dyn Processes, name: &str, symmetry: Symmetry, lines: &Rows) -> Result<Option<AnyError>> {
    let first = lines.starts[processes.process()];
    let own = (0..lines.len()).into_par_iter().filter_map(|k| second_in_row(lines, k, first + k as u64)).min();
    let [line, row, column] = least(processes, own.unwrap_or([u64::MAX; 3]))?;
    let (row, col) = (row.saturating_add(1) as usize, column.saturating_add(1) as usize);
    let error = Error::whole(name, line, ErrorKind::BothTriangles { row, col, symmetry });
    Ok((line < u64::MAX).then_some(error))
}

/// The first line that gives a place of a row of which the other triangle has the mirror image before: the line, and the
/// row and the column that it names.
fn second_in_row(lines: &Rows, k: usize, row: u64) -> Option<[u64; 3]> {
    let span = lines.row_ptr[k]..lines.row_ptr[k + 1];
    let entries = lines.columns[span.clone()].iter().zip(&lines.values[span]);
    let mut entries: Vec<(u64, u64, bool)> = entries
        .filter(|(column, _)| **column != row)
        .map(|(&column, &value)| {
            let (line, is_mirror) = line_of(value);
            (column, line, is_mirror)
        })
        .collect();
    entries.sort_unstable();
    let second = |same: &[(u64, u64, bool)]| {
        let (column, line, is_mirror) = *same.iter().find(|entry| entry.2 != same[0].2)?;
        Some(if is_mirror { [line, column, row] } else { [line, row, column] })
    };
    entries.chunk_by(|a, b| a.0 == b.0).filter_map(second).min()
}

/// The error for the first sum that is infinite, if there is one; the same on all. Collective.
fn sum_not_finite(
    processes: &dyn Processes,
    name: &str,
    infinite: Option<Infinite>,
    lines: &Rows,
) -> Result<Option<AnyError>> {
    let first = lines.starts[processes.process()];
    let own = infinite.map(|Infinite { row, column, nth }| {
        let line = lines.values.get(lines.row_ptr[(row - first) as usize] + nth).map_or(1, |value| line_of(*value).0);
        [row, column, line]
    });
    let [row, column, line] = least(processes, own.unwrap_or([u64::MAX; 3]))?;
    let kind = ErrorKind::SumNotFinite { row: row.saturating_add(1) as usize, col: column.saturating_add(1) as usize };
    Ok((line < u64::MAX).then(|| Error::whole(name, line, kind)))
}

/// The least of what all bring. Collective.
fn least(processes: &dyn Processes, own: [u64; 3]) -> Result<[u64; 3]> {
    let mut all = vec![0; 3 * processes.count()];
    processes.gather(&own, &mut all)?;
    let (all, _) = all.as_chunks::<3>();
    Ok(all.iter().copied().min().unwrap_or(own))
}

#[cfg(test)]
mod tests;
