//! Launchers of `cl/sort.cl`.

use std::marker::PhantomData;

use super::scan::Scan;
use super::{Argument, ShareSums, Tiling, Word, bytes, count, kernel, launch};
use crate::device::{Context, DeviceVec, Kernel};
use crate::error::Result;

/// The most bits of a digit, as a rule.
pub(crate) const DIGIT_BITS: u32 = 8;
/// Groups for each compute unit, as a rule.
pub(crate) const GROUPS_PER_UNIT: usize = 64;

/// Stable sorts by keys `K`, some of whose bits are looked at.
pub(crate) struct Sort<K> {
    tiling: Tiling,
    /// The most bits of a digit.
    digit_bits: u32,
    count: Kernel,
    scatter: Kernel,
    scan: Scan<u32>,
    key: PhantomData<fn() -> K>,
}

/// What belongs to keys, and where it goes with them.
pub(crate) enum Payload<'a> {
    /// Nothing.
    None,
    /// A number each.
    Given(&'a DeviceVec<u32>, &'a mut DeviceVec<u32>),
    /// The places of the keys before: the permutation that sorts them.
    Indices(&'a mut DeviceVec<u32>),
}

/// What a sort needs beside what is sorted.
pub(crate) struct SortSpace<K> {
    /// None if there is one pass,
    keys: DeviceVec<K>,
    /// or if nothing belongs to keys.
    payload: DeviceVec<u32>,
    counts: DeviceVec<u32>,
    sums: ShareSums,
}

impl<K: Word> SortSpace<K> {
    /// Room for sorts of at most `n` keys by at most `bits` bits, and for what belongs to them if something does.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn new(ctx: &Context, sort: &Sort<K>, (n, bits): (usize, u32), has_payload: bool) -> Result<Self> {
        let keys = if sort.passes(bits) > 1 { n } else { 0 };
        let counts = sort.tiling.groups(n) << sort.digit_bits;
        Ok(Self {
            keys: DeviceVec::zeros(ctx, keys, "keys that are sorted")?,
            payload: DeviceVec::zeros(ctx, if has_payload { keys } else { 0 }, "what belongs to keys")?,
            counts: DeviceVec::zeros(ctx, counts + 1, "counts of digits")?,
            sums: ShareSums::new(ctx, sort.tiling)?,
        })
    }

    /// Whether there is room for so many keys, sorted by so many bits, and for what belongs to them.
    pub(crate) fn holds(&self, sort: &Sort<K>, (n, bits): (usize, u32)) -> bool {
        let spare = if sort.passes(bits) > 1 { n } else { 0 };
        spare <= self.keys.len().min(self.payload.len()) && sort.tiling.groups(n) << sort.digit_bits < self.counts.len()
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(&self.keys) + bytes(&self.payload) + bytes(&self.counts) + self.sums.bytes()
    }
}

impl<K: Word> Sort<K> {
    /// Compiles the kernels for digits of at most `digit_bits` bits, from 1 to 8, or takes what was compiled in a
    /// former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    ///
    /// # Panics
    /// If digits have more bits, or a tile has too many keys.
    pub(crate) fn build(ctx: &Context, tiling: Tiling, digit_bits: u32) -> Result<Self> {
        assert!(
            (1..=8).contains(&digit_bits) && (tiling.group_size == 1 || tiling.group_size * tiling.items < 1 << 16)
        );
        let file = ("sort", include_str!("../../../cl/sort.cl"));
        let program = tiling.program(ctx, file, &format!(" -D KEY={} -D DIGIT_BITS={digit_bits}", K::CL_NAME))?;
        let [count, scatter] = ["sort_count", "sort_scatter"].map(|name| kernel(ctx, &program, name));
        let scan = Scan::build(ctx, tiling)?;
        Ok(Self { tiling, digit_bits, count: count?, scatter: scatter?, scan, key: PhantomData })
    }

    /// How many passes a sort by so many bits makes.
    pub(crate) fn passes(&self, bits: u32) -> usize {
        digits(bits, self.digit_bits).len()
    }

