//! Runs a program on a rank, for one right-hand side or several.

use std::convert::Infallible;
use std::sync::Arc;

use super::column::Column;
use super::linear_operator::{Arriving, LinearOperator, pair};
use super::pass_backend::{PassBackend, Turn, Which};
use super::program::{Multiply, Pass, Program, Stage, Step};
use super::scalar::Node;
use super::text::{Check, OWN, R, Slot, WEIGHTS, X};
use crate::backend::{Backend, Record};
use crate::comm::MAX_SUMS;
use crate::error::Result;
use crate::matrix::gallery::random_part;
use crate::real::Real;

/// Vectors that the caller lends: the iterate, the residual, the weights, and the first two that are a method's own.
pub(crate) const LENT: [Slot; 5] = [X, R, WEIGHTS, OWN, OWN + 1];

/// Seeds of random vectors: none that a right-hand side may have by chance.
const SEED: u64 = 0x5eed_0000_0000_0000;

/// Iterations after which ranks that meet between launches agree on requests.
const AGREE_EVERY: u64 = 8;

/// What is told of a number that became known of a column: the column, and the number. It may end that column's run.
pub(crate) type Judging<'a, V> = &'a mut dyn FnMut(usize, Record) -> Option<V>;

/// What is to be done on a halo: step, factors, places of the vectors.
type OnHalo = (usize, Vec<f64>, Vec<Slot>);

/// Does it, on halos of so many elements.
fn do_on_halo<O: PassBackend>(
    backend: &O,
    program: &Program,
    passes: &mut O::Passes,
    (work, halo): (&[OnHalo], usize),
    v: &mut [O::Vector],
    iteration: u64,
) -> Result<()> {
    let n = backend.n_owned();
    for (step, factors, slots) in work {
        let Step::Pass(pass) = &program.iteration[*step] else { continue };
        let pass = pass.on_halo(&program.has_halo);
        let which = Which { stage: Stage::Iteration, step: *step, is_halo: true };
        backend.pass(passes, which, &pass, factors, (v, slots), (n..n + halo, Turn::of(iteration)))?;
    }
    Ok(())
}

/// Elements of the longest halo of these operators, for which vectors have room.
pub(crate) fn largest_halo<O: Backend>(operators: &[impl LinearOperator<O>]) -> usize {
    operators.iter().map(LinearOperator::halo).max().unwrap_or_default()
}

/// Makes the vectors that stay as they are: those that are given, and random ones.
pub(crate) fn fixed_vectors<O: PassBackend>(
    backend: &O,
    program: &Program,
    [rows, halo]: [usize; 2],
    v: &mut [O::Vector],
) -> Result<()> {
    for (slot, elements) in &program.given {
        v[*slot] = backend.shared_vector(&O::Real::scaled(elements, 1.0), halo, program.names[*slot])?;
    }
    if !program.random.is_empty() {
        let owned = backend.comm().gather(rows as f64)?;
        let before: f64 = owned[..backend.comm().rank()].iter().sum();
        for slot in &program.random {
            let numbers = random_part(SEED + *slot as u64, before as u64, rows);
            v[*slot] = backend.shared_vector(&O::Real::scaled(&numbers, 1.0), halo, program.names[*slot])?;
        }
    }
    Ok(())
}

/// A program on a rank, with its vectors.
pub(crate) struct Machine<O: PassBackend> {
    program: Arc<Program>,
    passes: O::Passes,
    /// By their places.
    pub(crate) v: Vec<O::Vector>,
    columns: Vec<Column>,
    /// The tolerance of a run, which has the place of a sum.
    pub(crate) tolerance: f64,
    /// Sums that ranks have not yet added up.
    pending: Vec<(usize, Turn)>,
    /// An iteration of which [`Program::last`] has yet to be formed, and how many of the pending sums are its own.
    unfinished: Option<(u64, usize)>,
    /// What is to be done on halos once that of a product has arrived.
    on_halo: Vec<OnHalo>,
    /// The product whose halo is on its way.
    arriving: Option<Slot>,
    /// The last iteration that was made or enqueued.
    iteration: u64,
    /// Whether several ranks make the iterations of this run in launches of several,
    is_together: bool,
    /// or did so until such a launch was refused.
    is_refused: bool,
}

