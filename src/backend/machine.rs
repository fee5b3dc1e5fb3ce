//! Runs a program on a rank.

use std::ops::Range;

use super::program::{Multiply, Pass, Program, Stage, Step};
use super::scalar::Node;
use super::text::{CheckKind, OWN, R, Slot, WEIGHTS, X};
use crate::comm::MAX_SUMS;
use crate::error::Result;
use crate::operator::{Arriving, LinearOperator, pair};
use crate::ops::{Ops, Record};

/// Vectors that the caller lends: the iterate, the residual, the weights, and the first two that are a method's own.
pub(crate) const LENT: [Slot; 5] = [X, R, WEIGHTS, OWN, OWN + 1];

/// A pass of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Which {
    /// The part that it is in,
    pub(crate) stage: Stage,
    /// and its place there.
    pub(crate) step: usize,
    /// Whether it is what ranks do on their halos.
    pub(crate) is_halo: bool,
}

/// What does passes: a device or the host.
pub(crate) trait Backend: Ops {
    /// The passes of a program, ready to be done, and what they leave.
    type Passes;

    /// Makes the passes of a program ready.
    ///
    /// # Errors
    /// A compiler that fails, or not enough memory.
    fn compile(&self, program: &Program) -> Result<Self::Passes>;

    /// Does a pass, with these factors, on elements `range` of those of `vectors` that are in these slots, and sets this rank's parts
    /// of its sums out.
    ///
    /// # Errors
    /// A failing device.
    fn pass(
        &self,
        passes: &mut Self::Passes,
        which: Which,
        pass: &Pass,
        factors: &[f64],
        vectors: (&mut [Self::Vector], &[Slot]),
        range: Range<usize>,
    ) -> Result<()>;

    /// Room for the sums of product `product` of an iteration, to be put back with them.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn take_dots(&self, passes: &mut Self::Passes, product: usize) -> Result<Self::Sum>;

    /// Puts it back.
    fn put_dots(&self, passes: &mut Self::Passes, product: usize, dots: Self::Sum);

    /// Replaces values by their sums over all ranks, at most [`MAX_SUMS`] of them.
    ///
    /// # Errors
    /// A failing rank.
    fn sum_over_ranks(&self, values: &mut [f64]) -> Result<()>;

    /// This rank's parts of sums that were set out, waited for, by their numbers.
    ///
    /// # Errors
    /// A failing device.
    fn parts(&self, passes: &mut Self::Passes, wanted: &[usize], values: &mut [f64]) -> Result<()>;

    /// Whether passes form their factors by themselves, so that nothing waits for the host: [`pass_ahead`](Self::pass_ahead) in place
    /// of [`pass`](Self::pass).
    fn runs_ahead(&self) -> bool {
        false
    }

    /// Prepares for a run of iterations ahead of the host, before the first of which carried scalars have these values.
    ///
    /// # Errors
    /// A failing device.
    fn begin_ahead(&self, passes: &mut Self::Passes, carried: &[f64]) -> Result<()> {
        let _ = (passes, carried);
        Ok(())
    }

    /// Enqueues a pass, number `number` of those of an iteration. Nothing is done once the run is over: when ‖r‖² is at most `limit`,
    /// or a check has failed.
    ///
    /// # Errors
    /// A failing device.
    fn pass_ahead(
        &self,
        passes: &mut Self::Passes,
        (pass, number): (&Pass, usize),
        iteration: u64,
        limit: f64,
        v: &mut [Self::Vector],
    ) -> Result<()> {
        let _ = (passes, pass, number, iteration, limit, v);
        unreachable!("only what runs ahead does so")
    }

    /// Adds to `records` what has become known up to `iteration`, late and in batches, or with `drain` all of it.
    ///
    /// # Errors
    /// A failing device.
    fn look(
        &self,
        passes: &mut Self::Passes,
        program: &Program,
        iteration: u64,
        drain: bool,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let _ = (passes, program, iteration, drain, records);
        Ok(())
    }
}

/// A program on a rank, with its vectors.
pub(crate) struct Machine<O: Backend> {
    program: Program,
    passes: O::Passes,
    /// By their places.
    pub(crate) v: Vec<O::Vector>,
    carried: Vec<f64>,
    /// Sums over all ranks, as far as they are known.
    sums: Vec<f64>,
    /// This iteration's sums that ranks have not yet added up.
    pending: Vec<usize>,
    /// What is to be done on halos once that of a product has arrived: step, factors, places of the vectors.
    on_halo: Vec<(usize, Vec<f64>, Vec<Slot>)>,
    /// The product whose halo is on its way.
    arriving: Option<Slot>,
}

