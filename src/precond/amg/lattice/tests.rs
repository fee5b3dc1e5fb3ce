//! Levels of lattices beside plain loops over whole matrices.

use super::super::cycle::Vectors;
use super::super::exchanged::Exchanged;
use super::tables::Tables;
use super::*;
use crate::matrix::Csr;
use crate::matrix::gallery::Spec;

fn system(spec: &str) -> Csr {
    spec.parse::<Spec>().unwrap().build().unwrap()
}

fn lattice(a: &Csr) -> Option<Lattice> {
    a.patterns().and_then(|patterns| Lattice::of(patterns))
}

/// The points of a lattice in the order of rows.
fn points(sides: [usize; 3]) -> impl Iterator<Item = Point> {
    let [x, y, z] = sides;
    (0..x * y * z).map(move |i| [i % x, i / x % y, i / x / y].map(|at| at as i64))
}

fn number(p: Point, sides: [usize; 3]) -> Option<usize> {
    let inside = (0..3).all(|d| (0..sides[d] as i64).contains(&p[d]));
    inside.then(|| (p[2] as usize * sides[1] + p[1] as usize) * sides[0] + p[0] as usize)
}

type Dense = Vec<Vec<f64>>;

/// All entries, as points and classes tell them.
fn dense(lattice: &Lattice) -> Dense {
    let sides = lattice.sides();
    let row = |p: Point| {
        let mut row = vec![0.0; lattice.rows()];
        for (k, v) in lattice.stencil(p).unwrap().iter().enumerate() {
            match number(moved(p, offset(k)), sides) {
                Some(column) => row[column] += v,
                None => assert_eq!(*v, 0.0, "nothing lies beyond the ends"),
            }
        }
        row
    };
    points(sides).map(row).collect()
}

/// P, by the weights of the rows of the next level.
fn interpolation(lattice: &Lattice, next: &Lattice, transfer: &coarser::Transfer) -> Dense {
    let sides = lattice.sides();
    let mut all = vec![vec![0.0; next.rows()]; lattice.rows()];
    for (column, q) in points(next.sides()).enumerate() {
        let origin = [0, 1, 2].map(|d| q[d] * transfer.steps[d] as i64);
        for (k, w) in transfer.weights[next.kind(q).unwrap()].iter().enumerate() {
            match number(moved(origin, offset(k)), sides) {
                Some(row) => all[row][column] = *w,
                None => assert_eq!(*w, 0.0),
            }
        }
    }
    all
}

fn product(a: &Dense, b: &Dense) -> Dense {
    let row = |row: &Vec<f64>| {
        let mut to = vec![0.0; b.first().map_or(0, Vec::len)];
        for (v, from) in row.iter().zip(b).filter(|(v, _)| **v != 0.0) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += v * from);
        }
        to
    };
    a.iter().map(row).collect()
}

fn transposed(a: &Dense) -> Dense {
    (0..a[0].len()).map(|j| a.iter().map(|row| row[j]).collect()).collect()
}

const GRIDS: [&str; 9] = [
    "poisson2d:23x17",
    "poisson3d:11x7x9",
    "poisson3d:12",
    "poisson3d27:9x8x7",
    "neumann2d:20x31",
    "neumann2d:16",
    "anisotropic:18x12x10,epsilon=0.01",
    "poisson2d:400x3",
    "tridiagonal:500",
];

#[test]
fn rows_are_found() {
    for spec in GRIDS {
        let Ok(spec) = spec.parse::<Spec>() else { panic!("{spec} is in the gallery") };
        let a = spec.build().unwrap();
        let lattice = lattice(&a).unwrap_or_else(|| panic!("{spec} has a lattice"));
        assert_eq!((lattice.rows(), lattice.nnz()), (a.n_rows(), a.nnz()));
        for (i, row) in dense(&lattice).iter().enumerate() {
            assert!((0..a.n_cols()).all(|j| row[j] == a.get(i, j).unwrap_or(0.0)), "{spec}, row {i}");
        }
    }
    assert_eq!(lattice(&system("poisson3d:11x7x9")).unwrap().sides(), [11, 7, 9]);
}

