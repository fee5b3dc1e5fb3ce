//! Lines of numbers, put together fast.

use std::io::Write;

use super::nearest::{Decimal, nearest_decimal};

/// Room for a line: two indices, two values, blanks and the line's end take at most 72 characters.
const LINE: usize = 96;

/// Lines of text in memory that is set aside once and used again and again.
#[derive(Debug, Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    len: usize,
}

impl Text {
    /// Forgets what is there and makes room for `lines` lines.
    pub(super) fn start(&mut self, lines: usize) {
        self.len = 0;
        if self.bytes.len() < lines * LINE {
            self.bytes = vec![0; lines * LINE];
        }
    }

    /// Adds a line with what `fill` puts into it.
    #[inline]
    pub(super) fn line(&mut self, fill: impl FnOnce(&mut Line)) {
        // an array, so that most copies into it need no check of their bounds
        if let Some(text) = self.bytes[self.len..].first_chunk_mut() {
            let mut line = Line { text, len: 0 };
            fill(&mut line);
            line.byte(b'\n');
            self.len += line.len;
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A line in the making.
pub(super) struct Line<'a> {
    text: &'a mut [u8; LINE],
    len: usize,
}

/// The text of an index, kept for all lines that need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index {
    text: [u8; 16],
    len: usize,
}

impl Index {
    /// Of an index that counts from 0 here and from 1 in the text.
    pub(super) fn new(index: usize) -> Self {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(index as u64 + 1).as_bytes();
        let mut text = [0; 16];
        text[..digits.len()].copy_from_slice(digits);
        Self { text, len: digits.len() }
    }
}

/// How values are spelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Spelling {
    /// With the fewest digits that give back the same bits.
    Shortest,
    /// Rounded to so many significant digits.
    Digits(usize),
}

