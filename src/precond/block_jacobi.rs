//! Block Jacobi: M is A without the entries outside blocks of neighbouring rows on the diagonal.

use rayon::prelude::*;

use super::{Needs, dense};
use crate::error::Result;
use crate::matrix::Csr;

/// The most rows of a block.
const MOST: usize = 8;

/// Rows of a block where none shows in the pattern.
const USUAL: usize = 4;

/// Blocks that full are those of the unknowns of a point.
const FULL: f64 = 0.9;

/// Rows that are looked at for the size of blocks: so many runs of so many rows.
const RUNS: usize = 64;
const RUN: usize = 840; // a multiple of all sizes

/// M⁻¹ of `factor` A, by blocks of so many rows or, if that is not said, of as many as show in its pattern. Numbers of a complex matrix stay whole.
///
/// # Errors
/// Not enough memory.
pub(super) fn inverse(a: &Csr, factor: f64, needs: Needs) -> Result<Csr> {
    let size = match needs.unknowns {
        Some(odd) if needs.is_complex && odd % 2 == 1 => 2 * odd,
        told => told.unwrap_or_else(|| size(a, needs.is_complex)),
    };
    log::debug!("blocks of {size} rows");
    Ok(of_blocks(a, factor, needs.is_definite, size))
}

/// The rows of a block: the most whose blocks of the matrix are full where they are not empty.
fn size(a: &Csr, is_complex: bool) -> usize {
    let is_possible = |size: &usize| !is_complex || size.is_multiple_of(2);
    (2..=MOST).rev().filter(is_possible).find(|&size| fill(a, size) >= FULL).unwrap_or(USUAL)
}

/// The part of entries in the blocks of so many rows and columns that have any, in a sample of the rows.
fn fill(a: &Csr, size: usize) -> f64 {
    let n = a.n_rows();
    let runs = RUNS.min(n.div_ceil(RUN));
    let (mut entries, mut room) = (0, 0);
    let mut columns = Vec::new();
    for k in 0..runs {
        let first = k * (n / RUN / runs) * RUN;
        for block in (first..n.min(first + RUN)).step_by(size) {
            let rows = block..n.min(block + size);
            let own = a.row_ptr()[rows.start]..a.row_ptr()[rows.end];
            columns.clear();
            columns.extend(a.col_idx()[own].iter().map(|j| *j as usize / size));
            entries += columns.len();
            columns.sort_unstable();
            columns.dedup();
            let width = |block: &usize| n.min((block + 1) * size) - block * size;
            room += rows.len() * columns.iter().map(width).sum::<usize>();
        }
    }
    entries as f64 / room.max(1) as f64
}

/// M⁻¹ of `factor` A with blocks of `size` rows, the last one of what is left. Where a block has no inverse, or, for a definite M, is not
/// definite, its diagonal takes its place.
fn of_blocks(a: &Csr, factor: f64, is_definite: bool, size: usize) -> Csr {
    let n = a.n_rows();
    let blocks: Vec<Vec<f64>> = (0..n.div_ceil(size))
        .into_par_iter()
        .with_min_len(64)
        .map(|k| inverse_block(a, factor, is_definite, k * size..n.min((k + 1) * size)))
        .collect();
    let rows_before = |row: usize| row / size * size * size + row % size * (n - row / size * size).min(size);
    let row_ptr: Vec<usize> = (0..=n).map(rows_before).collect();
    let columns = |row: usize| (row / size * size) as u32..n.min((row / size + 1) * size) as u32;
    let col_idx: Vec<u32> = (0..n).flat_map(columns).collect();
    Csr::assembled(n, n, row_ptr, col_idx, blocks.concat())
}

/// The inverse of a block, row by row.
fn inverse_block(a: &Csr, factor: f64, is_definite: bool, rows: std::ops::Range<usize>) -> Vec<f64> {
    let size = rows.len();
    let mut block = vec![0.0; size * size];
    for row in rows.clone() {
        let (columns, values) = a.row(row);
        let inside = columns.iter().zip(values).filter(|(j, _)| rows.contains(&(**j as usize)));
        inside.for_each(|(j, v)| block[(row - rows.start) * size + *j as usize - rows.start] = factor * v);
    }
    let inverse = if is_definite { dense::inverse_definite(&block, size) } else { dense::inverse(&block, size) };
    inverse.unwrap_or_else(|| {
        let element = |k: usize| match (k.is_multiple_of(size + 1), block[k]) {
            (false, _) => 0.0,
            (true, 0.0) => 1.0,
            (true, d) => if is_definite { d.abs() } else { d }.recip(),
        };
        (0..size * size).map(element).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery;

    /// [2 1 0; 3 4 9; 0 9 5] has a block of two rows and one of one.
    #[test]
    fn blocks_by_hand() {
        let a = Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![2.0, 1.0, 3.0, 4.0, 9.0, 9.0, 5.0]);
        let m = of_blocks(&a.unwrap(), 2.0, false, 2);
        assert_eq!((m.row_ptr(), m.col_idx()), (&[0, 2, 4, 5][..], &[0, 1, 0, 1, 2][..]));
        let expected = [0.4, -0.1, -0.3, 0.2, 0.1];
        assert!(m.values().iter().zip(expected).all(|(found, v)| (found - v).abs() < 1e-15), "{:?}", m.values());
    }

    #[test]
    fn complex_numbers_stay_whole() {
        let a = gallery::poisson2d([6, 4]).unwrap();
        for (unknowns, rows) in [(3, 6), (2, 2), (1, 2)] {
            let needs = Needs { is_definite: false, is_complex: true, unknowns: Some(unknowns) };
            let m = inverse(&a, 1.0, needs).unwrap();
            assert_eq!(m.row(0).0.len(), rows);
        }
    }

    #[test]
    fn what_stands_for_a_block_without_inverse() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![-2.0, 2.0, 2.0, -2.0]).unwrap();
        assert_eq!(of_blocks(&a, 1.0, false, 2).values(), [-0.5, 0.0, 0.0, -0.5]);
        assert_eq!(of_blocks(&a, 1.0, true, 2).values(), [0.5, 0.0, 0.0, 0.5]);
        let none = Csr::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
        assert_eq!(of_blocks(&none, 1.0, true, 2).values(), [1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn sizes_of_blocks() {
        let of = |spec: &str| size(&spec.parse::<gallery::Spec>().unwrap().build().unwrap(), false);
        assert_eq!(of("elasticity3d:5x4x3"), 3);
        assert_eq!(of("stokes2d:9x8"), USUAL);
        assert_eq!(of("poisson2d:12x11"), USUAL);
    }
}
