//! Launcher of `cl/cycle_coarse.cl`: the coarse levels of a multigrid cycle in one launch.

use std::cell::Cell;

use super::amg::DeviceSparse;
use super::{Argument, PERSISTENT, PRELUDE, USUAL_STD, count, launch, options_of};
use crate::device::{Context, DeviceVec, Grid, Kernel, Kind, Queue};
use crate::error::Result;
use crate::memory::Plain;
use crate::real::Real;

/// Work-items of a group at most: there is one on a compute unit, which waits for its memory if they are few.
const GROUP: usize = 1024;

/// The most lanes of a row.
const MOST_LANES: usize = 32;

/// What a step makes of sums, as the file numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Product,
    FromZero,
    Restrict,
    Solve,
    Correct,
    Residual,
    Smooth,
    SmoothFirst,
}

/// A level.
pub(crate) struct CoarseLevel {
    /// Its matrix, or of the last one the inverse, if it `is_solved`.
    pub(crate) a: DeviceSparse,
    /// −P and its transpose, unless it is the last.
    pub(crate) transfer: Option<[DeviceSparse; 2]>,
    /// c and d of the smoother, which adds c r + d A r.
    pub(crate) smoother: [f32; 2],
    pub(crate) is_solved: bool,
}

/// Levels one after the other, the first of which the launch is for.
pub(crate) struct CoarseLevels<T> {
    kernel: Kernel,
    grid: Grid,
    /// What groups tell each other, 1 and 2 from launch to launch, and what nobody reads.
    words: DeviceVec<u32>,
    turn: Cell<u32>,
    refused: DeviceVec<T>,
    count: u32,
    steps: DeviceVec<u32>,
    starts: DeviceVec<u32>,
    columns: DeviceVec<u32>,
    values: DeviceVec<f32>,
    /// Elements of the vectors of all levels, and of those of the first.
    room: [usize; 2],
}

impl<T: Real> CoarseLevels<T> {
    /// Groups that wait for each other on a device: one for each compute unit, or where they can't order what they write a single one.
    pub(crate) fn groups(ctx: &Context) -> usize {
        let info = ctx.info();
        let may_wait = info.kind != Kind::Cpu && ctx.fence_options().is_some();
        if may_wait { info.compute_units.max(1) as usize } else { 1 }
    }

    /// Compiles the kernel, or takes what was compiled in a former run, and lays the levels out.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild), or not enough memory.
    ///
    /// # Panics
    /// If a level does not follow from the one before.
    pub(crate) fn new(ctx: &Context, all: &[CoarseLevel]) -> Result<Self> {
        let coarse = include_str!("../../cl/cycle_coarse.cl");
        let files = [("prelude", PRELUDE), ("persistent", PERSISTENT), ("cycle_coarse", coarse)];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        let fence = ctx.fence_options();
        let group_size = GROUP.min(1 << ctx.info().max_work_group.max(1).ilog2());
        assert!(group_size >= MOST_LANES);
        let std = fence.as_deref().unwrap_or(USUAL_STD);
        let program = ctx.build(&source, &options_of::<f32, T>(std, ctx.info(), group_size, group_size))?;
        let layout = Layout::of(all);
        let matrices = || all.iter().flat_map(|level| [&level.a].into_iter().chain(level.transfer.iter().flatten()));
        Ok(Self {
            kernel: ctx.kernel(&program, "cycle_coarse", [f32::CL_NAME, T::CL_NAME])?,
            grid: Grid { groups: Self::groups(ctx), group_size },
            words: DeviceVec::from_slice(ctx, &[0, 0, 2, 2], "what groups tell each other")?,
            turn: Cell::new(1),
            refused: DeviceVec::zeros(ctx, 1, "what groups tell each other")?,
            count: count(layout.steps.len()),
            steps: DeviceVec::from_slice(ctx, layout.steps.as_flattened(), "the steps of coarse levels")?,
            starts: joined(ctx, matrices().map(|m| (&m.starts, m.n_rows + 1)))?,
            columns: joined(ctx, matrices().map(|m| (&m.columns, m.nnz())))?,
            values: joined(ctx, matrices().map(|m| (&m.values, m.nnz())))?,
            room: [layout.vectors, all.first().map_or(0, |level| level.a.n_rows)],
        })
    }

    /// Elements that the vectors of all levels have, and how many x has.
    pub(crate) fn room(&self) -> [usize; 2] {
        self.room
    }

