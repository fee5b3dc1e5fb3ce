//! Programs on every kind of rank, against plain loops that share nothing with them.

use std::slice::from_ref;
use std::sync::Arc;

use super::deferred::complete;
use super::machine::{LENT, Machine};
use super::pass_backend::PassBackend;
use super::program::Program;
use super::text::{Kind, OWN, R, Recorder, Scalar, X};
use crate::backend::LinearOperator;
use crate::backend::host::HostBackend;
use crate::backend::opencl::OpenClBackend;
use crate::backend::{Backend, Record};
use crate::comm::{Alone, Communicator, Failure, Threads};
use crate::device::{Context, Info, list};
use crate::kernels::{Kernels, Launch, Shape, Tuning};
use crate::krylov::Method;
use crate::matrix::{Csr, gallery};
use crate::operator::Format;
use crate::operator::host::HostBlock;
use crate::operator::opencl::DeviceBlock;
use crate::partition::{Part, split};
use crate::precond::{Precond, Rows};
use crate::real::Real;

/// A Krylov basis.
mod basis;
/// Several columns side by side.
mod batch;
mod columns;
/// The host's threads among ranks that meet.
mod meeting;
/// Several ranks' launches, on one device.
mod mirrored;
/// Random texts, against plain loops.
mod random;
/// Products with A and with its transpose, each with halos of its own.
mod transposes;

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
    /// Whether ranks iterated without the host.
    is_together: bool,
}

/// Runs a program from x = 0 until ‖r‖² ≤ `limit`, or for so many iterations, several in a launch if they may be.
fn run<O: PassBackend<Real = f64>>(
    backend: &O,
    a: &impl LinearOperator<O>,
    program: Program,
    b: &[f64],
    limit: f64,
    most: u64,
    by_several: bool,
) -> Ran {
    run_counting(backend, a, program, (b, limit, most), by_several, &mut 0)
}

/// The same, which counts the launches of several iterations that were not refused.
fn run_counting<O: PassBackend>(
    backend: &O,
    a: &impl LinearOperator<O>,
    program: Program,
    (b, limit, most): (&[f64], f64, u64),
    by_several: bool,
    launches: &mut u64,
) -> Ran {
    let mut machine = Machine::new(backend, from_ref(a), program).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(a.halo(), "a vector").unwrap();
    }
    backend.begin().unwrap();
    backend.write(&O::Real::scaled(b, 1.0), &mut machine.v[R]).unwrap();
    machine.begin(backend).unwrap();
    machine.start(backend, from_ref(a), false).unwrap();
    let is_together = machine.is_together();
    let mut ran = Ran { x: vec![0.0; b.len()], history: Vec::new(), indefinite: None, is_together };
    let mut judge = |_, record: Record| match record {
        Record::Curvature { iteration, pq } => (pq <= 0.0 || pq.is_nan()).then(|| ran.indefinite = Some(iteration)),
        Record::Breakdown { value, .. } | Record::Minimum { value, .. } => {
            (value <= 0.0 || value.is_nan()).then_some(())
        }
        Record::Residual { rr, .. } => {
            ran.history.push(rr);
            (rr <= limit || rr.is_nan()).then_some(())
        }
    };
    let mut next = 1;
    while next <= most {
        let several = if by_several {
            machine.several(backend, from_ref(a), (next, most + 1 - next), limit).unwrap()
        } else {
            None
        };
        if several.is_none() {
            backend.begin_iteration(next).unwrap();
            if machine.iterate(backend, from_ref(a), next, limit, &mut judge).unwrap().is_some() {
                break;
            }
        }
        *launches += u64::from(several.is_some_and(|several| several > next));
        next = several.unwrap_or(next + 1);
        assert!(!machine.must_replace(), "only the first launch is refused here");
        let mut records = Vec::new();
        machine.look(backend, next - 1, next > most, &mut records).unwrap();
        if records.into_iter().find_map(|record| judge(0, record)).is_some() {
            break;
        }
        if next > most {
            next = machine.several(backend, from_ref(a), (next, 0), limit).unwrap().unwrap_or(next); // was a launch refused?
        }
    }
    machine.complete(backend).unwrap();
    O::Real::fill(&mut ran.x, |x| backend.read(&machine.v[X], x)).unwrap();
    ran
}

