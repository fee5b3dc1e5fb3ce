//! The threads of the host that relay sums and halos among running kernels.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use super::halos::{Link, Places};
use super::{Lines, Relay, get};
use crate::error::Error;
use crate::partition::Receive;

/// How often a thread looks in vain before it lets other threads run, and before it naps.
const SPINS: u32 = 20_000;
const MOST_IDLE: u32 = SPINS + 1_000;
/// How long it naps.
const NAP: Duration = Duration::from_micros(50);

/// Memory that a rank's device and the host see at once.
pub(crate) type Live = Arc<dyn Deref<Target = [AtomicU64]> + Send + Sync>;

/// What a rank brings to be relayed to and from.
#[derive(Clone)]
pub struct Member {
    pub(crate) memory: Live,
    pub(crate) places: Places,
    pub(crate) receive: Vec<Receive>,
    /// What no two ranks may have the same of: kernels of one GPU take turns, and would wait for each other in vain. None of processors.
    pub(crate) device: Option<usize>,
    /// How errors call it.
    pub(crate) name: String,
}

/// Threads that relay now and then. They wait in between, as making them takes longer than many a run; they end when this is dropped.
#[derive(Default)]
pub(crate) struct Crew(Vec<Sender<Job>>);

/// What a thread does.
type Job = Box<dyn FnOnce() + Send>;

impl Crew {
    /// Lets a thread that has nothing to do do this; `false` if there are no more threads. Jobs are given `number`s from 0 on, once all
    /// former ones are over.
    fn start(&mut self, number: usize, job: Job) -> bool {
        if number == self.0.len() {
            let (sender, jobs) = channel::<Job>();
            if Builder::new().name("relay".into()).spawn(move || jobs.into_iter().for_each(|job| job())).is_err() {
                return false;
            }
            self.0.push(sender);
        }
        self.0[number].send(job).is_ok()
    }

    /// The first thread does nothing for this long.
    #[cfg(test)]
    pub(crate) fn sleep(&mut self, time: Duration) {
        assert!(self.start(0, Box::new(move || std::thread::sleep(time))));
    }
}

/// What relays until this is dropped.
pub struct Relaying {
    stops: Arc<AtomicBool>,
    /// How many threads have not stopped.
    at_work: Arc<AtomicUsize>,
    memories: Vec<Live>,
    names: Vec<String>,
    /// The sum that is under way.
    number: Arc<AtomicU32>,
}

/// The most threads. On 32 processors eight made exchanges of 10,000 elements take half as long as three; more gained nothing.
const THREADS: usize = 8;

/// The same where a rank is of processors, which have its rows to work on: one for sums, one for halos.
const BESIDE_ROWS: usize = 2;

/// Elements of an exchange that a thread copies in a microsecond or two. More threads for fewer are more that the system may stop.
const SHARE: usize = 2048;

/// Looks for something to do; says whether there was anything.
type Task = Box<dyn FnMut(&[&[AtomicU64]]) -> bool + Send>;

impl Relaying {
    /// Among so many ranks; `None` if two are of one device, if there are not processors enough for them and a thread that never rests,
    /// or if there are no more threads.
    pub(crate) fn among(members: &[Member], crew: &mut Crew) -> Option<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let devices: Vec<usize> = members.iter().filter_map(|member| member.device).collect();
        let is_new = |k: usize| !devices[..k].contains(&devices[k]);
        if !(0..devices.len()).all(is_new) || !devices.is_empty() && processors <= members.len() + 1 {
            return None;
        }
        let copied: usize = members.iter().map(|member| member.places.halo).sum();
        let most = if devices.len() < members.len() { BESIDE_ROWS } else { THREADS };
        let useful = (1 + copied.div_ceil(SHARE)).min(most);
        Self::with_threads(members, crew, processors.saturating_sub(members.len()).clamp(1, useful))
    }

    /// The same, with at most so many threads, whoever they are.
    pub(crate) fn with_threads(members: &[Member], crew: &mut Crew, most: usize) -> Option<Self> {
        let memories: Vec<Live> = members.iter().map(|member| Arc::clone(&member.memory)).collect();
        let places: Vec<Places> = members.iter().map(|member| member.places).collect();
        let (stops, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(1)));
        let mut relay = Relay::new(members.len());
        let under_way = Arc::clone(&number);
        let mut tasks: Vec<Task> = vec![Box::new(move |memories| {
            let has_come = relay.look(memories);
            under_way.store(relay.missing().0, Ordering::Relaxed);
            has_come
        })];
        for (to, member) in members.iter().enumerate() {
            for mut link in Link::all(to, &member.receive, &places) {
                tasks.push(Box::new(move |memories| link.look(memories)));
            }
        }
        // sums have a thread of their own, if there is more than one
        let (count, rest) = (tasks.len().min(most), tasks.split_off(1));
        let mut shares = vec![tasks];
        shares.resize_with(count, Vec::new);
        let others = if count > 1 { 1..count } else { 0..1 };
        rest.into_iter().zip(others.cycle()).for_each(|(task, k)| shares[k].push(task));
        let names = members.iter().map(|member| member.name.clone()).collect();
        let at_work = Arc::new(AtomicUsize::new(0));
        let all = Self { stops, at_work, memories, names, number };
        for (k, share) in shares.into_iter().enumerate() {
            let (stops, at_work) = (Arc::clone(&all.stops), AtWork::new(&all.at_work));
            let memories = all.memories.clone();
            let job = move || {
                work(share, &memories, &stops);
                drop(memories);
                drop(at_work);
            };
            if !crew.start(k, Box::new(job)) {
                return None; // those that were started stop
            }
        }
        Some(all)
    }

    /// Its threads end, as if they were killed.
    #[cfg(test)]
    pub(crate) fn fail(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// That somebody waited in vain for a sum, or for a halo.
    pub(crate) fn lost(&self) -> Error {
        let (_, missing) = self.missing();
        let missing: Vec<&str> = missing.iter().map(|rank| self.names[*rank].as_str()).collect();
        let missing = if missing.is_empty() { "the relay".into() } else { missing.join(", ") };
        self.not_met(format!("in the next one {missing} did not come in time"))
    }

    /// That so many totals were wrong.
    pub(crate) fn wrong(&self, count: u32) -> Error {
        self.not_met(format!("{count} of their totals were wrong"))
    }

    fn not_met(&self, why: String) -> Error {
        let (number, _) = self.missing();
        Error::NotMet { ranks: self.names.join(", "), sums: number.wrapping_sub(1), why }
    }

    /// The sum that is under way, and the ranks that have not come to it.
    fn missing(&self) -> (u32, Vec<usize>) {
        let number = self.number.load(Ordering::Relaxed);
        let has_come = |memory: &Live| get(memory, Lines::Values, number).is_some();
        (number, (0..self.memories.len()).filter(|rank| !has_come(&self.memories[*rank])).collect())
    }
}

