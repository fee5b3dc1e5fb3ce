//! What kernels are timed on: a block of a matrix and vectors on a device, on which each kernel can be launched alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::stopwatch::Stopwatch;
use crate::device::{Context, DeviceVec, Grid};
use crate::error::{Error, Result};
use crate::kernels::csr::CsrBlock;
use crate::kernels::products::{Product, Rows};
use crate::kernels::{BASIS, CONVERSIONS, Kernels, PRODUCT_FILES, ProductsFor, Tuning, count};
use crate::operator::Format;
use crate::operator::csr;
use crate::operator::device_rows::{DeviceRows, Which};
use crate::operator::opencl::target;
use crate::operator::plan::Offer;
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
pub(super) struct Workload<'a, T: Real, A: Real> {
    pub(super) ctx: Arc<Context>,
    part: &'a Part<'a>,
    csr: Arc<CsrBlock<T>>,
    /// The rows in several formats, of which compressed rows are the first, and bytes that a product moves in each.
    blocks: Vec<(DeviceRows<T>, u64)>,
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

impl<'a, T: Real, A: Real> Workload<'a, T, A> {
    /// Moves a block to the device. No launch may have more than `max_groups` groups.
    pub(super) fn new(ctx: Context, part: &'a Part<'a>, tuning: &Tuning, max_groups: usize) -> Result<Self> {
        let n = part.n_owned();
        let offer = |format| Offer::<T>::of(part, 1.0, format, target(&ctx, tuning));
        let csr = csr::block(&ctx, part, 1.0)?;
        let cut = RowBlocks::cut(part, tuning, &csr::segments_of(&csr));
        let mut blocks = vec![(csr::rows(&ctx, &csr, &cut)?, offer(Format::Csr)?.bytes)];
        // of the others, one that a solve might choose
        let fits = |format| match offer(format) {
            Err(Error::Usage(_)) => None,
            other => Some(other),
        };
        let other = [Format::Dictionary, Format::Pattern, Format::Auto].into_iter().find_map(fits).transpose()?;
        if let Some(other) = other.filter(|offer| offer.format != Format::Csr) {
            blocks.push((other.upload(&ctx, tuning)?, other.bytes));
        }
        let vector = |len: usize, salt: u32, what| DeviceVec::from_slice(&ctx, &numbers::<T>(len, salt), what);
        // as many, evenly spread, where there is no other rank
        let spread = || (0..MESSAGE.min(n)).map(|k| (k * (n / MESSAGE.min(n)).max(1)) as u32).collect();
        let indices = if part.halo.send.is_empty() { spread() } else { part.halo.send.clone() };
        Ok(Self {
            csr,
            blocks,
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
            let segments = csr::segments_of(&self.csr);
            let cut = self.cuts.entry(limits).or_insert_with(|| RowBlocks::cut(part, tuning, &segments));
            self.blocks[0].0 = csr::rows(&self.ctx, &self.csr, cut)?;
            self.cut = limits;
        }
        Ok(())
    }

    /// Compiles what the block's formats need beside the usual kernels.
    pub(super) fn complete(&self, kernels: &Kernels<T, A>) -> Result<()> {
        let all = self.blocks.iter().flat_map(|(rows, _)| rows.launches(Which::All));
        all.into_iter().try_for_each(|rows| kernels.prepare(&self.ctx, rows, ProductsFor::Columns(1)))
    }

    /// Whether there is something for a kernel to work on.
    pub(super) fn has(&self, kernel: &str) -> bool {
        match kernel {
            _ if CONVERSIONS.contains(&kernel) => converts::<T, A>(),
            _ if BASIS.contains(&kernel) => false, // as passes, they are not tuned
            _ => !is_product(kernel) || launches(&self.blocks, kernel).next().is_some(),
        }
    }

    /// What there is to share among groups, in the largest launch: row blocks, or elements.
    pub(super) fn items(&self, kernel: &str) -> usize {
        match kernel {
            "halo_pack" => self.send.len(),
            _ if is_product(kernel) => launches(&self.blocks, kernel).map(|rows| rows.items()).max().unwrap_or(0),
            _ => self.n(),
        }
    }

    /// Bytes that one launch moves, each array counted once.
    pub(super) fn bytes(&self, kernel: &str) -> u64 {
        let (n, real) = (self.n() as u64, size_of::<T>() as u64);
        // vectors that are read beside x
        let more = u64::from(kernel.starts_with("residual"));
        match kernel {
            "dot_partial" | "stream_copy" => 2 * n * real,
            "next_iterate" | "next_residual" | "next_direction" | "scale_diagonal" => 3 * n * real,
            "halo_pack" => self.send.len() as u64 * (4 + 2 * real),
            "narrow" => n * (real + size_of::<A>() as u64),
            "add_wide" => 2 * n * (real + size_of::<A>() as u64),
            _ => {
                let block = self.blocks.iter().find(|(block, _)| of_kernel(block, kernel).next().is_some());
                let Some((block, bytes)) = block else { return 0 };
                // what is apart; x is read for its product with y alone
                let apart = |rows: Rows<'_, T>| Some((rows.bytes()? as u64, rows.items() as u64));
                let of_rows = |(bytes, rows): (u64, u64)| bytes + (2 + more) * rows * real;
                match of_kernel(block, kernel).find_map(apart) {
                    Some(alone) => of_rows(alone),
                    None => {
                        let others = block.launches(Which::All).filter_map(apart).map(|(bytes, _)| bytes).sum::<u64>();
                        bytes - others + more * n * real
                    }
                }
            }
        }
    }

    /// Enqueues a kernel on so many groups, for each segment of the rows. Whatever it computes stays near where it was.
    fn launch(&mut self, kernels: &Kernels<T, A>, kernel: &str, groups: usize) -> Result<()> {
        let n = count(self.n());
        let Self { ctx, x, r, p, q, d, never, .. } = self;
        let grid = Grid { groups, group_size: kernels.tuning.launch(kernel).group_size };
        let (tiny, half) = (T::from_f64(1e-30), T::from_f64(0.5));
        for rows in launches(&self.blocks, kernel) {
            let product = match kernel {
                _ if kernel.starts_with("spmv_dot") => {
                    Product::Dots { y: q, partials: &self.sums, first: 0, done: never, sending: None }
                }
                _ if kernel.starts_with("spmv") => Product::Store(q),
                _ => Product::Residual { b: x, r },
            };
            kernels.product(ctx, rows, 1, p, &product, Some(grid))?;
        }
        match kernel {
            "dot_partial" => kernels.dot_partial(ctx, grid, n, r, q, &self.sums, 0),
            "next_iterate" => kernels.next_iterate((ctx, grid, n), tiny, p, x),
            "next_residual" => kernels.next_residual((ctx, grid, n), tiny, q, r),
            "next_direction" => kernels.next_direction((ctx, grid, n), half, r, p),
            "scale_diagonal" => kernels.scale_diagonal((ctx, grid, n), d, r, q),
            "halo_pack" => kernels.halo_pack(ctx, grid, &self.send, p, &mut self.message),
            "narrow" => kernels.narrow(ctx, grid, n, &self.wide, q),
            "add_wide" => kernels.add_wide(ctx, grid, n, q, &mut self.wide),
            "stream_copy" => kernels.stream_copy(ctx, grid, n, p, q),
            _ if is_product(kernel) => Ok(()),
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
        let times = stopwatch.times(&ctx, launches, |_| self.launch(kernels, kernel, groups));
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

/// What a product's kernel is launched on in one format: all of its rows, segment by segment.
fn of_kernel<'b, T>(block: &'b DeviceRows<T>, kernel: &str) -> impl Iterator<Item = Rows<'b, T>> {
    block.launches(Which::All).filter(move |rows| rows.products().names.contains(&kernel))
}

/// The same in the format that has the kernel, if one has.
fn launches<'b, T>(blocks: &'b [(DeviceRows<T>, u64)], kernel: &str) -> impl Iterator<Item = Rows<'b, T>> {
    blocks.iter().flat_map(move |(block, _)| of_kernel(block, kernel))
}

fn is_product(kernel: &str) -> bool {
    PRODUCT_FILES.iter().any(|products| products.contains(&kernel))
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
