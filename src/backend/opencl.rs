//! Passes on an OpenCL device.
//!
//! A device that works alone runs ahead of the host: each pass adds the partial sums that it needs and forms its scalars by itself,
//! in every group in the same order, and leaves what later ones need in the iteration's row of a log, which the host reads late. It
//! stops by itself: each pass tells the next whether the run is over. Among several ranks the host gives each pass its factors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::machine::{Backend, Which};
use super::program::{Pass, Program, Stage, Step};
use super::source::{self, Columns, Partials, Style};
use super::text::{CheckKind, Slot};
use crate::device::{Context, DeviceVec, Grid, PendingRead, Pinned, Queue};
use crate::error::Result;
use crate::kernels::pass::{Ahead, AlonePass, GivenPass, PassSums};
use crate::kernels::{self, Shape};
use crate::ops::opencl::{DeviceSum, OpenClOps};
use crate::ops::{Ops, Record};
use crate::real::Real;

/// Rows of the log: the host is never as far behind.
const LOG_LEN: u64 = 256;
/// Iterations between two looks at the log, at most.
const MAX_BATCH: u64 = 64;
/// How long the iterations between two looks should take: long against the cost of a look, short against a human's patience.
const BATCH_TIME: Duration = Duration::from_micros(300);

/// Elements that a work-item has under way.
const UNDER_WAY: usize = 4;

/// The compiled passes of a program on a device, and what they leave.
pub(crate) struct DevicePasses<A: Real> {
    given: BTreeMap<Which, GivenPass>,
    alone: Vec<AlonePass>,
    grid: Grid,
    tiles: usize,
    /// Groups of the kernels that work on halos.
    group_size: usize,
    /// Partial sums of passes.
    sums: DeviceVec<A>,
    last_sum: usize,
    stride: usize,
    partials: BTreeMap<usize, Partials>,
    /// Partial sums of each product of an iteration.
    dots: Vec<Option<DeviceSum<A>>>,
    columns: Columns,
    log: DeviceVec<A>,
    /// Whether the run is over, as each pass says, in even and in odd iterations.
    done: [Vec<Arc<DeviceVec<i32>>>; 2],
    late: Late<A>,
}

/// The host's late view of the log.
struct Late<A: Real> {
    idle: Vec<Pinned<A>>,
    /// A look under way, and the iterations that it will show.
    pending: Option<(PendingRead<Pinned<A>>, u64, u64)>,
    batch: u64,
    /// The last iteration that was looked at, or will be by the look under way.
    seen: u64,
    last_look: Instant,
}

impl<T: Real, A: Real> Backend for OpenClOps<T, A> {
    type Passes = DevicePasses<A>;

    fn compile(&self, program: &Program) -> Result<DevicePasses<A>> {
        let (ctx, n) = (&self.ctx, self.n_owned());
        let units = ctx.info().compute_units.max(1) as usize;
        let launch = self.kernels.tuning.launch("cg_step");
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
        let is_alone = self.comm().size() == 1;

        let mut wanted: Vec<(Which, Pass)> = Vec::new();
        for stage in [Stage::Start, Stage::Resume, Stage::Iteration] {
            for (k, step) in program.steps(stage).iter().enumerate() {
                let Step::Pass(pass) = step else { continue };
                if stage != Stage::Iteration || !is_alone {
                    wanted.push((Which { stage, step: k, is_halo: false }, pass.clone()));
                }
                let on_halo = pass.on_halo(&program.has_halo);
                if stage == Stage::Iteration && !is_alone && !on_halo.lines.is_empty() {
                    wanted.push((Which { stage, step: k, is_halo: true }, on_halo));
                }
            }
        }
        let mut text: String = wanted.iter().map(|(_, pass)| source::given(pass, style)).collect();
        if is_alone {
            program.passes().for_each(|pass| text.push_str(&source::alone(pass, program, &columns, style)));
        }
        let code = kernels::build_generated::<T, A>(ctx, &text, group_size)?;
        let types = [T::CL_NAME, A::CL_NAME];
        let mut given = BTreeMap::new();
        for (which, pass) in wanted {
            let counts = [pass.factors().len(), pass.vectors().len()];
            given.insert(which, GivenPass::load(ctx, &code, &pass.name, types, counts)?);
        }
        let partials = source::partials(program);
        let mut alone = Vec::new();
        for pass in program.passes().filter(|_| is_alone) {
            let counts = [source::products_of(pass, &partials).len(), pass.vectors().len()];
            alone.push(AlonePass::load(ctx, &code, &pass.name, types, counts)?);
        }

        let products = program.iteration.iter().filter(|step| matches!(step, Step::Multiply(_))).count();
        let stride = kernels::TILES_PER_UNIT * units;
        let flags = || {
            let flag = |_| Ok(Arc::new(DeviceVec::zeros(ctx, 1, "the state")?));
            program.passes().map(flag).collect::<Result<Vec<_>>>()
        };
        Ok(DevicePasses {
            given,
            alone,
            grid: Grid { groups, group_size },
            tiles,
            group_size,
            sums: DeviceVec::zeros(ctx, program.sums.max(1) * stride, "partial sums")?,
            last_sum: program.sums.saturating_sub(1),
            stride,
            partials,
            dots: (0..products).map(|_| self.sum(2).map(Some)).collect::<Result<_>>()?,
            log: DeviceVec::zeros(ctx, columns.width * LOG_LEN as usize, "the log")?,
            late: Late::new(ctx, columns.width * LOG_LEN as usize)?,
            columns,
            done: [flags()?, flags()?],
        })
    }

