//! Materials, and the factors of their updates.

use serde::Serialize;

use super::grid::{Grid, Half};
use crate::error::{Error, Result};
use crate::real::Real;

/// The most materials: an index of a cell is one byte.
pub const MOST_MATERIALS: usize = 256;

/// The constants of empty space, in whose units the rest of a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Vacuum {
    /// ε₀, in F/m.
    pub epsilon: f64,
    /// μ₀, in H/m.
    pub mu: f64,
}

impl Default for Vacuum {
    /// [CODATA 2022](https://doi.org/10.1103/RevModPhys.97.025002).
    fn default() -> Self {
        Self { epsilon: 8.854_187_818_8e-12, mu: 1.256_637_061_27e-6 }
    }
}

impl Vacuum {
    /// √(μ₀ / ε₀), in Ω.
    pub(crate) fn impedance(self) -> f64 {
        (self.mu / self.epsilon).sqrt()
    }
}

/// What a cell is filled with. It is linear, isotropic, and does not depend on the frequency.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Material {
    /// What problems call it.
    pub name: String,
    /// ε / ε₀.
    pub epsilon: f64,
    /// μ / μ₀.
    pub mu: f64,
    /// Electric conductivity σ, in S/m.
    pub sigma: f64,
    /// Magnetic loss σ*, in Ω/m.
    pub sigma_star: f64,
    /// Whether it is a perfect conductor, in which E is 0, whatever the rest says.
    pub conductor: bool,
}

impl Material {
    /// Empty space, by a name.
    #[must_use]
    pub fn vacuum(name: &str) -> Self {
        Self { name: name.into(), epsilon: 1.0, mu: 1.0, sigma: 0.0, sigma_star: 0.0, conductor: false }
    }

    /// A perfect conductor, by a name.
    #[must_use]
    pub fn conductor(name: &str) -> Self {
        Self { conductor: true, ..Self::vacuum(name) }
    }

    /// Without losses, with ε / ε₀.
    #[must_use]
    pub fn dielectric(name: &str, epsilon: f64) -> Self {
        Self { epsilon, ..Self::vacuum(name) }
    }

    /// Refuses what is no passive material.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { name, epsilon, mu, sigma, sigma_star, .. } = self;
        let bad = |what: &str, value: f64, rule: &str| {
            Err(Error::Usage(format!("material '{name}': {what} is {value}; it must be a number {rule}")))
        };
        for (what, value) in [("epsilon", *epsilon), ("mu", *mu)] {
            if !(value.is_finite() && value > 0.0) {
                return bad(what, value, "above 0");
            }
        }
        for (what, value) in [("sigma", *sigma), ("sigma_star", *sigma_star)] {
            if !(value.is_finite() && value >= 0.0) {
                return bad(what, value, "from 0 up");
            }
        }
        Ok(())
    }

    /// 1 / √(ε μ), in m/s.
    pub(crate) fn speed(&self, vacuum: Vacuum) -> f64 {
        1.0 / (self.epsilon * vacuum.epsilon * self.mu * vacuum.mu).sqrt()
    }

    /// The factors a and b of an update: `a = (1 − s) / (1 + s)` and `b = (Δt / ε) / (1 + s)` with `s = σ Δt / 2 ε`, and the same with μ and σ*.
    pub(crate) fn factors(&self, half: Half, vacuum: Vacuum, dt: f64) -> [f64; 2] {
        let (inertia, loss) = match half {
            Half::E if self.conductor => return [0.0, 0.0],
            Half::E => (self.epsilon * vacuum.epsilon, self.sigma),
            Half::H => (self.mu * vacuum.mu, self.sigma_star),
        };
        let s = loss * dt / (2.0 * inertia);
        [(1.0 - s) / (1.0 + s), dt / inertia / (1.0 + s)]
    }
}

/// The factors of all materials in a half: of each a, b / Δx, b / Δy, b / Δz.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table<T>(pub(crate) Vec<T>);

impl<T: Real> Table<T> {
    pub(crate) fn new(materials: &[Material], half: Half, vacuum: Vacuum, dt: f64, grid: &Grid) -> Self {
        let of = |material: &Material| {
            let [a, b] = material.factors(half, vacuum, dt);
            let [x, y, z] = grid.step.map(|step| b / step);
            [a, x, y, z].map(T::from_f64)
        };
        Self(materials.iter().flat_map(of).collect())
    }

    /// Those of a material.
    pub(crate) fn of(&self, material: u8) -> [T; 4] {
        let at = 4 * usize::from(material);
        [self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]]
    }
}
