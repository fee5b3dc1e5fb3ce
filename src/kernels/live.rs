//! Launchers of `cl/live.cl`, and whether a device answers while it runs.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Argument, PRELUDE, Shape, WORDS, launch, options_of};
use crate::comm::live::{Lines, MOST_VALUES, ROOM, get, put};
use crate::device::{ClKernel, ClResult, Context, DeviceVec, Grid, Kernel, Kind, LiveMemory, Queue};
use crate::error::Result;

/// How long the host waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a kernel looks in vain before it gives up: for two seconds or some.
pub(crate) fn most_looks(kind: Kind) -> u32 {
    let most = match kind {
        // some 0.7 µs over the bus
        Kind::Gpu => 3_000_000,
        // a nanosecond or two each
        _ => 1_000_000_000,
    };
    most / impatience()
}

/// In tests in which nobody comes, kernels give up so many times sooner.
#[cfg(test)]
pub(crate) static IMPATIENCE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);

#[cfg(test)]
fn impatience() -> u32 {
    IMPATIENCE.load(Ordering::Relaxed)
}

#[cfg(not(test))]
const fn impatience() -> u32 {
    1
}

/// Kernels that answer while they run.
pub(crate) struct LiveKernels {
    echo: Kernel,
    sums: Kernel,
    grid: Grid,
}

/// Sums that a running kernel takes part in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums {
    /// The number of the first one,
    pub(crate) first: u32,
    /// how many there are,
    pub(crate) rounds: u32,
    /// of how many values each.
    pub(crate) values: u32,
    /// What the rank multiplies its values by, and all ranks together.
    pub(crate) weights: [u32; 2],
}

/// Where lines of words are: live memory, or, for what need not be live, an array.
pub(crate) trait Lines64: Argument {
    /// Numbers of 64 bits.
    fn len(&self) -> usize;
}

impl LiveKernels {
    /// Compiles them, or takes what was compiled in a former run.
    ///
    /// # Errors
    /// [`Error::KernelBuild`](crate::Error::KernelBuild).
    pub(crate) fn build(ctx: &Context) -> Result<Self> {
        let files = [("prelude", PRELUDE), ("words", WORDS), ("live", include_str!("../../cl/live.cl"))];
        let source: String = files.into_iter().map(|(file, text)| format!("#line 1 \"{file}.cl\"\n{text}\n")).collect();
        // a work-item for each word of a line, but on processors
        let group_size = if Shape::of(ctx.info()) == Shape::Cpu { 1 } else { MOST_VALUES + 1 };
        let std = ctx.fence_options().unwrap_or_else(|| super::USUAL_STD.into());
        let program = ctx.build(&source, &options_of::<f32, f32>(&std, ctx.info(), group_size, group_size))?;
        let kernel = |name| ctx.kernel(&program, name, ["float", "float"]);
        Ok(Self { echo: kernel("live_echo")?, sums: kernel("live_sums")?, grid: Grid { groups: 1, group_size } })
    }

    /// Answers `rounds` numbers, and tells in `answered` how many, after at most so many looks in vain for one.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn echo(
        &self,
        ctx: &Context,
        memory: &impl Lines64,
        [rounds, most_looks]: [u32; 2],
        answered: &mut DeviceVec<u32>,
    ) -> Result<()> {
        assert!(memory.len() >= ROOM && answered.len() >= 1);
        // SAFETY: types as declared in the file; lines of live memory and one number, as checked.
        unsafe { launch(ctx, &self.echo, self.grid, &[memory, &rounds, &most_looks, answered]) }
    }

    /// Seconds that a running kernel takes to answer, the mean of `rounds` numbers; none if an answer did not come, or was wrong.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn answers(&self, ctx: &Context, memory: &LiveMemory, rounds: u32) -> Result<Option<f64>> {
        let mut answered = DeviceVec::from_slice(ctx, &[0], "how many were answered")?;
        memory.iter().take(ROOM).for_each(|word| word.store(0, Ordering::Relaxed));
        self.echo(ctx, memory, [rounds, most_looks(ctx.info().kind)], &mut answered)?;
        ctx.flush(Queue::Compute)?;
        let seconds = ask(memory, rounds);
        ctx.finish()?;
        let mut count = [0];
        answered.read(ctx, 0, &mut count)?;
        Ok(seconds.filter(|_| count[0] == rounds))
    }

    /// Takes part in sums; tells in `met` how many were met, and how many totals were wrong.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn sums(
        &self,
        ctx: &Context,
        memory: &impl Lines64,
        sums: &Sums,
        most_looks: u32,
        met: &mut DeviceVec<u32>,
    ) -> Result<()> {
        let Sums { first, rounds, values, weights: [weight, weights] } = sums;
        assert!(memory.len() >= ROOM && met.len() >= 2 && *values as usize <= MOST_VALUES);
        // SAFETY: types as declared in the file; lines of live memory and two numbers, as checked.
        unsafe {
            launch(ctx, &self.sums, self.grid, &[memory, first, rounds, values, weight, weights, &most_looks, met])
        }
    }
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

