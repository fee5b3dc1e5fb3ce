//! Rows in slices, with columns and values in as few bytes as they need: the layout that `cl/sell.cl` describes.

mod blocks;
pub(crate) mod made;
pub(crate) mod moved;
mod replace;
mod upload;

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use self::blocks::{NEEDS_HALO, begins, block_size, is_complex, marks, pieces};
use super::Format;
use super::csr::Compressed;
use super::device_rows::{DeviceRows, Sets, each};
use super::plan::{Layout, Target, has_rows};
use crate::device::Context;
use crate::error::Result;
use crate::kernels::sell::{LongRows, SellBlock, SellRows, SliceSet};
use crate::kernels::{Shape, Tuning};
use crate::partition::Part;
use crate::real::Real;

/// Units of a slice.
const UNITS: usize = SliceSet::UNITS;

/// Neighbouring units that are sorted by length together: work-items side by side should end together, but rows side by side
/// use the same columns.
const WINDOW: usize = 8 * UNITS;

/// Rows with more entries than a few times the mean are long ones, within these bounds (of blocks, where there are such).
const LONG: usize = 4;
const LENGTHS: [usize; 2] = [64, 4096];

/// Pieces of a long row whose sums a single work-item adds.
const FEW: usize = 32;

/// Bytes to which slices are aligned.
const ALIGNED: usize = 16;

/// Rows that one work-item takes each, or a piece of a long one.
#[derive(Debug, Clone, Copy, Default)]
struct Unit {
    row: u32,
    /// The number of the piece, [`WHOLE`] for all of the row.
    piece: u32,
}

const WHOLE: u32 = u32::MAX;

/// Units one behind the other, by all threads.
fn joined(parts: &[&[Unit]]) -> Vec<Unit> {
    let mut all = vec![Unit::default(); parts.iter().map(|part| part.len()).sum()];
    let (mut rest, mut places) = (&mut all[..], Vec::with_capacity(parts.len()));
    for part in parts {
        let (place, behind) = rest.split_at_mut(part.len());
        places.push(place);
        rest = behind;
    }
    places.into_par_iter().zip(parts).for_each(|(place, part)| place.copy_from_slice(part));
    all
}

/// Every `step`-th block of a unit's rows, from block `first` on: neighbouring pieces have neighbouring columns.
#[derive(Debug, Clone, Copy)]
struct Piece {
    first: u32,
    step: u32,
    /// Where the sum of its first row goes.
    target: u32,
}

/// Units that are alike: rows of a unit, whether they are pieces.
#[derive(Debug, Clone, Default)]
struct List {
    block: usize,
    has_pieces: bool,
    units: Vec<Unit>,
}

/// How a value is stored: as `cl/sell.cl` numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Real = 0,
    Float = 1,
    Short = 2,
    Char = 3,
}

impl Value {
    /// All but the working precision, narrowest first.
    const NARROW: [Self; 3] = [Self::Char, Self::Short, Self::Float];

    fn bytes<T>(self) -> usize {
        match self {
            Self::Real => size_of::<T>(),
            Self::Float => 4,
            Self::Short => 2,
            Self::Char => 1,
        }
    }

    /// The narrowest that fits, which the working precision does.
    fn narrowest<T>(fits: impl Fn(Self) -> bool) -> Self {
        let narrow = Self::NARROW.into_iter().filter(|value| value.bytes::<T>() < size_of::<T>());
        narrow.into_iter().find(|value| fits(*value)).unwrap_or(Self::Real)
    }

    /// The value as it is stored, if not in working precision.
    fn narrowed(self, v: f64) -> f64 {
        match self {
            Self::Real => v,
            Self::Float => f64::from(v as f32),
            Self::Short => f64::from(v as i16),
            Self::Char => f64::from(v as i8),
        }
    }
}

