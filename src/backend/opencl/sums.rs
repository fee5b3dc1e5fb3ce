//! Sums of a device, and how they get to the host.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::OpenClBackend;
use crate::device::{DeviceVec, Pinned, SumsRead};
use crate::error::Result;
use crate::kernels::MAX_LANES;
use crate::real::Real;
use crate::timeline::Lane;

/// What the device is asked to make room for.
pub(super) const PARTIAL_SUMS: &str = "partial sums";

/// The two sums of a product as partial sums on the device: those of a group one behind the other, the first of all columns, then the
/// second.
pub(crate) struct DeviceSums<A> {
    partials: Arc<DeviceVec<A>>,
    /// The first group whose they are; those of other sums may be in front of them.
    first: usize,
    /// Groups that have left partial sums.
    count: usize,
}

impl<A: Real> DeviceSums<A> {
    /// Sums behind those of `first` other groups in an array.
    pub(crate) fn behind(partials: Arc<DeviceVec<A>>, first: usize) -> Self {
        Self { partials, first, count: 0 }
    }

    /// Groups that are there, with others in front.
    pub(crate) fn groups(&self) -> usize {
        self.first + self.count
    }

    /// Takes note of the groups that have left partial sums, with others in front.
    pub(crate) fn set_groups(&mut self, groups: usize) {
        self.count = groups - self.first;
    }

    /// Where they are: the array, the first group, and how many there are.
    pub(crate) fn parts(&self) -> (&DeviceVec<A>, u32, u32) {
        (&self.partials, self.first as u32, self.count as u32)
    }
}

impl<T: Real, A: Real> OpenClBackend<T, A> {
    /// Empties sums, and makes room in them for the partial sums of so many launches, behind those of others.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn empty(&self, sums: &mut DeviceSums<A>, launches: usize) -> Result<Arc<DeviceVec<A>>> {
        sums.count = 0;
        let room = 2 * self.columns * (sums.first + launches * self.max_groups);
        if sums.partials.len() < room {
            (sums.partials, sums.first) = (Arc::new(DeviceVec::zeros(&self.ctx, room, PARTIAL_SUMS)?), 0);
        }
        Ok(Arc::clone(&sums.partials))
    }

    /// Starts to bring parts of arrays to the host, one behind the other.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn start_fetch(&self, runs: &[(&DeviceVec<A>, Range<usize>)]) -> Result<SumsRead<A>> {
        let len = runs.iter().map(|(_, elements)| elements.len()).sum();
        let memory = self.landing.take().filter(|memory| memory.len() >= len);
        let memory = memory.map_or_else(|| Pinned::zeros(&self.ctx, len), Ok)?;
        memory.await_sums(&self.ctx, runs)
    }

    /// Waits for them, in memory to be [kept](Self::keep_landing) for the next.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn end_fetch(&self, read: SumsRead<A>) -> Result<Pinned<A>> {
        let memory = read.wait(&self.ctx)?;
        self.known_done.set(self.current.get().saturating_sub(1));
        Ok(memory)
    }

    /// Keeps memory for the next sums.
    pub(crate) fn keep_landing(&self, memory: Pinned<A>) {
        self.landing.replace(Some(memory));
    }

    /// Replaces values by their sums over all ranks.
    ///
    /// # Errors
    /// A failing rank.
    pub(crate) fn sum_values(&self, values: &mut [f64]) -> Result<()> {
        let start = Instant::now();
        self.comm.sum(values)?;
        self.clock.borrow_mut().sums += start.elapsed();
        if self.comm.size() > 1 {
            self.recorder.span(Lane::Host, "sum over ranks", start);
        }
        Ok(())
    }
}

/// Numbers that the kernels' tree of sums takes at once: see `cl/prelude.cl`.
const FAN: usize = 8;

/// The sum of every `step`th number, in the order in which `lanes` work-items of a device add them (`cl/passes.cl`), so that it does not
/// matter who does.
pub(crate) fn add_up<A: Real>(parts: &[A], step: usize, lanes: usize) -> f64 {
    let mut sums = [0.0_f64; MAX_LANES];
    for (i, part) in parts.iter().step_by(step).enumerate() {
        sums[i % lanes] += part.to_f64();
    }
    let mut n = lanes;
    while n > FAN {
        let next = n / FAN;
        for lane in 0..next {
            (1..FAN).for_each(|k| sums[lane] += sums[lane + k * next]);
        }
        n = next;
    }
    sums[1..n].iter().fold(sums[0], |sum, part| sum + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_hand() {
        assert_eq!(add_up::<f64>(&[], 1, 1), 0.0);
        assert_eq!(add_up(&[1.0, 100.0, 2.0, 100.0, 3.0], 2, 1), 6.0);
        let ones = [1.0_f64; 1000];
        assert!([1, 2, 4, 8, 16, 64, 128, 256].iter().all(|lanes| add_up(&ones, 1, *lanes) == 1000.0));
        // two lanes: (1e16 − 1e16) + (1 + 1); one: ((1e16 + 1) − 1e16) + 1
        let parts = [1e16, 1.0, -1e16, 1.0];
        assert_eq!([add_up(&parts, 1, 2), add_up(&parts, 1, 1)], [2.0, 1.0]);
        // 16 lanes come to two, of which each has every other one
        let mut parts = [0.0; 16];
        (parts[0], parts[1], parts[2], parts[3]) = (1e16, 1.0, -1e16, 1.0);
        assert_eq!(add_up(&parts, 1, 16), 2.0);
    }
}
