//! Words of a line, and the numbers they spell.

use crate::error::matrix_market::{ErrorKind, quote};

/// The words of a line, divided by blanks and tabs; none is empty.
pub(super) struct Tokens<'a> {
    line: &'a [u8],
    rest: &'a [u8],
    /// Where the word given out last begins.
    word: usize,
}

pub(super) fn is_blank(b: &u8) -> bool {
    matches!(b, b' ' | b'\t')
}

/// A line from its first word on.
pub(super) fn trim_start(line: &[u8]) -> &[u8] {
    &line[line.iter().position(|b| !is_blank(b)).unwrap_or(line.len())..]
}

impl<'a> Tokens<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { line, rest: line, word: 0 }
    }

    /// The column, from 1, of the word given out last; after the last one, of the end of the line.
    pub(super) fn column(&self) -> u32 {
        // lines are far shorter than 2³² bytes
        self.word as u32 + 1
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let Some(start) = self.rest.iter().position(|b| !is_blank(b)) else {
            self.word = self.line.len();
            return None;
        };
        let word = &self.rest[start..];
        self.word = self.line.len() - word.len();
        let (word, rest) = word.split_at(word.iter().position(is_blank).unwrap_or(word.len()));
        self.rest = rest;
        Some(word)
    }
}

/// Why a word is not a whole number.
#[derive(Debug, PartialEq)]
pub(super) enum NotWhole {
    Negative,
    TooLarge,
    Text,
}

/// The whole number that `word` spells, with or without a `+`.
#[inline]
pub(super) fn whole(word: &[u8]) -> Result<u64, NotWhole> {
    let mut n = 0u64;
    // 19 digits can't overflow, and no digit at all is for the thorough one to judge
    if matches!(word.len(), 1..=19) {
        for b in word {
            let digit = b.wrapping_sub(b'0');
            if digit > 9 {
                return unusual_whole(word);
            }
            n = n * 10 + u64::from(digit);
        }
        return Ok(n);
    }
    unusual_whole(word)
}

#[cold]
fn unusual_whole(word: &[u8]) -> Result<u64, NotWhole> {
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NotWhole::Text);
    }
    let n = digits.iter().try_fold(0u64, |n, b| n.checked_mul(10)?.checked_add(u64::from(b - b'0')));
    match n {
        Some(0) => Ok(0),
        _ if negative => Err(NotWhole::Negative),
        Some(n) => Ok(n),
        None => Err(NotWhole::TooLarge),
    }
}

/// The index, counted from 0, that `word` spells counted from 1.
#[inline]
pub(super) fn index(word: &[u8], what: &'static str, max: usize) -> Result<u32, ErrorKind> {
    match whole(word) {
        // dimensions are held to 32 bits by the header
        Ok(n) if n >= 1 && n <= max as u64 => Ok((n - 1) as u32),
        Ok(0) => Err(ErrorKind::IndexZero { what }),
        Ok(_) | Err(NotWhole::Negative | NotWhole::TooLarge) => {
            Err(ErrorKind::IndexOutOfRange { what, found: quote(word), max })
        }
        Err(NotWhole::Text) => Err(ErrorKind::IndexNotANumber { what, found: quote(word) }),
    }
}

/// The finite number that `word` spells, in C's or Fortran's way.
#[inline]
pub(super) fn real(word: &[u8]) -> Result<f64, ErrorKind> {
    match fast_float2::parse::<f64, _>(word) {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(ErrorKind::NotFinite { found: quote(word) }),
        Err(_) => fortran_real(word),
    }
}

/// Fortran writes the exponents of double precision numbers with a `D`.
#[cold]
fn fortran_real(word: &[u8]) -> Result<f64, ErrorKind> {
    let mut with_e = word.to_vec();
    let mut marks = with_e.iter_mut().filter(|b| matches!(b, b'd' | b'D'));
    if let (Some(mark), None) = (marks.next(), marks.next()) {
        *mark = b'e';
        match fast_float2::parse::<f64, _>(&with_e) {
            Ok(value) if value.is_finite() => return Ok(value),
            Ok(_) => return Err(ErrorKind::NotFinite { found: quote(word) }),
            Err(_) => {}
        }
    }
    Err(ErrorKind::ValueNotANumber { found: quote(word) })
}

/// The integer that `word` spells, rounded to the nearest double.
#[inline]
pub(super) fn integer(word: &[u8]) -> Result<f64, ErrorKind> {
    let digits = match word {
        [b'+' | b'-', digits @ ..] | digits => digits,
    };
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        return real(word);
    }
    // what is no number of any kind is named as such
    real(word).and(Err(ErrorKind::NotAnInteger { found: quote(word) }))
}

