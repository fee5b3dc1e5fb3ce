//! Several columns side by side take the steps that each takes alone.

use std::slice::from_ref;
use std::sync::Arc;

use super::{device, run, tuning};
use crate::backend::host::HostBackend;
use crate::backend::machine::{LENT, Machine};
use crate::backend::opencl::OpenClBackend;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{Kind, R, X};
use crate::backend::{Backend, LinearOperator};
use crate::comm::Alone;
use crate::device::Context;
use crate::kernels::{Kernels, Shape};
use crate::krylov::Method;
use crate::matrix::{Csr, gallery};
use crate::operator::Format;
use crate::operator::host::HostBlock;
use crate::operator::opencl::DeviceBlock;
use crate::partition::split;

/// Iterations after which a column leaves, after which the others are taken together, and of these in all.
const STEPS: [u64; 3] = [4, 7, 11];

fn ready<O: PassBackend<Real = f64>, A: LinearOperator<O>>(backend: &O, a: &A, method: Method) -> Machine<O> {
    let mut machine = Machine::new(backend, from_ref(a), method.program(Kind::PLAIN, None).unwrap()).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(0, "lent").unwrap();
    }
    machine
}

/// Column `k` of a vector.
fn column<O: Backend<Real = f64>>(backend: &O, v: &O::Vector, k: usize) -> Vec<f64> {
    let mut all = vec![0.0; backend.n_owned()];
    backend.read(v, &mut all).unwrap();
    all.into_iter().skip(k).step_by(backend.columns()).collect()
}

/// Three columns, of which the second leaves; then the others are taken together.
fn side_by_side<O: PassBackend<Real = f64>, A: LinearOperator<O>>(
    one: &O,
    a: &A,
    method: Method,
    b: &[Vec<f64>; 3],
) -> [Vec<f64>; 3] {
    let backend = one.with_columns(4).unwrap();
    let block = a.of_columns(&backend, 4).unwrap();
    let mut machine = ready(&backend, &block, method);
    let all: Vec<f64> = (0..b[0].len()).flat_map(|i| [b[0][i], b[1][i], b[2][i], 0.0]).collect();
    backend.begin().unwrap();
    backend.write(&all, &mut machine.v[R]).unwrap();
    let norms = machine.begin_columns(&backend).unwrap();
    for (norm, b) in norms.iter().zip(b) {
        let expected: f64 = b.iter().map(|b| b * b).sum();
        assert!((norm / expected - 1.0).abs() < 1e-12);
    }
    machine.leave(3);
    machine.start(&backend, from_ref(&block), false).unwrap();
    let nothing = &mut |_, _| None::<()>;
    for iteration in 1..=STEPS[1] {
        machine.iterate(&backend, from_ref(&block), iteration, 0.0, nothing).unwrap();
        if iteration == STEPS[0] {
            machine.settle(&backend, &block, nothing).unwrap();
            machine.leave(1);
        }
    }
    assert_eq!(machine.active(), 2);
    machine.settle(&backend, &block, nothing).unwrap();
    machine.complete(&backend).unwrap();
    let second = column(&backend, &machine.v[X], 1);

    let narrow = one.with_columns(2).unwrap();
    let block = a.of_columns(&narrow, 2).unwrap();
    let mut others = ready(&narrow, &block, method);
    narrow.begin().unwrap();
    others.take_over(&narrow, &machine, &[2, 0]).unwrap();
    for iteration in STEPS[1] + 1..=STEPS[2] {
        others.iterate(&narrow, from_ref(&block), iteration, 0.0, nothing).unwrap();
    }
    others.settle(&narrow, &block, nothing).unwrap();
    others.complete(&narrow).unwrap();
    [column(&narrow, &others.v[X], 1), second, column(&narrow, &others.v[X], 0)]
}

fn check(found: [Vec<f64>; 3], expected: &[Vec<f64>; 3], what: &str) {
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        let largest = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-9 * largest, "{what}, column {k}: {found} for {expected}");
        }
    }
}

#[test]
fn columns_take_the_steps_of_each_alone() {
    let device = device();
    let ctx = Arc::new(Context::open(&device).unwrap());
    for (spec, methods) in [
        ("variable:7", &[Method::Cg, Method::CgPipelined, Method::Minres][..]),
        ("convection3d:6", &[Method::Bicgstab, Method::Bicgstab2]),
    ] {
        let a: Arc<Csr> = Arc::new(spec.parse::<gallery::Spec>().unwrap().build().unwrap());
        let n = a.n_rows();
        let part = || split(&a, from_ref(&(0..n))).remove(0);
        let host = HostBackend::<f64>::new(n, Box::new(Alone::default()));
        let rows = HostBlock::new(&a, part(), 1.0, Format::Csr).unwrap();
        let b = [1, 2, 3].map(|seed| gallery::random_vector(n, seed));
        for &method in methods {
            let alone = |k: usize| {
                let most = if k == 1 { STEPS[0] } else { STEPS[2] };
                run(&host, &rows, method.program(Kind::PLAIN, None).unwrap(), &b[k], 0.0, most, false).x
            };
            let expected = [0, 1, 2].map(alone);
            check(side_by_side(&host, &rows, method, &b), &expected, &format!("{method}, host"));
            for shape in [Shape::Cpu, Shape::Gpu] {
                let tuning = tuning(shape, 5);
                let kernels = Kernels::<f64, f64>::build(&ctx, tuning.clone()).unwrap();
                let backend = OpenClBackend::new(ctx.clone(), kernels, n, Box::new(Alone::default())).unwrap();
                let block = DeviceBlock::upload(&ctx, &tuning, &part(), 1.0, Format::Csr).unwrap();
                check(side_by_side(&backend, &block, method, &b), &expected, &format!("{method}, {shape:?}"));
            }
        }
    }
}