/// What is known of a slice before it is filled.
#[derive(Debug, Clone, Copy)]
struct Slice {
    list: usize,
    /// Its units in the list.
    first: usize,
    count: usize,
    blocks: usize,
    width: usize,
    value: Value,
    /// Least and largest target and column of a block.
    rows: [u32; 2],
    columns: [u32; 2],
    /// Of what columns are told apart in: a block, if all are whole ones apart, or 1.
    step: usize,
    /// Whether all blocks are [complex numbers](is_complex), of which the first column is stored alone.
    is_complex: bool,
}

impl Slice {
    const WIDE_COLUMNS: u32 = 4;
    const WIDE_ROWS: u32 = 8;
    const PIECES: u32 = 16;
    const IN_BLOCKS: u32 = 32;
    const COMPLEX: u32 = 64;

    /// Bytes of an index up to this one.
    fn index_bytes(largest: u32) -> usize {
        if largest > u32::from(u16::MAX) { 4 } else { 2 }
    }

    fn column_bytes(&self) -> usize {
        Self::index_bytes((self.columns[1] - self.columns[0]) / self.step as u32)
    }

    fn row_bytes(&self) -> usize {
        Self::index_bytes(self.rows[1] - self.rows[0])
    }

    /// Columns of a block whose values are stored.
    fn stored(&self, block: usize) -> usize {
        if self.is_complex { 1 } else { block }
    }

    /// Where values, columns and rows begin, and where all ends, in bytes.
    fn sections<T>(&self, block: usize) -> [usize; 4] {
        let values = self.width.next_multiple_of(8);
        let value_count = self.blocks * block * self.stored(block);
        let columns = values + (value_count * self.value.bytes::<T>()).next_multiple_of(4);
        let rows = columns + (self.blocks * self.column_bytes()).next_multiple_of(4);
        let end = rows + self.count * self.row_bytes();
        [values, columns, rows, end.next_multiple_of(ALIGNED)]
    }

    /// What the device is told of a slice that begins so many [`ALIGNED`] bytes behind the beginning of its segment.
    fn words(&self, list: &List, start: u32) -> [u32; 5] {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let flags = self.value as u32
            | flag(self.column_bytes() == 4, Self::WIDE_COLUMNS)
            | flag(self.row_bytes() == 4, Self::WIDE_ROWS)
            | flag(list.has_pieces, Self::PIECES)
            | flag(self.step > 1, Self::IN_BLOCKS)
            | flag(self.is_complex, Self::COMPLEX);
        let shape = self.width as u32 | (self.count as u32) << 16 | flags << 24;
        [start, self.blocks as u32, shape, self.rows[0], self.columns[0]]
    }
}

/// How a block of rows is laid out: all but the data themselves.
pub(crate) struct Sell<'a, T> {
    part: &'a Part<'a>,
    factor: f64,
    block: usize,
    /// Units that need no halo, and those that do: of blocks and of rows; whole, and pieces.
    lists: Arc<Vec<List>>,
    pieces: Arc<Vec<Piece>>,
    slices: Arc<Vec<Slice>>,
    sets: [SliceSet; 2],
    /// Row, first part, number of parts, how far apart they are.
    long_rows: Vec<[u32; 4]>,
    /// How many long rows, the first, have few parts.
    few: usize,
    parts: usize,
    /// Length of the data.
    bytes: usize,
    real: std::marker::PhantomData<T>,
}

