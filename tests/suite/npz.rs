//! SciPy's `.npz` files: those that SciPy wrote, round trips, malformed and damaged files, and SciPy itself where it
//! is.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::process::Place;
use declive::matrix::reorder::{permuted, rcm};
use declive::matrix::{AnyCsr, Complex64, Scalar, gallery};
use declive::npz::{self, Element, Error, ErrorKind};
use declive::{Control, Csr, Error as AnyError, Result, Setup, Solver, Stop};
use proptest::prelude::*;
use zip::CompressionMethod::{Deflated, Stored};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

// ---------------------------------------------------------------------------------------- helpers

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/npz")
}

/// A file of these bytes.
fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Reads a file copied and mapped, which must give the same matrix to the last bit, or the same error.
fn read_file(path: &Path) -> Result<AnyCsr> {
    let (read, mapped) = (npz::read(path), npz::map(path));
    match (&read, &mapped) {
        (Ok(AnyCsr::Real(a)), Ok(AnyCsr::Real(b))) => assert!(a == b && bits(a.values()) == bits(b.values())),
        (Ok(AnyCsr::Complex(a)), Ok(AnyCsr::Complex(b))) => assert!(a == b && bits(a.values()) == bits(b.values())),
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        _ => panic!("read {read:?}, mapped {mapped:?}"),
    }
    read
}

/// [`read_file`] of these bytes.
fn read_bytes(bytes: &[u8]) -> Result<AnyCsr> {
    read_file(file_of(bytes).path())
}

/// What is wrong with a file of these bytes, and with which member.
fn fault(bytes: &[u8]) -> (String, ErrorKind) {
    match read_bytes(bytes).map(|a| (a.n_rows(), a.n_cols(), a.nnz())) {
        Err(AnyError::Npz(Error { member, kind, .. })) => (member.unwrap_or_default(), kind),
        other => panic!("{other:?}"),
    }
}

fn written<T: Element>(a: &Csr<T>) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    npz::write(&mut file, a).unwrap();
    file.into_inner()
}

/// An array in NumPy's format.
fn npy(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\0", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), elements].concat()
}

fn ints(descr: &str, elements: &[i64]) -> Vec<u8> {
    let bytes: Vec<u8> = match descr {
        "<i8" => elements.iter().flat_map(|n| n.to_le_bytes()).collect(),
        "<i4" => elements.iter().flat_map(|n| (*n as i32).to_le_bytes()).collect(),
        "<u8" => elements.iter().flat_map(|n| (*n as u64).to_le_bytes()).collect(),
        other => panic!("{other}"),
    };
    npy(descr, &format!("({},)", elements.len()), &bytes)
}

fn floats(elements: &[f64]) -> Vec<u8> {
    let bytes: Vec<u8> = elements.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy("<f8", &format!("({},)", elements.len()), &bytes)
}

