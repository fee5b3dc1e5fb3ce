//! Every kernel, in both shapes and precisions, against plain loops on the host, at awkward sizes. The data are small integers, so
//! that every sum is exact and equality is of bits; buffers end in canaries that no kernel may touch.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::cg::{Log, StepVectors, SumArg, cg_scalars};
use super::csr::BlockSet;
use super::sell::SliceSet;
use super::stencil::RowSet;
use super::*;
use crate::device::list;
use crate::error::Error;
use crate::matrix::{Csr as Matrix, gallery};
use crate::operator::opencl::{DeviceBlock, Layout};
use crate::partition::{HaloPlan, Part, split};
use crate::solver::Format;

const SIZES: &[usize] = &[0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1000, 2049, 5003];
const CANARY: f64 = -77.0;

struct Bench<T, A> {
    ctx: Context,
    kernels: Kernels<T, A>,
}

/// Every combination of device and shape, with several launch parameters.
fn benches<T: Real, A: Real>() -> Vec<Bench<T, A>> {
    let devices = list().devices;
    assert!(!devices.is_empty(), "kernel tests need an OpenCL device (apt-get install pocl-opencl-icd)");
    let mut all = Vec::new();
    // oclgrind, PoCL and every GPU: one device of each platform
    let platforms: BTreeSet<&str> = devices.iter().map(|d| d.platform.as_str()).collect();
    for platform in platforms {
        let device = devices.iter().find(|d| d.platform == platform).unwrap();
        for tuning in [
            Tuning::uniform(1, 1, 3),
            Tuning::uniform(64, 128, 5),
            Tuning::uniform(64, 512, 2).sharing(8).unrolled(4),
            Tuning::uniform(256, 512, 2),
        ] {
            let ctx = Context::open(device).unwrap();
            let kernels = Kernels::build(&ctx, tuning).unwrap();
            all.push(Bench { ctx, kernels });
        }
    }
    all
}

/// Small integers that differ from element to element.
fn ints(n: usize, salt: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7 + salt * 13 + i / 5) % 11) as f64 - 5.0).collect()
}

impl<T: Real, A: Real> Bench<T, A> {
    /// A device vector of `v` with canaries behind.
    fn up(&self, v: &[f64]) -> DeviceVec<T> {
        let guarded: Vec<T> = v.iter().chain(&[CANARY; 4]).map(|&v| T::from_f64(v)).collect();
        DeviceVec::from_slice(&self.ctx, &guarded, "a test vector").unwrap()
    }

    /// The elements, after a look at the canaries.
    fn down<E: Real>(&self, v: &DeviceVec<E>) -> Vec<f64> {
        let mut data = vec![E::default(); v.len()];
        v.read(&self.ctx, 0, &mut data).unwrap();
        let mut data: Vec<f64> = data.into_iter().map(E::to_f64).collect();
        let canaries = data.split_off(data.len() - 4);
        assert_eq!(canaries, [CANARY; 4], "a kernel wrote behind the end");
        data
    }

    fn partials(&self, count: usize) -> DeviceVec<A> {
        let guarded: Vec<A> = std::iter::repeat_n(99.0, count).chain([CANARY; 4]).map(A::from_f64).collect();
        DeviceVec::from_slice(&self.ctx, &guarded, "test sums").unwrap()
    }

    fn log(&self) -> Log<A> {
        Log {
            states: [0, 1].map(|_| DeviceVec::zeros(&self.ctx, 1, "the state").unwrap()),
            entries: DeviceVec::zeros(&self.ctx, 6, "the log").unwrap(),
        }
    }

    /// The states that are read in even and in odd iterations, and the log.
    fn logged(&self, log: &Log<A>) -> ([i32; 2], Vec<f64>) {
        let state = |k: u64| {
            let mut state = [0];
            log.state(k).read(&self.ctx, 0, &mut state).unwrap();
            state[0]
        };
        let mut entries = [A::default(); 6];
        log.entries.read(&self.ctx, 0, &mut entries).unwrap();
        ([state(0), state(1)], entries.into_iter().map(A::to_f64).collect())
    }

    /// Pairs of partial sums that add up to `sums`, each from a group of its own if there are two.
    fn pairs(&self, groups: usize, sums: [f64; 2]) -> DeviceVec<A> {
        let mut parts = vec![A::default(); 2 * groups];
        parts[2 * (groups / 2)] = A::from_f64(sums[0]);
        parts[2 * (groups - 1) + 1] = A::from_f64(sums[1]);
        DeviceVec::from_slice(&self.ctx, &parts, "test sums").unwrap()
    }

    fn grid(&self, n: usize) -> Grid {
        self.kernels.tuning.grid("any", n)
    }
}

/// Runs a test in every precision on every bench.
macro_rules! on_all {
    ($test:ident) => {
        #[test]
        fn $test() {
            benches::<f64, f64>().iter().for_each(bodies::$test);
            benches::<f32, f64>().iter().for_each(bodies::$test);
            benches::<f32, f32>().iter().for_each(bodies::$test);
        }
    };
}
on_all!(dot_product);
on_all!(updates);
on_all!(conversions);
on_all!(products);
on_all!(stencil_products);
on_all!(sell_products);
on_all!(steps);
on_all!(frozen_iterations);
on_all!(step_on_a_halo);
on_all!(pack_and_copy);
on_all!(resident_iterations);
on_all!(refused_iterations);

