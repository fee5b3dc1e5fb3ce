//! Systems on the host's threads.

use rayon::prelude::*;

use super::systems::{Layout, Systems};
use crate::error::{Error, Result};
use crate::real::Real;

/// Systems that are eliminated side by side.
const SIDE_BY_SIDE: usize = 64;
/// Rows of a chunk of a long system, at least.
pub(super) const LEAST_ROWS: usize = 1 << 12;

/// Gaussian elimination without exchanges, systems in parallel.
pub(super) fn thomas<T: Real>(systems: &Systems<'_, T>, d: &[T], x: &mut [T]) -> Result<()> {
    let shape = systems.shape;
    let failed = match shape.layout {
        _ if shape.is_empty() => None,
        Layout::Contiguous => x
            .par_chunks_mut(shape.size)
            .enumerate()
            .map_init(Vec::new, |scratch, (system, x)| {
                let first = system * shape.size;
                let row = |i: usize| (systems.coefficients.map(|array| array[first + i]), d[first + i]);
                thomas_one(row, x, scratch).err().map(|row| (system, row))
            })
            .filter_map(|failed| failed)
            .min(),
        Layout::Interleaved => {
            let mut blocks: Vec<Vec<&mut [T]>> = Vec::new();
            blocks.resize_with(shape.systems.div_ceil(SIDE_BY_SIDE), || Vec::with_capacity(shape.size));
            for row in x.chunks_mut(shape.systems) {
                blocks.iter_mut().zip(row.chunks_mut(SIDE_BY_SIDE)).for_each(|(block, row)| block.push(row));
            }
            let solve = |(block, rows): (usize, Vec<&mut [T]>)| side_by_side(systems, d, block * SIDE_BY_SIDE, rows);
            blocks.into_par_iter().enumerate().filter_map(solve).min()
        }
    };
    failed.map_or(Ok(()), |(system, row)| Err(Error::ZeroPivot { system, row }))
}

/// One system, whose coefficients and right-hand side `row` tells. The error is the row whose pivot is 0.
fn thomas_one<T: Real>(
    row: impl Fn(usize) -> ([T; 3], T),
    x: &mut [T],
    scratch: &mut Vec<T>,
) -> std::result::Result<(), usize> {
    let zero = T::default();
    scratch.clear();
    let (mut upper, mut value) = (zero, zero);
    for (i, x) in x.iter_mut().enumerate() {
        let ([a, b, c], d) = row(i);
        let pivot = b - a * upper;
        if pivot == zero {
            return Err(i);
        }
        let inverse = T::from_f64(1.0) / pivot;
        upper = c * inverse;
        value = (d - a * value) * inverse;
        scratch.push(upper);
        *x = value;
    }
    let mut next = zero;
    for (x, upper) in x.iter_mut().zip(scratch).rev() {
        next = *x - *upper * next;
        *x = next;
    }
    Ok(())
}

/// Neighbouring systems from `first` on, of whose rows x is given. Tells the first one with a pivot that is 0, and the row.
fn side_by_side<T: Real>(
    systems: &Systems<'_, T>,
    d: &[T],
    first: usize,
    mut rows: Vec<&mut [T]>,
) -> Option<(usize, usize)> {
    let width = rows.first().map_or(0, |row| row.len());
    let zero = T::default();
    let mut failed: Option<(usize, usize)> = None;
    let mut uppers = vec![zero; width * rows.len()];
    let (mut upper, mut value) = ([zero; SIDE_BY_SIDE], [zero; SIDE_BY_SIDE]);
    for (i, (x, kept)) in rows.iter_mut().zip(uppers.chunks_exact_mut(width)).enumerate() {
        let at = i * systems.shape.systems + first;
        let [a, b, c] = systems.coefficients.map(|array| &array[at..at + width]);
        let d = &d[at..at + width];
        let mut has_failed = false;
        for k in 0..width {
            let pivot = b[k] - a[k] * upper[k];
            has_failed |= pivot == zero;
            let inverse = T::from_f64(1.0) / pivot;
            upper[k] = c[k] * inverse;
            value[k] = (d[k] - a[k] * value[k]) * inverse;
            kept[k] = upper[k];
            x[k] = value[k];
        }
        if has_failed && failed.is_none() {
            // a pivot of 0 has left an infinity, or NaN
            let system = (0..width).find(|&k| !upper[k].to_f64().is_finite() || !value[k].to_f64().is_finite());
            failed = Some((first + system.unwrap_or(0), i));
        }
    }
    let mut next = [zero; SIDE_BY_SIDE];
    for (x, kept) in rows.iter_mut().zip(uppers.chunks_exact(width)).rev() {
        for k in 0..width {
            next[k] = x[k] - kept[k] * next[k];
            x[k] = next[k];
        }
    }
    failed
}

/// Elements of a system that lie side by side, or a copy of them.
pub(super) fn gathered<T: Real>(systems: &Systems<'_, T>, array: &[T], system: usize) -> Vec<T> {
    let shape = systems.shape;
    (0..shape.size).map(|row| array[shape.at(system, row)]).collect()
}

