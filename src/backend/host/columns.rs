//! Passes over vectors of several columns on the host's threads, each column with factors and sums of its own.

use std::ops::Range;

use rayon::prelude::*;

use crate::backend::deferred::{self, Deferred};
use crate::backend::program::Pass;
use crate::backend::scalar::Node;
use crate::backend::text::{Line, Slot, X};
use crate::real::Real;

/// Elements of a chunk, which a thread takes at a time: sums are those of chunks, in order.
const CHUNK: usize = deferred::RUN;
/// Elements that each line of a pass is done for at a time: they stay in the first cache.
const BLOCK: usize = 512;

/// Does a pass with elements `range`, those of whole rows, of the vectors in `slots`, which stand for those of the pass in its order, and
/// gives this rank's part of its sums: those of each column side by side. `factors` are as the machine gives them; vectors in `shared`
/// slots have one column for all.
pub(super) fn run<T: Real>(
    pass: &Pass,
    (factors, columns): (&[f64], usize),
    all: &mut [Vec<T>],
    (slots, shared): (&[Slot], &[Slot]),
    range: Range<usize>,
) -> Vec<f64> {
    match columns {
        2 => Columns::<2>::run(pass, factors, all, (slots, shared), range),
        4 => Columns::<4>::run(pass, factors, all, (slots, shared), range),
        8 => Columns::<8>::run(pass, factors, all, (slots, shared), range),
        16 => Columns::<16>::run(pass, factors, all, (slots, shared), range),
        _ => unreachable!("{columns} columns"),
    }
}

/// Elements of a vector: of all columns, or one for all.
#[derive(Clone, Copy)]
enum Elements<'a, T> {
    Own(&'a [T]),
    Shared(&'a [T]),
}

/// A pass with the factors of so many columns.
struct Columns<'a, const K: usize> {
    pass: &'a Pass,
    vectors: Vec<Slot>,
    nodes: Vec<Node>,
    factors: &'a [[f64; K]],
    /// Columns that the pass is done for.
    is_on: [bool; K],
    /// Whether columns share each vector.
    is_shared: Vec<bool>,
}

