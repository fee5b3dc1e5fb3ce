//! What a page can't hold is taken out first.

use declive::experiments::Experiment;
use declive::tune::Found;

use super::html::clean::text;

/// What was found, fit to be shown.
pub(super) fn found(found: &[Found]) -> Vec<Found> {
    let mut found = found.to_vec();
    for one in &mut found {
        let device = &mut one.device;
        let facts = [&mut device.name, &mut device.vendor, &mut device.platform, &mut device.driver];
        facts.into_iter().chain([&mut device.opencl, &mut device.kind]).for_each(text);
        [&mut one.precision, &mut one.matrix].into_iter().for_each(text);
        one.kernels.iter_mut().for_each(|kernel| text(&mut kernel.kernel));
    }
    found
}

/// Experiments, fit to be shown.
pub(super) fn experiments(experiments: &[Experiment]) -> Vec<Experiment> {
    let mut experiments = experiments.to_vec();
    for one in &mut experiments {
        let facts = [&mut one.name, &mut one.method, &mut one.precision, &mut one.matrix];
        facts.into_iter().chain(&mut one.devices).chain(&mut one.notes).for_each(text);
        one.kernels.iter_mut().for_each(|kernel| text(&mut kernel.kernel));
    }
    experiments
}

/// Lines, fit to be shown.
pub(super) fn texts(lines: &[String]) -> Vec<String> {
    let mut lines = lines.to_vec();
    lines.iter_mut().for_each(text);
    lines
}
