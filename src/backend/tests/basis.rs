//! A Krylov basis on hosts and devices, alone and together, against plain loops.

use super::*;
use crate::backend::basis::{BasisBackend, Gram, Projected, orthogonalise};

const N: usize = 1500;
/// Vectors that are made orthogonal, each to those before.
const VECTORS: usize = 12;

/// What a rank has seen: its part of each column, of length 1, and what was found of each vector.
struct Found {
    columns: Vec<Vec<f64>>,
    projected: Vec<Projected>,
}

/// Orthogonal columns of `vectors`, or pairs of them.
fn columns<O: BasisBackend<Real = f64>>(backend: &O, vectors: &[Vec<f64>], has_pairs: bool) -> Found {
    let width = if has_pairs { 2 } else { 1 };
    let (count, mut gram) = (width * vectors.len(), Gram::new(has_pairs));
    let mut v = backend.basis(count).unwrap();
    let [mut w, mut to] = [0, 3].map(|halo| backend.vector(halo, "a vector").unwrap());
    let mut projected = Vec::new();
    for vector in vectors {
        backend.write(vector, &mut w).unwrap();
        projected.push(orthogonalise(backend, (&mut v, &mut gram), &w, &mut to).unwrap());
    }
    let of_column = |k: usize| {
        let (mut x, mut own) = (backend.vector(0, "a column").unwrap(), vec![0.0; backend.n_owned()]);
        let unit: Vec<f64> =
            (0..count).map(|c| if c == k && gram.length(k) > 0.0 { 1.0 / gram.length(k) } else { 0.0 }).collect();
        backend.add_columns(&mut v, &unit, &mut x).unwrap();
        backend.read(&x, &mut own).unwrap();
        own
    };
    let columns: Vec<Vec<f64>> = (0..count).map(of_column).collect();
    let mut last = vec![0.0; backend.n_owned()];
    backend.read(&to, &mut last).unwrap();
    let (k, length) = (count - width, gram.length(count - width));
    let is_column = last.iter().zip(&columns[k]).all(|(to, v)| (to - length * v).abs() <= 1e-15 * length);
    assert!(is_column, "the last column is the vector, too");
    Found { columns, projected }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// i v, of pairs of real and imaginary parts.
fn turned(v: &[f64]) -> Vec<f64> {
    v.chunks_exact(2).flat_map(|pair| [-pair[1], pair[0]]).collect()
}

/// Vectors that differ from each other by so much.
fn vectors(difference: f64) -> Vec<Vec<f64>> {
    let first = gallery::random_vector(N, 1);
    let nearly = |k: usize| {
        let other = gallery::random_vector(N, 2 + k as u64);
        first.iter().zip(other).map(|(v, u)| v + difference * u).collect::<Vec<f64>>()
    };
    [first.clone()].into_iter().chain((1..VECTORS).map(nearly)).collect()
}

/// Columns are orthogonal up to rounding times the condition of the vectors, and these are what `projected` tells of them, up to rounding.
fn check(what: &str, vectors: &[Vec<f64>], found: &[Found], has_pairs: bool, condition: f64) {
    assert!(found.iter().all(|other| other.projected == found[0].projected), "{what}: all ranks see the same");
    let count = found[0].columns.len();
    let v: Vec<Vec<f64>> =
        (0..count).map(|c| found.iter().flat_map(|of_rank| of_rank.columns[c].clone()).collect()).collect();
    for (i, j) in (0..count).flat_map(|i| (0..=i).map(move |j| (i, j))) {
        let error = dot(&v[i], &v[j]) - f64::from(u8::from(i == j));
        assert!(error.abs() < 1e-14 * condition, "{what}: columns {i} and {j}, {error:e}");
    }
    for (k, (w, Projected { h, norm })) in vectors.iter().zip(&found[0].projected).enumerate() {
        let width = if has_pairs { 2 } else { 1 };
        assert_eq!(h.len(), width * k, "{what}");
        assert!(!has_pairs || (0..N).all(|i| v[width * k + 1][i] == turned(&v[width * k])[i]), "{what}: i v");
        let all = h.iter().zip(&v).chain([(norm, &v[width * k])]);
        let sum = all.fold(vec![0.0; N], |sum, (h, v)| sum.iter().zip(v).map(|(s, v)| s + h * v).collect::<Vec<_>>());
        let error: Vec<f64> = sum.iter().zip(w).map(|(sum, w)| sum - w).collect();
        assert!(norm_of(&error) <= 1e-14 * norm_of(w), "{what}: vector {k}, {:e}", norm_of(&error) / norm_of(w));
    }
}

fn norm_of(v: &[f64]) -> f64 {
    dot(v, v).sqrt()
}

#[test]
fn orthogonal_on_every_rank() {
    let a = gallery::poisson2d([N, 1]).unwrap();
    for (difference, has_pairs) in [(1.0, false), (1.0, true), (1e-5, false), (1e-5, true)] {
        let (vectors, condition) = (vectors(difference), 10.0 / difference);
        let of = |rows: std::ops::Range<usize>| vectors.iter().map(|v| v[rows.clone()].to_vec()).collect::<Vec<_>>();
        let check = |what: &str, found: Vec<Found>| check(what, &vectors, &found, has_pairs, condition);
        check("host", vec![columns(&HostBackend::<f64>::new(N, Box::new(Alone::default())), &of(0..N), has_pairs)]);
        for parts in [2, 3, 5] {
            let found = ranks(&a, parts, &vectors[0], |part, comm, _| {
                columns(&HostBackend::<f64>::new(part.n_owned(), Box::new(comm)), &of(part.rows), has_pairs)
            });
            check("hosts", found);
        }
        for shape in [Shape::Cpu, Shape::Gpu] {
            let on_device = |rows: std::ops::Range<usize>, comm: Box<dyn Communicator<f64>>, most: Option<u64>| {
                let mut ctx = Context::open(&device()).unwrap();
                ctx.max_band_bytes = most.unwrap_or(ctx.max_band_bytes);
                let kernels = Kernels::build(&ctx, tuning(shape, 8)).unwrap();
                let backend = OpenClBackend::<f64, f64>::new(Arc::new(ctx), kernels, rows.len(), comm).unwrap();
                columns(&backend, &of(rows), has_pairs)
            };
            check("device", vec![on_device(0..N, Box::<Alone>::default(), None)]);
            check("in bands", vec![on_device(0..N, Box::<Alone>::default(), Some(8 * 12 * 400))]);
            for parts in [2, 5] {
                let found = ranks(&a, parts, &vectors[0], |part, comm, _| on_device(part.rows, Box::new(comm), None));
                check("devices", found);
            }
        }
    }
}

/// Of a vector in the span of those before, or of none, nothing is left.
#[test]
fn nothing_is_left_of_what_was_there() {
    let vectors = vectors(1.0);
    let backend = HostBackend::<f64>::new(N, Box::new(Alone::default()));
    let in_span: Vec<f64> = (0..N).map(|i| 3.0 * vectors[0][i] - vectors[4][i]).collect();
    for last in [in_span, vec![0.0; N]] {
        let found = columns(&backend, &[&vectors[..5], &[last]].concat(), false);
        assert!(found.projected[..5].iter().all(|projected| projected.norm > 0.1));
        assert_eq!(found.projected[5].norm, 0.0);
    }
}
