//! `declive convert` as a process: what goes in comes out again, in every format.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::process::Command;

use crate::common::process::Place;
use declive::matrix::gallery::{self, random_vector};
use declive::matrix::reorder::{Permutation, permuted};
use declive::matrix::{AnyCsr, Complex64, Scalar};
use declive::matrix_market::{
    Field, Layout, Matrix, Reader, Symmetry, WriteOptions, read_matrix, read_vectors, write_matrix,
};
use declive::{Csr, npz};
use serde_json::{Value, json};

/// Converts without a complaint.
#[track_caller]
fn convert(place: &Place, args: &str) -> String {
    let run = place.run(&format!("convert {args}"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{args}");
    run.out
}

/// Is refused with one line that has all of `parts`, and writes nothing.
#[track_caller]
fn refuses(place: &Place, args: &str, parts: &[&str]) {
    let before = place.names();
    place.run(&format!("convert {args}")).fails(2, parts);
    assert_eq!(place.names(), before, "{args}");
}

fn any(place: &Place, name: &str) -> Matrix<AnyCsr> {
    Reader::new().any_matrix(&place.path(name)).unwrap()
}

fn read_npz(place: &Place, name: &str) -> AnyCsr {
    npz::read(&place.path(name)).unwrap()
}

/// Shape, row pointers, columns, and the bits of the values.
type Bits = (bool, usize, usize, Vec<usize>, Vec<u32>, Vec<[u64; 2]>);

/// What two matrices must share to be the same to the last bit.
fn bits(a: &AnyCsr) -> Bits {
    fn of<T: Scalar>(a: &Csr<T>) -> Bits {
        let values = a.values().iter().map(|v| [v.re().to_bits(), v.im().to_bits()]).collect();
        (T::IS_COMPLEX, a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values)
    }
    match a {
        AnyCsr::Real(a) => of(a),
        AnyCsr::Complex(a) => of(a),
    }
}

fn mtx(banner: &str, body: &str) -> String {
    format!("%%MatrixMarket matrix {banner}\n{body}")
}

/// What follows the comments.
fn body(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('%')).collect()
}

/// Files of every kind, with awkward values and sizes.
fn kinds() -> Vec<String> {
    [
        ("coordinate real general", "2 3 4\n1 1 0.1\n1 3 -0\n2 1 5e-324\n2 3 1.7976931348623157e308\n"),
        ("coordinate real general", "4 4 2\n2 2 -1e-7\n4 1 123456789.12345679\n"),
        ("coordinate real symmetric", "3 3 4\n1 1 4\n2 1 -0.5\n3 1 1e300\n3 3 0\n"),
        ("coordinate real skew-symmetric", "3 3 2\n2 1 0.25\n3 2 -8\n"),
        ("coordinate integer general", "2 2 2\n1 2 -7\n2 1 9007199254740991\n"),
        ("coordinate integer symmetric", "2 2 2\n1 1 5\n2 1 -7\n"),
        ("coordinate integer skew-symmetric", "2 2 1\n2 1 3\n"),
        ("coordinate unsigned-integer general", "1 2 1\n1 2 7\n"),
        ("coordinate pattern general", "3 2 2\n1 2\n3 1\n"),
        ("coordinate pattern symmetric", "3 3 2\n2 1\n3 3\n"),
        ("coordinate complex general", "2 2 2\n1 1 0.1 -0\n1 2 -3e-9 7\n"),
        ("coordinate complex symmetric", "2 2 2\n1 1 1 2\n2 1 3 -4\n"),
        ("coordinate complex skew-symmetric", "2 2 1\n2 1 3 -4\n"),
        ("coordinate complex hermitian", "2 2 2\n1 1 4 0\n2 1 1 -2.5\n"),
        ("array real general", "3 1\n1\n0\n-2.5\n"),
        ("array integer general", "2 2\n1\n2\n0\n4\n"),
        ("array real symmetric", "2 2\n1\n2\n3\n"),
        ("array real skew-symmetric", "3 3\n1\n-2\n3\n"),
        ("array complex hermitian", "2 2\n1 0\n2 3\n4 0\n"),
        ("coordinate real general", "0 0 0\n"),
        ("coordinate real symmetric", "1 1 1\n1 1 -2\n"),
        ("coordinate real general", "5 7 0\n"),
        ("array real general", "0 1\n"),
    ]
    .map(|(banner, body)| mtx(banner, body))
    .to_vec()
}

// ---------------------------------------------------------------------------------------- there and back

#[test]
fn every_kind_of_file_comes_back_the_same() {
    let place = Place::new();
    for text in kinds() {
        place.write("a.mtx", &text);
        convert(&place, "a.mtx b.mtx -q");
        let banner = text.lines().next();
        assert_eq!((place.read("b.mtx").lines().next(), body(&place.read("b.mtx"))), (banner, body(&text)), "{text}");

        convert(&place, "a.mtx a.npz -q");
        let Matrix { a, .. } = any(&place, "a.mtx");
        assert_eq!(bits(&read_npz(&place, "a.npz")), bits(&a), "{text}");
        convert(&place, "a.npz c.mtx -q");
        assert_eq!(bits(&any(&place, "c.mtx").a), bits(&a), "{text}");
    }
}

#[test]
fn lower_triangles_are_found_again() {
    let place = Place::new();
    for text in
        kinds().iter().filter(|text| text.contains("coordinate") && !text.lines().next().unwrap().ends_with("general"))
    {
        place.write("a.mtx", text);
        convert(&place, "a.mtx a.npz -q");
        convert(&place, "a.npz b.mtx -q --symmetric");
        let (read, written) = (any(&place, "a.mtx"), any(&place, "b.mtx"));
        assert_eq!(bits(&written.a), bits(&read.a), "{text}");
        assert_eq!((written.header.symmetry, written.header.entries), (read.header.symmetry, read.header.entries));
        // the file's own word needs no search
        convert(&place, "a.mtx b.mtx -q --symmetric");
        assert_eq!(body(&place.read("b.mtx")), body(text));
        convert(&place, "a.mtx b.mtx -q --general");
        let full = any(&place, "b.mtx");
        assert_eq!((full.header.symmetry, full.header.field), (Symmetry::General, read.header.field));
        assert_eq!((bits(&full.a), full.header.entries), (bits(&read.a), read.a.nnz() as u64));
    }
}

#[test]
fn the_small_systems() {
    let place = Place::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let files = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "mtx")).collect();
    assert!(files.len() >= 6);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let Matrix { a, header, .. } = Reader::new().any_matrix(&path).unwrap();
        let name = path.display();
        convert(&place, &format!("{name} a.npz -q"));
        assert_eq!(bits(&read_npz(&place, "a.npz")), bits(&a), "{name}");
        convert(&place, &format!("{name} b.mtx -q"));
        assert_eq!(body(&place.read("b.mtx")), body(&text), "{name}");
        if header.symmetry == Symmetry::Symmetric {
            convert(&place, "a.npz b.mtx.zst -q --symmetric");
            let back = any(&place, "b.mtx.zst");
            assert_eq!((bits(&back.a), back.header.entries), (bits(&a), header.entries), "{name}");
        }
    }
}