/// What each rank of `parts` comes to, in a thread of its own.
fn ranks<R: Send>(
    a: &Csr,
    parts: usize,
    b: &[f64],
    rank: impl Fn(Part<'_>, Threads<f64>, &[f64]) -> R + Sync,
) -> Vec<R> {
    let n = a.n_rows();
    // the parts of a complex number stay together
    let cut = |k: usize| if k == parts { n } else { k * n / parts / 2 * 2 };
    let rows: Vec<_> = (0..parts).map(|k| cut(k)..cut(k + 1)).collect();
    let split = split(a, &rows);
    let receivers: Vec<usize> = split.iter().map(|part| part.halo.receivers.len()).collect();
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
    let backend = HostBackend::<f64>::new(part.n_owned(), comm);
    let block = HostBlock::new(a, part, 1.0, Format::Csr).unwrap();
    run(&backend, &block, program, b, limit, most, limit > 0.0)
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
    let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, part.n_owned(), comm).unwrap();
    let block = DeviceBlock::upload(&ctx, &backend.kernels.tuning, part, 1.0, Format::Csr).unwrap();
    run(&backend, &block, program, b, limit, most, limit > 0.0)
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn residual(a: &Csr, x: &[f64], b: &[f64]) -> f64 {
    norm(&a.mul_vec(x).iter().zip(b).map(|(y, b)| b - y).collect::<Vec<_>>())
}

/// Runs a method on hosts and devices, alone and together, with the program that a rank of these rows gets; the iterations that the
/// host needs alone.
fn converges_everywhere(
    name: &str,
    a: &Arc<Csr>,
    program: impl Fn(&Part<'_>, &dyn Communicator<f64>) -> Program + Sync,
) -> usize {
    let b: Vec<f64> = (0..a.n_rows()).map(|i| (i * 31 % 97) as f64 - 40.0).collect();
    let limit = (1e-9 * norm(&b)).powi(2);
    let whole = || split(a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
    let alone = || (Box::new(Alone::default()), program(&whole(), &Alone::default()));
    let (comm, of_all) = alone();
    let host = on_host(a, whole(), comm, of_all, &b, limit, 1000);
    let mut all = vec![("host", host.clone())];
    for parts in [2, 3, 5] {
        let ran = ranks(a, parts, &b, |part, comm, b| {
            let program = program(&part, &comm);
            on_host(a, part, Box::new(comm), program, b, limit, 1000)
        });
        all.push(("hosts", together(ran)));
    }
    for shape in [Shape::Cpu, Shape::Gpu] {
        let (comm, of_all) = alone();
        all.push(("device", on_device(&whole(), comm, tuning(shape, 8), of_all, &b, limit, 1000)));
        for parts in [2, 3, 5] {
            let ran = ranks(a, parts, &b, |part, comm, b| {
                let program = program(&part, &comm);
                on_device(&part, Box::new(comm), tuning(shape, 8), program, b, limit, 1000)
            });
            all.push(("devices", together(ran)));
        }
    }
    for (what, ran) in all {
        let relative = residual(a, &ran.x, &b) / norm(&b);
        assert!(relative < 1.1e-9, "{name}, {what}: {relative:e} after {}", ran.history.len());
        assert!(
            ran.history.len().abs_diff(host.history.len()) <= 2 + host.history.len() / 20,
            "{name}, {what}: {}",
            ran.history.len()
        );
    }
    host.history.len()
}

#[test]
fn methods_converge_on_every_rank() {
    let a = Arc::new(gallery::poisson2d([37, 29]).unwrap());
    for method in Method::FORCED.iter().copied().filter(|method| method.facts().text.is_some()) {
        converges_everywhere(method.name(), &a, |_, _| method.program(Kind::PLAIN, None).unwrap());
    }
}

/// S (A − shift) S of a Laplacian A.
fn badly_scaled(shift: f64) -> Arc<Csr> {
    let a = gallery::poisson2d([17, 13]).unwrap();
    let s = |i: usize| [1.0, 9.0, 0.25, 3.0, 0.5][i % 5];
    let mut values = Vec::new();
    for i in 0..a.n_rows() {
        let (columns, of_row) = a.row(i);
        let value = |(&j, &v): (&u32, &f64)| s(i) * (v - if j as usize == i { shift } else { 0.0 }) * s(j as usize);
        values.extend(columns.iter().zip(of_row).map(value));
    }
    let n = a.n_rows();
    Arc::new(Csr::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap())
}

/// The diagonal as a preconditioner that methods apply themselves.
#[test]
fn preconditioners_are_applied() {
    for (method, shift) in [(Method::CgTextbook, 0.0), (Method::Minres, 1.0)] {
        let a = badly_scaled(shift);
        let with = |precond: Precond| {
            converges_everywhere(method.name(), &a, |part, comm| {
                let rows = Rows::Matrix(Arc::clone(&a), part.rows.clone(), 1.0);
                method.program(Kind::PLAIN, precond.set_up(&rows, comm).unwrap()).unwrap()
            })
        };
        let [without, with] = [Precond::None, Precond::Jacobi].map(with);
        assert!(2 * with < without, "{method}: {with} in place of {without}");
    }
    // a diagonal that is the same on all ranks is no preconditioner
    let a = Arc::new(gallery::poisson2d([5, 4]).unwrap());
    let of_ranks = ranks(&a, 3, &[0.0; 20], |part, comm, _| {
        Precond::Jacobi.set_up(&Rows::Matrix(Arc::clone(&a), part.rows.clone(), 0.5), &comm).unwrap().is_none()
    });
    assert_eq!(of_ranks, [true; 3]);
}

#[test]
fn passes_of_methods() {
    let arrays = |method: Method, is_scaled| {
        let program = method.program(Kind { is_scaled, is_complex: false }, None).unwrap();
        let passes: Vec<(String, usize)> =
            program.passes().map(|pass| (pass.name.clone(), pass.arrays_moved())).collect();
        (program.products(), passes)
    };
    let named = |passes: &[(&str, usize)]| passes.iter().map(|(name, n)| (String::from(*name), *n)).collect::<Vec<_>>();
    let textbook = [("cg_textbook_r_dots", 3), ("cg_textbook_x_p", 5)];
    let applied = Method::CgTextbook.program(Kind::PLAIN, Precond::Jacobi.shape()).unwrap();
    let applied: Vec<(String, usize)> = applied.passes().map(|pass| (pass.name.clone(), pass.arrays_moved())).collect();
    assert_eq!(applied, named(&[("cg_textbook_r_z_dots", 5), ("cg_textbook_x_p", 5)]));
    // z comes of two products, and r·z of the first of them
    let products = Method::Cg.program(Kind::PLAIN, Precond::Fsai.shape()).unwrap();
    let passes: Vec<(String, usize)> = products.passes().map(|pass| (pass.name.clone(), pass.arrays_moved())).collect();
    assert_eq!((products.products(), passes), (3, named(&[("cg_r_dots", 3), ("cg_x_p", 5)])));
    assert_eq!(arrays(Method::Cg, false), (1, named(&[("cg_step", 6)])));
    assert_eq!(arrays(Method::Cg, true), (1, named(&[("cg_step", 7)])));
    assert_eq!(arrays(Method::CgTextbook, false), (1, named(&textbook)));
    assert_eq!(arrays(Method::Minres, false), (1, named(&[("minres_u_old_dots", 4), ("minres_w_old_x", 6)])));
    let scaled = [("minres_u_old_dots", 4), ("minres_w_old_x_r_dots", 10)];
    assert_eq!(arrays(Method::Minres, true), (1, named(&scaled)));
    let bicgstab2 = |end| {
        let names = ["dots", "r_dots", "dots_2", "ap", "dots_3", "r_ar_dots", "dots_4", "x_p_r_dots"];
        let arrays = [2, 3, 2, 3, 2, 6, 3, end];
        names.map(|name| format!("bicgstab2_{name}")).into_iter().zip(arrays).collect::<Vec<_>>()
    };
    assert_eq!(arrays(Method::Bicgstab2, false), (4, bicgstab2(11)));
    assert_eq!(arrays(Method::Bicgstab2, true), (4, bicgstab2(12)));
    let lsmr = [("lsmr_r_dots", 3), ("lsmr_v_dots", 3), ("lsmr_h_bar_x_h", 7)];
    assert_eq!(arrays(Method::Lsmr, false), (2, named(&lsmr)));
}

/// Other groups for the passes, and the same bits.
#[test]
fn launches_of_passes_change_no_bits() {
    let a = gallery::poisson2d([90, 70]).unwrap();
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 11));
    let part = || split(&a, std::slice::from_ref(&(0..n))).remove(0);
    for method in [Method::CgTextbook, Method::Minres] {
        for (shape, sizes) in [(Shape::Gpu, [256, 256, 512]), (Shape::Cpu, [1; 3])] {
            let run = |(group_size, max_groups): (usize, usize)| {
                let tuning = tuning(shape, 8).with_passes(Launch { group_size, max_groups });
                on_device(
                    &part(),
                    Box::new(Alone::default()),
                    tuning,
                    method.program(Kind::PLAIN, None).unwrap(),
                    &b,
                    0.0,
                    40,
                )
            };
            let [one, three, many] = [(sizes[0], 1), (sizes[1], 3), (sizes[2], 64)].map(run);
            assert!(one == three && one == many, "{method}, {shape:?}");
        }
    }
}

/// Launches of several iterations may fail at any time; then iterations are made one by one, and none is lost or made twice.
#[test]
fn refused_launches_are_made_up_for() {
    let a = gallery::poisson2d([70, 61]).unwrap();
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 5));
    let part = || split(&a, std::slice::from_ref(&(0..n))).remove(0);
    // these have few iterations, and take compilers long
    let is_long = |method: &Method| matches!(method, Method::Bicgstab2 | Method::Idr);
    let is_one = |method: &Method| method.facts().text.is_some() && !is_long(method);
    for method in Method::FORCED.iter().copied().filter(is_one) {
        let run = |refused_at: u64, limit: f64, most: u64| {
            let ctx = Arc::new(Context::open(&device()).unwrap());
            let kernels = Kernels::build(&ctx, tuning(Shape::Gpu, 1)).unwrap();
            let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, n, Box::new(Alone::default())).unwrap();
            let block = DeviceBlock::upload(&ctx, &backend.kernels.tuning, &part(), 1.0, Format::Csr).unwrap();
            refused_run(&backend, &block, method.program(Kind::PLAIN, None).unwrap(), &b, (limit, most), refused_at)
        };
        let limit = (1e-6 * norm(&b)).powi(2);
        let expected = run(u64::MAX, limit, 400);
        assert!(expected.history.len() > 40 && residual(&a, &expected.x, &b) < 2e-6 * norm(&b), "{method}");
        for refused_at in [1, 5, 37, u64::MAX] {
            let ran = run(refused_at, limit, 400);
            let relative = residual(&a, &ran.x, &b) / norm(&b);
            assert!(relative < 1.1e-6, "{method}, {refused_at}: {relative:e}");
            // sums in another order: a recurrence of two products feels it
            let more = if method.needs_symmetric() { 0 } else { expected.history.len() / 10 };
            let difference = ran.history.len().abs_diff(expected.history.len());
            assert!(difference <= 1 + more, "{method}, {refused_at}: {difference}");
        }
        for most in [1, 2, 3, 5, 33] {
            let all = [u64::MAX, 0, 1, 2, 4].map(|refused_at| run(refused_at, 0.0, most));
            let norms = all.each_ref().map(|ran| residual(&a, &ran.x, &b));
            for (ran, norm) in all.iter().zip(norms) {
                assert_eq!(ran.history.len() as u64, most, "{method}");
                let near = if method.needs_symmetric() { 1e-9 } else { 1e-2 };
                assert!((norm - norms[0]).abs() <= near * norms[0], "{method}, {most}: {norms:?}");
            }
        }
    }
}

