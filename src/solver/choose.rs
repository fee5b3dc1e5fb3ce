//! Which devices work on a system, and on which rows: gathers what `placement` decides by, from
//! former runs and by measurement, and no more of it than the decision needs.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ground::{Comparison, Ground};
use super::methods::MethodTime;
use super::placement::LEAST_MEETING;
use super::team::Placement;
use super::whole::Whole;
use super::{Method, Setup, ShareSource, Tune, fit};
use crate::device::{Choice, Info, Rejected, Selection};
use crate::error::Result;
use crate::matrix::Csr;
use crate::partition::row_ranges_by;

/// Entries of a sample on which a device's speed is measured, at most.
const SAMPLE: usize = 32 << 20;

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
    /// The methods that were compared, if there was a choice: `cg` first.
    pub methods: Vec<MethodTime>,
    /// Why the method is the one, in words; `None` where one was asked for, or one rank is all there is.
    pub method_reason: Option<String>,
    /// Time that it took to measure what the decision needs.
    pub time: Duration,
}

/// A choice of devices, method and rows.
pub(super) struct Chosen {
    pub(super) placement: Placement,
    pub(super) method: Method,
    /// Devices that were considered and are not used.
    pub(super) rejected: Vec<Rejected>,
    pub(super) forecast: Forecast,
}

/// A set of devices, its shares and its time.
pub(super) struct Offer {
    pub(super) devices: Vec<Option<Info>>,
    pub(super) shares: Vec<f64>,
    pub(super) source: ShareSource,
    /// Seconds of the slowest rank's kernels.
    pub(super) kernels: f64,
    pub(super) meeting: Option<f64>,
    pub(super) seconds: f64,
    pub(super) is_remembered: bool,
}

/// Chooses devices, method and rows for a system that the ranks get as `rows`: devices first, as if the method were `cg`.
pub(super) fn choose(whole: &Whole, rows: &Arc<Csr>, selection: &Selection) -> Result<Chosen> {
    let start = Instant::now();
    let devices = &selection.ranks;
    let even = |devices: &[Option<Info>]| (devices.to_vec(), vec![1.0; devices.len()], ShareSource::Even);
    let mut forecast = Forecast::default();
    let mut rejected = Vec::new();
    let mut compared = Comparison::cg("nothing is measured where shares are given, or with tune = off");
    let (devices, shares, source) = if let Some(shares) = &whole.setup.shares {
        (devices.clone(), shares.of_ranks(devices.len())?.to_vec(), ShareSource::ByHand)
    } else if devices.len() + selection.beside.len() == 1
        || whole.setup.tune == Tune::Off && whole.setup.devices != Choice::Auto
    {
        even(devices)
    } else {
        let mut ground = Ground::new(whole, rows, devices);
        let mut offer = match &whole.setup.devices {
            Choice::Auto => {
                let offer = ground.best(selection, &mut forecast, &mut rejected);
                Some(ground.with_processors(selection, offer, &mut forecast, &mut rejected))
            }
            Choice::List(_) => ground.offer(devices, false),
        };
        let devices = offer.as_ref().map_or(devices, |offer| &offer.devices).clone();
        if whole.chooses_method && devices.len() > 1 {
            compared = ground.method(&devices, offer.as_ref());
            offer = ground.remembered(compared.method, &devices).or(offer);
        }
        forecast.seconds = offer.as_ref().map(|offer| offer.seconds).filter(|seconds| seconds.is_finite());
        match offer {
            Some(offer) => (offer.devices, offer.shares, offer.source),
            None => even(&devices),
        }
    };
    let mut method = whole.method(devices.len());
    if whole.chooses_method && devices.len() > 1 {
        let taken = compared.considered.iter().find(|time| time.method == compared.method);
        forecast.seconds = taken.map(|time| time.seconds).or(forecast.seconds);
        log::info!("{}: {}", compared.method, compared.reason);
        (method, forecast.methods) = (compared.method, compared.considered);
        forecast.method_reason = Some(compared.reason);
    }
    let ranges = match source {
        ShareSource::ByHand => row_ranges_by(rows, &shares),
        _ => fit::row_ranges(rows, &shares, &devices, &Setup { method, ..whole.setup.clone() }),
    };
    for set in &forecast.considered {
        let name = |device: &Option<usize>| device.map_or_else(|| "host".into(), |index| format!("[{index}]"));
        let names: Vec<_> = set.devices.iter().map(name).collect();
        let how = if set.is_remembered { "took in a former solve" } else { "would take" };
        log::info!("an iteration on {} {how} {}", names.join(" + "), micros(set.seconds));
    }
    forecast.time = start.elapsed();
    Ok(Chosen { placement: Placement { devices, rows: ranges, source }, method, rejected, forecast })
}

