//! The Matrix Market reader and writer, seen from outside: malformed files, round trips, arbitrary bytes.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use declive::matrix_market::{
    ErrorKind, Reader, Symmetry, WriteOptions, read_matrix, read_matrix_from, read_vectors, read_vectors_from,
    write_matrix, write_vectors,
};
use declive::{Csr, Error as AnyError};
use proptest::prelude::*;

// ---------------------------------------------------------------------------------------- malformed files

fn bad() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/bad")
}

/// Every file of `data/bad` with the line, the column and the cause that the reader has to give.
fn table() -> Vec<(&'static str, u64, Option<u32>, ErrorKind)> {
    use ErrorKind::*;
    const ENTRY: &str = "row column value";
    const SIZE: &str = "rows columns entries";
    let s = |text: &str| text.to_string();
    vec![
        ("empty", 1, None, Empty),
        ("html", 1, None, NotMatrixMarket { found: s("<!DOCTYPE html>") }),
        ("binary", 1, None, NotMatrixMarket { found: s(r"\x7fELF\x02\x01\x01") + &r"\x00".repeat(10) + r"\x00…" }),
        ("binary-body", 4, Some(1), IndexNotANumber { what: "row", found: s(r"\x00\x01\xfe\xff\x1b[2J") }),
        ("banner-one-percent", 1, None, NotMatrixMarket { found: s("  %MatrixMarket matrix coordinate real general") }),
        ("banner-short", 1, None, Banner { found: s("%%MatrixMarket matrix coordinate real") }),
        ("banner-long", 1, None, Banner { found: s("%%MatrixMarket matrix coordinate real general 1") }),
        (
            "object-unknown",
            1,
            Some(16),
            UnknownWord { what: "object", found: s("graph"), expected: "matrix or vector" },
        ),
        ("vector-symmetric", 1, Some(39), Contradiction { first: "vector", second: "symmetric" }),
        ("vector-pattern-array", 1, Some(29), Contradiction { first: "array", second: "pattern" }),
        ("vector-size-short", 2, None, BadSize { expected: "rows entries", found: s("3") }),
        ("vector-size-long", 2, None, BadSize { expected: "rows", found: s("3 1") }),
        ("vector-with-column", 4, Some(5), SurplusText { expected: "row value", found: s("2.5") }),
        ("vector-value-missing", 4, Some(2), MissingField { expected: "row value", found: s("3") }),
        ("vector-row-too-large", 3, Some(1), IndexOutOfRange { what: "row", found: s("4"), max: 3 }),
        ("vector-truncated", 3, None, TooFewEntries { expected: 2, found: 1 }),
        ("vector-rows-implausible", 2, None, Implausible { rows: 4_000_000_000, cols: 1, entries: 1 }),
        (
            "layout-unknown",
            1,
            Some(23),
            UnknownWord { what: "layout", found: s("sparse"), expected: "coordinate or array" },
        ),
        (
            "field-unknown",
            1,
            Some(34),
            UnknownWord {
                what: "field",
                found: s("float"),
                expected: "real, double, integer, unsigned-integer, pattern or complex",
            },
        ),
        (
            "symmetry-unknown",
            1,
            Some(39),
            UnknownWord {
                what: "symmetry",
                found: s("diagonal"),
                expected: "general, symmetric, skew-symmetric or hermitian",
            },
        ),
        ("complex", 1, None, Complex),
        ("complex-half", 4, Some(6), MissingField { expected: "row column real imaginary", found: s("2 2 4") }),
        ("complex-array-text", 4, Some(3), ValueNotANumber { found: s("i") }),
        ("hermitian-real", 1, Some(39), Contradiction { first: "real", second: "hermitian" }),
        ("hermitian-diagonal", 4, None, HermitianDiagonal { index: 2, found: s("4-1i") }),
        ("hermitian-array-diagonal", 5, None, HermitianDiagonal { index: 2, found: s("4-1i") }),
        ("unsigned-negative", 4, Some(5), Negative { found: s("-4") }),
        ("unsigned-skew", 1, Some(51), Contradiction { first: "unsigned-integer", second: "skew-symmetric" }),
        ("cut.mtx.gz", 1, None, Corrupt { format: "gzip", cause: s("") }),
        ("checksum.mtx.gz", 61, None, Corrupt { format: "gzip", cause: s("") }),
        ("cut.mtx.bz2", 1, None, Corrupt { format: "bzip2", cause: s("") }),
        ("flipped.mtx.xz", 1, None, Corrupt { format: "xz", cause: s("") }),
        ("cut.mtx.zst", 1, None, Corrupt { format: "zstd", cause: s("") }),
        ("window.mtx.xz", 1, None, Window { format: "xz", limit: 72, preset: "xz -6" }),
        ("window.mtx.zst", 1, None, Window { format: "zstd", limit: 128, preset: "zstd -19" }),
        ("no-member.tar.gz", 1, None, NoMember { expected: "", found: s("system/notes.txt, system/other.mtx") }),
        ("pattern-array", 1, Some(29), Contradiction { first: "array", second: "pattern" }),
        ("pattern-skew", 1, Some(42), Contradiction { first: "pattern", second: "skew-symmetric" }),
        ("size-missing", 4, None, MissingSize { expected: SIZE }),
        ("size-short", 3, None, BadSize { expected: SIZE, found: s("2 2") }),
        ("size-text", 2, Some(1), BadSize { expected: SIZE, found: s("two 2 1") }),
        ("size-negative", 2, Some(5), BadSize { expected: SIZE, found: s("2 2 -1") }),
        ("size-long", 2, None, BadSize { expected: "rows columns", found: s("2 1 2") }),
        ("rows-too-many", 2, Some(1), TooLarge { what: "rows", found: s("4294967296"), max: 4_294_967_295 }),
        (
            "entries-beyond-64-bits",
            2,
            Some(5),
            TooLarge { what: "entries", found: s("18446744073709551616"), max: u64::MAX },
        ),
        ("dimensions-implausible", 2, None, Implausible { rows: 4_000_000_000, cols: 4_000_000_000, entries: 1 }),
        ("array-implausible", 2, None, Implausible { rows: 4_000_000_000, cols: 0, entries: 0 }),
        ("symmetric-rectangular", 2, None, NotSquare { symmetry: Symmetry::Symmetric, rows: 3, cols: 2 }),
        ("row-only", 4, Some(2), MissingField { expected: ENTRY, found: s("2") }),
        ("value-missing", 3, Some(4), MissingField { expected: ENTRY, found: s("1 1") }),
        ("text-after-value", 4, Some(7), SurplusText { expected: ENTRY, found: s("%") }),
        ("pattern-with-value", 3, Some(5), SurplusText { expected: "row column", found: s("1.0") }),
        ("array-two-values", 3, Some(3), SurplusText { expected: "value", found: s("2") }),
        ("row-text", 4, Some(1), IndexNotANumber { what: "row", found: s("x") }),
        ("column-fraction", 3, Some(3), IndexNotANumber { what: "column", found: s("1.0") }),
        ("row-zero", 3, Some(1), IndexZero { what: "row" }),
        ("column-zero", 7, Some(3), IndexZero { what: "column" }),
        ("row-too-large", 4, Some(1), IndexOutOfRange { what: "row", found: s("3"), max: 2 }),
        ("column-too-large", 3, Some(3), IndexOutOfRange { what: "column", found: s("4294967297"), max: 3 }),
        ("row-negative", 3, Some(1), IndexOutOfRange { what: "row", found: s("-1"), max: 2 }),
        ("entry-of-nothing", 3, Some(1), IndexOutOfRange { what: "row", found: s("1"), max: 0 }),
        ("value-text", 3, Some(5), ValueNotANumber { found: s("4,5") }),
        ("value-nan", 4, Some(5), NotFinite { found: s("NaN") }),
        ("value-infinite", 3, Some(1), NotFinite { found: s("-Infinity") }),
        ("value-too-large", 3, Some(5), NotFinite { found: s("1e999") }),
        ("integer-fraction", 4, Some(5), NotAnInteger { found: s("1.5") }),
        ("truncated", 5, None, TooFewEntries { expected: 3, found: 2 }),
        ("truncated-within-a-line", 5, Some(5), ValueNotANumber { found: s("-") }),
        ("truncated-array", 6, None, TooFewEntries { expected: 6, found: 4 }),
        ("entries-claimed-1e18", 4, None, TooFewEntries { expected: 1_000_000_000_000_000_000, found: 2 }),
        ("array-claimed-1e18", 4, None, TooFewEntries { expected: 1_000_000_000_000_000_000, found: 2 }),
        ("data-after-the-end", 6, None, TooManyEntries { expected: 1, found: s("2 2 4") }),
        ("array-data-after-the-end", 5, None, TooManyEntries { expected: 2, found: s("3") }),
        ("line-too-long", 3, None, LineTooLong { max: 65_536, found: format!("1 1 1.{}…", "0".repeat(54)) }),
        ("both-triangles", 6, None, BothTriangles { row: 1, col: 2, symmetry: Symmetry::Symmetric }),
        ("both-triangles-skew", 5, None, BothTriangles { row: 2, col: 1, symmetry: Symmetry::SkewSymmetric }),
        ("skew-diagonal", 5, None, SkewDiagonal { index: 2, found: s("0.5") }),
        ("sum-infinite", 6, None, SumNotFinite { row: 1, col: 2 }),
    ]
}