/// Puts a system's unknowns where they belong.
pub(super) fn scatter<T: Real>(systems: &Systems<'_, T>, from: &[T], system: usize, x: &mut [T]) {
    from.iter().enumerate().for_each(|(row, value)| x[systems.shape.at(system, row)] = *value);
}

/// Long systems one after the other, each in chunks on all threads: the partition method of Wang (1981). A chunk is reduced to an equation for
/// its last unknown and those of its neighbours; these equations are solved, and then the others, chunk by chunk. All are read twice.
pub(super) fn partition<T: Real>(systems: &Systems<'_, T>, d: &[T], x: &mut [T]) -> Result<()> {
    let shape = systems.shape;
    let threads = rayon::current_num_threads();
    let rows = shape.size.div_ceil(4 * threads).max(LEAST_ROWS);
    for system in 0..shape.systems {
        let fail = |row| Error::ZeroPivot { system, row };
        if shape.layout == Layout::Contiguous || shape.systems == 1 {
            let part = system * shape.size..(system + 1) * shape.size;
            let [a, b, c] = systems.coefficients.map(|array| &array[part.clone()]);
            one_partitioned([a, b, c, &d[part.clone()]], &mut x[part], rows).map_err(fail)?;
        } else {
            let [a, b, c] = systems.coefficients.map(|array| gathered(systems, array, system));
            let mut own = vec![T::default(); shape.size];
            one_partitioned([&a, &b, &c, &gathered(systems, d, system)], &mut own, rows).map_err(fail)?;
            scatter(systems, &own, system, x);
        }
    }
    Ok(())
}

/// What a chunk has to do with others: a, b, c and d of its last row, with the last unknown before it and the first one behind it; and its
/// first unknown as d − a (last before) − c (last).
struct Ends<T> {
    last: [T; 4],
    first: [T; 3],
}

/// One system in chunks of so many rows; a, b, c and d are given.
pub(super) fn one_partitioned<T: Real>(arrays: [&[T]; 4], x: &mut [T], rows: usize) -> std::result::Result<(), usize> {
    let n = x.len();
    let chunk = |k: usize| k * rows..n.min((k + 1) * rows);
    let chunks = n.div_ceil(rows);
    let ends: Vec<Ends<T>> = (0..chunks)
        .into_par_iter()
        .map(|k| reduce(arrays.map(|array| &array[chunk(k)])).map_err(|row| k * rows + row))
        .collect::<std::result::Result<_, _>>()?;
    let joined = |k: usize| {
        let [a, mut b, mut c, mut d] = ends[k].last;
        if let Some(next) = ends.get(k + 1) {
            let [fa, fc, fd] = next.first;
            (b, d, c) = (b - c * fa, d - c * fd, -(c * fc));
        }
        ([a, b, c], d)
    };
    let mut lasts = vec![T::default(); chunks];
    thomas_one(joined, &mut lasts, &mut Vec::new()).map_err(|k| chunk(k).end - 1)?;
    let solve = |(k, x): (usize, &mut [T])| {
        let before = if k == 0 { T::default() } else { lasts[k - 1] };
        let [a, b, c, d] = arrays.map(|array| &array[chunk(k)]);
        let Some((last, inner)) = x.split_last_mut() else { return Ok(()) };
        *last = lasts[k];
        let count = inner.len();
        let row = |i: usize| {
            let (mut lower, mut upper, mut value) = (a[i], c[i], d[i]);
            if i == 0 {
                (value, lower) = (value - lower * before, T::default());
            }
            if i + 1 == count {
                (value, upper) = (value - upper * lasts[k], T::default());
            }
            ([lower, b[i], upper], value)
        };
        thomas_one(row, inner, &mut Vec::with_capacity(count)).map_err(|row| k * rows + row)
    };
    x.par_chunks_mut(rows).enumerate().map(solve).collect()
}

fn reduce<T: Real>([a, b, c, d]: [&[T]; 4]) -> std::result::Result<Ends<T>, usize> {
    let (zero, end) = (T::default(), b.len() - 1);
    let nonzero = |pivot: T, row| if pivot == zero { Err(row) } else { Ok(pivot) };
    let mut last = [a[0], b[0], c[0], d[0]];
    for i in 1..=end {
        let factor = a[i] / nonzero(last[1], i - 1)?;
        last = [-(factor * last[0]), b[i] - factor * last[2], c[i], d[i] - factor * last[3]];
    }
    if end == 0 {
        return Ok(Ends { last, first: [zero, T::from_f64(-1.0), zero] }); // the last unknown itself
    }
    let mut first = [a[end - 1], b[end - 1], c[end - 1], d[end - 1]];
    for i in (0..end - 1).rev() {
        let factor = c[i] / nonzero(first[1], i + 1)?;
        first = [a[i], b[i] - factor * first[0], -(factor * first[2]), d[i] - factor * first[3]];
    }
    let [a, b, c, d] = first;
    let b = nonzero(b, 0)?;
    Ok(Ends { last, first: [a / b, c / b, d / b] })
}
