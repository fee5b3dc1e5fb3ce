//! Tables of numbers.

use maud::{Markup, html};

/// A column of a table.
pub(in crate::report) struct Column {
    /// What it belongs to, with its neighbours of the same group; may be empty.
    pub(in crate::report) group: &'static str,
    /// Its name, and the unit.
    pub(in crate::report) head: String,
    /// A text for each row.
    pub(in crate::report) cells: Vec<String>,
}

impl Column {
    /// A column of no group.
    pub(in crate::report) fn new(head: impl Into<String>, cells: Vec<String>) -> Self {
        Self { group: "", head: head.into(), cells }
    }
}

/// The neighbouring columns of the same group: its name, and how many they are.
fn groups(columns: &[Column]) -> Vec<(&'static str, usize)> {
    columns.chunk_by(|a, b| a.group == b.group).map(|chunk| (chunk[0].group, chunk.len())).collect()
}

/// A table in a box of its own, which scrolls if the screen is narrow. `names` are the heads of the rows, under
/// `corner`.
pub(in crate::report) fn table(label: &str, corner: &str, names: &[impl AsRef<str>], columns: &[Column]) -> Markup {
    let groups = groups(columns);
    let grouped = groups.iter().any(|(name, _)| !name.is_empty());
    scroll(
        label,
        html! {
            table {
                thead {
                    @if grouped {
                        tr {
                            td {}
                            @for (name, span) in groups {
                                @if name.is_empty() { td colspan=(span) {} }
                                @else { th.group scope="colgroup" colspan=(span) { (name) } }
                            }
                        }
                    }
                    tr {
                        th scope="col" { (corner) }
                        @for column in columns { th.n scope="col" { (column.head) } }
                    }
                }
                tbody {
                    @for (k, name) in names.iter().enumerate() {
                        tr {
                            th scope="row" { (name.as_ref()) }
                            @for column in columns { td.n { (column.cells[k]) } }
                        }
                    }
                }
            }
        },
    )
}

/// Facts: a name and some values a row.
pub(in crate::report) fn facts(label: &str, heads: &[String], rows: &[(&str, Vec<String>)]) -> Markup {
    scroll(
        label,
        html! {
            table.facts {
                @if !heads.is_empty() {
                    thead { tr { td {} @for head in heads { th scope="col" { (head) } } } }
                }
                tbody {
                    @for (name, cells) in rows {
                        tr { th scope="row" { (name) } @for cell in cells { td { (cell) } } }
                    }
                }
            }
        },
    )
}

/// The box that scrolls; it can be reached by keys.
pub(in crate::report) fn scroll(label: &str, content: Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(label) tabindex="0" { (content) } }
}
