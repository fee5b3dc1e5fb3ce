//! Passes on the host's threads: chunk by chunk, so that each array is moved once.

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use super::HostBackend;
use super::columns;
use super::lanes::Lanes;
use super::together::Together;
use crate::backend::deferred::{self, Deferred};
use crate::backend::pass_backend::{PassBackend, Turn, Which};
use crate::backend::program::{Pass, Program};
use crate::backend::source::persistent::meetings;
use crate::backend::source::{Partials, partials};
use crate::backend::text::{Line, Slot, Term, X};
use crate::backend::together::{By, Ways};
use crate::backend::{Backend, Record};
use crate::error::Result;
use crate::kernels::pass::interned;
use crate::kernels::products::MEETING_BYTES;
use crate::partition::HaloPlan;
use crate::real::Real;

/// Elements of a chunk, which a thread takes at a time: sums are those of chunks, in order.
const CHUNK: usize = deferred::RUN;
/// Elements that each line of a pass is done for at a time: they stay in the first cache.
const BLOCK: usize = 512;

/// What the passes of a program leave on the host.
pub(crate) struct HostPasses {
    left: Left,
    /// Vectors that columns share.
    shared: Vec<Slot>,
    /// Whether ranks would meet in iterations, if all could,
    would_meet: bool,
    /// and what that takes, if halos may be exchanged so.
    together: Option<Together>,
}

/// This rank's parts of sums.
pub(super) struct Left {
    /// Those of passes: of each, those of all columns.
    pub(super) parts: Vec<f64>,
    /// Those of products.
    dots: Vec<Vec<f64>>,
    partials: BTreeMap<usize, Partials>,
}

impl Left {
    /// Those of a sum, of so many columns.
    pub(super) fn of(&self, sum: usize, width: usize) -> &[f64] {
        let (of, k) = match self.partials.get(&sum) {
            Some(Partials::Product(k, is_second)) => (&self.dots[*k], usize::from(*is_second)),
            Some(Partials::Pass) | None => (&self.parts, sum),
        };
        &of[k * width..(k + 1) * width]
    }
}

impl<T: Real> PassBackend for HostBackend<T> {
    type Passes = HostPasses;

    fn compile(&self, program: &Program) -> Result<HostPasses> {
        let dots = (0..program.products()).map(|_| self.product_sums()).collect::<Result<_>>()?;
        let parts = vec![f64::NAN; program.sums * self.columns];
        let left = Left { parts, dots, partials: partials(program) };
        Ok(HostPasses { left, shared: program.shared(), would_meet: false, together: None })
    }

    fn pass(
        &self,
        passes: &mut HostPasses,
        _: Which,
        pass: &Pass,
        factors: &[f64],
        (v, slots): (&mut [Vec<T>], &[Slot]),
        (range, _): (Range<usize>, Turn),
    ) -> Result<()> {
        let _running = self.running(interned(&pass.name));
        let width = self.columns;
        let sums = if width == 1 {
            run(pass, factors, v, slots, range)
        } else {
            columns::run(pass, (factors, width), v, (slots, &passes.shared), range)
        };
        for (k, sums) in pass.sums().into_iter().zip(sums.chunks(width)) {
            passes.left.parts[k * width..(k + 1) * width].copy_from_slice(sums);
        }
        Ok(())
    }

    fn take_dots(&self, passes: &mut HostPasses, product: usize, _: Turn) -> Result<Vec<f64>> {
        Ok(std::mem::take(&mut passes.left.dots[product]))
    }

    fn put_dots(&self, passes: &mut HostPasses, product: usize, _: Turn, dots: Vec<f64>) {
        passes.left.dots[product] = dots;
    }

    fn parts(&self, passes: &mut HostPasses, wanted: &[(usize, Turn)], values: &mut [f64]) -> Result<()> {
        let width = self.columns;
        for (sum, _) in wanted {
            values[sum * width..(sum + 1) * width].copy_from_slice(passes.left.of(*sum, width));
        }
        Ok(())
    }

