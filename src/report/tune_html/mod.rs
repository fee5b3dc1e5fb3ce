//! What tuning found, as one HTML file.

mod chosen;
mod curves;
mod experiments;
mod facts;
mod notes;
#[cfg(test)]
mod tests;

use super::html::{self, Page, Section, figures, scale, svg, table};
use declive::experiments::Experiment;
use declive::tune::Found;

use super::units::plural;

/// The page about some devices, one [`Found`] each, the experiments, if there are any, and why others are missing.
pub(crate) fn page(found: &[Found], experiments: &[Experiment], missing: &[String]) -> String {
    dated(&html::now(), found, experiments, missing)
}

/// Adds the number of rows to the name of a device that was tuned for several sizes, so that each has headings of its own.
fn tell_apart(found: &mut [Found]) {
    let names: Vec<String> = found.iter().map(|one| one.device.name.clone()).collect();
    for one in found.iter_mut().filter(|one| names.iter().filter(|name| **name == one.device.name).count() > 1) {
        one.device.name = format!("{}, {}", one.device.name, plural(one.order, "row"));
    }
}

fn dated(date: &str, found: &[Found], experiments: &[Experiment], missing: &[String]) -> String {
    let mut found = found.to_vec();
    tell_apart(&mut found);
    let mut sections = Vec::new();
    if !found.is_empty() {
        sections.push(Section::new("chosen", "Chosen parameters", chosen::section(&found)));
        sections.push(Section::new("curves", "Time over the number of work-groups", curves::section(&found)));
    }
    if !experiments.is_empty() || !missing.is_empty() {
        let heading = experiments::heading(experiments);
        sections.push(Section::new("time", heading, experiments::section(experiments, missing)));
    }
    if !found.is_empty() {
        sections.push(Section::new("notes", "How it was measured", notes::section()));
    }
    let page = Page {
        title: match &*found {
            [] => "Where the time of conjugate gradients goes",
            _ => "Launch parameters found by measurement",
        },
        date,
        summary: facts::summary(&found),
        preface: facts::devices(&found),
        sections,
    };
    page.into_string()
}
