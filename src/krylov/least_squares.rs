//! The small problem of Arnoldi's process: y with the least ‖β e₁ − H y‖, where H grows by a column a step.

/// H = Q R for the columns so far, by Givens rotations, one for each. All numbers follow from sums that all ranks see alike, so all have
/// the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LeastSquares {
    /// The columns of R.
    r: Vec<Vec<f64>>,
    /// The cosine and the sine of each rotation.
    rotations: Vec<[f64; 2]>,
    /// Qᵀ β e₁: behind as many elements as there are columns comes the one whose size is that of the residual.
    g: Vec<f64>,
    /// ‖H‖², by its elements.
    square: f64,
    /// The precision in which the columns are known.
    epsilon: f64,
}

impl LeastSquares {
    /// The problem without columns, which will be known to `epsilon`.
    pub(super) fn new(beta: f64, epsilon: f64) -> Self {
        Self { r: Vec::new(), rotations: Vec::new(), g: vec![beta], square: 0.0, epsilon }
    }

    /// Takes a column, of which `below` comes below the diagonal. It is left out, and that is told, if y would become so large that the
    /// errors of H y are above the residual that there is: so it is where A is singular, or nearly so (Brown and Walker 1997, doi
    /// 10.1137/S0895479894262339). O(k²) for k columns.
    pub(super) fn add(&mut self, column: &[f64], below: f64) -> bool {
        let former = (self.residual(), self.square);
        let mut column = column.to_vec();
        self.square = column.iter().fold(self.square + below * below, |sum, h| sum + h * h);
        for (i, [c, s]) in self.rotations.iter().enumerate() {
            (column[i], column[i + 1]) = (c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]);
        }
        let k = self.r.len();
        let diagonal = column[k].hypot(below);
        let [c, s] = [column[k] / diagonal, below / diagonal];
        column[k] = diagonal;
        self.r.push(column);
        self.rotations.push([c, s]);
        let last = self.g[k];
        self.g[k] = c * last;
        self.g.push(-s * last);
        let y = self.solve().iter().fold(0.0, |sum, y| sum + y * y).sqrt();
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
        self.g[self.r.len()].abs()
    }

    /// y, an element for each column.
    pub(super) fn solve(&self) -> Vec<f64> {
        let mut y = self.g[..self.r.len()].to_vec();
        for (k, column) in self.r.iter().enumerate().rev() {
            y[k] /= column[k];
            for i in 0..k {
                y[i] -= column[i] * y[k];
            }
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        // H = [3; 4], β = 5: y = 15 / 25, and what is left is 5 · 4 / 5
        let mut small = LeastSquares::new(5.0, 1e-16);
        assert_eq!((small.residual(), small.solve()), (5.0, vec![]));
        assert!(small.add(&[3.0], 4.0));
        assert!((small.residual() - 4.0).abs() < 1e-15 && (small.solve()[0] - 0.6).abs() < 1e-15);
        // H = [0; 1], then [0 1; 1 0]: nothing is gained by the first column, all by the second
        let mut turn = LeastSquares::new(2.0, 1e-16);
        assert!(turn.add(&[0.0], 1.0));
        assert_eq!((turn.residual(), turn.solve()), (2.0, vec![0.0]));
        assert!(turn.add(&[1.0, 0.0], 0.0));
        assert_eq!((turn.residual(), turn.solve()), (0.0, vec![0.0, 2.0]));
    }

    #[test]
    fn what_makes_it_singular_is_left_out() {
        let mut small = LeastSquares::new(2.0, 1e-16);
        assert!(!small.add(&[0.0], 0.0));
        assert_eq!((small.residual(), small.solve()), (2.0, vec![]));
        // [1 1; 1 1] has rank 1
        let mut small = LeastSquares::new(2.0, 1e-16);
        assert!(small.add(&[1.0], 1.0) && !small.add(&[1.0, 1.0], 0.0));
        assert!((small.residual() - 2f64.sqrt()).abs() < 1e-15 && (small.solve()[0] - 1.0).abs() < 1e-15);
        // so has [1 1; 1 1 + δ], if δ is an error; if not, y is as large as it has to be
        assert!(!small.add(&[1.0, 1.0 + f64::EPSILON], 0.0));
        assert!((small.residual() - 2f64.sqrt()).abs() < 1e-15 && small.solve().len() == 1);
        assert!(small.add(&[1.0, 1.0 + 1e-12], 0.0) && (small.solve()[1] + 2e12).abs() < 2e9);
        // what is not a number is for others to see
        assert!(small.add(&[1.0, f64::NAN, 0.0], 1.0) && small.residual().is_nan());
    }

    proptest! {
        /// At the least residual, that is orthogonal to the columns.
        #[test]
        fn normal_equations(k in 1usize..8, entries in prop::collection::vec(-1.0..1.0f64, 64), beta in 0.1..9.0) {
            let entry = |i: usize, j: usize| if i == j + 1 { entries[9 * j].abs() + 0.1 } else { entries[8 * j + i] };
            let mut small = LeastSquares::new(beta, 1e-16);
            for j in 0..k {
                prop_assert!(small.add(&(0..=j).map(|i| entry(i, j)).collect::<Vec<_>>(), entry(j + 1, j)));
            }
            let y = small.solve();
            let of_row = |i: usize| (0..k).filter(|j| i <= j + 1).map(|j| entry(i, j) * y[j]).sum::<f64>();
            let rest: Vec<f64> = (0..=k).map(|i| if i == 0 { beta - of_row(0) } else { -of_row(i) }).collect();
            let norm = rest.iter().map(|r| r * r).sum::<f64>().sqrt();
            prop_assert!((norm - small.residual()).abs() < 1e-10 * beta, "{} and {}", norm, small.residual());
            for j in 0..k {
                let of_column: f64 = (0..=j + 1).map(|i| entry(i, j) * rest[i]).sum();
                prop_assert!(of_column.abs() < 1e-9 * beta, "column {}: {}", j, of_column);
            }
        }
    }
}
