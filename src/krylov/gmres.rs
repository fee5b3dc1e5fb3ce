//! Generalised minimal residuals with restarts (Saad and Schultz 1986, doi 10.1137/0907058), for any square matrix; flexible, if the
//! preconditioner varies (Saad 1993, doi 10.1137/0914028).
//!
//! A *cycle* of at most m steps finds x + M⁻¹ V y with the least ‖b − A x‖, where the orthonormal columns of V span r, A M⁻¹ r, …, and is
//! followed by another one from the true residual. M⁻¹ stands on the right, so that what is least is the residual of the system itself. A
//! step multiplies the last column by M⁻¹ and A, and makes the result orthogonal to all columns (`backend::basis`). The
//! residual's norm follows from the small problem (`LeastSquares`); x is formed when a cycle ends, however it ends.
//!
//! Bytes a row in double precision, without / with a preconditioner that varies, for step j of a cycle:
//!
//! | pass | bytes a row |
//! |---|---|
//! | z = M⁻¹ v, if there is one: a diagonal | 24 / 48 |
//! | w = A z | 12 nnz / n + 20 |
//! | Vᵀ w, Vᵀ v, w·w | 8 j + 8 |
//! | v = w − V h, v·v | 8 j + 24 |
//! | at the end of a cycle: x += V y; or M⁻¹ V y | 8 j + 16, or 8 j + 72 / 8 j + 16 |
//! | at its beginning: r = b − A x, r·r, v = r / ‖r‖; x is set aside | 12 nnz / n + 92 |
//!
//! Of the real form of a complex system, a step has two columns, v and i v: h = vᴴ w are then two sums, and w is made orthogonal to v in complex
//! arithmetic. Both take memory, and are read.
//!
//! V is read once in each pass, as it must be: the sums of a pass are complete only after it. On average over a cycle of m steps that
//! is 8 m + 40 bytes a row and step beside the product. V takes 8 m + 8 bytes a row of memory, and 8 m more for
//! z of all steps if M varies.

use super::application::Application;
use super::iterate::Iterate;
use super::judge::Judge;
use super::least_squares::LeastSquares;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::backend::basis::{BasisBackend, Gram, Projected, epsilon, orthogonalise};
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{MATRIX, Recorder};
use crate::backend::{LinearOperator, Record};
use crate::error::Result;
use crate::matrix::Complex64;

/// Steps of a cycle, if nobody says how many.
pub const RESTART: u32 = 30;

/// The most that there can be.
pub const MOST_RESTART: u32 = 10_000;

/// A solve ends where the true residual has fallen by less than a hundredth in so many cycles, and as many as have so many steps: what
/// comes after them would hardly be better.
const IDLE_CYCLES: usize = 10;
const IDLE_STEPS: usize = 300;
const IDLE: f64 = 0.99;

/// What the preconditioner is applied by: z = M⁻¹ v, where v and z are lent by the caller.
pub(super) fn application(k: &Recorder) {
    let [v, z] = k.vectors(["v", "z"]);
    k.preconditioner().apply(v, z);
    k.iteration(|| {});
}

/// How many columns a rank keeps.
pub(super) fn columns(restart: u32, varies: bool, is_complex: bool) -> u64 {
    let steps = u64::from(restart);
    (steps + 1 + if varies { steps } else { 0 }) * if is_complex { 2 } else { 1 }
}

/// Arrays that a step of a full cycle moves on average beside its product and M⁻¹, rounded: two passes over half of V, and what they have
/// of other vectors.
pub(super) fn vectors_moved(restart: u32, is_complex: bool) -> u64 {
    let columns = u64::from(restart) + 1;
    if is_complex { 2 * columns + 5 } else { columns + 4 }
}

/// What a rank keeps from cycle to cycle.
pub(crate) struct Gmres<O: PassBackend + BasisBackend> {
    restart: usize,
    /// Columns of a step: v, and i v in a complex system.
    width: usize,
    v: O::Basis,
    /// M⁻¹ v of all columns, if M varies.
    z: Option<O::Basis>,
    m: Option<Application<O>>,
    /// ‖r‖² of the cycle since which little was gained, and the cycles since.
    idle: (f64, usize),
}

