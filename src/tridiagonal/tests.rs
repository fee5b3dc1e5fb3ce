//! Every method on the host and on a device, by x that are known and by residuals that are formed here.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::device::{Context, Info, list};
use crate::error::Error;
use crate::kernels::tridiagonal::{Groups, TridiagonalKernels};
use crate::real::Real;

const ON_DEVICE: [Method; 5] =
    [Method::Thomas, Method::CyclicReduction, Method::ParallelCyclicReduction, Method::Hybrid, Method::Partition];
const ON_HOST: [Method; 3] = [Method::Thomas, Method::Partition, Method::Pivoting];

/// One device of each platform.
pub(super) fn devices() -> Vec<Info> {
    let devices = list().devices;
    assert!(!devices.is_empty(), "these tests need an OpenCL device (apt-get install pocl-opencl-icd)");
    let platforms: BTreeSet<&str> = devices.iter().map(|d| d.platform.as_str()).collect();
    platforms.iter().filter_map(|p| devices.iter().find(|d| d.platform == *p)).cloned().collect()
}

/// Small integers, as if by chance.
fn int(i: usize, salt: usize) -> i64 {
    ((i * 7919 + salt * 104_729 + i / 13 * 31) % 11) as i64 - 5
}

/// Systems whose x are small integers.
struct Case<T> {
    shape: Shape,
    arrays: [Vec<T>; 3],
    d: Vec<T>,
    x: Vec<T>,
}

impl<T: Real> Case<T> {
    /// With so much on the diagonal beyond what is beside it.
    fn new(shape: Shape, beyond: i64) -> Self {
        let zeros = || vec![T::default(); shape.len()];
        let (mut arrays, mut d, mut x) = ([zeros(), zeros(), zeros()], zeros(), zeros());
        let n = shape.size;
        let x_of = |system: usize, row: usize| int(system * n + row, 3);
        for system in 0..shape.systems {
            for row in 0..n {
                let (k, at) = (system * n + row, shape.at(system, row));
                let is_open = !shape.periodic;
                let a = if is_open && row == 0 { 0 } else { int(k, 1) };
                let c = if is_open && row + 1 == n { 0 } else { int(k, 2) };
                let b = (a.abs() + c.abs() + beyond) * if k % 3 == 0 { -1 } else { 1 };
                let sum = a * x_of(system, (row + n - 1) % n) + b * x_of(system, row) + c * x_of(system, (row + 1) % n);
                let number = |v: i64| T::from_f64(v as f64);
                for (array, v) in arrays.iter_mut().zip([a, b, c]) {
                    array[at] = number(v);
                }
                (d[at], x[at]) = (number(sum), number(x_of(system, row)));
            }
        }
        Self { shape, arrays, d, x }
    }

    fn systems(&self) -> Systems<'_, T> {
        let [a, b, c] = &self.arrays;
        Systems::new(self.shape, [a, b, c]).unwrap()
    }

    /// The largest error of x, as a number of roundings of the largest element.
    fn error(&self, x: &[T]) -> f64 {
        let epsilon = if T::CL_NAME == "double" { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let errors = x.iter().zip(&self.x).map(|(x, known)| {
            let error = (x.to_f64() - known.to_f64()).abs();
            if error.is_nan() { f64::INFINITY } else { error }
        });
        errors.fold(0.0, f64::max) / (5.0 * epsilon)
    }
}

fn options(method: Method) -> Options {
    Options::default().with_method(method).with_check(Check::Never)
}

/// x by a method, on a device or on the host.
fn solved<T: Real>(case: &Case<T>, device: Option<&Info>, method: Method) -> Vec<T> {
    let mut solver = Solver::on(case.systems(), device, &options(method)).unwrap();
    let mut x = vec![T::from_f64(f64::NAN); case.shape.len()];
    // twice, so that what is left of the first solve is seen to be of no matter
    solver.solve(&vec![T::from_f64(1.0); x.len()], &mut x).unwrap();
    assert_eq!(solver.solve(&case.d, &mut x).unwrap(), Outcome { method, backward_error: None, repaired: 0 });
    x
}

