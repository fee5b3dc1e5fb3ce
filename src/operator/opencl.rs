//! A device's block of rows.

use std::ops::Range;

use rayon::prelude::*;

use super::dictionary::Dictionary;
use super::exchange::{HaloExchange, early};
use super::main_pattern::Main;
use super::plan::{Offer, Plan, Target};
use super::row_blocks::RowBlocks;
use super::segments::{self, launches};
use super::{Exchange, Format};
use crate::backend::opencl::{DeviceSums, OpenClOps};
use crate::backend::{Arriving, LinearOperator, pair};
use crate::device::{Context, DeviceVec};
use crate::error::Result;
use crate::kernels::csr::{BlockSet, CsrBlock, CsrSegment};
use crate::kernels::dictionary::{DictionaryBlock, DictionarySegment, MainPattern, RowSet, SLICE};
use crate::kernels::products::{Product, Rows};
use crate::kernels::sell::{SellBlock, SliceSet};
use crate::kernels::{Kernels, Shape, Tuning};
use crate::partition::{HaloPlan, Part, compressed_bytes};
use crate::real::Real;

/// A block of rows in one of several formats, with what its halo needs.
pub(crate) struct DeviceBlock<T: Real> {
    stored: Stored<T>,
    n_rows: usize,
    nnz: usize,
    exchange: HaloExchange<T>,
}

/// What a product launches on rows without a halo, and on the others: of each segment what is not empty.
pub(crate) type Sets<S> = [Vec<S>; 2];

/// Rows of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those without a halo.
    Interior,
    /// The others.
    Boundary,
    All,
}

impl Which {
    fn of<S: Copy>(self, [interior, boundary]: &Sets<S>) -> impl Iterator<Item = S> {
        let (interior, boundary) = match self {
            Self::Interior => (&interior[..], &[][..]),
            Self::Boundary => (&[][..], &boundary[..]),
            Self::All => (&interior[..], &boundary[..]),
        };
        interior.iter().chain(boundary).copied()
    }
}

/// How the rows lie on the device, and what a product launches.
pub(crate) enum Stored<T> {
    /// Compressed rows, and the row blocks of each launch.
    Csr(CsrBlock<T>, Sets<BlockSet>),
    /// Rows by a dictionary: the longest run of rows without a halo, or half of it, and the others.
    Dictionary(Box<DictionaryBlock<T>>, Sets<RowSet>),
    /// Rows in slices, and the slices of each launch.
    Sell(SellBlock<T>, Sets<SliceSet>),
}

impl<T: Real> DeviceBlock<T> {
    /// The most entries of a block, which row pointers count in 32 bits.
    pub(crate) const MAX_NNZ: usize = segments::MAX_LEN;

    /// Moves the block of `part`, times `factor`, to the device, in `format`.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory); [`Error::Usage`](crate::Error::Usage) if the rows do not fit the format.
    ///
    /// # Panics
    /// If there are more entries than 32-bit row pointers can count, or a column is outside the block.
    pub(crate) fn upload(ctx: &Context, tuning: &Tuning, part: &Part<'_>, factor: f64, format: Format) -> Result<Self> {
        let offer = Offer::of(part, factor, format, target(ctx, tuning))?;
        Self::alone(ctx, tuning, part, factor, &offer)?.join(ctx, &part.halo, Exchange::HostStaged)
    }

    /// Moves the block of `part`, times `factor`, to the device as one of the formats that were found for it, as if no
    /// other rank took part: products leave the halo as it is.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    ///
    /// # Panics
    /// As [`upload`](Self::upload).
    pub(crate) fn alone(
        ctx: &Context,
        tuning: &Tuning,
        part: &Part<'_>,
        factor: f64,
        offer: &Offer<'_, T>,
    ) -> Result<Self> {
        assert!(part.nnz() <= Self::MAX_NNZ, "{} entries in one block", part.nnz());
        let stored = match &offer.plan {
            Plan::Csr => csr(ctx, tuning, part, factor)?,
            Plan::Dictionary(dictionary) => by_dictionary(ctx, part, dictionary, factor, target(ctx, tuning).shape)?,
            Plan::Sell(slices) => {
                let (block, sets) = slices.upload(ctx)?;
                Stored::Sell(block, sets)
            }
        };
        let (n_rows, nnz) = (part.n_owned(), part.nnz());
        let nobody = HaloPlan { len: part.halo.len, ..HaloPlan::default() };
        let exchange = HaloExchange::new(ctx, n_rows, &nobody, Exchange::HostStaged)?;
        Ok(Self { stored, n_rows, nnz, exchange })
    }

