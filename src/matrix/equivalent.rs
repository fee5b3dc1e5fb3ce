//! Complex systems as real ones of twice the order.
//!
//! With A = R + iM, x = u + iv and b = c + id, A x = b says R u − M v = c and M u + R v = d. There are two ways to write that
//! with blocks of 2 × 2, one for each entry of A, and unknowns by turns of real and imaginary parts:
//!
//! | [`Form`] | block of an entry r + im | unknowns | right-hand side | what it keeps of A |
//! |---|---|---|---|---|
//! | [`General`](Form::General) | `[r, −m; m, r]` | u, v | c, d | the eigenvalues, and their conjugates; symmetric if A is Hermitian, and definite if A is |
//! | [`Symmetric`](Form::Symmetric) | `[r, m; m, −r]` | u, −v | c, d | symmetric if A = Aᵀ; the eigenvalues are then ± the singular values of A |
//!
//! The general form of a Hermitian matrix takes the iterations of the complex one, by conjugate gradients or minimal
//! residuals. For any other matrix, methods with real scalars take more: the eigenvalues lie on both sides of the real axis alike, and
//! polynomials with real coefficients must be small on both. IDR(s) takes 2 to 5 times the iterations of complex arithmetic, and restarted
//! GMRES and BiCGSTAB, whose steps of one residual are real numbers, hardly converge where the eigenvalues are far from the
//! real axis or around 0. So methods for such matrices have complex scalars: i v is the vector v with the parts of its numbers
//! exchanged and a sign, a factor a + ib of it a v + b (i v), and xᴴ y = x·y + i ((i x)·y).
//!
//! The symmetric form makes a complex symmetric system one for minimal residuals (MINRES). Its eigenvalues lie on both sides
//! of 0 alike, so that it takes twice the iterations of conjugate gradients on Aᴴ A. Norms of vectors and of residuals are
//! those of the complex ones in either form.
//!
//! D. Day, M. A. Heroux, "Solving complex-valued linear systems via equivalent real formulations", SIAM J. Sci. Comput.
//! 23 (2001), doi 10.1137/S1064827500372262: their K1 and K2, by blocks.

use rayon::prelude::*;

use super::assemble::{assemble_rectangle, too_large};
use super::{Complex64, Csr};
use crate::error::Result;

/// A way to write a complex system as a real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `[r, −m; m, r]` for each entry r + im, real and imaginary parts of x as unknowns.
    General,
    /// `[r, m; m, −r]`, with imaginary parts of the other sign as unknowns: symmetric if A = Aᵀ.
    Symmetric,
}

impl Form {
    /// The real matrix: twice the rows and columns, and 4 nnz entries, zeros among them included, so that every entry is a full block of 2 × 2.
    /// Takes 48 nnz + 16 n bytes, in O(nnz), rows in parallel. No entry is −0.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if 32-bit indices can't address it; [`Error::OutOfMemory`](crate::Error::OutOfMemory) if it doesn't fit.
    pub fn matrix(self, a: &Csr<Complex64>) -> Result<Csr> {
        let (m, n) = (a.n_rows(), a.n_cols());
        if m.max(n) > Csr::MAX_DIM / 2 {
            return Err(too_large(format_args!("{} complex rows, as a real one,", m.max(n))));
        }
        assemble_rectangle(
            [2 * m, 2 * n],
            |i| 2 * a.row(i / 2).0.len(),
            |i, row| {
                let (cols, values) = a.row(i / 2);
                for (&j, &z) in cols.iter().zip(values) {
                    let [first, second] = self.block(z)[i % 2];
                    row.push(2 * j as usize, first);
                    row.push(2 * j as usize + 1, second);
                }
            },
        )
    }

    /// The block of an entry, by rows. Adding and subtracting 0 makes −0 the usual one.
    fn block(self, z: Complex64) -> [[f64; 2]; 2] {
        let (re, im) = (z.re + 0.0, z.im + 0.0);
        match self {
            Self::General => [[re, 0.0 - im], [im, re]],
            Self::Symmetric => [[re, im], [im, 0.0 - re]],
        }
    }

    /// The right-hand side of the real system: real and imaginary parts of `b` by turns.
    #[must_use]
    pub fn right_hand_side(self, b: &[Complex64]) -> Vec<f64> {
        b.iter().flat_map(|z| [z.re, z.im]).collect()
    }

    /// The unknowns of the real system for those of the complex one, such as an initial guess.
    #[must_use]
    pub fn unknowns(self, x: &[Complex64]) -> Vec<f64> {
        x.iter().flat_map(|z| [z.re, self.sign() * z.im]).collect()
    }

    /// The unknowns of the complex system, as many as there are pairs in `y`.
    #[must_use]
    pub fn solution(self, y: &[f64]) -> Vec<Complex64> {
        y.chunks_exact(2).map(|pair| Complex64::new(pair[0], self.sign() * pair[1])).collect()
    }

