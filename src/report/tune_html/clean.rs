//! Text from devices and files without what a page can't hold.

use declive::tune::{Experiment, Found};

/// Without control characters, which neither HTML nor XML takes, and those that turn the direction of what follows.
fn text(text: &mut String) {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fdd0}'..='\u{fdef}')
            || u32::from(c) & 0xfffe == 0xfffe
    };
    if text.contains(bad) {
        *text = text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect();
    }
}

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