impl<T: Real> Layout<T> for Sell<'_, T> {
    fn format(&self) -> Format {
        Format::Sell
    }

    /// Sums of pieces are written and read.
    fn bytes(&self) -> usize {
        self.bytes() + 2 * self.parts * size_of::<T>()
    }

    /// Where rows differ in length, slices suit a GPU better; with few rows, several work-items a row may do more. The sums of
    /// pieces are a launch of their own, which has to be worth while.
    fn is_trusted(&self, target: Target) -> bool {
        let compressed = Compressed::<T>::new(self.part, self.factor);
        let [bytes, usual] = [Layout::<T>::bytes(self), Layout::bytes(&compressed)];
        let is_worthwhile = if self.long_rows.is_empty() { bytes <= usual } else { bytes <= usual / 20 * 19 };
        target.shape == Shape::Gpu && (has_rows(self.part, target) && is_worthwhile || !compressed.is_trusted(target))
    }

    fn upload(&self, ctx: &Context, _: &Tuning) -> Result<DeviceRows<T>> {
        let (block, sets) = self.block(ctx)?;
        Ok(self.launched(&block, sets).with_values(self.places(block)))
    }
}

/// All slices, in fewer sets where those of blocks, and those of rows, are side by side.
fn side_by_side(interior: &[SliceSet], boundary: &[SliceSet]) -> Vec<SliceSet> {
    let mut all: Vec<SliceSet> = Vec::new();
    for &set in interior.iter().chain(boundary) {
        match all.last_mut() {
            Some(last)
                if last.segment == set.segment
                    && last.first + last.blocked + last.single == set.first
                    && (last.single == 0 || set.blocked == 0) =>
            {
                last.blocked += set.blocked;
                last.single += set.single;
            }
            _ => all.push(set),
        }
    }
    all
}

impl<T: Real> Sell<'_, T> {
    /// Bytes of a value by itself.
    pub(super) fn least_value_bytes(v: f64) -> usize {
        let narrow = Value::NARROW.into_iter().find(|value| value.narrowed(v).to_bits() == v.to_bits());
        narrow.unwrap_or(Value::Real).bytes::<T>().min(size_of::<T>())
    }
}

impl<'a, T: Real> Sell<'a, T> {
    /// Lays out the rows of `part`, times `factor`. Three passes over the entries, the memory of 8 bytes a row.
    pub(crate) fn plan(part: &'a Part<'a>, factor: f64) -> Self {
        let mut this = Self::listed(part, factor, &marks(part));
        let slices_of = |(list, List { units, .. }): (usize, &List)| {
            let begins: Vec<usize> = (0..units.len()).step_by(UNITS).collect();
            begins.into_par_iter().map(|first| this.shape(list, first)).collect()
        };
        let slices = this.lists.iter().enumerate().map(slices_of).collect();
        this.take(slices);
        this
    }

    /// The units in order, of which there are no slices yet.
    fn listed(part: &'a Part<'a>, factor: f64, marks: &[u8]) -> Self {
        let pieces = pieces(marks);
        let mut this = Self::empty(part, factor, block_size(part, marks, &pieces));
        this.list(marks, &pieces);
        this.sort();
        this
    }

    /// What a product launches on the slices of a block, those without a halo and the others.
    fn launched(&self, block: &Arc<SellBlock<T>>, [interior, boundary]: Sets<SliceSet>) -> DeviceRows<T> {
        let memory = self.bytes() + self.parts * size_of::<T>();
        let rows = |set| SellRows { block: Arc::clone(block), set };
        // long rows may need the halo
        let with_long = |sets: Vec<SliceSet>| {
            let mut all = each(sets, rows);
            all.extend(LongRows::of(block).map(|long| Box::new(long) as _));
            all
        };
        let whole = with_long(side_by_side(&interior, &boundary));
        DeviceRows::new(memory, [each(interior, rows), with_long(boundary)], whole)
    }

    /// Without any slices.
    fn empty(part: &'a Part<'a>, factor: f64, block: usize) -> Self {
        Self {
            part,
            factor,
            block,
            lists: Arc::default(),
            pieces: Arc::default(),
            slices: Arc::default(),
            sets: [SliceSet::default(); 2],
            long_rows: Vec::new(),
            few: 0,
            parts: 0,
            bytes: 0,
            real: std::marker::PhantomData,
        }
    }

