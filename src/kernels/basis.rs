//! Launchers of `cl/basis.cl`.

use std::ops::Range;

use super::{Kernels, Shape, count, launch, tiles};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &["basis_dots", "basis_subtract_dots", "basis_totals", "basis_next", "basis_add"];

/// Work-items of a team, and the columns whose sums it keeps: as in the file.
const TEAM: usize = 32;
const EACH_TEAM: usize = 8;

/// A band of rows of a basis: column after column.
pub(crate) struct Band<T> {
    pub(crate) rows: Range<usize>,
    pub(crate) elements: DeviceVec<T>,
    /// Its tiles among those of all bands.
    pub(crate) tiles: Range<usize>,
}

/// Where partial sums are left.
#[derive(Clone, Copy)]
pub(crate) struct TileSums<'a, A> {
    pub(crate) partials: &'a DeviceVec<A>,
    /// Tiles of all bands.
    pub(crate) tiles: usize,
}

/// Factors of columns: an array, and where they begin in it.
#[derive(Clone, Copy)]
pub(crate) struct Factors<'a, A>(pub(crate) &'a DeviceVec<A>, pub(crate) usize);

impl<'a, A: Real> Factors<'a, A> {
    /// As a kernel takes them.
    fn checked(self, columns: usize) -> (&'a DeviceVec<A>, u32) {
        assert!(self.1 + columns <= self.0.len());
        (self.0, count(self.1))
    }
}

impl<T: Real> Band<T> {
    /// A band of zeros, whose tiles come behind others.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn zeros(
        ctx: &Context,
        rows: Range<usize>,
        columns: usize,
        first_tile: usize,
        group_size: usize,
    ) -> Result<Self> {
        let units = ctx.info().compute_units.max(1) as usize;
        let tiles = first_tile..first_tile + tiles(rows.len(), units, group_size);
        let elements = DeviceVec::zeros(ctx, rows.len() * columns, "the Krylov basis")?;
        Ok(Self { rows, elements, tiles })
    }

    /// n, begin and stride as the kernels take them.
    fn place(&self) -> [u32; 3] {
        [self.rows.len(), self.rows.start, self.rows.len()].map(count)
    }

    /// Columns that there are in it, if it has rows.
    fn check(&self, columns: usize, vectors: &[&DeviceVec<T>]) {
        assert!(columns * self.rows.len() <= self.elements.len());
        assert!(vectors.iter().all(|v| self.rows.end <= v.len()));
    }
}

impl<T: Real, A: Real> Kernels<T, A> {
    /// The most columns whose sums one launch forms.
    pub(crate) fn most_columns(&self) -> usize {
        let group_size = self.tuning.launch("basis_dots").group_size;
        match Shape::of_group(group_size) {
            Shape::Cpu => usize::MAX,
            Shape::Gpu => group_size / TEAM.min(group_size) * EACH_TEAM,
        }
    }

    fn tiles_grid(&self, kernel: &str, band: &Band<T>) -> Grid {
        let launch = self.tuning.launch(kernel);
        Grid { groups: band.tiles.len().clamp(1, launch.max_groups), group_size: launch.group_size }
    }

    /// The sums of some columns of a band with w. Reads n (columns + 1) elements.
    pub(crate) fn basis_dots(
        &self,
        ctx: &Context,
        band: &Band<T>,
        columns: Range<usize>,
        w: &DeviceVec<T>,
        sums: TileSums<'_, A>,
    ) -> Result<()> {
        band.check(columns.end, &[w]);
        assert!(columns.len() <= self.most_columns() && columns.end * sums.tiles <= sums.partials.len());
        assert!(band.tiles.end <= sums.tiles);
        let [n, begin, stride] = band.place();
        let [first, of_columns] = [columns.start, columns.len()].map(count);
        let [tiles, first_tile, all_tiles] = [band.tiles.len(), band.tiles.start, sums.tiles].map(count);
        let (kernel, grid) = (self.basis_kernel(ctx, "basis_dots")?, self.tiles_grid("basis_dots", band));
        let (basis, partials) = (&band.elements, sums.partials);
        let args: [&dyn super::Argument; 11] =
            [&n, &begin, &stride, &first, &of_columns, basis, w, partials, &tiles, &first_tile, &all_tiles];
        // SAFETY: types as declared in the file; elements of the band, of w and of the partial sums were checked above.
        unsafe { launch(ctx, kernel, grid, &args) }
    }

