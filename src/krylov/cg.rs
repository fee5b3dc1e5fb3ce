//! Preconditioned conjugate gradients (Hestenes and Stiefel 1952, doi 10.6028/jres.049.044), in two fused kernels.
//!
//! | line | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A p, p·q, q·q | 12 nnz / n + 20 |
//! | α = ρ / p·q, β = α q·q / p·q − 1, x += α p, r −= α q, p = r + β p, ρ' = r·r | 48 / 56 |
//!
//! A step updates half of x, and puts the other half off until the next one, which makes up for it from r and p = r + β p that it
//! reads anyway (`cl/cg.cl`); where β is too small for that, it updates all of x, 8 bytes a row more.
//!
//! β = ρ' / ρ is formed before ρ' is known, from ρ' = α² q·q − ρ (Rupp et al. 2016, doi 10.1145/2907944, and Chronopoulos and
//! Gear 1989, doi 10.1016/0377-0427(89)90045-9, for the idea). Since α is formed from ρ as it was computed, rounding does not
//! add up; see `docs/measurements.md`. So an iteration has one sum over ranks, in place of two.
//!
//! Among several ranks, r and p are kept on the halo, too: there the step is made with the halo of q, which travels while the
//! ranks add up and work on what needs no halo. So they meet once an iteration, in its sum.
//!
//! On one device the scalars never leave it: each kernel adds the partial sums of the one before, and the host learns of the
//! residual late, without holding anything up. With a small system such a device does several iterations in one launch.

use super::iterate::Iterate;
use super::judge::Judge;
use super::squares::squares;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::{CgRun, CgStep, HaloStep, Ops, Product};
use crate::precond::scaling::Share;

/// x += α p may be put off until the next step where β is at least that: what is formed then, α / β ((r + β p) − r), has the
/// rounding errors of r + β p, 1 / β times as large.
const LEAST_BETA: f64 = 0.25;

/// Runs from `iterate` until `judge` says so. The first residual is computed, not assumed; the direction may be that
/// which the former run has left. If the system is scaled, what it sees is the residual of the one that is
/// not.
pub(crate) fn cg<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&Share<O>>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge<O>,
) -> Result<Verdict> {
    let verdict = iterations(ops, a, iterate, scaling, w, judge)?;
    ops.complete_iterate(&mut w.x, &w.r, &w.p)?;
    Ok(verdict)
}

/// The same, but that x may lack what the last steps have put off.
fn iterations<O: Ops>(
    ops: &O,
    a: &impl LinearOperator<O>,
    iterate: &mut impl Iterate<O>,
    scaling: Option<&Share<O>>,
    w: &mut Workspace<O>,
    judge: &mut impl Judge<O>,
) -> Result<Verdict> {
    ops.begin()?;
    iterate.residual(ops, a, w)?; //                                           r = b − A x
    let [rho, rr] = squares(ops, scaling, w)?; //                              ρ = r·r
    if let Some(verdict) = judge.begin(rho, rr) {
        return Ok(verdict);
    }
    iterate.keep(ops, w)?;
    if !judge.keeps_direction() {
        ops.copy(&w.r, &mut w.p)?; //                                          p = r
    }
    a.fill_halo(ops, &mut w.r)?;
    a.fill_halo(ops, &mut w.p)?;

    let mut records = Vec::new();
    let (mut iteration, mut halo_step) = (1, None);
    loop {
        let several = a.cg_run(ops, run(w, scaling, judge, iteration))?; //  several at once, or else one:
        iteration = several.unwrap_or(iteration);
        let is_over = judge.is_over(iteration);
        let is_single = several.is_none() && !is_over;
        if is_single {
            ops.begin_iteration(iteration)?;
            let Workspace { dots, rho, r, p, q, .. } = w;
            let step = halo_step.map(|scalars| HaloStep::Direction { scalars, r });
            a.apply_dots(ops, Product { step, x: p, y: q, dots })?; //         q = A p, p·q, q·q
            let mut sums = [dots, rho];
            let sums = if iteration == 1 { &mut sums[..1] } else { &mut sums[..] }; // at first ρ is complete
            ops.start_sum(sums)?;
            a.pack_halo(ops, q, true)?;
            ops.all_sum(sums)?;
        } else {
            ops.all_sum(&mut [&mut w.rho])?;
        }
        records.clear();
        let drain = is_over || ops.comm().stop_request() != 0;
        ops.observe(iteration, is_single.then_some(&w.dots), &mut w.rho, drain, &mut records)?;
        if let Some(verdict) = judge.judge(&records, ops.comm()) {
            return Ok(verdict);
        }
        judge.set_aside(ops, iterate, scaling, w)?;
        if is_single {
            if let Some(verdict) = judge.compare(ops, iteration)? {
                return Ok(verdict);
            }
            halo_step = ops.cg_step(CgStep {
                dots: &mut w.dots,
                rho: &w.rho,
                weights: scaling.map(|share| &share.weights),
                x: &mut w.x,
                r: &mut w.r,
                p: &mut w.p,
                q: &w.q,
                rho_next: &mut w.rho_next,
                limit: judge.run_limit(),
                iteration,
                least_beta: LEAST_BETA,
            })?; //                                 α = ρ / p·q, β = α q·q / p·q − 1, x += α p, r −= α q, p = r + β p
            std::mem::swap(&mut w.rho, &mut w.rho_next);
            iteration += 1;
        }
    }
}

