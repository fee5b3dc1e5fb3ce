//! What each rank owns, what it needs from the others, and what it sends.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use rayon::prelude::*;

use super::ColumnIndices;
use crate::matrix::Csr;

/// One rank's rows of a matrix, with columns renumbered as the [module](super) says, and its halo.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// The rows that it owns.
    pub rows: Range<usize>,
    /// The matrix's row pointers of these rows; the first is not 0.
    pub row_ptr: &'a [usize],
    /// Renumbered column of each entry, still in the order of the global columns.
    pub col_idx: ColumnIndices<'a>,
    /// Value of each entry.
    pub values: Cow<'a, [f64]>,
    /// The exchange with other ranks.
    pub halo: HaloPlan,
    /// The matrix, if these are its values.
    pub of: Option<&'a Csr>,
}

/// Who sends which elements of a vector to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HaloPlan {
    /// Elements that this rank receives.
    pub len: usize,
    /// From whom.
    pub receive: Vec<Receive>,
    /// Elements that this rank sends, as its own indices: one message, in which each receiver has a segment.
    pub send: Vec<u32>,
    /// The ranks that receive from this one, and what.
    pub receivers: Vec<Receiver>,
    /// Whether each row of an element that is sent needs the halo itself, as with all symmetric patterns.
    pub is_mutual: bool,
}

/// Who receives a part of a rank's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// The rank.
    pub to: usize,
    /// Its part.
    pub segment: Range<usize>,
}

/// The part of a halo that one other rank owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receive {
    /// The other rank.
    pub from: usize,
    /// The segment of its message.
    pub segment: Range<usize>,
    /// Where the segment goes in this rank's halo.
    pub halo: Range<usize>,
}

impl HaloPlan {
    /// The same exchange of vectors of so many columns: of `columns` elements in place of each, side by side.
    pub(crate) fn of_columns(&self, columns: usize) -> Self {
        let of_range = |range: &Range<usize>| range.start * columns..range.end * columns;
        let of_receive = |receive: &Receive| Receive {
            from: receive.from,
            segment: of_range(&receive.segment),
            halo: of_range(&receive.halo),
        };
        let of_element = |&i: &u32| i * columns as u32..(i + 1) * columns as u32;
        Self {
            len: self.len * columns,
            receive: self.receive.iter().map(of_receive).collect(),
            send: self.send.iter().flat_map(of_element).collect(),
            receivers: self
                .receivers
                .iter()
                .map(|one| Receiver { to: one.to, segment: of_range(&one.segment) })
                .collect(),
            is_mutual: self.is_mutual,
        }
    }
}

impl Part<'_> {
    /// Number of rows.
    #[must_use]
    pub fn n_owned(&self) -> usize {
        self.rows.len()
    }

    /// Number of entries.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Number of entries in columns that other ranks own: the ends here of the edges that are cut.
    #[must_use]
    pub fn cut(&self) -> usize {
        if self.halo.len == 0 {
            return 0;
        }
        self.col_idx.count_outside(self.n_owned())
    }
}

/// The columns in these rows that are of other rows, sorted.
pub(crate) fn columns_outside(a: &Csr, rows: &Range<usize>) -> Vec<u32> {
    if rows.len() == a.n_rows() {
        return Vec::new();
    }
    // sorted once a chunk, so that no more than the halo itself is ever held twice
    let mut columns: Vec<u32> = a.col_idx()[a.row_ptr()[rows.start]..a.row_ptr()[rows.end]]
        .par_chunks(1 << 20)
        .flat_map_iter(|chunk| {
            let mut outside: Vec<u32> = chunk.iter().copied().filter(|&j| !rows.contains(&(j as usize))).collect();
            outside.sort_unstable();
            outside.dedup();
            outside
        })
        .collect();
    columns.par_sort_unstable();
    columns.dedup();
    columns
}

/// Of each rank, the columns in its rows that others own, sorted.
fn halo_columns(a: &Csr, ranges: &[Range<usize>]) -> Vec<Vec<u32>> {
    let columns_of = |rows: &Range<usize>| if ranges.len() == 1 { Vec::new() } else { columns_outside(a, rows) };
    ranges.par_iter().map(columns_of).collect()
}

