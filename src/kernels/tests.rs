//! Every kernel, in both shapes and precisions, against plain loops on the host, at awkward sizes. The data are small integers, so
//! that every sum is exact and equality is of bits; buffers end in canaries that no kernel may touch.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::csr::{BlockSet, CsrRows};
use super::dictionary::{DictionaryRows, RowSet};
use super::products::{Product, Rows, Sending};
use super::sell::{LongRows, SellRows, SliceSet};
use super::*;
use crate::comm::live::sending::SentRows;
use crate::device::list;
use crate::error::Error;
use crate::matrix::{Csr as Matrix, gallery};
use crate::operator::by_dictionary::ByDictionary;
use crate::operator::device_rows::Which;
use crate::operator::dictionary::Dictionary;
use crate::operator::opencl::DeviceBlock;
use crate::operator::row_blocks::RowBlocks;
use crate::operator::sell::Sell;
use crate::operator::{Format, csr};
use crate::partition::{HaloPlan, Part, split};

const SIZES: &[usize] = &[0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 1000, 2049, 5003];
const CANARY: f64 = -77.0;

struct Bench<T, A> {
    ctx: Context,
    kernels: Kernels<T, A>,
}

/// Every combination of device and shape, with several launch parameters.
fn benches<T: Real, A: Real>() -> Vec<Bench<T, A>> {
    benches_of(&[
        Tuning::uniform(1, 1, 3),
        Tuning::uniform(64, 128, 5),
        Tuning::uniform(64, 512, 2).sharing(8),
        Tuning::uniform(256, 512, 2),
    ])
}

