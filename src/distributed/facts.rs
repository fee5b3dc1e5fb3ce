//! What is known of a matrix whose rows lie in several processes, from one look at all entries.

use rayon::prelude::*;

use super::share::Share;
use crate::comm::processes::{any, exchange, gathered, numbers};
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::stats::{Diagonal, Stats};
use crate::matrix::symmetry::{Pair, TOLERANCE, scale};

/// No row.
const NONE: u64 = u64::MAX;

/// The facts of the whole matrix, of which `a` is this process's window: the same for all processes. Collective.
///
/// # Errors
/// A failed process.
pub(crate) fn stats(share: &Share, a: &Csr) -> Result<Stats> {
    let processes = &*share.processes;
    let most =
        |own: usize| Ok::<_, crate::Error>(gathered(processes, own as u64)?.into_iter().max().unwrap_or(0) as usize);
    let first = |own: Option<usize>| {
        let row = own.map_or(NONE, |place| share.global(place));
        let first = gathered(processes, row)?.into_iter().min().filter(|row| *row != NONE);
        Ok::<_, crate::Error>(first.map(|row| row as usize))
    };
    let lengths = || share.own.clone().into_par_iter().map(|i| a.row(i).0.len());
    let reach = |i: usize| {
        let (row, columns) = (share.global(i), a.row(i).0);
        let ends = [columns.first(), columns.last()].into_iter().flatten();
        ends.map(|&j| row.abs_diff(share.global(j as usize))).max().unwrap_or(0) as usize
    };
    let diagonal: Vec<f64> = share.own.clone().into_par_iter().map(|i| a.get(i, i).unwrap_or(0.0)).collect();
    let first_where = |is: &(dyn Fn(f64) -> bool + Sync)| {
        first(diagonal.par_iter().position_first(|d| is(*d)).map(|k| k + share.own.start))
    };
    let has_rows = gathered(processes, share.own.len() as u64)?;
    let usual = numbers(processes, diagonal.first().copied().unwrap_or(0.0))?;
    let usual = has_rows.iter().zip(usual).find(|(rows, _)| **rows > 0).map_or(0.0, |(_, usual)| usual);
    let largest = share.own.clone().into_par_iter();
    let largest = largest.map(|i| a.row(i).1.iter().fold(0.0, |m: f64, v| m.max(v.abs()))).reduce(|| 0.0, f64::max);
    let shortest = lengths().min().map_or(NONE, |len| len as u64);
    let shortest = gathered(processes, shortest)?.into_iter().min().filter(|len| *len != NONE).unwrap_or(0);
    let empty = lengths().filter(|len| *len == 0).count();
    let (is_structural, asymmetry) = symmetry(share, a, &diagonal)?;
    Ok(Stats {
        n_rows: share.n as usize,
        n_cols: share.n as usize,
        nnz: share.nnz as usize,
        row_min: shortest as usize,
        row_max: most(lengths().max().unwrap_or(0))?,
        row_mean: if share.n == 0 { 0.0 } else { share.nnz as f64 / share.n as f64 },
        empty_rows: gathered(processes, empty as u64)?.iter().sum::<u64>() as usize,
        bandwidth: most(share.own.clone().into_par_iter().map(reach).max().unwrap_or(0))?,
        largest: share.largest(largest)?,
        structurally_symmetric: is_structural,
        numerically_symmetric: asymmetry.is_none(),
        asymmetry,
        diagonal: Diagonal {
            missing_or_zero: first_where(&|d| d == 0.0)?,
            negative: first_where(&|d| d < 0.0)?,
            uneven: first_where(&|d| d != usual)?,
        },
    })
}

