//! Slices by hand and at random.

use super::*;
use proptest::prelude::*;

use crate::matrix::equivalent::{Form, real_form};
use crate::matrix::{Complex64, Csr, gallery};
use crate::partition::HaloPlan;

fn part(a: &Csr) -> Part<'_> {
    Part {
        rows: 0..a.n_rows(),
        row_ptr: a.row_ptr(),
        col_idx: a.col_idx().into(),
        values: a.values().into(),
        halo: HaloPlan { len: a.n_cols().saturating_sub(a.n_rows()), ..HaloPlan::default() },
        of: None,
    }
}

/// A matrix of the entries (i, j, v).
fn matrix(n: usize, n_cols: usize, entries: &[(u32, u32, f64)]) -> Csr {
    let rows: Vec<u32> = entries.iter().map(|e| e.0).collect();
    let cols: Vec<u32> = entries.iter().map(|e| e.1).collect();
    let values: Vec<f64> = entries.iter().map(|e| e.2).collect();
    Csr::from_triplets(n, n_cols, &rows, &cols, &values).unwrap()
}

#[test]
fn a_slice_by_hand() {
    // two rows of two blocks, one row of none
    let a = matrix(
        3,
        5,
        &[
            (0, 0, 1.0),
            (0, 1, 2.0),
            (0, 3, 3.0),
            (0, 4, 4.0),
            (1, 0, 5.0),
            (1, 1, 6.0),
            (1, 3, 7.0),
            (1, 4, 8.0),
            (2, 0, 1000.0),
        ],
    );
    let part = part(&a);
    let sell = Sell::<f64>::plan(&part, 1.0);
    assert_eq!((sell.block, sell.slices.len(), sell.parts), (2, 2, 0));
    // columns 3 and 4 are a halo, which the last row does not need
    let set = |first, blocked, single| SliceSet { segment: 0, first, blocked, single };
    assert_eq!(sell.sets, [set(0, 0, 1), set(1, 1, 0)]);
    let bytes = |slice: usize| {
        let slice = &sell.slices[slice];
        let mut out = vec![0; slice.sections::<f64>(sell.lists[slice.list].block)[3]];
        sell.fill(slice, &mut out);
        out
    };
    // a count, a value of two bytes in four, a column of two in four, a row
    let [low, high] = 1000i16.to_ne_bytes();
    let row = bytes(0);
    assert_eq!((&row[..12], row.len()), (&[1, 0, 0, 0, 0, 0, 0, 0, low, high, 0, 0][..], 32));
    assert_eq!(row[12..], [0; 20]);
    assert_eq!(sell.slices[0].words(&sell.lists[2], 0), [0, 1, 1 | 1 << 16 | 2 << 24, 2, 0]);
    // two counts; by columns, values of one byte; columns 0 and 3, not whole blocks apart; the row
    let blocks = bytes(1);
    assert_eq!(blocks[..16], [1, 1, 0, 0, 0, 0, 0, 0, 1, 5, 2, 6, 3, 7, 4, 8]);
    assert_eq!(blocks[16..20], *[[0; 2], 3u16.to_ne_bytes()].as_flattened());
    assert_eq!(blocks[20..], [0; 12]);
    assert_eq!(sell.slices[1].words(&sell.lists[4], 2), [2, 2, 2 | 1 << 16 | 3 << 24, 0, 0]);
    assert_eq!(sell.bytes(), 64 + 2 * 20);
}

/// The bytes of a slice.
fn bytes<T: Real>(sell: &Sell<'_, T>, slice: &Slice) -> Vec<u8> {
    let mut out = vec![0; sell.size(slice)];
    sell.fill(slice, &mut out);
    out
}

