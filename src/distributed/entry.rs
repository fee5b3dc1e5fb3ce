//! Entries on their way to the processes that own their rows.

/// A row, counted from the first one of its owner, a column and a value, in 20 bytes.
pub(super) type Packed = [u32; 5];

/// Packs an entry.
#[inline]
pub(super) fn pack(row: u32, column: u64, value: f64) -> Packed {
    let value = value.to_bits();
    [row, column as u32, (column >> 32) as u32, value as u32, (value >> 32) as u32]
}

/// Row, column and value.
#[inline]
pub(super) fn unpack([row, low, high, value, rest]: Packed) -> (u32, u64, f64) {
    let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    (row, wide(low, high), f64::from_bits(wide(value, rest)))
}

/// The entries for each owner of rows, in their order. They are looked at twice, so that no memory is left over.
///
/// # Panics
/// For a row that nobody owns.
pub(super) fn by_owner(starts: &[u64], entries: impl Iterator<Item = (u64, u64, f64)> + Clone) -> Vec<Vec<Packed>> {
    let mut owner = Owner { starts, last: 0 };
    let mut counts = vec![0; starts.len() - 1];
    for (row, ..) in entries.clone() {
        counts[owner.of(row)] += 1;
    }
    let mut to_each: Vec<Vec<Packed>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (row, column, value) in entries {
        let to = owner.of(row);
        // no process has 2³² rows
        to_each[to].push(pack((row - starts[to]) as u32, column, value));
    }
    to_each
}

/// Finds the owners of rows, most of which are where the last one was.
struct Owner<'a> {
    starts: &'a [u64],
    last: usize,
}

impl Owner<'_> {
    #[inline]
    fn of(&mut self, row: u64) -> usize {
        let starts = self.starts;
        if !(starts[self.last]..starts[self.last + 1]).contains(&row) {
            assert!((starts[0]..starts[starts.len() - 1]).contains(&row), "nobody owns row {row}");
            self.last = starts.partition_point(|start| *start <= row) - 1;
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_in_a_pack() {
        for entry in [(0, 0, 0.0), (u32::MAX, u64::MAX, -1.5e300), (7, 1 << 32, f64::MIN_POSITIVE), (1, 5, -0.0)] {
            let found = unpack(pack(entry.0, entry.1, entry.2));
            assert_eq!((found.0, found.1, found.2.to_bits()), (entry.0, entry.1, entry.2.to_bits()));
        }
    }

    #[test]
    fn owners_by_hand() {
        let base = 1 << 40;
        // the second and the last own nothing
        let starts = [base, base + 2, base + 2, base + 5, base + 5];
        let entries = [(base + 4, 1, 1.0), (base, 2, 2.0), (base + 2, 3, 3.0), (base + 4, 4, 4.0), (base + 1, 5, 5.0)];
        let found = by_owner(&starts, entries.into_iter());
        let of_first = vec![pack(0, 2, 2.0), pack(1, 5, 5.0)];
        let of_third = vec![pack(2, 1, 1.0), pack(0, 3, 3.0), pack(2, 4, 4.0)];
        assert_eq!(found, [of_first, vec![], of_third, vec![]]);
    }
}
