//! The methods: a row for each, with all that is known of it without running it.

use std::sync::Arc;

use super::{
    bicgstab, bicgstab2, cg, cg_flexible, cg_pipelined, cg_single_reduction, cg_textbook, gmres, idr, lsmr, minres,
};
use crate::backend::program::{Program, Stage, Step};
use crate::backend::text::{Kind, MATRIX, Preconditioner, Recorder};
use crate::named::named;
use crate::precond::Precond;

/// What is known of a method.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    /// What it says, if it is a text; or else a function of its own runs it.
    pub(crate) text: Option<fn(&Recorder)>,
    /// What it says with a preconditioner that it applies; a function applies it by this text. Without, it has those alone that are a
    /// scaling of the system.
    pub(crate) preconditioned: Option<fn(&Recorder)>,
    /// What it needs of the matrix.
    pub(crate) needs: Needs,
    /// Whether it finds the least ‖b − A x‖ where that is not 0, and multiplies by Aᵀ for it; the columns of A are then scaled, not rows
    /// and columns alike.
    pub(crate) minimises: bool,
    /// Whether a run may take over the direction of the one before, so that residuals can be replaced;
    pub(crate) keeps_direction: bool,
    /// and whether rows can be moved, as that is all it takes over.
    pub(crate) moves: bool,
    /// Whether a run of it is a cycle of so many steps, which begins anew from the residual.
    pub(crate) restarts: bool,
    /// Whether the method has the diagonal as preconditioner in the form of a scaling of the system.
    pub(crate) scales: bool,
    /// Whether a preconditioner that it applies may be another one in each iteration.
    pub(crate) lets_vary: bool,
    /// Whether its scalars are complex where the system is. Those of methods for Hermitian matrices are real in any case.
    pub(crate) is_complex: bool,
}

/// What a method needs of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// As many rows as columns.
    pub(crate) square: bool,
    pub(crate) symmetric: bool,
    /// That all eigenvalues are positive.
    pub(crate) definite: bool,
}

/// Facts of most methods.
const USUAL: Facts = Facts {
    text: None,
    preconditioned: None,
    needs: Needs { square: true, symmetric: true, definite: true },
    minimises: false,
    keeps_direction: true,
    moves: true,
    restarts: false,
    scales: true,
    lets_vary: false,
    is_complex: false,
};

/// What most methods for matrices that are not symmetric need.
const ANY_SQUARE: Needs = Needs { square: true, symmetric: false, definite: false };

/// Facts of a method that is a text.
const fn text(text: fn(&Recorder)) -> Facts {
    Facts { text: Some(text), ..USUAL }
}

/// The table of methods.
macro_rules! methods {
    ($($variant:ident = $name:literal, $text:literal => $facts:expr;)+) => {
        named! {
            /// The Krylov method.
            Method, "method":
            $($variant = $name, $text;)+
        }

        impl Method {
            /// What is known of it.
            pub(crate) fn facts(self) -> Facts {
                match self {
                    $(Self::$variant => $facts,)+
                }
            }
        }
    };
}

