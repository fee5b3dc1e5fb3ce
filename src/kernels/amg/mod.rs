//! Launchers of `cl/amg_*.cl`: multigrid by smoothed aggregation, set up on a device. What each computes, `precond::amg` has on the host.
//!
//! All is deterministic: lists that groups fill in any order are of rows whose results don't depend on it.

pub(crate) mod aggregate;
pub(crate) mod blocks;
pub(crate) mod first;
pub(crate) mod product;
pub(crate) mod prolongation;
pub(crate) mod ranks;
pub(crate) mod strength;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::primitives::scan::Scan;
use super::primitives::sort::{DIGIT_BITS, GROUPS_PER_UNIT as GROUPS_OF_SORTS, Payload, Sort, SortSpace};
use super::primitives::{GROUPS_PER_UNIT, ITEMS, ShareSums, Tiling};
use super::{Argument, PRELUDE, Shape, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel, Pool, Stay};
use crate::error::{Error, Result};
use crate::memory::Plain;
use crate::real::Real;

/// Work-items of a group, of rows and of products.
const GROUP: usize = 256;
const PRODUCT_GROUP: usize = 128;

/// Groups for each compute unit, at most.
const GROUPS_OF_A_UNIT: usize = 32;

/// Kernels where a work-item takes a row, or an entry.
const ROW_KERNELS: [&str; 33] = [
    "strength",
    "graph_lengths",
    "graph_neighbours",
    "mean_lengths",
    "mean_rows",
    "blocks_count",
    "blocks_cut",
    "lanczos_begin",
    "lanczos_product",
    "lanczos_remove",
    "lanczos_scale",
    "roots_begin",
    "independent_begin",
    "independent_least",
    "independent_decide",
    "roots_of_many",
    "roots_take",
    "root_sizes",
    "roots_join",
    "aggregates_number",
    "aggregate_keys",
    "key_starts",
    "coarse_vector",
    "tentative",
    "smoothed_needs",
    "smoothed_lengths",
    "smoothed_rows",
    "tentative_lengths",
    "tentative_rows",
    "entry_rows",
    "entries_at",
    "scale_factors",
    "scale_both",
];
const BLOCK_KERNELS: [&str; 13] = [
    "block_starts",
    "blocks_of_rows",
    "row_starts",
    "rows_of_blocks",
    "block_norms",
    "modes_at_nodes",
    "bases_factor",
    "bases_rows",
    "blocks_smoothed",
    "blocks_at",
    "block_factors",
    "blocks_scale_both",
    "blocks_scale_rows",
];
const RANK_KERNELS: [&str; 10] = [
    "numbers_at",
    "elements_at",
    "aggregates_among_all",
    "listed_lengths",
    "listed_rows",
    "owned_columns",
    "others_mark",
    "others_list",
    "columns_of_rank",
    "columns_among_all",
];
const SCALE_KERNELS: [&str; 3] = ["scale_rows", "scale_columns", "blocks_scale_columns"];
const PRODUCT_KERNELS: [&str; 7] = [
    "product_bounds",
    "bins_count",
    "bins_fill",
    "product_count",
    "product_count_long",
    "product_fill",
    "product_fill_long",
];

/// A sparse matrix in compressed rows on a device. Made by this module and by `precond::amg::on_device` alone, which vouch for it:
/// rows begin one after the other, with as many entries together as there are columns and values, and columns are below `n_cols`.
pub(crate) struct DeviceSparse {
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) starts: DeviceVec<u32>,
    pub(crate) columns: DeviceVec<u32>,
    pub(crate) values: DeviceVec<f32>,
}

impl DeviceSparse {
    /// How many entries it has.
    pub(crate) fn nnz(&self) -> usize {
        self.values.len()
    }

    /// As kernels take it.
    fn rows(&self) -> [&dyn Argument; 3] {
        [&self.starts, &self.columns, &self.values]
    }
}

/// A matrix with its rows in blocks, of which each is loaded by a group at once.
#[derive(Clone, Copy)]
pub(crate) struct Blocked<'a> {
    pub(crate) matrix: &'a DeviceSparse,
    pub(crate) blocks: &'a DeviceVec<[u32; 2]>,
}

impl Blocked<'_> {
    /// As kernels take it.
    fn rows(&self) -> [&dyn Argument; 4] {
        let DeviceSparse { starts, columns, values, .. } = self.matrix;
        [self.blocks, starts, columns, values]
    }
}

