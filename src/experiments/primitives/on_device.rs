//! Tasks on a device.

use serde::Serialize;

use super::case::Arrays;
use super::{Case, Task};
use crate::device::{Context, DeviceVec, Info};
use crate::error::Result;
use crate::kernels::primitives::compact::Compact;
use crate::kernels::primitives::scan::Scan;
use crate::kernels::primitives::sort::{self, DIGIT_BITS, Payload, Sort, SortSpace};
use crate::kernels::primitives::{GROUPS_PER_UNIT, ITEMS, ShareSums, Tiling, Word};
use crate::kernels::{Element, Shape};
use crate::timing::{Timing, timing};
use crate::tune::stopwatch::Stopwatch;

/// How kernels are compiled and launched. What they don't depend on is as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Launch {
    /// Elements of a tile for each work-item; of no matter in the CPU shape.
    pub items: usize,
    /// Groups for each compute unit; of no matter in the CPU shape.
    pub groups_per_unit: usize,
    /// The most bits of a digit; of sorts.
    pub digit_bits: Option<u32>,
}

/// The time of a task on a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// How it was launched.
    pub launch: Launch,
    /// Seconds.
    pub time: Timing,
    /// Bytes that kernels read and write.
    pub bytes: u64,
    /// Bytes on the device beside what goes in and comes out.
    pub space_bytes: u64,
    /// Whether the result is that of the host, to the last bit.
    pub same_as_host: bool,
}

/// A device that is opened for measurements.
pub struct OnDevice {
    ctx: Context,
    shape: Shape,
    stopwatch: Stopwatch,
    repeat: usize,
}

impl Launch {
    /// Those to compare, the usual one first.
    fn all(task: Task, shape: Shape) -> Vec<Self> {
        let (is_gpu, is_sort) = (shape == Shape::Gpu, task.is_sort());
        let usual = Self {
            items: ITEMS,
            groups_per_unit: if is_sort { sort::GROUPS_PER_UNIT } else { GROUPS_PER_UNIT },
            digit_bits: is_sort.then_some(DIGIT_BITS),
        };
        let items = [8, 16].map(|items| Self { items, ..usual });
        let groups = [8, 16, 32, 64].map(|groups_per_unit| Self { groups_per_unit, ..usual });
        let digits = [4, 5, 6, 7, 8].map(|bits| Self { digit_bits: Some(bits), ..usual });
        let shaped = items.into_iter().chain(groups).filter(|_| is_gpu);
        let others = shaped.chain(digits.into_iter().filter(|_| is_sort)).filter(|launch| *launch != usual);
        std::iter::once(usual).chain(others).collect()
    }
}

impl OnDevice {
    /// Opens a device, for medians of `repeat` launches.
    ///
    /// # Errors
    /// Those of the device.
    pub fn open(device: &Info, repeat: usize) -> Result<Self> {
        let ctx = Context::open(device)?;
        Ok(Self { ctx, shape: Shape::of(device), stopwatch: Stopwatch::default(), repeat })
    }

    /// The times of a task, launched as usual, or in all ways there are to compare.
    ///
    /// # Errors
    /// Those of the device.
    pub fn measure(&mut self, case: &Case, all_launches: bool) -> Result<Vec<Measured>> {
        let mut launches = Launch::all(case.task, self.shape);
        launches.truncate(if all_launches { usize::MAX } else { 1 });
        let Arrays { narrow, wide, flags, .. } = &case.input;
        match case.task {
            Task::Scan => self.scans(case, &launches, |output: &Arrays| &output.narrow),
            Task::WideScan => self.scans(case, &launches, |output: &Arrays| &output.wide),
            Task::Indices | Task::Values => self.compactions(case, &launches, (flags, narrow)),
            Task::Keys(bits) | Task::Pairs(bits) | Task::Permutation(bits) if bits > 32 => {
                self.sorts(case, &launches, bits, (wide, &case.output.wide))
            }
            Task::Keys(bits) | Task::Pairs(bits) | Task::Permutation(bits) => {
                self.sorts(case, &launches, bits, (narrow, &case.output.narrow))
            }
        }
    }