/// A refusal that a run does not live to see is known to the next one.
#[test]
fn a_late_refusal_is_not_lost() {
    let a = gallery::poisson2d([40, 31]).unwrap();
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 5));
    let ctx = Arc::new(Context::open(&device()).unwrap());
    let kernels = Kernels::build(&ctx, tuning(Shape::Gpu, 1)).unwrap();
    let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, n, Box::new(Alone::default())).unwrap();
    let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
    let block = DeviceBlock::upload(&ctx, &backend.kernels.tuning, &part, 1.0, Format::Csr).unwrap();
    let mut machine = Machine::new(&backend, from_ref(&block), Method::Cg.program(Kind::PLAIN, None).unwrap()).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(0, "a vector").unwrap();
    }
    let begin = |machine: &mut Machine<_>| {
        backend.begin().unwrap();
        backend.clear(&mut machine.v[X]).unwrap();
        backend.write(&b, &mut machine.v[R]).unwrap();
        machine.begin(&backend).unwrap();
        machine.start(&backend, from_ref(&block), false).unwrap();
    };
    begin(&mut machine);
    assert_eq!(machine.several(&backend, from_ref(&block), (1, 3), 0.0).unwrap(), Some(4));
    assert!(machine.refuse_several(&backend));
    assert_eq!(machine.several(&backend, from_ref(&block), (4, 3), 0.0).unwrap(), Some(7));
    machine.complete(&backend).unwrap();
    let x = |machine: &Machine<OpenClBackend<f64, f64>>| {
        let mut x = vec![0.0; n];
        backend.read(&machine.v[X], &mut x).unwrap();
        x
    };
    let expected = plain_cg(&a, &b, 3);
    let is_close = |x: &[f64]| x.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-12 * norm(&expected));
    assert!(is_close(&x(&machine)), "what was done before is complete");
    begin(&mut machine);
    for iteration in 1..=3 {
        assert_eq!(machine.several(&backend, from_ref(&block), (iteration, 3), 0.0).unwrap(), None);
        backend.begin_iteration(iteration).unwrap();
        machine.iterate(&backend, from_ref(&block), iteration, 0.0, &mut |_, _| None::<()>).unwrap();
    }
    machine.complete(&backend).unwrap();
    assert!(is_close(&x(&machine)));
}