    /// The block as one of several, whose products fill the halo; the context must be of the kind that `exchange` needs.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn join(self, ctx: &Context, halo: &HaloPlan, exchange: Exchange) -> Result<Self> {
        Ok(Self { exchange: HaloExchange::new(ctx, self.n_rows, halo, exchange)?, ..self })
    }

    /// Compiles the products of its format, or else the first of them waits for the compiler.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn compile<A: Real>(&self, ctx: &Context, kernels: &Kernels<T, A>) -> Result<()> {
        self.launches(Which::All).into_iter().try_for_each(|rows| kernels.prepare(ctx, rows))
    }

    /// What a product launches on some rows, one after the other. Long rows in slices, which may need the halo, come last.
    pub(crate) fn launches(&self, which: Which) -> Vec<Rows<'_, T>> {
        match &self.stored {
            Stored::Csr(block, sets) => which.of(sets).map(|set| Rows::Csr(block, set)).collect(),
            // without a gap
            Stored::Dictionary(block, _) if which == Which::All => {
                block.whole().map(|set| Rows::Dictionary(block, set)).collect()
            }
            Stored::Dictionary(block, sets) => which.of(sets).map(|set| Rows::Dictionary(block, set)).collect(),
            Stored::Sell(block, sets) => {
                let has_long = which != Which::Interior && block.long_count() > 0;
                let long = has_long.then(|| Rows::Long(block, block.long_count() as u32));
                which.of(sets).map(|set| Rows::Sell(block, set)).chain(long).collect()
            }
        }
    }

    /// Puts other row blocks of the same rows in the place of those it has.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn recut(&mut self, ctx: &Context, rows: &RowBlocks) -> Result<()> {
        assert!(rows.blocks.iter().all(|&[begin, end]| begin <= end && end as usize <= self.n_rows));
        if let Stored::Csr(block, sets) = &mut self.stored {
            let is_inside = |set: &BlockSet| {
                let segment = &block.segments[set.segment].rows;
                let of_set = &rows.blocks[set.first as usize..set.last as usize];
                of_set.iter().all(|&[begin, end]| segment.start <= begin as usize && end as usize <= segment.end)
            };
            assert!(rows.sets.iter().flatten().all(is_inside));
            block.blocks = DeviceVec::from_slice(ctx, &rows.blocks, "the row blocks")?;
            sets.clone_from(&rows.sets);
        }
        Ok(())
    }

    /// The rows, for those who launch kernels themselves.
    pub(crate) fn stored(&self) -> &Stored<T> {
        &self.stored
    }

    /// Memory that the rows take on the device, in bytes, without what belongs to their halo.
    pub(crate) fn memory(&self) -> u64 {
        let (n, real) = (self.n_rows, size_of::<T>());
        let bytes = match &self.stored {
            Stored::Csr(block, _) => self.nnz * (4 + real) + 4 * (n + 1) + 8 * block.blocks.len(),
            Stored::Dictionary(block, _) => {
                let values: usize = block.segments.iter().map(|segment| segment.values.len()).sum();
                let patterns = 2 * n + 4 * block.slice_masks.len();
                patterns + 12 * block.runs.len() + (block.entries.len() + values) * real
            }
            Stored::Sell(block, _) => block.bytes() + block.parts.len() * real,
        };
        bytes as u64
    }

    /// The format that was chosen.
    pub(crate) fn format(&self) -> Format {
        match &self.stored {
            Stored::Csr(..) => Format::Csr,
            Stored::Dictionary(block, _) if block.width.is_some() => Format::Pattern,
            Stored::Dictionary(..) => Format::Dictionary,
            Stored::Sell(..) => Format::Sell,
        }
    }

    /// Kernels that a product launches: each leaves partial sums of its own.
    pub(crate) fn launch_count(&self) -> usize {
        self.launches(Which::Interior).len() + self.launches(Which::Boundary).len()
    }

    /// Launches a product on the rows that need no halo while the halo of `x` is under way, then on the others.
    fn overlapped<A: Real>(
        &self,
        ops: &OpenClOps<T, A>,
        x: &mut DeviceVec<T>,
        product: &Product<'_, T, A>,
    ) -> Result<()> {
        let on = |which, x: &DeviceVec<T>| {
            let rows = self.launches(which).into_iter();
            rows.map(|rows| ops.kernels.product(&ops.ctx, rows, x, product, None))
                .try_for_each(|groups| groups.map(|_| ()))
        };
        self.exchange.pack(ops, x)?;
        on(Which::Interior, x)?;
        self.exchange.send(ops, x)?;
        self.exchange.receive(ops, x)?;
        on(Which::Boundary, x)
    }

    /// y = A x on some rows, with parts of x·y and y·y behind those of the `before` work-groups that were launched so far.
    /// Tells how many there are then.
    fn dots_of<A: Real>(
        &self,
        ops: &OpenClOps<T, A>,
        which: Which,
        x: &DeviceVec<T>,
        y: &mut DeviceVec<T>,
        partials: &DeviceVec<A>,
        before: usize,
    ) -> Result<usize> {
        let done = &*ops.done();
        self.launches(which).into_iter().try_fold(before, |groups, rows| {
            let product = Product::Dots { y: &mut *y, partials, first: groups as u32, done };
            Ok(groups + ops.kernels.product(&ops.ctx, rows, x, &product, None)?)
        })
    }
}