/// Kernels for groups so small that systems of some hundred rows have tiles of tiles.
type Small<T> = (Arc<Context>, Arc<TridiagonalKernels<T>>);

fn in_small_groups<T: Real>(case: &Case<T>, (ctx, kernels): &Small<T>, method: Method) -> Vec<T> {
    let [a, b, c] = &case.arrays;
    let small = (Arc::clone(ctx), Arc::clone(kernels));
    let mut on_device = OnDevice::with(small, case.shape, [a, b, c], method).unwrap();
    let mut x = vec![T::from_f64(f64::NAN); case.shape.len()];
    on_device.write(&case.d).unwrap();
    on_device.run().unwrap();
    on_device.read(&mut x).unwrap();
    x
}

#[test]
fn systems_by_hand() {
    // [2 1; 1 3] x = [4; 7] and [4 0; 2 1] x = [4; 5]: x = [1; 2] and [1; 3]
    let (a, b, c) = ([0.0, 1.0, 0.0, 2.0], [2.0, 3.0, 4.0, 1.0], [1.0, 0.0, 0.0, 0.0]);
    let systems = Systems::new(Shape::new(2, 2), [&a, &b, &c]).unwrap();
    for method in ON_HOST {
        let mut x = [0.0_f64; 4];
        let mut solver = Solver::on(systems, None, &options(method)).unwrap();
        solver.solve(&[4.0, 7.0, 4.0, 5.0], &mut x).unwrap();
        assert!(x.iter().zip([1.0, 2.0, 1.0, 3.0]).all(|(x, known)| (x - known).abs() < 1e-15), "{method}: {x:?}");
    }
}

fn all_sizes_on_the_host<T: Real>() {
    for n in (0..=130).chain([1000, 4097]) {
        for layout in [Layout::Contiguous, Layout::Interleaved] {
            let systems = if n > 130 { 3 } else { 70 };
            let case = Case::<T>::new(Shape::new(systems, n).with_layout(layout), 2);
            for method in ON_HOST {
                assert!(case.error(&solved(&case, None, method)) < 20.0, "{n} rows, {layout}, {method}");
            }
        }
    }
}

#[test]
fn all_sizes_on_the_host_in_double_precision() {
    all_sizes_on_the_host::<f64>();
}

#[test]
fn all_sizes_on_the_host_in_single_precision() {
    all_sizes_on_the_host::<f32>();
}

fn all_methods_on_devices<T: Real>(sizes: &[usize]) {
    for device in devices() {
        for &n in sizes {
            let shape = Shape::new(if n > 130 { 3 } else { 37 }, n);
            let [case, across] =
                [Layout::Contiguous, Layout::Interleaved].map(|layout| Case::<T>::new(shape.with_layout(layout), 2));
            for method in ON_DEVICE {
                let x = solved(&case, Some(&device), method);
                assert!(case.error(&x) < 20.0, "{n} rows, {method}: {}", case.error(&x));
                // the order in memory changes no bit
                let other = solved(&across, Some(&device), method);
                let is_same = |at: usize| other[across.shape.at(at / n, at % n)] == x[at];
                assert!((0..x.len()).all(is_same), "{n} rows, {method}");
            }
        }
    }
}

#[test]
fn methods_on_devices_in_double_precision() {
    all_methods_on_devices::<f64>(&[0, 1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 128, 1000, 1024]);
}

#[test]
fn methods_on_devices_in_single_precision() {
    all_methods_on_devices::<f32>(&[1, 2, 17, 130, 1024]);
}

/// Kernels whose groups are small, at every size.
fn small_groups<T: Real>(sizes: impl Iterator<Item = usize> + Clone) {
    for device in devices() {
        let ctx = Arc::new(Context::open(&device).unwrap());
        for (method, size) in [(Method::Hybrid, 64), (Method::Partition, 2), (Method::Partition, 8)] {
            let groups = Groups { size, rows: 3, capacity: size };
            let small = (Arc::clone(&ctx), Arc::new(TridiagonalKernels::build(&ctx, groups).unwrap()));
            for n in sizes.clone().filter(|&n| method != Method::Hybrid || n <= 3 * size) {
                let case = Case::<T>::new(Shape::new(5, n), 2);
                let x = in_small_groups(&case, &small, method);
                assert!(case.error(&x) < 20.0, "{n} rows, {method}, groups of {size}: {}", case.error(&x));
            }
        }
    }
}

