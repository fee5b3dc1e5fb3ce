//! Files, or standard input, that hold matrices and vectors.

use std::fmt;
use std::io::stdin;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use declive::matrix::gallery::Spec;
use declive::matrix::{AnyCsr, AnyVectors, Scalar};
use declive::matrix_market::{self, Header, Matrix, Reader, System, Zeros, read_any_vectors, read_any_vectors_from};
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
    pub(crate) b: Option<AnyVectors>,
    /// From the file to the finished matrix.
    pub(crate) time: Duration,
}

/// Bytes of a file, and points of a grid, of which systems are not small.
const LARGE_FILE: u64 = 4 << 20;
const LARGE_GRID: usize = 100_000;

impl Source {
    /// Whether the matrix is large, as far as that is to be told before it is read.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Input(Input::Stdin) => false,
            Self::Input(Input::File(path)) => path.metadata().is_ok_and(|file| file.len() >= LARGE_FILE),
            Self::Generated(spec) => {
                spec.sides().iter().fold(1, |all: usize, side| all.saturating_mul(*side)) >= LARGE_GRID
            }
        }
    }
}

impl Input {
    /// Reads a matrix, real or complex, and the right-hand sides that come with it if they are wanted.
    fn load(&self, zeros: Zeros, with_rhs: bool, screen: Screen) -> Result<Loaded, Failure> {
        let name = self.to_string();
        log::info!("reading {name}");
        let start = Instant::now();
        if let Self::File(path) = self
            && npz::is_npz(path)
        {
            let bar = screen.bytes(&name);
            let npz::Matrix { a, duplicates, .. } = npz::map_with(path, &|read, all| bar.update(read, all))?;
            let a = cleaned(a, zeros)?;
            return Ok(Loaded { a, header: None, duplicates, b: None, time: start.elapsed() });
        }
        let bar = screen.entries(&name);
        let progress = |read, claimed| bar.update(read, claimed);
        let reader = Reader::new().with_zeros(zeros).with_progress(&progress);
        let alone = |matrix| (matrix, None);
        let both = |system: System| (system.matrix, system.b);
        let read = match (self, with_rhs) {
            (Self::Stdin, true) => reader.system_from(stdin(), &name).map(both),
            (Self::Stdin, false) => reader.any_matrix_from(stdin(), &name).map(alone),
            (Self::File(path), true) => reader.system(path).map(both),
            (Self::File(path), false) => reader.any_matrix(path).map(alone),
        };
        let (Matrix { a, header, duplicates, .. }, b) = read.map_err(|e| unseekable(e, &name))?;
        Ok(Loaded { a, header: Some(header), duplicates, b, time: start.elapsed() })
    }

    /// Reads vectors, real or complex.
    pub(crate) fn columns(&self, screen: Screen) -> Result<AnyVectors, Failure> {
        let name = self.to_string();
        let _shown = screen.working(&format!("reading {name}"));
        match self {
            Self::Stdin => read_any_vectors_from(stdin(), &name).map_err(|e| unseekable(e, &name)),
            Self::File(path) if npz::is_npz(path) => dense(&npz::map(path)?, &name),
            Self::File(path) if npz::is_npy(path) => Ok(npz::read_vectors(path)?),
            Self::File(path) => read_any_vectors(path).map_err(|e| unseekable(e, &name)),
        }
    }
}

impl Source {
    /// The file or the problem, whichever was named; none if neither was.
    pub(crate) fn named(matrix: Option<PathBuf>, generate: Option<Spec>) -> Option<Self> {
        generate.map(Self::Generated).or(matrix.map(|path| Self::Input(path.into())))
    }

