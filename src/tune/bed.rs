//! A test bed: a block of a matrix and vectors on a device, on which each kernel can be launched alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::stopwatch::{Stopwatch, span};
use crate::backend::LinearOperator;
use crate::backend::opencl::OpenClOps;
use crate::device::{Context, DeviceVec, Grid};
use crate::error::{Error, Result};
use crate::kernels::csr::{BlockSet, CsrBlock};
use crate::kernels::sell::{SellBlock, SliceSet};
use crate::kernels::{CONVERSIONS, Kernels, PRODUCTS, SELL_PRODUCTS, STENCIL_PRODUCTS, Tuning, count};
use crate::operator::Format;
use crate::operator::opencl::{DeviceBlock, Layout};
use crate::operator::row_blocks::RowBlocks;
use crate::partition::Part;
use crate::real::Real;
use crate::timing::{Timing, timing};

/// Launches of a batch, at most, and the time that one may take.
const BATCH: usize = 10;
const BATCH_SECONDS: f64 = 0.05;

/// Batches, at most, and the spread of the quartiles that needs no more.
const BATCHES: usize = 3;
const CALM: f64 = 0.03;

/// Elements of the message that is packed, where the block itself sends none.
const MESSAGE: usize = 1 << 16;

/// What all kernels work on.
pub(super) struct Bed<'a, T: Real, A: Real> {
    pub(super) ctx: Arc<Context>,
    part: &'a Part<'a>,
    matrix: DeviceBlock<T>,
    /// The same rows by kinds, with values in the kinds, or with values of their own, where there are few kinds.
    stencils: [Option<DeviceBlock<T>>; 2],
    /// The same rows in slices, where a solve would have them so.
    slices: Option<DeviceBlock<T>>,
    /// Row blocks that were cut so far, by their limits.
    cuts: BTreeMap<Option<(usize, usize)>, RowBlocks>,
    /// The limits of those on the device.
    cut: Option<(usize, usize)>,
    x: DeviceVec<T>,
    r: DeviceVec<T>,
    p: DeviceVec<T>,
    q: DeviceVec<T>,
    d: DeviceVec<T>,
    /// In the precision of sums; empty where that is no other.
    wide: DeviceVec<A>,
    /// Random numbers to begin with.
    fresh: DeviceVec<T>,
    /// Partial sums.
    sums: DeviceVec<A>,
    /// Nothing is over.
    never: DeviceVec<i32>,
    send: DeviceVec<u32>,
    message: DeviceVec<T>,
    stopwatch: Stopwatch,
}

/// Whether sums are in another precision than elements, so that there is something to convert.
fn converts<T: Real, A: Real>() -> bool {
    T::CL_NAME != A::CL_NAME
}

impl<'a, T: Real, A: Real> Bed<'a, T, A> {
    /// Moves a block to the device. No launch may have more than `max_groups` groups.
    pub(super) fn new(ctx: Context, part: &'a Part<'a>, tuning: &Tuning, max_groups: usize) -> Result<Self> {
        let n = part.n_owned();
        let matrix = DeviceBlock::upload(&ctx, tuning, part, 1.0, Format::Csr)?;
        let stored = |format| match DeviceBlock::upload(&ctx, tuning, part, 1.0, format) {
            Ok(block) => Ok(Some(block)),
            Err(Error::Usage(_)) => Ok(None),
            Err(other) => Err(other),
        };
        let stencil = stored(Format::Stencil)?;
        // which `auto` would never choose
        let pattern = if stencil.is_some() { None } else { stored(Format::Pattern)? };
        let stencils = [stencil, pattern];
        let slices = match stencils {
            [None, None] => stored(Format::Auto)?.filter(|block| block.format() == Format::Sell),
            _ => None,
        };
        let vector = |len: usize, salt: u32, what| DeviceVec::from_slice(&ctx, &numbers::<T>(len, salt), what);
        // as many, evenly spread, where there is no other rank
        let spread = || (0..MESSAGE.min(n)).map(|k| (k * (n / MESSAGE.min(n)).max(1)) as u32).collect();
        let indices = if part.halo.send.is_empty() { spread() } else { part.halo.send.clone() };
        Ok(Self {
            matrix,
            stencils,
            slices,
            part,
            cuts: BTreeMap::new(),
            cut: tuning.row_block(),
            x: vector(n, 1, "x")?,
            r: vector(n, 2, "r")?,
            // products read its halo, too
            p: vector(n + part.halo.len, 3, "p")?,
            q: vector(n, 4, "q")?,
            d: vector(n, 5, "the diagonal")?,
            wide: DeviceVec::from_slice(
                &ctx,
                &numbers::<A>(if converts::<T, A>() { n } else { 0 }, 7),
                "wide numbers",
            )?,
            fresh: vector(n + part.halo.len, 6, "random numbers")?,
            sums: DeviceVec::zeros(&ctx, 2 * max_groups, "partial sums")?,
            never: DeviceVec::zeros(&ctx, 1, "the state")?,
            message: DeviceVec::zeros(&ctx, indices.len(), "a message")?,
            send: DeviceVec::from_slice(&ctx, &indices, "indices")?,
            stopwatch: Stopwatch::default(),
            ctx: Arc::new(ctx),
        })
    }

