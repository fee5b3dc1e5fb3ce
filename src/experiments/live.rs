//! How soon running kernels and the host answer each other through live memory, and how long kernels on several devices take to add
//! up numbers while they run.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::exchange::SumTime;
use crate::comm::live::halos::Places;
use crate::comm::live::relaying::{Crew, Member, Relaying};
use crate::comm::live::{Lines, ROOM, get, put};
use crate::device::{Context, DeviceVec, Info, LiveMemory, Queue};
use crate::error::{Error, Result};
use crate::kernels::live::{LiveKernels, Sums, most_looks};
use crate::timing::{Timing, timing};

/// Answers of one launch.
const ANSWERS: u32 = 1000;
/// Sums of the first launch, which is not timed; and how long a launch that is timed should take.
const FIRST: u32 = 10;
const TIME: Duration = Duration::from_millis(50);
/// The most sums of a launch.
const MOST: u32 = 100_000;
/// How long the host waits for a kernel.
const PATIENCE: Duration = Duration::from_secs(2);

/// A device, and how soon a running kernel on it answers the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Answers {
    /// Its number and name.
    pub device: String,
    /// From the number that the host writes to the answer that it sees, in seconds; none if none came.
    pub time: Option<Timing>,
}

/// How soon a running kernel on `device` answers; the median of `repeat` launches.
///
/// # Errors
/// Those of the device. That it does not answer is none.
pub fn answers(device: &Info, repeat: usize) -> Result<Answers> {
    let ctx = Context::open(device)?;
    let (kernels, memory) = (LiveKernels::build(&ctx)?, LiveMemory::zeros(&ctx, ROOM)?);
    let mut times = Vec::new();
    for _ in 0..repeat {
        match kernels.answers(&ctx, &memory, ANSWERS)? {
            Some(seconds) => times.push(seconds),
            None => return Ok(Answers { device: device.label(), time: None }),
        }
    }
    Ok(Answers { device: device.label(), time: (!times.is_empty()).then(|| timing(times)) })
}

/// A rank that meets others: a device, or the host.
struct Rank {
    name: String,
    memory: Arc<Memory>,
    device: Option<Launched>,
}

/// Where a rank meets the others.
enum Memory {
    Host(Vec<AtomicU64>),
    Device(LiveMemory),
}

/// What a device launches.
struct Launched {
    ctx: Context,
    kernels: LiveKernels,
    met: DeviceVec<u32>,
}

impl Deref for Memory {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        match self {
            Self::Host(words) => words,
            Self::Device(words) => words,
        }
    }
}

impl Rank {
    fn new(device: Option<&Info>) -> Result<Self> {
        let Some(device) = device else {
            let memory = Arc::new(Memory::Host((0..ROOM).map(|_| AtomicU64::new(0)).collect()));
            return Ok(Self { name: "host".into(), memory, device: None });
        };
        let ctx = Context::open(device)?;
        let (kernels, memory) = (LiveKernels::build(&ctx)?, Arc::new(Memory::Device(LiveMemory::zeros(&ctx, ROOM)?)));
        let met = DeviceVec::from_slice(&ctx, &[0; 2], "how many sums were met")?;
        Ok(Self { name: device.label(), memory, device: Some(Launched { ctx, kernels, met }) })
    }
}

impl Launched {
    /// Takes part in sums; how many were met, and how many of their totals were wrong.
    fn meet(&mut self, memory: &LiveMemory, sums: &Sums) -> Result<[u32; 2]> {
        let Self { ctx, kernels, met } = self;
        kernels.sums(ctx, memory, sums, most_looks(ctx.info().kind), met)?;
        ctx.flush(Queue::Compute)?;
        ctx.finish()?;
        let mut count = [0; 2];
        met.read(ctx, 0, &mut count)?;
        Ok(count)
    }
}

/// What the kernel does, on the host.
fn meet_on_host(memory: &[AtomicU64], sums: &Sums) -> [u32; 2] {
    let Sums { first, rounds, values, weights: [weight, weights] } = *sums;
    let mut wrong = 0;
    for round in 0..rounds {
        let number = first.wrapping_add(round);
        let value = |k: u32, weight: u32| f64::from(number % 1024 + k) * f64::from(weight);
        let own: Vec<f64> = (0..values).map(|k| value(k, weight)).collect();
        put(memory, Lines::Values, number, &own);
        let begun = Instant::now();
        let totals = loop {
            match get(memory, Lines::Totals, number) {
                Some(totals) => break totals,
                None if begun.elapsed() > PATIENCE => return [round, wrong],
                None => std::thread::yield_now(),
            }
        };
        wrong += (0..values).zip(&totals[..]).filter(|(k, total)| **total != value(*k, weights)).count() as u32;
    }
    [rounds, wrong]
}

