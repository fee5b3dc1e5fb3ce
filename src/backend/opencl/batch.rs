//! Many columns on an OpenCL device, by a work-group each.

use std::collections::VecDeque;
use std::ops::Range;

use super::passes::UNDER_WAY;
use super::{OpenClBackend, add_up};
use crate::backend::batch::{Batch, On};
use crate::backend::column::Column;
use crate::backend::log::records;
use crate::backend::machine::fixed_vectors;
use crate::backend::program::{Program, Stage, Step};
use crate::backend::source::persistent::Of;
use crate::backend::source::{self, Columns, Style};
use crate::backend::text::{WEIGHTS, X};
use crate::backend::{Backend, Record};
use crate::device::{DeviceVec, PendingRead, Pinned, Queue};
use crate::error::Result;
use crate::kernels::batch::{self, Iterations, Sizes};
use crate::kernels::products::Rows;
use crate::kernels::{self, Shape};
use crate::real::Real;

/// Work-items of a group, which has a column: if there is a group for each compute unit at most, or more.
const GROUPS: [usize; 2] = [512, 256];

/// Rows of the log. Those of the last two iterations before a launch stay in it.
const ROWS: u64 = 64;

/// Iterations of a launch.
const LONGEST: u64 = 32;

/// Runs of a program for many columns.
pub(super) struct DeviceBatch<T: Real, A: Real> {
    program: Program,
    group_size: usize,
    kernels: batch::Batch,
    sizes: Sizes,
    /// Where scalars are in a row of the log.
    places: Columns,
    state: Option<State<T, A>>,
}

/// What the columns have.
struct State<T: Real, A: Real> {
    count: usize,
    b: DeviceVec<T>,
    vectors: Vec<DeviceVec<T>>,
    sums: [DeviceVec<A>; 2],
    columns: Vec<Column>,
    limits: DeviceVec<A>,
    done: DeviceVec<i32>,
    log: DeviceVec<A>,
    idle: Vec<Pinned<A>>,
    coming: VecDeque<(PendingRead<Pinned<A>>, Range<u64>)>,
    /// The iteration that is enqueued next.
    next: u64,
}

impl<T: Real, A: Real> DeviceBatch<T, A> {
    /// Compiles a program for these rows and so many columns; `None` if that can't be done by a group alone.
    pub(super) fn new(
        backend: &OpenClBackend<T, A>,
        program: Program,
        rows: Rows<'_, T>,
        count: usize,
    ) -> Result<Option<Self>> {
        let (ctx, tuning) = (&backend.ctx, &backend.kernels.tuning);
        let info = ctx.info();
        let group_size = GROUPS[usize::from(count > info.compute_units as usize)];
        let Some(format) = rows.in_persistent(tuning, group_size) else { return Ok(None) };
        let is_possible = Shape::of_group(tuning.passes().group_size) == Shape::Gpu
            && info.max_work_group >= group_size
            && size_of::<A>() == size_of::<f64>() // limits are compared on both sides
            && kernels::persistent::Persistent::local_bytes::<T, A>(format, group_size) <= info.local_memory_bytes;
        if !is_possible {
            return Ok(None);
        }
        let places = Columns::of(&program);
        let style = Style { shape: Shape::Gpu, fronts: 1, rounds: UNDER_WAY };
        let Some(text) = source::batch::kernels(&program, &places, style) else { return Ok(None) };
        let lanes = kernels::lanes(group_size);
        let tiles = group_size / lanes;
        let sizes = Sizes {
            n: backend.n_owned(),
            tiles,
            pass_sums: program.sums.max(1) * tiles,
            products: program.products(),
            log: [ROWS as usize, places.width],
        };
        let shared = program.shared();
        let names = [source::batch::begin_name(&program), source::persistent::name(&program, Of::Columns)];
        let end = program.deferred.map(|_| source::batch::end_name(&program));
        let kernels = batch::Batch::build::<T, A>(
            ctx,
            tuning,
            (rows, format),
            ([&names[0], &names[1]], end.as_deref(), &text),
            (group_size, lanes),
            (sizes, (0..program.names.len()).map(|slot| shared.contains(&slot)).collect()),
        )?;
        Ok(Some(Self { program, group_size, kernels, sizes, places, state: None }))
    }