    fn pass(
        &self,
        passes: &mut DevicePasses<A>,
        which: Which,
        _: &Pass,
        factors: &[f64],
        (v, slots): (&mut [DeviceVec<T>], &[Slot]),
        range: Range<usize>,
    ) -> Result<()> {
        let vectors: Vec<&DeviceVec<T>> = slots.iter().map(|slot| &v[*slot]).collect();
        let factors: Vec<A> = factors.iter().map(|factor| A::from_f64(*factor)).collect();
        let grid = if which.is_halo {
            Grid { groups: range.len().div_ceil(passes.group_size).clamp(1, passes.grid.groups), ..passes.grid }
        } else {
            passes.grid
        };
        // on a halo there are no sums: its tiles are those of the launch
        let tiles = if which.is_halo && passes.group_size > 1 { grid.groups } else { passes.tiles };
        let sums = PassSums { tiles: tiles as u32, ..passes.sums() };
        passes.given[&which].launch(&self.ctx, grid, range.start, range.len(), &factors, sums, &vectors)
    }

    fn take_dots(&self, passes: &mut DevicePasses<A>, product: usize) -> Result<DeviceSum<A>> {
        passes.dots[product].take().map_or_else(|| self.sum(2), Ok)
    }

    fn put_dots(&self, passes: &mut DevicePasses<A>, product: usize, dots: DeviceSum<A>) {
        passes.dots[product] = Some(dots);
    }

    fn sum_over_ranks(&self, values: &mut [f64]) -> Result<()> {
        self.sum_values(values)
    }

