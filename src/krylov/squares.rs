//! r·r, and what the test looks at.

use super::workspace::Workspace;
use crate::error::Result;
use crate::ops::Ops;
use crate::precond::scaling::Share;

/// r·r of the residual in `w.r`, and what the test looks at: the same, or ‖b − A x‖₂² if the system is scaled. Over all ranks, in
/// `w.rho` and as numbers; `w.q` may be used up.
pub(crate) fn squares<O: Ops>(ops: &O, scaling: Option<&Share<O>>, w: &mut Workspace<O>) -> Result<[f64; 2]> {
    square_parts(ops, scaling, &w.r, &mut w.q, &mut w.rho)?;
    ops.all_sum(&mut [&mut w.rho])?;
    let [rho, rr, ..] = ops.settle(&mut w.rho)?;
    Ok([rho, rr])
}

/// This rank's part of them, as the first components of a sum; `scratch` may be used up.
pub(crate) fn square_parts<O: Ops>(
    ops: &O,
    scaling: Option<&Share<O>>,
    r: &O::Vector,
    scratch: &mut O::Vector,
    sum: &mut O::Sum,
) -> Result<()> {
    ops.dot_product(r, r, sum, 0)?;
    match scaling {
        Some(share) => {
            ops.multiply(&share.weights, r, scratch)?;
            ops.dot_product(r, scratch, sum, 1)
        }
        None => ops.dot_product(r, r, sum, 1),
    }
}
