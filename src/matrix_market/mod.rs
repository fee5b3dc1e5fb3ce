//! Matrix Market files: a strict reader and a writer that loses no bit.
//!
//! The [format](https://math.nist.gov/MatrixMarket/formats.html) in short: a banner, comments, a line with the
//! size, and a line an entry.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real symmetric
//! % the lower triangle of a 2 × 2 matrix with 3 entries
//! 2 2 2
//! 1 1 4.0
//! 2 1 -1.0
//! ```
//!
//! | word of the banner | read |
//! |---|---|
//! | object | `matrix`; `vector`, as a matrix of one column, whose lines name no column: its size is `rows entries` or, of an array, `rows` |
//! | layout | `coordinate` (a line `row column value` an entry), `array` (a line an entry, column by column) |
//! | field | `real` or `double`, `integer` and `unsigned-integer` (rounded to the nearest double), `complex`, `pattern` (every value is 1) |
//! | symmetry | `general`; `symmetric`, `skew-symmetric`, `hermitian` (expanded to the full matrix) |
//!
//! Tolerated, since it occurs and can't be misread: blanks before the banner (with a warning in the log), banner words in any case, blank lines and comment lines after
//! the banner, extra blanks and tabs, CRLF, a missing last newline, a leading `+`, Fortran's exponents (`1.0D+05`),
//! and entries of either triangle in a symmetric file. Entries that share a place are added, and counted in
//! [`Matrix::duplicates`]. Zeros that a coordinate file stores stay entries or are dropped, as [`Zeros`] says; those of
//! an array file do not become any.
//!
//! Text may come compressed by gzip, bzip2, xz or zstd (where the crate is built with the feature `compression`), and in a tar archive as the SuiteSparse collection has it: its
//! first bytes tell, not its name. A file is mapped into memory; lines are read by all threads, with the same result
//! whatever their number.
//!
//! Everything else is an [`Error`] with the file, the line, the column and what was expected. The header's counts are
//! only compared with what the file holds: no memory is set aside on their word. Beside the entries that a file really
//! holds, reading it takes a few megabytes:
//!
//! | | limit |
//! |---|---|
//! | a line, comments aside | 64 KiB |
//! | rows, columns | 2²⁰, and 64 more for each entry; of what [`read_vectors`] reads, the same for their product |
//! | comments kept | 64 KiB |
//! | window (dictionary) of xz and zstd | 64 and 128 MiB, as `xz -9` and `zstd --long` have it |
//! | the part in use of a window above 8 MiB | 4 MiB, and 128 bytes more for each compressed byte before |

mod archive;
mod array;
mod assemble;
mod block;
mod body;
mod decimal;
mod fault;
mod header;
mod line;
mod lines;
#[cfg(feature = "compression")]
mod pack;
pub(crate) mod parts;
mod quick;
mod read;
mod simd;
mod source;
mod token;
#[cfg(feature = "compression")]
mod unpack;
#[cfg(not(feature = "compression"))]
#[path = "unpack_none.rs"]
mod unpack;
mod write;

pub use crate::banner::{Field, Layout, Object, Symmetry};
pub use crate::error::matrix_market::{Error, ErrorKind};
pub use assemble::Zeros;
pub use header::Header;
pub use read::{
    Matrix, Reader, System, read_any_vectors, read_any_vectors_from, read_matrix, read_matrix_from, read_vectors,
    read_vectors_from,
};
pub use source::Packing;
pub(crate) use source::unpacked;
pub use write::{Unwritable, WriteOptions, head_of_vectors, write_elements, write_matrix, write_vectors};