impl<O: Backend> Machine<O> {
    /// Makes a program ready. The iterate, the residual, the weights and the first two vectors of its own are lent by the caller for
    /// each run: in [`v`](Self::v) there is nothing in their places.
    ///
    /// # Errors
    /// A compiler that fails, or not enough memory.
    pub(crate) fn new(ops: &O, a: &impl LinearOperator<O>, program: Program) -> Result<Self> {
        let vector = |(slot, name): (Slot, &&'static str)| {
            if LENT.contains(&slot) { ops.nothing() } else { ops.vector(a.halo(), name) }
        };
        let v = program.names.iter().enumerate().map(vector).collect::<Result<Vec<_>>>()?;
        let passes = ops.compile(&program)?;
        let (carried, sums) = (vec![f64::NAN; program.carried.len()], vec![f64::NAN; program.sums]);
        Ok(Self { program, passes, v, carried, sums, pending: Vec::new(), on_halo: Vec::new(), arriving: None })
    }

    /// What comes before the first iteration, from the iterate and the residual that are there. With `keeps_direction`, the
    /// direction is that which is there, too.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn start(&mut self, ops: &O, a: &impl LinearOperator<O>, keeps_direction: bool) -> Result<()> {
        self.sums.fill(f64::NAN);
        self.carried.fill(f64::NAN);
        (self.arriving, self.on_halo) = (None, Vec::new());
        self.pending.clear();
        for slot in &self.program.zeroed {
            ops.clear(&mut self.v[*slot])?;
        }
        let stage = if keeps_direction { Stage::Resume } else { Stage::Start };
        for step in 0..self.program.steps(stage).len() {
            match self.program.steps(stage)[step].clone() {
                Step::Multiply(Multiply { x, y, .. }) => {
                    let [x, y] = pair(&mut self.v, [x, y]);
                    a.apply(ops, x, y)?;
                }
                Step::Pass(pass) => {
                    self.resolve(ops, &pass.factors())?;
                    self.run(ops, Which { stage, step, is_halo: false }, &pass)?;
                }
            }
        }
        self.resolve_all(ops)?;
        let values = self.program.scalars.values(&self.sums, &self.carried);
        self.carried = self.program.carried.iter().map(|carried| values[carried.first.0]).collect();
        for slot in 0..self.v.len() {
            if self.program.has_halo[slot] {
                a.fill_halo(ops, &mut self.v[slot])?;
            }
        }
        if ops.runs_ahead() {
            ops.begin_ahead(&mut self.passes, &self.carried)?;
        }
        Ok(())
    }

    /// Does iteration `iteration`, or enqueues it. What becomes known of it at once goes to `judge`, which may end it there.
    ///
    /// # Errors
    /// A failing device or rank.
    pub(crate) fn iterate<V>(
        &mut self,
        ops: &O,
        a: &impl LinearOperator<O>,
        iteration: u64,
        limit: f64,
        judge: &mut dyn FnMut(Record) -> Option<V>,
    ) -> Result<Option<V>> {
        let (mut products, mut passes) = (0, 0);
        for step in 0..self.program.iteration.len() {
            match self.program.iteration[step].clone() {
                Step::Multiply(multiply) => {
                    self.multiply(ops, a, &multiply, products)?;
                    products += 1;
                }
                Step::Pass(pass) if ops.runs_ahead() => {
                    ops.pass_ahead(&mut self.passes, (&pass, passes), iteration, limit, &mut self.v)?;
                    passes += 1;
                }
                Step::Pass(pass) => {
                    if let Some(verdict) = self.judged_pass(ops, step, &pass, iteration, judge)? {
                        return Ok(Some(verdict));
                    }
                }
            }
        }
        if !ops.runs_ahead() {
            let values = self.program.scalars.values(&self.sums, &self.carried);
            self.carried = self.program.carried.iter().map(|carried| values[carried.next.0]).collect();
        }
        self.reorder();
        Ok(None)
    }

    /// Adds to `records` what has become known of iterations that were enqueued, the last of which is `iteration`: late and in
    /// batches, or with `drain` at once.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn look(&mut self, ops: &O, iteration: u64, drain: bool, records: &mut Vec<Record>) -> Result<()> {
        ops.look(&mut self.passes, &self.program, iteration, drain, records)
    }

    /// Puts each vector where the next iteration looks for it.
    fn reorder(&mut self) {
        let order = &self.program.order;
        let mut old: Vec<Option<O::Vector>> = self.v.drain(..).map(Some).collect();
        self.v = order.iter().filter_map(|from| old[*from].take()).collect();
        let place = |slot: Slot| order.iter().position(|from| *from == slot).unwrap_or(slot);
        self.arriving = self.arriving.map(place);
        self.on_halo.iter_mut().flat_map(|(_, _, slots)| slots).for_each(|slot| *slot = place(*slot));
    }

    /// y = A x, with its sums. What passes have done to owned elements since the last product is now done to halos, once that of the
    /// last product has arrived.
    fn multiply(&mut self, ops: &O, a: &impl LinearOperator<O>, multiply: &Multiply, number: usize) -> Result<()> {
        let Self { program, passes, v, on_halo, arriving, .. } = self;
        let (n, halo) = (ops.n_owned(), a.halo());
        let work = std::mem::take(on_halo);
        let former = arriving.take();
        // room for the sums is among the passes, which halos need, too
        let mut dots = ops.take_dots(passes, number)?;
        let mut do_on_halo = |v: &mut [O::Vector]| {
            for (step, factors, slots) in &work {
                let Step::Pass(pass) = &program.iteration[*step] else { continue };
                let pass = pass.on_halo(&program.has_halo);
                let which = Which { stage: Stage::Iteration, step: *step, is_halo: true };
                ops.pass(passes, which, &pass, factors, (v, slots), n..n + halo)?;
            }
            Ok(())
        };
        if former.is_none() && halo > 0 {
            do_on_halo(v)?; // nothing is on its way: the first product of a run
        }
        let arriving = former.map(|of| Arriving { of, then: &mut do_on_halo });
        a.multiply(ops, v, [multiply.x, multiply.y], arriving, &mut dots)?;
        ops.put_dots(&mut self.passes, number, dots);
        self.pending.extend(multiply.sums());
        if self.program.has_halo[multiply.y] && ops.comm().size() > 1 {
            a.pack_halo(ops, &self.v[multiply.y], multiply.is_awaited)?;
            self.arriving = Some(multiply.y);
        }
        Ok(())
    }

    /// A pass whose factors the host gives, with what is looked at before and after.
    fn judged_pass<V>(
        &mut self,
        ops: &O,
        step: usize,
        pass: &Pass,
        iteration: u64,
        judge: &mut dyn FnMut(Record) -> Option<V>,
    ) -> Result<Option<V>> {
        let mut needed = pass.factors();
        needed.extend(pass.before.iter().chain(&pass.after).map(|check| check.node));
        needed.extend(&pass.forms);
        self.resolve(ops, &needed)?;
        let values = self.program.scalars.values(&self.sums, &self.carried);
        let record = |kind, value| match kind {
            CheckKind::Curvature => Record::Curvature { iteration, pq: value },
            CheckKind::Norm => Record::Residual { iteration, rho: value, rr: value },
        };
        for check in &pass.before {
            if let Some(verdict) = judge(record(check.kind, values[check.node.0])) {
                return Ok(Some(verdict));
            }
        }
        self.run(ops, Which { stage: Stage::Iteration, step, is_halo: false }, pass)?;
        for check in &pass.after {
            if let Some(verdict) = judge(record(check.kind, values[check.node.0])) {
                return Ok(Some(verdict));
            }
        }
        Ok(None)
    }

    /// Does a pass with factors that are known.
    fn run(&mut self, ops: &O, which: Which, pass: &Pass) -> Result<()> {
        let values = self.program.scalars.values(&self.sums, &self.carried);
        let factors: Vec<f64> = pass.factors().iter().map(|node| values[node.0]).collect();
        if !pass.lines.is_empty() {
            ops.pass(&mut self.passes, which, pass, &factors, (&mut self.v, &pass.vectors()), 0..ops.n_owned())?;
        }
        self.pending.extend(pass.sums());
        if which.stage == Stage::Iteration && ops.comm().size() > 1 {
            let on_halo = pass.on_halo(&self.program.has_halo);
            if !on_halo.lines.is_empty() {
                let factors = on_halo.factors().iter().map(|node| values[node.0]).collect();
                self.on_halo.push((which.step, factors, on_halo.vectors()));
            }
        }
        Ok(())
    }

    /// Completes all sums that were set out, if one of these scalars is formed of them.
    fn resolve(&mut self, ops: &O, nodes: &[Node]) -> Result<()> {
        let is_pending = |sum| self.pending.contains(&sum);
        if nodes.iter().any(|node| self.program.scalars.awaits(*node, &is_pending)) {
            self.resolve_all(ops)?;
        }
        Ok(())
    }

    fn resolve_all(&mut self, ops: &O) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return Ok(());
        }
        ops.parts(&mut self.passes, &pending, &mut self.sums)?;
        let mut values: Vec<f64> = pending.iter().map(|sum| self.sums[*sum]).collect();
        for values in values.chunks_mut(MAX_SUMS) {
            ops.sum_over_ranks(values)?;
        }
        pending.iter().zip(values).for_each(|(sum, value)| self.sums[*sum] = value);
        Ok(())
    }
}
