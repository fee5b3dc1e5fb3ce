//! The columns of a rank's entries.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::matrix::Csr;
use crate::matrix::patterns::Numbered;

/// The column of each entry of a rank's rows, renumbered as the [module](super) says, in the order of the global columns. As a slice they
/// take 4 bytes an entry from the first look on, unless they are those of the matrix itself. Rows by their patterns need few of them.
#[derive(Debug, Clone)]
pub struct ColumnIndices<'a>(Kind<'a>);

#[derive(Debug, Clone)]
enum Kind<'a> {
    Given(&'a [u32]),
    Own(Vec<u32>),
    Renumbered { of_matrix: &'a [u32], rows: Range<u32>, halo: Arc<[u32]>, made: OnceLock<Vec<u32>> },
}

impl<'a> ColumnIndices<'a> {
    /// Those of the entries in some rows of a matrix, for a rank that has these rows, and needs the columns `halo`, sorted, of others.
    pub(super) fn of(a: &'a Csr, rows: &Range<usize>, halo: &[u32]) -> Self {
        let of_matrix = &a.col_idx()[a.row_ptr()[rows.start]..a.row_ptr()[rows.end]];
        if rows.start == 0 && halo.is_empty() {
            return Self(Kind::Given(of_matrix));
        }
        let rows = rows.start as u32..rows.end as u32;
        Self(Kind::Renumbered { of_matrix, rows, halo: halo.into(), made: OnceLock::new() })
    }

    /// As they are read one by one, if nobody has looked at all of them.
    pub(crate) fn numbered(&self) -> Numbered<'_> {
        match &self.0 {
            Kind::Given(columns) => Numbered::as_given(columns),
            Kind::Own(columns) => Numbered::as_given(columns),
            Kind::Renumbered { of_matrix, rows, halo, made } => match made.get() {
                Some(columns) => Numbered::as_given(columns),
                None => Numbered { given: of_matrix, own: rows.clone(), others: halo },
            },
        }
    }

    /// The columns of the matrix that the rank's own ones are followed by, as far as they are known.
    pub(crate) fn others(&self) -> &[u32] {
        match &self.0 {
            Kind::Renumbered { halo, .. } => halo,
            _ => &[],
        }
    }

    /// How many are those of others, where a rank has `own` columns.
    pub(super) fn count_outside(&self, own: usize) -> usize {
        match &self.0 {
            Kind::Renumbered { of_matrix, rows, .. } => of_matrix.par_iter().filter(|j| !rows.contains(j)).count(),
            _ => self.par_iter().filter(|&&j| j as usize >= own).count(),
        }
    }

    /// Whether they are not those of the matrix, or of whoever else has them: then they are these.
    pub(crate) fn into_own(self) -> Option<Vec<u32>> {
        let _ = &self[..]; // so that they are made
        match self.0 {
            Kind::Given(_) => None,
            Kind::Own(columns) => Some(columns),
            Kind::Renumbered { made, .. } => made.into_inner(),
        }
    }
}

impl Deref for ColumnIndices<'_> {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match &self.0 {
            Kind::Given(columns) => columns,
            Kind::Own(columns) => columns,
            Kind::Renumbered { of_matrix, rows, halo, made } => made.get_or_init(|| {
                let numbered = Numbered { given: of_matrix, own: rows.clone(), others: halo };
                of_matrix.par_iter().with_min_len(FEW).map(|&j| numbered.number(j)).collect()
            }),
        }
    }
}

/// ColumnIndices that are worth a thread.
const FEW: usize = 1 << 14;

impl<'a> From<&'a [u32]> for ColumnIndices<'a> {
    fn from(columns: &'a [u32]) -> Self {
        Self(Kind::Given(columns))
    }
}

impl From<Vec<u32>> for ColumnIndices<'_> {
    fn from(columns: Vec<u32>) -> Self {
        Self(Kind::Own(columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_when_somebody_looks() {
        // rows 2 and 3 of four, of which each has the columns 0 to 3
        let a = Csr::new(4, 4, vec![0, 4, 8, 12, 16], [0, 1, 2, 3].repeat(4), vec![1.0; 16]).unwrap();
        let columns = ColumnIndices::of(&a, &(2..4), &[0, 1]);
        let is_made =
            |columns: &ColumnIndices<'_>| matches!(&columns.0, Kind::Renumbered { made, .. } if made.get().is_some());
        let one_by_one = |columns: &ColumnIndices<'_>| columns.numbered().range(2..8).collect::<Vec<u32>>();
        assert_eq!((one_by_one(&columns), columns.count_outside(2)), (vec![0, 1, 2, 3, 0, 1], 4));
        assert!(!is_made(&columns) && columns.others() == [0, 1]);
        assert_eq!((&columns[..4], is_made(&columns)), (&[2, 3, 0, 1][..], true));
        assert_eq!((one_by_one(&columns), columns.count_outside(2)), (vec![0, 1, 2, 3, 0, 1], 4));
        assert_eq!(columns.into_own(), Some(vec![2, 3, 0, 1, 2, 3, 0, 1]));
        // those of the matrix
        let first = ColumnIndices::of(&a, &(0..4), &[]);
        assert_eq!((first.as_ptr(), first.count_outside(4), first.clone().into_own()), (a.col_idx().as_ptr(), 0, None));
        assert_eq!(ColumnIndices::from(vec![3, 5]).count_outside(4), 1);
    }
}
