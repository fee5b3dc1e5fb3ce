//! Passes on an OpenCL device.
//!
//! A device that works alone runs ahead of the host: each pass adds the partial sums that it needs and forms its scalars by itself,
//! in every group in the same order, and leaves what later ones need in the iteration's row of a log, which the host reads late. It
//! stops by itself: each pass tells the next whether the run is over. Several ranks whose kernels can meet do the same, with totals that
//! they exchange before a pass; of others the host gives each pass its factors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::batch::DeviceBatch;
use super::columns::ColumnPasses;
use super::device_passes::{DevicePasses, Set};
use super::together::Together;
use super::{DeviceSums, OpenClBackend, add_up};
use crate::backend::batch::Batch;
use crate::backend::log::{Launches, Log};
use crate::backend::pass_backend::{PassBackend, Turn, Which};
use crate::backend::program::{Pass, Program, Stage, Step};
use crate::backend::source::persistent::Of;
use crate::backend::source::{self, Columns, Ranks, Style};
use crate::backend::text::{Slot, X};
use crate::backend::together::{By, Ways};
use crate::backend::{Backend, Record};
use crate::device::{Context, DeviceVec, Grid, Kind, LiveMemory, Queue, SumsRead};
use crate::error::Result;
use crate::kernels::pass::{AheadPass, GivenPass, Meeting, PassSums};
use crate::kernels::persistent::{Persistent, Span};
use crate::kernels::products::{InPersistent, MEETING_BYTES, Rows, TOGETHER_BYTES};
use crate::kernels::{self, PassesFor, ProductsFor, Shape, persistent_group};
use crate::partition::HaloPlan;
use crate::real::Real;

/// Elements that a work-item has under way.
pub(super) const UNDER_WAY: usize = 4;

/// The most iterations of a launch: where the end of one costs little beside them.
const MAX_ITERATIONS: u64 = 32;
/// The same for several ranks, which begin and end with a sum.
const MAX_TOGETHER: u64 = 64;

/// Launches of a product that there is room for behind the sums of passes; if it has more, it gets room elsewhere.
const LAUNCHES: usize = 3;

impl<T: Real, A: Real> PassBackend for OpenClBackend<T, A> {
    type Passes = DevicePasses<A>;

