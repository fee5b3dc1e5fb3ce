//! SciPy's `.npz` files of sparse matrices: the fastest way to store a matrix that is read again and again.
//!
//! `scipy.sparse.save_npz` writes them, `scipy.sparse.load_npz` reads them; so do [`write()`] and [`read()`]. Such a
//! file is a zip archive of arrays in [NumPy's format][npy]:
//!
//! | member | `csr`, `csc` | `bsr` | `coo` | `dia` |
//! |---|---|---|---|---|
//! | `format.npy` | the format's name | | | |
//! | `shape.npy` | rows, columns | | | |
//! | `data.npy` | nnz values | nnz blocks | nnz values | a row a diagonal |
//! | `indptr.npy` | where each row or column starts | each row of blocks | | |
//! | `indices.npy` | column or row of each value | column of each block | | |
//! | `row.npy`, `col.npy`, or both as `coords.npy` | | | place of each value | |
//! | `offsets.npy` | | | | diagonal of each row |
//!
//! Read: all of these, stored or deflated, in either byte order, with any integers as indices, and real or complex
//! floating-point numbers, integers or truth values as values, which become the nearest doubles. The result is in
//! compressed rows: entries that share a place are added, as SciPy does; explicit zeros stay, except in `dia`, where
//! SciPy too takes zeros for padding. Other members are ignored.
//!
//! Written: `csr`, stored, with the data of each array at a multiple of 64 bytes. Stored arrays of this machine's byte
//! order are read in parallel straight into the matrix by [`read()`], and used where they are by [`map()`].
//!
//! The checksum of every array is verified. Sizes that a file claims are compared with the bytes it has before memory
//! is set aside, and what is compressed grows as it arrives, so that a file costs memory in proportion to what it
//! holds.
//!
//! [npy]: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

mod archive;
mod array;
mod convert;
mod decode;
mod element;
mod header;
pub(crate) mod parts;
mod read;
mod source;
mod vectors;
mod write;

pub use crate::error::npz::{Error, ErrorKind};
pub use element::Element;
pub use read::{Matrix, is_npz, map, map_with, read, read_with};
pub use vectors::{is_npy, read_rows, read_vectors, vectors_header, write_array, write_vectors};
pub use write::{write, write_any};
