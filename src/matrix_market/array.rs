//! Array files, whose lines name no place: down the columns, from the diagonal on if the rest follows from it.

use rayon::prelude::*;

use super::body::{Entries, Wave, split_off};
use super::header::{Header, Symmetry};
use super::line::{Value, diagonal};
use crate::error::matrix_market::Error;
use crate::memory::{NoMemory, zeros};

/// The columns of a general array.
pub(super) fn columns<T: Value>(header: &Header, entries: &Entries<T>) -> Vec<Vec<T>> {
    let mut all = entries.blocks().flat_map(|(wave, block)| &wave.values[block.range()]).copied();
    (0..header.cols).map(|_| all.by_ref().take(header.rows).collect()).collect()
}

/// What the symmetry says of an array's diagonal, which a skew-symmetric one leaves out.
pub(super) fn check_diagonal<T: Value>(name: &str, header: &Header, entries: &Entries<T>) -> crate::Result<()> {
    if header.symmetry != Symmetry::Hermitian {
        return Ok(());
    }
    let mut place = Place::of(header, 0);
    for (wave, block) in entries.blocks() {
        for (k, &value) in wave.values[block.range()].iter().enumerate() {
            let (row, col) = place.next();
            if row == col
                && let Err(kind) = diagonal(header.symmetry, row, value)
            {
                return Err(Error::whole(name, block.line_of(k), kind));
            }
        }
    }
    Ok(())
}

/// The entries with their places. Zeros are none.
pub(super) fn with_places<T: Value>(header: &Header, mut entries: Entries<T>) -> Result<Entries<T>, NoMemory> {
    let mut before = 0;
    for wave in &mut entries.waves {
        before = give_places(header, wave, before)?;
    }
    entries.count = entries.blocks().map(|(_, block)| block.found.entries).sum();
    Ok(entries)
}

/// Gives places to the entries of a wave that follows so many others; tells how many there are with it.
fn give_places<T: Value>(header: &Header, wave: &mut Wave<T>, before: u64) -> Result<u64, NoMemory> {
    (wave.rows, wave.cols) = (zeros(wave.values.len())?, zeros(wave.values.len())?);
    let firsts: Vec<u64> = wave
        .blocks
        .iter()
        .scan(before, |next, block| {
            *next += block.found.entries as u64;
            Some(*next - block.found.entries as u64)
        })
        .collect();
    let end = before + wave.blocks.iter().map(|block| block.found.entries as u64).sum::<u64>();
    let rooms = {
        let (mut rows, mut cols, mut values) = (&mut wave.rows[..], &mut wave.cols[..], &mut wave.values[..]);
        let mut at = 0;
        let mut rooms = Vec::with_capacity(wave.blocks.len());
        for block in &wave.blocks {
            let range = block.range();
            let mut take = |len| (split_off(&mut rows, len), split_off(&mut cols, len), split_off(&mut values, len));
            take(range.start - at);
            rooms.push(take(range.len()));
            at = range.end;
        }
        rooms
    };
    rooms.into_par_iter().zip(&mut wave.blocks).zip(firsts).for_each(|(((rows, cols, values), block), first)| {
        let mut place = Place::of(header, first);
        let mut kept = 0;
        for k in 0..values.len() {
            let (row, col) = place.next();
            if values[k] != T::default() {
                (rows[kept], cols[kept], values[kept]) = (row, col, values[k]);
                kept += 1;
            }
        }
        block.found.keep(kept, &rows[..kept], &cols[..kept]);
    });
    Ok(end)
}

/// Where the next value of an array belongs.
struct Place {
    rows: u32,
    symmetry: Symmetry,
    row: u32,
    col: u32,
}

impl Place {
    /// The place of value `k`, from 0.
    fn of(header: &Header, k: u64) -> Self {
        // dimensions are held to 32 bits by the header
        let rows = header.rows as u64;
        let first = |col: u64| match header.symmetry {
            Symmetry::General => col * rows,
            Symmetry::Symmetric | Symmetry::Hermitian => col * rows - col * col.saturating_sub(1) / 2,
            Symmetry::SkewSymmetric => col * rows.saturating_sub(1) - col * col.saturating_sub(1) / 2,
        };
        // the last column that begins at k or before
        let (mut low, mut high) = (0, header.cols as u64);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if first(middle) <= k { low = middle } else { high = middle }
        }
        let mut place = Self { rows: header.rows as u32, symmetry: header.symmetry, row: 0, col: low as u32 };
        place.row = place.first_row() + (k - first(low)) as u32;
        place
    }

    fn first_row(&self) -> u32 {
        match self.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric | Symmetry::Hermitian => self.col,
            Symmetry::SkewSymmetric => self.col + 1,
        }
    }

    #[inline]
    fn next(&mut self) -> (u32, u32) {
        let place = (self.row, self.col);
        self.row += 1;
        if self.row == self.rows {
            self.col += 1;
            self.row = self.first_row();
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::Lines;
    use super::*;

    #[test]
    fn every_place_from_every_start() {
        for (symmetry, n) in
            [("general", 5), ("symmetric", 5), ("skew-symmetric", 5), ("symmetric", 1), ("skew-symmetric", 0)]
        {
            let text = format!("%%MatrixMarket matrix array real {symmetry}\n{n} {n}\n");
            let header = Header::read(&mut Lines::new(text.as_bytes(), "test")).unwrap();
            let mut place = Place::of(&header, 0); // an array of nothing has a beginning, too
            let all: Vec<(u32, u32)> = (0..header.entries).map(|_| place.next()).collect();
            assert!(all.windows(2).all(|w| (w[0].1, w[0].0) < (w[1].1, w[1].0)));
            assert!(all.iter().all(|&(i, j)| i < n && j < n && (symmetry == "general" || i >= j)));
            for k in 0..header.entries {
                assert_eq!(Place::of(&header, k).next(), all[k as usize], "{symmetry} {k}");
            }
        }
    }
}