/// Of each rank, how many elements it receives and sends, without a [`split`].
pub(crate) fn halo_sizes(a: &Csr, ranges: &[Range<usize>]) -> Vec<[usize; 2]> {
    let columns = halo_columns(a, ranges);
    let of = |columns: &[u32], rows: &Range<usize>| {
        let [begin, end] = [rows.start, rows.end].map(|row| columns.partition_point(|&j| (j as usize) < row));
        end - begin
    };
    let sent = |rows| columns.iter().map(|columns| of(columns, rows)).sum();
    ranges.iter().zip(&columns).map(|(rows, columns)| [columns.len(), sent(rows)]).collect()
}

/// The part of a rank with `rows` whose neighbours are not there: it has a halo, which nobody fills.
pub(crate) fn part_alone(a: &Csr, rows: Range<usize>) -> Part<'_> {
    let halo = columns_outside(a, &rows);
    let entries = a.row_ptr()[rows.start]..a.row_ptr()[rows.end];
    Part {
        row_ptr: &a.row_ptr()[rows.start..=rows.end],
        col_idx: ColumnIndices::of(a, &rows, &halo),
        values: Cow::Borrowed(&a.values()[entries]),
        halo: HaloPlan { len: halo.len(), ..HaloPlan::default() },
        of: Some(a).filter(|_| rows.len() == a.n_rows()), // samples have nothing to do with the rest
        rows,
    }
}

/// The exchange among ranks that own the rows `ranges`, in order, and need the columns `needed`, sorted, of others.
/// [`HaloPlan::is_mutual`] is the caller's to know.
pub(crate) fn plans(ranges: &[Range<usize>], needed: &[Vec<u32>]) -> Vec<HaloPlan> {
    let mut plans: Vec<HaloPlan> =
        needed.iter().map(|columns| HaloPlan { len: columns.len(), ..Default::default() }).collect();
    for (from, rows) in ranges.iter().enumerate() {
        for (to, columns) in needed.iter().enumerate() {
            let begin = columns.partition_point(|&j| (j as usize) < rows.start);
            let end = columns.partition_point(|&j| (j as usize) < rows.end);
            if begin == end {
                continue;
            }
            let sent = plans[from].send.len();
            plans[from].send.extend(columns[begin..end].iter().map(|&j| j - rows.start as u32));
            let segment = sent..sent + (end - begin);
            plans[from].receivers.push(Receiver { to, segment: segment.clone() });
            plans[to].receive.push(Receive { from, segment, halo: begin..end });
        }
    }
    plans
}

/// Splits the square matrix `a` over ranks that own the rows `ranges`, in order. Takes 4 bytes an entry more, once
/// somebody looks at all columns of a part; none if there is but one rank.
#[must_use]
pub fn split<'a>(a: &'a Csr, ranges: &[Range<usize>]) -> Vec<Part<'a>> {
    let halo_columns = halo_columns(a, ranges);
    let plans = plans(ranges, &halo_columns);
    parts(a, ranges, &halo_columns, plans)
}

/// The parts of ranks that own the rows `ranges`, need the columns `halo`, sorted, and exchange them by `plans`.
pub(crate) fn parts<'a>(a: &'a Csr, ranges: &[Range<usize>], halo: &[Vec<u32>], plans: Vec<HaloPlan>) -> Vec<Part<'a>> {
    let entries = |rows: &Range<usize>| a.row_ptr()[rows.start]..a.row_ptr()[rows.end];
    ranges
        .par_iter()
        .zip(halo)
        .zip(plans)
        .map(|((rows, halo), plan)| {
            let row_ptr = &a.row_ptr()[rows.start..=rows.end];
            let needs_halo = |&row: &u32| {
                let [begin, end] = [0, 1].map(|k| row_ptr[row as usize + k]);
                a.col_idx()[begin..end].iter().any(|&j| !rows.contains(&(j as usize)))
            };
            let is_mutual = plan.send.par_iter().all(needs_halo);
            Part {
                rows: rows.clone(),
                row_ptr,
                values: Cow::Borrowed(&a.values()[entries(rows)]),
                halo: HaloPlan { is_mutual, ..plan },
                of: Some(a),
                col_idx: ColumnIndices::of(a, rows, halo),
            }
        })
        .collect()
}

