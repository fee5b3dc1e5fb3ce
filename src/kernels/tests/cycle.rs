//! What a multigrid cycle does beside products.

use super::*;
use crate::kernels::cycle::{CycleKernels, Polynomial};

/// Factors by which small integers stay integers.
const OF: Polynomial = Polynomial { keep: 3.0, add: [2.0, 5.0], weight: [7.0, -1.0] };

fn each<T: Real>(test: impl Fn(&Bench<f32, T>, &CycleKernels<T>)) {
    for t in benches_of::<f32, T>(&[Tuning::uniform(1, 1, 3)]) {
        for shape in [Shape::Cpu, Shape::Gpu] {
            test(&t, &CycleKernels::build(&t.ctx, shape).unwrap());
        }
    }
}

/// The same elements in the precision of the iteration.
fn wide<T: Real>(t: &Bench<f32, T>, v: &[f64]) -> DeviceVec<T> {
    let guarded: Vec<T> = v.iter().chain(&[CANARY; 4]).map(|&v| T::from_f64(v)).collect();
    DeviceVec::from_slice(&t.ctx, &guarded, "a test vector").unwrap()
}

fn vectors<T: Real>() {
    each::<T>(|t, kernels| {
        for &n in SIZES {
            let ctx = &t.ctx;
            let [b, of_b, scale] = [1, 2, 3].map(|salt| ints(n, salt));
            let mut to = t.up(&vec![9.0; n]);
            kernels.enter(ctx, [&wide(t, &scale), &wide(t, &b)], (&mut to, &(0..n))).unwrap();
            let scaled: Vec<f64> = scale.iter().zip(&b).map(|(s, b)| s * b).collect();
            assert_eq!(t.down(&to), scaled);
            let mut back = wide(t, &vec![9.0; n]);
            kernels.leave(ctx, &wide(t, &scale), (&t.up(&b), &(0..n)), &mut back).unwrap();
            assert_eq!(t.down(&back), scaled);
            // a part of a longer vector
            let (longer, part) = (ints(n + 5, 4), 3..3 + n);
            let mut to = t.up(&longer);
            kernels.enter(ctx, [&wide(t, &scale), &wide(t, &b)], (&mut to, &part)).unwrap();
            assert_eq!(t.down(&to), [&longer[..3], &scaled[..], &longer[3 + n..]].concat());
            let mut back = wide(t, &vec![9.0; n]);
            kernels.leave(ctx, &wide(t, &scale), (&to, &part), &mut back).unwrap();
            assert_eq!(t.down(&back), scale.iter().zip(&scaled).map(|(s, v)| s * v).collect::<Vec<_>>());

            let mut x = t.up(&vec![9.0; n]);
            kernels.smooth_from_zero(ctx, n, &OF, [&t.up(&b), &t.up(&of_b)], &mut x).unwrap();
            let gain = |(b, t): (&f64, &f64)| 14.0 * b - (6.0 * b + 5.0 * (b - 2.0 * t));
            let gained: Vec<f64> = b.iter().zip(&of_b).map(gain).collect();
            assert_eq!(t.down(&x), gained);

            let mut x = t.up(&scale);
            kernels.smooth(ctx, n, &OF, [&t.up(&b), &t.up(&of_b)], &mut x).unwrap();
            assert_eq!(t.down(&x), scale.iter().zip(&gained).map(|(x, gain)| x + gain).collect::<Vec<_>>());
        }
    });
}

#[test]
fn vectors_in_double() {
    vectors::<f64>();
}

#[test]
fn vectors_in_single() {
    vectors::<f32>();
}

#[test]
fn dense_matrices() {
    each::<f64>(|t, kernels| {
        for n in [0, 1, 7, 64, 65, 257, 300] {
            let (matrix, b) = (ints(n * n, 1), ints(n, 2));
            let mut x = t.up(&vec![9.0; n]);
            kernels.dense(&t.ctx, n, [&t.up(&matrix), &t.up(&b)], &mut x).unwrap();
            let row = |i: usize| matrix[i * n..(i + 1) * n].iter().zip(&b).map(|(a, b)| a * b).sum::<f64>();
            assert_eq!(t.down(&x), (0..n).map(row).collect::<Vec<_>>());
        }
    });
}
