//! Launchers of `cl/tridiagonal.cl`.

use std::marker::PhantomData;

use super::{Argument, PRELUDE, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Info, Kernel};
use crate::error::Result;
use crate::real::Real;

/// What the kernels are compiled from.
pub(crate) const SOURCES: [&str; 2] = [PRELUDE, include_str!("../../cl/tridiagonal.cl")];

/// Rows that a work-item has in registers.
pub(crate) const ROWS: usize = 8;
/// Work-items of a group whose tile is a part of a long system.
const GROUP_SIZE: usize = 256;
/// The same where it has whole systems, as few as there may be: its barriers wait for nobody else.
const LEAST_OF_SYSTEMS: usize = 64;
/// The most of them that have rows in registers: each has some 64 numbers there.
const MOST_CHUNKS: usize = 512;
/// The most work-items of a thomas launch, for each compute unit, before they take several systems each.
const ITEMS_OF_A_UNIT: usize = 2048;
/// Rows of a part of a long system whose residual is formed by one group.
const CHECKED_ROWS: usize = 1 << 14;

/// Where elements are: row i of system s is number `s * across + i * along` of each array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) systems: usize,
    pub(crate) size: usize,
    pub(crate) across: usize,
    pub(crate) along: usize,
}

impl Places {
    /// One system after the other.
    pub(crate) fn contiguous(systems: usize, size: usize) -> Self {
        Self { systems, size, across: size, along: 1 }
    }

    /// Elements of an array.
    pub(crate) fn len(self) -> usize {
        self.systems * self.size
    }

    fn numbers(self) -> [u32; 4] {
        // all elements have to be within an array
        let last = |count: usize, stride| count.saturating_sub(1) * stride;
        assert!(self.len() == 0 || last(self.systems, self.across) + last(self.size, self.along) < self.len());
        [self.systems, self.size, self.across, self.along].map(count)
    }
}

/// How kernels are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Groups {
    /// Work-items of a group: a power of two from 2 on.
    pub(crate) size: usize,
    /// Rows of a work-item in registers, and of a group in local memory.
    pub(crate) rows: usize,
    pub(crate) capacity: usize,
}

impl Groups {
    /// Those for tiles of systems of any size.
    pub(crate) fn of_tiles(device: &Info) -> Self {
        Self::with_rows(GROUP_SIZE.min(most_chunks(device)))
    }

    /// Those for whole systems of this size, in whose rows all work-items have a part.
    pub(crate) fn of_systems(device: &Info, size: usize) -> Self {
        let needed = size.div_ceil(ROWS).next_power_of_two();
        Self::with_rows(needed.max(LEAST_OF_SYSTEMS).min(most_chunks(device)))
    }

    fn with_rows(size: usize) -> Self {
        Self { size, rows: ROWS, capacity: size }
    }

    /// The same with all rows of a system in local memory, and no more work-items than half of its rows.
    pub(crate) fn in_local_memory(device: &Info, size: usize) -> Self {
        let most = 1 << device.max_work_group.clamp(2, GROUP_SIZE).ilog2();
        let group = size.div_ceil(2).next_power_of_two().clamp(8.min(most), most);
        let capacity = size.max(1).next_power_of_two().max(group);
        Self { size: group, rows: ROWS, capacity }
    }

    /// Rows of a group whose work-items have them in registers.
    pub(crate) fn tile(self) -> usize {
        self.size * self.rows
    }
}

/// The most work-items of a group that have rows in registers: a power of two.
fn most_chunks(device: &Info) -> usize {
    1 << device.max_work_group.clamp(2, MOST_CHUNKS).ilog2()
}

/// The most rows of a system in registers of one group.
pub(crate) fn most_in_registers<T>(device: &Info) -> usize {
    let mut items = most_chunks(device);
    while items > 2 && items * (ROWS + 1) * size_of::<T>() > device.local_memory_bytes as usize {
        items /= 2;
    }
    items * ROWS
}

/// The most rows of a system in a group's local memory: a power of two.
pub(crate) fn most_in_local_memory<T>(device: &Info) -> usize {
    let rows = device.local_memory_bytes as usize / (4 * size_of::<T>());
    // a private array has what a work-item takes of them
    (1 << rows.max(2).ilog2()).min(1 << 13)
}

/// The arrays of a system.
pub(crate) type Coefficients<T> = [DeviceVec<T>; 3];

/// What a tile of a long system leaves: the equations of last unknowns, and first unknowns by them.
pub(crate) struct Ends<T> {
    pub(crate) equations: Coefficients<T>,
    pub(crate) values: DeviceVec<T>,
    pub(crate) firsts: [DeviceVec<T>; 3],
}

impl<T: Real> Ends<T> {
    /// Those of so many tiles.
    ///
    /// # Errors
    /// A device without room.
    pub(crate) fn new(ctx: &Context, tiles: usize) -> Result<Self> {
        let array = || DeviceVec::uninit(ctx, tiles, "equations between tiles");
        let equations = [array()?, array()?, array()?];
        Ok(Self { equations, values: array()?, firsts: [array()?, array()?, array()?] })
    }
}

