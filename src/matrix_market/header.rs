//! The banner, the comments after it and the size line.

use std::io::Read;

use serde::{Serialize, Serializer};

use super::fault::Fault;
use super::lines::Lines;
use super::token::{NotWhole, Tokens, is_blank, trim_start, whole};
use crate::Csr;
pub(super) use crate::banner::{Field, Layout, Object, Symmetry};
use crate::error::matrix_market::{Error, ErrorKind, quote};
use crate::error::matrix_market::{PLAUSIBLE_DIMENSION, PLAUSIBLE_PER_ENTRY};
use crate::matrix::Scalar;

/// The mirror image of an entry off the diagonal.
#[inline]
pub(super) fn mirrored<T: Scalar>(symmetry: Symmetry, value: T) -> T {
    match symmetry {
        Symmetry::General | Symmetry::Symmetric => value,
        Symmetry::SkewSymmetric => -value,
        Symmetry::Hermitian => value.conj(),
    }
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Header {
    /// What the file holds.
    #[serde(skip)]
    pub object: Object,
    /// How the entries are laid out.
    pub layout: Layout,
    /// What the values are.
    pub field: Field,
    /// Which entries the others follow from.
    pub symmetry: Symmetry,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns; 1 for a vector.
    #[serde(rename = "columns")]
    pub cols: usize,
    /// Number of entries that the file should hold: as claimed by a coordinate file, as follows from the dimensions
    /// and the symmetry for an array file.
    pub entries: u64,
    /// The comments between the banner and the size line without their `%`, at most 64 KiB of them. In JSON, their number.
    #[serde(serialize_with = "count")]
    pub comments: Vec<String>,
}

fn count<S: Serializer>(lines: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(lines.len() as u64)
}

/// How many bytes of comments are kept, each line counted with 64 bytes more than its text.
const COMMENTS: usize = 64 << 10;

impl Header {
    /// Reads up to and including the size line.
    pub(super) fn read<R: Read>(lines: &mut Lines<R>) -> crate::Result<Self> {
        let (banner, is_indented) = match lines.next() {
            Ok(Some(line)) => {
                let is_indented = line.first().is_some_and(is_blank);
                (banner(line).map_err(|fault| lines.error(fault))?, is_indented)
            }
            Ok(None) => return Err(lines.error(ErrorKind::Empty.into())),
            // a first line without an end is the mark of a binary file
            Err(crate::Error::MatrixMarket(Error { kind: ErrorKind::LineTooLong { found, .. }, .. })) => {
                return Err(lines.error(ErrorKind::NotMatrixMarket { found }.into()));
            }
            Err(error) => return Err(error),
        };
        if is_indented {
            log::warn!("{}: blanks before the banner, which other programs may refuse", lines.name());
        }
        let Banner { object, layout, field, symmetry } = banner;
        let mut comments = Vec::new();
        let mut room = COMMENTS;
        loop {
            let Some(line) = lines.next()? else {
                return Err(lines.error(ErrorKind::MissingSize { expected: size_line(object, layout) }.into()));
            };
            match trim_start(line) {
                [b'%', comment @ ..] => {
                    if let Some(left) = room.checked_sub(comment.len() + 64) {
                        room = left;
                        let comment = comment.strip_prefix(b" ").unwrap_or(comment);
                        comments.push(String::from_utf8_lossy(comment.trim_ascii_end()).into_owned());
                    }
                }
                [] => {}
                _ => {
                    let size = size(line, &banner);
                    let (rows, cols, entries) = size.map_err(|fault| lines.error(fault))?;
                    return Ok(Self { object, layout, field, symmetry, rows, cols, entries, comments });
                }
            }
        }
    }

    /// What a line of the body should hold.
    pub(super) fn entry_line(&self) -> &'static str {
        match (self.layout, self.object, self.field) {
            (Layout::Array, _, Field::Complex) => "real imaginary",
            (Layout::Array, ..) => "value",
            (Layout::Coordinate, Object::Matrix, Field::Pattern) => "row column",
            (Layout::Coordinate, Object::Matrix, Field::Complex) => "row column real imaginary",
            (Layout::Coordinate, Object::Matrix, _) => "row column value",
            (Layout::Coordinate, Object::Vector, Field::Pattern) => "row",
            (Layout::Coordinate, Object::Vector, Field::Complex) => "row real imaginary",
            (Layout::Coordinate, Object::Vector, _) => "row value",
        }
    }

    /// The error for a matrix whose dense form would take memory out of all proportion to its file.
    pub(super) fn check_dense(&self) -> Result<(), ErrorKind> {
        // no overflow: both are below 2³²
        check_plausible(self.rows as u64 * self.cols as u64, self.rows, self.cols, self.entries)
    }
}