/// The kernels, on a device whose sums are in `A`.
pub(crate) struct AmgKernels<A> {
    kernels: BTreeMap<&'static str, Kernel>,
    /// Products of blocks, by the size of groups, their room, and the sides of blocks.
    block_products: RefCell<BTreeMap<[usize; 5], Rc<Kernel>>>,
    scan: Scan<u32>,
    sort: Sort<u32>,
    /// Of scans, and of sorts as large as there were.
    sums: RefCell<ShareSums>,
    sorting: RefCell<Option<SortSpace<u32>>>,
    /// What arrays were in.
    pool: Arc<Pool>,
    most_groups: usize,
    types: PhantomData<fn() -> A>,
}

impl<A: Real> AmgKernels<A> {
    /// Compiles them, or takes what was compiled in a former run; `None` where groups are too small.
    ///
    /// # Errors
    /// [`Error::KernelBuild`].
    pub(crate) fn build(ctx: &Context) -> Result<Option<Self>> {
        if ctx.info().max_work_group < GROUP {
            return Ok(None);
        }
        let mut kernels = BTreeMap::new();
        let mut build = |files: &[(&str, &str)], names: &[&'static str], group_size: usize| -> Result<()> {
            let files = [("prelude", PRELUDE)].into_iter().chain(files.iter().copied());
            let source: String = files.map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
            let program = ctx.build(&source, &options_of::<f32, A>(USUAL_STD, ctx.info(), group_size, group_size))?;
            for &name in names {
                kernels.insert(name, ctx.kernel(&program, name, [f32::CL_NAME, A::CL_NAME])?);
            }
            Ok(())
        };
        let of_rows = [
            ("amg_strength", include_str!("../../../cl/amg_strength.cl")),
            ("amg_aggregate", include_str!("../../../cl/amg_aggregate.cl")),
            ("amg_prolongation", include_str!("../../../cl/amg_prolongation.cl")),
            ("amg_blocks", include_str!("../../../cl/amg_blocks.cl")),
            ("amg_ranks", include_str!("../../../cl/amg_ranks.cl")),
        ];
        build(&of_rows, &[&ROW_KERNELS[..], &SCALE_KERNELS, &BLOCK_KERNELS, &RANK_KERNELS].concat(), GROUP)?;
        build(&[("amg_product", include_str!("../../../cl/amg_product.cl"))], &PRODUCT_KERNELS, PRODUCT_GROUP)?;
        let tiling = |groups| Tiling::new(ctx.info(), Shape::Gpu, ITEMS, groups);
        Ok(Some(Self {
            kernels,
            block_products: RefCell::default(),
            scan: Scan::build(ctx, tiling(GROUPS_PER_UNIT))?,
            sort: Sort::build(ctx, tiling(GROUPS_OF_SORTS), DIGIT_BITS)?,
            sums: RefCell::new(ShareSums::new(ctx, tiling(GROUPS_PER_UNIT))?),
            sorting: RefCell::default(),
            pool: Arc::default(),
            most_groups: GROUPS_OF_A_UNIT * ctx.info().compute_units.max(1) as usize,
            types: PhantomData,
        }))
    }

