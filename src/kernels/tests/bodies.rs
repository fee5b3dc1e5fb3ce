//! The tests themselves, on a bench of any kind.

use super::*;

pub(super) fn dot_product<T: Real, A: Real>(t: &Bench<T, A>) {
    for &n in SIZES {
        let (x, y) = (ints(n, 1), ints(n, 2));
        let grid = t.grid(n);
        let (dx, dy) = (t.up(&x), t.up(&y));
        let partials = t.partials(grid.groups + 2);
        t.kernels.dot_partial(&t.ctx, grid, n as u32, &dx, &dy, &partials, 1).unwrap();
        let sums = t.down(&partials);
        let what = format!("n = {n}, {:?}", t.kernels.tuning);
        assert_eq!((sums[0], sums[grid.groups + 1]), (99.0, 99.0), "outside the range asked for, {what}");
        assert_eq!(sums[1..=grid.groups].iter().sum::<f64>(), dot(&x, &y), "{what}");
    }
}

pub(super) fn updates<T: Real, A: Real>(t: &Bench<T, A>) {
    for &n in SIZES {
        let (x, y, d) = (ints(n, 1), ints(n, 2), ints(n, 3));
        let expect = |f: fn(f64, f64) -> f64| x.iter().zip(&y).map(|(&x, &y)| f(x, y)).collect::<Vec<_>>();
        let (grid, count, update) = (t.grid(n), n as u32, &t.kernels);
        let (dx, three) = (t.up(&x), T::from_f64(3.0));

        let mut v = t.up(&y);
        update.next_iterate((&t.ctx, grid, count), three, &dx, &mut v).unwrap();
        assert_eq!(t.down(&v), expect(|x, y| y + 3.0 * x));

        let mut v = t.up(&y);
        update.next_residual((&t.ctx, grid, count), three, &dx, &mut v).unwrap();
        assert_eq!(t.down(&v), expect(|x, y| y - 3.0 * x));

        let mut v = t.up(&y);
        update.next_direction((&t.ctx, grid, count), three, &dx, &mut v).unwrap();
        assert_eq!(t.down(&v), expect(|x, y| x + 3.0 * y));

        let mut v = t.up(&y);
        update.scale_diagonal((&t.ctx, grid, count), &t.up(&d), &dx, &mut v).unwrap();
        assert_eq!(t.down(&v), d.iter().zip(&x).map(|(d, x)| d * x).collect::<Vec<_>>());
    }
}

pub(super) fn conversions<T: Real, A: Real>(t: &Bench<T, A>) {
    let wide = |v: &[f64]| -> DeviceVec<A> {
        let guarded: Vec<A> = v.iter().chain(&[CANARY; 4]).map(|&v| A::from_f64(v)).collect();
        DeviceVec::from_slice(&t.ctx, &guarded, "a wide test vector").unwrap()
    };
    for &n in SIZES {
        let (grid, count, convert) = (t.grid(n), n as u32, &t.kernels);
        // thirds need all the digits that there are
        let x: Vec<f64> = ints(n, 1).iter().map(|v| A::from_f64(v / 3.0).to_f64()).collect();
        let mut narrowed = t.up(&vec![9.0; n]);
        convert.narrow(&t.ctx, grid, count, &wide(&x), &mut narrowed).unwrap();
        assert_eq!(t.down(&narrowed), x.iter().map(|&v| T::from_f64(v).to_f64()).collect::<Vec<_>>(), "n = {n}");

        let d = ints(n, 2);
        let (mut on_device, mut sum) = (t.up(&d), wide(&x));
        convert.add_wide(&t.ctx, grid, count, &mut on_device, &mut sum).unwrap();
        let expected: Vec<f64> = x.iter().zip(&d).map(|(x, d)| (A::from_f64(*x) + A::from_f64(*d)).to_f64()).collect();
        assert_eq!((t.down(&sum), t.down(&on_device)), (expected, vec![0.0; n]), "n = {n}");
    }
}

pub(super) fn products_send<T: Real, A: Real>(t: &Bench<T, A>) {
    let grids = [[13, 17], [16, 32], [33, 31]].map(|shape| gallery::poisson2d(shape).unwrap());
    grids.iter().for_each(|a| sends(t, a, &[Format::Csr, Format::Dictionary, Format::Pattern]));
    matrices().iter().for_each(|a| sends(t, a, &[Format::Csr]));
}

pub(super) fn sell_products_send<T: Real, A: Real>(t: &Bench<T, A>) {
    let kinds = [blocks(3, 33, 0), blocks(2, 100, 7), complex(65, 40, None), complex(150, 0, Some(3))];
    matrices().iter().chain(&kinds).for_each(|a| sends(t, a, &[Format::Sell]));
}

