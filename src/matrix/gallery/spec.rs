//! Problems by name: `jumps:64,seed=7`.

use std::fmt;
use std::str::FromStr;

use super::{
    Class, anisotropic, band, convection3d, dense_rows, elasticity3d, fit2d, gauge2d, graph_laplacian, helmholtz3d,
    helmholtz3d_absorbing, jumps, markov, neumann2d, poisson2d, poisson3d, poisson3d27, random_permutation, random_spd,
    stokes2d, tetrahedra, tridiagonal, variable,
};
use crate::error::{Error, Result};
use crate::matrix::reorder::permuted;
use crate::matrix::{AnyCsr, Complex64, Csr, Scalar};

/// A kind of test system.
pub struct Problem {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Along how many axes it has a size: 1, 2 or 3.
    axes: usize,
    /// Whether it takes a `seed`.
    pub seeded: bool,
    /// The numbers that shape it, besides its size and seed.
    pub parameters: &'static [Parameter],
    /// What kind of matrix it has.
    pub class: Class,
    build: Build,
}

/// What makes the matrix.
enum Build {
    Real(fn(&Spec) -> Result<Csr>),
    Complex(fn(&Spec) -> Result<Csr<Complex64>>),
}

/// A number that shapes a problem, `name=value` in a [`Spec`].
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Its value where none is given.
    pub default: f64,
    /// The smallest and the largest value.
    range: (f64, f64),
    whole: bool,
}

/// The largest `width` or `degree`; sizes are checked again with the number of rows.
const MANY: f64 = u32::MAX as f64;

const WAVENUMBER: Parameter = Parameter::real("wavenumber", "radians of a wave from point to point", 0.6, (1e-3, 10.0));