/// Moves column indices to the device, all of them below `limit`.
///
/// Kernels check no index. Those of a matrix in a mapped file may change at any time, so that only a copy can be vouched
/// for: piece by piece, which costs a fraction of the transfer.
fn columns(ctx: &Context, indices: &[u32], limit: usize) -> Result<DeviceVec<u32>> {
    const PIECE: usize = 1 << 20;
    let mut on_device = DeviceVec::zeros(ctx, indices.len(), "the column indices")?;
    let mut copy = Vec::new();
    for (k, piece) in indices.chunks(PIECE).enumerate() {
        piece.par_iter().copied().collect_into_vec(&mut copy);
        let max = copy.par_iter().max().map_or(0, |&j| j as usize);
        assert!(max < limit, "column {max} of {limit}: was the matrix's file changed after it was read?");
        on_device.write(ctx, k * PIECE, &copy)?;
    }
    Ok(on_device)
}

/// Compressed rows on the device.
fn csr<T: Real>(ctx: &Context, tuning: &Tuning, part: &Part<'_>, factor: f64) -> Result<Stored<T>> {
    let base = part.row_ptr[0];
    let lens = part.row_ptr.windows(2).map(|row| row[1] - row[0]);
    let segments = segments::cut(ctx, lens, size_of::<T>().max(4));
    let rows = RowBlocks::cut(part, tuning, &segments);
    let n_cols = part.n_owned() + part.halo.len;
    let segment = |rows: Range<usize>| {
        let entries = part.row_ptr[rows.start] - base..part.row_ptr[rows.end] - base;
        Ok(CsrSegment {
            rows,
            before: entries.start as u32,
            col_idx: columns(ctx, &part.col_idx[entries.clone()], n_cols)?,
            values: DeviceVec::from_slice(ctx, &T::scaled(&part.values[entries], factor), "the values of the matrix")?,
        })
    };
    let row_ptr: Vec<u32> = part.row_ptr.iter().map(|&p| (p - base) as u32).collect();
    let block = CsrBlock {
        n_rows: part.n_owned(),
        n_cols,
        blocks: DeviceVec::from_slice(ctx, &rows.blocks, "the row blocks")?,
        row_ptr: DeviceVec::from_slice(ctx, &row_ptr, "the row pointers")?,
        segments: segments.into_iter().map(segment).collect::<Result<_>>()?,
    };
    Ok(Stored::Csr(block, rows.sets))
}

