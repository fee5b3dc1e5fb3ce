//! Matrices from callers' arrays, copied or where they are.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use bytemuck::{Pod, cast_slice};
use declive::Csr;
use declive::matrix::Scalar;
use rayon::prelude::*;

use crate::failure::{Failure, Result};

/// An integer type of row pointers and columns.
pub(crate) trait Index: Pod + Into<i64> + Display + Send + Sync {}

impl Index for i32 {}
impl Index for i64 {}

/// Tells when nobody has borrowed arrays any more.
#[derive(Debug)]
pub(crate) struct Lent(Receiver<()>);

impl Lent {
    /// Waits until nobody has them.
    pub(crate) fn wait(self) {
        // nothing is ever sent: that the last sender is gone is the message
        let _gone = self.0.recv();
    }
}

/// The arrays of a matrix.
struct Arrays<T: Clone + 'static> {
    row_ptr: Cow<'static, [usize]>,
    col_idx: Cow<'static, [u32]>,
    values: Cow<'static, [T]>,
    _lent: Sender<()>,
}

/// How arrays are to be taken.
#[derive(Clone, Copy)]
pub(crate) struct Taking {
    /// The number of the first row and column.
    pub(crate) base: i64,
    /// Whether they are used where they are, as far as their types allow. Else they are copied, and free when this returns.
    pub(crate) borrows: bool,
}

/// Makes a matrix of arrays, and tells when it is not needed any more.
///
/// What is borrowed is said to stay for ever: it must stay until [`Lent::wait`] returns.
pub(crate) fn matrix<P: Index, I: Index, T: Scalar>(
    [n_rows, n_cols]: [usize; 2],
    row_ptr: &'static [P],
    col_idx: &'static [I],
    values: &'static [T],
    taking: Taking,
) -> Result<(Csr<T>, Lent)> {
    let (sender, receiver) = channel();
    let arrays = Arrays {
        row_ptr: converted("row_ptr", row_ptr, taking)?,
        col_idx: converted("col_idx", col_idx, taking)?,
        values: if taking.borrows { Cow::Borrowed(values) } else { Cow::Owned(values.to_vec()) },
        _lent: sender,
    };
    let arrays = Arc::new(arrays);
    let a = Csr::from_owner(n_rows, n_cols, &arrays, |arrays| (&arrays.row_ptr, &arrays.col_idx, &arrays.values))?;
    Ok((a, Lent(receiver)))
}

/// The same integers in the type that matrices have, counted from 0.
fn converted<I: Index, N: Pod + TryFrom<i64> + Send>(
    what: &str,
    given: &'static [I],
    taking: Taking,
) -> Result<Cow<'static, [N]>> {
    // the bits of numbers that are not negative are those of the unsigned type; others become too large, which is found out
    if taking.borrows && taking.base == 0 && size_of::<I>() == size_of::<N>() {
        return Ok(Cow::Borrowed(cast_slice(given)));
    }
    let from_0 = |i: I| i.into().checked_sub(taking.base).and_then(|i| N::try_from(i).ok());
    let all: Option<Vec<N>> = given.par_iter().map(|&i| from_0(i)).collect();
    all.map(Cow::Owned).ok_or_else(|| {
        let k = given.iter().position(|&i| from_0(i).is_none()).unwrap_or_default();
        Failure::input(format!(
            "{what}[{k}] is {}, but the first is {}, and columns have 32 bits",
            given[k], taking.base
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    const ROW_PTR: &[i64] = &[0, 2, 4];
    const COL_IDX: &[i32] = &[0, 1, 0, 1];
    const VALUES: &[f64] = &[2.0, -1.0, -1.0, 2.0];

    fn taken(borrows: bool) -> (Csr, Lent) {
        matrix([2, 2], ROW_PTR, COL_IDX, VALUES, Taking { base: 0, borrows }).unwrap_or_else(|e| panic!("{e:?}"))
    }

    #[test]
    fn borrowed_arrays_are_used_where_they_are() {
        for borrows in [true, false] {
            let (a, _) = taken(borrows);
            let are_same = (
                a.row_ptr().as_ptr().addr() == ROW_PTR.as_ptr().addr(),
                a.col_idx().as_ptr().addr() == COL_IDX.as_ptr().addr(),
                a.values().as_ptr() == VALUES.as_ptr(),
            );
            assert_eq!(are_same, (borrows && size_of::<usize>() == 8, borrows, borrows));
            assert_eq!((a.row_ptr(), a.col_idx(), a.values()), (&[0, 2, 4][..], &[0, 1, 0, 1][..], VALUES));
        }
    }

    #[test]
    fn lent_arrays_are_waited_for() {
        let (a, lent) = taken(true);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clone = a.clone();
            let is_done = &is_done;
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                is_done.store(true, Ordering::SeqCst);
                drop(clone);
            });
            drop(a);
            lent.wait();
            assert!(is_done.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn indices_are_counted_from_0() {
        let one_based = Taking { base: 1, borrows: true };
        let (a, _) =
            matrix([2, 2], &[1i32, 3, 5], &[1i64, 2, 1, 2], VALUES, one_based).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(a, taken(false).0);
        for (columns, k) in [([1i64, 2, 0, 2], 2), ([1, 2, 1, i64::MIN], 3), ([1, 1 << 33, 1, 2], 1)] {
            let columns = Box::leak(Box::new(columns));
            let error = matrix([2, 2], &[1i32, 3, 5], columns, VALUES, one_based).unwrap_err();
            assert!(error.text.starts_with(&format!("col_idx[{k}] is {}", columns[k])), "{}", error.text);
        }
    }
}
