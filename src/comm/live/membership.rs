//! A rank's part in what is relayed, from run to run; and what a thread of the host does for a rank that has no kernels which meet: the
//! same as these do (`cl/together.cl`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::halos::{Places, pieces};
use super::relaying::{Member, Relaying};
use super::{Lines, Values, get, put};
use crate::comm::Communicator;
use crate::error::{Error, Result};
use crate::partition::Receive;

/// How long a thread of the host waits for other ranks: about as long as kernels do.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it looks in vain before it lets other threads run.
const SPINS: u32 = 1000;

/// A rank's part.
pub(crate) struct Membership {
    member: Member,
    /// The pieces in which the halo arrives.
    pieces: Vec<Receive>,
    /// As long as a run is under way.
    relaying: Option<Arc<Relaying>>,
    /// The numbers of the next sum, and of the last exchange.
    next: [u32; 2],
}

impl Membership {
    /// Of a rank that has not yet begun a run.
    pub(crate) fn new(member: Member) -> Self {
        let pieces = pieces(&member.receive);
        Self { member, pieces, relaying: None, next: [1, 0] }
    }

    /// Begins a run, as all ranks do; whether there is somebody who relays. Nobody looks at the memory.
    ///
    /// # Errors
    /// A failed rank.
    pub(crate) fn begin<T>(&mut self, comm: &dyn Communicator<T>) -> Result<bool> {
        self.relaying = None;
        self.places().clear(&self.member.memory);
        self.next = [1, 0];
        self.relaying = comm.relay(self.member.clone())?;
        Ok(self.relaying.is_some())
    }

    /// Ends it.
    pub(crate) fn end(&mut self) {
        self.relaying = None;
    }

    /// Whether a run is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.relaying.is_some()
    }

    /// What the rank's memory has.
    pub(crate) fn places(&self) -> Places {
        self.member.places
    }

    /// The pieces in which the halo arrives.
    pub(crate) fn pieces(&self) -> &[Receive] {
        &self.pieces
    }

    /// The numbers of the next sum, and of the last exchange.
    pub(crate) fn next(&self) -> [u32; 2] {
        self.next
    }

    /// Counts sums, and exchanges of halos.
    pub(crate) fn met(&mut self, [sums, exchanges]: [u32; 2]) {
        let [sum, exchange] = &mut self.next;
        *sum = sum.wrapping_add(sums);
        *exchange = exchange.wrapping_add(exchanges);
    }

    /// That a rank did not come in time.
    pub(crate) fn lost(&self) -> Error {
        self.relaying.as_ref().map_or(Error::PeerFailed, |relaying| relaying.lost())
    }

    /// The totals of the next sum, of which these are the rank's values.
    ///
    /// # Errors
    /// A failed rank, or one that does not come in time.
    pub(crate) fn sum<T>(&mut self, comm: &dyn Communicator<T>, values: &[f64]) -> Result<Values> {
        let [number, _] = self.next;
        put(&self.member.memory, Lines::Values, number, values);
        let totals = self.wait(comm, || get(&self.member.memory, Lines::Totals, number))?;
        self.met([1, 0]);
        Ok(totals)
    }

    /// Puts what others need in the next exchange, in their order.
    pub(crate) fn send(&self, elements: impl Iterator<Item = u64>) {
        self.places().send(&self.member.memory, elements, self.next[1].wrapping_add(1));
    }

    /// Takes the halo of the next exchange: its elements, by their places.
    ///
    /// # Errors
    /// A failed rank, or one that does not come in time.
    pub(crate) fn take<T>(&mut self, comm: &dyn Communicator<T>, mut set: impl FnMut(usize, u64)) -> Result<()> {
        let (places, number) = (self.places(), self.next[1].wrapping_add(1));
        for (k, piece) in self.pieces.iter().enumerate() {
            let words = self.wait(comm, || places.take(&self.member.memory, &piece.halo, k, number))?;
            piece.halo.clone().zip(words).for_each(|(place, word)| set(place, word));
        }
        self.met([0, 1]);
        Ok(())
    }

    /// What is found, once it is there.
    fn wait<T, R>(&self, comm: &dyn Communicator<T>, mut find: impl FnMut() -> Option<R>) -> Result<R> {
        for _ in 0..SPINS {
            if let Some(found) = find() {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        let begun = Instant::now();
        loop {
            if let Some(found) = find() {
                return Ok(found);
            }
            comm.check()?;
            if begun.elapsed() > PATIENCE {
                return Err(self.lost());
            }
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::comm::{Failure, Threads};

    /// Two ranks that send each other an element.
    fn two(failure: &Arc<Failure>) -> [(Membership, Threads<f64>); 2] {
        let mut comms = Threads::new(&[1, 1], failure).into_iter();
        [0, 1].map(|rank| {
            let receive = vec![Receive { from: 1 - rank, segment: 0..1, halo: 0..1 }];
            let places = Places::new(1, &receive);
            let memory: Vec<AtomicU64> = (0..places.room()).map(|_| AtomicU64::new(0)).collect();
            let member =
                Member { memory: Arc::new(memory), places, receive, device: None, name: format!("rank {rank}") };
            (Membership::new(member), comms.next().unwrap())
        })
    }

    #[test]
    fn threads_meet_from_run_to_run() {
        std::thread::scope(|scope| {
            for (rank, (mut own, comm)) in two(&Arc::default()).into_iter().enumerate() {
                scope.spawn(move || {
                    for _run in 0..3 {
                        assert!(own.begin(&comm).unwrap());
                        for round in 0..100_u32 {
                            own.send([u64::from(round) + rank as u64].into_iter());
                            let totals = own.sum(&comm, &[rank as f64 + 1.0, f64::from(round)]).unwrap();
                            assert_eq!(totals[..], [3.0, 2.0 * f64::from(round)]);
                            let mut halo = Vec::new();
                            own.take(&comm, |place, word| halo.push((place, word))).unwrap();
                            assert_eq!(halo, [(0, u64::from(round) + (1 - rank) as u64)]);
                        }
                        assert_eq!(own.next(), [101, 100]);
                        own.end();
                        comm.gather(0.0).unwrap(); // nobody relays any more
                    }
                });
            }
        });
    }

    #[test]
    fn who_waits_for_a_failed_rank_leaves() {
        let failure = Arc::new(Failure::default());
        let [(mut first, comm), (mut second, other)] = two(&failure);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                first.begin(&comm).unwrap();
                let start = Instant::now();
                (first.sum(&comm, &[1.0]).map(|_| ()), start.elapsed())
            });
            assert!(second.begin(&other).unwrap());
            std::thread::sleep(Duration::from_millis(20));
            failure.report(1, Error::Usage("lost".into()));
            let (result, time) = waiting.join().unwrap();
            assert!(matches!(result, Err(Error::PeerFailed)) && time < PATIENCE, "{result:?}, {time:?}");
        });
    }
}