impl Line<'_> {
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.text[self.len] = byte;
        self.len += 1;
    }

    /// Adds an index that was kept.
    #[inline]
    pub(super) fn kept_index(&mut self, index: &Index) {
        // all 16 bytes, as a length that is known copies faster; what follows overwrites the surplus
        self.text[self.len..self.len + 16].copy_from_slice(&index.text);
        self.len += index.len;
    }

    /// Adds an index that counts from 0 here and from 1 in the text.
    #[inline]
    pub(super) fn index(&mut self, index: u32) {
        // no overflow: a column is below 2³² - 1
        self.word(itoa::Buffer::new().format(index + 1).as_bytes());
    }

    /// Adds a finite number.
    #[inline]
    pub(super) fn number(&mut self, value: f64, spelling: Spelling) {
        match spelling {
            Spelling::Shortest => self.shortest(value),
            Spelling::Digits(digits) => self.rounded(value, digits),
        }
    }

    #[inline]
    fn shortest(&mut self, value: f64) {
        // whole numbers, frequent in matrices, by the cheaper way; bits are compared as -0 is none of them
        let whole = value as i64;
        if value.abs() < 1e16 && (whole as f64).to_bits() == value.to_bits() {
            self.word(itoa::Buffer::new().format(whole).as_bytes());
        } else {
            let mut digits = zmij::Buffer::new();
            let word = digits.format_finite(value);
            if value == 0.0 || value.abs() >= 1e16 { self.tidy(word) } else { self.word(word.as_bytes()) }
        }
    }

    /// Adds `-0.0` or a number with an exponent without the characters that say nothing.
    #[cold]
    fn tidy(&mut self, word: &str) {
        let (mantissa, exponent) = word.split_once("e+").unwrap_or((word, ""));
        self.word(mantissa.trim_end_matches(".0").as_bytes());
        if !exponent.is_empty() {
            self.byte(b'e');
            self.word(exponent.as_bytes());
        }
    }

    #[inline]
    fn rounded(&mut self, value: f64, digits: usize) {
        if let Some(decimal) = nearest_decimal(value.abs(), digits) {
            if value < 0.0 {
                self.byte(b'-');
            }
            self.decimal(decimal);
        } else if value == 0.0 {
            self.shortest(value);
        } else {
            self.rounded_with_care(value, digits);
        }
    }

    /// Adds d.ddde±x, without zeros at the end of the digits and without an exponent of 0.
    #[inline]
    fn decimal(&mut self, decimal: Decimal) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(decimal.digits).as_bytes();
        let zeros = digits.iter().rev().take_while(|&&b| b == b'0').count();
        let (first, rest) = digits[..digits.len() - zeros].split_at(1);
        self.word(first);
        if !rest.is_empty() {
            self.byte(b'.');
            self.word(rest);
        }
        if decimal.exponent != 0 {
            self.byte(b'e');
            self.word(itoa::Buffer::new().format(decimal.exponent).as_bytes());
        }
    }

    /// The same by the standard library, whose digits are those of the exact value.
    #[cold]
    fn rounded_with_care(&mut self, value: f64, digits: usize) {
        let mut word = [0; 32];
        let mut rest = &mut word[..];
        let written = write!(rest, "{value:.*e}", digits - 1);
        debug_assert!(written.is_ok(), "{digits} digits need more room");
        let left = rest.len();
        let word = &word[..word.len() - left];
        let (mantissa, exponent) = word.split_at(word.iter().position(|&b| b == b'e').unwrap_or(word.len()));
        let zeros = mantissa.iter().rev().take_while(|&&b| b == b'0').count();
        let mantissa = match &mantissa[..mantissa.len() - zeros] {
            [whole @ .., b'.'] => whole,
            shorter if mantissa.contains(&b'.') => shorter,
            _ => mantissa,
        };
        self.word(mantissa);
        if exponent != b"e0" {
            self.word(exponent);
        }
    }

    /// Adds at most 24 characters, as copies of fixed lengths that may overlap.
    #[inline]
    fn word(&mut self, word: &[u8]) {
        let n = word.len();
        let to = &mut self.text[self.len..self.len + n];
        match n {
            16..=32 => {
                to[..16].copy_from_slice(&word[..16]);
                to[n - 16..].copy_from_slice(&word[n - 16..]);
            }
            8..=15 => {
                to[..8].copy_from_slice(&word[..8]);
                to[n - 8..].copy_from_slice(&word[n - 8..]);
            }
            4..=7 => {
                to[..4].copy_from_slice(&word[..4]);
                to[n - 4..].copy_from_slice(&word[n - 4..]);
            }
            _ => to.copy_from_slice(word),
        }
        self.len += n;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::nearest::MAX_DIGITS;
    use super::*;

    fn spelled(value: f64, spelling: Spelling) -> String {
        let mut text = Text::default();
        text.start(1);
        text.line(|line| line.number(value, spelling));
        String::from_utf8(text.as_bytes().to_vec()).unwrap().strip_suffix('\n').unwrap().to_string()
    }

    #[test]
    fn shortest_numbers() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-6.0, "-6"),
            (-0.1, "-0.1"),
            (1e-4, "0.0001"),
            (1.5e-7, "1.5e-7"),
            (123456789012345.0, "123456789012345"),
            (123456789012345.5, "123456789012345.5"),
            (9999999999999998.0, "9999999999999998"),
            (-1e16, "-1e16"),
            (1.5e20, "1.5e20"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::MIN, "-1.7976931348623157e308"),
            (-2.2250738585072014e-308, "-2.2250738585072014e-308"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(spelled(value, Spelling::Shortest), text);
        }
    }

    #[test]
    fn rounded_numbers() {
        for (value, digits, text) in [
            (0.0, 3, "0"),
            (-0.0, 1, "-0"),
            (6.0, 5, "6"),
            (10.0, 1, "1e1"),
            (100.0, 4, "1e2"),
            (2.5, 1, "2"), // halves to even
            (3.5, 1, "4"),
            (0.15, 1, "1e-1"), // which is below 0.15
            (9.996, 3, "1e1"),
            (-1234.5678, 6, "-1.23457e3"),
            (0.1, 17, "1.0000000000000001e-1"),
            (-f64::MIN_POSITIVE, 17, "-2.2250738585072014e-308"),
        ] {
            assert_eq!(spelled(value, Spelling::Digits(digits)), text, "{value} to {digits}");
        }
    }

    #[test]
    fn the_longest_line_fits() {
        let mut text = Text::default();
        text.start(2);
        for _ in 0..2 {
            text.line(|line| {
                line.kept_index(&Index::new(u32::MAX as usize - 1));
                line.byte(b' ');
                line.index(u32::MAX - 1);
                line.byte(b' ');
                line.number(f64::MIN, Spelling::Shortest);
                line.byte(b' ');
                line.number(-f64::MIN_POSITIVE, Spelling::Digits(MAX_DIGITS));
            });
        }
        let line = "4294967295 4294967295 -1.7976931348623157e308 -2.2250738585072014e-308\n";
        assert_eq!(text.as_bytes(), line.repeat(2).as_bytes());
    }

    #[test]
    fn words_of_every_length() {
        let all = b"abcdefghijklmnopqrstuvwxyz";
        for n in 0..=24 {
            let mut text = Text::default();
            text.start(1);
            text.line(|line| line.word(&all[..n]));
            assert_eq!(text.as_bytes().split_last().unwrap(), (&b'\n', &all[..n]));
        }
    }

    fn finite() -> impl Strategy<Value = f64> {
        proptest::num::f64::ANY.prop_filter("finite", |v| v.is_finite())
    }

    proptest! {
        #[test]
        fn shortest_numbers_give_back_the_same_bits(value in finite()) {
            let text = spelled(value, Spelling::Shortest);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            prop_assert!(text.len() <= format!("{value:e}").len() + 4, "{}", text);
        }

        #[test]
        fn whole_numbers_have_no_point(value in -10_000_000_000_000_000i64..10_000_000_000_000_000) {
            prop_assert_eq!(spelled(value as f64, Spelling::Shortest), (value as f64 as i64).to_string());
        }
    }

    /// What the standard library makes of a number, less what says nothing.
    fn by_std(value: f64, digits: usize) -> String {
        let text = format!("{value:.*e}", digits - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap();
        let mantissa = if digits > 1 { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
        if exponent == "0" { mantissa.into() } else { format!("{mantissa}e{exponent}") }
    }

    fn agrees(value: f64) {
        // two more than doubles need and options allow
        for digits in 1..=MAX_DIGITS + 3 {
            assert_eq!(spelled(value, Spelling::Digits(digits)), by_std(value, digits), "{value:e} to {digits}");
        }
    }

    #[test]
    fn rounded_ties_and_borders_are_the_standard_librarys() {
        // the last two lie between decimals of 16 and of 17 digits
        let long = [80_000_000_000_000.0 + 0.125, 2_251_799_813_685_247.0 + 0.75];
        for value in [0.0, 0.5, 2.5, 0.125, 9.5, 99.95, 1e22, 1e23, 5e-324].into_iter().chain(long) {
            agrees(value);
            agrees(-value);
        }
        for exponent in 0..2046 {
            let power = f64::from_bits(exponent << 52);
            agrees(power);
            agrees(power.next_up());
            agrees(f64::from_bits((exponent + 1) << 52).next_down());
        }
        // odd multiples of 2^-k: the last of their digits is a 5
        for k in 0..60 {
            for odd in [1u64, 3, 77, 12_345, 999_999_999, 7_999_999_999_999_999, (1 << 53) - 1] {
                agrees(odd as f64 * 0.5f64.powi(k));
            }
        }
    }

    proptest! {
        #[test]
        fn rounded_numbers_are_the_standard_librarys(value in finite()) {
            agrees(value);
        }

        #[test]
        fn rounded_short_decimals_are_the_standard_librarys(w in 0u64..1_000_000_000, q in -30i32..30) {
            agrees(format!("{w}e{q}").parse().unwrap());
        }

        #[test]
        fn rounded_ties_are_the_standard_librarys(odd in 0u64..1 << 53, k in 0i32..80) {
            agrees((odd | 1) as f64 * 0.5f64.powi(k));
        }
    }
}
