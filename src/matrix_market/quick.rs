//! Lines of the usual kind, read without a detour: words divided by single blanks, nothing before and behind them.
//!
//! Where the words end is known beforehand, and digits are read eight at a time, so that the processor meets few
//! decisions and can work on several lines at once. What is unusual in any way is left to `line`, which also finds the
//! words for what is wrong. Both agree on every line that is read here.

use super::decimal::nearest_double;
use super::header::{Field, Header, Layout, Symmetry};
use super::line::{Entry, Value};
use super::separators::Separators;

/// What a quick look at a line has to know about the file.
#[derive(Clone, Copy)]
pub(super) struct Quick {
    layout: Layout,
    field: Field,
    rows: u64,
    cols: u64,
    /// Entries of the diagonal have rules of their own.
    special_diagonal: bool,
}

impl Quick {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            layout: header.layout,
            field: header.field,
            rows: header.rows as u64,
            cols: header.cols as u64,
            special_diagonal: matches!(header.symmetry, Symmetry::SkewSymmetric | Symmetry::Hermitian),
        }
    }

    /// The entry in the line that begins at `start`, and where the next line begins. The separators before `start` are
    /// skipped already, and those of the line are, too, if it is read.
    #[inline(always)]
    pub(super) fn entry<T: Value>(
        self,
        text: &[u8],
        start: usize,
        separators: &mut Separators,
    ) -> Option<(Entry<T>, usize)> {
        let (row, col, value, last) = match (self.layout, self.field) {
            (_, Field::Complex) => return None,
            (Layout::Coordinate, Field::Pattern) => {
                let [first, last] = separators.peek()?;
                let (row, col) = self.place(text, [start, first, last])?;
                separators.skip(2);
                (row, col, T::ONE, last)
            }
            (Layout::Coordinate, _) => {
                let [first, second, last] = separators.peek()?;
                let (row, col) = self.place(text, [start, first, second])?;
                let value = self.value(text, second + 1, last)?;
                if text[second] != b' ' {
                    return None;
                }
                separators.skip(3);
                (row, col, T::of(value), last)
            }
            (Layout::Array, _) => {
                let [last] = separators.peek()?;
                let value = self.value(text, start, last)?;
                separators.skip(1);
                (0, 0, T::of(value), last)
            }
        };
        if self.special_diagonal && row == col {
            return None;
        }
        let next = match text[last] {
            b'\n' => last + 1,
            b'\r' if text.get(last + 1) == Some(&b'\n') => {
                separators.skip_to(last + 2);
                last + 2
            }
            _ => return None,
        };
        Some((Entry { row, col, value }, next))
    }

    /// The row and the column of the words that begin at the first place and end at the second and third.
    #[inline(always)]
    fn place(self, text: &[u8], [start, first, second]: [usize; 3]) -> Option<(u32, u32)> {
        let (row, col) = (Digits::word(text, start, first)?, Digits::word(text, first + 1, second)?);
        if (row.strangers() | col.strangers()) != 0 || text[first] != b' ' {
            return None;
        }
        // counted from 0; dimensions are held to 32 bits by the header
        let (row, col) = (row.number().wrapping_sub(1), col.number().wrapping_sub(1));
        (row < self.rows && col < self.cols).then_some((row as u32, col as u32))
    }

    #[inline(always)]
    fn value(self, text: &[u8], start: usize, end: usize) -> Option<f64> {
        match self.field {
            Field::Real => real(text, start, end),
            field => integer(text, start, end, field == Field::Integer),
        }
    }
}

/// Eight digits of one byte each, the first in the lowest byte.
#[derive(Clone, Copy)]
struct Digits(u64);

impl Digits {
    /// A word of one to eight bytes, behind zeros; not yet known to be digits.
    #[inline(always)]
    fn word(text: &[u8], start: usize, end: usize) -> Option<Self> {
        let without = (start + 8).wrapping_sub(end); // bytes that are not the word's
        if without > 7 {
            return None;
        }
        Some(Self((load(text, end.wrapping_sub(8))? ^ ZEROS) & (u64::MAX << (8 * without))))
    }

    /// The digits that `text` has from `start` on, up to eight of them, behind zeros, and how many they are.
    #[inline(always)]
    fn from(text: &[u8], start: usize) -> Option<(Self, usize)> {
        let word = load(text, start)? ^ ZEROS;
        let count = Self(word).strangers().trailing_zeros() as usize / 8;
        Some((Self(word.checked_shl(64 - 8 * count as u32).unwrap_or(0)), count))
    }

    /// Not zero if a byte is no digit; the lowest bit that is set belongs to the first of them.
    #[inline(always)]
    fn strangers(self) -> u64 {
        (self.0 | self.0.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080
    }

    /// The number: digits to pairs, pairs to fours, fours to the whole.
    #[inline(always)]
    fn number(self) -> u64 {
        const EACH: u64 = 0x0000_00ff_0000_00ff;
        let pairs = self.0.wrapping_mul(10).wrapping_add(self.0 >> 8);
        let first = (pairs & EACH).wrapping_mul(100 + (1_000_000 << 32));
        let second = ((pairs >> 16) & EACH).wrapping_mul(1 + (10_000 << 32));
        first.wrapping_add(second) >> 32
    }
}

/// The digit 0 in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Eight bytes, the first in the lowest.
#[inline(always)]
fn load(text: &[u8], start: usize) -> Option<u64> {
    Some(u64::from_le_bytes(text.get(start..start.wrapping_add(8))?.try_into().ok()?))
}

/// Powers of ten that fit.
const POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1; 20];
    let mut k = 1;
    while k < 20 {
        powers[k] = powers[k - 1] * 10;
        k += 1;
    }
    powers
};

