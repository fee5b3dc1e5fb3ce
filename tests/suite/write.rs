//! The Matrix Market writer: what it writes, what it refuses to, and that threads leave no trace in it.

use std::io::{self, Write};

use declive::Csr;
use declive::matrix::{Complex64, Scalar};
use declive::matrix_market::{
    Field, Layout, Symmetry, Unwritable, WriteOptions, read_matrix, read_matrix_from, write_matrix, write_vectors,
};
use proptest::prelude::*;

fn options() -> WriteOptions {
    WriteOptions::default()
}

fn symmetric(symmetry: Symmetry) -> WriteOptions {
    options().with_symmetry(symmetry)
}

fn as_field(field: Field) -> WriteOptions {
    options().with_field(field)
}

fn written<T: Scalar>(a: &Csr<T>, options: &WriteOptions) -> String {
    let mut text = Vec::new();
    write_matrix(&mut text, a, options).unwrap();
    String::from_utf8(text).unwrap()
}

/// Why a matrix is refused; not a byte may have been written.
fn refused<T: Scalar>(a: &Csr<T>, options: &WriteOptions) -> Unwritable {
    let mut text = Vec::new();
    let error = write_matrix(&mut text, a, options).unwrap_err();
    assert!(text.is_empty());
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let cause = error.get_ref().unwrap().downcast_ref::<Unwritable>().unwrap();
    assert_eq!(options.check(a).as_ref(), Err(cause));
    cause.clone()
}

/// The matrix with these rows; NaN where no entry is stored.
fn dense<T: Scalar>(rows: &[&[T]]) -> Csr<T> {
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], vec![], vec![]);
    for row in rows {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            col_idx.push(j as u32);
            values.push(v);
        }
        row_ptr.push(values.len());
    }
    Csr::new(rows.len(), rows.first().map_or(0, |row| row.len()), row_ptr, col_idx, values).unwrap()
}

/// Not stored.
const NO: f64 = f64::NAN;

fn c(re: f64, im: f64) -> Complex64 {
    Complex64::new(re, im)
}

fn in_pool<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

// ---------------------------------------------------------------------------------------- texts

#[test]
fn general_row_by_row() {
    let a = dense(&[&[NO, 2.5, -0.0], &[NO, NO, NO], &[1e-7, NO, 3.0]]);
    let head = "%%MatrixMarket matrix coordinate real general\n3 3 4\n";
    assert_eq!(written(&a, &options()), head.to_string() + "1 2 2.5\n1 3 -0\n3 1 1e-7\n3 3 3\n");
}

#[test]
fn symmetric_column_by_column() {
    let a = dense(&[&[1.0, 2.0, 3.0], &[2.0, NO, NO], &[3.0, NO, 0.0]]);
    let head = "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n";
    assert_eq!(written(&a, &symmetric(Symmetry::Symmetric)), head.to_string() + "1 1 1\n2 1 2\n3 1 3\n3 3 0\n");
}

#[test]
fn skew_symmetric_with_what_is_stored_of_the_diagonal() {
    let a = dense(&[&[0.0, -1.0, -3.0], &[1.0, NO, 2.0], &[3.0, -2.0, NO]]);
    let head = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 4\n";
    assert_eq!(written(&a, &symmetric(Symmetry::SkewSymmetric)), head.to_string() + "1 1 0\n2 1 1\n3 1 3\n3 2 -2\n");
}

