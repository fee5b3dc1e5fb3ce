//! The energy of discrete fields.

use super::grid::{Component, Half};
use super::host::Host;
use super::problem::Problem;
use super::slab::Slab;
use crate::error::Result;

/// `V Σ (½ ε E² + ½ μ Hⁿ Hⁿ⁺¹)` over all cells, in J, or in two dimensions in J/m: E is at the time n + ½, and V a cell's volume. The scheme
/// leaves just this sum as it is in a closed box without losses and sources. Layers and sources are left out in Hⁿ⁺¹.
///
/// `field` has each component in all cells. Takes the memory of all fields, and a half of a step of the host.
pub(crate) fn energy(problem: &Problem, mut field: impl FnMut(Component) -> Result<Vec<f64>>) -> Result<f64> {
    let grid = problem.grid;
    let mut host = Host::<f64>::new(problem, Slab { grid, planes: 0..grid.planes() })?;
    let components = grid.mode().components();
    for &component in components {
        host.own_mut(component).copy_from_slice(&field(component)?);
    }
    let magnetic: Vec<Component> = components.iter().copied().filter(|c| !c.is_electric()).collect();
    let before: Vec<Vec<f64>> = magnetic.iter().map(|&component| host.own(component).to_vec()).collect();
    host.update_plainly(Half::H, &(0..grid.planes()));
    let volume: f64 = grid.step.iter().product();
    let (epsilon, mu) = (
        problem.materials.iter().map(|m| m.epsilon * problem.vacuum.epsilon).collect::<Vec<f64>>(),
        problem.materials.iter().map(|m| m.mu * problem.vacuum.mu).collect::<Vec<f64>>(),
    );
    let sum = |constants: &[f64], one: &[f64], other: &[f64]| -> f64 {
        let terms = one.iter().zip(other).zip(&problem.index);
        terms.map(|((a, b), m)| 0.5 * constants[usize::from(*m)] * a * b).sum()
    };
    let electric = components.iter().filter(|c| c.is_electric()).map(|&component| {
        let field = host.own(component);
        sum(&epsilon, field, field)
    });
    let of_h = magnetic.iter().zip(&before).map(|(&component, before)| sum(&mu, before, host.own(component)));
    Ok(volume * (electric.sum::<f64>() + of_h.sum::<f64>()))
}
