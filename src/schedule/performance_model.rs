//! A system and the devices for it: what is known of their speed and latency, what can be measured, and the best
//! set of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::forecast::{Forecast, Prediction, micros, sample, set_of, small_reason, uses, why_not};
use super::placement::{self, LEAST_BY_HOST, LEAST_LATENCY, Speed, Synchronization};
use super::{latency, speed};
use crate::device::{Choice, Info, Kind, Rejected, Selection};
use crate::kernels::products::MEETING_BYTES;
use crate::matrix::Csr;
use crate::matrix::reorder::Locality;
use crate::operator::Exchange;
use crate::partition::{ENTRY_BYTES, cost, cost_of};
use crate::runtime::{ShareSource, Whole, memory_check};
use crate::tune::Tune;
use crate::tune::store::{Device, IterationTimeEntry, Known, LatencyEntry, LatencyKey, Store, kind};

/// How many times faster than it seems the processor's memory may be, when it is said that it would not help GPUs.
const DOUBT: f64 = 2.0;

/// What an unknown processor has to save of an iteration at least: its compiler and its measurement take some seconds, once.
const LEAST_TO_MEASURE: f64 = 500e-6;

/// Rows of a sample on which kernels have next to nothing to do.
const NEXT_TO_NOTHING: f64 = 1024.0;

/// Work below which nothing is measured for shares: a device opens more slowly than they could ever make up for.
const LEAST_WORK: f64 = 1e5;

/// A system, and what is known of the devices for it.
pub(crate) struct PerformanceModel<'a> {
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
    /// The latencies that were measured just now; nothing where they could not be.
    measured: BTreeMap<LatencyKey, Option<f64>>,
    measures: bool,
}

/// How fast devices are on rows of a system that they share with others, and whether that is remembered; `None` where it is not known and
/// may not be measured.
pub(crate) fn speeds(whole: &Whole, rows: &Arc<Csr>, devices: &[Option<Info>]) -> Vec<Option<(Speed, bool)>> {
    let mut model = PerformanceModel::new(whole, rows, devices);
    devices.iter().map(|device| model.speed(device)).collect()
}

impl<'a> PerformanceModel<'a> {
    pub(crate) fn new(whole: &'a Whole, rows: &'a Arc<Csr>, devices: &[Option<Info>]) -> Self {
        let tune = whole.setup.tune;
        let mut new = Self {
            whole,
            rows,
            work: cost(rows, &(0..rows.n_rows())) as f64,
            most: devices.len(),
            store: if tune == Tune::Off { Store::none() } else { whole.store.clone() },
            known: BTreeMap::new(),
            speeds: BTreeMap::new(),
            measured: BTreeMap::new(),
            measures: matches!(tune, Tune::Quick | Tune::Full),
        };
        new.remember_speeds(devices);
        new
    }

    /// A speed that some set of devices has shown holds for all of its kinds.
    fn remember_speeds(&mut self, devices: &[Option<Info>]) {
        let sets = placement::counts(devices.len()).into_iter().map(|count| &devices[..count]);
        let sets = sets.chain(devices.iter().map(std::slice::from_ref));
        for set in sets {
            if set.iter().all(|device| self.speeds.contains_key(&kind(device))) {
                continue;
            }
            let Some(speeds) = self.iteration_time(set).and_then(|entry| entry.speeds()) else { continue };
            for (device, speed) in set.iter().zip(speeds).filter(|(_, speed)| *speed > 0.0) {
                let speed = Speed::proportional(self.work, 1.0 / speed);
                self.speeds.entry(kind(device)).or_insert(Some((speed, true)));
            }
        }
    }

    /// What is known of the first device of these that is not the host.
    fn known(&mut self, devices: &[Option<Info>]) -> Option<&Known> {
        let device = Device::from(devices.iter().flatten().next()?);
        let store = &self.store;
        Some(self.known.entry(device).or_insert_with_key(|device| store.load(device)))
    }

    /// How fast these devices solved this system, if they did.
    fn iteration_time(&mut self, devices: &[Option<Info>]) -> Option<IterationTimeEntry> {
        let key = self.whole.iteration_time_key(devices, self.rows);
        self.known(devices)?.iteration_time(&key).cloned()
    }

    /// How so many ranks exchange their halos: large ones by the host in any case.
    fn exchange(&self, ranks: usize) -> Exchange {
        let a = &self.whole.a;
        let bytes = (48 * a.n_rows() + 4 * a.nnz()) as u64 / ranks as u64; // of `cg`, in a format that saves bytes
        match self.whole.setup.exchange {
            exchange if exchange.is_live() && bytes > MEETING_BYTES => Exchange::HostStaged,
            exchange => exchange,
        }
    }

