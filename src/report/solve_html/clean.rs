//! What a page can't hold is taken out first.

use super::super::html::clean::text;
use super::super::recording::Driver;
use super::super::solve::{Figures, Report};

/// A report, fit to be shown.
pub(super) fn report(report: &Report) -> Report {
    let mut report = report.clone();
    let figures = |figures: &mut Figures| text(&mut figures.reason_text);
    figures(&mut report.figures);
    report.solves.iter_mut().for_each(|solve| figures(&mut solve.figures));
    [&mut report.matrix.source, &mut report.rhs.source, &mut report.options.devices].into_iter().for_each(text);
    report.ranks.iter_mut().for_each(|rank| text(&mut rank.device));
    report.rejected.iter_mut().for_each(|device| [&mut device.device, &mut device.reason].into_iter().for_each(text));
    report.failures.iter_mut().for_each(|failed| [&mut failed.device, &mut failed.error].into_iter().for_each(text));
    [&mut report.x0, &mut report.resumed, &mut report.note].into_iter().flatten().for_each(text);
    report
}

/// Facts about drivers, fit to be shown.
pub(super) fn drivers(drivers: &[Option<Driver>]) -> Vec<Option<Driver>> {
    let mut drivers = drivers.to_vec();
    for one in drivers.iter_mut().flatten() {
        [&mut one.platform, &mut one.vendor, &mut one.driver, &mut one.opencl].into_iter().for_each(text);
    }
    drivers
}
