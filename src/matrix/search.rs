//! Searches by all threads.

use rayon::prelude::*;

/// The first of the numbers below `n` for which `is` holds.
///
/// It goes by stretches: threads that could stop at every number would spend more time on that than on the numbers.
pub(crate) fn first(n: usize, is: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    const STRETCH: usize = 1 << 12;
    if n <= STRETCH {
        return (0..n).find(|&i| is(i));
    }
    let stretches = (0..n.div_ceil(STRETCH)).into_par_iter();
    stretches.find_map_first(|k| (k * STRETCH..n.min((k + 1) * STRETCH)).find(|&i| is(i)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one() {
        for n in [0, 1, 4095, 4096, 4097, 100_000] {
            assert_eq!(first(n, |_| false), None);
            for found in [0, 1, 4095, 4096, 99_999] {
                assert_eq!(first(n, |i| i >= found), (found < n).then_some(found));
            }
        }
    }
}