/// Σ x\[i\] y\[i\].
fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Matrices of all kinds of rows: short, empty, one longer than a row block, many of one entry.
fn matrices() -> Vec<Matrix> {
    let banded = |n: usize, width: usize| {
        let mut t = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..n {
            for j in i.saturating_sub(width)..(i + width + 1).min(n) {
                t.0.push(i as u32);
                t.1.push(j as u32);
                t.2.push(((i + 3 * j) % 9) as f64 - 4.0);
            }
        }
        Matrix::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap()
    };
    let mut all = vec![banded(0, 0), banded(1, 0), banded(300, 0), banded(257, 3), banded(100, 20), banded(70, 60)];
    // an arrow: row 0 and column 0 full, and every third row empty
    let n = 1500;
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for j in 0..n {
        for (i, j) in [(0, j), (j, 0), (j, j)] {
            if i % 3 != 1 {
                t.0.push(i as u32);
                t.1.push(j as u32);
                t.2.push(((i + j) % 5) as f64 - 2.0);
            }
        }
    }
    all.push(Matrix::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap());
    all
}

/// Matrices of full blocks, but that one in so many rows is without blocks, and one in `holes` blocks misses an entry.
fn blocks(block: usize, rows: usize, holes: usize) -> Matrix {
    let n = rows * block + 1;
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    let mut entry = |i: usize, j: usize| {
        t.0.push(i as u32);
        t.1.push(j as u32);
        t.2.push(((i * 5 + 3 * j) % 9) as f64 - 4.0);
    };
    entry(0, n - 1);
    for i in 0..rows {
        for k in 0..1 + i % 5 {
            let j = (i * 7 + k * (k + 3)) % rows;
            for (r, c) in (0..block).flat_map(|r| (0..block).map(move |c| (r, c))) {
                if holes == 0 || (i + k) % holes != 3 || (r, c) != (0, block - 1) {
                    entry(1 + i * block + r, 1 + j * block + c);
                }
            }
        }
    }
    Matrix::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap()
}

/// Matrices that slices take in different ways. What has more columns than rows has a halo.
fn sliced_matrices() -> Vec<Matrix> {
    let mut all = matrices();
    for block in [2, 3, 4, 6] {
        all.extend([1, 31, 33, 300].map(|rows| blocks(block, rows, 0)));
        all.push(blocks(block, 100, 7));
    }
    // entries of rows: far and near columns, one long row in 40, values that need one byte, two, and more
    let of_rows = |n: usize, n_cols: usize, len: &dyn Fn(usize) -> usize, apart: usize| {
        let mut t = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..n {
            for k in 0..len(i) {
                t.0.push(i as u32);
                t.1.push(((i + k * apart) % n_cols) as u32);
                let unit = [1.0, 60.0, 20_000.0, 0.5][i / 64 % 4];
                t.2.push(unit * (((i + 3 * k) % 5) as f64 - 2.0));
            }
        }
        Matrix::from_triplets(n, n_cols, &t.0, &t.1, &t.2).unwrap()
    };
    all.push(of_rows(300, 70_301, &|i| i % 7, 11_003));
    all.push(of_rows(600, 600, &|i| if i % 40 == 7 { 300 } else { i % 9 }, 1));
    all.push(of_rows(100, 5_000, &|i| if i == 50 { 5_000 } else { 3 }, 1));
    all.push(of_rows(1, 5_000, &|_| 5_000, 1));
    all
}

/// All of a matrix as one part; columns behind those that are owned are a halo.
fn whole(a: &Matrix) -> Part<'_> {
    Part {
        rows: 0..a.n_rows(),
        row_ptr: a.row_ptr(),
        col_idx: a.col_idx().into(),
        values: a.values().into(),
        halo: HaloPlan { len: a.n_cols().saturating_sub(a.n_rows()), ..HaloPlan::default() },
    }
}

/// The components of pairs of partial sums, added.
fn sum_pairs(pairs: &[f64]) -> [f64; 2] {
    [0, 1].map(|k| pairs.iter().skip(k).step_by(2).sum())
}

/// Products with rows in several bands.
mod bands;

/// Several iterations in one launch.
mod resident;

mod bodies {
    pub(super) use super::resident::{refused_iterations, resident_iterations};
    use super::*;

