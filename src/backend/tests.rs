//! Programs on every kind of rank, against plain loops that share nothing with them.

use std::sync::Arc;

use super::machine::{Backend, LENT, Machine};
use super::program::{Program, Step};
use super::text::{R, X};
use crate::comm::{Alone, Communicator, Failure, Threads};
use crate::device::{Context, Info, list};
use crate::kernels::{Kernels, Shape, Tuning};
use crate::krylov::Method;
use crate::matrix::{Csr, gallery};
use crate::operator::Format;
use crate::operator::LinearOperator;
use crate::operator::host::HostBlock;
use crate::operator::opencl::DeviceBlock;
use crate::ops::Record;
use crate::ops::host::HostOps;
use crate::ops::opencl::OpenClOps;
use crate::partition::{Part, split};

fn device() -> Info {
    list().devices.into_iter().next().expect("the tests need an OpenCL device")
}

fn tuning(shape: Shape, groups: usize) -> Tuning {
    match shape {
        Shape::Cpu => Tuning::uniform(1, 1, groups),
        Shape::Gpu => Tuning::uniform(256, 2048, groups),
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
struct Ran {
    x: Vec<f64>,
    history: Vec<f64>,
    /// Of curvatures that were not positive.
    indefinite: Option<u64>,
}

/// Runs a program from x = 0 until ‖r‖² ≤ `limit`, or for so many iterations.
fn run<O: Backend<Real = f64>>(
    ops: &O,
    a: &impl LinearOperator<O>,
    program: Program,
    b: &[f64],
    limit: f64,
    most: u64,
) -> Ran {
    let mut machine = Machine::new(ops, a, program).unwrap();
    for slot in LENT {
        machine.v[slot] = ops.vector(a.halo(), "a vector").unwrap();
    }
    ops.begin().unwrap();
    ops.write(b, &mut machine.v[R]).unwrap();
    machine.start(ops, a, false).unwrap();
    let mut ran = Ran { x: vec![0.0; b.len()], history: Vec::new(), indefinite: None };
    let mut judge = |record: Record| match record {
        Record::Curvature { iteration, pq } => (pq <= 0.0 || pq.is_nan()).then(|| ran.indefinite = Some(iteration)),
        Record::Residual { rr, .. } => {
            ran.history.push(rr);
            (rr <= limit || rr.is_nan()).then_some(())
        }
    };
    for iteration in 1..=most {
        ops.begin_iteration(iteration).unwrap();
        if machine.iterate(ops, a, iteration, limit, &mut judge).unwrap().is_some() {
            break;
        }
        let mut records = Vec::new();
        machine.look(ops, iteration, iteration == most, &mut records).unwrap();
        if records.into_iter().find_map(&mut judge).is_some() {
            break;
        }
    }
    ops.read(&machine.v[X], &mut ran.x).unwrap();
    ran
}

/// Of each rank of `parts`, in a thread of its own.
fn on_ranks(
    a: &Arc<Csr>,
    parts: usize,
    b: &[f64],
    rank: impl Fn(Part<'_>, Threads<f64>, &[f64]) -> Ran + Sync,
) -> Vec<Ran> {
    let n = a.n_rows();
    let rows: Vec<_> = (0..parts).map(|k| k * n / parts..(k + 1) * n / parts).collect();
    let split = split(a, &rows);
    let receivers: Vec<usize> = (0..parts)
        .map(|rank| split.iter().filter(|part| part.halo.receive.iter().any(|receive| receive.from == rank)).count())
        .collect();
    let comms = Threads::new(&receivers, &Arc::new(Failure::default()));
    std::thread::scope(|scope| {
        let rank = &rank;
        let threads: Vec<_> = split
            .into_iter()
            .zip(comms)
            .map(|(part, comm)| {
                let b = &b[part.rows.clone()];
                scope.spawn(move || rank(part, comm, b))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn together(ran: Vec<Ran>) -> Ran {
    let x = ran.iter().flat_map(|ran| ran.x.clone()).collect();
    assert!(ran.iter().all(|other| other.history == ran[0].history), "all ranks see the same");
    Ran { x, ..ran[0].clone() }
}

fn on_host(
    a: &Arc<Csr>,
    part: Part<'_>,
    comm: Box<dyn Communicator<f64>>,
    program: Program,
    b: &[f64],
    limit: f64,
    most: u64,
) -> Ran {
    let ops = HostOps::<f64>::new(part.n_owned(), comm);
    let block = HostBlock::new(a, part, 1.0, Format::Csr).unwrap();
    run(&ops, &block, program, b, limit, most)
}

fn on_device(
    part: &Part<'_>,
    comm: Box<dyn Communicator<f64>>,
    tuning: Tuning,
    program: Program,
    b: &[f64],
    limit: f64,
    most: u64,
) -> Ran {
    let ctx = Arc::new(Context::open(&device()).unwrap());
    let kernels = Kernels::build(&ctx, tuning).unwrap();
    let ops = OpenClOps::<f64, f64>::new(ctx.clone(), kernels, part.n_owned(), comm, false).unwrap();
    let block = DeviceBlock::upload(&ctx, &ops.kernels.tuning, part, 1.0, Format::Csr).unwrap();
    run(&ops, &block, program, b, limit, most)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn residual(a: &Csr, x: &[f64], b: &[f64]) -> f64 {
    norm(&a.mul_vec(x).iter().zip(b).map(|(y, b)| b - y).collect::<Vec<_>>())
}

#[test]
fn methods_converge_on_every_rank() {
    let definite = Arc::new(gallery::poisson2d([37, 29]).unwrap());
    for name in Method::FORCED.iter().copied().filter(|method| method.facts().text.is_some()) {
        let program = || name.program(false).unwrap();
        let a = &definite;
        let b: Vec<f64> = (0..a.n_rows()).map(|i| (i * 31 % 97) as f64 - 40.0).collect();
        let limit = (1e-9 * norm(&b)).powi(2);
        let whole = || split(a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        let host = on_host(a, whole(), Box::new(Alone::default()), program(), &b, limit, 1000);
        let mut all = vec![("host", host.clone())];
        for parts in [2, 3, 5] {
            let ran =
                on_ranks(a, parts, &b, |part, comm, b| on_host(a, part, Box::new(comm), program(), b, limit, 1000));
            all.push(("hosts", together(ran)));
        }
        for shape in [Shape::Cpu, Shape::Gpu] {
            all.push((
                "device",
                on_device(&whole(), Box::new(Alone::default()), tuning(shape, 8), program(), &b, limit, 1000),
            ));
            for parts in [2, 3, 5] {
                let ran = on_ranks(a, parts, &b, |part, comm, b| {
                    on_device(&part, Box::new(comm), tuning(shape, 8), program(), b, limit, 1000)
                });
                all.push(("devices", together(ran)));
            }
        }
        for (what, ran) in all {
            let relative = residual(a, &ran.x, &b) / norm(&b);
            assert!(relative < 1.1e-9, "{name}, {what}: {relative:e} after {}", ran.history.len());
            assert!(ran.history.len().abs_diff(host.history.len()) <= 2, "{name}, {what}: {}", ran.history.len());
        }
    }
}

#[test]
fn passes_of_methods() {
    let arrays = |method: Method, is_scaled| {
        let program = method.program(is_scaled).unwrap();
        let passes: Vec<(String, usize)> =
            program.passes().map(|pass| (pass.name.clone(), pass.arrays_moved())).collect();
        let products = program.iteration.iter().filter(|step| matches!(step, Step::Multiply(_))).count();
        (products, passes)
    };
    let named = |passes: &[(&str, usize)]| passes.iter().map(|(name, n)| (String::from(*name), *n)).collect::<Vec<_>>();
    let textbook = [("cg_textbook_r_dots", 3), ("cg_textbook_x_p", 5)];
    assert_eq!(arrays(Method::CgTextbook, false), (1, named(&textbook)));
    assert_eq!(arrays(Method::Minres, false), (1, named(&[("minres_u_old_dots", 4), ("minres_w_old_x", 6)])));
    let scaled = [("minres_u_old_dots", 4), ("minres_w_old_x_r_dots", 10), ("minres_scalars", 0)];
    assert_eq!(arrays(Method::Minres, true), (1, named(&scaled)));
}