    /// Bytes of the slices and of the list of long rows.
    fn bytes(&self) -> usize {
        let numbers =
            self.slices.len() * SellBlock::<T>::SLICE_WORDS + self.long_rows.len() * SellBlock::<T>::LONG_ROW_WORDS;
        self.bytes + 4 * numbers
    }

    /// Puts each row into its list, piece by piece of the rows.
    fn list(&mut self, marks: &[u8], of_rows: &[Range<usize>]) {
        let mean = self.part.nnz() / self.part.n_owned().max(1);
        let longest = |block: usize| (LONG * mean / block).clamp(LENGTHS[0], LENGTHS[1]);
        let blocks = |row: usize, block: usize| self.row_len(row) / block;
        // units by list, and the long rows: list, row and block
        let look = |rows: &Range<usize>| {
            let (mut units, mut long) = ([const { Vec::new() }; 8], Vec::new());
            let mut row = rows.start;
            while row < rows.end {
                let is_block = self.block > 1 && begins(marks, self.block, row);
                let block = if is_block { self.block } else { 1 };
                let list = 4 * usize::from(marks[row] & NEEDS_HALO != 0) + if is_block { 0 } else { 2 };
                if blocks(row, block) <= longest(block) {
                    units[list].push(Unit { row: row as u32, piece: WHOLE });
                } else {
                    long.push((list, row, block));
                }
                row += block;
            }
            (units, long)
        };
        let found: Vec<_> = of_rows.par_iter().map(look).collect();
        let mut lists: Vec<List> = (0..8)
            .map(|list| List {
                block: if list % 4 < 2 { self.block } else { 1 },
                has_pieces: list % 2 == 1,
                units: joined(&found.iter().map(|(units, _)| &*units[list]).collect::<Vec<_>>()),
            })
            .collect();
        let (mut pieces, mut long_rows, mut parts) = (Vec::new(), Vec::new(), 0);
        for &(list, row, block) in found.iter().flat_map(|(_, long)| long) {
            let count = blocks(row, block).div_ceil(longest(block));
            for first in 0..count {
                lists[list + 1].units.push(Unit { row: row as u32, piece: pieces.len() as u32 });
                let target = (parts + first * block) as u32;
                pieces.push(Piece { first: first as u32, step: count as u32, target });
            }
            let long = |k: usize| [row + k, parts + k, count, block].map(|v| v as u32);
            long_rows.extend((0..block).map(long));
            parts += count * block;
        }
        long_rows.sort_by_key(|row| row[2] as usize > FEW);
        self.few = long_rows.partition_point(|row| row[2] as usize <= FEW);
        (self.lists, self.pieces) = (Arc::new(lists), Arc::new(pieces));
        (self.long_rows, self.parts) = (long_rows, parts);
    }

    /// Sorts the units of each window, longest first. Its slices begin at another one from window to window: work-groups as
    /// large as windows would give the long ones to the same work-items each time.
    fn sort(&mut self) {
        let mut lists = Arc::unwrap_or_clone(std::mem::take(&mut self.lists));
        for list in &mut lists {
            let (block, this) = (list.block, &*self);
            list.units.par_chunks_mut(WINDOW).enumerate().for_each(|(k, window)| {
                window.sort_by_key(|&unit| Reverse(this.len(block, unit)));
                if window.len() == WINDOW {
                    let turn = (k as u32).wrapping_mul(0x9e37_79b9) >> 29;
                    window.rotate_left(turn as usize * UNITS);
                }
            });
        }
        self.lists = Arc::new(lists);
    }

    /// Takes the slices of each list.
    fn take(&mut self, of_lists: Vec<Vec<Slice>>) {
        for (k, slices) in of_lists.iter().enumerate() {
            let set = &mut self.sets[k / 4];
            match k % 4 {
                0 | 1 => set.blocked += slices.len() as u32,
                _ => set.single += slices.len() as u32,
            }
        }
        self.slices = Arc::new(of_lists.concat());
        self.sets[1].first = self.sets[0].blocked + self.sets[0].single;
        self.bytes = self.slices.iter().map(|slice| self.size(slice)).sum();
    }