    pub(super) fn dot_product<T: Real, A: Real>(t: &Bench<T, A>) {
        for &n in SIZES {
            let (x, y) = (ints(n, 1), ints(n, 2));
            let grid = t.grid(n);
            let (dx, dy) = (t.up(&x), t.up(&y));
            let mut partials = t.partials(grid.groups + 2);
            t.kernels.dot.dot_partial(&t.ctx, grid, n as u32, &dx, &dy, &mut partials, (1, 1)).unwrap();
            let sums = t.down(&partials);
            let what = format!("n = {n}, {:?}", t.kernels.tuning);
            assert_eq!((sums[0], sums[grid.groups + 1]), (99.0, 99.0), "outside the range asked for");
            assert_eq!(sums[1..=grid.groups].iter().sum::<f64>(), dot(&x, &y), "{what}");

            let mut pairs = t.partials(2 * grid.groups);
            t.kernels.dot.dot_partial(&t.ctx, grid, n as u32, &dx, &dy, &mut pairs, (1, 2)).unwrap();
            assert_eq!(sum_pairs(&t.down(&pairs)), [99.0 * grid.groups as f64, dot(&x, &y)], "{what}");
        }
    }

    pub(super) fn updates<T: Real, A: Real>(t: &Bench<T, A>) {
        for &n in SIZES {
            let (x, y, d) = (ints(n, 1), ints(n, 2), ints(n, 3));
            let expect = |f: fn(f64, f64) -> f64| x.iter().zip(&y).map(|(&x, &y)| f(x, y)).collect::<Vec<_>>();
            let (grid, count, update) = (t.grid(n), n as u32, &t.kernels.update);
            let (dx, three) = (t.up(&x), T::from_f64(3.0));

            let mut v = t.up(&y);
            update.next_iterate(&t.ctx, grid, count, three, &dx, &mut v).unwrap();
            assert_eq!(t.down(&v), expect(|x, y| y + 3.0 * x));

            let mut v = t.up(&y);
            update.next_residual(&t.ctx, grid, count, three, &dx, &mut v).unwrap();
            assert_eq!(t.down(&v), expect(|x, y| y - 3.0 * x));

            let mut v = t.up(&y);
            update.next_direction(&t.ctx, grid, count, three, &dx, &mut v).unwrap();
            assert_eq!(t.down(&v), expect(|x, y| x + 3.0 * y));

            let mut v = t.up(&y);
            update.scale_diagonal(&t.ctx, grid, count, &t.up(&d), &dx, &mut v).unwrap();
            assert_eq!(t.down(&v), d.iter().zip(&x).map(|(d, x)| d * x).collect::<Vec<_>>());
        }
    }

    pub(super) fn conversions<T: Real, A: Real>(t: &Bench<T, A>) {
        let wide = |v: &[f64]| -> DeviceVec<A> {
            let guarded: Vec<A> = v.iter().chain(&[CANARY; 4]).map(|&v| A::from_f64(v)).collect();
            DeviceVec::from_slice(&t.ctx, &guarded, "a wide test vector").unwrap()
        };
        for &n in SIZES {
            let (grid, count, convert) = (t.grid(n), n as u32, &t.kernels.convert);
            // thirds need all the digits that there are
            let x: Vec<f64> = ints(n, 1).iter().map(|v| A::from_f64(v / 3.0).to_f64()).collect();
            let mut narrowed = t.up(&vec![9.0; n]);
            convert.narrow(&t.ctx, grid, count, &wide(&x), &mut narrowed).unwrap();
            assert_eq!(t.down(&narrowed), x.iter().map(|&v| T::from_f64(v).to_f64()).collect::<Vec<_>>(), "n = {n}");

            let d = ints(n, 2);
            let (mut on_device, mut sum) = (t.up(&d), wide(&x));
            convert.add_wide(&t.ctx, grid, count, &mut on_device, &mut sum).unwrap();
            let expected: Vec<f64> =
                x.iter().zip(&d).map(|(x, d)| (A::from_f64(*x) + A::from_f64(*d)).to_f64()).collect();
            assert_eq!((t.down(&sum), t.down(&on_device)), (expected, vec![0.0; n]), "n = {n}");
        }
    }

    pub(super) fn products<T: Real, A: Real>(t: &Bench<T, A>) {
        let csr = &t.kernels.csr;
        let done = DeviceVec::zeros(&t.ctx, 1, "the state").unwrap();
        for a in matrices() {
            let n = a.n_rows();
            let (x, b) = (ints(n, 4), ints(n, 5));
            let expected = a.mul_vec(&x);
            let a = Arc::new(a);
            let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
            let block = DeviceBlock::<T>::upload(&t.ctx, &t.kernels.tuning, &part, 1.0, Format::Csr).unwrap();
            let Layout::Csr(block, sets) = block.layout() else { panic!() };
            let what = format!("n = {n}, {:?}", t.kernels.tuning);
            // all row blocks at once, and in two launches
            let [BlockSet { band, last, .. }] = sets[0][..] else { panic!() };
            for cut in [0, last / 3] {
                let ranges = [(0, cut), (cut, last)].map(|(first, last)| BlockSet { band, first, last });
                let (dx, db) = (t.up(&x), t.up(&b));
                let (mut y, mut q, mut r) = (t.up(&ints(n, 6)), t.up(&ints(n, 6)), t.up(&ints(n, 6)));
                let grids = ranges.map(|set| t.kernels.tuning.launch("any").block_grid(set.len()));
                let groups: usize = grids.iter().map(|g| g.groups).sum();
                let mut partials = t.partials(2 * groups);
                let mut before = 0;
                for (range, grid) in ranges.into_iter().zip(grids) {
                    csr.spmv_csr(&t.ctx, grid, range, block, &dx, &mut y).unwrap();
                    csr.residual_csr(&t.ctx, grid, range, block, &dx, &db, &mut r).unwrap();
                    csr.spmv_dot_csr(&t.ctx, grid, range, block, &dx, &mut q, &mut partials, before, &done).unwrap();
                    before += grid.groups as u32;
                }
                assert_eq!(t.down(&y), expected, "spmv_csr, {what}");
                assert_eq!(t.down(&q), expected, "spmv_dot_csr, {what}");
                let residual: Vec<f64> = b.iter().zip(&expected).map(|(b, y)| b - y).collect();
                assert_eq!(t.down(&r), residual, "residual_csr, {what}");
                let dots = [dot(&x, &expected), dot(&expected, &expected)];
                assert_eq!(sum_pairs(&t.down(&partials)), dots, "x·y and y·y, {what}");
            }
        }
    }

