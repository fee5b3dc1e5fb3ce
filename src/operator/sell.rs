//! Rows in slices, with columns and values in as few bytes as they need: the layout that `cl/sell.cl` describes.

mod blocks;
mod upload;

use std::cmp::Reverse;
use std::sync::Arc;

use rayon::prelude::*;

use self::blocks::{NEEDS_HALO, begins, block_size, is_complex, marks};
use super::Format;
use super::csr::Compressed;
use super::device_rows::{DeviceRows, each};
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
#[derive(Debug, Clone, Copy)]
struct Unit {
    row: u32,
    /// The number of the piece, [`WHOLE`] for all of the row.
    piece: u32,
}

const WHOLE: u32 = u32::MAX;

/// Every `step`-th block of a unit's rows, from block `first` on: neighbouring pieces have neighbouring columns.
#[derive(Debug, Clone, Copy)]
struct Piece {
    first: u32,
    step: u32,
    /// Where the sum of its first row goes.
    target: u32,
}

/// Units that are alike: rows of a unit, whether they are pieces.
#[derive(Debug, Default)]
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
    lists: Vec<List>,
    pieces: Vec<Piece>,
    slices: Vec<Slice>,
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
        let compressed = Compressed { part: self.part, factor: self.factor };
        let [bytes, usual] = [Layout::<T>::bytes(self), Layout::<T>::bytes(&compressed)];
        let is_worthwhile = if self.long_rows.is_empty() { bytes <= usual } else { bytes <= usual / 20 * 19 };
        target.shape == Shape::Gpu
            && (has_rows(self.part, target) && is_worthwhile || !Layout::<T>::is_trusted(&compressed, target))
    }

    fn upload(&self, ctx: &Context, _: &Tuning) -> Result<DeviceRows<T>> {
        let (block, [interior, boundary]) = self.block(ctx)?;
        let memory = self.bytes() + self.parts * size_of::<T>();
        let rows = |set| SellRows { block: Arc::clone(&block), set };
        // long rows may need the halo
        let with_long = |sets: Vec<SliceSet>| {
            let mut all = each(sets, rows);
            all.extend(LongRows::of(&block).map(|long| Box::new(long) as _));
            all
        };
        let whole = with_long(side_by_side(&interior, &boundary));
        Ok(DeviceRows::new(memory, [each(interior, rows), with_long(boundary)], whole))
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

impl<'a, T: Real> Sell<'a, T> {
    /// Lays out the rows of `part`, times `factor`. Three passes over the entries, the memory of 8 bytes a row.
    pub(crate) fn plan(part: &'a Part<'a>, factor: f64) -> Self {
        let marks = marks(part);
        let block = block_size(part, &marks);
        let mut this = Self {
            part,
            factor,
            block,
            lists: Vec::new(),
            pieces: Vec::new(),
            slices: Vec::new(),
            sets: [SliceSet::default(); 2],
            long_rows: Vec::new(),
            few: 0,
            parts: 0,
            bytes: 0,
            real: std::marker::PhantomData,
        };
        this.list(&marks);
        this.sort();
        this.slice();
        this
    }

    /// Bytes of the slices and of the list of long rows.
    fn bytes(&self) -> usize {
        let numbers =
            self.slices.len() * SellBlock::<T>::SLICE_WORDS + self.long_rows.len() * SellBlock::<T>::LONG_ROW_WORDS;
        self.bytes + 4 * numbers
    }

    /// Puts each row into its list.
    fn list(&mut self, marks: &[u8]) {
        let n = self.part.n_owned();
        let mean = self.part.nnz() / n.max(1);
        for k in 0..8 {
            let block = if k % 4 < 2 { self.block } else { 1 };
            self.lists.push(List { block, has_pieces: k % 2 == 1, units: Vec::new() });
        }
        let mut row = 0;
        while row < n {
            let is_block = self.block > 1 && begins(marks, self.block, row);
            let block = if is_block { self.block } else { 1 };
            let longest = (LONG * mean / block).clamp(LENGTHS[0], LENGTHS[1]);
            let blocks = self.row_len(row) / block;
            let kind = 4 * usize::from(marks[row] & NEEDS_HALO != 0) + if is_block { 0 } else { 2 };
            if blocks <= longest {
                self.lists[kind].units.push(Unit { row: row as u32, piece: WHOLE });
            } else {
                let count = blocks.div_ceil(longest);
                for first in 0..count {
                    self.lists[kind + 1].units.push(Unit { row: row as u32, piece: self.pieces.len() as u32 });
                    let target = (self.parts + first * block) as u32;
                    self.pieces.push(Piece { first: first as u32, step: count as u32, target });
                }
                let long = |k: usize| [row + k, self.parts + k, count, block].map(|v| v as u32);
                self.long_rows.extend((0..block).map(long));
                self.parts += count * block;
            }
            row += block;
        }
        self.long_rows.sort_by_key(|row| row[2] as usize > FEW);
        self.few = self.long_rows.partition_point(|row| row[2] as usize <= FEW);
    }

    /// Sorts the units of each window, longest first. Its slices begin at another one from window to window: work-groups as
    /// large as windows would give the long ones to the same work-items each time.
    fn sort(&mut self) {
        let mut lists = std::mem::take(&mut self.lists);
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
        self.lists = lists;
    }

    /// Cuts the lists into slices.
    fn slice(&mut self) {
        for (k, list) in self.lists.iter().enumerate() {
            let begins: Vec<usize> = (0..list.units.len()).step_by(UNITS).collect();
            let set = &mut self.sets[k / 4];
            match k % 4 {
                0 | 1 => set.blocked += begins.len() as u32,
                _ => set.single += begins.len() as u32,
            }
            let this = &*self;
            let slices: Vec<Slice> = begins.into_par_iter().map(|first| this.shape(k, first)).collect();
            self.slices.extend(slices);
        }
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::matrix::equivalent::{Form, real_form};
    use crate::matrix::{Complex64, Csr, gallery};
    use crate::partition::HaloPlan;

    fn part(a: &Csr) -> Part<'_> {
        Part {
            rows: 0..a.n_rows(),
            row_ptr: a.row_ptr(),
            col_idx: a.col_idx().into(),
            values: a.values().into(),
            halo: HaloPlan { len: a.n_cols().saturating_sub(a.n_rows()), ..HaloPlan::default() },
        }
    }

    /// A matrix of the entries (i, j, v).
    fn matrix(n: usize, n_cols: usize, entries: &[(u32, u32, f64)]) -> Csr {
        let rows: Vec<u32> = entries.iter().map(|e| e.0).collect();
        let cols: Vec<u32> = entries.iter().map(|e| e.1).collect();
        let values: Vec<f64> = entries.iter().map(|e| e.2).collect();
        Csr::from_triplets(n, n_cols, &rows, &cols, &values).unwrap()
    }

    #[test]
    fn a_slice_by_hand() {
        // two rows of two blocks, one row of none
        let a = matrix(
            3,
            5,
            &[
                (0, 0, 1.0),
                (0, 1, 2.0),
                (0, 3, 3.0),
                (0, 4, 4.0),
                (1, 0, 5.0),
                (1, 1, 6.0),
                (1, 3, 7.0),
                (1, 4, 8.0),
                (2, 0, 1000.0),
            ],
        );
        let part = part(&a);
        let sell = Sell::<f64>::plan(&part, 1.0);
        assert_eq!((sell.block, sell.slices.len(), sell.parts), (2, 2, 0));
        // columns 3 and 4 are a halo, which the last row does not need
        let set = |first, blocked, single| SliceSet { segment: 0, first, blocked, single };
        assert_eq!(sell.sets, [set(0, 0, 1), set(1, 1, 0)]);
        let bytes = |slice: usize| {
            let slice = &sell.slices[slice];
            let mut out = vec![0; slice.sections::<f64>(sell.lists[slice.list].block)[3]];
            sell.fill(slice, &mut out);
            out
        };
        // a count, a value of two bytes in four, a column of two in four, a row
        let [low, high] = 1000i16.to_ne_bytes();
        let row = bytes(0);
        assert_eq!((&row[..12], row.len()), (&[1, 0, 0, 0, 0, 0, 0, 0, low, high, 0, 0][..], 32));
        assert_eq!(row[12..], [0; 20]);
        assert_eq!(sell.slices[0].words(&sell.lists[2], 0), [0, 1, 1 | 1 << 16 | 2 << 24, 2, 0]);
        // two counts; by columns, values of one byte; columns 0 and 3, not whole blocks apart; the row
        let blocks = bytes(1);
        assert_eq!(blocks[..16], [1, 1, 0, 0, 0, 0, 0, 0, 1, 5, 2, 6, 3, 7, 4, 8]);
        assert_eq!(blocks[16..20], *[[0; 2], 3u16.to_ne_bytes()].as_flattened());
        assert_eq!(blocks[20..], [0; 12]);
        assert_eq!(sell.slices[1].words(&sell.lists[4], 2), [2, 2, 2 | 1 << 16 | 3 << 24, 0, 0]);
        assert_eq!(sell.bytes(), 64 + 2 * 20);
    }

    /// The bytes of a slice.
    fn bytes<T: Real>(sell: &Sell<'_, T>, slice: &Slice) -> Vec<u8> {
        let mut out = vec![0; sell.size(slice)];
        sell.fill(slice, &mut out);
        out
    }

    #[test]
    fn a_slice_of_complex_numbers_by_hand() {
        // [1 + 2i, 0, 3; 0, −4i, 0]
        let z = Complex64::new;
        let a = Csr::from_triplets(2, 3, &[0, 0, 1], &[0, 2, 1], &[z(1.0, 2.0), z(3.0, 0.0), z(0.0, -4.0)]).unwrap();
        let a = real_form(&a).unwrap();
        let part = part(&a);
        let sell = Sell::<f64>::plan(&part, 1.0);
        let (halo, own) = (&sell.slices[1], &sell.slices[0]);
        assert_eq!((sell.block, sell.slices.len(), halo.is_complex, own.is_complex), (2, 2, true, true));
        // two counts, two values of a byte for each entry, columns in blocks, the row
        let columns = [0u16, 2].map(u16::to_ne_bytes);
        let expected = [&[1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0], columns.as_flattened(), &[0; 16]].concat();
        assert_eq!(bytes(&sell, halo), expected);
        assert_eq!(halo.words(&sell.lists[4], 1), [1, 2, 2 | 1 << 16 | (3 | 32 | 64) << 24, 0, 0]);
        let expected = [&[1, 0, 0, 0, 0, 0, 0, 0, 0, 252, 0, 0][..], &[0; 20]].concat();
        assert_eq!(bytes(&sell, own), expected);
        assert_eq!(own.words(&sell.lists[0], 0), [0, 1, 1 | 1 << 16 | (3 | 32 | 64) << 24, 2, 2]);
    }

    /// Whether a block of 2 × 2, times a factor, is stored as a complex number, in both precisions.
    fn complex_of([[a, b], [c, d]]: [[f64; 2]; 2], factor: f64) -> [bool; 2] {
        let a = matrix(2, 2, &[(0, 0, a), (0, 1, b), (1, 0, c), (1, 1, d)]);
        let of = |slices: &[Slice]| slices[0].is_complex;
        [of(&Sell::<f64>::plan(&part(&a), factor).slices), of(&Sell::<f32>::plan(&part(&a), factor).slices)]
    }

    #[test]
    fn complex_numbers_are_known_by_their_bits() {
        let of = |block| complex_of(block, 1.0);
        for block in [[[1.5, -0.1], [0.1, 1.5]], [[0.0, 2.0], [-2.0, 0.0]], [[3.0, 0.0], [0.0, 3.0]]] {
            assert_eq!(of(block), [true; 2], "{block:?}");
        }
        let others = [[[1.0, 0.1], [0.1, 1.0]], [[1.0, -0.1], [0.1, -1.0]], [[1.0, 1.0], [1.0, 1.0]]];
        for block in others {
            assert!(!of(block)[0], "{block:?}");
        }
        // zeros of either sign: 0 − m is never −0
        assert_eq!(of([[1.0, 0.0], [-0.0, 1.0]]), [true; 2]);
        for block in [[[1.0, -0.0], [0.0, 1.0]], [[1.0, -0.0], [-0.0, 1.0]], [[0.0, -1.0], [1.0, -0.0]]] {
            assert_eq!(of(block), [false; 2], "{block:?}");
        }
        // what is told apart in double precision alone, and what becomes −0 in single precision or by the factor
        assert_eq!(of([[1.0, -2.0], [2.0, 1.0 + f64::EPSILON]]), [false, true]);
        assert_eq!(of([[1.0, -1e-60], [1e-60, 1.0]]), [true, false]);
        assert_eq!(complex_of([[1e100, -1e-200], [1e-200, 1e100]], 1e-200), [false; 2]);
    }

    proptest! {
        /// The bits of the block come back from its first column if it is stored alone, and only then.
        #[test]
        fn complex_numbers_keep_their_bits(
            values in prop::array::uniform4(prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 300.0, 1e-310])),
            factor in prop::sample::select(vec![1.0, 0.5, 1.0 / 3.0, 1e-20]),
        ) {
            let [a, b, c, d] = values;
            let back = |of: &dyn Fn(f64) -> f64| {
                [of(a), of(b)].map(f64::to_bits) == [of(d), 0.0 - of(c)].map(f64::to_bits)
            };
            let expected = [back(&|v| v * factor), back(&|v| f64::from((v * factor) as f32))];
            prop_assert_eq!(complex_of([[a, b], [c, d]], factor), expected);
        }
    }

    /// So many rows of `len` complex entries each, in places and of values that follow no order.
    fn random_complex(n: u32, len: u32) -> Csr<Complex64> {
        let entries = || (0..n).flat_map(|i| (0..len).map(move |k| (i, (i * 7919 + k * 104_729 + k * k * 31) % n)));
        let number = |(i, j): (u32, u32)| Complex64::new((1.0 + f64::from(i)).sin(), f64::from(3 * i + 7 * j).cos());
        let (rows, cols): (Vec<u32>, Vec<u32>) = entries().unzip();
        Csr::from_triplets(n as usize, n as usize, &rows, &cols, &entries().map(number).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn complex_numbers_take_two_values() {
        let complex = random_complex(2_000, 9);
        let a = real_form(&complex).unwrap();
        let part = part(&a);
        let csr = Compressed { part: &part, factor: 1.0 };
        let bytes = |of: [usize; 2]| of[0] as f64 / of[1] as f64;
        let double = bytes([Layout::<f64>::bytes(&Sell::<f64>::plan(&part, 1.0)), Layout::<f64>::bytes(&csr)]);
        let single = bytes([Layout::<f32>::bytes(&Sell::<f32>::plan(&part, 1.0)), Layout::<f32>::bytes(&csr)]);
        // 18 of 48 bytes, and 10 of 32, but for what a row has
        assert!((0.37..0.40).contains(&double) && (0.31..0.34).contains(&single), "{double}, {single}");
        // the other form has no such blocks
        let symmetric = Form::Symmetric.matrix(&complex).unwrap();
        assert!(Sell::<f64>::plan(&self::part(&symmetric), 1.0).slices.iter().all(|slice| !slice.is_complex));
    }

    #[test]
    fn slices_are_complex_one_by_one() {
        // 100 units, of which the one of row 120 has a block that is no complex number
        let a = real_form(&random_complex(100, 3)).unwrap();
        let mut values = a.values().to_vec();
        values[a.row_ptr()[121]] += 1.0;
        let a = Csr::new(200, 200, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
        let part = part(&a);
        let sell = Sell::<f64>::plan(&part, 1.0);
        let others: Vec<&Slice> = sell.slices.iter().filter(|slice| !slice.is_complex).collect();
        assert_eq!((sell.block, sell.slices.len(), others.len()), (2, 4, 1));
        let units = &sell.lists[others[0].list].units[others[0].first..][..others[0].count];
        assert!(units.iter().any(|unit| unit.row == 120));
    }

    #[test]
    fn sizes_of_blocks() {
        let of = |a: &Csr| Sell::<f64>::plan(&part(a), 1.0).block;
        assert_eq!(of(&gallery::elasticity3d([4, 4, 4]).unwrap()), 3);
        assert_eq!(of(&gallery::poisson3d([6, 6, 6]).unwrap()), 1);
        let dense = |n: u32| {
            let entries: Vec<_> = (0..n * n).map(|k| (k / n, k % n, 1.0)).collect();
            of(&matrix(n as usize, n as usize, &entries))
        };
        assert_eq!([1, 2, 3, 4, 6, 9].map(dense), [1, 2, 3, 4, 3, 3]);
        // half of the values are worth more than columns
        let complex = |n: u32| {
            let places: Vec<[u32; 2]> = (0..n * n).map(|k| [k / n, k % n]).collect();
            let [rows, cols] = [0, 1].map(|k| places.iter().map(|place| place[k]).collect::<Vec<_>>());
            let a =
                Csr::from_triplets(n as usize, n as usize, &rows, &cols, &vec![Complex64::new(1.0, 2.0); rows.len()]);
            of(&real_form(&a.unwrap()).unwrap())
        };
        assert_eq!([1, 2, 3].map(complex), [2, 2, 2]);
    }

    #[test]
    fn blocks_after_a_row_without() {
        // the node of row 0 has one unknown, the others three
        let mut entries = vec![(0, 0, 1.0)];
        entries.extend((0..40 * 9).map(|k| (1 + k / 9 * 3 + k % 3, 1 + k / 9 * 3 + k / 3 % 3, 0.1)));
        let a = matrix(121, 121, &entries);
        let part = part(&a);
        let sell = Sell::<f64>::plan(&part, 1.0);
        assert_eq!((sell.block, sell.sets[0]), (3, SliceSet { segment: 0, first: 0, blocked: 2, single: 1 }));
        assert!(sell.slices.iter().take(2).all(|slice| slice.step == 3 && slice.value == Value::Real));
    }

    #[test]
    fn values_keep_their_bits_in_fewer_bytes() {
        let kind = |v: f64, factor: f64| {
            let a = matrix(1, 1, &[(0, 0, v)]);
            let of = |slices: &[Slice]| slices[0].value;
            let double = of(&Sell::<f64>::plan(&part(&a), factor).slices);
            (double, of(&Sell::<f32>::plan(&part(&a), factor).slices))
        };
        use Value::{Char, Float, Real, Short};
        assert_eq!([127.0, -128.0, -1.0, 0.0].map(|v| kind(v, 1.0)), [(Char, Char); 4]);
        assert_eq!([128.0, -32768.0].map(|v| kind(v, 1.0)), [(Short, Short); 2]);
        assert_eq!([40_000.0, 0.5, -0.0, 2f64.powi(100)].map(|v| kind(v, 1.0)), [(Float, Real); 4]);
        assert_eq!([0.1, 1e300, 16_777_217.0].map(|v| kind(v, 1.0)), [(Real, Real); 3]);
        // a power of two keeps all bits, even where the value itself is none of a smaller type
        assert_eq!((kind(-3.0, 0.125), kind(0.1, 0.5)), ((Char, Char), (Real, Real)));
    }

    #[test]
    fn long_rows_are_cut_into_pieces() {
        let n = 1000;
        let mut entries: Vec<_> = (0..n).map(|i| (i, i, 1.0)).collect();
        entries.extend((1..n).map(|j| (0, j, 1.0)));
        entries.extend((0..65).map(|j| (500, j, 1.0)));
        let a = matrix(n as usize, n as usize, &entries);
        let part = part(&a);
        let sell = Sell::<f64>::plan(&part, 1.0);
        // 1000 entries in pieces of 62 and 63, and 66 in pieces of 33
        assert_eq!((&sell.long_rows[..], sell.few, sell.parts), (&[[0, 0, 16, 1], [500, 16, 2, 1]][..], 2, 18));
        let lens: Vec<usize> = sell.lists[3].units.iter().map(|&unit| sell.len(1, unit)).collect();
        assert_eq!(lens.iter().sum::<usize>(), 1066);
        assert_eq!((lens[0], lens[15], lens[17]), (63, 62, 33));
        assert!(sell.lists[2].units.iter().all(|unit| ![0, 500].contains(&unit.row)));
    }

    #[test]
    #[should_panic(expected = "column 7 of 3")]
    fn a_column_that_changed_reaches_no_device() {
        let row_ptr = [0, 1, 2, 3];
        let values = [1.0; 3];
        let of = |col_idx: Vec<u32>| Part {
            rows: 0..3,
            row_ptr: &row_ptr,
            col_idx: col_idx.into(),
            values: values.as_slice().into(),
            halo: HaloPlan::default(),
        };
        let (before, after) = (of(vec![0, 1, 2]), of(vec![0, 7, 2]));
        let plan = Sell::<f64>::plan(&before, 1.0);
        let slice = plan.slices[0];
        let changed = Sell { part: &after, ..plan };
        changed.fill(&slice, &mut vec![0; slice.sections::<f64>(1)[3]]);
    }
}