/// A run from whose iteration `at` on launches of several iterations begin to fail.
fn refused_run(
    backend: &OpenClBackend<f64, f64>,
    a: &DeviceBlock<f64>,
    program: Program,
    b: &[f64],
    (limit, most): (f64, u64),
    at: u64,
) -> Ran {
    let mut machine = Machine::new(backend, from_ref(a), program).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(0, "a vector").unwrap();
    }
    backend.begin().unwrap();
    backend.write(b, &mut machine.v[R]).unwrap();
    machine.begin(backend).unwrap();
    machine.start(backend, from_ref(a), false).unwrap();
    let is_together = machine.is_together();
    let mut ran = Ran { x: vec![0.0; b.len()], history: Vec::new(), indefinite: None, is_together };
    let mut judge = |_, record: Record| match record {
        Record::Curvature { .. } | Record::Breakdown { .. } | Record::Minimum { .. } => None,
        Record::Residual { iteration, rr, .. } => {
            ran.history.push(rr);
            assert_eq!(iteration, ran.history.len() as u64);
            (rr <= limit || iteration == most).then_some(())
        }
    };
    let (mut next, mut is_refused) = (1, false);
    loop {
        if next >= at && !is_refused {
            assert!(machine.refuse_several(backend), "small systems have launches of several iterations");
            is_refused = true;
        }
        let several = machine.several(backend, from_ref(a), (next, most + 1 - next), limit).unwrap();
        next = several.unwrap_or(next);
        if several.is_none() && next <= most {
            backend.begin_iteration(next).unwrap();
            machine.iterate(backend, from_ref(a), next, limit, &mut |_, _| None::<()>).unwrap();
            next += 1;
        }
        let mut records = Vec::new();
        machine.look(backend, next - 1, next > most, &mut records).unwrap();
        if records.into_iter().find_map(|record| judge(0, record)).is_some() {
            break;
        }
    }
    machine.complete(backend).unwrap();
    backend.read(&machine.v[X], &mut ran.x).unwrap();
    ran
}

