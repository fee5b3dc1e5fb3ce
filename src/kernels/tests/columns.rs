//! Products with vectors of several columns, in the blocks of one rank and of several, against a plain loop for each column.

use super::segments::{ranks, upload};
use super::*;

/// A vector of these columns: element (row, c) is number `row * columns + c`.
fn side_by_side(columns: &[Vec<f64>]) -> Vec<f64> {
    (0..columns[0].len()).flat_map(|row| columns.iter().map(move |column| column[row])).collect()
}

/// So many columns that differ from each other.
fn columns_of(n: usize, salt: usize, columns: usize) -> Vec<Vec<f64>> {
    (0..columns).map(|c| ints(n, salt + 17 * c)).collect()
}

/// What all launches on a block leave: A x, b − A x, A x once more, and with it x·y and y·y of each column.
fn products<T: Real, A: Real>(
    t: &Bench<T, A>,
    block: &DeviceBlock<T>,
    which: &[Which],
    [x, b]: [&[Vec<f64>]; 2],
    is_done: bool,
) -> ([Vec<f64>; 3], Vec<f64>) {
    let (columns, len) = (x.len(), b.len() * b[0].len());
    let (dx, db) = (t.up(&side_by_side(x)), t.up(&side_by_side(b)));
    let [mut y, mut r, mut q] = [1, 2, 3].map(|salt| t.up(&ints(len, salt)));
    let done = DeviceVec::from_slice(&t.ctx, &[i32::from(is_done)], "the state").unwrap();
    let partials = t.partials(2 * columns * block.launch_count() * t.kernels.tuning.max_groups());
    let mut before = 0;
    for rows in which.iter().flat_map(|&which| block.launches(which)) {
        let product = |product| t.kernels.product(&t.ctx, rows, columns, &dx, &product, None).unwrap() as u32;
        product(Product::Store(&mut y));
        product(Product::Residual { b: &db, r: &mut r });
        let (partials, done, first) = (&partials, &done, before);
        before += product(Product::Dots { y: &mut q, partials, first, done, sending: None });
    }
    let sums = t.down(&partials);
    let (left, untouched) = sums.split_at(2 * columns * before as usize);
    assert!(untouched.iter().all(|&v| v == 99.0), "more partial sums than there were groups");
    let mut dots = vec![0.0; 2 * columns];
    left.chunks(2 * columns).for_each(|group| group.iter().zip(&mut dots).for_each(|(part, sum)| *sum += part));
    ([y, r, q].map(|v| t.down(&v)), dots)
}

/// Products of a block whose part has these elements of x, halo included, with those of its own rows of b and A x.
fn check_block<T: Real, A: Real>(t: &Bench<T, A>, block: &DeviceBlock<T>, [x, b, ax]: [&[Vec<f64>]; 3], what: &str) {
    let n = b[0].len();
    let expected = side_by_side(ax);
    let residual: Vec<f64> = side_by_side(b).iter().zip(&expected).map(|(b, y)| b - y).collect();
    for which in [&[Which::Interior, Which::Boundary][..], &[Which::All]] {
        let ([y, r, q], dots) = products(t, block, which, [x, b], false);
        assert!(y == expected && q == expected && r == residual, "{what}");
        let (xy, yy) = dots.split_at(x.len());
        for (c, (x, y)) in x.iter().zip(ax).enumerate() {
            for (sum, x) in [(xy[c], &x[..n]), (yy[c], y)] {
                // too large to be exact in single precision
                let size: f64 = x.iter().zip(y).map(|(x, y)| (x * y).abs()).sum();
                let slack = if size_of::<A>() == 8 { 0.0 } else { 1e-6 * size };
                assert!((sum - dot(x, y)).abs() <= slack, "sums of column {c}: {sum}, {}, {what}", dot(x, y));
            }
        }
    }
    let ([_, _, q], dots) = products(t, block, &[Which::All], [x, b], true);
    assert!(q == ints(q.len(), 3) && dots.iter().all(|&sum| sum == 0.0), "after the end, {what}");
}

/// Products of so many columns with all matrices in the blocks of one rank and of three, one of which has no rows, in one segment and in
/// several. What has more columns than rows has a halo.
fn check<T: Real, A: Real>(format: Format, matrices: &[Matrix], columns: usize, of_gpu: &Tuning) {
    for mut t in benches_of::<T, A>(&[Tuning::uniform(1, 1, 3), of_gpu.clone()]) {
        // a simulator takes its time
        let is_simulated = t.ctx.info().platform == "Oclgrind";
        if is_simulated && size_of::<T>() < 8 {
            return;
        }
        let most = if is_simulated { 2_000 } else { usize::MAX };
        let mut count = 0;
        for (case, a) in matrices.iter().enumerate().filter(|(_, a)| a.nnz() <= most) {
            let n = a.n_rows();
            let parts = match n == a.n_cols() {
                true => [1, 3].into_iter().flat_map(|count| split(a, &ranks(n, count))).collect(),
                false => vec![whole(a)],
            };
            for (part, &wanted) in parts.iter().flat_map(|part| [1, 3].iter().map(move |wanted| (part, wanted))) {
                let Some(block) = upload(&mut t, part, format, wanted) else { continue };
                let [x, b] = [(a.n_cols(), 4), (n, 5)].map(|(len, salt)| columns_of(len, salt, columns));
                let own = |v: &[Vec<f64>]| v.iter().map(|v| v[part.rows.clone()].to_vec()).collect::<Vec<_>>();
                let ax: Vec<_> = x.iter().map(|x| a.mul_vec(x)).collect();
                let needed: BTreeSet<usize> = match n == a.n_cols() {
                    true => a.col_idx()[a.row_ptr()[part.rows.start]..a.row_ptr()[part.rows.end]].to_vec(),
                    false => (0..a.n_cols() as u32).collect(),
                }
                .into_iter()
                .map(|j| j as usize)
                .filter(|j| !part.rows.contains(j))
                .collect();
                let mut known = own(&x);
                known.iter_mut().zip(&x).for_each(|(known, x)| known.extend(needed.iter().map(|&j| x[j])));
                let what = format!("matrix {case}, {columns} columns, rows {:?}, {wanted} segments", part.rows);
                let what = format!("{what}, {:?}", t.kernels.tuning);
                let block = block.of_columns(&t.ctx, columns).unwrap();
                check_block(&t, &block, [&known, &own(&b), &own(&ax)], &what);
                count += 1;
            }
        }
        assert!(count > 3, "{format}: {count}");
    }
}

