//! A Krylov basis on hosts and devices, alone and together, against plain loops.

use super::*;
use crate::backend::basis::{BasisBackend, Projected, orthogonalise};

const N: usize = 1500;
const COLUMNS: usize = 9;

/// What a rank has seen: its part of each column, and what was found of each vector that was made orthogonal to all of them.
struct Found {
    columns: Vec<Vec<f64>>,
    projected: Vec<Projected>,
}

/// Orthonormal columns of `vectors`, of which the last ones are only made orthogonal to the others.
fn columns<O: BasisBackend<Real = f64>>(backend: &O, vectors: &[Vec<f64>]) -> Found {
    let mut v = backend.basis(COLUMNS).unwrap();
    let [mut w, mut to] = [0, 3].map(|halo| backend.vector(halo, "a vector").unwrap());
    let mut projected = Vec::new();
    for (k, vector) in vectors.iter().enumerate() {
        backend.write(vector, &mut w).unwrap();
        let found = orthogonalise(backend, &mut v, k.min(COLUMNS), &mut w).unwrap();
        if k < COLUMNS {
            backend.next_column(&mut v, &found.rest, (1.0 / found.norm, &w), (k, false), &mut to).unwrap();
        }
        projected.push(found);
    }
    let of_column = |k: usize| {
        let (mut x, mut own) = (backend.vector(0, "a column").unwrap(), vec![0.0; backend.n_owned()]);
        let unit: Vec<f64> = (0..COLUMNS).map(|c| f64::from(u8::from(c == k))).collect();
        backend.add_columns(&mut v, &unit, &mut x).unwrap();
        backend.read(&x, &mut own).unwrap();
        own
    };
    let columns: Vec<Vec<f64>> = (0..COLUMNS).map(of_column).collect();
    let mut last = vec![0.0; backend.n_owned()];
    backend.read(&to, &mut last).unwrap();
    assert_eq!(last, columns[COLUMNS - 1], "the last column is the vector, too");
    Found { columns, projected }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[test]
fn orthogonal_to_rounding_on_every_rank() {
    // as powers of a matrix become: all nearly the same
    let first = gallery::random_vector(N, 1);
    let nearly = |k: usize| {
        let other = gallery::random_vector(N, 2 + k as u64);
        first.iter().zip(other).map(|(v, u)| v + 1e-7 * u).collect::<Vec<f64>>()
    };
    let mut vectors: Vec<Vec<f64>> = [first.clone()].into_iter().chain((1..COLUMNS).map(nearly)).collect();
    let sum: Vec<f64> = (0..N).map(|i| 3.0 * vectors[0][i] - vectors[4][i]).collect();
    vectors.extend([gallery::random_vector(N, 99), sum, vec![0.0; N]]);
    let a = gallery::poisson2d([N, 1]).unwrap();
    let of = |rows: std::ops::Range<usize>| vectors.iter().map(|v| v[rows.clone()].to_vec()).collect::<Vec<_>>();

    let check = |what: &str, found: Vec<Found>| {
        for other in &found {
            assert!(other.projected == found[0].projected, "{what}: all ranks see the same");
        }
        let v: Vec<Vec<f64>> =
            (0..COLUMNS).map(|c| found.iter().flat_map(|of_rank| of_rank.columns[c].clone()).collect()).collect();
        for (i, j) in (0..COLUMNS).flat_map(|i| (0..=i).map(move |j| (i, j))) {
            let error = dot(&v[i], &v[j]) - f64::from(u8::from(i == j));
            assert!(error.abs() < 1e-14, "{what}: columns {i} and {j}, {error:e}");
        }
        for (k, Projected { h, norm, .. }) in found[0].projected.iter().enumerate() {
            let w = &vectors[k];
            let expected: Vec<f64> = v[..k.min(COLUMNS)].iter().map(|v| dot(v, w)).collect();
            let size = dot(w, w).sqrt();
            assert!(h.iter().zip(&expected).all(|(h, e)| (h - e).abs() <= 1e-13 * size), "{what}, vector {k}");
            let rest: Vec<f64> =
                (0..N).map(|i| w[i] - expected.iter().zip(&v).map(|(h, v)| h * v[i]).sum::<f64>()).collect();
            let left = dot(&rest, &rest).sqrt();
            let is_in_span = k > COLUMNS;
            assert_eq!(*norm == 0.0, is_in_span, "{what}, vector {k}: {norm:e}");
            assert!(is_in_span || (norm - left).abs() <= 1e-13 * size, "{what}, vector {k}: {norm:e}, {left:e}");
        }
    };
    check("host", vec![columns(&HostBackend::<f64>::new(N, Box::new(Alone::default())), &of(0..N))]);
    for parts in [2, 3, 5] {
        let found = ranks(&a, parts, &vectors[0], |part, comm, _| {
            columns(&HostBackend::<f64>::new(part.n_owned(), Box::new(comm)), &of(part.rows))
        });
        check("hosts", found);
    }
    for shape in [Shape::Cpu, Shape::Gpu] {
        let on_device = |rows: std::ops::Range<usize>, comm: Box<dyn Communicator<f64>>, most: Option<u64>| {
            let mut ctx = Context::open(&device()).unwrap();
            ctx.max_band_bytes = most.unwrap_or(ctx.max_band_bytes);
            let kernels = Kernels::build(&ctx, tuning(shape, 8)).unwrap();
            let backend = OpenClBackend::<f64, f64>::new(Arc::new(ctx), kernels, rows.len(), comm).unwrap();
            columns(&backend, &of(rows))
        };
        check("device", vec![on_device(0..N, Box::<Alone>::default(), None)]);
        check("in bands", vec![on_device(0..N, Box::<Alone>::default(), Some(8 * 9 * 400))]);
        for parts in [2, 5] {
            let found = ranks(&a, parts, &vectors[0], |part, comm, _| on_device(part.rows, Box::new(comm), None));
            check("devices", found);
        }
    }
}