    fn compile(&self, program: &Program) -> Result<DevicePasses<A>> {
        let (ctx, n) = (&self.ctx, self.n_owned());
        let units = ctx.info().compute_units.max(1) as usize;
        let launch = self.kernels.tuning.passes();
        let (group_size, shape) = (launch.group_size, Shape::of_group(launch.group_size));
        let (lanes, tiles) = (kernels::lanes(group_size), kernels::tiles(n, units, group_size));
        let (groups, fronts) = if shape == Shape::Gpu {
            let most_sets = launch.max_groups.max(1) * (group_size / lanes);
            let fronts = tiles.div_ceil(most_sets);
            (tiles.div_ceil(fronts).div_ceil(group_size / lanes), fronts)
        } else {
            (tiles.min(launch.max_groups.max(1)), 1)
        };
        let style = Style { shape, fronts, rounds: (UNDER_WAY / fronts).max(1) };
        let columns = Columns::of(program);
        let (is_alone, is_ahead, width) = (self.comm().size() == 1, self.runs_ahead(), self.columns);

        let mut wanted: Vec<(Which, Pass)> = Vec::new();
        for stage in [Stage::Begin, Stage::Start, Stage::Resume, Stage::Iteration, Stage::Complete] {
            for (k, step) in program.steps(stage).iter().enumerate() {
                let Step::Pass(pass) = step else { continue };
                if stage != Stage::Iteration || !is_ahead {
                    wanted.push((Which { stage, step: k, is_halo: false }, pass.clone()));
                }
                let on_halo = pass.on_halo(&program.has_halo);
                if stage == Stage::Iteration && !is_alone && !on_halo.lines.is_empty() {
                    wanted.push((Which { stage, step: k, is_halo: true }, on_halo));
                }
            }
        }
        let types = [T::CL_NAME, A::CL_NAME];
        let (mut given, mut of_columns) = (BTreeMap::new(), None);
        let (mut ahead, mut last) = (Vec::new(), None);
        if width > 1 {
            of_columns = Some(ColumnPasses::compile(self, program, wanted, style, group_size)?);
        } else {
            let mut text: String =
                wanted.iter().map(|(which, pass)| source::given(pass, &which.kernel(pass), style)).collect();
            if is_ahead {
                text.push_str(&ahead_text(program, &columns, style, Ranks::Alone));
            }
            let code = kernels::build_generated::<T, A>(ctx, &text, group_size, PassesFor::One)?;
            for (which, pass) in wanted {
                let counts = [pass.factors().len(), pass.vectors().len()];
                given.insert(which, GivenPass::load(ctx, &code, &which.kernel(&pass), types, counts)?);
            }
            if is_ahead {
                (ahead, last) = load_ahead::<T, A>(ctx, &code, program, &columns, Ranks::Alone)?;
            }
        }
        let partials = source::partials(program);

        let products = program.products();
        // a group leaves two numbers for each column
        let room = (program.sums.max(1) * tiles * width).next_multiple_of(2 * width);
        let of_product = LAUNCHES * self.max_groups;
        let set = || -> Result<Set<A>> {
            let array = Arc::new(DeviceVec::zeros(ctx, room + 2 * width * products * of_product, "partial sums")?);
            let dots = |k| Some(DeviceSums::behind(Arc::clone(&array), room / (2 * width) + k * of_product));
            Ok(Set { dots: (0..products).map(dots).collect(), array })
        };
        let flags = || {
            let flag = |_| Ok(Arc::new(DeviceVec::zeros(ctx, 1, "the state")?));
            program.passes().map(flag).collect::<Result<Vec<_>>>()
        };
        Ok(DevicePasses {
            given,
            of_columns,
            ahead,
            last,
            style,
            grid: Grid { groups, group_size },
            tiles,
            group_size,
            sets: [set()?, set()?],
            last_sum: program.sums.saturating_sub(1),
            partials,
            coming: None,
            log: Log::new(ctx, columns)?,
            several: None,
            persistent: None,
            together: None,
            would_meet: false,
            done: [flags()?, flags()?],
            done_last: DeviceVec::zeros(ctx, 1, "the state")?,
        })
    }

    fn pass(
        &self,
        passes: &mut DevicePasses<A>,
        which: Which,
        _: &Pass,
        factors: &[f64],
        (v, slots): (&mut [DeviceVec<T>], &[Slot]),
        (range, turn): (Range<usize>, Turn),
    ) -> Result<()> {
        let vectors: Vec<&DeviceVec<T>> = slots.iter().map(|slot| &v[*slot]).collect();
        let elements = [range.start, range.len()];
        let grid = if which.is_halo {
            Grid { groups: range.len().div_ceil(passes.group_size).clamp(1, passes.grid.groups), ..passes.grid }
        } else {
            passes.grid
        };
        // on a halo there are no sums: its tiles are those of the launch
        let tiles = if which.is_halo && passes.group_size > 1 { grid.groups } else { passes.tiles };
        let Set { array, .. } = &passes.sets[turn.0];
        let (last, stride) = (passes.last_sum, passes.tiles as u32);
        let sums = PassSums { partials: array, last, stride, tiles: tiles as u32 };
        if let Some(of_columns) = &mut passes.of_columns {
            return of_columns.pass(self, which, factors, (grid, elements), sums, &vectors);
        }
        let factors: Vec<A> = factors.iter().map(|factor| A::from_f64(*factor)).collect();
        passes.given[&which].launch(&self.ctx, grid, range.start, range.len(), &factors, sums, &vectors)
    }

