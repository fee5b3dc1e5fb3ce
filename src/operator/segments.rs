//! Arrays of a matrix that are too long for one buffer of a device, cut into segments.

use std::ops::Range;

use crate::device::Context;

/// The most elements of a segment: kernels count them in 32 bits, and look a work-group's size ahead.
pub(crate) const MAX_LEN: usize = u32::MAX as usize - (1 << 16);

/// Cuts consecutive items, such as rows, of so many elements each into segments that fit into a buffer each: as few as
/// can be, and never none. An item that alone is longer is a segment of its own, which the device then refuses; a row is
/// none, as no row has more entries than a vector, which must fit. `bytes` is the size of an element. O(items).
pub(super) fn cut(ctx: &Context, lens: impl Iterator<Item = usize>, bytes: usize) -> Vec<Range<usize>> {
    let limit = MAX_LEN.min((ctx.max_band_bytes / bytes as u64) as usize);
    let mut segments = Vec::new();
    let (mut begin, mut end, mut sum) = (0, 0, 0);
    for len in lens {
        if sum + len > limit && begin < end {
            segments.push(begin..end);
            (begin, sum) = (end, 0);
        }
        sum += len;
        end += 1;
    }
    segments.push(begin..end);
    if segments.len() > 1 {
        log::info!("{}: the matrix is cut into {} segments", ctx.info().name, segments.len());
    }
    segments
}

/// What is launched for each segment, on its rows without a halo, and on the others: all that is not empty, but one
/// launch at least, which leaves the sums of nothing.
pub(super) fn launches<S: Copy>(of_segments: &[[S; 2]], is_empty: impl Fn(S) -> bool) -> [Vec<S>; 2] {
    let mut all: [Vec<S>; 2] =
        [0, 1].map(|k| of_segments.iter().map(|sets| sets[k]).filter(|&set| !is_empty(set)).collect());
    if all.iter().all(Vec::is_empty) {
        all[0].extend(of_segments.first().map(|sets| sets[0]));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn bands_are_as_long_as_fits() {
        let mut ctx = Context::open(&list().devices.remove(0)).unwrap();
        let mut of = |lens: &[usize], limit: u64| {
            ctx.max_band_bytes = 8 * limit + 7;
            cut(&ctx, lens.iter().copied(), 8).iter().map(|segment| (segment.start, segment.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[], 5), [(0, 0)]);
        assert_eq!(of(&[0, 0], 0), [(0, 2)]);
        assert_eq!(of(&[2, 3, 0, 4, 1, 0, 5], 5), [(0, 3), (3, 6), (6, 7)]);
        assert_eq!(of(&[2, 3, 0, 4, 1, 0, 5], 15), [(0, 7)]);
        assert_eq!(of(&[1, 1, 1], 1), [(0, 1), (1, 2), (2, 3)]);
        // what is too long is alone
        assert_eq!(of(&[1, 1, 7, 0, 1], 5), [(0, 2), (2, 3), (3, 5)]);
        assert_eq!(of(&[7, 8], 5), [(0, 1), (1, 2)]);
    }

    #[test]
    fn what_is_empty_is_not_launched() {
        let of = |segments: &[[u32; 2]]| launches(segments, |set| set == 0);
        assert_eq!(of(&[[0, 0]]), [vec![0], vec![]]);
        assert_eq!(of(&[[0, 0], [0, 0]]), [vec![0], vec![]]);
        assert_eq!(of(&[[0, 3]]), [vec![], vec![3]]);
        assert_eq!(of(&[[1, 0], [0, 4], [2, 5]]), [vec![1, 2], vec![4, 5]]);
    }
}