methods! {
    Auto = "auto", "What the matrix asks for: cg, minres or idr, and another one where that comes to nothing." => Self::Cg.facts();
    Cg = "cg", "Preconditioned conjugate gradients with fused kernels; the scalars stay on the device when it works alone."
        => Facts { preconditioned: Some(cg_textbook::cg), ..text(cg::cg) };
    CgClassic = "cg-classic", "Conjugate gradients from five separate kernels, partial sums added on the host (Bueno 2013)."
        => USUAL;
    CgSingleReduction = "cg-single-reduction", "Conjugate gradients with the sums of an iteration in one (Chronopoulos and Gear 1989)."
        => text(cg_single_reduction::cg_single_reduction);
    CgPipelined = "cg-pipelined", "Conjugate gradients whose sums travel while the product runs (Ghysels and Vanroose 2014)."
        => text(cg_pipelined::cg_pipelined);
    CgTextbook = "cg-textbook", "Conjugate gradients as textbooks have them: the reference (Hestenes and Stiefel 1952)."
        => Facts { preconditioned: Some(cg_textbook::cg), scales: false, ..text(cg_textbook::cg) };
    Minres = "minres", "Minimal residuals, for a symmetric matrix that need not be definite (Paige and Saunders 1975)."
        => Facts {
            needs: Needs { square: true, symmetric: true, definite: false },
            keeps_direction: false,
            moves: false,
            preconditioned: Some(minres::minres),
            ..text(minres::minres)
        };
    Bicgstab = "bicgstab", "Stabilised biconjugate gradients, for any square matrix (van der Vorst 1992)."
        => Facts {
            preconditioned: Some(bicgstab::bicgstab),
            needs: ANY_SQUARE,
            moves: false,
            is_complex: true,
            ..text(bicgstab::bicgstab)
        };
    Bicgstab2 = "bicgstab2", "BiCGstab(2), for any square matrix: two steps along residuals at once (Sleijpen and Fokkema 1993)."
        => Facts {
            preconditioned: Some(bicgstab2::bicgstab2),
            needs: ANY_SQUARE,
            moves: false,
            is_complex: true,
            ..text(bicgstab2::bicgstab2)
        };
    Idr = "idr", "Induced dimension reduction IDR(4), for any square matrix (van Gijzen and Sonneveld 2011)."
        => Facts {
            needs: ANY_SQUARE,
            keeps_direction: false,
            moves: false,
            is_complex: true,
            preconditioned: Some(idr::idr),
            ..text(idr::idr)
        };
    Gmres = "gmres", "Generalised minimal residuals with restarts, for any square matrix (Saad and Schultz 1986)."
        => Facts {
            preconditioned: Some(gmres::application),
            needs: ANY_SQUARE,
            keeps_direction: false,
            moves: false,
            restarts: true,
            is_complex: true,
            scales: false,
            lets_vary: true,
            ..USUAL
        };
    Direct = "direct", "Sparse Cholesky, LDLᵀ or LU factors on the host, with iterative refinement."
        => Facts {
            needs: ANY_SQUARE,
            keeps_direction: false,
            moves: false,
            scales: false,
            ..USUAL
        };
    Tridiagonal = "tridiagonal", "Elimination with exchanges of rows, of a tridiagonal matrix, or one with up to 8 diagonals on either side, on the host."
        => Self::Direct.facts();
    Dense = "dense", "LU, Cholesky or LDLᵀ factors of a dense matrix on devices or the host, with iterative refinement."
        => Facts {
            needs: ANY_SQUARE,
            keeps_direction: false,
            moves: false,
            scales: false,
            ..USUAL
        };
    Lsmr = "lsmr", "Least squares LSMR, for any matrix, rectangular or singular ones among them (Fong and Saunders 2011)."
        => Facts {
            needs: Needs { square: false, ..ANY_SQUARE },
            minimises: true,
            keeps_direction: false,
            moves: false,
            scales: false,
            ..text(lsmr::lsmr)
        };
}

impl Method {
    /// All that iterate with products with A alone: all but [`Method::Auto`], [`Method::Direct`],
    /// [`Method::Tridiagonal`], [`Method::Dense`] and [`Method::Lsmr`].
    pub const FORCED: &[Self] = Self::ALL.split_at(1).1.split_at(Self::ALL.len() - 5).0;

    /// Whether it factorises the matrix: [`Method::Direct`], [`Method::Tridiagonal`] and [`Method::Dense`].
    #[must_use]
    pub fn factorises(self) -> bool {
        matches!(self, Self::Direct | Self::Tridiagonal | Self::Dense)
    }

    /// Whether it needs as many rows as columns.
    pub(crate) fn needs_square(self) -> bool {
        self.facts().needs.square
    }

    /// Whether it finds the least ‖b − A x‖ where that is not 0.
    pub(crate) fn minimises(self) -> bool {
        self.facts().minimises
    }