    /// Bytes of a slice.
    fn size(&self, slice: &Slice) -> usize {
        slice.sections::<T>(self.lists[slice.list].block)[3]
    }

    /// Looks through the units of a slice.
    fn shape(&self, list: usize, first: usize) -> Slice {
        let (block, units) = (self.lists[list].block, &self.lists[list].units);
        let units = &units[first..units.len().min(first + UNITS)];
        let mut slice = Slice {
            list,
            first,
            count: units.len(),
            blocks: 0,
            width: 0,
            value: Value::Real,
            rows: [u32::MAX, 0],
            columns: [u32::MAX, 0],
            step: block,
            is_complex: block == 2,
        };
        let widen = |range: &mut [u32; 2], v: u32| *range = [range[0].min(v), range[1].max(v)];
        let mut fits: Vec<Value> =
            Value::NARROW.into_iter().filter(|value| value.bytes::<T>() < size_of::<T>()).collect();
        let mut phase = None;
        for &unit in units {
            let len = self.len(block, unit);
            slice.blocks += len;
            slice.width = slice.width.max(len);
            widen(&mut slice.rows, self.target(unit));
            for e in 0..len {
                let column = self.part.col_idx[self.entry(block, unit, e, 0)];
                let phase = *phase.get_or_insert(column as usize % block);
                if column as usize % block != phase {
                    slice.step = 1;
                }
                widen(&mut slice.columns, column);
                if slice.is_complex {
                    let of_row = |row: usize| {
                        let at = self.entry(block, unit, e, row);
                        [at, at + 1].map(|at| self.worth(self.part.values[at]))
                    };
                    slice.is_complex = is_complex([0, 1].map(of_row));
                }
                for row in 0..if fits.is_empty() { 0 } else { block } {
                    let at = self.entry(block, unit, e, row);
                    for &v in &self.part.values[at..at + block] {
                        fits.retain(|&value| self.survives(value, v));
                    }
                }
            }
        }
        if slice.blocks == 0 {
            slice.columns = [0; 2];
        }
        slice.value = fits.first().copied().unwrap_or(Value::Real);
        slice
    }

    /// Whether the device gets the same bits if this value is stored so.
    fn survives(&self, value: Value, v: f64) -> bool {
        let stored = T::from_f64(value.narrowed(v)) * T::from_f64(self.factor);
        stored.to_f64().to_bits() == self.worth(v).to_bits()
    }

    /// What the device gets for a value.
    fn worth(&self, v: f64) -> f64 {
        T::from_f64(v * self.factor).to_f64()
    }

    fn row_len(&self, row: usize) -> usize {
        self.part.row_ptr[row + 1] - self.part.row_ptr[row]
    }

    /// Blocks of a unit.
    fn len(&self, block: usize, unit: Unit) -> usize {
        let blocks = self.row_len(unit.row as usize) / block;
        match self.piece(unit) {
            None => blocks,
            Some(piece) => (blocks - piece.first as usize).div_ceil(piece.step as usize),
        }
    }

    fn piece(&self, unit: Unit) -> Option<Piece> {
        (unit.piece != WHOLE).then(|| self.pieces[unit.piece as usize])
    }

    /// The first row of a unit, or the first part of a piece.
    fn target(&self, unit: Unit) -> u32 {
        self.piece(unit).map_or(unit.row, |piece| piece.target)
    }

    /// Where the values of a unit's block `e` in its row `row` are in the part.
    fn entry(&self, block: usize, unit: Unit, e: usize, row: usize) -> usize {
        let e = self.piece(unit).map_or(e, |piece| piece.first as usize + e * piece.step as usize);
        self.part.row_ptr[unit.row as usize + row] - self.part.row_ptr[0] + e * block
    }
}

#[cfg(test)]
mod tests;
