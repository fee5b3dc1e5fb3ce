//! The same where the rows lie in several processes: parts may go from one to another.

use std::ops::Range;

use rayon::prelude::*;

use super::connected::{Rows, are_all_out, connected};
use super::{CHUNK, NONE, NullSpace, Sum, sum, two_sum};
use crate::comm::Processes;
use crate::comm::processes::{any, exchange, gathered, numbers};
use crate::distributed::connected::smallest_names;
use crate::distributed::share::Share;
use crate::error::Result;
use crate::matrix::Csr;
use crate::verify;

/// May be in a part, and is not looked at yet.
const OPEN: u32 = NONE - 1;

/// The own rows of a process, by their places among these; neighbours that are others' lie beyond them.
struct Window<'a> {
    a: &'a Csr,
    own: Range<usize>,
}

impl Rows for Window<'_> {
    fn count(&self) -> usize {
        self.own.len()
    }

    fn neighbours(&self, i: usize) -> impl Iterator<Item = usize> {
        self.a.neighbours(self.own.start + i).map(|j| j.wrapping_sub(self.own.start))
    }

    fn before(&self, i: usize) -> Option<usize> {
        self.a.before(self.own.start + i)?.checked_sub(self.own.start)
    }

    fn sums_to_zero(&self, i: usize) -> bool {
        self.a.sums_to_zero(self.own.start + i)
    }
}

/// What other processes have of a process's parts. The owner of a part is the process that has its first row: it adds the sums of all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spans {
    /// The first of this process's parts that it owns; all behind it are its own, too.
    first_own: usize,
    /// By process, parts of this one that it owns,
    to_owners: Vec<Vec<u32>>,
    /// and those of which it has rows while this one owns them.
    of_others: Vec<Vec<u32>>,
    /// Parts of all processes.
    dimension: usize,
}

impl Spans {
    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }
}

/// Connected rows of one process.
struct Piece {
    /// Its first row among all.
    name: u64,
    rows: u64,
    /// Whether it touches a row that is in no part.
    is_out: bool,
}

impl NullSpace {
    /// As [`NullSpace::of`], of a matrix of which this process has the window `a`; the same parts as of one process. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn of_share(share: &Share, a: &Csr, is_symmetric: bool) -> Result<Option<Self>> {
        if is_symmetric { of_symmetric(share, a) } else { of_general(share, a) }
    }

    /// As [`NullSpace::means`], of the rows of all processes. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn means_among(&self, processes: &dyn Processes, v: &[f64]) -> Result<Vec<f64>> {
        let mut sums = self.sums(v);
        let Some(spans) = &self.spans else { return Ok(self.means(v)) };
        let of_parts = |parts: &Vec<u32>, sums: &[[f64; 2]]| parts.iter().map(|&part| sums[part as usize]).collect();
        let to_owners = spans.to_owners.iter().map(|parts| of_parts(parts, &sums)).collect();
        for (parts, theirs) in spans.of_others.iter().zip(exchange::<[f64; 2]>(processes, to_owners)?) {
            for (&part, [other, other_low]) in parts.iter().zip(theirs) {
                let [sum, low] = &mut sums[part as usize];
                let (next, error) = two_sum(*sum, other);
                (*sum, *low) = (next, *low + error + other_low);
            }
        }
        let back = spans.of_others.iter().map(|parts| of_parts(parts, &sums)).collect();
        for (parts, theirs) in spans.to_owners.iter().zip(exchange::<[f64; 2]>(processes, back)?) {
            parts.iter().zip(theirs).for_each(|(&part, whole)| sums[part as usize] = whole);
        }
        Ok(sums.into_iter().map(|[sum, low]| sum + low).collect())
    }

    /// As [`NullSpace::norm`], of the parts of all processes. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn norm_among(&self, processes: &dyn Processes, means: &[f64]) -> Result<f64> {
        let first_own = self.spans.as_ref().map_or(0, |spans| spans.first_own);
        verify::norm_2_among(processes, &self.lengths(means)[first_own..])
    }
}

