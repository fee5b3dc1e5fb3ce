//! What must hold of whatever is read.

use std::fmt::Debug;

use declive::matrix::{AnyCsr, Complex64, Scalar};
use declive::matrix_market::{
    Field, Layout, Matrix, Reader, Symmetry, WriteOptions, Zeros, read_vectors_from, write_matrix,
};
use declive::npz;
use declive::{Csr, Error, Result};

use crate::input::{Drip, ONE, THREE, with_file};
use crate::model::{self, Model, Refusal};

/// Reads Matrix Market bytes in every way and compares.
///
/// # Panics
/// If something does not hold.
pub fn matrix_market(bytes: &[u8]) {
    let (name, mapped) = with_file(bytes, |path| {
        (path.to_string_lossy().into_owned(), THREE.install(|| Reader::new().any_matrix(path)))
    });
    let dripped = ONE.install(|| Reader::new().any_matrix_from(Drip::new(bytes), &name));
    let vectors = THREE.install(|| read_vectors_from(bytes, &name));
    // a decoder that is given other pieces may come upon damage earlier or later
    let exact = !is_packed(bytes);
    same(&mapped, &dripped, exact);
    if exact && let Some(expected) = model::read(bytes) {
        compare(&mapped, &expected);
    }
    let dropped = ONE.install(|| Reader::new().with_zeros(Zeros::Drop).any_matrix_from(bytes, &name));
    match (&mapped, &dropped) {
        (Ok(kept), Ok(dropped)) => assert_eq!(without_zeros(&kept.a), dropped.a),
        (Err(kept), Err(dropped)) if exact => assert_eq!(kept.to_string(), dropped.to_string()),
        (Err(_), Err(_)) => {}
        (kept, dropped) => panic!("with zeros {kept:?}, without {dropped:?}"),
    }
    match &mapped {
        Ok(matrix) => {
            sound(matrix);
            round_trips(matrix);
            if exact && let AnyCsr::Real(a) = &matrix.a {
                match vectors {
                    Ok(columns) => assert_eq!(columns, a.to_columns()),
                    Err(e) => assert!(e.to_string().contains("implausible"), "{e}"),
                }
            }
        }
        Err(error) => {
            one_line(error);
            assert!(!exact || vectors.is_err(), "vectors of what is no matrix: {error}");
        }
    }
}

/// Reads the bytes of a `.npz` file, copied and mapped, and compares.
///
/// # Panics
/// If something does not hold.
pub fn npz(bytes: &[u8]) {
    // what is mapped is compared while the file is still the same
    let read = with_file(bytes, |path| {
        match (ONE.install(|| npz::read(path)), THREE.install(|| npz::map(path))) {
            (Ok(one), Ok(three)) => {
                assert!(same_bits(&one, &three));
                Some(one)
            }
            (Err(one), Err(three)) => {
                assert_eq!(one.to_string(), three.to_string());
                one_line(&one);
                None
            }
            (one, three) => panic!("one thread {one:?}, three {three:?}"),
        }
    });
    if let Some(one) = read {
        valid(&one);
        let mut file = std::io::Cursor::new(Vec::new());
        npz::write_any(&mut file, &one).expect("memory can be written");
        let back = with_file(&file.into_inner(), npz::read).expect("what was written can be read");
        assert!(same_bits(&one, &back));
    }
}

/// Whether the bytes are compressed or an archive.
fn is_packed(bytes: &[u8]) -> bool {
    let marks: [&[u8]; 4] = [b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"];
    marks.iter().any(|mark| bytes.starts_with(mark)) || bytes.get(257..262) == Some(b"ustar")
}

fn same(one: &Result<Matrix<AnyCsr>>, other: &Result<Matrix<AnyCsr>>, exact: bool) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            assert!(same_bits(&one.a, &other.a), "{one:?}\n{other:?}");
            assert_eq!((&one.header, one.duplicates), (&other.header, other.duplicates));
        }
        (Err(one), Err(other)) if exact => assert_eq!(one.to_string(), other.to_string()),
        (Err(_), Err(_)) => {}
        (one, other) => panic!("one way {one:?}, another {other:?}"),
    }
}

fn compare(read: &Result<Matrix<AnyCsr>>, expected: &std::result::Result<Model, Refusal>) {
    match (read, expected) {
        (Ok(matrix), Ok(expected)) => {
            let entries = match &matrix.a {
                AnyCsr::Real(a) => places(a).map(|(place, v)| (place, (v.to_bits(), 0))).collect(),
                AnyCsr::Complex(a) => places(a).map(|(place, v)| (place, (v.re.to_bits(), v.im.to_bits()))).collect(),
            };
            let (rows, cols) = (matrix.a.n_rows() as u64, matrix.a.n_cols() as u64);
            let (complex, duplicates) = (matrix.a.is_complex(), matrix.duplicates);
            assert_eq!(&Model { rows, cols, complex, duplicates, entries }, expected);
        }
        (Err(Error::MatrixMarket(error)), Err(refusal)) => {
            assert!(*refusal == Refusal::Whole || *refusal == Refusal::Line(error.line), "{error}: {refusal:?}");
        }
        (read, expected) => panic!("{read:?}, but expected {expected:?}"),
    }
}

