//! Where words end: the places of all blanks, tabs and line ends, found 64 bytes at a time.

use wide::u8x16;

/// Places that are found ahead.
const AHEAD: usize = 1024;

/// The places of the bytes up to a blank (0x20) in a text of less than 4 GiB, in order.
pub(super) struct Separators<'a> {
    text: &'a [u8],
    /// How far the text was searched.
    searched: usize,
    places: Box<[u32; AHEAD + 64]>,
    next: usize,
    end: usize,
}

impl<'a> Separators<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, searched: 0, places: Box::new([0; AHEAD + 64]), next: 0, end: 0 }
    }

    /// The next places; `None` if there are fewer, or nearly so.
    #[inline(always)]
    pub(super) fn peek<const N: usize>(&mut self) -> Option<[usize; N]> {
        if self.end - self.next < N {
            self.search();
            if self.end - self.next < N {
                return None;
            }
        }
        let places: &[u32; N] = self.places.get(self.next..self.next + N)?.try_into().ok()?;
        Some(places.map(|place| place as usize))
    }

    #[inline(always)]
    pub(super) fn skip(&mut self, count: usize) {
        self.next += count;
    }

    /// Skips all places before `at`.
    pub(super) fn skip_to(&mut self, at: usize) {
        while self.peek().is_some_and(|[place]: [usize; 1]| place < at) {
            self.skip(1);
        }
    }

    /// Finds more places.
    #[inline(never)]
    fn search(&mut self) {
        self.places.copy_within(self.next..self.end, 0);
        (self.next, self.end) = (0, self.end - self.next);
        while self.end + 64 <= AHEAD {
            let Some(chunk) = self.text.get(self.searched..self.searched + 64) else {
                let rest = &self.text[self.searched..];
                let mut chunk = [0xff; 64];
                chunk[..rest.len()].copy_from_slice(rest);
                self.note(mask(&chunk));
                self.searched = self.text.len();
                return;
            };
            // a slice of this length always is an array
            self.note(chunk.try_into().map_or(0, mask));
            self.searched += 64;
        }
    }

    /// Notes the places that a mask has bits for.
    #[inline(always)]
    fn note(&mut self, mut mask: u64) {
        let count = mask.count_ones() as usize;
        let base = self.searched as u32;
        let places = &mut self.places[self.end..self.end + 64];
        // more than there are, so that the usual number needs no decision; what is too many is overwritten later
        for place in &mut places[..8] {
            *place = base + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
        for place in &mut places[8..count.max(8)] {
            *place = base + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
        self.end += count;
    }
}

/// A bit for each byte up to a blank.
#[inline(always)]
fn mask(chunk: &[u8; 64]) -> u64 {
    let blank = u8x16::splat(b' ');
    let (parts, _) = chunk.as_chunks::<16>();
    let part = |k: usize| {
        let bytes = u8x16::new(parts[k]);
        u64::from(bytes.min(blank).cmp_eq(bytes).move_mask() as u16) << (16 * k)
    };
    part(0) | part(1) | part(2) | part(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8]) {
        let expected: Vec<usize> = (0..text.len()).filter(|&i| text[i] <= b' ').collect();
        let mut separators = Separators::new(text);
        let mut found = Vec::new();
        while let Some([place]) = separators.peek() {
            found.push(place);
            separators.skip(1);
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn all_places() {
        check(b"");
        for length in [1, 63, 64, 65, 127, 128, 1000, 5000] {
            check(&vec![b' '; length]);
            check(&vec![b'x'; length]);
            check(&(0..length).map(|i| if i * i % 11 < 3 { b'\n' } else { 0x80 | i as u8 }).collect::<Vec<_>>());
            check(&(0..length).map(|i| i as u8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn several_at_a_time() {
        let text: Vec<u8> = b"ab c\n".repeat(1000);
        let mut separators = Separators::new(&text);
        for k in 0..999 {
            assert_eq!(separators.peek(), Some([5 * k + 2, 5 * k + 4, 5 * k + 7]));
            separators.skip(2);
        }
        assert_eq!(separators.peek::<3>(), None);
        separators.skip_to(4999);
        assert_eq!((separators.peek::<2>(), separators.peek()), (None, Some([4999])));
        separators.skip_to(5000);
        assert_eq!(separators.peek::<1>(), None);
    }
}
