//! How soon running kernels and the host answer each other through live memory, and how long kernels on several devices take to add
//! up numbers while they run.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::exchange::SumTime;
use crate::comm::live::{Lines, ROOM, Relay, get, put};
use crate::device::{Context, DeviceVec, Info, Kind, LiveMemory, Queue};
use crate::error::{Error, Result};
use crate::kernels::live::{LiveKernels, Sums};
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

/// How often a kernel looks in vain before it gives up: for a second or some.
fn most_looks(kind: Kind) -> u32 {
    match kind {
        // some 0.7 µs over the bus
        Kind::Gpu => 2_000_000,
        // some nanoseconds each
        _ => 400_000_000,
    }
}

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
    let mut answered = DeviceVec::from_slice(&ctx, &[0], "how many were answered")?;
    let mut times = Vec::new();
    for _ in 0..repeat {
        memory.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        kernels.echo(&ctx, &memory, [ANSWERS, most_looks(device.kind)], &mut answered)?;
        ctx.flush(Queue::Compute)?;
        let seconds = ask(&memory, ANSWERS);
        ctx.finish()?;
        let mut count = [0];
        answered.read(&ctx, 0, &mut count)?;
        match seconds {
            Some(seconds) if count[0] == ANSWERS => times.push(seconds),
            _ => return Ok(Answers { device: device.label(), time: None }),
        }
    }
    Ok(Answers { device: device.label(), time: (!times.is_empty()).then(|| timing(times)) })
}

/// Seconds from a number to its answer, of so many; none if one was wrong or did not come.
fn ask(memory: &LiveMemory, count: u32) -> Option<f64> {
    let mut start = Instant::now();
    for number in 1..=count {
        let asked = f64::from(number);
        put(memory, Lines::Totals, number, &[asked]);
        let begun = Instant::now();
        let answer = loop {
            match get(memory, Lines::Values, number) {
                Some(answer) => break answer,
                None if begun.elapsed() > PATIENCE => return None,
                None => std::hint::spin_loop(),
            }
        };
        if answer[..] != [f64::from_bits(asked.to_bits() + 1)] {
            return None;
        }
        if number == 1 {
            start = Instant::now(); // the launch is no part of it
        }
    }
    Some(start.elapsed().as_secs_f64() / f64::from(count - 1))
}

/// A rank that meets others: a device, or the host.
struct Rank {
    name: String,
    memory: Memory,
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
            let memory = Memory::Host((0..ROOM).map(|_| AtomicU64::new(0)).collect());
            return Ok(Self { name: "host".into(), memory, device: None });
        };
        let ctx = Context::open(device)?;
        let (kernels, memory) = (LiveKernels::build(&ctx)?, Memory::Device(LiveMemory::zeros(&ctx, ROOM)?));
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
/// If there are more than 7 numbers.
pub fn sums(devices: &[Option<Info>], values: &[usize], repeat: usize) -> Result<Vec<SumTime>> {
    let mut ranks = devices.iter().map(|device| Rank::new(device.as_ref())).collect::<Result<Vec<_>>>()?;
    values.iter().map(|&count| Ok(SumTime { values: count, time: meet(&mut ranks, count, repeat)? })).collect()
}

/// The time of a sum of so many values.
fn meet(ranks: &mut [Rank], values: usize, repeat: usize) -> Result<Timing> {
    for rank in &*ranks {
        rank.memory.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }
    let mut relay = Relay::new(ranks.len());
    let mut first = 1;
    let mut launch = |rounds: u32| -> Result<f64> {
        let start = Instant::now();
        together(ranks, &mut relay, &Sums { first, rounds, values: values as u32, weights: [0; 2] })?;
        first += rounds;
        Ok(start.elapsed().as_secs_f64() / f64::from(rounds))
    };
    let once = launch(FIRST)?;
    let rounds = ((TIME.as_secs_f64() / once) as u32).clamp(FIRST, MOST);
    Ok(timing((0..repeat).map(|_| launch(rounds)).collect::<Result<_>>()?))
}