/// Lets the ranks of several matrices have the same neighbours in each: those that exchange elements for one matrix exchange messages
/// without elements for the others. So as many ranks receive a rank's message, whatever product it is for. Of each matrix, the plans of these
/// ranks; others do the same with theirs.
pub(crate) fn join_plans(matrices: &mut [Vec<&mut HaloPlan>]) {
    let ranks = matrices.first().map_or(0, Vec::len);
    for rank in 0..ranks {
        let of_all = |peers: fn(&HaloPlan) -> Vec<usize>| -> BTreeSet<usize> {
            matrices.iter().flat_map(|plans| peers(plans[rank])).collect()
        };
        let senders = of_all(|plan| plan.receive.iter().map(|one| one.from).collect());
        let receivers = of_all(|plan| plan.receivers.iter().map(|one| one.to).collect());
        for plans in matrices.iter_mut() {
            let HaloPlan { receive, receivers: own, .. } = &mut *plans[rank];
            for &from in &senders {
                if let Err(place) = receive.binary_search_by_key(&from, |one| one.from) {
                    receive.insert(place, Receive { from, segment: 0..0, halo: 0..0 });
                }
            }
            for &to in &receivers {
                if let Err(place) = own.binary_search_by_key(&to, |one| one.to) {
                    own.insert(place, Receiver { to, segment: 0..0 });
                }
            }
        }
    }
}

