//! From the bytes of a file to numbers of this machine.

use std::convert::Infallible;

use super::header::Dtype;

/// Converts `bytes`, some elements of `N` bytes each, in the byte order of `dtype`.
///
/// `convert` gets little-endian bytes. Where it fails, so does this, with the position in `bytes`.
fn each<const N: usize, T, E>(
    dtype: &Dtype,
    bytes: &[u8],
    to: &mut [T],
    convert: impl Fn([u8; N]) -> Result<T, E>,
) -> Result<(), (usize, E)> {
    let (elements, _) = bytes.as_chunks::<N>();
    for (k, (&element, to)) in elements.iter().zip(to).enumerate() {
        let mut element = element;
        if dtype.big_endian {
            element.reverse();
        }
        *to = convert(element).map_err(|e| (k, e))?;
    }
    Ok(())
}

/// Whether [`floats`] knows the type.
pub(super) fn is_number(dtype: &Dtype) -> bool {
    matches!((dtype.kind, dtype.size), (b'b', 1) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'f', 4 | 8) | (b'c', 8 | 16))
}

/// Whether [`whole`] knows the type.
pub(super) fn is_integer(dtype: &Dtype) -> bool {
    matches!((dtype.kind, dtype.size), (b'i' | b'u', 1 | 2 | 4 | 8))
}

/// Converts numbers to the nearest doubles, complex ones to two each.
pub(super) fn floats(dtype: &Dtype, bytes: &[u8], to: &mut [f64]) {
    let size = if dtype.kind == b'c' { dtype.size / 2 } else { dtype.size };
    let done: Result<(), (usize, Infallible)> = match (dtype.kind, size) {
        (b'f' | b'c', 8) => each(dtype, bytes, to, |b| Ok(f64::from_le_bytes(b))),
        (b'f' | b'c', _) => each(dtype, bytes, to, |b| Ok(f32::from_le_bytes(b).into())),
        (b'i', 1) => each(dtype, bytes, to, |b| Ok(i8::from_le_bytes(b).into())),
        (b'i', 2) => each(dtype, bytes, to, |b| Ok(i16::from_le_bytes(b).into())),
        (b'i', 4) => each(dtype, bytes, to, |b| Ok(i32::from_le_bytes(b).into())),
        (b'i', _) => each(dtype, bytes, to, |b| Ok(i64::from_le_bytes(b) as f64)),
        (b'u', 1) => each(dtype, bytes, to, |b| Ok(u8::from_le_bytes(b).into())),
        (b'u', 2) => each(dtype, bytes, to, |b| Ok(u16::from_le_bytes(b).into())),
        (b'u', 4) => each(dtype, bytes, to, |b| Ok(u32::from_le_bytes(b).into())),
        (b'u', _) => each(dtype, bytes, to, |b| Ok(u64::from_le_bytes(b) as f64)),
        _ => each(dtype, bytes, to, |[b]| Ok(f64::from(u8::from(b != 0)))),
    };
    let Ok(()) = done;
}

