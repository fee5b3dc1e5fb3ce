//! Lines of the usual kind, read without a detour: words divided by single blanks, nothing before and behind them.
//!
//! Where the words end is known beforehand, and digits are read eight at a time, so that the processor meets few
//! decisions and can work on several lines at once. What is unusual in any way is left to `line`, which also finds the
//! words for what is wrong. Both agree on every line that is read here.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use pulp::x86::V3;

use super::simd::{self, Eight, Portable, Simd, Window, ZEROS, strangers};

use super::block::Room;
use super::decimal::nearest_double;
use super::header::{Field, Header, Layout, Object, Symmetry};
use super::line::Value;

/// What a quick look at a line has to know about the file.
#[derive(Clone, Copy)]
pub(super) struct Quick {
    object: Object,
    layout: Layout,
    field: Field,
    rows: u32,
    cols: u32,
    /// Entries of the diagonal have rules of their own.
    special_diagonal: bool,
    /// The processor's AVX2, if it has it.
    #[cfg(target_arch = "x86_64")]
    v3: Option<V3>,
}

impl Quick {
    pub(super) fn new(header: &Header) -> Self {
        Self {
            object: header.object,
            layout: header.layout,
            field: header.field,
            rows: header.rows as u32,
            cols: header.cols as u32,
            special_diagonal: matches!(header.symmetry, Symmetry::SkewSymmetric | Symmetry::Hermitian),
            #[cfg(target_arch = "x86_64")]
            v3: V3::try_new(),
        }
    }

    /// Does without what only some processors have.
    #[cfg(test)]
    pub(super) fn portable(self) -> Self {
        Self {
            #[cfg(target_arch = "x86_64")]
            v3: None,
            ..self
        }
    }

    /// Reads as many lines from `at` on as are of the usual kind and there is room for; tells how many, and where the
    /// next line begins.
    pub(super) fn lines<T: Value>(self, text: &[u8], at: usize, room: Room<T>) -> (usize, usize) {
        let lines = Lines { quick: self, text, at, room };
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = self.v3 {
            return v3.vectorize(ByV3(v3, lines));
        }
        lines.read(Portable)
    }

    /// Lines `row column value`.
    #[inline(always)]
    fn entries<T: Value>(
        self,
        simd: impl Simd,
        text: &[u8],
        at: usize,
        room: Room<T>,
        value: impl Fn(Range<usize>) -> Option<f64>,
    ) -> (usize, usize) {
        let places = room.rows.iter_mut().zip(room.cols);
        each_line(
            text,
            at,
            places.zip(room.values),
            #[inline(always)]
            |line, ((row, col), to)| {
                let [first, second, last] = line.ends(simd)?;
                (*row, *col) = self.place(simd, line, first, second)?;
                if line.window[second] != b' ' {
                    return None;
                }
                *to = T::of(value(line.start + second + 1..line.start + last)?);
                line.next(last)
            },
        )
    }

    /// Lines `row column`.
    #[inline(always)]
    fn places(self, simd: impl Simd, text: &[u8], at: usize, rows: &mut [u32], cols: &mut [u32]) -> (usize, usize) {
        each_line(
            text,
            at,
            rows.iter_mut().zip(cols),
            #[inline(always)]
            |line, (row, col)| {
                let [first, last] = line.ends(simd)?;
                (*row, *col) = self.place(simd, line, first, last)?;
                line.next(last)
            },
        )
    }

    /// The row and the column of the words that end at these places of a line.
    #[inline(always)]
    fn place(self, simd: impl Simd, line: &Line, first: usize, second: usize) -> Option<(u32, u32)> {
        let digits = [word(line.window, 0, first)?, word(line.window, first + 1, second)?];
        if line.window[first] != b' ' {
            return None;
        }
        // counted from 0; dimensions are held to 32 bits by the header
        let [row, col] = simd.two(digits)?.map(|index| index.wrapping_sub(1));
        let is_inside = row < self.rows && col < self.cols;
        (is_inside && !(self.special_diagonal && row == col)).then_some((row, col))
    }
}

/// A text to read lines of.
struct Lines<'a, T> {
    quick: Quick,
    text: &'a [u8],
    at: usize,
    room: Room<'a, T>,
}