/// The first word of a file, in any case.
const MARK: &[u8] = b"%%MatrixMarket";

/// Whether bytes look like the beginning of a Matrix Market file.
pub(super) fn begins_with_mark(bytes: &[u8]) -> bool {
    trim_start(bytes).get(..MARK.len()).is_some_and(|start| start.eq_ignore_ascii_case(MARK))
}

/// The words of the banner.
#[derive(Debug, Clone, Copy)]
struct Banner {
    object: Object,
    layout: Layout,
    field: Field,
    symmetry: Symmetry,
}

/// Reads the banner, perhaps behind blanks.
fn banner(line: &[u8]) -> Result<Banner, Fault> {
    // one more word than there should be shows that there are too many
    let words: Vec<(u32, &[u8])> = {
        let mut words = Tokens::new(line);
        std::iter::from_fn(|| words.next().map(|word| (words.column(), word))).take(6).collect()
    };
    if words.first().is_none_or(|(_, mark)| !mark.eq_ignore_ascii_case(MARK)) {
        return Err(ErrorKind::NotMatrixMarket { found: quote(line) }.into());
    }
    let [_, object, layout, field, symmetry] = words[..] else {
        return Err(ErrorKind::Banner { found: quote(line) }.into());
    };
    let unknown = |what, (column, word): (u32, &[u8]), expected| {
        Err(Fault::at(column, ErrorKind::UnknownWord { what, found: quote(word), expected }))
    };
    let object = match object.1.to_ascii_lowercase().as_slice() {
        b"matrix" => Object::Matrix,
        b"vector" => Object::Vector,
        _ => return unknown("object", object, "matrix or vector"),
    };
    let layout = match layout.1.to_ascii_lowercase().as_slice() {
        b"coordinate" => Layout::Coordinate,
        b"array" => Layout::Array,
        _ => return unknown("layout", layout, "coordinate or array"),
    };
    let field_at = field.0;
    let field = match field.1.to_ascii_lowercase().as_slice() {
        b"real" | b"double" => Field::Real,
        b"integer" => Field::Integer,
        b"unsigned-integer" => Field::UnsignedInteger,
        b"pattern" => Field::Pattern,
        b"complex" => Field::Complex,
        _ => return unknown("field", field, "real, double, integer, unsigned-integer, pattern or complex"),
    };
    let symmetry_at = symmetry.0;
    let symmetry = match symmetry.1.to_ascii_lowercase().as_slice() {
        b"general" => Symmetry::General,
        b"symmetric" => Symmetry::Symmetric,
        b"skew-symmetric" => Symmetry::SkewSymmetric,
        b"hermitian" => Symmetry::Hermitian,
        _ => return unknown("symmetry", symmetry, "general, symmetric, skew-symmetric or hermitian"),
    };
    let contradiction = |column, first, second| Err(Fault::at(column, ErrorKind::Contradiction { first, second }));
    match (layout, field, symmetry) {
        _ if object == Object::Vector && symmetry.mirrors() => {
            contradiction(symmetry_at, object.word(), symmetry.word())
        }
        (Layout::Array, Field::Pattern, _) => contradiction(field_at, layout.word(), field.word()),
        (_, Field::Pattern | Field::UnsignedInteger, Symmetry::SkewSymmetric) => {
            contradiction(symmetry_at, field.word(), symmetry.word())
        }
        (_, field, Symmetry::Hermitian) if field != Field::Complex => {
            contradiction(symmetry_at, field.word(), symmetry.word())
        }
        _ => Ok(Banner { object, layout, field, symmetry }),
    }
}

fn size_line(object: Object, layout: Layout) -> &'static str {
    match (object, layout) {
        (Object::Matrix, Layout::Coordinate) => "rows columns entries",
        (Object::Matrix, Layout::Array) => "rows columns",
        (Object::Vector, Layout::Coordinate) => "rows entries",
        (Object::Vector, Layout::Array) => "rows",
    }
}

