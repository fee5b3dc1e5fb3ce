//! The writer.

use std::borrow::Cow;
use std::io::{Error, Result, Seek, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::element::Element;
use super::header;
use crate::matrix::{AnyCsr, Csr};

/// How many elements are converted and written at a time.
const CHUNK: usize = 1 << 15;

/// Arrays begin at multiples of so many bytes of the file.
const ALIGNMENT: u16 = 64;

/// What a zip archive counts in 32 bits, less room for a header.
const SMALL: u64 = u32::MAX as u64 - 0xffff;

/// Writes a matrix as `scipy.sparse.load_npz` reads it: a `csr` matrix, not compressed.
///
/// 12 nnz + 4 n bytes (20 nnz if complex) for n rows, 16 nnz + 8 n (24 nnz) if the matrix is beyond 31-bit indices. The
/// same matrix always gives the same bytes.
///
/// ```
/// let a = declive::Csr::new(1, 2, vec![0, 1], vec![1], vec![0.5]).unwrap();
/// let mut file = std::io::Cursor::new(Vec::new());
/// declive::npz::write(&mut file, &a).unwrap();
/// assert!(file.into_inner().starts_with(b"PK"));
/// ```
///
/// # Errors
/// What `out` gives.
pub fn write<T: Element>(out: impl Write + Seek, a: &Csr<T>) -> Result<()> {
    let mut file = Members { zip: ZipWriter::new(out) };
    let small = i32::MAX as usize;
    let (n_rows, n_cols, nnz) = (a.n_rows(), a.n_cols(), a.nnz());
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let (i4, i8) = (format!("{order}i4"), format!("{order}i8"));
    if n_cols <= small && nnz <= small {
        // what is below 2³¹ has the same bits, signed or not
        file.array("indices", &i4, &format!("({nnz},)"), a.col_idx(), Cow::Borrowed)?;
        file.array("indptr", &i4, &format!("({},)", n_rows + 1), a.row_ptr(), |ps| each(ps, |p| p as u32))?;
    } else {
        file.array("indices", &i8, &format!("({nnz},)"), a.col_idx(), |js| each(js, u64::from))?;
        file.array("indptr", &i8, &format!("({},)", n_rows + 1), a.row_ptr(), |ps| each(ps, |p| p as u64))?;
    }
    file.array("format", "|S3", "()", b"csr", Cow::Borrowed)?;
    file.array("shape", &i8, "(2,)", &[n_rows as u64, n_cols as u64], Cow::Borrowed)?;
    file.array("data", &format!("{order}{}", T::NAME), &format!("({nnz},)"), a.values(), Cow::Borrowed)?;
    file.zip.finish().map(|_| ()).map_err(Error::from)
}

/// Writes a matrix of either kind as [`write()`] does.
///
/// # Errors
/// What `out` gives.
pub fn write_any(out: impl Write + Seek, a: &AnyCsr) -> Result<()> {
    match a {
        AnyCsr::Real(a) => write(out, a),
        AnyCsr::Complex(a) => write(out, a),
    }
}

/// An archive in the making.
struct Members<W: Write + Seek> {
    zip: ZipWriter<W>,
}

impl<W: Write + Seek> Members<W> {
    /// Adds an array of what `convert` makes of `elements`, some at a time.
    fn array<'a, T, U: bytemuck::Pod>(
        &mut self,
        name: &str,
        descr: &str,
        shape: &str,
        elements: &'a [T],
        convert: impl Fn(&'a [T]) -> Cow<'a, [U]>,
    ) -> Result<()> {
        let bytes = (elements.len() as u64).saturating_mul(size_of::<U>() as u64);
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .with_alignment(ALIGNMENT)
            .large_file(bytes > SMALL);
        self.zip.start_file(format!("{name}.npy"), options).map_err(Error::from)?;
        self.zip.write_all(&header::write(descr, false, shape))?;
        // by chunks, so that the checksum leaves in the cache what is copied next
        elements.chunks(CHUNK).try_for_each(|chunk| self.zip.write_all(bytemuck::cast_slice(&convert(chunk))))
    }
}

/// Converts one by one.
fn each<T: Copy, U: Clone>(elements: &[T], convert: impl Fn(T) -> U) -> Cow<'_, [U]> {
    elements.iter().map(|&element| convert(element)).collect()
}