fn check_all(format: Format, matrices: &[Matrix]) {
    let usual = Tuning::uniform(64, 128, 5);
    let several_items = Tuning::uniform(64, 512, 2).sharing(8);
    let large = Tuning::uniform(256, 512, 2);
    // fewer work-items than would take a row in parts of 16 bytes
    let small = Tuning::uniform(2, 64, 3);
    // each number of columns, and of columns that a work-item takes, which are as many as the precision lets it have
    check::<f64, f64>(format, matrices, 2, &large);
    check::<f32, f32>(format, matrices, 4, &several_items);
    check::<f64, f64>(format, matrices, 8, &several_items);
    check::<f32, f32>(format, matrices, 16, &small);
    check::<f32, f64>(format, matrices, 4, &usual);
}

#[test]
fn csr_products() {
    check_all(Format::Csr, &matrices());
}

#[test]
fn dictionary_products() {
    let mut all: Vec<Matrix> = [[1, 16], [8, 37], [33, 64]].map(|sides| gallery::poisson2d(sides).unwrap()).into();
    all.push(gallery::poisson3d27([9, 8, 7]).unwrap());
    // rows that are no part of the main pattern, and rows of which it is no part
    all.push(bodies::with_diagonal(&all[1], |i| if i % 7 == 3 { 5.0 } else { 4.0 }));
    all.push(bodies::with_diagonal(&all[1], |i| (i % 3) as f64));
    check_all(Format::Dictionary, &all);
    check_all(Format::Pattern, &all);
}

#[test]
fn sell_products() {
    let mut all = matrices();
    all.extend([2, 3, 4].map(|block| blocks(block, 33, 0)));
    all.extend([blocks(3, 100, 7), complex(130, 50, None), complex(200, 0, Some(3))]);
    all.extend(sliced_matrices().into_iter().rev().take(4));
    check_all(Format::Sell, &all);
}

/// Fractions, whose sums are rounded: each column comes out as it would alone, whatever the format. (As in
/// [`formats_give_the_same_bits`], one work-item sums a row.)
#[test]
fn columns_have_the_bits_of_single_products() {
    let device = list().devices.remove(0);
    let ctx = Context::open(&device).unwrap();
    for a in [gallery::poisson2d([50, 60]).unwrap(), gallery::poisson3d27([9, 10, 12]).unwrap()] {
        let n = a.n_rows();
        let values = a.values().iter().enumerate().map(|(k, v)| v / (3 + k % 2) as f64).collect();
        let a = Matrix::new(n, n, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
        let part = whole(&a);
        let x: Vec<Vec<f64>> =
            (0..4).map(|c| (0..n).map(|i| 1.0 / ((i + 5 * c) * 31 % 97 + 3) as f64).collect()).collect();
        for tuning in [Tuning::uniform(1, 1, 3), Tuning::uniform(64, 2048, 5)] {
            let kernels = Kernels::<f64, f64>::build(&ctx, tuning).unwrap();
            for format in [Format::Csr, Format::Sell, Format::Pattern] {
                let block = DeviceBlock::<f64>::upload(&ctx, &kernels.tuning, &part, 1.0, format).unwrap();
                let of = |x: &[Vec<f64>]| {
                    let dx = DeviceVec::from_slice(&ctx, &side_by_side(x), "x").unwrap();
                    let mut y = DeviceVec::<f64>::zeros(&ctx, n * x.len(), "y").unwrap();
                    for rows in block.launches(Which::All) {
                        rows.make_room(&ctx, x.len()).unwrap();
                        kernels.product(&ctx, rows, x.len(), &dx, &Product::Store(&mut y), None).unwrap();
                    }
                    let mut back = vec![0.0; y.len()];
                    y.read(&ctx, 0, &mut back).unwrap();
                    back.into_iter().map(f64::to_bits).collect::<Vec<_>>()
                };
                let together = of(&x);
                for (c, x) in x.iter().enumerate() {
                    let alone = of(std::slice::from_ref(x));
                    assert!(together.iter().skip(c).step_by(4).eq(&alone), "{format}, {:?}", kernels.tuning);
                }
            }
        }
    }
}
