//! What pages have in common: one HTML file to attach to a paper or a bug report, with no scripts and nothing from
//! elsewhere, for screens of any width, light or dark, and for paper.
//!
//! `maud` writes HTML and SVG alike, and escapes what it is given. Plotting crates write colours into each element,
//! where no style sheet for dark screens or paper has a say, and round coordinates to whole pixels.

pub(super) mod bars;
pub(super) mod clean;
pub(super) mod figures;
pub(super) mod scale;
pub(super) mod svg;
pub(super) mod table;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::DECLIVE;

/// The style sheet of all pages.
pub(super) const STYLE: &str = include_str!("style.css");

/// Of a page, a part with an anchor, a heading, and content.
pub(super) struct Section {
    /// The anchor.
    pub(super) id: &'static str,
    /// The heading.
    pub(super) heading: String,
    /// The content.
    pub(super) content: Markup,
}

impl Section {
    /// A section.
    pub(super) fn new(id: &'static str, heading: impl Into<String>, content: Markup) -> Self {
        Self { id, heading: heading.into(), content }
    }
}

/// A page.
pub(super) struct Page<'a> {
    /// What it is about.
    pub(super) title: &'a str,
    /// When it was made.
    pub(super) date: &'a str,
    /// What stands first: the outcome in short.
    pub(super) summary: Markup,
    /// What stands before the sections, and is not linked to.
    pub(super) preface: Markup,
    /// The rest.
    pub(super) sections: Vec<Section>,
}

impl Page<'_> {
    /// The file.
    pub(super) fn into_string(self) -> String {
        let Self { title, date, summary, preface, sections } = self;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { (title) }
                        p.by { "declive " (DECLIVE) " · " (date) }
                        (summary)
                        nav aria-label="Sections" {
                            @for section in &sections { a href={ "#" (section.id) } { (section.heading) } " " }
                        }
                    }
                    main {
                        (preface)
                        @for section in &sections {
                            section id=(section.id) { h2 { (section.heading) } (section.content) }
                        }
                    }
                }
            }
        };
        let mut text = page.into_string();
        clean::text(&mut text);
        text
    }
}

/// The time of day, for a page.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%-d %B %Y, %H:%M UTC").to_string()
}