    /// The matrix with another diagonal.
    fn with_diagonal(a: &crate::Csr, value: impl Fn(usize) -> f64) -> crate::Csr {
        let of_row = |i: usize| (a.row_ptr()[i]..a.row_ptr()[i + 1]).map(move |e| (i, e));
        let entry = |(i, e): (usize, usize)| if a.col_idx()[e] as usize == i { value(i) } else { a.values()[e] };
        let values = (0..a.n_rows()).flat_map(of_row).map(entry).collect();
        crate::Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
    }

    /// Rows of a few kinds, with values by kind and of their own: all at once, and around a gap.
    pub(super) fn stencil_products<T: Real, A: Real>(t: &Bench<T, A>) {
        let done = DeviceVec::zeros(&t.ctx, 1, "the state").unwrap();
        let (mut used, mut has_main) = ([0, 0], 0);
        let grids = [[1, 16], [40, 50], [8, 37], [33, 64]].map(|sides| gallery::poisson2d(sides).unwrap());
        // rows that are no part of the main kind, and rows of which it is no part
        let seldom = with_diagonal(&grids[1], |i| if i % 7 == 3 { 5.0 } else { 4.0 });
        let often = with_diagonal(&grids[1], |i| (i % 3) as f64);
        for a in matrices().into_iter().chain(grids).chain([seldom, often]) {
            let n = a.n_rows();
            let (x, b) = (ints(n, 4), ints(n, 5));
            let expected = a.mul_vec(&x);
            let residual: Vec<f64> = b.iter().zip(&expected).map(|(b, y)| b - y).collect();
            let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
            for (k, format) in [Format::Stencil, Format::Pattern].into_iter().enumerate() {
                let block = match DeviceBlock::<T>::upload(&t.ctx, &t.kernels.tuning, &part, 1.0, format) {
                    Ok(block) => block,
                    Err(Error::Usage(_)) => continue,
                    Err(other) => panic!("{other}"),
                };
                used[k] += 1;
                has_main += usize::from(block.main_len() > 0);
                assert_eq!(block.format(), format);
                let Layout::Stencil(block, sets) = block.layout() else { panic!() };
                assert_eq!((sets[0][0].count as usize, sets[0].len(), sets[1].len()), (n, 1, 0));
                let stencil = t.kernels.stencil(&t.ctx, block.main_len).unwrap();
                for interior in [0..n, 0..0, n / 3..n / 2, n / 5..n, 0..n / 2] {
                    let sets = RowSet::around(0, &(0..n as u32), &(interior.start as u32..interior.end as u32));
                    let what = format!("{format}, n = {n}, {interior:?}, {:?}", t.kernels.tuning);
                    let (dx, db) = (t.up(&x), t.up(&b));
                    let (mut y, mut q, mut r) = (t.up(&ints(n, 6)), t.up(&ints(n, 6)), t.up(&ints(n, 6)));
                    let grids = sets.map(|set| t.grid(set.count as usize));
                    let mut partials = t.partials(2 * grids.iter().map(|grid| grid.groups).sum::<usize>());
                    let mut before = 0;
                    for (set, grid) in sets.into_iter().zip(grids) {
                        stencil.spmv(&t.ctx, grid, set, block, &dx, &mut y).unwrap();
                        stencil.residual(&t.ctx, grid, set, block, &dx, &db, &mut r).unwrap();
                        stencil.spmv_dot(&t.ctx, grid, set, block, &dx, &mut q, &mut partials, before, &done).unwrap();
                        before += grid.groups as u32;
                    }
                    assert_eq!(t.down(&y), expected, "y, {what}");
                    assert_eq!(t.down(&q), expected, "q, {what}");
                    assert_eq!(t.down(&r), residual, "r, {what}");
                    let dots = [dot(&x, &expected), dot(&expected, &expected)];
                    assert_eq!(sum_pairs(&t.down(&partials)), dots, "x·y and y·y, {what}");
                }
                let set = DeviceVec::from_slice(&t.ctx, &[1], "the state").unwrap();
                let (mut q, mut partials) = (t.up(&ints(n, 6)), t.partials(2));
                let grid = Grid { groups: 1, ..t.grid(n) };
                stencil.spmv_dot(&t.ctx, grid, sets[0][0], block, &t.up(&x), &mut q, &mut partials, 0, &set).unwrap();
                assert_eq!((t.down(&q), t.down(&partials)), (ints(n, 6), vec![0.0; 2]), "after the end");
            }
        }
        assert!(used[0] >= 4 && used[1] >= 6, "{used:?}");
        assert_eq!(has_main > 0, t.kernels.tuning.launch("spmv_dot_stencil").group_size > 1);
    }

