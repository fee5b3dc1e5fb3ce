//! The Matrix Market reader against others: the readers of other crates on files that those read correctly, the
//! crate's own writer, a plain model, and itself by other ways: other numbers of threads, as a file, as a stream,
//! compressed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;

use crate::packing::Packing;
use declive::matrix::{AnyCsr, Complex64, Scalar};
use declive::matrix_market::{
    Error, ErrorKind, Field, Layout, Reader, Symmetry, WriteOptions, read_matrix_from, write_matrix, write_vectors,
};
use declive::{Csr, Error as AnyError};
use proptest::prelude::*;

// ---------------------------------------------------------------------------------------- what is compared

fn bits<T: Scalar>(values: &[T]) -> Vec<(u64, u64)> {
    values.iter().map(|v| (v.re().to_bits(), v.im().to_bits())).collect()
}

/// Equality that tells the two zeros apart.
fn same<T: Scalar>(one: &Csr<T>, other: &Csr<T>) -> Result<(), TestCaseError> {
    prop_assert_eq!((one.n_rows(), one.n_cols()), (other.n_rows(), other.n_cols()));
    prop_assert_eq!(one.row_ptr(), other.row_ptr());
    prop_assert_eq!(one.col_idx(), other.col_idx());
    prop_assert_eq!(bits(one.values()), bits(other.values()));
    Ok(())
}

/// Finite numbers of every magnitude, subnormals and both zeros included.
fn number() -> impl Strategy<Value = f64> + Clone {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![
        4 => POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO,
        4 => -1e3..1e3,
        2 => (-1000i32..1000).prop_map(f64::from),
        1 => prop::sample::select(vec![f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1e15, 1e-4, 1e23, 0.1]),
    ]
}

fn complex() -> impl Strategy<Value = Complex64> + Clone {
    (number(), number()).prop_map(|(re, im)| Complex64::new(re, im))
}

