//! Right-hand sides that need no file.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use declive::Csr;
use declive::matrix::equivalent::Form;
use declive::matrix::gallery::{random_element, random_vector};
use declive::matrix::{Complex64, Scalar};

/// How to make a right-hand side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// Every element is 1.
    #[default]
    Ones,
    /// A times a vector of ones, so that the solution is known.
    RowSums,
    /// Random, a column for each of these seeds.
    Random(Seeds),
    /// A times such vectors: what a singular system has a solution for, too.
    Products(Seeds),
}

/// Seeds from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seeds {
    first: u64,
    last: u64,
}

impl Recipe {
    /// The right-hand sides for the system of `a`, one or more.
    pub(crate) fn make<T: Random>(self, a: &Csr<T>) -> Vec<Vec<T>> {
        let one = |b| vec![b];
        match self {
            Self::Ones => one(vec![T::ONE; a.n_rows()]),
            Self::RowSums => one(a.mul_vec(&vec![T::ONE; a.n_cols()])),
            Self::Random(seeds) => seeds.each().map(|seed| T::random_vector(a.n_rows(), seed)).collect(),
            Self::Products(seeds) => seeds.each().map(|seed| a.mul_vec(&T::random_vector(a.n_cols(), seed))).collect(),
        }
    }
}

impl Recipe {
    /// These rows of the right-hand sides; `product` gives them of A times the vector with such elements.
    pub(crate) fn make_part(
        self,
        own: Range<u64>,
        product: impl Fn(&(dyn Fn(u64) -> f64 + Sync)) -> Vec<f64>,
    ) -> Vec<Vec<f64>> {
        match self {
            Self::Ones => vec![vec![1.0; (own.end - own.start) as usize]],
            Self::RowSums => vec![product(&|_| 1.0)],
            Self::Random(seeds) => {
                seeds.each().map(|seed| own.clone().map(|row| random_element(seed, row)).collect()).collect()
            }
            Self::Products(seeds) => seeds.each().map(|seed| product(&|row| random_element(seed, row))).collect(),
        }
    }
}

impl Seeds {
    /// The most of them.
    const MOST: u64 = 10_000;

    fn each(self) -> impl Iterator<Item = u64> {
        self.first..=self.last
    }
}

impl FromStr for Seeds {
    type Err = ();

    fn from_str(s: &str) -> Result<Self, ()> {
        let (first, last) = s.split_once("..").unwrap_or((s, s));
        let [first, last] = [first, last].map(str::parse);
        match (first, last) {
            (Ok(first), Ok(last)) if first <= last && last - first < Self::MOST => Ok(Self { first, last }),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "{first}") } else { write!(f, "{first}..{last}") }
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
                random.or_else(|| seed("A*random:").map(Self::Products)).ok_or_else(|| {
                    "write ones, A*ones, random:SEED or A*random:SEED, with a whole number, or 1..8 for eight columns"
                        .into()
                })
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
        for s in ["ones", "A*ones", "random:7", "A*random:7", "random:1..8"] {
            assert_eq!(s.parse::<Recipe>().unwrap().to_string(), s);
        }
        for s in ["", "one", "random", "random:", "random:x", "a*ones", "random:8..1", "random:1..99999999"] {
            assert!(s.parse::<Recipe>().is_err(), "{s}");
        }
    }

    #[test]
    fn row_sums() {
        let a = Csr::from_triplets(2, 2, &[0, 0, 1], &[0, 1, 1], &[2.0, -1.0, 3.0]).unwrap();
        assert_eq!(Recipe::RowSums.make(&a), [[1.0, 3.0]]);
        assert_eq!(Recipe::Ones.make(&a), [[1.0, 1.0]]);
        let seeds = Seeds { first: 3, last: 4 };
        let x = Recipe::Random(seeds).make(&a);
        let products = [0, 1].map(|k| [2.0 * x[k][0] - x[k][1], 3.0 * x[k][1]]);
        assert_eq!(Recipe::Products(seeds).make(&a), products);
    }

    #[test]
    fn complex_ones_and_random_vectors() {
        let i = Complex64::I;
        let a = Csr::from_triplets(2, 2, &[0, 0, 1], &[0, 1, 1], &[2.0 * i, -i, 3.0 + i]).unwrap();
        assert_eq!(Recipe::Ones.make(&a), [[Complex64::ONE; 2]]);
        assert_eq!(Recipe::RowSums.make(&a), [[i, 3.0 + i]]);
        let seeds = Seeds { first: 3, last: 3 };
        let x = Recipe::Random(seeds).make(&a).remove(0);
        assert!(x.iter().all(|x| x.re != 0.0 && x.im != 0.0 && x.re != x.im));
        assert_eq!(Recipe::Products(seeds).make(&a), [[2.0 * i * x[0] - i * x[1], (3.0 + i) * x[1]]]);
    }
}