    /// Whether kernels of these devices exchange while they run, if they have the memory for it.
    fn may_meet(&self, devices: &[Option<Info>]) -> bool {
        let exchange = self.exchange(devices.len());
        let meets = |device: &Option<Info>| match device {
            Some(device) => device.kind == Kind::Gpu,
            None => exchange == Exchange::Live,
        };
        exchange.is_live() && devices.iter().all(meets)
    }

    fn latency_key(&self, devices: &[Option<Info>]) -> LatencyKey {
        LatencyKey::new(self.exchange(devices.len()), devices)
    }

    /// The latency of these devices, if it was measured.
    fn known_latency(&mut self, devices: &[Option<Info>]) -> Option<f64> {
        let key = self.latency_key(devices);
        match self.measured.get(&key) {
            Some(latency) => *latency,
            None => Some(self.known(devices)?.latency(&key)?.seconds),
        }
    }

    /// The same: as was measured once on this machine, or now.
    fn latency(&mut self, devices: &[Option<Info>]) -> Option<f64> {
        let (key, known) = (self.latency_key(devices), self.known_latency(devices));
        if known.is_some() || !self.measures || self.measured.contains_key(&key) {
            return known;
        }
        let owner = Device::from(devices.iter().flatten().next()?);
        let (count, latency) = (devices.len(), latency::seconds(self.exchange(devices.len()), devices));
        match &latency {
            Ok(seconds) => {
                log::info!("{count} ranks take {:.1} µs to synchronise", 1e6 * seconds);
                self.store.insert_latency(&owner, LatencyEntry::new(key.clone(), *seconds));
            }
            Err(e) => log::warn!("how long {count} ranks take to synchronise can't be measured: {e}"),
        }
        let latency = latency.ok();
        self.measured.insert(key, latency);
        latency
    }

    /// How fast a device is on rows of the system: as it was in a former solve of it, or measured now, once for each kind.
    fn speed(&mut self, device: &Option<Info>) -> Option<(Speed, bool)> {
        let kind = kind(device);
        if let Some(known) = self.speeds.get(&kind) {
            return *known;
        }
        let speed = if self.measures { self.measured(device) } else { None };
        if let Some((speed, _)) = speed
            && let Some(owner) = device
        {
            // of an iteration nothing is known by that
            let key = self.whole.iteration_time_key(std::slice::from_ref(device), self.rows);
            let entry = IterationTimeEntry::new(key, vec![1.0], vec![speed.seconds(self.work)], 0.0);
            self.store.insert_iteration_time(&Device::from(owner), entry);
        }
        self.speeds.insert(kind, speed);
        speed
    }

    fn measured(&self, device: &Option<Info>) -> Option<(Speed, bool)> {
        // alone it may have all rows, if it can hold them
        let is_asked = self.whole.setup.devices == Choice::Auto && self.most > 1;
        let has_all = is_asked && memory_check::holds(self.rows, device.as_ref(), &self.whole.setup);
        let parts = [
            self.rows.n_rows() as f64 / NEXT_TO_NOTHING,
            self.most as f64,
            if has_all { 1.0 } else { self.most as f64 },
        ];
        let mut samples: Vec<_> = parts.iter().map(|&parts| sample(self.rows, parts)).collect();
        samples.dedup();
        let seconds = speed::seconds(device.as_ref(), self.rows, &samples, &self.whole.setup)
            .map_err(|e| log::warn!("{}: its speed can't be measured: {e}", kind(device)))
            .ok()?;
        let work = samples.iter().map(|rows| cost(self.rows, rows) as f64);
        let measured: Vec<(f64, f64)> = work.zip(seconds).collect();
        for (work, seconds) in &measured {
            log::info!("{}: {:.1} µs for {work} of work", kind(device), 1e6 * seconds);
        }
        let measured = match measured[..] {
            [least, less, more] if more.0 > 1.5 * less.0 => [least, less, more],
            [least, .., more] => [least, more, more],
            [only] => [(0.0, 0.0), only, only],
            [] => return None,
        };
        (measured[2].0 > 0.0 && measured[2].1 > 0.0).then_some((Speed { measured }, false))
    }

