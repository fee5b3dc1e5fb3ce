//! What tuning found, as one HTML file to attach to a paper or a bug report: no scripts, nothing from elsewhere, for
//! screens of any width, light or dark, and for paper.
//!
//! `maud` writes HTML and SVG alike, and escapes what it is given. Plotting crates write colours into each element, where
//! no style sheet for dark screens or paper has a say, and round coordinates to whole pixels.

mod chosen;
mod clean;
mod curves;
mod experiments;
mod facts;
mod figures;
#[cfg(test)]
mod fixture;
mod fusion;
mod gflops;
mod notes;
mod scale;
mod svg;
mod table;
#[cfg(test)]
mod tests;

use declive::tune::{Experiment, Found};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::DECLIVE;
use super::units::plural;

/// Sections after the first: the anchor, the heading, the content; none that have nothing to show.
type Section = (&'static str, String, Markup);

/// The page about some devices, one [`Found`] each, the experiments, if there are any, and why others are missing.
pub(crate) fn page(found: &[Found], experiments: &[Experiment], missing: &[String]) -> String {
    dated(&jiff::Timestamp::now().strftime("%-d %B %Y, %H:%M UTC").to_string(), found, experiments, missing)
}

/// Adds the number of rows to the name of a device that was tuned for several sizes, so that each has headings of its own.
fn tell_apart(found: &mut [Found]) {
    let names: Vec<String> = found.iter().map(|one| one.device.name.clone()).collect();
    for one in found.iter_mut().filter(|one| names.iter().filter(|name| **name == one.device.name).count() > 1) {
        one.device.name = format!("{}, {}", one.device.name, plural(one.order, "row"));
    }
}

fn dated(date: &str, found: &[Found], experiments: &[Experiment], missing: &[String]) -> String {
    let (mut found, experiments) = (clean::found(found), clean::experiments(experiments));
    let missing = clean::texts(missing);
    tell_apart(&mut found);
    let mut sections: Vec<Section> = Vec::new();
    if !found.is_empty() {
        sections.push(("chosen", "Chosen parameters".into(), chosen::section(&found)));
        sections.push(("curves", "Time over the number of work-groups".into(), curves::section(&found)));
        if fusion::is_known(&found) {
            sections.push(("fusion", "Fused and separate kernels".into(), fusion::section(&found)));
        }
        sections.push(("gflops", "GFLOP/s, theoretical and reached".into(), gflops::section(&found)));
    }
    if !experiments.is_empty() || !missing.is_empty() {
        sections.push(("time", experiments::heading(&experiments), experiments::section(&experiments, &missing)));
    }
    if !found.is_empty() {
        sections.push(("notes", "How it was measured".into(), notes::section()));
    }
    let title = match &*found {
        [] => "Where the time of conjugate gradients goes",
        _ => "Launch parameters found by measurement",
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                header {
                    h1 { (title) }
                    p.by { "declive " (DECLIVE) " · " (date) }
                    (facts::summary(&found))
                    nav aria-label="Sections" {
                        @for (id, heading, _) in &sections { a href={ "#" (id) } { (heading) } " " }
                    }
                }
                main {
                    (facts::devices(&found))
                    @for (id, heading, content) in &sections {
                        section id=(id) { h2 { (heading) } (content) }
                    }
                }
            }
        }
    };
    page.into_string()
}