/// Connected parts of a symmetric matrix whose rows all sum to 0.
fn of_symmetric(share: &Share, a: &Csr) -> Result<Option<NullSpace>> {
    let (processes, own) = (&*share.processes, share.own.clone());
    let rows = Window { a, own: own.clone() };
    if !any(processes, !are_all_out(&rows))? {
        return Ok(None);
    }
    let sets = connected(&rows);
    let of_row = |i: usize| if sets.least(i as u32 + 1) == 0 { NONE } else { OPEN };
    let mut part: Vec<u32> = (0..own.len()).into_par_iter().map(of_row).collect();
    drop(sets);
    if !any(processes, part.contains(&OPEN))? {
        return Ok(None);
    }
    let (mut pieces, mut edges) = pieces(&mut part, &rows, |i| share.global(own.start + i));
    let mut names = vec![u64::MAX; share.order()];
    for (name, &part) in names[own.clone()].iter_mut().zip(&part) {
        *name = pieces.get(part as usize).map_or(u64::MAX, |piece: &Piece| piece.name);
    }
    share.fill(&mut names)?;
    let mut others: Vec<(u32, u64)> = Vec::new();
    for (piece, place) in edges.drain(..) {
        match names[place.wrapping_add(own.start)] {
            u64::MAX => pieces[piece as usize].is_out = true,
            name => others.push((piece, name)),
        }
    }
    drop(names);
    if !any(processes, pieces.iter().any(|piece| !piece.is_out))? {
        return Ok(None);
    }
    others.sort_unstable();
    others.dedup();
    let own_names: Vec<u64> = pieces.iter().map(|piece| piece.name).collect();
    let first = smallest_names(share, &own_names, &others)?;
    joined(share, part, &pieces, &first, true)
}

