//! Which devices work on a system, and on which rows: gathers what [`placement`](super::placement) decides by, from
//! former runs and by measurement, and no more of it than the decision needs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::placement::{self, LEAST_MEETING, Speed};
use super::team::Placement;
use super::whole::Whole;
use super::{ShareSource, Tune, fit};
use crate::device::{Choice, Info, Rejected, Selection};
use crate::error::Result;
use crate::matrix::Csr;
use crate::matrix::reorder::Locality;
use crate::partition::{cost, row_ranges_by};
use crate::tune::store::{Device, Known, MeetingEntry, MeetingKey, PaceEntry, Store, kind};
use crate::tune::{meeting, speed};

/// Entries of a sample on which a device's speed is measured, at most.
const SAMPLE: usize = 16 << 20;

/// The most that a link between devices takes for an element of a halo, in seconds: 8 bytes in each direction at 10 GB/s.
const HALO_SECONDS: f64 = 1.6e-9;

/// How many times faster than it seems the processor's memory may be, when it is said that it would not help GPUs.
const DOUBT: f64 = 2.0;

/// Work below which nothing is measured for shares: a device opens more slowly than they could ever make up for.
const LEAST_WORK: f64 = 1e5;

/// A set of devices that was considered, and the time of an iteration that it was expected to take.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DeviceSet {
    /// Numbers of the devices in `declive devices`; none for the host.
    pub devices: Vec<Option<usize>>,
    /// Seconds of an iteration.
    pub seconds: f64,
    /// Whether a former solve took so long, so that nothing had to be predicted.
    pub is_remembered: bool,
}

/// What was expected of a solve before it began.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Forecast {
    /// Seconds of an iteration, if anything is known.
    pub seconds: Option<f64>,
    /// The sets of devices that were compared, if there was a choice.
    pub considered: Vec<DeviceSet>,
    /// Time that it took to measure what the decision needs.
    pub time: Duration,
}

/// A choice of devices and rows.
pub(super) struct Chosen {
    pub(super) placement: Placement,
    /// Devices that were considered and are not used.
    pub(super) rejected: Vec<Rejected>,
    pub(super) forecast: Forecast,
}

/// A set of devices, its shares and its time.
struct Offer {
    devices: Vec<Option<Info>>,
    shares: Vec<f64>,
    source: ShareSource,
    /// Seconds of the slowest rank's kernels.
    kernels: f64,
    meeting: Option<f64>,
    seconds: f64,
    is_remembered: bool,
}

/// Chooses devices and rows for a system that the ranks get as `rows`.
pub(super) fn choose(whole: &Whole, rows: &Arc<Csr>, selection: &Selection) -> Result<Chosen> {
    let start = Instant::now();
    let devices = &selection.ranks;
    let even = |devices: &[Option<Info>]| (devices.to_vec(), vec![1.0; devices.len()], ShareSource::Even);
    let mut forecast = Forecast::default();
    let mut rejected = Vec::new();
    let (devices, shares, source) = if let Some(shares) = &whole.setup.shares {
        (devices.clone(), shares.of_ranks(devices.len())?.to_vec(), ShareSource::ByHand)
    } else if devices.len() + selection.beside.len() == 1
        || whole.setup.tune == Tune::Off && whole.setup.devices != Choice::Auto
    {
        even(devices)
    } else {
        let mut ground = Ground::new(whole, rows, devices);
        let offer = match &whole.setup.devices {
            Choice::Auto => {
                let offer = ground.best(selection, &mut forecast, &mut rejected);
                Some(ground.with_processors(selection, offer, &mut forecast, &mut rejected))
            }
            Choice::List(_) => ground.offer(devices, false),
        };
        match offer {
            Some(offer) => {
                forecast.seconds = offer.seconds.is_finite().then_some(offer.seconds);
                (offer.devices, offer.shares, offer.source)
            }
            None => even(devices),
        }
    };
    let ranges = match source {
        ShareSource::ByHand => row_ranges_by(rows, &shares),
        _ => fit::row_ranges(rows, &shares, &devices, &whole.setup),
    };
    for set in &forecast.considered {
        let name = |device: &Option<usize>| device.map_or_else(|| "host".into(), |index| format!("[{index}]"));
        let names: Vec<_> = set.devices.iter().map(name).collect();
        let how = if set.is_remembered { "took in a former solve" } else { "would take" };
        log::info!("an iteration on {} {how} {}", names.join(" + "), micros(set.seconds));
    }
    forecast.time = start.elapsed();
    Ok(Chosen { placement: Placement { devices, rows: ranges, source }, rejected, forecast })
}

