//! Right-hand sides that need no file.

use std::fmt;
use std::str::FromStr;

use declive::Csr;
use declive::matrix::equivalent::Form;
use declive::matrix::gallery::random_vector;
use declive::matrix::{Complex64, Scalar};

/// How to make a right-hand side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// Every element is 1.
    #[default]
    Ones,
    /// A times a vector of ones, so that the solution is known.
    RowSums,
    /// Random, by this seed.
    Random(u64),
    /// A times such a vector: what a singular system has a solution for, too.
    Products(u64),
}

impl Recipe {
    /// The right-hand side for the system of `a`.
    pub(crate) fn make<T: Random>(self, a: &Csr<T>) -> Vec<T> {
        match self {
            Self::Ones => vec![T::ONE; a.n_rows()],
            Self::RowSums => a.mul_vec(&vec![T::ONE; a.n_cols()]),
            Self::Random(seed) => T::random_vector(a.n_rows(), seed),
            Self::Products(seed) => a.mul_vec(&T::random_vector(a.n_cols(), seed)),
        }
    }
}

/// Numbers that random vectors are made of.
pub(crate) trait Random: Scalar {
    /// A vector of this length by this seed, real and imaginary parts independent.
    fn random_vector(n: usize, seed: u64) -> Vec<Self>;
}

impl Random for f64 {
    fn random_vector(n: usize, seed: u64) -> Vec<Self> {
        random_vector(n, seed)
    }
}

impl Random for Complex64 {
    fn random_vector(n: usize, seed: u64) -> Vec<Self> {
        Form::General.solution(&random_vector(2 * n, seed))
    }
}

impl FromStr for Recipe {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "ones" => Ok(Self::Ones),
            "A*ones" => Ok(Self::RowSums),
            _ => {
                let seed = |start| s.strip_prefix(start).and_then(|seed| seed.parse().ok());
                let random = seed("random:").map(Self::Random);
                random
                    .or_else(|| seed("A*random:").map(Self::Products))
                    .ok_or_else(|| "write ones, A*ones, random:SEED or A*random:SEED, with a whole number".into())
            }
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ones => f.write_str("ones"),
            Self::RowSums => f.write_str("A*ones"),
            Self::Random(seed) => write!(f, "random:{seed}"),
            Self::Products(seed) => write!(f, "A*random:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_parse_and_print() {
        for s in ["ones", "A*ones", "random:7", "A*random:7"] {
            assert_eq!(s.parse::<Recipe>().unwrap().to_string(), s);
        }
        for s in ["", "one", "random", "random:", "random:x", "a*ones"] {
            assert!(s.parse::<Recipe>().is_err(), "{s}");
        }
    }

    #[test]
    fn row_sums() {
        let a = Csr::from_triplets(2, 2, &[0, 0, 1], &[0, 1, 1], &[2.0, -1.0, 3.0]).unwrap();
        assert_eq!(Recipe::RowSums.make(&a), [1.0, 3.0]);
        assert_eq!(Recipe::Ones.make(&a), [1.0, 1.0]);
        let x = Recipe::Random(3).make(&a);
        assert_eq!(Recipe::Products(3).make(&a), [2.0 * x[0] - x[1], 3.0 * x[1]]);
    }

    #[test]
    fn complex_ones_and_random_vectors() {
        let i = Complex64::I;
        let a = Csr::from_triplets(2, 2, &[0, 0, 1], &[0, 1, 1], &[2.0 * i, -i, 3.0 + i]).unwrap();
        assert_eq!(Recipe::Ones.make(&a), [Complex64::ONE; 2]);
        assert_eq!(Recipe::RowSums.make(&a), [i, 3.0 + i]);
        let x = Recipe::Random(3).make(&a);
        assert!(x.iter().all(|x| x.re != 0.0 && x.im != 0.0 && x.re != x.im));
        assert_eq!(Recipe::Products(3).make(&a), [2.0 * i * x[0] - i * x[1], (3.0 + i) * x[1]]);
    }
}