fn places<T: Scalar>(a: &Csr<T>) -> impl Iterator<Item = ((u64, u64), T)> {
    (0..a.n_rows()).flat_map(move |i| {
        let (cols, values) = a.row(i);
        cols.iter().zip(values).map(move |(&j, &v)| ((i as u64, j.into()), v))
    })
}

/// Equality of matrices that tells the two zeros apart.
fn same_bits(one: &AnyCsr, other: &AnyCsr) -> bool {
    fn bits(a: &AnyCsr) -> Vec<u64> {
        match a {
            AnyCsr::Real(a) => a.values().iter().map(|v| v.to_bits()).collect(),
            AnyCsr::Complex(a) => a.values().iter().flat_map(|v| [v.re.to_bits(), v.im.to_bits()]).collect(),
        }
    }
    one == other && bits(one) == bits(other)
}

fn without_zeros(a: &AnyCsr) -> AnyCsr {
    fn of<T: Scalar>(a: &Csr<T>) -> Csr<T> {
        let (mut rows, mut cols, mut values) = a.to_triplets();
        let keep: Vec<bool> = values.iter().map(|&v| v != T::default()).collect();
        let mut kept = keep.iter();
        rows.retain(|_| *kept.next().expect("as many"));
        let mut kept = keep.iter();
        cols.retain(|_| *kept.next().expect("as many"));
        values.retain(|&v| v != T::default());
        Csr::from_triplets(a.n_rows(), a.n_cols(), &rows, &cols, &values).expect("fewer entries are fine, too")
    }
    match a {
        AnyCsr::Real(a) => of(a).into(),
        AnyCsr::Complex(a) => of(a).into(),
    }
}

/// The checks that a matrix from elsewhere would have to pass.
fn valid(a: &AnyCsr) {
    fn of<T: Scalar>(a: Csr<T>) {
        let (rows, cols, row_ptr, col_idx, values) = a.into_raw_parts();
        Csr::new(rows, cols, row_ptr, col_idx, values).expect("a valid matrix");
    }
    match a.clone() {
        AnyCsr::Real(a) => of(a),
        AnyCsr::Complex(a) => of(a),
    }
}

/// The matrix is what its header says.
fn sound(matrix: &Matrix<AnyCsr>) {
    valid(&matrix.a);
    let header = &matrix.header;
    assert_eq!((matrix.a.n_rows(), matrix.a.n_cols()), (header.rows, header.cols));
    assert_eq!(matrix.a.is_complex(), header.field == Field::Complex);
    if header.layout == Layout::Coordinate {
        let stored = header.entries - matrix.duplicates;
        let (least, most) = if header.symmetry == Symmetry::General { (stored, stored) } else { (stored, 2 * stored) };
        assert!((least..=most).contains(&(matrix.a.nnz() as u64)));
    }
    let field = (header.field == Field::Pattern && matrix.duplicates == 0).then_some(Field::Pattern);
    let mut options = WriteOptions::default().with_symmetry(header.symmetry);
    options.field = field;
    match &matrix.a {
        AnyCsr::Real(a) => options.check(a).expect("as the header says"),
        AnyCsr::Complex(a) => options.check(a).expect("as the header says"),
    }
}

fn round_trips(matrix: &Matrix<AnyCsr>) {
    let AnyCsr::Real(a) = &matrix.a else {
        let AnyCsr::Complex(a) = &matrix.a else { return };
        return round_trips_of::<Complex64>(a, matrix);
    };
    round_trips_of::<f64>(a, matrix);
}

fn round_trips_of<T: Scalar + Debug>(a: &Csr<T>, matrix: &Matrix<AnyCsr>) {
    let write = |options: &WriteOptions| {
        let mut text = Vec::new();
        THREE.install(|| write_matrix(&mut text, a, options)).expect("memory can be written");
        ONE.install(|| Reader::new().any_matrix_from(&text[..], "test")).expect("what was written can be read")
    };
    let comments = matrix.header.comments.clone();
    let back = write(&WriteOptions::default().with_comments(comments));
    assert!(same_bits(&back.a, &matrix.a), "{:?}", matrix.a);
    assert_eq!(back.duplicates, 0);

    let symmetry = matrix.header.symmetry;
    let back = write(&WriteOptions::default().with_symmetry(symmetry));
    assert_eq!(back.a, matrix.a);
    if a.n_rows().saturating_mul(a.n_cols()) < 1000 {
        let back = write(&WriteOptions::default().with_symmetry(symmetry).with_layout(Layout::Array));
        assert_eq!(back.a, without_zeros(&matrix.a));
    }
}

/// An error can be shown on a terminal.
fn one_line(error: &Error) {
    let message = error.to_string();
    assert!(!message.chars().any(char::is_control) && message.len() < 1000, "{message:?}");
}
