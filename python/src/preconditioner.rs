//! Preconditioners of the library, alone.

use std::sync::Arc;

use declive::HostPreconditioner;
use declive::matrix::equivalent::real_form;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Array, ArrayMut};
use crate::matrix::{Entries, Matrix};
use crate::options::{Named, NearNullOf, near_null as near_null_of, options_of};
use crate::process;
use crate::run::{Interruption, Listeners, run};

/// M⁻¹ for a matrix, made and applied on the host. Of a complex one it is made of its real form.
#[pyclass(frozen, module = "declive._declive")]
pub(crate) struct Preconditioner(Arc<declive::solve::Preconditioner>);

#[pymethods]
impl Preconditioner {
    #[new]
    fn new(
        py: Python<'_>,
        matrix: &Bound<'_, Matrix>,
        options: Named,
        near_null: Option<NearNullOf>,
    ) -> PyResult<Self> {
        let entries = &matrix.get().entries;
        let mut setup = options_of(py, options)?.setup;
        setup.near_null = near_null_of(py, near_null, entries)?.or(setup.near_null);
        let interruption = Arc::new(Interruption::default());
        let made = run(py, &interruption, &Listeners::NONE, |_, _| {
            let a = match entries {
                Entries::Real(a) => Arc::clone(a),
                Entries::Complex(a) => Arc::new(real_form(a)?),
            };
            declive::solve::Preconditioner::new(a, &setup)
        });
        made.map(|made| Self(Arc::new(made)))
    }

    /// z = M⁻¹ r.
    fn apply(&self, py: Python<'_>, r: &Bound<'_, PyAny>, z: &Bound<'_, PyAny>) -> PyResult<()> {
        process::enter()?;
        let (r, mut z) = (Array::<f64>::of(r)?, ArrayMut::<f64>::of(z)?);
        let (r, z) = (r.get(), z.get());
        if [r.len(), z.len()] != [self.0.order(); 2] {
            return Err(PyValueError::new_err("r or z has another length than the matrix has rows"));
        }
        py.detach(|| self.0.apply(r, z));
        Ok(())
    }
}

impl Preconditioner {
    /// To be used by a solver.
    pub(crate) fn shared(&self) -> Arc<dyn HostPreconditioner> {
        Arc::<declive::solve::Preconditioner>::clone(&self.0)
    }
}