    /// Shares and the time of an iteration, as these devices had them when they last solved this system.
    fn remembered(&mut self, devices: &[Option<Info>]) -> Option<Prediction> {
        let entry = self.iteration_time(devices).filter(|entry| entry.whole > 0.0)?;
        // in proportion to the speeds, or as they were
        let shares = entry.speeds().unwrap_or_else(|| entry.shares.clone());
        let kernels = entry.kernels.iter().copied().fold(0.0, f64::max);
        let latency = if devices.len() == 1 { None } else { self.known_latency(devices) };
        let kinds: Vec<_> = devices.iter().map(kind).collect();
        let indices: Vec<_> = devices.iter().map(|device| device.as_ref().map(|device| device.index)).collect();
        let shares = placement::steadied(&shares, &kinds, &indices);
        let (devices, source, seconds) = (devices.to_vec(), ShareSource::Remembered, entry.whole);
        Some(Prediction { devices, shares, source, kernels, latency, seconds, is_remembered: true })
    }

    /// Shares and the time of an iteration for these devices; without a time, where the shares alone are known. `None` if
    /// nothing is.
    pub(crate) fn prediction(&mut self, devices: &[Option<Info>], must_be_timed: bool) -> Option<Prediction> {
        let is_alone = devices.len() == 1;
        let remembered = self.remembered(devices);
        if remembered.is_some() {
            return remembered;
        }
        let one_kind = devices.iter().all(|device| kind(device) == kind(&devices[0]));
        if (one_kind || self.work < LEAST_WORK) && !must_be_timed {
            return None; // nothing that is not known without
        }
        let speeds: Vec<(Speed, bool)> = devices.iter().map(|device| self.speed(device)).collect::<Option<_>>()?;
        let all_remembered = speeds.iter().all(|(_, is_remembered)| *is_remembered);
        let speeds: Vec<Speed> = speeds.into_iter().map(|(speed, _)| speed).collect();
        let (shares, kernels) = placement::shared(self.work, &speeds);
        let meets = !is_alone && self.may_meet(devices);
        let kernels = if meets { kernels.min(placement::in_proportion(self.work, &speeds)) } else { kernels };
        let source = match (one_kind, all_remembered) {
            (true, _) => ShareSource::Even,
            (false, true) => ShareSource::Remembered,
            (false, false) => ShareSource::Measured,
        };
        let latency = match (is_alone, must_be_timed) {
            (true, _) => None,
            (false, true) => Some(self.latency(devices)?),
            (false, false) => self.known_latency(devices),
        };
        let with_halo = |by| placement::seconds(kernels, self.halo(devices.len()), by);
        let seconds = match latency {
            _ if is_alone => placement::seconds(kernels, 0.0, Synchronization::Alone),
            Some(latency) if meets => with_halo(Synchronization::Live(latency)),
            Some(latency) => with_halo(Synchronization::Host(latency)),
            None => f64::NAN,
        };
        Some(Prediction { devices: devices.to_vec(), shares, source, kernels, latency, seconds, is_remembered: false })
    }

    /// Elements of a rank's halo, by a sample of the rows.
    fn halo(&self, ranks: usize) -> f64 {
        Locality::of(self.rows, ranks).sent * self.rows.n_rows() as f64 / ranks as f64
    }

    /// The best set of the devices that may be used.
    pub(crate) fn best(
        &mut self,
        selection: &Selection,
        forecast: &mut Forecast,
        rejected: &mut Vec<Rejected>,
    ) -> Option<Prediction> {
        let mut devices = selection.ranks.clone();
        if devices.len() > 1 {
            self.sort(&mut devices);
        }
        let holds_all = memory_check::holds(self.rows, devices[0].as_ref(), &self.whole.setup);
        let others = devices[1..].iter().flatten().chain(&selection.beside);
        if holds_all && self.is_small(&devices[0], devices.len() + selection.beside.len()) {
            rejected.extend(others.map(|device| Rejected { device: device.clone(), reason: small_reason() }));
            devices.truncate(1);
            return Some(self.one(devices));
        }
        if devices.len() == 1 {
            return self.prediction(&devices, false).or_else(|| Some(self.one(devices)));
        }
        let mut predictions: Vec<Prediction> = Vec::new();
        for count in placement::counts(devices.len()) {
            let set = &devices[..count];
            // what can't be faster than the best so far need not be measured
            let best = predictions.iter().map(|one| one.seconds).fold(f64::INFINITY, f64::min);
            let alone = predictions.first().filter(|one| one.devices.len() == 1).map(|one| one.seconds);
            let is_hopeless = alone.is_some_and(|alone| alone / count as f64 + 0.5 * LEAST_LATENCY > best);
            if !memory_check::can_hold(self.rows, set, &self.whole.setup) || is_hopeless {
                continue;
            }
            predictions.extend(self.prediction(set, true).filter(|one| one.seconds.is_finite()));
        }
        forecast.considered = predictions.iter().map(set_of).collect();
        // nothing to compare: all of them, as far as is known
        let has_all = predictions.iter().any(|one| one.devices.len() == devices.len());
        let chosen =
            predictions.iter().enumerate().min_by(|(_, one), (_, other)| one.seconds.total_cmp(&other.seconds));
        let chosen = match chosen {
            Some((k, _)) if predictions.len() > 1 || has_all || self.measures => predictions.swap_remove(k),
            _ => return None,
        };
        for device in devices.iter().flatten().filter(|device| !uses(&chosen, device)) {
            let larger =
                predictions.iter().filter(|other| other.devices.len() > chosen.devices.len() && uses(other, device));
            let reason = why_not(&chosen, larger.min_by(|one, other| one.seconds.total_cmp(&other.seconds)));
            rejected.push(Rejected { device: device.clone(), reason });
        }
        Some(chosen)
    }

