//! Sets of numbers that are joined two by two, by all threads.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

/// Disjoint sets of 0, 1, …, each known by its least number. A number has one above it that is less, or is the least: joining sets puts the least
/// of one below that of the other, by compare and swap, and looking for it halves the way for the next look (Anderson and Woll 1991,
/// doi 10.1145/103418.103458). Which sets there are in the end depends on no order.
pub(super) struct Sets(Vec<AtomicU32>);

impl Sets {
    /// Each number alone.
    pub(super) fn new(n: u32) -> Self {
        Self((0..n).into_par_iter().with_min_len(1 << 14).map(AtomicU32::new).collect())
    }

    /// The least number of the set of `i`: as long as others join sets, one that was in it.
    pub(super) fn least(&self, mut i: u32) -> u32 {
        loop {
            let above = self.0[i as usize].load(Relaxed);
            if above == i {
                return i;
            }
            let next = self.0[above as usize].load(Relaxed);
            if next != above {
                // whoever comes next goes half as far; it is as well if another was quicker
                let _ = self.0[i as usize].compare_exchange_weak(above, next, Relaxed, Relaxed);
            }
            i = next;
        }
    }

    /// Joins the sets of two numbers.
    pub(super) fn join(&self, i: u32, j: u32) {
        loop {
            let [i, j] = [i, j].map(|k| self.least(k));
            let (low, high) = (i.min(j), i.max(j));
            // unless another has joined it with a third meanwhile
            if low == high || self.0[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_in_any_order() {
        let n = 100_000;
        for step in [1, 7, 77_773] {
            let sets = Sets::new(n);
            // numbers that are the same by 3, all of them at once, and two of these
            (0..n - 3).into_par_iter().for_each(|k| {
                let i = (u64::from(k) * step % u64::from(n - 3)) as u32;
                sets.join(i + 3, i);
            });
            sets.join(n - 1, n - 2);
            let least = |i: u32| {
                if i % 3 == (n - 1) % 3 || i % 3 == (n - 2) % 3 { ((n - 1) % 3).min((n - 2) % 3) } else { n % 3 }
            };
            assert!((0..n).all(|i| sets.least(i) == least(i)), "{step}");
        }
        let alone = Sets::new(3);
        alone.join(2, 2);
        assert_eq!([0, 1, 2].map(|i| alone.least(i)), [0, 1, 2]);
    }
}
