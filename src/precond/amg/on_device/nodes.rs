//! Levels of nodes with several unknowns, made on a device.

use super::super::nodes::{Modes, OMEGA};
use super::super::{DENSE, LEAST_FACTOR, first_modes};
use super::set_up::{Coarser, SetUp, Stages};
use crate::device::{DeviceVec, Stay};
use crate::error::Result;
use crate::kernels::amg::blocks::{DeviceBlocks, DeviceModes};
use crate::kernels::amg::strength::BLOCK;
use crate::kernels::amg::{Blocked, DeviceSparse};
use crate::precond::near_null::NearNull;
use crate::real::Real;

/// What the levels below a matrix are made by.
pub(super) enum By {
    /// A near-null vector whose elements are positive,
    Vector(DeviceVec<f32>),
    /// or several of them, for a matrix in blocks.
    Nodes(Box<DeviceBlocks>, DeviceModes),
}

impl<T: Real, A: Real> SetUp<T, A> {
    /// What near-null vectors that are told make of a matrix with that diagonal, whose first level is `matrix`, maybe in blocks, too.
    pub(super) fn told(
        &self,
        (matrix, blocks): (&DeviceSparse, Option<DeviceBlocks>),
        diagonal: &[f64],
        near_null: &NearNull,
    ) -> Result<By> {
        let Self { ctx, kernels, .. } = self;
        let Modes { unknowns, width, values, is_positive } = first_modes(near_null, diagonal);
        let values = DeviceVec::from_slice(ctx, &values, "the near-null vectors")?;
        if is_positive {
            return Ok(By::Vector(values));
        }
        let blocks = blocks.map_or_else(|| kernels.blocks_of(ctx, matrix, unknowns), Ok)?;
        Ok(By::Nodes(Box::new(blocks), DeviceModes { unknowns, width, values }))
    }

    /// What `precond::amg::coarser` makes of nodes; `largest` bounds the eigenvalues.
    pub(super) fn coarser_nodes(
        &self,
        a: &DeviceBlocks,
        modes: &DeviceModes,
        largest: f64,
    ) -> Result<Option<Coarser<By>>> {
        let (Self { ctx, kernels, .. }, nodes) = (self, &a.nodes);
        let mut stages = Stages::of(ctx);
        let row_blocks = kernels.row_blocks(ctx, nodes, BLOCK)?;
        let blocked = Blocked { matrix: nodes, blocks: &row_blocks };
        let (entries, _) = kernels.strength(ctx, blocked, &kernels.at_nodes(ctx, modes)?)?;
        let aggregates = kernels.aggregates(ctx, nodes, &entries, &kernels.graph(ctx, blocked, &entries)?)?;
        stages.end("aggregates of nodes")?;
        let next_rows = (aggregates.count * modes.width) as f64;
        if next_rows * LEAST_FACTOR > (nodes.n_rows * modes.unknowns) as f64 || aggregates.count == 0 {
            return Ok(None);
        }
        let (t, mut coarse) = kernels.bases(ctx, &aggregates, modes)?;
        stages.end("bases")?;
        let galerkin = |p: DeviceBlocks, stages: &mut Stages<'_>| {
            let restriction = kernels.transposed_blocks(ctx, &p)?;
            stages.end("restriction")?;
            let ap = kernels.blocks_product(ctx, a, &p, Stay::Short)?;
            stages.end("A P")?;
            let next = kernels.blocks_product(ctx, &restriction, &ap, Stay::Short)?;
            stages.end("the next matrix")?;
            Result::Ok([p, restriction, next])
        };
        let p = kernels.smoothed_blocks(ctx, a, &t, &aggregates, OMEGA / largest as f32)?;
        stages.end("prolongation")?;
        let mut all = galerkin(p, &mut stages)?;
        if all[2].nnz() as f64 > DENSE * a.nnz() as f64 {
            all = galerkin(t, &mut stages)?;
        }
        let [p, restriction, next] = &mut all;
        kernels.scale_blocks(ctx, [p, restriction, next], &mut coarse)?;
        let [of_p, of_restriction, of_next] = [&*p, restriction, next].map(|blocks| kernels.rows_of(ctx, blocks));
        stages.end("scaling")?;
        let [_, _, next] = all;
        Ok(Some((of_p?, of_restriction?, of_next?, By::Nodes(Box::new(next), coarse))))
    }
}
