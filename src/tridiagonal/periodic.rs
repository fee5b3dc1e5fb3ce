//! Periodic systems by others that are not, and a correction (Sherman and Morrison 1950).

use rayon::prelude::*;

use super::systems::{Layout, Shape, Systems};
use crate::real::Real;

/// Systems that are not periodic, in the place of those that are: A = A' + u vᵀ with u = (γ, 0 … 0, c(n−1)), v = (1, 0 … 0, a(0) / γ) and
/// γ = −b(0), so that A⁻¹ d = y − z (v·y) / (1 + v·z), where A' y = d and A' z = u.
pub(super) struct Opened<T> {
    pub(super) coefficients: [Vec<T>; 3],
    /// Where there are more than two rows; two unknowns are neighbours as they are.
    pub(super) correction: Option<Correction<T>>,
}

/// What closes the circle, by system: a(0) / γ, 1 / (1 + v·z); and all z.
pub(super) struct Correction<T> {
    pub(super) weights: Vec<T>,
    pub(super) factors: Vec<T>,
    /// At first u.
    pub(super) z: Vec<T>,
}

impl<T: Real> Opened<T> {
    pub(super) fn new(systems: &Systems<'_, T>) -> Self {
        let Shape { systems: count, size, .. } = systems.shape;
        let zero = T::default();
        let mut all = systems.coefficients.map(<[T]>::to_vec);
        let [a, b, c] = &mut all;
        if systems.shape.is_empty() {
            return Self { coefficients: all, correction: None };
        }
        if size <= 2 {
            for system in 0..count {
                let [first, last] = [0, size - 1].map(|row| systems.shape.at(system, row));
                let (left, right) = (a[first], c[last]);
                (a[first], c[last]) = (zero, zero);
                if size == 1 {
                    b[first] = b[first] + left + right;
                } else {
                    c[first] += left;
                    a[last] += right;
                }
            }
            return Self { coefficients: all, correction: None };
        }
        let mut correction =
            Correction { weights: Vec::new(), factors: Vec::new(), z: vec![zero; systems.shape.len()] };
        for system in 0..count {
            let [first, last] = [0, size - 1].map(|row| systems.shape.at(system, row));
            let (left, right) = (a[first], c[last]);
            let gamma = if b[first] == zero { T::from_f64(-1.0) } else { -b[first] };
            (a[first], c[last]) = (zero, zero);
            b[first] -= gamma;
            b[last] -= left * right / gamma;
            correction.weights.push(left / gamma);
            (correction.z[first], correction.z[last]) = (gamma, right);
        }
        Self { coefficients: all, correction: Some(correction) }
    }
}

impl<T: Real> Correction<T> {
    /// Takes the solutions z.
    pub(super) fn solved(&mut self, shape: Shape) {
        let one = T::from_f64(1.0);
        let [first, last] = [0, shape.size - 1];
        let factor = |(system, w): (usize, &T)| {
            one / (one + self.z[shape.at(system, first)] + *w * self.z[shape.at(system, last)])
        };
        self.factors = self.weights.iter().enumerate().map(factor).collect();
    }

    /// Makes x of y.
    pub(super) fn close(&self, shape: Shape, x: &mut [T]) {
        let share = |system: usize| {
            let [first, last] = [0, shape.size - 1].map(|row| x[shape.at(system, row)]);
            (first + self.weights[system] * last) * self.factors[system]
        };
        let shares: Vec<T> = (0..shape.systems).map(share).collect();
        match shape.layout {
            Layout::Contiguous => {
                let systems = x.par_chunks_mut(shape.size).zip(self.z.par_chunks(shape.size)).zip(&shares);
                systems.for_each(|((x, z), share)| x.iter_mut().zip(z).for_each(|(x, z)| *x -= *share * *z));
            }
            Layout::Interleaved => {
                let rows = x.par_chunks_mut(shape.systems).zip(self.z.par_chunks(shape.systems));
                rows.for_each(|(x, z)| {
                    x.iter_mut().zip(z).zip(&shares).for_each(|((x, z), share)| *x -= *share * *z);
                });
            }
        }
    }
}