#[test]
fn every_malformed_file_gives_its_place_and_cause() {
    for (name, line, column, kind) in table() {
        let path = bad().join(file_name(name));
        let text = std::fs::read(&path).unwrap();
        let is_complex = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().contains("complex");
        let results = if is_complex && kind != ErrorKind::Complex {
            vec![Reader::new().any_matrix(&path).map(drop)]
        } else {
            vec![read_matrix(&path).map(drop), read_vectors(&path).map(drop)]
        };
        for result in results {
            match result {
                // archives name the member, and look for other members for vectors
                Err(AnyError::MatrixMarket(error)) => {
                    assert_eq!((error.line, error.column), (line, column), "{name}: {error}");
                    match (&error.kind, &kind) {
                        // what decoders say is theirs
                        (ErrorKind::Corrupt { format, cause }, ErrorKind::Corrupt { format: expected, .. }) => {
                            assert!(format == expected && !cause.is_empty(), "{name}: {error}");
                        }
                        (ErrorKind::NoMember { found, .. }, ErrorKind::NoMember { found: expected, .. }) => {
                            assert_eq!(found, expected);
                        }
                        (found, expected) => assert_eq!(found, expected, "{name}"),
                    }
                    assert_eq!(error.file, path.to_string_lossy(), "{name}");
                    let message = error.to_string();
                    assert!(!message.chars().any(char::is_control) && message.len() < 400, "{message}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

/// Names in the table are those of `.mtx` files unless they say more.
fn file_name(name: &str) -> String {
    if name.contains('.') { name.into() } else { format!("{name}.mtx") }
}

#[test]
fn every_malformed_file_is_in_the_table() {
    let files: BTreeSet<String> = bad()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md" && !name.starts_with('.'))
        .collect();
    let in_table: BTreeSet<String> = table().into_iter().map(|(name, ..)| file_name(name)).collect();
    assert_eq!(files, in_table);
}

#[test]
fn every_cause_has_a_malformed_file() {
    let causes: BTreeSet<String> = table()
        .into_iter()
        .map(|(.., kind)| format!("{kind:?}").split([' ', '{']).next().unwrap_or_default().to_string())
        .collect();
    let source = include_str!("../../src/error/matrix_market.rs");
    let (_, variants) = source.split_once("pub enum ErrorKind {").unwrap();
    let (variants, _) = variants.split_once("\n}\n").unwrap();
    let variants: BTreeSet<String> = variants
        .lines()
        .filter_map(|line| line.strip_prefix("    ").filter(|l| l.starts_with(char::is_uppercase)))
        .map(|line| line.trim_end_matches([' ', '{', ',']).to_string())
        .collect();
    assert_eq!(causes, variants);
}

#[test]
fn files_that_cannot_be_read() {
    let missing = bad().join("no-such-file.mtx");
    for path in [missing, bad()] {
        for result in [read_matrix(&path).map(drop), read_vectors(&path).map(drop)] {
            match result {
                Err(AnyError::Io { path: named, .. }) => assert_eq!(named, path),
                other => panic!("{}: {other:?}", path.display()),
            }
        }
    }
}

// ---------------------------------------------------------------------------------------- round trips

/// Finite numbers of every magnitude, subnormals and both zeros included.
fn number() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![
        4 => POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO,
        4 => -1e3..1e3,
        2 => (-1000i32..1000).prop_map(f64::from),
        1 => prop::sample::select(vec![f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1e15, 1e-4, 1e23, 0.1]),
    ]
}

/// Places within `rows` × `cols`, each once, with a value.
fn entries(rows: usize, cols: usize) -> impl Strategy<Value = Vec<((u32, u32), f64)>> {
    let most = (rows * cols).min(80);
    prop::collection::btree_map((0..rows.max(1) as u32, 0..cols.max(1) as u32), number(), 0..=most)
        .prop_map(move |map| if most == 0 { Vec::new() } else { map.into_iter().collect() })
}

fn csr(rows: usize, cols: usize, entries: &[((u32, u32), f64)]) -> Csr {
    let part = |f: fn(&((u32, u32), f64)) -> u32| entries.iter().map(f).collect::<Vec<u32>>();
    let values: Vec<f64> = entries.iter().map(|e| e.1).collect();
    Csr::from_triplets(rows, cols, &part(|e| e.0.0), &part(|e| e.0.1), &values).unwrap()
}

fn general() -> impl Strategy<Value = Csr> {
    (0usize..30, 0usize..30).prop_flat_map(|(m, n)| entries(m, n).prop_map(move |e| csr(m, n, &e)))
}

/// A matrix equal to its transpose times `sign`.
fn mirrored(sign: f64) -> impl Strategy<Value = Csr> {
    (0usize..30).prop_flat_map(move |n| {
        entries(n, n).prop_map(move |e| {
            let mut full = Vec::new();
            for ((i, j), value) in e {
                if i > j {
                    full.extend([((i, j), value), ((j, i), sign * value)]);
                } else if i == j {
                    full.push(((i, j), if sign < 0.0 { 0.0 * value } else { value }));
                }
            }
            csr(n, n, &full)
        })
    })
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn round_trip(a: &Csr, symmetry: Symmetry) -> Result<(), TestCaseError> {
    let comments = ["first", "", "  third, with é"];
    let mut text = Vec::new();
    let options = WriteOptions::default().with_symmetry(symmetry).with_comments(comments.map(String::from).to_vec());
    write_matrix(&mut text, a, &options).unwrap();
    let back = read_matrix_from(&text[..], "test").unwrap();
    prop_assert_eq!((back.header.symmetry, back.duplicates), (symmetry, 0));
    prop_assert_eq!(back.header.comments, comments);
    prop_assert_eq!(bits(back.a.values()), bits(a.values()));
    prop_assert_eq!(&back.a, a);
    Ok(())
}

proptest! {
    #[test]
    fn general_matrices_keep_every_bit(a in general()) {
        round_trip(&a, Symmetry::General)?;
    }

    #[test]
    fn symmetric_matrices_keep_every_bit(a in mirrored(1.0)) {
        round_trip(&a, Symmetry::Symmetric)?;
    }

    #[test]
    fn skew_symmetric_matrices_keep_every_bit(a in mirrored(-1.0)) {
        round_trip(&a, Symmetry::SkewSymmetric)?;
    }

    #[test]
    fn vectors_keep_every_bit(columns in (0usize..40, 0usize..5).prop_flat_map(|(n, k)| {
        prop::collection::vec(prop::collection::vec(number(), n), k)
    })) {
        let mut text = Vec::new();
        write_vectors(&mut text, &columns, &["a comment".into()]).unwrap();
        let back = read_vectors_from(&text[..], "test").unwrap();
        prop_assert_eq!(back.len(), columns.len());
        for (back, column) in back.iter().zip(&columns) {
            prop_assert_eq!(bits(back), bits(column));
        }
    }

    #[test]
    fn a_matrix_read_as_vectors_is_its_columns(a in general()) {
        let mut text = Vec::new();
        write_matrix(&mut text, &a, &WriteOptions::default()).unwrap();
        let columns = read_vectors_from(&text[..], "test").unwrap();
        prop_assert_eq!(columns.len(), a.n_cols());
        for (j, column) in columns.iter().enumerate() {
            let expected: Vec<f64> = (0..a.n_rows()).map(|i| a.get(i, j).unwrap_or(0.0)).collect();
            prop_assert_eq!(bits(column), bits(&expected));
        }
    }

    // ------------------------------------------------------------------------------------ entries in any order

    #[test]
    fn order_and_layout_do_not_matter(
        a in mirrored(1.0),
        order in prop::collection::vec(any::<u32>(), 900),
        upper in prop::collection::vec(any::<bool>(), 900),
    ) {
        let lower = |i: usize| a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (i, j as usize, v));
        let mut entries: Vec<_> = (0..a.n_rows()).flat_map(lower).filter(|&(i, j, _)| i >= j).collect();
        let mut sparse = format!("%%MatrixMarket matrix coordinate real symmetric\n{0} {0} {1}\n", a.n_rows(), entries.len());
        let mut keys = order.iter();
        entries.sort_by_cached_key(|_| keys.next());
        for (&(i, j, v), &upper) in entries.iter().zip(&upper) {
            let (i, j) = if upper { (j, i) } else { (i, j) };
            writeln!(sparse, "{} {} {v:e}", i + 1, j + 1).unwrap();
        }
        prop_assert_eq!(&read_matrix_from(sparse.as_bytes(), "test").unwrap().a, &a);

        let mut dense = format!("%%MatrixMarket matrix array real symmetric\n{0} {0}\n", a.n_rows());
        for j in 0..a.n_cols() {
            for i in j..a.n_rows() {
                writeln!(dense, "{:e}", a.get(i, j).unwrap_or(0.0)).unwrap();
            }
        }
        let read = read_matrix_from(dense.as_bytes(), "test").unwrap().a;
        prop_assert!(read.values().iter().all(|&v| v != 0.0));
        for i in 0..a.n_rows() {
            for j in 0..a.n_cols() {
                prop_assert_eq!(read.get(i, j).unwrap_or(0.0), a.get(i, j).unwrap_or(0.0));
            }
        }
    }

    #[test]
    fn duplicates_are_added_in_the_files_order(
        places in prop::collection::vec(((0u32..4, 0u32..4), -1e3..1e3), 0..60),
        symmetric in any::<bool>(),
    ) {
        let symmetry = if symmetric { "symmetric" } else { "general" };
        let places: Vec<((u32, u32), f64)> =
            places.into_iter().map(|((i, j), v)| (if symmetric { (i.max(j), i.min(j)) } else { (i, j) }, v)).collect();
        let mut text = format!("%%MatrixMarket matrix coordinate real {symmetry}\n4 4 {}\n", places.len());
        for ((i, j), v) in &places {
            writeln!(text, "{} {} {v}", i + 1, j + 1).unwrap();
        }
        let read = read_matrix_from(text.as_bytes(), "test").unwrap();
        let distinct: BTreeSet<(u32, u32)> = places.iter().map(|e| e.0).collect();
        prop_assert_eq!(read.duplicates as usize, places.len() - distinct.len());
        let mirror = |e: &((u32, u32), f64)| [*e, ((e.0.1, e.0.0), e.1)];
        let full: Vec<_> = places.iter().flat_map(mirror).collect();
        let full: Vec<_> = if symmetric {
            full.chunks(2).flat_map(|e| if e[0].0 == e[1].0 { &e[..1] } else { e }).copied().collect()
        } else {
            places
        };
        prop_assert_eq!(read.a, csr(4, 4, &full));
    }

    // ------------------------------------------------------------------------------------ arbitrary bytes

    #[test]
    fn arbitrary_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_matrix_from(&bytes[..], "test");
        let _ = read_vectors_from(&bytes[..], "test");
    }

    #[test]
    fn arbitrary_bodies_are_refused_or_read(
        words in "(coordinate|array) (real|double|integer|pattern) (general|symmetric|skew-symmetric)",
        body in prop::collection::vec("[0-9]{1,3}|[-+.eEdD0-9]{1,8}|%|\n|\r\n| |\t|nan|inf|[ -~]|\\PC", 0..80),
        blanks in any::<bool>(),
    ) {
        let text = format!("%%MatrixMarket matrix {words}\n{}", body.join(if blanks { " " } else { "" }));
        let _ = read_matrix_from(text.as_bytes(), "test");
        let _ = read_vectors_from(text.as_bytes(), "test");
    }

    #[test]
    fn mutated_files_are_refused_or_read(
        a in prop_oneof![general(), mirrored(1.0), mirrored(-1.0)],
        symmetry in prop::sample::select(vec!["general", "symmetric", "skew-symmetric"]),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..6),
    ) {
        let mut text = Vec::new();
        let options = WriteOptions::default().with_comments(vec!["comment".into()]);
        write_matrix(&mut text, &a, &options).unwrap();
        let mut text = String::from_utf8(text).unwrap().replace("general", symmetry).into_bytes();
        for (at, byte, how) in mutations {
            let at = at.index(text.len().max(1)).min(text.len());
            match how {
                0 => text.truncate(at),
                1 => text.insert(at, byte),
                2 if at < text.len() => drop(text.remove(at)),
                _ => text.iter_mut().skip(at).take(1).for_each(|b| *b = byte),
            }
        }
        let _ = read_vectors_from(&text[..], "test");
        match read_matrix_from(&text[..], "test") {
            Ok(read) => prop_assert!(read.a.values().iter().all(|v| v.is_finite())),
            Err(AnyError::MatrixMarket(error)) => {
                prop_assert!((1..=text.iter().filter(|&&b| b == b'\n').count() as u64 + 1).contains(&error.line));
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}