#[test]
fn complex_and_hermitian() {
    let a = dense(&[&[c(1.0, 0.0), c(0.5, -2.0)], &[c(0.5, 2.0), c(NO, 0.0)]]);
    let head = |symmetry| format!("%%MatrixMarket matrix coordinate complex {symmetry}\n");
    let (general, hermitian) = (written(&a, &options()), written(&a, &symmetric(Symmetry::Hermitian)));
    assert_eq!(general, head("general") + "2 2 3\n1 1 1 0\n1 2 0.5 -2\n2 1 0.5 2\n");
    assert_eq!(hermitian, head("hermitian") + "2 2 2\n1 1 1 0\n2 1 0.5 2\n");
    let a = dense(&[&[c(NO, 0.0), c(0.5, -2.0)], &[c(0.5, -2.0), c(0.0, 1.0)]]);
    assert_eq!(written(&a, &symmetric(Symmetry::Symmetric)), head("symmetric") + "2 2 2\n2 1 0.5 -2\n2 2 0 1\n");
    let a = dense(&[&[c(0.0, 0.0), c(0.5, -2.0)], &[c(-0.5, 2.0), c(NO, 0.0)]]);
    let skew = written(&a, &symmetric(Symmetry::SkewSymmetric));
    assert_eq!(skew, head("skew-symmetric") + "2 2 2\n1 1 0 0\n2 1 -0.5 2\n");
}

#[test]
fn fields() {
    let ones = dense(&[&[1.0, NO], &[1.0, 1.0]]);
    let body = |text: String| text.split_once("\n2 2 3\n").map(|(head, body)| (head.to_string(), body.to_string()));
    for (field, expected) in [
        (Field::Real, "1 1 1\n2 1 1\n2 2 1\n"),
        (Field::Integer, "1 1 1\n2 1 1\n2 2 1\n"),
        (Field::UnsignedInteger, "1 1 1\n2 1 1\n2 2 1\n"),
        (Field::Complex, "1 1 1 0\n2 1 1 0\n2 2 1 0\n"),
        (Field::Pattern, "1 1\n2 1\n2 2\n"),
    ] {
        let (head, body) = body(written(&ones, &as_field(field))).unwrap();
        assert_eq!(head, format!("%%MatrixMarket matrix coordinate {field} general"));
        assert_eq!(body, expected, "{field}");
    }
    let complex = dense(&[&[c(1.0, 0.0), c(NO, NO)], &[c(1.0, 0.0), c(1.0, -0.0)]]);
    for field in [Field::Real, Field::Integer, Field::UnsignedInteger, Field::Pattern] {
        assert_eq!(written(&complex, &as_field(field)), written(&ones, &as_field(field)));
    }
    let whole = dense(&[&[-9007199254740991.0, 0.0, -0.0, 123.0]]);
    let text = written(&whole, &as_field(Field::Integer).with_precision(2));
    assert!(text.ends_with("1 4 4\n1 1 -9007199254740991\n1 2 0\n1 3 -0\n1 4 123\n"), "{text}");
}

#[test]
fn arrays() {
    let array = |symmetry| symmetric(symmetry).with_layout(Layout::Array);
    let body = |text: String| text.split_once(" general\n").unwrap().1.to_string();
    let a = dense(&[&[1.0, NO, 3.0], &[NO, 4.5, 5.0]]);
    assert_eq!(body(written(&a, &array(Symmetry::General))), "2 3\n1\n0\n0\n4.5\n3\n5\n");
    let a = dense(&[&[1.0, NO, 3.0], &[NO, 4.0, 5.0], &[3.0, 5.0, 0.0]]);
    let head = "%%MatrixMarket matrix array real symmetric\n3 3\n";
    assert_eq!(written(&a, &array(Symmetry::Symmetric)), head.to_string() + "1\n0\n3\n4\n5\n0\n");
    let a = dense(&[&[0.0, -2.0, NO], &[2.0, NO, -5.0], &[NO, 5.0, NO]]);
    let head = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n";
    assert_eq!(written(&a, &array(Symmetry::SkewSymmetric)), head.to_string() + "2\n0\n5\n");
    let a = dense(&[&[c(1.0, 0.0), c(0.5, -2.0)], &[c(0.5, 2.0), c(NO, 0.0)]]);
    let head = "%%MatrixMarket matrix array complex hermitian\n2 2\n";
    assert_eq!(written(&a, &array(Symmetry::Hermitian)), head.to_string() + "1 0\n0.5 2\n0 0\n");
}

