//! What V. Bueno measured (*Solving linear systems on several GPUs with OpenCL*, PUC-Rio 2013, tables 4.5 and 4.6): 100
//! iterations of `cg-classic` in single precision on a matrix of order 10⁷, which is not named. Totals are as printed: the
//! parts add up to less by as much as 0.04 s.

use serde::{Serialize, Serializer};
use serde_json::json;

/// Rows of the matrix.
pub(super) const ORDER: usize = 10_000_000;

/// Iterations.
pub(super) const ITERATIONS: usize = 100;

/// Where the figures stand.
pub(super) const SOURCE: &str = "Bueno 2013, tables 4.5 and 4.6";

/// The method, as it is called here.
pub(super) const METHOD: &str = "cg-classic";

/// Its kernels, as they are called here: inner product (two of them), next direction, next residual, next iterate,
/// matrix–vector product.
pub(super) const KERNELS: [&str; 5] = ["dot_partial", "next_direction", "next_residual", "next_iterate", "spmv_csr"];

/// A column of the tables: seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Published {
    /// The devices.
    pub(super) name: &'static str,
    /// The same, short.
    #[serde(skip)]
    pub(super) short: &'static str,
    /// Of each of [`KERNELS`].
    #[serde(serialize_with = "named")]
    pub(super) kernels: [f64; 5],
    /// Total less kernels.
    #[serde(rename = "overhead_seconds")]
    pub(super) overhead: f64,
    /// All of it.
    #[serde(rename = "total_seconds")]
    pub(super) total: f64,
}

/// Serialises the time of each kernel with its name.
fn named<S: Serializer>(seconds: &[f64; 5], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        KERNELS.iter().zip(seconds).map(|(kernel, seconds)| json!({ "kernel": kernel, "seconds": seconds })),
    )
}

/// One device each, then several.
pub(super) const PUBLISHED: [Published; 5] = [
    published("Radeon HD 6750M", "6750M", [0.43, 0.53, 0.53, 0.53, 2.16], 0.26, 4.46),
    published("Tesla C1060", "C1060", [0.29, 0.23, 0.23, 0.23, 0.69], 0.13, 1.81),
    published("Tesla C2075", "C2075", [0.26, 0.20, 0.20, 0.20, 0.57], 0.12, 1.55),
    published("3 × Tesla C1060", "3 C1060", [0.07, 0.05, 0.05, 0.05, 0.17], 0.24, 0.67),
    published("2 × Tesla C2075", "2 C2075", [0.08, 0.09, 0.09, 0.09, 0.28], 0.26, 0.91),
];

const fn published(name: &'static str, short: &'static str, kernels: [f64; 5], overhead: f64, total: f64) -> Published {
    Published { name, short, kernels, overhead, total }
}

impl Published {
    /// The time of a kernel.
    pub(super) fn kernel(&self, name: &str) -> Option<f64> {
        KERNELS.iter().position(|&kernel| kernel == name).map(|k| self.kernels[k])
    }

    /// The time of an iteration.
    pub(super) fn seconds_per_iteration(&self) -> f64 {
        self.total / ITERATIONS as f64
    }

    /// Operations a second: 10 for each row, as table 4.7 counts them.
    pub(super) fn flops_per_second(&self) -> f64 {
        10.0 * ORDER as f64 / self.seconds_per_iteration()
    }

    /// How many times as fast as one of its devices alone, if it is several.
    pub(super) fn speedup(&self) -> Option<f64> {
        let (_, device) = self.name.split_once(" × ")?;
        let alone = PUBLISHED.iter().find(|one| one.name == device)?;
        Some(alone.total / self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_total_but_for_rounding() {
        for one in PUBLISHED {
            let rest = one.total - one.overhead - one.kernels.iter().sum::<f64>();
            assert!((-1e-9..0.041).contains(&rest), "{}: {rest}", one.name);
            assert_eq!(one.kernel("spmv_csr"), Some(one.kernels[4]));
            assert_eq!(one.kernel("halo_pack"), None);
        }
    }

    #[test]
    fn what_follows_from_them() {
        let speedups = PUBLISHED.map(|one| one.speedup());
        assert_eq!(speedups[..3], [None; 3]);
        assert!((speedups[3].unwrap() - 2.70).abs() < 0.01 && (speedups[4].unwrap() - 1.70).abs() < 0.01);
        assert!((PUBLISHED[2].flops_per_second() - 6.45e9).abs() < 1e7);
    }
}
