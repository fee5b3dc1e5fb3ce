//! Snapshots of the iterate while the ranks go on: for checkpoints, and to go on from after a failure.
//!
//! Rank 0 asks for it when it is time, as it asks for an end ([`Communicator::request_stop`]), so that all ranks copy
//! their parts of the same iterate. They only read it: the iteration goes on with the same numbers. What is to be done with
//! it is another thread's work, and none is asked for before that has come to its end.
//!
//! [`Communicator::request_stop`]: crate::comm::Communicator::request_stop

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use rayon::prelude::*;

use crate::comm::Processes;
use crate::error::{Error, Result};

/// Where an iteration is: all that any ranks need to go on from there. In the order and the scale of the ranks.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    /// The iterate.
    pub(crate) x: Vec<f64>,
    /// The direction to go on in, if there is one.
    pub(crate) p: Option<Vec<f64>>,
}

impl Position {
    /// Begins at `x`.
    pub(crate) fn at(x: Vec<f64>) -> Self {
        Self { x, p: None }
    }
}

/// An iterate of all ranks, in their order and scale.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Snapshot {
    /// The iterate.
    pub(crate) x: Vec<f64>,
    /// The direction of the next step, if it was asked for.
    pub(crate) p: Option<Vec<f64>>,
    /// Iterations in all.
    pub(crate) iterations: u64,
    /// ‖r‖₂ / ‖b‖₂ by the recurrence.
    pub(crate) rel_residual_2: f64,
    /// The same after each iteration, from where the ranks began.
    pub(crate) history: Vec<f64>,
}

impl Snapshot {
    /// That from which ranks begin.
    pub(crate) fn first(Position { x, p }: &Position, iterations: u64, rel_residual_2: f64) -> Self {
        Self { x: x.clone(), p: p.clone(), iterations, rel_residual_2, history: Vec::new() }
    }
}

/// The last snapshots of a stretch, to go on from: a number of them, counted from that from which it began.
pub(crate) struct Kept {
    snapshots: VecDeque<Snapshot>,
    most: usize,
    /// The number of the last one.
    last: u64,
}

impl Kept {
    /// With the first one; so many at the most.
    pub(crate) fn new(first: Snapshot, most: usize) -> Self {
        Self { snapshots: [first].into(), most, last: 0 }
    }

    /// Keeps another one, and not the oldest any more.
    pub(crate) fn add(&mut self, snapshot: Snapshot) {
        if self.snapshots.len() == self.most {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back(snapshot);
        self.last += 1;
    }

    /// The last one.
    pub(crate) fn last(mut self) -> Option<Snapshot> {
        self.snapshots.pop_back()
    }

    /// The last one that all processes have, each its part, with finite elements. Ranks wait for each other, so that no process is ahead by more
    /// than one: two are enough. Collective.
    ///
    /// # Errors
    /// A failed process; [`Error::PeerFailed`] if there is none.
    pub(crate) fn last_of_all(mut self, processes: &dyn Processes) -> Result<Snapshot> {
        let first = self.last + 1 - self.snapshots.len() as u64;
        let is_finite = |snapshot: &Snapshot| snapshot.x.par_iter().all(|v| v.is_finite());
        // from 1, and 0 for none
        let finite =
            self.snapshots.iter().zip(first + 1..).map(|(one, number)| if is_finite(one) { number } else { 0 });
        let mut own: Vec<u64> = finite.collect();
        own.resize(self.most, 0);
        let mut all = vec![0; own.len() * processes.count()];
        processes.gather(&own, &mut all)?;
        let of_all = |number: &&u64| **number > 0 && all.chunks_exact(own.len()).all(|of| of.contains(*number));
        let number = own.iter().rev().find(of_all).ok_or(Error::PeerFailed)?;
        self.snapshots.remove((number - 1 - first) as usize).ok_or(Error::PeerFailed)
    }
}

/// Where the ranks of a stretch of iterations leave their parts of snapshots.
pub(crate) struct Snapshots {
    every: Duration,
    rows: Vec<Range<usize>>,
    /// The number of the first rank, where other processes have ranks before it.
    first_rank: usize,
    /// Whether snapshots have directions, too.
    pub(crate) has_directions: bool,
    is_idle: AtomicBool,
    reached: AtomicU64,
    gathering: Mutex<Gathering>,
}

/// Parts of one iterate, and to whom it goes.
struct Gathering {
    x: Vec<f64>,
    p: Option<Vec<f64>>,
    missing: usize,
    whole: Option<SyncSender<Snapshot>>,
}

/// Lets ranks run that have done so many iterations, and gives their snapshots to `take`, if there is where to leave them, in
/// a thread of its own. Tells also how many iterations rank 0 has seen.
pub(crate) fn beside<R>(
    snapshots: Option<Snapshots>,
    iterations: u64,
    take: impl FnMut(Snapshot) + Send,
    run: impl FnOnce(Option<&Snapshots>) -> R,
) -> (R, u64) {
    let Some(snapshots) = snapshots else { return (run(None), iterations) };
    // one is on its way at the most; where ranks take more, they wait here
    let (whole, gathered) = mpsc::sync_channel(1);
    snapshots.gathering().whole = Some(whole);
    let ended = std::thread::scope(|scope| {
        let (snapshots, mut take) = (&snapshots, take);
        let taking = Builder::new().spawn_scoped(scope, move || {
            for snapshot in gathered {
                take(snapshot);
                snapshots.take_next();
            }
        });
        if let Err(e) = taking {
            log::warn!("iterates are not saved: {e}");
        }
        let _ends_thread = Closing(snapshots);
        run(Some(snapshots))
    });
    (ended, snapshots.reached.into_inner())
}

/// No snapshot comes any more, whatever happens.
struct Closing<'a>(&'a Snapshots);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.gathering().whole = None;
    }
}

