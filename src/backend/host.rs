//! Passes on the host's threads: chunk by chunk, so that each array is moved once.

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use super::machine::{Backend, Which};
use super::program::{Pass, Program, Step};
use super::source::{Partials, partials};
use super::text::{Line, Slot};
use crate::error::Result;
use crate::kernels::pass::interned;
use crate::ops::Ops;
use crate::ops::host::{HostOps, HostSum};
use crate::real::Real;

/// Elements of a chunk, which a thread takes at a time: sums are those of chunks, in order.
const CHUNK: usize = 4096;
/// Elements that each line of a pass is done for at a time: they stay in the first cache.
const BLOCK: usize = 512;

/// What the passes of a program leave on the host.
pub(crate) struct HostPasses {
    /// This rank's parts of the sums of passes.
    parts: Vec<f64>,
    /// Those of products.
    dots: Vec<HostSum>,
    partials: BTreeMap<usize, Partials>,
}

impl<T: Real> Backend for HostOps<T> {
    type Passes = HostPasses;

    fn compile(&self, program: &Program) -> Result<HostPasses> {
        let products = program.iteration.iter().filter(|step| matches!(step, Step::Multiply(_))).count();
        let dots = (0..products).map(|_| self.sum(2)).collect::<Result<_>>()?;
        Ok(HostPasses { parts: vec![f64::NAN; program.sums], dots, partials: partials(program) })
    }

    fn pass(
        &self,
        passes: &mut HostPasses,
        _: Which,
        pass: &Pass,
        factors: &[f64],
        (v, slots): (&mut [Vec<T>], &[Slot]),
        range: Range<usize>,
    ) -> Result<()> {
        let _running = self.running(interned(&pass.name));
        let sums = run(pass, factors, v, slots, range);
        pass.sums().into_iter().zip(sums).for_each(|(k, sum)| passes.parts[k] = sum);
        Ok(())
    }

    fn take_dots(&self, passes: &mut HostPasses, product: usize) -> Result<HostSum> {
        Ok(passes.dots[product])
    }

    fn put_dots(&self, passes: &mut HostPasses, product: usize, dots: HostSum) {
        passes.dots[product] = dots;
    }

    fn parts(&self, passes: &mut HostPasses, wanted: &[usize], values: &mut [f64]) -> Result<()> {
        for sum in wanted {
            values[*sum] = match passes.partials.get(sum) {
                Some(Partials::Product(k, is_second)) => passes.dots[*k].value(usize::from(*is_second)),
                Some(Partials::Pass) | None => passes.parts[*sum],
            };
        }
        Ok(())
    }

    fn sum_over_ranks(&self, values: &mut [f64]) -> Result<()> {
        self.sum_values(values)
    }
}

/// A line of a pass, with vectors and factors by their numbers in the pass.
enum Action<T> {
    /// What vector `to` is set to: factors and vectors.
    Assign(usize, Vec<(Option<T>, usize)>),
    /// A sum of the products of two vectors, and of weights.
    Dot([usize; 2], Option<usize>),
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
        vec![of_chunk(&steps, chunk, count)]
    } else {
        chunks.into_par_iter().map(|mut chunk| of_chunk(&steps, &mut chunk, count)).collect()
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
    let factor = |node| nodes.iter().position(|n| *n == node).map(|k| T::from_f64(factors[k]));
    let step = |line: &Line| match line {
        Line::Assign { to, terms } => {
            let terms = terms.iter().map(|term| (term.factor.and_then(factor), at(term.vector))).collect();
            Some(Action::Assign(at(*to), terms))
        }
        Line::Dot { of, weights, .. } => Some(Action::Dot(of.map(at), weights.map(at))),
        Line::Multiply { .. } | Line::Check(_) => None,
    };
    pass.lines.iter().filter_map(step).collect()
}

/// The sums of a chunk, each in eight interleaved ones: the processor's vector units need them independent.
fn of_chunk<T: Real>(steps: &[Action<T>], chunk: &mut [&mut [T]], count: usize) -> Vec<f64> {
    let len = chunk.first().map_or(0, |array| array.len());
    let mut lanes = vec![[0.0; 8]; count];
    let mut value = [T::default(); BLOCK];
    for begin in (0..len).step_by(BLOCK) {
        let block = begin..len.min(begin + BLOCK);
        let value = &mut value[..block.len()];
        let mut lanes = lanes.iter_mut();
        for step in steps {
            match step {
                Action::Assign(to, terms) => {
                    for (k, (factor, of)) in terms.iter().enumerate() {
                        add(value, *factor, &chunk[*of][block.clone()], k == 0);
                    }
                    chunk[*to][block.clone()].copy_from_slice(value);
                }
                Action::Dot([a, b], weights) => {
                    let Some(lanes) = lanes.next() else { continue };
                    let [a, b] = [*a, *b].map(|k| &chunk[k][block.clone()]);
                    dot(lanes, a, b, weights.map(|k| &chunk[k][block.clone()]));
                }
            }
        }
    }
    lanes.iter().map(|l| ((l[0] + l[1]) + (l[2] + l[3])) + ((l[4] + l[5]) + (l[6] + l[7]))).collect()
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

/// Adds a b, or w (a b), to eight sums in turns.
fn dot<T: Real>(lanes: &mut [f64; 8], a: &[T], b: &[T], weights: Option<&[T]>) {
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    if let Some(w) = weights {
        let (w8, w_rest) = w.as_chunks::<8>();
        for ((a, b), w) in a8.iter().zip(b8).zip(w8) {
            for k in 0..8 {
                lanes[k] += w[k].to_f64() * (a[k].to_f64() * b[k].to_f64());
            }
        }
        for (k, ((a, b), w)) in a_rest.iter().zip(b_rest).zip(w_rest).enumerate() {
            lanes[k] += w.to_f64() * (a.to_f64() * b.to_f64());
        }
    } else {
        for (a, b) in a8.iter().zip(b8) {
            for k in 0..8 {
                lanes[k] += a[k].to_f64() * b[k].to_f64();
            }
        }
        for (k, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
            lanes[k] += a.to_f64() * b.to_f64();
        }
    }
}
