//! From the arrays of a file to a matrix.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rayon::prelude::*;

use super::archive::Archive;
use super::array::{Array, Progress};
use super::convert::{Fault, Triplets, expand, is_rising};
use super::element::Element;
use super::error::{ErrorKind, quote};
use crate::matrix::{AnyCsr, Complex64, Csr};
use crate::{Error, Result};

/// Dimensions up to this one cost little, whatever the arrays are.
const PLAUSIBLE: u64 = 1 << 16;

/// How many rows or columns to each element are plausible, and to each byte of the file.
const PLAUSIBLE_PER_ELEMENT: u64 = 256;

/// How many row pointers are checked at a time.
const CHUNK: usize = 1 << 14;

/// Reads a sparse matrix that `scipy.sparse.save_npz` or [`write`](super::write()) wrote.
///
/// Stored `csr` arrays with sorted indices and doubles are read at the speed of memory; others are converted.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npz");
/// let a = declive::Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, 0.1, 2.0])?;
/// declive::npz::write(std::fs::File::create(&path)?, &a)?;
/// assert_eq!(declive::npz::read(&path)?.into_real(), Some(a));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if the file can't be opened or read, [`Error::Npz`] if it is malformed or damaged, or holds a value
/// that is not finite, [`Error::OutOfMemory`] if it is too large for the machine.
pub fn read(path: &Path) -> Result<AnyCsr> {
    read_with(path, &|_, _| {})
}

/// Whether a file is one to [`read`], by its first bytes: a zip archive. What can't be opened, or not be opened twice,
/// is none.
#[must_use]
pub fn is_npz(path: &Path) -> bool {
    let begins = || {
        let mut start = [0; 4];
        let is_file = std::fs::metadata(path)?.is_file();
        if is_file {
            File::open(path)?.read_exact(&mut start)?;
        }
        std::io::Result::Ok(start == *b"PK\x03\x04")
    };
    begins().unwrap_or(false)
}

/// Reads a matrix as [`read`] does, and calls `progress` with the numbers of bytes read and in all.
///
/// Calls come from several threads, each after some hundred KiB; the last one to arrive need not have the highest
/// number.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: &Path, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<AnyCsr> {
    let archive = Archive::open(path)?;
    let format = archive.array("format")?;
    let name = format.text()?;
    let shape = archive.array("shape")?;
    shape.expect_shape(&[2])?;
    let dims = shape.integers::<i64>("a number of rows or columns", None)?;
    let dim = |what, found: i64| match usize::try_from(found) {
        Ok(n) if n <= Csr::MAX_DIM => Ok(n),
        _ => Err(shape.error(ErrorKind::Dimension { what, found, max: Csr::MAX_DIM as u64 })),
    };
    let (n_rows, n_cols) = (dim("rows", dims[0])?, dim("columns", dims[1])?);
    let matrix = Matrix { archive: &archive, n_rows, n_cols, data: archive.array("data")?, hook: progress };
    if matrix.data.is_complex()? {
        matrix.read::<Complex64>(&format, &name).map(AnyCsr::Complex)
    } else {
        matrix.read::<f64>(&format, &name).map(AnyCsr::Real)
    }
}

/// What the formats have in common.
struct Matrix<'a> {
    archive: &'a Archive<'a>,
    n_rows: usize,
    n_cols: usize,
    data: Array<'a>,
    hook: &'a (dyn Fn(u64, u64) + Sync),
}

