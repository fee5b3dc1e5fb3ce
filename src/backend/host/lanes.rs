//! Sums in vectors.

use crate::real::Real;

/// A sum as eight interleaved ones: the processor's vector units need them independent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lanes([f64; 8]);

impl Lanes {
    /// Adds a·b.
    pub(crate) fn add_dot<T: Real>(&mut self, a: &[T], b: &[T]) {
        let (a8, a_rest) = a.as_chunks::<8>();
        let (b8, b_rest) = b.as_chunks::<8>();
        for (a, b) in a8.iter().zip(b8) {
            for (k, lane) in self.0.iter_mut().enumerate() {
                *lane += a[k].to_f64() * b[k].to_f64();
            }
        }
        for ((lane, a), b) in self.0.iter_mut().zip(a_rest).zip(b_rest) {
            *lane += a.to_f64() * b.to_f64();
        }
    }

    /// Adds Σ wᵢ (aᵢ bᵢ).
    pub(crate) fn add_weighted_dot<T: Real>(&mut self, w: &[T], a: &[T], b: &[T]) {
        let (a8, a_rest) = a.as_chunks::<8>();
        let (b8, b_rest) = b.as_chunks::<8>();
        let (w8, w_rest) = w.as_chunks::<8>();
        for ((a, b), w) in a8.iter().zip(b8).zip(w8) {
            for (k, lane) in self.0.iter_mut().enumerate() {
                *lane += w[k].to_f64() * (a[k].to_f64() * b[k].to_f64());
            }
        }
        for (((lane, a), b), w) in self.0.iter_mut().zip(a_rest).zip(b_rest).zip(w_rest) {
            *lane += w.to_f64() * (a.to_f64() * b.to_f64());
        }
    }

    /// The sum, in one order.
    pub(crate) fn sum(self) -> f64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    }
}

/// x·y.
pub(crate) fn dot<T: Real>(x: &[T], y: &[T]) -> f64 {
    let mut lanes = Lanes::default();
    lanes.add_dot(x, y);
    lanes.sum()
}
