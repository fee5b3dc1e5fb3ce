//! A block of rows on a device as a rank of a solve has it, for measurements.

use std::sync::Arc;

use super::setup::Setup;
use crate::backend::opencl::OpenClBackend;
use crate::comm::Communicator;
use crate::device::Context;
use crate::error::Result;
use crate::kernels::{Kernels, Shape, Tuning};
use crate::operator::opencl::DeviceBlock;
use crate::partition::Part;
use crate::real::Real;
use crate::tune::formats::{self, Uploaded, Wanted};
use crate::tune::store::{Device, Store};
use crate::tune::{Tune, kept};

/// The operations on a device, and `part` of a matrix on it: with launch parameters and in the format that former runs have
/// found, or else the usual ones. Nothing is measured, nothing is kept.
///
/// # Errors
/// Those of the device.
pub(crate) fn load<T: Real, A: Real>(
    ctx: &Arc<Context>,
    part: &Part<'_>,
    setup: &Setup,
    comm: Box<dyn Communicator<T>>,
) -> Result<(OpenClBackend<T, A>, DeviceBlock<T>)> {
    let (info, store) = (ctx.info(), Store::open());
    let known = (setup.tune != Tune::Off).then(|| store.load(&Device::from(info)));
    let tuning = match &known {
        Some(known) => kept::tuning::<T, A>(known, info, part.n_owned(), part.nnz()),
        None => Tuning::default_for(info, Shape::of(info)),
    };
    let kernels = Kernels::build(ctx, tuning)?;
    let backend = OpenClBackend::new(Arc::clone(ctx), kernels, part.n_owned(), comm)?;
    let wanted = Wanted {
        format: setup.format,
        tune: Tune::Stored,
        known: known.as_ref(),
        store: &store,
        room: info.memory_bytes,
        exchange: setup.exchange,
        set_up: formats::SET_UP_TIME,
        unscaled: None,
    };
    let Uploaded { block, .. } = formats::upload(&backend, part, 1.0, wanted)?;
    Ok((backend, block))
}