    /// Rows.
    pub(super) fn n(&self) -> usize {
        self.part.n_owned()
    }

    /// Puts row blocks for these parameters in place; each cut is made once.
    pub(super) fn recut(&mut self, tuning: &Tuning) -> Result<()> {
        let limits = tuning.row_block();
        if self.cut != limits {
            let part = self.part;
            let bands: Vec<_> = csr(&self.matrix).0.bands.iter().map(|band| band.rows.clone()).collect();
            let blocks = self.cuts.entry(limits).or_insert_with(|| RowBlocks::cut(part, tuning, &bands));
            self.matrix.recut(&self.ctx, blocks)?;
            self.cut = limits;
        }
        Ok(())
    }

    /// Compiles what the block's formats need beside the usual kernels.
    pub(super) fn complete(&self, kernels: &Kernels<T, A>) -> Result<()> {
        self.stencils.iter().flatten().chain(&self.slices).try_for_each(|block| block.compile(&self.ctx, kernels))
    }

    /// Whether there is something for a kernel to work on.
    pub(super) fn has(&self, kernel: &str) -> bool {
        match kernel {
            _ if STENCIL_PRODUCTS.contains(&kernel) => self.stencil(kernel).is_some(),
            _ if CONVERSIONS.contains(&kernel) => converts::<T, A>(),
            _ if SELL_PRODUCTS.contains(&kernel) => {
                self.sell().is_some_and(|(block, _)| !kernel.ends_with("_parts") || block.long_count() > 0)
            }
            _ => true,
        }
    }

    /// The rows that a stencil's kernel works on.
    fn stencil(&self, kernel: &str) -> Option<&DeviceBlock<T>> {
        self.stencils[usize::from(kernel.ends_with("_pattern"))].as_ref()
    }

    /// The rows in slices, and what is launched of each band: what needs no halo, most of them.
    fn sell(&self) -> Option<(&SellBlock<T>, &[SliceSet])> {
        match self.slices.as_ref()?.layout() {
            Layout::Sell(block, sets) => Some((block, &sets[0])),
            _ => None,
        }
    }

    /// What there is to share among groups, in the largest launch: row blocks, or elements.
    pub(super) fn items(&self, kernel: &str) -> usize {
        match kernel {
            "spmv_csr" | "spmv_dot_csr" | "residual_csr" => {
                csr(&self.matrix).1.iter().map(|set| set.len()).max().unwrap_or(0)
            }
            "halo_pack" => self.send.len(),
            "spmv_sell_parts" | "spmv_dot_sell_parts" | "residual_sell_parts" => {
                self.sell().map_or(0, |(block, _)| block.long_count())
            }
            "spmv_sell" | "spmv_dot_sell" | "residual_sell" => {
                self.sell().map_or(0, |(block, sets)| sets.iter().map(|&set| block.rows(set)).max().unwrap_or(0))
            }
            _ => self.n(),
        }
    }

