//! How fast a device, or the host, is on rows of a system: the kernels of an iteration are made and timed on a
//! sample of them, in the format and with the launches that a rank would have.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::LinearOperator;
use crate::backend::host::HostBackend;
use crate::backend::machine::{LENT, Machine, PassBackend};
use crate::backend::text::R;
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
use crate::timing::timing;
use crate::tune::stopwatch::{Stopwatch, sum};
use crate::tune::workload::numbers;

/// Iterations that are timed, and the time that they may take beyond the least number.
const COUNT: [usize; 2] = [3, 15];
const TIME: Duration = Duration::from_millis(50);

/// Seconds that the kernels of the product and the step of an iteration take on each of some `samples`, rows of `a` of which
/// other ranks have the rest: on devices the kernels' own, as ranks measure them in a solve.
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
    let mut iteration = iteration(&backend, &block, setup.method, r)?;
    iteration()?; // the first one pays for more than itself
    ctx.finish()?;
    let start = Instant::now();
    iteration()?;
    ctx.finish()?;
    let times = Stopwatch::default().times(ctx, count(start.elapsed()), sum, |_| iteration())?;
    Ok(timing(times).median)
}

fn on_host<T: Real>(a: &Arc<Csr>, part: Part<'_>, setup: &Setup) -> Result<f64> {
    let backend = HostBackend::<T>::new(part.n_owned(), Box::new(Alone::default()));
    let r = numbers::<T>(part.n_owned() + part.halo.len, 3);
    let block = HostBlock::new(a, part, 1.0, setup.format)?;
    let mut iteration = iteration(&backend, &block, setup.method, r)?;
    let mut timed = || -> Result<f64> {
        let start = Instant::now();
        iteration()?;
        Ok(start.elapsed().as_secs_f64())
    };
    timed()?;
    let once = Duration::from_secs_f64(timed()?);
    let times = (0..count(once)).map(|_| timed()).collect::<Result<_>>()?;
    Ok(timing(times).median)
}

/// How many iterations are timed, if one takes so long.
fn count(once: Duration) -> usize {
    ((TIME.as_secs_f64() / once.as_secs_f64().max(1e-9)) as usize).clamp(COUNT[0], COUNT[1])
}

/// What makes one iteration after the other, from this residual; of a method that is no text, those of `cg` stand for its own.
fn iteration<'a, O: PassBackend>(
    backend: &'a O,
    block: &'a impl LinearOperator<O>,
    method: Method,
    r: O::Vector,
) -> Result<impl FnMut() -> Result<()> + 'a>
where
    O::Vector: 'a,
    O::Passes: 'a,
{
    let program = method.program(false, None).or_else(|| Method::Cg.program(false, None));
    let program = program.unwrap_or_else(|| unreachable!("cg is a text"));
    let mut machine = Machine::new(backend, block, program)?;
    for slot in LENT {
        machine.v[slot] = backend.vector(block.halo(), "a vector")?;
    }
    machine.v[R] = r;
    backend.begin()?;
    machine.begin(backend)?;
    machine.start(backend, block, false)?;
    let mut iterations = 1..;
    Ok(move || {
        let iteration = iterations.next().unwrap_or_default();
        // nothing meets a test of −1
        machine.iterate(backend, block, iteration, -1.0, &mut |_| None::<()>)?;
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
