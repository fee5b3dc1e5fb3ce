//! Text for 80 columns: titled sections of labelled lines, and tables.

/// Nothing but a name too long to break goes beyond.
const WIDTH: usize = 80;
/// Where values start.
const INDENT: usize = 18;

/// A text under construction.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// A paragraph from the margin.
    pub(super) fn paragraph(&mut self, words: &str) {
        self.wrapped("", 0, words);
    }

    /// Begins a section.
    pub(super) fn section(&mut self, title: &str) {
        self.0.push('\n');
        self.0.push_str(title);
        self.0.push('\n');
    }

    /// A labelled line; a long value continues below its beginning.
    pub(super) fn line(&mut self, label: &str, value: &str) {
        self.wrapped(&format!("  {label}"), INDENT, value);
    }

    /// A table, if there are rows; the columns are as wide as they must be. Text to the left, numbers to the right.
    pub(super) fn table<const N: usize>(&mut self, header: [&str; N], left: [bool; N], rows: &[[String; N]]) {
        if rows.is_empty() {
            return;
        }
        let rows = rows.iter().map(|row| row.iter().map(String::as_str).collect());
        let rows: Vec<Vec<&str>> = std::iter::once(header.to_vec()).chain(rows).collect();
        self.rows(&widths(&rows), &rows, |column| left[column]);
    }

    /// A table of as many columns as it takes: text in the first, numbers to the right in the others. The first row is the
    /// header.
    pub(super) fn columns(&mut self, rows: &[Vec<String>]) {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        self.rows(&widths(&rows), &rows, |column| column == 0);
    }

    /// Rows of columns of these widths: text to the left, numbers to the right.
    fn rows(&mut self, widths: &[usize], rows: &[Vec<&str>], is_left: impl Fn(usize) -> bool) {
        for row in rows {
            let cells = row.iter().zip(widths).enumerate().map(|(c, (cell, width))| {
                let pad = " ".repeat(width - chars(cell));
                if is_left(c) { format!("  {cell}{pad}") } else { format!("  {pad}{cell}") }
            });
            self.0.push_str(cells.collect::<String>().trim_end());
            self.0.push('\n');
        }
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.0.push('\n');
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn wrapped(&mut self, start: &str, indent: usize, words: &str) {
        let mut line = format!("{start:<indent$}");
        if chars(&line) > indent {
            line.push(' ');
        }
        let mut empty = true;
        for word in words.split(' ') {
            if !empty && chars(&line) + 1 + chars(word) > WIDTH {
                self.0.push_str(line.trim_end());
                self.0.push('\n');
                line = " ".repeat(indent);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }
}

/// How wide each column must be.
fn widths(rows: &[Vec<&str>]) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = chars(cell).max(*width);
        }
    }
    widths
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_continue_under_their_beginning() {
        let mut text = Text::default();
        text.line("note", &"word ".repeat(20));
        let text = text.finish();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("  note            word word") && lines[0].len() <= WIDTH);
        assert!(lines[1].starts_with("                  word"));
    }

    #[test]
    fn tables_align() {
        let mut text = Text::default();
        text.table(["n", "name"], [false, true], &[["1".into(), "a".into()], ["10".into(), "bcdefg".into()]]);
        assert_eq!(text.finish(), "   n  name\n   1  a\n  10  bcdefg\n");
    }

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut text = Text::default();
        let rows = [["name", "a", "b"], ["x", "1", "10"], ["", "2.5", ""]].map(|row| row.map(String::from).to_vec());
        text.columns(&rows);
        assert_eq!(text.finish(), "  name    a   b\n  x       1  10\n        2.5\n");
    }
}