    /// Bytes that one launch moves, each array counted once, and its floating-point operations.
    pub(super) fn cost(&self, kernel: &str) -> (u64, u64) {
        let (n, nnz, real) = (self.n() as u64, self.part.nnz() as u64, size_of::<T>() as u64);
        let vectors = |moved: u64, flops: u64| (moved * n * real, flops * n);
        // vectors that are read beside x, and operations on a row beside those on its entries
        let (more, flops) = match kernel {
            _ if kernel.starts_with("spmv_dot") => (0, 4),
            _ if kernel.starts_with("residual") => (1, 1),
            _ => (0, 0),
        };
        match kernel {
            "dot_partial" => vectors(2, 2),
            "next_iterate" | "next_residual" | "next_direction" => vectors(3, 2),
            "scale_diagonal" => vectors(3, 1),
            "halo_pack" => (self.send.len() as u64 * (4 + 2 * real), 0),
            "stream_copy" => vectors(2, 0),
            "narrow" => (n * (real + size_of::<A>() as u64), 0),
            "add_wide" => (2 * n * (real + size_of::<A>() as u64), n),
            _ if SELL_PRODUCTS.contains(&kernel) => {
                let Some((block, sets)) = self.sell() else { return (0, 0) };
                let [parts, long] = [block.parts.len(), block.long_count()].map(|v| v as u64);
                // rows that need a halo are as others
                let launched: f64 = sets.iter().map(|set| set.part_of(block)).sum();
                let share = |all: u64| (all as f64 * launched).round() as u64;
                if kernel.ends_with("_parts") {
                    // x is read for the dot product alone
                    (parts * real + long * (16 + (2 + more) * real), parts + flops * long)
                } else {
                    let all = block.bytes() as u64 + (parts + (2 + more) * n) * real;
                    (share(all), share(2 * nnz + flops * n))
                }
            }
            _ => {
                let block = if PRODUCTS.contains(&kernel) { Some(&self.matrix) } else { self.stencil(kernel) };
                let bytes = block.map_or(0, LinearOperator::<OpenClOps<T, A>>::bytes);
                (bytes + more * n * real, 2 * nnz + flops * n)
            }
        }
    }

    /// Enqueues a kernel on so many groups, for each band of the rows. Whatever it computes stays near where it was.
    fn launch(&mut self, kernels: &Kernels<T, A>, kernel: &str, groups: usize) -> Result<()> {
        let n = count(self.n());
        let Self { ctx, x, r, p, q, d, never, .. } = self;
        let grid = Grid { groups, group_size: kernels.tuning.launch(kernel).group_size };
        let (tiny, half) = (T::from_f64(1e-30), T::from_f64(0.5));
        let (block, all) = csr(&self.matrix);
        let mut all = all.into_iter();
        if let Some(Layout::Stencil(block, _)) =
            self.stencils[usize::from(kernel.ends_with("_pattern"))].as_ref().map(DeviceBlock::layout)
        {
            let mut sets = block.whole();
            let (stencil, done) = (kernels.stencil(ctx, block.main_len)?, &*never);
            match kernel {
                "spmv_stencil" | "spmv_pattern" => {
                    return sets.try_for_each(|rows| stencil.spmv(ctx, grid, rows, block, p, q));
                }
                "spmv_dot_stencil" | "spmv_dot_pattern" => {
                    let sums = &mut self.sums;
                    return sets.try_for_each(|rows| stencil.spmv_dot(ctx, grid, rows, block, p, q, sums, 0, done));
                }
                "residual_stencil" | "residual_pattern" => {
                    return sets.try_for_each(|rows| stencil.residual(ctx, grid, rows, block, p, x, r));
                }
                _ => {}
            }
        }
        if let Some(Layout::Sell(block, sets)) = self.slices.as_ref().map(DeviceBlock::layout) {
            let (sell, done) = (kernels.sell(ctx)?, &*never);
            let mut sets = sets[0].iter();
            match kernel {
                "spmv_sell" => return sets.try_for_each(|&set| sell.spmv(ctx, grid, set, block, p, q)),
                "spmv_dot_sell" => {
                    let sums = &mut self.sums;
                    return sets.try_for_each(|&set| sell.spmv_dot(ctx, grid, set, block, p, q, sums, 0, done));
                }
                "residual_sell" => return sets.try_for_each(|&set| sell.residual(ctx, grid, set, block, p, x, r)),
                "spmv_sell_parts" => return sell.spmv_parts(ctx, grid, block, p, q),
                "spmv_dot_sell_parts" => {
                    return sell.spmv_dot_parts(ctx, grid, block, p, q, &self.sums, 0, done);
                }
                "residual_sell_parts" => return sell.residual_parts(ctx, grid, block, p, x, r),
                _ => {}
            }
        }
        match kernel {
            "dot_partial" => kernels.dot.dot_partial(ctx, grid, n, r, q, &self.sums, (0, 1)),
            "next_iterate" => kernels.update.next_iterate(ctx, grid, n, tiny, p, x),
            "next_residual" => kernels.update.next_residual(ctx, grid, n, tiny, q, r),
            "next_direction" => kernels.update.next_direction(ctx, grid, n, half, r, p),
            "scale_diagonal" => kernels.update.scale_diagonal(ctx, grid, n, d, r, q),
            "spmv_csr" => all.try_for_each(|set| kernels.csr.spmv_csr(ctx, grid, set, block, p, q)),
            "spmv_dot_csr" => {
                let (sums, done) = (&mut self.sums, &*never);
                all.try_for_each(|set| kernels.csr.spmv_dot_csr(ctx, grid, set, block, p, q, sums, 0, done))
            }
            "residual_csr" => all.try_for_each(|set| kernels.csr.residual_csr(ctx, grid, set, block, p, x, r)),
            "halo_pack" => kernels.halo.halo_pack(ctx, grid, &self.send, p, &mut self.message),
            "narrow" => kernels.convert.narrow(ctx, grid, n, &self.wide, q),
            "add_wide" => kernels.convert.add_wide(ctx, grid, n, q, &mut self.wide),
            "stream_copy" => kernels.stream.stream_copy(ctx, grid, n, p, q),
            other => unreachable!("no kernel '{other}'"),
        }
    }

