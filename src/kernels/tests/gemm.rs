//! Products of dense matrices against plain loops, to the bit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::kernels::gemm::{Block, Gemm, Lower, Tiles};
use crate::real::Real;

use super::*;

/// Tiles of both shapes: of the largest group, of several elements read at once and one, and with either number of buffers.
fn tiles() -> [Tiles; 5] {
    let of = |tile, depth, item, lane, buffers, pad| Tiles { tile, depth, item, lane, buffers, pad, mma: false };
    [
        of([16, 8], 1, [16, 8], [1, 1], 1, 0),
        of([8, 4], 1, [8, 4], [1, 1], 1, 0),
        of([16, 16], 8, [4, 4], [2, 2], 2, 2),
        of([32, 16], 4, [4, 2], [4, 1], 1, 4),
        of([8, 16], 16, [2, 4], [1, 2], 2, 0),
    ]
}

/// Small integers, of which sums of products are exact in both precisions.
fn integers<T: Real>(n: usize, salt: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64(((i + salt) * 2_654_435_761 % 13) as f64 - 6.0)).collect()
}

fn fractions<T: Real>(n: usize, salt: usize) -> Vec<T> {
    (0..n).map(|i| T::from_f64(((i + salt) * 2_654_435_761 % 1009) as f64 / 1013.0 - 0.5)).collect()
}

/// One rounding of a product and a sum.
pub(super) trait Fused: Real {
    fn fused(self, b: Self, c: Self) -> Self;
}
impl Fused for f32 {
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
}
impl Fused for f64 {
    fn fused(self, b: Self, c: Self) -> Self {
        self.mul_add(b, c)
    }
}

/// A device of each platform.
fn one_a_platform() -> Vec<Info> {
    let devices = list().devices;
    assert!(!devices.is_empty(), "kernel tests need an OpenCL device (apt-get install pocl-opencl-icd)");
    let mut platforms = BTreeSet::new();
    devices.into_iter().filter(|device| platforms.insert(device.platform.clone())).collect()
}

/// A matrix in a larger array.
struct Place {
    at: usize,
    ld: usize,
}

impl Place {
    fn elements(&self, cols: usize) -> usize {
        self.at + self.ld * cols + 3
    }

    fn of<'a, T>(&self, array: &'a DeviceVec<T>) -> Block<'a, T> {
        Block { array, at: self.at, ld: self.ld }
    }
}

const A: usize = 3;
const B: usize = 5;
const C: usize = 2;

/// C by the kernel, and by loops over the same numbers.
fn compare<T: Fused>(
    (ctx, gemm, tiles, is_naive): (&Context, &Gemm<T>, Tiles, bool),
    [m, n, k]: [usize; 3],
    (alpha, beta): (f64, f64),
    make: fn(usize, usize) -> Vec<T>,
) {
    let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
    let of_a = Place { at: A, ld: m + 1 };
    let of_b = Place { at: B, ld: k + 2 };
    let of_c = Place { at: C, ld: m + 3 };
    let (a, b, c) = (make(of_a.elements(k), 1), make(of_b.elements(n), 5), make(of_c.elements(n), 9));
    let up = |v: &[T]| DeviceVec::from_slice(ctx, v, "a test array").unwrap();
    let (on_a, on_b, on_c) = (up(&a), up(&b), up(&c));
    let factors = (of_a.of(&on_a), of_b.of(&on_b));
    if is_naive {
        gemm.launch_naive(ctx, [m, n, k], (alpha, beta), factors, of_c.of(&on_c)).unwrap();
    } else {
        gemm.launch(ctx, [m, n, k], (alpha, beta), factors, of_c.of(&on_c), None).unwrap();
    }
    let mut found = vec![T::default(); c.len()];
    on_c.read(ctx, 0, &mut found).unwrap();
    let mut expected = c;
    for j in 0..n {
        for i in 0..m {
            let mut sum = T::default();
            for p in 0..k {
                sum = a[A + i + p * of_a.ld].fused(b[B + p + j * of_b.ld], sum);
            }
            let to = &mut expected[C + i + j * of_c.ld];
            *to = if beta == T::default() { alpha * sum } else { alpha.fused(sum, beta * *to) };
        }
    }
    assert!(found == expected, "{m} x {n} x {k}, {alpha:?}, {beta:?}, {tiles}, naive: {is_naive}");
}

fn at_awkward_sizes<T: Fused>(ctx: &Context, is_simulated: bool) {
    let few = [[0, 3, 2], [1, 1, 1], [17, 9, 0], [33, 17, 19]];
    let many = [[3, 0, 2], [1, 40, 3], [40, 1, 17], [15, 16, 8], [16, 16, 16], [31, 33, 1], [97, 67, 35], [65, 5, 129]];
    for tiles in tiles().into_iter().filter(|tiles| tiles.fits::<T>(ctx)) {
        let gemm = Gemm::build(ctx, tiles).unwrap();
        // the naive one knows of no tiles
        let ways = if tiles == self::tiles()[0] || tiles == self::tiles()[2] { &[false, true][..] } else { &[false] };
        for &is_naive in ways {
            let on = (ctx, &gemm, tiles, is_naive);
            for size in few.into_iter().chain(many.into_iter().filter(|_| !is_simulated)) {
                compare(on, size, (1.0, 0.0), integers::<T>);
                compare(on, size, (-1.0, 1.0), fractions::<T>);
            }
            compare(on, [5, 18, 11], (2.0, 3.0), integers::<T>);
        }
    }
}