/// The iterations that are allowed from `iteration` on.
fn run<'a, O: Ops>(
    w: &'a mut Workspace<O>,
    scaling: Option<&'a Share<O>>,
    judge: &impl Judge<O>,
    iteration: u64,
) -> CgRun<'a, O> {
    CgRun {
        dots: &mut w.dots,
        rho: &mut w.rho,
        rho_next: &mut w.rho_next,
        weights: scaling.map(|share| &share.weights),
        x: &mut w.x,
        r: &mut w.r,
        p: &mut w.p,
        q: &mut w.q,
        limit: judge.run_limit(),
        iteration,
        least_beta: LEAST_BETA,
        most: judge.allowed_from(iteration),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;
    use crate::comm::Alone;
    use crate::device::{Context, DeviceVec, list};
    use crate::kernels::{Kernels, Tuning};
    use crate::krylov::{Method, Reason};
    use crate::matrix::gallery::random_vector;
    use crate::matrix::{Csr, gallery};
    use crate::operator::host::HostBlock;
    use crate::operator::opencl::DeviceBlock;
    use crate::operator::{Arriving, Format};
    use crate::ops::host::HostOps;
    use crate::ops::opencl::{DeviceSum, OpenClOps};
    use crate::partition::split;
    use crate::real::Precision;
    use crate::runtime::{Control, Monitor, Plain, Stop};

    type Device = OpenClOps<f64, f64>;

    /// Rows of which several iterations are made in one launch, but for those from one iteration on: their launches are
    /// refused.
    struct RefusedFrom {
        block: RefCell<DeviceBlock<f64>>,
        iteration: u64,
        was_spoilt: Cell<bool>,
        /// The most iterations that were enqueued and then taken back.
        taken_back: Cell<u64>,
    }

    impl LinearOperator<Device> for RefusedFrom {
        fn apply(&self, ops: &Device, x: &mut DeviceVec<f64>, y: &mut DeviceVec<f64>) -> Result<()> {
            self.block.borrow().apply(ops, x, y)
        }

        fn apply_dots(&self, ops: &Device, product: Product<'_, Device>) -> Result<()> {
            self.block.borrow().apply_dots(ops, product)
        }

        fn multiply(
            &self,
            ops: &Device,
            v: &mut [DeviceVec<f64>],
            of: [usize; 2],
            arriving: Option<Arriving<'_, DeviceVec<f64>>>,
            dots: &mut DeviceSum<f64>,
        ) -> Result<()> {
            self.block.borrow().multiply(ops, v, of, arriving, dots)
        }

        fn pack_halo(&self, ops: &Device, y: &DeviceVec<f64>, is_summed: bool) -> Result<()> {
            self.block.borrow().pack_halo(ops, y, is_summed)
        }

        fn fill_halo(&self, ops: &Device, x: &mut DeviceVec<f64>) -> Result<()> {
            self.block.borrow().fill_halo(ops, x)
        }

        fn residual(
            &self,
            ops: &Device,
            b: &DeviceVec<f64>,
            x: &mut DeviceVec<f64>,
            r: &mut DeviceVec<f64>,
        ) -> Result<()> {
            self.block.borrow().residual(ops, b, x, r)
        }

        fn cg_run(&self, ops: &Device, run: CgRun<'_, Device>) -> Result<Option<u64>> {
            let iteration = run.iteration;
            if iteration >= self.iteration && !self.was_spoilt.replace(true) {
                self.block.borrow_mut().refuse_runs(&ops.ctx)?;
            }
            let next = self.block.borrow().cg_run(ops, run)?;
            let taken_back = next.map_or(0, |next| iteration.saturating_sub(next));
            self.taken_back.set(self.taken_back.get().max(taken_back));
            Ok(next)
        }

        fn halo(&self) -> usize {
            0
        }

        fn bytes(&self) -> u64 {
            LinearOperator::<Device>::bytes(&*self.block.borrow())
        }
    }

    struct Solved {
        verdict: Verdict,
        x: Vec<f64>,
        iterations: u64,
        history: Vec<f64>,
        taken_back: u64,
    }

    /// One run of the method, in which no launch of several iterations is made from `refused_from` on.
    fn solve(a: &Csr, b: &[f64], target: f64, max_iters: u64, refused_from: u64) -> Solved {
        let device = list().devices.into_iter().next().expect("the tests need an OpenCL device");
        let ctx = Arc::new(Context::open(&device).unwrap());
        let kernels = Kernels::build(&ctx, Tuning::uniform(64, 512, 8 * device.compute_units as usize)).unwrap();
        let n = a.n_rows();
        let ops = Device::new(ctx.clone(), kernels, n, Box::new(Alone::default()), false).unwrap();
        let part = split(a, std::slice::from_ref(&(0..n))).remove(0);
        let mut block = DeviceBlock::upload(&ctx, &ops.kernels.tuning, &part, 1.0, Format::Stencil).unwrap();
        block.prepare_runs(&ops);
        let a = RefusedFrom {
            block: RefCell::new(block),
            iteration: refused_from,
            was_spoilt: Cell::default(),
            taken_back: Cell::default(),
        };
        let (mut iterate, mut w) = (Plain::new(&ops).unwrap(), Workspace::new(&ops, &a, Method::Cg, false).unwrap());
        iterate.write(&ops, &mut w, b, &vec![0.0; n]).unwrap();
        let stop = Stop { max_iters: Some(max_iters), ..Stop::default() };
        let norm = b.iter().map(|b| b * b).sum::<f64>().sqrt();
        let (control, begun) = (Control::default(), (0, Instant::now()));
        let mut monitor = Monitor::new(n, target, norm, Precision::F64, &stop, control, begun);
        let verdict = cg(&ops, &a, &mut iterate, None, &mut w, &mut monitor).unwrap();
        ops.end_run(monitor.run_iterations()).unwrap();
        let mut x = vec![0.0; n];
        ops.read(&w.x, &mut x).unwrap();
        let seen = monitor.into_seen();
        Solved { verdict, x, iterations: seen.iterations, history: seen.history, taken_back: a.taken_back.get() }
    }

    fn residual(a: &Csr, x: &[f64], b: &[f64]) -> f64 {
        a.mul_vec(x).iter().zip(b).map(|(y, b)| (b - y) * (b - y)).sum::<f64>().sqrt()
    }

    /// So few rows are one group's, which no device refuses by itself: whenever a launch is refused, the iteration goes on from where it was, as if nothing had happened.
    #[test]
    fn refused_launches_lose_nothing() {
        let a = gallery::poisson2d([25, 20]).unwrap();
        let b: Vec<f64> = (0..500).map(|i| (i * 31 % 97) as f64 - 40.0).collect();
        let target = 1e-7;
        let alone = solve(&a, &b, target, 1000, 1);
        assert_eq!((alone.verdict, alone.taken_back > 0), (Verdict::Presumed, true));
        assert!(alone.iterations > 60, "{}", alone.iterations);
        let mut taken_back = 0;
        // also where the launches are refused that come behind the end
        let behind = [1, 2, 3, 8].map(|more| alone.iterations + more);
        for refused_from in [2, 3, 4, 6, 7, 11, 30, 50, u64::MAX].into_iter().chain(behind) {
            let solved = solve(&a, &b, target, 1000, refused_from);
            assert_eq!(solved.verdict, Verdict::Presumed, "from {refused_from}");
            assert!(solved.iterations.abs_diff(alone.iterations) <= 1, "from {refused_from}: {}", solved.iterations);
            assert_eq!(solved.history.len() as u64, solved.iterations + 1);
            assert!(residual(&a, &solved.x, &b) <= 1.01 * target, "from {refused_from}");
            // the same residuals, but for rounding
            let pairs = || solved.history.iter().zip(&alone.history).take(50);
            assert!(pairs().all(|(here, there)| (here - there).abs() <= 1e-6 * there), "from {refused_from}");
            assert_eq!(solved.taken_back > 0, refused_from < solved.iterations, "from {refused_from}");
            taken_back = taken_back.max(solved.taken_back);
        }
        assert!(taken_back > 2, "{taken_back}");
    }

    /// x after so many steps from x = 0 and r = p = b, as it is read before it is complete, and then.
    fn steps<O: Ops<Real = f64>>(
        ops: &O,
        a: &impl LinearOperator<O>,
        b: &[f64],
        count: u64,
        least_beta: f64,
    ) -> [Vec<f64>; 2] {
        let mut w = Workspace::new(ops, a, Method::Cg, false).unwrap();
        ops.begin().unwrap();
        ops.write(b, &mut w.r).unwrap();
        ops.write(b, &mut w.p).unwrap();
        ops.dot_product(&w.r, &w.r, &mut w.rho, 0).unwrap();
        ops.dot_product(&w.r, &w.r, &mut w.rho, 1).unwrap();
        ops.settle(&mut w.rho).unwrap();
        for iteration in 1..=count {
            let Workspace { dots, rho, x, r, p, q, rho_next, .. } = &mut w;
            ops.begin_iteration(iteration).unwrap();
            a.apply_dots(ops, Product { step: None, x: p, y: q, dots }).unwrap();
            ops.all_sum(&mut [dots, rho]).unwrap();
            let step = CgStep { dots, rho, weights: None, x, r, p, q, rho_next, limit: 0.0, iteration, least_beta };
            ops.cg_step(step).unwrap();
            std::mem::swap(&mut w.rho, &mut w.rho_next);
        }
        let [mut early, mut late] = [vec![0.0; b.len()], vec![0.0; b.len()]];
        ops.read_iterate(&w.x, &w.r, &w.p, &mut early).unwrap();
        ops.complete_iterate(&mut w.x, &w.r, &w.p).unwrap();
        ops.read(&w.x, &mut late).unwrap();
        [early, late]
    }

    /// An iterate is what it would be if nothing were put off; who reads it early gets the same bits.
    #[test]
    fn iterates_are_complete_for_all_who_look() {
        let a = Arc::new(gallery::poisson2d([120, 100]).unwrap());
        let (n, b) = (a.n_rows(), random_vector(a.n_rows(), 3));
        let device = list().devices.into_iter().next().expect("the tests need an OpenCL device");
        let ctx = Arc::new(Context::open(&device).unwrap());
        let kernels = Kernels::build(&ctx, Tuning::uniform(64, 512, 3)).unwrap();
        let device = Device::new(ctx.clone(), kernels, n, Box::new(Alone::default()), false).unwrap();
        let part = || split(&a, std::slice::from_ref(&(0..n))).remove(0);
        let block = DeviceBlock::upload(&ctx, &device.kernels.tuning, &part(), 1.0, Format::Csr).unwrap();
        let host = HostOps::<f64>::new(n, Box::new(Alone::default()));
        let rows = HostBlock::new(&a, part(), 1.0, Format::Csr).unwrap();
        for count in 0..12 {
            let on = |least| [steps(&device, &block, &b, count, least), steps(&host, &rows, &b, count, least)];
            let (usual, put_off) = (on(f64::INFINITY), on(LEAST_BETA));
            for ([expected, _], [early, late]) in usual.iter().zip(&put_off) {
                assert_eq!(early, late, "after {count}");
                let error = late.iter().zip(expected).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
                assert!(error < 1e-13 && (count < 2 || late != expected), "after {count}: {error}");
            }
        }
    }

    #[test]
    fn no_iteration_too_many() {
        let a = gallery::poisson2d([25, 20]).unwrap();
        let b = vec![1.0; 500];
        for max_iters in [1, 2, 3, 4, 10, 33] {
            let (several, single) = (solve(&a, &b, 1e-12, max_iters, u64::MAX), solve(&a, &b, 1e-12, max_iters, 1));
            for solved in [&several, &single] {
                assert_eq!(solved.verdict, Verdict::Ended(Reason::MaxIters));
                assert_eq!((solved.iterations, solved.history.len() as u64), (max_iters, max_iters + 1));
            }
            let [here, there] = [&several, &single].map(|solved| residual(&a, &solved.x, &b));
            assert!((here - there).abs() <= 1e-9 * there, "{max_iters}: {here}, {there}");
        }
    }
}
