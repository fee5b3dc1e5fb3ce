//! From the arrays of a file to a matrix.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rayon::prelude::*;

use super::archive::Archive;
use super::array::{Array, Progress};
use super::convert::{Triplets, expand, infinite_sum, is_rising};
use super::element::Element;
use crate::error::npz::{ErrorKind, quote};
use crate::matrix::{AnyCsr, Complex64, Csr};
use crate::{Error, Result};

/// Dimensions up to this one cost little, whatever the arrays are.
const PLAUSIBLE: u64 = 1 << 16;

/// How many rows or columns to each element are plausible, and to each byte of the file.
const PLAUSIBLE_PER_ELEMENT: u64 = 256;

/// How many row pointers are checked at a time.
const CHUNK: usize = 1 << 14;

/// A matrix as its file has it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Matrix {
    /// The matrix.
    pub a: AnyCsr,
    /// Entries that share a place with an earlier one, to which they were added.
    pub duplicates: u64,
}

/// Reads a sparse matrix that `scipy.sparse.save_npz` or [`write`](super::write()) wrote, into memory of its own.
///
/// Stored `csr` arrays with sorted indices and doubles are read at the speed of memory; others are converted. [`map`] is
/// faster where a file stays as it is.
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
    read_with(path, &|_, _| {}).map(|matrix| matrix.a)
}