    fn take_columns(
        &self,
        _: &HostPasses,
        (from, of): (&Vec<T>, usize),
        which: &[usize],
        to: &mut Vec<T>,
    ) -> Result<()> {
        let rows = to.par_chunks_mut(self.columns).zip(from.par_chunks(of)).with_min_len(CHUNK);
        rows.for_each(|(to, from)| to.iter_mut().zip(which).for_each(|(to, k)| *to = from[*k]));
        Ok(())
    }

    fn sum_over_ranks(&self, values: &mut [f64]) -> Result<()> {
        self.sum_values(values)
    }

    fn prepare_several(
        &self,
        passes: &mut HostPasses,
        program: &Program,
        _: Option<()>,
        halo: Option<&HaloPlan>,
        bytes: u64,
    ) -> Result<()> {
        passes.would_meet = self.columns == 1 && bytes <= MEETING_BYTES && meetings(program).is_some();
        passes.together = halo.filter(|_| passes.would_meet).map(|halo| Together::new(program, halo));
        Ok(())
    }

    fn begin_together(&self, passes: &mut HostPasses, _: &Program, _: Option<()>, carried: &[f64]) -> Result<bool> {
        if self.comm().size() == 1 {
            return Ok(false);
        }
        let way = |is_possible: bool| if is_possible { By::One } else { By::Host };
        let can = way(passes.together.is_some() && !self.recorder.is_wanted());
        let agreed = Ways { can, would: way(passes.would_meet), is_host: true }.agree(self.comm())?;
        match &mut passes.together {
            Some(together) if agreed.can != By::Host => together.begin(self, carried),
            _ => Ok(false),
        }
    }

    fn end_together(&self, passes: &mut HostPasses) -> Result<()> {
        passes.together.iter_mut().for_each(Together::end);
        self.is_over.take();
        Ok(())
    }

    fn pass_ahead(
        &self,
        passes: &mut HostPasses,
        (pass, _): (&Pass, usize),
        iteration: u64,
        limit: f64,
        (v, arriving): (&mut [Vec<T>], Option<Slot>),
    ) -> Result<()> {
        let Some(together) = passes.together.as_mut().filter(|_| !self.is_over()) else { return Ok(()) };
        self.timed_pass(|| together.pass(self, &mut passes.left, pass, (iteration, limit), (v, arriving)))
    }

    fn carried_ahead(&self, passes: &HostPasses, _: u64, _: usize) -> Result<f64> {
        Ok(passes.together.as_ref().map_or(0.0, |together| together.deferred))
    }

    fn look(
        &self,
        passes: &mut HostPasses,
        _: &Program,
        iteration: u64,
        drain: bool,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let Some(together) = &mut passes.together else { return Ok(()) };
        together.look(self, &passes.left, (iteration, drain), records)
    }
}

/// A term, with vectors by their numbers in the pass.
struct Part<T> {
    factor: Option<T>,
    scale: Option<usize>,
    turned: bool,
    vector: usize,
}

/// A line of a pass, with vectors and factors by their numbers in the pass.
enum Action<T> {
    /// What vector `to` is set to.
    Assign(usize, Vec<Part<T>>),
    /// A sum of the products of two vectors, and of weights; the first may be multiplied by i.
    Dot([usize; 2], Option<usize>, bool),
    /// x = x + α p with what was deferred, where it is not deferred: x, p and r, α, the deferred factors of before and now.
    Defer([usize; 3], T, [f64; 2]),
    /// What was deferred.
    Complete([usize; 3], f64),
}