    fn tiling(&self, launch: Launch) -> Tiling {
        Tiling::new(self.ctx.info(), self.shape, launch.items, launch.groups_per_unit)
    }

    /// The time of what is launched, once it was launched once.
    fn time(&mut self, mut launch: impl FnMut(&Context) -> Result<()>) -> Result<Timing> {
        let Self { ctx, stopwatch, repeat, .. } = self;
        launch(ctx)?;
        ctx.finish()?;
        Ok(timing(stopwatch.times(ctx, *repeat, |_| launch(ctx))?))
    }

    fn scans<S: Word + PartialEq>(
        &mut self,
        case: &Case,
        launches: &[Launch],
        sums: impl Fn(&Arrays) -> &Vec<S>,
    ) -> Result<Vec<Measured>> {
        let n = case.rows;
        let from = DeviceVec::from_slice(&self.ctx, &case.input.narrow, "numbers to sum")?;
        let mut to = DeviceVec::<S>::zeros(&self.ctx, n + 1, "prefix sums")?;
        let measure = |&launch: &Launch| {
            let tiling = self.tiling(launch);
            let (scan, mut space) = (Scan::build(&self.ctx, tiling)?, ShareSums::new(&self.ctx, tiling)?);
            to.fill(&self.ctx, 0xA5)?;
            let time = self.time(|ctx| scan.exclusive(ctx, n, &from, &mut to, &mut space))?;
            let bytes = (n * (8 + size_of::<S>())) as u64;
            let same_as_host = self.is_same(&to, sums(&case.output))?;
            Ok(Measured { launch, time, bytes, space_bytes: space.bytes(), same_as_host })
        };
        launches.iter().map(measure).collect()
    }

    fn compactions(
        &mut self,
        case: &Case,
        launches: &[Launch],
        (flags, values): (&[u8], &[u32]),
    ) -> Result<Vec<Measured>> {
        let (n, picked) = (case.rows, &case.output.narrow);
        let flags = DeviceVec::from_slice(&self.ctx, flags, "flags")?;
        let values = DeviceVec::from_slice(&self.ctx, values, "values at flags")?;
        let mut to = DeviceVec::zeros(&self.ctx, n, "what flags pick out")?;
        let measure = |&launch: &Launch| {
            let tiling = self.tiling(launch);
            let (compact, mut space) = (Compact::build(&self.ctx, tiling)?, ShareSums::new(&self.ctx, tiling)?);
            to.fill(&self.ctx, 0xA5)?;
            let (time, moved) = if case.task == Task::Values {
                (self.time(|ctx| compact.values(ctx, n, (&flags, &values), &mut to, &mut space))?, 8)
            } else {
                (self.time(|ctx| compact.indices(ctx, n, &flags, &mut to, &mut space))?, 4)
            };
            let bytes = (2 * n + moved * picked.len()) as u64;
            let same_as_host = space.total(&self.ctx)? == picked.len() as u64 && self.is_same(&to, picked)?;
            Ok(Measured { launch, time, bytes, space_bytes: space.bytes(), same_as_host })
        };
        launches.iter().map(measure).collect()
    }