/// Every device with these launch parameters.
fn benches_of<T: Real, A: Real>(tunings: &[Tuning]) -> Vec<Bench<T, A>> {
    let devices = list().devices;
    assert!(!devices.is_empty(), "kernel tests need an OpenCL device (apt-get install pocl-opencl-icd)");
    let mut all = Vec::new();
    // oclgrind, PoCL and every GPU: one device of each platform
    let platforms: BTreeSet<&str> = devices.iter().map(|d| d.platform.as_str()).collect();
    for platform in platforms {
        let device = devices.iter().find(|d| d.platform == platform).unwrap();
        for tuning in tunings {
            let ctx = Context::open(device).unwrap();
            let kernels = Kernels::build(&ctx, tuning.clone()).unwrap();
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

    fn grid(&self, n: usize) -> Grid {
        self.kernels.tuning.grid("any", n)
    }

    /// Launches a product; tells on how many groups.
    fn product(&self, rows: Rows<'_, T>, x: &DeviceVec<T>, product: Product<'_, T, A>) -> u32 {
        self.kernels.product(&self.ctx, rows, 1, x, &product, None).unwrap() as u32
    }
}

/// Runs a test in every precision on every bench.
macro_rules! on_all {
    ($test:ident) => {
        on_all!(bodies::$test);
    };
    ($bodies:ident::$test:ident) => {
        mod $test {
            use super::{benches, $bodies as bodies};

            #[test]
            fn double() {
                benches::<f64, f64>().iter().for_each(bodies::$test);
            }

            #[test]
            fn double_sums() {
                benches::<f32, f64>().iter().for_each(bodies::$test);
            }

            #[test]
            fn single() {
                benches::<f32, f32>().iter().for_each(bodies::$test);
            }
        }
    };
}
on_all!(dot_product);
on_all!(updates);
on_all!(conversions);
on_all!(products);
on_all!(products_send);
on_all!(dictionary_products);
on_all!(sell_products);
on_all!(sell_products_send);
on_all!(pack_and_copy);
on_all!(basis::bases);

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

/// The real form of a complex matrix of rows of all lengths, and one row before it. One in `holes` rows has a block that is no
/// complex number, and if there is a `long` row, it has entries in all columns.
fn complex(rows: usize, holes: usize, long: Option<usize>) -> Matrix {
    let n = 2 * rows + 1;
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    let mut entry = |i: usize, j: usize, v: f64| {
        t.0.push(i as u32);
        t.1.push(j as u32);
        t.2.push(v);
    };
    entry(0, n - 1, 2.0);
    for i in 0..rows {
        let len = if long == Some(i) { rows } else { (1 + i % 5).min(rows) };
        for k in 0..len {
            let j = if long == Some(i) { k } else { (i * 7 + k) % rows };
            // slices whose values need one byte, two, and more
            let unit = match i % 64 {
                40 => 33.0,
                10 if i > 200 => 0.5,
                _ => 1.0,
            };
            let [r, m] = [(i * 5 + 3 * j) % 9, (i + 2 * j) % 7].map(|v| unit * (v as f64 - 4.0));
            let is_hole = holes > 0 && i % holes == 3 && k == 0;
            for (row, col, v) in [(0, 0, r), (0, 1, 0.0 - m), (1, 0, m), (1, 1, if is_hole { r + 1.0 } else { r })] {
                entry(1 + 2 * i + row, 1 + 2 * j + col, v);
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
    all.extend([1, 31, 33, 300].map(|rows| complex(rows, 0, None)));
    all.extend([complex(150, 70, None), complex(200, 0, Some(77))]);
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
        of: None,
    }
}

/// The components of pairs of partial sums, added.
fn sum_pairs(pairs: &[f64]) -> [f64; 2] {
    [0, 1].map(|k| pairs.iter().skip(k).step_by(2).sum())
}

/// Columns of a Krylov basis.
mod basis;

/// Products with rows in several segments.
mod segments;

/// Products with vectors of several columns.
mod columns;

/// Scans, compaction and sorting.
mod primitives;

/// Several iterations in one launch.
mod bodies;

/// What a multigrid cycle does beside products.
mod cycle;

/// Products of dense matrices.
mod gemm;

/// Blocks of dense matrices.
mod dense;

/// Their factorisation.
mod lu_panel;

/// Fractions, whose sums are rounded: with another order of the operations, bits would differ.
/// Rounded values: rows are summed in the order of their columns, whatever their format. (Row blocks have room for 64 rows of 27
/// entries: one work-item sums a row.)
#[test]
fn formats_give_the_same_bits() {
    let device = list().devices.remove(0);
    let ctx = Context::open(&device).unwrap();
    for a in [gallery::poisson2d([50, 60]).unwrap(), gallery::poisson3d27([13, 14, 15]).unwrap()] {
        let n = a.n_rows();
        let values = a.values().iter().map(|v| v / 3.0).collect();
        let a = Matrix::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
        let part = whole(&a);
        let x: Vec<f64> = (0..n).map(|i| 1.0 / (i * 31 % 97 + 3) as f64).collect();
        let x = DeviceVec::from_slice(&ctx, &x, "x").unwrap();
        for tuning in [Tuning::uniform(1, 1, 3), Tuning::uniform(64, 2048, 5)] {
            let kernels = Kernels::<f64, f64>::build(&ctx, tuning).unwrap();
            let bits = [Format::Csr, Format::Sell, Format::Pattern, Format::Dictionary].map(|format| {
                let block = DeviceBlock::<f64>::upload(&ctx, &kernels.tuning, &part, 1.0, format).unwrap();
                let mut y = DeviceVec::<f64>::zeros(&ctx, n, "y").unwrap();
                for rows in block.launches(Which::All) {
                    kernels.product(&ctx, rows, 1, &x, &Product::Store(&mut y), None).unwrap();
                }
                let mut back = vec![0.0; n];
                y.read(&ctx, 0, &mut back).unwrap();
                back.into_iter().map(f64::to_bits).collect::<Vec<_>>()
            });
            assert!(bits.iter().all(|of_format| *of_format == bits[0]));
        }
    }
}

/// Rows of all lengths, with blocks and without: what the host sums one entry after the other.
#[test]
fn slices_keep_the_order_of_columns() {
    let device = list().devices.remove(0);
    let ctx = Context::open(&device).unwrap();
    for tuning in [Tuning::uniform(1, 1, 3), Tuning::uniform(64, 512, 5)] {
        let kernels = Kernels::<f64, f64>::build(&ctx, tuning).unwrap();
        let fractions = |a: Matrix, of: fn(usize) -> f64| {
            let values: Vec<f64> = a.values().iter().enumerate().map(|(k, v)| v / of(k)).collect();
            Matrix::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
        };
        let real = [blocks(1, 700, 0), blocks(2, 333, 9), blocks(3, 333, 0), blocks(4, 200, 0)];
        let all = real.into_iter().map(|a| (fractions(a, |k| (k % 7 + 3) as f64), 0));
        // slices of complex numbers: all but the one of row 0, and all but those with a hole, too
        let complex = [(complex(300, 0, None), 10), (complex(300, 299, None), 9)];
        for (a, complex) in all.chain(complex.into_iter().map(|(a, slices)| (fractions(a, |_| 7.0), slices))) {
            let n = a.n_rows();
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
                let (block, sets) = Sell::<f64>::plan(&part, factor).block(&ctx).unwrap();
                assert_eq!(block.long_count(), 0);
                let mut words = vec![0; block.slices.len()];
                block.slices.read(&ctx, 0, &mut words).unwrap();
                assert_eq!(words.iter().skip(2).step_by(5).filter(|word| **word >> 24 & 64 != 0).count(), complex);
                let x = DeviceVec::from_slice(&ctx, &x, "x").unwrap();
                let mut y = DeviceVec::<f64>::zeros(&ctx, n, "y").unwrap();
                let rows = SellRows { block, set: sets[0][0] };
                kernels.product(&ctx, &rows, 1, &x, &Product::Store(&mut y), None).unwrap();
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
        let declared = source.matches("KERNEL void ").count();
        let macros = source.matches("KERNEL void NAME").count();
        assert_eq!(declared - macros, kernels.len(), "{file} has kernels that the table lacks");
    }
}

/// Some drivers, such as NVIDIA's, refuse macros with `...`, which OpenCL C has not.
#[test]
fn no_source_has_variadic_macros() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cl");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 20);
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let mut macros = source.lines().filter(|line| line.starts_with("#define"));
        assert!(!macros.any(|line| line.contains("...")), "{} has a macro of any arguments", file.display());
    }
}

/// In the grid of launches of several iterations, products leave the sums that they leave where that is the usual one.
#[test]
fn products_in_the_grid_of_several_iterations() {
    let device = list().devices.remove(0);
    let ctx = Context::open(&device).unwrap();
    let [usual, large] =
        [[256, 8], [persistent_group(&device), 3]].map(|[size, most]| Tuning::uniform(size, 2048, most));
    let grid = Grid { groups: 3, group_size: persistent_group(&device) };
    let a = gallery::poisson2d([50, 41]).unwrap();
    let (n, part) = (a.n_rows(), split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0));
    let x = DeviceVec::from_slice(&ctx, &gallery::random_vector(n, 1), "x").unwrap();
    let done = DeviceVec::from_slice(&ctx, &[0], "the state").unwrap();
    for format in [Format::Csr, Format::Dictionary, Format::Pattern, Format::Sell] {
        let block = DeviceBlock::<f64>::upload(&ctx, &usual, &part, 1.0, format).unwrap();
        let sums = |tuning: &Tuning, grid: Option<Grid>| {
            let kernels = Kernels::<f64, f64>::build(&ctx, tuning.clone()).unwrap();
            let (mut y, partials) =
                (DeviceVec::zeros(&ctx, n, "y").unwrap(), DeviceVec::zeros(&ctx, 16, "sums").unwrap());
            let rows = block.launches(Which::All).next().unwrap();
            let product = Product::Dots { y: &mut y, partials: &partials, first: 0, done: &done, sending: None };
            let groups = kernels.product(&ctx, rows, 1, &x, &product, grid).unwrap();
            let mut all = vec![0.0; 16];
            partials.read(&ctx, 0, &mut all).unwrap();
            (groups, all)
        };
        let as_several = sums(&usual, Some(grid));
        assert_eq!(as_several, sums(&large, None), "{format}");
        assert!(as_several.0 == 3 && sums(&usual, None).0 == 8, "{format}");
    }
}