/// Whether the pattern is symmetric, and the first pair of entries that differ by more than rounding, in global numbers. Entries in columns of
/// others are compared by those who have these rows.
fn symmetry(share: &Share, a: &Csr, diagonal: &[f64]) -> Result<(bool, Option<Pair<f64>>)> {
    let processes = &*share.processes;
    let of_row = |i: usize| diagonal[i - share.own.start];
    let entries = |i: usize| {
        let (columns, values) = a.row(i);
        columns.iter().map(|&j| j as usize).zip(values.iter().copied())
    };
    // within these rows
    let look = |i: usize| {
        let mut found = (true, None);
        for (j, here) in entries(i).filter(|(j, _)| share.own.contains(j)) {
            let there = a.get(j, i);
            found.0 &= there.is_some();
            let differs = differ(here, there.unwrap_or(0.0), [of_row(i), of_row(j)]);
            if differs && found.1.is_none() {
                found.1 = Some(pair(share, (i, j), here, there.unwrap_or(0.0)));
            }
        }
        found
    };
    let both =
        |one: (bool, Option<Pair<f64>>), other: (bool, Option<Pair<f64>>)| (one.0 && other.0, earlier(one.1, other.1));
    let mut found = share.own.clone().into_par_iter().map(look).reduce(|| (true, None), both);
    // across processes: row, column, value and diagonal of each entry go to who has the column's row
    let mut across: Vec<Vec<[u64; 4]>> = vec![Vec::new(); processes.count()];
    for i in share.own.clone() {
        for (j, v) in entries(i).filter(|(j, _)| !share.own.contains(j)) {
            let entry = [share.global(i), share.global(j), v.to_bits(), of_row(i).to_bits()];
            across[share.process_of(entry[1])].push(entry);
        }
    }
    for [row, column, v, d] in exchange(processes, across)?.into_iter().flatten() {
        let (Some(i), Some(j)) = (share.place(column), share.place(row)) else {
            // its column is in no entry of these rows
            let i = (column - share.starts[processes.process()]) as usize;
            let here = f64::from_bits(v);
            found.0 = false;
            if differ(here, 0.0, [f64::from_bits(d), diagonal[i]]) {
                found.1 = earlier(found.1, Some(global_pair((row, column), here, 0.0)));
            }
            continue;
        };
        let (there, here) = (a.get(i, j), f64::from_bits(v));
        found.0 &= there.is_some();
        if differ(here, there.unwrap_or(0.0), [f64::from_bits(d), of_row(i)]) {
            found.1 = earlier(found.1, Some(global_pair((row, column), here, there.unwrap_or(0.0))));
        }
    }
    let words = found
        .1
        .map_or([NONE; 4], |pair| [pair.row as u64, pair.col as u64, pair.upper.to_bits(), pair.lower.to_bits()]);
    let mut all = vec![0; 4 * processes.count()];
    processes.gather(&words, &mut all)?;
    let pairs = all.as_chunks::<4>().0.iter().filter(|words| words[0] != NONE);
    let pairs = pairs.map(|&[row, col, upper, lower]| Pair {
        row: row as usize,
        col: col as usize,
        upper: f64::from_bits(upper),
        lower: f64::from_bits(lower),
    });
    let first = pairs.fold(None, |first, pair| earlier(first, Some(pair)));
    Ok((!any(processes, !found.0)?, first))
}

/// Whether two entries across the diagonal, whose rows have these, differ by more than rounding.
fn differ(here: f64, there: f64, diagonal: [f64; 2]) -> bool {
    here != there && (here - there).abs() > TOLERANCE * scale([here, there], diagonal)
}

fn pair(share: &Share, (i, j): (usize, usize), here: f64, there: f64) -> Pair<f64> {
    global_pair((share.global(i), share.global(j)), here, there)
}

fn global_pair((row, column): (u64, u64), here: f64, there: f64) -> Pair<f64> {
    let (upper, lower) = if row <= column { (here, there) } else { (there, here) };
    Pair { row: row.min(column) as usize, col: row.max(column) as usize, upper, lower }
}

/// That of the first row, and there of the first column.
fn earlier(one: Option<Pair<f64>>, other: Option<Pair<f64>>) -> Option<Pair<f64>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if (other.row, other.col) < (one.row, one.col) { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