#[test]
fn not_of_a_lattice() {
    // rows beyond next neighbours, entries around the ends, several unknowns a point, and any graph
    for spec in ["band:900,width=3", "graph-laplacian:400", "elasticity3d:8", "poisson2d:30,scramble=2"] {
        assert_eq!(lattice(&system(spec)), None, "{spec}");
    }
    let n = 400u32;
    let ring = |i: u32| [(i, i, 2.5), (i, (i + 1) % n, -1.0), ((i + 1) % n, i, -1.0)];
    let entries: Vec<(u32, u32, f64)> = (0..n).flat_map(ring).collect();
    let of = |f: fn(&(u32, u32, f64)) -> u32| entries.iter().map(f).collect::<Vec<_>>();
    let values: Vec<f64> = entries.iter().map(|e| e.2).collect();
    let a = Csr::from_triplets(n as usize, n as usize, &of(|e| e.0), &of(|e| e.1), &values).unwrap();
    assert!(a.patterns().is_some());
    assert_eq!(lattice(&a), None);
}

impl Lattice {
    /// A cycle by whole matrices: x = M⁻¹ b, of matrices whose diagonals are 1.
    fn cycle(&self, b: &[f64]) -> Vec<f64> {
        let (a, diagonal): (Dense, Vec<f64>) = {
            let a = dense(self);
            let diagonal: Vec<f64> = a.iter().enumerate().map(|(i, row)| row[i]).collect();
            (scaled(&a, &diagonal, &diagonal, -0.5), diagonal)
        };
        if self.rows() <= super::super::FEW_ROWS {
            let inverse = super::super::dense::Dense::of(&self.assembled()).inverse();
            let row = |i: usize| (0..b.len()).map(|j| f64::from(inverse[i * b.len() + j]) * b[j]).sum();
            return (0..b.len()).map(row).collect();
        }
        let (transfer, next) = self.coarser().unwrap();
        let p = interpolation(self, &next, &transfer);
        let below: Vec<f64> = points(next.sides()).map(|q| next.diagonal(q)).collect();
        let p: Dense = p
            .iter()
            .zip(&diagonal)
            .map(|(row, d)| row.iter().zip(&below).map(|(w, e)| w * (d / e).sqrt()).collect())
            .collect();
        let times = |a: &Dense, x: &[f64]| -> Vec<f64> {
            a.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
        };
        let [first, second] = super::super::smoother::steps(self.table().unwrap().largest);
        let smoothed = |x: &[f64], r: &[f64]| -> Vec<f64> {
            // the steps as they are defined
            let step = |s: super::super::smoother::Step| [s.keep, s.add, s.weight].map(f64::from);
            let ([_, add, weight], [keep, then, more]) = (step(first), step(second));
            let d: Vec<f64> = r.iter().map(|r| add * r).collect();
            let left: Vec<f64> = r.iter().zip(times(&a, &d)).map(|(r, t)| r - t).collect();
            let after = d.iter().zip(&left).map(|(d, r)| keep * d + then * r);
            x.iter().zip(&d).zip(after).map(|((x, d), e)| x + weight * d + more * e).collect()
        };
        let left = |x: &[f64]| -> Vec<f64> { b.iter().zip(times(&a, x)).map(|(b, t)| b - t).collect() };
        let x = smoothed(&vec![0.0; b.len()], b);
        let e = next.cycle(&times(&transposed(&p), &left(&x)));
        let x: Vec<f64> = x.iter().zip(times(&p, &e)).map(|(x, e)| x + e).collect();
        smoothed(&x, &left(&x))
    }
}

#[test]
fn cycles_beside_whole_matrices() {
    for spec in GRIDS {
        let a = system(spec);
        let find = || lattice(&a).unwrap();
        let tables = Tables::of(find()).unwrap();
        let b: Vec<f64> = (0..a.n_rows()).map(|i| ((i * 7) % 13) as f64 - 6.0).collect();
        let expected = find().cycle(&b);
        let sizes = tables.hierarchy.levels.iter().map(|level| level.rows);
        let mut vectors: Vec<_> = sizes.map(|n| Vectors::new(n, Exchanged::Nothing)).collect();
        let largest = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for _turn in 0..2 {
            vectors[0].b.iter_mut().zip(&b).for_each(|(to, b)| *to = *b as f32);
            tables.cycle(&mut vectors);
            for (x, expected) in vectors[0].x.iter().zip(&expected) {
                assert!((f64::from(*x) - expected).abs() < 2e-5 * largest, "{spec}: {x}, {expected}");
            }
        }
    }
}