impl<T: Value> Lines<'_, T> {
    /// See [`Quick::lines`].
    #[inline(always)]
    fn read(self, simd: impl Simd) -> (usize, usize) {
        let Self { quick, text, at, room } = self;
        match (quick.layout, quick.field) {
            (_, Field::Complex) => (0, at),
            (Layout::Coordinate, _) if quick.object == Object::Vector => (0, at),
            (Layout::Coordinate, Field::Pattern) => quick.places(simd, text, at, room.rows, room.cols),
            (Layout::Coordinate, Field::Real) => quick.entries(
                simd,
                text,
                at,
                room,
                #[inline(always)]
                |word| real(simd, text, word),
            ),
            (Layout::Coordinate, Field::Integer) => quick.entries(
                simd,
                text,
                at,
                room,
                #[inline(always)]
                |word| integer(simd, text, word),
            ),
            (Layout::Coordinate, Field::UnsignedInteger) => quick.entries(
                simd,
                text,
                at,
                room,
                #[inline(always)]
                |word| unsigned(simd, text, word),
            ),
            (Layout::Array, Field::Integer) => values(
                simd,
                text,
                at,
                room.values,
                #[inline(always)]
                |word| integer(simd, text, word),
            ),
            (Layout::Array, Field::UnsignedInteger) => values(
                simd,
                text,
                at,
                room.values,
                #[inline(always)]
                |word| unsigned(simd, text, word),
            ),
            (Layout::Array, Field::Real | Field::Pattern) => values(
                simd,
                text,
                at,
                room.values,
                #[inline(always)]
                |word| real(simd, text, word),
            ),
        }
    }
}

/// Lines to read in code that is made for the processor.
#[cfg(target_arch = "x86_64")]
struct ByV3<'a, T>(V3, Lines<'a, T>);

#[cfg(target_arch = "x86_64")]
impl<T: Value> pulp::NullaryFnOnce for ByV3<'_, T> {
    type Output = (usize, usize);

    #[inline(always)]
    fn call(self) -> (usize, usize) {
        self.1.read(self.0)
    }
}

/// Lines of a value each.
#[inline(always)]
fn values<T: Value>(
    simd: impl Simd,
    text: &[u8],
    at: usize,
    values: &mut [T],
    value: impl Fn(Range<usize>) -> Option<f64>,
) -> (usize, usize) {
    each_line(
        text,
        at,
        values.iter_mut(),
        #[inline(always)]
        |line, to| {
            let [last] = line.ends(simd)?;
            *to = T::of(value(line.start..line.start + last)?);
            line.next(last)
        },
    )
}

/// Calls `read` with a line and the place for what is in it until that tells no beginning of a next line, or there is no
/// place left. Tells how many lines it read and where the next one begins.
#[inline(always)]
fn each_line<P>(
    text: &[u8],
    start: usize,
    places: impl Iterator<Item = P>,
    read: impl Fn(&Line, P) -> Option<usize>,
) -> (usize, usize) {
    let (mut count, mut at) = (0, start);
    for place in places {
        let Some(line) = Line::at(text, at) else { break };
        let Some(next) = read(&line, place) else { break };
        at = next;
        count += 1;
    }
    (count, at)
}

/// The bytes from the beginning of a line on. Most lines end within the window; others are left to `line`.
struct Line<'a> {
    start: usize,
    window: &'a Window,
}

impl<'a> Line<'a> {
    /// `None` near the end of the text.
    #[inline(always)]
    fn at(text: &'a [u8], start: usize) -> Option<Self> {
        Some(Self { start, window: text.get(start..start + size_of::<Window>())?.try_into().ok()? })
    }

    /// Where the first words end, if they do so in the window.
    #[inline(always)]
    fn ends<const N: usize>(&self, simd: impl Simd) -> Option<[usize; N]> {
        let mut ends = simd.up_to_a_blank(self.window);
        let mut places = [0; N];
        for place in &mut places {
            *place = ends.trailing_zeros() as usize;
            ends &= ends.wrapping_sub(1);
        }
        // of no bit that is left, the place is 64
        (places[N - 1] < size_of::<Window>()).then_some(places)
    }

    /// Where the next line begins, if this one's last word ends at `last`.
    #[inline(always)]
    fn next(&self, last: usize) -> Option<usize> {
        match self.window[last] {
            b'\n' => Some(self.start + last + 1),
            b'\r' if self.window.get(last + 1) == Some(&b'\n') => Some(self.start + last + 2),
            _ => None,
        }
    }
}

