//! Problems by name: `jumps:64,seed=7`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::grid::Grid;
use super::problem::{Build, Number, Problem};
use super::random_permutation;
use crate::error::{Error, Result};
use crate::matrix::reorder::permuted;
use crate::matrix::{AnyCsr, Csr, Scalar};

/// A test system that can be built: a [`Problem`] with its size, seed and parameters.
///
/// The text form is `name:size` and then `,key=value` for whatever differs from the defaults: `poisson3d:100`,
/// `poisson2d:300x200`, `jumps:64,seed=7`, `anisotropic:50,epsilon=1e-4`, `band:1000,width=8`. One size stands for
/// all axes. With `scramble=SEED`, which every problem takes, rows and columns are in a random order, as if nobody had
/// given a thought to how unknowns are numbered. Parsing and printing are inverse to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    problem: &'static Problem,
    /// Sizes along the axes of the problem, 1 along the others.
    pub(super) sides: [usize; 3],
    pub(super) seed: u64,
    /// One for each parameter of the problem.
    pub(super) values: Vec<f64>,
    /// The seed of the order of rows and columns, where that is random.
    scramble: Option<u64>,
}

impl Spec {
    /// The seed where none is given.
    pub const SEED: u64 = 1;

    /// What it is a case of.
    #[must_use]
    pub fn problem(&self) -> &'static Problem {
        self.problem
    }

    /// The sizes along the axes of the problem, one to three.
    #[must_use]
    pub fn sides(&self) -> &[usize] {
        &self.sides[..self.problem.axes]
    }

    /// The seed; of no consequence to problems that are not random.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The seed of the random order of its rows and columns; none if it has its usual order.
    #[must_use]
    pub fn scramble(&self) -> Option<u64> {
        self.scramble
    }

    /// Builds a real matrix, in parallel; costs O(nnz), or O(nnz log nnz) for graphs. A random order takes the memory of
    /// the matrix once more meanwhile.
    ///
    /// # Errors
    /// [`Error::Usage`] if 32-bit indices can't address it, or if it is complex; [`Error::OutOfMemory`] if it doesn't fit.
    pub fn build(&self) -> Result<Csr> {
        match self.problem.build {
            Build::Real(build) => self.in_order(build(self)?),
            Build::Complex(_) => {
                Err(Error::Usage(format!("{} is complex, and a real matrix is needed", self.problem.name)))
            }
        }
    }

    /// Builds only the rows that `which` chooses, given the number of all, as a matrix of all columns. None if rows of this problem
    /// are not made apart from each other: those of random graphs, finite elements, and whatever is in a random order.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub(crate) fn build_rows(&self, which: impl FnOnce(usize) -> Range<usize>) -> Result<Option<Csr>> {
        match self.problem.rows {
            Some(rows) if self.scramble.is_none() => {
                let grid = Grid::new(self.sides, 1)?;
                rows(self, grid, which(grid.points)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Builds the matrix, real or complex, as [`build`](Self::build) does.
    ///
    /// # Errors
    /// [`Error::Usage`] if 32-bit indices can't address it; [`Error::OutOfMemory`] if it doesn't fit.
    pub fn build_any(&self) -> Result<AnyCsr> {
        match self.problem.build {
            Build::Real(_) => self.build().map(AnyCsr::Real),
            Build::Complex(build) => self.in_order(build(self)?).map(AnyCsr::Complex),
        }
    }

    /// The coordinates of the nodes, of which each has as many unknowns, in the order of the rows.
    ///
    /// # Errors
    /// [`Error::Usage`] for a problem without nodes that are known, and for rows in a random order.
    pub fn coordinates(&self) -> Result<Vec<[f64; 3]>> {
        match self.problem.coordinates {
            Some(_) if self.scramble.is_some() => {
                Err(Error::Usage(format!("{self}: rows in a random order don't have those of a node together")))
            }
            Some(coordinates) => coordinates(self),
            None => Err(Error::Usage(format!("{} has no coordinates of nodes", self.problem.name))),
        }
    }

    fn in_order<T: Scalar>(&self, a: Csr<T>) -> Result<Csr<T>> {
        let Some(seed) = self.scramble else { return Ok(a) };
        let (m, n) = (a.n_rows(), a.n_cols());
        if m == n {
            return permuted(&a, &random_permutation(n, seed));
        }
        let [of_rows, of_columns] = [m, n].map(|len| random_permutation(len, seed).inverse());
        let moved = |places: Vec<u32>, to: &[u32]| places.iter().map(|&k| to[k as usize]).collect::<Vec<u32>>();
        let (rows, cols, values) = a.to_triplets();
        Csr::from_triplets(m, n, &moved(rows, of_rows.order()), &moved(cols, of_columns.order()), &values)
    }

    fn parse_sides(problem: &Problem, text: &str) -> Result<[usize; 3]> {
        let wrong = || {
            let all = ["one number", "one number or two", "one number or three"][problem.axes - 1];
            let name = problem.name;
            Error::Usage(format!("{name}:{text}: the size must be {all}, each at least 1, as in {}", problem.example()))
        };
        let mut given = Vec::new();
        for side in text.split('x') {
            // digits only: `parse` would take a sign
            let digits = side.bytes().all(|b| b.is_ascii_digit());
            given.push(side.parse().ok().filter(|s| digits && *s > 0usize).ok_or_else(wrong)?);
        }
        let mut sides = [1; 3];
        match given[..] {
            [side] => sides[..problem.axes].fill(side),
            _ if given.len() == problem.axes => sides[..problem.axes].copy_from_slice(&given),
            _ => return Err(wrong()),
        }
        Ok(sides)
    }

    /// Takes one `key=value`.
    fn set(&mut self, text: &str) -> Result<()> {
        let problem = self.problem;
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let seed =
            || value.parse().map_err(|_| Error::Usage(format!("{text}: the seed must be a whole number below 2^64")));
        if key == "seed" && problem.seeded {
            self.seed = seed()?;
            return Ok(());
        }
        if key == "scramble" {
            self.scramble = Some(seed()?);
            return Ok(());
        }
        match problem.parameters.iter().position(|p| p.name == key) {
            Some(k) => self.values[k] = problem.parameters[k].parse(value)?,
            None => {
                let mut keys: Vec<_> = problem.parameters.iter().map(|p| p.name).collect();
                keys.extend(problem.seeded.then_some("seed"));
                keys.push("scramble");
                let keys = keys.join(", ");
                return Err(Error::Usage(format!("{} has no parameter {key:?}; it takes {keys}", problem.name)));
            }
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (head, settings) = text.split_once(',').map_or((text, None), |(head, rest)| (head, Some(rest)));
        let (name, size) = head.split_once(':').map_or((head, None), |(name, size)| (name, Some(size)));
        let problem = Problem::named(name)?;
        let size = size.ok_or_else(|| Error::Usage(format!("{name} needs a size, as in {}", problem.example())))?;
        let sides = Self::parse_sides(problem, size)?;
        let values = problem.parameters.iter().map(|p| p.default).collect();
        let mut spec = Self { problem, sides, seed: Self::SEED, values, scramble: None };
        let mut seen = Vec::new();
        for setting in settings.into_iter().flat_map(|s| s.split(',')) {
            spec.set(setting)?;
            let key = setting.split('=').next();
            if seen.contains(&key) {
                return Err(Error::Usage(format!("{text}: {setting} is set twice")));
            }
            seen.push(key);
        }
        Ok(spec)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides = self.sides();
        write!(f, "{}:{}", self.problem.name, sides[0])?;
        if sides.iter().any(|s| *s != sides[0]) {
            sides[1..].iter().try_for_each(|s| write!(f, "x{s}"))?;
        }
        for (p, value) in self.problem.parameters.iter().zip(&self.values) {
            if *value != p.default {
                write!(f, ",{}={}", p.name, Number(*value))?;
            }
        }
        if self.seed != Self::SEED {
            write!(f, ",seed={}", self.seed)?;
        }
        if let Some(seed) = self.scramble {
            write!(f, ",scramble={seed}")?;
        }
        Ok(())
    }
}