    /// Rows in slices: both sets as they are, and cut in two.
    pub(super) fn sell_products<T: Real, A: Real>(t: &Bench<T, A>) {
        let (go, stop) = ([0, 1]).map(|v| DeviceVec::from_slice(&t.ctx, &[v], "the state").unwrap()).into();
        let sell = t.kernels.sell(&t.ctx).unwrap();
        // a simulator takes its time
        let most = if t.ctx.info().platform == "Oclgrind" { 5_500 } else { usize::MAX };
        for (case, a) in sliced_matrices().into_iter().enumerate().filter(|(_, a)| a.nnz() <= most) {
            let (n, n_cols) = (a.n_rows(), a.n_cols());
            let (x, b) = (ints(n_cols, 4), ints(n, 5));
            let expected = a.mul_vec(&x);
            let residual: Vec<f64> = b.iter().zip(&expected).map(|(b, y)| b - y).collect();
            let part = whole(&a);
            let block = DeviceBlock::<T>::upload(&t.ctx, &t.kernels.tuning, &part, 1.0, Format::Sell).unwrap();
            let Layout::Sell(block, sets) = block.layout() else { panic!() };
            let cut = |set: SliceSet| {
                let (blocked, single) = (set.blocked / 2, set.single / 3);
                let first = SliceSet { blocked, single: 0, ..set };
                let second = SliceSet { first: set.first + blocked, blocked: set.blocked - blocked, single, ..set };
                let behind = set.first + set.blocked + single;
                [first, second, SliceSet { first: behind, blocked: 0, single: set.single - single, ..set }]
            };
            let sets = sets.concat();
            for sets in [sets.clone(), sets.iter().flat_map(|&set| cut(set)).collect()] {
                let what = format!("matrix {case}, {sets:?}, {:?}", t.kernels.tuning);
                let (dx, db) = (t.up(&x), t.up(&b));
                let (mut y, mut q, mut r) = (t.up(&ints(n, 6)), t.up(&ints(n, 6)), t.up(&ints(n, 6)));
                let long = t.grid(block.long_items(t.kernels.tuning.launch("any").group_size));
                let grids: Vec<Grid> = sets.iter().map(|&set| t.grid(block.rows(set))).collect();
                let groups = grids.iter().map(|grid| grid.groups).sum::<usize>();
                let mut partials = t.partials(2 * (groups + long.groups));
                for (&set, &grid) in sets.iter().zip(&grids) {
                    sell.spmv(&t.ctx, grid, set, block, &dx, &mut y).unwrap();
                }
                sell.spmv_parts(&t.ctx, long, block, &dx, &mut y).unwrap();
                for (&set, &grid) in sets.iter().zip(&grids) {
                    sell.residual(&t.ctx, grid, set, block, &dx, &db, &mut r).unwrap();
                }
                sell.residual_parts(&t.ctx, long, block, &dx, &db, &mut r).unwrap();
                let mut before = 0;
                for (&set, &grid) in sets.iter().zip(&grids) {
                    sell.spmv_dot(&t.ctx, grid, set, block, &dx, &mut q, &mut partials, before, &go).unwrap();
                    before += grid.groups as u32;
                }
                sell.spmv_dot_parts(&t.ctx, long, block, &dx, &mut q, &mut partials, before, &go).unwrap();
                assert_eq!(t.down(&y), expected, "y, {what}");
                assert_eq!(t.down(&q), expected, "q, {what}");
                assert_eq!(t.down(&r), residual, "r, {what}");
                let [xy, yy] = sum_pairs(&t.down(&partials));
                let squares = dot(&expected, &expected);
                // too large to be exact in single precision
                let slack = if size_of::<A>() == 8 { 0.0 } else { 1e-6 * squares };
                assert!(xy == dot(&x[..n], &expected) && (yy - squares).abs() <= slack, "x·y, y·y: {xy}, {yy}, {what}");
            }
            let (mut q, mut partials) = (t.up(&ints(n, 6)), t.partials(4));
            let grid = Grid { groups: 1, ..t.grid(n) };
            sell.spmv_dot(&t.ctx, grid, sets[0], block, &t.up(&x), &mut q, &mut partials, 0, &stop).unwrap();
            sell.spmv_dot_parts(&t.ctx, grid, block, &t.up(&x), &mut q, &mut partials, 1, &stop).unwrap();
            assert_eq!((t.down(&q), t.down(&partials)), (ints(n, 6), vec![0.0; 4]), "after the end");
        }
    }

