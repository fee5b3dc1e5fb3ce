//! Vectors in NumPy's `.npy` files: what `numpy.save` writes and `numpy.load` reads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::decode;
use super::element::Element;
use super::header::{self, Header};
use crate::error::npz::ErrorKind;
use crate::matrix::{AnyVectors, Complex64};
use crate::memory::{Map, zeros};
use crate::{Error, Result};

/// Bytes that a thread decodes at a time: of whole elements of any type.
const CHUNK: usize = 1 << 16;

/// Whether a file is one to [`read_vectors`], by its first bytes. What can't be opened, or not be opened twice, is none.
#[must_use]
pub fn is_npy(path: &Path) -> bool {
    let begins = || {
        let mut start = [0; header::MAGIC.len()];
        if std::fs::metadata(path)?.is_file() {
            File::open(path)?.read_exact(&mut start)?;
        }
        io::Result::Ok(start == header::MAGIC)
    };
    begins().unwrap_or(false)
}

/// Reads an array of one dimension as a vector, or one of two as a vector for each column, in either order of elements: truth values,
/// integers, or floating-point numbers, real or complex, which become doubles.
///
/// # Errors
/// [`Error::Io`]; [`Error::Npz`] for what is no such array.
pub fn read_vectors(path: &Path) -> Result<AnyVectors> {
    read_part(path, None).map(|(_, vectors)| vectors)
}

/// Reads some rows of such an array, as far as it has them, and nothing else of it; tells how many it has.
///
/// # Errors
/// As [`read_vectors`].
pub fn read_rows(path: &Path, rows: Range<u64>) -> Result<(u64, AnyVectors)> {
    read_part(path, Some(rows))
}

/// Reads all rows, or some.
fn read_part(path: &Path, some: Option<Range<u64>>) -> Result<(u64, AnyVectors)> {
    let io_error = |e| Error::io(path, e);
    let wrong = |kind| {
        let file = path.to_string_lossy().into_owned();
        Error::Npz(super::Error { file, member: None, kind })
    };
    let file = File::open(path).map_err(io_error)?;
    let (map, mut read) = (Map::of(&file).map_err(io_error)?, Vec::new());
    let bytes: &[u8] = match &map {
        Some(map) => map,
        None => {
            (&file).read_to_end(&mut read).map_err(io_error)?;
            &read
        }
    };
    let header = Header::parse(bytes).map_err(wrong)?;
    let Header { dtype, shape, .. } = &header;
    if !decode::is_number(dtype) {
        return Err(wrong(ErrorKind::Dtype {
            expected: "truth values, integers or floats",
            found: dtype.name.clone(),
        }));
    }
    let (rows, columns) = match shape[..] {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => {
            return Err(wrong(ErrorKind::Shape {
                expected: "one or two dimensions".into(),
                found: header.shape_text(),
            }));
        }
    };
    // columns of nothing may be any number
    if shape.len() == 2 && (rows == 0 || columns == 0) {
        return Err(wrong(ErrorKind::Shape {
            expected: "a row and a column at least".into(),
            found: header.shape_text(),
        }));
    }
    let wanted = header.elements().saturating_mul(dtype.bytes() as u128);
    let there = bytes.len() - header.len;
    if wanted > there as u128 {
        let (start, bytes) = (header.len as u64, u64::try_from(wanted).unwrap_or(u64::MAX));
        return Err(wrong(ErrorKind::Truncated { start, bytes, file_bytes: (header.len + there) as u64 }));
    }
    let own = some.map_or(0..rows, |some| {
        let [start, end] = [some.start, some.end].map(|end| usize::try_from(end).unwrap_or(rows).min(rows));
        start..end.max(start)
    });
    let bytes = &bytes[header.len..];
    let vectors = if dtype.kind == b'c' {
        let all = elements(&header, bytes, [rows, columns], own, 2, path)?;
        AnyVectors::Complex(
            all.into_iter().map(|column| bytemuck::cast_slice::<_, Complex64>(&column).to_vec()).collect(),
        )
    } else {
        AnyVectors::Real(elements(&header, bytes, [rows, columns], own, 1, path)?)
    };
    Ok((rows as u64, vectors))
}

/// Some rows of the columns of an array, whose elements are so many numbers each.
fn elements(
    Header { dtype, fortran, .. }: &Header,
    bytes: &[u8],
    [rows, columns]: [usize; 2],
    own: Range<usize>,
    numbers: usize,
    path: &Path,
) -> Result<Vec<Vec<f64>>> {
    let decoded = |places: Range<usize>| {
        let mut all: Vec<f64> = zeros(places.len() * numbers).map_err(|e| e.into_error(&path.to_string_lossy()))?;
        let bytes = &bytes[places.start * dtype.bytes()..places.end * dtype.bytes()];
        let parts = all.par_chunks_mut(CHUNK * numbers).zip(bytes.par_chunks(CHUNK * dtype.bytes()));
        parts.for_each(|(to, bytes)| decode::floats(dtype, bytes, to));
        Ok(all)
    };
    if *fortran || columns == 1 {
        return (0..columns).map(|k| decoded(k * rows + own.start..k * rows + own.end)).collect();
    }
    let all = decoded(own.start * columns..own.end * columns)?;
    let column = |k: usize| all.chunks_exact(numbers).skip(k).step_by(columns).flatten().copied().collect();
    Ok((0..columns).into_par_iter().map(column).collect())
}

/// Writes a vector, of one dimension, or several as the columns of an array of two.
///
/// # Errors
/// What `out` gives.
///
/// # Panics
/// If the vectors are not of one length.
pub fn write_vectors<T: Element>(mut out: impl Write, columns: &[&[T]]) -> io::Result<()> {
    let rows = columns.first().map_or(0, |column| column.len());
    assert!(columns.iter().all(|column| column.len() == rows), "vectors of one length");
    out.write_all(&vectors_header::<T>([rows as u64, columns.len() as u64]))?;
    columns.iter().try_for_each(|column| out.write_all(bytemuck::cast_slice(column)))
}

