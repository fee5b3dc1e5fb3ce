use super::super::tests::{laplacian, system};
use super::*;
use crate::comm::processes::simulated::processes;
use crate::distributed::rows::tests::{divided, shifted};
use crate::matrix::blocks::unknowns;
use crate::matrix::gallery;
use crate::precond::near_null::NearNull;

/// What a process has: z of its rows for each r, and rows and entries of the levels.
type Made = (Vec<Vec<f64>>, Vec<(usize, usize)>);

fn among(share: &Arc<Share>, window: &Csr, unknowns: usize, most: u64) -> Amg {
    let mut diagonal = window.diagonal();
    share.fill(&mut diagonal).unwrap();
    Amg::among(share, (window, &diagonal), unknowns, most).unwrap()
}

/// The cycle of processes that have the rows from these on, all of which have levels of up to `most` entries.
fn applied(a: &Csr, starts: &[u64], most: u64, rs: &[Vec<f64>]) -> Made {
    applied_behind(0, a, starts, most, rs)
}

/// The same where so many rows are before them.
fn applied_behind(before: u64, a: &Csr, starts: &[u64], most: u64, rs: &[Vec<f64>]) -> Made {
    let of_all = processes(starts.len() - 1, |all| {
        let process = all.process();
        let rows = shifted(divided(a, starts).swap_remove(process), before);
        let (share, window) = Share::new(all, rows).unwrap();
        let share = Arc::new(share);
        let amg = among(&share, &window, unknowns(a), most);
        let own = starts[process] as usize..starts[process + 1] as usize;
        let apply = |r: &Vec<f64>| {
            let mut z = vec![f64::NAN; share.order()];
            amg.apply(&share.padded(&r[own.clone()]), &mut z).unwrap();
            z[share.own.clone()].to_vec()
        };
        let z: Vec<Vec<f64>> = rs.iter().map(apply).collect();
        (z, amg.hierarchy().levels.iter().map(|level| (level.rows, level.nnz)).collect::<Vec<_>>())
    });
    let levels = of_all[0].1.clone();
    assert!(of_all.iter().all(|(_, other)| *other == levels));
    let z = (0..rs.len()).map(|k| of_all.iter().flat_map(|(z, _)| z[k].iter().copied()).collect()).collect();
    (z, levels)
}

/// Even parts of whole nodes.
fn even(a: &Csr, count: usize) -> Vec<u64> {
    let (n, unknowns) = (a.n_rows(), unknowns(a));
    (0..=count).map(|k| (n / unknowns * k / count * unknowns) as u64).collect()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Iterations of preconditioned conjugate gradients until ‖r‖ is 10⁻⁸ of ‖b‖.
fn iterations(a: &Csr, starts: &[u64], most: u64) -> usize {
    let n = a.n_rows();
    let (mut x, mut r) = (vec![0.0; n], gallery::random_vector(n, 7));
    let (b, mut p, mut rho) = (r.clone(), vec![0.0; n], 1.0);
    let of_all = processes(starts.len() - 1, |all| {
        let process = all.process();
        let (share, window) = Share::new(all, divided(a, starts).swap_remove(process)).unwrap();
        let share = Arc::new(share);
        (among(&share, &window, unknowns(a), most), share)
    });
    let apply = |r: &[f64]| -> Vec<f64> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (k, (amg, share)) in of_all.iter().enumerate() {
                let own = &r[starts[k] as usize..starts[k + 1] as usize];
                threads.push(scope.spawn(move || {
                    let mut z = vec![0.0; share.order()];
                    amg.apply(&share.padded(own), &mut z).unwrap();
                    z[share.own.clone()].to_vec()
                }));
            }
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        })
    };
    for iteration in 0..200 {
        if dot(&r, &r).sqrt() <= 1e-8 * dot(&b, &b).sqrt() {
            let residual = crate::verify::residual(a, &b, &x);
            assert!(residual.relative_2 < 2e-8, "{:e}", residual.relative_2);
            return iteration;
        }
        let z = apply(&r);
        let former = std::mem::replace(&mut rho, dot(&r, &z));
        let beta = if iteration == 0 { 0.0 } else { rho / former };
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
        let q = a.mul_vec(&p);
        let alpha = rho / dot(&p, &q);
        x.iter_mut().zip(&p).for_each(|(x, p)| *x += alpha * p);
        r.iter_mut().zip(&q).for_each(|(r, q)| *r -= alpha * q);
    }
    panic!("no end in sight");
}