    /// Room for so many columns.
    fn state(&self, backend: &OpenClBackend<T, A>, count: usize) -> Result<State<T, A>> {
        let (ctx, n, shared) = (&backend.ctx, self.sizes.n, self.program.shared());
        let vector = |(slot, name): (usize, &&'static str)| {
            DeviceVec::zeros(ctx, if shared.contains(&slot) { 0 } else { count * n }, name)
        };
        let mut vectors = self.program.names.iter().enumerate().map(vector).collect::<Result<Vec<_>>>()?;
        fixed_vectors(backend, &self.program, [n, 0], &mut vectors)?;
        let sums = || DeviceVec::zeros(ctx, count * self.sizes.sums_room(), "partial sums");
        let log = self.sizes.log.iter().product::<usize>() * count;
        Ok(State {
            count,
            b: DeviceVec::zeros(ctx, count * n, "b")?,
            vectors,
            sums: [sums()?, sums()?],
            columns: Vec::new(),
            limits: DeviceVec::zeros(ctx, count, "limits")?,
            done: DeviceVec::zeros(ctx, count, "the state")?,
            log: DeviceVec::zeros(ctx, log, "the log")?,
            idle: vec![Pinned::zeros(ctx, self.landing(count))?, Pinned::zeros(ctx, self.landing(count))?],
            coming: VecDeque::new(),
            next: 1,
        })
    }

    /// Numbers that a launch leaves in the log.
    fn landing(&self, count: usize) -> usize {
        LONGEST as usize * count * self.sizes.log[1]
    }

    /// The values of what comes before the first iteration, of each column.
    fn first_values(&self, sums: &[A]) -> Vec<Column> {
        let steps = self.program.steps(Stage::Begin).iter().chain(self.program.steps(Stage::Start));
        let formed: Vec<usize> =
            steps.flat_map(|step| if let Step::Pass(pass) = step { pass.sums() } else { Vec::new() }).collect();
        let tiles = self.sizes.tiles;
        let column = |parts: &[A]| {
            let mut column = Column::new(&self.program);
            for sum in &formed {
                column.sums[*sum] = add_up(&parts[sum * tiles..(sum + 1) * tiles], 1, kernels::lanes(self.group_size));
            }
            let values = column.values(&self.program);
            column.carried = self.program.carried.iter().map(|carried| values[carried.first.0]).collect();
            column
        };
        sums.chunks(self.sizes.sums_room()).map(column).collect()
    }
}

impl<T: Real, A: Real> State<T, A> {
    /// What launches work on before iteration `iteration`, or in it.
    fn columns<'a>(
        &'a self,
        weights: Option<&'a DeviceVec<T>>,
        iteration: u64,
        vectors: &'a mut Vec<&'a DeviceVec<T>>,
    ) -> batch::Columns<'a, T, A> {
        vectors.extend(&self.vectors);
        if let Some(weights) = weights {
            vectors[WEIGHTS] = weights;
        }
        let turn = (iteration % 2) as usize;
        batch::Columns { count: self.count, sums: [&self.sums[turn], &self.sums[1 - turn]], vectors }
    }
}

impl<T: Real, A: Real> Batch<OpenClBackend<T, A>> for DeviceBatch<T, A> {
    fn longest(&self) -> u64 {
        LONGEST
    }

    fn begin(
        &mut self,
        backend: &OpenClBackend<T, A>,
        on: On<'_, OpenClBackend<T, A>>,
        b: &[T],
        x: &[T],
    ) -> Result<Vec<f64>> {
        let (ctx, count) = (&backend.ctx, b.len() / self.sizes.n);
        let former = self.state.take().filter(|state| state.count == count);
        let mut state = match former {
            Some(state) => state,
            None => self.state(backend, count)?,
        };
        state.b.write(ctx, 0, b)?;
        state.vectors[X].write(ctx, 0, x)?;
        self.kernels.begin(ctx, on.rows, &state.b, &state.columns(on.weights, 0, &mut Vec::new()))?;
        let mut sums = vec![A::default(); count * self.sizes.sums_room()];
        state.sums[0].read(ctx, 0, &mut sums)?;
        state.columns = self.first_values(&sums);
        let norm2 = |column: &Column| column.values(&self.program)[self.program.norm2.0];
        let norms = state.columns.iter().map(norm2).collect();
        self.state = Some(state);
        Ok(norms)
    }