    fn take_dots(&self, passes: &mut DevicePasses<A>, product: usize, turn: Turn) -> Result<DeviceSums<A>> {
        passes.sets[turn.0].dots[product].take().map_or_else(|| self.product_sums(), Ok)
    }

    fn put_dots(&self, passes: &mut DevicePasses<A>, product: usize, turn: Turn, dots: DeviceSums<A>) {
        passes.sets[turn.0].dots[product] = Some(dots);
    }

    fn take_columns(
        &self,
        passes: &DevicePasses<A>,
        (from, of): (&DeviceVec<T>, usize),
        which: &[usize],
        to: &mut DeviceVec<T>,
    ) -> Result<()> {
        let Some(of_columns) = &passes.of_columns else { unreachable!("one column is not taken from others") };
        of_columns.take(self, passes.grid, (from, of), which, to)
    }

    fn sum_over_ranks(&self, values: &mut [f64]) -> Result<()> {
        self.sum_values(values)
    }

    fn send_parts(&self, passes: &mut DevicePasses<A>, wanted: &[(usize, Turn)]) -> Result<()> {
        if let Some((read, _)) = passes.coming.take() {
            self.keep_landing(self.end_fetch(read)?);
        }
        passes.coming = Some((self.fetch(passes, wanted)?, wanted.to_vec()));
        Ok(())
    }

    fn parts(&self, passes: &mut DevicePasses<A>, wanted: &[(usize, Turn)], values: &mut [f64]) -> Result<()> {
        let start = Instant::now();
        let read = match passes.coming.take() {
            Some((read, of)) if of == wanted => read,
            other => {
                other.map_or(Ok(()), |(read, _)| self.end_fetch(read).map(|memory| self.keep_landing(memory)))?;
                self.fetch(passes, wanted)?
            }
        };
        let memory = self.end_fetch(read)?;
        if passes.of_columns.is_some() {
            let sums = wanted.iter().flat_map(|(sum, _)| sum * self.columns..(sum + 1) * self.columns);
            sums.zip(&memory[..]).for_each(|(at, sum)| values[at] = sum.to_f64());
            self.keep_landing(memory);
            self.waited(start);
            return Ok(());
        }
        let mut rest = &memory[..];
        for (array, run) in passes.runs(wanted) {
            let (here, others) = rest.split_at(run.len());
            rest = others;
            for (sum, turn) in wanted {
                let (of, elements, step) = passes.place(*sum, *turn);
                if of.id() == array.id() && run.start <= elements.start && elements.end <= run.end {
                    let elements = elements.start - run.start..elements.end - run.start;
                    values[*sum] = add_up(&here[elements], step, kernels::lanes(passes.grid.group_size));
                }
            }
        }
        self.keep_landing(memory);
        self.waited(start);
        Ok(())
    }

    fn runs_ahead(&self) -> bool {
        self.comm().size() == 1 && self.columns == 1
    }

    fn begin_ahead(&self, passes: &mut DevicePasses<A>, carried: &[f64]) -> Result<()> {
        passes.log.begin(&self.ctx, carried)?;
        for flag in passes.done.iter().flatten() {
            flag.fill(&self.ctx, 0)?;
        }
        self.set_done(passes.done_before(1, 0));
        Ok(())
    }