impl<O: PassBackend> Machine<O> {
    /// Makes a program ready. The iterate, the residual, the weights and the first two vectors of its own are lent by the caller for
    /// each run: in [`v`](Self::v) there is nothing in their places.
    ///
    /// # Errors
    /// A compiler that fails, or not enough memory.
    pub(crate) fn new(backend: &O, operators: &[impl LinearOperator<O>], program: Program) -> Result<Self> {
        let of_program = program.products_by_operator().len();
        assert!(operators.len() >= of_program, "{} multiplies by {of_program} matrices", program.method);
        let room = largest_halo(operators);
        let vector = |(slot, name): (Slot, &&'static str)| {
            let is_elsewhere = LENT.contains(&slot) || program.shared().contains(&slot);
            if is_elsewhere { backend.nothing() } else { backend.vector(room, name) }
        };
        let mut v = program.names.iter().enumerate().map(vector).collect::<Result<Vec<_>>>()?;
        let (rows, halo) = (backend.n_owned() / backend.columns(), room / backend.columns());
        fixed_vectors(backend, &program, [rows, halo], &mut v)?;
        let mut passes = backend.compile(&program)?;
        if let [a] = operators
            && !program.iteration.is_empty()
        {
            let bytes = a.bytes() + (program.arrays_moved() * backend.n_owned() * size_of::<O::Real>()) as u64;
            backend.prepare_several(&mut passes, &program, a.rows(), a.live_halo(), bytes)?;
        }
        let columns = vec![Column::new(&program); backend.columns()];
        let (pending, on_halo) = (Vec::new(), Vec::new());
        Ok(Self {
            program: Arc::new(program),
            passes,
            v,
            columns,
            tolerance: 0.0,
            pending,
            unfinished: None,
            on_halo,
            arriving: None,
            iteration: 0,
            is_together: false,
            is_refused: false,
        })
    }

    /// The most iterations of a run, before the residual is to be replaced.
    pub(crate) fn longest_run(&self) -> u64 {
        let is_single = size_of::<O::Real>() < size_of::<f64>();
        self.program.replace_every.map_or(u64::MAX, |most| most[usize::from(is_single)])
    }

    /// Whether p·A p is a difference, which may have lost its sign to rounding.
    pub(crate) fn derives_curvature(&self) -> bool {
        self.program.derives_curvature
    }

