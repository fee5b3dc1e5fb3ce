//! Where the time of an iteration goes: a method is run for so many iterations, and its kernels are timed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::device::together;
use crate::error::{Error, Result};
use crate::matrix::{Csr, gallery};
use crate::solve::{Control, Outcome, Precond, Reason, Setup, Solver, Stop};
use crate::timeline::{Lane, Timeline};

/// Iterations of the run before those that count, which pays for what happens once.
const WARM_UP: u64 = 10;

/// The time of some iterations of a method, kernel by kernel (Bueno 2013, tables 4.5 and 4.6).
///
/// ```
/// use declive::experiments::{Experiment, KernelTime};
///
/// let time = |kernel: &str, calls, seconds| KernelTime { kernel: kernel.into(), calls, seconds };
/// let experiment = Experiment {
///     name: "one GPU".into(),
///     devices: vec!["a GPU".into()],
///     method: "cg-classic".into(),
///     precision: "f64".into(),
///     matrix: "A.mtx".into(),
///     order: 1000,
///     nnz: 5000,
///     iterations: 100,
///     total_seconds: 1.0,
///     least_seconds: 0.9,
///     most_seconds: 1.2,
///     bytes_per_iteration: 184_000,
///     copy_bytes_per_second: None,
///     kernels: vec![time("spmv_csr", 100, 0.5), time("dot_partial", 200, 0.25)],
///     notes: Vec::new(),
/// };
/// assert_eq!(experiment.kernel_seconds(), 0.75);
/// assert_eq!(experiment.overhead_seconds(), 0.25);
/// assert_eq!(experiment.seconds_per_iteration(), 0.01);
/// assert_eq!(experiment.bytes_per_second(), 18.4e6);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// What tells it from others: `H200`, `4 × H200`.
    pub name: String,
    /// The devices that shared the work.
    pub devices: Vec<String>,
    /// The method, without a preconditioner.
    pub method: String,
    /// `f64` or `f32`.
    pub precision: String,
    /// What the matrix is.
    pub matrix: String,
    /// Rows of the matrix.
    pub order: usize,
    /// Entries of the matrix.
    pub nnz: usize,
    /// How many iterations were made.
    pub iterations: usize,
    /// From before the first iteration to the end of the last one, the first residual included: the median of several runs.
    pub total_seconds: f64,
    /// The fastest of them.
    pub least_seconds: f64,
    /// The slowest of them.
    pub most_seconds: f64,
    /// Bytes that an iteration moves by the byte rule: each array that an operation reads counts once, and each that it
    /// writes.
    pub bytes_per_iteration: u64,
    /// Bytes a second of plain copies on all devices at once, if they were measured.
    pub copy_bytes_per_second: Option<f64>,
    /// The kernels, in the order of the method, timed in a run of its own. Of several devices, which work at the same time,
    /// those of the one whose kernels take longest in sum.
    pub kernels: Vec<KernelTime>,
    /// What is not as one expects.
    pub notes: Vec<String>,
}

/// The time of a kernel in an [`Experiment`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// Its name.
    pub kernel: String,
    /// How many times it was launched.
    pub calls: u64,
    /// All launches together.
    pub seconds: f64,
}

impl Experiment {
    /// The time of all kernels.
    #[must_use]
    pub fn kernel_seconds(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.seconds).sum()
    }

    /// What the kernels of the iterations leave of the time: launches, waiting, sums and halos between devices, the first
    /// residual. Total − kernels; the two come of different runs, so that it may be below zero where
    /// there is next to none.
    #[must_use]
    pub fn overhead_seconds(&self) -> f64 {
        self.total_seconds - self.kernel_seconds()
    }

    /// The time of an iteration, overhead included.
    #[must_use]
    pub fn seconds_per_iteration(&self) -> f64 {
        self.total_seconds / self.iterations as f64
    }

    /// Bytes a second by the byte rule.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes_per_iteration as f64 / self.seconds_per_iteration()
    }
}