/// The integer from 0 up that `word` spells, rounded to the nearest double.
#[inline]
pub(super) fn unsigned(word: &[u8]) -> Result<f64, ErrorKind> {
    let value = integer(word)?;
    if value < 0.0 { Err(ErrorKind::Negative { found: quote(word) }) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_words() {
        let mut words = Tokens::new(b" a\tbc ");
        assert_eq!((words.next(), words.column()), (Some(&b"a"[..]), 2));
        assert_eq!((words.next(), words.column()), (Some(&b"bc"[..]), 4));
        assert_eq!((words.next(), words.column()), (None, 7));
    }

    #[test]
    fn words() {
        let words = |line: &'static str| Tokens::new(line.as_bytes()).collect::<Vec<_>>();
        assert_eq!(words(" \t a  bc\td "), [&b"a"[..], b"bc", b"d"]);
        assert!(words(" \t ").is_empty() && words("").is_empty());
    }

    #[test]
    fn whole_numbers() {
        for (word, n) in [
            ("0", 0),
            ("007", 7),
            ("+12", 12),
            ("-0", 0),
            ("18446744073709551615", u64::MAX),
            ("00000000000000000000000000000000000001", 1),
        ] {
            assert_eq!(whole(word.as_bytes()), Ok(n), "{word}");
        }
        for word in ["", "+", "-", "1.0", "1e3", "+-1", "x", "1x", "0x10", "\u{0661}"] {
            assert_eq!(whole(word.as_bytes()), Err(NotWhole::Text), "{word}");
        }
        assert_eq!(whole(b"18446744073709551616"), Err(NotWhole::TooLarge));
        assert_eq!(whole(b"99999999999999999999999"), Err(NotWhole::TooLarge));
        assert_eq!(whole(b"-99999999999999999999999"), Err(NotWhole::Negative));
        assert_eq!(whole(b"-1"), Err(NotWhole::Negative));
    }

    #[test]
    fn reals() {
        for (word, value) in [
            ("1", 1.0),
            ("+1.5", 1.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1e5", 1e5),
            ("1E+05", 1e5),
            ("1.0D+05", 1e5),
            ("+2.5d-3", 2.5e-3),
            ("1e-999", 0.0),
            ("4.9e-324", 5e-324),
            ("1.7976931348623157e308", f64::MAX),
            ("9007199254740993", 9007199254740992.0),
        ] {
            assert_eq!(real(word.as_bytes()), Ok(value), "{word}");
        }
        assert!(real(b"-0").unwrap().is_sign_negative());
        for word in ["", "+", ".", "e5", "1e", "1d", "d1", "1d5d", "1d5e5", "+-1", "1,5", "0x10", "one", "1_0", "1..2"]
        {
            let found = word.to_string();
            assert_eq!(real(word.as_bytes()), Err(ErrorKind::ValueNotANumber { found }), "{word}");
        }
        for word in ["nan", "-NaN", "inf", "+Infinity", "1e999", "-1D+400", "1e99999999999999999999"] {
            let found = word.to_string();
            assert_eq!(real(word.as_bytes()), Err(ErrorKind::NotFinite { found }), "{word}");
        }
    }

    #[test]
    fn unsigned_integers() {
        assert_eq!((unsigned(b"18446744073709551615"), unsigned(b"-0")), (Ok(18446744073709551616.0), Ok(0.0)));
        assert_eq!(unsigned(b"-1"), Err(ErrorKind::Negative { found: "-1".into() }));
        assert_eq!(unsigned(b"-1.5"), Err(ErrorKind::NotAnInteger { found: "-1.5".into() }));
    }

    #[test]
    fn integers() {
        for (word, value) in [("0", 0.0), ("+3", 3.0), ("-42", -42.0), ("9223372036854775807", 9223372036854775808.0)] {
            assert_eq!(integer(word.as_bytes()), Ok(value), "{word}");
        }
        for word in ["1.5", "1.", "1e3", "1d3"] {
            let found = word.to_string();
            assert_eq!(integer(word.as_bytes()), Err(ErrorKind::NotAnInteger { found }), "{word}");
        }
        assert_eq!(integer(b"x"), Err(ErrorKind::ValueNotANumber { found: "x".into() }));
        assert_eq!(integer(b"-"), Err(ErrorKind::ValueNotANumber { found: "-".into() }));
        assert_eq!(integer(b"nan"), Err(ErrorKind::NotFinite { found: "nan".into() }));
        assert!(matches!(integer("9".repeat(400).as_bytes()), Err(ErrorKind::NotFinite { .. })));
    }
}