    fn pass_ahead(
        &self,
        passes: &mut DevicePasses<A>,
        (pass, number): (&Pass, usize),
        iteration: u64,
        limit: f64,
        (v, arriving): (&mut [DeviceVec<T>], Option<Slot>),
    ) -> Result<()> {
        let vectors: Vec<&DeviceVec<T>> = passes.ahead[number].vectors().iter().map(|slot| &v[*slot]).collect();
        let (done, done_next) = (passes.done_before(iteration, number), &passes.done[(iteration % 2) as usize][number]);
        let kernel = &passes.ahead[number];
        let ahead = passes.ahead(kernel, iteration, limit, [&done, done_next]);
        // scalars are one group's work
        let grid = if pass.lines.is_empty() { Grid { groups: 1, ..passes.grid } } else { passes.grid };
        let sums = passes.sums(Turn::of(iteration));
        let (y, meeting) = (&v[arriving.unwrap_or(X)], self.meeting(passes, arriving.is_some()));
        let meeting = meeting.as_ref().map(|meeting| (meeting, y));
        kernel.launch(&self.ctx, grid, self.n_owned(), &ahead, sums, &vectors, meeting)?;
        self.set_done(Arc::clone(done_next));
        let met = [kernel.sums_over_ranks(), arriving.is_some()];
        if let Some(together) = &mut passes.together {
            together.met(met);
            self.sending.replace(Some(together.sending()));
            self.ctx.flush(Queue::Compute)?; // others wait for it
        }
        Ok(())
    }

    fn carried_ahead(&self, passes: &DevicePasses<A>, iteration: u64, k: usize) -> Result<f64> {
        passes.log.carried(&self.ctx, iteration, k)
    }

    fn look(
        &self,
        passes: &mut DevicePasses<A>,
        program: &Program,
        iteration: u64,
        drain: bool,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let is_alone = self.runs_ahead();
        let mut end = iteration + 1;
        // launches of several iterations of several ranks form it themselves
        let is_left = is_alone || passes.persistent.is_none();
        match program.last.as_ref().filter(|_| is_left) {
            Some(_) if drain && passes.log.looks.has_news(end) => {
                self.form_last(passes, iteration, &self.nothing()?)?
            }
            Some(_) if !drain => end = iteration, // the next iteration tells of this one
            _ => {}
        }
        let waited = |start| self.waited(start);
        let done = passes.log.look(&self.ctx, program, (end, iteration), (drain, is_alone), &waited, records)?;
        done.into_iter().for_each(|iteration| self.set_known_done(iteration));
        match &passes.together {
            Some(together) if passes.log.has_lost_rank => Err(together.lost()),
            _ => Ok(()),
        }
    }

    fn prepare_several(
        &self,
        passes: &mut DevicePasses<A>,
        program: &Program,
        rows: Option<Rows<'_, T>>,
        halo: Option<&HaloPlan>,
        bytes: u64,
    ) -> Result<()> {
        if self.columns > 1 {
            return Ok(());
        }
        if self.runs_ahead() {
            passes.persistent = self.persistent(passes, program, rows, bytes, false);
            return Ok(());
        }
        let info = self.ctx.info();
        // on a processor, kernels that wait keep from running what they wait for; in tests of this crate there is but one
        let may_meet = (info.kind != Kind::Cpu || cfg!(test))
            && bytes <= MEETING_BYTES
            && passes.style.shape == Shape::Gpu
            && self.ctx.fence_options().is_some();
        // rows in one launch: there is room for its partial sums among those of passes
        let Some((rows, meetings)) = rows.zip(source::persistent::meetings(program)).filter(|_| may_meet) else {
            return Ok(());
        };
        passes.would_meet = LiveMemory::is_offered(&self.ctx);
        passes.several = self.several(program, rows, bytes, true).map(|(_, grid)| grid).filter(|_| passes.would_meet);
        if let Some(halo) = halo {
            match Together::new::<A>(&self.ctx, self.n_owned(), halo, &program.has_halo, meetings) {
                Ok(together) => passes.together = together,
                Err(e) => log::info!("{}: {e}", info.name),
            }
        }
        if passes.together.is_some() {
            passes.persistent = self.persistent(passes, program, Some(rows), bytes, true);
            if passes.persistent.is_none() {
                self.prepare_meetings(passes, program, Some(rows))?;
            }
        } else if passes.several.is_some() {
            self.kernels.prepare(&self.ctx, rows, ProductsFor::Several)?;
        }
        Ok(())
    }