/// Rows by a dictionary of their patterns, on the device.
fn by_dictionary<T: Real>(
    ctx: &Context,
    part: &Part<'_>,
    dictionary: &Dictionary,
    factor: f64,
    shape: Shape,
) -> Result<Stored<T>> {
    let (n, n_cols) = (part.n_owned(), part.n_owned() + part.halo.len);
    dictionary.check_columns(n_cols);
    // single work-items take rows of a pattern together, which suits a CPU better
    let main = if shape == Shape::Gpu { Main::of(dictionary) } else { None };
    let width = dictionary.width();
    let values = dictionary.values.as_ref().map(|values| T::scaled(values, factor));
    let entry = |(k, &distance): (usize, &i32)| {
        [values.as_ref().map_or(T::default(), |values| values[k]), T::with_low_word(distance)]
    };
    let entries: Vec<T> = dictionary.distances.iter().enumerate().flat_map(entry).collect();
    let runs: Vec<[u32; 2]> = dictionary.starts.windows(2).map(|run| [run[0], run[1]]).collect();
    // values by pattern are the table's
    let width_of_rows = if values.is_some() { 0 } else { width };
    let slices = std::iter::repeat_n(SLICE * width_of_rows, n.div_ceil(SLICE));
    let segment = |slices: Range<usize>| {
        let rows = n.min(slices.start * SLICE)..n.min(slices.end * SLICE);
        let of_rows = sliced::<T>(part, rows.clone(), dictionary, main.as_ref(), width_of_rows, factor);
        let values = DeviceVec::from_slice(ctx, &of_rows, "the values of the matrix")?;
        Ok(DictionarySegment { rows: rows.start as u32..rows.end as u32, values })
    };
    let segments: Vec<DictionarySegment<T>> =
        segments::cut(ctx, slices, size_of::<T>()).into_iter().map(segment).collect::<Result<_>>()?;
    let interior = early::<T>(part, dictionary.interior(n));
    let interior = interior.start as u32..interior.end as u32;
    let sets: Vec<[RowSet; 2]> =
        segments.iter().enumerate().map(|(k, segment)| RowSet::around(k, &segment.rows, &interior)).collect();
    let of_main = main.as_ref().map_or(0..0, |main| main.entries(dictionary));
    let main_values = values.as_ref().map_or(&[][..], |values| &values[of_main.clone()]);
    let slice_masks = main.as_ref().map_or(Vec::new(), |main| main.slice_masks(dictionary, SLICE));
    // where a slice has no mask, the patterns of its rows are read
    let patterns_bytes = match slice_masks.iter().filter(|&&mask| mask != 0).count() {
        0 => 2 * n,
        alike => 4 * slice_masks.len() + 2 * n.saturating_sub(SLICE * alike),
    };
    let (masks, rows) = main.map_or_else(|| (vec![0; runs.len()], 0..0), |main| (main.masks, main.rows));
    let block = DictionaryBlock {
        n_rows: n,
        n_cols,
        patterns: DeviceVec::from_slice(ctx, &dictionary.of_row, "the patterns of the rows")?,
        runs: DeviceVec::from_slice(ctx, &runs, "the lengths of the patterns")?,
        entries: DeviceVec::from_slice(ctx, &entries, "the entries of the patterns")?,
        segments,
        width: dictionary.values.is_none().then_some(width as u32),
        masks: DeviceVec::from_slice(ctx, &masks, "the parts of the main pattern")?,
        slice_masks: DeviceVec::from_slice(ctx, &slice_masks, "the parts of the main pattern in slices")?,
        patterns_bytes,
        main: MainPattern::new(main_values, &dictionary.distances[of_main.clone()], rows),
        main_len: of_main.len(),
    };
    Ok(Stored::Dictionary(Box::new(block), launches(&sets, |set| set.count == 0)))
}

/// The values of some rows with room for `width` entries each, in slices of 32 rows: see `cl/dictionary.cl`.
fn sliced<T: Real>(
    part: &Part<'_>,
    rows: Range<usize>,
    dictionary: &Dictionary,
    main: Option<&Main>,
    width: usize,
    factor: f64,
) -> Vec<T> {
    if width == 0 {
        return Vec::new();
    }
    let (base, of_rows) = (part.row_ptr[0], part.row_ptr[rows.start]..part.row_ptr[rows.end]);
    let values = T::scaled(&part.values[of_rows.start - base..of_rows.end - base], factor);
    let mut all = vec![T::default(); rows.len().div_ceil(SLICE) * SLICE * width];
    all.par_chunks_mut((SLICE * width).max(1)).enumerate().for_each(|(k, slice)| {
        let begin = rows.start + k * SLICE;
        for (lane, row) in (begin..rows.end.min(begin + SLICE)).enumerate() {
            let values = &values[part.row_ptr[row] - of_rows.start..part.row_ptr[row + 1] - of_rows.start];
            let put = |(e, &value): (usize, &T)| slice[e * SLICE + lane] = value;
            match main {
                Some(main) => main.positions(row, dictionary.of_row[row], values.len()).zip(values).for_each(put),
                None => values.iter().enumerate().for_each(put),
            }
        }
    });
    all
}

impl<T: Real, A: Real> LinearOperator<OpenClOps<T, A>> for DeviceBlock<T> {
    fn apply(&self, ops: &OpenClOps<T, A>, x: &mut DeviceVec<T>, y: &mut DeviceVec<T>) -> Result<()> {
        self.overlapped(ops, x, &Product::Store(y))
    }

    fn fill_halo(&self, ops: &OpenClOps<T, A>, x: &mut DeviceVec<T>) -> Result<()> {
        self.exchange.pack(ops, x)?;
        self.exchange.send(ops, x)?;
        self.exchange.receive(ops, x)
    }