/// Places from 0 within `rows` × `cols`, each once, with a value, in any order.
fn entries<T: Scalar>(
    rows: usize,
    cols: usize,
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = Vec<(u32, u32, T)>> {
    let most = (rows * cols).min(80);
    let places = (0..rows.max(1) as u32, 0..cols.max(1) as u32);
    prop::collection::btree_map(places, value, 0..=most)
        .prop_map(move |map| {
            let map = if most == 0 { BTreeMap::new() } else { map };
            map.into_iter().map(|((i, j), value)| (i, j, value)).collect::<Vec<_>>()
        })
        .prop_shuffle()
}

fn csr<T: Scalar>(rows: usize, cols: usize, entries: &[(u32, u32, T)]) -> Csr<T> {
    let (i, (j, values)): (Vec<u32>, (Vec<u32>, Vec<T>)) = entries.iter().map(|&(i, j, v)| (i, (j, v))).unzip();
    Csr::from_triplets(rows, cols, &i, &j, &values).unwrap()
}

/// A matrix whose upper triangle follows from the lower one, with a diagonal of its own kind.
fn mirrored<T: Scalar>(
    value: impl Strategy<Value = T> + Clone,
    mirror: fn(T) -> T,
    diagonal: fn(T) -> T,
) -> impl Strategy<Value = Csr<T>> {
    (0usize..20).prop_flat_map(move |n| {
        entries(n, n, value.clone()).prop_map(move |lower| {
            let mut full = Vec::new();
            for (i, j, v) in lower {
                if i > j {
                    full.extend([(i, j, v), (j, i, mirror(v))]);
                } else if i == j {
                    full.push((i, j, diagonal(v)));
                }
            }
            csr(n, n, &full)
        })
    })
}

fn general<T: Scalar>(value: impl Strategy<Value = T> + Clone) -> impl Strategy<Value = Csr<T>> {
    (0usize..30, 0usize..30).prop_flat_map(move |(m, n)| entries(m, n, value.clone()).prop_map(move |e| csr(m, n, &e)))
}

// ---------------------------------------------------------------------------------------- other crates' readers

fn by_sprs(text: &str) -> Csr {
    let a: sprs::TriMatI<f64, usize> = sprs::io::read_matrix_market_from_bufread(&mut text.as_bytes()).unwrap();
    a.to_csr::<usize>().try_into().unwrap()
}

fn integers_by_sprs(text: &str) -> Csr {
    let a: sprs::TriMatI<i64, usize> = sprs::io::read_matrix_market_from_bufread(&mut text.as_bytes()).unwrap();
    a.to_csr::<usize>().map(|&v| v as f64).try_into().unwrap()
}

fn complex_by_sprs(text: &str) -> Csr<Complex64> {
    let a: sprs::TriMatI<Complex64, usize> = sprs::io::read_matrix_market_from_bufread(&mut text.as_bytes()).unwrap();
    a.to_csr::<usize>().try_into().unwrap()
}

fn by_matrix_market_rs(text: &str) -> Csr {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    std::fs::write(&path, text).unwrap();
    let data: matrix_market_rs::MtxData<f64> = matrix_market_rs::MtxData::from_file(&path).unwrap();
    data.try_into().unwrap()
}

/// Entries of one triangle, given in the lower or the upper one.
fn triangle<T: Scalar>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (usize, usize, Vec<(u32, u32, T)>)> {
    (1usize..25, any::<bool>()).prop_flat_map(move |(n, upper)| {
        entries(n, n, value.clone()).prop_map(move |mut entries| {
            entries.retain(|&(i, j, _)| if upper { i <= j } else { i >= j });
            (n, n, entries)
        })
    })
}

fn rectangle<T: Scalar>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (usize, usize, Vec<(u32, u32, T)>)> {
    // matrix-market-rs refuses matrices without rows or columns
    (1usize..25, 1usize..25).prop_flat_map(move |(m, n)| entries(m, n, value.clone()).prop_map(move |e| (m, n, e)))
}

fn text<T: Scalar>(words: &str, rows: usize, cols: usize, entries: &[(u32, u32, T)], show: fn(T) -> String) -> String {
    let mut text = format!("%%MatrixMarket matrix coordinate {words}\n% comment\n{rows} {cols} {}\n", entries.len());
    for &(i, j, value) in entries {
        writeln!(text, "{} {} {}", i + 1, j + 1, show(value)).unwrap();
    }
    text
}

fn agree(text: &str, others: &[Csr]) -> Result<(), TestCaseError> {
    let ours = read_matrix_from(text.as_bytes(), "test").unwrap().a;
    others.iter().try_for_each(|theirs| same(&ours, theirs))
}

proptest! {
    #[test]
    fn real((m, n, e) in rectangle(number())) {
        let text = text("real general", m, n, &e, |v| format!("{v:e}"));
        agree(&text, &[by_sprs(&text), by_matrix_market_rs(&text), csr(m, n, &e)])?;
    }

    #[test]
    fn real_symmetric((m, n, e) in triangle(number())) {
        let text = text("real symmetric", m, n, &e, |v| format!("{v:?}"));
        agree(&text, &[by_sprs(&text), by_matrix_market_rs(&text)])?;
    }

    #[test]
    fn integer((m, n, e) in rectangle((-1_000_000i32..1_000_000).prop_map(f64::from))) {
        let text = text("integer general", m, n, &e, |v| v.to_string());
        agree(&text, &[integers_by_sprs(&text), by_matrix_market_rs(&text), csr(m, n, &e)])?;
    }

    #[test]
    fn integer_symmetric((m, n, e) in triangle((-1_000_000i32..1_000_000).prop_map(f64::from))) {
        let text = text("integer symmetric", m, n, &e, |v| v.to_string());
        agree(&text, &[integers_by_sprs(&text), by_matrix_market_rs(&text)])?;
    }

    #[test]
    fn pattern((m, n, e) in rectangle(Just(1.0))) {
        let text = text("pattern general", m, n, &e, |_| String::new());
        agree(&text, &[by_matrix_market_rs(&text), csr(m, n, &e)])?;
    }

    #[test]
    fn pattern_symmetric((m, n, e) in triangle(Just(1.0))) {
        let text = text("pattern symmetric", m, n, &e, |_| String::new());
        agree(&text, &[by_matrix_market_rs(&text)])?;
    }

    #[test]
    fn arrays(columns in prop::collection::vec(prop::collection::vec(number(), 7), 1..5)) {
        let mut text = Vec::new();
        write_vectors(&mut text, &columns, &[]).unwrap();
        let theirs = by_matrix_market_rs(std::str::from_utf8(&text).unwrap());
        let ours = read_matrix_from(&text[..], "test").unwrap().a;
        for i in 0..7 {
            for j in 0..columns.len() {
                prop_assert_eq!(ours.get(i, j).unwrap_or(0.0), theirs.get(i, j).unwrap_or(0.0));
            }
        }
    }

    #[test]
    fn complex_files(
        (m, n, e) in prop_oneof![rectangle(complex()), triangle(complex())],
        symmetry in prop::sample::select(vec!["general", "symmetric", "hermitian"]),
    ) {
        let square = m == n && (e.iter().all(|&(i, j, _)| i <= j) || e.iter().all(|&(i, j, _)| i >= j));
        let symmetry = if square { symmetry } else { "general" };
        let mut e = e;
        if symmetry == "hermitian" {
            e.iter_mut().filter(|e| e.0 == e.1).for_each(|e| e.2.im = 0.0);
        }
        let text = text(&format!("complex {symmetry}"), m, n, &e, |v| format!("{:e} {:e}", v.re, v.im));
        let AnyCsr::Complex(ours) = Reader::new().any_matrix_from(text.as_bytes(), "test").unwrap().a else {
            return Err(TestCaseError::fail("not complex"));
        };
        same(&ours, &complex_by_sprs(&text))?;
    }
}

// ---------------------------------------------------------------------------------------- written and read

fn round_trip<T: Scalar>(a: &Csr<T>, options: &WriteOptions) -> Result<(), TestCaseError>
where
    Csr<T>: Into<AnyCsr>,
{
    let mut text = Vec::new();
    write_matrix(&mut text, a, options).unwrap();
    let back = Reader::new().any_matrix_from(&text[..], "test").unwrap();
    prop_assert_eq!((back.header.symmetry, back.header.layout, back.duplicates), (options.symmetry, options.layout, 0));
    if let Some(field) = options.field {
        prop_assert_eq!(back.header.field, field);
    }
    match (back.a, a.clone().into()) {
        (AnyCsr::Real(back), AnyCsr::Real(a)) => same(&back, &a),
        (AnyCsr::Complex(back), AnyCsr::Complex(a)) => same(&back, &a),
        (back, _) => Err(TestCaseError::fail(format!("read as {back:?}"))),
    }
}

fn as_symmetry(symmetry: Symmetry, layout: Layout) -> WriteOptions {
    WriteOptions::default().with_symmetry(symmetry).with_layout(layout)
}

/// Numbers that an array keeps as entries.
fn nonzero() -> impl Strategy<Value = Complex64> + Clone {
    complex().prop_map(|z| if z == Complex64::default() { Complex64::new(0.0, -1.5) } else { z })
}

fn real_part(z: Complex64) -> Complex64 {
    Complex64::new(if z.re == 0.0 { 1.0 } else { z.re }, 0.0)
}

proptest! {
    #[test]
    fn complex_matrices_keep_every_bit(a in general(complex()), b in general(nonzero())) {
        round_trip(&a, &as_symmetry(Symmetry::General, Layout::Coordinate))?;
        round_trip(&b, &as_symmetry(Symmetry::General, Layout::Array))?;
    }

    #[test]
    fn complex_symmetric_matrices_keep_every_bit(a in mirrored(complex(), |z| z, |z| z)) {
        round_trip(&a, &as_symmetry(Symmetry::Symmetric, Layout::Coordinate))?;
    }

    #[test]
    fn hermitian_matrices_keep_every_bit(
        a in mirrored(complex(), |z| z.conj(), real_part),
        b in mirrored(nonzero(), |z| z.conj(), real_part),
    ) {
        round_trip(&a, &as_symmetry(Symmetry::Hermitian, Layout::Coordinate))?;
        round_trip(&b, &as_symmetry(Symmetry::Hermitian, Layout::Array))?;
    }

    #[test]
    fn complex_skew_symmetric_matrices_keep_every_bit(a in mirrored(complex(), |z| -z, |_| Complex64::default())) {
        round_trip(&a, &as_symmetry(Symmetry::SkewSymmetric, Layout::Coordinate))?;
    }

    #[test]
    fn whole_numbers_keep_every_bit((field, a) in any::<bool>().prop_flat_map(|negative| {
        let (field, sign) = if negative { (Field::Integer, -1.0) } else { (Field::UnsignedInteger, 1.0) };
        (Just(field), general((0u64..=1 << 53).prop_map(move |n| sign * n as f64)))
    })) {
        round_trip(&a, &WriteOptions::default().with_field(field))?;
    }

    #[test]
    fn arrays_keep_every_bit(a in general(number().prop_map(|v| if v == 0.0 { 1.0 } else { v }))) {
        round_trip(&a, &as_symmetry(Symmetry::General, Layout::Array))?;
    }
}

// ---------------------------------------------------------------------------------------- threads and sources

/// Gives 1, 2, … 5000 bytes at a time.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.1 = self.1 % 5000 + 1;
        self.0.by_ref().take(self.1 as u64).read(to)
    }
}