/// Does a pass with elements `range` of the vectors in `slots`, which stand for those of the pass in its order, and gives this
/// rank's part of its sums.
pub(crate) fn run<T: Real>(
    pass: &Pass,
    factors: &[f64],
    all: &mut [Vec<T>],
    slots: &[Slot],
    range: Range<usize>,
) -> Vec<f64> {
    let steps = steps(pass, factors);
    let count = pass.sums().len();
    let mut arrays: Vec<Option<&mut [T]>> = slots.iter().map(|_| None).collect();
    for (slot, vector) in all.iter_mut().enumerate() {
        if let Some(k) = slots.iter().position(|s| *s == slot) {
            arrays[k] = Some(&mut vector[range.clone()]);
        }
    }
    let mut chunks: Vec<Vec<&mut [T]>> =
        range.clone().step_by(CHUNK).map(|_| Vec::with_capacity(slots.len())).collect();
    for array in arrays.into_iter().flatten() {
        chunks.iter_mut().zip(array.chunks_mut(CHUNK)).for_each(|(chunk, piece)| chunk.push(piece));
    }
    let sums = if let [chunk] = &mut chunks[..] {
        vec![of_chunk(&steps, 0, chunk, count)]
    } else {
        chunks.into_par_iter().enumerate().map(|(run, mut chunk)| of_chunk(&steps, run, &mut chunk, count)).collect()
    };
    let mut total = vec![0.0; count];
    for of_chunk in sums {
        total.iter_mut().zip(of_chunk).for_each(|(total, sum)| *total += sum);
    }
    total
}

fn steps<T: Real>(pass: &Pass, factors: &[f64]) -> Vec<Action<T>> {
    let (vectors, nodes) = (pass.vectors(), pass.factors());
    let at = |slot: Slot| vectors.iter().position(|v| *v == slot).unwrap_or_default();
    let number = |node| nodes.iter().position(|n| *n == node).map_or(f64::NAN, |k| factors[k]);
    let factor = |node| Some(T::from_f64(number(node)));
    let step = |line: &Line| match line {
        Line::Assign { to, terms } => {
            let term = |term: &Term| Part {
                factor: term.factor.and_then(factor),
                scale: term.scale.map(at),
                turned: term.turned,
                vector: at(term.vector),
            };
            Some(Action::Assign(at(*to), terms.iter().map(term).collect()))
        }
        Line::Dot { of, weights, turned, .. } => Some(Action::Dot(of.map(at), weights.map(at), *turned)),
        Line::Defer(Deferred { of: [p, r], alpha, former, next, .. }) => {
            let [former, next] = [former, next].map(|node| number(*node));
            Some(Action::Defer([X, *p, *r].map(at), T::from_f64(number(*alpha)), [former, next]))
        }
        Line::Complete(Deferred { of: [p, r], former, .. }) => {
            Some(Action::Complete([X, *p, *r].map(at), number(*former)))
        }
        Line::Multiply { .. } | Line::Check(_) => None,
    };
    pass.lines.iter().filter_map(step).collect()
}

