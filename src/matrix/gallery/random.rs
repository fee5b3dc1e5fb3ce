//! Seeded numbers that can be drawn in any order.

use std::f64::consts::TAU;

use rayon::prelude::*;

use crate::matrix::Csr;
use crate::matrix::reorder::Permutation;

/// 2⁶⁴ divided by the golden ratio, made odd: the step of the generator.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The SplitMix64 generator read by position: number `k` is `mix(start + (k + 1) STEP)`, so that every thread draws
/// the numbers of its own rows and the result depends on the seed alone.
///
/// G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
/// doi 10.1145/2660193.2660195. Good enough for test data, not for secrets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    start: u64,
}

impl Stream {
    /// The stream of a seed. The seed is mixed first, so that near seeds do not give shifted copies of one stream.
    pub(super) fn new(seed: u64) -> Self {
        Self { start: mix(seed.wrapping_add(STEP)) }
    }

    /// A stream of its own for item `k`.
    pub(super) fn fork(self, k: u64) -> Self {
        Self::new(self.bits(k))
    }

    /// Number `k`, 64 bits.
    pub(super) fn bits(self, k: u64) -> u64 {
        mix(self.start.wrapping_add(k.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// Number `k`, uniform in [0, 1) on multiples of 2⁻⁵³.
    pub(super) fn unit(self, k: u64) -> f64 {
        (self.bits(k) >> 11) as f64 * (f64::EPSILON / 2.0)
    }

    /// Number `k`, uniform in [−1, 1) on multiples of 2⁻⁵².
    pub(super) fn signed(self, k: u64) -> f64 {
        (self.bits(k) >> 11) as f64 * f64::EPSILON - 1.0
    }

    /// Number `k`, standard normal, from numbers 2k and 2k + 1 by the transform of G. E. P. Box and M. E. Muller
    /// (1958), doi 10.1214/aoms/1177706645.
    pub(super) fn normal(self, k: u64) -> f64 {
        let k = k.wrapping_mul(2);
        let radius = (-2.0 * (1.0 - self.unit(k)).ln()).sqrt();
        radius * (TAU * self.unit(k.wrapping_add(1))).cos()
    }
}

/// The finalizer of SplitMix64, a bijection of 64-bit words.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `n` numbers uniform in [−1, 1), the same for a seed whatever the number of threads.
///
/// Element `k` depends on `seed` and `k` alone: a shorter vector is the beginning of a longer one.
#[must_use]
pub fn random_vector(n: usize, seed: u64) -> Vec<f64> {
    random_part(seed, 0, n)
}

/// Element `k` of [`random_vector`] with this seed.
#[must_use]
pub fn random_element(seed: u64, k: u64) -> f64 {
    Stream::new(seed).signed(k)
}

/// `n` elements of [`random_vector`] from element `first` on.
pub(crate) fn random_part(seed: u64, first: u64, n: usize) -> Vec<f64> {
    let stream = Stream::new(seed);
    (0..n as u64).into_par_iter().map(|k| stream.signed(first + k)).collect()
}

/// An order of `n` things that is drawn at random, any as likely as another, and the same for a seed whatever the
/// number of threads: by rising numbers of a generator. O(n log n).
///
/// # Panics
/// If `n` is beyond 32-bit indices.
#[must_use]
pub fn random_permutation(n: usize, seed: u64) -> Permutation {
    assert!(n <= Csr::MAX_DIM, "{n} is beyond 32-bit indices");
    let stream = Stream::new(seed);
    let mut drawn: Vec<(u64, u32)> = (0..n as u32).into_par_iter().map(|k| (stream.bits(k.into()), k)).collect();
    drawn.par_sort_unstable();
    Permutation::of_order(drawn.into_par_iter().map(|(_, k)| k).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_seeded_and_go_everywhere() {
        let order = random_permutation(1000, 3);
        assert!(Permutation::new(order.order().to_vec()).is_ok());
        assert_eq!((order.len(), &order), (1000, &random_permutation(1000, 3)));
        assert_ne!(order, random_permutation(1000, 4));
        // a third of the way on average
        let way: u32 = (0..1000).zip(order.order()).map(|(k, old)| old.abs_diff(k)).sum();
        assert!((280_000..390_000).contains(&way), "{way}");
        assert!(random_permutation(0, 1).is_empty());
        assert_eq!(random_permutation(1, 1).order(), [0]);
    }

    #[test]
    fn known_numbers_of_splitmix64() {
        let stream = Stream { start: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|k| stream.bits(k)).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn moments() {
        let n = 100_000u64;
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        let s = Stream::new(5);
        assert!((mean(&|k| s.unit(k)) - 0.5).abs() < 0.01);
        assert!(mean(&|k| s.normal(k)).abs() < 0.02);
        assert!((mean(&|k| s.normal(k).powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&|k| s.signed(k).powi(2)) - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn vectors_are_seeded_and_bounded() {
        let v = random_vector(10_000, 3);
        assert_eq!(v[..100], random_vector(100, 3)[..]);
        assert_ne!(v[..100], random_vector(100, 4)[..]);
        assert!(v.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(v.iter().any(|x| *x < -0.99) && v.iter().any(|x| *x > 0.99));
    }
}