/// What reading comes to.
type Outcome = Result<(Csr, u64), Error>;

/// Reads a text by 1, 2 and 5 threads; from a file, as a stream, and compressed.
fn in_every_way(text: &str, packings: &[(&str, Packing)], check: impl Fn(&str, Outcome)) {
    assert!(text.len() > 1 << 20, "{} bytes are too few for several blocks", text.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    std::fs::write(&path, text).unwrap();
    let pack = |&(name, packing): &(_, Packing)| (name, packing.pack(text.as_bytes()));
    let packed: Vec<(&str, Vec<u8>)> = packings.iter().map(pack).collect();
    let outcome = |read: declive::Result<declive::matrix_market::Matrix>| match read {
        Ok(matrix) => Ok((matrix.a, matrix.duplicates)),
        Err(AnyError::MatrixMarket(error)) => Err(error),
        Err(other) => panic!("{other}"),
    };
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let by = |way| format!("{way}, {threads} threads");
        check(&by("file"), outcome(pool.install(|| Reader::new().matrix(&path))));
        let stream = Drip(text.as_bytes(), 0);
        check(&by("stream"), outcome(pool.install(|| Reader::new().matrix_from(stream, "test"))));
        for (name, packed) in &packed {
            check(&by(name), outcome(pool.install(|| Reader::new().matrix_from(&packed[..], "test"))));
        }
    }
}