/// A run that goes on in the direction of the one before makes the iterations that one would have made.
#[test]
fn directions_are_taken_over() {
    let a = Arc::new(gallery::poisson2d([15, 14]).unwrap());
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 3));
    let backend = HostBackend::<f64>::new(n, Box::new(Alone::default()));
    let rows = HostBlock::new(&a, split(&a, std::slice::from_ref(&(0..n))).remove(0), 1.0, Format::Csr).unwrap();
    let iterates = |breaks: &[u64]| {
        let mut machine =
            Machine::new(&backend, from_ref(&rows), Method::CgTextbook.program(Kind::PLAIN, None).unwrap()).unwrap();
        for slot in LENT {
            machine.v[slot] = backend.vector(0, "a vector").unwrap();
        }
        backend.write(&b, &mut machine.v[R]).unwrap();
        machine.begin(&backend).unwrap();
        machine.start(&backend, from_ref(&rows), false).unwrap();
        for iteration in 1..=20 {
            if breaks.contains(&iteration) {
                machine.begin(&backend).unwrap();
                machine.start(&backend, from_ref(&rows), true).unwrap();
            }
            machine.iterate(&backend, from_ref(&rows), iteration, 0.0, &mut |_, _| None::<()>).unwrap();
        }
        machine.v[X].clone()
    };
    let whole = iterates(&[]);
    assert!(residual(&a, &whole, &b) < 0.5 * norm(&b));
    assert_eq!(iterates(&[7, 8, 15]), whole);
}