impl Problem {
    /// Every problem there is.
    pub const ALL: &'static [Self] = &[
        Self::new("poisson2d", "5-point Laplacian on a square", 2, &[], |s| poisson2d([s.sides[0], s.sides[1]])),
        Self::new("poisson3d", "7-point Laplacian in a cube", 3, &[], |s| poisson3d(s.sides)),
        Self::new("poisson3d27", "27-point operator of HPCG in a cube", 3, &[], |s| poisson3d27(s.sides)),
        Self::new(
            "anisotropic",
            "7-point diffusion, weak along z",
            3,
            &[Parameter::real("epsilon", "diffusion along z", 1e-3, (1e-12, 1e12))],
            |s| anisotropic(s.sides, s.values[0]),
        ),
        Self::new(
            "jumps",
            "diffusion through random blocks of two materials",
            3,
            &[Parameter::real("contrast", "diffusion in the second material", 1e4, (1e-12, 1e12))],
            |s| jumps(s.sides, s.values[0], s.seed),
        )
        .seeded(),
        Self::new(
            "variable",
            "diffusion with another lognormal coefficient in every cell",
            3,
            &[Parameter::real("sigma", "standard deviation of ln k", 1.0, (0.0, 10.0))],
            |s| variable(s.sides, s.values[0], s.seed),
        )
        .seeded(),
        Self::new(
            "elasticity3d",
            "linear elasticity of a clamped block, 3 unknowns a node; the size is in elements",
            3,
            &[],
            |s| elasticity3d(s.sides),
        ),
        Self::new(
            "tetrahedra",
            "linear elasticity as elasticity3d, on an unstructured mesh; the size is in cells of six tetrahedra",
            3,
            &[Parameter::whole("shuffle", "side of the blocks in which nodes are numbered at random", 8.0)],
            |s| tetrahedra(s.sides, s.values[0] as usize, s.seed),
        )
        .seeded(),
        Self::new(
            "graph-laplacian",
            "shifted Laplacian of a random graph, some rows very long",
            1,
            &[
                Parameter::whole("degree", "ties that a node adds", 4.0),
                Parameter { range: (1.0, 16.0), ..Parameter::whole("skew", "preference for early nodes", 2.0) },
                Parameter::real("shift", "added to the diagonal", 1e-2, (1e-10, 1e10)),
            ],
            |s| graph_laplacian(s.sides[0], s.values[0] as usize, s.values[1] as u32, s.values[2], s.seed),
        )
        .seeded(),
        Self::new(
            "random-spd",
            "random places and values, diagonally dominant",
            1,
            &[Parameter::whole("degree", "places that a row draws", 8.0)],
            |s| random_spd(s.sides[0], s.values[0] as usize, s.seed),
        )
        .seeded(),
        Self::new("tridiagonal", "second difference on a line: -1 2 -1", 1, &[], |s| tridiagonal(s.sides[0])),
        Self::new(
            "band",
            "dense band",
            1,
            &[Parameter::whole("width", "entries to either side of the diagonal", 8.0)],
            |s| band(s.sides[0], s.values[0] as usize),
        ),
        Self::new(
            "dense-rows",
            "a line of which some points are tied to all others: dense rows among sparse ones",
            1,
            &[Parameter::whole("dense", "rows that are full", 4.0)],
            |s| dense_rows(s.sides[0], s.values[0] as usize),
        ),
        Self::new("neumann2d", "5-point Laplacian in a closed square: constants are its null space", 2, &[], |s| {
            neumann2d([s.sides[0], s.sides[1]])
        })
        .of(Class::Semidefinite),
        Self::new(
            "helmholtz3d",
            "waves between the walls of a cube: 7-point Laplacian less wavenumber^2",
            3,
            &[WAVENUMBER],
            |s| helmholtz3d(s.sides, s.values[0]),
        )
        .of(Class::Indefinite),
        Self::new(
            "stokes2d",
            "slow flow on a staggered grid, no entries on the diagonal of pressures; the size is in cells",
            2,
            &[],
            |s| stokes2d([s.sides[0], s.sides[1]]),
        )
        .of(Class::Indefinite),
        Self::new(
            "convection3d",
            "7-point diffusion and upwind convection round a cube",
            3,
            &[Parameter::real("peclet", "largest cell Peclet number", 1.0, (0.0, 1e6))],
            |s| convection3d(s.sides, s.values[0]),
        )
        .of(Class::Unsymmetric),
        Self::new("markov", "I - P' of three queues in a circle; the size is in customers", 1, &[], |s| {
            markov(s.sides[0])
        })
        .of(Class::UnsymmetricSingular),
        Self::new(
            "fit2d",
            "heights at the nodes of a grid by those at points in its cells; the size is in cells",
            2,
            &[Parameter::whole("points", "random points in a cell", 4.0)],
            |s| fit2d([s.sides[0], s.sides[1]], s.values[0] as usize, s.seed),
        )
        .seeded()
        .of(Class::Rectangular),
        Self::complex(
            "helmholtz3d-absorbing",
            "waves in a cube whose faces absorb them, as helmholtz3d otherwise",
            3,
            &[
                WAVENUMBER,
                Parameter::real("damping", "imaginary part of the square of k, by its real part", 0.0, (0.0, 10.0)),
            ],
            Class::ComplexSymmetric,
            |s| helmholtz3d_absorbing(s.sides, s.values[0], s.values[1]),
        ),
        Self::complex(
            "gauge2d",
            "periodic 5-point Laplacian with random phases",
            2,
            &[
                Parameter::real("disorder", "of the phases, from none to any angle", 0.1, (0.0, 1.0)),
                Parameter::real("shift", "added to the diagonal", 1e-2, (1e-10, 1e10)),
            ],
            Class::HermitianPositiveDefinite,
            |s| gauge2d([s.sides[0], s.sides[1]], s.values[0], s.values[1], s.seed),
        )
        .seeded(),
    ];

    /// A symmetric positive definite problem without a seed.
    const fn new(
        name: &'static str,
        about: &'static str,
        axes: usize,
        parameters: &'static [Parameter],
        build: fn(&Spec) -> Result<Csr>,
    ) -> Self {
        let (class, build) = (Class::PositiveDefinite, Build::Real(build));
        Self { name, about, axes, seeded: false, parameters, class, build }
    }

    /// A complex problem without a seed.
    const fn complex(
        name: &'static str,
        about: &'static str,
        axes: usize,
        parameters: &'static [Parameter],
        class: Class,
        build: fn(&Spec) -> Result<Csr<Complex64>>,
    ) -> Self {
        Self { name, about, axes, seeded: false, parameters, class, build: Build::Complex(build) }
    }

    /// The same with another kind of matrix.
    const fn of(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// The same, but random.
    const fn seeded(self) -> Self {
        Self { seeded: true, ..self }
    }

    /// How to ask for it, with the defaults of what may be left out: `jumps:M[xMxM][,contrast=10000][,seed=1]`.
    #[must_use]
    pub fn syntax(&self) -> String {
        let mut text = format!("{}:M", self.name);
        if self.axes > 1 {
            text += &format!("[{}]", "xM".repeat(self.axes - 1));
        }
        for p in self.parameters {
            text += &format!("[,{}={}]", p.name, Number(p.default));
        }
        if self.seeded {
            text += &format!("[,seed={}]", Spec::SEED);
        }
        text
    }

    /// A request to show in messages.
    fn example(&self) -> String {
        let size = ["1000", "300 or 300x200", "100 or 100x80x60"][self.axes - 1];
        format!("{}:{size}", self.name)
    }

    fn named(name: &str) -> Result<&'static Self> {
        Self::ALL.iter().find(|p| p.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|p| p.name).collect();
            Error::Usage(format!("there is no test system {name:?}; choose one of {}", names.join(", ")))
        })
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Problem").field(&self.name).finish()
    }
}