/// Numbers as if by chance.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Lines of a body, of which some hold entries.
#[derive(Clone)]
struct Body {
    symmetric: bool,
    lines: Vec<String>,
    end: &'static str,
}

const SIZE: u64 = 20_000;

/// The number of the first line of a body.
const FIRST: usize = 4;

impl Body {
    /// So many lines in no order, some of which share a place. Values are such that the order of addition matters.
    fn new(symmetric: bool, count: usize, end: &'static str) -> (Self, BTreeMap<(u32, u32), f64>, u64) {
        let mut dice = Dice(count as u64);
        let (mut lines, mut sums, mut duplicates) = (Vec::new(), BTreeMap::new(), 0);
        let mut places: Vec<(u64, u64)> = Vec::new();
        for k in 0..count {
            match dice.below(40) {
                0 => lines.push("% a comment in between".into()),
                1 => lines.push(" \t".repeat(dice.below(3) as usize)),
                _ => {}
            }
            let again = k > 0 && dice.below(10) == 0;
            let (mut i, mut j) = (dice.below(SIZE), dice.below(SIZE));
            if symmetric {
                (i, j) = (i.max(j), i.min(j));
            }
            if again {
                (i, j) = places[dice.below(places.len() as u64) as usize];
            }
            places.push((i, j));
            let value = (dice.below(2_000_000) as f64 - 1e6) / 7.0;
            // unusual spellings once in a while
            match dice.below(30) {
                0 => lines.push(format!("  {}\t{}  {value:e} ", i + 1, j + 1)),
                1 => lines.push(format!("{:07} {} {value:?}", i + 1, j + 1)),
                _ => lines.push(format!("{} {} {value}", i + 1, j + 1)),
            }
            let places = if symmetric && i != j { vec![(i, j), (j, i)] } else { vec![(i, j)] };
            let mut known = false;
            for (i, j) in places {
                let place = (i as u32, j as u32);
                known = sums.contains_key(&place);
                sums.entry(place).and_modify(|sum| *sum += value).or_insert(value);
            }
            duplicates += u64::from(known);
        }
        (Self { symmetric, lines, end }, sums, duplicates)
    }

    fn text(&self, claimed: usize) -> String {
        let symmetry = if self.symmetric { "symmetric" } else { "general" };
        let head = ["%%MatrixMarket matrix coordinate real ", symmetry].concat();
        let size = format!("{SIZE} {SIZE} {claimed}");
        let head = [head, "% a comment".into(), size];
        head.iter().chain(&self.lines).flat_map(|line| [line, self.end]).collect()
    }