    fn begin_together(
        &self,
        passes: &mut DevicePasses<A>,
        program: &Program,
        rows: Option<Rows<'_, T>>,
        carried: &[f64],
    ) -> Result<bool> {
        if self.comm().size() == 1 {
            return Ok(false);
        }
        let mut can = By::Host;
        if passes.together.is_some() && !self.recorder.is_wanted() {
            self.begin_ahead(passes, carried)?;
            self.ctx.finish()?;
            let is_granted = passes.persistent.is_some() && passes.log.launches() == Launches::Granted;
            can = if is_granted { By::Several } else { By::One };
        }
        let would = match &passes.several {
            Some(_) => By::Several,
            None if passes.would_meet => By::One,
            None => By::Host,
        };
        let Ways { can, would, .. } = Ways { can, would, is_host: false }.agree(self.comm())?;
        if can == By::One {
            self.prepare_meetings(passes, program, rows)?;
        }
        let has_begun = match &mut passes.together {
            Some(together) if can != By::Host => together.begin(self.comm())?,
            _ => false,
        };
        if !has_begun {
            self.set_done(Arc::clone(&self.never));
            // so that x has the same bits as if they had met
            self.in_one.set(would != By::Host);
            self.as_several.set(passes.several.filter(|_| would == By::Several));
        } else if can == By::One {
            self.sending.replace(passes.together.as_ref().map(Together::sending));
        }
        Ok(has_begun)
    }

    fn end_together(&self, passes: &mut DevicePasses<A>) -> Result<()> {
        if let Some(together) = passes.together.as_mut().filter(|together| together.is_under_way()) {
            self.ctx.finish()?;
            together.end();
            self.sending.take();
        }
        Ok(())
    }

    fn several_ahead(
        &self,
        passes: &mut DevicePasses<A>,
        rows: Option<Rows<'_, T>>,
        (iteration, most): (u64, u64),
        limit: f64,
        v: &mut [DeviceVec<T>],
    ) -> Result<Option<u64>> {
        if let Launches::Refused(first) = passes.log.launches() {
            log::info!("{}: not all work-groups run at once, iterations are launched one by one", self.ctx.info().name);
            self.forget_timed();
            passes.log.give_up_launches();
            // as if neither that launch nor the later ones had been
            if self.runs_ahead() {
                self.set_done(passes.done_before(first, 0));
            }
            return Ok(Some(first));
        }
        let is_shared = passes.together.as_ref().is_some_and(Together::is_under_way);
        if !is_shared && !self.runs_ahead() {
            return Ok(None);
        }
        let count = passes.log.looks.batch.min(if is_shared { MAX_TOGETHER } else { MAX_ITERATIONS }).min(most);
        let (Some(persistent), Some(rows)) = (&passes.persistent, rows) else { return Ok(None) };
        if passes.log.launches() == Launches::Over || count == 0 || !self.begin_several(iteration, count)? {
            return Ok(None);
        }
        let next = iteration + count;
        let [sums, former] =
            [Turn::of(iteration), Turn::of_products(iteration)].map(|turn| &*passes.sets[turn.0].array);
        let first: Vec<u32> = passes.sets[0].dots.iter().flatten().map(|dots| dots.parts().1).collect();
        let done_next = passes.done_before(next, 0);
        persistent.launch(
            &self.ctx,
            rows,
            &Span {
                at: Log::<A>::row(iteration),
                rows: passes.log.size(),
                log: &passes.log.entries,
                count: count as u32,
                n: self.n_owned(),
                tiles: passes.tiles as u32,
                has_former: iteration > 1,
                limit: A::from_f64(limit),
                done: &passes.done_before(iteration, 0),
                done_next: &done_next,
                sums: [sums, former],
                first: &first,
                vectors: v,
                shared: passes.together.as_ref().map(|together| together.shared(self.comm().size())),
            },
        )?;
        if is_shared {
            self.ctx.flush(Queue::Compute)?; // others wait for it
            passes.together.iter_mut().for_each(|together| together.launched(count as u32));
        } else {
            self.set_done(done_next);
        }
        Ok(Some(next))
    }