impl Snapshots {
    /// For ranks with these rows, which have done so many iterations: `every` so often, but never before whoever takes
    /// the iterates is done with the last one.
    pub(crate) fn new(every: Duration, rows: &[Range<usize>], has_directions: bool, iterations: u64) -> Self {
        Self {
            every,
            rows: rows.to_vec(),
            first_rank: 0,
            has_directions,
            is_idle: AtomicBool::new(true),
            reached: AtomicU64::new(iterations),
            gathering: Mutex::new(Gathering { x: Vec::new(), p: None, missing: 0, whole: None }),
        }
    }

    /// The same for the ranks of one of several processes, from this one on.
    pub(crate) fn behind_others(self, first_rank: usize) -> Self {
        Self { first_rank, ..self }
    }

    /// Whoever got the last iterate is done with it.
    fn take_next(&self) {
        self.is_idle.store(true, Ordering::Release);
    }

    /// Rank 0 has seen so many iterations.
    pub(crate) fn reach(&self, iterations: u64) {
        self.reached.store(iterations, Ordering::Relaxed);
    }

    /// Whether it is time, so long after the last time. If so, the answer is no until [`Snapshots::take_next`].
    pub(crate) fn is_due(&self, since: Duration) -> bool {
        since >= self.every && self.is_idle.swap(false, Ordering::Acquire)
    }