    /// Sorts the first `n` keys by their lowest `bits` bits, and what belongs to them: of keys that are equal there,
    /// the first stays first. Each pass over a digit moves three times the keys, and twice what belongs to them.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If keys have fewer bits, an array is too short, or there is less space.
    pub(crate) fn sort(
        &self,
        ctx: &Context,
        (n, bits): (usize, u32),
        (from, to): (&DeviceVec<K>, &mut DeviceVec<K>),
        payload: Payload<'_>,
        space: &mut SortSpace<K>,
    ) -> Result<()> {
        let (grid, of) = (self.tiling.grid(n), count(n));
        let (digits, SortSpace { keys, payload: spare, counts, sums }) = (digits(bits, self.digit_bits), space);
        let (mut kind, given, moved) = match &payload {
            Payload::None => (NONE, &*spare, &*spare),
            Payload::Given(given, moved) => (GIVEN, *given, &**moved),
            Payload::Indices(moved) => (INDICES, &*spare, &**moved),
        };
        let has_room = |passes: usize, len: usize| passes == 1 || n <= len;
        assert!(bits as usize <= 8 * size_of::<K>() && n <= from.len().min(to.len()));
        assert!(has_room(digits.len(), keys.len()) && grid.groups << self.digit_bits < counts.len());
        assert!(kind == NONE || n <= moved.len() && has_room(digits.len(), spare.len()));
        assert!(kind != GIVEN || n <= given.len());
        for (pass, [shift, width]) in digits.iter().enumerate() {
            let left = digits.len() - pass;
            let ([keys_from, keys_to], [payload_from, payload_to]) =
                (way(pass, left, [from, to, keys]), way(pass, left, [given, moved, spare]));
            // SAFETY: types as declared in the file; n keys, and counts for each group and digit, as checked.
            unsafe { launch(ctx, &self.count, grid, &[&of, shift, width, keys_from, counts]) }?;
            self.scan.in_place(ctx, grid.groups << width, counts, sums)?;
            let args: [&dyn Argument; 9] =
                [&of, shift, width, &kind, counts, keys_from, keys_to, payload_from, payload_to];
            // SAFETY: types as declared in the file; n keys here and there, n numbers that belong to them where there
            // are any, and counts for each group and digit, as checked. Counts are of the same keys, so that each of
            // the places that follow from them is below n.
            unsafe { launch(ctx, &self.scatter, grid, &args) }?;
            // places of the first pass go along with the keys
            kind = if kind == INDICES { GIVEN } else { kind };
        }
        Ok(())
    }
}

/// What belongs to keys, as in the file.
const NONE: u32 = 0;
const GIVEN: u32 = 1;
const INDICES: u32 = 2;

/// Where a pass reads and writes, of the array before the first one, that after the last, and one beside them; so many
/// passes are left, with this one.
fn way<T>(pass: usize, left: usize, [first, last, spare]: [&T; 3]) -> [&T; 2] {
    let [from, to] = if left % 2 == 1 { [spare, last] } else { [last, spare] };
    [if pass == 0 { first } else { from }, to]
}

/// The digits of passes, the least significant first: the lowest bit of each, and how many. As few as there can be, at
/// least one, and as even as can be.
fn digits(bits: u32, most: u32) -> Vec<[u32; 2]> {
    let passes = bits.div_ceil(most).max(1);
    let begin = |pass| bits * pass / passes;
    (0..passes).map(|pass| [begin(pass), begin(pass + 1) - begin(pass)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_passes() {
        assert_eq!(digits(0, 8), [[0, 0]]);
        assert_eq!(digits(8, 8), [[0, 8]]);
        assert_eq!(digits(9, 8), [[0, 4], [4, 5]]);
        assert_eq!(digits(32, 8), [[0, 8], [8, 8], [16, 8], [24, 8]]);
        assert_eq!(digits(64, 5).len(), 13);
        for (bits, most) in (0..=64).flat_map(|bits| (1..=8).map(move |most| (bits, most))) {
            let all = digits(bits, most);
            assert_eq!(all.iter().map(|[_, width]| width).sum::<u32>(), bits);
            assert!(
                all.iter().all(|[_, width]| *width <= most) && all.windows(2).all(|w| w[0][0] + w[0][1] == w[1][0])
            );
        }
    }

    #[test]
    fn passes_end_where_they_should() {
        for passes in 1..6 {
            let mut at = "first";
            for pass in 0..passes {
                let [from, to] = way(pass, passes - pass, [&"first", &"last", &"spare"]);
                assert_eq!(*from, at);
                at = to;
            }
            assert_eq!(at, "last");
        }
    }
}
