//! Ranks that are threads of one process.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::gate::Gate;
use super::live::relaying::{Crew, Member, Relaying};
use super::{Communicator, Failure, MAX_SUMS, Message, NewMemory};
use crate::error::{Error, Result};
use crate::partition::Receiver;

/// The communicator of one of several threads.
pub struct Threads<T> {
    rank: usize,
    shared: Arc<Shared<T>>,
    sums: Cell<u64>,
    posts: Cell<u64>,
    request: Cell<u32>,
    agreed: Cell<u32>,
}

struct Shared<T> {
    failure: Arc<Failure>,
    /// For odd and even sums, a line for each rank: a rank that is one sum ahead leaves the former values alone, and it
    /// can't be two ahead of one that hasn't read them.
    lines: [Vec<Line>; 2],
    arrivals: Gate,
    mailboxes: Vec<Mailbox<T>>,
    /// What ranks bring to be relayed, and who does it.
    relaying: Mutex<Brought>,
}

/// What ranks bring to be relayed, and who relays it.
struct Brought {
    members: Vec<Option<Member>>,
    relaying: Option<Arc<Relaying>>,
    /// Its threads, from run to run.
    crew: Crew,
}

/// A rank's contribution to a sum, on a cache line of its own: values, then the stop request.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Line(pub(super) [AtomicU64; MAX_SUMS + 1]);

/// Where a rank's last message is, and how many ranks read it.
struct Mailbox<T> {
    message: Mutex<Option<Message<T>>>,
    receivers: u64,
    posted: Gate,
    read: Gate,
}

impl<T: Send + Sync + 'static> Threads<T> {
    /// The communicators of ranks whose messages so many ranks read.
    #[must_use]
    pub fn new(receivers: &[usize], failure: &Arc<Failure>) -> Vec<Self> {
        let size = receivers.len();
        let lines = || (0..size).map(|_| Line::default()).collect();
        let mailbox = |&receivers: &usize| Mailbox {
            message: Mutex::default(),
            receivers: receivers as u64,
            posted: Gate::new(size),
            read: Gate::new(size),
        };
        let shared = Arc::new(Shared {
            failure: Arc::clone(failure),
            lines: [lines(), lines()],
            arrivals: Gate::new(size),
            mailboxes: receivers.iter().map(mailbox).collect(),
            relaying: Mutex::new(Brought { members: vec![None; size], relaying: None, crew: Crew::default() }),
        });
        let rank = |rank| Self {
            rank,
            shared: Arc::clone(&shared),
            sums: Cell::new(0),
            posts: Cell::new(0),
            request: Cell::new(0),
            agreed: Cell::new(0),
        };
        (0..size).map(rank).collect()
    }
}

impl<T> Threads<T> {
    /// Shows this rank's values and its request to all.
    pub(super) fn tell(&self, values: &[f64]) {
        assert!(values.len() <= MAX_SUMS, "{} values in one sum", values.len());
        let own = &self.shared.lines[self.sums.get() as usize % 2][self.rank].0;
        for (slot, value) in own.iter().zip(values) {
            slot.store(value.to_bits(), Ordering::Relaxed);
        }
        own[MAX_SUMS].store(self.request.get().into(), Ordering::Relaxed);
        self.sums.set(self.sums.get() + 1);
        self.shared.arrivals.advance();
    }

    /// Starts a round of messages with this rank's, which others see as a whole, once all have fetched its former one.
    ///
    /// # Errors
    /// A failed rank.
    pub fn post(&self, message: Message<T>) -> Result<()> {
        let mailbox = &self.shared.mailboxes[self.rank];
        let posts = self.posts.get();
        self.posts.set(posts + 1);
        if mailbox.receivers > 0 {
            mailbox.read.wait(posts * mailbox.receivers, &self.shared.failure)?;
            *mailbox.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
            mailbox.posted.advance();
        }
        Ok(())
    }

    /// Waits for the message of rank `from` in this round.
    ///
    /// # Errors
    /// A failed rank.
    pub fn fetch(&self, from: usize) -> Result<Message<T>> {
        let mailbox = &self.shared.mailboxes[from];
        mailbox.posted.wait(self.posts.get(), &self.shared.failure)?;
        let message = mailbox.message.lock().unwrap_or_else(PoisonError::into_inner).clone();
        mailbox.read.advance();
        message.ok_or(Error::PeerFailed)
    }

    /// Waits for what all ranks tell.
    pub(super) fn told(&self) -> Result<&[Line]> {
        let sums = self.sums.get();
        self.shared.arrivals.wait(sums * self.shared.mailboxes.len() as u64, &self.shared.failure)?;
        Ok(&self.shared.lines[(sums as usize + 1) % 2]) // those of the start, which has counted
    }
}

impl Line {
    fn value(&self, k: usize) -> f64 {
        f64::from_bits(self.0[k].load(Ordering::Relaxed))
    }
}

