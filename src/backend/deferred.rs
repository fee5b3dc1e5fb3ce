//! Half of an update of the iterate is deferred to the next iteration, which has what it needs at hand.
//!
//! Nothing in an iteration of conjugate gradients reads x. After x += α p and p' = r' + β p, α p = α / β (p' − r'): the same pass of
//! the next iteration, which loads p' and r' anyway, can still make the update. So x is updated in every other run of [`RUN`]
//! elements, which take turns: an iteration moves half of x, 8 bytes a row less in double precision. The error that rounding
//! leaves in a deferred update is up to 1 / β times as large, so that with β < [`LEAST_BETA`] nothing is deferred.
//!
//! What is deferred is told by α / β: positive if it is the even runs, negative if it is the odd ones, 0 if there are none.

use super::program::{Pass, Step};
use super::scalar::{Form, Node, Scalars};
use super::text::{Carried, Line, Slot, Term, X};
pub(crate) use crate::kernels::RUN;
use crate::real::Real;

/// The least β with which an update is deferred.
const LEAST_BETA: f64 = 0.25;

/// An update x = x + α p, half of which is deferred.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Deferred {
    /// p, and r where p = r + β p comes later in the pass.
    pub(crate) of: [Slot; 2],
    /// α.
    pub(crate) alpha: Node,
    /// What the iteration before has deferred, a carried scalar,
    pub(crate) former: Node,
    /// and its number.
    pub(crate) carried: usize,
    /// What this one defers.
    pub(crate) next: Node,
}

impl Deferred {
    /// Finds an update of which half can be deferred, and defers it.
    pub(crate) fn find(
        steps: &mut [Step],
        order: &[Slot],
        scalars: &mut Scalars,
        carried: &mut Vec<Carried>,
    ) -> Option<Self> {
        let (step, line, [p, r], [alpha, beta]) = steps.iter().enumerate().find_map(|(k, step)| {
            let Step::Pass(pass) = step else { return None };
            let (line, of, scalars) = update(pass)?;
            let is_alone = steps.iter().enumerate().all(|(other, step)| {
                let changes = |line: &Line| {
                    line.sets().is_some_and(|to| to == X || of.contains(&to)) || line.reads().contains(&X)
                };
                match step {
                    Step::Multiply(multiply) => ![multiply.x, multiply.y].contains(&X) && !of.contains(&multiply.y),
                    Step::Pass(pass) => other == k || !pass.lines.iter().any(changes),
                }
            });
            let stays = |slot: Slot| order[slot] == slot;
            (is_alone && stays(X) && of.into_iter().all(stays)).then_some((k, line, of, scalars))
        })?;
        let [zero, least] = [0.0, LEAST_BETA].map(|value| scalars.add(Form::Constant(value)));
        let former = scalars.add(Form::Carried(carried.len()));
        let ratio = scalars.add(Form::Over(alpha, beta));
        let negative = scalars.add(Form::Negative(ratio));
        let turn = scalars.add(Form::Choice(former, negative, ratio));
        let excess = scalars.add(Form::Minus(beta, least));
        let next = scalars.add(Form::Choice(excess, turn, zero));
        let deferred = Self { of: [p, r], alpha, former, carried: carried.len(), next };
        carried.push(Carried { first: zero, next, stays: true });
        if let Step::Pass(pass) = &mut steps[step] {
            pass.lines[line] = Line::Defer(deferred);
        }
        Some(deferred)
    }
}

/// Whether the update of run `run` is among those that were deferred, and by which factor it is to be made.
pub(crate) fn factor(run: usize, deferred: f64) -> f64 {
    (if run.is_multiple_of(2) { deferred } else { -deferred }).max(0.0)
}

/// Makes the updates of x that were deferred, from r and p as they are then. Where one is no number, x stays.
pub(crate) fn complete<T: Real>(x: &mut [T], p: &[T], r: &[T], deferred: f64) {
    let runs = x.chunks_mut(RUN).zip(p.chunks(RUN)).zip(r.chunks(RUN)).enumerate();
    for (run, ((x, p), r)) in runs {
        complete_run(x, p, r, T::from_f64(factor(run, deferred)));
    }
}

/// The same for a run.
pub(crate) fn complete_run<T: Real>(x: &mut [T], p: &[T], r: &[T], factor: T) {
    for ((x, &p), &r) in x.iter_mut().zip(p).zip(r) {
        let more = factor * (p - r);
        if more.to_f64().is_finite() {
            *x += more;
        }
    }
}

/// Where a pass says x = x + α p, then p = r + β p, with r and p as they were at its begin, or r as it leaves it: the line of the
/// former, p and r, α and β.
fn update(pass: &Pass) -> Option<(usize, [Slot; 2], [Node; 2])> {
    let (at, p, alpha) = pass.lines.iter().enumerate().find_map(|(k, line)| match line {
        Line::Assign { to: X, terms } => match terms[..] {
            [
                Term { factor: None, scale: None, turned: false, vector: X },
                Term { factor: Some(alpha), scale: None, turned: false, vector: p },
            ] => Some((k, p, alpha)),
            _ => None,
        },
        _ => None,
    })?;
    let (then, r, beta) = pass.lines.iter().enumerate().find_map(|(k, line)| match line {
        Line::Assign { to, terms } if *to == p => match terms[..] {
            [
                Term { factor: None, scale: None, turned: false, vector: r },
                Term { factor: Some(beta), scale: None, turned: false, vector },
            ] if vector == p => Some((k, r, beta)),
            _ => None,
        },
        _ => None,
    })?;
    let sets = |slot: Slot, line: &Line| line.sets() == Some(slot);
    let r_is_late =
        !pass.lines[..at].iter().any(|line| sets(r, line)) && !pass.lines[then..].iter().any(|line| sets(r, line));
    let is_once = |slot: Slot| pass.lines.iter().filter(|line| sets(slot, line)).count() == 1;
    let x_is_unread = pass.lines.iter().enumerate().all(|(k, line)| k == at || !line.reads().contains(&X));
    (at < then && r_is_late && x_is_unread && is_once(X) && is_once(p)).then_some((at, [p, r], [alpha, beta]))
}