#[test]
fn precision() {
    let a = dense(&[&[1.0 / 3.0, -123456.0, 1e-300, 7.0]]);
    let text = written(&a, &options().with_precision(3));
    assert!(text.ends_with("\n1 1 3.33e-1\n1 2 -1.23e5\n1 3 1e-300\n1 4 7\n"), "{text}");
    let z = dense(&[&[c(1.0 / 3.0, -123456.0)]]);
    let text = written(&z, &options().with_precision(17));
    assert!(text.ends_with("\n1 1 3.3333333333333331e-1 -1.23456e5\n"), "{text}");
}

#[test]
fn nothing() {
    for (m, n) in [(0, 0), (3, 0), (0, 3), (2, 3)] {
        let a = Csr::<f64>::new(m, n, vec![0; m + 1], vec![], vec![]).unwrap();
        assert!(written(&a, &options()).ends_with(&format!("general\n{m} {n} 0\n")));
        let array = written(&a, &options().with_layout(Layout::Array));
        assert!(array.ends_with(&format!("general\n{m} {n}\n{}", "0\n".repeat(m * n))));
    }
    let a = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
        assert!(written(&a, &symmetric(symmetry)).ends_with("\n0 0 0\n"));
    }
    let mut text = Vec::new();
    write_vectors::<f64>(&mut text, &[[0.0; 0]; 2], &[]).unwrap();
    write_vectors::<f64>(&mut text, &[[]; 0], &[]).unwrap();
    let head = "%%MatrixMarket matrix array real general\n";
    assert_eq!(String::from_utf8(text).unwrap(), format!("{head}0 2\n{head}0 0\n"));
}

#[test]
fn vectors() {
    let mut text = Vec::new();
    let comments = ["x".to_string()];
    write_vectors(&mut text, &[vec![1.0, 0.1], vec![-0.0, 1e22]], &comments).unwrap();
    let expected = "%%MatrixMarket matrix array real general\n% x\n2 2\n1\n0.1\n-0\n1e22\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    let mut text = Vec::new();
    write_vectors(&mut text, &[[c(1.0, -0.5)]], &[]).unwrap();
    assert_eq!(text, b"%%MatrixMarket matrix array complex general\n1 1\n1 -0.5\n");
}

/// A tar archive has this word 257 bytes from its beginning; a comment may have it there, too.
#[test]
fn a_comment_makes_no_archive() {
    let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![2.0]).unwrap();
    let head = written(&a, &options().with_comments(vec!["|".into()])).find('|').unwrap();
    let comments = vec!["-".repeat(257 - head) + "ustar"];
    let text = written(&a, &options().with_comments(comments));
    assert_eq!(&text[257..262], "ustar");
    assert_eq!(read_matrix_from(text.as_bytes(), "test").unwrap().a, a);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text.to_lowercase()).unwrap();
    assert_eq!(read_matrix(file.path()).unwrap().a, a);
}

#[test]
fn comments_stay_comments() {
    let a = Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap();
    let long = "x".repeat(2500);
    let comments = vec!["two\r\nlines".into(), String::new(), "an\rother\n\n%tab\t".into(), long, "é".repeat(999)];
    let text = written(&a, &options().with_comments(comments));
    let lines: Vec<&str> = text.split('\n').collect();
    assert_eq!(lines[1..8], ["% two", "% lines", "%", "% an", "% other", "%", "% %tab"]);
    assert_eq!(lines[8..11].iter().map(|line| line.len()).collect::<Vec<_>>(), [1002, 1002, 502]);
    assert_eq!(lines[11..13].iter().map(|line| line.len()).collect::<Vec<_>>(), [1002, 1000]);
    assert_eq!(lines[13..], ["0 0 0", ""]);
    assert!(!text.contains('\r'));
}

// ---------------------------------------------------------------------------------------- what is refused