    /// Puts random numbers in place of what kernels have left behind.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let Self { x, r, p, q, .. } = self;
        for vector in [x, r, p, q] {
            let len = vector.len();
            self.fresh.copy_to(&self.ctx, vector, len)?;
        }
        Ok(())
    }

    /// Times of single launches, in seconds: as many as `launches`, fewer if they take long.
    pub(super) fn times(
        &mut self,
        kernels: &Kernels<T, A>,
        kernel: &str,
        groups: usize,
        launches: usize,
    ) -> Result<Vec<f64>> {
        // the first launch may pay for more than itself, and tells how many there is time for
        let start = Instant::now();
        self.launch(kernels, kernel, groups)?;
        self.ctx.finish()?;
        let launches = launches.min((BATCH_SECONDS / start.elapsed().as_secs_f64()) as usize).max(3);
        let (ctx, mut stopwatch) = (Arc::clone(&self.ctx), self.stopwatch);
        let times = stopwatch.times(&ctx, launches, span, |_| self.launch(kernels, kernel, groups));
        self.stopwatch = stopwatch;
        times
    }

    /// The time of a launch on so many groups: of one batch, or of several where they disagree.
    pub(super) fn measure(&mut self, kernels: &Kernels<T, A>, kernel: &str, groups: usize) -> Result<Timing> {
        let mut times = Vec::new();
        for _ in 0..BATCHES {
            times.extend(self.times(kernels, kernel, groups, BATCH)?);
            let all = timing(times.clone());
            if all.high - all.low <= CALM * all.median {
                break;
            }
        }
        Ok(timing(times))
    }
}

/// Rows that were compressed, and what is launched of them: all row blocks of a band at once, where they are side by side.
fn csr<T: Real>(block: &DeviceBlock<T>) -> (&CsrBlock<T>, Vec<BlockSet>) {
    match block.layout() {
        Layout::Csr(block, sets) => {
            let mut all: Vec<BlockSet> = Vec::new();
            for &set in sets.iter().flatten() {
                match all.last_mut() {
                    Some(last) if last.band == set.band && last.last == set.first => last.last = set.last,
                    _ => all.push(set),
                }
            }
            (block, all)
        }
        Layout::Stencil(..) | Layout::Sell(..) => unreachable!("asked for compressed rows"),
    }
}

/// Numbers between 1/2 and 3/2 without a pattern: zeros may be faster than what is met in earnest.
pub(crate) fn numbers<T: Real>(n: usize, salt: u32) -> Vec<T> {
    let number = |i: u32| {
        let mixed = (i ^ salt.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
        let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
        T::from_f64(0.5 + f64::from(mixed ^ (mixed >> 16)) / f64::from(u32::MAX))
    };
    (0..n as u32).map(number).collect()
}