/// A system, and what is known of the devices for it.
struct Ground<'a> {
    whole: &'a Whole,
    rows: &'a Arc<Csr>,
    /// The work of an iteration.
    work: f64,
    /// How many ranks there may be.
    most: usize,
    store: Store,
    /// What the store has, by the first device of a set.
    known: BTreeMap<Device, Known>,
    /// Speeds by kinds of devices, and whether they are remembered.
    speeds: BTreeMap<String, Option<(Speed, bool)>>,
    measures: bool,
}

impl<'a> Ground<'a> {
    fn new(whole: &'a Whole, rows: &'a Arc<Csr>, devices: &[Option<Info>]) -> Self {
        let tune = whole.setup.tune;
        let mut new = Self {
            whole,
            rows,
            work: cost(rows, &(0..rows.n_rows())) as f64,
            most: devices.len(),
            store: if tune == Tune::Off { Store::none() } else { whole.store.clone() },
            known: BTreeMap::new(),
            speeds: BTreeMap::new(),
            measures: matches!(tune, Tune::Quick | Tune::Full),
        };
        // a speed that some set of devices has shown holds for all of its kinds
        let sets = placement::counts(devices.len()).into_iter().map(|count| &devices[..count]);
        let sets = sets.chain(devices.iter().map(std::slice::from_ref));
        for (set, entry) in sets.filter_map(|set| Some((set, new.pace(set)?))).collect::<Vec<_>>() {
            for (device, speed) in set.iter().zip(entry.speeds().unwrap_or_default()) {
                if speed > 0.0 {
                    let speed = Speed::proportional(new.work, 1.0 / speed);
                    new.speeds.entry(kind(device)).or_insert(Some((speed, true)));
                }
            }
        }
        new
    }

    /// What is known of the first device of these that is not the host.
    fn known(&mut self, devices: &[Option<Info>]) -> Option<&Known> {
        let device = Device::from(devices.iter().flatten().next()?);
        let store = &self.store;
        Some(self.known.entry(device).or_insert_with_key(|device| store.load(device)))
    }

    /// How fast these devices solved this system, if they did.
    fn pace(&mut self, devices: &[Option<Info>]) -> Option<PaceEntry> {
        let key = self.whole.pace_key(devices, self.rows);
        self.known(devices)?.pace(&key).cloned()
    }

    /// What these devices need to meet: as was measured once on this machine, or now.
    fn meeting(&mut self, devices: &[Option<Info>]) -> Option<f64> {
        let key = MeetingKey::new(devices);
        if let Some(entry) = self.known(devices)?.meeting(&key) {
            return Some(entry.seconds);
        }
        if !self.measures {
            return None;
        }
        let seconds = meeting::seconds(devices)
            .map_err(|e| log::warn!("what {} ranks need to meet can't be measured: {e}", devices.len()))
            .ok()?;
        log::info!("{} ranks need {:.1} µs to meet", devices.len(), 1e6 * seconds);
        let owner = Device::from(devices.iter().flatten().next()?);
        self.store.insert_meeting(&owner, MeetingEntry::new(key, seconds));
        Some(seconds)
    }

    /// How fast a device is on rows of the system: as it was in a former solve of it, or measured now, once for each kind.
    fn speed(&mut self, device: &Option<Info>) -> Option<(Speed, bool)> {
        let kind = kind(device);
        if let Some(known) = self.speeds.get(&kind) {
            return *known;
        }
        let speed = if self.measures { self.measured(device) } else { None };
        self.speeds.insert(kind, speed);
        speed
    }

