//! The small problem of Arnoldi's process: y with the least ‖β e₁ − H y‖, where H grows by a column a step.

use crate::matrix::Complex64;

/// H = Q R for the columns so far, by Givens rotations, one for each. All numbers follow from sums that all ranks see alike, so all have
/// the same. They are complex; those of a real system have no imaginary part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeastSquares {
    /// The columns of R.
    r: Vec<Vec<Complex64>>,
    /// The cosine and the sine of each rotation.
    rotations: Vec<(Complex64, f64)>,
    /// Qᴴ β e₁: behind as many elements as there are columns comes the one whose size is that of the residual.
    g: Vec<Complex64>,
    /// ‖H‖², by its elements.
    square: f64,
    /// The precision in which the columns are known.
    epsilon: f64,
}

impl LeastSquares {
    /// The problem without columns, which will be known to `epsilon`.
    pub(super) fn new(beta: f64, epsilon: f64) -> Self {
        Self { r: Vec::new(), rotations: Vec::new(), g: vec![beta.into()], square: 0.0, epsilon }
    }

    /// Takes a column, of which `below` comes below the diagonal. It is left out, and that is told, if y would become so large that the
    /// errors of H y are above the residual that there is: so it is where A is singular, or nearly so (Brown and Walker 1997, doi
    /// 10.1137/S0895479894262339). O(k²) for k columns.
    pub(super) fn add(&mut self, column: &[Complex64], below: f64) -> bool {
        let former = (self.residual(), self.square);
        let mut column = column.to_vec();
        self.square = column.iter().fold(self.square + below * below, |sum, h| sum + h.norm_sqr());
        for (i, (c, s)) in self.rotations.iter().enumerate() {
            let (upper, lower) = (column[i], column[i + 1]);
            (column[i], column[i + 1]) = (c.conj() * upper + lower * s, c * lower - upper * s);
        }
        let k = self.r.len();
        let diagonal = column[k].norm().hypot(below);
        let (c, s) = (column[k] / diagonal, below / diagonal);
        column[k] = diagonal.into();
        self.r.push(column);
        self.rotations.push((c, s));
        let last = self.g[k];
        self.g[k] = c.conj() * last;
        self.g.push(-last * s);
        let y = self.solve().iter().fold(0.0, |sum, y| sum + y.norm_sqr()).sqrt();
        let is_of_use = self.epsilon * self.square.sqrt() * y <= former.0 || !self.square.is_finite();
        if !is_of_use {
            self.r.pop();
            self.rotations.pop();
            self.g.truncate(k);
            self.g.push(last);
            self.square = former.1;
        }
        is_of_use
    }

    /// The least ‖β e₁ − H y‖.
    pub(super) fn residual(&self) -> f64 {
        self.g[self.r.len()].norm()
    }

    /// y, an element for each column.
    pub(super) fn solve(&self) -> Vec<Complex64> {
        let mut y = self.g[..self.r.len()].to_vec();
        for (k, column) in self.r.iter().enumerate().rev() {
            y[k] /= column[k].re;
            for i in 0..k {
                let product = column[i] * y[k];
                y[i] -= product;
            }
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn z<const N: usize>(values: [f64; N]) -> Vec<Complex64> {
        values.map(Complex64::from).to_vec()
    }

    #[test]
    fn by_hand() {
        // H = [3; 4], β = 5: y = 15 / 25, and what is left is 5 · 4 / 5
        let mut small = LeastSquares::new(5.0, 1e-16);
        assert_eq!((small.residual(), small.solve()), (5.0, vec![]));
        assert!(small.add(&z([3.0]), 4.0));
        assert!((small.residual() - 4.0).abs() < 1e-15 && (small.solve()[0].re - 0.6).abs() < 1e-15);
        // H = [0; 1], then [0 1; 1 0]: nothing is gained by the first column, all by the second
        let mut turn = LeastSquares::new(2.0, 1e-16);
        assert!(turn.add(&z([0.0]), 1.0));
        assert_eq!((turn.residual(), turn.solve()), (2.0, z([0.0])));
        assert!(turn.add(&z([1.0, 0.0]), 0.0));
        assert_eq!((turn.residual(), turn.solve()), (0.0, z([0.0, 2.0])));
    }

    #[test]
    fn what_makes_it_singular_is_left_out() {
        let mut small = LeastSquares::new(2.0, 1e-16);
        assert!(!small.add(&z([0.0]), 0.0));
        assert_eq!((small.residual(), small.solve()), (2.0, vec![]));
        // [1 1; 1 1] has rank 1
        let mut small = LeastSquares::new(2.0, 1e-16);
        assert!(small.add(&z([1.0]), 1.0) && !small.add(&z([1.0, 1.0]), 0.0));
        assert!((small.residual() - 2f64.sqrt()).abs() < 1e-15 && (small.solve()[0].re - 1.0).abs() < 1e-15);
        // so has [1 1; 1 1 + δ], if δ is an error; if not, y is as large as it has to be
        assert!(!small.add(&z([1.0, 1.0 + f64::EPSILON]), 0.0));
        assert!((small.residual() - 2f64.sqrt()).abs() < 1e-15 && small.solve().len() == 1);
        assert!(small.add(&z([1.0, 1.0 + 1e-12]), 0.0) && (small.solve()[1].re + 2e12).abs() < 2e9);
        // what is not a number is for others to see
        assert!(small.add(&z([1.0, f64::NAN, 0.0]), 1.0) && small.residual().is_nan());
    }

    proptest! {
        /// At the least residual, that is orthogonal to the columns.
        #[test]
        fn normal_equations(
            k in 1usize..8, parts in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64), 80), beta in 0.1..9.0, is_complex: bool,
        ) {
            let number = |(re, im)| Complex64::new(re, if is_complex { im } else { 0.0 });
            let entry = |i: usize, j: usize| match parts[9 * j + i] {
                (re, _) if i == j + 1 => Complex64::from(re.abs() + 0.1),
                parts => number(parts),
            };
            let mut small = LeastSquares::new(beta, 1e-16);
            for j in 0..k {
                prop_assert!(small.add(&(0..=j).map(|i| entry(i, j)).collect::<Vec<_>>(), entry(j + 1, j).re));
            }
            let y = small.solve();
            prop_assert!(is_complex || y.iter().all(|y| y.im == 0.0));
            let of_row = |i: usize| (0..k).filter(|j| i <= j + 1).map(|j| entry(i, j) * y[j]).sum::<Complex64>();
            let rest: Vec<Complex64> = (0..=k).map(|i| if i == 0 { beta - of_row(0) } else { -of_row(i) }).collect();
            let norm = rest.iter().map(|r| r.norm_sqr()).sum::<f64>().sqrt();
            prop_assert!((norm - small.residual()).abs() < 1e-10 * beta, "{} and {}", norm, small.residual());
            for j in 0..k {
                let of_column: Complex64 = (0..=j + 1).map(|i| entry(i, j).conj() * rest[i]).sum();
                prop_assert!(of_column.norm() < 1e-9 * beta, "column {}: {}", j, of_column);
            }
        }
    }
}
