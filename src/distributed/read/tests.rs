use std::path::PathBuf;

use super::super::rows::tests::joined;
use super::*;
use crate::comm::processes::simulated::processes;
use crate::matrix_market::{Reader, read_matrix};

const COUNTS: [usize; 4] = [1, 2, 3, 5];

fn data(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        path.file_name().unwrap().to_string_lossy().contains(".mtx") || path.ends_with("no-member.tar.gz")
    });
    files.sort();
    files
}

/// What several processes read is what one reads alone, whether that is a matrix or an error.
fn compare(path: &Path, zeros: Zeros, wave: usize) {
    let expected = Reader::new().with_zeros(zeros).matrix(path);
    for count in COUNTS {
        let found = processes(count, |all| read_by(&*all, path, zeros, wave));
        match &expected {
            Ok(expected) => {
                let of_each: Option<Vec<_>> = found.into_iter().map(Result::unwrap).collect();
                let Some(of_each) = of_each else {
                    assert!(!has_parts(&expected.header), "{}", path.display());
                    continue;
                };
                for (_, header, duplicates) in &of_each {
                    assert_eq!((header, *duplicates), (&expected.header, expected.duplicates), "{}", path.display());
                }
                let parts: Vec<Rows> = of_each.into_iter().map(|(rows, ..)| rows).collect();
                assert!(joined(&parts) == expected.a, "{} by {count}", path.display());
            }
            Err(expected) => {
                // complex files and arrays are left to others
                if found.iter().all(|found| matches!(found, Ok(None))) {
                    continue;
                }
                let (expected, mut own) = (expected.to_string(), 0);
                for (process, found) in found.into_iter().enumerate() {
                    match found.unwrap_err() {
                        AnyError::ProcessFailed { process: failed, why, .. } => {
                            assert!(failed != process);
                            assert_eq!(why, expected);
                        }
                        error => {
                            assert_eq!(error.to_string(), expected, "by {count}");
                            own += 1;
                        }
                    }
                }
                assert!(own > 0);
            }
        }
    }
}

fn compare_text(text: &str, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    for wave in [1, 40, WAVE] {
        compare(&path, Zeros::Keep, wave);
        compare(&path, Zeros::Drop, wave);
    }
}

#[test]
fn every_file_there_is() {
    let files = data("data");
    assert!(files.len() > 4);
    files.iter().for_each(|path| compare(path, Zeros::Keep, 1 << 14));
}

#[test]
fn every_bad_file() {
    let files = data("data/bad");
    assert!(files.len() > 60);
    for path in files {
        for wave in [7, WAVE] {
            compare(&path, Zeros::Keep, wave);
        }
    }
}

/// A number below `n`, another one each time.
fn next(state: &mut u64, n: u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) % n
}

/// Entries in a random order, with comments, blank lines and duplicates; `below` leaves out what lies above the diagonal.
fn scrambled(
    banner: &str,
    n: u64,
    entries: u64,
    end: &str,
    below: bool,
    value: impl Fn(u64, bool) -> String,
) -> String {
    let mut state = n + entries;
    let mut lines = Vec::new();
    for k in 0..entries {
        let (mut i, mut j) = (1 + next(&mut state, n), 1 + next(&mut state, n));
        if below && i < j {
            (i, j) = (j, i);
        }
        lines.push(format!("{i} {j} {}", value(k, i == j)).trim_end().to_owned());
        match next(&mut state, 5) {
            0 => lines.push(format!("% {k}")),
            1 => lines.push(if k % 2 == 0 { String::new() } else { "  \t".into() }),
            _ => {}
        }
    }
    format!("%%MatrixMarket matrix coordinate {banner}{end}% made{end}{n} {n} {entries}{end}{}", lines.join(end))
}

