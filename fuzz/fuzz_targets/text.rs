//! Matrix Market text that is almost well formed, so that it gets past the header.

#![no_main]

use std::fmt::Write;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct File {
    array: bool,
    field: Field,
    symmetry: Symmetry,
    rows: u8,
    cols: u8,
    /// The size line tells the truth, or is off by so many.
    off_by: Option<i8>,
    crlf: bool,
    no_last_end: bool,
    /// Places within the dimensions, in the lower triangle.
    tame: bool,
    lines: Vec<Line>,
}

#[derive(Debug, Arbitrary)]
enum Field {
    Real,
    Integer,
    Unsigned,
    Complex,
    Pattern,
}

#[derive(Debug, Arbitrary)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
    Hermitian,
}

#[derive(Debug, Arbitrary)]
enum Line {
    Entry { row: u8, col: u8, re: Number, im: Number },
    Spaced { row: u8, col: u8, re: Number, im: Number, blanks: u8 },
    Again(u8),
    Blank,
    Comment(u8),
    Raw(String),
}

#[derive(Debug, Arbitrary)]
enum Number {
    Zero,
    One,
    Small(i8),
    Half(i16),
    Double(f64),
    Digits(u64),
    Fortran(i8, i8),
    Word(u8),
}

const WORDS: [&str; 24] = [
    "-0",
    "+1",
    "-0.0",
    ".5",
    "5.",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "1e309",
    "5e-324",
    "2e-324",
    "1D5",
    "1d-5",
    "nan",
    "inf",
    "0x1",
    "1e",
    "-",
    "+-1",
    "00000000000000000001",
    "9007199254740993",
    "18446744073709551616",
    "0.1e0000000000000000000001",
    "123456789012345678901234567890",
];

impl Number {
    fn write(&self, to: &mut String) {
        let _ = match self {
            Self::Zero => write!(to, "0"),
            Self::One => write!(to, "1"),
            Self::Small(n) => write!(to, "{n}"),
            Self::Half(n) => write!(to, "{}", f64::from(*n) / 2.0),
            Self::Double(x) => write!(to, "{x:e}"),
            Self::Digits(n) => write!(to, "{n}"),
            Self::Fortran(n, exponent) => write!(to, "{n}.0D{exponent:+03}"),
            Self::Word(k) => write!(to, "{}", WORDS[*k as usize % WORDS.len()]),
        };
    }
}

impl File {
    fn text(&self) -> String {
        let layout = if self.array { "array" } else { "coordinate" };
        let field = match self.field {
            Field::Real => "real",
            Field::Integer => "integer",
            Field::Unsigned => "unsigned-integer",
            Field::Complex => "complex",
            Field::Pattern => "pattern",
        };
        let symmetry = match self.symmetry {
            Symmetry::General => "general",
            Symmetry::Symmetric => "symmetric",
            Symmetry::Skew => "skew-symmetric",
            Symmetry::Hermitian => "hermitian",
        };
        let lines: Vec<String> = self.body();
        let is_entry =
            |line: &&String| !line.trim_start_matches([' ', '\t']).starts_with('%') && !line.trim().is_empty();
        let entries = lines.iter().filter(is_entry).count() as i64;
        let entries = (entries + i64::from(self.off_by.unwrap_or(0))).max(0);
        let (rows, cols) = self.dimensions(entries);
        let size = if self.array { format!("{rows} {cols}") } else { format!("{rows} {cols} {entries}") };
        let end = if self.crlf { "\r\n" } else { "\n" };
        let mut text = format!("%%MatrixMarket matrix {layout} {field} {symmetry}{end}{size}{end}{}", lines.join(end));
        if !self.no_last_end {
            text += end;
        }
        text
    }

    /// Dimensions that fit the entries of an array, if it is tame.
    fn dimensions(&self, entries: i64) -> (u64, u64) {
        let entries = entries as u64;
        let (rows, cols) = (u64::from(self.rows), u64::from(self.cols));
        let general = matches!(self.symmetry, Symmetry::General);
        match (self.array && self.tame, general) {
            (true, true) => (entries / cols.max(1), cols.max(1)),
            (true, false) => {
                let n = (2.0 * entries as f64).sqrt() as u64;
                let n = if matches!(self.symmetry, Symmetry::Skew) { n + 1 } else { n };
                (n, n)
            }
            (false, true) => (rows, cols),
            (false, false) => (rows, rows),
        }
    }

    fn body(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for line in &self.lines {
            let line = match line {
                Line::Entry { row, col, re, im } => self.entry(*row, *col, re, im, " "),
                Line::Spaced { row, col, re, im, blanks } => {
                    let gap: String = (0..=blanks % 4).map(|k| if blanks >> k & 4 == 0 { ' ' } else { '\t' }).collect();
                    format!("{gap}{}{gap}", self.entry(*row, *col, re, im, &gap))
                }
                Line::Again(k) => lines.get(*k as usize).cloned().unwrap_or_default(),
                Line::Blank => String::new(),
                Line::Comment(k) => format!("{}%{k}", " ".repeat(*k as usize % 3)),
                Line::Raw(text) => text.clone(),
            };
            lines.push(line);
        }
        lines
    }

    fn entry(&self, row: u8, col: u8, re: &Number, im: &Number, gap: &str) -> String {
        let mut line = String::new();
        if !self.array {
            let (mut row, mut col) = (u16::from(row), u16::from(col));
            if self.tame {
                (row, col) = (row % u16::from(self.rows.max(1)) + 1, col % u16::from(self.cols.max(1)) + 1);
                if !matches!(self.symmetry, Symmetry::General) {
                    col %= u16::from(self.rows.max(1));
                    (row, col) = (row.max(col + 1), row.min(col + 1));
                }
            }
            let _ = write!(line, "{row}{gap}{col}");
        }
        let words = match self.field {
            Field::Pattern => 0,
            Field::Complex => 2,
            _ => 1,
        };
        for number in [re, im].into_iter().take(words) {
            if !line.is_empty() {
                line += gap;
            }
            number.write(&mut line);
        }
        line
    }
}

fuzz_target!(|file: File| declive_fuzz::check::matrix_market(file.text().as_bytes()));
