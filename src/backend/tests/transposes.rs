use super::*;
use crate::backend::machine::largest_halo;
use crate::partition::join_neighbours;

/// Integers without any symmetry: some rows far away need others, which do not need them.
fn matrix(n: usize) -> Csr {
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        for (j, value) in [((7 * i + 3) % n, 1.0), (i, -2.0), (i * i % n, 3.0)] {
            t.0.push(i as u32);
            t.1.push(j as u32);
            t.2.push(value);
        }
    }
    Csr::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap()
}

/// q = A v, u = q − 2 u, t = Aᵀ u, v = v − t, and the sum that factors are made of.
fn text(k: &Recorder) {
    let (a, at, u) = (k.a(), k.transpose(), k.r());
    let [v, q, t] = k.vectors(["v", "q", "t"]);
    v.set(at * u);
    let last = k.carried(k.number(1.0));
    k.iteration(|| {
        q.set(a * v);
        u.set(q - k.number(2.0) * u);
        let sum = u.dot(q);
        t.set(at * u);
        v.set(last * v - t);
        k.next(last, sum.choose(k.number(1.0), k.number(-1.0)));
    });
}

fn plainly(a: &Csr, transpose: &Csr, r: &[f64], iterations: usize) -> [Vec<f64>; 2] {
    let (mut u, mut v, mut last) = (r.to_vec(), transpose.mul_vec(r), 1.0);
    for _ in 0..iterations {
        let q = a.mul_vec(&v);
        u = q.iter().zip(&u).map(|(q, u)| q - 2.0 * u).collect();
        let sum: f64 = u.iter().zip(&q).map(|(u, q)| u * q).sum();
        let t = transpose.mul_vec(&u);
        v = v.iter().zip(&t).map(|(v, t)| last * v - t).collect();
        last = if sum > 0.0 { 1.0 } else { -1.0 };
    }
    [u, v]
}

fn left<O: PassBackend<Real = f64>>(
    backend: &O,
    operators: &[impl LinearOperator<O>],
    r: &[f64],
    most: u64,
) -> [Vec<f64>; 2] {
    let mut machine = Machine::new(backend, operators, Program::new("transposes", Kind::PLAIN, None, text)).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(largest_halo(operators), "a vector").unwrap();
    }
    backend.begin().unwrap();
    backend.write(r, &mut machine.v[R]).unwrap();
    machine.begin(backend).unwrap();
    machine.start(backend, operators, false).unwrap();
    for iteration in 1..=most {
        assert_eq!(machine.several(backend, operators, (iteration, 1), 0.0).unwrap(), None);
        backend.begin_iteration(iteration).unwrap();
        machine.iterate(backend, operators, iteration, 0.0, &mut |_, _| None::<()>).unwrap();
    }
    machine.look(backend, most, true, &mut Vec::new()).unwrap();
    [R, OWN].map(|slot| {
        let mut v = vec![0.0; r.len()];
        backend.read(&machine.v[slot], &mut v).unwrap();
        v
    })
}

/// One to five ranks, some of them without rows, on hosts and devices.
#[test]
fn each_product_has_the_halo_of_its_operator() {
    let n = 61;
    let a = Arc::new(matrix(n));
    let transpose = Arc::new(a.transposed().unwrap());
    let r: Vec<f64> = (0..n).map(|i| (i * 7 % 3) as f64 - 1.0).collect();
    let expected = plainly(&a, &transpose, &r, 4);
    assert!(expected.iter().flatten().all(|v| v.abs() < 1e12) && expected[1].iter().any(|v| *v != 0.0));
    for cuts in [vec![], vec![40], vec![0, 9, 50], vec![5, 5, 30, 61]] {
        let ends: Vec<usize> = [0].into_iter().chain(cuts).chain([n]).collect();
        let rows: Vec<_> = ends.windows(2).map(|ends| ends[0]..ends[1]).collect();
        let mut both = [split(&a, &rows), split(&transpose, &rows)].to_vec();
        join_neighbours(&mut both);
        let receivers: Vec<usize> = both[0].iter().map(|part| part.halo.receivers.len()).collect();
        for is_device in [false, true] {
            let comms = Threads::<f64>::new(&receivers, &Arc::new(Failure::default()));
            let rank = |k: usize, comm: Threads<f64>| {
                let (parts, r) = ([&both[0][k], &both[1][k]], &r[rows[k].clone()]);
                let comm: Box<dyn Communicator<f64>> =
                    if receivers.len() == 1 { Box::new(Alone::default()) } else { Box::new(comm) };
                if is_device {
                    let ctx = Arc::new(Context::open(&device()).unwrap());
                    let kernels = Kernels::build(&ctx, tuning(Shape::Cpu, 2)).unwrap();
                    let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, r.len(), comm).unwrap();
                    let tuning = &backend.kernels.tuning;
                    let block = |part| DeviceBlock::upload(&ctx, tuning, part, 1.0, Format::Csr).unwrap();
                    left(&backend, &parts.map(block), r, 4)
                } else {
                    let backend = HostBackend::<f64>::new(r.len(), comm);
                    let block = |(a, part): (&Arc<Csr>, &Part<'_>)| HostBlock::new(a, part.clone(), 1.0, Format::Csr);
                    let blocks = [&a, &transpose].into_iter().zip(parts).map(block).collect::<Result<Vec<_>, _>>();
                    left(&backend, &blocks.unwrap(), r, 4)
                }
            };
            let of_ranks: Vec<[Vec<f64>; 2]> = std::thread::scope(|scope| {
                let rank = &rank;
                let threads: Vec<_> =
                    comms.into_iter().enumerate().map(|(k, comm)| scope.spawn(move || rank(k, comm))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let all = [0, 1].map(|which| of_ranks.iter().flat_map(|of| of[which].clone()).collect::<Vec<_>>());
            assert_eq!(all, expected, "{ends:?}, on devices: {is_device}");
        }
    }
}

/// A vector that both would multiply needs the halos of both.
#[test]
#[should_panic(expected = "a vector with the halos of two operators")]
fn no_vector_has_two_halos() {
    Program::new("twice", Kind::PLAIN, None, |k| {
        let [v, q] = k.vectors(["v", "q"]);
        k.iteration(|| {
            q.set(k.a() * v);
            v.set(k.transpose() * q);
            q.set(k.transpose() * v);
        });
    });
}