    /// Begins a run with the residual that is there: what the test looks at.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn begin(&mut self, backend: &O) -> Result<f64> {
        Ok(self.begin_columns(backend)?[0])
    }

    /// The same of each column.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn begin_columns(&mut self, backend: &O) -> Result<Vec<f64>> {
        self.columns.fill(Column::new(&self.program));
        (self.arriving, self.on_halo, self.unfinished, self.iteration) = (None, Vec::new(), None, 0);
        (self.is_together, self.is_refused) = (false, false);
        self.pending.clear();
        self.passes_of(backend, Stage::Begin)?;
        self.resolve_all::<Infallible>(backend, &mut |_, _| None)?;
        Ok(self.columns.iter().map(|column| column.values(&self.program)[self.program.norm2.0]).collect())
    }

    /// Leaves a column as it is from now on, until the next run begins.
    pub(crate) fn leave(&mut self, column: usize) {
        self.columns[column].is_over = true;
    }

    /// Columns whose run is not over.
    pub(crate) fn active(&self) -> usize {
        self.columns.iter().filter(|column| !column.is_over).count()
    }

    /// What comes before the first iteration, from the iterate and the residual that are there, after [`begin`](Self::begin). With
    /// `keeps_direction`, the direction is that which is there, too.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn start(
        &mut self,
        backend: &O,
        operators: &[impl LinearOperator<O>],
        keeps_direction: bool,
    ) -> Result<()> {
        for slot in &self.program.zeroed {
            backend.clear(&mut self.v[*slot])?;
        }
        let program = Arc::clone(&self.program);
        self.steps_of(backend, operators, if keeps_direction { Stage::Resume } else { Stage::Start })?;
        self.resolve_all::<Infallible>(backend, &mut |_, _| None)?;
        for column in &mut self.columns {
            column.set_tolerance(&program, self.tolerance);
            let values = column.values(&program);
            column.carried = program.carried.iter().map(|carried| values[carried.first.0]).collect();
        }
        for slot in 0..self.v.len() {
            if program.has_halo[slot] && backend.comm().size() > 1 {
                operators[program.operator_of[slot]].fill_halo(backend, &mut self.v[slot])?;
            }
        }
        if backend.runs_ahead() {
            backend.begin_ahead(&mut self.passes, &self.columns[0].carried)?;
        }
        let rows = if let [a] = operators { a.rows() } else { None };
        self.is_together = backend.begin_together(&mut self.passes, &program, rows, &self.columns[0].carried)?;
        Ok(())
    }

    /// Does what comes before a first iteration, and nothing else, with the first vector of its own as the caller lends it: of a text
    /// that has no iterations.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn apply_once(&mut self, backend: &O, operators: &[impl LinearOperator<O>]) -> Result<()> {
        self.pending.clear();
        for slot in self.program.zeroed.iter().filter(|slot| **slot != OWN) {
            backend.clear(&mut self.v[*slot])?;
        }
        self.steps_of(backend, operators, Stage::Start)
    }

    /// The steps of a part that is no iteration.
    fn steps_of(&mut self, backend: &O, operators: &[impl LinearOperator<O>], stage: Stage) -> Result<()> {
        let program = Arc::clone(&self.program);
        for (k, step) in program.steps(stage).iter().enumerate() {
            match step {
                Step::Multiply(Multiply { operator, x, y, .. }) => {
                    let [x, y] = pair(&mut self.v, [*x, *y]);
                    operators[*operator].apply(backend, x, y)?;
                }
                Step::Pass(pass) => {
                    self.resolve::<Infallible>(backend, &pass.factors(), &mut |_, _| None)?;
                    self.run(backend, Which { stage, step: k, is_halo: false }, pass)?;
                }
            }
        }
        Ok(())
    }

    /// Does iteration `iteration`, or enqueues it. What becomes known at once goes to `judge`, which may end the run there; of several columns,
    /// the run of one.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn iterate<V>(
        &mut self,
        backend: &O,
        operators: &[impl LinearOperator<O>],
        iteration: u64,
        limit: f64,
        judge: Judging<'_, V>,
    ) -> Result<Option<V>> {
        let (mut products, mut passes) = (0, 0);
        self.iteration = iteration;
        let program = Arc::clone(&self.program);
        for (k, step) in program.iteration.iter().enumerate() {
            match step {
                Step::Multiply(multiply) => {
                    self.multiply(backend, operators, multiply, products)?;
                    products += 1;
                }
                Step::Pass(pass) if self.is_ahead(backend) => {
                    let vectors = (&mut self.v[..], self.arriving.take());
                    backend.pass_ahead(&mut self.passes, (pass, passes), iteration, limit, vectors)?;
                    passes += 1;
                }
                Step::Pass(pass) => {
                    if let Some(verdict) = self.judged_pass(backend, k, pass, judge)? {
                        return Ok(Some(verdict));
                    }
                }
            }
        }
        // so that all learn of requests at the same time, and at once that they were met
        if self.is_together && (iteration.is_multiple_of(AGREE_EVERY) || backend.comm().stop_request() != 0) {
            backend.sum_over_ranks(&mut [])?;
        }
        if !self.is_ahead(backend) {
            if self.program.last.is_some() {
                self.unfinished = Some((iteration, self.pending.len()));
            } else {
                self.carry(&self.going_on());
                self.pending.clear();
            }
        }
        self.reorder();
        Ok(None)
    }

    /// Enqueues several iterations from `iteration` on, at most `most`, and tells which one comes next: see
    /// [`PassBackend::several_ahead`].
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn several(
        &mut self,
        backend: &O,
        operators: &[impl LinearOperator<O>],
        (iteration, most): (u64, u64),
        limit: f64,
    ) -> Result<Option<u64>> {
        let rows = if let [a] = operators { a.rows() } else { None };
        let next = backend.several_ahead(&mut self.passes, rows, (iteration, most), limit, &mut self.v)?;
        if let Some(next) = next {
            (iteration..next).for_each(|_| self.reorder());
            (next..iteration).for_each(|_| self.reorder_back());
            self.iteration = next - 1;
            self.is_refused = self.is_together && next <= iteration;
            if self.is_together {
                backend.sum_over_ranks(&mut [])?; // so that all learn of requests at the same time
            }
        }
        Ok(next)
    }

    /// Whether a launch that several ranks were to make together was refused, after others that were not: they go on from another residual.
    pub(crate) fn must_replace(&mut self) -> bool {
        if self.is_refused && self.iteration == 0 {
            (self.is_together, self.is_refused) = (false, false); // nothing has been done
        }
        self.is_refused
    }

    /// Whether several ranks iterate without the host in this run.
    #[cfg(test)]
    pub(crate) fn is_together(&self) -> bool {
        self.is_together
    }

    /// Lets launches of several iterations fail from now on; says whether there are any.
    #[cfg(test)]
    pub(crate) fn refuse_several(&mut self, backend: &O) -> bool {
        backend.refuse_several(&mut self.passes)
    }

    /// Adds to `records` what has become known of iterations, of which `iteration` is the last: late and in batches, or with `drain`
    /// at once.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn look(&mut self, backend: &O, iteration: u64, drain: bool, records: &mut Vec<Record>) -> Result<()> {
        if self.is_ahead(backend) {
            backend.look(&mut self.passes, &self.program, iteration, drain, records)
        } else if drain && self.unfinished.is_some() {
            let mut note = |_, record| {
                records.push(record);
                None::<Infallible>
            };
            self.resolve_all(backend, &mut note).map(|_| ())
        } else {
            Ok(())
        }
    }

    /// Adds to `records` what is not yet known of iterations that were enqueued ahead of the host, before the run ends in between.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn catch_up(&mut self, backend: &O, records: &mut Vec<Record>) -> Result<()> {
        if self.is_ahead(backend) { self.look(backend, self.iteration, true, records) } else { Ok(()) }
    }

    /// What the last iteration has deferred of x; 0 if there is nothing: see [`Deferred`](super::deferred::Deferred).
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn deferred(&self, backend: &O) -> Result<f64> {
        match self.program.deferred {
            None => Ok(0.0),
            Some(_) if self.iteration == 0 => Ok(0.0),
            Some(deferred) if self.is_ahead(backend) => {
                backend.carried_ahead(&self.passes, self.iteration, deferred.carried)
            }
            Some(deferred) => Ok(match &self.unfinished {
                Some(_) => self.columns[0].values(&self.program)[deferred.next.0],
                None => self.columns[0].carried[deferred.carried],
            }),
        }
    }

    /// Brings what is under way among ranks to its end, between two iterations: all scalars and halos are then as they have to be.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn settle<V>(&mut self, backend: &O, a: &impl LinearOperator<O>, judge: Judging<'_, V>) -> Result<()> {
        self.resolve_all(backend, judge)?;
        let work = std::mem::take(&mut self.on_halo);
        let former = self.arriving.take();
        let Self { program, passes, v, iteration, .. } = self;
        let mut then = |v: &mut [O::Vector]| do_on_halo(backend, program, passes, (&work, a.halo()), v, *iteration);
        match former {
            Some(of) => a.receive_halo(backend, v, Arriving { of, then: &mut then }),
            None if a.halo() > 0 => then(v),
            None => Ok(()),
        }
    }

    /// Goes on with columns `which` of another machine, which is [settled](Self::settle) and [completed](Self::complete): in the first of
    /// its own columns. It has its vectors, those that are lent, too.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn take_over(&mut self, backend: &O, other: &Self, which: &[usize]) -> Result<()> {
        let (shared, of) = (self.program.shared(), other.columns.len());
        for slot in (0..self.v.len()).filter(|slot| !shared.contains(slot)) {
            backend.take_columns(&self.passes, (&other.v[slot], of), which, &mut self.v[slot])?;
        }
        let nobody = Column { is_over: true, ..other.columns[which[0]].clone() };
        self.columns = which.iter().map(|k| other.columns[*k].clone()).collect();
        self.columns.resize(backend.columns(), nobody);
        (self.arriving, self.on_halo, self.unfinished, self.iteration) = (None, Vec::new(), None, other.iteration);
        (self.is_together, self.is_refused) = (false, false);
        self.pending.clear();
        Ok(())
    }

    /// Whether the host is behind in this run: passes form their factors themselves.
    fn is_ahead(&self, backend: &O) -> bool {
        backend.runs_ahead() || self.is_together
    }

    /// Makes the updates of x that were deferred. The run is over then.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn complete(&mut self, backend: &O) -> Result<()> {
        backend.end_together(&mut self.passes)?;
        let Some(deferred) = self.program.deferred else { return Ok(()) };
        if let [_] = self.columns[..] {
            self.columns[0].carried[deferred.carried] = self.deferred(backend)?;
        }
        if self.columns.iter().any(|column| column.carried[deferred.carried] != 0.0) {
            self.passes_of(backend, Stage::Complete)?;
        }
        self.columns.iter_mut().for_each(|column| column.carried[deferred.carried] = 0.0);
        self.iteration = 0;
        Ok(())
    }

    /// Puts each vector where the next iteration looks for it.
    fn reorder(&mut self) {
        let order = &self.program.order;
        if order.iter().enumerate().all(|(slot, from)| slot == *from) {
            return;
        }
        let mut old: Vec<Option<O::Vector>> = self.v.drain(..).map(Some).collect();
        self.v = order.iter().filter_map(|from| old[*from].take()).collect();
        let place = |slot: Slot| order.iter().position(|from| *from == slot).unwrap_or(slot);
        self.arriving = self.arriving.map(place);
        self.on_halo.iter_mut().flat_map(|(_, _, slots)| slots).for_each(|slot| *slot = place(*slot));
    }

    /// Undoes [`reorder`](Self::reorder).
    fn reorder_back(&mut self) {
        let mut old: Vec<(Slot, O::Vector)> = self.program.order.iter().copied().zip(self.v.drain(..)).collect();
        old.sort_by_key(|(from, _)| *from);
        self.v = old.into_iter().map(|(_, v)| v).collect();
    }

    /// y = A x, with its sums. What passes have done to owned elements since the last product is now done to halos, once that of the
    /// last product has arrived.
    fn multiply(
        &mut self,
        backend: &O,
        operators: &[impl LinearOperator<O>],
        multiply: &Multiply,
        number: usize,
    ) -> Result<()> {
        let a = &operators[multiply.operator];
        // the first pass behind the product completes what the former iteration has left
        if self.unfinished.is_some() && !self.pending.is_empty() && !multiply.is_awaited {
            backend.send_parts(&mut self.passes, &self.pending)?; // beside the product
        }
        let Self { program, passes, v, on_halo, arriving, iteration, .. } = self;
        let (halo, turn) = (a.halo(), Turn::of_products(*iteration));
        let work = std::mem::take(on_halo);
        let former = arriving.take();
        // room for the sums is among the passes, which halos need, too
        let mut dots = backend.take_dots(passes, number, turn)?;
        let mut then = |v: &mut [O::Vector]| do_on_halo(backend, program, passes, (&work, halo), v, *iteration);
        if former.is_none() && halo > 0 {
            then(v)?; // nothing is on its way: the first product of a run
        }
        let mut arriving = former.map(|of| Arriving { of, then: &mut then });
        if multiply.fills && backend.comm().size() > 1 {
            arriving.take().map_or(Ok(()), |arriving| a.receive_halo(backend, v, arriving))?;
            a.fill_halo(backend, &mut v[multiply.x])?;
        }
        a.multiply(backend, v, [multiply.x, multiply.y], arriving, &mut dots)?;
        backend.put_dots(&mut self.passes, number, turn, dots);
        let is_exchanged = self.program.has_halo[multiply.y] && backend.comm().size() > 1;
        if self.is_ahead(backend) {
            self.arriving = Some(multiply.y).filter(|_| is_exchanged);
            return Ok(());
        }
        self.pending.extend(multiply.sums().map(|sum| (sum, turn)));
        if multiply.is_awaited {
            backend.send_parts(&mut self.passes, &self.pending)?;
        }
        if is_exchanged {
            let next = &operators[self.program.operator_of[multiply.y]];
            next.pack_halo(backend, &self.v[multiply.y], multiply.is_awaited)?;
            self.arriving = Some(multiply.y);
        }
        Ok(())
    }

    /// A pass whose factors the host gives, with what is looked at before and after.
    fn judged_pass<V>(&mut self, backend: &O, step: usize, pass: &Pass, judge: Judging<'_, V>) -> Result<Option<V>> {
        let mut needed = pass.factors();
        needed.extend(pass.before.iter().chain(&pass.after).map(|check| check.node));
        needed.extend(&pass.forms);
        let verdict = self.resolve(backend, &needed, judge)?;
        if verdict.is_some() {
            return Ok(verdict);
        }
        if let Some(verdict) = self.judge(&pass.before, self.iteration, judge) {
            return Ok(Some(verdict));
        }
        self.run(backend, Which { stage: Stage::Iteration, step, is_halo: false }, pass)?;
        Ok(self.judge(&pass.after, self.iteration, judge))
    }

    /// Lets checks of an iteration be judged, in order. One of several columns whose run so ends is left alone from then on.
    fn judge<V>(&mut self, checks: &[Check], iteration: u64, judge: Judging<'_, V>) -> Option<V> {
        let is_one = self.columns.len() == 1;
        for (k, column) in self.columns.iter_mut().enumerate().filter(|(_, column)| !column.is_over) {
            let values = column.values(&self.program);
            let mut each = checks.iter().map(|check| check.record(iteration, values[check.node.0]));
            let verdict = each.find_map(|record| judge(k, record));
            if is_one {
                return verdict;
            }
            column.is_over |= verdict.is_some();
        }
        None
    }

    /// Does the passes of a part in which there are no products.
    fn passes_of(&mut self, backend: &O, stage: Stage) -> Result<()> {
        let program = Arc::clone(&self.program);
        for (step, pass) in program.steps(stage).iter().enumerate() {
            let Step::Pass(pass) = pass else { continue };
            self.run(backend, Which { stage, step, is_halo: false }, pass)?;
        }
        Ok(())
    }

    /// Does a pass with factors that are known.
    fn run(&mut self, backend: &O, which: Which, pass: &Pass) -> Result<()> {
        let factors = self.factors(which.stage, pass);
        let turn = Turn::of(self.iteration);
        if !pass.lines.is_empty() {
            let vectors = (&mut self.v[..], &pass.vectors()[..]);
            backend.pass(&mut self.passes, which, pass, &factors, vectors, (0..backend.n_owned(), turn))?;
        }
        self.pending.extend(pass.sums().into_iter().map(|sum| (sum, turn)));
        if which.stage == Stage::Iteration && backend.comm().size() > 1 {
            let on_halo = pass.on_halo(&self.program.has_halo);
            if !on_halo.lines.is_empty() {
                let factors = self.factors(which.stage, &on_halo);
                self.on_halo.push((which.step, factors, on_halo.vectors()));
            }
        }
        Ok(())
    }

    /// The factors of a pass, as [`PassBackend::pass`] takes them.
    fn factors(&self, stage: Stage, pass: &Pass) -> Vec<f64> {
        let values: Vec<Vec<f64>> = self.columns.iter().map(|column| column.values(&self.program)).collect();
        let nodes = pass.factors();
        let mut factors: Vec<f64> = nodes.iter().flat_map(|node| values.iter().map(|values| values[node.0])).collect();
        if self.columns.len() > 1 {
            let is_for_all = matches!(stage, Stage::Begin | Stage::Complete);
            factors.extend(self.columns.iter().map(|column| f64::from(is_for_all || !column.is_over)));
        }
        factors
    }

    /// Completes all sums that were set out, if one of these scalars is formed of them, or if the former iteration is unfinished.
    fn resolve<V>(&mut self, backend: &O, nodes: &[Node], judge: Judging<'_, V>) -> Result<Option<V>> {
        let is_pending = |sum| self.pending.iter().any(|(pending, _)| *pending == sum);
        let is_needed = nodes.iter().any(|node| self.program.scalars.awaits(*node, &is_pending));
        if is_needed || self.unfinished.is_some() { self.resolve_all(backend, judge) } else { Ok(None) }
    }

    fn resolve_all<V>(&mut self, backend: &O, judge: Judging<'_, V>) -> Result<Option<V>> {
        let pending = std::mem::take(&mut self.pending);
        let width = self.columns.len();
        let mut values = vec![f64::NAN; self.program.sums * width];
        if !pending.is_empty() {
            backend.parts(&mut self.passes, &pending, &mut values)?;
            let of_sum = |(sum, _): &(usize, Turn)| sum * width..(sum + 1) * width;
            let mut total: Vec<f64> = pending.iter().flat_map(of_sum).map(|at| values[at]).collect();
            for total in total.chunks_mut(MAX_SUMS) {
                backend.sum_over_ranks(total)?;
            }
            pending.iter().flat_map(of_sum).zip(total).for_each(|(at, total)| values[at] = total);
        }
        let take_in = |columns: &mut [Column], pending: &[(usize, Turn)]| {
            for (sum, _) in pending {
                columns.iter_mut().zip(&values[sum * width..]).for_each(|(column, total)| column.sums[*sum] = *total);
            }
        };
        let (iteration, former) = self.unfinished.take().unzip();
        let (former, own) = pending.split_at(former.unwrap_or(0));
        take_in(&mut self.columns, former);
        let mut verdict = None;
        if let (Some(iteration), Some(last)) = (iteration, &self.program.last) {
            let checks: Vec<Check> = last.before.iter().chain(&last.after).copied().collect();
            let going_on = self.going_on();
            verdict = self.judge(&checks, iteration, judge);
            self.carry(&going_on);
        }
        take_in(&mut self.columns, own);
        Ok(verdict)
    }

    /// Which columns' runs are not over.
    fn going_on(&self) -> Vec<bool> {
        self.columns.iter().map(|column| !column.is_over).collect()
    }

    /// What the iteration leaves to the next, for columns whose runs went on in it.
    fn carry(&mut self, went_on: &[bool]) {
        let columns = self.columns.iter_mut().zip(went_on).filter(|(_, went_on)| **went_on);
        columns.for_each(|(column, _)| column.carry(&self.program));
    }
}
