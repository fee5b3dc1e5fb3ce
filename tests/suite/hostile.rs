//! Small files that claim, or unpack to, far more than they are: each ends in the right error, and without more memory
//! than a harmless file takes but for a few megabytes.
//!
//! What is measured is the peak of a process of its own, which Linux tells.

#![cfg(target_os = "linux")]

use std::io::{Cursor, Write};
use std::path::Path;
use std::time::Duration;

use crate::common::process::{Place, alone};
use crate::packing::{self, Packing};
use declive::matrix_market::{Reader, read_vectors};
use declive::npz;
use rayon::prelude::*;
use zip::CompressionMethod::{Deflated, Stored};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const MIB: usize = 1 << 20;

/// What any of these files may take beyond a harmless one.
const ALLOWED: usize = 8 * MIB;

/// What a text that unpacks comes to: enough that it can't be kept unnoticed.
const BOMB: usize = 24 * MIB;

/// Names the file that the child process reads.
const FILE: &str = "DECLIVE_TEST_HOSTILE_FILE";

const HARMLESS: &str = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 4\n";

// ---------------------------------------------------------------------------------------- the measurement

/// What the child process tells of a file.
struct Told {
    /// The error, or `read`.
    ended: String,
    /// Its peak in memory.
    bytes: usize,
}

/// The child process: reads a file in every way, mapped and as a stream, and tells of it.
#[test]
#[ignore = "a part of the other tests, which run it in a process of its own"]
fn child() {
    let path = std::env::var_os(FILE).unwrap();
    let path = Path::new(&path);
    let ended = |result: declive::Result<()>| result.map_or_else(|e| e.to_string(), |()| "read".into());
    if npz::is_npz(path) {
        println!("\n= {}", ended(npz::read(path).map(drop)));
    } else {
        let mapped = ended(Reader::new().system(path).map(drop));
        let file = std::fs::File::open(path).unwrap();
        assert_eq!(ended(Reader::new().system_from(file, &path.to_string_lossy()).map(drop)), mapped);
        assert_eq!(read_vectors(path).is_ok(), mapped == "read");
        println!("\n= {mapped}");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("= {}", status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap());
}

fn tell(bytes: &[u8]) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile");
    std::fs::write(&path, bytes).unwrap();
    let mut command = assert_cmd::Command::from_std(alone("hostile::child"));
    command.env(FILE, &path).env("RAYON_NUM_THREADS", "2");
    // for what would never end
    let output = command.timeout(Duration::from_secs(60)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}\n{text}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    let mut told = text.lines().filter_map(|line| line.strip_prefix("= "));
    let ended = told.next().unwrap().to_string();
    let kib: usize = told.next().unwrap().trim().strip_suffix(" kB").unwrap().parse().unwrap();
    Told { ended, bytes: kib << 10 }
}

