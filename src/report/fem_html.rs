//! A field by finite elements as one HTML file: a picture of it in the plane, and what the solution says.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};

use super::fem::Report;
use super::fem_mesh::Line;
use super::html::table::facts;
use super::html::{self, Page, Section};
use super::units::scientific;

/// A picture as PNG, and the values of its first and last colour.
pub(crate) struct Drawn {
    pub(crate) png: Vec<u8>,
    pub(crate) range: [f64; 2],
}

/// The page.
pub(crate) fn page(report: &Report, picture: Option<&Drawn>) -> String {
    let mut sections = Vec::new();
    sections.extend(picture.map(|picture| Section::new("field", "Field", field(picture))));
    let tables = [
        ("solution", "Solution", report.solution()),
        ("problem", "Problem", report.problem()),
        ("method", "Method", report.method()),
        ("time", "Time", report.time()),
    ];
    for (id, heading, lines) in tables {
        sections.push(Section::new(id, heading, table(heading, lines)));
    }
    let summary = html! { p.summary { (report.outcome()) } };
    Page { title: report.title(), date: &html::now(), summary, preface: html! {}, sections }.into_string()
}

fn table(heading: &str, lines: Vec<Line>) -> Markup {
    let rows: Vec<(&str, Vec<String>)> = lines.into_iter().map(|(label, value)| (label, vec![value])).collect();
    facts(heading, &[], &rows)
}

fn field(Drawn { png, range: [least, most] }: &Drawn) -> Markup {
    let colours = if *least < 0.0 && *most > 0.0 { "blue to red" } else { "violet to yellow" };
    html! {
        figure.broad {
            figcaption {
                b { "u" }
                span { (colours) " from " (scientific(*least)) " to " (scientific(*most)) ", lines at twelfths; x to the right, y up" }
            }
            img style="display: block; width: 100%; height: auto" alt="u over the mesh"
                src={ "data:image/png;base64," (Base64Display::new(png, &STANDARD).to_string()) };
        }
    }
}