#[test]
fn all_sizes_in_small_groups() {
    small_groups::<f64>((1..=130).chain([575, 576, 577, 1729]));
}

#[test]
fn sizes_in_small_groups_in_single_precision() {
    small_groups::<f32>([1, 5, 24, 25, 130].into_iter());
}

#[test]
fn large_systems() {
    for device in devices() {
        for (systems, n, method) in [
            (1, 1_000_000, Method::Partition),
            (2, 4097, Method::Partition),
            (32_768, 8, Method::Hybrid),
            (32_768, 5, Method::Auto),
        ] {
            let case = Case::<f64>::new(Shape::new(systems, n), 2);
            let mut solver = Solver::on(case.systems(), Some(&device), &options(method)).unwrap();
            let mut x = vec![0.0; case.shape.len()];
            solver.solve(&case.d, &mut x).unwrap();
            assert!(case.error(&x) < 20.0, "{systems} of {n} rows, {method}: {}", case.error(&x));
        }
    }
    for method in ON_HOST {
        let case = Case::<f64>::new(Shape::new(1, 1_000_000), 2);
        assert!(case.error(&solved(&case, None, method)) < 20.0, "{method}");
    }
}

#[test]
fn methods_of_choice() {
    let method = |shape: Shape, device: Option<&Info>, beyond| {
        let case = Case::<f64>::new(shape, beyond);
        Solver::on(case.systems(), device, &Options::default()).unwrap().method()
    };
    assert_eq!(method(Shape::new(100, 50), None, 2), Method::Thomas);
    assert_eq!(method(Shape::new(100, 50), None, -1), Method::Pivoting);
    let device = &devices()[0];
    assert_eq!(method(Shape::new(100, 50), Some(device), 2), Method::Hybrid);
    assert_eq!(method(Shape::new(1, 100_000), Some(device), 2), Method::Partition);
    assert_eq!(method(Shape::new(5000, 4).with_layout(Layout::Interleaved), Some(device), 2), Method::Thomas);
}

#[test]
fn periodic_systems_without_rows() {
    for shape in [Shape::new(3, 0), Shape::new(0, 5)] {
        let systems = Systems::<f64>::new(shape.with_periodic(true), [&[], &[], &[]]).unwrap();
        assert!(Solver::on(systems, None, &Options::default()).unwrap().solve(&[], &mut []).is_ok());
    }
}

#[test]
fn periodic_systems() {
    for n in [1, 2, 3, 4, 5, 33, 200] {
        for layout in [Layout::Contiguous, Layout::Interleaved] {
            let case = Case::<f64>::new(Shape::new(9, n).with_layout(layout).with_periodic(true), 2);
            let places = devices().into_iter().map(Some).chain([None]);
            for device in places {
                let methods: &[Method] = if device.is_some() { &ON_DEVICE } else { &ON_HOST };
                for method in methods {
                    let options = Options::default().with_method(*method);
                    let mut solver = Solver::on(case.systems(), device.as_ref(), &options).unwrap();
                    let mut x = vec![0.0; case.shape.len()];
                    let outcome = solver.solve(&case.d, &mut x).unwrap();
                    assert!(case.error(&x) < 100.0, "{n} rows, {layout}, {method}: {}", case.error(&x));
                    assert_eq!(outcome.repaired, 0, "{n} rows, {method}: {outcome:?}");
                    assert!(outcome.backward_error.is_some() != (*method == Method::Pivoting));
                }
            }
        }
    }
}