#[test]
fn comments_stay_and_one_is_added() {
    let place = Place::new();
    place.write("a.mtx", mtx("coordinate real general", "% by hand\n%\n%  indented é\n1 1 1\n1 1 2\n"));
    convert(&place, "a.mtx b.mtx -q");
    let version = env!("CARGO_PKG_VERSION");
    let comments = ["by hand", "", " indented é", &format!("from a.mtx, by declive {version}")];
    assert_eq!(any(&place, "b.mtx").header.comments, comments);
}

// ---------------------------------------------------------------------------------------- compression, archives, streams

fn packed(ending: &str, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match ending {
        "gz" => {
            let mut packer = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
            packer.write_all(text).unwrap();
            packer.finish().unwrap();
        }
        "bz2" => {
            let mut packer = bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::fast());
            packer.write_all(text).unwrap();
            packer.finish().unwrap();
        }
        "xz" => {
            let mut packer = lzma_rust2::XzWriter::new(&mut out, lzma_rust2::XzOptions::with_preset(1)).unwrap();
            packer.write_all(text).unwrap();
            packer.finish().unwrap();
        }
        _ => out = zstd::encode_all(text, 1).unwrap(),
    }
    out
}

fn unpacked(ending: &str, file: &[u8]) -> String {
    let mut text = String::new();
    match ending {
        "gz" => flate2::read::GzDecoder::new(file).read_to_string(&mut text),
        "bz2" => bzip2::read::BzDecoder::new(file).read_to_string(&mut text),
        "xz" => lzma_rust2::XzReader::new(file, true).read_to_string(&mut text),
        _ => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
    }
    .unwrap();
    text
}