    fn measured(&self, device: &Option<Info>) -> Option<(Speed, bool)> {
        let time = |parts: f64| {
            let sample = sample(self.rows, parts);
            let work = cost(self.rows, &sample) as f64;
            let seconds = speed::seconds(device.as_ref(), self.rows, sample, &self.whole.setup)
                .map_err(|e| log::warn!("{}: its speed can't be measured: {e}", kind(device)))
                .ok()?;
            log::info!("{}: {:.1} µs for {work} of work", kind(device), 1e6 * seconds);
            (work > 0.0 && seconds > 0.0).then_some((work, seconds))
        };
        let less = time(self.most as f64)?;
        // alone it may have all rows, if it can hold them
        let is_asked = self.whole.setup.devices == Choice::Auto && self.most > 1;
        let holds_all = fit::holds(self.rows, device.as_ref(), &self.whole.setup);
        let more = if is_asked && holds_all { time(1.0).unwrap_or(less) } else { less };
        let measured = if more.0 > 1.5 * less.0 { [less, more] } else { [more; 2] };
        Some((Speed { measured }, false))
    }

    /// Shares and the time of an iteration for these devices; without a time, where the shares alone are known. `None` if
    /// nothing is.
    fn offer(&mut self, devices: &[Option<Info>], must_be_timed: bool) -> Option<Offer> {
        let is_alone = devices.len() == 1;
        if let Some(entry) = self.pace(devices)
            && let Some(shares) = entry.speeds()
        {
            let kernels = entry.kernels.iter().copied().fold(0.0, f64::max);
            let meeting = if is_alone {
                None
            } else {
                self.known(devices)?.meeting(&MeetingKey::new(devices)).map(|m| m.seconds)
            };
            let (devices, source) = (devices.to_vec(), ShareSource::Remembered);
            return Some(Offer {
                devices,
                shares,
                source,
                kernels,
                meeting,
                seconds: entry.whole,
                is_remembered: true,
            });
        }
        let one_kind = devices.iter().all(|device| kind(device) == kind(&devices[0]));
        if (one_kind || self.work < LEAST_WORK) && !must_be_timed {
            return None; // nothing that is not known without
        }
        let speeds: Vec<(Speed, bool)> = devices.iter().map(|device| self.speed(device)).collect::<Option<_>>()?;
        let all_remembered = speeds.iter().all(|(_, is_remembered)| *is_remembered);
        let speeds: Vec<Speed> = speeds.into_iter().map(|(speed, _)| speed).collect();
        let (shares, kernels) = placement::shared(self.work, &speeds);
        let source = match (one_kind, all_remembered) {
            (true, _) => ShareSource::Even,
            (false, true) => ShareSource::Remembered,
            (false, false) => ShareSource::Measured,
        };
        let meeting = match (is_alone, must_be_timed) {
            (true, _) => None,
            (false, true) => Some(self.meeting(devices)?),
            (false, false) => {
                self.known(devices).and_then(|known| known.meeting(&MeetingKey::new(devices))).map(|m| m.seconds)
            }
        };
        let seconds = if is_alone || meeting.is_some() {
            placement::seconds(kernels, if is_alone { 0.0 } else { self.halo(devices.len()) }, meeting)
        } else {
            f64::NAN
        };
        Some(Offer { devices: devices.to_vec(), shares, source, kernels, meeting, seconds, is_remembered: false })
    }

    /// Seconds that a rank's halo is on its way, by a sample of the rows.
    fn halo(&self, ranks: usize) -> f64 {
        let elements = Locality::of(self.rows, ranks).sent * self.rows.n_rows() as f64 / ranks as f64;
        elements * HALO_SECONDS
    }