    /// A step with alpha = 6 / 3, and beta = 2 · 6 / 3 − 1 or, from 2 · 1 / 3 − 1 < 0, 0: scalars from partial sums, rho from
    /// the host, all from there.
    pub(super) fn steps<T: Real, A: Real>(t: &Bench<T, A>) {
        for &n in SIZES {
            let (x, r, p, q, w) = (ints(n, 1), ints(n, 2), ints(n, 3), ints(n, 4), ints(n, 5));
            let grid = t.grid(n);
            let groups = grid.groups;
            for (k, qq) in [6.0, 1.0, 6.0, 6.0, 6.0, 1.0].into_iter().enumerate() {
                let (weighted, rho_is_known, are_given) = (k % 2 == 0, k == 2 || k == 3, k > 3);
                let count = |is_known| if is_known { 0 } else { groups as u32 };
                let (dots, rho) = (t.pairs(groups, [3.0, qq]), t.pairs(groups, [6.0, 5.0]));
                let dots = SumArg { partials: &dots, count: count(false), value: f64::NAN };
                let rho = SumArg { partials: &rho, count: count(rho_is_known), value: 6.0 };
                let (mut dx, mut dr, mut dp, dq, dw) = (t.up(&x), t.up(&r), t.up(&p), t.up(&q), t.up(&w));
                let (mut sums, log) = (t.partials(2 * groups), t.log());
                let v = StepVectors { x: &mut dx, r: &mut dr, p: &mut dp, q: &dq, w: weighted.then_some(&dw) };
                let cg = &t.kernels.cg;
                if are_given {
                    let scalars = cg_scalars([3.0, qq], 6.0).unwrap();
                    cg.cg_step_given(&t.ctx, grid, n as u32, v, scalars, &mut sums).unwrap();
                } else {
                    cg.cg_step(&t.ctx, grid, n as u32, v, &dots, &rho, 4.0, &mut sums, &log, 1, [1, 0]).unwrap();
                }

                let what = format!("n = {n}, {k}, {:?}", t.kernels.tuning);
                let zip = |a: &[f64], b: &[f64], f: fn(f64, f64) -> f64| {
                    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect::<Vec<_>>()
                };
                let r_next = zip(&r, &q, |r, q| r - 2.0 * q);
                let p_next = if qq == 6.0 { zip(&r_next, &p, |r, p| r + 3.0 * p) } else { r_next.clone() };
                assert_eq!(t.down(&dx), zip(&x, &p, |x, p| x + 2.0 * p), "x, {what}");
                assert_eq!(t.down(&dr), r_next, "r, {what}");
                assert_eq!(t.down(&dp), p_next, "p, {what}");
                let squares = zip(&r_next, &r_next, |a, b| a * b);
                let rr = if weighted { dot(&w, &squares) } else { squares.iter().sum() };
                assert_eq!(sum_pairs(&t.down(&sums)), [squares.iter().sum(), rr], "r·r, {what}");
                let [rho, rr] = if rho_is_known { [0.0; 2] } else { [6.0, 5.0] };
                let log_of_step = if are_given { vec![0.0; 6] } else { vec![0.0, rho, rr, 3.0, 0.0, 0.0] };
                assert_eq!(t.logged(&log), ([0; 2], log_of_step), "log, {what}");
            }
        }
    }

    /// At the limit, at a curvature that is not positive and after the end, x, r and p stay as they are.
    pub(super) fn frozen_iterations<T: Real, A: Real>(t: &Bench<T, A>) {
        let n = 1000;
        let (x, r, p, q) = (ints(n, 1), ints(n, 2), ints(n, 3), ints(n, 4));
        let grid = t.grid(n);
        let groups = grid.groups;
        for (curvature, [rho, rr]) in [
            (-3.0, [6.0, 6.0]),
            (0.0, [6.0, 6.0]),
            (f64::NAN, [6.0, 6.0]),
            (f64::INFINITY, [6.0, 6.0]),
            (3.0, [6.0, 4.0]),
            (3.0, [6.0, f64::INFINITY]),
            (3.0, [0.0, 6.0]),
        ] {
            let (mut dx, mut dr, mut dp, dq) = (t.up(&x), t.up(&r), t.up(&p), t.up(&q));
            let log = t.log();
            let mut step = |curvature, sums: [f64; 2], iteration: u64| {
                let (dots, rho) = (t.pairs(groups, [curvature, 6.0]), t.pairs(groups, sums));
                let sum = |partials| SumArg { partials, count: groups as u32, value: 0.0 };
                let (dots, rho, mut next) = (sum(&dots), sum(&rho), t.partials(2 * groups));
                let slots = [iteration % 2, (iteration + 1) % 2].map(|slot| slot as u32);
                let v = StepVectors { x: &mut dx, r: &mut dr, p: &mut dp, q: &dq, w: None };
                let cg = &t.kernels.cg;
                cg.cg_step(&t.ctx, grid, n as u32, v, &dots, &rho, 4.0, &mut next, &log, iteration, slots).unwrap();
                assert_eq!(t.down(&next), vec![0.0; 2 * groups]);
            };
            step(curvature, [rho, rr], 1);
            let (states, entries) = t.logged(&log);
            let met = rr != 6.0 || rho != 6.0;
            assert_eq!((states, &entries[..3]), ([1, 0], &[0.0, rho, rr][..]));
            assert!(if met { entries[3] == 0.0 } else { entries[3].total_cmp(&curvature).is_eq() }, "{entries:?}");

            // a further iteration changes nothing, and leaves the log alone
            step(3.0, [6.0, 6.0], 2);
            assert_eq!(t.logged(&log).0, [1, 1]);
            assert_eq!(t.logged(&log).1[..3], entries[..3]);
            assert_eq!((t.down(&dx), t.down(&dr), t.down(&dp)), (x.clone(), r.clone(), p.clone()));
        }
    }

