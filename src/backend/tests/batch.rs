//! Columns by a work-group each take the steps that each takes alone.

use std::slice::from_ref;
use std::sync::Arc;

use super::{device, run, tuning};
use crate::backend::Record;
use crate::backend::batch::On;
use crate::backend::host::HostBackend;
use crate::backend::linear_operator::LinearOperator;
use crate::backend::opencl::OpenClBackend;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::Kind;
use crate::comm::Alone;
use crate::device::Context;
use crate::kernels::{Kernels, Shape};
use crate::krylov::Method;
use crate::matrix::{Csr, gallery};
use crate::operator::Format;
use crate::operator::host::HostBlock;
use crate::operator::opencl::DeviceBlock;
use crate::partition::split;

/// Iterations of two launches: rows of the log begin anew in the third.
const LAUNCHES: [std::ops::Range<u64>; 3] = [1..9, 9..41, 41..70];

/// The column that is over before it begins.
const OVER: usize = 2;

#[test]
fn groups_take_the_steps_of_each_alone() {
    check(&[
        ("variable:7", &[Method::Cg, Method::CgTextbook, Method::Minres][..], Format::Csr, 5),
        ("variable:9x9x7", &[Method::Cg, Method::CgPipelined], Format::Pattern, 3),
        ("poisson3d:9x8x9", &[Method::Cg, Method::CgSingleReduction], Format::Dictionary, 4),
        ("convection3d:6", &[Method::Bicgstab], Format::Csr, 3),
    ]);
}

#[test]
fn slices_keep_the_steps_of_each_alone() {
    check(&[("tetrahedra:3", &[Method::Cg], Format::Sell, 3)]);
}

fn check(all: &[(&str, &[Method], Format, usize)]) {
    let device = device();
    let ctx = Arc::new(Context::open(&device).unwrap());
    for &(spec, methods, format, count) in all {
        let a: Arc<Csr> = Arc::new(spec.parse::<gallery::Spec>().unwrap().build().unwrap());
        let n = a.n_rows();
        let part = || split(&a, from_ref(&(0..n))).remove(0);
        let host = HostBackend::<f64>::new(n, Box::new(Alone::default()));
        let host_rows = HostBlock::new(&a, part(), 1.0, Format::Csr).unwrap();
        let tuning = tuning(Shape::Gpu, 5);
        let kernels = Kernels::<f64, f64>::build(&ctx, tuning.clone()).unwrap();
        let backend = OpenClBackend::new(ctx.clone(), kernels, n, Box::new(Alone::default())).unwrap();
        let block = DeviceBlock::upload(&ctx, &tuning, &part(), 1.0, format).unwrap();
        let operator: &dyn LinearOperator<OpenClBackend<f64, f64>> = &block;
        let on = || On { rows: operator.rows().unwrap(), weights: None };
        let b: Vec<Vec<f64>> = (1..=count as u64).map(|seed| gallery::random_vector(n, seed)).collect();
        for &method in methods {
            let program = || method.program(Kind::PLAIN, None).unwrap();
            let mut batch = backend.batch(program(), on().rows, count).unwrap().unwrap();
            // twice, as state is kept; from zero, so that r = b
            for round in 0..2 {
                let what = format!("{spec}, {method}, round {round}");
                let norms = batch.begin(&backend, on(), &b.concat(), &vec![0.0; n * count]).unwrap();
                for (norm, b) in norms.iter().zip(&b) {
                    let expected: f64 = b.iter().map(|b| b * b).sum();
                    assert!((norm / expected - 1.0).abs() < 1e-12, "{what}");
                }
                let limits: Vec<f64> = norms.iter().enumerate().map(|(k, rr)| rr * 10f64.powi(-2 - k as i32)).collect();
                let mut over: Vec<bool> = (0..count).map(|k| k == OVER).collect();
                batch.start(&backend, &limits, &over).unwrap();
                let (mut iterations, mut residuals) = (vec![0; count], norms.clone());
                for launch in LAUNCHES {
                    batch.launch(&backend, on(), launch.clone()).unwrap();
                    assert_eq!(batch.under_way(), 1);
                    let known = over.clone();
                    let mut see = |k: usize, record: &Record| {
                        assert!(!known[k]);
                        if let Record::Residual { iteration, rr } = *record {
                            assert_eq!(iteration, iterations[k] + 1, "{what}, column {k}");
                            iterations[k] = iteration;
                            residuals[k] = rr;
                            over[k] = rr <= limits[k];
                        }
                        over[k]
                    };
                    assert_eq!(batch.look(&backend, &known, &mut see).unwrap(), Some(launch));
                }
                let x = batch.finish(&backend, on()).unwrap();
                for (k, x) in x.chunks(n).enumerate() {
                    if k == OVER {
                        assert!(x.iter().all(|x| *x == 0.0) && iterations[k] == 0, "{what}");
                        continue;
                    }
                    assert!(over[k] && (2..70).contains(&iterations[k]), "{what}: {} iterations", iterations[k]);
                    // x is that of the iteration in which the test was met
                    let r = a.mul_vec(x).iter().zip(&b[k]).map(|(ax, b)| (b - ax).powi(2)).sum::<f64>();
                    let (last, begun) = (residuals[k], norms[k]);
                    assert!((r / last - 1.0).abs() < 1e-6, "{what}, column {k}: {r:e} for {last:e} of {begun:e}");
                    // later on rounding errors have grown
                    if iterations[k] <= 15 {
                        let alone = run(&host, &host_rows, program(), &b[k], 0.0, iterations[k], false).x;
                        let largest = alone.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                        for (found, expected) in x.iter().zip(&alone) {
                            assert!(
                                (found - expected).abs() <= 1e-9 * largest,
                                "{what}, column {k}: {found} for {expected}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// A method whose first passes need sums, or rows that a group can't have, have no such kernels.
#[test]
fn what_groups_cannot_do() {
    let device = device();
    let ctx = Arc::new(Context::open(&device).unwrap());
    let a: Arc<Csr> = Arc::new("poisson3d:5".parse::<gallery::Spec>().unwrap().build().unwrap());
    let n = a.n_rows();
    let part = split(&a, from_ref(&(0..n))).remove(0);
    let tuning = tuning(Shape::Cpu, 5);
    let kernels = Kernels::<f64, f64>::build(&ctx, tuning.clone()).unwrap();
    let backend = OpenClBackend::new(ctx.clone(), kernels, n, Box::new(Alone::default())).unwrap();
    let block = DeviceBlock::upload(&ctx, &tuning, &part, 1.0, Format::Csr).unwrap();
    let operator: &dyn LinearOperator<OpenClBackend<f64, f64>> = &block;
    let program = Method::Cg.program(Kind::PLAIN, None).unwrap();
    assert!(backend.batch(program, operator.rows().unwrap(), 4).unwrap().is_none(), "the shape for processors");
}