impl<const K: usize> Columns<'_, K> {
    fn run<T: Real>(
        pass: &Pass,
        factors: &[f64],
        all: &mut [Vec<T>],
        (slots, shared): (&[Slot], &[Slot]),
        range: Range<usize>,
    ) -> Vec<f64> {
        let (factors, _) = factors.as_chunks::<K>();
        let (vectors, nodes) = (pass.vectors(), pass.factors());
        let is_on = factors[nodes.len()].map(|on| on > 0.0);
        let is_shared: Vec<bool> = vectors.iter().map(|slot| shared.contains(slot)).collect();
        let mut arrays: Vec<Option<&mut [T]>> = slots.iter().map(|_| None).collect();
        for (slot, vector) in all.iter_mut().enumerate() {
            if let Some(k) = slots.iter().position(|s| *s == slot) {
                let width = if is_shared[k] { K } else { 1 };
                arrays[k] = Some(&mut vector[range.start / width..range.end / width]);
            }
        }
        let mut chunks: Vec<Vec<&mut [T]>> =
            range.clone().step_by(CHUNK).map(|_| Vec::with_capacity(slots.len())).collect();
        for (k, array) in arrays.into_iter().flatten().enumerate() {
            let len = CHUNK / if is_shared[k] { K } else { 1 };
            chunks.iter_mut().zip(array.chunks_mut(len)).for_each(|(chunk, piece)| chunk.push(piece));
        }
        let count = pass.sums().len();
        let this = Columns { pass, vectors, nodes, factors, is_on, is_shared };
        let work = (0..chunks.len()).into_par_iter().zip(chunks);
        let sums: Vec<Vec<[f64; K]>> = work
            .map(|(run, mut chunk)| this.of_chunk(run, (range.len() - run * CHUNK).min(CHUNK), &mut chunk))
            .collect();
        let mut total = vec![[0.0; K]; count];
        for of_chunk in sums {
            let pairs = total.as_flattened_mut().iter_mut().zip(of_chunk.as_flattened());
            pairs.for_each(|(total, sum)| *total += sum);
        }
        total.into_flattened()
    }

    fn at(&self, slot: Slot) -> usize {
        self.vectors.iter().position(|v| *v == slot).unwrap_or_default()
    }

    fn numbers(&self, node: Node) -> [f64; K] {
        self.nodes.iter().position(|n| *n == node).map_or([f64::NAN; K], |k| self.factors[k])
    }

    /// Elements `block` of a vector, or of their rows.
    fn elements<'c, T>(&self, chunk: &'c [&mut [T]], slot: Slot, block: &Range<usize>) -> Elements<'c, T> {
        let k = self.at(slot);
        if self.is_shared[k] {
            Elements::Shared(&chunk[k][block.start / K..block.end / K])
        } else {
            Elements::Own(&chunk[k][block.clone()])
        }
    }

    /// The sums of chunk `run`, of `len` elements.
    fn of_chunk<T: Real>(&self, run: usize, len: usize, chunk: &mut [&mut [T]]) -> Vec<[f64; K]> {
        let mut sums = vec![[0.0; K]; self.pass.sums().len()];
        let [mut value, mut product] = [[T::default(); BLOCK]; 2];
        for begin in (0..len).step_by(BLOCK) {
            let block = begin..len.min(begin + BLOCK);
            let (value, product) = (&mut value[..block.len()], &mut product[..block.len()]);
            let mut sums = sums.iter_mut();
            for line in &self.pass.lines {
                match line {
                    Line::Assign { to, terms } => {
                        for (k, term) in terms.iter().enumerate() {
                            let mut of = self.elements(chunk, term.vector, &block);
                            if let Some(scale) = term.scale {
                                each::<_, K>(product, of, |y, x, _| *y = x);
                                each::<_, K>(product, self.elements(chunk, scale, &block), |y, d, _| *y = d * *y);
                                of = Elements::Own(product);
                            }
                            let factor = term.factor.map(|node| self.numbers(node).map(T::from_f64));
                            match (factor, k == 0) {
                                (None, true) => each::<_, K>(value, of, |v, x, _| *v = x),
                                (None, false) => each::<_, K>(value, of, |v, x, _| *v += x),
                                (Some(f), true) => each::<_, K>(value, of, |v, x, c| *v = f[c] * x),
                                (Some(f), false) => each::<_, K>(value, of, |v, x, c| *v += f[c] * x),
                            }
                        }
                        let to = &mut chunk[self.at(*to)][block.clone()];
                        each::<_, K>(to, Elements::Own(value), |to, v, c| *to = if self.is_on[c] { v } else { *to });
                    }
                    Line::Dot { of: [a, b], weights, .. } => {
                        let Some(sums) = sums.next() else { continue };
                        each::<_, K>(value, self.elements(chunk, *b, &block), |v, b, _| *v = b);
                        let a = self.elements(chunk, *a, &block);
                        match weights {
                            None => add_dot(sums, None, a, value),
                            Some(w) => add_dot(sums, Some(self.elements(chunk, *w, &block)), a, value),
                        }
                    }
                    Line::Defer(deferred) => {
                        let Deferred { of: [p, r], alpha, former, next, .. } = deferred;
                        let alpha = self.numbers(*alpha).map(T::from_f64);
                        let former = self.numbers(*former).map(|former| T::from_f64(deferred::factor(run, former)));
                        let next = self.numbers(*next).map(|next| deferred::factor(run, next) > 0.0);
                        let update = |p: T, r: T, c: usize| alpha[c] * p + former[c] * (p - r);
                        self.add_to_x(chunk, &block, [*p, *r], |c| self.is_on[c] && !next[c], update);
                    }
                    Line::Complete(Deferred { of: [p, r], former, .. }) => {
                        let former = self.numbers(*former).map(|former| T::from_f64(deferred::factor(run, former)));
                        let update = |p: T, r: T, c: usize| {
                            let more = former[c] * (p - r);
                            if more.to_f64().is_finite() { more } else { T::default() }
                        };
                        self.add_to_x(chunk, &block, [*p, *r], |c| self.is_on[c], update);
                    }
                    Line::Multiply { .. } | Line::Check(_) => {}
                }
            }
        }
        sums
    }

    /// x += what becomes of p and r, in columns that it is done for.
    fn add_to_x<T: Real>(
        &self,
        chunk: &mut [&mut [T]],
        block: &Range<usize>,
        [p, r]: [Slot; 2],
        is_on: impl Fn(usize) -> bool,
        more: impl Fn(T, T, usize) -> T,
    ) {
        let Ok([x, p, r]) = chunk.get_disjoint_mut([X, p, r].map(|slot| self.at(slot))) else { return };
        let elements = x[block.clone()].iter_mut().zip(&p[block.clone()]).zip(&r[block.clone()]);
        for (i, ((x, &p), &r)) in elements.enumerate() {
            if is_on(i % K) {
                *x += more(p, r, i % K);
            }
        }
    }
}

/// Does something to each element, with that of another vector, and its column.
fn each<T: Real, const K: usize>(to: &mut [T], of: Elements<'_, T>, f: impl Fn(&mut T, T, usize)) {
    let (rows, _) = to.as_chunks_mut::<K>();
    match of {
        Elements::Own(x) => {
            for (to, x) in rows.iter_mut().zip(x.as_chunks::<K>().0) {
                (0..K).for_each(|c| f(&mut to[c], x[c], c));
            }
        }
        Elements::Shared(x) => {
            for (to, &x) in rows.iter_mut().zip(x) {
                (0..K).for_each(|c| f(&mut to[c], x, c));
            }
        }
    }
}

/// Adds a·b of each column, or Σ w (a b).
fn add_dot<T: Real, const K: usize>(sums: &mut [f64; K], w: Option<Elements<'_, T>>, a: Elements<'_, T>, b: &[T]) {
    let one = |of: Elements<'_, T>, i: usize| match of {
        Elements::Own(x) => x[i].to_f64(),
        Elements::Shared(x) => x[i / K].to_f64(),
    };
    match (w, a) {
        (None, Elements::Own(a)) => {
            for (a, b) in a.as_chunks::<K>().0.iter().zip(b.as_chunks::<K>().0) {
                (0..K).for_each(|c| sums[c] += a[c].to_f64() * b[c].to_f64());
            }
        }
        (w, a) => {
            for (i, b) in b.iter().enumerate() {
                let product = one(a, i) * b.to_f64();
                sums[i % K] += w.map_or(product, |w| one(w, i) * product);
            }
        }
    }
}
