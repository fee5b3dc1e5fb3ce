//! A few dense rows among sparse ones.

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::assemble;

/// A line of n points, some of which are tied to all others: a few dense rows and columns among sparse ones.
///
/// The graph has ties between neighbours on the line, and between each of `dense` points, spread evenly along it, and
/// every other point. Entries: −1 for a tie, the number of ties plus 1 on the diagonal. Dense rows have n entries,
/// others about `dense` + 3: some n (2 dense + 3) in all. Symmetric positive definite: all eigenvalues lie between 1,
/// that of the constant vector, and 2n; `dense` of them are near n, others below `dense` + 6. Such rows come from
/// constraints, and from a part that touches all others, as the ground in a circuit.
///
/// # Errors
/// [`Error::Usage`] if n or `dense` is 0 or n is too large; [`Error::OutOfMemory`] if it doesn't fit.
pub fn dense_rows(n: usize, dense: usize) -> Result<Csr> {
    if n == 0 || dense == 0 {
        return Err(Error::Usage(format!("{dense} dense rows among {n} are none")));
    }
    let hubs = dense.min(n);
    // the middle of each of as many parts; distinct, as these have a point at least
    let hub = |k: usize| ((2 * k as u128 + 1) * n as u128 / (2 * hubs as u128)) as usize;
    // the part that a point is in, by its lower end ⌊k n / hubs⌋, is found to one
    let is_hub = |i: usize| {
        let part = (i as u128 * hubs as u128 / n as u128) as usize;
        (part.saturating_sub(1)..hubs.min(part + 2)).any(|k| hub(k) == i)
    };
    let line = |i: usize| i.saturating_sub(1)..(i + 2).min(n);
    let count = |i: usize| {
        if is_hub(i) { n } else { hubs + line(i).filter(|j| !is_hub(*j)).count() }
    };
    assemble(n, count, |i, row| {
        let diagonal = count(i) as f64; // itself, and 1 for each tie
        let mut push = |j: usize| row.push(j, if j == i { diagonal } else { -1.0 });
        if is_hub(i) {
            return (0..n).for_each(push);
        }
        let mut hubs = (0..hubs).map(hub).peekable();
        for j in line(i).filter(|j| !is_hub(*j)) {
            while let Some(h) = hubs.next_if(|h| *h < j) {
                push(h);
            }
            push(j);
        }
        hubs.for_each(push);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_by_hand() {
        let a = dense_rows(5, 1).unwrap();
        assert_eq!(a.row(0), (&[0, 1, 2][..], &[3.0, -1.0, -1.0][..]));
        assert_eq!(a.row(1), (&[0, 1, 2][..], &[-1.0, 3.0, -1.0][..]));
        assert_eq!(a.row(2), (&[0, 1, 2, 3, 4][..], &[-1.0, -1.0, 5.0, -1.0, -1.0][..]));
        assert_eq!(dense_rows(1, 3).unwrap().values(), [1.0]);
        assert_eq!(dense_rows(2, 2).unwrap().values(), [2.0, -1.0, -1.0, 2.0]);
    }

    #[test]
    fn as_many_rows_are_dense_as_were_asked_for() {
        for n in [1, 2, 3, 7, 64, 1000] {
            for dense in [1, 2, 3, 5, 64, 2000] {
                let a = dense_rows(n, dense).unwrap();
                // where there are few sparse rows they may be full, too
                let full = (0..n).filter(|i| a.row(*i).0.len() == n).count();
                assert!(if n > dense + 3 { full == dense } else { full >= dense.min(n) }, "{n} {dense} {full}");
                assert!(a.mul_vec(&vec![1.0; n]).into_iter().all(|sum| sum == 1.0));
            }
        }
    }
}
