//! The double nearest to a decimal number w · 10^q.
//!
//! The algorithm of Eisel and Lemire: D. Lemire, Number parsing at a gigabyte per second, Software: Practice and
//! Experience 51 (2021), doi 10.1002/spe.2984. One product of 64 × 64 bits, sometimes two, with a power of five that is
//! tabulated to 128 bits. It knows when those bits do not decide, which is rare; a slower parser does then.

/// The powers of five that are tabulated: those of numbers that people write.
const MIN_Q: i32 = -64;
const MAX_Q: i32 = 63;
const COUNT: usize = (MAX_Q - MIN_Q + 1) as usize;

/// The 128 leading bits of 5^q, as upper and lower half: rounded down for q ≥ 0, up for q < 0.
static POWERS_OF_FIVE: [(u64, u64); COUNT] = powers_of_five();

/// The double nearest to w · 10^q, ties to even; `None` if this can't tell, or if it is no normal number, or if q is out
/// of the ordinary.
#[inline(always)]
pub(super) fn nearest_double(w: u64, q: i32) -> Option<f64> {
    if w == 0 {
        return Some(0.0);
    }
    let &(upper, lower) = POWERS_OF_FIVE.get(q.wrapping_sub(MIN_Q) as usize)?;
    let shift = w.leading_zeros();
    let w = w << shift;
    let product = u128::from(w) * u128::from(upper);
    let (mut high, mut low) = ((product >> 64) as u64, product as u64);
    if high & 0x1ff == 0x1ff {
        // the lower half of the power may carry into the bits that are kept
        let more = (u128::from(w) * u128::from(lower)) >> 64;
        let (sum, carry) = low.overflowing_add(more as u64);
        low = sum;
        high += u64::from(carry);
        if low == u64::MAX && !(-27..=55).contains(&q) {
            return None;
        }
    }
    // 53 bits of mantissa and one to round by
    let top = (high >> 63) as u32;
    let dropped = top + 9;
    let mut mantissa = high >> dropped;
    let exponent = ((q * 217_706) >> 16) + 63 + top as i32 - shift as i32 + 1023;
    if !(1..2046).contains(&exponent) {
        return None;
    }
    if low <= 1 && (-4..=23).contains(&q) && mantissa & 3 == 1 && mantissa << dropped == high {
        mantissa &= !1; // exactly between two doubles: the even one
    }
    // rounding up may carry into the exponent, where it belongs
    let rounded = (mantissa + (mantissa & 1)) >> 1;
    Some(f64::from_bits(((exponent as u64 - 1) << 52) + rounded))
}

/// The 128 leading bits of 5^q, wrong by less than one in the last of them; `None` if q is out of the ordinary.
#[inline(always)]
pub(super) fn power_of_five(q: i32) -> Option<u128> {
    let &(upper, lower) = POWERS_OF_FIVE.get(q.wrapping_sub(MIN_Q) as usize)?;
    Some(u128::from(upper) << 64 | u128::from(lower))
}

/// A natural number of 320 bits, the lowest 32 first.
type Natural = [u32; 10];

const fn powers_of_five() -> [(u64, u64); COUNT] {
    let mut table = [(0, 0); COUNT];
    let mut power: Natural = [0; 10];
    power[0] = 1;
    let mut n = 0;
    while n <= MAX_Q || n <= -MIN_Q {
        if n <= MAX_Q {
            table[(n - MIN_Q) as usize] = leading_bits(&power);
        }
        if n > 0 && n <= -MIN_Q {
            table[(-n - MIN_Q) as usize] = reciprocal(&power);
        }
        let mut carry = 0;
        let mut k = 0;
        while k < power.len() {
            let product = power[k] as u64 * 5 + carry;
            power[k] = product as u32;
            carry = product >> 32;
            k += 1;
        }
        n += 1;
    }
    table
}

const fn bit(n: &Natural, k: u32) -> u64 {
    ((n[(k / 32) as usize] >> (k % 32)) & 1) as u64
}

const fn bit_length(n: &Natural) -> u32 {
    let mut length = 320;
    while bit(n, length - 1) == 0 {
        length -= 1;
    }
    length
}

/// The 128 leading bits, zeros behind the last one.
const fn leading_bits(n: &Natural) -> (u64, u64) {
    let length = bit_length(n);
    let mut bits = 0u128;
    let mut k = 0;
    while k < 128 {
        bits <<= 1;
        if k < length {
            bits |= bit(n, length - 1 - k) as u128;
        }
        k += 1;
    }
    ((bits >> 64) as u64, bits as u64)
}

