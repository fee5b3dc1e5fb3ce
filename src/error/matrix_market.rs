//! What can be wrong with a Matrix Market file, one variant a cause.

use super::one_line;
use crate::banner::Symmetry;

/// Rows or columns that any file may have: for vectors with few nonzeros. A row takes 8 bytes.
pub(crate) const PLAUSIBLE_DIMENSION: u64 = 1 << 20;

/// Rows or columns beyond for every entry, which takes some 20 bytes itself.
pub(crate) const PLAUSIBLE_PER_ENTRY: u64 = 64;

/// What is wrong with a Matrix Market file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}:{} {kind}", one_line(file), column.map_or_else(String::new, |column| format!("{column}:")))]
#[non_exhaustive]
pub struct Error {
    /// The file's name, or `<stdin>`.
    pub file: String,
    /// The line, from 1; where something is missing, the last line of the file.
    pub line: u64,
    /// The byte of the line, from 1, where the offending word begins; `None` where it is the line, or the file, as a
    /// whole that is wrong.
    pub column: Option<u32>,
    /// What is wrong there.
    pub kind: ErrorKind,
}

impl Error {
    /// An error that no single word is to blame for.
    pub(crate) fn whole(file: &str, line: u64, kind: ErrorKind) -> super::Error {
        Self { file: file.into(), line, column: None, kind }.into()
    }
}

/// What is wrong with a line. Quoted text is shortened and its unprintable bytes are escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file without any byte.
    #[error("the file is empty")]
    Empty,

    /// The first line does not begin with the format's mark.
    #[error("not a Matrix Market file: it should begin with \"%%MatrixMarket\", but begins with \"{found}\"")]
    NotMatrixMarket {
        /// The beginning of the file.
        found: String,
    },

    /// A banner of more or fewer than five words.
    #[error("expected \"%%MatrixMarket <object> <layout> <field> <symmetry>\", found \"{found}\"")]
    Banner {
        /// The line.
        found: String,
    },

    /// A word of the banner that the format does not know.
    #[error("unknown {what} \"{found}\" in the banner; expected {expected}")]
    UnknownWord {
        /// Which word: object, layout, field or symmetry.
        what: &'static str,
        /// The word.
        found: String,
        /// The words that are known.
        expected: &'static str,
    },

    /// A file of complex numbers where real ones are needed.
    #[error("the file holds complex numbers, but a system to solve has to be real")]
    Complex,

    /// Two words of the banner that exclude each other.
    #[error("a file cannot be both \"{first}\" and \"{second}\"")]
    Contradiction {
        /// The one word.
        first: &'static str,
        /// The other.
        second: &'static str,
    },

    /// The file ends before the line with the size.
    #[error("the file ends before the line with \"{expected}\"")]
    MissingSize {
        /// What that line should hold.
        expected: &'static str,
    },

    /// A size line that is not made of as many counts as it should.
    #[error("expected \"{expected}\", all whole numbers, found \"{found}\"")]
    BadSize {
        /// What the line should hold.
        expected: &'static str,
        /// The line.
        found: String,
    },

    /// A count beyond what this program can address.
    #[error("{found} {what} are too many; the limit is {max}")]
    TooLarge {
        /// What is counted: rows, columns or entries.
        what: &'static str,
        /// The count as written.
        found: String,
        /// The limit.
        max: u64,
    },

    /// Dimensions that so few entries can't mean, which would cost memory out of all proportion to the file.
    #[error(
        "{rows} rows and {cols} columns are implausible for {entries} entries: \
         plausible are at most {PLAUSIBLE_DIMENSION}, and {PLAUSIBLE_PER_ENTRY} more for each entry"
    )]
    Implausible {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// Entries.
        entries: u64,
    },

    /// A symmetric or skew-symmetric matrix that is not square.
    #[error("a {symmetry} matrix must be square, but this one has {rows} rows and {cols} columns")]
    NotSquare {
        /// The symmetry.
        symmetry: Symmetry,
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },

    /// An entry's line with too few fields.
    #[error("expected \"{expected}\", found only \"{found}\"")]
    MissingField {
        /// What the line should hold.
        expected: &'static str,
        /// The line.
        found: String,
    },

    /// An entry's line with too many fields.
    #[error("expected \"{expected}\" and nothing more, found \"{found}\" after it")]
    SurplusText {
        /// What the line should hold.
        expected: &'static str,
        /// The first surplus word.
        found: String,
    },

    /// An index that is not a whole number.
    #[error("expected a {what} index, found \"{found}\"")]
    IndexNotANumber {
        /// Row or column.
        what: &'static str,
        /// The word.
        found: String,
    },

    /// An index 0: the format counts from 1.
    #[error("{what} index 0; indices count from 1")]
    IndexZero {
        /// Row or column.
        what: &'static str,
    },

    /// An index outside the matrix.
    #[error("{what} index {found} is outside 1..={max}")]
    IndexOutOfRange {
        /// Row or column.
        what: &'static str,
        /// The index as written.
        found: String,
        /// The number of rows or columns.
        max: usize,
    },

    /// A value that is not a number.
    #[error("expected a number, found \"{found}\"")]
    ValueNotANumber {
        /// The word.
        found: String,
    },

    /// A value that is infinite, NaN, or beyond the range of a double.
    #[error("\"{found}\" is not a finite double")]
    NotFinite {
        /// The word.
        found: String,
    },

    /// A value with a fraction or an exponent in an `integer` file.
    #[error("expected an integer, as the banner says, found \"{found}\"")]
    NotAnInteger {
        /// The word.
        found: String,
    },

    /// A negative value in an `unsigned-integer` file.
    #[error("expected an integer from 0 up, as the banner says, found \"{found}\"")]
    Negative {
        /// The word.
        found: String,
    },

    /// The file ends too early.
    #[error("expected {expected} entries, found {found}: the file is truncated or its size line wrong")]
    TooFewEntries {
        /// The number that the size line announces.
        expected: u64,
        /// The number that the file holds.
        found: u64,
    },

    /// Text after the last entry.
    #[error("expected {expected} entries, found more: \"{found}\"")]
    TooManyEntries {
        /// The number that the size line announces.
        expected: u64,
        /// The first surplus line.
        found: String,
    },

    /// Compressed data that can't be decompressed, or an archive that can't be read.
    #[error("the {format} data is damaged or cut off: {cause}")]
    Corrupt {
        /// The compression or the kind of archive.
        format: &'static str,
        /// What its decoder said.
        cause: String,
    },

    /// Compressed data that ask for more memory than a file of their size is given.
    #[error(
        "unpacking the {format} data takes more memory than the {limit} MiB it is given: unpack it by the program \
         {format}, or compress it anew by {preset}"
    )]
    Window {
        /// The compression.
        format: &'static str,
        /// What it is given, in MiB.
        limit: u64,
        /// A command that compresses with a small window.
        preset: &'static str,
    },

    /// An archive without the member that is needed.
    #[error("the archive has no {expected}; its files: {found}")]
    NoMember {
        /// What the member is called.
        expected: &'static str,
        /// The files that the archive has.
        found: String,
    },

    /// A line that no text file has.
    #[error("the line is longer than {max} bytes: \"{found}\"")]
    LineTooLong {
        /// The limit.
        max: usize,
        /// How the line begins.
        found: String,
    },

    /// A symmetric or skew-symmetric file with an entry and its mirror image: whether they should be added or are the
    /// same is anybody's guess.
    #[error("entry ({row},{col}) is given in both triangles of a {symmetry} file")]
    BothTriangles {
        /// Row of the later one, from 1.
        row: usize,
        /// Column of the later one, from 1.
        col: usize,
        /// The symmetry.
        symmetry: Symmetry,
    },

    /// A nonzero on the diagonal of a skew-symmetric matrix.
    #[error("the diagonal of a skew-symmetric matrix is zero, but entry ({index},{index}) is {found}")]
    SkewDiagonal {
        /// Row and column, from 1.
        index: usize,
        /// The value.
        found: String,
    },

    /// An entry with an imaginary part on the diagonal of a hermitian matrix.
    #[error("the diagonal of a hermitian matrix is real, but entry ({index},{index}) is {found}")]
    HermitianDiagonal {
        /// Row and column, from 1.
        index: usize,
        /// The value.
        found: String,
    },

    /// Entries that share a place and add up to something infinite.
    #[error("the entries at ({row},{col}) add up to more than a double can hold")]
    SumNotFinite {
        /// Row, from 1.
        row: usize,
        /// Column, from 1.
        col: usize,
    },
}