impl<O: PassBackend + BasisBackend> Gmres<O> {
    /// Room for cycles of so many steps, of a real or complex system, with a preconditioner, which may be one that varies.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(
        backend: &O,
        (restart, is_complex): (u32, bool),
        (m, varies): (Option<Application<O>>, bool),
    ) -> Result<Self> {
        let (restart, width) = (restart as usize, if is_complex { 2 } else { 1 });
        Ok(Self {
            restart,
            width,
            v: backend.basis(width * (restart + 1))?, // the last one for its length alone
            z: if varies { Some(backend.basis(width * restart)?) } else { None },
            m,
            idle: (f64::INFINITY, 0),
        })
    }

    /// How M⁻¹ is applied, if there is one.
    pub(crate) fn application(&mut self) -> Option<&mut Application<O>> {
        self.m.as_mut()
    }

    /// Forgets former solves.
    pub(crate) fn begin(&mut self) {
        self.idle = (f64::INFINITY, 0);
    }

    /// q = M⁻¹ p.
    fn apply(&mut self, backend: &O, operators: &[impl LinearOperator<O>], w: &mut Workspace<O>) -> Result<()> {
        self.m.iter_mut().try_for_each(|m| m.apply(backend, operators, &mut w.p, &mut w.q))
    }

    /// x += M⁻¹ V y, or Z y.
    fn add(
        &mut self,
        backend: &O,
        operators: &[impl LinearOperator<O>],
        y: &[Complex64],
        w: &mut Workspace<O>,
    ) -> Result<()> {
        let y: Vec<f64> = y.iter().flat_map(|y| [y.re, y.im].into_iter().take(self.width)).collect();
        match &mut self.z {
            Some(z) => backend.add_columns(z, &y, &mut w.x),
            None if self.m.is_none() => backend.add_columns(&mut self.v, &y, &mut w.x),
            None => {
                backend.clear(&mut w.p)?;
                backend.add_columns(&mut self.v, &y, &mut w.p)?;
                self.apply(backend, operators, w)?;
                backend.axpy(1.0, &w.q, &mut w.x)
            }
        }
    }

    /// Whether cycles no longer gain anything, the next one of which begins with this ‖r‖².
    fn is_idle(&mut self, rr: f64) -> bool {
        let (before, cycles) = self.idle;
        self.idle = if rr <= IDLE * IDLE * before { (rr, 0) } else { (before, cycles + 1) };
        self.idle.1 >= IDLE_CYCLES.max(IDLE_STEPS.div_ceil(self.restart))
    }
}