impl Matrix<'_> {
    fn read<T: Element>(&self, format: &Array, name: &[u8]) -> Result<Csr<T>> {
        match name {
            b"csr" => self.compressed(true),
            b"csc" => self.compressed(false),
            b"coo" => self.coordinates(),
            b"bsr" => self.blocks(),
            b"dia" => self.diagonals(),
            _ => Err(format.error(ErrorKind::Format { found: quote(name) })),
        }
    }

    /// Compressed rows or columns.
    fn compressed<T: Element>(&self, by_rows: bool) -> Result<Csr<T>> {
        let (n_major, n_minor, what) =
            if by_rows { (self.n_rows, self.n_cols, "columns") } else { (self.n_cols, self.n_rows, "rows") };
        let (indptr, indices) = (self.archive.array("indptr")?, self.archive.array("indices")?);
        indptr.expect_shape(&[n_major + 1])?;
        let room = indices.expect_vector()?;
        self.data.expect_shape(&[room])?;
        self.check_plausible(self.data.len + indptr.len)?;
        let progress = Progress::new(self.hook, &[&indptr, &indices, &self.data]);
        let starts = read_starts(&indptr, room, &progress)?;
        let nnz = starts[n_major]; // SciPy leaves room behind the last entry at times
        let check = |at: usize, chunk: &[u32]| (at, is_rising(&starts, at, chunk));
        let (indices, values) = rayon::join(
            || indices.indices(nnz, what, n_minor, &check, &progress),
            || self.data.values::<T>(nnz, &progress),
        );
        let ((indices, chunks), mut values) = (indices?, values?);
        values.truncate(nnz);
        let is_seamless =
            |at: usize| at == 0 || at >= nnz || indices[at - 1] < indices[at] || starts.binary_search(&at).is_ok();
        if by_rows && chunks.iter().all(|&(at, rises)| rises && is_seamless(at)) {
            return Ok(Csr::assembled(self.n_rows, self.n_cols, starts, indices, values));
        }
        let major = expand(&starts);
        let (rows, cols) = if by_rows { (major, indices) } else { (indices, major) };
        self.assemble(Triplets { rows, cols, values })
    }

    /// A row and a column to each value.
    fn coordinates<T: Element>(&self) -> Result<Csr<T>> {
        let nnz = self.data.expect_vector()?;
        self.check_plausible(nnz)?;
        // one array to come for both; SciPy reads it already
        if self.archive.holds("coords") {
            let coords = self.archive.array("coords")?;
            coords.expect_shape(&[2, nnz])?;
            let progress = Progress::new(self.hook, &[&coords, &self.data]);
            let places: Vec<i64> = coords.integers("an index", Some(&progress))?;
            let index = |position: usize, what, count: usize| match usize::try_from(places[position]) {
                Ok(i) if i < count => Ok(i),
                _ => Err(coords.error(ErrorKind::Index { what, position, found: places[position], count })),
            };
            let mut entries = Triplets::default();
            for (k, value) in self.data.values(nnz, &progress)?.into_iter().enumerate() {
                let (row, col) = if coords.header.fortran { (2 * k, 2 * k + 1) } else { (k, nnz + k) };
                entries.push(index(row, "rows", self.n_rows)?, index(col, "columns", self.n_cols)?, value);
            }
            return self.assemble(entries);
        }
        let (row, col) = (self.archive.array("row")?, self.archive.array("col")?);
        row.expect_shape(&[nnz])?;
        col.expect_shape(&[nnz])?;
        let progress = Progress::new(self.hook, &[&row, &col, &self.data]);
        let ((rows, cols), values) = rayon::join(
            || {
                rayon::join(
                    || row.indices(nnz, "rows", self.n_rows, &|_, _| (), &progress),
                    || col.indices(nnz, "columns", self.n_cols, &|_, _| (), &progress),
                )
            },
            || self.data.values(nnz, &progress),
        );
        self.assemble(Triplets { rows: rows?.0, cols: cols?.0, values: values? })
    }

    /// Rows of dense blocks.
    fn blocks<T: Element>(&self) -> Result<Csr<T>> {
        let [count, height, width] = self.data.header.shape[..] else {
            return Err(self.data.shape_error("three dimensions".into()));
        };
        if height == 0 || width == 0 || !self.n_rows.is_multiple_of(height) || !self.n_cols.is_multiple_of(width) {
            let expected = format!("blocks that divide {} rows and {} columns", self.n_rows, self.n_cols);
            return Err(self.data.shape_error(expected));
        }
        let (indptr, indices) = (self.archive.array("indptr")?, self.archive.array("indices")?);
        indptr.expect_shape(&[self.n_rows / height + 1])?;
        indices.expect_shape(&[count])?;
        self.check_plausible(self.data.len + indptr.len)?;
        let progress = Progress::new(self.hook, &[&indptr, &indices, &self.data]);
        let starts = read_starts(&indptr, count, &progress)?;
        let used = starts[starts.len() - 1];
        let (indices, _) = indices.indices(used, "columns of blocks", self.n_cols / width, &|_, _| (), &progress)?;
        let fortran = self.data.header.fortran;
        let in_use = if fortran { self.data.len } else { used * height * width };
        let values: Vec<T> = self.data.values(in_use, &progress)?;
        let mut entries = Triplets::default();
        for (k, (block_row, &block_col)) in expand(&starts).into_iter().zip(&indices).enumerate() {
            for r in 0..height {
                for c in 0..width {
                    let at = if fortran { k + count * (r + height * c) } else { (k * height + r) * width + c };
                    entries.push(block_row as usize * height + r, block_col as usize * width + c, values[at]);
                }
            }
        }
        self.assemble(entries)
    }

    /// A row of the data to each diagonal: element `j` is the one in column `j`, if the matrix has a place there.
    fn diagonals<T: Element>(&self) -> Result<Csr<T>> {
        let offsets = self.archive.array("offsets")?;
        let count = offsets.expect_vector()?;
        let [_, len] = self.data.header.shape[..] else {
            return Err(self.data.shape_error("two dimensions".into()));
        };
        self.data.expect_shape(&[count, len])?;
        self.check_plausible(self.data.len)?;
        let progress = Progress::new(self.hook, &[&offsets, &self.data]);
        let offsets: Vec<i64> = offsets.integers("the offset of a diagonal", Some(&progress))?;
        let values: Vec<T> = self.data.values(0, &progress)?;
        let mut entries = Triplets::default();
        for (d, &offset) in offsets.iter().enumerate() {
            // all below 2³³ but the offset; a row number below 0 is none
            let first = offset.max(0) as usize;
            let end = usize::try_from(offset.saturating_add(self.n_rows as i64)).unwrap_or(0);
            for j in first..end.min(self.n_cols).min(len) {
                let at = if self.data.header.fortran { d + count * j } else { d * len + j };
                if !values[at].is_finite() {
                    let value = format!("{:?}", values[at]);
                    return Err(self.data.error(ErrorKind::NotFinite { position: at, value }));
                }
                if values[at] != T::default() {
                    entries.push((j as i64 - offset) as usize, j, values[at]);
                }
            }
        }
        self.assemble(entries)
    }

    fn assemble<T: Element>(&self, entries: Triplets<T>) -> Result<Csr<T>> {
        let given = entries.values.len();
        let a = entries.into_csr(self.n_rows, self.n_cols).map_err(|fault| match fault {
            Fault::Kind(kind) => self.archive.error(None, kind),
            Fault::Other(error) => error,
        })?;
        let merged = given - a.nnz();
        if merged > 0 {
            let name = self.archive.name();
            log::warn!("{name}: {merged} entries share a place with an earlier one and were added to it");
        }
        Ok(a)
    }

    /// Rows that no array has elements for cost memory nevertheless.
    fn check_plausible(&self, elements: usize) -> Result<()> {
        let (rows, cols, elements, bytes) = (self.n_rows, self.n_cols, elements as u64, self.archive.bytes());
        // of compressed arrays, some bytes can claim a thousand times as many elements
        if rows.max(cols) as u64 > PLAUSIBLE + PLAUSIBLE_PER_ELEMENT.saturating_mul(elements.min(bytes)) {
            let kind = ErrorKind::Implausible { rows, cols, elements, bytes };
            return Err(self.archive.error(Some("shape.npy"), kind));
        }
        Ok(())
    }
}

/// Reads where rows start among `room` elements.
fn read_starts(indptr: &Array, room: usize, progress: &Progress) -> Result<Vec<usize>> {
    let starts: Vec<usize> = indptr.integers("0 or more", Some(progress))?;
    let wrong = |position: usize, expected: String| -> Error {
        let found = i64::try_from(starts[position]).unwrap_or(i64::MAX);
        indptr.error(ErrorKind::Pointer { position, found, expected })
    };
    if starts[0] != 0 {
        return Err(wrong(0, "0".into()));
    }
    let last = starts.len() - 1;
    // chunks that share their ends
    let chunk = |i: usize| i * CHUNK..last.min((i + 1) * CHUNK) + 1;
    if let Some(i) = (0..last.div_ceil(CHUNK)).into_par_iter().find_first(|&i| !starts[chunk(i)].is_sorted()) {
        let k = chunk(i).find(|&k| starts[k] > starts[k + 1]).unwrap_or(0);
        return Err(wrong(k + 1, format!("at least {}, as the one before", starts[k])));
    }
    if starts[last] > room {
        return Err(wrong(last, format!("at most {room}, the length of the other arrays")));
    }
    Ok(starts)
}
