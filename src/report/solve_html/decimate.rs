//! Long lines without the points that no one can see.

/// The indices of those `values` that a line needs which is `columns` pixels wide: of each pixel column the first, the
/// last, the least and the largest, so that no spike is lost and the line covers the same pixels (M4; Jugel et al.
/// 2014, doi 10.14778/2732951.2732953). Values that are no numbers are left out. At most four a column.
pub(super) fn decimated(values: &[f64], columns: usize) -> Vec<usize> {
    let width = values.len().div_ceil(columns.max(1)).max(1);
    let mut kept = Vec::new();
    for (k, column) in values.chunks(width).enumerate() {
        let indices = || (0..column.len()).filter(|&i| !column[i].is_nan());
        let by_value = |a: &usize, b: &usize| column[*a].total_cmp(&column[*b]);
        let (first, last) = (indices().next(), indices().next_back());
        let mut four: Vec<usize> =
            [first, indices().min_by(by_value), indices().max_by(by_value), last].into_iter().flatten().collect();
        four.sort_unstable();
        four.dedup();
        kept.extend(four.into_iter().map(|i| k * width + i));
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_lines_stay_as_they_are() {
        assert!(decimated(&[], 10).is_empty());
        assert_eq!(decimated(&[3.0, 1.0, 2.0], 10), [0, 1, 2]);
        assert_eq!(decimated(&[f64::NAN, 1.0, f64::NAN], 10), [1]);
    }

    #[test]
    fn a_spike_is_kept() {
        let mut values = vec![1.0; 100_000];
        values[77_777] = 9.0;
        values[5] = -9.0;
        let kept = decimated(&values, 100);
        assert!(kept.contains(&77_777) && kept.contains(&5) && kept.contains(&0) && kept.contains(&99_999));
        assert!(kept.len() <= 202);
    }

    proptest! {
        #[test]
        fn extremes_of_each_column_are_kept(values in prop::collection::vec(-9i32..9, 1..400), columns in 1usize..60) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let kept = decimated(&values, columns);
            prop_assert!(kept.len() <= 4 * columns && kept.is_sorted());
            let width = values.len().div_ceil(columns);
            for (k, column) in values.chunks(width).enumerate() {
                let of_column = || kept.iter().filter(|&&i| i / width == k).map(|&i| values[i]);
                for of in [f64::min, f64::max] {
                    prop_assert_eq!(of_column().reduce(of), column.iter().copied().reduce(of));
                }
            }
        }
    }
}