    /// The file that it is read from, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        if let Self::Input(Input::File(path)) = self { Some(path) } else { None }
    }

    /// Reads or makes the matrix, and reads the right-hand sides that come with it if they are wanted.
    pub(crate) fn load(&self, zeros: Zeros, with_rhs: bool, screen: Screen) -> Result<Loaded, Failure> {
        let start = Instant::now();
        let mut loaded = match self {
            Self::Input(input) => input.load(zeros, with_rhs, screen)?,
            Self::Generated(spec) => {
                let _shown = screen.working(&format!("generating {spec}"));
                let a = cleaned(spec.build_any()?, zeros)?;
                Loaded { a, header: None, duplicates: 0, b: None, time: Duration::ZERO }
            }
        };
        loaded.time = start.elapsed();
        log::info!("{self}: {} rows, {} entries, {:.3?}", loaded.a.n_rows(), loaded.a.nnz(), loaded.time);
        Ok(loaded)
    }

    /// The matrix if it is real, or the word that only such ones are measured.
    pub(crate) fn real(&self, a: AnyCsr) -> Result<Csr, Failure> {
        let why = "only real matrices are measured (solve, info and convert take it)";
        a.into_real().ok_or_else(|| Failure::usage(format!("{self} is complex; {why}")))
    }
}

/// What the reader of Matrix Market files does by itself.
fn cleaned(a: AnyCsr, zeros: Zeros) -> Result<AnyCsr, Error> {
    match (zeros, a) {
        (Zeros::Keep, a) => Ok(a),
        (Zeros::Drop, AnyCsr::Real(a)) => without_zeros(a).map(Into::into),
        (Zeros::Drop, AnyCsr::Complex(a)) => without_zeros(a).map(Into::into),
    }
}

fn without_zeros<T: Scalar>(a: Csr<T>) -> Result<Csr<T>, Error> {
    let (rows, cols, mut row_ptr, mut col_idx, mut values) = a.into_raw_parts();
    let (mut kept, mut start) = (0, 0);
    for end in &mut row_ptr[1..] {
        for k in start..*end {
            if values[k] != T::default() {
                (col_idx[kept], values[kept]) = (col_idx[k], values[k]);
                kept += 1;
            }
        }
        start = std::mem::replace(end, kept);
    }
    col_idx.truncate(kept);
    values.truncate(kept);
    Csr::new(rows, cols, row_ptr, col_idx, values)
}

/// Tells what to do with a `.npz` file that came where it can't be recognised, since its parts are read in any order.
fn unseekable(error: Error, name: &str) -> Failure {
    if let Error::MatrixMarket(matrix_market::Error {
        kind: matrix_market::ErrorKind::NotMatrixMarket { found }, ..
    }) = &error
        && found.starts_with(r"PK\x03\x04")
    {
        let why = "is a .npz file, which is not read as a stream";
        return Failure::usage(format!("{name} {why}: name it as a file of its own, not compressed again"));
    }
    error.into()
}

/// The columns of a sparse matrix, if it is plausible that they are vectors.
fn dense(a: &AnyCsr, name: &str) -> Result<AnyVectors, Failure> {
    let (rows, cols) = (a.n_rows(), a.n_cols());
    if rows.saturating_mul(cols) > (1 << 16) + 256 * a.nnz() {
        return Err(Failure::usage(format!("{name} has {rows} × {cols} elements and is too sparse for vectors")));
    }
    Ok(a.into())
}

/// Checks vectors that were read, of which there must be one at least.
pub(crate) fn of_length<T>(columns: Vec<Vec<T>>, rows: usize, name: String) -> Result<Vec<Vec<T>>, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_go_and_rows_stay() {
        let values = vec![0.0, 1.0, -0.0, 2.0, 0.0];
        let a = Csr::new(4, 3, vec![0, 2, 3, 3, 5], vec![0, 2, 1, 0, 1], values).unwrap();
        assert_eq!(cleaned(a.clone().into(), Zeros::Keep).unwrap(), AnyCsr::Real(a.clone()));
        let expected = Csr::new(4, 3, vec![0, 1, 1, 1, 2], vec![2, 0], vec![1.0, 2.0]).unwrap();
        assert_eq!(without_zeros(a).unwrap(), expected);
        let nothing = Csr::<f64>::new(0, 2, vec![0], vec![], vec![]).unwrap();
        assert_eq!(without_zeros(nothing.clone()).unwrap(), nothing);
    }
}