/// An integer of at most 16 digits.
#[inline(always)]
fn integer(text: &[u8], start: usize, end: usize, signed: bool) -> Option<f64> {
    let negative = signed && *text.get(start)? == b'-';
    let count = end - (start + usize::from(negative));
    if !(1..=16).contains(&count) {
        return None;
    }
    let [_, high, low] = last_24(text, end, count)?;
    let value = (low.number() + high.number() * 100_000_000) as f64;
    ((low.strangers() | high.strangers()) == 0).then_some(if negative { -value } else { value })
}

/// The last `count` bytes before `end`, 24 at most, as digits behind zeros; not yet known to be digits.
#[inline(always)]
fn last_24(text: &[u8], end: usize, count: usize) -> Option<[Digits; 3]> {
    let bytes: &[u8; 24] = text.get(end.wrapping_sub(24)..end)?.try_into().ok()?;
    let (words, _) = bytes.as_chunks::<8>();
    let kept = KEPT.get(count)?;
    let digits = |k: usize| Digits((u64::from_le_bytes(words[k]) ^ ZEROS) & kept[k]);
    Some([digits(0), digits(1), digits(2)])
}

/// For each number of bytes, the bits of the last so many bytes of three words.
const KEPT: [[u64; 3]; 25] = {
    let mut kept = [[0; 3]; 25];
    let mut count = 1;
    while count <= 24 {
        let mut word = 0;
        while word < 3 {
            // this word's bytes that are among the last `count` of all
            let bytes = count as i32 - 8 * (2 - word as i32);
            kept[count][word] = match bytes {
                ..=0 => 0,
                1..=7 => u64::MAX << (64 - 8 * bytes),
                8.. => u64::MAX,
            };
            word += 1;
        }
        count += 1;
    }
    kept
};

/// A number, perhaps with a point and an exponent of up to two digits.
#[inline(always)]
fn real(text: &[u8], start: usize, end: usize) -> Option<f64> {
    let negative = *text.get(start)? == b'-';
    let start = start + usize::from(negative);
    let value = match *text.get(start..start + 2)? {
        // most numbers that are written in full have one digit before the point
        [digit @ b'0'..=b'9', b'.'] => match fraction(text, start + 2, end) {
            Some((fraction, decimals)) => nearest(u64::from(digit - b'0'), fraction, decimals, 0)?,
            None => any_real(text, start, end)?,
        },
        _ => any_real(text, start, end)?,
    };
    Some(if negative { -value } else { value })
}

/// The digits of a word behind the point as a number, and how many they are.
#[inline(always)]
fn fraction(text: &[u8], start: usize, end: usize) -> Option<(u64, usize)> {
    let decimals = end.wrapping_sub(start);
    let [high, middle, low] = last_24(text, end, decimals)?;
    let top = high.number();
    // zeros lead where more than 19 digits fit
    if (low.strangers() | middle.strangers() | high.strangers()) != 0 || top >= 1000 {
        return None;
    }
    Some((low.number() + middle.number() * 100_000_000 + top * 10_000_000_000_000_000, decimals))
}

/// The double nearest to (whole + fraction · 10^-decimals) · 10^exponent.
#[inline(always)]
fn nearest(whole: u64, fraction: u64, decimals: usize, exponent: i32) -> Option<f64> {
    let whole = match POWERS_OF_TEN.get(decimals) {
        Some(&power) => whole.checked_mul(power)?,
        None if whole == 0 => 0,
        None => return None,
    };
    nearest_double(whole.checked_add(fraction)?, exponent - decimals as i32)
}

/// A number without its sign of up to seven digits before the point.
#[inline(never)]
fn any_real(text: &[u8], start: usize, end: usize) -> Option<f64> {
    let (digits, exponent) = match *text.get(start..end)? {
        [ref digits @ .., e, sign @ (b'+' | b'-'), a, b] if is_e(e) => (digits, signed(sign, two_digits(a, b)?)),
        [ref digits @ .., e, sign @ (b'+' | b'-'), a] if is_e(e) => (digits, signed(sign, two_digits(b'0', a)?)),
        [ref digits @ .., e, a, b] if is_e(e) => (digits, two_digits(a, b)?),
        [ref digits @ .., e, a] if is_e(e) => (digits, two_digits(b'0', a)?),
        ref digits => (digits, 0),
    };
    let end = start + digits.len();
    let (whole, count) = Digits::from(text, start)?;
    let point = start + count;
    if !(1..8).contains(&count) || point > end {
        return None;
    }
    if point == end {
        return nearest(whole.number(), 0, 0, exponent);
    }
    if text[point] != b'.' {
        return None;
    }
    let (fraction, decimals) = fraction(text, point + 1, end)?;
    nearest(whole.number(), fraction, decimals, exponent)
}

fn is_e(byte: u8) -> bool {
    byte | 0x20 == b'e'
}

fn two_digits(a: u8, b: u8) -> Option<i32> {
    (a.is_ascii_digit() && b.is_ascii_digit()).then(|| i32::from(a - b'0') * 10 + i32::from(b - b'0'))
}

fn signed(sign: u8, exponent: i32) -> i32 {
    if sign == b'-' { -exponent } else { exponent }
}