/// The sums of chunk `run`.
fn of_chunk<T: Real>(steps: &[Action<T>], run: usize, chunk: &mut [&mut [T]], count: usize) -> Vec<f64> {
    let len = chunk.first().map_or(0, |array| array.len());
    let mut lanes = vec![Lanes::default(); count];
    let [mut value, mut product] = [[T::default(); BLOCK]; 2];
    for begin in (0..len).step_by(BLOCK) {
        let block = begin..len.min(begin + BLOCK);
        let value = &mut value[..block.len()];
        let mut lanes = lanes.iter_mut();
        for step in steps {
            match step {
                Action::Assign(y, terms) if in_place(chunk, &block, *y, terms) => {}
                Action::Assign(to, terms) => {
                    for (k, Part { factor, scale, turned, vector }) in terms.iter().enumerate() {
                        let mut of = &chunk[*vector][block.clone()];
                        let product = &mut product[..of.len()];
                        if *turned {
                            turn(of, product);
                        }
                        if let Some(scale) = scale {
                            let scale = &chunk[*scale][block.clone()];
                            if *turned {
                                product.iter_mut().zip(scale).for_each(|(y, &d)| *y = d * *y);
                            } else {
                                product.iter_mut().zip(scale).zip(of).for_each(|((y, &d), &x)| *y = d * x);
                            }
                        }
                        if *turned || scale.is_some() {
                            of = product;
                        }
                        add(value, *factor, of, k == 0);
                    }
                    chunk[*to][block.clone()].copy_from_slice(value);
                }
                Action::Dot([a, b], weights, turned) => {
                    let Some(lanes) = lanes.next() else { continue };
                    let [mut a, b] = [*a, *b].map(|k| &chunk[k][block.clone()]);
                    if *turned {
                        let product = &mut product[..a.len()];
                        turn(a, product);
                        a = product;
                    }
                    match weights {
                        None => lanes.add_dot(a, b),
                        Some(w) => lanes.add_weighted_dot(&chunk[*w][block.clone()], a, b),
                    }
                }
                Action::Defer(of, alpha, [former, next]) => {
                    if deferred::factor(run, *next) > 0.0 {
                        continue;
                    }
                    let factor = T::from_f64(deferred::factor(run, *former));
                    let [x, p, r] = three(chunk, *of).map(|v| &mut v[block.clone()]);
                    for ((x, &mut p), &mut r) in x.iter_mut().zip(p).zip(r) {
                        *x += *alpha * p + factor * (p - r);
                    }
                }
                Action::Complete(of, former) => {
                    let factor = T::from_f64(deferred::factor(run, *former));
                    let [x, p, r] = three(chunk, *of).map(|v| &mut v[block.clone()]);
                    deferred::complete_run(x, p, r, factor);
                }
            }
        }
    }
    lanes.into_iter().map(Lanes::sum).collect()
}

/// y = y + f x or y = x + f y, in one loop; says whether it was one of them.
fn in_place<T: Real>(chunk: &mut [&mut [T]], block: &Range<usize>, y: usize, terms: &[Part<T>]) -> bool {
    let [first, second] = terms else { return false };
    let is_plain = first.factor.is_none() && [first, second].iter().all(|part| part.scale.is_none() && !part.turned);
    let (true, Some(f), first, second) = (is_plain, second.factor, first.vector, second.vector) else { return false };
    let other = if first == y { second } else { first };
    let (true, Ok([to, x])) = (first == y || second == y, chunk.get_disjoint_mut([y, other])) else { return false };
    let pairs = to[block.clone()].iter_mut().zip(&x[block.clone()]);
    if first == y {
        pairs.for_each(|(y, &x)| *y += f * x)
    } else {
        pairs.for_each(|(y, &x)| *y = x + f * *y)
    }
    true
}

/// Three vectors of a chunk.
fn three<'a, T>(chunk: &'a mut [&mut [T]], of: [usize; 3]) -> [&'a mut [T]; 3] {
    let three = chunk.get_disjoint_mut(of).unwrap_or_else(|_| unreachable!("three vectors are three"));
    three.map(|v| &mut **v)
}

/// y = i x, of pairs of real and imaginary parts.
pub(super) fn turn<T: Real>(x: &[T], y: &mut [T]) {
    let (x, y) = (x.as_chunks::<2>().0, y.as_chunks_mut::<2>().0);
    x.iter().zip(y).for_each(|(&[re, im], y)| *y = [T::default() - im, re]);
}

/// value = factor x for the first term, value += factor x for the others.
fn add<T: Real>(value: &mut [T], factor: Option<T>, x: &[T], is_first: bool) {
    let pairs = value.iter_mut().zip(x);
    match (factor, is_first) {
        (None, true) => pairs.for_each(|(v, &x)| *v = x),
        (None, false) => pairs.for_each(|(v, &x)| *v += x),
        (Some(f), true) => pairs.for_each(|(v, &x)| *v = f * x),
        (Some(f), false) => pairs.for_each(|(v, &x)| *v += f * x),
    }
}
