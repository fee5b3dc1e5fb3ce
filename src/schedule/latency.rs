//! The synchronisation latency: what ranks take for an iteration of `cg`, whatever their kernels do: measured with the ranks of a solve on these
//! very devices, for a system so small that its kernels take next to no time. So all that the driver does is in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::device::Info;
use crate::error::Result;
use crate::krylov::Method;
use crate::matrix::gallery;
use crate::operator::Exchange;
use crate::partition::row_ranges;
use crate::precond::Precond;
use crate::real::Precision;
use crate::runtime::{Control, Monitor, Placement, Position, Ranks, Setup, ShareSource, Stop, Whole};
use crate::tune::Tune;
use crate::tune::store::Store;
use crate::verify::norm_2;

/// Points of a grid along each axis: 4096 rows.
const POINTS: usize = 64;

/// Iterations of short and of long runs, before the precision is exhausted; how much longer a long one takes tells of iterations, and
/// not of the start. And runs of each, of which the first pays for warming up.
const ITERATIONS: [u64; 2] = [20, 120];
const RUNS: usize = 8;

/// Seconds of an iteration of `cg`, by a model of exchange, on ranks of these devices with next to nothing to compute: the
/// least of some runs. What comes before the first iteration does not count.
///
/// # Errors
/// Those of the devices.
pub(crate) fn seconds(exchange: Exchange, devices: &[Option<Info>]) -> Result<f64> {
    // what has no double precision synchronises as fast
    let has_f64 = devices.iter().flatten().all(|device| device.has_f64);
    let precision = if has_f64 { Precision::F64 } else { Precision::F32 };
    let setup =
        Setup { method: Method::Cg, precond: Precond::None, exchange, precision, tune: Tune::Off, ..Setup::default() };
    let a = Arc::new(gallery::poisson2d([POINTS, POINTS])?);
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 1));
    let whole = Whole::new(Arc::clone(&a), &a, None, 1.0, &setup, Store::none());
    let rows = row_ranges(&a, devices.len());
    let placement = Placement { devices: devices.to_vec(), rows, source: ShareSource::Even };
    let mut ranks = Ranks::open(&whole, Some(a), placement, None)?;
    let norm = norm_2(&b);
    let mut least = ITERATIONS.map(|_| Duration::MAX);
    for run in 0..RUNS {
        for (iterations, least) in ITERATIONS.into_iter().zip(&mut least) {
            let stop = Stop { rtol: 0.0, max_iters: Some(iterations), ..Stop::default() };
            let started = Instant::now();
            let monitor = || Monitor::new(n, 0.0, norm, precision, &stop, Control::default(), (0, started));
            let ended = ranks.run(&b, &mut Position::at(vec![0.0; n]), &monitor)?;
            if run > 0 {
                *least = ended.iter().map(|rank| rank.solve).max().unwrap_or_default().min(*least);
            }
        }
    }
    let [short, long] = least.map(|time| time.as_secs_f64());
    let [few, many] = ITERATIONS.map(|iterations| iterations as f64);
    let with_start = long / many;
    // a start that others have disturbed may take longer than all else
    Ok(if long > short { (long - short) / (many - few) } else { with_start })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn latency_of_devices() {
        let device = list().devices.into_iter().next();
        assert!(device.is_some(), "the tests need an OpenCL device");
        for devices in [vec![device.clone(), device.clone()], vec![device.clone(), None, device], vec![None, None]] {
            let time = seconds(Exchange::HostStaged, &devices).unwrap();
            assert!(time > 0.0 && time < 1.0, "{time}");
        }
    }
}
