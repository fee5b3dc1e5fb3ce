//! Against dense elimination, and by residuals.

use proptest::prelude::*;

use super::*;
use crate::error::Error;

/// Numbers between −1 and 1, as if by chance.
fn numbers(count: usize, salt: u64) -> Vec<f64> {
    let number = |i: u64| {
        let mut v = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD1B5_4A32_D192_ED03);
        v = (v ^ v >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((v ^ v >> 32) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    (0..count as u64).map(number).collect()
}

/// A band of such numbers, whatever is on the diagonal.
fn band(n: usize, lower: usize, upper: usize, salt: u64) -> Band<f64> {
    let mut band = Band::zeros(n, lower, upper);
    let (lower, upper) = band.widths();
    let values = numbers(n * n, salt);
    for i in 0..n {
        for j in i.saturating_sub(lower)..n.min(i + upper + 1) {
            band.set(i, j, values[i * n + j]);
        }
    }
    band
}

/// ‖b − A x‖ over ‖A‖ ‖x‖, by the largest elements and rows.
fn error(a: &Band<f64>, x: &[f64], b: &[f64]) -> f64 {
    let norm = |v: &[f64]| v.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let r: Vec<f64> = a.times(x).iter().zip(b).map(|(ax, b)| b - ax).collect();
    let (lower, upper) = a.widths();
    norm(&r) / ((lower + upper + 1) as f64 * norm(x)).max(1e-300)
}

#[test]
fn a_matrix_by_hand() {
    // [0 2; 3 1] needs an exchange
    let mut a = Band::zeros(2, 1, 1);
    a.set(0, 1, 2.0);
    a.set(1, 0, 3.0);
    a.set(1, 1, 1.0);
    let mut x = [4.0, 5.0];
    a.factorise().unwrap().solve(&mut x);
    assert_eq!(x, [1.0, 2.0]);
    assert_eq!((a.get(0, 0), a.get(0, 1), a.get(0, 5), a.order()), (0.0, 2.0, 0.0, 2));
    assert_eq!(a.times(&[1.0, 2.0]), [4.0, 5.0]);
    // no rows, and a row
    Band::<f64>::zeros(0, 2, 2).factorise().unwrap().solve(&mut []);
    let mut one = Band::zeros(1, 4, 4);
    assert_eq!(one.widths(), (0, 0));
    one.set(0, 0, 4.0_f32);
    let mut x = [2.0];
    one.factorise().unwrap().solve(&mut x);
    assert_eq!(x, [0.5]);
}

#[test]
fn singular_matrices_are_named() {
    let mut a = band(9, 1, 1, 5);
    (3..6).for_each(|i| a.set(i, 4, 0.0));
    assert!(matches!(a.factorise(), Err(Error::SingularSystem { system: 0, row: 4 })));
    let mut x = numbers(27, 7);
    let bands = [band(9, 1, 1, 1), a.clone(), a];
    assert!(matches!(solve_all(&bands, &mut x), Err(Error::SingularSystem { system: 1, row: 4 })));
    // a pivot in its place
    let factor = BandFactor::new(&bands[1], Some(1e-8)).unwrap();
    assert_eq!(factor.replaced(), [4]);
}

#[test]
fn batches_of_bands() {
    let bands: Vec<Band<f64>> = (0..40).map(|k| band(k, k % 5, k % 4, k as u64)).collect();
    let b = numbers(bands.iter().map(Band::order).sum(), 3);
    let mut x = b.clone();
    solve_all(&bands, &mut x).unwrap();
    let mut first = 0;
    for a in &bands {
        let part = first..first + a.order();
        assert!(error(a, &x[part.clone()], &b[part]) < 1e-14, "order {}", a.order());
        first += a.order();
    }
}

#[test]
fn tridiagonal_systems_that_need_exchanges() {
    for n in 0..130 {
        for salt in 0..4 {
            let mut a = band(n, 1, 1, salt);
            if salt > 1 {
                // a pivot that vanishes, or does not at once
                (0..n).step_by(3).for_each(|i| a.set(i, i, if salt == 2 { 0.0 } else { 1e-17 }));
            }
            let at = |i: usize, j: usize| a.get(i, j);
            let row = |i: usize| [if i == 0 { 0.0 } else { at(i, i - 1) }, at(i, i), at(i, i + 1)];
            let b = numbers(n, 9);
            let mut x = b.clone();
            match eliminate(row, &mut x, &mut Work::default()) {
                Ok(()) => assert!(n == 0 || error(&a, &x, &b) < 1e-14, "order {n}, {salt}"),
                // of odd order with zeros, all of the diagonal
                Err(row) => assert!(salt == 2 && n == 1, "row {row} of {n}, {salt}"),
            }
        }
    }
    // [1 1; 1 1]
    assert_eq!(eliminate(|i| [i as f64, 1.0, 1.0 - i as f64], &mut [1.0, 2.0], &mut Work::default()), Err(1));
}

#[test]
fn blocks_of_every_order() {
    for size in 1..=LARGEST_BLOCK {
        for blocks in [1, 2, 3, 10, 33] {
            let (systems, len) = (3, size * size);
            let count = systems * blocks * len;
            let [mut a, mut b, mut c] = [1, 2, 3].map(|salt| numbers(count, salt));
            for k in 0..systems * blocks {
                let block = k * len..(k + 1) * len;
                if k % blocks == 0 {
                    a[block.clone()].fill(0.0);
                }
                if k % blocks == blocks - 1 {
                    c[block.clone()].fill(0.0);
                }
                // dominant, with the large entries beside the diagonal, so that rows have to be exchanged
                (0..size).for_each(|i| b[k * len + i * size + (i + 1) % size] += 4.0 * size as f64);
            }
            let rows = blocks * size;
            let d = numbers(systems * rows, 4);
            let mut x = d.clone();
            BlockTridiagonal::new(systems, blocks, size, [&a, &b, &c]).unwrap().solve(&mut x).unwrap();
            for (row, d) in d.iter().enumerate() {
                let (system, i, k) = (row / rows, row % rows / size, row % size);
                let of = |array: &[f64], neighbour: usize| {
                    let first = (system * blocks + i) * len + k * size;
                    let x = &x[system * rows + neighbour * size..][..size];
                    array[first..first + size].iter().zip(x).map(|(a, x)| a * x).sum::<f64>()
                };
                let left = if i > 0 { of(&a, i - 1) } else { 0.0 };
                let right = if i + 1 < blocks { of(&c, i + 1) } else { 0.0 };
                assert!((d - left - of(&b, i) - right).abs() < 1e-13, "{size}, {blocks}");
            }
        }
    }
}

#[test]
fn blocks_that_are_refused() {
    let ones = [1.0; 8];
    let new = |blocks, size, a: &[f64]| BlockTridiagonal::new(1, blocks, size, [a, &ones[..8], &ones[..8]]).err();
    assert!(new(2, 2, &ones).unwrap().to_string().contains("block 0 of A is not 0"));
    assert!(new(2, 9, &ones).unwrap().to_string().contains("order 9"));
    assert!(new(3, 2, &ones).unwrap().to_string().contains("8 elements"));
    // the second block is singular
    let (zero, mut b) = ([0.0; 8], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let error = BlockTridiagonal::new(1, 2, 2, [&zero, &b, &zero]).unwrap().solve(&mut [1.0; 4]).unwrap_err();
    assert!(matches!(error, Error::SingularSystem { system: 0, row: 3 }));
    b[7] = 2.0;
    let mut x = [1.0, 2.0, 3.0, 4.0];
    BlockTridiagonal::new(1, 2, 2, [&zero, &b, &zero]).unwrap().solve(&mut x).unwrap();
    assert_eq!(x, [1.0, 2.0, 2.0, 1.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bands_of_any_widths(n in 1..60_usize, lower in 0..9_usize, upper in 0..9_usize, salt in 0..1000_u64) {
        let a = band(n, lower, upper, salt);
        let b = numbers(n, salt + 1);
        let mut x = b.clone();
        a.factorise().unwrap().solve(&mut x);
        prop_assert!(error(&a, &x, &b) < 1e-13, "{:e}", error(&a, &x, &b));
    }
}
