//! What tuning found, as one HTML file.

mod chosen;
mod clean;
mod curves;
mod experiments;
mod facts;
#[cfg(test)]
mod fixture;
mod gflops;
mod notes;
#[cfg(test)]
mod tests;

use super::html::{self, Page, Section, figures, scale, svg, table};
use declive::tune::{Experiment, Found};

/// The page about some devices, one [`Found`] each, and the experiments, if there are any.
pub(crate) fn page(found: &[Found], experiments: &[Experiment]) -> String {
    dated(&html::now(), found, experiments)
}

fn dated(date: &str, found: &[Found], experiments: &[Experiment]) -> String {
    let (found, experiments) = (clean::found(found), clean::experiments(experiments));
    let mut sections = Vec::new();
    if !found.is_empty() {
        sections.push(Section::new("chosen", "Chosen parameters", chosen::section(&found)));
        sections.push(Section::new("curves", "Time over the number of work-groups", curves::section(&found)));
        sections.push(Section::new("gflops", "GFLOP/s, theoretical and reached", gflops::section(&found)));
    }
    if !experiments.is_empty() {
        let (heading, content) = (experiments::heading(&experiments), experiments::section(&experiments));
        sections.push(Section::new("time", heading, content));
    }
    sections.push(Section::new("notes", "How it was measured", notes::section()));
    let page = Page {
        title: "Launch parameters found by measurement",
        date,
        summary: facts::summary(&found),
        preface: facts::devices(&found),
        sections,
    };
    page.into_string()
}
