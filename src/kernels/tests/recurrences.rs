//! Against plain loops, with α = 2 and β = 3, or β = 0 and nothing of use in what a direction held before.

use super::*;
use crate::kernels::recurrences::{PipelinedVectors, SingleVectors};

const ALPHA: f64 = 2.0;

/// β, and of what is to be read of a former direction and its products with it, those of `salt`.
fn betas(n: usize) -> [(f64, impl Fn(usize) -> Vec<f64>); 2] {
    [3.0, 0.0].map(|beta: f64| (beta, move |salt: usize| if beta == 0.0 { vec![f64::NAN; n] } else { ints(n, salt) }))
}

/// a + β d, element by element.
fn recur(a: &[f64], beta: f64, d: &[f64]) -> Vec<f64> {
    a.iter().zip(d).map(|(a, d)| if beta == 0.0 { *a } else { a + beta * d }).collect()
}

/// v + factor d, element by element.
fn added(v: &[f64], factor: f64, d: &[f64]) -> Vec<f64> {
    v.iter().zip(d).map(|(v, d)| v + factor * d).collect()
}

pub(super) fn single_steps<T: Real, A: Real>(t: &Bench<T, A>) {
    for &n in SIZES {
        for (beta, former) in betas(n) {
            for weighted in [false, true] {
                let [x, r, q, w] = [1, 2, 3, 4].map(|salt| ints(n, salt));
                let [p, s] = [5, 6].map(&former);
                let (mut dx, mut dr, mut dp, mut ds) = (t.up(&x), t.up(&r), t.up(&p), t.up(&s));
                let (dq, dw, grid) = (t.up(&q), t.up(&w), t.grid(n));
                let sums = t.partials(2 * grid.groups);
                let w_of = weighted.then_some(&dw);
                let v = SingleVectors { x: &mut dx, r: &mut dr, p: &mut dp, s: &mut ds, q: &dq, w: w_of };
                let scalars = [ALPHA, beta].map(T::from_f64);
                t.kernels.recurrences(&t.ctx).unwrap().single_step(&t.ctx, grid, n as u32, v, scalars, &sums).unwrap();

                let what = format!("n = {n}, beta {beta}, weighted {weighted}, {:?}", t.kernels.tuning);
                let (p, s) = (recur(&r, beta, &p), recur(&q, beta, &s));
                let (x, r) = (added(&x, ALPHA, &p), added(&r, -ALPHA, &s));
                for (name, found, expected) in [("x", dx, &x), ("r", dr, &r), ("p", dp, &p), ("s", ds, &s)] {
                    assert_eq!(t.down(&found), *expected, "{name}, {what}");
                }
                assert_eq!((t.down(&dq), t.down(&dw)), (q, w.clone()), "{what}");
                let squares: Vec<f64> = r.iter().map(|r| r * r).collect();
                let rr = if weighted { dot(&w, &squares) } else { dot(&r, &r) };
                assert_eq!(sum_pairs(&t.down(&sums)), [dot(&r, &r), rr], "sums, {what}");
            }
        }
    }
}

pub(super) fn pipelined_steps<T: Real, A: Real>(t: &Bench<T, A>) {
    for &n in SIZES {
        for (beta, former) in betas(n) {
            for weighted in [false, true] {
                let [x, r, ar, q, w] = [1, 2, 3, 4, 5].map(|salt| ints(n, salt));
                let [p, s, z] = [6, 7, 8].map(&former);
                let (mut dx, mut dr, mut dt, mut dp) = (t.up(&x), t.up(&r), t.up(&ar), t.up(&p));
                let (mut ds, mut dz, dq, dw) = (t.up(&s), t.up(&z), t.up(&q), t.up(&w));
                let grid = t.grid(n);
                let sums = t.partials(4 * grid.groups);
                let v = PipelinedVectors {
                    x: &mut dx,
                    r: &mut dr,
                    t: &mut dt,
                    p: &mut dp,
                    s: &mut ds,
                    z: &mut dz,
                    q: &dq,
                    w: weighted.then_some(&dw),
                };
                let scalars = [ALPHA, beta].map(T::from_f64);
                t.kernels
                    .recurrences(&t.ctx)
                    .unwrap()
                    .pipelined_step(&t.ctx, grid, n as u32, v, scalars, &sums)
                    .unwrap();

                let what = format!("n = {n}, beta {beta}, weighted {weighted}, {:?}", t.kernels.tuning);
                let (p, s, z) = (recur(&r, beta, &p), recur(&ar, beta, &s), recur(&q, beta, &z));
                let (x, r, ar) = (added(&x, ALPHA, &p), added(&r, -ALPHA, &s), added(&ar, -ALPHA, &z));
                let vectors =
                    [("x", dx, &x), ("r", dr, &r), ("t", dt, &ar), ("p", dp, &p), ("s", ds, &s), ("z", dz, &z)];
                for (name, found, expected) in vectors {
                    assert_eq!(t.down(&found), *expected, "{name}, {what}");
                }
                assert_eq!((t.down(&dq), t.down(&dw)), (q, w.clone()), "{what}");
                let squares: Vec<f64> = r.iter().map(|r| r * r).collect();
                let rr = if weighted { dot(&w, &squares) } else { dot(&r, &r) };
                let parts = t.down(&sums);
                let found = [0, 1, 2, 3].map(|k| parts.iter().skip(k).step_by(4).sum::<f64>());
                assert_eq!(found, [dot(&r, &r), rr, dot(&r, &ar), 0.0], "sums, {what}");
            }
        }
    }
}

pub(super) fn recurrences_on_a_halo<T: Real, A: Real>(t: &Bench<T, A>) {
    for &n in SIZES {
        for begin in [0, n / 3, n] {
            for (beta, former) in betas(n) {
                let (v, a, d) = (ints(n, 1), ints(n, 2), former(3));
                let (mut dv, mut dd, da) = (t.up(&v), t.up(&d), t.up(&a));
                let (range, grid) = (begin as u32..n as u32, t.grid(n - begin));
                let scalars = [ALPHA, beta].map(T::from_f64);
                t.kernels
                    .recurrences(&t.ctx)
                    .unwrap()
                    .recur_halo(&t.ctx, grid, range, [&mut dv, &mut dd], &da, scalars)
                    .unwrap();
                let (new_v, new_d) = (t.down(&dv), t.down(&dd));
                let d_next = recur(&a, beta, &d);
                let v_next = added(&v, -ALPHA, &d_next);
                assert_eq!((&new_v[..begin], &new_v[begin..]), (&v[..begin], &v_next[begin..]), "{begin} of {n}");
                assert_eq!(new_d[begin..], d_next[begin..], "{begin} of {n}");
                assert!(new_d[..begin].iter().zip(&d).all(|(new, old)| new.total_cmp(old).is_eq()), "{begin} of {n}");
            }
        }
    }
}
