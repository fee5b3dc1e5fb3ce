//! Blocks of dense matrices that are copied, turned, and whose rows move, against plain loops.

use crate::kernels::dense::{DenseKernels, MOST_MOVES};
use crate::kernels::gemm::{Block, Lower};

use super::gemm::each_device;
use super::*;

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

fn read(ctx: &Context, v: &DeviceVec<f32>) -> Vec<f32> {
    let mut all = vec![0.0; v.len()];
    v.read(ctx, 0, &mut all).unwrap();
    all
}

/// In both shapes.
fn each_shape(run: impl Fn(&Context, &DenseKernels<f32>)) {
    each_device(|ctx, _| {
        for (group_size, max_groups) in [(1, 3), (32, 2), (256, 5)] {
            run(ctx, &DenseKernels::in_groups(ctx, group_size, max_groups).unwrap());
        }
    });
}

#[test]
fn dense_blocks_are_copied() {
    each_shape(|ctx, kernels| {
        for [rows, cols] in [[0, 3], [1, 1], [5, 7], [33, 17]] {
            let (x, y) = (numbers(1 + 40 * 17), vec![-1.0; 2 + 35 * 17]);
            let up = |v: &[f32]| DeviceVec::from_slice(ctx, v, "a test array").unwrap();
            let (on_x, on_y) = (up(&x), up(&y));
            let (from, to) = (Block { array: &on_x, at: 1, ld: 40 }, Block { array: &on_y, at: 2, ld: 35 });
            kernels.copy(ctx, [rows, cols], from, to).unwrap();
            let mut expected = y;
            for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
                expected[2 + i + 35 * j] = x[1 + i + 40 * j];
            }
            assert_eq!(read(ctx, &on_y), expected);
        }
    });
}

#[test]
fn dense_rows_are_turned_into_columns() {
    each_shape(|ctx, kernels| {
        // every second block of 3 columns, from row 4 on
        let lower = Lower { block: 3, stride: 6, first: 4 };
        let (rows, cols) = (5, 8);
        let x = numbers(30 * rows);
        let (on_x, on_y) = (
            DeviceVec::from_slice(ctx, &x, "a test array").unwrap(),
            DeviceVec::from_slice(ctx, &vec![-1.0; rows * cols], "a test array").unwrap(),
        );
        let (from, to) = (Block { array: &on_x, at: 0, ld: 30 }, Block { array: &on_y, at: 0, ld: rows });
        let places = [4, 5, 6, 10, 11, 12, 16, 17];
        for has_diagonal in [false, true] {
            kernels.mirror(ctx, [rows, cols], (lower, has_diagonal), from, to).unwrap();
            let factor = |i: usize| if has_diagonal { x[i + 30 * i] } else { 1.0 };
            let expected: Vec<f32> = places
                .iter()
                .flat_map(|row| (0..rows).map(|i| factor(i) * x[row + 30 * i]).collect::<Vec<_>>())
                .collect();
            assert_eq!(read(ctx, &on_y), expected);
        }
    });
}

#[test]
fn dense_rows_move_at_once() {
    each_shape(|ctx, kernels| {
        for (rows, many) in [(3, 0), (6, 6), (700, MOST_MOVES)] {
            let cols = 9;
            // a cycle, in which each row waits for another
            let moves: Vec<u32> = (0..many).flat_map(|k| [k as u32, ((k + 1) % many) as u32]).collect();
            let x = numbers(rows * cols);
            let on_x = DeviceVec::from_slice(ctx, &x, "a test array").unwrap();
            let on_moves = DeviceVec::from_slice(ctx, &moves, "moves").unwrap();
            let block = Block { array: &on_x, at: 0, ld: rows };
            kernels.move_rows(ctx, [rows, cols], (&on_moves, many), block).unwrap();
            let mut expected = x.clone();
            for (k, j) in (0..many).flat_map(|k| (0..cols).map(move |j| (k, j))) {
                expected[k + rows * j] = x[(k + 1) % many + rows * j];
            }
            assert_eq!(read(ctx, &on_x), expected, "{many} moves");
        }
    });
}
