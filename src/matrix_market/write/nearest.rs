//! The decimal number of so many digits that is nearest to a double.
//!
//! v · 10^q, with q such that the number before the point has the digits that are wanted, by one product of v's 64 bits
//! with 128 bits of 5^q. These are a little too small or too large, and so is the product. It therefore decides unless
//! what is behind the point is one half up to that error; exact ties, above all, are left to a slower way.

use crate::matrix_market::decimal::power_of_five;

/// The largest number of significant digits that a double may need.
pub(super) const MAX_DIGITS: usize = 17;

/// A positive decimal number d.ddd · 10^exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    /// Its digits.
    pub(super) digits: u64,
    /// Where the point is.
    pub(super) exponent: i32,
}

/// The decimal number of `digits` significant digits that is nearest to a positive double; `None` if this can't tell:
/// between two of them, for a size out of the ordinary (below 10⁻⁴⁷ or beyond 10⁶³), and for more than 17 digits.
#[inline]
pub(super) fn nearest_decimal(value: f64, digits: usize) -> Option<Decimal> {
    let (bits, exponent) = (value.to_bits(), (value.to_bits() >> 52) as i32);
    if !(1..2047).contains(&exponent) || !(1..=MAX_DIGITS).contains(&digits) {
        return None;
    }
    // value = mantissa · 2^(exponent - 1086)
    let mantissa = u128::from(bits << 11 | 1 << 63);
    let too_many = 10u64.pow(digits as u32);
    // ⌊log₁₀⌋ of the power of two below the value: that of the value, or one less
    let mut q = digits as i32 - 1 - (((exponent - 1023) * 78_913) >> 18);
    let (scaled, shift) = loop {
        let power = power_of_five(q)?;
        let scaled = mantissa * (power >> 64) + ((mantissa * (power & u128::from(u64::MAX))) >> 64);
        // 10^q = power · 2^(⌊log₂ 10^q⌋ - 127), of whose product with the value 64 bits are dropped
        let shift = 1149 - exponent - ((q * 217_706) >> 16);
        if scaled >> shift < u128::from(too_many) {
            break (scaled, shift);
        }
        q -= 1;
    };
    // the power is wrong by less than one, the product's upper 128 bits so by less than two
    let (fraction, half) = (scaled & ((1 << shift) - 1), 1 << (shift - 1));
    if fraction.abs_diff(half) < 2 {
        return None;
    }
    let rounded = (scaled >> shift) as u64 + u64::from(fraction > half);
    let exponent = digits as i32 - 1 - q;
    Some(if rounded == too_many {
        Decimal { digits: too_many / 10, exponent: exponent + 1 }
    } else {
        Decimal { digits: rounded, exponent }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether it is what the standard library makes of it, if it is anything.
    fn decided(value: f64, digits: usize) -> bool {
        let Some(Decimal { digits: d, exponent }) = nearest_decimal(value, digits) else { return false };
        let exact = format!("{value:.*e}", digits - 1);
        assert_eq!(format!("{d}e{exponent}"), exact.replace('.', ""), "{value:e} to {digits}");
        true
    }

    #[test]
    fn by_hand() {
        let of = |value, digits| nearest_decimal(value, digits).map(|found| (found.digits, found.exponent));
        assert_eq!(of(1.0, 1), Some((1, 0)));
        assert_eq!(of(0.1, 17), Some((10_000_000_000_000_001, -1)));
        assert_eq!(of(99.96, 3), Some((100, 2)));
        assert_eq!(of(1e22, 3), Some((100, 22)));
        assert_eq!(of(1e23, 17), Some((99_999_999_999_999_992, 22)));
        for tie in [0.5, 2.5, 0.125, 12.5, 9.5, 99.5] {
            let digits = tie.to_string().replace('.', "").trim_start_matches('0').len();
            assert!(of(tie, digits).is_some(), "{tie}");
            assert!(digits == 1 || of(tie, digits - 1).is_none(), "{tie}");
        }
        assert_eq!(of(9_822_875_456_514_550.0, 14), None, "a tie");
        for none in [0.0, f64::from_bits(1), 1e-300, f64::MAX, f64::INFINITY, f64::NAN] {
            assert_eq!(of(none, 5), None);
        }
        assert_eq!((of(1.5, 0), of(1.5, 18)), (None, None));
    }

    #[test]
    fn powers_of_two_and_ten_and_their_neighbours() {
        let powers = (-160..=212).map(|k| 2f64.powi(k)).chain((-47..=63).map(|k| format!("1e{k}").parse().unwrap()));
        for power in powers {
            for value in [power.next_down(), power, power.next_up()] {
                for digits in 1..=MAX_DIGITS {
                    decided(value, digits);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn any_number(bits in 0..f64::INFINITY.to_bits(), digits in 1..=MAX_DIGITS) {
            decided(f64::from_bits(bits), digits);
        }

        /// A number of 53 bits lies between two decimals of at most 14 digits, and in the middle only if it is a large integer.
        #[test]
        fn usual_numbers(bits in 1e-47f64.to_bits()..1e63f64.to_bits(), digits in 1usize..=14) {
            let value = f64::from_bits(bits | 1);
            let integer = format!("{value:.0}");
            let is_tie = value.fract() == 0.0 && integer.len() > digits && integer[digits..].trim_end_matches('0') == "5";
            prop_assert!(decided(value, digits) || is_tie);
        }
    }
}
