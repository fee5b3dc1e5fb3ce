//! How rows are stored.

use crate::named::named;

named! {
    /// How rows are stored. The host, which has the matrix anyway, takes `csr` for `pattern` and `sell`.
    Format, "format":
    Auto = "auto", "For each block of rows what was measured to be fastest on it, or else what reads the fewest bytes.";
    Csr = "csr", "Compressed rows: a column and a value for each entry.";
    Sell = "sell", "In slices of rows: columns once a block or in two bytes, values in as few bytes as keep their bits.";
    Pattern = "pattern", "For rows of a few kinds by their columns: no column is stored but those of the kinds.";
    Stencil = "stencil", "For rows of a few kinds by columns and values: neither is stored but those of the kinds.";
}