/// Each element that other ranks need is put into each of its places, and nothing beside them: of an array, as it need not be live.
fn sends<T: Real, A: Real>(t: &Bench<T, A>, a: &Matrix, formats: &[Format]) {
    let (n, done) = (a.n_rows(), DeviceVec::zeros(&t.ctx, 1, "the state").unwrap());
    let (x, all) = (ints(n, 4), 0..n as u32);
    let expected = a.mul_vec(&x);
    let some: Vec<u32> = all.clone().filter(|row| row % 7 == 3 || *row as usize + 5 > n).collect();
    let part = split(a, std::slice::from_ref(&(0..n))).remove(0);
    for format in formats {
        let block = DeviceBlock::<T>::upload(&t.ctx, &t.kernels.tuning, &part, 1.0, *format).unwrap();
        for send in [vec![], some.clone(), all.clone().rev().chain(some.clone()).collect()] {
            let (slot, SentRows { kept, places }) = (3, SentRows::new(n, &send));
            let indices: Vec<u32> = [7, 7].into_iter().chain(places).collect();
            let memory = Arc::new(DeviceVec::<u64>::zeros(&t.ctx, slot + send.len() + 1, "lines").unwrap());
            let sending = Sending {
                memory: Arc::clone(&memory) as _,
                slot: slot as u32,
                indices: Arc::new(DeviceVec::from_slice(&t.ctx, &indices, "places").unwrap()),
                first_place: 2,
                kept: [kept.start, kept.end].map(|row| row as u32),
                rows: n,
            };
            let (dx, mut y) = (t.up(&x), t.up(&ints(n, 6)));
            let partials = t.partials(2 * block.launch_count() * t.kernels.tuning.max_groups());
            let mut first = 0;
            for rows in block.launches(Which::All) {
                let (partials, done, sending) = (&partials, &done, Some(&sending));
                first += t.product(rows, &dx, Product::Dots { y: &mut y, partials, first, done, sending });
            }
            assert_eq!(t.down(&y), expected, "{format}, n = {n}");
            let mut seen = vec![1; memory.len()];
            memory.read(&t.ctx, 0, &mut seen).unwrap();
            let value = |bits: &u64| {
                if size_of::<T>() == 4 { f64::from(f32::from_bits(*bits as u32)) } else { f64::from_bits(*bits) }
            };
            let sent: Vec<f64> = seen[slot..slot + send.len()].iter().map(value).collect();
            assert_eq!(sent, send.iter().map(|row| expected[*row as usize]).collect::<Vec<_>>(), "{format}, n = {n}");
            assert!(seen[..slot].iter().chain(&seen[slot + send.len()..]).all(|bits| *bits == 0), "{format}, n = {n}");
        }
    }
}