/// The 128 leading bits of 1 / n, rounded up, by long division.
const fn reciprocal(n: &Natural) -> (u64, u64) {
    // of 2^length / n, which lies between 1 and 2, the remainder before the first bit is a power of two below n
    let mut remainder: Natural = [0; 10];
    let length = bit_length(n);
    remainder[((length - 1) / 32) as usize] = 1 << ((length - 1) % 32);
    let mut bits = 0u128;
    let mut k = 0;
    while k < 128 {
        let mut carry = 0;
        let mut i = 0;
        while i < remainder.len() {
            let double = ((remainder[i] as u64) << 1) | carry;
            remainder[i] = double as u32;
            carry = double >> 32;
            i += 1;
        }
        bits <<= 1;
        let (difference, is_negative) = minus(&remainder, n);
        if !is_negative {
            remainder = difference;
            bits |= 1;
        }
        k += 1;
    }
    bits += 1;
    ((bits >> 64) as u64, bits as u64)
}

const fn minus(a: &Natural, b: &Natural) -> (Natural, bool) {
    let mut difference = [0; 10];
    let mut borrow = 0i64;
    let mut i = 0;
    while i < a.len() {
        let d = a[i] as i64 - b[i] as i64 - borrow;
        difference[i] = d as u32;
        borrow = (d < 0) as i64;
        i += 1;
    }
    (difference, borrow != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_std(w: u64, q: i32) -> f64 {
        format!("{w}e{q}").parse().unwrap()
    }

    fn agrees(w: u64, q: i32) {
        if let Some(value) = nearest_double(w, q) {
            assert_eq!(value.to_bits(), by_std(w, q).to_bits(), "{w}e{q}");
        }
    }

    #[test]
    fn the_table() {
        let at = |q: i32| POWERS_OF_FIVE[(q - MIN_Q) as usize];
        assert_eq!(at(0), (1 << 63, 0));
        assert_eq!(at(1), (5 << 61, 0));
        assert_eq!(at(2), (25 << 59, 0));
        // 1/5 = 0.0011 0011 0011… in binary
        assert_eq!(at(-1), (0xcccc_cccc_cccc_cccc, 0xcccc_cccc_cccc_cccd));
        assert_eq!(at(-2), (0xa3d7_0a3d_70a3_d70a, 0x3d70_a3d7_0a3d_70a4));
        assert_eq!(at(27), (((5u128.pow(27) << 65) >> 64) as u64, (5u128.pow(27) << 65) as u64));
    }

    #[test]
    fn borders() {
        for w in [0, 1, 9, 10, (1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 54) + 2, u64::MAX, u64::MAX - 1] {
            for q in MIN_Q - 2..=MAX_Q + 2 {
                agrees(w, q);
            }
        }
        assert_eq!(nearest_double(0, 400), Some(0.0));
        assert_eq!((nearest_double(1, MIN_Q - 1), nearest_double(1, MAX_Q + 1)), (None, None));
        assert!((MIN_Q..=MAX_Q).all(|q| nearest_double(7, q).is_some()));
    }

    #[test]
    fn ties_go_to_the_even_one() {
        // halfway between neighbours: odd multiples of 2^k / 2
        for k in 1..11 {
            for odd in [(1u64 << 53) + 1, (1 << 53) + 3, (1 << 54) - 1, (1 << 54) - 3] {
                agrees(odd << k >> 1 << 1, 0);
                agrees((odd << (k - 1)) + (1 << (k - 1)), 0);
            }
        }
        for w in (9_007_199_254_740_993u64..).step_by(2).take(1000) {
            for q in -5..=24 {
                agrees(w, q);
                agrees(w / 8 * 5, q);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_number(w in any::<u64>(), digits in 0u32..20, q in MIN_Q..=MAX_Q) {
            agrees(w, q);
            agrees(w / 10u64.pow(digits), q);
        }

        #[test]
        fn shortest_decimals_of_doubles(bits in any::<u64>()) {
            let value = f64::from_bits(bits & !(1 << 63));
            if value.is_finite() {
                let text = format!("{value:e}");
                let (digits, exponent) = text.split_once('e').unwrap();
                let fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
                let w: u64 = digits.replace('.', "").parse().unwrap();
                let found = nearest_double(w, exponent.parse::<i32>().unwrap() - fraction);
                prop_assert!(found.is_none_or(|found| found == value));
            }
        }
    }
}
