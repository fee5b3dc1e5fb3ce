//! Which devices work on a system, and on which rows: gathers what `placement` decides by, from
//! former runs and by measurement, and no more of it than the decision needs.

use std::sync::Arc;
use std::time::Instant;

use super::forecast::{Forecast, micros};
use super::performance_model::PerformanceModel;
use crate::device::{Choice, Info, Rejected, Selection};
use crate::error::Result;
use crate::matrix::Csr;
use crate::partition::row_ranges_by;
use crate::runtime::{Placement, ShareSource, Whole, memory_check};
use crate::tune::Tune;

/// A choice of devices and rows.
pub(crate) struct Chosen {
    pub(crate) placement: Placement,
    /// Devices that were considered and are not used.
    pub(crate) rejected: Vec<Rejected>,
    pub(crate) forecast: Forecast,
}

/// Chooses devices and rows for a system that the ranks get as `rows`.
pub(crate) fn choose(whole: &Whole, rows: &Arc<Csr>, selection: &Selection) -> Result<Chosen> {
    let start = Instant::now();
    let devices = &selection.ranks;
    let even = |devices: &[Option<Info>]| (devices.to_vec(), vec![1.0; devices.len()], ShareSource::Even);
    let mut forecast = Forecast::default();
    let mut rejected = Vec::new();
    let (devices, shares, source) = if let Some(shares) = &whole.setup.shares {
        (devices.clone(), shares.of_ranks(devices.len())?.to_vec(), ShareSource::ByHand)
    } else if whole.least_squares.is_some() {
        // two products an iteration, which nothing here knows of
        even(by_memory(whole, rows, devices, &mut rejected))
    } else if devices.len() + selection.beside.len() == 1
        || whole.setup.tune == Tune::Off && whole.setup.devices != Choice::Auto
    {
        even(devices)
    } else {
        let mut model = PerformanceModel::new(whole, rows, devices);
        let prediction = match &whole.setup.devices {
            Choice::Auto => {
                let prediction = model.best(selection, &mut forecast, &mut rejected);
                Some(model.with_processors(selection, prediction, &mut forecast, &mut rejected))
            }
            Choice::List(_) => model.prediction(devices, false),
        };
        forecast.seconds = prediction.as_ref().map(|one| one.seconds).filter(|seconds| seconds.is_finite());
        match prediction {
            Some(prediction) => (prediction.devices, prediction.shares, prediction.source),
            None => even(devices),
        }
    };
    let ranges = match source {
        ShareSource::ByHand if whole.least_squares.is_none() => whole.whole_pairs(row_ranges_by(rows, &shares)),
        _ => whole.row_ranges(rows, &shares, &devices),
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

/// The first device, if it was not said which and it can hold all; else all of them.
fn by_memory<'d>(
    whole: &Whole,
    rows: &Csr,
    devices: &'d [Option<Info>],
    rejected: &mut Vec<Rejected>,
) -> &'d [Option<Info>] {
    let is_enough = |first: &Option<Info>| memory_check::holds(rows, first.as_ref(), &whole.setup);
    if whole.setup.devices != Choice::Auto || !devices.first().is_some_and(is_enough) {
        return devices;
    }
    let (first, others) = devices.split_at(1);
    rejected.extend(others.iter().flatten().map(|device| Rejected {
        device: device.clone(),
        reason: format!("{} works on several devices only if it is told to (devices = all)", whole.setup.method),
    }));
    first
}

#[cfg(test)]
mod tests {
    use super::super::forecast::{sample, small_reason};
    use super::*;
    use crate::device::list;
    use crate::krylov::Method;
    use crate::matrix::gallery;
    use crate::partition::cost;
    use crate::runtime::Setup;
    use crate::tune::store::{Device, IterationTimeEntry, LatencyEntry, LatencyKey, Store};

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
        let key = whole.iteration_time_key(&devices[..count], &whole.a);
        let entry = IterationTimeEntry::new(key, vec![1.0 / count as f64; count], vec![kernels; count], seconds);
        whole.store.insert_iteration_time(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
    }

    fn keep_latency(store: &Store, devices: &[Option<Info>], count: usize, seconds: f64) {
        let entry = LatencyEntry::new(LatencyKey::new(Setup::default().exchange, &devices[..count]), seconds);
        store.insert_latency(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
    }

    #[test]
    fn the_number_of_devices_by_what_is_remembered() {
        let a = Arc::new(gallery::poisson2d([300, 300]).unwrap());
        let devices = gpus(4);
        // seconds alone; who is chosen, for latencies of 80 and 120 µs: as on H200s
        for (alone, expected) in [(11.8e-6, 1), (24.6e-6, 1), (213e-6, 4), (2032e-6, 4), (140e-6, 2)] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::at(dir.path());
            let whole = whole(&a, Tune::Stored, &store);
            remember(&whole, &devices, 1, alone, alone);
            keep_latency(&store, &devices, 2, 80e-6);
            keep_latency(&store, &devices, 4, 120e-6);
            let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
            assert_eq!(chosen.placement.devices.len(), expected, "{alone}");
            assert_eq!(chosen.rejected.len(), 4 - expected, "{alone}");
            assert!(chosen.rejected.iter().all(|one| one.reason.contains("µs")), "{:?}", chosen.rejected);
            if alone == 140e-6 {
                let reason = &chosen.rejected[0].reason;
                assert!(reason.contains("4 ranks take 120 µs to synchronise"), "{reason}");
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
        keep_latency(&store, &devices, 2, 97e-6);
        keep_latency(&store, &devices, 4, 148e-6);
        let chosen = choose(&whole, &a, &selection(devices.clone(), Vec::new())).unwrap();
        assert_eq!(chosen.placement.devices.len(), 2);
        let sets = &chosen.forecast.considered;
        assert_eq!(sets.iter().map(|set| set.is_remembered).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(chosen.forecast.seconds, Some(sets[1].seconds));
        // and what two took, of whose kernels nothing is known
        remember(&whole, &devices, 2, 0.0, 250e-6);
        let chosen = choose(&whole, &a, &selection(devices, Vec::new())).unwrap();
        assert_eq!(chosen.placement.devices.len(), 4);
        assert!(chosen.forecast.considered.iter().all(|set| set.is_remembered));
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
        // the latency was measured if it could have paid
        assert_eq!(known.latencies.len(), considered.len() - 1);
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
        let key = whole.iteration_time_key(&devices, &a);
        let entry = IterationTimeEntry::new(key, vec![0.5, 0.5], vec![1e-4, 3e-4], 4e-4);
        store.insert_iteration_time(&Device::from(devices[0].as_ref().unwrap()), entry).unwrap();
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

    /// What it could save is less than it takes to synchronise: it is not even opened.
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
