//! What the integration tests share.

pub(crate) mod process;

use declive::device::{Choice, list};
use declive::matrix::gallery::Spec;
use declive::solve::{Method, Precision, Precond, Tune};
use declive::{Control, Csr, Outcome, Setup, Solver, Stop};

/// The device choices that every solve is tested on: the host alone and as several ranks; a device alone, as 2, 3 and 5
/// logical devices, and beside the host.
pub(crate) fn choices() -> Vec<Choice> {
    ["host", "host,host,host", "D", "D,D", "D,D,D", "D,D,D,D,D", "D,host,D"].map(choice).into()
}

/// A choice of devices, in which D stands for the first, or for that whose number the environment variable
/// `DECLIVE_TEST_DEVICE` gives.
pub(crate) fn choice(devices: &str) -> Choice {
    require_opencl();
    let device = std::env::var("DECLIVE_TEST_DEVICE").unwrap_or_else(|_| "0".into());
    devices.replace('D', &device).parse().unwrap()
}

/// Tests of devices need one: PoCL on any machine. Without it they fail, rather than pass without a look.
pub(crate) fn require_opencl() {
    let listing = list();
    assert!(
        !listing.devices.is_empty(),
        "the tests need an OpenCL device (apt-get install pocl-opencl-icd): {:?}",
        listing.note
    );
}

/// A set-up by name. What else is kept on this machine has no part in it, and nothing is added.
pub(crate) fn setup(method: Method, precond: Precond, precision: Precision, devices: &Choice) -> Setup {
    Setup::default()
        .with_method(method)
        .with_precond(precond)
        .with_precision(precision)
        .with_devices(devices.clone())
        .with_tune(Tune::Off)
}

/// The preconditioners that every method takes.
pub(crate) const PRECONDS: [Precond; 2] = [Precond::None, Precond::Jacobi];

/// Every method that works in this precision, and every preconditioner that all take, on every choice of devices.
pub(crate) fn setups(precision: Precision) -> Vec<Setup> {
    let mut all = Vec::new();
    for devices in choices() {
        for &method in Method::FORCED {
            for precond in PRECONDS {
                all.push(setup(method, precond, precision, &devices));
            }
        }
    }
    all
}

/// The same for symmetric matrices alone.
pub(crate) fn symmetric_setups(precision: Precision) -> Vec<Setup> {
    setups(precision).into_iter().filter(|setup| !is_general(setup.method)).collect()
}

/// Whether a method is for any square matrix.
pub(crate) fn is_general(method: Method) -> bool {
    matches!(method, Method::Bicgstab | Method::Bicgstab2 | Method::Idr | Method::Gmres)
}

/// Every method on every choice of devices, with preconditioners in turns, so that any two of the three meet.
pub(crate) fn setups_in_pairs(precision: Precision) -> Vec<Setup> {
    let mut all = Vec::new();
    for (k, devices) in choices().iter().enumerate() {
        for (l, &method) in Method::FORCED.iter().enumerate() {
            all.push(setup(method, PRECONDS[(k + l) % PRECONDS.len()], precision, devices));
        }
    }
    all
}

/// A third of set-ups by any method on any choice of devices: each method on some of these, each choice by some methods, and others with each
/// turn. Systems that take turns so share all of them.
pub(crate) fn in_turns(setups: Vec<Setup>, turn: usize) -> Vec<Setup> {
    let all = choices();
    let place = |setup: &Setup| {
        let devices = all.iter().position(|choice| *choice == setup.devices).unwrap();
        devices + Method::FORCED.iter().position(|method| *method == setup.method).unwrap()
    };
    setups.into_iter().filter(|setup| (place(setup) + turn).is_multiple_of(3)).collect()
}

/// A matrix of the gallery.
pub(crate) fn system(spec: &str) -> Csr {
    spec.parse::<Spec>().unwrap().build().unwrap()
}

/// The matrix with these entries.
pub(crate) fn general(n: usize, entries: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr {
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for (i, j, v) in entries {
        t.0.push(i as u32);
        t.1.push(j as u32);
        t.2.push(v);
    }
    Csr::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap()
}

/// Solves with default options but the relative tolerance.
pub(crate) fn solve(a: &Csr, b: &[f64], setup: &Setup, rtol: f64) -> Outcome {
    solve_with(&mut Solver::new(a.clone(), setup).unwrap(), b, rtol)
}

/// The same with a solver that is there: to set up another one takes most of the time of a small solve.
pub(crate) fn solve_with(solver: &mut Solver, b: &[f64], rtol: f64) -> Outcome {
    let stop = Stop::default().with_rtol(rtol);
    solver.solve(b, None, &stop, Control::default()).unwrap()
}

/// ‖b − A x‖₂ / ‖b‖₂ by the plainest of means.
pub(crate) fn relative_residual(a: &Csr, b: &[f64], x: &[f64]) -> f64 {
    let r: f64 = a.mul_vec(x).iter().zip(b).map(|(ax, b)| (b - ax).powi(2)).sum();
    let b: f64 = b.iter().map(|b| b * b).sum();
    (r / b).sqrt()
}
