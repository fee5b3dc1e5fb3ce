//! Sums of a device, and how they get to the host.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::OpenClOps;
use crate::comm::MAX_SUMS;
use crate::device::{DeviceVec, Pinned, SumsRead};
use crate::error::Result;
use crate::real::Real;
use crate::timeline::Lane;

/// What the device is asked to make room for.
pub(super) const PARTIAL_SUMS: &str = "partial sums";

/// Where partial sums arrive on the host.
pub(super) struct Landing<A: Real> {
    memory: Option<Pinned<A>>,
    coming: Option<Coming<A>>,
}

impl<A: Real> Landing<A> {
    /// Nothing is on its way.
    pub(super) fn new(memory: Pinned<A>) -> Self {
        Self { memory: Some(memory), coming: None }
    }

    /// Takes no interest in what is on its way.
    pub(super) fn forget(&mut self) {
        self.coming = None;
    }
}

/// Up to four sums: partial sums on the device, or values on the host.
pub(crate) struct DeviceSum<A> {
    /// Those of a group one behind the other; those of another sum may be in front of them.
    pub(super) partials: Arc<DeviceVec<A>>,
    /// The first group whose they are.
    pub(super) first: usize,
    pub(super) components: usize,
    /// Groups that have left partial sums; 0 once the host has the values.
    pub(super) count: usize,
    pub(super) values: [f64; MAX_SUMS],
}

impl<A: Real> DeviceSum<A> {
    /// Where partial sums are.
    fn place(&self) -> Place {
        let [begin, end] = [self.first, self.first + self.count].map(|group| group * self.components);
        Place { array: self.partials.id(), elements: begin..end }
    }

    /// The room for partial sums of its own, whose number a kernel is about to set.
    pub(super) fn refill(&mut self, count: usize) -> &DeviceVec<A> {
        (self.first, self.count) = (0, count);
        &self.partials
    }

    /// Groups that are there, with those of another sum in front.
    pub(crate) fn groups(&self) -> usize {
        self.first + self.count
    }

    /// Takes note of the groups that have left partial sums, with those of another sum in front.
    pub(crate) fn set_groups(&mut self, groups: usize) {
        self.count = groups - self.first;
    }

    /// Two sums, behind `first` groups of others in an array.
    pub(crate) fn behind(partials: Arc<DeviceVec<A>>, first: usize) -> Self {
        Self { partials, first, components: 2, count: 0, values: [0.0; MAX_SUMS] }
    }

    /// Partial sums, those of a group one behind the other: the first group, and how many there are.
    pub(crate) fn parts(&self) -> (&DeviceVec<A>, u32, u32) {
        (&self.partials, self.first as u32, self.count as u32)
    }
}

/// Some elements of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    array: u64,
    elements: Range<usize>,
}

/// Sums under way, and where they come from, one behind the other.
type Coming<A> = (SumsRead<A>, Vec<Place>);

impl<T: Real, A: Real> OpenClOps<T, A> {
    /// Empties a sum, and makes room in it for the partial sums of so many launches, behind those of another sum.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory).
    pub(crate) fn empty(&self, sum: &mut DeviceSum<A>, launches: usize) -> Result<Arc<DeviceVec<A>>> {
        sum.count = 0;
        let room = sum.components * (sum.first + launches * self.max_groups);
        if sum.partials.len() < room {
            (sum.partials, sum.first) = (Arc::new(DeviceVec::zeros(&self.ctx, room, PARTIAL_SUMS)?), 0);
        }
        Ok(Arc::clone(&sum.partials))
    }

    /// Starts to read the sums that are still on the device: what lies together, at once.
    fn start_reads(&self, sums: &[&mut DeviceSum<A>]) -> Result<Option<Coming<A>>> {
        let mut here: Vec<&DeviceSum<A>> = sums.iter().map(|sum| &**sum).filter(|sum| sum.count > 0).collect();
        here.sort_by_key(|sum| (sum.partials.id(), sum.first));
        let places: Vec<Place> = here.iter().map(|sum| sum.place()).collect();
        let len = places.iter().map(|place| place.elements.len()).sum();
        let mut runs: Vec<(&DeviceVec<A>, Range<usize>)> = Vec::new();
        for (sum, place) in here.iter().zip(&places) {
            match runs.last_mut() {
                Some((array, run)) if array.id() == place.array && run.end == place.elements.start => {
                    run.end = place.elements.end;
                }
                _ => runs.push((&sum.partials, place.elements.clone())),
            }
        }
        if runs.is_empty() {
            return Ok(None);
        }
        let mut landing = self.landing.borrow_mut();
        let memory = landing.memory.take().filter(|memory| memory.len() >= len);
        let memory = memory.map_or_else(|| Pinned::zeros(&self.ctx, len), Ok)?;
        Ok(Some((memory.await_sums(&self.ctx, &runs)?, places)))
    }

    /// Sends sums on their way, which [`bring`](Self::bring) will wait for.
    pub(super) fn send(&self, sums: &[&mut DeviceSum<A>]) -> Result<()> {
        let coming = self.start_reads(sums)?;
        self.landing.borrow_mut().coming = coming;
        Ok(())
    }

    /// Brings sums to the host that are still on the device, with one wait for all: those that are under way, if all are
    /// among them.
    pub(super) fn bring(&self, sums: &mut [&mut DeviceSum<A>]) -> Result<()> {
        let start = Instant::now();
        let coming = self.landing.borrow_mut().coming.take();
        let has_all =
            |places: &[Place]| sums.iter().filter(|sum| sum.count > 0).all(|sum| places.contains(&sum.place()));
        let coming = match coming {
            Some((read, places)) if has_all(&places) => Some((read, places)),
            Some((read, _)) => {
                self.landing.borrow_mut().memory = Some(read.wait(&self.ctx)?);
                self.start_reads(sums)?
            }
            None => self.start_reads(sums)?,
        };
        let Some((read, places)) = coming else { return Ok(()) };
        let memory = read.wait(&self.ctx)?;
        let mut rest = &memory[..];
        for place in places {
            let (piece, others) = rest.split_at(place.elements.len());
            rest = others;
            if let Some(sum) = sums.iter_mut().find(|sum| sum.count > 0 && sum.place() == place) {
                (sum.values, sum.count) = (add_up(piece, sum.components), 0);
            }
        }
        self.landing.borrow_mut().memory = Some(memory);
        self.known_done.set(self.current.get().saturating_sub(1));
        self.waited(start);
        Ok(())
    }

    /// Starts to bring parts of arrays to the host, one behind the other.
    ///
    /// # Errors
    /// A failing device.
    pub(crate) fn start_fetch(&self, runs: &[(&DeviceVec<A>, Range<usize>)]) -> Result<SumsRead<A>> {
        let len = runs.iter().map(|(_, elements)| elements.len()).sum();
        let memory = self.landing.borrow_mut().memory.take().filter(|memory| memory.len() >= len);
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
        self.landing.borrow_mut().memory = Some(memory);
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

/// The sums of 1, 2 or 4 components whose parts lie one behind the other, in eight interleaved ones: sums in one row would take
/// longer than the parts took to arrive.
fn add_up<A: Real>(parts: &[A], components: usize) -> [f64; MAX_SUMS] {
    let (eights, rest) = parts.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for part in eights.iter().map(<[A; 8]>::as_slice).chain([rest]) {
        lanes.iter_mut().zip(part).for_each(|(lane, v)| *lane += v.to_f64());
    }
    std::array::from_fn(|k| if k < components { lanes.iter().skip(k).step_by(components).sum() } else { 0.0 })
}
