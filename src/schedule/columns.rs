//! How a GPU takes several right-hand sides of a small system: one after the other, side by side, or with a work-group for each.
//!
//! Side by side a product reads the matrix once for up to 16, and the host waits for sums in each iteration. By a group each, nobody waits for the
//! host, nor does a group for another, but a group alone is slow with a long vector. Times are those of an H200: `docs/measurements.md`.

use crate::operator::Format;

/// Microseconds that launches and sums take in an iteration of columns side by side, and bytes of it in a microsecond;
const SIDE_BY_SIDE: [f64; 2] = [45.0, 2.8e6];
/// the same for one alone.
const ALONE: [f64; 2] = [8.0, 3.0e6];

/// Microseconds of an iteration that a group takes for what does not depend on the size,
const GROUP: f64 = 8.0;
/// for an entry that is found by its row's pattern, and for another one;
const KNOWN_ENTRY: f64 = 0.3e-3;
const ENTRY: f64 = 1.05e-3;
/// and bytes that all groups together move in a microsecond.
const GROUPS_RATE: f64 = 1.5e6;

/// What an iteration for a right-hand side is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Iteration {
    /// Entries of the matrix, and how they are stored.
    pub(crate) entries: usize,
    pub(crate) format: Format,
    /// Bytes, alone,
    pub(crate) alone: u64,
    /// and as one of `width` side by side.
    pub(crate) beside: u64,
    pub(crate) width: usize,
}

impl Iteration {
    /// Whether so many right-hand sides are solved for sooner by a group each, on so many compute units.
    pub(crate) fn is_for_groups(self, count: usize, units: u32) -> bool {
        self.by_groups(count as f64, f64::from(units.max(1))) < self.one_by_one().min(self.side_by_side(count))
    }

    /// Whether they are solved for sooner side by side than one by one.
    pub(crate) fn is_better_side_by_side(self, count: usize) -> bool {
        self.side_by_side(count) < self.one_by_one()
    }

    /// Microseconds of an iteration of one column, alone.
    fn one_by_one(self) -> f64 {
        let [wait, rate] = ALONE;
        wait + self.alone as f64 / rate
    }

    /// The same by groups.
    fn by_groups(self, count: f64, units: f64) -> f64 {
        let entry = if matches!(self.format, Format::Dictionary | Format::Pattern) { KNOWN_ENTRY } else { ENTRY };
        let one = GROUP + entry * self.entries as f64;
        (one * (count / units).max(1.0)).max(count * self.alone as f64 / GROUPS_RATE) / count
    }

    /// The same side by side.
    fn side_by_side(self, count: usize) -> f64 {
        let [wait, rate] = SIDE_BY_SIDE;
        wait / self.width.min(count).max(1) as f64 + self.beside as f64 / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterations of `cg` on an H200, and for how many columns which way took less time there (µs of all iterations of a column).
    #[test]
    fn what_was_measured() {
        let of = |[rows, entries]: [usize; 2], format, entry: f64, width: usize| {
            let matrix = entry * entries as f64;
            let [alone, beside] = [matrix, matrix / width as f64].map(|matrix| (matrix + 74.0 * rows as f64) as u64);
            Iteration { entries, format, alone, beside, width }
        };
        use Format::{Dictionary, Pattern, Sell};
        let units = 132;
        for (name, iteration, side_by_side, by_groups) in [
            ("data/jumps.mtx", of([720, 4_522], Dictionary, 0.3, 8), &[][..], &[8, 16, 64, 500][..]),
            ("bcsstk16", of([4_884, 290_378], Sell, 8.0, 16), &[8, 16], &[500]),
            ("poisson3d:20", of([8_000, 53_600], Dictionary, 0.3, 8), &[], &[16, 64, 500]),
            ("poisson3d:32", of([32_768, 223_232], Dictionary, 0.3, 8), &[8], &[64, 500]),
            ("poisson3d:64", of([262_144, 1_810_432], Dictionary, 0.3, 8), &[8, 16, 64, 500], &[]),
            ("tetrahedra:20", of([26_460, 1_100_682], Sell, 9.0, 16), &[8, 16, 64, 500], &[]),
            ("variable:32", of([32_768, 223_232], Pattern, 8.3, 16), &[8, 16], &[64, 500]),
        ] {
            for count in side_by_side {
                assert!(!iteration.is_for_groups(*count, units), "{name}, {count} columns");
            }
            for count in by_groups {
                assert!(iteration.is_for_groups(*count, units), "{name}, {count} columns");
            }
        }
        // one by one 2355, 1330 and 12 · 230 µs, and side by side 5941 and 4216 for two, 2998 and 1975 for four, 982 and 637 for sixteen
        let few = |iteration: Iteration, count: usize| {
            let width = count.min(16);
            let of_matrix = iteration.alone - iteration.beside;
            let beside = iteration.alone - of_matrix * 16 / 15 + of_matrix * 16 / 15 / width as u64;
            Iteration { width, beside, ..iteration }.is_better_side_by_side(count)
        };
        for small in [of([4_884, 290_378], Sell, 8.0, 16), of([32_768, 223_232], Pattern, 8.3, 16)] {
            assert_eq!([2, 4, 16].map(|count| few(small, count)), [false, false, true]);
        }
        // what is read as often as before
        let large = of([9_938_375, 69_291_275], Dictionary, 0.3, 8);
        assert!(!large.is_better_side_by_side(8));
        assert!(of([405_224, 55_000_000], Sell, 9.0, 16).is_better_side_by_side(16));
    }
}