/// The kernels of the file, compiled for one device.
pub(crate) struct TridiagonalKernels<T> {
    groups: Groups,
    max_groups: usize,
    thomas: Kernel,
    reduction: [Kernel; 2],
    hybrid: Kernel,
    reduce: Kernel,
    join: Kernel,
    expand: Kernel,
    residual: Kernel,
    share_of: Kernel,
    close: Kernel,
    elements: PhantomData<fn() -> T>,
}

impl<T: Real> TridiagonalKernels<T> {
    /// Compiles them, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context, groups: Groups) -> Result<Self> {
        let Groups { size, rows, capacity } = groups;
        assert!(size >= 2 && size.is_power_of_two() && rows >= 2 && capacity.is_multiple_of(size), "{groups:?}");
        let files = ["prelude", "tridiagonal"].into_iter().zip(SOURCES);
        let source: String = files.map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let options = options_of::<T, T>(USUAL_STD, ctx.info(), size, size);
        let program = ctx.build(&source, &format!("{options} -D ROWS={rows} -D CAPACITY={capacity}"))?;
        let kernel = |name| ctx.kernel(&program, name, [T::CL_NAME; 2]);
        let items = ITEMS_OF_A_UNIT * ctx.info().compute_units.max(1) as usize;
        Ok(Self {
            groups,
            max_groups: items.div_ceil(size),
            thomas: kernel("tridiagonal_thomas")?,
            reduction: [kernel("tridiagonal_cr")?, kernel("tridiagonal_pcr")?],
            hybrid: kernel("tridiagonal_hybrid")?,
            reduce: kernel("tridiagonal_reduce")?,
            join: kernel("tridiagonal_join")?,
            expand: kernel("tridiagonal_expand")?,
            residual: kernel("tridiagonal_residual")?,
            share_of: kernel("tridiagonal_share_of")?,
            close: kernel("tridiagonal_close")?,
            elements: PhantomData,
        })
    }

    /// How they are compiled.
    pub(crate) fn groups(&self) -> Groups {
        self.groups
    }

    /// A work-item for each, up to a number from which on they take several.
    fn grid(&self, items: usize) -> Grid {
        let group_size = self.groups.size;
        Grid { groups: items.div_ceil(group_size).clamp(1, self.max_groups), group_size }
    }

    /// Launches a kernel that takes these numbers and arrays, all of `len` elements but the last `others`.
    fn run(
        &self,
        ctx: &Context,
        (kernel, grid): (&Kernel, Grid),
        numbers: &[u32],
        arrays: &[&DeviceVec<T>],
        (len, others): (usize, usize),
    ) -> Result<()> {
        let (equal, _) = arrays.split_at(arrays.len() - others);
        assert!(equal.iter().all(|array| array.len() >= len), "arrays of {}", kernel.name);
        let mut args: Vec<&dyn Argument> = numbers.iter().map(|n| n as &dyn Argument).collect();
        args.extend(arrays.iter().map(|&array| array as &dyn Argument));
        // SAFETY: types as declared in the file. Elements of systems are below `len`, as `Places::numbers` makes sure; who calls checks the
        // length of the other arrays.
        unsafe { launch(ctx, kernel, grid, &args) }
    }

    /// [`Method::Thomas`](crate::tridiagonal::Method::Thomas).
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn thomas(
        &self,
        ctx: &Context,
        places: Places,
        [a, b, c]: &Coefficients<T>,
        d: &DeviceVec<T>,
        (x, scratch): (&mut DeviceVec<T>, &mut DeviceVec<T>),
    ) -> Result<()> {
        let launch = (&self.thomas, self.grid(places.systems));
        self.run(ctx, launch, &places.numbers(), &[a, b, c, d, x, scratch], (places.len(), 0))
    }

    /// Cyclic reduction, parallel or not, of systems that local memory holds.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn reduction(
        &self,
        ctx: &Context,
        (places, is_parallel): (Places, bool),
        [a, b, c]: &Coefficients<T>,
        d: &DeviceVec<T>,
        x: &mut DeviceVec<T>,
    ) -> Result<()> {
        assert!(places.size <= self.groups.capacity);
        let [_, size, across, along] = places.numbers();
        let launch = Grid { groups: places.systems, group_size: self.groups.size };
        let kernel = &self.reduction[usize::from(is_parallel)];
        self.run(ctx, (kernel, launch), &[size, across, along], &[a, b, c, d, x], (places.len(), 0))
    }

    /// Systems whose rows are in registers of one group.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn hybrid(
        &self,
        ctx: &Context,
        places: Places,
        [a, b, c]: &Coefficients<T>,
        d: &DeviceVec<T>,
        x: &mut DeviceVec<T>,
    ) -> Result<()> {
        let chunks = places.size.div_ceil(self.groups.rows);
        assert!((1..=self.groups.size).contains(&chunks));
        let [systems, size, across, along] = places.numbers();
        let together = self.groups.size / chunks;
        let launch = Grid { groups: places.systems.div_ceil(together), group_size: self.groups.size };
        let numbers = [systems, size, across, along, count(chunks)];
        self.run(ctx, (&self.hybrid, launch), &numbers, &[a, b, c, d, x], (places.len(), 0))
    }

    /// Tiles of a system of this size.
    pub(crate) fn tiles(&self, size: usize) -> usize {
        size.div_ceil(self.groups.tile())
    }

    fn tiled(&self, places: Places) -> ([u32; 5], Grid) {
        let [systems, size, across, along] = places.numbers();
        let tiles = self.tiles(places.size);
        let grid = Grid { groups: places.systems * tiles, group_size: self.groups.size };
        ([systems, size, across, along, count(tiles)], grid)
    }

    /// What the tiles of long systems have to do with each other.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn reduce(
        &self,
        ctx: &Context,
        places: Places,
        [a, b, c]: &Coefficients<T>,
        d: &DeviceVec<T>,
        ends: &mut Ends<T>,
    ) -> Result<()> {
        let (numbers, grid) = self.tiled(places);
        let Ends { equations: [ea, eb, ec], values: ed, firsts: [fa, fc, fd] } = ends;
        let (ends, all) = ([ea, eb, ec, ed, fa, fc, fd], grid.groups);
        assert!(ends.iter().all(|array| array.len() >= all));
        let [ea, eb, ec, ed, fa, fc, fd] = &ends;
        let arrays: [&DeviceVec<T>; 11] = [a, b, c, d, ea, eb, ec, ed, fa, fc, fd];
        self.run(ctx, (&self.reduce, grid), &numbers, &arrays, (places.len(), 7))?;
        let arrays: [&DeviceVec<T>; 6] = [eb, ec, ed, fa, fc, fd];
        self.run(ctx, (&self.join, self.grid(all)), &[count(all), numbers[4]], &arrays, (all, 0))
    }

    /// All unknowns, from the last ones of tiles.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn expand(
        &self,
        ctx: &Context,
        places: Places,
        [a, b, c]: &Coefficients<T>,
        (d, lasts): (&DeviceVec<T>, &DeviceVec<T>),
        x: &mut DeviceVec<T>,
    ) -> Result<()> {
        let (numbers, grid) = self.tiled(places);
        assert!(lasts.len() >= grid.groups && x.len() >= places.len());
        self.run(ctx, (&self.expand, grid), &numbers, &[a, b, c, d, lasts, x], (places.len(), 2))
    }

    /// Parts of a system whose residuals are formed one by one: several of long ones, unless there are many.
    pub(crate) fn parts(places: Places) -> usize {
        if places.across == 1 && places.systems > 1 { 1 } else { places.size.div_ceil(CHECKED_ROWS).max(1) }
    }

    /// The residuals of all parts: element 2 (part · systems + system) and the next one of `largest`.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn residual(
        &self,
        ctx: &Context,
        places: Places,
        [a, b, c]: &Coefficients<T>,
        (d, x): (&DeviceVec<T>, &DeviceVec<T>),
        largest: &mut DeviceVec<T>,
    ) -> Result<()> {
        let parts = Self::parts(places);
        let units = places.systems * parts;
        assert!(largest.len() >= 2 * units);
        let width = if places.across == 1 && places.systems > 1 { 1 } else { self.groups.size };
        let [systems, size, across, along] = places.numbers();
        let numbers = [systems, size, across, along, count(parts), count(width)];
        let grid = Grid { groups: (units * width).div_ceil(self.groups.size), group_size: self.groups.size };
        self.run(ctx, (&self.residual, grid), &numbers, &[a, b, c, d, x, largest], (places.len(), 1))
    }

    /// Closes the circle of periodic systems: x −= (x₀ + w x₍ₙ₋₁₎) factor z, w and the factor by system, of which `shares` has the products then.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn close(
        &self,
        ctx: &Context,
        places: Places,
        (w, factors, z): (&DeviceVec<T>, &DeviceVec<T>, &DeviceVec<T>),
        (x, shares): (&mut DeviceVec<T>, &mut DeviceVec<T>),
    ) -> Result<()> {
        let (numbers, all) = (places.numbers(), places.len());
        assert!(x.len() >= all && z.len() >= all);
        let arrays: [&DeviceVec<T>; 4] = [w, factors, shares, x];
        assert!(arrays.iter().all(|array| array.len() >= places.systems));
        let grid = self.grid(places.systems);
        self.run(ctx, (&self.share_of, grid), &numbers, &[w, factors, x, shares], (places.systems, 0))?;
        let numbers = [count(all), numbers[0], numbers[2]];
        self.run(ctx, (&self.close, self.grid(all)), &numbers, &[shares, z, x], (places.systems, 0))
    }
}