    /// Whether it needs a symmetric matrix.
    pub(crate) fn needs_symmetric(self) -> bool {
        self.facts().needs.symmetric
    }

    /// Whether it needs a positive definite matrix.
    #[must_use]
    pub fn needs_definite(self) -> bool {
        self.facts().needs.definite
    }

    /// Whether it can have this preconditioner: [`Precond::Transversal`] is for methods that take any square matrix and watch a scaled
    /// residual, [`Precond::Amg`] for those that can have one of the caller's own, and those with matrices of their own for methods that
    /// apply what a text says.
    #[must_use]
    pub fn takes(self, precond: Precond) -> bool {
        let Facts { preconditioned, needs, scales, .. } = self.facts();
        match precond {
            Precond::BlockJacobi => self == Self::Auto || preconditioned.is_some(),
            Precond::Chebyshev => self == Self::Auto || preconditioned.is_some() && needs.definite,
            Precond::Ilu0 => self == Self::Auto || preconditioned.is_some() && needs == ANY_SQUARE,
            Precond::Fsai => self == Self::Auto || preconditioned.is_some() && needs.symmetric,
            Precond::Transversal => {
                matches!(self, Self::Auto | Self::Direct | Self::Tridiagonal) || needs == ANY_SQUARE && scales
            }
            Precond::Amg => self.takes_given(),
            _ => true,
        }
    }

    /// Whether this preconditioner is a scaling of the system for it.
    pub(crate) fn scales_by(self, precond: Precond) -> bool {
        precond.is_diagonal() && self.facts().scales
    }

    /// Whether it applies this preconditioner itself.
    pub(crate) fn applies(self, precond: Precond) -> bool {
        precond != Precond::None && !self.scales_by(precond) && !self.minimises()
    }

    /// The method as it is run, for such a system, and with a preconditioner that it applies; if it is a text. Or else what it applies
    /// that by.
    pub(crate) fn program(self, of: Kind, m: Option<Arc<dyn Preconditioner>>) -> Option<Program> {
        let Facts { text, preconditioned, lets_vary, is_complex, .. } = self.facts();
        assert!(preconditioned.is_some() || m.is_none(), "{self} applies no preconditioner");
        assert!(
            lets_vary || m.as_ref().is_none_or(|m| !m.varies()),
            "{self} needs one preconditioner for all iterations"
        );
        let text = if m.is_some() { preconditioned } else { text };
        text.map(|text| Program::new(self.name(), Kind { is_complex: of.is_complex && is_complex, ..of }, m, text))
    }

    /// Whether it can have a preconditioner of the caller's own.
    #[must_use]
    pub fn takes_given(self) -> bool {
        matches!(self, Self::Auto | Self::Cg | Self::Gmres)
    }

    /// [`vectors_moved`](Self::vectors_moved) with one of the caller's own, which are not counted.
    pub(crate) fn vectors_moved_beside_given(self, restart: u32, is_complex: bool) -> u64 {
        match self {
            Self::Gmres => gmres::vectors_moved(restart, is_complex),
            _ => cg_flexible::VECTORS_MOVED,
        }
    }

    /// Its shape for a real or complex system, with a preconditioner that changes something or does not.
    fn shape(self, precond: Precond, is_preconditioned: bool, is_complex: bool) -> Option<Program> {
        let applies = self.applies(precond);
        let is_scaled = is_preconditioned && self.scales_by(precond);
        self.program(Kind { is_scaled, is_complex }, precond.shape().filter(|_| is_preconditioned && applies))
    }

    /// Products of an iteration with each matrix that it multiplies by: A, and Aᵀ or those of the preconditioner.
    pub(crate) fn products(self, precond: Precond) -> Vec<u64> {
        let counts = self.shape(precond, true, false).map_or(vec![0], |program| program.products_by_operator());
        // a function has one with A beside those of the preconditioner
        let own = u64::from(self.facts().text.is_none());
        counts.into_iter().enumerate().map(|(k, count)| count + if k == MATRIX { own } else { 0 }).collect()
    }