/// x of conjugate gradients, each update made at once: in plain loops.
fn plain_cg(a: &Csr, b: &[f64], iterations: usize) -> Vec<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (mut x, mut r, mut p) = (vec![0.0; b.len()], b.to_vec(), b.to_vec());
    let mut rho = dot(&r, &r);
    for _ in 0..iterations {
        let q = a.mul_vec(&p);
        let alpha = rho / dot(&p, &q);
        (0..x.len()).for_each(|i| (x[i], r[i]) = (x[i] + alpha * p[i], r[i] - alpha * q[i]));
        let next = dot(&r, &r);
        (0..x.len()).for_each(|i| p[i] = r[i] + next / rho * p[i]);
        rho = next;
    }
    x
}

/// x after so many iterations of `cg`: what an early look tells, and what the end of the run leaves, and what was deferred.
fn early_and_late<O: PassBackend<Real = f64>>(
    backend: &O,
    a: &impl LinearOperator<O>,
    b: &[f64],
    iterations: u64,
) -> ([Vec<f64>; 2], f64) {
    let mut machine = Machine::new(backend, from_ref(a), Method::Cg.program(Kind::PLAIN, None).unwrap()).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(a.halo(), "a vector").unwrap();
    }
    backend.begin().unwrap();
    backend.write(b, &mut machine.v[R]).unwrap();
    machine.begin(backend).unwrap();
    machine.start(backend, from_ref(a), false).unwrap();
    for iteration in 1..=iterations {
        backend.begin_iteration(iteration).unwrap();
        machine.iterate(backend, from_ref(a), iteration, 0.0, &mut |_, _| None::<()>).unwrap();
    }
    machine.look(backend, iterations, true, &mut Vec::new()).unwrap();
    let read = |v: &O::Vector| {
        let mut here = vec![0.0; b.len()];
        backend.read(v, &mut here).unwrap();
        here
    };
    let deferred = machine.deferred(backend).unwrap();
    let [mut early, r, p] = [X, R, OWN].map(|slot| read(&machine.v[slot]));
    complete(&mut early, &p, &r, deferred);
    machine.complete(backend).unwrap();
    ([early, read(&machine.v[X])], deferred)
}

#[test]
fn deferred_updates_are_made() {
    // more than three runs of elements
    let a = Arc::new(gallery::poisson2d([120, 110]).unwrap());
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 3));
    let part = || split(&a, std::slice::from_ref(&(0..n))).remove(0);
    let host = HostBackend::<f64>::new(n, Box::new(Alone::default()));
    let rows = HostBlock::new(&a, part(), 1.0, Format::Csr).unwrap();
    for iterations in [1, 2, 3, 7, 12] {
        let expected = plain_cg(&a, &b, iterations as usize);
        let mut all = vec![early_and_late(&host, &rows, &b, iterations)];
        for shape in [Shape::Cpu, Shape::Gpu] {
            let ctx = Arc::new(Context::open(&device()).unwrap());
            let kernels = Kernels::build(&ctx, tuning(shape, 3)).unwrap();
            let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, n, Box::new(Alone::default())).unwrap();
            let block = DeviceBlock::upload(&ctx, &backend.kernels.tuning, &part(), 1.0, Format::Csr).unwrap();
            all.push(early_and_late(&backend, &block, &b, iterations));
        }
        for ([early, late], deferred) in all {
            assert_eq!(early, late, "who looks early gets the same bits: after {iterations}");
            assert!(deferred != 0.0 || iterations == 1, "half of x is deferred: after {iterations}"); // at first β is small
            let error = late.iter().zip(&expected).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(error < 1e-12 * norm(&expected), "after {iterations}: {error:e}");
        }
    }
}