/// How many characters an error quotes of a file's text.
const QUOTED: usize = 60;

/// The beginning of `text`, fit for one line of a terminal.
pub(crate) fn quote(text: &[u8]) -> String {
    let mut quoted = String::new();
    for &byte in text.trim_ascii_end() {
        if quoted.len() >= QUOTED {
            quoted.push('…');
            break;
        }
        quoted.extend(std::ascii::escape_default(byte).map(char::from));
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_whatever_the_name_and_the_text() {
        let kind = ErrorKind::ValueNotANumber { found: quote(b"\x1b[31m\r\0\"\xff") };
        let error = Error { file: "a\nb.mtx".into(), line: 7, column: Some(3), kind };
        assert_eq!(error.to_string(), r#"a\nb.mtx:7:3: expected a number, found "\x1b[31m\r\x00\"\xff""#);
    }

    #[test]
    fn no_column_where_there_is_none() {
        let error = Error { file: "a".into(), line: 1, column: None, kind: ErrorKind::Empty };
        assert_eq!(error.to_string(), "a:1: the file is empty");
    }

    #[test]
    fn long_text_is_shortened() {
        assert_eq!(quote(&[b'x'; 1000]), "x".repeat(QUOTED) + "…");
    }

    #[test]
    fn errors_travel_between_threads() {
        fn check<T: Clone + std::fmt::Debug + std::error::Error + Send + Sync + 'static>() {}
        check::<Error>();
        check::<ErrorKind>();
    }
}
