//! What `declive convert` has done.

use std::fmt;

use declive::matrix_market::Header;
use serde::Serialize;

use super::info::Matrix;
use super::layout::Text;
use super::units::{bytes, count, plural};

/// A conversion that is done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) matrix: Matrix,
    /// What the file says about itself; none of a `.npz` file or a generated matrix.
    pub(crate) header: Option<Header>,
    /// Of the file as it is, compressed or not.
    pub(crate) input_bytes: Option<u64>,
    pub(crate) output: Written,
    pub(crate) reorder: Option<Reordering>,
    pub(crate) rhs: Option<Rhs>,
    pub(crate) seconds: Seconds,
}

/// The file that was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Written {
    pub(crate) file: String,
    /// `mtx` or `npz`.
    pub(crate) format: &'static str,
    pub(crate) compression: Option<&'static str>,
    /// None unless it is a Matrix Market file, as the next two.
    pub(crate) layout: Option<String>,
    pub(crate) field: Option<String>,
    pub(crate) symmetry: Option<String>,
    /// None on standard output.
    pub(crate) bytes: Option<u64>,
}

/// The new order of rows and columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Reordering {
    pub(crate) order: &'static str,
    pub(crate) bandwidth_before: usize,
    pub(crate) bandwidth_after: usize,
    /// Where the permutation was written.
    pub(crate) permutation: Option<String>,
}

/// A right-hand side that was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rhs {
    pub(crate) file: String,
    pub(crate) columns: usize,
}

/// Where the time went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Seconds {
    /// From the file, or the recipe, to the finished matrix.
    pub(crate) read: f64,
    /// None if the order stayed.
    pub(crate) reorder: Option<f64>,
    /// All files, compression included.
    pub(crate) write: f64,
    /// From the start of the program.
    pub(crate) total: f64,
}

impl Report {
    /// The matrix, and what happened to it.
    fn found(&self) -> String {
        let Matrix { rows, columns, nnz, duplicates, .. } = self.matrix;
        let mut text = format!("{} × {}, {}", count(rows), count(columns), plural(nnz, "entry"));
        if duplicates > 0 {
            text += &format!("; {} of the file shared a place and were added up", count(duplicates));
        }
        if let Some(reorder) = &self.reorder {
            let [before, after] = [reorder.bandwidth_before, reorder.bandwidth_after].map(|width| count(width as u64));
            text += &format!("; bandwidth {after}, before {} {before}", reorder.order);
        }
        text + "."
    }

    fn time(&self) -> String {
        let Seconds { read, reorder, write, total } = self.seconds;
        let reordered = reorder.map_or(String::new(), |seconds| format!("reordered in {seconds:.4} s, "));
        format!("Read in {read:.4} s, {reordered}written in {write:.4} s; {total:.4} s in all.")
    }
}

/// A file's name, and in brackets what is known of it.
fn described(name: &str, facts: Vec<String>) -> String {
    if facts.is_empty() { name.into() } else { format!("{name} ({})", facts.join(", ")) }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text::default();
        let words = self.header.as_ref().map(|h| format!("{} {} {}", h.layout, h.field, h.symmetry));
        let input = words.into_iter().chain(self.input_bytes.map(bytes)).collect();
        let Written { layout, field, symmetry, compression, .. } = &self.output;
        let words: Vec<&str> = [layout, field, symmetry].into_iter().flatten().map(String::as_str).collect();
        let words = (!words.is_empty()).then(|| words.join(" "));
        let output = words.into_iter().chain(compression.map(Into::into)).chain(self.output.bytes.map(bytes)).collect();
        let name = if self.output.file == "-" { "standard output" } else { &self.output.file };
        text.paragraph(&format!("Converted {}", described(&self.matrix.source, input)));
        text.paragraph(&format!("to {}.", described(name, output)));
        text.paragraph(&self.found());
        let permutation = self.reorder.as_ref().and_then(|reorder| reorder.permutation.as_ref());
        if let Some(file) = permutation {
            text.paragraph(&format!("The permutation is in {file}."));
        }
        if let Some(Rhs { file, columns }) = &self.rhs {
            text.paragraph(&format!("The right-hand side, {}, is in {file}.", plural(*columns as u64, "column")));
        }
        text.paragraph(&self.time());
        f.write_str(&text.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let source = "A.npz".into();
        Report {
            matrix: Matrix { source, rows: 3000, columns: 2000, nnz: 1, complex: false, duplicates: 0 },
            header: None,
            input_bytes: Some(2048),
            output: Written {
                file: "-".into(),
                format: "mtx",
                compression: None,
                layout: Some("coordinate".into()),
                field: Some("real".into()),
                symmetry: Some("general".into()),
                bytes: None,
            },
            reorder: None,
            rhs: None,
            seconds: Seconds { read: 0.5, reorder: None, write: 0.25, total: 1.0 },
        }
    }

    #[test]
    fn in_short() {
        let text = report().to_string();
        let expected = "Converted A.npz (2.0 KiB)\n\
                        to standard output (coordinate real general).\n\
                        3,000 × 2,000, 1 entry.\n\
                        Read in 0.5000 s, written in 0.2500 s; 1.0000 s in all.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn with_everything() {
        let permutation = Some("p.mtx".into());
        let reorder = Reordering { order: "rcm", bandwidth_before: 1999, bandwidth_after: 31, permutation };
        let rhs = Rhs { file: "b.mtx".into(), columns: 2 };
        let mut report = Report { reorder: Some(reorder), rhs: Some(rhs), ..report() };
        (report.matrix.duplicates, report.seconds.reorder) = (7, Some(0.125));
        let text = report.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "1 entry; 7 of the file shared a place and were added up; bandwidth 31, before rcm 1,999.",
            "The permutation is in p.mtx.",
            "The right-hand side, 2 columns, is in b.mtx.",
            "reordered in 0.1250 s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