    fn parts(&self, passes: &mut DevicePasses<A>, wanted: &[usize], values: &mut [f64]) -> Result<()> {
        let start = Instant::now();
        let mut places: Vec<(usize, Range<usize>, usize)> = Vec::new(); // array (a product, or behind them), elements, components
        for sum in wanted {
            match passes.partials.get(sum) {
                Some(Partials::Product(k, _)) => {
                    let place = (*k, 0..2 * passes.dots_of(*k).groups(), 2);
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
                Some(Partials::Pass) | None => {
                    let begin = sum * passes.stride;
                    places.push((passes.dots.len(), begin..begin + passes.tiles, 1));
                }
            }
        }
        let pieces: Vec<(&DeviceVec<A>, Range<usize>)> = places
            .iter()
            .map(|(k, elements, _)| {
                let array = if *k < passes.dots.len() { passes.dots_of(*k).partials() } else { &passes.sums };
                (array, elements.clone())
            })
            .collect();
        let memory = self.fetch(&pieces)?;
        let mut rest = &memory[..];
        for (k, elements, components) in &places {
            let (piece, others) = rest.split_at(elements.len());
            rest = others;
            for sum in wanted {
                let is_here = match passes.partials.get(sum) {
                    Some(Partials::Product(product, _)) => product == k,
                    Some(Partials::Pass) | None => *components == 1 && elements.start == sum * passes.stride,
                };
                if is_here {
                    let second = matches!(passes.partials.get(sum), Some(Partials::Product(_, true)));
                    values[*sum] = add_up(piece, *components, usize::from(second));
                }
            }
        }
        self.keep_landing(memory);
        self.waited(start);
        Ok(())
    }

    fn runs_ahead(&self) -> bool {
        self.comm().size() == 1
    }

    fn begin_ahead(&self, passes: &mut DevicePasses<A>, carried: &[f64]) -> Result<()> {
        passes.late.begin(&self.ctx)?;
        // a row that no kernel has written must not look like numbers
        passes.log.fill(&self.ctx, 0xFF)?;
        for flag in passes.done.iter().flatten() {
            flag.fill(&self.ctx, 0)?;
        }
        let first: Vec<A> = (0..carried.len()).map(|k| A::from_f64(carried[k])).collect();
        if !first.is_empty() {
            passes.log.write(&self.ctx, passes.columns.carried(0), &first)?; // row 0: that before iteration 1
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
        v: &mut [DeviceVec<T>],
    ) -> Result<()> {
        let vectors: Vec<&DeviceVec<T>> = pass.vectors().iter().map(|slot| &v[*slot]).collect();
        let row = |iteration: u64| (iteration % LOG_LEN * passes.columns.width as u64) as u32;
        let (done, done_next) = (passes.done_before(iteration, number), &passes.done[(iteration % 2) as usize][number]);
        let ahead = Ahead {
            log: &passes.log,
            width: passes.columns.width as u32,
            rows: [row(iteration), row(iteration - 1)],
            limit: A::from_f64(limit),
            done: &done,
            done_next,
            products: source::products_of(pass, &passes.partials)
                .into_iter()
                .map(|k| (passes.dots_of(k).partials(), passes.dots_of(k).groups() as u32))
                .collect(),
        };
        // scalars are one group's work
        let grid = if pass.lines.is_empty() { Grid { groups: 1, ..passes.grid } } else { passes.grid };
        passes.alone[number].launch(&self.ctx, grid, self.n_owned(), &ahead, passes.sums(), &vectors)?;
        self.set_done(Arc::clone(done_next));
        Ok(())
    }

    fn look(
        &self,
        passes: &mut DevicePasses<A>,
        program: &Program,
        iteration: u64,
        drain: bool,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        if !self.runs_ahead() {
            return Ok(()); // all is known at once
        }
        let DevicePasses { late, log, columns, .. } = passes;
        let take_in = |late: &mut Late<A>, look, records: &mut Vec<Record>| -> Result<()> {
            let Some((read, first, last)): Option<(PendingRead<Pinned<A>>, u64, u64)> = look else { return Ok(()) };
            let start = Instant::now();
            let memory = read.wait(&self.ctx)?;
            self.waited(start);
            for iteration in first..=last {
                let row = (iteration % LOG_LEN) as usize * columns.width;
                for check in program.checks() {
                    let Some(column) = columns.column(check.node) else { continue };
                    let value = memory[row + column].to_f64();
                    records.push(match check.kind {
                        CheckKind::Curvature => Record::Curvature { iteration, pq: value },
                        CheckKind::Norm => Record::Residual { iteration, rho: value, rr: value },
                    });
                }
            }
            self.set_known_done(last);
            late.idle.push(memory);
            Ok(())
        };
        if iteration > late.seen && (iteration - late.seen >= late.batch || drain) {
            // while the device works on this batch's end, the host takes in the batch before
            let former = late.pending.take();
            if let Some(memory) = late.idle.pop() {
                let all = [(&*log, 0..log.len())];
                let read = DeviceVec::start_reads(&self.ctx, Queue::Compute, &all, memory, None, "the log")?;
                self.ctx.flush(Queue::Compute)?;
                late.pending = Some((read, late.seen + 1, iteration));
                late.seen = iteration;
            }
            take_in(late, former, records)?;
            late.adapt();
        }
        if drain {
            let pending = late.pending.take();
            take_in(late, pending, records)?;
        }
        Ok(())
    }
}

impl<A: Real> DevicePasses<A> {
    fn sums(&self) -> PassSums<'_, A> {
        let Self { sums, last_sum, stride, tiles, .. } = self;
        PassSums { partials: sums, last: *last_sum, stride: *stride as u32, tiles: *tiles as u32 }
    }

    /// What product `k` of the iteration has left.
    fn dots_of(&self, k: usize) -> &DeviceSum<A> {
        self.dots[k].as_ref().unwrap_or_else(|| unreachable!("the product is over"))
    }

    /// Where it is said whether the run is over, before pass `number` of an iteration.
    fn done_before(&self, iteration: u64, number: usize) -> Arc<DeviceVec<i32>> {
        let of = |iteration: u64| &self.done[(iteration % 2) as usize];
        let flag = if number > 0 { of(iteration).get(number - 1) } else { of(iteration + 1).last() };
        Arc::clone(flag.unwrap_or_else(|| unreachable!("an iteration has a pass")))
    }
}

impl<A: Real> Late<A> {
    fn new(ctx: &Context, len: usize) -> Result<Self> {
        let idle = vec![Pinned::zeros(ctx, len)?, Pinned::zeros(ctx, len)?];
        Ok(Self { idle, pending: None, batch: 1, seen: 0, last_look: Instant::now() })
    }

    /// Takes no interest in what a former run left behind.
    fn begin(&mut self, ctx: &Context) -> Result<()> {
        if let Some((read, _, _)) = self.pending.take() {
            self.idle.push(read.wait(ctx)?);
        }
        (self.seen, self.batch, self.last_look) = (0, 1, Instant::now());
        Ok(())
    }

    fn adapt(&mut self) {
        let time = self.last_look.elapsed();
        self.last_look = Instant::now();
        if time < BATCH_TIME {
            self.batch = (2 * self.batch).min(MAX_BATCH);
        } else if time > 3 * BATCH_TIME {
            self.batch = (self.batch / 2).max(1);
        }
    }
}

/// Component `k` of sums whose parts lie one behind the other, added in eight interleaved ones: in one row they would take longer
/// than the parts took to arrive.
fn add_up<A: Real>(parts: &[A], components: usize, k: usize) -> f64 {
    let mut lanes = [0.0; 8];
    for (i, part) in parts.iter().skip(k).step_by(components).enumerate() {
        lanes[i % 8] += part.to_f64();
    }
    lanes.iter().sum()
}