#[test]
fn options_that_contradict_each_other() {
    let one = dense(&[&[1.0]]);
    let contradiction = |first, second| Unwritable::Contradiction { first, second };
    let hermitian = symmetric(Symmetry::Hermitian);
    assert_eq!(refused(&one, &hermitian), contradiction("real", "hermitian"));
    let skew_pattern = as_field(Field::Pattern).with_symmetry(Symmetry::SkewSymmetric);
    assert_eq!(refused(&one, &skew_pattern), contradiction("pattern", "skew-symmetric"));
    let array = as_field(Field::Pattern).with_layout(Layout::Array);
    assert_eq!(refused(&one, &array), contradiction("array", "pattern"));
    for found in [0, 18] {
        let options = options().with_precision(found).with_trusted(found == 0);
        let mut text = Vec::new();
        let error = write_matrix(&mut text, &one, &options).unwrap_err().to_string();
        assert!(text.is_empty() && error == format!("{found} significant digits; a double has 1 to 17"));
    }
    let wide = dense(&[&[1.0, 2.0]]);
    let symmetry = Symmetry::Symmetric;
    assert_eq!(refused(&wide, &symmetric(symmetry)), Unwritable::NotSquare { symmetry, rows: 1, cols: 2 });
}

#[test]
fn roundings_beyond_all_doubles() {
    let precise = |digits| options().with_precision(digits);
    let a = dense(&[&[1.0, NO], &[f64::MAX, -f64::MAX]]);
    let refusal = |digits, col, value: &str| Unwritable::Rounding { row: 2, col, value: value.into(), digits };
    let largest = "1.7976931348623157e308";
    for digits in 1..=16 {
        // to 3 digits or 10, say, it is rounded up or down
        let rounded: f64 = format!("{:.*e}", digits - 1, f64::MAX).parse().unwrap();
        if rounded.is_finite() {
            let text = written(&a, &precise(digits));
            assert_eq!(read_matrix_from(text.as_bytes(), "text").unwrap().a.get(1, 0), Some(rounded));
        } else {
            assert_eq!(refused(&a, &precise(digits)), refusal(digits, 1, largest));
            assert_eq!(refused(&a, &precise(digits).with_trusted(true)), refusal(digits, 1, largest));
        }
    }
    assert_eq!(
        refused(&a, &precise(2)).to_string(),
        "a(2,1) is 1.7976931348623157e308, which a precision of 2 would round to more than a double can hold; \
         give more digits"
    );
    assert!(written(&a, &precise(17)).ends_with("\n2 1 1.7976931348623157e308\n2 2 -1.7976931348623157e308\n"));
    assert!(written(&dense(&[&[1.74e308, -1e308]]), &precise(2)).ends_with("\n1 1 1.7e308\n1 2 -1e308\n"));
    let z = dense(&[&[Complex64::ONE, c(0.0, 0.0)], &[c(NO, NO), c(0.0, -1.75e308)]]);
    assert_eq!(refused(&z, &precise(1)), refusal(1, 2, "0e0-1.75e308i"));
    // whole numbers are not rounded
    let whole = dense(&[&[9007199254740991.0]]);
    assert!(written(&whole, &as_field(Field::Integer).with_precision(1)).ends_with("991\n"));
}

