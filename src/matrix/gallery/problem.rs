//! The problems there are, and the numbers that shape them.

use std::fmt;
use std::ops::Range;

use super::convection::convection3d_rows;
use super::grid::Grid;
use super::helmholtz::helmholtz3d_rows;
use super::stencil::{PLANE, constant, jumps_rows, neumann2d_rows, poisson3d27_rows, variable_rows};
use super::{
    Class, Spec, anisotropic, band, circuit, convection3d, dense_rows, elasticity3d, elasticity3d_coordinates,
    elasticity3d_jumps, fit2d, gauge2d, graph_laplacian, helmholtz3d, helmholtz3d_absorbing, jumps, markov, neumann2d,
    poisson2d, poisson3d, poisson3d27, random_spd, reservoir, stokes2d, tetrahedra, tetrahedra_coordinates,
    tridiagonal, variable,
};
use crate::error::{Error, Result};
use crate::matrix::{Complex64, Csr};

/// A kind of test system.
pub struct Problem {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Along how many axes it has a size: 1, 2 or 3.
    pub(super) axes: usize,
    /// Whether it takes a `seed`.
    pub seeded: bool,
    /// The numbers that shape it, besides its size and seed.
    pub parameters: &'static [Parameter],
    /// What kind of matrix it has.
    pub class: Class,
    pub(super) build: Build,
    /// What makes some rows alone, where that can be done.
    pub(super) rows: Option<SomeRows>,
    /// Where nodes are, if that is known.
    pub(super) coordinates: Option<Coordinates>,
}

/// What gives the coordinates of the nodes.
pub(super) type Coordinates = fn(&Spec) -> Result<Vec<[f64; 3]>>;

/// What makes some rows, one for each point of a grid.
pub(super) type SomeRows = fn(&Spec, Grid, Range<usize>) -> Result<Csr>;