impl Lines64 for LiveMemory {
    fn len(&self) -> usize {
        <[_]>::len(self)
    }
}

impl Argument for LiveMemory {
    fn cl_type(&self) -> String {
        "ulong*".into()
    }

    fn key(&self) -> u64 {
        self.id()
    }

    unsafe fn bind(&self, kernel: &ClKernel, index: u32) -> ClResult<()> {
        // SAFETY: the caller's promise.
        unsafe { Self::bind(self, kernel, index) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::comm::live::{Lines, get, put};
    use crate::device::list;

    /// Kernels, which find what they wait for, or don't wait for long. Their memory is a plain array, as Oclgrind rightly says that
    /// OpenCL knows no memory that both sides use at once.
    struct Ready {
        ctx: Context,
        kernels: LiveKernels,
        memory: DeviceVec<u64>,
        told: DeviceVec<u32>,
    }

    impl Lines64 for DeviceVec<u64> {
        fn len(&self) -> usize {
            Self::len(self)
        }
    }

    fn ready() -> Ready {
        let ctx = Context::open(&list().devices.remove(0)).unwrap();
        let (kernels, memory) = (LiveKernels::build(&ctx).unwrap(), DeviceVec::zeros(&ctx, ROOM, "lines").unwrap());
        let told = DeviceVec::from_slice(&ctx, &[9; 3], "what is told").unwrap();
        Ready { ctx, kernels, memory, told }
    }

    impl Ready {
        fn words(&self) -> Vec<AtomicU64> {
            let mut words = vec![0; ROOM];
            self.memory.read(&self.ctx, 0, &mut words).unwrap();
            words.into_iter().map(AtomicU64::new).collect()
        }

        fn put_totals(&mut self, number: u32, values: &[f64]) {
            let words = self.words();
            put(&words, Lines::Totals, number, values);
            let words: Vec<u64> = words.into_iter().map(AtomicU64::into_inner).collect();
            self.memory.write(&self.ctx, 0, &words).unwrap();
        }

        fn values(&self, number: u32) -> Option<Vec<f64>> {
            get(&self.words(), Lines::Values, number).map(|values| values.to_vec())
        }

        fn told(&self) -> [u32; 3] {
            let mut told = [0; 3];
            self.told.read(&self.ctx, 0, &mut told).unwrap();
            told
        }

        fn meet(&mut self, sums: &Sums) -> [u32; 3] {
            let Self { ctx, kernels, memory, told } = self;
            kernels.sums(ctx, memory, sums, 10, told).unwrap();
            self.told()
        }
    }

    #[test]
    fn answers_are_one_more() {
        let mut ready = ready();
        for number in [1, 2] {
            ready.put_totals(number, &[f64::from(number)]);
        }
        let Ready { ctx, kernels, memory, told } = &mut ready;
        kernels.echo(ctx, memory, [2, 10], told).unwrap();
        assert_eq!(ready.told(), [2, 9, 9]);
        for number in [1, 2] {
            let answer = f64::from_bits(f64::from(number).to_bits() + 1);
            assert_eq!(ready.values(number).unwrap(), [answer]);
        }
        // a third one does not come
        let Ready { ctx, kernels, memory, told } = &mut ready;
        told.write(ctx, 0, &[9]).unwrap();
        kernels.echo(ctx, memory, [3, 10], told).unwrap();
        assert_eq!(ready.told(), [2, 9, 9]);
    }

    #[test]
    fn a_sum_has_the_values_of_the_rank() {
        for values in 0..=MOST_VALUES as u32 {
            let mut ready = ready();
            let sums = Sums { first: 2047, rounds: 2, values, weights: [3, 10] };
            let all = |number: u32, weight: u32| -> Vec<f64> {
                (0..values).map(|k| f64::from((number % 1024 + k) * weight)).collect()
            };
            ready.put_totals(2047, &all(2047, 10));
            ready.put_totals(2048, &all(2048, 10));
            assert_eq!(ready.meet(&sums), [2, 0, 9]);
            for number in [2047, 2048] {
                assert_eq!(ready.values(number).unwrap(), all(number, 3));
            }
            // what is wrong is counted, each value; value 0 of sum 2048 is 0, whatever its weight
            ready.put_totals(2048, &all(2048, 11));
            assert_eq!(ready.meet(&sums), [2, values.saturating_sub(1), 9]);
        }
    }

    #[test]
    fn who_waits_in_vain_gives_up() {
        let mut ready = ready();
        ready.put_totals(1, &[10.0, 20.0]);
        let sums = Sums { first: 1, rounds: 3, values: 2, weights: [1, 10] };
        assert_eq!(ready.meet(&sums), [1, 0, 9]);
        assert_eq!(ready.values(2).unwrap(), [2.0, 3.0]);
        assert!(ready.values(3).is_none());
    }
}
