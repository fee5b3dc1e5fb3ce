//! How long ranks take to synchronise, by one model of exchange or the other: sums, halos of any size, and a solve stage by stage.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::backend::Backend;
use crate::backend::LinearOperator;
use crate::backend::host::HostBackend;
use crate::comm::{Failure, Links, in_threads};
use crate::device::{Choice, Context, Info, Pick, SharedContext};
use crate::error::Result;
use crate::matrix::{Csr, gallery};
use crate::operator::host::HostBlock;
use crate::partition::{Part, row_ranges, split};
use crate::real::Real;
use crate::runtime::loaded::load;
use crate::solve::{Control, Exchange, Method, Precision, Precond, Reorder, Setup, Solver, Stop, Tune};
use crate::timing::{Timing, timing};

/// Points of a grid along each axis, where next to nothing is to be computed.
const POINTS: usize = 64;
/// What is not timed, to warm up; and what tells how long one takes.
const WARM_UP: usize = 5;
/// How long one measurement should take, in seconds, and the least and the most that it repeats.
const TIME: f64 = 0.02;
const ROUNDS: [f64; 2] = [3.0, 2000.0];

/// Ranks, and how they exchange halos.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Synchronization {
    devices: Vec<Option<Info>>,
    setup: Setup,
    /// Measurements of each time.
    repeat: usize,
}

/// A sum over all ranks, in seconds: from numbers on each device, which a kernel adds up, to the sum on each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SumTime {
    /// Numbers that are summed at once.
    pub values: usize,
    /// The time that it takes.
    pub time: Timing,
}

/// An exchange of halos, in seconds: from elements on each device to the halos on all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HaloTime {
    /// Elements from each neighbour.
    pub elements: usize,
    /// Whether they are every other one, which a kernel packs, and not side by side.
    pub scattered: bool,
    /// The time that it takes.
    pub time: Timing,
}

/// The stages of a solve (as the thesis has them that compared multi-threaded copies with direct ones), in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stages {
    /// Checks of the matrix, its partition, the plan of halos, contexts and kernels.
    pub preparation: f64,
    /// The rows on their way to the devices: the slowest rank.
    pub input: f64,
    /// An exchange of the halo of the system; none of a rank alone.
    pub boundary: Option<Timing>,
    /// A product, its halo included.
    pub product: Timing,
    /// An iteration.
    pub iteration: Timing,
    /// All iterations of a run.
    pub solver: f64,
}

impl Synchronization {
    /// Ranks of these devices, `None` being the host, that synchronise by `exchange`; times are those of `repeat` measurements.
    #[must_use]
    pub fn new(devices: &[Option<Info>], exchange: Exchange, precision: Precision, tune: Tune, repeat: usize) -> Self {
        let pick = |device: &Option<Info>| device.as_ref().map_or(Pick::Host, |device| Pick::Index(device.index));
        let choice = Choice::List(devices.iter().map(pick).collect());
        let method = Method::Cg; // whatever the model, so that the stages compare
        let setup = Setup {
            method,
            precond: Precond::None,
            devices: choice,
            exchange,
            precision,
            tune,
            reorder: Reorder::None,
            ..Setup::default()
        };
        Self { devices: devices.to_vec(), setup, repeat }
    }

    /// Sums of so many numbers, 4 at most.
    ///
    /// # Errors
    /// Those of the devices.
    ///
    /// # Panics
    /// If there are more numbers.
    pub fn sums(&self, values: &[usize]) -> Result<Vec<SumTime>> {
        let a = Arc::new(gallery::poisson2d([POINTS, POINTS])?);
        let rows = row_ranges(&a, self.devices.len());
        let times =
            self.on_ranks(&a, &rows, &|rank| values.iter().map(|&count| rank.time(What::Sum(count))).collect())?;
        Ok(values.iter().zip(times).map(|(&values, time)| SumTime { values, time }).collect())
    }

    /// Halos with so many elements from each neighbour, of which ranks have one or two.
    ///
    /// # Errors
    /// Those of the devices.
    pub fn halos(&self, elements: usize, scattered: bool) -> Result<HaloTime> {
        let stride = if scattered { 2 } else { 1 };
        let a = Arc::new(coupled(self.devices.len(), elements, stride)?);
        let rows: Vec<_> =
            (0..self.devices.len()).map(|rank| stride * elements * rank..stride * elements * (rank + 1)).collect();
        let times = self.on_ranks(&a, &rows, &|rank| Ok(vec![rank.time(What::Halo)?]))?;
        Ok(HaloTime { elements, scattered, time: times[0] })
    }