    /// Of the imaginary parts among the unknowns.
    fn sign(self) -> f64 {
        match self {
            Self::General => 1.0,
            Self::Symmetric => -1.0,
        }
    }
}

/// The real matrix of twice the order with `[r, −m; m, r]` for each entry r + im: [`Form::General`].
///
/// # Errors
/// As [`Form::matrix`].
pub fn real_form(a: &Csr<Complex64>) -> Result<Csr> {
    Form::General.matrix(a)
}

/// Whether a square matrix is the [`Form::General`] of a complex one, with a block `[r, −m; m, r]` for each entry, zeros in it included.
/// Rows in parallel, O(nnz) if it is, and most other matrices are known by their first rows.
pub(crate) fn is_real_form(a: &Csr) -> bool {
    let is_pair = |row: usize| {
        let ((columns, re), (others, im)) = (a.row(row), a.row(row + 1));
        let is_block = |(j, ([r, minus_m], [m, again])): (&[u32; 2], (&[f64; 2], &[f64; 2]))| {
            j[0].is_multiple_of(2) && j[1] == j[0] + 1 && r == again && *m == -minus_m
        };
        let [re, im] = [re, im].map(|values| values.as_chunks::<2>().0);
        let blocks = columns.as_chunks::<2>().0;
        columns == others && columns.len().is_multiple_of(2) && blocks.iter().zip(re.iter().zip(im)).all(is_block)
    };
    let (n, first) = (a.n_rows(), a.row_ptr().iter().position(|entries| *entries > 0));
    let is_even = n > 0 && n == a.n_cols() && n.is_multiple_of(2) && a.nnz() > 0;
    // the first row with entries tells of most
    is_even
        && first.is_none_or(|first| is_pair((first - 1) / 2 * 2))
        && (0..n / 2).into_par_iter().with_min_len(1 << 12).all(|pair| is_pair(2 * pair))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matrix::stats::Stats;

    const FORMS: [Form; 2] = [Form::General, Form::Symmetric];

    fn z(re: f64, im: f64) -> Complex64 {
        Complex64::new(re, im)
    }

    #[test]
    fn blocks_by_hand() {
        let a = Csr::from_triplets(2, 2, &[0, 0, 1], &[0, 1, 1], &[z(1.0, 2.0), z(3.0, 0.0), z(-0.0, -4.0)]).unwrap();
        let rows = |form: Form| {
            let columns = form.matrix(&a).unwrap().to_columns();
            [0, 1, 2, 3].map(|i| [0, 1, 2, 3].map(|j: usize| columns[j][i]))
        };
        let general = [[1.0, -2.0, 3.0, 0.0], [2.0, 1.0, 0.0, 3.0], [0.0, 0.0, 0.0, 4.0], [0.0, 0.0, -4.0, 0.0]];
        assert_eq!(rows(Form::General), general);
        let symmetric = [[1.0, 2.0, 3.0, 0.0], [2.0, -1.0, 0.0, -3.0], [0.0, 0.0, 0.0, -4.0], [0.0, 0.0, -4.0, 0.0]];
        assert_eq!(rows(Form::Symmetric), symmetric);
        for form in FORMS {
            let real = form.matrix(&a).unwrap();
            assert_eq!((real.n_rows(), real.nnz()), (4, 12), "blocks are full");
            assert!(real.values().iter().all(|v| *v != 0.0 || v.is_sign_positive()));
        }
        assert_eq!(real_form(&a).unwrap(), Form::General.matrix(&a).unwrap());
    }

    #[test]
    fn real_forms_are_told_from_others() {
        let entries = |values: [f64; 4]| Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap();
        assert!(is_real_form(&entries([1.0, -2.0, 2.0, 1.0])));
        assert!(is_real_form(&entries([0.0, 0.0, 0.0, 0.0])));
        for values in [[1.0, 2.0, 2.0, 1.0], [1.0, -2.0, 2.0, 1.5], [1.0, -2.0, -2.0, 1.0]] {
            assert!(!is_real_form(&entries(values)), "{values:?}");
        }
        let of = |n: usize, cols: &[u32]| {
            let rows: Vec<u32> = (0..cols.len() as u32).collect();
            Csr::from_triplets(n, n, &rows, cols, &vec![1.0; cols.len()]).unwrap()
        };
        for (n, cols) in [(0, &[][..]), (2, &[]), (3, &[0, 1, 2]), (2, &[0, 1]), (4, &[0, 1])] {
            assert!(!is_real_form(&of(n, cols)), "{n}: {cols:?}");
        }
        // rows without entries, and blocks that do not begin at an even column
        let late = Csr::new(6, 6, vec![0, 0, 0, 0, 0, 2, 4], vec![2, 3, 2, 3], vec![5.0, 1.0, -1.0, 5.0]).unwrap();
        assert!(is_real_form(&late));
        let odd = Csr::new(4, 4, vec![0, 2, 4, 4, 4], vec![1, 2, 1, 2], vec![5.0, 1.0, -1.0, 5.0]).unwrap();
        assert!(!is_real_form(&odd));
    }

    #[test]
    fn vectors_by_hand() {
        let x = [z(1.0, 2.0), z(3.0, -4.0)];
        assert_eq!(Form::General.unknowns(&x), [1.0, 2.0, 3.0, -4.0]);
        assert_eq!(Form::Symmetric.unknowns(&x), [1.0, -2.0, 3.0, 4.0]);
        for form in FORMS {
            assert_eq!(form.right_hand_side(&x), [1.0, 2.0, 3.0, -4.0]);
            assert_eq!(form.solution(&form.unknowns(&x)), x);
        }
    }

    #[test]
    fn other_shapes() {
        let wide = Csr::from_triplets(1, 2, &[0], &[1], &[z(1.0, 3.0)]).unwrap();
        let form = Csr::new(2, 4, vec![0, 2, 4], vec![2, 3, 2, 3], vec![1.0, -3.0, 3.0, 1.0]).unwrap();
        assert_eq!(real_form(&wide).unwrap(), form);
        let nothing = Csr::<Complex64>::from_triplets(0, 0, &[], &[], &[]).unwrap();
        assert_eq!(real_form(&nothing).unwrap().n_rows(), 0);
    }

    fn number() -> impl Strategy<Value = Complex64> {
        (-2.0..2.0f64, prop_oneof![Just(0.0), -2.0..2.0f64]).prop_map(|(re, im)| z(re, im))
    }

    /// A square matrix of random places and values, and two vectors of its length.
    fn system() -> impl Strategy<Value = (Csr<Complex64>, Vec<Complex64>, Vec<Complex64>)> {
        (1..12usize).prop_flat_map(|n| {
            let entry = (0..n as u32, 0..n as u32, number());
            let vector = || prop::collection::vec(number(), n);
            (prop::collection::vec(entry, 0..60), vector(), vector()).prop_map(move |(entries, x, b)| {
                let rows: Vec<u32> = entries.iter().map(|e| e.0).collect();
                let cols: Vec<u32> = entries.iter().map(|e| e.1).collect();
                let values: Vec<Complex64> = entries.iter().map(|e| e.2).collect();
                (Csr::from_triplets(n, n, &rows, &cols, &values).unwrap(), x, b)
            })
        })
    }

    /// A plus its image across the diagonal, with the values there changed by `image`.
    fn plus_image(a: &Csr<Complex64>, image: impl Fn(Complex64) -> Complex64) -> Csr<Complex64> {
        let (mut rows, mut cols, mut values) = a.to_triplets();
        let both = [rows.clone(), cols.clone()];
        rows.extend(&both[1]);
        cols.extend(&both[0]);
        values.extend(values.clone().into_iter().map(image));
        Csr::from_triplets(a.n_rows(), a.n_rows(), &rows, &cols, &values).unwrap()
    }

    proptest! {
        #[test]
        fn products_and_residuals_are_those_of_complex_numbers((a, x, b) in system()) {
            let ax = a.mul_vec(&x);
            let residual: f64 = ax.iter().zip(&b).map(|(ax, b)| (b - ax).norm_sqr()).sum::<f64>().sqrt();
            prop_assert_eq!(is_real_form(&real_form(&a).unwrap()), a.nnz() > 0);
            for form in FORMS {
                let real = form.matrix(&a).unwrap();
                let product = real.mul_vec(&form.unknowns(&x));
                for (p, q) in product.iter().zip(form.right_hand_side(&ax)) {
                    prop_assert!((p - q).abs() < 1e-12);
                }
                let norm: f64 = product.iter().zip(form.right_hand_side(&b)).map(|(p, b)| (b - p).powi(2)).sum();
                prop_assert!((norm.sqrt() - residual).abs() < 1e-12);
                prop_assert_eq!(&form.solution(&form.unknowns(&x)), &x);
            }
        }

        #[test]
        fn symmetries_are_kept((a, x, _) in system()) {
            let symmetric = plus_image(&a, |v| v);
            prop_assert!(Stats::of(&Form::Symmetric.matrix(&symmetric).unwrap()).numerically_symmetric);
            let hermitian = plus_image(&a, |v| v.conj());
            let real = real_form(&hermitian).unwrap();
            prop_assert!(Stats::of(&real).numerically_symmetric);
            // xᴴ A x, which is real
            let y = Form::General.unknowns(&x);
            let energy: Complex64 = hermitian.mul_vec(&x).iter().zip(&x).map(|(ax, x)| ax * x.conj()).sum();
            let real: f64 = real.mul_vec(&y).iter().zip(&y).map(|(ay, y)| ay * y).sum();
            prop_assert!((energy.re - real).abs() < 1e-11 && energy.im.abs() < 1e-11);
        }
    }
}