/// D^power A E^power.
fn scaled(a: &Dense, d: &[f64], e: &[f64], power: f64) -> Dense {
    let row = |(row, d): (&Vec<f64>, &f64)| row.iter().zip(e).map(|(v, e)| v * d.powf(power) * e.powf(power)).collect();
    a.iter().zip(d).map(row).collect()
}

/// The next matrix is Pᵀ A P, and P has what constants are interpolated by where rows sum to 0.
#[test]
fn next_levels_are_galerkin_products() {
    for spec in GRIDS {
        let mut lattice = lattice(&system(spec)).unwrap();
        while lattice.rows() > super::super::FEW_ROWS {
            let (transfer, next) = lattice.coarser().unwrap_or_else(|| panic!("{spec} has a next level"));
            let (a, p) = (dense(&lattice), interpolation(&lattice, &next, &transfer));
            let expected = product(&transposed(&p), &product(&a, &p));
            let found = dense(&next);
            let largest = expected.iter().flatten().fold(0.0f64, |m, v| m.max(v.abs()));
            for (row, other) in expected.iter().zip(&found) {
                assert!(row.iter().zip(other).all(|(v, w)| (v - w).abs() <= 1e-13 * largest), "{spec}");
            }
            if spec.starts_with("neumann") {
                assert!(p.iter().all(|weights| (weights.iter().sum::<f64>() - 1.0).abs() < 1e-9), "{spec}");
            }
            // the table has the entries of D^(−½) A D^(−½), the transfer those of D^½ P E^(−½)
            let table = lattice.table().unwrap();
            let weights = lattice.weights(&next, &transfer).unwrap();
            for (column, q) in points(next.sides()).enumerate() {
                let origin = [0, 1, 2].map(|d| q[d] * transfer.steps[d] as i64);
                for (k, weight) in weights[next.kind(q).unwrap()].iter().enumerate() {
                    let Some(row) = number(moved(origin, offset(k)), lattice.sides()) else { continue };
                    let scaled = p[row][column] * (a[row][row] / found[column][column]).sqrt();
                    assert!((scaled - f64::from(*weight)).abs() < 1e-6 * scaled.abs() + 1e-9);
                }
            }
            for (i, p) in points(lattice.sides()).enumerate() {
                let kind = kind_of(&table.classes, p).unwrap();
                for (place, k) in table.neighbours.iter().enumerate() {
                    let Some(j) = number(moved(p, offset(*k)), lattice.sides()) else { continue };
                    let scaled = a[i][j] / (a[i][i] * a[j][j]).sqrt();
                    let stored = f64::from(table.entries[kind * table.neighbours.len() + place]);
                    assert!((scaled - stored).abs() < 1e-6, "{spec}");
                }
            }
            lattice = next;
        }
    }
}

/// Weakly coupled directions wait.
#[test]
fn directions_in_turn() {
    let steps = |spec: &str| lattice(&system(spec)).unwrap().coarser().map(|(transfer, _)| transfer.steps);
    assert_eq!(steps("poisson2d:30"), Some([2, 2, 1]));
    assert_eq!(steps("poisson3d:10"), Some([2; 3]));
    assert_eq!(steps("tridiagonal:90"), Some([2, 1, 1]));
}

/// The bound of eigenvalues holds, and is near.
#[test]
fn bounds_of_eigenvalues() {
    for spec in GRIDS {
        let mut lattice = lattice(&system(spec)).unwrap();
        loop {
            let (a, table) = (lattice.assembled(), lattice.table().unwrap());
            let mut v: Vec<f32> = (0..lattice.rows()).map(|i| ((i * 7919) % 13) as f32 - 6.0).collect();
            let mut largest = 0.0;
            for _ in 0..200 {
                let w: Vec<f32> = (0..v.len()).map(|i| a.rows().row(i).map(|(j, a)| a * v[j]).sum()).collect();
                largest = w.iter().map(|w| w * w).sum::<f32>().sqrt();
                v = w.iter().map(|w| w / largest).collect();
            }
            assert!(f64::from(largest) <= 1.001 * table.largest, "{spec}: {largest}, {}", table.largest);
            assert!(table.largest < 1.35 * f64::from(largest), "{spec}: {largest}, {}", table.largest);
            match lattice.coarser() {
                Some((_, next)) if next.rows() > 20 => lattice = next,
                _ => break,
            }
        }
    }
}
