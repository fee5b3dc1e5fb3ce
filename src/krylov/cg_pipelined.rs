//! Pipelined conjugate gradients (Ghysels and Vanroose 2014, doi 10.1016/j.parco.2013.06.001): the sums over ranks travel
//! while the product of the same iteration runs, as that does not need them. t = A r is the paper's w.
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A t | 12 nnz / n + 20 |
//! | z = q + β z, s = t + β s, p = r + β p, x += α p, r −= α s, t −= α z, γ = r·r, δ = r·t | 104 / 112 |
//!
//! α and β follow from γ and δ as [`PreviousStep`] has it. s = A p, z = A s and t = A r come by recurrence, and their rounding errors grow
//! from step to step. So the residual and these products are *replaced* by b − A x and by products once in so many iterations, with
//! the direction as it is (van der Vorst and Ye 2000, doi 10.1137/S1064827599353865; Cools, Yetkin, Agullo, Giraud and Vanroose
//! 2018, doi 10.1137/17M1117872): a run of so many iterations is followed by another one.

use super::previous_step::PreviousStep;
use crate::backend::text::Recorder;

/// Iterations between two replacements, each of which takes four products, in double and in single precision: see
/// `docs/measurements.md` for what was measured.
const REPLACE_EVERY: [u64; 2] = [30, 10];

/// x, r and p of one iteration after the other, for a symmetric and positive definite matrix.
pub(crate) fn cg_pipelined(k: &Recorder) {
    let (a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [p, q, s, mut t, z] = k.vectors(["p", "q", "s", "t", "z"]);

    k.direction(p, k.number(0.0) * r);
    s.set(a * p);
    z.set(a * s);
    t.set(a * r);
    let [gamma, delta] = [r.dot(r), r.dot(t)].map(|first| k.carried(first));
    let previous = PreviousStep::of_direction(k, r, p, s);
    k.replace_residual_every(REPLACE_EVERY);
    k.iteration(|| {
        q.set(a * t);
        let [alpha, beta] = previous.next(k, gamma, delta);
        z.set(q + beta * z);
        s.set(t + beta * s);
        p.set(r + beta * p);
        x += alpha * p;
        r -= alpha * s;
        t -= alpha * z;
        k.next(gamma, r.dot(r));
        k.next(delta, r.dot(t));
        k.watch(k.norm2(r));
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::REPLACE_EVERY;
    use crate::backend::host::HostBackend;
    use crate::backend::machine::Machine;
    use crate::backend::program::Program;
    use crate::backend::text::Kind;
    use crate::comm::Alone;
    use crate::krylov::{Iterate, Method, Verdict, Workspace, run};
    use crate::matrix::gallery;
    use crate::operator::Format;
    use crate::operator::host::HostBlock;
    use crate::partition::split;
    use crate::real::Precision;
    use crate::runtime::{Control, Monitor, Plain, Stop};

    /// Iterations towards 10⁻¹², at most 2000, with runs of so many, and the true relative residual where they ended: when the
    /// recurrence first met the test.
    fn solve(spec: &str, replace_every: Option<[u64; 2]>) -> (u64, f64) {
        let a = Arc::new(spec.parse::<gallery::Spec>().unwrap().build().unwrap());
        let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 7));
        let backend = HostBackend::<f64>::new(n, Box::new(Alone::default()));
        let part = split(&a, std::slice::from_ref(&(0..n))).remove(0);
        let rows = [HostBlock::new(&a, part, 1.0, Format::Csr).unwrap()];
        let mut w = Workspace::new(&backend, &rows).unwrap();
        let program = Program { replace_every, ..Method::CgPipelined.program(Kind::PLAIN, None).unwrap() };
        let mut machine = Machine::new(&backend, &rows, program).unwrap();
        let mut iterate = Plain::new(&backend).unwrap();
        iterate.write(&backend, &mut w, &b, &vec![0.0; n]).unwrap();
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let stop = Stop { max_iters: Some(2000), ..Stop::default() };
        let (begun, target) = ((0, Instant::now()), 1e-12 * norm(&b));
        let mut monitor = Monitor::new(n, target, norm(&b), Precision::F64, &stop, Control::default(), begun);
        let mut one = |monitor: &mut Monitor<'_>| {
            run(&backend, &rows, &mut iterate, None, &mut w, &mut machine, monitor).unwrap()
        };
        while one(&mut monitor) == Verdict::Replaces {
            monitor.replaces();
        }
        let residual: Vec<f64> = a.mul_vec(&w.x).iter().zip(&b).map(|(y, b)| b - y).collect();
        (monitor.into_seen().iterations, norm(&residual) / norm(&b))
    }

    #[test]
    fn replacement_is_what_makes_it_accurate() {
        for spec in ["elasticity3d:5x2x2", "jumps:10x9x8,seed=3"] {
            let (without, kept) = (solve(spec, None), solve(spec, Some(REPLACE_EVERY)));
            assert!(kept.1 <= 2e-12 && kept.0 < 700, "{spec}: {kept:?}");
            assert!(without.1 > 100.0 * kept.1, "{spec}: {without:?} without, {kept:?}");
        }
    }
}