pub(super) fn uses(offer: &Offer, device: &Info) -> bool {
    offer.devices.iter().flatten().any(|used| used.index == device.index)
}

pub(super) fn set_of(offer: &Offer) -> DeviceSet {
    DeviceSet {
        devices: offer.devices.iter().map(|device| device.as_ref().map(|device| device.index)).collect(),
        seconds: offer.seconds,
        is_remembered: offer.is_remembered,
    }
}

pub(super) fn micros(seconds: f64) -> String {
    let digits = if seconds < 100e-6 { 1 } else { 0 };
    format!("{:.digits$} µs", 1e6 * seconds)
}

/// Why others are not used where one device is enough.
pub(super) fn small_reason() -> String {
    format!("an iteration takes one device less than several need to meet: {} at least", micros(LEAST_MEETING))
}

/// Why a set that has a device is not taken.
pub(super) fn why_not(chosen: &Offer, with: Option<&Offer>) -> String {
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
pub(super) fn sample(a: &Csr, parts: f64) -> Range<usize> {
    let parts = parts.max(a.nnz() as f64 / SAMPLE as f64).max(1.0);
    let beside = (1.0 - 1.0 / parts) / 2.0;
    row_ranges_by(a, &[beside, 1.0 / parts, beside]).swap_remove(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::matrix::gallery;
    use crate::partition::cost;
    use crate::solver::{Exchange, Precision, Setup};
    use crate::tune::store::{Device, MeetingEntry, MeetingKey, PaceEntry, Store};

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
        system(a, store, &Setup { tune, ..Setup::default() })
    }

    fn system(a: &Arc<Csr>, store: &Store, setup: &Setup) -> Whole {
        Whole::new(Arc::clone(a), a, None, 1.0, setup, store.clone())
    }

    /// Remembers that the first so many of `devices` took `kernels` and `seconds` for a system.
    fn remember(whole: &Whole, devices: &[Option<Info>], count: usize, kernels: f64, seconds: f64) {
        remember_by(Method::Cg, whole, devices, count, kernels, seconds);
    }

    fn remember_by(method: Method, whole: &Whole, devices: &[Option<Info>], count: usize, kernels: f64, seconds: f64) {
        let key = whole.pace_key(method, &devices[..count], &whole.a);
        let entry = PaceEntry::new(key, vec![1.0 / count as f64; count], vec![kernels; count], seconds);
        whole.store.insert_pace(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
    }

    fn meet(store: &Store, devices: &[Option<Info>], count: usize, seconds: f64) {
        meet_by(Method::Cg, store, devices, count, seconds);
    }

    fn meet_by(method: Method, store: &Store, devices: &[Option<Info>], count: usize, seconds: f64) {
        let entry = MeetingEntry::new(MeetingKey::new(method, Exchange::HostStaged, &devices[..count]), seconds);
        store.insert_meeting(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
    }

    #[test]
    fn the_number_of_devices_by_what_is_remembered() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let devices = gpus(4);
        // seconds alone; who is chosen, for meetings of 80 and 120 µs: as on H200s
        for (alone, expected) in [(11.8e-6, 1), (24.6e-6, 1), (213e-6, 4), (2032e-6, 4), (140e-6, 2)] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::at(dir.path());
            let whole = whole(&a, Tune::Stored, &store);
            remember(&whole, &devices, 1, alone, alone);
            meet(&store, &devices, 2, 80e-6);
            meet(&store, &devices, 4, 120e-6);
            let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
            assert_eq!(chosen.placement.devices.len(), expected, "{alone}");
            assert_eq!(chosen.rejected.len(), 4 - expected, "{alone}");
            assert!(chosen.rejected.iter().all(|one| one.reason.contains("µs")), "{:?}", chosen.rejected);
            if alone == 140e-6 {
                let reason = &chosen.rejected[0].reason;
                assert!(reason.contains("4 ranks need 120 µs to meet"), "{reason}");
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

    /// A list of two, and what it comes to where that is known of it: seconds of one's kernels alone, of meetings by both
    /// methods, and of former solves by them, or 0.
    fn method_of_two(setup: &Setup, alone: f64, meetings: [f64; 2], former: [f64; 2]) -> Chosen {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let (mut devices, dir) = (gpus(2), tempfile::tempdir().unwrap());
        for device in devices.iter_mut().flatten() {
            (device.compute_units, device.clock_mhz) = (132, 1980);
        }
        let store = Store::at(dir.path());
        let whole = system(&a, &store, setup);
        remember(&whole, &devices, 1, alone, alone);
        for (method, (meeting, seconds)) in
            [Method::Cg, Method::CgSingleReduction].into_iter().zip(meetings.into_iter().zip(former))
        {
            if meeting > 0.0 {
                meet_by(method, &store, &devices, 2, meeting);
            }
            if seconds > 0.0 {
                remember_by(method, &whole, &devices, 2, alone / 2.0, seconds);
            }
        }
        choose(&whole, &a, &selection(devices, Vec::new())).unwrap()
    }

    #[test]
    fn the_method_by_what_is_remembered() {
        let (cg, single) = (Method::Cg, Method::CgSingleReduction);
        let list = Setup { devices: "0,1".parse().unwrap(), ..Setup::default() };
        // as on two H200s, and with former solves that say otherwise; then the methods that are told of
        for (alone, meetings, former, expected, considered) in [
            (60e-6, [71e-6, 66e-6], [0.0, 0.0], single, 2), // kernels hide behind meetings
            (66e-6, [71e-6, 66e-6], [0.0, 0.0], cg, 2),
            (66e-6, [71e-6, 66e-6], [81e-6, 0.0], cg, 2),
            (213e-6, [71e-6, 66e-6], [0.0, 0.0], cg, 1),
            (60e-6, [71e-6, 0.0], [0.0, 0.0], cg, 1), // what the other needs is not known
            (60e-6, [71e-6, 66e-6], [0.0, 75e-6], cg, 2),
            (60e-6, [71e-6, 66e-6], [60e-6, 0.0], single, 2),
            (213e-6, [71e-6, 66e-6], [140e-6, 120e-6], single, 2),
            (213e-6, [0.0, 0.0], [140e-6, 135e-6], cg, 2), // less than 5 %
        ] {
            let Chosen { method, forecast, placement, .. } = method_of_two(&list, alone, meetings, former);
            let case = format!("{alone} {meetings:?} {former:?}: {forecast:?}");
            assert_eq!((method, placement.devices.len()), (expected, 2), "{case}");
            assert_eq!(forecast.methods.len(), considered, "{case}");
            assert_eq!(forecast.methods[0].method, cg, "{case}");
            let taken = forecast.methods.iter().find(|time| time.method == method).unwrap();
            assert_eq!(forecast.seconds, Some(taken.seconds), "{case}");
            assert!(forecast.method_reason.is_some_and(|reason| reason.contains(cg.name())), "{case}");
        }
    }

    #[test]
    fn the_method_where_nothing_is_to_be_chosen() {
        let list = Setup { devices: "0,1".parse().unwrap(), ..Setup::default() };
        let of = |setup: &Setup| {
            let Chosen { method, forecast, .. } = method_of_two(setup, 60e-6, [71e-6, 66e-6], [0.0, 0.0]);
            assert!(forecast.methods.is_empty(), "{forecast:?}");
            (method, forecast.method_reason)
        };
        // what was asked for
        for &method in Method::FORCED {
            assert_eq!(of(&Setup { method, ..list.clone() }), (method, None));
        }
        // and what may not be known, or may not converge
        for (setup, word) in [
            (Setup { tune: Tune::Off, ..list.clone() }, "tune = off"),
            (Setup { shares: Some("1:3".parse().unwrap()), ..list.clone() }, "shares are given"),
            (Setup { precision: Precision::Mixed, ..list }, "mixed precision"),
        ] {
            let (method, reason) = of(&setup);
            assert!(method == Method::Cg && reason.as_ref().is_some_and(|why| why.contains(word)), "{reason:?}");
        }
        // one alone meets nobody
        let a = Arc::new(gallery::poisson2d([30, 30]).unwrap());
        let chosen = choose(&whole(&a, Tune::Off, &Store::none()), &a, &selection(gpus(1), Vec::new())).unwrap();
        assert_eq!((chosen.method, chosen.forecast.method_reason), (Method::Cg, None));
    }

    /// What could not pay is not measured: neither kernels that are long in any case, nor meetings that are short.
    #[test]
    fn methods_ask_for_little() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let setup = Setup { devices: "0,0".parse().unwrap(), tune: Tune::Quick, ..Setup::default() };
        for (units, meeting, measured) in [(1, 80e-6, (0, 1)), (1_000_000, 41e-6, (0, 1)), (1_000_000, 1.0, (1, 3))] {
            let (mut devices, dir) = (gpus(2), tempfile::tempdir().unwrap());
            for device in devices.iter_mut().flatten() {
                (device.index, device.compute_units, device.clock_mhz) = (0, units, 1);
            }
            let store = Store::at(dir.path());
            meet(&store, &devices, 2, meeting);
            let chosen = choose(&system(&a, &store, &setup), &a, &selection(devices.clone(), Vec::new())).unwrap();
            let known = store.load(&Device::from(devices[0].as_ref().unwrap()));
            assert_eq!((known.paces.len(), known.meetings.len()), measured, "{:?}", chosen.forecast);
            assert_eq!(chosen.method == Method::Cg, meeting < 1.0);
        }
        // nor for a system that is solved before a device is opened
        let a = Arc::new(gallery::poisson2d([30, 30]).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let chosen = choose(&system(&a, &store, &setup), &a, &selection(gpus(2), Vec::new())).unwrap();
        assert_eq!((chosen.method, store.list()), (Method::Cg, Vec::new()));
        assert!(chosen.forecast.method_reason.is_some_and(|reason| reason.contains("not measured")));
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
        assert_eq!((chosen.placement.devices.len(), chosen.placement.rows[0].clone()), (1, 0..400));
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
        let setup = Setup { method: Method::Cg, tune: Tune::Quick, ..Setup::default() };
        let chosen = choose(&system(&a, &store, &setup), &a, &selection(devices.clone(), Vec::new())).unwrap();
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
        let (method, tune) = (Method::Cg, Tune::Quick);
        let setup = Setup { method, devices: "0,host".parse().unwrap(), tune, ..Setup::default() };
        let devices = vec![gpus(1).remove(0), None];
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let whole = Whole::new(Arc::clone(&a), &a, None, 1.0, &setup, store.clone());
        let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
        assert_eq!(chosen.placement.source, ShareSource::Measured);
        assert_eq!(chosen.placement.rows[1].end, a.n_rows());
        let key = whole.pace_key(Method::Cg, &devices, &a);
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

    /// What devices did by another method tells how fast they are, too, whether or not it is taken again.
    #[test]
    fn shares_by_what_another_method_showed() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let setup = Setup { devices: "0,host".parse().unwrap(), tune: Tune::Stored, ..Setup::default() };
        let devices = vec![gpus(1).remove(0), None];
        let single = Method::CgSingleReduction;
        for (meeting, expected) in [(0.0, Method::Cg), (1e-4, Method::Cg), (1e-3, single)] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::at(dir.path());
            let whole = system(&a, &store, &setup);
            let key = whole.pace_key(single, &devices, &a);
            let entry = PaceEntry::new(key, vec![0.5, 0.5], vec![1e-4, 3e-4], 4e-4);
            store.insert_pace(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
            if meeting > 0.0 {
                meet(&store, &devices, 2, meeting);
            }
            let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
            assert_eq!((chosen.method, chosen.placement.source), (expected, ShareSource::Remembered));
            let first = cost(&a, &chosen.placement.rows[0]) as f64 / cost(&a, &(0..a.n_rows())) as f64;
            assert!((first - 0.75).abs() < 1e-3, "{first}");
            // of 2/3 ms in a second, cg needs less, by the bytes: 1/4 of the work takes 1.5e-4 s
            let times: Vec<f64> = chosen.forecast.methods.iter().map(|time| time.seconds).collect();
            match (meeting, times.as_slice()) {
                (0.0, []) => assert_eq!(chosen.forecast.seconds, None),
                (1e-4, &[cg, other]) => {
                    assert!(cg < 0.4 * 1e-4 + 1.5e-4 && cg > 0.4 * 1e-4 + 1.5e-4 / 1.4, "{cg}");
                    assert_eq!((other, chosen.forecast.seconds), (4e-4, Some(cg)));
                }
                (_, &[cg, other]) => assert_eq!((cg, chosen.forecast.seconds), (1e-3, Some(other))),
                other => panic!("{other:?}"),
            }
        }
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
        // of a system that nobody has solved, a bound is all that is asked for
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let mut slow = devices.clone();
        slow.iter_mut().flatten().for_each(|device| (device.compute_units, device.clock_mhz) = (1, 1));
        let both = selection(slow, vec![processor]);
        let chosen = choose(&self::whole(&a, Tune::Quick, &store), &a, &both).unwrap();
        assert_eq!((chosen.placement.devices.len(), chosen.rejected.len(), store.list().len()), (1, 1, 0));
        assert!(chosen.rejected[0].reason.contains("devices = all would use it"), "{}", chosen.rejected[0].reason);
    }
}