#[test]
fn compressed_in_and_out() {
    let place = Place::new();
    let text = mtx("coordinate real symmetric", "3 3 4\n1 1 4\n2 1 -0.5\n3 1 1e300\n3 3 0\n");
    place.write("a.mtx", &text);
    convert(&place, "a.mtx plain.mtx -q");
    for ending in ["gz", "bz2", "xz", "zst"] {
        let name = format!("a.mtx.{ending}");
        convert(&place, &format!("a.mtx {name} -q"));
        let file = fs::read(place.path(&name)).unwrap();
        assert_eq!(unpacked(ending, &file), place.read("plain.mtx"), "{ending}");

        place.write("packed", packed(ending, text.as_bytes()));
        convert(&place, "packed b.mtx -q");
        assert_eq!(body(&place.read("b.mtx")), body(&text), "{ending}");
        let run = place.run_with("convert - c.mtx -q", packed(ending, text.as_bytes()));
        assert_eq!((run.code, body(&place.read("c.mtx"))), (Some(0), body(&text)), "{ending}: {}", run.err);
    }
    convert(&place, "a.mtx A.MTX.GZ -q");
    assert_eq!(any(&place, "A.MTX.GZ").header.entries, 4);
}

/// An archive as SuiteSparse has them.
pub(crate) fn archive(members: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, text) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    packed("gz", &tar.into_inner().unwrap())
}