    fn sorts<K: Word + PartialEq>(
        &mut self,
        case: &Case,
        launches: &[Launch],
        bits: u32,
        (keys, sorted): (&[K], &[K]),
    ) -> Result<Vec<Measured>> {
        let (n, order) = (case.rows, &case.output.order);
        let (has_payload, is_given) = (!matches!(case.task, Task::Keys(..)), matches!(case.task, Task::Pairs(..)));
        let room = |is_needed: bool| if is_needed { n } else { 0 };
        let from = DeviceVec::from_slice(&self.ctx, keys, "keys")?;
        let mut to = DeviceVec::zeros(&self.ctx, n, "sorted keys")?;
        let places: Vec<u32> = (0..room(is_given) as u32).collect();
        let given = DeviceVec::from_slice(&self.ctx, &places, "what belongs to keys")?;
        let mut moved = DeviceVec::zeros(&self.ctx, room(has_payload), "what belongs to sorted keys")?;
        let measure = |&launch: &Launch| {
            let sort = Sort::<K>::build(&self.ctx, self.tiling(launch), launch.digit_bits.unwrap_or(DIGIT_BITS))?;
            let mut space = SortSpace::new(&self.ctx, &sort, (n, bits), has_payload)?;
            to.fill(&self.ctx, 0xA5)?;
            moved.fill(&self.ctx, 0xA5)?;
            let time = self.time(|ctx| {
                let payload = match (has_payload, is_given) {
                    (false, _) => Payload::None,
                    (true, true) => Payload::Given(&given, &mut moved),
                    (true, false) => Payload::Indices(&mut moved),
                };
                sort.sort(ctx, (n, bits), (&from, &mut to), payload, &mut space)
            })?;
            // the first pass does not read places
            let payload_moves = if has_payload { 2 * sort.passes(bits) - usize::from(!is_given) } else { 0 };
            let bytes = (n * (3 * size_of::<K>() * sort.passes(bits) + 4 * payload_moves)) as u64;
            let same_as_host = self.is_same(&to, sorted)? && self.is_same(&moved, order)?;
            Ok(Measured { launch, time, bytes, space_bytes: space.bytes(), same_as_host })
        };
        launches.iter().map(measure).collect()
    }

    /// Whether an array begins with these elements.
    fn is_same<E: Element + PartialEq>(&self, found: &DeviceVec<E>, expected: &[E]) -> Result<bool> {
        let mut on_host = vec![E::default(); expected.len()];
        found.read(&self.ctx, 0, &mut on_host)?;
        Ok(on_host == expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;

    #[test]
    fn all_tasks_are_as_on_the_host() {
        let mut device = OnDevice::open(&list().devices.remove(0), 2).unwrap();
        device.shape = Shape::Cpu;
        for task in Task::ALL {
            let all_launches = task == Task::Pairs(16);
            let measured = device.measure(&Case::new(task, 3000, 1), all_launches).unwrap();
            assert_eq!(measured.len(), if all_launches { 5 } else { 1 }, "{task}");
            for one in measured {
                assert!(one.same_as_host && one.time.runs == 2 && one.space_bytes > 0, "{task}: {one:?}");
            }
        }
    }

    #[test]
    fn launches_are_distinct() {
        for (task, shape, count) in [
            (Task::Scan, Shape::Cpu, 1),
            (Task::Keys(32), Shape::Cpu, 5),
            (Task::Scan, Shape::Gpu, 5),
            (Task::Keys(32), Shape::Gpu, 9),
        ] {
            let all = Launch::all(task, shape);
            assert!(all.len() == count && (1..count).all(|k| !all[..k].contains(&all[k])), "{all:?}");
        }
    }

    #[test]
    fn bytes_by_hand() {
        let mut device = OnDevice::open(&list().devices.remove(0), 1).unwrap();
        let mut bytes = |task| {
            let case = Case::new(task, 1000, 1);
            (device.measure(&case, false).unwrap()[0].bytes as usize, case.output.narrow.len())
        };
        assert_eq!([Task::Scan, Task::WideScan].map(|task| bytes(task).0), [12_000, 16_000]);
        let (of_indices, set) = bytes(Task::Indices);
        assert_eq!(of_indices, 2000 + 4 * set);
        // four passes of 8 bits
        assert_eq!(bytes(Task::Keys(32)).0, 48_000);
        assert_eq!(bytes(Task::Pairs(32)).0, 80_000);
        assert_eq!(bytes(Task::Permutation(32)).0, 76_000);
        assert_eq!(bytes(Task::Pairs(64)).0, 8 * 32_000);
    }
}
