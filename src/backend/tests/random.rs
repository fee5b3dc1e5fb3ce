//! Random texts of methods against plain loops, on the host and on devices, alone and together.

use proptest::prelude::*;

use super::*;
use crate::matrix::Complex64;
use crate::matrix::equivalent::real_form;

/// What a random method says of four vectors: small integers, so that nothing is rounded.
#[derive(Debug, Clone)]
enum Said {
    /// v[to] = Σ factor v.
    Set(usize, Vec<(i8, usize)>),
    /// v[to] = v[to] + s v[of], with the last dot product s, if there was one.
    Add(usize, usize),
    /// v[to] = d ∘ v[of] for another vector d, element by element.
    Times(usize, [usize; 2]),
    /// s = v · v, a complex number in a complex system.
    Dot(usize, usize),
    /// v[to] = A v[of].
    Multiply(usize, usize),
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The same as a text. It leaves the last dot product to the next iteration.
fn text(k: &Recorder, said: &[Said]) {
    let v = k.vectors(NAMES);
    v[0].set(k.r());
    let first = v[0].dot(v[0]) + k.scalar(0.0);
    let left = k.carried(first);
    k.iteration(|| {
        let mut last = left;
        for what in said {
            match what {
                Said::Set(to, terms) => {
                    let mut terms = terms.iter().map(|(factor, of)| k.number((*factor).into()) * v[*of]);
                    let first = terms.next().unwrap();
                    v[*to].set(terms.fold(first, |sum, term| sum + term));
                }
                Said::Add(to, of) => {
                    let mut to = v[*to];
                    to += last * v[*of];
                }
                Said::Times(to, [d, of]) => v[*to].set(v[*d].times(v[*of])),
                Said::Dot(x, y) => last = v[*x].dot(v[*y]),
                Said::Multiply(to, of) => v[*to].set(k.a() * v[*of]),
            }
        }
        k.next(left, last);
        k.swap(v[1], v[2]);
    });
}

/// i v, of pairs of real and imaginary parts.
fn turned(v: &[f64]) -> Vec<f64> {
    v.chunks_exact(2).flat_map(|pair| [-pair[1], pair[0]]).collect()
}

/// The same in plain loops: the vectors after so many iterations.
fn plainly(a: &Csr, r: &[f64], said: &[Said], iterations: usize, is_complex: bool) -> Vec<Vec<f64>> {
    let n = r.len();
    let mut v = vec![vec![0.0; n]; 4];
    v[0] = r.to_vec();
    let real_dot = |x: &[f64], y: &[f64]| (0..n).map(|i| x[i] * y[i]).sum::<f64>();
    let dot = |x: &[f64], y: &[f64]| [real_dot(x, y), if is_complex { real_dot(&turned(x), y) } else { 0.0 }];
    let mut last = dot(r, r);
    for _ in 0..iterations {
        for what in said {
            match what {
                Said::Set(to, terms) => {
                    v[*to] =
                        (0..n).map(|i| terms.iter().map(|(factor, of)| f64::from(*factor) * v[*of][i]).sum()).collect();
                }
                Said::Add(to, of) => {
                    let other = if is_complex { turned(&v[*of]) } else { vec![0.0; n] };
                    v[*to] = (0..n).map(|i| v[*to][i] + last[0] * v[*of][i] + last[1] * other[i]).collect();
                }
                Said::Times(to, [d, of]) => v[*to] = (0..n).map(|i| v[*d][i] * v[*of][i]).collect(),
                Said::Dot(x, y) => last = dot(&v[*x], &v[*y]),
                Said::Multiply(to, of) => v[*to] = a.mul_vec(&v[*of]),
            }
        }
        v.swap(1, 2);
    }
    v
}

/// The vectors that a program leaves on a rank, by launches of several iterations if there are such, unless they `are_refused`.
fn left<O: PassBackend<Real = f64>>(
    backend: &O,
    a: &impl LinearOperator<O>,
    said: &[Said],
    r: &[f64],
    (most, is_complex): (u64, bool),
    are_refused: bool,
) -> Vec<Vec<f64>> {
    let program = Program::new("random", Kind { is_complex, ..Kind::PLAIN }, None, |k| text(k, said));
    let mut machine = Machine::new(backend, from_ref(a), program).unwrap();
    for slot in LENT {
        machine.v[slot] = backend.vector(a.halo(), "a vector").unwrap();
    }
    backend.begin().unwrap();
    backend.write(r, &mut machine.v[R]).unwrap();
    machine.begin(backend).unwrap();
    machine.start(backend, from_ref(a), false).unwrap();
    if are_refused {
        machine.refuse_several(backend);
    }
    let mut next = 1;
    while next <= most {
        let several = machine.several(backend, from_ref(a), (next, most + 1 - next), 0.0).unwrap();
        if several.is_none() {
            backend.begin_iteration(next).unwrap();
            machine.iterate(backend, from_ref(a), next, 0.0, &mut |_, _| None::<()>).unwrap();
        }
        next = several.unwrap_or(next + 1);
        if next > most {
            machine.look(backend, most, true, &mut Vec::new()).unwrap();
            next = machine.several(backend, from_ref(a), (next, 0), 0.0).unwrap().unwrap_or(next); // was a launch refused?
        }
    }
    let read = |slot: usize| {
        let mut v = vec![0.0; r.len()];
        backend.read(&machine.v[slot], &mut v).unwrap();
        v
    };
    (OWN..OWN + 4).map(read).collect()
}

fn said() -> impl Strategy<Value = Vec<Said>> {
    let terms = prop::collection::vec((-2..=2_i8, 0..4_usize), 1..4);
    let one = prop_oneof![
        3 => (0..4_usize, terms).prop_map(|(to, terms)| Said::Set(to, terms)),
        1 => (0..4_usize, 0..4_usize).prop_map(|(to, of)| Said::Add(to, of)),
        1 => (0..4_usize, [0..4_usize, 0..4]).prop_map(|(to, of)| Said::Times(to, of)),
        2 => (0..4_usize, 0..4_usize).prop_map(|(x, y)| Said::Dot(x, y)),
        1 => (0..4_usize, 1..4_usize).prop_map(|(to, by)| Said::Multiply(to, (to + by) % 4)),
    ];
    // vectors that are multiplied travel until the next product: nothing else sets the product meanwhile
    prop::collection::vec(one, 1..7).prop_filter("few large factors, and products that stay", |said| {
        let adds = said.iter().filter(|what| matches!(what, Said::Add(..) | Said::Times(..))).count();
        let products: Vec<usize> =
            said.iter().filter_map(|what| if let Said::Multiply(to, _) = what { Some(*to) } else { None }).collect();
        let is_set_in = |said: &[Said], to: usize| {
            said.iter().any(|what| matches!(what, Said::Set(t, _) | Said::Add(t, _) | Said::Times(t, _) if *t == to))
        };
        let is_set = |to: usize| is_set_in(said, to);
        let first = said.iter().position(|what| matches!(what, Said::Multiply(..))).unwrap_or(0);
        let later = products.last().map(|to| [0, 2, 1, 3][*to]); // two are exchanged at the end
        let is_once = |to: &usize| products.iter().filter(|other| *other == to).count() == 1;
        adds <= 1
            && products.len() <= 2
            && products.iter().all(is_once)
            && !products.into_iter().any(is_set)
            && !later.is_some_and(|to| is_set_in(&said[..first], to))
    })
}

/// A matrix of n rows, and a vector: a real one, or the real form of a complex one.
fn system(n: usize, is_complex: bool) -> (Arc<Csr>, Vec<f64>) {
    let r = (0..n).map(|i| (i * 7 % 3) as f64 - 1.0).collect();
    if !is_complex {
        return (Arc::new(gallery::poisson2d([n, 1]).unwrap()), r);
    }
    let entry = |i: usize, j: usize| Complex64::new(if i == j { 1.0 } else { 0.0 }, i as f64 % 2.0 - j as f64 % 3.0);
    let (rows, cols): (Vec<u32>, Vec<u32>) =
        (0..n as u32 / 2).flat_map(|i| (i.saturating_sub(1)..(i + 3).min(n as u32 / 2)).map(move |j| (i, j))).unzip();
    let values: Vec<_> = rows.iter().zip(&cols).map(|(i, j)| entry(*i as usize, *j as usize)).collect();
    let a = Csr::from_triplets(n / 2, n / 2, &rows, &cols, &values).unwrap();
    (Arc::new(real_form(&a).unwrap()), r)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fused or not, on the host, on a device in both shapes and by any number of groups, and among several ranks.
    #[test]
    fn programs_are_what_plain_loops_are(
        said in said(), n in prop::sample::select(vec![1_usize, 7, 255, 256, 257, 1030]), groups in 1..5_usize,
        is_complex: bool,
    ) {
        let n = if is_complex { 2 * n } else { n };
        let (a, r) = system(n, is_complex);
        let expected = plainly(&a, &r, &said, 3, is_complex);
        prop_assume!(expected.iter().flatten().all(|v| v.abs() < 1e12));
        let whole = || split(&a, std::slice::from_ref(&(0..n))).remove(0);
        let host = HostBackend::<f64>::new(n, Box::new(Alone::default()));
        let rows = HostBlock::new(&a, whole(), 1.0, Format::Csr).unwrap();
        prop_assert_eq!(&left(&host, &rows, &said, &r, (3, is_complex), false), &expected, "the host");
        for shape in [Shape::Cpu, Shape::Gpu] {
            let ctx = Arc::new(Context::open(&device()).unwrap());
            let kernels = Kernels::build(&ctx, tuning(shape, groups)).unwrap();
            let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, n, Box::new(Alone::default())).unwrap();
            let block = DeviceBlock::upload(&ctx, &backend.kernels.tuning, &whole(), 1.0, Format::Csr).unwrap();
            for are_refused in [false, true] {
                let left = left(&backend, &block, &said, &r, (3, is_complex), are_refused);
                prop_assert_eq!(&left, &expected, "{:?}, {} groups, {}", shape, groups, are_refused);
            }
        }
        if n > 7 {
            let parts = ranks(&a, 3, &r, |part, comm, r| {
                let backend = HostBackend::<f64>::new(part.n_owned(), Box::new(comm));
                let rows = HostBlock::new(&a, part, 1.0, Format::Csr).unwrap();
                left(&backend, &rows, &said, r, (3, is_complex), false)
            });
            let together: Vec<Vec<f64>> = (0..4).map(|k| parts.iter().flat_map(|part| part[k].clone()).collect()).collect();
            prop_assert_eq!(&together, &expected, "three ranks");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// Halos travel while passes are done. Oclgrind, which can't have two contexts at once, does without this one.
    #[test]
    fn several_devices_do_what_plain_loops_do(
        said in said(), n in 8..300_usize, parts in 2..4_usize, is_complex: bool,
    ) {
        let n = if is_complex { 2 * n } else { n };
        let (a, r) = system(n, is_complex);
        let expected = plainly(&a, &r, &said, 3, is_complex);
        prop_assume!(expected.iter().flatten().all(|v| v.abs() < 1e12));
        let of_ranks = ranks(&a, parts, &r, |part, comm, r| {
            let ctx = Arc::new(Context::open(&device()).unwrap());
            let kernels = Kernels::build(&ctx, tuning(Shape::Cpu, 2)).unwrap();
            let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, r.len(), Box::new(comm)).unwrap();
            let block = DeviceBlock::upload(&ctx, &backend.kernels.tuning, &part, 1.0, Format::Csr).unwrap();
            left(&backend, &block, &said, r, (3, is_complex), false)
        });
        let all: Vec<Vec<f64>> = (0..4).map(|k| of_ranks.iter().flat_map(|part| part[k].clone()).collect()).collect();
        prop_assert_eq!(&all, &expected);
    }
}

/// What comes before the first product is done on halos, too, though nothing is on its way then.
#[test]
fn passes_before_the_first_product() {
    let a = Arc::new(gallery::poisson2d([12, 1]).unwrap());
    let r: Vec<f64> = (0..12).map(|i| (i * 7 % 3) as f64 - 1.0).collect();
    let said = [Said::Add(1, 0), Said::Multiply(0, 1)];
    let is_complex = false;
    let expected = plainly(&a, &r, &said, 3, is_complex);
    for parts in [2, 3, 5] {
        let host = ranks(&a, parts, &r, |part, comm, r| {
            let backend = HostBackend::<f64>::new(part.n_owned(), Box::new(comm));
            let rows = HostBlock::new(&a, part, 1.0, Format::Csr).unwrap();
            left(&backend, &rows, &said, r, (3, is_complex), false)
        });
        let devices = ranks(&a, parts, &r, |part, comm, r| {
            let ctx = Arc::new(Context::open(&device()).unwrap());
            let kernels = Kernels::build(&ctx, tuning(Shape::Cpu, 2)).unwrap();
            let backend = OpenClBackend::<f64, f64>::new(ctx.clone(), kernels, r.len(), Box::new(comm)).unwrap();
            let block = DeviceBlock::upload(&ctx, &backend.kernels.tuning, &part, 1.0, Format::Csr).unwrap();
            left(&backend, &block, &said, r, (3, is_complex), false)
        });
        for of_ranks in [host, devices] {
            let together: Vec<Vec<f64>> =
                (0..4).map(|k| of_ranks.iter().flat_map(|part| part[k].clone()).collect()).collect();
            assert_eq!(together, expected, "{parts} ranks");
        }
    }
}

/// While a product is exchanged, nothing may be done to it, where it is in the next iteration either.
#[test]
#[should_panic(expected = "random: a product is set to something else before the next one")]
fn products_that_are_changed_on_their_way() {
    let said = [Said::Add(2, 0), Said::Multiply(1, 2)];
    Program::new("random", Kind::PLAIN, None, |k| text(k, &said));
}

/// Scalars of a complex system, of sums with these values.
#[test]
fn complex_scalars_by_hand() {
    let k = Recorder::new(Kind { is_complex: true, ..Kind::PLAIN }, None);
    let [x, y] = k.vectors(["x", "y"]);
    let (z, n) = (x.dot(y), x.dot(x)); // 3 + 4i and 2
    let one = k.scalar(1.0);
    let all = [
        (z + n, [5.0, 4.0]),
        (n - z, [-1.0, -4.0]),
        (z * z, [-7.0, 24.0]),
        (z * n, [6.0, 8.0]),
        (n * z, [6.0, 8.0]),
        (z / n, [1.5, 2.0]),
        (n / z, [6.0 / 25.0, -8.0 / 25.0]),
        (z / z, [1.0, 0.0]),
        (-z, [-3.0, -4.0]),
        (n.choose(z, n), [3.0, 4.0]),
        ((-n).choose(z, n), [2.0, 0.0]),
        ((-n).choose(n, one), [1.0, 0.0]),
    ];
    let (moduli, values) = ([z.modulus(), z.modulus2(), n.modulus(), (-n).modulus()], [5.0, 25.0, 2.0, 2.0]);
    let moduli = moduli.map(Scalar::real);
    let all = all.map(|(scalar, value)| (scalar.both(), value));
    let sums = [f64::NAN, 3.0, 4.0, 2.0]; // r·r comes first
    let found = k.finish().scalars.values(&sums, &[]);
    for ((real, imaginary), value) in all {
        let found = [found[real.0], found[imaginary.unwrap().0]];
        assert!((0..2).all(|part| (found[part] - value[part]).abs() < 1e-15), "{found:?} {value:?}");
    }
    assert_eq!(moduli.map(|node| found[node.0]), values);
}

/// Quotients of numbers whose squares are out of range.
#[test]
fn complex_quotients_of_tiny_and_huge_numbers() {
    for size in [1e-200, 1e200] {
        let k = Recorder::new(Kind { is_complex: true, ..Kind::PLAIN }, None);
        let [x, y, v] = k.vectors(["x", "y", "v"]);
        let (real, imaginary) = (x.dot(y) / x.dot(v)).both();
        let found = k.finish().scalars.values(&[f64::NAN, 3.0 * size, 4.0 * size, size, -size], &[]);
        let found = [real, imaginary.unwrap()].map(|node| found[node.0]);
        assert!((found[0] + 0.5).abs() < 1e-15 && (found[1] - 3.5).abs() < 1e-15, "{found:?}"); // (3 + 4i) / (1 − i)
    }
}