/// Names are unique.
impl PartialEq for Problem {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Parameter {
    const fn real(name: &'static str, about: &'static str, default: f64, range: (f64, f64)) -> Self {
        Self { name, about, default, range, whole: false }
    }

    const fn whole(name: &'static str, about: &'static str, default: f64) -> Self {
        Self { name, about, default, range: (1.0, MANY), whole: true }
    }

    fn parse(&self, text: &str) -> Result<f64> {
        let (low, high) = self.range;
        let value = text.parse().ok().filter(|v| (low..=high).contains(v) && !(self.whole && f64::fract(*v) != 0.0));
        value.map(|v| v + 0.0).ok_or_else(|| {
            let kind = if self.whole { "a whole number" } else { "a number" };
            let (low, high) = (Number(low), Number(high));
            Error::Usage(format!("{}={text}: {} must be {kind} from {low} to {high}", self.name, self.about))
        })
    }
}

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
    sides: [usize; 3],
    seed: u64,
    /// One for each parameter of the problem.
    values: Vec<f64>,
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

/// A number as one would type it, and exact.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(v) = *self;
        if v == 0.0 || (1e-2..1e10).contains(&v.abs()) { write!(f, "{v}") } else { write!(f, "{v:e}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        for (k, p) in Problem::ALL.iter().enumerate() {
            assert!(Problem::ALL[..k].iter().all(|q| q.name != p.name), "{} twice", p.name);
            assert!((1..=3).contains(&p.axes) && !p.about.is_empty());
            assert!(p.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            for q in p.parameters {
                assert_eq!(q.parse(&Number(q.default).to_string()).unwrap(), q.default);
                assert!(!["seed", "scramble"].contains(&q.name));
            }
            let spec: Spec = format!("{}:3", p.name).parse().unwrap();
            assert_eq!(spec.to_string(), format!("{}:3", p.name));
            let a = spec.build_any().unwrap();
            assert!(a.nnz() > 0 && a.is_complex() == p.class.is_complex(), "{}", p.name);
            assert_eq!(spec.build().is_ok(), !a.is_complex());
        }
    }

    #[test]
    fn syntax_shows_the_defaults() {
        let of = |name| Problem::named(name).unwrap().syntax();
        assert_eq!(of("jumps"), "jumps:M[xMxM][,contrast=10000][,seed=1]");
        assert_eq!(of("anisotropic"), "anisotropic:M[xMxM][,epsilon=1e-3]");
        assert_eq!(of("tridiagonal"), "tridiagonal:M");
        assert_eq!(of("poisson2d"), "poisson2d:M[xM]");
    }
}
