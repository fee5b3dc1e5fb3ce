//! What can be wrong with a `.npz` file, one variant a cause.

use super::one_line;

/// What is wrong with a `.npz` file, and with which of its members.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}{kind}", one_line(file), member.as_ref().map_or_else(String::new, |name| one_line(name) + ": "))]
#[non_exhaustive]
pub struct Error {
    /// The file's name.
    pub file: String,
    /// The member, as `data.npy`; none if it is the archive as a whole, or several of them together.
    pub member: Option<String>,
    /// What is wrong there.
    pub kind: ErrorKind,
}

/// What is wrong with a file or member. Quoted text is shortened and its unprintable bytes are escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file that is no zip archive.
    #[error("not a .npz file: it should begin with \"PK\", but begins with \"{found}\"")]
    NotZip {
        /// The beginning of the file.
        found: String,
    },

    /// A zip archive that can't be understood, often since its end is missing.
    #[error("the zip archive is damaged: {what}")]
    Archive {
        /// What was found.
        what: String,
    },

    /// Two members of one name.
    #[error("the archive has several members of the same name; write the file anew")]
    DuplicateMembers,

    /// A member that the format needs.
    #[error("the archive has no such member; is it a sparse matrix that scipy.sparse.save_npz wrote?")]
    Missing,

    /// A member that needs a password.
    #[error("the member is encrypted; write the file without a password")]
    Encrypted,

    /// A member compressed by other means than SciPy's.
    #[error("compression method {found}; expected stored or deflated")]
    Compression {
        /// The method.
        found: String,
    },

    /// A member that goes on beyond the file's end.
    #[error("{bytes} bytes from byte {start} on are beyond the end of the file, which has {file_bytes}")]
    Truncated {
        /// Where the member begins.
        start: u64,
        /// How many bytes it should have.
        bytes: u64,
        /// How many the file has.
        file_bytes: u64,
    },

    /// A member whose bytes do not give its checksum.
    #[error("CRC-32 {found:08x} instead of {expected:08x}: the file is damaged")]
    Checksum {
        /// What the archive says.
        expected: u32,
        /// That of the bytes.
        found: u32,
    },

    /// A compressed member that can't be decompressed, or gives other bytes than announced.
    #[error("the compressed data are damaged: {what}")]
    Deflate {
        /// What was found.
        what: String,
    },

    /// A member that is no NumPy array.
    #[error("not an array of NumPy: it should begin with \"\\x93NUMPY\", but begins with \"{found}\"")]
    NotNpy {
        /// Its first bytes.
        found: String,
    },

    /// A version of NumPy's format that is not known.
    #[error("version {major}.{minor} of the .npy format; expected 1.0, 2.0 or 3.0")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },

    /// A header that is not the dictionary it should be.
    #[error("expected a header \"{{'descr': …, 'fortran_order': …, 'shape': …}}\", found \"{found}\"")]
    Header {
        /// The header.
        found: String,
    },

    /// Elements of another type than they should have.
    #[error("elements of type '{found}'; expected {expected}")]
    Dtype {
        /// What would do.
        expected: &'static str,
        /// NumPy's name of the type.
        found: String,
    },

    /// A member with more or fewer bytes than its header announces.
    #[error("the header announces {expected} bytes of elements, but there are {found}")]
    Size {
        /// Elements times their size.
        expected: u128,
        /// Bytes after the header.
        found: u64,
    },

    /// An array with another number of dimensions or elements than it should have.
    #[error("an array of shape {found}; expected {expected}")]
    Shape {
        /// What would do.
        expected: String,
        /// The shape.
        found: String,
    },

    /// A sparse format that is not known.
    #[error("sparse format \"{found}\"; expected csr, csc, coo, bsr or dia")]
    Format {
        /// The format's name.
        found: String,
    },

    /// A dimension that is negative, or beyond what this program can address.
    #[error("{found} {what}; expected 0 to {max}")]
    Dimension {
        /// Rows or columns.
        what: &'static str,
        /// How many.
        found: i64,
        /// The limit.
        max: u64,
    },

    /// Dimensions that so few elements, or so small a file, can't mean: they would cost memory out of all proportion.
    #[error("{rows} rows and {cols} columns are implausible for {elements} elements in a file of {bytes} bytes")]
    Implausible {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
        /// Elements of the arrays.
        elements: u64,
        /// Size of the file.
        bytes: u64,
    },

    /// Row pointers that do not begin at 0, fall, or lead beyond the arrays. Positions count from 0.
    #[error("element {position} is {found}; expected {expected}")]
    Pointer {
        /// Which one.
        position: usize,
        /// Its value.
        found: i64,
        /// What it should be.
        expected: String,
    },

    /// An index outside the matrix. Positions and indices count from 0.
    #[error("element {position} is {found}, but there are only {count} {what}")]
    Index {
        /// Rows or columns, of blocks perhaps.
        what: &'static str,
        /// Which element.
        position: usize,
        /// Its value.
        found: i64,
        /// How many rows or columns there are.
        count: usize,
    },

    /// A value that is infinite or NaN. Positions count from 0.
    #[error("element {position} is {value}, not a finite number")]
    NotFinite {
        /// Which element, in the order of the file.
        position: usize,
        /// Its value.
        value: String,
    },

    /// Entries that share a place and add up to something infinite. Rows and columns count from 0.
    #[error("the entries at [{row}, {col}] add up to more than a double can hold")]
    SumNotFinite {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        col: usize,
    },
}

/// How many bytes an error quotes of a file.
const QUOTED: usize = 100;

/// The beginning of `text`, fit for one line of a terminal.
pub(crate) fn quote(text: &[u8]) -> String {
    let text = text.trim_ascii();
    let more = if text.len() > QUOTED { "…" } else { "" };
    format!("{}{more}", text[..text.len().min(QUOTED)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_whatever_the_names_and_the_text() {
        let kind = ErrorKind::Format { found: quote(b"\x1b[31m\r\0\"\xff") };
        let error = Error { file: "a\nb.npz".into(), member: Some("c\r.npy".into()), kind: kind.clone() };
        let text = r#"sparse format "\x1b[31m\r\x00\"\xff"; expected csr, csc, coo, bsr or dia"#;
        assert_eq!(error.to_string(), format!(r"a\nb.npz: c\r.npy: {text}"));
        assert_eq!(Error { member: None, ..error }.to_string(), format!(r"a\nb.npz: {text}"));
        assert_eq!(quote(&[b'x'; 1000]), "x".repeat(QUOTED) + "…");
    }

    #[test]
    fn errors_travel_between_threads() {
        fn check<T: Clone + std::fmt::Debug + std::error::Error + Send + Sync + 'static>() {}
        check::<Error>();
        check::<ErrorKind>();
    }
}