pub(super) fn products<T: Real, A: Real>(t: &Bench<T, A>) {
    let done = DeviceVec::zeros(&t.ctx, 1, "the state").unwrap();
    for a in matrices() {
        let n = a.n_rows();
        let (x, b) = (ints(n, 4), ints(n, 5));
        let expected = a.mul_vec(&x);
        let a = Arc::new(a);
        let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
        let block = csr::block::<T>(&t.ctx, &part, 1.0).unwrap();
        let cut = RowBlocks::cut(&part, &t.kernels.tuning, &csr::segments_of(&block));
        let blocks = Arc::new(DeviceVec::from_slice(&t.ctx, &cut.blocks, "the row blocks").unwrap());
        let what = format!("n = {n}, {:?}", t.kernels.tuning);
        // all row blocks at once, and in two launches
        let [BlockSet { segment, last, .. }] = cut.sets[0][..] else { panic!() };
        for cut in [0, last / 3] {
            let ranges = [(0, cut), (cut, last)].map(|(first, last)| BlockSet { segment, first, last });
            let (dx, db) = (t.up(&x), t.up(&b));
            let (mut y, mut q, mut r) = (t.up(&ints(n, 6)), t.up(&ints(n, 6)), t.up(&ints(n, 6)));
            let grids = ranges.map(|set| t.kernels.tuning.launch("any").block_grid(set.len()));
            let groups: usize = grids.iter().map(|g| g.groups).sum();
            let partials = t.partials(2 * groups);
            let mut before = 0;
            for set in ranges {
                let rows = &CsrRows { block: Arc::clone(&block), blocks: Arc::clone(&blocks), set };
                t.product(rows, &dx, Product::Store(&mut y));
                t.product(rows, &dx, Product::Residual { b: &db, r: &mut r });
                before += t.product(
                    rows,
                    &dx,
                    Product::Dots { y: &mut q, partials: &partials, first: before, done: &done, sending: None },
                );
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
pub(super) fn with_diagonal(a: &crate::Csr, value: impl Fn(usize) -> f64) -> crate::Csr {
    let of_row = |i: usize| (a.row_ptr()[i]..a.row_ptr()[i + 1]).map(move |e| (i, e));
    let entry = |(i, e): (usize, usize)| if a.col_idx()[e] as usize == i { value(i) } else { a.values()[e] };
    let values = (0..a.n_rows()).flat_map(of_row).map(entry).collect();
    crate::Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
}

/// Rows of a few patterns, with values by pattern and of their own: all at once, and around a gap.
pub(super) fn dictionary_products<T: Real, A: Real>(t: &Bench<T, A>) {
    let done = DeviceVec::zeros(&t.ctx, 1, "the state").unwrap();
    let (mut used, mut has_main) = ([0, 0], 0);
    let grids = [[1, 16], [40, 50], [8, 37], [33, 64]].map(|sides| gallery::poisson2d(sides).unwrap());
    // rows that are no part of the main pattern, and rows of which it is no part
    let seldom = with_diagonal(&grids[1], |i| if i % 7 == 3 { 5.0 } else { 4.0 });
    let often = with_diagonal(&grids[1], |i| (i % 3) as f64);
    for a in matrices().into_iter().chain(grids).chain([seldom, often]) {
        let n = a.n_rows();
        let (x, b) = (ints(n, 4), ints(n, 5));
        let expected = a.mul_vec(&x);
        let residual: Vec<f64> = b.iter().zip(&expected).map(|(b, y)| b - y).collect();
        let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
        for (k, format) in [Format::Dictionary, Format::Pattern].into_iter().enumerate() {
            let find = [Dictionary::with_values, Dictionary::by_columns][k];
            let Ok(dictionary) = find(&part) else { continue };
            used[k] += 1;
            let shape = Shape::of_group(t.kernels.tuning.launch("any").group_size);
            let (block, sets) = ByDictionary::new(&part, 1.0, dictionary, shape).block::<T>(&t.ctx).unwrap();
            assert_eq!(block.width.is_some(), format == Format::Pattern);
            has_main += usize::from(block.main_len > 0);
            assert_eq!((sets[0][0].count as usize, sets[0].len(), sets[1].len()), (n, 1, 0));
            for interior in [0..n, 0..0, n / 3..n / 2, n / 5..n, 0..n / 2] {
                let sets = RowSet::around(0, &(0..n as u32), &(interior.start as u32..interior.end as u32));
                let what = format!("{format}, n = {n}, {interior:?}, {:?}", t.kernels.tuning);
                let (dx, db) = (t.up(&x), t.up(&b));
                let (mut y, mut q, mut r) = (t.up(&ints(n, 6)), t.up(&ints(n, 6)), t.up(&ints(n, 6)));
                let grids = sets.map(|set| t.grid(set.count as usize));
                let partials = t.partials(2 * grids.iter().map(|grid| grid.groups).sum::<usize>());
                let mut before = 0;
                for set in sets {
                    let rows = &DictionaryRows { block: Arc::clone(&block), set };
                    t.product(rows, &dx, Product::Store(&mut y));
                    t.product(rows, &dx, Product::Residual { b: &db, r: &mut r });
                    before += t.product(
                        rows,
                        &dx,
                        Product::Dots { y: &mut q, partials: &partials, first: before, done: &done, sending: None },
                    );
                }
                assert_eq!(t.down(&y), expected, "y, {what}");
                assert_eq!(t.down(&q), expected, "q, {what}");
                assert_eq!(t.down(&r), residual, "r, {what}");
                let dots = [dot(&x, &expected), dot(&expected, &expected)];
                assert_eq!(sum_pairs(&t.down(&partials)), dots, "x·y and y·y, {what}");
            }
            let set = DeviceVec::from_slice(&t.ctx, &[1], "the state").unwrap();
            let (mut q, partials) = (t.up(&ints(n, 6)), t.partials(2));
            let product = Product::Dots { y: &mut q, partials: &partials, first: 0, done: &set, sending: None };
            let rows = DictionaryRows { block, set: sets[0][0] };
            t.kernels.product(&t.ctx, &rows, 1, &t.up(&x), &product, Some(t.grid(1))).unwrap();
            assert_eq!((t.down(&q), t.down(&partials)), (ints(n, 6), vec![0.0; 2]), "after the end");
        }
    }
    assert!(used[0] >= 4 && used[1] >= 6, "{used:?}");
    assert_eq!(has_main > 0, t.kernels.tuning.launch("spmv_dot_dictionary").group_size > 1);
}

/// Rows in slices: both sets as they are, and cut in two.
pub(super) fn sell_products<T: Real, A: Real>(t: &Bench<T, A>) {
    let (go, stop) = ([0, 1]).map(|v| DeviceVec::from_slice(&t.ctx, &[v], "the state").unwrap()).into();
    // a simulator takes its time
    let most = if t.ctx.info().platform == "Oclgrind" { 5_500 } else { usize::MAX };
    for (case, a) in sliced_matrices().into_iter().enumerate().filter(|(_, a)| a.nnz() <= most) {
        let (n, n_cols) = (a.n_rows(), a.n_cols());
        let (x, b) = (ints(n_cols, 4), ints(n, 5));
        let expected = a.mul_vec(&x);
        let residual: Vec<f64> = b.iter().zip(&expected).map(|(b, y)| b - y).collect();
        let part = whole(&a);
        let (block, sets) = Sell::<T>::plan(&part, 1.0).block(&t.ctx).unwrap();
        let cut = |set: SliceSet| {
            let (blocked, single) = (set.blocked / 2, set.single / 3);
            let first = SliceSet { blocked, single: 0, ..set };
            let second = SliceSet { first: set.first + blocked, blocked: set.blocked - blocked, single, ..set };
            let behind = set.first + set.blocked + single;
            [first, second, SliceSet { first: behind, blocked: 0, single: set.single - single, ..set }]
        };
        let sets = sets.concat();
        let long = LongRows::of(&block);
        let rows_of = |set: SliceSet| SellRows { block: Arc::clone(&block), set };
        for sets in [sets.clone(), sets.iter().flat_map(|&set| cut(set)).collect()] {
            let what = format!("matrix {case}, {sets:?}, {:?}", t.kernels.tuning);
            let (dx, db) = (t.up(&x), t.up(&b));
            let (mut y, mut q, mut r) = (t.up(&ints(n, 6)), t.up(&ints(n, 6)), t.up(&ints(n, 6)));
            let slices: Vec<SellRows<T>> = sets.iter().map(|&set| rows_of(set)).collect();
            let slices = slices.iter().map(|rows| rows as Rows<'_, T>);
            let launches: Vec<Rows<'_, T>> = slices.chain(long.iter().map(|long| long as _)).collect();
            let groups = launches.iter().map(|rows| rows.grid(t.kernels.tuning.launch("any"), 1).groups).sum::<usize>();
            let partials = t.partials(2 * groups);
            launches.iter().for_each(|&rows| _ = t.product(rows, &dx, Product::Store(&mut y)));
            launches.iter().for_each(|&rows| _ = t.product(rows, &dx, Product::Residual { b: &db, r: &mut r }));
            let mut before = 0;
            for &rows in &launches {
                before += t.product(
                    rows,
                    &dx,
                    Product::Dots { y: &mut q, partials: &partials, first: before, done: &go, sending: None },
                );
            }
            assert_eq!(t.down(&y), expected, "y, {what}");
            assert_eq!(t.down(&q), expected, "q, {what}");
            assert_eq!(t.down(&r), residual, "r, {what}");
            let [xy, yy] = sum_pairs(&t.down(&partials));
            let squares = dot(&expected, &expected);
            // too large to be exact in single precision
            let slack = if size_of::<A>() == 8 { 0.0 } else { 1e-6 * squares };
            assert!(xy == dot(&x[..n], &expected) && (yy - squares).abs() <= slack, "x·y, y·y: {xy}, {yy}, {what}");
        }
        let some = rows_of(sets[0]);
        let launches: Vec<Rows<'_, T>> = [&some as _].into_iter().chain(long.iter().map(|long| long as _)).collect();
        let (mut q, partials) = (t.up(&ints(n, 6)), t.partials(2 * launches.len()));
        for (first, rows) in (0..).zip(&launches) {
            let product = Product::Dots { y: &mut q, partials: &partials, first, done: &stop, sending: None };
            t.kernels.product(&t.ctx, *rows, 1, &t.up(&x), &product, Some(t.grid(1))).unwrap();
        }
        assert_eq!((t.down(&q), t.down(&partials)), (ints(n, 6), vec![0.0; 2 * launches.len()]), "after the end");
    }
}

pub(super) fn pack_and_copy<T: Real, A: Real>(t: &Bench<T, A>) {
    for &n in SIZES {
        let x = ints(n, 1);
        let indices: Vec<u32> = (0..n as u32).rev().step_by(3).collect();
        let send = DeviceVec::from_slice(&t.ctx, &indices, "indices").unwrap();
        let mut out = t.up(&vec![0.0; indices.len()]);
        t.kernels.halo_pack(&t.ctx, t.grid(indices.len()), &send, &t.up(&x), &mut out).unwrap();
        assert_eq!(t.down(&out), indices.iter().map(|&i| x[i as usize]).collect::<Vec<_>>());

        let mut y = t.up(&vec![0.0; n]);
        t.kernels.stream_copy(&t.ctx, t.grid(n), n as u32, &t.up(&x), &mut y).unwrap();
        assert_eq!(t.down(&y), x);
    }
}
