//! How much a solution may change with the right-hand side.

use super::element::Element;
use super::host::Host;

/// The most rounds: two or three are usual.
const ROUNDS: usize = 5;

/// An estimate of ‖A⁻¹‖₁ from below, by products with A⁻¹ and A⁻ᵀ: a climb over the vertices of the unit ball, and a vector of alternating
/// signs for the matrices that mislead it.
///
/// N. J. Higham, "FORTRAN codes for estimating the one-norm of a real or complex matrix, with applications to condition estimation", ACM
/// Trans. Math. Softw. 14 (1988), doi 10.1145/50063.214386, algorithm 4.1.
pub(super) fn inverse_norm_1<T: Element>(n: usize, factors: &Host<T>) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let applied = |mut v: Vec<T>, is_transposed: bool| {
        if is_transposed {
            factors.solve_transposed(&mut v);
        } else {
            factors.solve(&mut v);
        }
        v
    };
    let mut v = applied(vec![T::from_f64(1.0 / n as f64); n], false);
    let mut estimate = norm_1(&v);
    let mut signs = signs_of(&v);
    let mut last = None;
    for _ in 0..ROUNDS {
        let z = applied(signs.iter().map(|&s| T::from_f64(s)).collect(), true);
        let steepest = steepest(&z);
        if last == Some(steepest) {
            break;
        }
        last = Some(steepest);
        let mut e = vec![T::default(); n];
        e[steepest] = T::from_f64(1.0);
        v = applied(e, false);
        let (norm, next) = (norm_1(&v), signs_of(&v));
        let is_higher = norm > estimate;
        estimate = estimate.max(norm);
        if !is_higher || next == signs {
            break;
        }
        signs = next;
    }
    let slope = |i: usize| 1.0 + i as f64 / (n.max(2) - 1) as f64;
    let alternating = (0..n).map(|i| T::from_f64(if i % 2 == 0 { slope(i) } else { -slope(i) })).collect();
    let other = 2.0 * norm_1(&applied(alternating, false)) / (3.0 * n as f64);
    estimate.max(other)
}

fn norm_1<T: Element>(v: &[T]) -> f64 {
    v.iter().map(|v| v.to_f64().abs()).sum()
}

fn signs_of<T: Element>(v: &[T]) -> Vec<f64> {
    v.iter().map(|v| if v.to_f64() < 0.0 { -1.0 } else { 1.0 }).collect()
}

/// The index of the largest element.
fn steepest<T: Element>(v: &[T]) -> usize {
    let larger = |best: usize, i: usize| if v[i].to_f64().abs() > v[best].to_f64().abs() { i } else { best };
    (0..v.len()).fold(0, larger)
}