    fn gathering(&self) -> MutexGuard<'_, Gathering> {
        self.gathering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the parts of `rank`, which all ranks have of the same iterate and direction.
    pub(crate) fn put(
        &self,
        rank: usize,
        x: &[f64],
        p: Option<&[f64]>,
        (iterations, rel_residual_2, history): (u64, f64, &[f64]),
    ) {
        let gathering = &mut *self.gathering();
        if gathering.missing == 0 {
            let n = self.rows.last().map_or(0, |rows| rows.end);
            gathering.x = vec![0.0; n];
            gathering.p = self.has_directions.then(|| vec![0.0; n]);
            gathering.missing = self.rows.len();
        }
        let rows = self.rows[rank - self.first_rank].clone();
        gathering.x[rows.clone()].copy_from_slice(x);
        if let (Some(all), Some(p)) = (&mut gathering.p, p) {
            all[rows].copy_from_slice(p);
        }
        gathering.missing -= 1;
        if gathering.missing == 0 {
            let (x, p) = (std::mem::take(&mut gathering.x), gathering.p.take());
            let history = history.to_vec();
            if let Some(whole) = &gathering.whole {
                // whoever took them has panicked if there is none any more
                let _ = whole.send(Snapshot { x, p, iterations, rel_residual_2, history });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::comm::processes::simulated::processes;

    /// Two ranks leave their parts in turn; whoever takes them is slow.
    #[test]
    fn a_slow_taker_makes_them_rare_and_gets_whole_ones() {
        let snapshots = Snapshots::new(Duration::ZERO, &[0..2, 2..2, 2..5], true, 7);
        let reached = (7, 1e-3, [1.0].as_slice());
        let taken = Mutex::new(Vec::new());
        let is_slow = AtomicBool::new(true);
        let take = |snapshot: Snapshot| {
            while is_slow.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            taken.lock().unwrap().push(snapshot);
        };
        let ((), reached) = beside(Some(snapshots), 7, take, |snapshots| {
            let snapshots = snapshots.unwrap();
            let put = |v: f64| {
                for (rank, part) in [(2, vec![v; 3]), (0, vec![-v; 2]), (1, vec![])] {
                    snapshots.put(rank, &part, Some(&part), reached);
                }
            };
            assert!(snapshots.is_due(Duration::ZERO) && !snapshots.is_due(Duration::MAX));
            put(1.0);
            assert!(!snapshots.is_due(Duration::MAX), "the taker is at work");
            is_slow.store(false, Ordering::Relaxed);
            while !snapshots.is_due(Duration::ZERO) {
                std::thread::yield_now();
            }
            put(2.0);
            snapshots.put(0, &[9.0; 2], None, reached); // a part of one that comes to no end
            snapshots.reach(12);
        });
        let expected = |v: f64| [-v, -v, v, v, v].to_vec();
        let taken = taken.into_inner().unwrap();
        assert_eq!(taken.iter().map(|snapshot| snapshot.x.clone()).collect::<Vec<_>>(), [expected(1.0), expected(2.0)]);
        assert!(taken.iter().all(|snapshot| snapshot.p.as_ref() == Some(&snapshot.x) && snapshot.iterations == 7));
        assert_eq!(reached, 12);
    }

    /// Processes that have two of three snapshots each, or only the first; one has a part that is not finite.
    #[test]
    fn all_go_on_from_the_last_that_all_have() {
        let of = |iterations: u64, v: f64| Snapshot { iterations, ..Snapshot::first(&Position::at(vec![v]), 0, 1.0) };
        // how many each has taken, and on which process the last one has no number
        for (taken, without, expected) in [
            ([0, 0, 0], None, 10),
            ([1, 0, 1], None, 10),
            ([2, 2, 1], None, 11),
            ([2, 2, 2], None, 12),
            ([2, 2, 2], Some(1), 11),
        ] {
            let found = processes(3, |all| {
                let process = all.process();
                let mut kept = Kept::new(of(10, 0.0), 2);
                for k in 1..=taken[process] {
                    let is_last = k == taken[process] && without == Some(process);
                    kept.add(of(10 + k, if is_last { f64::NAN } else { k as f64 }));
                }
                let snapshot = kept.last_of_all(&*all).unwrap();
                (snapshot.iterations, snapshot.x[0])
            });
            assert_eq!(found, [(expected, expected as f64 - 10.0); 3], "{taken:?}");
        }
        let none = processes(2, |all| Kept::new(of(0, f64::INFINITY), 2).last_of_all(&*all).is_err());
        assert_eq!(none, [true; 2]);
    }

    #[test]
    fn not_before_it_is_time() {
        let snapshots = Snapshots::new(Duration::from_secs(5), &[0..1, 1..2], false, 0);
        assert!(!snapshots.is_due(Duration::from_secs(4)) && snapshots.is_due(Duration::from_secs(5)));
    }

    #[test]
    fn a_panic_beside_it_is_no_end_without_end() {
        let snapshots = Snapshots::new(Duration::ZERO, &[0..1, 1..2], false, 0);
        let run = || beside(Some(snapshots), 0, |_| {}, |_| panic!("a defect"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}