    /// Index of the line that holds entry `k`.
    fn line_of(&self, k: usize) -> usize {
        let holds = |line: &String| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        (0..self.lines.len()).filter(|&line| holds(&self.lines[line])).nth(k).unwrap()
    }
}

const COUNT: usize = 45_000;

#[test]
fn every_way_gives_the_same_matrix() {
    for (symmetric, end) in [(false, "\n"), (true, "\n"), (false, "\r\n"), (true, "\r\n")] {
        let (body, sums, duplicates) = Body::new(symmetric, COUNT, end);
        assert!(duplicates > 1000);
        let entries: Vec<(u32, u32, f64)> = sums.iter().map(|(&(i, j), &sum)| (i, j, sum)).collect();
        let expected = csr(SIZE as usize, SIZE as usize, &entries);
        in_every_way(&body.text(COUNT), &Packing::ALL, |way, outcome| {
            let (a, found) = outcome.unwrap_or_else(|e| panic!("{way}: {e}"));
            assert_eq!(found, duplicates, "{way}");
            same(&a, &expected).unwrap_or_else(|e| panic!("{way}, symmetric {symmetric}, {end:?}: {e}"));
        });
    }
}

/// Every way ends in this error in this line of the body, from 0.
fn refused(text: &str, line: usize, column: Option<u32>, kind: &ErrorKind) {
    in_every_way(text, &Packing::ALL[..1], |way, outcome| match outcome {
        Ok(_) => panic!("{way}: read in spite of {kind}"),
        Err(e) => assert_eq!((e.line as usize, e.column, &e.kind), (line + FIRST, column, kind), "{way}"),
    });
}

#[test]
fn the_first_error_is_given() {
    let (body, ..) = Body::new(false, COUNT, "\n");
    let wrong = |text: &str| ErrorKind::ValueNotANumber { found: text.into() };
    // two wrong lines, in the same block and in others
    for (first, second) in [(COUNT - 9, COUNT - 5), (COUNT / 2, COUNT - 1), (COUNT / 9, COUNT / 3)] {
        let mut body = body.clone();
        let (first, second) = (body.line_of(first), body.line_of(second));
        body.lines[first] = "1 1 first".into();
        body.lines[second] = "1 1 second".into();
        refused(&body.text(COUNT), first, Some(5), &wrong("first"));
    }
}

#[test]
fn surplus_lines_are_found_where_they_are() {
    let (body, ..) = Body::new(true, COUNT, "\n");
    let claimed = COUNT - 1000;
    let at = body.line_of(claimed);
    let kind = ErrorKind::TooManyEntries { expected: claimed as u64, found: body.lines[at].trim_end().into() };
    refused(&body.text(claimed), at, None, &kind);

    // what is wrong behind it does not matter, but what is wrong before it does
    let mut later = body.clone();
    later.lines[at + 1] = "nonsense".into();
    refused(&later.text(claimed), at, None, &kind);
    let mut before = body;
    let at = before.line_of(claimed - 1);
    before.lines[at] = "0 1 1".into();
    refused(&before.text(claimed), at, Some(1), &ErrorKind::IndexZero { what: "row" });
}

#[test]
fn what_is_wrong_only_together_is_found_where_it_is() {
    // an end too early
    let (mut body, ..) = Body::new(false, COUNT, "\r\n");
    let last = body.lines.len() - 1;
    let kind = ErrorKind::TooFewEntries { expected: COUNT as u64 + 1, found: COUNT as u64 };
    refused(&body.text(COUNT + 1), last, None, &kind);

    // a sum beyond all numbers, made by the later of two lines far apart
    let (first, second) = (body.line_of(100), body.line_of(COUNT - 100));
    let value = f64::MAX;
    body.lines[first] = format!("{SIZE} 7 {value:e}");
    body.lines[second] = body.lines[first].clone();
    refused(&body.text(COUNT), second, None, &ErrorKind::SumNotFinite { row: SIZE as usize, col: 7 });

    // an entry and its mirror image
    let (mut body, ..) = Body::new(true, COUNT, "\n");
    let (first, second) = (body.line_of(100), body.line_of(COUNT - 100));
    body.lines[first] = format!("{SIZE} 7 1");
    body.lines[second] = format!("7 {SIZE} 1");
    let symmetry = Symmetry::Symmetric;
    refused(&body.text(COUNT), second, None, &ErrorKind::BothTriangles { row: 7, col: SIZE as usize, symmetry });
}