    /// w −= V f on a band, then the sums of the first [`most_columns`](Self::most_columns) with w, and of w². Reads n (columns + 1) elements, and
    /// those of columns with sums again from a cache; writes n.
    pub(crate) fn basis_subtract_dots(
        &self,
        ctx: &Context,
        band: &Band<T>,
        columns: usize,
        factors: Factors<'_, A>,
        w: &mut DeviceVec<T>,
        sums: TileSums<'_, A>,
    ) -> Result<()> {
        band.check(columns, &[w]);
        assert!((columns + 1) * sums.tiles <= sums.partials.len() && band.tiles.end <= sums.tiles);
        let (factors, first) = factors.checked(columns);
        let [n, begin, stride] = band.place();
        let [of_columns, dots] = [columns, columns.min(self.most_columns())].map(count);
        let [tiles, first_tile, all_tiles] = [band.tiles.len(), band.tiles.start, sums.tiles].map(count);
        let kernel = self.basis_kernel(ctx, "basis_subtract_dots")?;
        let grid = self.tiles_grid("basis_subtract_dots", band);
        let (basis, partials) = (&band.elements, sums.partials);
        let args: [&dyn super::Argument; 13] = [
            &n,
            &begin,
            &stride,
            &of_columns,
            factors,
            &first,
            &dots,
            basis,
            w,
            partials,
            &tiles,
            &first_tile,
            &all_tiles,
        ];
        // SAFETY: types as declared in the file; elements of the band, of w, factors and partial sums were checked above.
        unsafe { launch(ctx, kernel, grid, &args) }
    }

    /// The first `sums` totals of partial sums of so many tiles each, from `totals[first]` on.
    pub(crate) fn basis_totals(
        &self,
        ctx: &Context,
        sums: usize,
        of: TileSums<'_, A>,
        totals: &mut DeviceVec<A>,
        first: usize,
    ) -> Result<()> {
        assert!(sums * of.tiles <= of.partials.len() && first + sums <= totals.len());
        let launch_of = self.tuning.launch("basis_totals");
        let grid = Grid { groups: sums.clamp(1, launch_of.max_groups), group_size: launch_of.group_size };
        let [sums, tiles, first] = [sums, of.tiles, first].map(count);
        let kernel = self.basis_kernel(ctx, "basis_totals")?;
        // SAFETY: types as declared in the file; partial sums and totals were checked above.
        unsafe { launch(ctx, kernel, grid, &[&sums, &tiles, of.partials, totals, &first]) }
    }

    /// to = scale (w − V f) on a band, and as a column, too; if it is one of a pair, i times that as the next one. Reads n (columns + 1)
    /// elements and writes 2 n, or 3 n.
    pub(crate) fn basis_next(
        &self,
        ctx: &Context,
        band: &mut Band<T>,
        columns: usize,
        factors: Factors<'_, A>,
        (scale, w): (T, &DeviceVec<T>),
        (column, is_pair): (usize, bool),
        to: &mut DeviceVec<T>,
    ) -> Result<()> {
        band.check(columns.max(column + 1 + usize::from(is_pair)), &[w, to]);
        assert!(!is_pair || band.rows.len().is_multiple_of(2), "pairs are whole");
        let (factors, first) = factors.checked(columns);
        let ([n, begin, stride], [columns, column, turned]) =
            (band.place(), [columns, column, usize::from(is_pair)].map(count));
        let (kernel, grid) = (self.basis_kernel(ctx, "basis_next")?, self.tuning.grid("basis_next", band.rows.len()));
        let basis = &band.elements;
        let args: [&dyn super::Argument; 12] =
            [&n, &begin, &stride, &columns, factors, &first, &column, &turned, &scale, basis, w, to];
        // SAFETY: types as declared in the file; elements of the band, of both vectors and the factors were checked above.
        unsafe { launch(ctx, kernel, grid, &args) }
    }

    /// x += V f on a band. Reads n (columns + 1) elements and writes n.
    pub(crate) fn basis_add(
        &self,
        ctx: &Context,
        band: &Band<T>,
        columns: usize,
        factors: Factors<'_, A>,
        x: &mut DeviceVec<T>,
    ) -> Result<()> {
        band.check(columns, &[x]);
        let (factors, first) = factors.checked(columns);
        let ([n, begin, stride], columns) = (band.place(), count(columns));
        let (kernel, grid) = (self.basis_kernel(ctx, "basis_add")?, self.tuning.grid("basis_add", band.rows.len()));
        // SAFETY: types as declared in the file; elements of the band, of x and the factors were checked above.
        unsafe { launch(ctx, kernel, grid, &[&n, &begin, &stride, &columns, factors, &first, &band.elements, x]) }
    }
}