#[test]
fn words_of_the_banner_and_ends_of_lines() {
    let real = |k: u64, _: bool| format!("{}.{:03}e-1", k % 7, k * 77 % 1000);
    let integer = |k: u64, _: bool| format!("{}", k as i64 % 5 - 2);
    for end in ["\n", "\r\n"] {
        for last in ["", end] {
            for n in [1, 4, 30] {
                for entries in [0, 1, 100] {
                    let make = |banner, below, value: &dyn Fn(u64, bool) -> String| {
                        scrambled(banner, n, entries, end, below, value) + last
                    };
                    compare_text(&make("real general", false, &real), "a.mtx");
                    compare_text(&make("integer symmetric", true, &integer), "a.mtx");
                    compare_text(&make("pattern general", false, &|_, _| String::new()), "a.mtx");
                    compare_text(&make("pattern symmetric", true, &|_, _| String::new()), "a.mtx");
                    let skew = |k: u64, diagonal: bool| if diagonal { "0".into() } else { real(k, false) };
                    compare_text(&make("real skew-symmetric", true, &skew), "a.mtx");
                }
            }
        }
    }
}

#[test]
fn few_rows_none_and_other_shapes() {
    let head = "%%MatrixMarket matrix coordinate real general\n";
    for body in ["0 0 0\n", "0 7 0", "1 1 1\n1 1 2", "2 9 3\n2 9 1\n2 1 0\n2 9 -1\n", "9 2 2\n9 2 1\n3 1 4\n"] {
        compare_text(&format!("{head}{body}"), "a.mtx");
    }
    compare_text("%%MatrixMarket vector coordinate real general\n5 2\n4 1.5\n1 2\n", "b.mtx");
    compare_text("%%MatrixMarket matrix array real general\n2 1\n1\n2\n", "c.mtx");
    compare_text("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 2\n", "d.mtx");
    assert!(
        processes(2, |all| read_matrix_market(&*all, Path::new("no such file"), Zeros::Keep).is_err()) == [true; 2]
    );
}

/// Both triangles, each in the same order as the other: only what occurs in both is wrong, in the line where it is second.
#[test]
fn both_triangles_of_a_symmetric_file() {
    let head = "%%MatrixMarket matrix coordinate real symmetric\n% one\n";
    let good = "6 6 7\n2 1 1\n1 3 2\n2 1 0.5\n\n% two\n4 5 1\n6 6 1\n6 6 2\n1 3 -2\n";
    compare_text(&format!("{head}{good}"), "a.mtx");
    for body in [
        "6 6 4\n2 1 1\n5 4 1\n\n1 2 2\n4 5 1\n",
        "6 6 5\n1 2 1\n5 4 1\n5 4 1\n\n4 5 1\n2 1 1\n",
        "6 6 6\n1 2 1\n1 2 1e308\n6 1 1\n1 2 1e308\n1 2 1e308\n1 6 1\n",
    ] {
        compare_text(&format!("{head}{body}"), "a.mtx");
        compare_text(&format!("{}{body}", head.replace("symmetric", "skew-symmetric")), "a.mtx");
    }
}

#[test]
fn sums_beyond_all_bounds() {
    let head = "%%MatrixMarket matrix coordinate real symmetric\n";
    for body in [
        "6 6 5\n5 1 1e308\n\n6 5 1e308\n5 1 1e308\n6 5 1e308\n1 1 2\n",
        "6 6 6\n2 1 1\n5 1 1e308\n2 2 1\n% \n5 5 1e308\n5 1 1e308\n2 1 3\n",
    ] {
        compare_text(&format!("{head}{body}"), "a.mtx");
        compare_text(&format!("{}{body}", head.replace("symmetric", "general")), "a.mtx");
    }
}

#[test]
fn the_first_wrong_line_wins() {
    let head = "%%MatrixMarket matrix coordinate real general\n9 9 40\n";
    let line = |k: usize| format!("{} {} 1\n", 1 + k % 9, 1 + k / 9);
    let with = |wrong: &[(usize, &str)], count: usize| {
        let lines = (0..count).map(|k| match wrong.iter().find(|wrong| wrong.0 == k) {
            Some((_, text)) => format!("{text}\n"),
            None => line(k),
        });
        format!("{head}{}", lines.collect::<String>())
    };
    compare_text(&with(&[], 40), "a.mtx");
    for wrong in [&[(0, "x")][..], &[(39, "1 1")], &[(20, "0 1 1"), (3, "1 10 1"), (38, "1 1 y")]] {
        compare_text(&with(wrong, 40), "a.mtx");
    }
    // a line too few, some too many, and what is wrong behind the first surplus line
    compare_text(&with(&[], 39), "a.mtx");
    compare_text(&with(&[], 60), "a.mtx");
    compare_text(&with(&[(50, "x")], 60), "a.mtx");
    compare_text(&with(&[(35, "x")], 60), "a.mtx");
    compare_text(&with(&[(35, "% a comment, so that there is a line too few")], 40), "a.mtx");
}