/// Sums of so many numbers over running kernels of `devices`, of which `None` is the host, by one thread that relays; medians of
/// `repeat` launches.
///
/// # Errors
/// Those of the devices; [`Error::NotMet`] if one of them doesn't come to a sum, as its kernel doesn't run beside the others, or
/// if a total is wrong.
///
/// # Panics
/// If there are more than 15 numbers.
pub fn sums(devices: &[Option<Info>], values: &[usize], repeat: usize) -> Result<Vec<SumTime>> {
    let mut ranks = devices.iter().map(|device| Rank::new(device.as_ref())).collect::<Result<Vec<_>>>()?;
    values.iter().map(|&count| Ok(SumTime { values: count, time: meet(&mut ranks, count, repeat)? })).collect()
}

/// The time of a sum of so many values.
fn meet(ranks: &mut [Rank], values: usize, repeat: usize) -> Result<Timing> {
    for rank in &*ranks {
        rank.memory.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
    let member = |rank: &Rank| Member {
        memory: Arc::clone(&rank.memory) as _,
        places: Places::new(0, &[]),
        receive: Vec::new(),
        device: None,
        name: rank.name.clone(),
    };
    let members: Vec<Member> = ranks.iter().map(member).collect();
    let relaying = Relaying::with_threads(&members, &mut Crew::default(), 1)
        .ok_or_else(|| Error::Usage("there are no more threads".into()))?;
    let mut first = 1;
    let mut launch = |rounds: u32| -> Result<f64> {
        let start = Instant::now();
        together(ranks, &relaying, &Sums { first, rounds, values: values as u32, weights: [0; 2] })?;
        first += rounds;
        Ok(start.elapsed().as_secs_f64() / f64::from(rounds))
    };
    let once = launch(FIRST)?;
    let rounds = ((TIME.as_secs_f64() / once) as u32).clamp(FIRST, MOST);
    Ok(timing((0..repeat).map(|_| launch(rounds)).collect::<Result<_>>()?))
}

/// All ranks in the same sums, with a thread that relays.
fn together(ranks: &mut [Rank], relaying: &Relaying, sums: &Sums) -> Result<()> {
    let weights = (1..=ranks.len() as u32).sum();
    let met: Vec<Result<[u32; 2]>> = std::thread::scope(|scope| {
        let mut meeting = Vec::new();
        for (Rank { memory, device, .. }, weight) in ranks.iter_mut().zip(1..) {
            let sums = Sums { weights: [weight, weights], ..*sums };
            meeting.push(scope.spawn(move || match (&**memory, device) {
                (Memory::Device(memory), Some(device)) => device.meet(memory, &sums),
                (memory, _) => Ok(meet_on_host(memory, &sums)),
            }));
        }
        let met = meeting.into_iter().enumerate().map(|(rank, thread)| {
            let panicked = |_| Error::RankPanicked { rank, message: "in a sum".into() };
            thread.join().map_err(panicked).and_then(|met| met)
        });
        met.collect()
    });
    let met = met.into_iter().collect::<Result<Vec<_>>>()?;
    let wrong: u32 = met.iter().map(|[_, wrong]| wrong).sum();
    if wrong > 0 {
        return Err(relaying.wrong(wrong));
    }
    if met.iter().all(|[count, _]| *count == sums.rounds) { Ok(()) } else { Err(relaying.lost()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    fn device() -> Info {
        list().devices.remove(0)
    }

    fn is_some_time(time: Timing) -> bool {
        time.median > 0.0 && time.low <= time.median && time.median <= time.high
    }

    #[test]
    fn a_running_kernel_answers() {
        let answers = answers(&device(), 2).unwrap();
        assert!(answers.time.is_some_and(is_some_time), "{answers:?}");
    }

    #[test]
    fn a_running_kernel_answers_through_memory_of_any_kind() {
        let ctx = Context::open(&device()).unwrap();
        let kernels = LiveKernels::build(&ctx).unwrap();
        for (k, memory) in LiveMemory::all(&ctx, ROOM).iter().enumerate() {
            let time = kernels.answers(&ctx, memory, 3).unwrap();
            assert!(time.is_some(), "kind {k}");
        }
    }

    #[test]
    fn ranks_add_up_while_they_run() {
        for devices in [vec![None], vec![None; 3], vec![Some(device())], vec![Some(device()), None]] {
            let times = sums(&devices, &[1, 3, 7], 2).unwrap();
            assert_eq!(times.iter().map(|sum| sum.values).collect::<Vec<_>>(), [1, 3, 7]);
            assert!(times.iter().all(|sum| is_some_time(sum.time)));
        }
    }
}