#[test]
fn a_slice_of_complex_numbers_by_hand() {
    // [1 + 2i, 0, 3; 0, −4i, 0]
    let z = Complex64::new;
    let a = Csr::from_triplets(2, 3, &[0, 0, 1], &[0, 2, 1], &[z(1.0, 2.0), z(3.0, 0.0), z(0.0, -4.0)]).unwrap();
    let a = real_form(&a).unwrap();
    let part = part(&a);
    let sell = Sell::<f64>::plan(&part, 1.0);
    let (halo, own) = (&sell.slices[1], &sell.slices[0]);
    assert_eq!((sell.block, sell.slices.len(), halo.is_complex, own.is_complex), (2, 2, true, true));
    // two counts, two values of a byte for each entry, columns in blocks, the row
    let columns = [0u16, 2].map(u16::to_ne_bytes);
    let expected = [&[1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0], columns.as_flattened(), &[0; 16]].concat();
    assert_eq!(bytes(&sell, halo), expected);
    assert_eq!(halo.words(&sell.lists[4], 1), [1, 2, 2 | 1 << 16 | (3 | 32 | 64) << 24, 0, 0]);
    let expected = [&[1, 0, 0, 0, 0, 0, 0, 0, 0, 252, 0, 0][..], &[0; 20]].concat();
    assert_eq!(bytes(&sell, own), expected);
    assert_eq!(own.words(&sell.lists[0], 0), [0, 1, 1 | 1 << 16 | (3 | 32 | 64) << 24, 2, 2]);
}

/// Whether a block of 2 × 2, times a factor, is stored as a complex number, in both precisions.
fn complex_of([[a, b], [c, d]]: [[f64; 2]; 2], factor: f64) -> [bool; 2] {
    let a = matrix(2, 2, &[(0, 0, a), (0, 1, b), (1, 0, c), (1, 1, d)]);
    let of = |slices: &[Slice]| slices[0].is_complex;
    [of(&Sell::<f64>::plan(&part(&a), factor).slices), of(&Sell::<f32>::plan(&part(&a), factor).slices)]
}

#[test]
fn complex_numbers_are_known_by_their_bits() {
    let of = |block| complex_of(block, 1.0);
    for block in [[[1.5, -0.1], [0.1, 1.5]], [[0.0, 2.0], [-2.0, 0.0]], [[3.0, 0.0], [0.0, 3.0]]] {
        assert_eq!(of(block), [true; 2], "{block:?}");
    }
    let others = [[[1.0, 0.1], [0.1, 1.0]], [[1.0, -0.1], [0.1, -1.0]], [[1.0, 1.0], [1.0, 1.0]]];
    for block in others {
        assert!(!of(block)[0], "{block:?}");
    }
    // zeros of either sign: 0 − m is never −0
    assert_eq!(of([[1.0, 0.0], [-0.0, 1.0]]), [true; 2]);
    for block in [[[1.0, -0.0], [0.0, 1.0]], [[1.0, -0.0], [-0.0, 1.0]], [[0.0, -1.0], [1.0, -0.0]]] {
        assert_eq!(of(block), [false; 2], "{block:?}");
    }
    // what is told apart in double precision alone, and what becomes −0 in single precision or by the factor
    assert_eq!(of([[1.0, -2.0], [2.0, 1.0 + f64::EPSILON]]), [false, true]);
    assert_eq!(of([[1.0, -1e-60], [1e-60, 1.0]]), [true, false]);
    assert_eq!(complex_of([[1e100, -1e-200], [1e-200, 1e100]], 1e-200), [false; 2]);
}

proptest! {
    /// The bits of the block come back from its first column if it is stored alone, and only then.
    #[test]
    fn complex_numbers_keep_their_bits(
        values in prop::array::uniform4(prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.1, -0.1, 300.0, 1e-310])),
        factor in prop::sample::select(vec![1.0, 0.5, 1.0 / 3.0, 1e-20]),
    ) {
        let [a, b, c, d] = values;
        let back = |of: &dyn Fn(f64) -> f64| {
            [of(a), of(b)].map(f64::to_bits) == [of(d), 0.0 - of(c)].map(f64::to_bits)
        };
        let expected = [back(&|v| v * factor), back(&|v| f64::from((v * factor) as f32))];
        prop_assert_eq!(complex_of([[a, b], [c, d]], factor), expected);
    }
}

