//! How fast a device, or the host, is on rows of a system: iterations are made and timed on a sample of them, in the format and with the
//! launches that a rank alone would have.

use std::ops::Range;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::Instant;

use crate::backend::LinearOperator;
use crate::backend::host::HostBackend;
use crate::backend::machine::{LENT, Machine};
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{Kind, R};
use crate::comm::Alone;
use crate::device::{Context, DeviceVec, Info};
use crate::error::Result;
use crate::krylov::Method;
use crate::matrix::Csr;
use crate::operator::host::HostBlock;
use crate::partition::{Part, part_alone};
use crate::real::{Precision, Real};
use crate::runtime::Setup;
use crate::runtime::loaded::load;
use crate::tune::workload::numbers;

/// How often is measured; the least and the most iterations of a measurement, and the time that it should take. There are so few that even
/// an easy system is not solved before.
const REPEAT: usize = 6;
const COUNT: [u64; 2] = [2, 16];
const TIME: f64 = 10e-3;

/// Seconds that an iteration takes on each of some `samples`, rows of `a`, if the device has nothing else.
///
/// # Errors
/// Those of the device.
pub(crate) fn seconds(
    device: Option<&Info>,
    a: &Arc<Csr>,
    samples: &[Range<usize>],
    setup: &Setup,
) -> Result<Vec<f64>> {
    let parts = samples.iter().map(|rows| part_alone(a, rows.clone()));
    let Some(device) = device else {
        return match setup.precision {
            Precision::F64 => parts.map(|part| on_host::<f64>(a, part, setup)).collect(),
            Precision::F32 | Precision::Mixed => parts.map(|part| on_host::<f32>(a, part, setup)).collect(),
        };
    };
    let ctx = Arc::new(Context::open(device)?);
    match (setup.precision, device.has_f64) {
        (Precision::F64, _) => parts.map(|part| on_device::<f64, f64>(&ctx, &part, setup)).collect(),
        (Precision::F32 | Precision::Mixed, true) => {
            parts.map(|part| on_device::<f32, f64>(&ctx, &part, setup)).collect()
        }
        (Precision::F32 | Precision::Mixed, false) => {
            parts.map(|part| on_device::<f32, f32>(&ctx, &part, setup)).collect()
        }
    }
}

fn on_device<T: Real, A: Real>(ctx: &Arc<Context>, part: &Part<'_>, setup: &Setup) -> Result<f64> {
    let (backend, block) = load::<T, A>(ctx, part, setup, Box::new(Alone::default()))?;
    let r = DeviceVec::from_slice(ctx, &numbers::<T>(part.n_owned() + part.halo.len, 3), "r")?;
    timed(&backend, &block, setup.method, r)
}

fn on_host<T: Real>(a: &Arc<Csr>, part: Part<'_>, setup: &Setup) -> Result<f64> {
    let backend = HostBackend::<T>::new(part.n_owned(), Box::new(Alone::default()));
    let r = numbers::<T>(part.n_owned() + part.halo.len, 3);
    timed(&backend, &HostBlock::new(a, part, 1.0, setup.format)?, setup.method, r)
}

/// Seconds of an iteration: the least of some measurements.
fn timed<O: PassBackend>(backend: &O, block: &impl LinearOperator<O>, method: Method, r: O::Vector) -> Result<f64> {
    let mut iterations = iterations(backend, block, method, r)?;
    let mut mean = |count: u64| -> Result<f64> {
        let start = Instant::now();
        iterations(count)?;
        backend.finish(0)?;
        Ok(start.elapsed().as_secs_f64() / count as f64)
    };
    mean(1)?; // the first one pays for more than itself
    let count = ((TIME / mean(1)?.max(1e-9)) as u64).clamp(COUNT[0], COUNT[1]);
    if count == COUNT[1] {
        mean(count)?; // as do launches of several
    }
    let times = (0..REPEAT).map(|_| mean(count)).collect::<Result<Vec<_>>>()?;
    Ok(times.into_iter().fold(f64::INFINITY, f64::min)) // what disturbs only takes longer
}

/// What makes, or enqueues, so many iterations after the former ones, from this residual; of a method that is no text, those of `cg`
/// stand for its own.
fn iterations<'a, O: PassBackend>(
    backend: &'a O,
    block: &'a impl LinearOperator<O>,
    method: Method,
    r: O::Vector,
) -> Result<impl FnMut(u64) -> Result<()> + 'a>
where
    O::Vector: 'a,
    O::Passes: 'a,
{
    let program = method.program(Kind::PLAIN, None).or_else(|| Method::Cg.program(Kind::PLAIN, None));
    let program = program.unwrap_or_else(|| unreachable!("cg is a text"));
    let mut machine = Machine::new(backend, from_ref(block), program)?;
    for slot in LENT {
        machine.v[slot] = backend.vector(block.halo(), "a vector")?;
    }
    machine.v[R] = r;
    backend.begin()?;
    machine.begin(backend)?;
    machine.start(backend, from_ref(block), false)?;
    let mut next = 1;
    Ok(move |count| {
        let end = next + count;
        while next < end {
            // nothing meets a test of −1
            let several = machine.several(backend, from_ref(block), (next, end - next), -1.0)?;
            next = match several {
                Some(later) => later,
                None => {
                    machine.iterate(backend, from_ref(block), next, -1.0, &mut |_, _| None::<()>)?;
                    next + 1
                }
            };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::matrix::gallery;
    use crate::tune::Tune;

    #[test]
    fn devices_and_the_host_are_timed() {
        let a = Arc::new(gallery::poisson3d([20, 20, 20]).unwrap());
        let device = list().devices.into_iter().next().expect("the tests need an OpenCL device");
        for precision in [Precision::F64, Precision::F32, Precision::Mixed] {
            let setup = Setup { precision, tune: Tune::Off, ..Setup::default() };
            for device in [Some(&device), None] {
                let times = seconds(device, &a, &[0..8000, 2000..6000, 7999..8000], &setup).unwrap();
                assert!(times.len() == 3 && times.iter().all(|&time| time > 0.0 && time < 10.0), "{times:?}");
            }
        }
    }
}
