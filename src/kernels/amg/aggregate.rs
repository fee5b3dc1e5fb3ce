//! Launchers of `cl/amg_aggregate.cl`.

use super::strength::DeviceGraph;
use super::{AmgKernels, DeviceSparse};
use crate::device::{Context, DeviceVec, Stay};
use crate::error::Result;
use crate::real::Real;

/// Rounds after which rows that are left are no roots: some ten are enough, unless the graph is not symmetric.
const ROUNDS: u32 = 64;

/// Rounds until the device is asked whether any row is left.
const ROUNDS_AT_ONCE: u32 = 8;

/// The aggregate of each row, as `precond::amg` numbers them.
pub(crate) struct DeviceAggregates {
    pub(crate) of: DeviceVec<u32>,
    pub(crate) count: usize,
}

impl<A: Real> AmgKernels<A> {
    /// Aggregates of a matrix with these strong couplings. Waits.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    pub(crate) fn aggregates(
        &self,
        ctx: &Context,
        a: &DeviceSparse,
        largest: &DeviceVec<f32>,
        graph: &DeviceGraph,
    ) -> Result<DeviceAggregates> {
        let n = graph.n;
        assert!(n == a.n_rows && n <= a.n_cols && a.n_cols <= largest.len());
        let array = |what| self.short::<u32>(ctx, n, what);
        let (roots, states, least) = (array("roots")?, array("states")?, array("least states")?);
        let g = graph.arguments();
        // SAFETY: types as declared in the file; arrays of n elements, the graph of n rows whose neighbours are below n, and roots, too.
        unsafe { self.run(ctx, "roots_begin", n, &[&a.rows(), &[largest, &graph.starts, &roots]]) }?;
        for of_many in [false, true] {
            self.independent(ctx, graph, &roots, [&states, &least])?;
            if of_many {
                // SAFETY: as above.
                unsafe { self.run(ctx, "roots_of_many", n, &[&g, &[&roots, &states]]) }?;
            }
            // SAFETY: as above.
            unsafe { self.run(ctx, "roots_take", n, &[&g, &[&states, &roots]]) }?;
        }
        let (sizes, joined, is_root) = (least, states, array("flags of roots")?);
        sizes.fill(ctx, 0)?;
        // SAFETY: as above.
        unsafe { self.run(ctx, "root_sizes", n, &[&[&roots, &sizes]]) }?;
        // SAFETY: as above.
        unsafe { self.run(ctx, "roots_join", n, &[&a.rows(), &[largest, &roots, &sizes, &joined, &is_root]]) }?;
        let (numbers, count) = self.starts(ctx, &is_root, Stay::Short)?;
        let of = roots;
        // SAFETY: as above, and n + 1 numbers.
        unsafe { self.run(ctx, "aggregates_number", n, &[&[&joined, &numbers, &of]]) }?;
        Ok(DeviceAggregates { of, count })
    }

    /// An independent set among the rows that are free.
    fn independent(
        &self,
        ctx: &Context,
        graph: &DeviceGraph,
        roots: &DeviceVec<u32>,
        [states, least]: [&DeviceVec<u32>; 2],
    ) -> Result<()> {
        let (n, g) = (graph.n, graph.arguments());
        // before the first round, something is
        let mut left = [0u32; ROUNDS as usize + 1];
        left[0] = 1;
        let undecided = self.numbers(ctx, &left, "whether rows are left")?;
        // SAFETY: types as declared in the file; arrays of n elements, the graph of n rows, and a number for each round and one more.
        unsafe { self.run(ctx, "independent_begin", n, &[&[roots, states, least]]) }?;
        for round in 0..ROUNDS {
            // SAFETY: as above.
            unsafe { self.run(ctx, "independent_least", n, &[&g, &[&round, &undecided, states, least]]) }?;
            // SAFETY: as above.
            unsafe { self.run(ctx, "independent_decide", n, &[&g, &[&round, &undecided, least, states]]) }?;
            if (round + 1).is_multiple_of(ROUNDS_AT_ONCE) {
                let mut is_left = [0];
                undecided.read(ctx, round as usize + 1, &mut is_left)?;
                if is_left == [0] {
                    break;
                }
            }
        }
        Ok(())
    }
}
