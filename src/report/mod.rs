//! What the command has to say: facts gathered once in a struct, from which both the text and the JSON come, so that
//! the two can't disagree.

pub(crate) mod bench;
mod bench_text;
pub(crate) mod blas;
pub(crate) mod convert;
pub(crate) mod devices;
mod devices_text;
pub(crate) mod elements;
pub(crate) mod exchange;
pub(crate) mod fdtd;
pub(crate) mod fdtd_html;
pub(crate) mod fem;
pub(crate) mod fem_html;
pub(crate) mod fem_mesh;
mod flags;
mod html;
pub(crate) mod info;
pub(crate) mod info_advice;
pub(crate) mod info_formats;
mod info_text;
mod layout;
pub(crate) mod precond;
pub(crate) mod primitives;
pub(crate) mod recording;
pub(crate) mod scaling;
pub(crate) mod solve;
pub(crate) mod solve_html;
mod solve_text;
pub(crate) mod study;
pub(crate) mod study_svg;
#[cfg(test)]
mod tests;
pub(crate) mod trace;
pub(crate) mod tridiagonal;
pub(crate) mod tune;
pub(crate) mod tune_html;
mod tune_text;
mod units;

pub(crate) use flags::in_flags;
use serde::Serialize;

/// Version of the JSON documents; it changes when a field changes its meaning or goes.
const VERSION: u32 = 1;

/// Version of this program.
pub(crate) const DECLIVE: &str = env!("CARGO_PKG_VERSION");

/// What a JSON document is: a report, and what it comes from.
#[derive(Serialize)]
struct Document<'a, R> {
    version: u32,
    declive: &'static str,
    #[serde(flatten)]
    report: &'a R,
}

/// A report as one JSON document. Numbers that are not finite become `null`.
pub(crate) fn json(report: &impl Serialize) -> String {
    let document = Document { version: VERSION, declive: DECLIVE, report };
    // fails only for maps with keys that are not strings, and there are none
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Each of some things once, in the order in which they come first.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}
