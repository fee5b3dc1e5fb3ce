//! Cyclic reduction, parallel cyclic reduction and Thomas' algorithm over the rows of a system and the number of systems.

use super::{HOST, Panel, Run, Study, rising};
use crate::device::Info;
use crate::experiments::tridiagonal::{Case, Measured};
use crate::tridiagonal::{Method, Shape};

/// Bytes of the arrays of a batch, above which it is left out.
const MOST_BYTES: usize = 1_000_000_000;
/// Three diagonals, the right-hand side and x.
const ARRAYS: usize = 5;
/// An error of an element of x, whose elements are up to 5, that is no rounding.
const WRONG: f64 = 1e-3;
/// Those of devices.
const METHODS: [Method; 4] = [Method::Thomas, Method::CyclicReduction, Method::ParallelCyclicReduction, Method::Hybrid];

/// Million rows a second of so many systems at a time, of so many rows: of each method on each device, without transfers, and of Thomas' algorithm
/// by all threads of the host, with what each method reaches of that. A panel for each device and number of systems; batches of more
/// than 10⁹ bytes are left out.
#[must_use]
pub fn tridiagonal(devices: &[Info], systems: &[usize], sizes: &[usize], run: Run<'_>) -> Study {
    let mut study = Study::new();
    let (systems, sizes) = (rising(systems), rising(sizes));
    let labels: Vec<String> =
        if devices.is_empty() { vec![HOST.into()] } else { devices.iter().map(Info::label).collect() };
    let new = |device: &String, systems: usize| Panel {
        device: device.clone(),
        title: format!("{systems} {}", if systems == 1 { "system" } else { "systems" }),
        x: "rows of a system",
        y: "million rows/s",
        at: sizes.clone(),
        series: Vec::new(),
    };
    let mut panels: Vec<Vec<Panel>> =
        labels.iter().map(|device| systems.iter().map(|&systems| new(device, systems)).collect()).collect();
    let row_bytes = ARRAYS * run.precision.bytes() as usize;
    let mut too_large = Vec::new();
    for (row, &systems) in systems.iter().enumerate() {
        for (place, &size) in sizes.iter().enumerate() {
            if systems.saturating_mul(size) > MOST_BYTES / row_bytes {
                too_large.push(format!("{systems} of {size}"));
                continue;
            }
            let (shape, batch) = (Shape::new(systems, size), format!("{systems} systems of {size} rows"));
            let Some(case) = study.found(&batch, Case::new(shape, run.precision)) else { continue };
            for (device, panels) in devices.iter().zip(&mut panels) {
                for method in METHODS {
                    let what = format!("{batch} by {method} on {}", device.label());
                    (run.progress)(&what);
                    // none where the method is not for such systems, which is no news
                    let measured = study.found(&what, case.on_device(device, method, run.repeat)).flatten();
                    panels[row].series(method.name(), false).values[place] = rate(&mut study, &what, shape, measured);
                }
            }
            let what = format!("{batch} on the host");
            (run.progress)(&what);
            let host = study.found(&what, case.on_host(Method::Thomas, run.repeat));
            let host = rate(&mut study, &what, shape, host);
            panels.iter_mut().for_each(|panels| panels[row].series("host thomas", true).values[place] = host);
        }
    }
    if !too_large.is_empty() {
        study
            .notes
            .push(format!("Systems that would take more than 10⁹ bytes are left out: {}.", too_large.join(", ")));
    }
    for mut panel in panels.into_iter().flatten() {
        panel.compare();
        study.panels.extend(panel.tidied());
    }
    study
}

/// Million rows a second, if what was found is right.
fn rate(study: &mut Study, what: &str, shape: Shape, measured: Option<Measured>) -> Option<f64> {
    let measured = measured?;
    let rate = 1e-6 * shape.len() as f64 / measured.time.median;
    study.is_right(what, measured.error, WRONG).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::list;
    use crate::real::Precision;

    #[test]
    fn tiny_batches() {
        let device = list().devices.remove(0);
        let told = std::cell::RefCell::new(Vec::new());
        let progress = |what: &str| told.borrow_mut().push(what.to_owned());
        let sizes = [16, 8, 60_000_000];
        let study = tridiagonal(std::slice::from_ref(&device), &[3, 1], &sizes, Run::new(Precision::F32, 1, &progress));
        assert_eq!((study.failure, study.panels.len()), (None, 2), "{:?}", study.notes);
        for (panel, title) in study.panels.iter().zip(["1 system", "3 systems"]) {
            assert_eq!((&*panel.title, &panel.at[..], &panel.device), (title, &[8, 16][..], &device.label()));
            let names: Vec<_> = panel.series.iter().map(|series| &*series.name).collect();
            assert_eq!(names, ["thomas", "cr", "pcr", "hybrid", "host thomas"]);
            for series in &panel.series {
                assert!(series.values.iter().all(|value| value.unwrap() > 0.0), "{series:?}");
                assert_eq!(series.times_host.len(), if series.is_host { 0 } else { 2 });
            }
        }
        let note = "Systems that would take more than 10⁹ bytes are left out: 1 of 60000000, 3 of 60000000.";
        assert_eq!((study.notes, told.borrow().len()), (vec![note.to_string()], 20));
    }

    #[test]
    fn the_host_alone() {
        let study = tridiagonal(&[], &[2], &[5], Run::new(Precision::F64, 2, &|_| {}));
        let [panel] = &study.panels[..] else { panic!("{study:?}") };
        assert_eq!((&*panel.device, panel.series.len(), &panel.at[..]), (HOST, 1, &[5][..]));
        assert!(panel.series[0].values[0].unwrap() > 0.0 && panel.series[0].is_host);
    }
}