    /// x of the first level for its b, which is at the beginning of `v`.
    ///
    /// # Errors
    /// A failing device.
    ///
    /// # Panics
    /// If a vector has less room.
    pub(crate) fn cycle(&self, ctx: &Context, v: &mut DeviceVec<f32>, x: &mut DeviceVec<f32>) -> Result<()> {
        assert!(self.room[0] <= v.len() && self.room[1] <= x.len());
        let turn = self.turn.get();
        self.turn.set(3 - turn);
        let Self { count, steps, starts, columns, values, words, refused, .. } = self;
        let args: [&dyn Argument; 10] = [count, steps, starts, columns, values, v, x, words, &turn, refused];
        // SAFETY: types as declared in the file; arrays as the steps tell, and vectors with room for all levels.
        unsafe { launch(ctx, &self.kernel, self.grid, &args) }
    }
}

/// The steps of a cycle, and where in common arrays the matrices and vectors of levels lie.
#[derive(Default)]
struct Layout {
    steps: Vec<[u32; 12]>,
    vectors: usize,
}

/// Where the vectors of a level begin: b, x, r and t.
type Vectors = [usize; 4];

impl Layout {
    fn of(all: &[CoarseLevel]) -> Self {
        let mut this = Self::default();
        let mut vectors: Vec<Vectors> = Vec::new();
        // where the matrices of each begin, in `starts` and in the others
        let (mut places, mut at) = (Vec::new(), [0; 2]);
        for (k, CoarseLevel { a, transfer, .. }) in all.iter().enumerate() {
            let (n, next) = (a.n_rows, all.get(k + 1).map(|next| next.a.n_rows));
            assert!(a.n_cols == n && transfer.is_some() == next.is_some());
            if let (Some([p, restriction]), Some(next)) = (transfer, next) {
                assert!([p.n_rows, p.n_cols, restriction.n_rows, restriction.n_cols] == [n, next, next, n]);
            }
            vectors.push([0, 1, 2, 3].map(|vector| this.vectors + vector * n));
            this.vectors += 4 * n;
            let mut place = |matrix: &DeviceSparse| {
                let place = at;
                at = [at[0] + matrix.n_rows + 1, at[1] + matrix.nnz()];
                place
            };
            let of_a = place(a);
            places.push((of_a, transfer.as_ref().map(|transfer| transfer.each_ref().map(&mut place))));
        }
        let last = all.len() - 1;
        let mut step = |made, k: usize, (matrix, place): (&DeviceSparse, [usize; 2]), from| {
            this.steps.push(words(made, matrix, place, from, vectors[k], all[k].smoother));
        };
        for (k, CoarseLevel { a, transfer, is_solved, .. }) in all.iter().enumerate() {
            let ([b, _, r, t], (of_a, of_transfer)) = (vectors[k], places[k]);
            if *is_solved && k == last {
                step(Made::Solve, k, (a, of_a), b);
                continue;
            }
            step(Made::Product, k, (a, of_a), b);
            step(Made::FromZero, k, (a, of_a), t);
            if let (Some([_, restriction]), Some([_, place])) = (transfer, of_transfer) {
                step(Made::Restrict, k + 1, (restriction, place), r);
            }
        }
        for (k, CoarseLevel { a, transfer, .. }) in all.iter().enumerate().rev() {
            let ([_, x, r, _], (of_a, of_transfer)) = (vectors[k], places[k]);
            if let (Some([p, _]), Some([place, _])) = (transfer, of_transfer) {
                step(Made::Correct, k, (p, place), vectors[k + 1][1]);
                step(Made::Residual, k, (a, of_a), x);
                step(if k == 0 { Made::SmoothFirst } else { Made::Smooth }, k, (a, of_a), r);
            }
        }
        this
    }
}

/// A step as the file has it.
fn words(
    made: Made,
    matrix: &DeviceSparse,
    [starts, entries]: [usize; 2],
    from: usize,
    [b, x, r, t]: Vectors,
    [c, d]: [f32; 2],
) -> [u32; 12] {
    // a power of two of lanes for a row, with some four entries each
    let lanes = (matrix.nnz() / matrix.n_rows.max(1) / 4).clamp(1, MOST_LANES).next_power_of_two();
    let [kind, n, lanes, starts, entries, from, b, x, r, t] =
        [made as usize, matrix.n_rows, lanes, starts, entries, from, b, x, r, t].map(count);
    [kind, n, lanes, starts, entries, from, b, x, r, t, c.to_bits(), d.to_bits()]
}

