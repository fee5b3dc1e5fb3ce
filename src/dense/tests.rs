//! Dense systems on the host and on several ranks of a device, whose residuals are recomputed here.

use proptest::prelude::*;

use super::devices::{Blocks, Devices};
use super::rank::Panels;
use super::*;
use crate::device::{Choice, Context, Info, list};
use crate::error::Error;
use crate::kernels::Shape;
use crate::kernels::gemm::Tiles;
use crate::kernels::lu_panel::Cut;
use crate::matrix::Csr;

/// Columns of a block.
const BLOCK: usize = 8;
/// Orders below, at and above that of blocks, and of several.
const ORDERS: [usize; 8] = [1, 2, 7, 8, 9, 16, 31, 65];

fn device() -> Info {
    list()
        .devices
        .into_iter()
        .find(|device| device.has_f64)
        .expect("an OpenCL device (apt-get install pocl-opencl-icd)")
}

/// Elements of a matrix, and those of one of any order.
type Elements<'a> = &'a (dyn Fn(usize, usize) -> f64 + Sync);
type OfOrder<'a> = &'a (dyn Fn(usize, usize, usize) -> f64 + Sync);

/// The same device several times.
fn ranks(count: usize) -> Vec<Info> {
    vec![device(); count]
}

/// A number between −½ and ½ as if by chance.
fn number(i: usize, j: usize) -> f64 {
    let mut z = ((i * 8191 + j + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

fn element(kind: Kind, n: usize) -> impl Fn(usize, usize) -> f64 + Sync {
    move |i, j| match kind {
        Kind::Lu if i == j => 0.0, // nothing goes without pivots
        Kind::Cholesky if i == j => n as f64,
        Kind::Ldlt if i == j => 0.0,
        Kind::Lu => number(i, j),
        _ => number(i.max(j), i.min(j)),
    }
}

fn matrix<T: Element>(kind: Kind, n: usize) -> Matrix<T> {
    let element = element(kind, n);
    let one = |i: usize, j: usize| if n == 1 { 3.0 } else { element(i, j) };
    Matrix::from_fn(n, |i, j| T::from_f64(one(i, j))).unwrap()
}

fn right_hand_sides<T: Element>(n: usize, columns: usize) -> Vec<T> {
    (0..n * columns).map(|k| T::from_f64(number(k, 77))).collect()
}

/// The largest backward error of columns of x, by plain loops.
fn backward_error<T: Element>(a: &Matrix<T>, b: &[T], x: &[T]) -> f64 {
    let n = a.order();
    let at = |i: usize, j: usize| a.values()[i + n * j].to_f64();
    let norm = (0..n).map(|i| (0..n).map(|j| at(i, j).abs()).sum::<f64>()).fold(0.0, f64::max);
    let mut most: f64 = 0.0;
    for (b, x) in b.chunks(n).zip(x.chunks(n)) {
        let largest = |v: &[T]| v.iter().map(|v| v.to_f64().abs()).fold(0.0, f64::max);
        for i in 0..n {
            let r = b[i].to_f64() - (0..n).map(|j| at(i, j) * x[j].to_f64()).sum::<f64>();
            most = most.max(r.abs() / (norm * largest(x) + largest(b)));
        }
    }
    most
}

fn solved<T: Element>(a: &Matrix<T>, kind: Kind, devices: &[Info], columns: usize) -> (Vec<T>, f64) {
    let mut factor = Factor::on(a.clone(), kind, devices, BLOCK).unwrap();
    let b = right_hand_sides::<T>(a.order(), columns);
    let mut x = b.clone();
    factor.solve(&mut x).unwrap();
    let error = backward_error(a, &b, &x);
    (x, error)
}

#[test]
fn by_hand() {
    // zero pivots: rows change places
    let a = || Matrix::from_columns(2, vec![0.0, 2.0, 1.0, 1.0]).unwrap();
    let positive = || Matrix::from_columns(2, vec![4.0, 2.0, 2.0, 5.0]).unwrap();
    for devices in [vec![], ranks(1), ranks(2)] {
        for block in [1, 2] {
            let mut lu = Factor::on(a(), Kind::Lu, &devices, block).unwrap();
            assert_eq!(lu.values().unwrap(), [2.0, 0.0, 1.0, 1.0]);
            let mut x = [1.0, 3.0, 2.0, 4.0];
            lu.solve(&mut x).unwrap();
            assert_eq!(x, [1.0, 1.0, 1.0, 2.0]);
            let mut cholesky = Factor::on(positive(), Kind::Cholesky, &devices, block).unwrap();
            assert_eq!(cholesky.values().unwrap(), [2.0, 1.0, 1.0, 2.0]);
            let mut x = [8.0, 12.0];
            cholesky.solve(&mut x).unwrap();
            assert_eq!(x, [1.0, 2.0]);
        }
    }
    let swap = Matrix::from_columns(2, vec![0.0, 1.0, 1.0, 0.0]).unwrap();
    let mut ldlt = Factor::new(swap.clone(), Kind::Ldlt, &Choice::Auto).unwrap();
    let mut x = [3.0, 5.0];
    ldlt.solve(&mut x).unwrap();
    assert_eq!((x, ldlt.condition().unwrap()), ([5.0, 3.0], 1.0));
    // with butterflies
    let mut ldlt = Factor::on(swap.clone(), Kind::Ldlt, &ranks(1), 1).unwrap();
    let mut x = [0.0; 2];
    ldlt.refine(&swap, &[3.0, 5.0], &mut x).unwrap();
    assert!((x[0] - 5.0).abs() < 1e-15 && (x[1] - 3.0).abs() < 1e-15 && ldlt.kind() == Kind::Ldlt, "{x:?}");
    assert!((ldlt.condition().unwrap() - 1.0).abs() < 1e-13);
}

#[test]
fn nothing_is_solved_by_nothing() {
    let none = Matrix::<f64>::from_columns(0, vec![]).unwrap();
    assert!(matches!(Matrix::<f64>::from_columns(1 << 32, vec![]), Err(Error::SizeMismatch { .. })));
    for devices in [vec![], ranks(1)] {
        let mut factor = Factor::on(none.clone(), Kind::Lu, &devices, BLOCK).unwrap();
        factor.solve(&mut []).unwrap();
        assert_eq!((factor.order(), factor.condition().unwrap()), (0, 0.0));
    }
    let mut factor = Factor::on(matrix::<f64>(Kind::Lu, 3), Kind::Lu, &[], BLOCK).unwrap();
    factor.solve(&mut []).unwrap();
    assert!(matches!(factor.solve(&mut [1.0; 4]), Err(Error::SizeMismatch { expected: 6, found: 4, .. })));
}

fn any_order_anywhere<T: Element>(epsilon: f64) {
    for n in ORDERS {
        for kind in [Kind::Lu, Kind::Cholesky, Kind::Ldlt] {
            let a = matrix::<T>(kind, n);
            let (_, error) = solved(&a, kind, &[], 3);
            assert!(error < 20.0 * n as f64 * epsilon, "{kind} of order {n} on the host: {error}");
            let (x, error) = solved(&a, kind, &ranks(1), 3);
            let growth = if kind == Kind::Ldlt { 100.0 } else { 1.0 };
            assert!(error < 20.0 * n as f64 * growth * epsilon, "{kind} of order {n} on a device: {error}");
            for count in [2, 3, 5] {
                assert!(solved(&a, kind, &ranks(count), 3).0 == x, "{kind} of order {n} on {count} ranks");
            }
        }
    }
}

#[test]
fn any_order_on_any_ranks() {
    any_order_anywhere::<f64>(f64::EPSILON);
}

#[test]
fn any_order_on_any_ranks_in_single_precision() {
    any_order_anywhere::<f32>(f32::EPSILON.into());
}

/// x by factors whose panels devices make, or refuse, and the factors.
fn solved_by_panels<T: Element>(
    a: &Matrix<T>,
    count: usize,
    b: &[T],
    (cut, is_refused): (Cut, bool),
) -> (Vec<T>, Vec<T>) {
    let (n, values) = (a.order(), a.values().to_vec());
    let found = Devices::with_cut(n, values, Kind::Lu, &ranks(count), BLOCK, |_| Some(cut)).unwrap();
    let mut devices = found.unwrap_or_else(|column| panic!("no pivot in column {column} of order {n}"));
    assert_eq!(devices.panels, if is_refused { Panels::OfHost } else { Panels::OfDevice });
    let mut x = b.to_vec();
    devices.solve(&mut x).unwrap();
    (x, devices.on_host().unwrap().values().to_vec())
}

fn panels_on_devices<T: Element>(orders: &[usize], epsilon: f64) {
    // one group, which waits for nobody
    let cut = (Cut { group_size: 32, item_rows: 4, narrow: 4 }, false);
    for &n in orders {
        let a = matrix::<T>(Kind::Lu, n);
        let b = right_hand_sides::<T>(n, 3);
        let (x, factors) = solved_by_panels(&a, 1, &b, cut);
        let error = backward_error(&a, &b, &x);
        assert!(error < 20.0 * n as f64 * epsilon, "of order {n}: {error}");
        for count in [2, 5] {
            assert!(solved_by_panels(&a, count, &b, cut) == (x.clone(), factors.clone()), "{n} on {count} ranks");
        }
        let host = Factor::on(a, Kind::Lu, &[], BLOCK).unwrap().values().unwrap();
        let differ = host.iter().zip(&factors).map(|(a, b)| (a.to_f64() - b.to_f64()).abs()).fold(0.0, f64::max);
        assert!(differ < 1e5 * n as f64 * epsilon, "{n}: {differ}");
    }
}

#[test]
fn panels_on_devices_of_any_order_on_any_ranks() {
    panels_on_devices::<f64>(&[1, 8, 31, 65], f64::EPSILON);
}

#[test]
fn panels_on_devices_in_single_precision() {
    panels_on_devices::<f32>(&[65], f32::EPSILON.into());
}

#[test]
fn tiles_change_no_bits() {
    let n = 65;
    let a = matrix::<f64>(Kind::Lu, n);
    let ctx = Context::open(&device()).unwrap();
    let mut tiles = Tiles::candidates::<f64>(&ctx, Shape::of(ctx.info()));
    tiles.truncate(3);
    tiles.push(Tiles::of_single_elements(8));
    let factors = |blocks: Blocks| Factor::on(a.clone(), Kind::Lu, &ranks(2), blocks).unwrap().values().unwrap();
    let expected = factors(BLOCK.into());
    for tiles in tiles {
        assert!(factors(Blocks { columns: BLOCK, tiles: Some(tiles) }) == expected, "{tiles}");
    }
}

/// More groups than any processor runs at once: they leave, and the host does their work.
#[test]
fn panels_that_devices_refuse_are_the_hosts() {
    let n = 900;
    let a = Matrix::from_fn(n, |i, j| number(i, j) + if i.abs_diff(j) == 1 { 4.0 } else { 0.0 }).unwrap();
    let b = right_hand_sides::<f64>(n, 1);
    let refused = solved_by_panels(&a, 2, &b, (Cut { group_size: 4, item_rows: 1, narrow: 4 }, true));
    let mut factor = Factor::on(a, Kind::Lu, &ranks(2), BLOCK).unwrap();
    let mut x = b;
    factor.solve(&mut x).unwrap();
    assert!(refused == (x, factor.values().unwrap()));
}

#[test]
fn columns_without_a_pivot_are_named_by_devices() {
    let cut = Cut { group_size: 32, item_rows: 1, narrow: 4 };
    for bad in [0, 6, 8, 20] {
        let zero_column = |i: usize, j: usize| if j == bad { 0.0 } else { number(i, j) };
        let values = Matrix::from_fn(21, zero_column).unwrap().values().to_vec();
        for count in [1, 3] {
            let found = Devices::with_cut(21, values.clone(), Kind::Lu, &ranks(count), BLOCK, |_| Some(cut)).unwrap();
            assert_eq!(found.err(), Some(bad));
        }
    }
}

#[test]
fn factors_are_those_of_the_host() {
    for (n, kind) in [(37, Kind::Lu), (37, Kind::Cholesky)] {
        let of = |devices: &[Info]| Factor::on(matrix::<f64>(kind, n), kind, devices, BLOCK).unwrap().values().unwrap();
        let (host, device) = (of(&[]), of(&ranks(3)));
        let differ = host.iter().zip(&device).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(differ < 1e-12 * n as f64, "{kind}: {differ}");
    }
}

/// Pivots grow to 2ⁿ⁻¹: J. H. Wilkinson, "Error analysis of direct methods of matrix inversion", J. ACM 8 (1961), doi 10.1145/321075.321076.
#[test]
fn growing_pivots() {
    let n = 30;
    let element = |i: usize, j: usize| {
        if i == j || j == n - 1 {
            1.0
        } else if i > j {
            -1.0
        } else {
            0.0
        }
    };
    let a = Matrix::from_fn(n, element).unwrap();
    for devices in [vec![], ranks(2)] {
        let mut factor = Factor::on(a.clone(), Kind::Lu, &devices, BLOCK).unwrap();
        assert_eq!(factor.values().unwrap()[n * n - 1], f64::powi(2.0, n as i32 - 1));
        let b = right_hand_sides::<f64>(n, 1);
        let mut x = vec![0.0; n];
        factor.refine(&a, &b, &mut x).unwrap();
        assert!(backward_error(&a, &b, &x) < 1e-15);
    }
}

/// Condition numbers of Hilbert's matrices, from their inverses, which are integers.
#[test]
fn conditions() {
    for (n, kappa) in [(1, 1.0), (2, 27.0), (3, 748.0), (4, 28_375.0), (5, 943_656.0), (6, 29_070_279.0)] {
        let a = Matrix::from_fn(n, |i, j| 1.0 / (i + j + 1) as f64).unwrap();
        for (kind, devices) in [
            (Kind::Lu, vec![]),
            (Kind::Cholesky, ranks(1)),
            (Kind::Ldlt, vec![]),
            (Kind::Lu, ranks(2)),
            (Kind::Ldlt, ranks(2)),
        ] {
            let found = Factor::on(a.clone(), kind, &devices, 2).unwrap().condition().unwrap();
            assert!((found / kappa - 1.0).abs() < 1e-8, "{kind} of order {n}: {found}");
        }
    }
    // not symmetric: A^-1 and its transpose are told apart
    let a = Matrix::from_columns(3, vec![1.0, 0.0, 0.0, 100.0, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
    let found = Factor::on(a, Kind::Lu, &[], 2).unwrap().condition().unwrap();
    assert!((found - 101.0 * 101.0).abs() < 1e-6, "{found}");
}

#[test]
fn columns_without_a_pivot_are_named() {
    let n = 21;
    for bad in [0, 6, 8, 20] {
        for devices in [vec![], ranks(1), ranks(3)] {
            let zero_column = |i: usize, j: usize| if j == bad { 0.0 } else { number(i, j) };
            let a = Matrix::from_fn(n, zero_column).unwrap();
            let found = Factor::on(a, Kind::Lu, &devices, BLOCK).map(|_| ());
            assert!(
                matches!(found, Err(Error::SingularMatrix { column, .. }) if column == bad + 1),
                "{bad}: {found:?}"
            );
            let negative = |i: usize, j: usize| {
                if i != j {
                    0.25
                } else if i == bad {
                    -1.0
                } else {
                    n as f64
                }
            };
            let a = Matrix::from_fn(n, negative).unwrap();
            let found = Factor::on(a, Kind::Cholesky, &devices, BLOCK).map(|_| ());
            assert!(matches!(found, Err(Error::NotDefinite { column, .. }) if column == bad + 1), "{bad}: {found:?}");
        }
    }
    let ones = Matrix::from_fn(3, |_, _| 1.0_f32).unwrap();
    let found = Factor::new(ones, Kind::Ldlt, &Choice::Auto).map(|_| ());
    assert!(matches!(found, Err(Error::SingularMatrix { precision: "single", .. })), "{found:?}");
}

/// Symmetric matrices that are not definite: x by devices and by the host, and b − A x.
#[test]
fn butterflies_spare_exchanges() {
    let symmetric = |i: usize, j: usize| number(i.max(j), i.min(j));
    let sign = |i: usize| if i.is_multiple_of(3) { -1.0 } else { 1.0 };
    let cases: [(&str, OfOrder<'_>); 5] = [
        ("random", &|_, i, j| symmetric(i, j)),
        ("zeros on the diagonal", &|_, i, j| if i == j { 0.0 } else { symmetric(i, j) }),
        ("a saddle point", &|n, i, j| match (i.max(j) >= n - n / 3, i.min(j) >= n - n / 3) {
            (true, true) => 0.0,
            (false, _) if i == j => 2.0 + i as f64 / n as f64,
            _ => symmetric(i, j),
        }),
        ("signs in turn", &|_, i, j| if i == j { if i.is_multiple_of(2) { 1.0 } else { -1.0 } } else { 0.0 }),
        ("Hilbert's with signs", &|_, i, j| {
            let beyond = [0.0, [0.5, -0.7][i % 2]][usize::from(i == j)];
            sign(i) * sign(j) / (i + j + 1) as f64 + beyond
        }),
    ];
    for n in [2, 127, 128, 129, 300] {
        for (name, element) in cases {
            let a = Matrix::from_fn(n, |i, j| element(n, i, j)).unwrap();
            let b = right_hand_sides::<f64>(n, 1);
            let mut host = b.clone();
            Factor::on(a.clone(), Kind::Ldlt, &[], 128).unwrap().solve(&mut host).unwrap();
            let mut factor = Factor::on(a.clone(), Kind::Ldlt, &ranks(1), 128).unwrap();
            let mut x = vec![0.0; n];
            factor.refine(&a, &b, &mut x).unwrap();
            assert!(backward_error(&a, &b, &x) < 1e-15, "{name}, of order {n}");
            let condition = factor.condition().unwrap();
            let largest = host.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            let differ = host.iter().zip(&x).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(differ < 1e-14 * condition * largest, "{name}, of order {n}: {differ}, κ = {condition}");
        }
    }
}

#[test]
fn pivots_that_are_rounding_errors_are_refused() {
    let ones = |_: usize, _: usize| 1.0;
    let zeros = |_: usize, _: usize| 0.0;
    let uneven = |i: usize, j: usize| if i == j { [1.0, -1e-20, 2.0, 3.0][i % 4] } else { 0.0 };
    // as none of the first rows has to do with another of them
    let turned = |i: usize, j: usize| if i + j == 5 { 1.0 } else { 0.0 };
    let elements: [(Elements<'_>, usize); 4] = [(&ones, 2), (&zeros, 1), (&uneven, 4), (&turned, 1)];
    for (element, first) in elements {
        for count in [1, 3] {
            let a = Matrix::from_fn(6, element).unwrap();
            let found = Factor::on(a, Kind::Ldlt, &ranks(count), 2).map(|_| ());
            assert!(matches!(found, Err(Error::NeedsPivots { column, .. }) if column == first), "{found:?}");
        }
    }
}

#[test]
fn single_precision_serves_for_double() {
    let n = 50;
    let a = matrix::<f64>(Kind::Lu, n);
    let single = Matrix::from_fn(n, |i, j| a.values()[i + n * j] as f32).unwrap();
    for devices in [vec![], ranks(2)] {
        let mut factor = Factor::on(single.clone(), Kind::Lu, &devices, BLOCK).unwrap();
        for scale in [1.0, 1e-60, 1e80] {
            let b: Vec<f64> = right_hand_sides::<f64>(n, 1).iter().map(|b| b * scale).collect();
            let mut x = vec![0.0; n];
            let refinement = factor.refine(&a, &b, &mut x).unwrap();
            assert!(refinement.steps > 1 && backward_error(&a, &b, &x) < 1e-15, "{refinement:?}");
        }
    }
}

#[test]
fn entries_of_sparse_matrices() {
    let a = Csr::new(3, 3, vec![0, 2, 2, 4], vec![0, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let dense = Matrix::<f32>::from_csr(&a).unwrap();
    assert_eq!(dense.values(), [1.0, 0.0, 0.0, 0.0, 0.0, 3.0, 2.0, 0.0, 4.0]);
    assert_eq!(dense.norm_1(), 6.0);
    let large = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1.0, 1e300]).unwrap();
    assert!(matches!(Matrix::<f32>::from_csr(&large), Err(Error::NotFinite { value: 1e300, index: 4, .. })));
    let wide = Csr::new(1, 2, vec![0, 1], vec![0], vec![1.0]).unwrap();
    assert!(matches!(Matrix::<f64>::from_csr(&wide), Err(Error::NotSquare { rows: 1, cols: 2 })));
    // turned by blocks
    let n = 70;
    let full = Csr::new(n, n, (0..=n).map(|i| i * n).collect(), (0..n * n).map(|k| (k % n) as u32).collect(), {
        (0..n * n).map(|k| number(k / n, k % n)).collect()
    });
    assert_eq!(Matrix::from_csr(&full.unwrap()).unwrap(), Matrix::from_fn(n, number).unwrap());
}

#[test]
fn what_is_no_number_is_refused() {
    let nan = Matrix::from_columns(2, vec![1.0, 2.0, f64::NAN, 4.0]);
    let message = nan.unwrap_err().to_string();
    assert!(message.contains("row 1, column 2"), "{message}");
    assert!(matches!(
        Matrix::from_columns(2, vec![1.0_f64; 3]),
        Err(Error::SizeMismatch { expected: 4, found: 3, .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_systems(n in 1_usize..40, block in 1_usize..13, count in 0_usize..4, columns in 1_usize..4, salt in 0_usize..1000) {
        let a = Matrix::from_fn(n, |i, j| number(i + salt, j) + if i == j { 0.6 } else { 0.0 }).unwrap();
        let mut factor = Factor::on(a.clone(), Kind::Lu, &ranks(count), block).unwrap();
        let b = right_hand_sides::<f64>(n, columns);
        let mut x = b.clone();
        factor.solve(&mut x).unwrap();
        prop_assert!(backward_error(&a, &b, &x) < 1e-13);
    }
}

/// A column that is twice another one, or the sum of two: what rounding leaves of it is named, whatever the factors.
#[test]
fn columns_that_depend_on_others_are_named() {
    let n = 60;
    let element = |i: usize, j: usize| ((i * 37 + j * 101 + i * j * 7) % 97) as f64 / 97.0 - 0.5;
    let bad = 41;
    let dependent = move |i: usize, j: usize| match j {
        41 => 0.7 * element(i, 5) + 0.3 * element(i, 20),
        _ => element(i, j),
    };
    // of low rank but for the first rows and columns, and symmetric
    let symmetric = move |i: usize, j: usize| {
        let of = |k: usize| if k == bad { [5, 5] } else { [k, k] };
        let [[i, _], [j, _]] = [of(i), of(j)];
        element(i.min(j), i.max(j))
    };
    let device = list().devices.remove(0);
    for devices in [vec![], vec![device.clone()], vec![device.clone(), device]] {
        let lu = Factor::<f64>::on(Matrix::from_fn(n, dependent).unwrap(), Kind::Lu, &devices, 16);
        match lu {
            Ok(factor) => assert_eq!(factor.column_without_pivot().unwrap(), Some(bad + 1)),
            Err(Error::SingularMatrix { column, .. }) => assert_eq!(column, bad + 1),
            Err(e) => panic!("{e}"),
        }
        let regular = Factor::<f64>::on(Matrix::from_fn(n, element).unwrap(), Kind::Lu, &devices, 16).unwrap();
        assert_eq!(regular.column_without_pivot().unwrap(), None);
    }
    match Factor::<f64>::on(Matrix::from_fn(n, symmetric).unwrap(), Kind::Ldlt, &[], 16) {
        Ok(factor) => assert!([Some(6), Some(bad + 1)].contains(&factor.column_without_pivot().unwrap())),
        Err(Error::SingularMatrix { column, .. }) => assert!([6, bad + 1].contains(&column)),
        Err(e) => panic!("{e}"),
    }
}
