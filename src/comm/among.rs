//! Ranks of several processes: threads, some in each.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use super::processes::Bytes;
use super::threads::Line;
use super::{Communicator, MAX_SUMS, Message, NewMemory, Processes, Threads, WritableMemory};
use crate::error::{Error, Result};
use crate::partition::Receiver;

/// The first stream of messages between ranks, and how many there are of each kind.
const FIRST: u32 = 16;
const OF_KIND: u32 = 1 << 14;

/// The most ranks of a process, so that each pair has a stream of its own.
pub(crate) const MOST_RANKS: usize = 64;

/// The processes, and which ranks they have.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) processes: Arc<dyn Processes>,
    /// The first rank of each process, and their number at the end.
    pub(crate) first: Arc<[usize]>,
}

impl Group {
    /// Where each process has so many ranks.
    ///
    /// # Errors
    /// [`Error::Usage`] for more than [`MOST_RANKS`] of a process.
    pub(crate) fn new(processes: Arc<dyn Processes>, ranks: &[usize]) -> Result<Self> {
        if let Some(process) = ranks.iter().position(|ranks| *ranks > MOST_RANKS) {
            return Err(Error::Usage(format!(
                "process {process} has {} ranks; {MOST_RANKS} are possible: use more processes",
                ranks[process]
            )));
        }
        let mut first = vec![0];
        first.extend(ranks.iter().scan(0, |before, ranks| {
            *before += ranks;
            Some(*before)
        }));
        Ok(Self { processes, first: first.into() })
    }

    /// The process of a rank, and its number there.
    pub(crate) fn place(&self, rank: usize) -> (usize, usize) {
        let process = self.first.partition_point(|first| *first <= rank) - 1;
        (process, rank - self.first[process])
    }

    /// The ranks of a process.
    pub(crate) fn ranks(&self, process: usize) -> Range<usize> {
        self.first[process]..self.first[process + 1]
    }

    /// This process's ranks.
    pub(crate) fn own(&self) -> Range<usize> {
        self.ranks(self.processes.process())
    }

    /// Ranks of all processes.
    pub(crate) fn size(&self) -> usize {
        self.first.last().copied().unwrap_or(0)
    }

    /// The most ranks that a process has.
    fn most(&self) -> usize {
        self.first.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }
}

/// The communicator of a rank among those of several processes.
pub(crate) struct Among<T> {
    /// This process's, in their own numbers.
    local: Threads<T>,
    group: Group,
    kind: u32,
    /// What all ranks told last, a line for each place in each process.
    told: Arc<Mutex<Vec<u64>>>,
    agreed: Cell<u32>,
    /// Memory of former messages, which serves again once nobody has it.
    received: RefCell<Vec<Arc<dyn WritableMemory<T>>>>,
}

impl<T: Send + Sync + 'static> Among<T> {
    /// Those of this process's ranks, of which `local` connects each with the others; messages of another `kind` have other ways.
    pub(crate) fn new(local: Vec<Threads<T>>, group: &Group, kind: u32) -> Vec<Self> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let one = |local| {
            let (told, received) = (Arc::clone(&told), RefCell::default());
            Self { local, group: group.clone(), kind, told, agreed: Cell::default(), received }
        };
        local.into_iter().map(one).collect()
    }

    /// What all ranks tell, so many words each with the request to stop behind them, in the order of the ranks.
    fn all(&self, values: &[f64]) -> Result<Vec<u64>> {
        self.local.tell(values);
        let (group, words) = (&self.group, values.len() + 1);
        let (most, lines) = (group.most(), self.local.told()?);
        let told = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if Communicator::rank(&self.local) == 0 {
            let mut own = vec![0; most * words];
            for (to, line) in own.chunks_exact_mut(words).zip(lines) {
                to[..values.len()].iter_mut().enumerate().for_each(|(k, to)| *to = line.word(k));
                to[values.len()] = line.word(MAX_SUMS);
            }
            let mut all = vec![0; own.len() * group.processes.count()];
            group.processes.gather(&own, &mut all)?;
            *told() = all;
        }
        if lines.len() > 1 {
            self.local.gather(0.0)?; // it is told
        }
        let of_process = |(process, lines): (usize, &[u64])| {
            lines[..(group.first[process + 1] - group.first[process]) * words].to_vec()
        };
        Ok(told().chunks_exact((most * words).max(1)).enumerate().flat_map(of_process).collect())
    }

    /// The way from a rank to another one.
    fn stream(&self, from: usize, to: usize) -> u32 {
        FIRST + self.kind * OF_KIND + (from * MOST_RANKS + to) as u32
    }
}

impl<T: Pod + Send + Sync> Communicator<T> for Among<T> {
    fn rank(&self) -> usize {
        self.group.own().start + Communicator::rank(&self.local)
    }

    fn size(&self) -> usize {
        self.group.size()
    }

    fn is_first_of_process(&self) -> bool {
        Communicator::rank(&self.local) == 0
    }

    fn sum(&self, values: &mut [f64]) -> Result<()> {
        let (all, words) = (self.all(values)?, values.len() + 1);
        for (k, value) in values.iter_mut().enumerate() {
            *value = all.chunks_exact(words).map(|line| f64::from_bits(line[k])).sum();
        }
        let request = all.chunks_exact(words).map(|line| line[words - 1]).max();
        self.agreed.set(request.unwrap_or(0) as u32);
        Ok(())
    }