/// Three systems: dominant; one whose second pivot vanishes; dominant.
fn with_a_vanishing_pivot() -> Case<f64> {
    let mut case = Case::<f64>::new(Shape::new(3, 6), 2);
    let [a, b, c] = &mut case.arrays;
    let part = 6..12;
    a[part.clone()].copy_from_slice(&[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    b[part.clone()].fill(1.0);
    c[part].copy_from_slice(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    for i in 6..12 {
        let x = |k: usize| if (6..12).contains(&k) { case.x[k] } else { 0.0 };
        case.d[i] = x(i - 1) + x(i) + x(i + 1);
    }
    case
}

#[test]
fn systems_that_need_exchanges_are_repaired() {
    let case = with_a_vanishing_pivot();
    assert!(!case.systems().is_dominant());
    for device in devices() {
        for method in ON_DEVICE {
            let mut solver =
                Solver::on(case.systems(), Some(&device), &Options::default().with_method(method)).unwrap();
            let mut x = vec![0.0; 18];
            let outcome = solver.solve(&case.d, &mut x).unwrap();
            assert!(case.error(&x) < 20.0, "{method}: {x:?}");
            assert!(outcome.repaired <= 1 && outcome.backward_error.unwrap() < 1e-15, "{method}: {outcome:?}");
            assert!(method != Method::Thomas || outcome.repaired == 1);
        }
    }
    let error = Solver::on(case.systems(), None, &options(Method::Thomas)).unwrap().solve(&case.d, &mut [0.0; 18]);
    assert!(matches!(error, Err(Error::ZeroPivot { system: 1, row: 1 })), "{error:?}");
    assert!(case.error(&solved(&case, None, Method::Pivoting)) < 20.0);
}

#[test]
fn zero_pivots_of_interleaved_systems_are_named() {
    let case = with_a_vanishing_pivot();
    let shape = Shape::new(3, 6).with_layout(Layout::Interleaved);
    let turned = |array: &[f64]| (0..18).map(|k| array[k % 3 * 6 + k / 3]).collect::<Vec<f64>>();
    let [a, b, c] = case.arrays.each_ref().map(|array| turned(array));
    let systems = Systems::new(shape, [&a, &b, &c]).unwrap();
    let error = Solver::on(systems, None, &options(Method::Thomas)).unwrap().solve(&turned(&case.d), &mut [0.0; 18]);
    assert!(matches!(error, Err(Error::ZeroPivot { system: 1, row: 1 })), "{error:?}");
}

#[test]
fn singular_systems_are_named() {
    let mut case = with_a_vanishing_pivot();
    (6..12).for_each(|i| case.arrays[1][i] = if i == 9 { 0.0 } else { 1.0 });
    (0..3).for_each(|k| {
        [8, 9, 10].iter().for_each(|&i| {
            if k == 0 && i == 10 || k == 2 && i == 8 {
                case.arrays[k][i] = 0.0
            }
        })
    });
    let device = &devices()[0];
    for (device, method) in [(Some(device), Method::Hybrid), (None, Method::Pivoting), (None, Method::Auto)] {
        let options = Options::default().with_method(method);
        let error = Solver::on(case.systems(), device, &options).unwrap().solve(&case.d, &mut [0.0; 18]);
        assert!(matches!(error, Err(Error::SingularSystem { system: 1, .. })), "{error:?}");
    }
}

#[test]
fn what_is_refused() {
    let mut case = Case::<f64>::new(Shape::new(4, 5), 2);
    let [a, b, c] = &mut case.arrays;
    let refused = |shape: Shape, arrays: [&[f64]; 3]| Systems::new(shape, arrays).unwrap_err().to_string();
    assert!(refused(Shape::new(4, 6), [a, b, c]).contains("a has 20 elements"));
    a[10] = 2.5;
    let message = refused(case.shape, [a, b, c]);
    assert!(message.contains("system 2: a[0] = 2.5e0") && message.contains("periodic"), "{message}");
    assert!(Systems::new(case.shape.with_periodic(true), [a, b, c]).is_ok());
    (a[10], c[19]) = (0.0, -1.0);
    assert!(refused(case.shape, [a, b, c]).contains("system 3: c[4] = -1e0"));
    (c[19], b[7]) = (0.0, f64::NAN);
    assert!(refused(case.shape, [a, b, c]).contains("b of system 1: entry 3"));
    b[7] = 100.0;
    let systems = case.systems();
    let on = |device: Option<&Info>, method| Solver::on(systems, device, &options(method)).err().unwrap().to_string();
    let device = &devices()[0];
    assert!(on(None, Method::Hybrid).contains("thomas, partition and pivoting"));
    assert!(on(Some(device), Method::Pivoting).contains("devices = host"));
    let mut solver = Solver::on(systems, None, &Options::default()).unwrap();
    let error = solver.solve(&case.d[1..], &mut [0.0; 20]).unwrap_err();
    assert!(error.to_string().contains("the right-hand side has 19"), "{error}");
    let long = Case::<f64>::new(Shape::new(1, 1 << 20), 2);
    let message =
        Solver::on(long.systems(), Some(device), &options(Method::CyclicReduction)).err().unwrap().to_string();
    assert!(message.contains("1048576") && message.contains("method = partition"), "{message}");
}

#[test]
fn dominance_by_hand() {
    let is_dominant =
        |a: &[f64], b: &[f64], c: &[f64]| Systems::new(Shape::new(1, b.len()), [a, b, c]).unwrap().is_dominant();
    // −1, 2, −1: more on the diagonal in the first row, and the last
    assert!(is_dominant(&[0.0, -1.0, -1.0], &[2.0; 3], &[-1.0, -1.0, 0.0]));
    // [1 1; 1 1] is singular
    assert!(!is_dominant(&[0.0, 1.0], &[1.0; 2], &[1.0, 0.0]));
    // it is coupled to another row, and still is
    assert!(!is_dominant(&[0.0, 1.0, 0.0], &[1.0, 1.0, 9.0], &[1.0, 0.0, 0.0]));
    // the last two rows are coupled to the first, so that they have more on the diagonal than beside it
    assert!(is_dominant(&[0.0, 1.0, 1.0], &[1.0, 2.0, 1.0], &[0.0, 1.0, 0.0]));
    assert!(!is_dominant(&[0.0, 1.0], &[1.0, 0.0], &[0.0, 0.0]));
    assert!(is_dominant(&[], &[], &[]));
}

#[test]
fn partitions_of_the_host_in_chunks_of_any_size() {
    let case = Case::<f64>::new(Shape::new(1, 97), 2);
    let [a, b, c] = &case.arrays;
    for rows in 1..=100 {
        let mut x = vec![0.0; 97];
        host::one_partitioned([a, b, c, &case.d], &mut x, rows).unwrap();
        assert!(case.error(&x) < 20.0, "chunks of {rows}: {}", case.error(&x));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Systems of any numbers: by residuals.
    #[test]
    fn residuals_of_any_systems(
        n in 1..70_usize,
        systems in 1..6_usize,
        periodic: bool,
        interleaved: bool,
        values in prop::collection::vec(-1.0..1.0_f64, 4 * 70 * 6),
    ) {
        let layout = if interleaved { Layout::Interleaved } else { Layout::Contiguous };
        let shape = Shape::new(systems, n).with_layout(layout).with_periodic(periodic);
        let mut arrays = values.chunks(70 * 6).map(|part| part[..shape.len()].to_vec()).collect::<Vec<_>>();
        if !periodic {
            for system in 0..systems {
                arrays[0][shape.at(system, 0)] = 0.0;
                arrays[2][shape.at(system, n - 1)] = 0.0;
            }
        }
        let [a, b, c, d] = &arrays[..] else { unreachable!() };
        let device = &devices()[0];
        for device in [None, Some(device)] {
            let mut solver = Solver::on(Systems::new(shape, [a, b, c]).unwrap(), device, &Options::default()).unwrap();
            let mut x = vec![0.0; shape.len()];
            solver.solve(d, &mut x).unwrap();
            for system in 0..systems {
                let at = |row: usize| shape.at(system, row);
                let (mut worst, mut scale) = (0.0_f64, 0.0_f64);
                for row in 0..n {
                    let terms = [
                        a[at(row)] * x[at((row + n - 1) % n)],
                        b[at(row)] * x[at(row)],
                        c[at(row)] * x[at((row + 1) % n)],
                    ];
                    worst = worst.max((d[at(row)] - terms.iter().sum::<f64>()).abs());
                    scale = scale.max(d[at(row)].abs() + terms.iter().map(|t| t.abs()).sum::<f64>());
                }
                prop_assert!(worst <= 3e-14 * scale, "{worst:e} beside {scale:e}");
            }
        }
    }
}