#[test]
#[cfg(feature = "compression")]
fn compressed_and_archived() {
    use std::io::Write;

    let folder = tempfile::tempdir().unwrap();
    let gzip = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        let mut file =
            flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
        file.write_all(bytes).unwrap();
        file.finish().unwrap();
        path
    };
    let real = |k: u64, _: bool| format!("{}.5", k % 7);
    let text = scrambled("real symmetric", 3000, 400_000, "\n", true, real);
    compare(&gzip("a.mtx.gz", text.as_bytes()), Zeros::Keep, WAVE);
    let text = scrambled("real general", 30, 50, "\r\n", false, real);
    let header = "%%MatrixMarket matrix coordinate real symmetric\n";
    let texts = [
        text.clone(),
        text.replace(".5", ".x"),
        text.replace("30 50", "30 51"),
        text.replace("30 50", "30 49"),
        text.replace(" real ", " complex "),
        format!("{header}6 6 4\n2 1 1\n5 4 1\n\n1 2 2\n4 5 1\n"),
        format!("{header}6 6 2\n2 1 1e308\n2 1 1e308\n"),
    ];
    for text in texts {
        compare(&gzip("b.mtx.gz", text.as_bytes()), Zeros::Keep, WAVE);
        let mut archive = tar::Builder::new(Vec::new());
        for (path, text) in [("b/b_b.mtx", "%%MatrixMarket"), ("b/b.mtx", &text)] {
            let mut member = tar::Header::new_gnu();
            member.set_size(text.len() as u64);
            member.set_mode(0o644);
            archive.append_data(&mut member, path, text.as_bytes()).unwrap();
        }
        compare(&gzip("b.tar.gz", &archive.into_inner().unwrap()), Zeros::Keep, WAVE);
    }
}

#[test]
fn rows_cost_as_much_on_all() {
    // nearly all entries are in the first rows, and no two side by side
    let entries: String = (0..2000).map(|k| format!("{} {} 1\n", 1 + k % 20, 1 + k / 20 * 2)).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    std::fs::write(&path, format!("%%MatrixMarket matrix coordinate real general\n200 200 2000\n{entries}")).unwrap();
    let costs = processes(4, |all| {
        let (rows, ..) = read_matrix_market(&*all, &path, Zeros::Keep).unwrap().unwrap();
        rows.cost_before(rows.len())
    });
    assert!(costs.iter().all(|cost| cost.abs_diff(costs.iter().sum::<u64>() / 4) <= 107), "{costs:?}");
    compare(&path, Zeros::Keep, 100);
}

/// Time and peak memory of reading `DECLIVE_READ`, alone (`serial`) or by one process: `DECLIVE_BY`.
#[test]
#[ignore = "measures"]
fn how_long_and_how_much() {
    let path = PathBuf::from(std::env::var("DECLIVE_READ").unwrap());
    let by = std::env::var("DECLIVE_BY").unwrap();
    let start = std::time::Instant::now();
    let nnz = match by.as_str() {
        "serial" => read_matrix(&path).unwrap().a.nnz(),
        count => {
            let count = count.parse().unwrap();
            let read = |all: std::sync::Arc<dyn Processes>| {
                read_matrix_market(&*all, &path, Zeros::Keep).unwrap().unwrap().0.nnz()
            };
            processes(count, read).into_iter().sum()
        }
    };
    let took = start.elapsed();
    println!("{by}: {nnz} entries in {took:.2?}, peak {} MiB", crate::peak_bytes().unwrap_or(0) >> 20);
}
