//! Sparse matrices: the arrays of Python's, used where they are, or the library's own.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use declive::Csr;
use declive::matrix::{AnyCsr, Complex64, Scalar};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Array, ArrayMut};
use crate::errors::{OrException, input_error};
use crate::files;
use crate::process;

/// The entries, real or complex.
#[derive(Clone)]
pub(crate) enum Entries {
    Real(Arc<Csr>),
    Complex(Arc<Csr<Complex64>>),
}

/// Runs the same expression on either kind of matrix.
macro_rules! either {
    ($entries:expr, $a:ident => $body:expr) => {
        match $entries {
            Entries::Real($a) => $body,
            Entries::Complex($a) => $body,
        }
    };
}

impl From<AnyCsr> for Entries {
    fn from(a: AnyCsr) -> Self {
        match a {
            AnyCsr::Real(a) => Self::Real(Arc::new(a)),
            AnyCsr::Complex(a) => Self::Complex(Arc::new(a)),
        }
    }
}

impl Entries {
    /// The real matrix.
    ///
    /// # Errors
    /// `InputError` for a complex one, which `what` is not for.
    pub(crate) fn real(&self, py: Python<'_>, what: &str) -> PyResult<&Arc<Csr>> {
        match self {
            Self::Real(a) => Ok(a),
            Self::Complex(_) => Err(input_error(py, format!("{what} is for real matrices, and this one is complex"))),
        }
    }
}

/// Row pointers, where they are or converted.
enum Pointers {
    Kept(Array<i64>),
    Made(Vec<usize>),
}

/// Columns, where they are or converted.
enum Columns {
    Kept(Array<i32>),
    Made(Vec<u32>),
}

/// The arrays of a matrix of Python's.
struct Arrays {
    pointers: Pointers,
    columns: Columns,
    values: Array<f64>,
}

impl Arrays {
    fn of(pointers: &Bound<'_, PyAny>, columns: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pointers = match Array::<i64>::of(pointers) {
            Ok(kept) => Pointers::Kept(kept),
            // what is below 0 becomes larger than any place, which is refused later
            Err(_) => Pointers::Made(Array::<i32>::of(pointers)?.unsigned().iter().map(|p| *p as usize).collect()),
        };
        let columns = match Array::<i32>::of(columns) {
            Ok(kept) => Columns::Kept(kept),
            Err(_) => {
                let of_32_bits = |j: &usize| u32::try_from(*j).unwrap_or(u32::MAX); // beyond any matrix, and refused, too
                Columns::Made(Array::<i64>::of(columns)?.unsigned().iter().map(of_32_bits).collect())
            }
        };
        Ok(Self { pointers, columns, values: Array::of(values)? })
    }

    fn get<T: Scalar>(&self) -> (&[usize], &[u32], &[T]) {
        let pointers = match &self.pointers {
            Pointers::Kept(kept) => kept.unsigned(),
            Pointers::Made(made) => made,
        };
        let columns = match &self.columns {
            Columns::Kept(kept) => kept.unsigned(),
            Columns::Made(made) => made,
        };
        (pointers, columns, bytemuck::cast_slice(self.values.get()))
    }
}

/// A sparse matrix by rows.
#[pyclass(frozen, module = "declive._declive")]
pub(crate) struct Matrix {
    pub(crate) entries: Entries,
    /// Aᵀ, once it was asked for.
    transposed: OnceLock<Entries>,
}

impl From<AnyCsr> for Matrix {
    fn from(a: AnyCsr) -> Self {
        Self { entries: a.into(), transposed: OnceLock::new() }
    }
}

#[pymethods]
impl Matrix {
    #[new]
    fn new(
        py: Python<'_>,
        shape: (usize, usize),
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        is_complex: bool,
    ) -> PyResult<Self> {
        process::enter()?;
        let arrays = Arc::new(Arrays::of(indptr, indices, data)?);
        let (n_rows, n_cols) = shape;
        let made = py.detach(|| {
            Ok(if is_complex {
                AnyCsr::Complex(Csr::from_owner(n_rows, n_cols, &arrays, Arrays::get::<Complex64>)?)
            } else {
                AnyCsr::Real(Csr::from_owner(n_rows, n_cols, &arrays, Arrays::get::<f64>)?)
            })
        });
        made.or_exception(py).map(Self::from)
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        either!(&self.entries, a => (a.n_rows(), a.n_cols()))
    }

