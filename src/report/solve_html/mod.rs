//! A solve as one HTML file: what was solved and how, how it converged, where the time went, and what the ranks did in
//! a few of its iterations.

mod breakdown;
mod convergence;
mod decimate;
mod facts;
mod gantt;
mod iterations;
mod kernels;
mod levels;
mod notes;
mod stages;
#[cfg(test)]
mod tests;

use super::html::{self, Page, Section};
use super::recording::Recording;
use super::solve::Report;

/// The page.
pub(crate) fn page(report: &Report, recording: &Recording<'_>) -> String {
    dated(&html::now(), report, recording)
}

fn dated(date: &str, report: &Report, recording: &Recording<'_>) -> String {
    let columns = &recording.columns;
    let mut sections = vec![
        Section::new("convergence", "Convergence", convergence::section(report, columns)),
        Section::new("time", "Where the time went", breakdown::section(report)),
    ];
    if let Some(content) = gantt::section(report, columns) {
        sections.push(Section::new("timeline", "A few iterations", content));
    }
    if let Some(content) = kernels::section(report, columns) {
        sections.push(Section::new("kernels", "Kernels and balance", content));
    }
    if let Some(hierarchy) = &report.hierarchy {
        sections.push(Section::new("multigrid", "Multigrid", levels::section(hierarchy)));
    }
    sections.push(Section::new("system", "System and options", facts::system(report)));
    sections.push(Section::new("devices", "Devices", facts::devices(report, &recording.drivers)));
    sections.push(Section::new("notes", "How to read this", notes::section()));
    let page = Page {
        title: "Solve of a linear system",
        date,
        summary: facts::summary(report),
        preface: maud::html! {},
        sections,
    };
    page.into_string()
}