/// All ranks in the same sums, with a thread that relays.
fn together(ranks: &mut [Rank], relay: &mut Relay, sums: &Sums) -> Result<()> {
    let weights = (1..=ranks.len() as u32).sum();
    let names: Vec<String> = ranks.iter().map(|rank| rank.name.clone()).collect();
    let (memories, devices): (Vec<&Memory>, Vec<_>) =
        ranks.iter_mut().map(|rank| (&rank.memory, &mut rank.device)).unzip();
    let stops = AtomicBool::new(false);
    let met: Vec<Result<[u32; 2]>> = std::thread::scope(|scope| {
        let words: Vec<&[AtomicU64]> = memories.iter().map(|memory| &***memory).collect();
        let (relay, stops) = (&mut *relay, &stops);
        scope.spawn(move || relay.run(&words, stops));
        let mut meeting = Vec::new();
        for ((memory, device), weight) in memories.into_iter().zip(devices).zip(1..) {
            let sums = Sums { weights: [weight, weights], ..*sums };
            meeting.push(scope.spawn(move || match (memory, device) {
                (Memory::Device(memory), Some(device)) => device.meet(memory, &sums),
                _ => Ok(meet_on_host(memory, &sums)),
            }));
        }
        let met = meeting.into_iter().enumerate().map(|(rank, thread)| {
            let panicked = |_| Error::RankPanicked { rank, message: "in a sum".into() };
            thread.join().map_err(panicked).and_then(|met| met)
        });
        let met = met.collect();
        stops.store(true, Ordering::Relaxed);
        met
    });
    let met = met.into_iter().collect::<Result<Vec<_>>>()?;
    let wrong: u32 = met.iter().map(|[_, wrong]| wrong).sum();
    if wrong > 0 {
        let why = format!("{wrong} of their totals were wrong");
        return Err(Error::NotMet { ranks: names.join(", "), sums: relay.missing().0 - 1, why });
    }
    if met.iter().all(|[count, _]| *count == sums.rounds) {
        return Ok(());
    }
    Err(not_met(&names, relay))
}

/// That a sum was given up.
fn not_met(names: &[String], relay: &Relay) -> Error {
    let (number, missing) = relay.missing();
    let missing: Vec<&str> = missing.into_iter().map(|rank| names[rank].as_str()).collect();
    let missing = if missing.is_empty() { "the relay".into() } else { missing.join(", ") };
    let why = format!("in the next one {missing} did not come in time");
    Error::NotMet { ranks: names.join(", "), sums: number - 1, why }
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
    fn ranks_add_up_while_they_run() {
        for devices in [vec![None], vec![None; 3], vec![Some(device())], vec![Some(device()), None]] {
            let times = sums(&devices, &[1, 3, 7], 2).unwrap();
            assert_eq!(times.iter().map(|sum| sum.values).collect::<Vec<_>>(), [1, 3, 7]);
            assert!(times.iter().all(|sum| is_some_time(sum.time)));
        }
    }

    #[test]
    fn who_does_not_come_is_named() {
        let names = ["host", "[0] a GPU", "[1] a GPU"].map(String::from);
        let memories = [(); 3].map(|()| (0..ROOM).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let words = memories.each_ref().map(|memory| &memory[..]);
        let mut relay = Relay::new(3);
        for number in 1..=4 {
            words.iter().for_each(|words| put(words, Lines::Values, number, &[1.0]));
            assert!(relay.look(&words));
        }
        put(words[1], Lines::Values, 5, &[1.0]);
        assert!(!relay.look(&words));
        let message = not_met(&names, &relay).to_string();
        assert_eq!(
            message,
            "host, [0] a GPU, [1] a GPU met in 4 sums; in the next one host, [1] a GPU did not come in time"
        );
    }
}