/// Rows, columns and entries.
fn size(line: &[u8], banner: &Banner) -> Result<(usize, usize, u64), Fault> {
    let &Banner { object, layout, symmetry, .. } = banner;
    let words: Vec<(u32, &[u8])> = {
        let mut words = Tokens::new(line);
        std::iter::from_fn(|| words.next().map(|word| (words.column(), word))).take(4).collect()
    };
    let bad = || ErrorKind::BadSize { expected: size_line(object, layout), found: quote(trim_start(line)) };
    let count = |(column, word): (u32, &[u8]), what, max| match whole(word) {
        Ok(n) if n <= max => Ok(n),
        Ok(_) | Err(NotWhole::TooLarge) => {
            Err(Fault::at(column, ErrorKind::TooLarge { what, found: quote(word), max }))
        }
        Err(NotWhole::Negative | NotWhole::Text) => Err(Fault::at(column, bad())),
    };
    let (rows, cols, claimed) = match (object, layout, &words[..]) {
        (Object::Matrix, Layout::Coordinate, &[rows, cols, entries]) => (rows, Some(cols), Some(entries)),
        (Object::Matrix, Layout::Array, &[rows, cols]) => (rows, Some(cols), None),
        (Object::Vector, Layout::Coordinate, &[rows, entries]) => (rows, None, Some(entries)),
        (Object::Vector, Layout::Array, &[rows]) => (rows, None, None),
        _ => return Err(bad().into()),
    };
    let max = Csr::MAX_DIM as u64;
    let (rows, cols) = (count(rows, "rows", max)?, cols.map_or(Ok(1), |cols| count(cols, "columns", max))?);
    let claimed = claimed.map(|word| count(word, "entries", u64::MAX)).transpose()?;
    let (n_rows, n_cols) = (rows as usize, cols as usize);
    if symmetry.mirrors() && rows != cols {
        return Err(ErrorKind::NotSquare { symmetry, rows: n_rows, cols: n_cols }.into());
    }
    // no overflow: both are below 2³²
    let entries = claimed.unwrap_or(match symmetry {
        Symmetry::General => rows * cols,
        Symmetry::Symmetric | Symmetry::Hermitian => rows * (rows + 1) / 2,
        Symmetry::SkewSymmetric => rows * rows.saturating_sub(1) / 2,
    });
    // a file with fewer entries than it claims is refused later, so the claim serves as well as the count
    check_plausible(rows.max(cols), n_rows, n_cols, entries)?;
    Ok((n_rows, n_cols, entries))
}