    /// Vectors that a rank keeps for it beside the iterate, the residual, the direction and the product; all have room for a halo.
    pub(crate) fn more_vectors(self, precond: Precond) -> u64 {
        self.shape(precond, true, false).map_or(0, |program| program.own_vectors().saturating_sub(2) as u64)
    }

    /// Columns of a Krylov basis that a rank keeps, with cycles of so many steps: they have no room for a halo.
    /// `is_given` tells of a preconditioner of the caller's own, which may vary.
    pub(crate) fn basis_columns(self, precond: Precond, is_given: bool, restart: u32, is_complex: bool) -> u64 {
        let varies = is_given || self.applies(precond) && precond.shape().is_some_and(|m| m.varies());
        if self == Self::Gmres { gmres::columns(restart, varies, is_complex) } else { 0 }
    }

    /// Bytes that an iteration in double precision moves for a row beside its entries: two vectors and the row pointer of the
    /// product, and all other vectors.
    pub(crate) fn row_bytes(self, precond: Precond, restart: u32) -> f64 {
        let products: u64 = self.products(precond).iter().sum();
        (products * (2 * 8 + 4) + 8 * self.vectors_moved((precond, true), restart, false)) as f64
    }

    /// How many vectors an iteration reads and writes beside its product, by the byte rule: each array that an operation reads
    /// counts once, and each that it writes; of x, a step of `cg` has half. `is_preconditioned` tells whether the preconditioner
    /// changes anything: if it scales the system, the test needs weights. Of a method that restarts, the mean over a cycle.
    pub(crate) fn vectors_moved(
        self,
        (precond, is_preconditioned): (Precond, bool),
        restart: u32,
        is_complex: bool,
    ) -> u64 {
        match self.shape(precond, is_preconditioned, is_complex) {
            application if self == Self::Gmres => {
                let steps = application.iter().flat_map(|program| program.steps(Stage::Start));
                let passes = steps.filter_map(|step| if let Step::Pass(pass) = step { Some(pass) } else { None });
                gmres::vectors_moved(restart, is_complex) + passes.map(|pass| pass.arrays_moved() as u64).sum::<u64>()
            }
            Some(program) => program.arrays_moved() as u64,
            // two dot products and three updates; the weighted residual, and its product with r
            None => 2 * 2 + 3 * 3 + if is_preconditioned { 3 + 2 } else { 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::text::{Recorder, Vector};

    #[derive(Debug)]
    struct Varying;

    impl Preconditioner for Varying {
        fn vectors(&self) -> Vec<(&'static str, Arc<Vec<f64>>)> {
            Vec::new()
        }

        fn apply<'k>(&self, _: &'k Recorder, _: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>) {
            z.set(r.times(r));
        }

        fn varies(&self) -> bool {
            true
        }
    }

    #[test]
    #[should_panic(expected = "cg-textbook needs one preconditioner for all iterations")]
    fn what_varies_is_for_methods_that_let_it() {
        Method::CgTextbook.program(Kind::PLAIN, Some(Arc::new(Varying)));
    }

    #[test]
    #[should_panic(expected = "cg-pipelined applies no preconditioner")]
    fn a_preconditioner_is_not_forgotten() {
        Method::CgPipelined.program(Kind::PLAIN, Precond::Jacobi.shape());
    }

    #[test]
    #[should_panic(expected = "cg-classic applies no preconditioner")]
    fn nor_by_what_is_no_text() {
        Method::CgClassic.program(Kind::PLAIN, Precond::Jacobi.shape());
    }

    #[test]
    fn what_applies_says_so() {
        for &method in Method::FORCED {
            let says = || {
                let Facts { text, preconditioned, .. } = method.facts();
                preconditioned.or(text).is_some_and(|text| {
                    Program::new("a method", Kind::PLAIN, Some(Arc::new(Varying)), text).own_vectors() > 0
                })
            };
            let applies = std::panic::catch_unwind(says).unwrap_or(false);
            assert_eq!(method.facts().preconditioned.is_some(), applies, "{method}");
        }
    }

    #[test]
    fn row_bytes_by_hand() {
        assert_eq!(Method::Cg.row_bytes(Precond::Jacobi, 30), 76.0);
        assert_eq!(Method::Minres.row_bytes(Precond::Jacobi, 30), 132.0);
        // two passes over 5.5 of 10 columns, four more vectors, and z = d v
        assert_eq!(Method::Gmres.row_bytes(Precond::Jacobi, 10), 20.0 + 8.0 * (11.0 + 4.0 + 3.0));
        assert_eq!(Method::Gmres.row_bytes(Precond::None, 1), 20.0 + 8.0 * 6.0);
        assert_eq!(Method::Lsmr.row_bytes(Precond::Jacobi, 30), 144.0);
    }

    #[test]
    fn products_by_hand() {
        let methods = [Method::Cg, Method::CgClassic, Method::Bicgstab, Method::Bicgstab2, Method::Idr];
        let products = |method: Method| method.products(Precond::Jacobi);
        assert_eq!(methods.map(products), [[1], [1], [2], [4], [5]]);
        assert_eq!(products(Method::Gmres), [1]);
        assert_eq!(products(Method::Lsmr), [1, 1]);
        let methods = [Method::Cg, Method::Bicgstab, Method::Bicgstab2, Method::Idr, Method::Gmres];
        let products = methods.map(|method| method.products(Precond::BlockJacobi));
        assert_eq!(products, [[1, 1], [2, 2], [4, 4], [5, 5], [1, 1]]);
        assert_eq!([Method::Cg, Method::Minres].map(|method| method.products(Precond::Fsai)), [[1, 1, 1]; 2]);
    }

    #[test]
    fn vectors_moved_by_hand() {
        let of =
            |method: Method| [false, true].map(|scaled| method.vectors_moved((Precond::Jacobi, scaled), 30, false));
        let methods = [Method::Cg, Method::CgSingleReduction, Method::CgPipelined, Method::CgClassic];
        assert_eq!(methods.map(of), [[6, 7], [9, 10], [13, 14], [13, 18]]);
        // r −= α q, r·r; x += α p, p = r + β p; with z = d r
        assert_eq!(of(Method::CgTextbook), [8, 10]);
        // u; w, x, and with weights r
        assert_eq!(of(Method::Minres), [10, 14]);
        // r̂·v, r̂·t and r̂·v; r; A p; r and A r; r·t; x, r and p
        assert_eq!(of(Method::Bicgstab2), [32, 33]);
        // u; v; h̄, x, h
        assert_eq!(of(Method::Lsmr), [13, 13]);
    }

    #[test]
    fn vectors_kept_by_hand() {
        let of = |method: Method| [Precond::None, Precond::Jacobi].map(|m| method.more_vectors(m));
        assert_eq!([Method::Cg, Method::CgPipelined, Method::CgClassic].map(of), [[0, 0], [3, 3], [0, 0]]);
        assert_eq!(of(Method::Minres), [3, 3]); // q, w and w_old
        assert_eq!(of(Method::Bicgstab2), [4, 4]); // t, A p, A r and r̂
        assert_eq!(of(Method::Lsmr), [3, 3]); // v, h and h̄
        assert_eq!(of(Method::CgTextbook), [0, 2]); // d and z
        assert_eq!(of(Method::Gmres), [0, 1]); // d, beside the basis
        assert_eq!(Method::Gmres.basis_columns(Precond::Jacobi, false, 20, true), 42); // v and i v
        assert_eq!(
            [Method::Gmres, Method::Idr].map(|method| method.basis_columns(Precond::Jacobi, false, 20, false)),
            [21, 0]
        );
        assert_eq!(Method::Gmres.basis_columns(Precond::None, true, 20, false), 41); // z, too
    }
}
