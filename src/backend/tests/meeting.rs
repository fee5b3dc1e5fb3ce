//! Ranks of the host's threads that take part in what kernels of a device do together: beside a device whose kernels wait for
//! theirs, and beside others as they are.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::mirrored::{Mirror, alone, is_pocl_3, part_of, torus};
use super::*;
use crate::kernels::products::TOGETHER_BYTES;
use crate::operator::Exchange;
use crate::operator::opencl::target;
use crate::operator::plan::Offer;

fn methods() -> impl Iterator<Item = Method> {
    Method::FORCED.iter().copied().filter(|method| method.facts().text.is_some())
}

/// Those of which kernels of the device have right sums.
fn is_right(method: &Method) -> bool {
    *method != Method::Minres || !is_pocl_3()
}

/// What ranks do: until ‖r‖² is at most this,
#[derive(Clone, Copy)]
enum Until<'a> {
    Limit(f64),
    /// or for so many iterations, with early looks behind some.
    Looks(u64, &'a [u64]),
}

fn ran<O: PassBackend>(backend: &O, a: &impl LinearOperator<O>, method: Method, b: &[f64], until: Until<'_>) -> Ran {
    let program = method.program(Kind::PLAIN, None).unwrap();
    let (most, looks) = match until {
        Until::Limit(limit) => return run_counting(backend, a, program, (b, limit, 200), true, &mut 0),
        Until::Looks(most, looks) => (most, looks),
    };
    let mut machine = Machine::new(backend, from_ref(a), program).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(a.halo(), "a vector").unwrap();
    }
    backend.begin().unwrap();
    backend.write(&O::Real::scaled(b, 1.0), &mut machine.v[R]).unwrap();
    machine.begin(backend).unwrap();
    machine.start(backend, from_ref(a), false).unwrap();
    let is_together = machine.is_together();
    let (mut x, mut history) = (vec![0.0; b.len()], Vec::new());
    for iteration in 1..=most {
        backend.begin_iteration(iteration).unwrap();
        let mut note = |_, record| {
            history.extend(if let Record::Residual { rr, .. } = record { Some(rr) } else { None });
            None::<()>
        };
        machine.iterate(backend, from_ref(a), iteration, 0.0, &mut note).unwrap();
        let mut records = Vec::new();
        machine.look(backend, iteration, iteration == most || looks.contains(&iteration), &mut records).unwrap();
        records.into_iter().for_each(|record| {
            note(0, record);
        });
        if looks.contains(&iteration) {
            assert!(machine.deferred(backend).unwrap().is_finite());
        }
    }
    machine.complete(backend).unwrap();
    O::Real::fill(&mut x, |x| backend.read(&machine.v[X], x)).unwrap();
    Ran { x, history, indefinite: None, is_together }
}