    /// α = 2 and β = 3.
    pub(super) fn step_on_a_halo<T: Real, A: Real>(t: &Bench<T, A>) {
        for &n in SIZES {
            for begin in [0, n / 3, n] {
                let [r, p, q] = [1, 2, 3].map(|salt| ints(n, salt));
                let (mut dr, mut dp, dq) = (t.up(&r), t.up(&p), t.up(&q));
                let (range, grid) = (begin as u32..n as u32, t.grid(n - begin));
                let scalars = cg_scalars([3.0, 6.0], 6.0).unwrap();
                t.kernels.cg.cg_halo(&t.ctx, grid, range, [&mut dr, &mut dp], &dq, scalars).unwrap();
                let (mut r, mut p) = (r.clone(), p.clone());
                for i in begin..n {
                    r[i] -= 2.0 * q[i];
                    p[i] = r[i] + 3.0 * p[i];
                }
                assert_eq!((t.down(&dr), t.down(&dp)), (r, p), "{begin} of {n}");
            }
        }
    }

    pub(super) fn pack_and_copy<T: Real, A: Real>(t: &Bench<T, A>) {
        for &n in SIZES {
            let x = ints(n, 1);
            let indices: Vec<u32> = (0..n as u32).rev().step_by(3).collect();
            let send = DeviceVec::from_slice(&t.ctx, &indices, "indices").unwrap();
            let mut out = t.up(&vec![0.0; indices.len()]);
            t.kernels.halo.halo_pack(&t.ctx, t.grid(indices.len()), &send, &t.up(&x), &mut out).unwrap();
            assert_eq!(t.down(&out), indices.iter().map(|&i| x[i as usize]).collect::<Vec<_>>());

            let mut y = t.up(&vec![0.0; n]);
            t.kernels.stream.stream_copy(&t.ctx, t.grid(n), n as u32, &t.up(&x), &mut y).unwrap();
            assert_eq!(t.down(&y), x);
        }
    }
}

/// Fractions, whose sums are rounded: with another order of the operations, bits would differ.
#[test]
fn unrolling_changes_no_bit() {
    let device = list().devices.remove(0);
    let ctx = Context::open(&device).unwrap();
    let n = 5003;
    let fractions =
        |salt: usize| -> Vec<f64> { (0..n).map(|i| 1.0 / ((i * 31 + salt * 17) % 97 + 3) as f64).collect() };
    let a = matrices().remove(4);
    let bits = |unroll: usize| {
        let tuning = Tuning::uniform(64, 256, 5).unrolled(unroll);
        let kernels = Kernels::<f64, f64>::build(&ctx, tuning).unwrap();
        let up = |v: &[f64]| DeviceVec::from_slice(&ctx, v, "a test vector").unwrap();
        let (x, mut y, mut sums) = (up(&fractions(1)), up(&fractions(2)), up(&[0.0; 5]));
        let grid = kernels.tuning.grid("any", n);
        kernels.dot.dot_partial(&ctx, grid, count(n), &x, &y, &mut sums, (0, 1)).unwrap();
        kernels.update.next_iterate(&ctx, grid, count(n), 0.3, &x, &mut y).unwrap();
        let parts = split(&a, std::slice::from_ref(&(0..a.n_rows())));
        let matrix = DeviceBlock::<f64>::upload(&ctx, &kernels.tuning, &parts[0], 1.0, Format::Csr).unwrap();
        let Layout::Csr(block, sets) = matrix.layout() else { panic!() };
        let mut product = up(&vec![0.0; a.n_rows()]);
        let all = sets[0][0];
        kernels.csr.spmv_csr(&ctx, Grid { groups: 3, group_size: 64 }, all, block, &x, &mut product).unwrap();
        let mut all = Vec::new();
        for vector in [&y, &sums, &product] {
            let mut values = vec![0.0; vector.len()];
            vector.read(&ctx, 0, &mut values).unwrap();
            all.extend(values.into_iter().map(f64::to_bits));
        }
        all
    };
    let plain = bits(1);
    assert!(plain == bits(2) && plain == bits(4));
}