    fn batch(&self, program: Program, rows: Rows<'_, T>, columns: usize) -> Result<Option<Box<dyn Batch<Self>>>> {
        Ok(DeviceBatch::new(self, program, rows, columns)?.map(|batch| Box::new(batch) as _))
    }

    #[cfg(test)]
    fn refuse_several(&self, passes: &mut DevicePasses<A>) -> bool {
        passes.persistent.as_mut().is_some_and(|persistent| persistent.refuse(&self.ctx).is_ok())
    }
}

/// The text of the passes of an iteration, and of what forms its end, which form their factors themselves.
fn ahead_text(program: &Program, columns: &Columns, style: Style, ranks: Ranks) -> String {
    let passes = program.passes().chain(&program.last);
    passes.map(|pass| source::ahead(pass, program, columns, style, ranks)).collect()
}

/// The kernels of that text.
fn load_ahead<T: Real, A: Real>(
    ctx: &Context,
    code: &crate::device::Program,
    program: &Program,
    columns: &Columns,
    ranks: Ranks,
) -> Result<(Vec<AheadPass>, Option<AheadPass>)> {
    let partials = source::partials(program);
    let load = |pass: &Pass| {
        let needs = [source::products_of(pass, &partials), pass.vectors()];
        let sums_over_ranks = (ranks != Ranks::Alone).then(|| source::sums_over_ranks(pass, program, columns));
        let types = [T::CL_NAME, A::CL_NAME];
        let is = [program.finished_by(pass).is_some(), source::arriving(pass, program).is_some()];
        AheadPass::load(ctx, code, (&source::kernel_ahead(pass, ranks), sums_over_ranks), types, needs, is)
    };
    Ok((program.passes().map(load).collect::<Result<_>>()?, program.last.as_ref().map(load).transpose()?))
}

impl<T: Real, A: Real> OpenClBackend<T, A> {
    /// What launches of several iterations need of the rows, and their grid, if they are worth while, and possible.
    fn several(
        &self,
        program: &Program,
        rows: Rows<'_, T>,
        bytes: u64,
        is_shared: bool,
    ) -> Option<(InPersistent, Grid)> {
        let (tuning, info) = (&self.kernels.tuning, self.ctx.info());
        let group_size = persistent_group(info);
        let format = rows.in_persistent(tuning, group_size)?;
        // of iterations of two launches; each that is saved is worth as much
        let most_bytes = if is_shared { TOGETHER_BYTES } else { format.most_bytes };
        let launches = program.iteration.len() as u64;
        let is_possible = bytes <= most_bytes / 2 * launches
            && Shape::of_group(tuning.passes().group_size) == Shape::Gpu
            && Persistent::local_bytes::<T, A>(format, group_size) <= info.local_memory_bytes;
        if !is_possible {
            return None;
        }
        // a barrier over groups: one on each compute unit
        let groups = format.groups.clamp(1, self.max_groups.min(info.compute_units as usize).max(1));
        // PoCL 3.1 has the fence, and gave wrong sums where two groups ran at once: see docs/measurements.md
        let may_wait = groups == 1 || info.kind != Kind::Cpu && self.ctx.fence_options().is_some();
        may_wait.then_some((format, Grid { groups, group_size }))
    }

