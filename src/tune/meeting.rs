//! What ranks need to meet in an iteration of some method, whatever their kernels do: measured with the solver itself on
//! these very devices, on a system so small that its kernels take next to no time. So all that the driver does is in it.

use crate::device::{Choice, Info, Pick};
use crate::error::Result;
use crate::matrix::gallery;
use crate::solver::{Control, Exchange, Method, Precond, Setup, Solver, Stop, Tune};

/// Points of a grid along each axis: 4096 rows.
const POINTS: usize = 64;

/// Iterations of a run, before the precision is exhausted; and runs, of which the first pays for warming up.
const ITERATIONS: u64 = 100;
const RUNS: usize = 4;

/// Seconds of an iteration of a method, by a model of exchange, on ranks of these devices with next to nothing to compute: the least of three runs.
///
/// # Errors
/// Those of the devices.
pub(crate) fn seconds(method: Method, exchange: Exchange, devices: &[Option<Info>]) -> Result<f64> {
    let picks = devices.iter().map(|device| device.as_ref().map_or(Pick::Host, |device| Pick::Index(device.index)));
    let setup = Setup {
        method,
        precond: Precond::None,
        exchange,
        devices: Choice::List(picks.collect()),
        tune: Tune::Off,
        ..Setup::default()
    };
    let a = gallery::poisson2d([POINTS, POINTS])?;
    let b = gallery::random_vector(a.n_rows(), 1);
    // what has no double precision meets as fast
    let single = Setup { precision: crate::solver::Precision::F32, ..setup.clone() };
    let has_f64 = devices.iter().flatten().all(|device| device.has_f64);
    let mut solver = Solver::new(a, if has_f64 { &setup } else { &single })?;
    let stop = Stop { rtol: 0.0, max_iters: Some(ITERATIONS), ..Stop::default() };
    let mut least = f64::INFINITY;
    for run in 0..RUNS {
        let outcome = solver.solve(&b, None, &stop, Control::default())?;
        if run > 0 && outcome.iterations > 0 {
            least = least.min(outcome.solve.as_secs_f64() / outcome.iterations as f64);
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn ranks_meet() {
        let device = list().devices.into_iter().next();
        assert!(device.is_some(), "the tests need an OpenCL device");
        for devices in [vec![device.clone(), device.clone()], vec![device.clone(), None, device], vec![None, None]] {
            for method in [Method::Cg, Method::CgSingleReduction, Method::CgPipelined] {
                let time = seconds(method, Exchange::HostStaged, &devices).unwrap();
                assert!(time > 0.0 && time < 1.0, "{method}: {time}");
            }
        }
    }
}