/// What comes before the elements in the file of so many rows and columns: the elements of one column after the other follow.
#[must_use]
pub fn vectors_header<T: Element>([rows, columns]: [u64; 2]) -> Vec<u8> {
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let shape = if columns == 1 { format!("({rows},)") } else { format!("({rows}, {columns})") };
    header::write(&format!("{order}{}", T::NAME), columns > 1, &shape)
}

/// Writes an array of any dimensions, whose first index runs fastest.
///
/// # Errors
/// What `out` gives.
///
/// # Panics
/// If there is not a value for each place.
pub fn write_array<T: Element>(mut out: impl Write, shape: &[usize], values: &[T]) -> io::Result<()> {
    assert_eq!(shape.iter().product::<usize>(), values.len(), "values of an array");
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    out.write_all(&header::write(&format!("{order}{}", T::NAME), true, &format!("({})", shape.trim_end())))?;
    out.write_all(bytemuck::cast_slice(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<AnyVectors> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        assert_eq!(is_npy(file.path()), bytes.starts_with(&header::MAGIC));
        read_vectors(file.path())
    }

    #[test]
    fn some_rows() {
        let columns: Vec<Vec<f64>> = (0..3).map(|k| (0..10).map(|i| f64::from(10 * k + i)).collect()).collect();
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        // one column; several, in either order of the elements
        let by_rows = |i: usize| columns.iter().flat_map(move |column| column[i].to_le_bytes());
        let mut in_c = header::write("<f8", false, "(10, 3)");
        in_c.extend((0..10).flat_map(by_rows));
        for (bytes, count) in [(written(&slices[..1]), 1), (written(&slices), 3), (in_c, 3)] {
            std::fs::write(file.path(), bytes).unwrap();
            for (rows, expected) in [(0..10, 0..10), (2..7, 2..7), (4..4, 4..4), (8..20, 8..10), (30..50, 10..10)] {
                let expected: Vec<Vec<f64>> = columns[..count].iter().map(|v| v[expected.clone()].to_vec()).collect();
                assert_eq!(read_rows(file.path(), rows).unwrap(), (10, AnyVectors::Real(expected)));
            }
        }
        let complex = [Complex64::ONE, Complex64::I, Complex64::new(3.0, 4.0)];
        std::fs::write(file.path(), written(&[&complex[..]])).unwrap();
        let (rows, found) = read_rows(file.path(), 1..3).unwrap();
        assert_eq!((rows, found), (3, AnyVectors::Complex(vec![complex[1..].to_vec()])));
    }

    fn written<T: Element>(columns: &[&[T]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_vectors(&mut bytes, columns).unwrap();
        bytes
    }

    #[test]
    fn vectors_there_and_back() {
        let long: Vec<f64> = (0..3 * CHUNK + 5).map(|k| k as f64 / 7.0).collect();
        for columns in [vec![vec![]], vec![vec![1.5, -0.0, 1e300]], vec![vec![1.0, 2.0], vec![3.0, 4.0]], vec![long]] {
            let of: Vec<&[f64]> = columns.iter().map(|column| &column[..]).collect();
            assert_eq!(read(&written(&of)).unwrap(), AnyVectors::Real(columns));
        }
        let complex = [Complex64::new(1.0, -2.0), Complex64::new(0.0, 3.0)];
        assert_eq!(read(&written(&[&complex])).unwrap(), AnyVectors::Complex(vec![complex.to_vec()]));
    }

    #[test]
    fn arrays_of_several_dimensions() {
        let mut bytes = Vec::new();
        write_array(&mut bytes, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(read(&bytes).unwrap(), AnyVectors::Real(vec![vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]]));
        let mut bytes = Vec::new();
        write_array(&mut bytes, &[1, 2, 1], &[1.0, 2.0]).unwrap();
        assert_eq!(Header::parse(&bytes).unwrap().shape, [1, 2, 1]);
    }

    #[test]
    fn rows_by_rows() {
        let mut bytes = header::write("<i4", false, "(2, 3)");
        bytes.extend([1_i32, 2, 3, 4, 5, 6].iter().flat_map(|v| v.to_le_bytes()));
        assert_eq!(read(&bytes).unwrap(), AnyVectors::Real(vec![vec![1.0, 4.0], vec![2.0, 5.0], vec![3.0, 6.0]]));
        let mut bytes = header::write(">f4", false, "(2,)");
        bytes.extend([0.5_f32, -1.0].iter().flat_map(|v| v.to_be_bytes()));
        assert_eq!(read(&bytes).unwrap(), AnyVectors::Real(vec![vec![0.5, -1.0]]));
    }

    #[test]
    fn what_is_no_vector() {
        let of = |descr: &str, shape: &str| read(&header::write(descr, false, shape)).unwrap_err().to_string();
        assert!(of("<f8", "(2,)").contains("beyond the end of the file"));
        assert!(of("<f8", "(4294967296, 4294967296)").contains("beyond the end of the file"));
        assert!(of("<f8", "(1, 1, 1)").contains("one or two dimensions"));
        for shape in ["(0, 1000000000000000000)", "(5, 0)"] {
            assert!(of("<f8", shape).contains("a row and a column at least"), "{shape}");
        }
        assert!(of("|S3", "()").contains("floats"));
        assert!(read(b"%%MatrixMarket").unwrap_err().to_string().contains("NUMPY"));
        assert!(!is_npy(Path::new("/nonexistent")) && read_vectors(Path::new("/nonexistent")).is_err());
    }
}
