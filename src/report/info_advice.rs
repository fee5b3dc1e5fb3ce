//! What `declive solve` would do with a matrix.

use declive::Setup;
use declive::device::Kind;
use declive::matrix::band::Band;
use declive::matrix::definiteness::{Definiteness, Obstacle};
use declive::matrix::dominance::Dominance;
use declive::matrix::reorder::rcm;
use declive::matrix::symmetry::Symmetries;
use declive::matrix::values::{MainDiagonal, Range};
use declive::matrix::{Csr, Scalar};
use declive::solve::{
    Format, FormatSurvey, Method, Precision, Precond, Remembered, candidates, dense_first, device_bytes,
    factorises_first, first_look, remembered,
};
use serde::Serialize;

use super::units::{figure, scientific};

/// What was found out about a square matrix.
#[derive(Debug)]
pub(crate) struct Square<T> {
    pub(crate) band_after_rcm: Band,
    pub(crate) symmetries: Symmetries<T>,
    pub(crate) diagonal: MainDiagonal,
    pub(crate) dominance: Dominance,
    pub(crate) definiteness: Definiteness<T>,
}

impl<T: Scalar> Square<T> {
    /// Looks at a matrix; none if it is not square.
    pub(crate) fn of(a: &Csr<T>) -> Option<Self> {
        let (symmetries, dominance) = (Symmetries::of(a)?, Dominance::of(a)?);
        let diagonal = MainDiagonal::of(a);
        Some(Self {
            band_after_rcm: Band::reordered(a, &rcm(a).ok()?),
            definiteness: Definiteness::of(a, &symmetries, &diagonal, &dominance),
            symmetries,
            diagonal,
            dominance,
        })
    }
}

/// A method and a preconditioner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Advice {
    /// The format of the matrix on the devices, which `auto` leaves to each.
    pub(super) format: Format,
    /// The method that fits.
    pub(super) method: Method,
    /// Whether factors come first where no devices are named,
    pub(crate) direct_first: bool,
    /// and which: `direct` or `tridiagonal`.
    #[serde(skip)]
    pub(super) first: Method,
    /// Whether it is factorised as a dense one.
    pub(crate) dense_first: bool,
    /// The preconditioner that fits.
    pub(super) precond: Precond,
    /// Why this one.
    pub(super) precond_reason: String,
    /// After how many iterations it is looked whether multigrid had better go on; none if it never is.
    pub(super) first_look: Option<FirstLook>,
    /// What former solves took, by their devices.
    pub(super) remembered: Vec<OnDevices>,
    /// Memory of a device that takes all of it as compressed rows, by precision.
    pub(super) device_bytes: DeviceBytes,
}

/// Iterations by the diagonal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct FirstLook {
    /// On a GPU that works alone.
    pub(super) on_gpu: u64,
    /// By processors.
    pub(super) on_cpu: u64,
}

/// What is remembered of devices together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct OnDevices {
    /// Their kinds.
    pub(super) devices: Vec<String>,
    #[serde(flatten)]
    pub(super) remembered: Remembered,
}

/// Memory of matrix and vectors, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct DeviceBytes {
    pub(super) f64: u64,
    pub(super) f32: u64,
}

impl Advice {
    /// For a matrix of which, if it is square, this was found.
    pub(crate) fn new<T: Scalar>(a: &Csr<T>, square: Option<&Square<T>>) -> Self {
        let (method, (precond, reason)) = match square {
            None => (Method::Lsmr, (Precond::Jacobi, "it scales the columns to norm 1".into())),
            Some(square) => {
                let is_symmetric = !matches!(square.definiteness, Definiteness::Impossible(Obstacle::NotHermitian(_)));
                let may_be_definite = !matches!(square.definiteness, Definiteness::Impossible(_));
                let method = candidates(Precision::F64, Precond::Jacobi, is_symmetric, may_be_definite)[0].method;
                (method, precond(&square.diagonal))
            }
        };
        let parts = if T::IS_COMPLEX { 2 } else { 1 }; // rows of the real form for each
        let bytes = |precision| {
            device_bytes(
                parts * a.n_rows().max(a.n_cols()),
                parts * parts * a.nnz(),
                &Setup::default().with_method(method).with_precond(precond).with_precision(precision),
            )
        };
        Self {
            format: Format::Auto,
            method,
            direct_first: false,
            first: Method::Direct,
            dense_first: false,
            precond,
            precond_reason: reason,
            first_look: None,
            remembered: Vec::new(),
            device_bytes: DeviceBytes { f64: bytes(Precision::F64), f32: bytes(Precision::F32) },
        }
    }

    /// Whether the matrix, or its real form, is factorised first.
    pub(crate) fn look_at_factors(&mut self, a: &Csr) {
        let may_be_definite = self.method.needs_definite();
        let is_symmetric = may_be_definite || self.method == Method::Minres;
        let first = factorises_first(a, is_symmetric, may_be_definite).filter(|_| self.method != Method::Lsmr);
        (self.direct_first, self.first) = (first.is_some(), first.unwrap_or(Method::Direct));
    }

    /// When a real matrix, which would be stored so, is looked at for multigrid; and what was best for it, or a real form, in former solves.
    pub(crate) fn look_ahead(&mut self, a: &Csr, formats: &FormatSurvey, is_real: bool) {
        self.dense_first = is_real && self.method != Method::Lsmr && dense_first(a, self.method.needs_definite());
        self.direct_first &= !self.dense_first;
        let method = self.method;
        let look = |kind, format| first_look(kind, format, a, method);
        if is_real {
            let looks = look(Kind::Gpu, formats.on_gpu).zip(look(Kind::Cpu, formats.on_cpu));
            self.first_look = looks.map(|(on_gpu, on_cpu)| FirstLook { on_gpu, on_cpu });
        }
        let all = remembered(a, &Setup::default()).into_iter();
        self.remembered = all.map(|(devices, remembered)| OnDevices { devices, remembered }).collect();
    }

    /// The set-up of a solve as advised.
    pub(crate) fn setup(&self) -> Setup {
        Setup::default().with_method(self.method).with_precond(self.precond)
    }
}

/// The preconditioner for this diagonal, and why.
fn precond(diagonal: &MainDiagonal) -> (Precond, String) {
    if diagonal.not_real.count > 0 {
        return (Precond::Jacobi, "it evens out the moduli of the diagonal".into());
    }
    of_range(diagonal.range)
}

/// The preconditioner for a positive diagonal of this range, and why.
fn of_range(diagonal: Option<Range>) -> (Precond, String) {
    match diagonal.map_or(1.0, |range| range.ratio()) {
        1.0 => (Precond::None, "the diagonal is constant, so that jacobi would change nothing".into()),
        ratio => {
            let factor = if ratio < 1e4 { figure(ratio) } else { scientific(ratio) };
            (Precond::Jacobi, format!("it evens out the diagonal, which varies by a factor of {factor}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jacobi_is_for_uneven_diagonals() {
        let of = |min, max| of_range(Some(Range { min, max }));
        assert_eq!(of(4.0, 4.0).0, Precond::None);
        assert!(of(4.0, 4.0).1.contains("constant"));
        assert_eq!(
            of(1.0, 1.5),
            (Precond::Jacobi, "it evens out the diagonal, which varies by a factor of 1.50".into())
        );
        let (precond_of, reason) = of(1e-3, 1e3);
        assert_eq!(precond_of, Precond::Jacobi);
        assert!(reason.ends_with("a factor of 1.00e6"), "{reason}");
        assert_eq!(of_range(None).0, Precond::None);
    }
}