    /// Launches a kernel on row blocks, a group each.
    ///
    /// # Safety
    /// As [`launch`].
    unsafe fn run_blocks(
        &self,
        ctx: &Context,
        name: &'static str,
        a: Blocked<'_>,
        args: &[&dyn Argument],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.run_in(ctx, name, self.grid_of_blocks(a), a.blocks.len(), &[&a.rows(), args]) }
    }

    /// Groups that take row blocks.
    fn grid_of_blocks(&self, a: Blocked<'_>) -> Grid {
        Grid { groups: a.blocks.len().clamp(1, self.most_groups), group_size: GROUP }
    }

    /// Launches a kernel in which neighbouring work-items share a row of so many entries on the average.
    ///
    /// # Safety
    /// As [`launch`].
    unsafe fn run_shared(
        &self,
        ctx: &Context,
        name: &'static str,
        (rows, entries): (usize, usize),
        args: &[&dyn Argument],
    ) -> Result<()> {
        let lanes = (entries / rows.max(1)).clamp(1, 32).next_power_of_two();
        let of_row = count(lanes);
        // SAFETY: the caller's promise.
        unsafe { self.run_in(ctx, name, self.grid(rows * lanes), rows, &[&[&of_row], args]) }
    }

    /// Groups that take so many rows.
    fn grid(&self, rows: usize) -> Grid {
        Grid { groups: rows.div_ceil(GROUP).clamp(1, self.most_groups), group_size: GROUP }
    }

    /// Launches a kernel on so many rows, or entries.
    ///
    /// # Safety
    /// As [`launch`].
    unsafe fn run(&self, ctx: &Context, name: &'static str, rows: usize, args: &[&[&dyn Argument]]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.run_in(ctx, name, self.grid(rows), rows, args) }
    }

    /// The same in a grid of its own.
    ///
    /// # Safety
    /// As [`launch`].
    unsafe fn run_in(
        &self,
        ctx: &Context,
        name: &'static str,
        grid: Grid,
        rows: usize,
        args: &[&[&dyn Argument]],
    ) -> Result<()> {
        let rows = count(rows);
        let all = [&[&rows as &dyn Argument], args.concat().as_slice()].concat();
        // SAFETY: the caller's promise.
        unsafe { launch(ctx, &self.kernels[name], grid, &all) }
    }

    /// An array for a while.
    fn short<T: Plain>(&self, ctx: &Context, len: usize, what: &'static str) -> Result<DeviceVec<T>> {
        self.pool.array(ctx, len, Stay::Short, what)
    }

    /// A few numbers on the device.
    fn numbers(&self, ctx: &Context, numbers: &[u32], what: &'static str) -> Result<DeviceVec<u32>> {
        let mut there = self.short(ctx, numbers.len(), what)?;
        there.write(ctx, 0, numbers)?;
        Ok(there)
    }

    /// Where runs of these lengths begin, and behind them their sum, which it gives, too. Waits.
    ///
    /// # Errors
    /// A failing device, or more than 2³² − 1 altogether.
    fn starts(&self, ctx: &Context, lengths: &DeviceVec<u32>, stay: Stay) -> Result<(DeviceVec<u32>, usize)> {
        let n = lengths.len();
        let mut starts = self.pool.array(ctx, n + 1, stay, "where rows begin")?;
        let mut sums = self.sums.borrow_mut();
        self.scan.exclusive(ctx, n, lengths, &mut starts, &mut sums)?;
        let total = sums.total(ctx)?;
        match u32::try_from(total) {
            Ok(total) => Ok((starts, total as usize)),
            Err(_) => Err(Error::OutOfDeviceMemory {
                device: ctx.info().label(),
                what: "a level of amg".into(),
                need_bytes: 8 * total,
                limit: "what 32-bit numbers count",
                have_bytes: 8 * u64::from(u32::MAX),
                hint: "the host has no such limit".into(),
            }),
        }
    }

    /// A matrix of rows of these lengths, whose entries are not there yet.
    fn with_lengths(&self, ctx: &Context, n_cols: usize, lengths: &DeviceVec<u32>, stay: Stay) -> Result<DeviceSparse> {
        let (starts, nnz) = self.starts(ctx, lengths, stay)?;
        self.with_starts(ctx, (lengths.len(), n_cols), starts, nnz, stay)
    }

    /// The same, whose rows begin there.
    fn with_starts(
        &self,
        ctx: &Context,
        (n_rows, n_cols): (usize, usize),
        starts: DeviceVec<u32>,
        nnz: usize,
        stay: Stay,
    ) -> Result<DeviceSparse> {
        let columns = self.pool.array(ctx, nnz, stay, "columns of a level")?;
        let values = self.pool.array(ctx, nnz, stay, "values of a level")?;
        Ok(DeviceSparse { n_rows, n_cols, starts, columns, values })
    }

    /// Sorts keys below `below`, and tells where each was.
    fn sorted(
        &self,
        ctx: &Context,
        keys: &DeviceVec<u32>,
        below: usize,
        stay: Stay,
    ) -> Result<(DeviceVec<u32>, DeviceVec<u32>)> {
        let (n, bits) = (keys.len(), (below.max(2) - 1).ilog2() + 1);
        let mut sorting = self.sorting.borrow_mut();
        let mut space = match sorting.take().filter(|space| space.holds(&self.sort, (n, bits))) {
            Some(space) => space,
            None => SortSpace::new(ctx, &self.sort, (n, bits), true)?,
        };
        let mut sorted = self.pool.array(ctx, n, stay, "sorted keys")?;
        let mut places = self.short(ctx, n, "places of keys")?;
        let to = (keys, &mut sorted);
        self.sort.sort(ctx, (n, bits), to, Payload::Indices(&mut places), &mut space)?;
        *sorting = Some(space);
        Ok((sorted, places))
    }

    /// Where the keys from each number on begin, of sorted ones up to `most`.
    fn key_starts(&self, ctx: &Context, sorted: &DeviceVec<u32>, most: usize, stay: Stay) -> Result<DeviceVec<u32>> {
        let starts = self.pool.array(ctx, most + 1, stay, "where rows begin")?;
        let (n, most) = (count(sorted.len()), count(most));
        // SAFETY: types as declared in the file; n keys up to `most`, and room for most + 1 places. The kernel takes n + 1 of them.
        unsafe {
            launch(ctx, &self.kernels["key_starts"], self.grid(sorted.len() + 1), &[&n, &most, sorted, &starts])
        }?;
        Ok(starts)
    }
}