    /// The best set of the devices that may be used.
    fn best(&mut self, selection: &Selection, forecast: &mut Forecast, rejected: &mut Vec<Rejected>) -> Option<Offer> {
        let mut devices = selection.ranks.clone();
        if devices.len() > 1 {
            self.sort(&mut devices);
        }
        let holds_all = fit::holds(self.rows, devices[0].as_ref(), &self.whole.setup);
        let others = devices[1..].iter().flatten().chain(&selection.beside);
        if holds_all && self.is_small(&devices[0], devices.len() + selection.beside.len()) {
            rejected.extend(others.map(|device| Rejected { device: device.clone(), reason: small_reason() }));
            devices.truncate(1);
            return Some(self.one(devices));
        }
        if devices.len() == 1 {
            return self.offer(&devices, self.measures).or_else(|| Some(self.one(devices)));
        }
        let mut offers: Vec<Offer> = Vec::new();
        for count in placement::counts(devices.len()) {
            let set = &devices[..count];
            // what can't be faster than the best so far need not be measured
            let best = offers.iter().map(|offer| offer.seconds).fold(f64::INFINITY, f64::min);
            let alone = offers.first().filter(|offer| offer.devices.len() == 1).map(|offer| offer.seconds);
            let is_hopeless = alone.is_some_and(|alone| alone / count as f64 + 0.5 * LEAST_MEETING > best);
            if !fit::can_hold(self.rows, set, &self.whole.setup) || is_hopeless {
                continue;
            }
            offers.extend(self.offer(set, true).filter(|offer| offer.seconds.is_finite()));
        }
        forecast.considered = offers.iter().map(set_of).collect();
        // nothing to compare: all of them, as far as is known
        let has_all = offers.iter().any(|offer| offer.devices.len() == devices.len());
        let chosen = offers.iter().enumerate().min_by(|(_, one), (_, other)| one.seconds.total_cmp(&other.seconds));
        let chosen = match chosen {
            Some((k, _)) if offers.len() > 1 || has_all || self.measures => offers.swap_remove(k),
            _ => return None,
        };
        for device in devices.iter().flatten().filter(|device| !uses(&chosen, device)) {
            let larger =
                offers.iter().filter(|other| other.devices.len() > chosen.devices.len() && uses(other, device));
            let reason = why_not(&chosen, larger.min_by(|one, other| one.seconds.total_cmp(&other.seconds)));
            rejected.push(Rejected { device: device.clone(), reason });
        }
        Some(chosen)
    }

    /// With the processor beside GPUs, if that makes an iteration faster. What it can save at most is told by how fast the
    /// host reads the matrix: nothing else is measured unless that is more than it costs to meet.
    fn with_processors(
        &mut self,
        selection: &Selection,
        offer: Option<Offer>,
        forecast: &mut Forecast,
        rejected: &mut Vec<Rejected>,
    ) -> Offer {
        let (devices, shares) = (selection.ranks.clone(), vec![1.0; selection.ranks.len()]);
        let as_before = || Offer { shares, ..self.one(devices) };
        let mut offer = offer.unwrap_or_else(as_before);
        for processor in &selection.beside {
            if rejected.iter().any(|other| other.device.index == processor.index) {
                continue; // as the system is small
            }
            let now = offer.seconds;
            let reason = if now.is_finite() {
                let own = placement::BYTES * self.work / (DOUBT * self.host_rate());
                let saved = now * now / (now + own);
                if saved <= LEAST_MEETING {
                    let [saved, now, meeting] = [saved, now, LEAST_MEETING].map(micros);
                    format!(
                        "it would take {saved} off an iteration of {now} at most, but devices need {meeting} or more to meet"
                    )
                } else {
                    let set: Vec<_> = offer.devices.iter().cloned().chain([Some(processor.clone())]).collect();
                    match self.offer(&set, true).filter(|with| with.seconds.is_finite()) {
                        Some(with) => {
                            forecast.considered.push(set_of(&with));
                            if with.seconds < now {
                                offer = with;
                                continue;
                            }
                            why_not(&offer, Some(&with))
                        }
                        None => format!(
                            "it would take {} off an iteration at most (--devices all would use it)",
                            micros(saved)
                        ),
                    }
                }
            } else {
                "a CPU adds little beside GPUs (--devices all would use it)".into()
            };
            rejected.push(Rejected { device: processor.clone(), reason });
        }
        offer
    }

    /// Bytes a second that the host reads of the matrix, on all its threads.
    fn host_rate(&self) -> f64 {
        let values = self.rows.values();
        let start = Instant::now();
        let sum: f64 = values.par_chunks(1 << 14).map(|values| values.iter().sum::<f64>()).sum();
        std::hint::black_box(sum);
        (8 * values.len()) as f64 / start.elapsed().as_secs_f64().max(1e-9)
    }

    /// The only device, of which nothing need be known.
    fn one(&self, devices: Vec<Option<Info>>) -> Offer {
        let (shares, source) = (vec![1.0], ShareSource::Even);
        Offer { devices, shares, source, kernels: f64::NAN, meeting: None, seconds: f64::NAN, is_remembered: false }
    }