#[test]
fn symmetries_that_do_not_hold() {
    let says = |a: &Csr, symmetry| refused(a, &symmetric(symmetry)).to_string();
    let upper = dense(&[&[1.0, 2.0], &[NO, 1.0]]);
    let hint = "write it as general, or mend it";
    assert_eq!(
        says(&upper, Symmetry::Symmetric),
        format!("the matrix is not symmetric: a(1,2) is 2e0, but a(2,1) is not stored; {hint}")
    );
    let lower = dense(&[&[1.0, NO, NO], &[NO, 1.0, NO], &[7.0, NO, 1.0]]);
    assert_eq!(
        says(&lower, Symmetry::Symmetric),
        format!("the matrix is not symmetric: a(3,1) is 7e0, but a(1,3) is not stored; {hint}")
    );
    // one above and one below, so that counting alone would not tell
    let crossed = dense(&[&[NO, 1.0, NO], &[NO, NO, NO], &[2.0, NO, NO]]);
    assert!(says(&crossed, Symmetry::Symmetric).contains("a(1,2) is 1e0"));
    let differs = dense(&[&[1.0, 2.0], &[2.0000000000000004, 1.0]]);
    assert!(says(&differs, Symmetry::Symmetric).contains("a(1,2) is 2e0, but a(2,1) is 2.0000000000000004e0"));
    let same = dense(&[&[NO, 2.0], &[2.0, NO]]);
    assert!(says(&same, Symmetry::SkewSymmetric).contains("not skew-symmetric: a(1,2) is 2e0, but a(2,1) is 2e0"));
    let diagonal = dense(&[&[0.0, 2.0], &[-2.0, 3.0]]);
    assert_eq!(
        says(&diagonal, Symmetry::SkewSymmetric),
        format!("the matrix is not skew-symmetric: a(2,2) is 3e0, but must be 0; {hint}")
    );
    let z = dense(&[&[c(1.0, 0.0), c(0.5, -2.0)], &[c(0.5, -2.0), c(1.0, 0.0)]]);
    assert_eq!(
        refused(&z, &symmetric(Symmetry::Hermitian)).to_string(),
        format!("the matrix is not hermitian: a(1,2) is 5e-1-2e0i, but a(2,1) is 5e-1-2e0i; {hint}")
    );
    assert!(options().check(&z).is_ok() && symmetric(Symmetry::Symmetric).check(&z).is_ok());
    let z = dense(&[&[c(1.0, 1e-300)]]);
    assert!(
        refused(&z, &symmetric(Symmetry::Hermitian)).to_string().contains("a(1,1) is 1e0+1e-300i, but must be real")
    );
}

#[test]
fn zeros_of_either_sign_are_equal() {
    let a = dense(&[&[NO, 0.0], &[-0.0, NO]]);
    for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
        assert!(symmetric(symmetry).check(&a).is_ok());
    }
}

#[test]
fn values_that_the_field_has_no_words_for() {
    let second = |value: f64| dense(&[&[NO, NO], &[1.0, value]]);
    for (field, value) in [
        (Field::Integer, 1.5),
        (Field::Integer, 9007199254740992.0),
        (Field::UnsignedInteger, -1.0),
        (Field::UnsignedInteger, -0.0),
        (Field::UnsignedInteger, 0.5),
        (Field::Pattern, 0.0),
        (Field::Pattern, -1.0),
    ] {
        match refused(&second(value), &as_field(field)) {
            Unwritable::Value { row: 2, col: 2, value: found, field: named, .. } => {
                assert_eq!((found, named), (format!("{value:e}"), field));
            }
            other => panic!("{field}, {value}: {other}"),
        }
    }
    assert!(as_field(Field::UnsignedInteger).check(&second(9007199254740991.0)).is_ok());
    let z = dense(&[&[c(1.0, 2.0)]]);
    for field in [Field::Real, Field::Integer, Field::UnsignedInteger, Field::Pattern] {
        assert_eq!(
            refused(&z, &as_field(field)).to_string(),
            format!("a(1,1) is 1e0+2e0i, which the field \"{field}\" has no words for; write it as complex")
        );
    }
}

#[test]
fn the_first_obstacle_is_named_whatever_the_threads() {
    let n = 40_000;
    let mut values = vec![1.0; n];
    (values[20_000], values[35_000]) = (2.0, 3.0);
    let a = Csr::new(1, n, vec![0, n], (0..n as u32).collect(), values).unwrap();
    let (n, _, row_ptr, col_idx, mut values) = uneven().into_raw_parts();
    let above = |from: usize| {
        (from..n).find_map(|i| (row_ptr[i]..row_ptr[i + 1]).find(|&k| col_idx[k] as usize > i).map(|k| (i, k)))
    };
    let (first, later) = (above(9_000).unwrap(), above(30_000).unwrap());
    (values[first.1], values[later.1]) = (-1.0, -2.0);
    let place = (first.0 + 1, col_idx[first.1] as usize + 1);
    let b = Csr::new(n, n, row_ptr, col_idx, values).unwrap();
    for threads in [1, 2, 5] {
        let (a, b) =
            in_pool(threads, || (refused(&a, &as_field(Field::Pattern)), refused(&b, &symmetric(Symmetry::Symmetric))));
        assert!(matches!(a, Unwritable::Value { row: 1, col: 20_001, .. }), "{a}");
        assert!(matches!(b, Unwritable::NotMirrored { row, col, .. } if (row, col) == place), "{b}");
    }
}

