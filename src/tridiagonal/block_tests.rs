//! Block tridiagonal systems and bands on the host and on devices, whose residuals are formed here.

use proptest::prelude::*;

use super::tests::devices;
use super::*;
use crate::banded::{Band, LARGEST_BLOCK};
use crate::device::Info;
use crate::error::Error;
use crate::real::Real;

/// A number between −1 and 1, as if by chance.
fn number(k: usize, salt: usize) -> f64 {
    let mut v = ((k * 16 + salt + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    v = (v ^ v >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((v ^ v >> 32) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Systems that are block diagonally dominant, with the large numbers beside the diagonals of blocks, so that rows have to be exchanged there.
struct Case<T> {
    shape: BlockShape,
    arrays: [Vec<T>; 3],
    d: Vec<T>,
}

impl<T: Real> Case<T> {
    fn new(shape: BlockShape, salt: usize) -> Self {
        let BlockShape { systems, blocks, order, .. } = shape;
        let (square, each) = (order * order, blocks * order * order);
        let [len, rows] = shape.lens();
        let mut arrays = [0; 3].map(|_| vec![T::default(); len]);
        for (system, k) in (0..systems).flat_map(|system| (0..each).map(move |k| (system, k))) {
            let (block, r, c) = (k / square, k % square / order, k % order);
            let at = shape.at(system, k, each);
            for (which, array) in arrays.iter_mut().enumerate() {
                let is_outside = which == 0 && block == 0 || which == 2 && block + 1 == blocks;
                let beyond = if which == 1 && c == (r + 1) % order { 4.0 * order as f64 } else { 0.0 };
                let value = if is_outside { 0.0 } else { number(system * each + k, 3 * salt + which) + beyond };
                array[at] = T::from_f64(value);
            }
        }
        Self { shape, arrays, d: (0..rows).map(|k| T::from_f64(number(k, 99 + salt))).collect() }
    }

    fn systems(&self) -> BlockSystems<'_, T> {
        let [a, b, c] = &self.arrays;
        BlockSystems::new(self.shape, [a, b, c]).unwrap()
    }

    /// The largest |d − A x|, by plain loops.
    fn residual(&self, x: &[T]) -> f64 {
        let BlockShape { systems, blocks, order, .. } = self.shape;
        let (rows, each) = (blocks * order, blocks * order * order);
        let mut most = 0.0_f64;
        for (system, row) in (0..systems).flat_map(|system| (0..rows).map(move |row| (system, row))) {
            let mut r = self.d[self.shape.at(system, row, rows)].to_f64();
            for (which, array) in self.arrays.iter().enumerate() {
                for k in 0..order {
                    let column = (row / order + which) * order + k;
                    if column < order || column - order >= rows {
                        continue;
                    }
                    let a = array[self.shape.at(system, row * order + k, each)];
                    r -= a.to_f64() * x[self.shape.at(system, column - order, rows)].to_f64();
                }
            }
            most = most.max(if r.is_nan() { f64::INFINITY } else { r.abs() });
        }
        most
    }
}

fn solved<T: Real>(case: &Case<T>, device: Option<&Info>) -> Vec<T> {
    let mut solver = BlockSolver::on(case.systems(), device).unwrap();
    let mut x = vec![T::from_f64(f64::NAN); case.d.len()];
    // twice, so that what is left of the first solve is seen to be of no matter
    solver.solve(&vec![T::from_f64(1.0); x.len()], &mut x).unwrap();
    solver.solve(&case.d, &mut x).unwrap();
    x
}

fn all_orders<T: Real>(orders: impl Iterator<Item = usize>, sizes: &[[usize; 2]], epsilon: f64) {
    for order in orders {
        for &[systems, blocks] in sizes {
            for layout in [Layout::Contiguous, Layout::Interleaved] {
                let case = Case::<T>::new(BlockShape::new(systems, blocks, order).with_layout(layout), 1);
                let host = solved(&case, None);
                let what = format!("{systems} systems of {blocks} blocks of order {order}, {layout}");
                assert!(case.residual(&host) < 200.0 * epsilon, "{what} on the host: {}", case.residual(&host));
                for device in devices().iter().filter(|device| device.has_f64 || T::CL_NAME == "float") {
                    let x = solved(&case, Some(device));
                    assert!(case.residual(&x) < 200.0 * epsilon, "{what}: {}", case.residual(&x));
                    let differ = x.iter().zip(&host).fold(0.0_f64, |m, (x, h)| m.max((x.to_f64() - h.to_f64()).abs()));
                    assert!(differ < 100.0 * epsilon, "{what}: {differ}");
                    let errors = case.systems().backward_errors(&case.d, &x);
                    assert!(
                        errors.len() == systems && errors.iter().all(|&e| e < 10.0 * epsilon),
                        "{what}: {errors:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn blocks_of_every_order_on_devices() {
    all_orders::<f64>(1..=LARGEST_BLOCK, &[[0, 3], [3, 0], [1, 1], [63, 2], [65, 7], [130, 3]], f64::EPSILON);
}

#[test]
fn blocks_in_single_precision() {
    all_orders::<f32>([1, 2, 5].into_iter(), &[[1, 4], [64, 3], [17, 16]], f32::EPSILON.into());
}

/// [0 2; 1 0] in the middle of ones: x by hand.
#[test]
fn blocks_by_hand() {
    let zero = [0.0; 8];
    let b = [0.0, 2.0, 1.0, 0.0, 1.0, 0.0, 0.0, 4.0];
    let a = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
    for device in devices().iter().map(Some).chain([None]) {
        let systems = BlockSystems::new(BlockShape::new(1, 2, 2), [&a, &b, &zero]).unwrap();
        let mut x = [0.0; 4];
        BlockSolver::on(systems, device).unwrap().solve(&[6.0, 5.0, 7.0, 11.0], &mut x).unwrap();
        assert_eq!(x, [5.0, 3.0, 2.0, 2.0]);
    }
}

fn band(n: usize, (lower, upper): (usize, usize), salt: usize) -> Band<f64> {
    let mut band = Band::zeros(n, lower, upper);
    let (lower, upper) = band.widths();
    for i in 0..n {
        for j in i.saturating_sub(lower)..n.min(i + upper + 1) {
            let beyond = if i == j { 1.5 * (lower + upper) as f64 + 1.0 } else { 0.0 };
            band.set(i, j, number(i * n + j, salt) + beyond);
        }
    }
    band
}

/// The largest error of bands' solutions, as a part of the largest x.
fn error_of_bands(bands: &[Band<f64>], device: Option<&Info>) -> f64 {
    let n = bands[0].order();
    let x: Vec<f64> = (0..bands.len() * n).map(|k| number(k, 5)).collect();
    let d: Vec<f64> = bands.iter().zip(x.chunks(n.max(1))).flat_map(|(band, x)| band.times(x)).collect();
    let mut found = vec![f64::NAN; d.len()];
    let systems = BlockSystems::of_bands(bands).unwrap();
    assert_eq!(systems.len(), bands.len() * n);
    BlockSolver::on(systems.clone(), device).unwrap().solve(&d, &mut found).unwrap();
    assert!(systems.backward_errors(&d, &found).iter().all(|&e| e < 1e-14));
    found.iter().zip(&x).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

#[test]
fn bands_on_devices() {
    for device in devices().iter().filter(|device| device.has_f64).map(Some).chain([None]) {
        for n in [1, 2, 3, 8, 30, 101] {
            for widths in [(0, 0), (1, 1), (2, 2), (3, 1), (0, 5), (8, 8)] {
                let bands: Vec<_> = (0..7).map(|salt| band(n, widths, salt)).collect();
                let error = error_of_bands(&bands, device);
                assert!(error < 1e-13, "{n} rows, widths {widths:?}: {error}");
            }
        }
        // those of one batch may be of several widths
        let error = error_of_bands(&[band(20, (1, 0), 1), band(20, (2, 3), 2), band(20, (0, 0), 3)], device);
        assert!(error < 1e-13, "{error}");
    }
}

#[test]
fn blocks_without_a_pivot_are_named() {
    for device in devices().iter().map(Some).chain([None]) {
        for layout in [Layout::Contiguous, Layout::Interleaved] {
            let mut case = Case::<f32>::new(BlockShape::new(70, 3, 2).with_layout(layout), 4);
            // the first block of systems 66 and 67 is [1 1; 1 1]
            for (system, k) in [66, 67].into_iter().flat_map(|system| (0..4).map(move |k| (system, k))) {
                case.arrays[1][case.shape.at(system, k, 12)] = 1.0;
            }
            let mut x = vec![0.0; case.d.len()];
            let found = BlockSolver::on(case.systems(), device).unwrap().solve(&case.d, &mut x);
            assert!(matches!(found, Err(Error::SingularSystem { system: 66, row: 1 })), "{found:?}");
        }
    }
}

#[test]
fn blocks_and_bands_that_are_refused() {
    let (ones, zeros) = ([1.0; 8], [0.0; 8]);
    let new =
        |shape: BlockShape, [a, b, c]: [&[f64]; 3]| BlockSystems::new(shape, [a, b, c]).err().unwrap().to_string();
    let shape = BlockShape::new(1, 2, 2);
    for layout in [Layout::Contiguous, Layout::Interleaved] {
        let shape = shape.with_layout(layout);
        assert!(new(shape, [&ones, &ones, &zeros]).contains("block 0 of A is not 0"));
        assert!(new(shape, [&zeros, &ones, &ones]).contains("block 1 of C is not 0"));
    }
    assert!(new(BlockShape::new(1, 2, 9), [&zeros; 3]).contains("order 9"));
    assert!(new(BlockShape::new(3, 2, 2), [&zeros; 3]).contains("8 elements"));
    let mut bad = ones;
    bad[6] = f64::NAN;
    // interleaved: number 3 of the first of two systems
    let two = BlockShape::new(2, 1, 2).with_layout(Layout::Interleaved);
    assert!(new(two, [&zeros, &bad, &zeros]).contains("block 0 of B of system 0"));
    let of_bands = |bands: &[Band<f64>]| BlockSystems::of_bands(bands).err().unwrap().to_string();
    assert!(of_bands(&[band(20, (9, 1), 1)]).contains("9 diagonals"));
    assert!(of_bands(&[band(20, (1, 1), 1), band(21, (1, 1), 1)]).contains("band 1 has 21 rows"));
    let mut solver = BlockSolver::on(BlockSystems::new(shape, [&zeros, &ones, &zeros]).unwrap(), None).unwrap();
    assert!(matches!(solver.solve(&[1.0; 4], &mut [0.0; 3]), Err(Error::SizeMismatch { expected: 4, found: 3, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_bands(n in 1..50_usize, lower in 0..9_usize, upper in 0..9_usize, count in 1..20_usize, salt in 0..1000_usize) {
        let bands: Vec<_> = (0..count).map(|k| band(n, (lower, upper), k + salt)).collect();
        let device = devices().into_iter().find(|device| device.has_f64);
        let error = error_of_bands(&bands, device.as_ref());
        prop_assert!(error < 1e-12, "{error}");
    }
}