    /// The fastest first: as was measured where kinds differ, or else by units and clock.
    fn sort(&mut self, devices: &mut [Option<Info>]) {
        let rated =
            |device: &Option<Info>| device.as_ref().map_or(0, |d| u64::from(d.compute_units) * u64::from(d.clock_mhz));
        devices.sort_by_key(|device| std::cmp::Reverse(rated(device)));
        if devices.iter().any(|device| kind(device) != kind(&devices[0])) && !self.is_small(&devices[0], devices.len())
        {
            let work = self.work / devices.len() as f64;
            let seconds: Vec<f64> = devices
                .iter()
                .map(|device| self.speed(device).map_or(f64::INFINITY, |(speed, _)| speed.seconds(work)))
                .collect();
            let mut order: Vec<usize> = (0..devices.len()).collect();
            order.sort_by(|&one, &other| seconds[one].total_cmp(&seconds[other]));
            let sorted: Vec<_> = order.into_iter().map(|k| devices[k].clone()).collect();
            devices.clone_from_slice(&sorted);
        }
    }

    /// Whether the first device alone is enough, by what can be told without a measurement.
    fn is_small(&mut self, device: &Option<Info>, ranks: usize) -> bool {
        let Some(first) = device else { return false };
        let known = self.slowest_seen(device).map(|rate| self.work / rate);
        let most = known.unwrap_or_else(|| placement::most_seconds(self.work, first.compute_units, first.clock_mhz));
        placement::is_enough(most, ranks)
    }

    /// The least work a second that a device of this kind did in any former solve.
    fn slowest_seen(&mut self, device: &Option<Info>) -> Option<f64> {
        let kind = kind(device);
        let known = self.known(std::slice::from_ref(device))?;
        let rates = known.paces.iter().flat_map(|entry| {
            let work = (entry.key.entries + 7 * entry.key.rows) as f64;
            let ranks = entry.key.devices.iter().zip(entry.shares.iter().zip(&entry.kernels));
            let own = ranks.filter(|(other, (share, seconds))| **other == kind && **share > 0.0 && **seconds > 0.0);
            own.map(move |(_, (share, seconds))| work * share / seconds)
        });
        rates.min_by(f64::total_cmp)
    }
}

fn uses(offer: &Offer, device: &Info) -> bool {
    offer.devices.iter().flatten().any(|used| used.index == device.index)
}

fn set_of(offer: &Offer) -> DeviceSet {
    DeviceSet {
        devices: offer.devices.iter().map(|device| device.as_ref().map(|device| device.index)).collect(),
        seconds: offer.seconds,
        is_remembered: offer.is_remembered,
    }
}

fn micros(seconds: f64) -> String {
    let digits = if seconds < 100e-6 { 1 } else { 0 };
    format!("{:.digits$} µs", 1e6 * seconds)
}

/// Why others are not used where one device is enough.
fn small_reason() -> String {
    format!("an iteration takes one device less than several need to meet: {} at least", micros(LEAST_MEETING))
}

/// Why a set that has a device is not taken.
fn why_not(chosen: &Offer, with: Option<&Offer>) -> String {
    let Some(with) = with else {
        return format!("the others take {} an iteration, which more could hardly save", micros(chosen.seconds));
    };
    let saved = micros((chosen.kernels - with.kernels).max(0.0));
    let so = format!("{} with it in place of {}", micros(with.seconds), micros(chosen.seconds));
    match with.meeting {
        Some(meeting) => format!(
            "an iteration would take {so}: kernels take {saved} less, but {} ranks need {} to meet",
            with.devices.len(),
            micros(meeting)
        ),
        None => format!("an iteration takes {so}, as a former solve showed"),
    }
}