/// What makes the matrix.
pub(super) enum Build {
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
        Self::new("poisson2d", "5-point Laplacian on a square", 2, &[], |s| poisson2d([s.sides[0], s.sides[1]]))
            .with_rows(|_, grid, rows| constant(grid, rows, PLANE)),
        Self::new("poisson3d", "7-point Laplacian in a cube", 3, &[], |s| poisson3d(s.sides))
            .with_rows(|_, grid, rows| constant(grid, rows, [1.0; 3])),
        Self::new("poisson3d27", "27-point operator of HPCG in a cube", 3, &[], |s| poisson3d27(s.sides))
            .with_rows(|_, grid, rows| poisson3d27_rows(grid, rows)),
        Self::new(
            "anisotropic",
            "7-point diffusion, weak along z",
            3,
            &[Parameter::real("epsilon", "diffusion along z", 1e-3, (1e-12, 1e12))],
            |s| anisotropic(s.sides, s.values[0]),
        )
        .with_rows(|s, grid, rows| constant(grid, rows, [1.0, 1.0, s.values[0]])),
        Self::new(
            "jumps",
            "diffusion through random blocks of two materials",
            3,
            &[Parameter::real("contrast", "diffusion in the second material", 1e4, (1e-12, 1e12))],
            |s| jumps(s.sides, s.values[0], s.seed),
        )
        .with_rows(|s, grid, rows| jumps_rows(grid, rows, s.values[0], s.seed))
        .seeded(),
        Self::new(
            "variable",
            "diffusion with another lognormal coefficient in every cell",
            3,
            &[Parameter::real("sigma", "standard deviation of ln k", 1.0, (0.0, 10.0))],
            |s| variable(s.sides, s.values[0], s.seed),
        )
        .with_rows(|s, grid, rows| variable_rows(grid, rows, s.values[0], s.seed))
        .seeded(),
        Self::new("reservoir", "flow in layers of rock of SPE10's kind; 60x220x85 is its size", 3, &[], |s| {
            reservoir(s.sides, s.seed)
        })
        .seeded(),
        Self::new(
            "circuit",
            "power grid of a chip: layers of wires, vias and pads; the size is in points of the lowest layer",
            2,
            &[
                Parameter { range: (3.0, 16.0), ..Parameter::whole("layers", "layers of wires", 5.0) },
                Parameter::whole("pads", "nodes of the top layer from pad to pad", 16.0),
                Parameter::real(
                    "missing",
                    "share of segments in the lowest layer that may be missing",
                    0.2,
                    (0.0, 1.0),
                ),
            ],
            |s| {
                let [layers, pads, missing] = [s.values[0], s.values[1], s.values[2]];
                circuit([s.sides[0], s.sides[1]], layers as usize, pads as usize, missing, s.seed)
            },
        )
        .seeded(),
        Self::new(
            "elasticity3d",
            "linear elasticity of a clamped block, 3 unknowns a node; the size is in elements",
            3,
            &[],
            |s| elasticity3d(s.sides),
        )
        .with_nodes(|s| elasticity3d_coordinates(s.sides)),
        Self::new(
            "elasticity3d-jumps",
            "linear elasticity as elasticity3d, through random blocks of two materials",
            3,
            &[Parameter::real("contrast", "stiffness of the second material", 1e4, (1e-12, 1e12))],
            |s| elasticity3d_jumps(s.sides, s.values[0], s.seed),
        )
        .with_nodes(|s| elasticity3d_coordinates(s.sides))
        .seeded(),
        Self::new(
            "tetrahedra",
            "linear elasticity as elasticity3d, on an unstructured mesh; the size is in cells of six tetrahedra",
            3,
            &[Parameter::whole("shuffle", "side of the blocks in which nodes are numbered at random", 8.0)],
            |s| tetrahedra(s.sides, s.values[0] as usize, s.seed),
        )
        .with_nodes(|s| tetrahedra_coordinates(s.sides, s.values[0] as usize, s.seed))
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
        .with_rows(|_, grid, rows| neumann2d_rows(grid, rows))
        .of(Class::Semidefinite),
        Self::new(
            "helmholtz3d",
            "waves between the walls of a cube: 7-point Laplacian less wavenumber^2",
            3,
            &[WAVENUMBER],
            |s| helmholtz3d(s.sides, s.values[0]),
        )
        .with_rows(|s, grid, rows| helmholtz3d_rows(grid, rows, s.values[0]))
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
        .with_rows(|s, grid, rows| convection3d_rows(grid, rows, s.values[0]))
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
        Self { name, about, axes, seeded: false, parameters, class, build, rows: None, coordinates: None }
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
        let (seeded, build, rows, coordinates) = (false, Build::Complex(build), None, None);
        Self { name, about, axes, seeded, parameters, class, build, rows, coordinates }
    }

    /// The same with another kind of matrix.
    const fn of(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// The same, of which rows are made apart from each other.
    const fn with_rows(self, rows: SomeRows) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// The same, whose nodes are known.
    const fn with_nodes(self, coordinates: Coordinates) -> Self {
        Self { coordinates: Some(coordinates), ..self }
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
    pub(super) fn example(&self) -> String {
        let size = ["1000", "300 or 300x200", "100 or 100x80x60"][self.axes - 1];
        format!("{}:{size}", self.name)
    }

    pub(super) fn named(name: &str) -> Result<&'static Self> {
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

    pub(super) fn parse(&self, text: &str) -> Result<f64> {
        let (low, high) = self.range;
        let value = text.parse().ok().filter(|v| (low..=high).contains(v) && !(self.whole && f64::fract(*v) != 0.0));
        value.map(|v| v + 0.0).ok_or_else(|| {
            let kind = if self.whole { "a whole number" } else { "a number" };
            let (low, high) = (Number(low), Number(high));
            Error::Usage(format!("{}={text}: {} must be {kind} from {low} to {high}", self.name, self.about))
        })
    }
}

/// A number as one would type it, and exact.
pub(super) struct Number(pub(super) f64);

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