/// Runs a cycle from `iterate`, until `judge` says that it is over, or else to its end.
pub(crate) fn gmres<O: PassBackend + BasisBackend>(
    backend: &O,
    operators: &[impl LinearOperator<O>],
    iterate: &mut impl Iterate<O>,
    w: &mut Workspace<O>,
    cycle: &mut Gmres<O>,
    judge: &mut impl Judge,
) -> Result<Verdict> {
    let a = &operators[MATRIX];
    backend.begin()?;
    iterate.residual(backend, a, w)?; //                                    r = b − A x
    let rr = backend.dot(&w.r, &w.r)?;
    if let Some(verdict) = judge.begin(rr) {
        return Ok(verdict);
    }
    if judge.is_best() {
        iterate.keep(backend, w)?;
    }
    if cycle.is_idle(rr) {
        return Ok(Verdict::Stalled { worse: !judge.is_best() });
    }
    let (width, is_complex) = (cycle.width, cycle.width == 2);
    let mut small = LeastSquares::new(rr.sqrt(), epsilon::<O::Real>());
    let mut gram = Gram::new(is_complex);
    orthogonalise(backend, (&mut cycle.v, &mut gram), &w.r, &mut w.p)?; // v = r / β
    let mut verdict = None;
    for step in 1..=cycle.restart {
        let iteration = step as u64;
        backend.begin_iteration(iteration)?;
        cycle.apply(backend, operators, w)?;
        if let Some(z) = &mut cycle.z {
            backend.next_column(z, &[], (1.0, &w.q), (width * (step - 1), is_complex), &mut w.r)?; // r is set next
        }
        let z = if cycle.m.is_some() { &mut w.q } else { &mut w.p };
        a.apply(backend, z, &mut w.r)?; //                                  w = A M⁻¹ v
        let Projected { h, norm } = orthogonalise(backend, (&mut cycle.v, &mut gram), &w.r, &mut w.p)?; // v = w − V h
        let length = gram.length(width * (step - 1)); // of the column that was multiplied
        let number = |parts: &[f64]| Complex64::new(parts[0], if is_complex { parts[1] } else { 0.0 }) / length;
        let is_regular = small.add(&h.chunks_exact(width).map(number).collect::<Vec<_>>(), norm / length);
        let rr = small.residual() * small.residual();
        verdict = judge.judge(&[Record::Residual { iteration, rr }], backend.comm());
        // where nothing is left of w, or it leads nowhere, the space grows no more
        if verdict.is_some() || !is_regular || norm == 0.0 || step == cycle.restart {
            break;
        }
    }
    let in_columns = |(k, y): (usize, Complex64)| y / gram.length(width * k);
    let y: Vec<Complex64> = small.solve().into_iter().enumerate().map(in_columns).collect();
    if y.iter().all(|y| y.re.is_finite() && y.im.is_finite()) {
        cycle.add(backend, operators, &y, w)?; //                                   x += M⁻¹ V y
    }
    if verdict.is_none() {
        judge.take_snapshot(backend, iterate, None, w, 0.0)?;
    }
    Ok(verdict.unwrap_or(Verdict::Replaces))
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::backend::host::HostBackend;
    use crate::backend::machine::Machine;
    use crate::backend::text::{Kind, Preconditioner, Vector};
    use crate::comm::Alone;
    use crate::krylov::Method;
    use crate::matrix::{Csr, gallery};
    use crate::operator::Format;
    use crate::operator::host::HostBlock;
    use crate::partition::split;
    use crate::real::Precision;
    use crate::runtime::{Control, Monitor, Plain, Stop};

    /// M⁻¹ v = d ∘ v + s d with s = (v·d)², which is another one for each v.
    #[derive(Debug)]
    struct Varying {
        d: Arc<Vec<f64>>,
        tells: bool,
    }

    impl Preconditioner for Varying {
        fn vectors(&self) -> Vec<(&'static str, Arc<Vec<f64>>)> {
            vec![("d", Arc::clone(&self.d))]
        }

        fn apply<'k>(&self, _: &'k Recorder, vectors: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>) {
            let [d, mut z] = [vectors[0], z];
            let s = r.dot(d);
            z.set(d.times(r));
            z += s * s * d;
        }

        fn varies(&self) -> bool {
            self.tells
        }
    }

    /// Steps towards 10⁻¹⁰, and the true relative residual when the cycle that first met the test was over.
    fn solve(a: &Arc<Csr>, m: Varying) -> (u64, f64) {
        let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 7));
        let backend = HostBackend::<f64>::new(n, Box::new(Alone::default()));
        let part = split(a, std::slice::from_ref(&(0..n))).remove(0);
        let rows = HostBlock::new(a, part, 1.0, Format::Csr).unwrap();
        let mut w = Workspace::new(&backend, from_ref(&rows)).unwrap();
        let varies = m.varies();
        let program = Method::Gmres.program(Kind::PLAIN, Some(Arc::new(m))).unwrap();
        let application = Application::Text(Machine::new(&backend, from_ref(&rows), program).unwrap());
        let mut cycles = Gmres::new(&backend, (20, false), (Some(application), varies)).unwrap();
        let mut iterate = Plain::new(&backend).unwrap();
        iterate.write(&backend, &mut w, &b, &vec![0.0; n]).unwrap();
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let stop = Stop { max_iters: Some(200), ..Stop::default() };
        let (begun, target) = ((0, Instant::now()), 1e-10 * norm(&b));
        let mut monitor = Monitor::new(n, target, norm(&b), Precision::F64, &stop, Control::default(), begun);
        while gmres(&backend, from_ref(&rows), &mut iterate, &mut w, &mut cycles, &mut monitor).unwrap()
            == Verdict::Replaces
        {
            monitor.replaces();
        }
        let residual: Vec<f64> = a.mul_vec(&w.x).iter().zip(&b).map(|(y, b)| b - y).collect();
        (monitor.into_seen().iterations, norm(&residual) / norm(&b))
    }

    #[test]
    fn a_preconditioner_that_varies() {
        let a = Arc::new("convection3d:6x5x4".parse::<gallery::Spec>().unwrap().build().unwrap());
        let with = |tells| {
            let d = (0..a.n_rows()).map(|i| 1.0 / a.get(i, i).unwrap() * [1.0, 1.5][i % 2]);
            solve(&a, Varying { d: Arc::new(d.collect()), tells })
        };
        let (steps, found) = with(true);
        assert!(steps < 100 && found <= 1.01e-10, "{steps} steps, {found:e}");
        // one that keeps it to itself leads astray
        assert!(with(false).1 > 1e-3);
    }
}