#[test]
fn vectors_that_make_no_array() {
    let refused = |columns: &[Vec<f64>]| {
        let mut out = Vec::new();
        let error = write_vectors(&mut out, columns, &[]).unwrap_err();
        assert!(out.is_empty() && error.kind() == io::ErrorKind::InvalidInput);
        error.to_string()
    };
    assert_eq!(refused(&[vec![1.0, 2.0], vec![3.0, f64::NAN]]), "element 2 of vector 2 is NaN, not a finite number");
    assert_eq!(refused(&[vec![1.0, 2.0], vec![3.0]]), "vector 2 has 1 elements, but vector 1 has 2");
}

#[test]
fn trust_is_not_checked() {
    let a = dense(&[&[1.0, 2.0], &[3.0, 4.0]]);
    let text = written(&a, &symmetric(Symmetry::Symmetric).with_trusted(true));
    assert!(text.ends_with("\n2 2 3\n1 1 1\n2 1 2\n2 2 4\n"));
}

// ---------------------------------------------------------------------------------------- large files

/// Rows of all lengths, among them none and one beyond what a thread writes at a time.
fn uneven() -> Csr {
    let n = 40_000u32;
    let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut put = |i: u32, j: u32| {
        let value = (f64::from(i.min(j)) + 0.1).sqrt() * f64::from(i.max(j));
        rows.push(i);
        cols.push(j);
        values.push(value);
        if i != j {
            rows.push(j);
            cols.push(i);
            values.push(value);
        }
    };
    (0..n).for_each(|j| put(7, j));
    (100..n).filter(|i| i % 3 > 0).for_each(|i| (0..i % 5).for_each(|k| put(i, i - k)));
    Csr::from_triplets(n as usize, n as usize, &rows, &cols, &values).unwrap()
}

/// Written without any of the writer's ways.
fn plainly(a: &Csr, symmetry: Symmetry) -> String {
    let lower = |i: usize, j: usize| symmetry == Symmetry::General || i >= j;
    let mut entries: Vec<(usize, usize, f64)> = (0..a.n_rows())
        .flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (i, j as usize, v)))
        .filter(|&(i, j, _)| lower(i, j))
        .collect();
    if symmetry != Symmetry::General {
        entries.sort_by_key(|&(i, j, _)| (j, i));
    }
    let mut text = format!("%%MatrixMarket matrix coordinate real {symmetry}\n");
    text += &format!("{} {} {}\n", a.n_rows(), a.n_cols(), entries.len());
    for (i, j, v) in entries {
        text += &format!("{} {} {v}\n", i + 1, j + 1);
    }
    text
}

#[test]
fn threads_leave_no_trace() {
    let a = uneven();
    for symmetry in [Symmetry::General, Symmetry::Symmetric] {
        let expected = plainly(&a, symmetry);
        assert!(expected.lines().count() > 8 * 8192);
        for threads in [1, 2, 5] {
            assert!(in_pool(threads, || written(&a, &symmetric(symmetry))) == expected, "{symmetry}, {threads}");
        }
        assert!(written(&a, &symmetric(symmetry)) == expected);
    }
    let columns: Vec<Vec<f64>> = a.values().chunks(12_345).take(7).map(<[f64]>::to_vec).collect();
    let write = || {
        let mut text = Vec::new();
        write_vectors(&mut text, &columns, &[]).unwrap();
        String::from_utf8(text).unwrap()
    };
    let body: String = columns.iter().flatten().map(|v| format!("{v}\n")).collect();
    for threads in [1, 2, 5] {
        let text = in_pool(threads, write);
        assert!(text.split_once("\n12345 7\n").unwrap().1 == body, "{threads}");
    }
}

