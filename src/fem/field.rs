//! What a solution says: gradients, fluxes and stresses of elements, what comes in through sides, energy, and values at a place.

use rayon::prelude::*;
use serde::Serialize;

use super::assembly::{Condition, Problem};
use super::cell::Point;
use super::local::{Geometry, Physics, lame};

/// ∇u, a row for each unknown of a node: row a has the derivatives of unknown a by x, y and z.
pub type Gradient = [[f64; 3]; 3];

/// σ as xx, yy, zz, xy, yz, xz.
pub type Stress = [f64; 6];

/// What comes in through a side with a known value, or the force that holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reaction {
    /// The side.
    pub side: String,
    /// The unknown of its nodes.
    pub component: usize,
    /// ∫ κ ∂u/∂n, or ∫ of the component of σ n.
    pub total: f64,
}

/// A solution at a place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// The element that the place is in, from 0.
    pub element: usize,
    /// u.
    pub value: [f64; 3],
    /// ∇u.
    pub gradient: Gradient,
    /// σ, of elasticity.
    pub stress: Option<Stress>,
}

impl Problem<'_> {
    /// The mean of ∇u over each element.
    ///
    /// # Panics
    /// If there is not a number for each unknown; so do the other functions of a solution.
    #[must_use]
    pub fn gradients(&self, x: &[f64]) -> Vec<Gradient> {
        self.check_solution(x);
        let points = self.mesh.cell().points();
        let mean = |element: usize| {
            let (mut sum, mut volume) = ([[0.0; 3]; 3], 0.0);
            for (geometry, own) in self.volumes(element, &points) {
                let gradient = self.gradient(x, element, &geometry);
                volume += own;
                sum.iter_mut().flatten().zip(gradient.iter().flatten()).for_each(|(sum, g)| *sum += own * g);
            }
            sum.map(|row| row.map(|g| g / volume))
        };
        (0..self.mesh.len()).into_par_iter().map(mean).collect()
    }

    /// −κ ∇u of each element, from its [gradient](Self::gradients); none for elasticity.
    #[must_use]
    pub fn fluxes(&self, gradients: &[Gradient]) -> Option<Vec<[f64; 3]>> {
        matches!(self.physics, Physics::Diffusion { .. }).then(|| {
            let all = gradients.iter().enumerate();
            all.map(|(element, gradient)| self.tension(element, gradient)[0].map(|q| -q)).collect()
        })
    }

    /// σ of each element, from its [gradient](Self::gradients); none for diffusion. In two dimensions σ of z and z is that of plane strain.
    #[must_use]
    pub fn stresses(&self, gradients: &[Gradient]) -> Option<Vec<Stress>> {
        matches!(self.physics, Physics::Elasticity { .. }).then(|| {
            let all = gradients.iter().enumerate();
            all.map(|(element, gradient)| voigt(&self.tension(element, gradient))).collect()
        })
    }

    /// K u − f for each unknown, as if no value were known: 0 where none is, but for the residual of the solution, and else what comes in there.
    /// Elements are gone through once, without a matrix.
    #[must_use]
    pub fn residual(&self, x: &[f64]) -> Vec<f64> {
        self.check_solution(x);
        self.less_loads(x, self.elements().product(x))
    }

    /// K u − f of the product of the elements.
    fn less_loads(&self, x: &[f64], product: Vec<f64>) -> Vec<f64> {
        let (loads, springs) = self.loads_and_springs();
        let mut residual = product;
        residual.iter_mut().zip(loads).for_each(|(r, load)| *r -= load);
        for (row, entries) in springs {
            residual[row as usize] += entries.iter().map(|&(column, value)| value * x[column as usize]).sum::<f64>();
        }
        residual
    }

    /// What comes in through each side with a known value: the sum of the [residual](Self::residual) over the unknowns that are known by it. That is
    /// exact for the discrete problem: these sums, sources and fluxes cancel to rounding. An unknown counts for the last condition that it has.
    #[must_use]
    pub fn reactions(&self, x: &[f64]) -> Vec<Reaction> {
        self.reactions_of(&self.residual(x))
    }

    /// The [reactions](Self::reactions) and the [energy](Self::energy), for which elements are gone through once.
    #[must_use]
    pub fn reactions_and_energy(&self, x: &[f64]) -> (Vec<Reaction>, f64) {
        self.check_solution(x);
        let product = self.elements().product(x);
        let energy = half_product(x, &product);
        (self.reactions_of(&self.less_loads(x, product)), energy)
    }

    fn reactions_of(&self, residual: &[f64]) -> Vec<Reaction> {
        let b = self.unknowns();
        let mut of = vec![usize::MAX; residual.len()];
        let mut reactions = Vec::new();
        for (side, condition) in &self.conditions {
            let Condition::Value { component, .. } = condition else { continue };
            let nodes = self.mesh.side(*side).flatten();
            nodes.for_each(|&node| of[b * node as usize + component] = reactions.len());
            let side = self.mesh.side_names()[*side as usize].clone();
            reactions.push(Reaction { side, component: *component, total: 0.0 });
        }
        for (own, r) in of.iter().zip(residual) {
            if let Some(reaction) = reactions.get_mut(*own) {
                reaction.total += r;
            }
        }
        reactions
    }

    /// ½ ∫ κ |∇u|², or ½ ∫ σ : ε: what is stored in the elements, ½ uᵀ K u.
    #[must_use]
    pub fn energy(&self, x: &[f64]) -> f64 {
        self.check_solution(x);
        half_product(x, &self.elements().product(x))
    }

    /// u and ∇u at a place; none outside of the mesh.
    #[must_use]
    pub fn sample(&self, x: &[f64], place: [f64; 3]) -> Option<Sample> {
        self.check_solution(x);
        let (element, point) = self.mesh.locate(place)?;
        let (b, mut value) = (self.unknowns(), [0.0; 3]);
        for (&node, shape) in self.mesh.element(element).iter().zip(point.shapes) {
            (0..b).for_each(|a| value[a] += shape * x[b * node as usize + a]);
        }
        let gradient = self.gradient(x, element, &Geometry::of(self.mesh, element, &point));
        let is_elastic = matches!(self.physics, Physics::Elasticity { .. });
        let stress = is_elastic.then(|| voigt(&self.tension(element, &gradient)));
        Some(Sample { element, value, gradient, stress })
    }

    fn check_solution(&self, x: &[f64]) {
        assert_eq!(x.len(), self.unknowns() * self.mesh.points().len(), "a solution has a number for each unknown");
    }

    /// What an element is like at each of these points, and the volume that they stand for.
    fn volumes<'p>(&'p self, element: usize, points: &'p [Point]) -> impl Iterator<Item = (Geometry, f64)> + 'p {
        points.iter().map(move |point| {
            let geometry = Geometry::of(self.mesh, element, point);
            (geometry, geometry.volume(self.mesh.cell(), point))
        })
    }

    fn gradient(&self, x: &[f64], element: usize, geometry: &Geometry) -> Gradient {
        let (b, mut gradient) = (self.unknowns(), [[0.0; 3]; 3]);
        for (&node, slope) in self.mesh.element(element).iter().zip(&geometry.gradients) {
            for (a, row) in gradient.iter_mut().enumerate().take(b) {
                let u = x[b * node as usize + a];
                row.iter_mut().zip(slope).for_each(|(g, s)| *g += u * s);
            }
        }
        gradient
    }

    /// κ ∇u in the first row, or σ.
    fn tension(&self, element: usize, gradient: &Gradient) -> Gradient {
        let region = self.mesh.regions()[element] as usize;
        match &self.physics {
            Physics::Diffusion { conductivity } => gradient.map(|row| row.map(|g| conductivity[region] * g)),
            Physics::Elasticity { young, poisson } => {
                let [lambda, mu] = lame(young[region], poisson[region]);
                let pressure = lambda * (0..3).map(|a| gradient[a][a]).sum::<f64>();
                std::array::from_fn(|a| {
                    std::array::from_fn(|c| {
                        mu * (gradient[a][c] + gradient[c][a]) + if a == c { pressure } else { 0.0 }
                    })
                })
            }
        }
    }
}

/// The stress of a bar in tension that is as near to yielding: √(½ ((σxx − σyy)² + (σyy − σzz)² + (σzz − σxx)²) + 3 (σxy² + σyz² + σxz²)).
#[must_use]
pub fn von_mises([xx, yy, zz, xy, yz, xz]: &Stress) -> f64 {
    let differences = (xx - yy).powi(2) + (yy - zz).powi(2) + (zz - xx).powi(2);
    (0.5 * differences + 3.0 * (xy * xy + yz * yz + xz * xz)).sqrt()
}

fn voigt(s: &[[f64; 3]; 3]) -> Stress {
    [s[0][0], s[1][1], s[2][2], s[0][1], s[1][2], s[0][2]]
}

/// ½ x·y, in the order of elements, so that equal problems give equal bits.
fn half_product(x: &[f64], y: &[f64]) -> f64 {
    0.5 * x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>()
}
