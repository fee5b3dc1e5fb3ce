//! Matrices of single elements.

use super::cell::{Cell, Point};
use super::mesh::Mesh;
use crate::error::{Error, Result};

/// What an element is like at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry {
    /// Of the derivatives of the coordinates: 2 or 6 times the volume of an element with straight edges, negative if it is inverted.
    pub(crate) determinant: f64,
    /// Of the shape function of each node.
    pub(crate) gradients: [[f64; 3]; 10],
}

impl Geometry {
    pub(crate) fn of(mesh: &Mesh, element: usize, point: &Point) -> Self {
        let (cell, d) = (mesh.cell(), mesh.cell().dimensions());
        let (j, slopes) = (axes(mesh, element, point), &point.slopes);
        let cofactor = |a: usize, b: usize| {
            let [[r, s], [u, v]] = [[(a + 1) % 3, (a + 2) % 3], [(b + 1) % 3, (b + 2) % 3]];
            j[r][u] * j[s][v] - j[r][v] * j[s][u]
        };
        let determinant: f64 = (0..3).map(|b| j[0][b] * cofactor(0, b)).sum();
        let mut gradients = [[0.0; 3]; 10];
        for (gradient, slope) in gradients.iter_mut().zip(slopes).take(cell.nodes()) {
            for (x, gradient) in gradient.iter_mut().enumerate().take(d) {
                *gradient = (0..d).map(|k| cofactor(k, x) * slope[k]).sum::<f64>() / determinant;
            }
        }
        Self { determinant, gradients }
    }

    /// The volume that a place stands for.
    pub(crate) fn volume(&self, cell: Cell, point: &Point) -> f64 {
        point.weight * self.determinant / if cell.dimensions() == 2 { 2.0 } else { 6.0 }
    }
}

/// The derivatives of the coordinates: row k has those by the weight of corner k + 1.
fn axes(mesh: &Mesh, element: usize, point: &Point) -> [[f64; 3]; 3] {
    let d = mesh.cell().dimensions();
    let mut j = [[0.0; 3]; 3];
    for (&node, slope) in mesh.element(element).iter().zip(&point.slopes) {
        let place = mesh.points()[node as usize];
        for k in 0..d {
            (0..d).for_each(|x| j[k][x] += slope[k] * place[x]);
        }
    }
    if d == 2 {
        j[2][2] = 1.0;
    }
    j
}

/// The volume that a place of an element stands for, by itself.
pub(crate) fn volume(mesh: &Mesh, element: usize, point: &Point) -> f64 {
    let [a, b, c] = axes(mesh, element, point);
    let determinant =
        a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
    point.weight * determinant / if mesh.cell().dimensions() == 2 { 2.0 } else { 6.0 }
}

/// Lamé's λ and μ.
pub(crate) fn lame(young: f64, poisson: f64) -> [f64; 2] {
    [young * poisson / ((1.0 + poisson) * (1.0 - 2.0 * poisson)), 0.5 * young / (1.0 + poisson)]
}

/// What is solved, with the properties of each region.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Physics {
    /// −∇·(κ ∇u) = f: heat, potentials, flow in pores.
    Diffusion {
        /// κ of each region.
        conductivity: Vec<f64>,
    },
    /// −∇·σ = f with Hooke's law for the displacement u: in two dimensions of plane strain.
    Elasticity {
        /// Young's modulus of each region,
        young: Vec<f64>,
        /// and Poisson's ratio, between −1 and ½.
        poisson: Vec<f64>,
    },
}

impl Physics {
    /// Unknowns of a node.
    #[must_use]
    pub fn unknowns(&self, cell: Cell) -> usize {
        match self {
            Self::Diffusion { .. } => 1,
            Self::Elasticity { .. } => cell.dimensions(),
        }
    }

    /// All regions have properties that make sense.
    ///
    /// # Errors
    /// [`Error::Usage`] with the region that has none, or a bad one.
    pub(crate) fn check(&self, mesh: &Mesh) -> Result<()> {
        let names = mesh.region_names();
        let all = |values: &[f64], what: &str, range: &str, is_good: fn(f64) -> bool| {
            if values.len() != names.len() {
                let message =
                    format!("{} values of {what} for {} regions: {}", values.len(), names.len(), names.join(", "));
                return Err(Error::Usage(message));
            }
            match values.iter().position(|&value| !is_good(value)) {
                Some(k) => {
                    Err(Error::Usage(format!("{what} = {} of region {} has to be {range}", values[k], names[k])))
                }
                None => Ok(()),
            }
        };
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        match self {
            Self::Diffusion { conductivity } => all(conductivity, "conductivity", "positive", is_positive),
            Self::Elasticity { young, poisson } => {
                all(young, "young", "positive", is_positive)?;
                all(poisson, "poisson", "between -1 and 0.5", |value| value > -1.0 && value < 0.5)
            }
        }
    }

    /// The matrix of an element, by rows: unknown a of node i is row b i + a, with b unknowns a node.
    pub(crate) fn matrix(&self, mesh: &Mesh, element: usize, points: &[Point], matrix: &mut [f64]) {
        let (cell, region) = (mesh.cell(), mesh.regions()[element] as usize);
        let (b, n) = (self.unknowns(cell), cell.nodes());
        let dot = |p: &[f64; 3], q: &[f64; 3]| p.iter().zip(q).map(|(p, q)| p * q).sum::<f64>();
        matrix.fill(0.0);
        for point in points {
            let geometry = Geometry::of(mesh, element, point);
            let (volume, of) = (geometry.volume(cell, point), &geometry.gradients);
            for i in 0..n {
                for j in 0..n {
                    let both = dot(&of[i], &of[j]);
                    match self {
                        Self::Diffusion { conductivity } => matrix[i * n + j] += volume * conductivity[region] * both,
                        Self::Elasticity { young, poisson } => {
                            let [lambda, mu] = lame(young[region], poisson[region]);
                            for a in 0..b {
                                for c in 0..b {
                                    let own = if a == c { mu * both } else { 0.0 };
                                    let stress = lambda * of[i][a] * of[j][c] + mu * of[i][c] * of[j][a] + own;
                                    matrix[(b * i + a) * b * n + b * j + c] += volume * stress;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