pub(super) fn each_device(run: impl Fn(&Context, bool)) {
    for device in one_a_platform() {
        let ctx = Context::open(&device).unwrap();
        run(&ctx, device.platform == "Oclgrind");
    }
}

#[test]
fn gemm_at_awkward_sizes() {
    each_device(|ctx, is_simulated| {
        at_awkward_sizes::<f32>(ctx, is_simulated);
        if ctx.info().has_f64 {
            at_awkward_sizes::<f64>(ctx, is_simulated);
        }
    });
}

#[test]
fn gemm_by_hand() {
    each_device(|ctx, _| {
        let up = |v: &[f32]| DeviceVec::from_slice(ctx, v, "a test array").unwrap();
        let (a, b, c) = (up(&[1.0, 2.0, 3.0, 4.0]), up(&[5.0, 6.0, 7.0, 8.0]), up(&[0.0; 4]));
        let block = |array| Block { array, at: 0, ld: 2 };
        for tiles in tiles() {
            let gemm = Gemm::build(ctx, tiles).unwrap();
            gemm.launch(ctx, [2, 2, 2], (1.0, 0.0), (block(&a), block(&b)), block(&c), None).unwrap();
            let mut found = [0.0; 4];
            c.read(ctx, 0, &mut found).unwrap();
            assert_eq!(found, [23.0, 34.0, 31.0, 46.0], "{tiles}");
        }
    });
}

#[test]
fn gemm_below_the_diagonal() {
    each_device(|ctx, is_simulated| {
        let (m, k, block) = (if is_simulated { 60 } else { 100 }, 4, 8);
        // every third block of columns from the second one on
        let lower = Lower { block, stride: 3 * block, first: block };
        let n = (m - block).div_ceil(lower.stride) * block;
        let global = |j: usize| lower.first + j / block * lower.stride + j % block;
        let (a, b) = (integers::<f32>(m * k, 0), integers::<f32>(k * n, 4));
        let up = |v: &[f32]| DeviceVec::from_slice(ctx, v, "a test array").unwrap();
        let (on_a, on_b) = (up(&a), up(&b));
        for tiles in tiles() {
            let gemm = Gemm::build(ctx, tiles).unwrap();
            let c = up(&vec![99.0; m * n]);
            let of = |array, ld| Block { array, at: 0, ld };
            let (a_block, b_block) = (of(&on_a, m), of(&on_b, k));
            gemm.launch(ctx, [m, n, k], (1.0, 0.0), (a_block, b_block), of(&c, m), Some(lower)).unwrap();
            let mut found = vec![0.0; m * n];
            c.read(ctx, 0, &mut found).unwrap();
            let mut left = 0;
            for j in 0..n {
                for i in 0..m {
                    let sum: f32 = (0..k).map(|p| a[i + p * m] * b[p + j * k]).sum();
                    let value = found[i + j * m];
                    left += usize::from(value == 99.0);
                    assert!(value == sum || value == 99.0 && i < global(j), "({i}, {j}): {value}, {tiles}");
                }
            }
            assert!(left > 0, "nothing was left out: {tiles}");
        }
    });
}

#[test]
fn gemm_refuses_blocks_outside_of_their_arrays() {
    let ctx = Context::open(&one_a_platform()[0]).unwrap();
    let v = DeviceVec::<f32>::zeros(&ctx, 11, "a test array").unwrap();
    let gemm = Gemm::build(&ctx, tiles()[0]).unwrap();
    let block = |at, ld| Block { array: &v, at, ld };
    let run = |a, b, c| {
        let launch = || gemm.launch(&ctx, [2, 3, 2], (1.0, 0.0), (a, b), c, None);
        catch_unwind(AssertUnwindSafe(launch)).is_ok()
    };
    assert!(run(block(7, 2), block(5, 2), block(0, 4)));
    assert!(!run(block(8, 2), block(5, 2), block(0, 4)));
    assert!(!run(block(7, 2), block(6, 2), block(0, 4)));
    assert!(!run(block(7, 2), block(5, 2), block(2, 4)));
    assert!(!run(block(7, 1), block(5, 2), block(0, 4)), "columns overlap");
}

#[test]
fn all_candidates_of_tiles_fit() {
    for device in one_a_platform() {
        let ctx = Context::open(&device).unwrap();
        for shape in [Shape::Cpu, Shape::Gpu] {
            let all = Tiles::candidates::<f32>(&ctx, shape);
            assert!(!all.is_empty() && all.iter().all(|tiles| tiles.fits::<f32>(&ctx)));
            assert_eq!(Shape::of_group(Tiles::default_for::<f32>(&ctx, shape).group_size()), shape);
        }
    }
}