    /// The stages of a solve with so many iterations of conjugate gradients.
    ///
    /// # Errors
    /// Those of [`Solver::new`] and of the devices.
    pub fn stages(&self, a: &Arc<Csr>, iterations: u64) -> Result<Stages> {
        // first what leaves compiled kernels behind
        let is_alone = self.devices.len() == 1;
        let of_rank = |rank: &mut dyn Rank| -> Result<Vec<Timing>> {
            let what: &[What] = if is_alone { &[What::Product] } else { &[What::Product, What::Halo] };
            what.iter().map(|&what| rank.time(what)).collect()
        };
        let products = self.on_ranks(a, &row_ranges(a, self.devices.len()), &of_rank)?;
        let mut solver = Solver::new(Arc::clone(a), &self.setup)?;
        let times = solver.times();
        let b = gallery::random_vector(a.n_rows(), 1);
        let mut run = |iterations| -> Result<[f64; 2]> {
            let stop = Stop { rtol: 0.0, max_iters: Some(iterations), ..Stop::default() };
            let outcome = solver.solve(&b, None, &stop, Control::default())?;
            let seconds = outcome.solve.as_secs_f64();
            Ok([seconds / outcome.iterations.max(1) as f64, seconds])
        };
        run(iterations.min(10))?;
        let runs = (0..self.repeat).map(|_| run(iterations)).collect::<Result<Vec<_>>>()?;
        let middle = |k: usize| timing(runs.iter().map(|run| run[k]).collect());
        Ok(Stages {
            preparation: times.prepare.as_secs_f64(),
            input: times.upload.as_secs_f64(),
            boundary: products.get(1).copied(),
            product: products[0],
            iteration: middle(0),
            solver: middle(1).median,
        })
    }

    /// Gives the rows of `a` to the ranks, and lets each take the same times; those of the first rank.
    fn on_ranks(
        &self,
        a: &Arc<Csr>,
        rows: &[Range<usize>],
        job: &(dyn Fn(&mut dyn Rank) -> Result<Vec<Timing>> + Sync),
    ) -> Result<Vec<Timing>> {
        let shared = match self.setup.exchange {
            Exchange::SharedContext if rows.len() > 1 => Some(SharedContext::among(&self.devices)?),
            _ => None,
        };
        let parts = split(a, rows);
        let receivers: Vec<usize> = parts.iter().map(|part| part.halo.receivers.len()).collect();
        let failure = Arc::new(Failure::default());
        let jobs: Vec<_> = self.devices.iter().zip(parts).zip(Links::new(&receivers, &failure)).collect();
        let times = in_threads(&failure, jobs, |((device, part), links)| {
            let mut rank = self.rank(device.as_ref(), shared.as_ref(), a, part, links)?;
            job(&mut *rank)
        })?;
        Ok(times.into_iter().next().unwrap_or_default())
    }

    fn rank(
        &self,
        device: Option<&Info>,
        shared: Option<&SharedContext>,
        a: &Arc<Csr>,
        part: Part<'_>,
        links: Links,
    ) -> Result<Box<dyn Rank>> {
        let is_double = self.setup.precision == Precision::F64;
        let Some(device) = device else {
            return if is_double { self.on_host::<f64>(a, part, links) } else { self.on_host::<f32>(a, part, links) };
        };
        let ctx = Arc::new(shared.map_or_else(|| Context::open(device), |shared| Context::open_in(device, shared))?);
        match (is_double, device.has_f64) {
            (true, _) => self.on_device::<f64, f64>(&ctx, &part, links),
            (false, true) => self.on_device::<f32, f64>(&ctx, &part, links),
            (false, false) => self.on_device::<f32, f32>(&ctx, &part, links),
        }
    }

    fn on_device<T: Real, A: Real>(&self, ctx: &Arc<Context>, part: &Part<'_>, links: Links) -> Result<Box<dyn Rank>> {
        let (backend, a) = load::<T, A>(ctx, part, &self.setup, T::link(links))?;
        Ok(Box::new(Loaded::new(backend, a, self.repeat)?))
    }

    fn on_host<T: Real>(&self, a: &Arc<Csr>, part: Part<'_>, links: Links) -> Result<Box<dyn Rank>> {
        let backend = HostBackend::<T>::new(part.n_owned(), T::link(links));
        Ok(Box::new(Loaded::new(backend, HostBlock::new(a, part, 1.0, self.setup.format)?, self.repeat)?))
    }
}

/// A matrix in which each of so many ranks needs `elements` of each neighbour's rows, every `stride`-th of them.
fn coupled(ranks: usize, elements: usize, stride: usize) -> Result<Csr> {
    let distance = stride * elements;
    let n = ranks * distance;
    let entries = |i: usize| {
        let is_tied = i.is_multiple_of(stride);
        let before = (is_tied && i >= distance).then(|| (i - distance, -1.0));
        let after = (is_tied && i + distance < n).then(|| (i + distance, -1.0));
        before.into_iter().chain([(i, 4.0)]).chain(after)
    };
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for (j, value) in entries(i) {
            col_idx.push(j as u32);
            values.push(value);
        }
        row_ptr.push(values.len());
    }
    Csr::new(n, n, row_ptr, col_idx, values)
}

/// What is timed.
#[derive(Debug, Clone, Copy)]
enum What {
    /// A sum of so many numbers over all ranks.
    Sum(usize),
    /// An exchange of halos, until they are there.
    Halo,
    /// A product, until it is there.
    Product,
}