/// Runs a method for `iterations` iterations: `repeat` times undisturbed, for the total, and once more with all kernels timed.
/// `matrix` says what `a` is; the right-hand side is random. Method, precision, devices and launch parameters are those of
/// `setup`; there is no preconditioner. Use [`Tune::Stored`](crate::solve::Tune) or `Off`, so that nothing is measured meanwhile.
///
/// A run that can't go on for so long, since the precision is exhausted, counts with the iterations that it made, and a note.
/// `progress` is called with the runs that are done and their number.
///
/// # Errors
/// Those of [`Solver::new`]; [`Error::Usage`] if no iteration can be made, or `iterations` or `repeat` is 0; errors of devices.
pub fn experiment(
    a: &Arc<Csr>,
    matrix: &str,
    setup: &Setup,
    iterations: u64,
    repeat: usize,
    progress: &dyn Fn(usize, usize),
) -> Result<Experiment> {
    if iterations == 0 || repeat == 0 {
        return Err(Error::Usage("an experiment needs an iteration and a run, at least".into()));
    }
    let setup = Setup { precond: Precond::None, ..setup.clone() };
    let mut solver = Solver::new(Arc::clone(a), &setup)?;
    let b = gallery::random_vector(a.n_rows(), 1);
    let all = repeat + 2;
    let mut done = 0;
    let mut solve = |iterations, timeline| {
        let stop = Stop { rtol: 0.0, max_iters: Some(iterations), ..Stop::default() };
        let outcome = solver.solve(&b, None, &stop, Control { timeline, ..Control::default() })?;
        if outcome.iterations == 0 {
            return Err(Error::Usage(format!("{matrix}: no iteration can be timed; {}", outcome.reason)));
        }
        done += 1;
        progress(done, all);
        Ok(outcome)
    };

    solve(iterations.min(WARM_UP), false)?;
    let mut runs = (0..repeat).map(|_| solve(iterations, false)).collect::<Result<Vec<Outcome>>>()?;
    let timed = solve(iterations, true)?;
    runs.sort_by_key(|run| run.solve);
    let [least, most] = [0, repeat - 1].map(|k| runs[k].solve.as_secs_f64());
    let middle = &runs[(repeat - 1) / 2];
    let total = (middle.solve + runs[repeat / 2].solve).as_secs_f64() / 2.0;

    let mut notes = Vec::new();
    if middle.iterations < iterations {
        notes.push(format!("ended after {} of {iterations} iterations; {}", middle.iterations, middle.reason));
    } else if middle.reason != Reason::MaxIters {
        notes.push(middle.reason.to_string());
    }
    let ranks = timed.timelines.iter().map(|timeline| kernels(timeline, middle.iterations));
    let longest = ranks.max_by(|(a, _), (b, _)| seconds(a).total_cmp(&seconds(b)));
    let (kernels, recorded) = longest.unwrap_or_default();
    if recorded < middle.iterations {
        notes.push(format!("kernels were timed in {recorded} of {} iterations, and scaled up", middle.iterations));
    }
    let devices: Vec<String> = solver.ranks().iter().map(|rank| rank.device.clone()).collect();
    Ok(Experiment {
        name: together(devices.iter().map(String::as_str)),
        devices,
        method: solver.method().name().into(),
        precision: setup.precision.name().into(),
        matrix: matrix.into(),
        order: a.n_rows(),
        nnz: a.nnz(),
        iterations: middle.iterations as usize,
        total_seconds: total,
        least_seconds: least,
        most_seconds: most,
        bytes_per_iteration: middle.bytes_per_iteration,
        copy_bytes_per_second: None,
        kernels,
        notes,
    })
}

/// The kernels of a rank, as if all of `iterations` had been recorded, and how many were.
fn kernels(timeline: &Timeline, iterations: u64) -> (Vec<KernelTime>, u64) {
    let spans = timeline.spans.iter().filter(|span| span.lane == Lane::Kernels);
    let recorded = spans.filter_map(|span| span.iteration).collect::<BTreeSet<u64>>().len() as u64;
    let scale = iterations as f64 / recorded.max(1) as f64;
    let kernel = |total: crate::timeline::KernelTotal| KernelTime {
        kernel: total.kernel.into(),
        calls: (total.calls as f64 * scale).round() as u64,
        seconds: total.time.as_secs_f64() * scale,
    };
    // not those that a run launches once
    let of_iterations = timeline.kernels().into_iter().filter(|total| 2 * total.calls >= recorded);
    (of_iterations.map(kernel).collect(), recorded)
}

