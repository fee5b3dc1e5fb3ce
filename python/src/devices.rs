//! Devices, and launch parameters for them.

use std::sync::Arc;

use declive::device::{Choice, Info, Kind, list, select};
use declive::matrix::gallery;
use declive::solve::Precision;
use declive::tune::store::Store;
use declive::tune::{self, Found, Search, Watch};
use declive::{Csr, Error};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::OrException;
use crate::matrix::Matrix;
use crate::process;
use crate::run::{Interruption, Listeners, run};

/// All devices, as JSON.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<String> {
    #[derive(Serialize)]
    struct Device<'a> {
        #[serde(flatten)]
        info: &'a Info,
        auto: bool,
    }
    #[derive(Serialize)]
    struct Devices<'a> {
        devices: Vec<Device<'a>>,
        host_auto: bool,
        note: Option<String>,
    }
    process::enter()?;
    let (listing, selected) = py.detach(|| (list(), select(&Choice::Auto, true)));
    let uses = |index: Option<usize>| {
        selected.as_ref().is_ok_and(|all| all.ranks.iter().any(|rank| rank.as_ref().map(|rank| rank.index) == index))
    };
    let device = |info| Device { info, auto: uses(Some(info.index)) };
    Ok(json(&Devices {
        devices: listing.devices.iter().map(device).collect(),
        host_auto: uses(None),
        note: listing.note.clone(),
    }))
}

/// Closes the devices that no solver uses.
#[pyfunction]
pub(crate) fn close_idle(py: Python<'_>) -> PyResult<()> {
    process::enter()?;
    py.detach(declive::device::close_idle);
    Ok(())
}

/// Finds launch parameters for devices, each kind once, and keeps them; what was found, as JSON.
#[pyfunction]
#[pyo3(name = "tune", signature = (matrix, devices, precision))]
pub(crate) fn find_launches(
    py: Python<'_>,
    matrix: Option<&Bound<'_, Matrix>>,
    devices: &str,
    precision: &str,
) -> PyResult<String> {
    let a = matrix.map(|matrix| matrix.get().entries.real(py, "tuning").cloned()).transpose()?;
    let choice: Choice = devices.parse().or_exception(py)?;
    let precision: Precision = precision.parse().or_exception(py)?;
    let interruption = Arc::new(Interruption::default());
    let found = run(py, &interruption, &Listeners::NONE, |cancel, _| {
        let watch = Watch::default().with_cancel(cancel);
        tuned(a.as_deref(), &choice, precision, watch)
    });
    found.map(|found| json(&found))
}

fn tuned(a: Option<&Csr>, choice: &Choice, precision: Precision, watch: Watch<'_>) -> declive::Result<Vec<Found>> {
    if precision == Precision::Mixed {
        let why = "precision = mixed runs the kernels of f32 and of f64: tune for both, one after the other";
        return Err(Error::Usage(why.into()));
    }
    let all: Vec<Info> = select(choice, precision.needs_f64())?.ranks.into_iter().flatten().collect();
    if all.is_empty() {
        let found = "only the host, whose threads launch no kernels".into();
        return Err(Error::NoDevice { wanted: choice.to_string(), found });
    }
    let store = Store::open();
    let same = |a: &Info, b: &Info| (&a.name, &a.platform, &a.driver) == (&b.name, &b.platform, &b.driver);
    let kinds = (0..all.len()).filter(|k| !all[..*k].iter().any(|before| same(before, &all[*k]))).map(|k| &all[k]);
    let of_kind = |device: &Info| {
        let side = if device.kind == Kind::Gpu { 215 } else { 100 };
        let made = if a.is_some() { None } else { Some(gallery::poisson3d([side; 3])?) };
        let name = if a.is_some() { "a matrix of Python's".into() } else { format!("poisson3d:{side}") };
        let Some(a) = a.or(made.as_ref()) else { unreachable!("one of them is there") };
        let found = tune::rank(device, a, (0, 1), &name, precision, Search::Refine, watch)?;
        tune::keep(&store, device, &found);
        Ok(found)
    };
    kinds.map(of_kind).collect()
}

/// A JSON text; numbers that are not finite become `null`.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() // fails only for maps with keys that are not strings, and there are none
}
