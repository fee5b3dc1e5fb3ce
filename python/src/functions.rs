//! Functions of Python in the places of matrices and preconditioners.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use declive::HostPreconditioner;
use declive::matrix::Complex64;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::arrays::Array;
use crate::matrix::{Entries, Matrix};
use crate::preconditioner::Preconditioner;
use crate::run::{Interruption, as_bytes};

/// A function of Python's that takes the bytes of a vector and gives an array of as many doubles. Complex numbers are two each.
pub(crate) struct Function {
    call: Py<PyAny>,
    interruption: Arc<Interruption>,
}

impl Function {
    /// One whose exceptions interrupt so.
    pub(crate) fn new(call: Py<PyAny>, interruption: &Arc<Interruption>) -> Self {
        Self { call, interruption: Arc::clone(interruption) }
    }

    /// y = f(x); zeros once the work that it is for is to end.
    pub(crate) fn call(&self, x: &[f64], y: &mut [f64]) {
        if self.interruption.cancel.load(Ordering::Relaxed) {
            return y.fill(0.0);
        }
        let called = Python::attach(|py| {
            let result = self.call.bind(py).call1((PyByteArray::new(py, as_bytes(x)),))?;
            let result = Array::<f64>::of(&result)?;
            let found = result.get();
            if found.len() != y.len() {
                let (found, expected) = (found.len(), y.len());
                return Err(PyValueError::new_err(format!("a product has {found} elements in place of {expected}")));
            }
            y.copy_from_slice(found);
            Ok(())
        });
        if let Err(error) = called {
            self.interruption.raise(error);
            y.fill(0.0);
        }
    }
}

impl HostPreconditioner for Function {
    fn apply(&self, r: &[f64], z: &mut [f64]) {
        self.call(r, z);
    }
}

impl HostPreconditioner for Entries {
    fn apply(&self, r: &[f64], z: &mut [f64]) {
        match self {
            Self::Real(m) => z.copy_from_slice(&m.mul_vec(r)),
            Self::Complex(m) => {
                let product = m.mul_vec(bytemuck::cast_slice(r));
                z.copy_from_slice(bytemuck::cast_slice::<Complex64, f64>(&product));
            }
        }
    }
}

/// What the package gives for M⁻¹: a preconditioner of the library, a matrix, or a function.
pub(crate) fn preconditioner(
    m: &Bound<'_, PyAny>,
    interruption: &Arc<Interruption>,
) -> PyResult<Arc<dyn HostPreconditioner>> {
    if let Ok(m) = m.cast::<Preconditioner>() {
        return Ok(m.get().shared());
    }
    if let Ok(m) = m.cast::<Matrix>() {
        return Ok(Arc::new(m.get().entries.clone()));
    }
    Ok(Arc::new(Function::new(m.clone().unbind(), interruption)))
}