fn check_plausible(size: u64, rows: usize, cols: usize, entries: u64) -> Result<(), ErrorKind> {
    if size > PLAUSIBLE_DIMENSION.saturating_add(PLAUSIBLE_PER_ENTRY.saturating_mul(entries)) {
        return Err(ErrorKind::Implausible { rows, cols, entries });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> crate::Result<Header> {
        Header::read(&mut Lines::new(text.as_bytes(), "test"))
    }

    #[test]
    fn every_word_in_any_case() {
        for (words, layout, field, symmetry) in [
            ("coordinate real general", Layout::Coordinate, Field::Real, Symmetry::General),
            ("COORDINATE Double Symmetric", Layout::Coordinate, Field::Real, Symmetry::Symmetric),
            ("coordinate\tinteger  SKEW-symmetric ", Layout::Coordinate, Field::Integer, Symmetry::SkewSymmetric),
            ("coordinate pattern symmetric", Layout::Coordinate, Field::Pattern, Symmetry::Symmetric),
            ("coordinate Complex HERMITIAN", Layout::Coordinate, Field::Complex, Symmetry::Hermitian),
            ("coordinate Unsigned-Integer general", Layout::Coordinate, Field::UnsignedInteger, Symmetry::General),
        ] {
            let header = read(&format!("%%matrixMARKET Matrix {words}\r\n5 5 9\n")).unwrap();
            assert_eq!((header.layout, header.field, header.symmetry), (layout, field, symmetry), "{words}");
            assert_eq!((header.rows, header.cols, header.entries), (5, 5, 9));
        }
    }

    #[test]
    fn vectors_have_one_column() {
        for (words, size, entries) in [("array real", "5", 5), ("coordinate real", "5 2", 2)] {
            let header = read(&format!("%%MatrixMarket vector {words} general\n{size}\n")).unwrap();
            assert_eq!((header.object, header.rows, header.cols), (Object::Vector, 5, 1));
            assert_eq!(header.entries, entries);
        }
        let error = read("%%MatrixMarket vector coordinate real general\n5\n").unwrap_err();
        assert_eq!(error.to_string(), r#"test:2: expected "rows entries", all whole numbers, found "5""#);
    }

    #[test]
    fn blanks_before_the_banner() {
        let header = read(" \t%%MatrixMarket matrix array real general\n2 1\n").unwrap();
        assert_eq!((header.rows, header.cols), (2, 1));
        for text in ["  %MatrixMarket matrix array real general\n2 1\n", " \n", "x %%MatrixMarket\n"] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("test:1: not a Matrix Market file"), "{error}");
        }
    }

    #[test]
    fn comments_of_any_length() {
        let banner = "%%MatrixMarket matrix array real general\n";
        for length in [65_535, 65_536, 65_537, 300_000, 1 << 20] {
            for start in ["%", "  \t%"] {
                let text = format!("{banner}% one\n{start}{}\r\n% two\n1 7\n", "-".repeat(length));
                let header = read(&text).unwrap();
                assert_eq!((header.rows, header.cols), (1, 7));
                assert_eq!((&header.comments[0], &header.comments[1]), (&"one".into(), &"two".into()), "{length}");
            }
        }
        let error = read(&format!("{banner}{}% not within the first bytes\n1 7\n", " ".repeat(70_000))).unwrap_err();
        assert!(error.to_string().starts_with("test:2: the line is longer than"), "{error}");
    }

    #[test]
    fn entries_of_an_array() {
        for (symmetry, size, entries) in [
            ("general", "3 2", 6),
            ("general", "0 7", 0),
            ("symmetric", "3 3", 6),
            ("skew-symmetric", "3 3", 3),
            ("skew-symmetric", "0 0", 0),
            ("general", "4294967295 4294967295", 18446744065119617025),
        ] {
            let header = read(&format!("%%MatrixMarket matrix array real {symmetry}\n{size}")).unwrap();
            assert_eq!(header.entries, entries, "{symmetry} {size}");
        }
    }

    #[test]
    fn comments_and_blank_lines() {
        let header = "%%MatrixMarket matrix coordinate real general\n% one \r\n\n%\n  %%  two\n \t\n%é\n +2\t03 0\n";
        let header = read(header).unwrap();
        assert_eq!(header.comments, ["one", "", "%  two", "é"]);
        assert_eq!((header.rows, header.cols, header.entries), (2, 3, 0));
    }

    /// Control characters are no blanks, here as little as among the entries.
    #[test]
    fn form_feeds_are_no_blanks() {
        let error = read("%%MatrixMarket matrix array real general\n\x0c1 1\n").unwrap_err();
        assert_eq!(error.to_string(), r#"test:2:1: expected "rows columns", all whole numbers, found "\x0c1 1""#);
    }

    #[test]
    fn comments_are_bounded() {
        let comment = format!("%{}\n", "x".repeat(1000));
        let text =
            format!("%%MatrixMarket matrix array real general\n{}%\n{}1 1\n", comment.repeat(100), "%\n".repeat(5000));
        let comments = read(&text).unwrap().comments;
        assert!(comments.iter().map(|c| c.len() + 64).sum::<usize>() <= COMMENTS);
        assert!(comments.len() > 60);
    }

    #[test]
    fn dense_size() {
        let header = |size| read(&format!("%%MatrixMarket matrix coordinate real general\n{size}\n")).unwrap();
        assert!(header("1048576 1 0").check_dense().is_ok());
        assert!(header("1048640 1 1").check_dense().is_ok());
        assert!(header("524289 2 0").check_dense().is_err());
    }

    #[test]
    fn plausible_sizes() {
        let size = |size| read(&format!("%%MatrixMarket matrix coordinate real general\n{size}\n"));
        assert!(
            size("1048576 7 0").is_ok() && size("7 1048704 2").is_ok() && size("64000000 64000000 1000000").is_ok()
        );
        let error = size("7 1048705 2").unwrap_err().to_string();
        let rule = "plausible are at most 1048576, and 64 more for each entry";
        assert_eq!(error, format!("test:2: 7 rows and 1048705 columns are implausible for 2 entries: {rule}"));
    }
}
