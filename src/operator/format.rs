//! How rows are stored.

use crate::named::named;

named! {
    /// How rows are stored. The host, which has the matrix anyway, takes `csr` for `pattern` and `sell`.
    Format, "format":
    Auto = "auto", "For each block of rows what was measured to be fastest on it, or else what reads the fewest bytes.";
    Csr = "csr", "Compressed rows: a column and a value for each entry.";
    Sell = "sell", "In slices of rows: columns once a block or in two bytes, values in as few bytes as keep their bits, complex numbers as two.";
    Pattern = "pattern", "For rows of a few patterns: each row is a number in a dictionary of distances column − row, and its values.";
    Dictionary = "dictionary", "For rows of a few patterns with their values: each row is a number in a dictionary of both.";
}

impl Format {
    /// Bytes that a product usually reads for an entry: its column and value in double precision, as far as they are stored for each.
    pub(crate) fn entry_bytes(self) -> f64 {
        match self {
            Self::Dictionary => 0.0,
            Self::Pattern => 8.0,
            Self::Sell => 10.0,
            Self::Csr | Self::Auto => 12.0,
        }
    }
}
