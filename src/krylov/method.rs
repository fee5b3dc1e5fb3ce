//! The methods, and what is known of each without running it.

use crate::named::named;
use crate::precond::Precond;

named! {
    /// The Krylov method.
    Method, "method":
    Auto = "auto", "cg.";
    Cg = "cg", "Preconditioned conjugate gradients with fused kernels; the scalars stay on the device when it works alone.";
    CgClassic = "cg-classic", "Conjugate gradients from five separate kernels, partial sums added on the host (Bueno 2013).";
    CgSingleReduction = "cg-single-reduction", "Conjugate gradients with the sums of an iteration in one (Chronopoulos and Gear 1989).";
    CgPipelined = "cg-pipelined", "Conjugate gradients whose sums travel while the product runs (Ghysels and Vanroose 2014).";
}

impl Method {
    /// All that an iteration can be by: all but [`Method::Auto`].
    pub const FORCED: &[Self] = Self::ALL.split_at(1).1;

    /// Whether the method has the diagonal as preconditioner in the form of a scaling of the system.
    pub(crate) fn scales(self) -> bool {
        self != Self::CgClassic
    }

    /// Vectors beside the residual and the iterate that the method has by recurrence: A p, A r and so on.
    pub(crate) fn recurrences(self) -> u64 {
        match self {
            Self::Auto | Self::Cg | Self::CgClassic => 0,
            Self::CgSingleReduction => 1,
            Self::CgPipelined => 3,
        }
    }

    /// How many vectors an iteration reads and writes beside its product, by the byte rule: each array that an operation reads
    /// counts once, and each that it writes; of x, a step of `cg` has half. `is_scaled` tells whether the matrix is scaled by its
    /// diagonal, so that the test needs weights.
    pub(crate) fn vectors_moved(self, precond: Precond, is_scaled: bool) -> u64 {
        match self {
            Self::Auto | Self::Cg => 6 + u64::from(is_scaled),
            Self::CgSingleReduction => 9 + u64::from(is_scaled),
            Self::CgPipelined => 13 + u64::from(is_scaled),
            Self::CgClassic => 13 + if precond == Precond::Jacobi { 5 } else { 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_moved_by_hand() {
        let of = |method: Method| [false, true].map(|scaled| method.vectors_moved(Precond::Jacobi, scaled));
        let methods = [Method::Cg, Method::CgSingleReduction, Method::CgPipelined, Method::CgClassic];
        assert_eq!(methods.map(of), [[6, 7], [9, 10], [13, 14], [18, 18]]);
    }
}
