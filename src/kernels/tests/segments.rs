//! Products with rows whose arrays are cut into segments, in the blocks of one rank and of several, against plain loops.

use std::collections::BTreeSet;
use std::ops::Range;

use super::*;

/// What all launches on a block leave: A x, b − A x, A x once more, and with it x·y and y·y.
fn products<T: Real, A: Real>(
    t: &Bench<T, A>,
    block: &DeviceBlock<T>,
    x: &[f64],
    b: &[f64],
) -> ([Vec<f64>; 3], [f64; 2]) {
    let (kernels, ctx) = (&t.kernels, &t.ctx);
    let (dx, db) = (t.up(x), t.up(b));
    let [mut y, mut r, mut q] = [1, 2, 3].map(|salt| t.up(&ints(b.len(), salt)));
    let done = DeviceVec::zeros(ctx, 1, "the state").unwrap();
    let room = 2 * block.launch_count() * kernels.tuning.max_groups();
    let partials = t.partials(room);
    let mut before = 0;
    for rows in block.launches(Which::Interior).chain(block.launches(Which::Boundary)) {
        t.product(rows, &dx, Product::Store(&mut y));
        t.product(rows, &dx, Product::Residual { b: &db, r: &mut r });
        before += t.product(
            rows,
            &dx,
            Product::Dots { y: &mut q, partials: &partials, first: before, done: &done, sending: None },
        );
    }
    let sums = t.down(&partials);
    let (left, untouched) = sums.split_at(2 * before as usize);
    assert!(untouched.iter().all(|&v| v == 99.0), "more partial sums than there were groups");
    ([y, r, q].map(|v| t.down(&v)), sum_pairs(left))
}

/// How many segments a part has in a format.
fn segments<T: Real, A: Real>(t: &Bench<T, A>, part: &Part<'_>, format: Format) -> usize {
    match format {
        Format::Csr => csr::block::<T>(&t.ctx, part, 1.0).unwrap().segments.len(),
        Format::Sell => Sell::<T>::plan(part, 1.0).block(&t.ctx).unwrap().0.segments.len(),
        _ => {
            let dictionary = Dictionary::by_columns(part).unwrap();
            let by_dictionary = ByDictionary::new(part, 1.0, dictionary, Shape::Cpu);
            by_dictionary.block::<T>(&t.ctx).unwrap().0.segments.len()
        }
    }
}

/// Cuts the rows of a part into about `wanted` segments, or fewer if they are too long; `None` if they do not fit the
/// format.
pub(super) fn upload<T: Real, A: Real>(
    t: &mut Bench<T, A>,
    part: &Part<'_>,
    format: Format,
    wanted: u64,
) -> Option<DeviceBlock<T>> {
    let of = |t: &Bench<T, A>| match DeviceBlock::<T>::upload(&t.ctx, &t.kernels.tuning, part, 1.0, format) {
        Ok(block) => Some(block),
        Err(Error::Usage(_)) => None,
        Err(other) => panic!("{other}"),
    };
    t.ctx.max_band_bytes = t.ctx.info().max_buffer_bytes;
    let whole = of(t)?;
    t.ctx.max_band_bytes = whole.memory() / wanted;
    if wanted == 1 { Some(whole) } else { of(t) }
}

/// Rows of so many ranks, one of which has none.
pub(super) fn ranks(n: usize, count: usize) -> Vec<Range<usize>> {
    let mut ends: Vec<usize> = (0..=count).map(|k| n * k / count).collect();
    if count > 2 {
        ends[2] = ends[1];
    }
    ends.windows(2).map(|ends| ends[0]..ends[1]).collect()
}

/// Products with all matrices, in the blocks of 1, 2, 3 and 5 ranks, in one segment and in several.
fn check<T: Real, A: Real>(format: Format, matrices: &[Matrix]) {
    let mut met = BTreeSet::new();
    let mut is_simulated = false;
    for mut t in benches::<T, A>() {
        // a simulator takes its time
        is_simulated = t.ctx.info().platform == "Oclgrind";
        if is_simulated && size_of::<T>() < 8 {
            return;
        }
        let ranks_of = if is_simulated { &[1, 3][..] } else { &[1, 2, 3, 5] };
        for (case, a) in matrices.iter().enumerate().filter(|(_, a)| !is_simulated || a.nnz() <= 2_000) {
            let (x, b) = (ints(a.n_cols(), 4), ints(a.n_rows(), 5));
            let (ax, n) = (a.mul_vec(&x), a.n_rows());
            for rank_rows in ranks_of.iter().map(|&count| ranks(n, count)) {
                for part in split(a, &rank_rows) {
                    let rows = part.rows.clone();
                    let own = a.row_ptr()[rows.start]..a.row_ptr()[rows.end];
                    let others: BTreeSet<u32> =
                        a.col_idx()[own].iter().copied().filter(|&j| !rows.contains(&(j as usize))).collect();
                    let x: Vec<f64> =
                        x[rows.clone()].iter().copied().chain(others.iter().map(|&j| x[j as usize])).collect();
                    let (b, expected) = (&b[rows.clone()], &ax[rows.clone()]);
                    let residual: Vec<f64> = b.iter().zip(expected).map(|(b, y)| b - y).collect();
                    for wanted in [1, 2, 3, 20] {
                        let Some(block) = upload(&mut t, &part, format, wanted) else { continue };
                        let count = segments(&t, &part, format);
                        met.insert(count.min(10));
                        let what = format!("matrix {case}, rows {rows:?}, {count} segments, {:?}", t.kernels.tuning);
                        assert!(wanted > 1 || count == 1, "{what}");
                        let ([y, r, q], [xy, yy]) = products(&t, &block, &x, b);
                        assert!(y == expected && q == expected && r == residual, "{what}");
                        let squares = dot(expected, expected);
                        // too large to be exact in single precision
                        let slack = if size_of::<A>() == 8 { 0.0 } else { 1e-6 * squares };
                        assert_eq!(xy, dot(&x[..rows.len()], expected), "x·y, {what}");
                        assert!((yy - squares).abs() <= slack, "y·y: {yy}, {squares}, {what}");
                    }
                }
            }
        }
    }
    let wanted = if is_simulated { &[1, 2][..] } else { &[1, 2, 3, 10] };
    assert!(wanted.iter().all(|count| met.contains(count)), "numbers of segments: {met:?}");
}

#[test]
fn csr_products() {
    check::<f64, f64>(Format::Csr, &matrices());
    check::<f32, f32>(Format::Csr, &matrices());
}

#[test]
fn pattern_products() {
    let mut all = matrices();
    all.extend([[40, 50], [33, 64]].map(|sides| gallery::poisson2d(sides).unwrap()));
    check::<f64, f64>(Format::Pattern, &all);
    check::<f32, f32>(Format::Pattern, &all);
}

#[test]
fn sell_products() {
    let mut all = matrices();
    all.extend([
        blocks(2, 100, 0),
        blocks(3, 33, 0),
        blocks(4, 100, 7),
        complex(130, 50, None),
        complex(200, 0, Some(3)),
    ]);
    check::<f64, f64>(Format::Sell, &all);
    check::<f32, f32>(Format::Sell, &all);
}