impl<T: Send + Sync + 'static> Communicator<T> for Threads<T> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.mailboxes.len()
    }

    fn sum(&self, values: &mut [f64]) -> Result<()> {
        self.tell(values);
        let lines = self.told()?;
        for (k, value) in values.iter_mut().enumerate() {
            *value = lines.iter().map(|line| line.value(k)).sum();
        }
        let request = lines.iter().map(|line| line.0[MAX_SUMS].load(Ordering::Relaxed)).max();
        self.agreed.set(request.unwrap_or(0) as u32);
        Ok(())
    }

    fn gather(&self, value: f64) -> Result<Vec<f64>> {
        self.tell(&[value]);
        Ok(self.told()?.iter().map(|line| line.value(0)).collect())
    }

    fn post(&self, message: Message<T>, _: &[Receiver]) -> Result<()> {
        Self::post(self, message)
    }

    fn fetch(&self, from: usize, segment: &Range<usize>, _: NewMemory<'_, T>) -> Result<(Message<T>, Range<usize>)> {
        Ok((Self::fetch(self, from)?, segment.clone()))
    }

    fn relay(&self, member: Member) -> Result<Option<Arc<Relaying>>> {
        let relaying = || self.shared.relaying.lock().unwrap_or_else(PoisonError::into_inner);
        relaying().members[self.rank] = Some(member);
        self.gather(0.0)?; // all have brought theirs
        if self.rank == 0 {
            let Brought { members, relaying, crew } = &mut *relaying();
            let all: Option<Vec<Member>> = members.drain(..).collect();
            *members = vec![None; self.size()];
            *relaying = all.and_then(|members| Relaying::among(&members, crew)).map(Arc::new);
        }
        self.gather(0.0)?; // it is decided
        let relayed = relaying().relaying.clone();
        self.gather(0.0)?; // all have taken it
        if self.rank == 0 {
            relaying().relaying = None;
        }
        Ok(relayed)
    }

    fn check(&self) -> Result<()> {
        self.shared.failure.check()
    }

    fn request_stop(&self, request: u32) {
        self.request.set(request);
    }

    fn stop_request(&self) -> u32 {
        self.agreed.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(size: usize, receivers: usize) -> (Arc<Failure>, Vec<Threads<f64>>) {
        let failure = Arc::new(Failure::default());
        let comms = Threads::new(&vec![receivers; size], &failure);
        (failure, comms)
    }

    fn run<R: Send>(comms: Vec<Threads<f64>>, body: impl Fn(Threads<f64>) -> R + Sync) -> Vec<R> {
        std::thread::scope(|s| {
            let handles: Vec<_> = comms.into_iter().map(|c| s.spawn(|| body(c))).collect();
            handles.into_iter().map(|h| h.join().unwrap()).collect()
        })
    }

    /// The first element of a neighbour's message.
    fn fetched(comm: &Threads<f64>, from: usize) -> f64 {
        match comm.fetch(from).unwrap() {
            Message::Host(elements) => elements[0],
            Message::Device(_) => unreachable!("nobody posts such"),
        }
    }

    #[test]
    fn sums_are_the_same_bits_everywhere() {
        for size in [1, 2, 3, 5] {
            let results = run(ranks(size, 0).1, |c| {
                let mut last = 0.0;
                for round in 0..200 {
                    let mut v = [0.1 * (c.rank() + round) as f64, 1.0];
                    c.sum(&mut v).unwrap();
                    assert_eq!(v[1], size as f64);
                    last = v[0];
                }
                last
            });
            let expected: f64 = (0..size).map(|r| 0.1 * (r + 199) as f64).sum();
            assert!(results.iter().all(|v| v.to_bits() == expected.to_bits()));
        }
    }

    #[test]
    fn values_are_gathered_between_sums() {
        run(ranks(3, 0).1, |c| {
            for round in 0..100 {
                let mine = (10 * round + c.rank()) as f64;
                let all: Vec<f64> = (0..3).map(|rank| (10 * round + rank) as f64).collect();
                assert_eq!(c.gather(mine).unwrap(), all);
                let mut sum = [mine];
                c.sum(&mut sum).unwrap();
                assert_eq!(sum[0], all.iter().sum::<f64>());
            }
        });
    }

    #[test]
    fn messages_arrive_in_their_round() {
        let size = 3; // each rank reads both others
        run(ranks(size, size - 1).1, |c| {
            for round in 0..200 {
                c.post(Message::Host(Arc::new(vec![(10 * round + c.rank()) as f64]))).unwrap();
                for from in (0..size).filter(|&r| r != c.rank()) {
                    assert_eq!(fetched(&c, from), (10 * round + from) as f64);
                }
                let mut sums = [(10 * round + c.rank()) as f64, 1.0];
                c.sum(&mut sums).unwrap();
                assert_eq!(sums, [(30 * round + 3) as f64, 3.0]);
            }
        });
    }

    #[test]
    fn a_stop_request_reaches_all_in_the_same_sum() {
        let stops = run(ranks(3, 0).1, |c| {
            (0..20)
                .find(|&round| {
                    if c.rank() == 1 && round == 7 {
                        c.request_stop(2);
                    }
                    c.sum(&mut [0.0]).unwrap();
                    c.stop_request() == 2
                })
                .unwrap()
        });
        assert_eq!(stops, [7, 7, 7]);
    }

    #[test]
    fn a_failing_rank_frees_the_waiting_ones() {
        let (failure, comms) = ranks(3, 0);
        let failed = run(comms, |c| {
            if c.rank() == 2 {
                failure.report(2, Error::Usage("lost".into()));
                return true;
            }
            matches!(c.sum(&mut [1.0]), Err(Error::PeerFailed))
        });
        assert_eq!(failed, [true; 3]);
        assert!(matches!(failure.take().0[..], [(Some(2), Error::Usage(_))]));
    }
}