/// So many rows of `len` complex entries each, in places and of values that follow no order.
pub(super) fn random_complex(n: u32, len: u32) -> Csr<Complex64> {
    let entries = || (0..n).flat_map(|i| (0..len).map(move |k| (i, (i * 7919 + k * 104_729 + k * k * 31) % n)));
    let number = |(i, j): (u32, u32)| Complex64::new((1.0 + f64::from(i)).sin(), f64::from(3 * i + 7 * j).cos());
    let (rows, cols): (Vec<u32>, Vec<u32>) = entries().unzip();
    Csr::from_triplets(n as usize, n as usize, &rows, &cols, &entries().map(number).collect::<Vec<_>>()).unwrap()
}

#[test]
fn complex_numbers_take_two_values() {
    let complex = random_complex(2_000, 9);
    let a = real_form(&complex).unwrap();
    let part = part(&a);
    let bytes = |of: [usize; 2]| of[0] as f64 / of[1] as f64;
    let double = bytes([
        Layout::<f64>::bytes(&Sell::<f64>::plan(&part, 1.0)),
        Layout::<f64>::bytes(&Compressed::new(&part, 1.0)),
    ]);
    let single = bytes([
        Layout::<f32>::bytes(&Sell::<f32>::plan(&part, 1.0)),
        Layout::<f32>::bytes(&Compressed::new(&part, 1.0)),
    ]);
    // 18 of 48 bytes, and 10 of 32, but for what a row has
    assert!((0.37..0.40).contains(&double) && (0.31..0.34).contains(&single), "{double}, {single}");
    // the other form has no such blocks
    let symmetric = Form::Symmetric.matrix(&complex).unwrap();
    assert!(Sell::<f64>::plan(&self::part(&symmetric), 1.0).slices.iter().all(|slice| !slice.is_complex));
}