/// [`join_plans`] of these parts.
pub(crate) fn join_neighbours(matrices: &mut [Vec<Part<'_>>]) {
    join_plans(&mut matrices.iter_mut().map(|parts| plans_of(parts)).collect::<Vec<_>>());
}

/// The plans of all parts.
pub(crate) fn plans_of<'p>(parts: &'p mut [Part<'_>]) -> Vec<&'p mut HaloPlan> {
    parts.iter_mut().map(|part| &mut part.halo).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init)] // a list of one part

    use super::*;

    /// Tridiagonal of order 6 with a corner entry at (0, 5).
    fn matrix() -> Csr {
        let mut t: Vec<(u32, u32, f64)> = (0..6u32).map(|i| (i, i, 2.0)).collect();
        t.extend((0..5u32).flat_map(|i| [(i, i + 1, -1.0), (i + 1, i, -1.0)]));
        t.push((0, 5, 7.0));
        let column = |f: fn(&(u32, u32, f64)) -> u32| t.iter().map(f).collect::<Vec<_>>();
        let values: Vec<f64> = t.iter().map(|e| e.2).collect();
        Csr::from_triplets(6, 6, &column(|e| e.0), &column(|e| e.1), &values).unwrap()
    }

    #[test]
    fn three_ranks_by_hand() {
        let a = matrix();
        let parts = split(&a, &[0..2, 2..4, 4..6]);
        // rank 0 needs columns 2 (of rank 1) and 5 (of rank 2)
        assert_eq!(parts[0].halo.len, 2);
        assert_eq!(parts[0].col_idx[..3], [0, 1, 3]); // columns 0, 1, 5 of row 0
        assert_eq!(
            parts[0].halo.receive,
            [Receive { from: 1, segment: 0..1, halo: 0..1 }, Receive { from: 2, segment: 0..1, halo: 1..2 }]
        );
        // rank 1 sends its rows 2 and 3 to ranks 0 and 2
        let receivers = [Receiver { to: 0, segment: 0..1 }, Receiver { to: 2, segment: 1..2 }];
        assert_eq!((&parts[1].halo.send[..], &parts[1].halo.receivers[..]), (&[0, 1][..], &receivers[..]));
        // rank 2 sends row 5 to rank 0 and row 4 to rank 1
        assert_eq!(parts[2].halo.send, [1, 0]);
        let alone = part_alone(&a, 2..4);
        assert_eq!((&alone.col_idx[..], alone.row_ptr, alone.halo.len), (&parts[1].col_idx[..], parts[1].row_ptr, 2));
        assert_eq!(alone.values, parts[1].values);
        for ranges in [vec![0..2, 2..4, 4..6], vec![0..6, 6..6], vec![0..0, 0..5, 5..6], vec![0..6]] {
            let sizes = split(&a, &ranges).iter().map(|part| [part.halo.len, part.halo.send.len()]).collect::<Vec<_>>();
            assert_eq!(halo_sizes(&a, &ranges), sizes, "{ranges:?}");
        }
        assert_eq!(parts[1].halo.receive[1], Receive { from: 2, segment: 1..2, halo: 1..2 });
        // row 5 needs nothing of rank 0
        assert_eq!([0, 1, 2].map(|k| parts[k].halo.is_mutual), [true, true, false]);
    }

    #[test]
    fn halos_of_columns_by_hand() {
        let plan = split(&matrix(), &[0..2, 2..4, 4..6]).swap_remove(1).halo;
        assert_eq!((plan.send.as_slice(), plan.len), ([0, 1].as_slice(), 2));
        let of_three = plan.of_columns(3);
        assert_eq!((of_three.send.as_slice(), of_three.len), ([0, 1, 2, 3, 4, 5].as_slice(), 6));
        assert_eq!(
            of_three.receive,
            [Receive { from: 0, segment: 0..3, halo: 0..3 }, Receive { from: 2, segment: 3..6, halo: 3..6 }]
        );
        assert_eq!(of_three.receivers[1], Receiver { to: 2, segment: 3..6 });
        assert_eq!((of_three.receivers.len(), of_three.is_mutual), (plan.receivers.len(), plan.is_mutual));
        // elements in the order of the message
        let rank_2 = split(&matrix(), &[0..2, 2..4, 4..6]).swap_remove(2).halo;
        assert_eq!((rank_2.send.as_slice(), rank_2.of_columns(2).send), ([1, 0].as_slice(), vec![2, 3, 0, 1]));
        assert_eq!([&plan, &HaloPlan::default()].map(|plan| plan.of_columns(1)), [plan.clone(), HaloPlan::default()]);
    }

    #[test]
    fn neighbours_of_either_matrix_are_those_of_both() {
        let a = matrix();
        let transpose = a.transposed().unwrap();
        let ranges = [0..2, 2..4, 4..6];
        let mut both = [split(&a, &ranges), split(&transpose, &ranges)];
        let before = both.clone();
        join_neighbours(&mut both);
        // rank 2 sends to rank 0 for A, and rank 0 to rank 2 for its transpose
        assert_eq!(
            [0, 1].map(|k| both[k].iter().map(|part| part.halo.receivers.len()).collect::<Vec<_>>()),
            [[2, 2, 2]; 2]
        );
        let nothing = |from| Receive { from, segment: 0..0, halo: 0..0 };
        assert_eq!(both[0][2].halo.receive, [nothing(0), before[0][2].halo.receive[0].clone()]);
        assert_eq!(both[1][0].halo.receive, [before[1][0].halo.receive[0].clone(), nothing(2)]);
        for (now, before) in both.iter().flatten().zip(before.iter().flatten()) {
            assert_eq!((now.halo.len, &now.halo.send), (before.halo.len, &before.halo.send));
        }
        assert_eq!([both[0][0].halo.receive.len(), both[1][2].halo.receive.len()], [2, 2]);
    }

    #[test]
    fn alone_nothing_is_copied_or_exchanged() {
        let a = matrix();
        let parts = split(&a, &[0..6]);
        assert_eq!(parts[0].col_idx.as_ptr(), a.col_idx().as_ptr());
        assert_eq!(parts[0].halo, HaloPlan { is_mutual: true, ..HaloPlan::default() });
    }

    #[test]
    fn product_of_the_parts_is_the_product() {
        let a = matrix();
        let x: Vec<f64> = (1..=6).map(f64::from).collect();
        let whole = a.mul_vec(&x);
        for ranges in [vec![0..6], vec![0..1, 1..6], vec![0..0, 0..3, 3..3, 3..5, 5..6, 6..6]] {
            let parts = split(&a, &ranges);
            let messages: Vec<Vec<f64>> =
                parts.iter().map(|p| p.halo.send.iter().map(|&i| x[p.rows.start + i as usize]).collect()).collect();
            for part in &parts {
                let mut local = x[part.rows.clone()].to_vec();
                local.resize(part.n_owned() + part.halo.len, f64::NAN);
                for r in &part.halo.receive {
                    let to = part.n_owned() + r.halo.start..part.n_owned() + r.halo.end;
                    local[to].copy_from_slice(&messages[r.from][r.segment.clone()]);
                }
                let base = part.row_ptr[0];
                for (k, row) in part.rows.clone().enumerate() {
                    let range = part.row_ptr[k] - base..part.row_ptr[k + 1] - base;
                    let y: f64 = range.map(|e| part.values[e] * local[part.col_idx[e] as usize]).sum();
                    assert_eq!(y, whole[row]);
                }
            }
        }
    }
}
