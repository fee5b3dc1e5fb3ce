//! Files, or standard input, that hold matrices and vectors.

use std::fmt;
use std::io::stdin;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use declive::matrix::AnyCsr;
use declive::matrix::gallery::Spec;
use declive::matrix_market::{Header, Matrix, Reader, System, Zeros, read_vectors, read_vectors_from};
use declive::{Csr, Error, npz};

use super::failure::Failure;
use super::progress::Screen;

/// A file, or standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

/// Where a matrix comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// It is read.
    Input(Input),
    /// It is made.
    Generated(Spec),
}

/// A matrix, and what came with it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) a: AnyCsr,
    /// What a Matrix Market file says about itself.
    pub(crate) header: Option<Header>,
    /// Entries that were added to another one.
    pub(crate) duplicates: u64,
    /// Right-hand sides that lay beside the matrix.
    pub(crate) b: Option<Vec<Vec<f64>>>,
    /// From the file to the finished matrix.
    pub(crate) time: Duration,
}

impl Input {
    /// Reads a matrix, real or complex, and right-hand sides that come with it.
    pub(crate) fn load(&self, zeros: Zeros, screen: Screen) -> Result<Loaded, Failure> {
        let name = self.to_string();
        log::info!("reading {name}");
        let start = Instant::now();
        let bar = screen.entries(&name);
        let progress = |read, claimed| bar.update(read, claimed);
        if let Self::File(path) = self
            && npz::is_npz(path)
        {
            let a = npz::read_with(path, &progress)?;
            return Ok(Loaded { a, header: None, duplicates: 0, b: None, time: start.elapsed() });
        }
        let reader = Reader::new().zeros(zeros).progress(&progress);
        let System { matrix, b } = match self {
            Self::Stdin => reader.system_from(stdin(), &name)?,
            Self::File(path) => reader.system(path)?,
        };
        let Matrix { a, header, duplicates } = matrix;
        Ok(Loaded { a, header: Some(header), duplicates, b, time: start.elapsed() })
    }

    /// Reads vectors of `rows` elements, at least one.
    pub(crate) fn columns(&self, rows: usize, screen: Screen) -> Result<Vec<Vec<f64>>, Failure> {
        let name = self.to_string();
        let _shown = screen.working(&format!("reading {name}"));
        let columns = match self {
            Self::Stdin => read_vectors_from(stdin(), &name)?,
            Self::File(path) if npz::is_npz(path) => dense(&real(npz::read(path)?, &name)?, &name)?,
            Self::File(path) => read_vectors(path)?,
        };
        of_length(columns, rows, name)
    }
}

impl Source {
    /// Reads or makes the matrix.
    pub(crate) fn load(&self, zeros: Zeros, screen: Screen) -> Result<Loaded, Failure> {
        let start = Instant::now();
        let mut loaded = match self {
            Self::Input(input) => input.load(zeros, screen)?,
            Self::Generated(spec) => {
                let _shown = screen.working(&format!("generating {spec}"));
                Loaded { a: spec.build()?.into(), header: None, duplicates: 0, b: None, time: Duration::ZERO }
            }
        };
        loaded.time = start.elapsed();
        log::info!("{self}: {} rows, {} entries, {:.3?}", loaded.a.n_rows(), loaded.a.nnz(), loaded.time);
        Ok(loaded)
    }

    /// The matrix to solve with, or the word that complex ones can't be solved.
    pub(crate) fn real(&self, a: AnyCsr) -> Result<Csr, Failure> {
        real(a, &self.to_string())
    }
}

fn real(a: AnyCsr, name: &str) -> Result<Csr, Failure> {
    let why = "solving complex systems is not supported yet (info and convert take them)";
    a.into_real().ok_or_else(|| Failure::usage(format!("{name} is complex; {why}")))
}

/// The columns of a sparse matrix, if it is plausible that they are vectors.
fn dense(a: &Csr, name: &str) -> Result<Vec<Vec<f64>>, Failure> {
    let (rows, cols) = (a.n_rows(), a.n_cols());
    if rows.saturating_mul(cols) > (1 << 16) + 256 * a.nnz() {
        return Err(Failure::usage(format!("{name} has {rows} × {cols} elements and is too sparse for vectors")));
    }
    Ok(a.to_columns())
}

/// Checks vectors that were read.
pub(crate) fn of_length(columns: Vec<Vec<f64>>, rows: usize, name: String) -> Result<Vec<Vec<f64>>, Failure> {
    match columns.first() {
        None => Err(Failure::usage(format!("{name} has no columns"))),
        Some(first) if first.len() != rows => {
            Err(Error::SizeMismatch { what: name, expected: rows, found: first.len() }.into())
        }
        Some(_) => Ok(columns),
    }
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path) }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("<stdin>"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => input.fmt(f),
            Self::Generated(spec) => spec.fmt(f),
        }
    }
}