    #[getter]
    fn nnz(&self) -> usize {
        either!(&self.entries, a => a.nnz())
    }

    #[getter]
    fn is_complex(&self) -> bool {
        matches!(self.entries, Entries::Complex(_))
    }

    /// Copies the three arrays into those of Python's, which have room for them.
    fn fill(
        &self,
        py: Python<'_>,
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if let (Ok(mut indptr), Ok(mut indices)) = (ArrayMut::<i32>::of(indptr), ArrayMut::<i32>::of(indices)) {
            return self.fill_with(py, indptr.get(), indices.get(), data);
        }
        self.fill_with(py, ArrayMut::<i64>::of(indptr)?.get(), ArrayMut::<i64>::of(indices)?.get(), data)
    }

    /// y = A x, or Aᵀ x, on the host.
    fn multiply(&self, py: Python<'_>, x: &Bound<'_, PyAny>, y: &Bound<'_, PyAny>, transpose: bool) -> PyResult<()> {
        process::enter()?;
        let (x, mut y) = (Array::<f64>::of(x)?, ArrayMut::<f64>::of(y)?);
        let (x, y) = (x.get(), y.get());
        let a = if transpose { self.transposed(py)? } else { &self.entries };
        let [rows, columns] = either!(a, a => [a.n_rows(), a.n_cols()]);
        let parts = if matches!(a, Entries::Complex(_)) { 2 } else { 1 };
        if [x.len(), y.len()] != [parts * columns, parts * rows] {
            return Err(PyValueError::new_err("x or y has another length than the matrix asks for"));
        }
        py.detach(|| declive::HostPreconditioner::apply(a, x, y));
        Ok(())
    }

    /// Writes it to a file, in the format that its name tells.
    #[pyo3(signature = (path, symmetry, comments))]
    fn write(&self, py: Python<'_>, path: PathBuf, symmetry: &str, comments: Vec<String>) -> PyResult<()> {
        files::write(py, &self.entries, &path, symmetry, comments)
    }
}

impl Matrix {
    fn fill_with<I: Copy + TryFrom<usize> + TryFrom<u32>>(
        &self,
        py: Python<'_>,
        indptr: &mut [I],
        indices: &mut [I],
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut data = ArrayMut::<f64>::of(data)?;
        either!(&self.entries, a => copy(a.row_ptr(), indptr)?);
        either!(&self.entries, a => copy(a.col_idx(), indices)?);
        let (data, values): (&mut [f64], &[f64]) =
            (data.get(), either!(&self.entries, a => bytemuck::cast_slice(a.values())));
        if data.len() != values.len() {
            return Err(no_room());
        }
        py.detach(|| data.copy_from_slice(values));
        Ok(())
    }

    fn transposed(&self, py: Python<'_>) -> PyResult<&Entries> {
        if let Some(made) = self.transposed.get() {
            return Ok(made);
        }
        let made = py.detach(|| {
            Ok(match &self.entries {
                Entries::Real(a) => Entries::Real(Arc::new(a.transposed()?)),
                Entries::Complex(a) => Entries::Complex(Arc::new(a.transposed()?)),
            })
        });
        let made = made.or_exception(py)?;
        Ok(self.transposed.get_or_init(|| made))
    }
}

/// Copies indices into others that may be smaller.
fn copy<F: Copy, T: TryFrom<F>>(from: &[F], to: &mut [T]) -> PyResult<()> {
    if from.len() != to.len() {
        return Err(no_room());
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to = T::try_from(*from).map_err(|_| no_room())?;
    }
    Ok(())
}

fn no_room() -> PyErr {
    PyValueError::new_err("arrays for a matrix have another length or type than it asks for")
}
