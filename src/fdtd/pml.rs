//! Convolutional perfectly matched layers, which take in waves without sending them back.
//!
//! In a layer each derivative ∂ along its axis becomes ∂ / κ + ψ, with ψ ← b ψ + c ∂ in each step
//! ([Roden and Gedney 2000](https://doi.org/10.1002/1098-2760%2820001205%2927:5%3C334::AID-MOP14%3E3.0.CO;2-A)).

use serde::{Deserialize, Serialize};

use super::grid::{Grid, Half};
use super::material::Vacuum;
use crate::error::{Error, Result};

/// Absorbing layers in front of the walls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pml {
    /// Cells of the layers before the first and the last wall of each axis; 0 leaves the wall a mirror.
    pub layers: [[usize; 2]; 3],
    /// How they grow.
    pub growth: Growth,
}

/// How a layer becomes denser from its inner face, s = 0, to the wall, s = 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Growth {
    /// m in σ = σₘ sᵐ and κ = 1 + (κₘ − 1) sᵐ.
    pub order: f64,
    /// σₘ, in units of 0.8 (m + 1) / (η Δ), η = √(μ₀ / ε₀), Δ the side of a cell along the axis.
    pub sigma: f64,
    /// κₘ: above 1 it takes in evanescent waves, too.
    pub kappa: f64,
    /// αₘ in α = αₘ (1 − s), in S/m: above 0, fields that hardly change in time don't linger in the layer, but waves below
    /// the frequency α / 2π ε₀ are taken in less.
    pub alpha: f64,
}

impl Default for Growth {
    fn default() -> Self {
        Self { order: 3.0, sigma: 1.0, kappa: 1.0, alpha: 0.0 }
    }
}

impl Pml {
    /// Layers of so many cells before all walls.
    #[must_use]
    pub fn all_around(grid: &Grid, cells: usize) -> Self {
        let axes = grid.mode().dimensions();
        Self { layers: [0, 1, 2].map(|axis| if axis < axes { [cells; 2] } else { [0; 2] }), growth: Growth::default() }
    }

    /// None.
    #[must_use]
    pub fn none() -> Self {
        Self { layers: [[0; 2]; 3], growth: Growth::default() }
    }

    /// Whether there are no layers.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.layers == [[0; 2]; 3]
    }

    /// Refuses layers that don't fit.
    pub(crate) fn check(&self, grid: &Grid) -> Result<()> {
        for (axis, [low, high]) in self.layers.into_iter().enumerate() {
            let cells = if axis < grid.mode().dimensions() { grid.cells[axis] } else { 0 };
            if low.saturating_add(high) > cells {
                return Err(Error::Usage(format!(
                    "layers of {low} and {high} cells along {} don't fit between walls that are {cells} cells apart; \
                     make the layers thinner, or the grid larger",
                    ["x", "y", "z"][axis]
                )));
            }
        }
        let Growth { order, sigma, kappa, alpha } = self.growth;
        for (what, value, least) in
            [("order", order, 0.0), ("sigma", sigma, 0.0), ("kappa", kappa, 1.0), ("alpha", alpha, 0.0)]
        {
            if !(value.is_finite() && value >= least) {
                return Err(Error::Usage(format!(
                    "{what} of the layers is {value}; it must be a number from {least} up"
                )));
            }
        }
        Ok(())
    }

    /// The factors b, c and 1 / κ − 1 for each cell of the layers along an axis, those before the first wall first. c is for differences
    /// between neighbours, as the division by Δ is in the factors of materials.
    pub(crate) fn profile(&self, grid: &Grid, axis: usize, half: Half, vacuum: Vacuum, dt: f64) -> Vec<[f64; 3]> {
        let [low, high] = self.layers[axis];
        // differences of E are half a cell behind the place of H that they are for
        let shift = if half == Half::H { 0.5 } else { 0.0 };
        let before = (0..low).map(|k| (low as f64 - k as f64 - shift) / low as f64);
        let behind = (0..high).map(|k| (k as f64 + shift) / high as f64);
        let Growth { order, sigma, kappa, alpha } = self.growth;
        let most = sigma * 0.8 * (order + 1.0) / (vacuum.impedance() * grid.step[axis]);
        let factors = |s: f64| {
            let (sigma, alpha) = (most * s.powf(order), alpha * (1.0 - s));
            let kappa = 1.0 + (kappa - 1.0) * s.powf(order);
            let b = (-(sigma / kappa + alpha) * dt / vacuum.epsilon).exp();
            let c = if sigma > 0.0 { sigma * (b - 1.0) / (kappa * (sigma + kappa * alpha)) } else { 0.0 };
            [b, c, 1.0 / kappa - 1.0]
        };
        before.chain(behind).map(factors).collect()
    }
}