/// A rank at work, whatever it runs on.
trait Rank {
    /// The time of one of `what`, which all ranks do together.
    fn time(&mut self, what: What) -> Result<Timing>;
}

/// The operations, the rows and two vectors of a rank.
struct Loaded<O: Backend, A> {
    backend: O,
    a: A,
    x: O::Vector,
    y: O::Vector,
    repeat: usize,
}

impl<O: Backend, A: LinearOperator<O>> Loaded<O, A> {
    fn new(backend: O, a: A, repeat: usize) -> Result<Self> {
        let [x, y] = [backend.vector(a.halo(), "x")?, backend.vector(a.halo(), "y")?];
        Ok(Self { backend, a, x, y, repeat })
    }

    /// Seconds of one of so many.
    fn rounds(&mut self, what: What, rounds: usize) -> Result<f64> {
        let Self { backend, a, x, y, .. } = self;
        backend.finish(0)?;
        backend.comm().sum(&mut [])?; // all ranks are there
        let start = Instant::now();
        for _ in 0..rounds {
            match what {
                What::Sum(values) => {
                    backend.dots(&vec![[&*x, &*y]; values])?;
                }
                What::Halo => {
                    a.fill_halo(backend, x)?;
                    backend.finish(0)?;
                }
                What::Product => {
                    a.apply(backend, x, y)?;
                    backend.finish(0)?;
                }
            }
        }
        backend.finish(0)?;
        Ok(start.elapsed().as_secs_f64() / rounds as f64)
    }
}

impl<O: Backend, A: LinearOperator<O>> Rank for Loaded<O, A> {
    fn time(&mut self, what: What) -> Result<Timing> {
        self.rounds(what, WARM_UP)?;
        let mut once = [self.rounds(what, WARM_UP)?];
        self.backend.comm().sum(&mut once)?;
        let ranks = self.backend.comm().size() as f64;
        // the same number on all ranks
        let rounds = (TIME * ranks / once[0]).clamp(ROUNDS[0], ROUNDS[1]) as usize;
        let times = (0..self.repeat).map(|_| self.rounds(what, rounds)).collect::<Result<_>>()?;
        Ok(timing(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    fn devices() -> Vec<Option<Info>> {
        let device = list().devices.into_iter().next();
        assert!(device.is_some(), "the tests need an OpenCL device");
        vec![device.clone(), device.clone(), device]
    }

    #[test]
    fn halos_are_as_large_as_they_are_said_to_be() {
        for (elements, stride) in [(1, 1), (5, 1), (1, 2), (7, 2)] {
            let a = coupled(3, elements, stride).unwrap();
            let rows: Vec<_> = (0..3).map(|k| stride * elements * k..stride * elements * (k + 1)).collect();
            let parts = split(&a, &rows);
            let halos: Vec<_> = parts.iter().map(|part| (part.halo.len, part.halo.send.len())).collect();
            assert_eq!(halos, [(elements, elements), (2 * elements, 2 * elements), (elements, elements)]);
            let gaps = parts[0].halo.send.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(gaps.into_iter().all(|gap| gap as usize == stride));
        }
    }

    #[test]
    fn all_that_ranks_do_together_is_timed() {
        let a = Arc::new(gallery::poisson3d([6, 6, 6]).unwrap());
        let is_some_time = |time: Timing| time.median > 0.0 && time.low <= time.median && time.median <= time.high;
        for &exchange in Exchange::ALL {
            for precision in [Precision::F64, Precision::F32] {
                let ranks = Synchronization::new(&devices(), exchange, precision, Tune::Off, 2);
                let sums = ranks.sums(&[1, 4]).unwrap();
                assert_eq!(sums.iter().map(|sum| sum.values).collect::<Vec<_>>(), [1, 4]);
                assert!(sums.iter().all(|sum| is_some_time(sum.time)));
                for scattered in [false, true] {
                    let halo = ranks.halos(100, scattered).unwrap();
                    assert!(halo.elements == 100 && halo.scattered == scattered && is_some_time(halo.time));
                }
                let stages = ranks.stages(&a, 3).unwrap();
                assert!(is_some_time(stages.product) && is_some_time(stages.iteration));
                assert!(stages.boundary.is_some_and(is_some_time) && stages.solver > stages.iteration.low);
            }
        }
    }

    #[test]
    fn ranks_of_the_host() {
        let mixed = [vec![None, None], [devices(), vec![None]].concat()];
        for devices in mixed {
            let ranks = Synchronization::new(&devices, Exchange::HostStaged, Precision::F64, Tune::Off, 1);
            assert!(ranks.sums(&[2]).is_ok() && ranks.halos(10, true).is_ok());
            let shared = Synchronization::new(&devices, Exchange::SharedContext, Precision::F64, Tune::Off, 1);
            assert!(shared.sums(&[2]).unwrap_err().to_string().contains("the host is none"));
        }
        let a = Arc::new(gallery::poisson2d([5, 5]).unwrap());
        let alone = Synchronization::new(&[None], Exchange::HostStaged, Precision::F64, Tune::Off, 1);
        assert_eq!(alone.stages(&a, 3).unwrap().boundary, None);
    }
}
