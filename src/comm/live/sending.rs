//! Where products put what other ranks need of them: see `cl/prelude.cl`.

use std::ops::Range;

/// The places of the rows of a rank among the elements that it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SentRows {
    /// The longest run of rows that are not sent, which is left out:
    pub(crate) kept: Range<usize>,
    /// where the places of each other row begin, in this list, and where those of the last one end; then the places.
    pub(crate) places: Vec<u32>,
}

impl SentRows {
    /// Of `n` rows of which these are sent, in this order, some to several ranks.
    pub(crate) fn new(n: usize, send: &[u32]) -> Self {
        let mut sent: Vec<(usize, u32)> =
            send.iter().enumerate().map(|(place, row)| (*row as usize, place as u32)).collect();
        sent.sort_unstable();
        let begins = std::iter::once(0).chain(sent.iter().map(|(row, _)| row + 1));
        let ends = sent.iter().map(|(row, _)| *row).chain([n]);
        let gaps = begins.zip(ends).filter(|(begin, end)| begin <= end).map(|(begin, end)| begin..end);
        let kept = gaps.max_by_key(Range::len).unwrap_or_default();
        let others = n - kept.len();
        let number = |row: usize| if row < kept.start { row } else { row - kept.len() };
        let mut places = vec![0; others + 1];
        sent.iter().for_each(|(row, _)| places[number(*row) + 1] += 1);
        let mut at = (others + 1) as u32;
        for place in &mut places {
            at += *place;
            *place = at;
        }
        places.extend(sent.iter().map(|(_, place)| place));
        Self { kept, places }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_by_hand() {
        // row 0 has places 0 and 3, row 5 has place 1, row 6 place 2
        let expected = SentRows { kept: 1..5, places: vec![4, 6, 7, 8, 0, 3, 1, 2] };
        assert_eq!(SentRows::new(7, &[0, 5, 6, 0]), expected);
        assert_eq!(SentRows::new(3, &[]), SentRows { kept: 0..3, places: vec![1] });
        assert_eq!(SentRows::new(0, &[]), SentRows { kept: 0..0, places: vec![1] });
        assert_eq!(SentRows::new(1, &[0]).places, [2, 3, 0]);
    }

    proptest! {
        #[test]
        fn each_row_finds_its_places(n in 1_usize..40, send in prop::collection::vec(any::<prop::sample::Index>(), 0..60)) {
            let send: Vec<u32> = send.into_iter().map(|row| row.index(n) as u32).collect();
            let SentRows { kept, places } = SentRows::new(n, &send);
            for row in 0..n {
                let expected: Vec<u32> = (0..send.len() as u32).filter(|place| send[*place as usize] as usize == row).collect();
                if kept.contains(&row) {
                    prop_assert!(expected.is_empty());
                    continue;
                }
                let k = if row < kept.start { row } else { row - kept.len() };
                prop_assert_eq!(&places[places[k] as usize..places[k + 1] as usize], &expected[..]);
            }
        }
    }
}