/// Arrays one behind the other.
fn joined<'a, E: Plain>(
    ctx: &Context,
    arrays: impl Iterator<Item = (&'a DeviceVec<E>, usize)> + Clone,
) -> Result<DeviceVec<E>> {
    let len = arrays.clone().map(|(_, len)| len).sum();
    let mut all = DeviceVec::uninit(ctx, len, "the coarse levels")?;
    let mut at = 0;
    for (array, len) in arrays.filter(|(_, len)| *len > 0) {
        all.start_copy(ctx, Queue::Compute, at, (array, 0..len), None, "the coarse levels")?;
        at += len;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    type Matrix = Vec<Vec<f64>>;

    /// A sparse matrix with small integers, some three in a row.
    fn matrix(n_rows: usize, n_cols: usize, salt: usize) -> Matrix {
        let entry = |i: usize, j: usize| match (7 * i + 5 * j + salt) % (n_cols.div_ceil(3) + 1) {
            0 => ((i + 2 * j + salt) % 5) as f64 - 2.0,
            _ => 0.0,
        };
        (0..n_rows).map(|i| (0..n_cols).map(|j| entry(i, j)).collect()).collect()
    }

    fn up(ctx: &Context, dense: &[Vec<f64>], n_cols: usize) -> DeviceSparse {
        let (mut starts, mut columns, mut values) = (vec![0u32], Vec::new(), Vec::new());
        for row in dense {
            for (j, v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                columns.push(j as u32);
                values.push(*v as f32);
            }
            starts.push(columns.len() as u32);
        }
        DeviceSparse {
            n_rows: dense.len(),
            n_cols,
            starts: DeviceVec::from_slice(ctx, &starts, "starts").unwrap(),
            columns: DeviceVec::from_slice(ctx, &columns, "columns").unwrap(),
            values: DeviceVec::from_slice(ctx, &values, "values").unwrap(),
        }
    }

    fn times(a: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
        a.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    /// x = M⁻¹ b of the first of these levels, each with A and −P and its transpose.
    fn cycle(levels: &[(Matrix, [Matrix; 2])], is_solved: bool, [c, d]: [f64; 2], b: &[f64]) -> Vec<f64> {
        let Some(((a, [p, restriction]), below)) = levels.split_first() else { return Vec::new() };
        if is_solved && below.is_empty() {
            return times(a, b);
        }
        let smoothed = |x: &[f64], r: &[f64]| -> Vec<f64> {
            x.iter().zip(r).zip(times(a, r)).map(|((x, r), t)| x + c * r + d * t).collect()
        };
        let left = |x: &[f64]| -> Vec<f64> { b.iter().zip(times(a, x)).map(|(b, t)| b - t).collect() };
        let x = smoothed(&vec![0.0; b.len()], b);
        if below.is_empty() {
            return x;
        }
        let e = cycle(below, is_solved, [c, d], &times(restriction, &left(&x)));
        let x: Vec<f64> = x.iter().zip(times(p, &e)).map(|(x, e)| x - e).collect();
        smoothed(&x, &left(&x))
    }

    #[test]
    fn steps_beside_plain_loops() {
        for device in list().devices.iter().take(1) {
            let ctx = Context::open(device).unwrap();
            let factors = [1.0, -1.0];
            for sizes in [&[1, 1][..], &[37, 11], &[70, 20, 3]] {
                let of = |k: usize| {
                    let (n, next) = (sizes[k], sizes.get(k + 1).copied().unwrap_or(0));
                    (matrix(n, n, k), [matrix(n, next, k + 1), matrix(next, n, k + 2)])
                };
                let levels: Vec<_> = (0..sizes.len()).map(of).collect();
                for is_solved in [false, true] {
                    let level = |k: usize| {
                        let ((a, [p, restriction]), is_last) = (&levels[k], k + 1 == sizes.len());
                        let transfer = || [up(&ctx, p, sizes[k + 1]), up(&ctx, restriction, sizes[k])];
                        CoarseLevel {
                            a: up(&ctx, a, sizes[k]),
                            transfer: (!is_last).then(transfer),
                            smoother: factors.map(|factor| factor as f32),
                            is_solved: is_last && is_solved,
                        }
                    };
                    let all: Vec<CoarseLevel> = (0..sizes.len()).map(level).collect();
                    let coarse = CoarseLevels::<f64>::new(&ctx, &all).unwrap();
                    let b: Vec<f64> = (0..sizes[0]).map(|i| (i % 4) as f64 - 1.0).collect();
                    let mut v: Vec<f32> = b.iter().map(|b| *b as f32).collect();
                    v.resize(coarse.room()[0], f32::NAN);
                    let mut v = DeviceVec::from_slice(&ctx, &v, "v").unwrap();
                    let mut x = DeviceVec::from_slice(&ctx, &vec![f32::NAN; sizes[0]], "x").unwrap();
                    let expected = cycle(&levels, is_solved, factors, &b);
                    assert!(expected.iter().all(|x| x.abs() < 1e7), "exact in single precision");
                    for _turn in 0..2 {
                        coarse.cycle(&ctx, &mut v, &mut x).unwrap();
                        let mut found = vec![0.0; sizes[0]];
                        x.read(&ctx, 0, &mut found).unwrap();
                        assert!(found.iter().map(|x| f64::from(*x)).eq(expected.iter().copied()), "{sizes:?}");
                    }
                }
            }
        }
    }
}