impl Drop for Relaying {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        while self.at_work.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    }
}

/// A thread that has not stopped.
struct AtWork(Arc<AtomicUsize>);

impl AtWork {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Does what there is to do until it is told to stop.
fn work(mut tasks: Vec<Task>, memories: &[Live], stops: &AtomicBool) {
    let words: Vec<&[AtomicU64]> = memories.iter().map(|memory| &***memory).collect();
    let mut idle = 0;
    while !stops.load(Ordering::Relaxed) {
        let mut has_worked = false;
        for task in &mut tasks {
            has_worked |= task(&words);
        }
        if has_worked {
            idle = 0;
            continue;
        }
        idle = (idle + 1).min(MOST_IDLE);
        match idle {
            ..SPINS => std::hint::spin_loop(),
            SPINS..MOST_IDLE => std::thread::yield_now(),
            _ => std::thread::sleep(NAP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::halos::tests::{send, take};
    use super::super::put;
    use super::*;

    fn member(rank: usize, ranks: usize, device: Option<usize>) -> Member {
        // in a ring, each sends two elements to the next one
        let receive = vec![Receive { from: (rank + ranks - 1) % ranks, segment: 0..2, halo: 0..2 }];
        let places = Places::new(2, &receive);
        let memory: Vec<AtomicU64> = (0..places.room()).map(|_| AtomicU64::new(0)).collect();
        Member { memory: Arc::new(memory), places, receive, device, name: format!("rank {rank}") }
    }

    #[test]
    fn two_ranks_of_one_gpu_are_not_relayed() {
        let of = |devices: [Option<usize>; 2]| {
            let members = [0, 1].map(|rank| member(rank, 2, devices[rank]));
            Relaying::among(&members, &mut Crew::default()).is_some()
        };
        assert!(of([None, None]));
        assert!(!of([Some(3), Some(3)]));
    }

    #[test]
    fn all_is_relayed_by_any_number_of_threads() {
        // the same threads, more of them, fewer
        let mut crew = Crew::default();
        for (ranks, threads) in [(1, 1), (2, 1), (3, 2), (5, 9), (2, 2)] {
            let members: Vec<Member> = (0..ranks).map(|rank| member(rank, ranks, None)).collect();
            let relaying = Relaying::with_threads(&members, &mut crew, threads).unwrap();
            assert_eq!(relaying.missing(), (1, (0..ranks).collect()));
            for number in 1..=200 {
                let elements = |rank: usize| [rank as u64 * 10, rank as u64 * 10 + u64::from(number)];
                for (rank, Member { memory, places, .. }) in members.iter().enumerate().rev() {
                    send(memory, *places, &elements(rank), number);
                    put(memory, Lines::Values, number, &[rank as f64]);
                }
                for (rank, Member { memory, places, receive, .. }) in members.iter().enumerate() {
                    let total = wait(|| get(memory, Lines::Totals, number));
                    assert_eq!(total[..], [(ranks * (ranks - 1) / 2) as f64]);
                    assert_eq!(wait(|| take(memory, *places, receive, number)), elements((rank + ranks - 1) % ranks));
                }
            }
        }
    }

    fn wait<R>(mut look: impl FnMut() -> Option<R>) -> R {
        loop {
            match look() {
                Some(seen) => return seen,
                None => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn who_does_not_come_is_named() {
        let members: Vec<Member> = (0..3).map(|rank| member(rank, 3, None)).collect();
        let relaying = Relaying::with_threads(&members, &mut Crew::default(), 1).unwrap();
        for number in 1..=4 {
            members.iter().for_each(|member| put(&member.memory, Lines::Values, number, &[1.0]));
            while get(&members[0].memory, Lines::Totals, number).is_none() {
                std::thread::yield_now();
            }
        }
        while relaying.missing().0 < 5 {
            std::thread::yield_now();
        }
        put(&members[1].memory, Lines::Values, 5, &[1.0]);
        assert_eq!(
            relaying.lost().to_string(),
            "rank 0, rank 1, rank 2 met in 4 sums; in the next one rank 0, rank 2 did not come in time"
        );
        assert_eq!(relaying.wrong(2).to_string(), "rank 0, rank 1, rank 2 met in 4 sums; 2 of their totals were wrong");
    }
}