#[test]
fn large_arrays() {
    let n = 300;
    let full: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| ((i + 1) * (j + 1)) as f64 / 7.0).collect()).collect();
    let a = dense(&full.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for (symmetry, first) in [(Symmetry::General, 0), (Symmetry::Symmetric, 1)] {
        let text = written(&a, &symmetric(symmetry).with_layout(Layout::Array));
        let rows = |j: usize| (first * j)..n;
        let body: String =
            (0..n).flat_map(|j| rows(j).map(move |i| (i, j))).map(|(i, j)| format!("{}\n", full[i][j])).collect();
        assert!(text.split_once("\n300 300\n").unwrap().1 == body);
    }
}

/// Takes so many bytes, and then none.
struct Full {
    room: usize,
    refusals: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            self.refusals += 1;
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no room"));
        }
        let n = bytes.len().min(self.room);
        self.room -= n;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_is_asked_no_more() {
    let a = uneven();
    let whole = written(&a, &options()).len();
    for room in [0, 10, 100, 1 << 20, whole - 1] {
        for threads in [1, 2] {
            let mut out = Full { room, refusals: 0 };
            let error = in_pool(threads, || write_matrix(&mut out, &a, &options())).unwrap_err();
            assert_eq!((error.kind(), out.refusals), (io::ErrorKind::StorageFull, 1), "{room}");
        }
    }
    write_matrix(Full { room: whole, refusals: 0 }, &a, &options()).unwrap();
}

#[test]
fn an_output_that_fails_only_when_flushed() {
    struct Late;
    impl Write for Late {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let a = dense(&[&[1.0]]);
    assert_eq!(write_matrix(Late, &a, &options()).unwrap_err().to_string(), "the disk is gone");
    assert_eq!(write_vectors(Late, &[[1.0]], &[]).unwrap_err().to_string(), "the disk is gone");
}

// ---------------------------------------------------------------------------------------- round trips

fn number() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![
        POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO,
        -1e3..1e3,
        (-1000i32..1000).prop_map(f64::from),
        (-1_000_000_000_000_000_000i64..1_000_000_000_000_000_000).prop_map(|whole| whole as f64),
    ]
}

fn whole() -> impl Strategy<Value = f64> {
    prop_oneof![-9007199254740991i64..=9007199254740991, -9i64..9].prop_map(|whole| whole as f64)
}

type Triplets = Vec<((u32, u32), f64)>;

fn triplets(m: usize, n: usize, value: impl Strategy<Value = f64>) -> impl Strategy<Value = Triplets> {
    let most = (m * n).min(80);
    prop::collection::btree_map((0..m.max(1) as u32, 0..n.max(1) as u32), value, 0..=most)
        .prop_map(move |map| if most == 0 { Vec::new() } else { map.into_iter().collect() })
}

fn csr<T: Scalar>(m: usize, n: usize, triplets: &[((u32, u32), T)]) -> Csr<T> {
    let (rows, (cols, values)): (Vec<u32>, (Vec<u32>, Vec<T>)) =
        triplets.iter().map(|&((i, j), v)| (i, (j, v))).unzip();
    Csr::from_triplets(m, n, &rows, &cols, &values).unwrap()
}