    /// With the processor beside GPUs, if that makes an iteration faster. What it can save at most is told by how fast the
    /// host reads the matrix: nothing else is measured unless that is more than it takes to synchronise, and to measure it.
    pub(crate) fn with_processors(
        &mut self,
        selection: &Selection,
        prediction: Option<Prediction>,
        forecast: &mut Forecast,
        rejected: &mut Vec<Rejected>,
    ) -> Prediction {
        let (devices, shares) = (selection.ranks.clone(), vec![1.0; selection.ranks.len()]);
        let as_before = || Prediction { shares, ..self.one(devices) };
        let mut prediction = prediction.unwrap_or_else(as_before);
        for processor in &selection.beside {
            if rejected.iter().any(|other| other.device.index == processor.index) {
                continue; // as the system is small
            }
            let is_known = prediction.seconds.is_finite();
            let now = if is_known { prediction.seconds } else { self.most_seconds(&prediction.devices) };
            let own = ENTRY_BYTES * self.work / (DOUBT * self.host_rate());
            let saved = now * now / (now + own);
            let set: Vec<_> = prediction.devices.iter().cloned().chain([Some(processor.clone())]).collect();
            self.remember_speeds(&set[set.len() - 1..]);
            let is_measured = self.speeds.contains_key(&kind(&set[set.len() - 1])) || self.remembered(&set).is_some();
            let least = match (is_measured, self.may_meet(&set)) {
                (false, _) => LEAST_TO_MEASURE,
                (true, true) => LEAST_LATENCY,
                (true, false) => LEAST_BY_HOST,
            };
            let with = if is_known && saved > least {
                self.prediction(&set, true).filter(|with| with.seconds.is_finite())
            } else {
                None
            };
            forecast.considered.extend(with.as_ref().map(set_of));
            let reason = match with {
                Some(with) if with.seconds < prediction.seconds => {
                    prediction = with;
                    continue;
                }
                Some(with) => why_not(&prediction, Some(&with)),
                None if saved <= least => {
                    let [saved, now, least] = [saved, now, least].map(micros);
                    let why = if is_measured {
                        format!("devices take {least} or more to synchronise")
                    } else {
                        format!("for less than {least} it is not worth the seconds that measuring it takes")
                    };
                    format!("it would take {saved} off {now} an iteration at most, but {why}")
                }
                None => {
                    format!("it would take {} off an iteration at most (devices = all would use it)", micros(saved))
                }
            };
            rejected.push(Rejected { device: processor.clone(), reason });
        }
        prediction
    }

    /// About the most seconds of an iteration on these devices.
    fn most_seconds(&self, devices: &[Option<Info>]) -> f64 {
        let of = |device: &Info| placement::most_seconds(self.work, device.compute_units, device.clock_mhz);
        devices.iter().flatten().map(of).fold(0.0, f64::max) / devices.len() as f64
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
    fn one(&self, devices: Vec<Option<Info>>) -> Prediction {
        let (shares, source) = (vec![1.0], ShareSource::Even);
        Prediction {
            devices,
            shares,
            source,
            kernels: f64::NAN,
            latency: None,
            seconds: f64::NAN,
            is_remembered: false,
        }
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
        let rates = known.iteration_times.iter().flat_map(|entry| {
            let work = cost_of(entry.key.rows as usize, entry.key.entries as usize) as f64;
            let ranks = entry.key.devices.iter().zip(entry.shares.iter().zip(&entry.kernels));
            let own = ranks.filter(|(other, (share, seconds))| **other == kind && **share > 0.0 && **seconds > 0.0);
            own.map(move |(_, (share, seconds))| work * share / seconds)
        });
        rates.min_by(f64::total_cmp)
    }
}