    fn multiply(
        &self,
        ops: &OpenClOps<T, A>,
        v: &mut [DeviceVec<T>],
        of: [usize; 2],
        arriving: Option<Arriving<'_, DeviceVec<T>>>,
        dots: &mut DeviceSums<A>,
    ) -> Result<()> {
        let partials = ops.empty(dots, self.launch_count())?;
        if let Some(Arriving { of, .. }) = &arriving {
            self.exchange.send(ops, &v[*of])?;
        }
        // one launch is quicker than two, if it does not wait
        let is_halo_early = matches!(self.stored, Stored::Dictionary(..)) && self.exchange.is_hidden_by_step();
        let mut groups = dots.groups();
        if !is_halo_early {
            let [x, y] = pair(v, of);
            groups = self.dots_of(ops, Which::Interior, x, y, &partials, groups)?;
        }
        if let Some(Arriving { of, then }) = arriving {
            self.exchange.receive(ops, &mut v[of])?;
            if self.exchange.halo() > 0 {
                then(v)?;
            }
        }
        let rest = if is_halo_early { Which::All } else { Which::Boundary };
        let [x, y] = pair(v, of);
        dots.set_groups(self.dots_of(ops, rest, x, y, &partials, groups)?);
        Ok(())
    }

    fn pack_halo(&self, ops: &OpenClOps<T, A>, y: &DeviceVec<T>, is_summed: bool) -> Result<()> {
        if is_summed { self.exchange.pack_known(ops, y) } else { self.exchange.pack(ops, y) }
    }

    fn residual(
        &self,
        ops: &OpenClOps<T, A>,
        b: &DeviceVec<T>,
        x: &mut DeviceVec<T>,
        r: &mut DeviceVec<T>,
    ) -> Result<()> {
        self.overlapped(ops, x, &Product::Residual { b, r })
    }

    fn rows(&self) -> Option<Rows<'_, T>> {
        let is_alone = self.exchange.halo() == 0 && !self.exchange.is_shared();
        let launches = [Which::Interior, Which::Boundary].map(|which| self.launches(which));
        if let ([rows], []) = (&launches[0][..], &launches[1][..])
            && is_alone
        {
            Some(*rows)
        } else {
            None
        }
    }

    fn halo(&self) -> usize {
        self.exchange.halo()
    }

    fn bytes(&self) -> u64 {
        let (n, real) = (self.n_rows, size_of::<T>());
        let matrix = match &self.stored {
            Stored::Csr(..) => compressed_bytes(n as u64, self.nnz as u64, real as u64) as usize,
            Stored::Dictionary(block, _) => {
                let values = if block.width.is_some() { self.nnz } else { 0 };
                block.patterns_bytes + 12 * block.runs.len() + (block.entries.len() + values) * real
            }
            Stored::Sell(block, _) => block.bytes() + 2 * block.parts.len() * real,
        };
        (matrix + 2 * n * real) as u64
    }
}

/// What rows are laid out for on a device.
pub(crate) fn target(ctx: &Context, tuning: &Tuning) -> Target {
    Target::new(ctx.info(), Shape::of_group(tuning.launch("spmv_dot_pattern").group_size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    #[should_panic(expected = "column 2 of 2")]
    fn no_column_outside_reaches_a_device() {
        let device = list().devices.remove(0);
        let (ctx, tuning) = (Context::open(&device).unwrap(), Tuning::default_for(&device, Shape::of(&device)));
        let upload = |col_idx: [u32; 3]| {
            let (row_ptr, values, halo) = ([0, 2, 3], [1.0; 3], HaloPlan::default());
            let part = Part {
                rows: 0..2,
                row_ptr: &row_ptr,
                col_idx: col_idx.to_vec().into(),
                values: values.as_slice().into(),
                halo,
            };
            DeviceBlock::<f32>::upload(&ctx, &tuning, &part, 1.0, Format::Csr).map(|_| ())
        };
        upload([0, 1, 1]).unwrap();
        upload([0, 1, 2]).unwrap();
    }

    #[test]
    fn columns_of_several_pieces() {
        let device = list().devices.remove(0);
        let ctx = Context::open(&device).unwrap();
        for len in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 21) + 5] {
            let indices: Vec<u32> = (0..len).rev().collect();
            let mut back = vec![9; len as usize];
            columns(&ctx, &indices, len as usize).unwrap().read(&ctx, 0, &mut back).unwrap();
            assert!(back == indices, "{len}");
        }
    }
}