/// What a rank of the device comes to, or of the host.
fn rank<T: Real>(
    is_device: bool,
    (method, exchange): (Method, Exchange),
    (a, part): (&Arc<Csr>, Part<'_>),
    comm: Box<dyn Communicator<T>>,
    (b, until): (&[f64], Until<'_>),
) -> Ran {
    if !is_device {
        let backend = HostBackend::<T>::new(part.n_owned(), comm);
        let block = HostBlock::new(a, part, 1.0, Format::Csr).unwrap().exchanged_by(exchange);
        return ran(&backend, &block, method, b, until);
    }
    let ctx = Arc::new(Context::open(&device()).unwrap());
    let kernels = Kernels::build(&ctx, tuning(Shape::Gpu, 1)).unwrap();
    let backend = OpenClBackend::<T, f64>::new(ctx.clone(), kernels, part.n_owned(), comm).unwrap();
    let tuning = &backend.kernels.tuning;
    let offer = Offer::of(&part, 1.0, Format::Csr, target(&ctx, tuning)).unwrap();
    let block = DeviceBlock::alone(&ctx, tuning, &part, &offer).unwrap();
    let block = block.join(&ctx, &part.halo, exchange).unwrap();
    // with less, as others can't make several iterations in a launch
    let block = if method == Method::Cg { block } else { block.with_bytes(12 * TOGETHER_BYTES) };
    ran(&backend, &block, method, b, until)
}

/// What ranks come to, of which the first is the device.
fn all<T: Real>(a: &Arc<Csr>, hosts: usize, how: (Method, Exchange), b: &[f64], until: Until<'_>) -> Ran {
    let (n, size) = (a.n_rows(), hosts + 1);
    let rows: Vec<_> = (0..size).map(|k| k * n / size..(k + 1) * n / size).collect();
    let parts = split(a, &rows);
    let receivers: Vec<usize> = parts.iter().map(|part| part.halo.receivers.len()).collect();
    let comms = Threads::<T>::new(&receivers, &Arc::new(Failure::default()));
    let ran: Vec<Ran> = std::thread::scope(|scope| {
        let ranks: Vec<_> = parts
            .into_iter()
            .zip(comms)
            .enumerate()
            .map(|(k, (part, comm))| {
                let own = &b[part.rows.clone()];
                scope.spawn(move || rank(k == 0, how, (a, part), Box::new(comm), (own, until)))
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    assert!(ran.iter().all(|ran| ran.is_together == (how.1 == Exchange::Live)), "{}, {}", how.0, how.1);
    together(ran)
}

fn same_bits<T: Real>(a: &Arc<Csr>, hosts: usize, method: Method, b: &[f64], until: Until<'_>) -> Ran {
    let [live, staged] =
        [Exchange::Live, Exchange::HostStaged].map(|exchange| all::<T>(a, hosts, (method, exchange), b, until));
    let what = format!("{method}, {hosts} beside the device, {}", T::CL_NAME);
    assert!(live.x == staged.x && live.history == staged.history, "{what}");
    assert_eq!(live.indefinite, staged.indefinite, "{what}");
    live
}

#[test]
fn the_host_meets_a_device() {
    let _alone = alone();
    let a = Arc::new(torus([17, 40]));
    let b = gallery::random_vector(a.n_rows(), 5);
    let check = |live: Ran, method: Method, tolerance: f64| {
        assert!(residual(&a, &live.x, &b) < 1.1 * tolerance * norm(&b), "{method}, after {}", live.history.len());
    };
    let limit = |tolerance: f64| Until::Limit((tolerance * norm(&b)).powi(2));
    for method in methods().filter(is_right) {
        check(same_bits::<f64>(&a, 1, method, &b, limit(1e-8)), method, 1e-8);
    }
    for method in [Method::Cg, Method::Minres, Method::Bicgstab].into_iter().filter(is_right) {
        check(same_bits::<f64>(&a, 2, method, &b, limit(1e-8)), method, 1e-8);
        check(same_bits::<f32>(&a, 1, method, &b, limit(1e-4)), method, 1e-4);
    }
}

/// A run that ends where a curvature is not positive, and one whose iterations are looked at as they come.
#[test]
fn all_see_the_same_end_and_what_comes_before() {
    let _alone = alone();
    let a = torus([13, 20]);
    let (rows, columns, values) = a.to_triplets();
    let shifted =
        rows.iter().zip(&columns).zip(values).map(|((i, j), v)| if i == j { v - 2.0 } else { v }).collect::<Vec<_>>();
    let shifted = Arc::new(Csr::from_triplets(a.n_rows(), a.n_rows(), &rows, &columns, &shifted).unwrap());
    let (b, a) = (gallery::random_vector(a.n_rows(), 5), Arc::new(a));
    for method in [Method::Cg, Method::CgTextbook] {
        assert!(same_bits::<f64>(&shifted, 1, method, &b, Until::Limit(1e-20)).indefinite.is_some(), "{method}");
    }
    for method in [Method::Cg, Method::Minres, Method::CgPipelined].into_iter().filter(is_right) {
        let undisturbed = same_bits::<f64>(&a, 1, method, &b, Until::Looks(21, &[]));
        assert_eq!(undisturbed.history.len(), 21, "{method}");
        assert!(same_bits::<f64>(&a, 1, method, &b, Until::Looks(21, &[1, 5, 6, 15])) == undisturbed, "{method}");
    }
}

/// What the host comes to where others do as it does.
fn mirrored<T: Real>(
    a: &Arc<Csr>,
    method: Method,
    (comes, relays, most): (bool, bool, f64),
    (b, until): (&[f64], Until<'_>),
) -> Ran {
    let part = part_of(a, 2);
    let comm = Mirror { ranks: 2, comes, relays, late: Duration::ZERO, most, message: RefCell::default() };
    rank::<T>(false, (method, Exchange::Live), (a, part), Box::new(comm), (b, until))
}

/// What others say who have a device that meets between launches, and would.
const OTHERS: f64 = 4.0;

fn mirrored_bits<T: Real>(a: &Arc<Csr>, method: Method, b: &[f64], until: Until<'_>) -> Ran {
    let [live, by_host] = [OTHERS, 0.0].map(|most| mirrored::<T>(a, method, (true, true, most), (b, until)));
    let what = format!("{method}, {}", T::CL_NAME);
    assert!(live.is_together && !by_host.is_together, "{what}");
    assert!(live.x == by_host.x && live.history == by_host.history, "{what}");
    live
}

/// With halos that arrive as words, and in pieces that have flags.
#[test]
fn the_host_meets_others_as_it_is() {
    for sides in [[17, 40], [9000, 4]] {
        let a = Arc::new(torus(sides));
        let b = gallery::random_vector(a.n_rows() / 2, 6);
        let limit = |tolerance: f64| Until::Limit((tolerance * norm(&b)).powi(2));
        for method in methods() {
            mirrored_bits::<f64>(&a, method, &b, limit(1e-8));
            mirrored_bits::<f32>(&a, method, &b, limit(1e-4));
            let undisturbed = mirrored_bits::<f64>(&a, method, &b, Until::Looks(13, &[]));
            assert!(mirrored_bits::<f64>(&a, method, &b, Until::Looks(13, &[1, 4, 5, 9])) == undisturbed, "{method}");
        }
    }
}

#[test]
fn the_host_misses_who_does_not_come() {
    let a = Arc::new(torus([12, 10]));
    let b = gallery::random_vector(a.n_rows() / 2, 7);
    for (comes, relays, missed) in [(false, true, "the other one"), (true, false, "the relay")] {
        let (start, run) =
            (Instant::now(), || mirrored::<f64>(&a, Method::Cg, (comes, relays, OTHERS), (&b, Until::Limit(1e-12))));
        let error = std::thread::scope(|scope| scope.spawn(run).join().map(|_| ()).unwrap_err());
        let message = *error.downcast::<String>().unwrap();
        assert!(message.contains(&format!("{missed} did not come in time")), "{message}");
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