/// Rounded values: rows are summed in the order of their columns, whatever their format.
#[test]
fn formats_give_the_same_bits() {
    let device = list().devices.remove(0);
    let ctx = Context::open(&device).unwrap();
    let a = gallery::poisson2d([50, 60]).unwrap();
    let values = a.values().iter().map(|v| v / 3.0).collect();
    let a = Matrix::new(3000, 3000, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
    let part = split(&a, std::slice::from_ref(&(0..3000))).remove(0);
    let x: Vec<f64> = (0..3000).map(|i| 1.0 / (i * 31 % 97 + 3) as f64).collect();
    let x = DeviceVec::from_slice(&ctx, &x, "x").unwrap();
    for tuning in [Tuning::uniform(1, 1, 3), Tuning::uniform(64, 512, 5)] {
        let kernels = Kernels::<f64, f64>::build(&ctx, tuning).unwrap();
        let bits = [Format::Csr, Format::Sell, Format::Pattern, Format::Stencil].map(|format| {
            let block = DeviceBlock::<f64>::upload(&ctx, &kernels.tuning, &part, 1.0, format).unwrap();
            let mut y = DeviceVec::<f64>::zeros(&ctx, 3000, "y").unwrap();
            match block.layout() {
                Layout::Csr(block, sets) => {
                    let grid = kernels.tuning.launch("spmv_csr").block_grid(sets[0][0].len());
                    kernels.csr.spmv_csr(&ctx, grid, sets[0][0], block, &x, &mut y).unwrap();
                }
                Layout::Stencil(block, sets) => {
                    let stencil = kernels.stencil(&ctx, block.main_len).unwrap();
                    stencil.spmv(&ctx, kernels.tuning.grid("any", 3000), sets[0][0], block, &x, &mut y).unwrap();
                }
                Layout::Sell(block, sets) => {
                    kernels
                        .sell(&ctx)
                        .unwrap()
                        .spmv(&ctx, kernels.tuning.grid("any", 3000), sets[0][0], block, &x, &mut y)
                        .unwrap();
                }
            }
            let mut back = vec![0.0; 3000];
            y.read(&ctx, 0, &mut back).unwrap();
            back.into_iter().map(f64::to_bits).collect::<Vec<_>>()
        });
        assert!(bits.iter().all(|of_format| *of_format == bits[0]));
    }
}

/// Rows of all lengths, with blocks and without: what the host sums one entry after the other.
#[test]
fn slices_keep_the_order_of_columns() {
    let device = list().devices.remove(0);
    let ctx = Context::open(&device).unwrap();
    for tuning in [Tuning::uniform(1, 1, 3), Tuning::uniform(64, 512, 5)] {
        let kernels = Kernels::<f64, f64>::build(&ctx, tuning).unwrap();
        for a in [blocks(1, 700, 0), blocks(2, 333, 9), blocks(3, 333, 0), blocks(4, 200, 0)] {
            let n = a.n_rows();
            let values: Vec<f64> = a.values().iter().enumerate().map(|(k, v)| v / (k % 7 + 3) as f64).collect();
            let a = Matrix::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
            let x: Vec<f64> = (0..n).map(|i| 1.0 / (i * 31 % 97 + 3) as f64).collect();
            // a power of two rounds nothing
            for factor in [1.0, 0.125] {
                let expected: Vec<u64> = (0..n)
                    .map(|i| {
                        let mut sum = 0.0;
                        for e in a.row_ptr()[i]..a.row_ptr()[i + 1] {
                            sum += factor * a.values()[e] * x[a.col_idx()[e] as usize];
                        }
                        sum.to_bits()
                    })
                    .collect();
                let part = whole(&a);
                let block = DeviceBlock::<f64>::upload(&ctx, &kernels.tuning, &part, factor, Format::Sell).unwrap();
                let Layout::Sell(block, sets) = block.layout() else { panic!() };
                assert_eq!(block.long_count(), 0);
                let x = DeviceVec::from_slice(&ctx, &x, "x").unwrap();
                let mut y = DeviceVec::<f64>::zeros(&ctx, n, "y").unwrap();
                kernels
                    .sell(&ctx)
                    .unwrap()
                    .spmv(&ctx, kernels.tuning.grid("any", n), sets[0][0], block, &x, &mut y)
                    .unwrap();
                let mut back = vec![0.0; n];
                y.read(&ctx, 0, &mut back).unwrap();
                assert!(back.into_iter().map(f64::to_bits).eq(expected));
            }
        }
    }
}

#[test]
fn every_kernel_in_the_sources_is_in_the_table() {
    for (file, source, kernels) in FAMILIES {
        for kernel in *kernels {
            let declared = source.contains(&format!("{kernel}(")) || source.contains(&format!("({kernel},"));
            assert!(declared, "{file} has no kernel {kernel}");
        }
        let declared = source.matches("KERNEL void ").count() + source.matches("\nCG_").count();
        let macros = source.matches("KERNEL void NAME").count();
        assert_eq!(declared - macros, kernels.len(), "{file} has kernels that the table lacks");
    }
}