#[test]
fn of_one_process_as_without() {
    for name in ["poisson3d:12", "jumps:10", "poisson2d:40", "poisson2d:3", "elasticity3d:6"] {
        let a = system(name);
        let (n, r) = (a.n_rows(), gallery::random_vector(a.n_rows(), 3));
        let alone = Amg::of(&a, &NearNull::of_matrix(&a), true);
        let mut expected = vec![0.0; n];
        alone.apply(&r, &mut expected).unwrap();
        let levels: Vec<_> = alone.hierarchy().levels.iter().map(|level| (level.rows, level.nnz)).collect();
        let (n, third) = (n as u64, even(&a, 3)[1]);
        // one has all, all levels but the last are shared; or the first is everybody's
        for (starts, most) in [(vec![0, n], 0), (vec![0, 0, n, n], 0), (vec![0, third, n], u64::MAX)] {
            let (z, of_processes) = applied(&a, &starts, most, std::slice::from_ref(&r));
            assert_eq!(of_processes, levels, "{name}, {starts:?}");
            assert!(z[0] == expected, "{name}, {starts:?}");
        }
    }
}

#[test]
fn several_make_a_symmetric_cycle_that_is_as_good() {
    for name in ["poisson3d:14", "jumps:12", "variable:12", "poisson2d:50", "elasticity3d:7", "elasticity3d-jumps:6"] {
        let a = system(name);
        let n = a.n_rows();
        let alone = iterations(&a, &[0, n as u64], 0);
        let rs = [1, 2].map(|seed| gallery::random_vector(n, seed));
        for count in [2, 3, 5] {
            for most in [0, 5000] {
                let starts = even(&a, count);
                let (z, levels) = applied(&a, &starts, most, &rs);
                let (one, other) = (dot(&z[0], &rs[1]), dot(&z[1], &rs[0]));
                let size = dot(&z[0], &rs[0]);
                assert!(size > 0.0 && (one - other).abs() <= 1e-5 * size, "{name}, {count}: {one} {other} {size}");
                let several = iterations(&a, &starts, most);
                assert!(several <= alone + 2 + alone / 3, "{name}, {count}: {several} for {alone}, {levels:?}");
            }
        }
    }
}

/// Rows that nothing is coupled to, processes without rows, and components of their own.
#[test]
fn what_is_hardly_coupled() {
    let edges: Vec<(u32, u32)> = (0..400).filter(|i| i % 7 != 0 && i % 50 != 49).map(|i| (i, i + 1)).collect();
    let a = laplacian(450, &edges);
    let r = vec![gallery::random_vector(450, 5)];
    for starts in [vec![0, 450], vec![0, 120, 120, 300, 450], vec![0, 449, 450]] {
        let (z, _) = applied(&a, &starts, 0, &r);
        let solved = iterations(&a, &starts, 0);
        assert!(z[0].iter().all(|z| z.is_finite()) && solved < 60, "{solved}");
    }
}

#[test]
fn rows_beyond_32_bits() {
    let a = system("poisson3d:12");
    let (starts, r) = (even(&a, 3), vec![gallery::random_vector(a.n_rows(), 3)]);
    let (near, far) = (applied(&a, &starts, 0, &r), applied_behind(5_000_000_000, &a, &starts, 0, &r));
    assert!(near.0 == far.0 && near.1[1..] == far.1[1..] && near.1.len() > 1);
}