/// Walks from each open row to all that it is connected with among the own ones, which `part` then numbers; gives the pieces, and by piece
/// the places of others next to them.
fn pieces(part: &mut [u32], of: &Window<'_>, global: impl Fn(usize) -> u64) -> (Vec<Piece>, Vec<(u32, usize)>) {
    let (mut pieces, mut edges, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for start in 0..part.len() {
        if part[start] != OPEN {
            continue;
        }
        let (own, first_edge, mut is_out) = (pieces.len() as u32, edges.len(), false);
        let mut most_edges = first_edge + CHUNK;
        part[start] = own;
        rows.clear();
        rows.push(start);
        let mut next = 0;
        while let Some(&row) = rows.get(next) {
            next += 1;
            for j in of.neighbours(row) {
                match part.get_mut(j) {
                    None => edges.push((own, j)),
                    Some(part) if *part == OPEN => {
                        *part = own;
                        rows.push(j);
                    }
                    Some(part) => is_out |= *part == NONE,
                }
            }
            if edges.len() > most_edges {
                dedup_behind(&mut edges, first_edge);
                most_edges = first_edge + CHUNK.max(2 * (edges.len() - first_edge));
            }
        }
        dedup_behind(&mut edges, first_edge);
        pieces.push(Piece { name: global(start), rows: rows.len() as u64, is_out });
    }
    (pieces, edges)
}

/// Leaves one of equal elements from `first` on.
fn dedup_behind(edges: &mut Vec<(u32, usize)>, first: usize) {
    let mut behind = edges.split_off(first);
    behind.sort_unstable();
    behind.dedup();
    edges.append(&mut behind);
}

/// Parts of pieces of which those are one that have the same first row; `part` is the piece of each own row. Collective.
fn joined(
    share: &Share,
    mut part: Vec<u32>,
    pieces: &[Piece],
    first: &[u64],
    is_symmetric: bool,
) -> Result<Option<NullSpace>> {
    let (processes, count, process) = (&*share.processes, share.processes.count(), share.processes.process());
    let mut names = first.to_vec();
    names.sort_unstable();
    names.dedup();
    let place = |name: u64| names.partition_point(|other| *other < name);
    let mut of_names: Vec<[u64; 3]> = names.iter().map(|name| [*name, 0, 0]).collect();
    for (piece, name) in pieces.iter().zip(first) {
        let [_, rows, is_out] = &mut of_names[place(*name)];
        *rows += piece.rows;
        *is_out |= u64::from(piece.is_out);
    }
    // the owners add it up
    let mut to_owners: Vec<Vec<[u64; 3]>> = vec![Vec::new(); count];
    of_names.iter().for_each(|one| to_owners[share.process_of(one[0])].push(*one));
    let told = exchange(processes, to_owners)?;
    for [name, rows, is_out] in told.iter().enumerate().filter(|(from, _)| *from != process).flat_map(|(_, told)| told)
    {
        let [_, all, is_any_out] = &mut of_names[place(*name)];
        *all += rows;
        *is_any_out |= is_out;
    }
    let back = |told: &Vec<[u64; 3]>| told.iter().map(|one| of_names[place(one[0])]).collect();
    let back: Vec<Vec<[u64; 3]>> = exchange(processes, told.iter().map(back).collect())?;
    for one in back.iter().flatten() {
        of_names[place(one[0])] = *one;
    }
    // those that are none are left out
    let kept: Vec<u32> = of_names
        .iter()
        .scan(0, |next, [_, _, is_out]| {
            let own = if *is_out == 0 { *next } else { NONE };
            *next += u32::from(*is_out == 0);
            Some(own)
        })
        .collect();
    let of_piece: Vec<u32> = first.iter().map(|name| kept[place(*name)]).collect();
    let mut of_window = vec![NONE; share.order()];
    for (to, part) in of_window[share.own.clone()].iter_mut().zip(part.drain(..)) {
        *to = of_piece.get(part as usize).copied().unwrap_or(NONE);
    }
    let parts_of =
        |told: &Vec<[u64; 3]>| told.iter().map(|one| kept[place(one[0])]).filter(|part| *part != NONE).collect();
    let mut to_owners: Vec<Vec<u32>> = back.iter().map(parts_of).collect();
    let mut of_others: Vec<Vec<u32>> = told.iter().map(parts_of).collect();
    let own = std::mem::take(&mut to_owners[process]).len();
    of_others[process].clear();
    let sizes: Vec<usize> = of_names.iter().filter(|one| one[2] == 0).map(|one| one[1] as usize).collect();
    let dimension = gathered(processes, own as u64)?.iter().sum::<u64>() as usize;
    let spans = Spans { first_own: sizes.len() - own, to_owners, of_others, dimension };
    let found = NullSpace { part: of_window, sizes, is_symmetric, spans: Some(spans) };
    Ok((dimension > 0).then_some(found))
}

/// The vector of ones, if all columns sum to 0; not where a row is empty.
fn of_general(share: &Share, a: &Csr) -> Result<Option<NullSpace>> {
    let processes = &*share.processes;
    // then all entries do, which is seen sooner
    let total = sum(a.values());
    let all: f64 = numbers(processes, total.sum + total.low)?.iter().sum();
    let whole: f64 = numbers(processes, total.whole)?.iter().sum();
    if share.n == 0 || all.abs() > share.nnz as f64 * f64::EPSILON * whole {
        return Ok(None);
    }
    let mut sums = vec![Sum::default(); share.order()];
    for (&j, &v) in a.col_idx().iter().zip(a.values()) {
        sums[j as usize] = sums[j as usize].and(v);
    }
    let words: Vec<[f64; 4]> = sums.iter().map(|sum| [sum.sum, sum.low, sum.whole, f64::from(sum.count)]).collect();
    for (places, theirs) in share.handed_over(&words)? {
        for (&place, [other, low, whole, count]) in places.iter().zip(theirs) {
            let Sum { count: own, whole: of_own, .. } = sums[place as usize];
            let Sum { sum, low: error, .. } = sums[place as usize].and(other);
            sums[place as usize] = Sum { sum, low: error + low, whole: of_own + whole, count: own + count as u32 };
        }
    }
    let is_null = sums[share.own.clone()].iter().all(|sum| sum.count > 0 && sum.is_zero());
    if any(processes, !is_null)? {
        return Ok(None);
    }
    let rows = share.own.len();
    let piece = Piece { name: share.starts[processes.process()], rows: rows as u64, is_out: false };
    let pieces = if rows > 0 { vec![piece] } else { Vec::new() };
    joined(share, vec![0; rows], &pieces, &vec![0; pieces.len()], false)
}

#[cfg(test)]
mod tests;