    fn start(&mut self, backend: &OpenClBackend<T, A>, limits: &[f64], over: &[bool]) -> Result<()> {
        let (ctx, Some(state)) = (&backend.ctx, &mut self.state) else { return Ok(()) };
        let limits: Vec<A> = limits.iter().map(|limit| A::from_f64(*limit)).collect();
        state.limits.write(ctx, 0, &limits)?;
        let over: Vec<i32> = over.iter().map(|is_over| i32::from(*is_over)).collect();
        state.done.write(ctx, 0, &over)?;
        // a row that no kernel has written must not look like numbers
        state.log.fill(ctx, 0xFF)?;
        let mut first = vec![A::from_f64(f64::NAN); state.count * self.places.width];
        for (row, column) in first.chunks_mut(self.places.width).zip(&state.columns) {
            column.carried.iter().enumerate().for_each(|(k, v)| row[self.places.carried(k)] = A::from_f64(*v));
        }
        state.log.write(ctx, 0, &first)?;
        state.next = 1;
        Ok(())
    }

    fn launch(
        &mut self,
        backend: &OpenClBackend<T, A>,
        on: On<'_, OpenClBackend<T, A>>,
        iterations: Range<u64>,
    ) -> Result<()> {
        let landing = self.state.as_ref().map_or(0, |state| self.landing(state.count));
        let (ctx, Some(state)) = (&backend.ctx, &mut self.state) else { return Ok(()) };
        let count = iterations.end - iterations.start;
        self.kernels.iterate(
            ctx,
            on.rows,
            &state.columns(on.weights, iterations.start, &mut Vec::new()),
            &Iterations {
                at: (iterations.start % ROWS) as usize,
                count: count as usize,
                has_former: iterations.start > 1,
                limits: &state.limits,
                done: &state.done,
                log: &state.log,
            },
        )?;
        let memory = match state.idle.pop() {
            Some(memory) => memory,
            None => Pinned::zeros(ctx, landing)?,
        };
        // in one piece, or in two where it begins anew
        let row_len = state.count * self.places.width;
        let [begin, end] = [iterations.start % ROWS, iterations.start % ROWS + count];
        let rows = [begin..end.min(ROWS), 0..end.saturating_sub(ROWS)]
            .map(|r| r.start as usize * row_len..r.end as usize * row_len);
        let pieces: Vec<_> = rows.into_iter().filter(|rows| !rows.is_empty()).map(|rows| (&state.log, rows)).collect();
        let read = DeviceVec::start_reads(ctx, Queue::Compute, &pieces, memory, None, "the log")?;
        ctx.flush(Queue::Compute)?;
        // vectors take turns
        for _ in 0..count {
            let mut old: Vec<Option<DeviceVec<T>>> = state.vectors.drain(..).map(Some).collect();
            state.vectors = self.program.order.iter().filter_map(|from| old[*from].take()).collect();
        }
        state.next = iterations.end;
        state.coming.push_back((read, iterations));
        Ok(())
    }

    fn under_way(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.coming.len())
    }

    fn look(
        &mut self,
        backend: &OpenClBackend<T, A>,
        over: &[bool],
        see: &mut dyn FnMut(usize, &Record) -> bool,
    ) -> Result<Option<Range<u64>>> {
        let Some(state) = &mut self.state else { return Ok(None) };
        let Some((read, iterations)) = state.coming.pop_front() else { return Ok(None) };
        let memory = read.wait(&backend.ctx)?;
        let width = self.places.width;
        for column in (0..state.count).filter(|column| !over[*column]) {
            let rows = memory.chunks(state.count * width).map(|row| &row[column * width..]);
            let mut all = iterations
                .clone()
                .zip(rows)
                .flat_map(|(iteration, row)| records(&self.program, &self.places, row, iteration));
            let _ = all.any(|record| see(column, &record));
        }
        state.idle.push(memory);
        Ok(Some(iterations))
    }

    fn finish(&mut self, backend: &OpenClBackend<T, A>, on: On<'_, OpenClBackend<T, A>>) -> Result<Vec<T>> {
        let (ctx, Some(state)) = (&backend.ctx, &mut self.state) else { return Ok(Vec::new()) };
        while let Some((read, _)) = state.coming.pop_front() {
            state.idle.push(read.wait(ctx)?);
        }
        let last = ((state.next - 1) % ROWS) as usize;
        self.kernels.end(ctx, on.rows, &state.columns(on.weights, 0, &mut Vec::new()), (&state.log, last))?;
        let mut x = vec![T::default(); state.count * self.sizes.n];
        state.vectors[X].read(ctx, 0, &mut x)?;
        Ok(x)
    }
}
