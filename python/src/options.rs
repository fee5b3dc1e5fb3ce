//! Options, by name as text, and what multigrid is told in arrays.

use declive::solve::{NearNull, Options, options};
use pyo3::prelude::*;

use crate::arrays::Array;
use crate::errors::{OrException, input_error};
use crate::matrix::Entries;

/// Names and values.
pub(crate) type Named = Vec<(String, String)>;

/// All options: name, what it is, which values there are, and the value without being set.
#[pyfunction]
#[pyo3(name = "options")]
pub(crate) fn all_options() -> Vec<(&'static str, &'static str, String, String)> {
    options::ALL.iter().map(|one| (one.name, one.about, one.values(), one.default_value())).collect()
}

/// These in place of the usual ones.
pub(crate) fn options_of(py: Python<'_>, named: Named) -> PyResult<Options> {
    with(py, &Options::default(), named)
}

/// These in place of others.
pub(crate) fn with(py: Python<'_>, before: &Options, named: Named) -> PyResult<Options> {
    let mut options = before.clone();
    named.iter().try_for_each(|(name, value)| options.set(name, value)).or_exception(py)?;
    Ok(options)
}

/// What multigrid has to interpolate well: whether that is coordinates of nodes or vectors, an array of them, one after the other, how many these
/// are, and unknowns of a node, if they are known.
pub(crate) type NearNullOf = (bool, Py<PyAny>, usize, Option<usize>);

/// Reads it for a matrix.
///
/// # Errors
/// `InputError` for what does not fit the matrix.
pub(crate) fn near_null(py: Python<'_>, given: Option<NearNullOf>, entries: &Entries) -> PyResult<Option<NearNull>> {
    let Some((are_coordinates, array, count, unknowns)) = given else { return Ok(None) };
    let a = entries.real(py, "what is near the null space")?;
    let array = Array::<f64>::of(array.bind(py))?;
    let length = array.get().len() / count.max(1);
    let columns: Vec<&[f64]> = array.get().chunks(length.max(1)).collect();
    let n = a.n_rows();
    let found = if are_coordinates {
        let unknowns = unknowns.unwrap_or(n / length.max(1));
        if unknowns * length != n {
            return Err(input_error(
                py,
                format!(
                    "there are the coordinates of {length} nodes, but the matrix has {n} rows: that is no whole number of unknowns for each"
                ),
            ));
        }
        NearNull::of_coordinates(unknowns, &columns)
    } else {
        NearNull::of_vectors(unknowns.unwrap_or_else(|| NearNull::of_matrix(a).unknowns()), &columns)
    };
    found.map(Some).or_exception(py)
}
