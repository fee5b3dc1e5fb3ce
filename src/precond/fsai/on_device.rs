//! G made on a device, some rows at a time. The host makes the few that reach more columns than the tables there take.

use std::ops::Range;

use rayon::prelude::*;

use super::{Limits, Piece, System};
use crate::device::{Context, Info};
use crate::error::Result;
use crate::kernels::Shape;
use crate::kernels::fsai::{FsaiKernels, Growth, LANES, Rows, Scaled, TABLES, TOO_MANY};

/// Rows that are made at a time.
const PIECE: usize = 1 << 17;

/// Scales in these bounds leave room in single precision for what rows have.
const IN_SINGLE: Range<f64> = 1e-20..1e20;

/// What rows are made by.
struct Maker<'a> {
    ctx: &'a Context,
    /// With each size of tables that was needed yet.
    kernels: Vec<FsaiKernels>,
    matrix: Scaled,
    rows: Rows,
    growth: Growth,
}

/// G piece by piece, its values rounded to single precision, by the first of these devices that is a GPU with double precision. `None` if there is
/// none, if the matrix has more than 32-bit numbers count, or if the device fails.
pub(super) fn factor<'a>(
    devices: impl IntoIterator<Item = &'a Info>,
    system: &System<'_>,
    limits: Limits,
) -> Option<Vec<Piece>> {
    let a = system.a;
    let is_suited = |device: &&Info| Shape::of(device) == Shape::Gpu && device.has_f64;
    let device = devices.into_iter().find(is_suited)?;
    if limits.entries > LANES
        || a.nnz() == 0
        || u32::try_from(a.nnz()).is_err()
        || !system.scale.par_iter().all(|scale| IN_SINGLE.contains(scale))
    {
        return None;
    }
    made(device, system, limits).unwrap_or_else(|error| {
        log::warn!("the host makes the rows of fsai, as the device did not: {error}");
        None
    })
}

/// The same on this device; `None` if it has no room for the kernels.
pub(super) fn made(device: &Info, system: &System<'_>, limits: Limits) -> Result<Option<Vec<Piece>>> {
    let ctx = Context::open(device)?;
    let Some(kernels) = FsaiKernels::build(&ctx, TABLES[0])? else { return Ok(None) };
    let System { a, factor, scale } = system;
    let n = a.n_rows();
    let growth =
        Growth { entries: limits.entries as u32, at_once: limits.at_once.min(LANES) as u32, gain: limits.gain };
    let starts: Vec<u32> = a.row_ptr().iter().map(|start| *start as u32).collect();
    let matrix = kernels.scaled(&ctx, (&starts, a.col_idx(), a.values()), scale, *factor)?;
    let rows = Rows::new(&ctx, n.min(PIECE), growth)?;
    let mut maker = Maker { ctx: &ctx, kernels: vec![kernels], matrix, rows, growth };
    let firsts = (0..n).step_by(PIECE);
    firsts.map(|first| maker.piece(system, limits, first..n.min(first + PIECE))).collect::<Result<_>>().map(Some)
}

impl Maker<'_> {
    fn piece(&mut self, system: &System<'_>, limits: Limits, range: Range<usize>) -> Result<Piece> {
        let Self { ctx, kernels, matrix, rows, growth } = self;
        let (first, n) = (range.start, range.len());
        let mut lengths = vec![0; n];
        let mut left: Option<Vec<u32>> = None;
        for (k, table) in TABLES.into_iter().enumerate() {
            if k == kernels.len() {
                kernels.extend(FsaiKernels::build(ctx, table)?);
            }
            let Some(kernels) = kernels.get(k) else { break };
            kernels.rows(ctx, matrix, (first, n, left.as_deref()), *growth, rows)?;
            rows.lengths.read(ctx, 0, &mut lengths)?;
            left = Some((0..n as u32).filter(|row| lengths[*row as usize] == TOO_MANY).collect());
            if left.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        let left = left.unwrap_or_default();
        left.iter().for_each(|row| lengths[*row as usize] = 0);
        let mut starts = vec![0];
        starts.extend(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        let (columns, values) = kernels[0].gather(ctx, rows, &starts)?;
        let values = values.into_par_iter().map(f64::from).collect();
        let piece = (lengths.into_iter().map(|length| length as usize).collect(), columns, values);
        if left.is_empty() {
            return Ok(piece);
        }
        log::debug!("the host makes {} of {n} rows of fsai, which reach many columns", left.len());
        let rows: Vec<usize> = left.into_iter().map(|row| first + row as usize).collect();
        let mut others = super::rows(system, limits, &rows);
        others.2.iter_mut().for_each(|value| *value = f64::from(*value as f32));
        Ok(with_rows(piece, range, &rows, others))
    }
}

/// A piece of these rows, where the `missing` ones come from another piece.
fn with_rows((lengths, columns, values): Piece, range: Range<usize>, missing: &[usize], of_others: Piece) -> Piece {
    let (other_lengths, other_columns, other_values) = of_others;
    let mut all: Piece = (Vec::with_capacity(lengths.len()), Vec::new(), Vec::new());
    let (mut at, mut other_at, mut others) = (0, 0, missing.iter().zip(other_lengths).peekable());
    for (row, own) in range.zip(lengths) {
        let (from_columns, from_values, at, length) = match others.next_if(|(other, _)| **other == row) {
            Some((_, length)) => (&other_columns, &other_values, &mut other_at, length),
            None => (&columns, &values, &mut at, own),
        };
        all.0.push(length);
        all.1.extend(&from_columns[*at..*at + length]);
        all.2.extend(&from_values[*at..*at + length]);
        *at += length;
    }
    all
}