fn seconds(kernels: &[KernelTime]) -> f64 {
    kernels.iter().map(|kernel| kernel.seconds).sum()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;
    use crate::solve::Method;
    use crate::timeline::Span;

    fn on_host(a: Csr, method: Method, iterations: u64, repeat: usize) -> Result<Experiment> {
        let setup = Setup { method, devices: "host,host".parse()?, ..Setup::default() };
        experiment(&Arc::new(a), "a grid", &setup, iterations, repeat, &|_, _| {})
    }

    #[test]
    fn all_iterations_and_their_kernels() {
        let a = gallery::poisson2d([40, 50]).unwrap();
        for (method, kernels) in [(Method::CgClassic, 5), (Method::Cg, 3)] {
            let one = on_host(a.clone(), method, 20, 3).unwrap();
            assert_eq!((one.iterations, one.order, one.nnz, one.kernels.len()), (20, 2000, a.nnz(), kernels));
            assert_eq!((one.method.as_str(), one.notes.len(), one.devices.len()), (method.name(), 0, 2));
            assert!(one.name.starts_with("2 × host"), "{}", one.name);
            assert!(one.least_seconds <= one.total_seconds && one.total_seconds <= one.most_seconds);
            for kernel in &one.kernels {
                // the halo of the first direction is sent
                assert!(kernel.calls >= 19 && kernel.seconds > 0.0, "{kernel:?}");
            }
            let sum = one.kernel_seconds() + one.overhead_seconds();
            assert!((sum - one.total_seconds).abs() < 1e-12);
        }
    }

    #[test]
    fn runs_that_end_early_or_are_long_say_so() {
        // two different eigenvalues: two iterations
        let a = Csr::new(4, 4, (0..5).collect(), (0..4).collect(), vec![1.0, 1.0, 2.0, 2.0]).unwrap();
        let one = on_host(a, Method::Cg, 50, 2).unwrap();
        assert!(one.iterations < 10, "{one:?}");
        assert!(one.notes[0].starts_with(&format!("ended after {} of 50 iterations; ", one.iterations)), "{one:?}");
        let long = on_host(gallery::poisson2d([200, 200]).unwrap(), Method::Cg, 130, 1).unwrap();
        assert_eq!((long.iterations, long.kernels[0].calls % 130), (130, 0));
        assert_eq!(long.notes, ["kernels were timed in 101 of 130 iterations, and scaled up"]);
    }

    #[test]
    fn nothing_to_time() {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, -1.0]).unwrap();
        let error = on_host(a.clone(), Method::Cg, 10, 1).unwrap_err().to_string();
        assert!(error.starts_with("a grid: no iteration can be timed; IndefiniteOperator"), "{error}");
        assert!(on_host(Csr::new(0, 0, vec![0], vec![], vec![]).unwrap(), Method::Cg, 10, 1).is_err());
        assert!(on_host(a.clone(), Method::Cg, 0, 1).is_err() && on_host(a, Method::Cg, 1, 0).is_err());
    }

    #[test]
    fn progress_counts_all_runs() {
        let seen = RefCell::new(Vec::new());
        let setup = Setup { devices: "host".parse().unwrap(), ..Setup::default() };
        let a = Arc::new(gallery::poisson2d([9, 9]).unwrap());
        experiment(&a, "a grid", &setup, 3, 2, &|done, all| seen.borrow_mut().push((done, all))).unwrap();
        assert_eq!(seen.into_inner(), [(1, 4), (2, 4), (3, 4), (4, 4)]);
    }

    #[test]
    fn what_was_not_recorded_is_scaled_up() {
        let span = |name, lane, iteration, [start, end]: [u64; 2]| {
            let [start, end] = [start, end].map(Duration::from_secs);
            Span { lane, name, iteration, start, end }
        };
        let spans = vec![
            span("residual_csr", Lane::Kernels, None, [0, 9]),
            span("spmv_csr", Lane::Kernels, Some(1), [10, 12]),
            span("spmv_csr", Lane::Kernels, Some(2), [12, 13]),
            span("sum", Lane::Host, Some(3), [13, 15]),
        ];
        let spmv = KernelTime { kernel: "spmv_csr".into(), calls: 3, seconds: 4.5 };
        assert_eq!(kernels(&Timeline { spans, ..Timeline::default() }, 3), (vec![spmv], 2));
        assert_eq!(kernels(&Timeline::default(), 3), (vec![], 0));
    }
}