#[test]
fn slices_are_complex_one_by_one() {
    // 100 units, of which the one of row 120 has a block that is no complex number
    let a = real_form(&random_complex(100, 3)).unwrap();
    let mut values = a.values().to_vec();
    values[a.row_ptr()[121]] += 1.0;
    let a = Csr::new(200, 200, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
    let part = part(&a);
    let sell = Sell::<f64>::plan(&part, 1.0);
    let others: Vec<&Slice> = sell.slices.iter().filter(|slice| !slice.is_complex).collect();
    assert_eq!((sell.block, sell.slices.len(), others.len()), (2, 4, 1));
    let units = &sell.lists[others[0].list].units[others[0].first..][..others[0].count];
    assert!(units.iter().any(|unit| unit.row == 120));
}

#[test]
fn sizes_of_blocks() {
    let of = |a: &Csr| Sell::<f64>::plan(&part(a), 1.0).block;
    assert_eq!(of(&gallery::elasticity3d([4, 4, 4]).unwrap()), 3);
    assert_eq!(of(&gallery::poisson3d([6, 6, 6]).unwrap()), 1);
    let dense = |n: u32| {
        let entries: Vec<_> = (0..n * n).map(|k| (k / n, k % n, 1.0)).collect();
        of(&matrix(n as usize, n as usize, &entries))
    };
    assert_eq!([1, 2, 3, 4, 6, 9].map(dense), [1, 2, 3, 4, 3, 3]);
    // half of the values are worth more than columns
    let complex = |n: u32| {
        let places: Vec<[u32; 2]> = (0..n * n).map(|k| [k / n, k % n]).collect();
        let [rows, cols] = [0, 1].map(|k| places.iter().map(|place| place[k]).collect::<Vec<_>>());
        let a = Csr::from_triplets(n as usize, n as usize, &rows, &cols, &vec![Complex64::new(1.0, 2.0); rows.len()]);
        of(&real_form(&a.unwrap()).unwrap())
    };
    assert_eq!([1, 2, 3].map(complex), [2, 2, 2]);
}

#[test]
fn blocks_after_a_row_without() {
    // the node of row 0 has one unknown, the others three
    let mut entries = vec![(0, 0, 1.0)];
    entries.extend((0..40 * 9).map(|k| (1 + k / 9 * 3 + k % 3, 1 + k / 9 * 3 + k / 3 % 3, 0.1)));
    let a = matrix(121, 121, &entries);
    let part = part(&a);
    let sell = Sell::<f64>::plan(&part, 1.0);
    assert_eq!((sell.block, sell.sets[0]), (3, SliceSet { segment: 0, first: 0, blocked: 2, single: 1 }));
    assert!(sell.slices.iter().take(2).all(|slice| slice.step == 3 && slice.value == Value::Real));
}

#[test]
fn values_keep_their_bits_in_fewer_bytes() {
    let kind = |v: f64, factor: f64| {
        let a = matrix(1, 1, &[(0, 0, v)]);
        let of = |slices: &[Slice]| slices[0].value;
        let double = of(&Sell::<f64>::plan(&part(&a), factor).slices);
        (double, of(&Sell::<f32>::plan(&part(&a), factor).slices))
    };
    use Value::{Char, Float, Real, Short};
    assert_eq!([127.0, -128.0, -1.0, 0.0].map(|v| kind(v, 1.0)), [(Char, Char); 4]);
    assert_eq!([128.0, -32768.0].map(|v| kind(v, 1.0)), [(Short, Short); 2]);
    assert_eq!([40_000.0, 0.5, -0.0, 2f64.powi(100)].map(|v| kind(v, 1.0)), [(Float, Real); 4]);
    assert_eq!([0.1, 1e300, 16_777_217.0].map(|v| kind(v, 1.0)), [(Real, Real); 3]);
    // a power of two keeps all bits, even where the value itself is none of a smaller type
    assert_eq!((kind(-3.0, 0.125), kind(0.1, 0.5)), ((Char, Char), (Real, Real)));
}

#[test]
fn long_rows_are_cut_into_pieces() {
    let n = 1000;
    let mut entries: Vec<_> = (0..n).map(|i| (i, i, 1.0)).collect();
    entries.extend((1..n).map(|j| (0, j, 1.0)));
    entries.extend((0..65).map(|j| (500, j, 1.0)));
    let a = matrix(n as usize, n as usize, &entries);
    let part = part(&a);
    let sell = Sell::<f64>::plan(&part, 1.0);
    // 1000 entries in pieces of 62 and 63, and 66 in pieces of 33
    assert_eq!((&sell.long_rows[..], sell.few, sell.parts), (&[[0, 0, 16, 1], [500, 16, 2, 1]][..], 2, 18));
    let lens: Vec<usize> = sell.lists[3].units.iter().map(|&unit| sell.len(1, unit)).collect();
    assert_eq!(lens.iter().sum::<usize>(), 1066);
    assert_eq!((lens[0], lens[15], lens[17]), (63, 62, 33));
    assert!(sell.lists[2].units.iter().all(|unit| ![0, 500].contains(&unit.row)));
}

#[test]
#[should_panic(expected = "column 7 of 3")]
fn a_column_that_changed_reaches_no_device() {
    let row_ptr = [0, 1, 2, 3];
    let values = [1.0; 3];
    let of = |col_idx: Vec<u32>| Part {
        rows: 0..3,
        row_ptr: &row_ptr,
        col_idx: col_idx.into(),
        values: values.as_slice().into(),
        halo: HaloPlan::default(),
        of: None,
    };
    let (before, after) = (of(vec![0, 1, 2]), of(vec![0, 7, 2]));
    let plan = Sell::<f64>::plan(&before, 1.0);
    let slice = plan.slices[0];
    let changed = Sell { part: &after, ..plan };
    changed.fill(&slice, &mut vec![0; slice.sections::<f64>(1)[3]]);
}