fn matrix(value: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = Csr> {
    (0usize..30, 0usize..30).prop_flat_map(move |(m, n)| triplets(m, n, value.clone()).prop_map(move |t| csr(m, n, &t)))
}

/// A matrix with the symmetry.
fn mirrored(value: impl Strategy<Value = f64> + Clone, symmetry: Symmetry) -> impl Strategy<Value = Csr> {
    let skew = symmetry == Symmetry::SkewSymmetric;
    (0usize..30).prop_flat_map(move |n| {
        triplets(n, n, value.clone()).prop_map(move |t| {
            let mut full = Vec::new();
            for ((i, j), v) in t {
                if i > j {
                    full.extend([((i, j), v), ((j, i), if skew { -v } else { v })]);
                } else if i == j {
                    full.push(((i, j), if skew { 0.0 } else { v }));
                }
            }
            csr(n, n, &full)
        })
    })
}

fn keeps_every_bit(a: &Csr, options: &WriteOptions) -> Result<(), TestCaseError> {
    let text = written(a, options);
    let back = read_matrix_from(text.as_bytes(), "test").unwrap();
    prop_assert_eq!(back.header.symmetry, options.symmetry);
    prop_assert_eq!(back.header.field, options.field.unwrap_or(Field::Real));
    prop_assert_eq!(&back.a, a);
    let bits = |a: &Csr| a.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    prop_assert_eq!(bits(&back.a), bits(a));
    Ok(())
}

proptest! {
    #[test]
    fn real_matrices_come_back(a in matrix(number().boxed())) {
        keeps_every_bit(&a, &options())?;
    }

    #[test]
    fn integer_matrices_come_back(a in matrix(whole().boxed())) {
        keeps_every_bit(&a, &as_field(Field::Integer))?;
    }

    #[test]
    fn patterns_come_back(a in matrix(Just(1.0).boxed())) {
        keeps_every_bit(&a, &as_field(Field::Pattern))?;
    }

    #[test]
    fn symmetric_matrices_come_back(a in mirrored(number().boxed(), Symmetry::Symmetric)) {
        keeps_every_bit(&a, &symmetric(Symmetry::Symmetric))?;
    }

    #[test]
    fn skew_symmetric_matrices_come_back(a in mirrored(whole().boxed(), Symmetry::SkewSymmetric)) {
        keeps_every_bit(&a, &symmetric(Symmetry::SkewSymmetric).with_field(Field::Integer))?;
    }

    #[test]
    fn symmetric_patterns_come_back(a in mirrored(Just(1.0).boxed(), Symmetry::Symmetric)) {
        keeps_every_bit(&a, &symmetric(Symmetry::Symmetric).with_field(Field::Pattern))?;
    }

    #[test]
    fn complex_values_are_written_with_every_bit(values in prop::collection::vec((number(), number()), 0..40)) {
        let z: Vec<Complex64> = values.iter().map(|&(re, im)| c(re, im)).collect();
        let cols = (0..z.len() as u32).collect();
        let a = Csr::new(1, z.len(), vec![0, z.len()], cols, z).unwrap();
        let text = written(&a, &options());
        let lines: Vec<&str> = text.lines().skip(2).collect();
        prop_assert_eq!(lines.len(), values.len());
        for (k, (line, (re, im))) in lines.iter().zip(&values).enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            prop_assert_eq!(&words[..2], &["1".to_string(), (k + 1).to_string()]);
            let bits: Vec<u64> = words[2..].iter().map(|word| word.parse::<f64>().unwrap().to_bits()).collect();
            prop_assert_eq!(bits, [re.to_bits(), im.to_bits()]);
        }
    }

    #[test]
    fn a_symmetry_is_refused_unless_it_holds(
        a in mirrored(number().boxed(), Symmetry::Symmetric),
        which in any::<prop::sample::Index>(),
        drop_it in any::<bool>(),
    ) {
        let (rows, cols, mut values) = a.to_triplets();
        let off: Vec<usize> = (0..values.len()).filter(|&k| rows[k] != cols[k]).collect();
        prop_assume!(!off.is_empty());
        let k = off[which.index(off.len())];
        values[k] = if values[k] == 1.0 { 2.0 } else { 1.0 };
        let mut entries: Vec<((u32, u32), f64)> = rows.iter().copied().zip(cols.iter().copied()).zip(values).collect();
        if drop_it {
            entries.remove(k);
        }
        let broken = csr(a.n_rows(), a.n_cols(), &entries);
        let place = (rows[k].min(cols[k]) as usize + 1, rows[k].max(cols[k]) as usize + 1);
        match refused(&broken, &symmetric(Symmetry::Symmetric)) {
            Unwritable::NotMirrored { row, col, .. } => prop_assert_eq!((row.min(col), row.max(col)), place),
            other => prop_assert!(false, "{}", other),
        }
    }
}
