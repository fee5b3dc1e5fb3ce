//! How products are formed, if nothing is said.

use declive::Error;
use declive::device::select;
use declive::experiments::elements::{Compared, compare};
use declive::fem::{Mesh, Physics, Summation};
use declive::solve::{Method, Precond};

use super::args::{Args, Operator};

/// A problem of fewer unknowns is assembled and solved about as soon as it is measured.
const LEAST: usize = 500_000;

/// Elements that are measured.
const PIECE: usize = 30_000;

/// Iterations with levels of multigrid: of the assembled matrix, and by elements, where levels are those of the corners alone.
const BY_LEVELS: [f64; 2] = [20.0, 32.0];

/// Iterations without, by the nodes along a side.
const BY_DIAGONAL: f64 = 4.0;

/// What is chosen, and why, if it was measured.
pub(super) struct Chosen {
    pub(super) operator: Operator,
    pub(super) why: Option<String>,
}

/// Chooses the operator. Methods and preconditioners that go by entries have the assembled matrix, and so have small problems. Of others, pieces of the
/// mesh tell what the host takes for an element, and the device for an iteration.
///
/// # Errors
/// Errors of devices.
pub(super) fn operator(args: &Args, mesh: &Mesh, physics: &Physics) -> Result<Chosen, Error> {
    let assembled = |why| Chosen { operator: Operator::Assembled, why };
    let unknowns = physics.unknowns(mesh.cell()) * mesh.points().len();
    // what is usual for a method that is named
    let precond = args.precond.or((args.method != Method::Auto).then_some(Precond::Jacobi));
    let by_levels = matches!(precond, None | Some(Precond::Amg));
    // of first order, levels take the matrix that they are to spare
    let is_to_spare = !by_levels || mesh.cell().order() == 2;
    if !is_to_spare || !may_be_by_elements(args) || unknowns < LEAST {
        return Ok(assembled(None));
    }
    let device = select(&args.devices, args.precision.needs_f64())?.ranks.into_iter().next().flatten();
    let precond = precond.unwrap_or(Precond::Amg);
    let compared = compare(mesh, physics, (device.as_ref(), args.precision, precond), PIECE)?;
    let along = (unknowns as f64).powf(1.0 / mesh.cell().dimensions() as f64);
    let iterations = if by_levels { BY_LEVELS } else { [BY_DIAGONAL * along; 2] };
    let Compared { assembled: by_matrix, by_node, .. } = compared;
    let [matrix, elements] =
        [(by_matrix, iterations[0]), (by_node, iterations[1])].map(|(cost, count)| cost.seconds(mesh.len(), count));
    let why = format!("forecast from pieces of the mesh: {matrix:.3} s assembled, {elements:.3} s by-node");
    Ok(match elements < matrix {
        true => Chosen { operator: Operator::ByElements(Summation::ByNode), why: Some(why) },
        false => assembled(Some(why)),
    })
}

/// Whether what is asked for can be had without a matrix.
pub(super) fn may_be_by_elements(args: &Args) -> bool {
    let by_entries = matches!(args.precond, Some(Precond::Fsai | Precond::Ilu0 | Precond::Transversal));
    !by_entries && !args.method.factorises() && args.method != Method::Lsmr && args.write_system.is_none()
}