/// A file, how reading it has to end, and what its entries may take besides.
type Case = (String, Vec<u8>, &'static str, usize);

fn case(name: &str, bytes: impl Into<Vec<u8>>, ends: &'static str) -> Case {
    (name.into(), bytes.into(), ends, 0)
}

fn check(cases: Vec<Case>) {
    let harmless = tell(HARMLESS.as_bytes());
    assert_eq!(harmless.ended, "read");
    let wrong: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(name, bytes, ends, entries)| {
            assert!(bytes.len() < 512 << 10, "{name} is large itself: {} bytes", bytes.len());
            let told = tell(&bytes);
            let more = told.bytes.saturating_sub(harmless.bytes);
            let fine = told.ended.contains(ends) && more <= ALLOWED + entries;
            (!fine).then(|| format!("{name}: {} KiB more than a harmless file, {}", more >> 10, told.ended))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// ---------------------------------------------------------------------------------------- compression

/// `head`, and behind it `filler` again and again to so many bytes: every program of these formats takes files
/// behind each other for one.
fn bomb(packing: Packing, head: impl AsRef<[u8]>, filler: &[u8], bytes: usize) -> Vec<u8> {
    let megabyte = filler.repeat((MIB / filler.len()).max(1));
    [packing.pack(head.as_ref()), packing.pack(&megabyte).repeat(bytes / megabyte.len())].concat()
}

fn coordinate(size: &str) -> String {
    format!("%%MatrixMarket matrix coordinate real general\n{size}\n")
}

// ---------------------------------------------------------------------------------------- text

#[test]
fn claims_cost_nothing() {
    let coordinates = |size: &str| coordinate(size) + "1 1 1\n";
    let array = |symmetry, size| format!("%%MatrixMarket matrix array real {symmetry}\n{size}\n1\n");
    // as many rows as there may be for these entries: 8 bytes each in a matrix, 8 while it is made, 8 in a vector, and 8
    // in the copy that builds with debug assertions check
    let (entries, rows) = (10_000, (1 << 20) + 64 * 10_000);
    let rows_of_entries = coordinate(&format!("{rows} 1 {entries}")) + &"1 1 1\n".repeat(entries);
    check(vec![
        case("entries", coordinates("2 2 1000000000000000000"), "expected 1000000000000000000 entries, found 1"),
        case("all", coordinates("4000000000 4000000000 18446744073709551615"), "expected 18446744073709551615 entries"),
        case("dimensions", coordinates("4000000000 4000000000 1"), "are implausible for 1 entries"),
        case("rows", coordinates("4294967295 1 70000000"), "expected 70000000 entries, found 1"),
        case("columns", coordinates("1 4294967295 70000000"), "expected 70000000 entries, found 1"),
        case("array", array("general", "4000000000 4000000000"), "expected 16000000000000000000 entries, found 1"),
        case("vector", array("general", "4294967295 1"), "expected 4294967295 entries, found 1"),
        case("triangle", array("symmetric", "4294967295 4294967295"), "expected 9223372034707292160 entries, found 1"),
        ("rows for each entry".into(), rows_of_entries.into(), "read", 32 * rows),
    ]);
}

#[test]
fn texts_that_unpack_to_much() {
    let head = coordinate("9 9 5");
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    let (long, few) = ("the line is longer than 65536 bytes", "expected 5 entries, found 0");
    let gzip = |what: &str, head: &str, filler: &[u8], ends| case(what, bomb(Packing::Gzip, head, filler, BOMB), ends);
    let mut cases = vec![
        gzip("an endless first line", "%%MatrixMarket", b"x", "not a Matrix Market file"),
        gzip("an endless comment", banner, b"%", "the file ends before the line with"),
        gzip("an endless comment behind the size", &head, b"%", few),
        gzip("comments before the size", banner, b"% nothing of note\n", "the file ends before the line with"),
        gzip("blank lines before the size", banner, b"\n", "the file ends before the line with"),
        gzip("empty comments", &head, b"%\n", few),
        gzip("surplus entries", &head, b"1 1 0\n", "expected 5 entries, found more: \"1 1 0\""),
        gzip("no text at all", "\0", b"\0", "not a Matrix Market file"),
    ];
    // whoever claims more than there is has what there is read, which no limit can tell from a matrix
    let (claim, bytes) = (coordinate("9 9 1000000000000000000"), 4 * MIB);
    let ends = "expected 1000000000000000000 entries, found";
    // in arrays a wave, each of which the system may round up to huge pages
    let entries = 16 * bytes / "1 1 0\n".len() + 8 * MIB;
    cases.push(("entries".into(), bomb(Packing::Gzip, &claim, b"1 1 0\n", bytes), ends, entries));
    for (name, packing) in Packing::ALL {
        // of the decoders of many files behind each other the allocator keeps some for each thread that made one:
        // 3.5 MiB each of bzip2
        let kept = match packing {
            Packing::Gzip | Packing::Zstd => 0,
            Packing::Xz => 2 * MIB,
            Packing::Bzip2 => 12 * MIB,
        };
        let mut add = |what: &str, head: &str, filler: &[u8], ends| {
            cases.push((format!("{what}, {name}"), bomb(packing, head, filler, BOMB), ends, kept));
        };
        add("an endless line of blanks", &head, b" ", long);
        add("blank lines", &head, b"\n", few);
        add("comments", &head, b"% nothing of note\n", few);
    }
    check(cases);
}

// ---------------------------------------------------------------------------------------- containers

/// An xz file whose header asks for a dictionary of 2^`log` bytes, cut off within its data.
fn xz_with_dictionary(log: u8) -> Vec<u8> {
    let with_crc = |bytes: &[u8]| [bytes, &crc32fast::hash(bytes).to_le_bytes()].concat();
    let size = if log == 32 { 40 } else { 2 * (log - 12) };
    let block = with_crc(&[2, 0, 0x21, 1, size, 0, 0, 0]);
    // a chunk of bytes as they are
    let chunk = [&[1, 0, HARMLESS.len() as u8 - 1], HARMLESS.as_bytes()].concat();
    [&b"\xfd7zXZ\0"[..], &with_crc(&[0, 1]), &block, &chunk].concat()
}

/// A zstd file that asks for a window of 2^`log` bytes.
fn zstd_with_window(log: u8) -> Vec<u8> {
    let block = [(HARMLESS.len() as u8) << 3 | 1, (HARMLESS.len() >> 5) as u8, 0];
    [&b"\x28\xb5\x2f\xfd"[..], &[0, (log - 10) << 3], &block, HARMLESS.as_bytes()].concat()
}

/// A zstd file in a single segment that claims to unpack to so many bytes.
fn zstd_of_size(bytes: u64) -> Vec<u8> {
    let block = [(HARMLESS.len() as u8) << 3 | 1, (HARMLESS.len() >> 5) as u8, 0];
    [&b"\x28\xb5\x2f\xfd\xe0"[..], &bytes.to_le_bytes(), &block, HARMLESS.as_bytes()].concat()
}

#[test]
fn windows_are_limited() {
    let zstd = "the zstd data is damaged or cut off";
    let xz = "the xz data is damaged or cut off";
    let (xz_most, zstd_most) = ("than the 72 MiB it is given", "than the 128 MiB it is given");
    let greedy = "takes more memory than the 4 MiB it is given";
    let blank = [HARMLESS, &"\n".repeat(BOMB)].concat();
    let (xz_8, xz_64) = (Packing::Xz.pack(blank.as_bytes()), packing::xz_with_window(blank.as_bytes(), 26));
    let zstd_of = |log| packing::zstd_with_window(blank.as_bytes(), log);
    check(vec![
        case("a dictionary of 4 GiB", xz_with_dictionary(32), xz_most),
        case("a dictionary of 128 MiB", xz_with_dictionary(27), xz_most),
        // as much as programs ask for, of which little is used
        case("a dictionary of 64 MiB", xz_with_dictionary(26), xz),
        case("a window of 2 GiB", zstd_with_window(31), zstd_most),
        case("a window of 2 TiB", zstd_with_window(41), zstd_most),
        case("a window of 128 MiB", zstd_with_window(27), "read"),
        case("a size of 2⁶⁰ bytes", zstd_of_size(1 << 60), zstd_most),
        case("a size of 1 GiB", zstd_of_size(1 << 30), zstd_most),
        case("a size of 100 MiB", zstd_of_size(100 << 20), zstd),
        // what is filled: of large ones 4 MiB, which take up to three times as much as they grow
        ("a full dictionary of 8 MiB".into(), xz_8, "read", 8 * MIB),
        ("a full window of 8 MiB".into(), zstd_of(23), "read", 8 * MIB),
        ("a full dictionary of 64 MiB".into(), xz_64, greedy, 8 * MIB),
        ("a full window of 128 MiB".into(), zstd_of(27), greedy, 8 * MIB),
    ]);
}

fn tar_header(path: &str, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path(path).unwrap();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[test]
fn archives() {
    let tar = |path, size, content: &[u8]| [&tar_header(path, size), content].concat();
    let gz = |bytes: &[u8]| Packing::Gzip.pack(bytes);
    let small = HARMLESS.as_bytes();
    let (matrix, other) = ("a/a.mtx", "a/notes.txt");
    let cut = "the tar data is damaged or cut off: it ends within a member";
    let endless = |path, size, filler: &[u8]| bomb(Packing::Gzip, tar_header(path, size), filler, BOMB);
    let (none, many) = (tar_header(&format!("b/{}", "n".repeat(90)), 0), tar_header(other, 0));
    let names = bomb(Packing::Gzip, [], &none, 4 * BOMB);
    check(vec![
        case("another file of 8 EB", tar(other, u64::MAX >> 1, small), cut),
        case("another file of 2⁶⁴ − 1 bytes", tar(other, u64::MAX, small), cut),
        case("a matrix of 2⁶⁴ − 1 bytes", tar(matrix, u64::MAX, small), cut),
        case("an endless file", endless(other, u64::MAX, b"\n"), cut),
        case("an endless matrix", endless(matrix, u64::MAX, b"\n"), "not a Matrix Market file"),
        case("an endless end", endless(other, 0, b"\0"), "the archive has no NAME/NAME.mtx; its files: a/notes.txt"),
        case("files without end", endless(other, 0, &many), "its files: a/notes.txt, a/notes.txt"),
        case("long names without end", names, "its files: b/nnnn"),
        case("gzip members without text", gz(b"").repeat(10_000), "the file is empty"),
        case("a gzip file within another", gz(&gz(&gz(small))), "not a Matrix Market file"),
        case("an archive within another", gz(&tar(matrix, 1024, &many)), "not a Matrix Market file"),
    ]);
}

// ---------------------------------------------------------------------------------------- npz

fn npy(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\0", &(text.len() as u16).to_le_bytes()[..], text.as_bytes(), elements].concat()
}

fn zipped(members: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = SimpleFileOptions::default().compression_method(method).compression_level(None);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The file with a length everywhere replaced by another one.
fn with_length(mut file: Vec<u8>, is: usize, claimed: u32) -> Vec<u8> {
    let is = (is as u32).to_le_bytes();
    let places: Vec<usize> = (0..file.len() - 3).filter(|&at| file[at..at + 4] == is).collect();
    assert!(!places.is_empty());
    for at in places {
        file[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
    }
    file
}

/// A zip archive, said to have 2⁶⁰ members.
fn crowded() -> Vec<u8> {
    let (most, none) = ((1u64 << 60).to_le_bytes(), 0u64.to_le_bytes());
    let version = 45u16.to_le_bytes();
    let record = [&b"PK\x06\x06"[..], &44u64.to_le_bytes(), &version, &version, &[0; 8], &most, &most, &none, &none];
    let locator = [&b"PK\x06\x07"[..], &[0; 4], &4u64.to_le_bytes(), &1u32.to_le_bytes()];
    let end = [&b"PK\x05\x06"[..], &[0; 4], &[0xff; 12], &[0; 2]];
    [b"PK\x03\x04".to_vec(), record.concat(), locator.concat(), end.concat()].concat()
}

#[test]
fn arrays_of_numpy() {
    let integers =
        |n: &[i64]| npy("<i8", &format!("({},)", n.len()), &n.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>());
    let format = npy("|S3", "()", b"csr");
    let data = npy("<f8", "(1,)", &1f64.to_le_bytes());
    let file = |shape: &[i64], indptr: &[u8], data: &[u8], method| {
        let indices = integers(&[0]);
        let members: [(&str, &[u8]); 5] = [
            ("format", &format),
            ("shape", &integers(shape)),
            ("indptr", indptr),
            ("indices", &indices),
            ("data", data),
        ];
        zipped(&members, method)
    };
    let indptr = integers(&[0, 1]);
    let zeros = vec![0; BOMB];
    // more is there than the directory and the array's own header say
    let surplus = [&npy("<f8", "(1,)", &1f64.to_le_bytes())[..], &zeros].concat();
    let surplus = with_length(file(&[1, 1], &indptr, &surplus, Deflated), surplus.len(), data.len() as u32);
    // and less: 2 GB of indices, 4 GB of values
    let cut = |descr, width: u32, bytes: usize| {
        let array = npy(descr, "(500000000,)", &vec![0; bytes]);
        let claimed = (array.len() - bytes) as u32 + 500_000_000 * width;
        (array, claimed)
    };
    let ((indices, of_indices), (values, of_values)) = (cut("<i4", 4, 1000), cut("<f8", 8, 2000));
    let (shape, indptr_of_many) = (integers(&[1, 10]), integers(&[0, 500_000_000]));
    let members: [(&str, &[u8]); 5] =
        [("format", &format), ("shape", &shape), ("indptr", &indptr_of_many), ("indices", &indices), ("data", &values)];
    let claimed = with_length(zipped(&members, Deflated), indices.len(), of_indices);
    let claimed = with_length(claimed, values.len(), of_values);
    let word = npy(&format!("|S{BOMB}"), "()", &zeros);
    let word = zipped(&[("format", &word), ("shape", &integers(&[1, 1])), ("data", &data)], Deflated);
    let mut cases = vec![
        case("more than announced", surplus, "data.npy: the compressed data are damaged"),
        case("less than announced", claimed, "indices.npy: the compressed data are damaged"),
        case("a long word", word, "format"),
        case("members", crowded(), "hostile"),
        case("a header without end", zipped(&[("format", &npy("|S3", &"(".repeat(60_000), b""))], Deflated), "format"),
    ];
    for (name, method) in [("stored", Stored), ("deflated", Deflated)] {
        let endless = npy("<f8", "(1000000000000000000,)", &[0; 8]);
        let many = npy("<i8", "(1000000000000000000,)", &[0; 8]);
        let rows = file(&[4_294_967_295, 1], &npy("<i8", "(4294967296,)", &[0; 8]), &data, method);
        cases.extend([
            case(&format!("values, {name}"), file(&[1, 1], &indptr, &endless, method), "data.npy"),
            case(&format!("row pointers, {name}"), file(&[1, 1], &many, &data, method), "indptr.npy"),
            case(&format!("rows, {name}"), rows, "hostile"),
            case(&format!("columns, {name}"), file(&[1, 4_294_967_295], &indptr, &data, method), "implausible"),
        ]);
    }
    check(cases);
}

/// What the host's memory can't hold ends with a word, wherever it ends.
#[cfg(target_os = "linux")]
#[test]
fn too_large_for_the_host() {
    let place = Place::new();
    let run = |kib| place.run_within(kib, "solve --generate variable:100 --devices host --max-iters 2");
    let mut codes = Vec::new();
    for kib in [60_000, 100_000, 200_000, 250_000, 300_000, 350_000, 400_000, 450_000, 4_000_000] {
        let run = run(kib);
        assert!(run.code == Some(1) || run.err.contains("memory"), "{kib}: {:?}, {}", run.code, run.err);
        codes.push(run.code);
    }
    assert!(codes.is_sorted_by(|a, b| a >= b) && codes[0] == Some(3) && codes[8] == Some(1), "{codes:?}");
    place.run_within(200_000, "solve --generate variable:100 --devices host").fails(3, &["out of memory", "bytes"]);
}