    fn gather(&self, value: f64) -> Result<Vec<f64>> {
        Ok(self.all(&[value])?.chunks_exact(2).map(|line| f64::from_bits(line[0])).collect())
    }

    fn post(&self, message: Message<T>, receivers: &[Receiver]) -> Result<()> {
        let own = self.group.own();
        for Receiver { to, segment } in receivers.iter().filter(|one| !own.contains(&one.to) && !one.segment.is_empty())
        {
            let Message::Host(elements) = &message else { return Err(no_context()) };
            let (process, place) = self.group.place(*to);
            let stream = self.stream(Communicator::rank(&self.local), place);
            self.group.processes.send(process, stream, Bytes::of(Arc::clone(elements), segment.clone()))?;
        }
        self.local.post(message)
    }

    fn fetch(&self, from: usize, segment: &Range<usize>, new: NewMemory<'_, T>) -> Result<(Message<T>, Range<usize>)> {
        let (process, place) = self.group.place(from);
        if process == self.group.processes.process() {
            return Ok((self.local.fetch(place)?, segment.clone()));
        }
        let mut received = self.received.borrow_mut();
        let is_free =
            |memory: &mut Arc<dyn WritableMemory<T>>| memory.len() == segment.len() && Arc::get_mut(memory).is_some();
        let free = received.iter_mut().position(is_free);
        let mut memory = free.map_or_else(|| new(segment.len()), |k| Ok(received.swap_remove(k)))?;
        if let Some(elements) = Arc::get_mut(&mut memory).filter(|_| !segment.is_empty()) {
            let stream = self.stream(place, Communicator::rank(&self.local));
            self.group.processes.receive(process, stream, bytemuck::cast_slice_mut(elements))?;
        }
        received.push(Arc::clone(&memory));
        Ok((Message::Host(memory), 0..segment.len()))
    }

    fn check(&self) -> Result<()> {
        self.local.check()?;
        self.group.processes.check()
    }

    fn request_stop(&self, request: u32) {
        self.local.request_stop(request);
    }

    fn stop_request(&self) -> u32 {
        self.agreed.get()
    }
}

impl Line {
    fn word(&self, k: usize) -> u64 {
        self.0[k].load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Processes share no OpenCL context.
fn no_context() -> Error {
    Error::Usage("processes share no OpenCL context; use exchange = host-staged".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::Failure;
    use crate::comm::processes::simulated::processes;

    /// Processes with so many ranks each, which are threads; gives what each rank has, in order.
    fn run<R: Send>(ranks: &[usize], body: impl Fn(&Among<f64>) -> R + Sync) -> Vec<R> {
        let of_process = processes(ranks.len(), |all| {
            let count = ranks[all.process()];
            let group = Group::new(all, ranks).unwrap();
            let failure = Arc::new(Failure::default());
            // each receives from all others
            let local = Threads::new(&vec![count - 1; count], &failure);
            std::thread::scope(|scope| {
                let body = &body;
                let among = Among::new(local, &group, 0);
                let threads: Vec<_> = among.into_iter().map(|one| scope.spawn(move || body(&one))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            })
        });
        of_process.into_iter().flatten().collect()
    }

    #[test]
    fn sums_and_messages_of_unlike_processes() {
        for ranks in [vec![1], vec![1, 1], vec![2, 1], vec![1, 3, 2]] {
            let size: usize = ranks.iter().sum();
            let numbers = run(&ranks, |comm| {
                let own = comm.rank();
                for round in 0..20 {
                    let mut sums = [0.1 * (own + round) as f64, 1.0];
                    comm.sum(&mut sums).unwrap();
                    let expected: f64 = (0..size).map(|rank| 0.1 * (rank + round) as f64).sum();
                    assert_eq!(sums.map(f64::to_bits), [expected, size as f64].map(f64::to_bits));
                    let all: Vec<f64> = (0..size).map(|rank| (10 * rank + round) as f64).collect();
                    assert_eq!(comm.gather((10 * own + round) as f64).unwrap(), all);
                    // to each other rank its number, times 100, and mine
                    let others: Vec<usize> = (0..size).filter(|to| *to != own).collect();
                    let message: Vec<f64> = others.iter().flat_map(|to| [(100 * to) as f64, own as f64]).collect();
                    let part = |k: usize| 2 * k..2 * k + 2;
                    let receivers: Vec<Receiver> =
                        others.iter().enumerate().map(|(k, &to)| Receiver { to, segment: part(k) }).collect();
                    comm.post(Message::Host(Arc::new(message)), &receivers).unwrap();
                    for &from in &others {
                        let place = if own < from { own } else { own - 1 };
                        let (Message::Host(found), range) =
                            comm.fetch(from, &part(place), &|len| Ok(Arc::new(vec![0.0; len]))).unwrap()
                        else {
                            panic!()
                        };
                        assert_eq!(found[range], [(100 * own) as f64, from as f64]);
                    }
                }
                own
            });
            assert_eq!(numbers, (0..size).collect::<Vec<_>>());
        }
    }

    #[test]
    fn all_learn_of_a_request_in_the_same_sum() {
        let rounds = run(&[2, 1], |comm| {
            (0..20)
                .find(|round| {
                    if comm.rank() == 2 && *round == 7 {
                        comm.request_stop(2);
                    }
                    comm.sum(&mut []).unwrap();
                    comm.stop_request() == 2
                })
                .unwrap()
        });
        assert_eq!(rounds, [7; 3]);
    }
}