    /// What makes them.
    fn persistent(
        &self,
        passes: &DevicePasses<A>,
        program: &Program,
        rows: Option<Rows<'_, T>>,
        bytes: u64,
        is_shared: bool,
    ) -> Option<Persistent> {
        let (ctx, tuning, info) = (&self.ctx, &self.kernels.tuning, self.ctx.info());
        let rows = rows?;
        let (format, Grid { groups, group_size }) = self.several(program, rows, bytes, is_shared)?;
        let lanes = kernels::lanes(tuning.passes().group_size);
        let fronts = passes.tiles.div_ceil(groups * (group_size / lanes).max(1));
        let style = Style { shape: Shape::Gpu, fronts, rounds: (UNDER_WAY / fronts).max(1) };
        let columns = &passes.log.columns;
        let of = if is_shared { Of::Ranks } else { Of::Device };
        let (name, text) =
            (source::persistent::name(program, of), source::persistent::kernel(program, columns, style, of));
        let shape = ((group_size, lanes), (groups, is_shared));
        Persistent::build::<T, A>(ctx, tuning, (rows, format), (&name, &text), shape.0, shape.1)
            .inspect_err(|e| log::warn!("{}: iterations are launched one by one: {e}", info.name))
            .ok()
    }

    /// Starts to bring this rank's parts of sums to the host: partial sums, or those of columns added up.
    fn fetch(&self, passes: &DevicePasses<A>, wanted: &[(usize, Turn)]) -> Result<SumsRead<A>> {
        let Some(of_columns) = &passes.of_columns else { return self.start_fetch(&passes.runs(wanted)) };
        let parts = wanted.iter().map(|(sum, turn)| passes.series(*sum, *turn, self.columns)).collect();
        of_columns.add_up(self, passes.grid.group_size, parts)?;
        let mut runs: Vec<(&DeviceVec<A>, Range<usize>)> = Vec::new();
        for (array, run) in wanted.iter().map(|(sum, _)| of_columns.totals(*sum)) {
            match runs.last_mut() {
                Some((_, last)) if last.end == run.start => last.end = run.end,
                _ => runs.push((array, run)),
            }
        }
        self.start_fetch(&runs)
    }

    /// Prepares for iterations of several ranks that meet between launches, unless that was done.
    fn prepare_meetings(
        &self,
        passes: &mut DevicePasses<A>,
        program: &Program,
        rows: Option<Rows<'_, T>>,
    ) -> Result<()> {
        passes.persistent = None;
        rows.map_or(Ok(()), |rows| self.kernels.prepare(&self.ctx, rows, ProductsFor::Sending))?;
        if passes.ahead.is_empty() {
            let (ctx, columns, ranks) = (&self.ctx, &passes.log.columns, Ranks::BetweenLaunches);
            let text = ahead_text(program, columns, passes.style, ranks);
            let code = kernels::build_generated::<T, A>(ctx, &text, passes.grid.group_size, PassesFor::Ranks)?;
            (passes.ahead, passes.last) = load_ahead::<T, A>(ctx, &code, program, columns, ranks)?;
        }
        Ok(())
    }

    /// What the device has to do with other ranks in a pass, if ranks iterate together.
    fn meeting<'a>(&self, passes: &'a DevicePasses<A>, is_arriving: bool) -> Option<Meeting<'a>> {
        let units = self.ctx.info().compute_units as usize;
        let shared = passes.together.as_ref()?.shared(self.comm().size());
        Some(Meeting { shared, behind: passes.log.behind(), units, is_arriving })
    }

    /// Forms what the first pass of the next iteration would form of this one.
    fn form_last(&self, passes: &mut DevicePasses<A>, iteration: u64, nothing: &DeviceVec<T>) -> Result<()> {
        let Some(kernel) = &passes.last else { return Ok(()) };
        let done = passes.done_before(iteration + 1, 0);
        let ahead = passes.ahead(kernel, iteration, 0.0, [&done, &passes.done_last]);
        let grid = Grid { groups: 1, ..passes.grid };
        let (sums, vectors) = (passes.sums(Turn::of(iteration)), &[] as &[&DeviceVec<T>]);
        let meeting = self.meeting(passes, false);
        let meeting = meeting.as_ref().map(|meeting| (meeting, nothing));
        kernel.launch(&self.ctx, grid, self.n_owned(), &ahead, sums, vectors, meeting)?;
        let met = [kernel.sums_over_ranks(), false];
        passes.together.iter_mut().for_each(|together| together.met(met));
        Ok(())
    }
}