/// The members of an archive.
type Members = Vec<(&'static str, Vec<u8>)>;

fn zipped(members: &Members, method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The arrays of a matrix of this format and shape.
fn members(format: &str, shape: [i64; 2], arrays: &[(&'static str, Vec<u8>)]) -> Members {
    let mut members = vec![("format", npy("|S3", "()", format.as_bytes())), ("shape", ints("<i8", &shape))];
    members.extend(arrays.iter().cloned());
    members
}

/// The 2 × 3 matrix `1 0 2; 0 3 0`.
fn small() -> Members {
    let (indptr, indices) = (ints("<i4", &[0, 2, 3]), ints("<i4", &[0, 2, 1]));
    members("csr", [2, 3], &[("indptr", indptr), ("indices", indices), ("data", floats(&[1.0, 2.0, 3.0]))])
}

/// [`small`] with one member replaced, or left out.
fn small_but(name: &str, array: Option<Vec<u8>>) -> Vec<u8> {
    let mut members = small();
    let place = members.iter().position(|(n, _)| *n == name).unwrap();
    match array {
        Some(array) => members[place].1 = array,
        None => drop(members.remove(place)),
    }
    zipped(&members, Stored)
}

/// The entries of a matrix row by row, 0 where none is stored.
fn dense<T: Scalar>(a: &Csr<T>) -> Vec<Vec<T>> {
    (0..a.n_rows()).map(|i| (0..a.n_cols()).map(|j| a.get(i, j).unwrap_or_default()).collect()).collect()
}

// ---------------------------------------------------------------------------------------- what is read

#[test]
fn files_that_scipy_wrote() {
    let plain =
        [[1.0, 0.0, 0.0, -2.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0, 0.0, 0.0], [0.0; 6], [4.0, 0.0, 5.0, 0.0, 0.0, 6.0]];
    let nnz = |name: &str| if name == "bsr" { 24 } else { 6 };
    for name in ["csr", "csr-compressed", "csr-unsorted", "bsr", "bool", "dia-fortran", "big-endian", "csc", "coo"] {
        let read = read_file(&folder().join(format!("{name}.npz"))).unwrap();
        assert_eq!(read.nnz(), nnz(name), "{name}");
        match read {
            AnyCsr::Real(a) if name == "bool" => {
                assert_eq!(dense(&a), plain.map(|row| row.map(|v| f64::from(u8::from(v != 0.0)))), "{name}");
            }
            AnyCsr::Real(a) => assert_eq!(dense(&a), plain, "{name}"),
            AnyCsr::Complex(a) => {
                assert!(matches!(name, "csc" | "coo"));
                assert_eq!(dense(&a), plain.map(|row| row.map(|v| v * Complex64::new(1.0, -0.5))), "{name}");
            }
        }
    }
}

#[test]
fn all_files_of_the_folder_are_tested() {
    let files =
        std::fs::read_dir(folder()).unwrap().filter(|f| f.as_ref().unwrap().path().extension().unwrap() == "npz");
    assert_eq!(files.count(), 9);
}

#[test]
fn every_format_by_hand() {
    let i4 = |n: &[i64]| ints("<i4", n);
    let one_to_six = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let fortran = |array: Vec<u8>| {
        let at = array.windows(5).position(|w| w == b"False").unwrap();
        [&array[..at], b"True ", &array[at + 5..]].concat()
    };
    let shaped = |array: &[u8], shape: &str| {
        let start = array.len() - 48;
        npy("<f8", shape, &array[start..])
    };
    let check = |format: &str, shape, arrays: &[(&'static str, Vec<u8>)], expected: &[&[f64]]| {
        for method in [Stored, Deflated] {
            let a = read_bytes(&zipped(&members(format, shape, arrays), method)).unwrap().into_real().unwrap();
            assert_eq!(dense(&a), expected, "{format}");
        }
    };
    check(
        "csc",
        [2, 3],
        &[("indptr", i4(&[0, 2, 2, 3])), ("indices", i4(&[1, 0, 1])), ("data", floats(&[1.0, 2.0, 3.0]))],
        &[&[2.0, 0.0, 0.0], &[1.0, 0.0, 3.0]],
    );
    let places = npy("<i8", "(2, 3)", &[1i64, 0, 1, 2, 0, 2].map(i64::to_le_bytes).concat());
    check(
        "coo",
        [2, 3],
        &[("coords", places), ("data", floats(&[1.0, 2.0, 3.0]))],
        &[&[2.0, 0.0, 0.0], &[0.0, 0.0, 4.0]],
    );
    let places = fortran(npy("<i8", "(2, 3)", &[1i64, 2, 0, 0, 1, 2].map(i64::to_le_bytes).concat()));
    check(
        "coo",
        [2, 3],
        &[("coords", places), ("data", floats(&[1.0, 2.0, 3.0]))],
        &[&[2.0, 0.0, 0.0], &[0.0, 0.0, 4.0]],
    );
    let blocks = shaped(&one_to_six, "(2, 1, 3)");
    let arrays = |data| [("indptr", i4(&[0, 1, 2])), ("indices", i4(&[1, 0])), ("data", data)];
    check("bsr", [2, 6], &arrays(blocks.clone()), &[&[0.0, 0.0, 0.0, 1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 0.0, 0.0, 0.0]]);
    check("bsr", [2, 6], &arrays(fortran(blocks)), &[&[0.0, 0.0, 0.0, 1.0, 3.0, 5.0], &[2.0, 4.0, 6.0, 0.0, 0.0, 0.0]]);
    let diagonals = shaped(&one_to_six, "(2, 3)");
    let arrays = |offsets: &[i64], data| [("offsets", i4(offsets)), ("data", data)];
    check("dia", [2, 3], &arrays(&[1, -1], diagonals.clone()), &[&[0.0, 2.0, 0.0], &[4.0, 0.0, 3.0]]);
    check("dia", [2, 3], &arrays(&[1, -1], fortran(diagonals.clone())), &[&[0.0, 3.0, 0.0], &[2.0, 0.0, 5.0]]);
    // longer and shorter than the matrix; diagonals outside of it
    check("dia", [2, 2], &arrays(&[0, 5], diagonals.clone()), &[&[1.0, 0.0], &[0.0, 2.0]]);
    check(
        "dia",
        [4, 4],
        &arrays(&[-4, 0], diagonals),
        &[&[4.0, 0., 0., 0.], &[0., 5., 0., 0.], &[0., 0., 6., 0.], &[0.; 4]],
    );
    check("csr", [0, 0], &[("indptr", i4(&[0])), ("indices", i4(&[])), ("data", floats(&[]))], &[]);
    check("csc", [2, 0], &[("indptr", i4(&[0])), ("indices", i4(&[])), ("data", floats(&[]))], &[&[], &[]]);
    check("coo", [1, 1], &[("row", i4(&[])), ("col", i4(&[])), ("data", floats(&[]))], &[&[0.0]]);
    let none = npy("<f8", "(0, 0)", &[]);
    check("dia", [1, 2], &[("offsets", i4(&[])), ("data", none)], &[&[0.0, 0.0]]);
}

#[test]
fn indices_of_every_width_and_padding_within_a_diagonal() {
    for descr in ["<i4", "<i8", "<u8"] {
        let mut members = small();
        members[2].1 = ints(descr, &[0, 2, 3]);
        members[3].1 = ints(descr, &[0, 2, 1]);
        let a = read_bytes(&zipped(&members, Stored)).unwrap().into_real().unwrap();
        assert_eq!(dense(&a), [[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]);
    }
    // what lies outside the matrix may be anything; zeros inside are no entries
    let data = npy("<f8", "(1, 3)", &[f64::NAN, 0.0, 7.0].map(f64::to_le_bytes).concat());
    let arrays = [("offsets", ints("<i8", &[1])), ("data", data)];
    let a = read_bytes(&zipped(&members("dia", [2, 3], &arrays), Stored)).unwrap().into_real().unwrap();
    assert_eq!((a.nnz(), a.get(1, 2)), (1, Some(7.0)));
}

#[test]
fn long_arrays_are_read_in_pieces() {
    // beyond several chunks, with rows across their borders, sorted and with a fault at a border
    let n = 1 << 18;
    let row_ptr: Vec<usize> = (0..=n / 3 + 1).map(|i| (3 * i).min(n)).collect();
    let col_idx: Vec<u32> = (0..n as u32).map(|k| k % 3 * 3 + k / 3 % 3).collect();
    let a = Csr::new(n / 3 + 1, 10, row_ptr, col_idx, (0..n).map(|k| k as f64).collect()).unwrap();
    let bytes = written(&a);
    assert_eq!(read_bytes(&bytes).unwrap(), AnyCsr::Real(a.clone()));
    let z = a.into_raw_parts();
    let (rows, indptr) = (z.0 as i64, z.2.iter().map(|&p| p as i64).collect::<Vec<_>>());
    for border in [1 << 15, 1 << 16, 1 << 17] {
        let mut cols: Vec<i64> = z.3.iter().map(|&j| j.into()).collect();
        let k = (border..).find(|k| k % 3 != 0).unwrap() - 1;
        cols.swap(k, k + 1);
        for method in [Stored, Deflated] {
            let arrays = [("indptr", ints("<i8", &indptr)), ("indices", ints("<i4", &cols)), ("data", floats(&z.4))];
            let b = read_bytes(&zipped(&members("csr", [rows, 10], &arrays), method)).unwrap().into_real().unwrap();
            let (low, high) = (cols[k].min(cols[k + 1]) as usize, cols[k].max(cols[k + 1]) as usize);
            assert_eq!(b.get(k / 3, high), Some(if cols[k] as usize == high { k as f64 } else { k as f64 + 1.0 }));
            assert!(b.row(k / 3).0.is_sorted() && b.get(k / 3, low).is_some());
            assert_eq!(b.nnz(), n);
        }
    }
}

#[test]
fn progress_is_reported() {
    let a = Csr::new(1, 1 << 16, vec![0, 1 << 16], (0..1 << 16).collect(), vec![1.0; 1 << 16]).unwrap();
    let file = file_of(&written(&a));
    for with in [npz::read_with, npz::map_with] {
        let (calls, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let totals = Mutex::new(Vec::new());
        with(file.path(), &|done, total| {
            calls.fetch_add(1, Ordering::Relaxed);
            most.fetch_max(done, Ordering::Relaxed);
            totals.lock().unwrap().push(total);
        })
        .unwrap();
        let all = (1 << 16) * 12 + 8;
        assert_eq!(most.load(Ordering::Relaxed), all);
        assert!(calls.load(Ordering::Relaxed) >= 3 && totals.lock().unwrap().iter().all(|&t| t == all));
    }
}

#[test]
fn entries_that_share_a_place_are_counted() {
    let i4 = |n: &[i64]| ints("<i4", n);
    let four = || ("data", floats(&[1.0, 2.0, 3.0, 4.0]));
    let coo = [("row", i4(&[0, 1, 0, 0])), ("col", i4(&[2, 0, 2, 2])), four()];
    let csr = [("indptr", i4(&[0, 3, 4])), ("indices", i4(&[2, 0, 2, 1])), four()];
    let csc = [("indptr", i4(&[0, 2, 2, 4])), ("indices", i4(&[1, 1, 0, 0])), four()];
    let bsr = [("indptr", i4(&[0, 2])), ("indices", i4(&[0, 0])), ("data", npy("<f8", "(2, 2, 3)", &[0; 96]))];
    for (format, arrays, nnz, duplicates) in
        [("coo", &coo, 2, 2), ("csr", &csr, 3, 1), ("csc", &csc, 2, 2), ("bsr", &bsr, 6, 6)]
    {
        let file = file_of(&zipped(&members(format, [2, 3], arrays), Stored));
        for with in [npz::read_with, npz::map_with] {
            let npz::Matrix { a, duplicates: found, .. } = with(file.path(), &|_, _| {}).unwrap();
            assert_eq!((a.nnz(), found), (nnz, duplicates), "{format}");
        }
        let info =
            Command::new(env!("CARGO_BIN_EXE_declive")).args(["info", "--json"]).arg(file.path()).output().unwrap();
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        assert_eq!(info["matrix"]["duplicates"], duplicates, "{format}");
    }
    let none = file_of(&written(&Csr::new(1, 1, vec![0, 1], vec![0], vec![2.0]).unwrap()));
    assert_eq!(npz::map_with(none.path(), &|_, _| {}).unwrap().duplicates, 0);
}

// ---------------------------------------------------------------------------------------- matrices in a mapped file

/// A symmetric positive definite matrix of some chunks of entries.
fn laplacian() -> Csr {
    gallery::poisson3d([30, 30, 30]).unwrap()
}

#[test]
fn a_mapped_matrix_is_like_any_other() {
    let a = laplacian();
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.npz"), folder.path().join("b.npz"));
    std::fs::write(&path, written(&a)).unwrap();
    let mapped = npz::map(&path).unwrap().into_real().unwrap();
    assert_eq!(mapped, a);
    assert_eq!(format!("{mapped:?}"), format!("{a:?}"));
    // a file takes the name, and is removed
    std::fs::write(&other, b"another file").unwrap();
    std::fs::rename(&other, &path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let clone = mapped.clone();
    drop(mapped);
    assert_eq!(clone, a);

    let n = a.n_rows();
    let x = gallery::random_vector(n, 1);
    assert_eq!(clone.mul_vec(&x), a.mul_vec(&x));
    assert_eq!((clone.diagonal(), clone.row(n / 2), clone.get(0, 1)), (a.diagonal(), a.row(n / 2), a.get(0, 1)));
    assert_eq!(clone.to_triplets(), a.to_triplets());
    assert_eq!(written(&clone), written(&a));
    let p = rcm(&a).unwrap();
    assert_eq!(permuted(&clone, &p).unwrap(), permuted(&a, &p).unwrap());
    let transposed = |a: &Csr| sprs::CsMatI::<f64, u32, usize>::from(a.clone()).transpose_into().to_csr();
    assert_eq!(transposed(&clone), transposed(&a));
    assert_eq!(clone.clone().into_raw_parts(), a.clone().into_raw_parts());

    let b = a.mul_vec(&x);
    let setup = Setup::default().with_devices("host".parse().unwrap());
    let solved =
        |a: Csr| Solver::new(a, &setup).unwrap().solve(&b, None, &Stop::default(), Control::default()).unwrap();
    let (outcome, expected) = (solved(clone), solved(a));
    assert!(outcome.reason.converged() && outcome.x == expected.x);
}

#[test]
fn commands_take_a_mapped_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_declive")).args(args).current_dir(folder.path()).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let bytes = written(&laplacian());
    std::fs::write(folder.path().join("a.npz"), &bytes).unwrap();
    for args in [
        &["solve", "a.npz", "--devices", "host", "-q"][..],
        &["solve", "a.npz", "-q"],
        &["info", "a.npz", "--spy", "a.png"],
        &["convert", "a.npz", "b.npz"],
        &["convert", "a.npz", "a.mtx"],
        &["convert", "b.npz", "c.npz", "--reorder", "rcm"],
    ] {
        assert_eq!(run(args).0, Some(0), "{args:?}: {}", run(args).1);
    }
    // a file is never written over itself
    let (code, text) = run(&["convert", "a.npz", "a.npz"]);
    assert!(code == Some(2) && text.contains("which is the input"), "{text}");
    for name in ["a.npz", "b.npz"] {
        assert!(std::fs::read(folder.path().join(name)).unwrap() == bytes, "{name}");
    }
    // by another name of the same file, which then is another file
    std::fs::hard_link(folder.path().join("a.npz"), folder.path().join("link.npz")).unwrap();
    assert_eq!(run(&["convert", "a.npz", "link.npz", "--drop-zeros"]).0, Some(0));
    assert!(std::fs::read(folder.path().join("link.npz")).unwrap() == bytes);
}

#[test]
fn what_was_read_is_not_the_file() {
    let a = laplacian();
    let mut file = file_of(&written(&a));
    let read = npz::read(file.path()).unwrap();
    file.as_file().set_len(0).unwrap();
    file.write_all(&[0xff; 100]).unwrap();
    assert_eq!(read, AnyCsr::Real(a));
}

#[test]
fn damage_in_large_members_is_found() {
    let bytes = written(&laplacian());
    let mut zip = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
    for k in 0..zip.len() {
        let member = zip.by_index(k).unwrap();
        let (start, size) = (member.data_start().unwrap() as usize, member.size() as usize);
        let header = 10 + usize::from(bytes[start + 8]); // which says how long it is
        let name = member.name().unwrap().into_owned();
        for at in [start + header, start + (header + size) / 2, start + size - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let (found, kind) = fault(&damaged);
            assert!(found == name && matches!(kind, ErrorKind::Checksum { .. }), "{name}, byte {at}: {found} {kind:?}");
        }
    }
    for len in [bytes.len() - 1, bytes.len() / 2, 100, 0] {
        assert!(read_bytes(&bytes[..len]).is_err());
    }
}

// ---------------------------------------------------------------------------------------- what is written

#[test]
fn layout_of_a_written_file() {
    let a = Csr::new(1, 2, vec![0, 1], vec![1], vec![0.5]).unwrap();
    let bytes = written(&a);
    assert_eq!(bytes, written(&a));
    let mut zip = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
    let names: Vec<String> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
    assert_eq!(names, ["indices.npy", "indptr.npy", "format.npy", "shape.npy", "data.npy"]);
    for i in 0..5 {
        let member = zip.by_index(i).unwrap();
        assert_eq!((member.compression(), member.data_start().unwrap() % 64), (Stored, 0));
        assert_eq!(member.last_modified(), Some(zip::DateTime::default()));
    }
    assert_eq!(&bytes[bytes.windows(8).rposition(|w| w == 0.5f64.to_le_bytes()).unwrap()..][..8], 0.5f64.to_le_bytes());
}

#[test]
fn wide_indices() {
    let n = i32::MAX as usize + 1;
    let a = Csr::new(1, n, vec![0, 1], vec![i32::MAX as u32], vec![0.5]).unwrap();
    let bytes = written(&a);
    assert!(bytes.windows(3).any(|w| w == b"<i8") && !bytes.windows(3).any(|w| w == b"<i4"));
    // read back, but for its dimensions
    assert!(matches!(fault(&bytes).1, ErrorKind::Implausible { rows: 1, cols, elements: 3, .. } if cols == n));
    let a = Csr::new(1, n - 1, vec![0, 1], vec![i32::MAX as u32 - 1], vec![0.5]).unwrap();
    assert!(written(&a).windows(3).any(|w| w == b"<i4"));
}

/// A matrix with at most `entries` entries at random places, whose values come from `value`.
fn matrix<T: Element>(value: impl Strategy<Value = T> + Clone) -> impl Strategy<Value = Csr<T>> {
    (0usize..12, 0usize..12).prop_flat_map(move |(rows, cols)| {
        let places = if rows * cols == 0 { 0 } else { 40 };
        let (row, col) = (0..rows.max(1) as u32, 0..cols.max(1) as u32);
        prop::collection::btree_map((row, col), value.clone(), 0..=places).prop_map(move |entries| {
            let (places, values): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
            let (is, js): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
            Csr::from_triplets(rows, cols, &is, &js, &values).unwrap()
        })
    })
}

fn finite() -> impl Strategy<Value = f64> + Clone {
    use prop::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![NORMAL | POSITIVE | NEGATIVE, SUBNORMAL | POSITIVE | NEGATIVE, ZERO | POSITIVE | NEGATIVE]
}

fn bits<T: Scalar>(values: &[T]) -> Vec<(u64, u64)> {
    values.iter().map(|v| (v.re().to_bits(), v.im().to_bits())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn real_round_trips_keep_every_bit(a in matrix(finite())) {
        let b = read_bytes(&written(&a)).unwrap().into_real().unwrap();
        prop_assert_eq!(bits(a.values()), bits(b.values()));
        prop_assert_eq!(a, b);
    }

    #[test]
    fn complex_round_trips_keep_every_bit(
        a in matrix((finite(), finite()).prop_map(|(re, im)| Complex64::new(re, im)))
    ) {
        let mut file = Cursor::new(Vec::new());
        npz::write_any(&mut file, &AnyCsr::Complex(a.clone())).unwrap();
        let AnyCsr::Complex(b) = read_bytes(&file.into_inner()).unwrap() else { panic!("complex it was") };
        prop_assert_eq!(bits(a.values()), bits(b.values()));
        prop_assert_eq!(a, b);
    }
}

// ---------------------------------------------------------------------------------------- malformed files

/// Overwrites bytes of a member's entry in the archive's directory, at an offset that the format gives.
fn patch_directory(bytes: &mut [u8], member: &str, offset: usize, patch: &[u8]) {
    let is_entry =
        |at: &usize| bytes[*at..].starts_with(b"PK\x01\x02") && bytes[at + 46..].starts_with(member.as_bytes());
    let at = (0..bytes.len()).find(is_entry).unwrap();
    bytes[at + offset..][..patch.len()].copy_from_slice(patch);
}

#[test]
fn what_is_no_archive() {
    assert_eq!(fault(b""), (String::new(), ErrorKind::NotZip { found: String::new() }));
    assert_eq!(fault(b"%%MatrixMarket").1, ErrorKind::NotZip { found: "%%Matrix".into() });
    assert!(matches!(fault(b"PK\x03\x04").1, ErrorKind::Archive { .. }));
    let mut twice = small();
    twice.push(("formax", Vec::new()));
    let mut bytes = zipped(&twice, Stored);
    while let Some(at) = bytes.windows(6).position(|w| w == b"formax") {
        bytes[at..at + 6].copy_from_slice(b"format");
    }
    assert_eq!(fault(&bytes), (String::new(), ErrorKind::DuplicateMembers));
    let path = Path::new("/nowhere/a.npz");
    assert!(matches!(npz::read(path), Err(AnyError::Io { .. })));
    assert!(matches!(npz::read(Path::new(env!("CARGO_MANIFEST_DIR"))), Err(AnyError::Io { .. })));
}

#[test]
fn members_that_can_not_be_read() {
    for name in ["format", "shape", "indptr", "indices", "data"] {
        assert_eq!(fault(&small_but(name, None)), (format!("{name}.npy"), ErrorKind::Missing));
    }
    let data = |offset: usize, patch: &[u8]| {
        let mut bytes = zipped(&small(), Stored);
        patch_directory(&mut bytes, "data.npy", offset, patch);
        fault(&bytes)
    };
    let file_bytes = zipped(&small(), Stored).len() as u64;
    let name = || String::from("data.npy");
    assert_eq!(data(8, &[1]), (name(), ErrorKind::Encrypted));
    assert!(
        matches!(data(10, &[12]), (member, ErrorKind::Compression { found }) if member == name() && found == "bzip2")
    );
    assert!(matches!(data(20, &[255]), (_, ErrorKind::Archive { what }) if what.contains("claims to hold")));
    let (_, kind) = data(20, &[255, 255, 0, 0, 255, 255, 0, 0]);
    assert!(matches!(kind, ErrorKind::Truncated { bytes: 65535, file_bytes: f, .. } if f == file_bytes));
    let (member, kind) = data(16, &[1, 2, 3, 4]);
    assert!(matches!(kind, ErrorKind::Checksum { expected: 0x0403_0201, .. }) && member == name());
    let mut bytes = zipped(&small(), Deflated);
    patch_directory(&mut bytes, "data.npy", 16, &[1, 2, 3, 4]);
    assert!(matches!(fault(&bytes), (member, ErrorKind::Deflate { .. }) if member == name()));
}

#[test]
fn members_that_are_no_arrays() {
    let data = |array: &[u8]| {
        let (member, kind) = fault(&small_but("data", Some(array.to_vec())));
        assert_eq!(member, "data.npy");
        kind
    };
    let whole = floats(&[1.0, 2.0, 3.0]);
    assert_eq!(data(b"1 2 3"), ErrorKind::NotNpy { found: "1 2 3".into() });
    assert_eq!(data(b"\x93NUMPY\x04\x00"), ErrorKind::Version { major: 4, minor: 0 });
    assert!(matches!(data(&whole[..50]), ErrorKind::Header { .. }));
    assert_eq!(data(&whole[..whole.len() - 1]), ErrorKind::Size { expected: 24, found: 23 });
    assert_eq!(data(&npy("<f8", "(4294967296, 4294967296)", &[0; 8])), ErrorKind::Size { expected: 1 << 67, found: 8 });
    for (descr, size) in [("|O", 8), ("<f2", 2), ("<f16", 16), ("|S8", 8), ("<M8", 8), ("<M8[ns]", 8)] {
        assert!(matches!(data(&npy(descr, "(3,)", &[0; 48][..3 * size])), ErrorKind::Dtype { .. }), "{descr}");
    }
    let odd = npy("<f8", "(3, 1)", &[0; 24]);
    assert_eq!(data(&odd), ErrorKind::Shape { expected: "(3,)".into(), found: "(3, 1)".into() });
    assert_eq!(data(&floats(&[1.0, 2.0])), ErrorKind::Shape { expected: "(3,)".into(), found: "(2,)".into() });
    for (at, value, text) in [(0, f64::NAN, "NaN"), (2, f64::NEG_INFINITY, "-inf")] {
        let mut values = [1.0, 2.0, 3.0];
        values[at] = value;
        assert_eq!(data(&floats(&values)), ErrorKind::NotFinite { position: at, value: text.into() });
    }
}

#[test]
fn arrays_that_make_no_matrix() {
    let but = |name: &str, array: Vec<u8>| {
        let (member, kind) = fault(&small_but(name, Some(array)));
        assert_eq!(member, format!("{name}.npy"));
        kind
    };
    let i8 = |n: &[i64]| ints("<i8", n);
    assert_eq!(but("format", npy("|S3", "()", b"lil")), ErrorKind::Format { found: "lil".into() });
    assert!(matches!(but("format", i8(&[1])), ErrorKind::Dtype { expected: "text", .. }));
    assert!(matches!(but("format", npy("|S99", "()", &[b'x'; 99])), ErrorKind::Dtype { .. }));
    assert!(matches!(but("shape", i8(&[2, 3, 4])), ErrorKind::Shape { .. }));
    assert!(matches!(but("shape", floats(&[2.0, 3.0])), ErrorKind::Dtype { expected: "integers", .. }));
    let max = u32::MAX.into();
    assert_eq!(but("shape", i8(&[-1, 3])), ErrorKind::Dimension { what: "rows", found: -1, max });
    assert_eq!(but("shape", i8(&[2, 1 << 32])), ErrorKind::Dimension { what: "columns", found: 1 << 32, max });
    let bytes = small_but("shape", Some(i8(&[2, 1 << 31]))).len() as u64;
    let kind = ErrorKind::Implausible { rows: 2, cols: 1 << 31, elements: 6, bytes };
    assert_eq!(but("shape", i8(&[2, 1 << 31])), kind);

    let pointer = |position, found, expected: &str| ErrorKind::Pointer { position, found, expected: expected.into() };
    assert_eq!(but("indptr", i8(&[1, 2, 3])), pointer(0, 1, "0"));
    assert_eq!(but("indptr", i8(&[0, 3, 2])), pointer(2, 2, "at least 3, as the one before"));
    assert_eq!(but("indptr", i8(&[0, 2, 4])), pointer(2, 4, "at most 3, the length of the other arrays"));
    assert_eq!(but("indptr", i8(&[0, -2, 3])), pointer(1, -2, "0 or more"));
    assert_eq!(
        but("indptr", ints("<u8", &[0, 3, -1])),
        pointer(2, i64::MAX, "at most 3, the length of the other arrays")
    );
    assert!(matches!(but("indptr", i8(&[0, 3])), ErrorKind::Shape { .. }));
    assert!(matches!(but("indptr", floats(&[0.0, 2.0, 3.0])), ErrorKind::Dtype { .. }));

    let index = |position, found| ErrorKind::Index { what: "columns", position, found, count: 3 };
    assert_eq!(but("indices", i8(&[0, 2, 3])), index(2, 3));
    assert_eq!(but("indices", i8(&[0, -2, 1])), index(1, -2));
    assert_eq!(but("indices", ints("<i4", &[0, -2, 1])), index(1, -2));
    assert_eq!(but("indices", i8(&[1 << 32, 2, 1])), index(0, 1 << 32));
    assert!(matches!(but("indices", npy("<i8", "(1, 3)", &[0; 24])), ErrorKind::Shape { .. }));

    // duplicates in the second row, each of them finite
    let arrays = [("indptr", i8(&[0, 0, 2])), ("indices", i8(&[1, 1])), ("data", floats(&[f64::MAX; 2]))];
    let bytes = zipped(&members("csr", [2, 3], &arrays), Stored);
    assert_eq!(fault(&bytes), (String::new(), ErrorKind::SumNotFinite { row: 1, col: 1 }));
}

#[test]
fn faults_of_other_formats() {
    let i8 = |n: &[i64]| ints("<i8", n);
    let of = |format, arrays: &[(&'static str, Vec<u8>)]| {
        let faults = [Stored, Deflated].map(|method| fault(&zipped(&members(format, [2, 3], arrays), method)));
        assert_eq!(faults[0], faults[1]);
        faults[0].clone()
    };
    let two = || floats(&[1.0, 2.0]);
    let index = |what, position, found, count| ErrorKind::Index { what, position, found, count };
    let coo = |row: &[i64], col: &[i64]| of("coo", &[("row", i8(row)), ("col", i8(col)), ("data", two())]);
    assert_eq!(coo(&[0, 2], &[0, 1]), ("row.npy".into(), index("rows", 1, 2, 2)));
    assert_eq!(coo(&[0, 1], &[3, 1]), ("col.npy".into(), index("columns", 0, 3, 3)));
    assert!(matches!(coo(&[0, 1, 1], &[1, 1]), (member, ErrorKind::Shape { .. }) if member == "row.npy"));
    assert_eq!(of("coo", &[("data", two())]), ("row.npy".into(), ErrorKind::Missing));
    let coords = |places: [i64; 4]| {
        let places = npy("<i8", "(2, 2)", &places.map(i64::to_le_bytes).concat());
        of("coo", &[("coords", places), ("data", two())])
    };
    assert_eq!(coords([0, -1, 0, 0]), ("coords.npy".into(), index("rows", 1, -1, 2)));
    assert_eq!(coords([0, 1, 0, 3]), ("coords.npy".into(), index("columns", 3, 3, 3)));

    let arrays = [("indptr", i8(&[0, 0, 0, 1])), ("indices", i8(&[2])), ("data", floats(&[1.0]))];
    assert_eq!(of("csc", &arrays), ("indices.npy".into(), index("rows", 0, 2, 2)));

    let bsr = |shape: &str, indptr: &[i64], indices: &[i64]| {
        let data = npy("<f8", shape, &[1.5f64; 6].map(f64::to_le_bytes).concat());
        of("bsr", &[("indptr", i8(indptr)), ("indices", i8(indices)), ("data", data)])
    };
    assert_eq!(bsr("(2, 1, 3)", &[0, 1, 2], &[0, 1]), ("indices.npy".into(), index("columns of blocks", 1, 1, 1)));
    for shape in ["(3, 2)", "(1, 3, 2)", "(1, 2, 3, 1)"] {
        assert!(matches!(bsr(shape, &[0, 1], &[0]), (member, ErrorKind::Shape { .. }) if member == "data.npy"));
    }
    let data = npy("<f8", "(9, 0, 3)", &[]);
    let arrays = [("indptr", i8(&[0])), ("indices", i8(&[0; 9])), ("data", data)];
    assert!(matches!(of("bsr", &arrays), (_, ErrorKind::Shape { .. })));

    let dia = |shape: &str, values: [f64; 3], offsets: &[i64]| {
        let data = npy("<f8", shape, &values.map(f64::to_le_bytes).concat());
        of("dia", &[("offsets", i8(offsets)), ("data", data)])
    };
    let kind = ErrorKind::NotFinite { position: 1, value: "inf".into() };
    assert_eq!(dia("(1, 3)", [1.0, f64::INFINITY, 2.0], &[0]), ("data.npy".into(), kind));
    assert!(matches!(dia("(1, 3)", [1.0; 3], &[0, 1]), (_, ErrorKind::Shape { .. })));
    assert!(matches!(dia("(3,)", [1.0; 3], &[0]), (_, ErrorKind::Shape { .. })));
}

#[test]
fn diagonals_anywhere() {
    for offset in [i64::MIN, i64::MAX, 1 << 33, -(1 << 33), 3, -2] {
        let arrays = [("offsets", ints("<i8", &[offset])), ("data", npy("<f8", "(1, 3)", &[0x3f; 24]))];
        let a = read_bytes(&zipped(&members("dia", [2, 3], &arrays), Stored)).unwrap();
        assert_eq!((a.n_rows(), a.n_cols(), a.nnz()), (2, 3, 0), "{offset}");
    }
}

#[test]
fn errors_name_file_and_member_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a\nb.npz");
    std::fs::write(&path, small_but("indices", Some(ints("<i4", &[0, 2, 7])))).unwrap();
    let error = npz::read(&path).unwrap_err();
    assert_eq!(error.kind(), declive::ErrorKind::Input);
    let text = error.to_string();
    assert!(text.ends_with(r"a\nb.npz: indices.npy: element 2 is 7, but there are only 3 columns"), "{text}");
}

// ---------------------------------------------------------------------------------------- damaged files

/// Small files of every kind.
fn samples() -> Vec<Vec<u8>> {
    let names = ["csr", "csr-compressed", "coo", "bsr", "dia-fortran"];
    let scipy = names.map(|name| std::fs::read(folder().join(format!("{name}.npz"))).unwrap());
    let ours = written(&Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]).unwrap());
    scipy.into_iter().chain([ours, zipped(&small(), Deflated)]).collect()
}

#[test]
fn truncated_files() {
    for bytes in samples() {
        for len in 0..bytes.len() {
            assert!(read_bytes(&bytes[..len]).is_err(), "{len} of {}", bytes.len());
        }
    }
}

#[test]
fn a_flipped_bit_is_found_or_does_no_harm() {
    for bytes in samples() {
        let whole = read_bytes(&bytes).unwrap();
        let mut refused = 0;
        for k in 0..bytes.len() {
            for mask in [1, 0x10, 0x80] {
                let mut damaged = bytes.clone();
                damaged[k] ^= mask;
                match read_bytes(&damaged) {
                    // dates, flags and padding
                    Ok(a) => assert_eq!(a, whole, "byte {k}, mask {mask}"),
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(refused > bytes.len(), "{refused} of {}", 3 * bytes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn several_damaged_bytes(
        which in 0usize..7,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let bytes = &samples()[which];
        let mut damaged = bytes.clone();
        for (at, byte) in damage {
            damaged[at.index(bytes.len())] = byte;
        }
        if let Ok(a) = read_bytes(&damaged) {
            prop_assert_eq!(a, read_bytes(bytes).unwrap());
        }
    }
}

// ---------------------------------------------------------------------------------------- hostile files

/// The bytes of a file, and whether a fault is the one it has.
type Hostile = (Vec<u8>, fn(&ErrorKind) -> bool);

/// Files of some hundred bytes that claim to be very large, and what must be found out.
fn hostile() -> Vec<Hostile> {
    let i8 = |n: &[i64]| ints("<i8", n);
    let big = 4_000_000_000;
    let mut files: Vec<Hostile> = Vec::new();

    // arrays that are not there
    let claimed = npy("<i8", "(4000000001,)", &[0; 64]);
    let arrays = [("indptr", claimed), ("indices", i8(&[0])), ("data", floats(&[1.0]))];
    files.push((zipped(&members("csr", [big, big], &arrays), Stored), |k| matches!(k, ErrorKind::Size { .. })));
    // rows without arrays
    let arrays = [("indptr", i8(&[0, 1])), ("indices", i8(&[0])), ("data", floats(&[1.0]))];
    files.push((zipped(&members("csc", [big, 1], &arrays), Stored), |k| matches!(k, ErrorKind::Implausible { .. })));
    let arrays = [("row", i8(&[0])), ("col", i8(&[0])), ("data", floats(&[1.0]))];
    files.push((zipped(&members("coo", [big, 1], &arrays), Stored), |k| matches!(k, ErrorKind::Implausible { .. })));
    let arrays = [("indptr", i8(&[0, 0])), ("indices", i8(&[])), ("data", npy("<f8", "(0, 4000000000, 1)", &[]))];
    files.push((zipped(&members("bsr", [big, 1], &arrays), Stored), |k| matches!(k, ErrorKind::Implausible { .. })));
    let arrays = [("offsets", i8(&[])), ("data", npy("<f8", "(0, 4000000000)", &[]))];
    files.push((zipped(&members("dia", [big, 1], &arrays), Stored), |k| matches!(k, ErrorKind::Implausible { .. })));
    // elements that cost next to nothing
    let zeros = npy("<i4", "(100001,)", &[0; 400_004]);
    let arrays = [("indptr", zeros), ("indices", i8(&[])), ("data", floats(&[]))];
    files.push((zipped(&members("csc", [20_000_000, 100_000], &arrays), Deflated), |k| {
        matches!(k, ErrorKind::Implausible { .. })
    }));
    // a size that the archive and the array agree on, but not what is compressed
    let n: u64 = 1 << 24;
    let header = npy("<f8", &format!("({n},)"), &[]);
    let mut values = header.clone();
    values.resize(header.len() + 64, 0);
    let indices = npy("<i4", &format!("({n},)"), &[]);
    for (kind, name, head) in [("data", "data.npy", &header), ("indices", "indices.npy", &indices)] {
        let mut members = small();
        let at = members.iter().position(|(n, _)| *n == kind).unwrap();
        members[at].1 = [&head[..], &[0; 64]].concat();
        let mut bytes = zipped(&members, Deflated);
        let size = head.len() as u64 + n * if kind == "data" { 8 } else { 4 };
        patch_directory(&mut bytes, name, 24, &(size as u32).to_le_bytes());
        files.push((bytes, |k| matches!(k, ErrorKind::Shape { .. })));
    }
    let mut members = small();
    members[3].1 = [&indices[..], &[0; 64]].concat();
    members[4].1 = values;
    let mut bytes = zipped(&members, Deflated);
    patch_directory(&mut bytes, "data.npy", 24, &((header.len() as u64 + 8 * n) as u32).to_le_bytes());
    patch_directory(&mut bytes, "indices.npy", 24, &((indices.len() as u64 + 4 * n) as u32).to_le_bytes());
    files.push((bytes, |k| matches!(k, ErrorKind::Deflate { .. })));
    // a header without end
    let endless = [b"\x93NUMPY\x02\0".to_vec(), u32::MAX.to_le_bytes().to_vec(), vec![b' '; 600]].concat();
    files.push((small_but("shape", Some(endless)), |k| matches!(k, ErrorKind::Header { .. })));
    let many = format!("({})", "1,".repeat(4000));
    files.push((small_but("shape", Some(npy("<i8", &many, &[0; 8]))), |k| matches!(k, ErrorKind::Shape { .. })));
    // an archive of 65535 members
    let mut bytes = zipped(&small(), Stored);
    let end = bytes.len() - 22;
    bytes[end + 8..end + 12].fill(0xff);
    files.push((bytes, |k| matches!(k, ErrorKind::Archive { .. })));
    files
}

#[test]
fn hostile_files_are_found_out() {
    for (i, (bytes, is_expected)) in hostile().iter().enumerate() {
        assert!(bytes.len() < 10_000);
        let (_, kind) = fault(bytes);
        assert!(is_expected(&kind), "{i}: {kind:?}");
    }
}

/// The most memory that this process had, in KiB.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn hostile_files_take_little_memory() {
    const ALONE: &str = "DECLIVE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        // in a process of its own, where no other test takes memory
        let out =
            crate::common::process::alone("npz::hostile_files_take_little_memory").env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    let files = hostile();
    let sound = zipped(&small(), Stored);
    read_bytes(&sound).unwrap();
    let before = peak();
    for (i, (bytes, _)) in files.iter().enumerate() {
        assert!(read_bytes(bytes).is_err());
        assert!(peak() - before < 8 << 10, "file {i}: {} KiB", peak() - before);
    }
}

// ---------------------------------------------------------------------------------------- SciPy

/// A Python that has SciPy, if the environment names one.
fn python() -> Option<String> {
    let python = std::env::var("DECLIVE_PYTHON").ok();
    if python.is_none() {
        eprintln!("skipped: DECLIVE_PYTHON names no Python with SciPy");
    }
    python
}

fn run(python: &str, script: &str, folder: &Path) {
    let out = Command::new(python).arg("-c").arg(script).current_dir(folder).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn what_scipy_writes_is_read() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    // beside each file, SciPy's own idea of the sorted rows, each value as two doubles
    let script = r#"
import numpy as np, scipy.sparse as sp
rng = np.random.default_rng(5)
dtypes = ["f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16"]
count = 0
for m, n in [(6, 4), (4, 6), (1, 1), (30, 30), (0, 3), (3, 0)]:
    for t in dtypes:
        a = rng.integers(0, 100, (m, n)) * (rng.random((m, n)) < 0.3)
        a = (a * 1.5 if t in ("f8", "f4") else a * (1 + 0.25j) if t[0] == "c" else a).astype(t)
        for f in ["csr", "csc", "coo", "bsr", "dia"]:
            if f == "bsr" and 0 in (m, n):
                continue
            for kind in ["matrix", "array"]:
                s = getattr(sp, f"{f}_{kind}")(a, **({"blocksize": (2, 2)} if f == "bsr" and n % 2 == 0 else {}))
                for compressed in [False, True]:
                    sp.save_npz(f"{count}.npz", s, compressed=compressed)
                    r = s.tocsr()
                    r.sort_indices()
                    v = r.data.astype("c16")
                    np.concatenate([[m, n, r.nnz], r.indptr, r.indices]).astype("<i8").tofile(f"{count}.int")
                    v.view("f8").astype("<f8").tofile(f"{count}.float")
                    count += 1
open("count", "w").write(str(count))
"#;
    run(&python, script, folder.path());
    let read = |name: String| std::fs::read(folder.path().join(name)).unwrap();
    let count: usize = String::from_utf8(read("count".into())).unwrap().parse().unwrap();
    assert!(count > 1000);
    for k in 0..count {
        let ints: Vec<i64> = read(format!("{k}.int")).as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect();
        let floats: Vec<f64> =
            read(format!("{k}.float")).as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let (rows, cols, nnz) = (ints[0] as usize, ints[1] as usize, ints[2] as usize);
        let (indptr, indices) = ints[3..].split_at(rows + 1);
        let row_ptr = indptr.iter().map(|&p| p as usize).collect();
        let col_idx = indices.iter().map(|&j| j as u32).collect();
        let values: Vec<Complex64> = floats.as_chunks().0.iter().map(|&[re, im]| Complex64::new(re, im)).collect();
        assert_eq!(values.len(), nnz);
        match read_file(&folder.path().join(format!("{k}.npz"))).unwrap() {
            AnyCsr::Complex(a) => assert_eq!(a, Csr::new(rows, cols, row_ptr, col_idx, values).unwrap(), "{k}"),
            AnyCsr::Real(a) => {
                let values = values.iter().map(|v| v.re).collect();
                assert_eq!(a, Csr::new(rows, cols, row_ptr, col_idx, values).unwrap(), "{k}");
            }
        }
    }
}

#[test]
fn what_is_written_scipy_reads() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
    let real = Csr::new(3, 4, vec![0, 2, 2, 4], vec![0, 3, 1, 2], vec![1.5, -0.0, 5e-324, 0.1]).unwrap();
    let complex = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![Complex64::new(1.0, -0.1), Complex64::new(0.0, 2.0)]);
    let wide = Csr::new(1, 1 << 31, vec![0, 1], vec![(1 << 31) - 1], vec![7.0]).unwrap();
    npz::write(file("real.npz"), &real).unwrap();
    npz::write(file("complex.npz"), &complex.unwrap()).unwrap();
    npz::write(file("empty.npz"), &Csr::<f64>::new(0, 0, vec![0], vec![], vec![]).unwrap()).unwrap();
    npz::write(file("wide.npz"), &wide).unwrap();
    let script = r#"
import numpy as np, scipy.sparse as sp, zipfile
a = sp.load_npz("real.npz")
assert a.format == "csr" and a.shape == (3, 4) and a.dtype == np.float64 and a.has_canonical_format
assert a.indices.dtype == np.int32 and a.indptr.dtype == np.int32
assert a.indptr.tolist() == [0, 2, 2, 4] and a.indices.tolist() == [0, 3, 1, 2]
assert [v.hex() for v in a.data.tolist()] == [v.hex() for v in [1.5, -0.0, 5e-324, 0.1]]
assert zipfile.ZipFile("real.npz").testzip() is None
c = sp.load_npz("complex.npz")
assert c.dtype == np.complex128 and c.toarray().tolist() == [[1 - 0.1j, 2j]]
assert sp.load_npz("empty.npz").shape == (0, 0)
w = sp.load_npz("wide.npz")
assert w.shape == (1, 2**31) and w.indices.dtype == np.int64 and w[0, 2**31 - 1] == 7
"#;
    run(&python, script, folder.path());
}

/// Vectors of NumPy, in and out: one, and several.
#[test]
fn the_command_takes_and_gives_arrays_of_numpy() {
    let place = Place::new();
    place.run("generate poisson2d:9x8 -o A.npz").ok();
    place.run("solve A.npz --rhs random:1..3 --devices host -o x.mtx --rtol 1e-10").ok();
    place.run("solve A.npz --rhs random:1..3 --devices host -o x.npy --rtol 1e-10").ok();
    let read = |name: &str| npz::read_vectors(&place.path(name)).unwrap().into_real().unwrap();
    let x = read("x.npy");
    assert_eq!(x, place.vectors("x.mtx"));
    // as right-hand side and first guess
    place.run("solve A.npz -b x.npy --devices host -o y.npy").ok();
    let run = place.run("solve A.npz -b x.npy -x y.npy --devices host -o z.npy --json").ends(0).json();
    assert_eq!(run["iterations"], 0);
    assert_eq!(read("y.npy"), read("z.npy"));
    place.run("solve A.npz --devices host -o one.NPY").ok();
    assert_eq!(read("one.NPY").len(), 1);
    let bytes = std::fs::read(place.path("x.npy")).unwrap();
    place.write("short.npy", &bytes[..bytes.len() - 1]);
    place.run("solve A.npz -b short.npy").fails(2, &["short.npy", "beyond the end of the file"]);
}
