//! Launchers of `cl/basis.cl`.

use std::ops::Range;

use super::{Kernels, Shape, count, launch, tiles};
use crate::device::{Context, DeviceVec, Grid};
use crate::error::Result;
use crate::real::Real;

/// The kernels of the file.
pub(crate) const KERNELS: &[&str] = &["basis_dots", "basis_next", "basis_totals", "basis_add"];

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

    /// The sums of some of a basis's `all` columns with w and with the last of them, or, where one of a pair is the last, with the first of the
    /// pair; with those of the first column also w². Reads n (columns + 2) elements of a band.
    pub(crate) fn basis_dots(
        &self,
        ctx: &Context,
        band: &Band<T>,
        (columns, all, newest): (Range<usize>, usize, usize),
        w: &DeviceVec<T>,
        sums: TileSums<'_, A>,
    ) -> Result<()> {
        band.check(all, &[w]);
        assert!(columns.len() <= self.most_columns() && columns.end <= all && (newest < all || all == 0));
        assert!((2 * all + 1) * sums.tiles <= sums.partials.len() && band.tiles.end <= sums.tiles);
        let [n, begin, stride] = band.place();
        let [first, of_columns, all, newest] = [columns.start, columns.len(), all, newest].map(count);
        let [tiles, first_tile, all_tiles] = [band.tiles.len(), band.tiles.start, sums.tiles].map(count);
        let (kernel, grid) = (self.basis_kernel(ctx, "basis_dots")?, self.tiles_grid("basis_dots", band));
        let args: [&dyn super::Argument; 13] = [
            &n,
            &begin,
            &stride,
            &first,
            &of_columns,
            &all,
            &newest,
            &band.elements,
            w,
            sums.partials,
            &tiles,
            &first_tile,
            &all_tiles,
        ];
        // SAFETY: types as declared in the file; elements of the band, of w and of the partial sums were checked above.
        unsafe { launch(ctx, kernel, grid, &args) }
    }

    /// The first `sums` totals of partial sums of so many tiles each.
    pub(crate) fn basis_totals(
        &self,
        ctx: &Context,
        sums: usize,
        of: TileSums<'_, A>,
        totals: &mut DeviceVec<A>,
    ) -> Result<()> {
        assert!(sums * of.tiles <= of.partials.len() && sums <= totals.len());
        let launch_of = self.tuning.launch("basis_totals");
        let grid = Grid { groups: sums.clamp(1, launch_of.max_groups), group_size: launch_of.group_size };
        let [sums, tiles] = [sums, of.tiles].map(count);
        let kernel = self.basis_kernel(ctx, "basis_totals")?;
        // SAFETY: types as declared in the file; partial sums and totals were checked above.
        unsafe { launch(ctx, kernel, grid, &[&sums, &tiles, of.partials, totals]) }
    }

    /// to = scale (w − W f) on a band, and as a column, too; if it is one of a pair, i times that as the next one; and the sum of its squares.
    /// Reads n (columns + 1) elements and writes 2 n, or 3 n.
    pub(crate) fn basis_next(
        &self,
        ctx: &Context,
        band: &mut Band<T>,
        (columns, factors): (usize, &DeviceVec<A>),
        (scale, w): (T, &DeviceVec<T>),
        ((column, is_pair), to): ((usize, bool), &mut DeviceVec<T>),
        sums: TileSums<'_, A>,
    ) -> Result<()> {
        band.check(columns.max(column + 1 + usize::from(is_pair)), &[w, to]);
        assert!(columns <= factors.len() && columns <= column);
        assert!(!is_pair || band.rows.len().is_multiple_of(2), "pairs are whole");
        assert!(sums.tiles <= sums.partials.len() && band.tiles.end <= sums.tiles);
        let ([n, begin, stride], [columns, column, turned]) =
            (band.place(), [columns, column, usize::from(is_pair)].map(count));
        let [tiles, first_tile] = [band.tiles.len(), band.tiles.start].map(count);
        let (kernel, grid) = (self.basis_kernel(ctx, "basis_next")?, self.tiles_grid("basis_next", band));
        let args: [&dyn super::Argument; 14] = [
            &n,
            &begin,
            &stride,
            &columns,
            factors,
            &column,
            &turned,
            &scale,
            &band.elements,
            w,
            to,
            sums.partials,
            &tiles,
            &first_tile,
        ];
        // SAFETY: types as declared in the file; elements of the band, of both vectors, the factors and the partial sums were checked above.
        unsafe { launch(ctx, kernel, grid, &args) }
    }

    /// x += W f on a band. Reads n (columns + 1) elements and writes n.
    pub(crate) fn basis_add(
        &self,
        ctx: &Context,
        band: &Band<T>,
        (columns, factors): (usize, &DeviceVec<A>),
        x: &mut DeviceVec<T>,
    ) -> Result<()> {
        band.check(columns, &[x]);
        assert!(columns <= factors.len());
        let ([n, begin, stride], columns) = (band.place(), count(columns));
        let (kernel, grid) = (self.basis_kernel(ctx, "basis_add")?, self.tuning.grid("basis_add", band.rows.len()));
        // SAFETY: types as declared in the file; elements of the band, of x and the factors were checked above.
        unsafe { launch(ctx, kernel, grid, &[&n, &begin, &stride, &columns, factors, &band.elements, x]) }
    }
}
