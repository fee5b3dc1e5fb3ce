//! Powers of two, by which scaling rounds nothing.

/// v · 2ᵉ, rounded only where the result is not a normal number.
pub(crate) fn scaled(mut v: f64, e: i32) -> f64 {
    // beyond this anything is 0 or infinite
    let mut e = e.clamp(-2200, 2200);
    while e != 0 {
        let step = e.clamp(-1022, 1023);
        v *= f64::from_bits(((step + 1023) as u64) << 52);
        e -= step;
    }
    v
}

/// The power of two nearest to a number with this binary logarithm.
pub(crate) fn nearest(log2: f64) -> i32 {
    log2.round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_sizes() {
        assert_eq!(scaled(1.5, 3), 12.0);
        assert_eq!(scaled(f64::from_bits(1), 1074), 1.0);
        assert_eq!(scaled(1.0, -1074), f64::from_bits(1));
        assert_eq!(scaled(f64::from_bits(1), 2000), 2f64.powi(926));
        assert_eq!(scaled(-1.0, i32::MAX), f64::NEG_INFINITY);
        assert_eq!(scaled(1.0, i32::MIN), 0.0);
        assert_eq!((nearest(-2.4), nearest(1e300)), (-2, i32::MAX));
    }
}
