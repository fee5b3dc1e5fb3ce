//! A queueing network.

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::{assemble, too_large};

/// I − Pᵀ for customers that go round three queues: a singular, unsymmetric M-matrix with a known null vector.
///
/// N customers go from queue 1 to 2 to 3 and back to 1. A state is how many there are in each; there are
/// n = (N + 1)(N + 2) / 2 of them, (k₁, k₂, N − k₁ − k₂) in the order of k₂ and, for the same k₂, of k₁. In a step of
/// the chain each queue i serves a customer with probability μᵢ(k) / 3, where μᵢ(k) = k / (k + i) for a queue of k, and no
/// two of them do. P has what leads from a state to another in a row; so column j of the matrix has, for state j,
///
/// ```text
/// diagonal: (μ₁(k₁) + μ₂(k₂) + μ₃(k₃)) / 3,     −μᵢ(kᵢ) / 3 in the row of the state after queue i has served
/// ```
///
/// nnz = 3 N (N + 1) / 2 + n. The pattern is unsymmetric. Every column adds up to 0 but for rounding: ones are the null vector
/// of Aᵀ, so A x = b has solutions just if the elements of b add up to 0, as those of A times any vector do. They
/// differ by multiples of the null vector of A, which is the stationary distribution, here of product form:
///
/// ```text
/// π(k₁, k₂, k₃) ∝ C(k₁ + 1, 1) · C(k₂ + 2, 2) · C(k₃ + 3, 3)
/// ```
///
/// J. R. Jackson (1963), doi 10.1287/mnsc.10.1.131, and W. J. Gordon, G. F. Newell (1967), doi 10.1287/opre.15.2.254, on
/// the product form; B. Philippe, Y. Saad, W. J. Stewart, "Numerical methods in Markov chain modeling" (1992),
/// doi 10.1287/opre.40.6.1156, on such systems.
///
/// # Errors
/// [`Error::Usage`] if there are no customers or too many.
pub fn markov(customers: usize) -> Result<Csr> {
    if customers == 0 {
        return Err(Error::Usage("queues without customers never change".into()));
    }
    // n ≤ 2³² for 92 680 at most
    let states = if customers < 1 << 17 { (customers + 1) * (customers + 2) / 2 } else { usize::MAX };
    if states > Csr::MAX_DIM {
        return Err(too_large(format_args!("the states of {customers} customers in three queues")));
    }
    let line = Triangle { side: customers };
    let chance = |queue: usize, length: usize| length as f64 / (3 * (length + queue)) as f64;
    assemble(
        states,
        |i| {
            let (x, y) = line.place(i);
            1 + usize::from(y > 0) + usize::from(x > 0) + usize::from(x + y < customers)
        },
        |i, row| {
            let (x, y) = line.place(i);
            let z = customers - x - y;
            if y > 0 {
                row.push(line.number(x + 1, y - 1), -chance(1, x + 1));
            }
            if x > 0 {
                row.push(i - 1, -chance(3, z + 1));
            }
            row.push(i, chance(1, x) + chance(2, y) + chance(3, z));
            if z > 0 {
                row.push(line.number(x, y + 1), -chance(2, y + 1));
            }
        },
    )
}

/// The places (x, y) with x + y ≤ `side`, line by line.
struct Triangle {
    side: usize,
}

impl Triangle {
    /// How many places lines below `y` have.
    fn begin(&self, y: usize) -> usize {
        y * (2 * self.side + 3 - y) / 2
    }

    fn number(&self, x: usize, y: usize) -> usize {
        self.begin(y) + x
    }

    fn place(&self, i: usize) -> (usize, usize) {
        let (mut y, mut beyond) = (0, self.side + 1);
        while beyond - y > 1 {
            let middle = y.midpoint(beyond);
            if self.begin(middle) <= i { y = middle } else { beyond = middle }
        }
        (i - self.begin(y), y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_by_hand() {
        // one customer goes round: from queue 3 (state 0) to 1 (state 1) to 2 (state 2)
        let a = markov(1).unwrap();
        let (one, two, three) = (1.0 / 6.0, 1.0 / 9.0, 1.0 / 12.0);
        assert_eq!(a.to_columns(), [[three, -three, 0.0], [0.0, one, -one], [-two, 0.0, two]]);
        let a = markov(2).unwrap();
        assert_eq!((a.n_rows(), a.nnz()), (6, 9 + 6));
        // state 3 is (0, 1, 1): it comes from (1, 0, 1) by queue 1 and from (0, 2, 0) by queue 2
        assert_eq!(a.row(3), (&[1, 3, 5][..], &[-1.0 / 6.0, two + three, -2.0 / 12.0][..]));
    }

    #[test]
    fn places_and_numbers_are_inverse() {
        for side in [1, 2, 3, 10, 77] {
            let line = Triangle { side };
            let mut next = 0;
            for y in 0..=side {
                for x in 0..=side - y {
                    assert_eq!((line.number(x, y), line.place(next)), (next, (x, y)));
                    next += 1;
                }
            }
            assert_eq!(next, line.begin(side + 1));
        }
        let line = Triangle { side: 92_680 };
        assert_eq!(line.place(line.begin(92_680)), (0, 92_680));
        assert_eq!(line.place(line.begin(50_000) - 1), (92_680 - 49_999, 49_999));
    }

    #[test]
    fn null_vectors_on_both_sides() {
        for customers in [1, 2, 5, 40] {
            let a = markov(customers).unwrap();
            let line = Triangle { side: customers };
            let stationary: Vec<f64> = (0..a.n_rows())
                .map(|i| {
                    let (x, y) = line.place(i);
                    let z = customers - x - y;
                    ((x + 1) * ((y + 1) * (y + 2) / 2) * ((z + 1) * (z + 2) * (z + 3) / 6)) as f64
                })
                .collect();
            let largest = stationary.iter().copied().fold(0.0, f64::max);
            assert!(a.mul_vec(&stationary).into_iter().all(|r| r.abs() < 1e-14 * largest));
            for column in a.to_columns() {
                assert!(column.iter().sum::<f64>().abs() < 1e-15);
            }
        }
    }
}