/// Reads a matrix as [`read`] does, but leaves large arrays where they are: in the file, which is mapped into memory.
///
/// That is done with the column indices and values of `csr` matrices whose rows are sorted, if they are stored,
/// begin at a multiple of the size of an element, and have this machine's byte order, 32 bits (columns), and double
/// precision (values). [`write`](super::write()) writes files so; in those of SciPy, arrays begin anywhere. Checksums,
/// indices and values are verified as ever; what is spared is memory, and the copy: of 12 bytes an entry, none is
/// written. All else is read as by [`read`], and has no part in the following.
///
/// **As long as the matrix or a clone of it is there, the file must not be changed in place, nor shortened.** Who
/// changes it changes the matrix, behind the back of all checks: results are then wrong, or the program panics; access
/// beyond the end of a shortened file ends it with a bus error. To replace the file by renaming another one to its
/// name is fine, as is removing it.
///
/// [`Csr::into_raw_parts`] gives arrays that are the caller's own.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npz");
/// # let a = declive::Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![4.0, 0.1, 2.0])?;
/// # declive::npz::write(std::fs::File::create(&path)?, &a)?;
/// assert_eq!(declive::npz::map(&path)?, declive::npz::read(&path)?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`read`].
pub fn map(path: &Path) -> Result<AnyCsr> {
    map_with(path, &|_, _| {}).map(|matrix| matrix.a)
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
pub fn read_with(path: &Path, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Matrix> {
    matrix(&Archive::open(path, false)?, progress)
}

/// Reads a matrix as [`map`] does, and calls `progress` as [`read_with`] does.
///
/// # Errors
/// As [`read`].
pub fn map_with(path: &Path, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Matrix> {
    matrix(&Archive::open(path, true)?, progress)
}

fn matrix(archive: &Archive, hook: &(dyn Fn(u64, u64) + Sync)) -> Result<Matrix> {
    let format = archive.array("format")?;
    let name = format.text()?;
    let content = Content::of(archive, hook)?;
    if content.data.is_complex()? {
        content.read::<Complex64>(&format, &name).map(|(a, duplicates)| Matrix { a: a.into(), duplicates })
    } else {
        content.read::<f64>(&format, &name).map(|(a, duplicates)| Matrix { a: a.into(), duplicates })
    }
}

/// What the formats have in common.
pub(super) struct Content<'a> {
    archive: &'a Archive<'a>,
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
    pub(super) data: Array<'a>,
    hook: &'a (dyn Fn(u64, u64) + Sync),
}

impl<'a> Content<'a> {
    pub(super) fn of(archive: &'a Archive<'a>, hook: &'a (dyn Fn(u64, u64) + Sync)) -> Result<Self> {
        let shape = archive.array("shape")?;
        shape.expect_shape(&[2])?;
        let dims = shape.integers::<i64>("a number of rows or columns", None)?;
        let dim = |what, found: i64| match usize::try_from(found) {
            Ok(n) if n <= Csr::MAX_DIM => Ok(n),
            _ => Err(shape.error(ErrorKind::Dimension { what, found, max: Csr::MAX_DIM as u64 })),
        };
        let (n_rows, n_cols) = (dim("rows", dims[0])?, dim("columns", dims[1])?);
        Ok(Self { archive, n_rows, n_cols, data: archive.array("data")?, hook })
    }

    /// The matrix, and how many entries were added to another one.
    fn read<T: Element>(&self, format: &Array, name: &[u8]) -> Result<(Csr<T>, u64)> {
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
    fn compressed<T: Element>(&self, by_rows: bool) -> Result<(Csr<T>, u64)> {
        let (n_major, n_minor, what) =
            if by_rows { (self.n_rows, self.n_cols, "columns") } else { (self.n_cols, self.n_rows, "rows") };
        let (starts, indices, progress) = self.pointers(n_major)?;
        let nnz = starts[n_major]; // SciPy leaves room behind the last entry at times
        let check = |at: usize, chunk: &[u32]| (at, is_rising(&starts, at, chunk));
        let (indices, values) = rayon::join(
            || indices.indices(nnz, what, n_minor, &check, &progress),
            || self.data.values::<T>(nnz, &progress),
        );
        let ((indices, chunks), values) = (indices?, values?.truncated(nnz));
        let is_seamless =
            |at: usize| at == 0 || at >= nnz || indices[at - 1] < indices[at] || starts.binary_search(&at).is_ok();
        if by_rows && chunks.iter().all(|&(at, rises)| rises && is_seamless(at)) {
            return Ok((Csr::assembled(self.n_rows, self.n_cols, starts, indices, values), 0));
        }
        let major = expand(&starts);
        let (rows, cols): (&[u32], &[u32]) = if by_rows { (&major, &indices) } else { (&indices, &major) };
        self.assemble(rows, cols, &values)
    }

    /// Where rows or columns start in the other arrays, and the array of indices.
    pub(super) fn pointers(&self, n_major: usize) -> Result<(Vec<usize>, Array<'a>, Progress<'a>)> {
        let (indptr, indices) = (self.archive.array("indptr")?, self.archive.array("indices")?);
        indptr.expect_shape(&[n_major + 1])?;
        let room = indices.expect_vector()?;
        self.data.expect_shape(&[room])?;
        self.check_plausible(self.data.len + indptr.len)?;
        let progress = Progress::new(self.hook, &[&indptr, &indices, &self.data]);
        Ok((read_starts(&indptr, room, &progress)?, indices, progress))
    }

    /// A row and a column to each value.
    fn coordinates<T: Element>(&self) -> Result<(Csr<T>, u64)> {
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
            for (k, &value) in self.data.values(nnz, &progress)?.iter().enumerate() {
                let (row, col) = if coords.header.fortran { (2 * k, 2 * k + 1) } else { (k, nnz + k) };
                entries.push(index(row, "rows", self.n_rows)?, index(col, "columns", self.n_cols)?, value);
            }
            return self.assemble(&entries.rows, &entries.cols, &entries.values);
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
        self.assemble(&rows?.0, &cols?.0, &values?)
    }

    /// Rows of dense blocks.
    fn blocks<T: Element>(&self) -> Result<(Csr<T>, u64)> {
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
        let values = self.data.values::<T>(in_use, &progress)?;
        let mut entries = Triplets::default();
        for (k, (block_row, &block_col)) in expand(&starts).into_iter().zip(indices.iter()).enumerate() {
            for r in 0..height {
                for c in 0..width {
                    let at = if fortran { k + count * (r + height * c) } else { (k * height + r) * width + c };
                    entries.push(block_row as usize * height + r, block_col as usize * width + c, values[at]);
                }
            }
        }
        self.assemble(&entries.rows, &entries.cols, &entries.values)
    }

    /// A row of the data to each diagonal: element `j` is the one in column `j`, if the matrix has a place there.
    fn diagonals<T: Element>(&self) -> Result<(Csr<T>, u64)> {
        let offsets = self.archive.array("offsets")?;
        let count = offsets.expect_vector()?;
        let [_, len] = self.data.header.shape[..] else {
            return Err(self.data.shape_error("two dimensions".into()));
        };
        self.data.expect_shape(&[count, len])?;
        self.check_plausible(self.data.len)?;
        let progress = Progress::new(self.hook, &[&offsets, &self.data]);
        let offsets: Vec<i64> = offsets.integers("the offset of a diagonal", Some(&progress))?;
        let values = self.data.values::<T>(0, &progress)?;
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
        self.assemble(&entries.rows, &entries.cols, &entries.values)
    }

    fn assemble<T: Element>(&self, rows: &[u32], cols: &[u32], values: &[T]) -> Result<(Csr<T>, u64)> {
        let a = Csr::from_triplets(self.n_rows, self.n_cols, rows, cols, values).map_err(|error| match error {
            Error::NotFinite { .. } => self.archive.error(None, infinite_sum(rows, cols, values)),
            other => other,
        })?;
        let duplicates = (values.len() - a.nnz()) as u64;
        if duplicates > 0 {
            let name = self.archive.name();
            log::warn!("{name}: {duplicates} entries share a place with an earlier one and were added to it");
        }
        Ok((a, duplicates))
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::matrix::Scalar;
    use crate::npz::write;

    /// The file that [`write`] makes of `a`.
    fn written<T: Element>(a: &Csr<T>) -> Vec<u8> {
        let mut file = std::io::Cursor::new(Vec::new());
        write(&mut file, a).unwrap();
        file.into_inner()
    }

    /// A matrix of ten rows with up to two entries each.
    fn matrix<T: Scalar>(n_cols: usize, last: T) -> Csr<T> {
        let mut values = vec![T::ONE; 15];
        values[14] = last;
        let row_ptr = (0..=10).map(|i| i * 3 / 2).collect();
        Csr::new(10, n_cols, row_ptr, [0, 0, 1].repeat(5), values).unwrap()
    }

    /// Whether columns and values are used where they are in a file of these bytes.
    fn is_mapped(bytes: &[u8], read: impl Fn(&Path) -> Result<AnyCsr>) -> (bool, bool) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        match read(file.path()).unwrap() {
            AnyCsr::Real(a) => a.is_mapped(),
            AnyCsr::Complex(a) => a.is_mapped(),
        }
    }

    #[test]
    fn what_is_written_is_used_where_it_is() {
        let n = 100_000;
        let identity = Csr::new(n, n, (0..=n).collect(), (0..n as u32).collect(), vec![1.0; n]).unwrap();
        for real in [written(&matrix(3, 0.5)), written(&identity)] {
            assert_eq!(is_mapped(&real, map), (true, true));
            assert_eq!(is_mapped(&real, read), (false, false));
        }
        assert_eq!(is_mapped(&written(&matrix(3, Complex64::I)), map), (true, true));
        let none = Csr::new(2, 2, vec![0; 3], vec![], Vec::<f64>::new()).unwrap();
        assert_eq!(is_mapped(&written(&none), map), (true, true));
    }

    #[test]
    fn what_is_not_aligned_is_copied() {
        let bytes = written(&matrix(3, 0.5));
        // the same members behind an empty one with a name of `shift` bytes
        let shifted = |shift: usize| {
            let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
            let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            let mut from = zip::ZipArchive::new(std::io::Cursor::new(&bytes)).unwrap();
            zip.start_file("x".repeat(shift), options).unwrap();
            for k in 0..from.len() {
                let mut member = from.by_index(k).unwrap();
                zip.start_file(member.name().unwrap().into_owned(), options).unwrap();
                std::io::copy(&mut member, &mut zip).unwrap();
            }
            zip.finish().unwrap().into_inner()
        };
        let found: Vec<_> = (1..=8).map(|shift| is_mapped(&shifted(shift), map)).collect();
        assert_eq!(found.iter().filter(|(columns, _)| *columns).count(), 2);
        assert_eq!(found.iter().filter(|(_, values)| *values).count(), 1);
    }
}
