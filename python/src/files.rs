//! Matrices from and to files, and generated ones.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use declive::Csr;
use declive::Error;
use declive::matrix::gallery::{Problem, Spec};
use declive::matrix::{AnyCsr, Scalar};
use declive::matrix_market::{Packing, Reader, Symmetry, WriteOptions, write_matrix};
use declive::npz::{self, Element};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::ArrayMut;
use crate::errors::{OrException, file_error, input_error};
use crate::matrix::{Entries, Matrix};
use crate::process;

/// Reads a matrix; the first bytes of the file tell its format.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: PathBuf) -> PyResult<Matrix> {
    process::enter()?;
    let read = py.detach(|| -> declive::Result<AnyCsr> {
        if npz::is_npz(&path) { npz::read(&path) } else { Ok(Reader::new().any_matrix(&path)?.a) }
    });
    read.or_exception(py).map(Matrix::from)
}

/// Makes a test matrix, such as `poisson3d:100`.
#[pyfunction]
pub(crate) fn generate(py: Python<'_>, problem: &str) -> PyResult<Matrix> {
    process::enter()?;
    py.detach(|| problem.parse::<Spec>()?.build_any()).or_exception(py).map(Matrix::from)
}

/// The coordinates of the nodes of a test problem, three for each node, into an array if it has room for them; how many numbers they are.
#[pyfunction]
#[pyo3(signature = (problem, into=None))]
pub(crate) fn coordinates(py: Python<'_>, problem: &str, into: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let nodes = py.detach(|| problem.parse::<Spec>()?.coordinates()).or_exception(py)?;
    let numbers = nodes.as_flattened();
    if let Some(into) = into {
        let mut into = ArrayMut::<f64>::of(into)?;
        if into.get().len() != numbers.len() {
            return Err(PyValueError::new_err("an array for coordinates has another length"));
        }
        into.get().copy_from_slice(numbers);
    }
    Ok(numbers.len())
}

/// The names of all test problems with what they are, and the names of their parameters.
#[pyfunction]
pub(crate) fn problems() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let parameters = |problem: &Problem| {
        let own = problem.parameters.iter().map(|parameter| parameter.name);
        own.chain(problem.seeded.then_some("seed")).collect()
    };
    Problem::ALL.iter().map(|problem| (problem.name, problem.about, parameters(problem))).collect()
}

/// Writes a matrix in the format that the ending of the name tells.
pub(crate) fn write(
    py: Python<'_>,
    entries: &Entries,
    path: &Path,
    symmetry: &str,
    comments: Vec<String>,
) -> PyResult<()> {
    process::enter()?;
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::SkewSymmetric,
        "hermitian" => Symmetry::Hermitian,
        other => {
            return Err(input_error(
                py,
                format!("unknown symmetry '{other}'; there are: general, symmetric, skew-symmetric, hermitian"),
            ));
        }
    };
    let options = WriteOptions::default().with_symmetry(symmetry).with_comments(comments);
    let written = py.detach(|| match entries {
        Entries::Real(a) => write_any(a, path, &options),
        Entries::Complex(a) => write_any(a, path, &options),
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput if error.raw_os_error().is_none() => {
            crate::errors::exception(py, &Error::Usage(format!("{}: {error}", path.display())))
        }
        _ => file_error(path, &error),
    })
}

fn write_any<T: Scalar + Element>(a: &Csr<T>, path: &Path, options: &WriteOptions) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let packed = Packing::of_name(&name);
    let stem = packed.map_or(name.as_str(), |(stem, _)| stem);
    match (stem.rsplit_once('.').map(|(_, ending)| ending), packed) {
        (Some("npz"), None) => npz::write(File::create(path)?, a),
        (Some("mtx"), packed) => {
            options.check(a).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?; // before a file is there
            let mut file = File::create(path)?;
            match packed {
                Some((_, packing)) => packing.pack(&mut file, |out| write_matrix(out, a, options)),
                None => write_matrix(file, a, options),
            }
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the name should end in .npz, .mtx, .mtx.gz, .mtx.bz2, .mtx.xz or .mtx.zst",
        )),
    }
}