#[test]
fn archives() {
    let place = Place::new();
    let a = mtx("coordinate real symmetric", "3 3 4\n1 1 4\n3 1 -1\n2 2 5\n3 3 6\n");
    let b = mtx("array real general", "3 2\n1\n2\n3\n4\n5\n6\n");
    place.write("S.tar.gz", archive(&[("S/S.mtx", &a), ("S/S_b.mtx", &b), ("S/notes.txt", "none")]));
    let report = convert(&place, "S.tar.gz a.mtx --rhs b.mtx");
    assert!(report.contains("The right-hand side, 2 columns, is in b.mtx."), "{report}");
    assert_eq!(body(&place.read("a.mtx")), body(&a));
    assert_eq!(read_vectors(&place.path("b.mtx")).unwrap(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);

    // a reordered system belongs together
    convert(&place, "S.tar.gz r.mtx --rhs rb.mtx.gz --reorder rcm --permutation p.mtx -q");
    let p = permutation(&place, "p.mtx");
    let reordered = permuted(&read_matrix(&place.path("a.mtx")).unwrap().a, &p).unwrap();
    assert_eq!(read_matrix(&place.path("r.mtx")).unwrap().a, reordered);
    let b = [p.apply(&[1.0, 2.0, 3.0]), p.apply(&[4.0, 5.0, 6.0])];
    assert_eq!(read_vectors(&place.path("rb.mtx.gz")).unwrap(), b);

    // nobody asked for the right-hand side, so that it may be what it is
    let complex = mtx("array complex general", "3 1\n1 1\n2 1\n3 1\n");
    place.write("C.tar.gz", archive(&[("C/C.mtx", &a), ("C/C_b.mtx", &complex)]));
    convert(&place, "C.tar.gz c.npz -q");
    refuses(&place, "C.tar.gz d.npz --rhs d.mtx", &["the right-hand side in C.tar.gz is complex"]);
    refuses(&place, "a.mtx d.npz --rhs d.mtx", &["--rhs", "a.mtx has no right-hand side"]);
    let short = mtx("array real general", "2 1\n1\n2\n");
    place.write("D.tar.gz", archive(&[("D/D.mtx", &a), ("D/D_b.mtx", &short)]));
    refuses(&place, "D.tar.gz d.npz --rhs d.mtx", &["D.tar.gz", "has 2 rows, but the matrix has 3"]);
}

#[test]
fn standard_input_and_output() {
    let place = Place::new();
    let text = mtx("coordinate integer symmetric", "2 2 2\n1 1 5\n2 1 -7\n");
    let run = place.run_with("convert - -", text.as_bytes());
    assert_eq!((run.code, body(&run.out)), (Some(0), body(&text)));
    assert!(
        run.err.starts_with("Converted <stdin> (coordinate integer symmetric)\nto standard output ("),
        "{}",
        run.err
    );
    let run = place.run_with("convert - - -q", text.as_bytes());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let run = place.run_with("convert - a.npz", text.as_bytes());
    assert!(run.code == Some(0) && run.out.starts_with("Converted <stdin>"), "{}{}", run.out, run.err);

    let npz = fs::read(place.path("a.npz")).unwrap();
    for args in ["convert - b.mtx", "info -", "solve -", "solve --generate poisson2d:2 -b -"] {
        let run = place.run_with(args, npz.as_slice());
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{args}");
        assert!(run.err.contains("<stdin> is a .npz file") && run.err.contains("name it"), "{args}: {}", run.err);
    }
    place.write("a.npz.gz", packed("gz", &npz));
    refuses(&place, "a.npz.gz b.mtx", &["a.npz.gz is a .npz file", "not compressed again"]);
}

#[test]
fn vectors_in_npz_files() {
    let place = Place::new();
    place.write("b.mtx", mtx("array real general", "4 1\n1\n0\n2\n-3\n"));
    convert(&place, "b.mtx b.npz -q");
    let run = place.run("solve --generate poisson2d:2 -b b.npz -o x.mtx --devices host");
    assert_eq!(run.code, Some(0), "{}", run.err);
    place.run("solve --generate poisson2d:2 -b b.mtx -o y.mtx --devices host");
    assert_eq!(body(&place.read("x.mtx")), body(&place.read("y.mtx")));
    convert(&place, "--generate poisson2d:600 a.npz -q");
    let run = place.run("solve a.npz -b a.npz --devices host");
    assert!(run.code == Some(2) && run.err.contains("a.npz") && run.err.contains("too sparse"), "{}", run.err);
}

// ---------------------------------------------------------------------------------------- what changes

#[test]
fn the_field_changes_where_it_must() {
    let place = Place::new();
    place.write("a.mtx", mtx("coordinate pattern general", "2 2 3\n1 1\n1 1\n2 1\n"));
    place.run("convert a.mtx b.mtx -q");
    assert_eq!(body(&place.read("b.mtx")), ["2 2 2", "1 1 2", "2 1 1"]);
    assert_eq!(any(&place, "b.mtx").header.field, Field::Integer);
    // 2⁵³ + 1 is no double
    place.write("a.mtx", mtx("coordinate integer general", "1 1 1\n1 1 9007199254740993\n"));
    convert(&place, "a.mtx b.mtx -q");
    assert_eq!(any(&place, "b.mtx").header.field, Field::Real);
    assert_eq!(body(&place.read("b.mtx")), ["1 1 1", "1 1 9007199254740992"]);
}

#[test]
fn zeros_are_dropped() {
    let place = Place::new();
    let text = mtx("coordinate real symmetric", "3 3 5\n1 1 4\n2 1 0\n3 1 1\n2 2 -0\n3 3 2\n");
    place.write("a.mtx", &text);
    convert(&place, "a.mtx a.npz -q");
    convert(&place, "a.mtx b.mtx -q --drop-zeros");
    assert_eq!(body(&place.read("b.mtx")), ["3 3 3", "1 1 4", "3 1 1", "3 3 2"]);
    convert(&place, "a.npz c.mtx -q --drop-zeros --symmetric");
    assert_eq!(body(&place.read("c.mtx")), body(&place.read("b.mtx")));
    convert(&place, "a.npz d.mtx -q --symmetric");
    assert_eq!(body(&place.read("d.mtx")), body(&text));
    place.write("e.mtx", mtx("coordinate complex general", "1 2 2\n1 1 0 0\n1 2 0 1\n"));
    convert(&place, "e.mtx e.npz -q --drop-zeros");
    assert_eq!(read_npz(&place, "e.npz"), Csr::new(1, 2, vec![0, 1], vec![1], vec![Complex64::I]).unwrap().into());
}

#[test]
fn fewer_digits() {
    let place = Place::new();
    place.write("a.mtx", mtx("coordinate real general", "1 2 2\n1 1 0.123456\n1 2 -123456\n"));
    convert(&place, "a.mtx --precision 3 b.mtx -q");
    assert_eq!(body(&place.read("b.mtx")), ["1 2 2", "1 1 1.23e-1", "1 2 -1.23e5"]);
    place.write("a.mtx", mtx("coordinate integer general", "1 1 1\n1 1 123456\n"));
    convert(&place, "a.mtx b.mtx -q --precision 3");
    assert_eq!(body(&place.read("b.mtx")), ["1 1 1", "1 1 123456"]);
    place.write("c.mtx", mtx("coordinate real general", "1 1 1\n1 1 -1.7e308\n"));
    refuses(
        &place,
        "c.mtx d.mtx --precision 1",
        &["c.mtx: a(1,1) is -1.7e308", "a precision of 1 would round", "more digits"],
    );
    convert(&place, "c.mtx d.mtx --precision 2 -q");
    assert_eq!(body(&place.read("d.mtx")), ["1 1 1", "1 1 -1.7e308"]);
    for digits in ["0", "18", "many"] {
        assert_eq!(place.run(&format!("convert a.mtx c.mtx --precision {digits}")).code, Some(2));
    }
}

fn permutation(place: &Place, name: &str) -> Permutation {
    let read = read_vectors(&place.path(name)).unwrap();
    Permutation::new(read[0].iter().map(|&old| old as u32 - 1).collect()).unwrap()
}

#[test]
fn a_shuffled_grid_is_put_in_order() {
    let place = Place::new();
    let grid = gallery::poisson2d([9, 23]).unwrap();
    let n = grid.n_rows();
    // some fixed order without a system
    let keys = random_vector(n, 5);
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by(|&i, &j| keys[i as usize].total_cmp(&keys[j as usize]));
    let shuffled = permuted(&grid, &Permutation::new(order).unwrap()).unwrap();
    let options = WriteOptions::default().with_symmetry(Symmetry::Symmetric);
    let mut text = Vec::new();
    write_matrix(&mut text, &shuffled, &options).unwrap();
    place.write("a.mtx", text);

    let report: Value =
        serde_json::from_str(&convert(&place, "a.mtx b.mtx --reorder rcm --permutation p.mtx --json")).unwrap();
    let width = |which: &str| report["reorder"][which].as_u64().unwrap();
    assert!(width("bandwidth_before") > 100 && width("bandwidth_after") < 15, "{report}");
    assert_eq!(report["reorder"]["permutation"], "p.mtx");
    assert!(report["seconds"]["reorder"].is_f64());
    let p = permutation(&place, "p.mtx");
    let b = read_matrix(&place.path("b.mtx")).unwrap();
    assert_eq!(b.header.symmetry, Symmetry::Symmetric);
    assert_eq!(b.a, permuted(&shuffled, &p).unwrap());
    let header = any(&place, "p.mtx").header;
    assert_eq!((header.layout, header.field), (Layout::Array, Field::Integer));
    assert!(header.comments.iter().any(|c| c.contains("x(p) = y")), "{header:?}");

    // the same system in both orders
    let rhs = |name: &str, b: &[f64]| {
        let mut text = Vec::new();
        declive::matrix_market::write_vectors(&mut text, &[b], &[]).unwrap();
        place.write(name, text);
    };
    let right = random_vector(n, 8);
    rhs("b1.mtx", &right);
    rhs("b2.mtx", &p.apply(&right));
    for args in ["a.mtx -b b1.mtx -o x1.mtx", "b.mtx -b b2.mtx -o x2.mtx"] {
        let run = place.run(&format!("solve {args} --rtol 1e-12 --devices host -q"));
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    let [x, y] = ["x1.mtx", "x2.mtx"].map(|name| read_vectors(&place.path(name)).unwrap().remove(0));
    let largest = x.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    assert!(x.iter().zip(p.undo(&y)).all(|(x, y)| (x - y).abs() <= 1e-9 * largest));
}

// ---------------------------------------------------------------------------------------- what is refused

#[test]
fn what_makes_no_sense_is_refused_before_any_work() {
    let place = Place::new();
    place.write("a.mtx", "not read");
    refuses(&place, "a.mtx", &["INPUT and OUTPUT"]);
    refuses(&place, "a.mtx b.mtx c.mtx", &["more files"]);
    refuses(&place, "a.mtx b.mtx --generate poisson2d:3", &["--generate", "OUTPUT"]);
    refuses(&place, "a.mtx b.txt", &["b.txt", ".npz, .mtx", "--format"]);
    refuses(&place, "a.mtx b.tar.gz", &["b.tar.gz", "--format"]);
    refuses(&place, "a.mtx a.mtx", &["overwrite a.mtx"]);
    refuses(&place, "a.mtx b.npz --rhs ./a.mtx", &["--rhs would overwrite a.mtx"]);
    refuses(&place, "a.mtx b.mtx --rhs ./b.mtx", &["the output and --rhs both name ./b.mtx"]);
    refuses(
        &place,
        "a.mtx b.mtx --rhs p.mtx --permutation p.mtx --reorder rcm",
        &["--rhs and --permutation both name"],
    );
    refuses(&place, "a.mtx b.mtx --rhs -", &["--rhs -", ".mtx"]);
    refuses(&place, "a.mtx b.mtx --permutation p.npz --reorder rcm", &["--permutation p.npz", ".mtx"]);
    refuses(&place, "a.mtx no/b.mtx", &["no/b.mtx"]);
    refuses(&place, "a.mtx b.mtx --rhs no/b.mtx", &["no/b.mtx"]);
    refuses(&place, "a.mtx - --format npz", &["standard output", "file of its own"]);
    refuses(&place, "a.mtx /dev/null --format npz", &["file of its own"]);
    refuses(&place, "a.mtx a.npz.gz", &["a.npz.gz", "not compressed"]);
    refuses(&place, "a.mtx - --json", &["--json", "standard output"]);
    for option in ["--symmetric", "--general", "--precision 3"] {
        refuses(&place, &format!("a.mtx b.npz {option}"), &[option.split(' ').next().unwrap(), "Matrix Market"]);
    }
    for misused in ["--symmetric --general", "--permutation p.mtx", "--reorder amd"] {
        let run = place.run(&format!("convert a.mtx b.mtx {misused}"));
        assert_eq!((run.code, place.names().len()), (Some(2), 1), "{misused}");
    }
    // all of these came before this
    refuses(&place, "a.mtx b.mtx", &["a.mtx:1"]);
}

#[test]
fn what_the_matrix_is_not() {
    let place = Place::new();
    place.write("a.mtx", mtx("coordinate real general", "3 3 4\n1 1 1\n2 3 5\n3 2 6\n3 3 1\n"));
    place.write("b.mtx", "old");
    refuses(&place, "a.mtx b.mtx --symmetric", &["a.mtx: ", "not symmetric", "a(2,3) is 5e0", "a(3,2) is 6e0"]);
    // rows and columns are those of the file
    refuses(&place, "a.mtx b.mtx --symmetric --reorder rcm", &["a(2,3) is 5e0"]);
    assert_eq!(place.read("b.mtx"), "old");
    place.write("r.mtx", mtx("coordinate real general", "3 2 1\n1 1 1\n"));
    refuses(&place, "r.mtx b.mtx --symmetric", &["r.mtx", "square", "3 rows and 2 columns"]);
    refuses(&place, "r.mtx b.mtx --reorder rcm", &["r.mtx", "3 rows and 2 columns"]);
    refuses(&place, "no.npz b.mtx", &["no.npz"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let place = Place::new();
    for ending in ["mtx", "mtx.gz", "mtx.bz2", "mtx.xz", "mtx.zst"] {
        // by a link, so that the name has an ending; nothing is written to its directory
        std::os::unix::fs::symlink("/dev/full", place.path(&format!("full.{ending}"))).unwrap();
        let run = place.run(&format!("convert --generate poisson2d:50 full.{ending}"));
        assert_eq!((run.code, run.out.as_str()), (Some(3), ""), "{ending}: {}", run.err);
        assert!(run.err.starts_with(&format!("error: full.{ending}: ")), "{}", run.err);
    }
}

// ---------------------------------------------------------------------------------------- reports

#[test]
fn the_report() {
    let place = Place::new();
    place.write("a.mtx", mtx("coordinate real symmetric", "% note\n2 2 2\n1 1 4\n2 1 -1\n"));
    let size = |name: &str| fs::metadata(place.path(name)).unwrap().len();
    let mut report: Value = serde_json::from_str(&convert(&place, "a.mtx b.mtx.gz --json")).unwrap();
    for field in ["read", "write", "total"] {
        assert!(report["seconds"][field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert!(report["seconds"]["reorder"].is_null());
    report["seconds"].take();
    let expected = json!({
        "version": 1,
        "declive": env!("CARGO_PKG_VERSION"),
        "matrix": {"source": "a.mtx", "rows": 2, "columns": 2, "nnz": 3, "complex": false, "duplicates": 0},
        "header": {"layout": "coordinate", "field": "real", "symmetry": "symmetric",
                   "rows": 2, "columns": 2, "entries": 2, "comments": 1},
        "input_bytes": size("a.mtx"),
        "output": {"file": "b.mtx.gz", "format": "mtx", "compression": "gzip", "layout": "coordinate",
                   "field": "real", "symmetry": "symmetric", "bytes": size("b.mtx.gz")},
        "reorder": null,
        "rhs": null,
        "seconds": null,
    });
    assert_eq!(report, expected);

    let report: Value = serde_json::from_str(&convert(&place, "--generate poisson2d:3 c --format npz --json")).unwrap();
    assert_eq!(report["matrix"]["source"], "poisson2d:3");
    assert_eq!((&report["header"], &report["input_bytes"]), (&Value::Null, &Value::Null));
    assert_eq!((&report["output"]["format"], &report["output"]["field"]), (&json!("npz"), &Value::Null));
    let text = convert(&place, "c d.mtx --symmetric");
    assert!(text.starts_with("Converted c (") && text.contains("9 × 9, 33 entries."), "{text}");
    assert_eq!(convert(&place, "c e.npz -q"), "");
}

// ---------------------------------------------------------------------------------------- SciPy's word

/// Compares pairs of files, text and .npz, to the last bit, and prints how many there are.
const SCIPY: &str = "
import sys, scipy.io, scipy.sparse
pairs = list(zip(sys.argv[1::2], sys.argv[2::2]))
for text, npz in pairs:
    a = scipy.sparse.csr_array(scipy.sparse.coo_array(scipy.io.mmread(text)))
    b = scipy.sparse.csr_array(scipy.sparse.load_npz(npz))
    a.sort_indices()
    assert b.has_canonical_format, npz
    assert a.shape == b.shape and (a.indptr == b.indptr).all() and (a.indices == b.indices).all(), (text, a, b)
    assert a.data.astype(b.dtype).tobytes() == b.data.tobytes(), (text, a, b)
print(len(pairs))
";

/// SciPy reads the same from both files. `DECLIVE_PYTHON` names a Python that has it; without one there is no second
/// opinion to ask for.
#[test]
fn scipy_agrees() {
    let Some(python) = std::env::var_os("DECLIVE_PYTHON") else {
        eprintln!("skipped: DECLIVE_PYTHON names no Python with SciPy");
        return;
    };
    let place = Place::new();
    let mut command = Command::new(python);
    command.args(["-c", SCIPY]).current_dir(place.path(""));
    let mut pairs = 0;
    // SciPy reads no array without elements
    for (k, text) in kinds().iter().filter(|text| !text.contains("array") || !text.contains("\n0 ")).enumerate() {
        place.write(&format!("{k}.mtx"), text);
        convert(&place, &format!("{k}.mtx {k}.npz -q"));
        convert(&place, &format!("{k}.mtx again-{k}.mtx.gz -q"));
        command.args([format!("{k}.mtx"), format!("{k}.npz"), format!("again-{k}.mtx.gz"), format!("{k}.npz")]);
        pairs += 2;
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), pairs.to_string(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A file that SciPy wrote, compressed, column by column.
#[test]
fn npz_files_of_other_formats() {
    let place = Place::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/npz");
    for name in ["csc", "csr-compressed", "coo", "big-endian"] {
        let path = data.join(format!("{name}.npz"));
        let read = npz::read(&path).unwrap();
        convert(&place, &format!("{} a.mtx.zst -q", path.display()));
        assert_eq!(bits(&any(&place, "a.mtx.zst").a), bits(&read), "{name}");
        let mut direct = Cursor::new(Vec::new());
        npz::write_any(&mut direct, &read).unwrap();
        convert(&place, "a.mtx.zst a.npz -q");
        assert_eq!(fs::read(place.path("a.npz")).unwrap(), direct.into_inner(), "{name}");
    }
}
