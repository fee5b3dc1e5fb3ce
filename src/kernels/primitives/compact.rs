//! Launchers of `cl/compact.cl`.

use super::{ShareSums, Tiling, count, kernel, launch};
use crate::device::{Context, DeviceVec, Grid, Kernel};
use crate::error::Result;

/// Picks out what flags are set for. A flag is a byte, set if it is not 0.
pub(crate) struct Compact {
    tiling: Tiling,
    sums: Kernel,
    shares: Kernel,
    indices: Kernel,
    values: Kernel,
}

impl Compact {
    /// Compiles the kernels, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    ///
    /// # Panics
    /// If a tile has too many flags.
    pub(crate) fn build(ctx: &Context, tiling: Tiling) -> Result<Self> {
        assert!(tiling.group_size * tiling.items <= 1 << 16);
        let program = tiling.program(ctx, ("compact", include_str!("../../../cl/compact.cl")), "")?;
        let [sums, shares, indices, values] = ["compact_sums", "scan_shares", "compact_indices", "compact_values"]
            .map(|name| kernel(ctx, &program, name));
        Ok(Self { tiling, sums: sums?, shares: shares?, indices: indices?, values: values? })
    }

    /// The indices of those of the first `n` flags that are set, in order; their number is [`ShareSums::total`]. Moves
    /// 2 n bytes, and 4 for each index.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If an array has less than `n` elements.
    pub(crate) fn indices(
        &self,
        ctx: &Context,
        n: usize,
        flags: &DeviceVec<u8>,
        to: &mut DeviceVec<u32>,
        space: &mut ShareSums,
    ) -> Result<()> {
        let grid = self.scan(ctx, n, flags, space)?;
        assert!(n <= to.len());
        // SAFETY: types as declared in the file; n flags, and room for n indices, as checked.
        unsafe { launch(ctx, &self.indices, grid, &[&count(n), &space.sums, flags, to]) }
    }

    /// Those of the first `n` values whose flags are set, in order; their number is [`ShareSums::total`]. Moves 2 n
    /// bytes, and 8 for each value that is taken.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If an array has less than `n` elements.
    pub(crate) fn values(
        &self,
        ctx: &Context,
        n: usize,
        (flags, values): (&DeviceVec<u8>, &DeviceVec<u32>),
        to: &mut DeviceVec<u32>,
        space: &mut ShareSums,
    ) -> Result<()> {
        let grid = self.scan(ctx, n, flags, space)?;
        assert!(n <= values.len().min(to.len()));
        // SAFETY: types as declared in the file; n flags and values, and room for n more, as checked.
        unsafe { launch(ctx, &self.values, grid, &[&count(n), &space.sums, flags, values, to]) }
    }

    /// Counts the flags before each share; tells the grid that shares are of.
    fn scan(&self, ctx: &Context, n: usize, flags: &DeviceVec<u8>, space: &mut ShareSums) -> Result<Grid> {
        let grid = self.tiling.grid(n);
        assert!(n <= flags.len() && grid.groups < space.sums.len());
        // SAFETY: types as declared in the file; n flags, and a sum for each group, as checked.
        unsafe { launch(ctx, &self.sums, grid, &[&count(n), flags, &space.sums]) }?;
        space.scan(ctx, &self.shares, (grid.groups, grid.group_size))?;
        Ok(grid)
    }
}