/// Converts integers to those of another type; one that it can't hold is an error, with its position
/// and value, the latter as near as 64 signed bits come.
pub(super) fn whole<T: TryFrom<i64>>(dtype: &Dtype, bytes: &[u8], to: &mut [T]) -> Result<(), (usize, i64)> {
    let fit = |n: i64| T::try_from(n).map_err(|_| n);
    match (dtype.kind, dtype.size) {
        (b'i', 1) => each(dtype, bytes, to, |b| fit(i8::from_le_bytes(b).into())),
        (b'i', 2) => each(dtype, bytes, to, |b| fit(i16::from_le_bytes(b).into())),
        (b'i', 4) => each(dtype, bytes, to, |b| fit(i32::from_le_bytes(b).into())),
        (b'i', _) => each(dtype, bytes, to, |b| fit(i64::from_le_bytes(b))),
        (_, 1) => each(dtype, bytes, to, |b| fit(u8::from_le_bytes(b).into())),
        (_, 2) => each(dtype, bytes, to, |b| fit(u16::from_le_bytes(b).into())),
        (_, 4) => each(dtype, bytes, to, |b| fit(u32::from_le_bytes(b).into())),
        _ => each(dtype, bytes, to, |b| fit(i64::try_from(u64::from_le_bytes(b)).unwrap_or(i64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dtype(kind: u8, size: usize, big_endian: bool) -> Dtype {
        Dtype { big_endian, kind, size, name: String::new() }
    }

    #[test]
    fn every_type_in_both_orders() {
        macro_rules! check {
            ($type:ty, $kind:literal, $($value:expr),+) => {
                for big in [false, true] {
                    let values: &[$type] = &[$($value),+];
                    let bytes = values.iter().flat_map(|v| if big { v.to_be_bytes() } else { v.to_le_bytes() });
                    let bytes: Vec<u8> = bytes.collect();
                    let dtype = dtype($kind, size_of::<$type>(), big);
                    let mut to = vec![0.0; values.len()];
                    assert!(is_number(&dtype));
                    floats(&dtype, &bytes, &mut to);
                    assert_eq!(to, values.iter().map(|&v| v as f64).collect::<Vec<_>>());
                    if is_integer(&dtype) {
                        let mut to = vec![0i64; values.len()];
                        whole(&dtype, &bytes, &mut to).unwrap();
                        assert_eq!(to, values.iter().map(|&v| v as i64).collect::<Vec<_>>());
                    }
                }
            };
        }
        check!(i8, b'i', 0, 1, i8::MIN, i8::MAX);
        check!(i16, b'i', 0, 1, i16::MIN, i16::MAX);
        check!(i32, b'i', 0, 1, i32::MIN, i32::MAX);
        check!(i64, b'i', 0, 1, i64::MIN, i64::MAX);
        check!(u8, b'u', 0, 1, u8::MAX);
        check!(u16, b'u', 0, 1, u16::MAX);
        check!(u32, b'u', 0, 1, u32::MAX);
        check!(u64, b'u', 0, 1, i64::MAX as u64);
        check!(f32, b'f', 0.0, -1.5, f32::MAX, f32::MIN_POSITIVE);
        check!(f64, b'f', 0.0, -1.5, f64::MAX, 5e-324);
    }

    #[test]
    fn complex_numbers_and_truth_values() {
        let mut two = [9.0; 2];
        let bytes = [1.5f32.to_be_bytes(), (-2f32).to_be_bytes()].concat();
        floats(&dtype(b'c', 8, true), &bytes, &mut two);
        assert_eq!(two, [1.5, -2.0]);
        let bytes = [1.5f64.to_le_bytes(), (-2f64).to_le_bytes()].concat();
        floats(&dtype(b'c', 16, false), &bytes, &mut two);
        assert_eq!(two, [1.5, -2.0]);
        floats(&dtype(b'b', 1, false), &[0, 1], &mut two);
        assert_eq!(two, [0.0, 1.0]);
    }

    #[test]
    fn what_does_not_fit() {
        let mut to = [0u32; 2];
        let bytes = |n: i64| [1i64.to_le_bytes(), n.to_le_bytes()].concat();
        assert_eq!(whole(&dtype(b'i', 8, false), &bytes(-7), &mut to), Err((1, -7)));
        assert_eq!(whole(&dtype(b'u', 8, false), &bytes(-7), &mut to), Err((1, i64::MAX)));
        assert_eq!(whole(&dtype(b'i', 8, false), &bytes(1 << 32), &mut to), Err((1, 1 << 32)));
        for (kind, size) in [(b'f', 2), (b'f', 16), (b'c', 32), (b'O', 8), (b'M', 8), (b'S', 3), (b'i', 3), (b'b', 2)] {
            assert!(!is_number(&dtype(kind, size, false)) && !is_integer(&dtype(kind, size, false)));
        }
    }
}
