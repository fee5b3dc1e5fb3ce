//! P A = L U of tall blocks against plain loops: the same bits.

use crate::device::Kind;
use crate::kernels::gemm::Block;
use crate::kernels::lu_panel::{Cut, Factorised, HEAD, LuPanel};

use super::gemm::{Fused, each_device};
use super::*;

/// A block in a larger array begins here.
const AT: usize = 3;

/// L U in place by the definition, and the rows that changed places; or the column, counted from 1, without a pivot.
fn by_loops<T: Fused>(a: &mut [T], [m, w]: [usize; 2]) -> std::result::Result<Vec<usize>, usize> {
    let size = |v: T| v.to_f64().abs();
    (0..w)
        .map(|k| {
            let first = |best: usize, i: usize| if size(a[i + k * m]) > size(a[best + k * m]) { i } else { best };
            let row = (k..m).fold(k, first);
            if size(a[row + k * m]) == 0.0 {
                return Err(k + 1);
            }
            (0..w).for_each(|j| a.swap(k + j * m, row + j * m));
            let inverse = T::from_f64(1.0) / a[k + k * m];
            for i in k + 1..m {
                let l = a[i + k * m] * inverse;
                a[i + k * m] = l;
                (k + 1..w).for_each(|j| a[i + j * m] = (T::default() - l).fused(a[k + j * m], a[i + j * m]));
            }
            Ok(row)
        })
        .collect()
}

/// Numbers between −½ and ½ as if by chance, of which many are the same.
fn numbers<T: Real>(count: usize, salt: usize) -> Vec<T> {
    (0..count).map(|i| T::from_f64(((i * 7919 + salt * 131 + i / 97) % 64) as f64 / 64.0 - 0.5)).collect()
}

/// What the kernel leaves of A: that of the first rows, that of all, and what it tells.
fn by_kernel<T: Real>(ctx: &Context, kernel: &LuPanel<T>, [m, w]: [usize; 2], a: &[T]) -> [Vec<T>; 3] {
    let ld = m + 2;
    let mut all = numbers::<T>(AT + ld * w + 1, 9);
    (0..w).for_each(|j| all[AT + j * ld..][..m].copy_from_slice(&a[j * m..][..m]));
    let on_a = DeviceVec::from_slice(ctx, &all, "a test array").unwrap();
    let (block_at, panel_at) = (HEAD + w + 1, HEAD + w + 2 + w * w);
    let out = DeviceVec::from_slice(ctx, &vec![T::from_f64(-7.0); panel_at + m * w + 1], "a test array").unwrap();
    let to = Factorised { array: &out, block_at, panel_at };
    kernel.launch(ctx, [m, w], Block { array: &on_a, at: AT, ld }, to).unwrap();
    let (mut found, mut left) = (vec![T::default(); out.len()], vec![T::default(); all.len()]);
    out.read(ctx, 0, &mut found).unwrap();
    on_a.read(ctx, 0, &mut left).unwrap();
    let is_around = |i: &usize| *i < AT || (i - AT) % ld >= m || *i >= AT + ld * w;
    assert!((0..all.len()).filter(is_around).all(|i| left[i] == all[i]), "elements around A");
    assert_eq!(found[panel_at + m * w], T::from_f64(-7.0), "elements behind L U");
    [found[block_at..][..w * w].to_vec(), found[panel_at..][..m * w].to_vec(), found[..HEAD + w].to_vec()]
}

fn compare<T: Fused>(ctx: &Context, kernel: &LuPanel<T>, [m, w]: [usize; 2], a: Vec<T>) {
    let mut expected = a.clone();
    let swaps = by_loops(&mut expected, [m, w]);
    let [block, panel, told] = by_kernel(ctx, kernel, [m, w], &a);
    let number = |v: usize| T::from_f64(v as f64);
    match swaps {
        Err(column) => assert_eq!(told[..2], [number(0), number(column)], "{m} x {w}"),
        Ok(swaps) => {
            assert_eq!(told[..2], [number(0); 2], "{m} x {w}");
            assert_eq!(told[2..], swaps.into_iter().map(number).collect::<Vec<_>>(), "{m} x {w}");
            assert!(panel == expected, "{m} x {w}");
            let first = |j: usize| panel[j * m..][..w].to_vec();
            assert!(block == (0..w).flat_map(first).collect::<Vec<_>>(), "{m} x {w}");
        }
    }
}

/// Sizes below, at and above groups and columns in registers.
const SIZES: [[usize; 2]; 12] =
    [[1, 1], [2, 1], [2, 2], [7, 3], [16, 16], [17, 5], [33, 17], [64, 8], [65, 40], [100, 40], [127, 33], [128, 40]];

fn at_awkward_sizes<T: Fused>(cuts: &[[usize; 2]]) {
    each_device(|ctx, is_simulated| {
        if ctx.info().kind == Kind::Gpu && T::CL_NAME == "float" {
            return; // whose divisions may be a bit off
        }
        for &[group_size, narrow] in cuts {
            // several groups where they are known to be there at once; else all rows in one, which waits for nobody
            let item_rows = if ctx.info().kind == Kind::Gpu && !is_simulated { 1 } else { 128 / group_size };
            let cut = Cut { group_size, item_rows, narrow };
            let kernel = LuPanel::<T>::build(ctx, [128, 40], cut).unwrap();
            for (salt, [m, w]) in SIZES.into_iter().enumerate() {
                compare(ctx, &kernel, [m, w], numbers(m * w, salt));
            }
        }
    });
}

#[test]
fn lu_panels_are_those_of_loops() {
    at_awkward_sizes::<f64>(&[[128, 16], [32, 8]]);
}

#[test]
fn lu_panels_in_single_precision_are_those_of_loops() {
    at_awkward_sizes::<f32>(&[[64, 4]]);
}

#[test]
fn columns_without_a_pivot_end_lu_panels() {
    each_device(|ctx, _| {
        let cut = Cut { group_size: 32, item_rows: 2, narrow: 4 };
        let kernel = LuPanel::<f64>::build(ctx, [40, 9], cut).unwrap();
        for bad in [0, 3, 4, 8] {
            let mut a = numbers::<f64>(40 * 9, 2);
            a[bad * 40..][..40].fill(0.0);
            compare(ctx, &kernel, [40, 9], a);
        }
        // and then all is well again
        compare(ctx, &kernel, [40, 9], numbers(40 * 9, 2));
    });
}