/// A word of one to eight characters, behind zeros, as values of digits, if they are some.
#[inline(always)]
fn word(window: &Window, start: usize, end: usize) -> Option<Eight> {
    let without = (start + 8).wrapping_sub(end); // bytes that are not the word's
    if without > 7 {
        return None;
    }
    Some((load(window, start)? ^ ZEROS) << (8 * without))
}

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
fn integer(simd: impl Simd, text: &[u8], Range { start, end }: Range<usize>) -> Option<f64> {
    match *text.get(start)? {
        b'-' => unsigned(simd, text, start + 1..end).map(|value| -value),
        _ => unsigned(simd, text, start..end),
    }
}

/// An integer of at most 16 digits without a sign.
#[inline(always)]
fn unsigned(simd: impl Simd, text: &[u8], Range { start, end }: Range<usize>) -> Option<f64> {
    let count = end.wrapping_sub(start);
    let (value, _) = digits(simd, text, start, end)?;
    (1..=16).contains(&count).then_some(value as f64)
}

/// The number that the digits of a word make, and how many they are: at most 19 behind zeros, and 24 with them.
#[inline(always)]
fn digits(simd: impl Simd, text: &[u8], start: usize, end: usize) -> Option<(u64, usize)> {
    let count = end.wrapping_sub(start);
    let kept = KEPT.get(count)?;
    let characters: &[u8; 32] = text.get(end.wrapping_sub(32)..end)?.try_into().ok()?;
    let [high, middle, low] = simd.three(characters, kept)?.map(u64::from);
    if high > 999 {
        return None;
    }
    Some((low + middle * 100_000_000 + high * 10_000_000_000_000_000, count))
}

/// For each number of bytes, the last so many of 32.
const KEPT: [[u8; 32]; 25] = {
    let mut kept = [[0; 32]; 25];
    let mut count = 0;
    while count < 25 {
        let mut k = 0;
        while k < count {
            kept[count][31 - k] = 0xff;
            k += 1;
        }
        count += 1;
    }
    kept
};

/// A number, perhaps with a point and an exponent of up to two digits.
#[inline(always)]
fn real(simd: impl Simd, text: &[u8], Range { start, end }: Range<usize>) -> Option<f64> {
    let negative = *text.get(start)? == b'-';
    let start = start + usize::from(negative);
    // most numbers that are written in full have one digit before the point, and either no exponent or one of two digits
    let (point, exponent) = match *text.get(end.wrapping_sub(4)..end)? {
        [e, sign @ (b'+' | b'-'), a, b] if is_e(e) => (end - 4, signed(sign, two_digits(a, b)?)),
        _ => (end, 0),
    };
    let value = match usual_real(simd, text, start, point, exponent) {
        Some(value) => value,
        None => any_real(text, start, end)?,
    };
    // without a decision, which the processor would often foresee wrongly
    Some(f64::from_bits(value.to_bits() | u64::from(negative) << 63))
}

/// A number of one digit before the point.
#[inline(always)]
fn usual_real(simd: impl Simd, text: &[u8], start: usize, end: usize, exponent: i32) -> Option<f64> {
    match *text.get(start..start + 2)? {
        [digit @ b'0'..=b'9', b'.'] => {
            let (fraction, decimals) = digits(simd, text, start + 2, end)?;
            nearest(u64::from(digit - b'0'), fraction, decimals, exponent)
        }
        _ => None,
    }
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
    let (number, exponent) = match *text.get(start..end)? {
        [ref number @ .., e, sign @ (b'+' | b'-'), a, b] if is_e(e) => (number, signed(sign, two_digits(a, b)?)),
        [ref number @ .., e, sign @ (b'+' | b'-'), a] if is_e(e) => (number, signed(sign, two_digits(b'0', a)?)),
        [ref number @ .., e, a, b] if is_e(e) => (number, two_digits(a, b)?),
        [ref number @ .., e, a] if is_e(e) => (number, two_digits(b'0', a)?),
        ref number => (number, 0),
    };
    let end = start + number.len();
    let characters = load(text, start)? ^ ZEROS;
    let count = strangers(characters).trailing_zeros() as usize / 8;
    let point = start + count;
    if !(1..8).contains(&count) || point > end {
        return None;
    }
    let whole = u64::from(simd::number(characters << (64 - 8 * count)));
    if point == end {
        return nearest(whole, 0, 0, exponent);
    }
    if text[point] != b'.' {
        return None;
    }
    let (fraction, decimals) = digits(Portable, text, point + 1, end)?;
    nearest(whole, fraction, decimals, exponent)
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