/// Rows from the middle that have a part of the work, but no more entries than a sample needs.
fn sample(a: &Csr, parts: f64) -> Range<usize> {
    let parts = parts.max(a.nnz() as f64 / SAMPLE as f64).max(1.0);
    let beside = (1.0 - 1.0 / parts) / 2.0;
    row_ranges_by(a, &[beside, 1.0 / parts, beside]).swap_remove(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::matrix::gallery;
    use crate::solver::Setup;

    #[test]
    fn samples_are_from_the_middle() {
        let a = gallery::poisson2d([100, 100]).unwrap();
        assert_eq!(sample(&a, 1.0), 0..10_000);
        let quarter = sample(&a, 4.0);
        assert!(quarter.len().abs_diff(2500) < 10 && quarter.start.abs_diff(3750) < 10, "{quarter:?}");
    }

    /// Devices that pass for different GPUs of one kind.
    fn gpus(count: usize) -> Vec<Option<Info>> {
        let device = list().devices.into_iter().next().expect("the tests need an OpenCL device");
        (0..count)
            .map(|index| {
                Some(Info::clone(&device)).map(|mut info| {
                    info.index = 100 + index;
                    info
                })
            })
            .collect()
    }

    /// As if these were what `auto` may use.
    fn selection(ranks: Vec<Option<Info>>, beside: Vec<Info>) -> Selection {
        Selection { ranks, rejected: Vec::new(), beside, note: None }
    }

    fn whole(a: &Arc<Csr>, tune: Tune, store: &Store) -> Whole {
        Whole::new(Arc::clone(a), a, None, 1.0, &Setup { tune, ..Setup::default() }, store.clone())
    }

    /// Remembers that the first so many of `devices` took `kernels` and `seconds` for a system.
    fn remember(whole: &Whole, devices: &[Option<Info>], count: usize, kernels: f64, seconds: f64) {
        let key = whole.pace_key(&devices[..count], &whole.a);
        let entry = PaceEntry::new(key, vec![1.0 / count as f64; count], vec![kernels; count], seconds);
        whole.store.insert_pace(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
    }

    fn meet(store: &Store, devices: &[Option<Info>], count: usize, seconds: f64) {
        let entry = MeetingEntry::new(MeetingKey::new(&devices[..count]), seconds);
        store.insert_meeting(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
    }

    #[test]
    fn the_number_of_devices_by_what_is_remembered() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let devices = gpus(4);
        // seconds alone; who is chosen, for meetings of 97 and 148 µs: as on H200s
        for (alone, expected) in [(11.8e-6, 1), (24.6e-6, 1), (213e-6, 4), (2032e-6, 4), (140e-6, 2)] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::at(dir.path());
            let whole = whole(&a, Tune::Stored, &store);
            remember(&whole, &devices, 1, alone, alone);
            meet(&store, &devices, 2, 97e-6);
            meet(&store, &devices, 4, 148e-6);
            let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
            assert_eq!(chosen.placement.devices.len(), expected, "{alone}");
            assert_eq!(chosen.rejected.len(), 4 - expected, "{alone}");
            assert!(chosen.rejected.iter().all(|one| one.reason.contains("µs")), "{:?}", chosen.rejected);
            if alone == 140e-6 {
                let reason = &chosen.rejected[0].reason;
                assert!(reason.contains("4 ranks need 148 µs to meet"), "{reason}");
                assert_eq!(chosen.forecast.considered.len(), 3);
            }
        }
    }

    /// What four really took overrules what was expected of them.
    #[test]
    fn former_solves_overrule_the_model() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let devices = gpus(4);
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let whole = whole(&a, Tune::Stored, &store);
        remember(&whole, &devices, 1, 213e-6, 213e-6);
        remember(&whole, &devices, 4, 85e-6, 186e-6);
        meet(&store, &devices, 2, 97e-6);
        meet(&store, &devices, 4, 148e-6);
        let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
        assert_eq!(chosen.placement.devices.len(), 2);
        let sets = &chosen.forecast.considered;
        assert_eq!(sets.iter().map(|set| set.is_remembered).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(chosen.forecast.seconds, Some(sets[1].seconds));
    }

    #[test]
    fn small_systems_ask_for_nothing() {
        let a = Arc::new(gallery::poisson2d([20, 20]).unwrap());
        let mut devices = gpus(3);
        for device in devices.iter_mut().flatten() {
            (device.compute_units, device.clock_mhz) = (132, 1980); // as a GPU has them
        }
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let processor = gpus(9).pop().flatten().unwrap();
        let whole = whole(&a, Tune::Quick, &store);
        let chosen = choose(&whole, &a, &selection(devices, vec![processor])).unwrap();
        assert_eq!((chosen.placement.devices.len(), chosen.placement.rows.as_slice()), (1, [0..400].as_slice()));
        assert_eq!(chosen.rejected.len(), 3);
        assert!(chosen.rejected.iter().all(|one| one.reason == small_reason()));
        assert_eq!(store.list(), [], "nothing was measured");
    }

    /// Where nothing is known and nothing may be measured: all of them, evenly.
    #[test]
    fn without_any_number_all_work() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let mut devices = gpus(3);
        for device in devices.iter_mut().flatten() {
            (device.compute_units, device.clock_mhz) = (1, 1);
        }
        for tune in [Tune::Off, Tune::Stored] {
            let chosen = choose(&whole(&a, tune, &Store::none()), &a, &selection(devices.clone(), Vec::new())).unwrap();
            assert_eq!((chosen.placement.devices.len(), chosen.placement.source), (3, ShareSource::Even));
            assert_eq!((chosen.rejected.len(), chosen.forecast.seconds), (0, None));
        }
    }

    #[test]
    fn what_is_measured_is_kept() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let mut devices = gpus(2);
        for device in devices.iter_mut().flatten() {
            (device.index, device.compute_units, device.clock_mhz) = (0, 1, 1);
        }
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let chosen = choose(&whole(&a, Tune::Quick, &store), &a, &selection(devices.clone(), Vec::new())).unwrap();
        let considered = &chosen.forecast.considered;
        assert!(chosen.forecast.seconds.is_some_and(|seconds| seconds > 0.0) && !considered.is_empty());
        let known = store.load(&Device::from(devices[0].as_ref().unwrap()));
        // to meet was measured if it could have paid
        assert_eq!(known.meetings.len(), considered.len() - 1);
    }

    /// Kinds that differ: faster devices get more, as they were, or as they are measured to be.
    #[test]
    fn shares_by_speed() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let setup = Setup { devices: "0,host".parse().unwrap(), tune: Tune::Quick, ..Setup::default() };
        let devices = vec![gpus(1).remove(0), None];
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let whole = Whole::new(Arc::clone(&a), &a, None, 1.0, &setup, store.clone());
        let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
        assert_eq!(chosen.placement.source, ShareSource::Measured);
        assert_eq!(chosen.placement.rows[1].end, a.n_rows());
        let key = whole.pace_key(&devices, &a);
        let entry = PaceEntry::new(key, vec![0.5, 0.5], vec![1e-4, 3e-4], 4e-4);
        store.insert_pace(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
        for tune in [Tune::Stored, Tune::Quick, Tune::Full] {
            let setup = Setup { tune, ..setup.clone() };
            let whole = Whole::new(Arc::clone(&a), &a, None, 1.0, &setup, store.clone());
            let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
            assert_eq!((chosen.placement.source, chosen.forecast.seconds), (ShareSource::Remembered, Some(4e-4)));
            let first = cost(&a, &chosen.placement.rows[0]) as f64 / cost(&a, &(0..a.n_rows())) as f64;
            assert!((first - 0.75).abs() < 1e-3, "{first}");
        }
        let off = Whole::new(Arc::clone(&a), &a, None, 1.0, &Setup { tune: Tune::Off, ..setup }, store);
        let chosen = choose(&off, &a, &selection(devices, Vec::new())).unwrap();
        assert_eq!(chosen.placement.source, ShareSource::Even);
    }

    /// What it could save is less than it costs to meet: it is not even opened.
    #[test]
    fn a_processor_beside_a_fast_gpu() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let devices = gpus(1);
        let processor = gpus(9).pop().flatten().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let whole = whole(&a, Tune::Stored, &store);
        remember(&whole, &devices, 1, 1e-4, 1e-4);
        let both = || selection(devices.clone(), vec![processor.clone()]);
        let chosen = choose(&whole, &a, &both()).unwrap();
        assert_eq!((chosen.placement.devices.len(), chosen.rejected.len()), (1, 1));
        assert!(chosen.rejected[0].reason.contains("µs"), "{}", chosen.rejected[0].reason);
    }
}
