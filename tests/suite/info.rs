//! `declive info` as a process: exit codes, text, JSON, pictures.

use std::fs;

use crate::common::process::Place;
use serde_json::{Value, json};

/// The text about a file with this content after the banner.
fn text(banner: &str, body: &str) -> String {
    Place::new().run_with("info -", file(banner, body)).ok()
}

fn json_of(banner: &str, body: &str) -> Value {
    Place::new().run_with("info - --json", file(banner, body)).ends(0).json()
}

fn file(banner: &str, body: &str) -> String {
    format!("%%MatrixMarket matrix {banner}\n{body}")
}

/// What stands after a label, in one line.
#[track_caller]
fn line(text: &str, label: &str) -> String {
    let mut lines = text.lines().skip_while(|l| !l.starts_with(&format!("  {label:<16}")));
    let first = lines.next().unwrap_or_else(|| panic!("no {label} in {text}"));
    let mut words = first[2 + label.len()..].trim().to_owned();
    for more in lines.take_while(|l| l.starts_with(&" ".repeat(18))) {
        words = words + " " + more.trim();
    }
    words
}

const SMALL: &str = "% by hand\n% in two lines\n3 3 5\n1 1 4\n2 1 -1\n2 2 4\n3 2 -1\n3 3 4\n";

#[test]
fn a_positive_definite_matrix() {
    let text = text("coordinate real symmetric", SMALL);
    assert!(text.starts_with("Symmetric positive definite: a matrix for declive solve.\n"));
    for (label, value) in [
        ("matrix", "<stdin>"),
        ("header", "coordinate real symmetric, 3 × 3, 5 entries, 2 comments"),
        ("found", "real symmetric, 3 × 3, 7 entries"),
        ("duplicates", "none"),
        ("values", "|a| from 1 to 4"),
        ("empty rows", "none"),
        ("symmetric", "yes, to the last bit"),
        ("diagonal", "positive; |a(i,i)| is 4 throughout"),
        ("dominance", "strict in 3 rows, largest Σ|a(i,j)| / |a(i,i)| 0.5000 in row 2"),
        ("bandwidth", "1; profile 2"),
        ("reordered", "1; profile 2, by reverse Cuthill–McKee"),
        ("row lengths", "2 to 3 entries, mean 2.33"),
        ("method", "cg"),
        ("precond", "none: the diagonal is constant, so that jacobi would change nothing"),
        ("format", "auto: csr by bytes"),
        ("memory", "244 B on a device alone as csr, 144 B with --precision f32"),
    ] {
        assert_eq!(line(&text, label), value, "{label}");
    }
    assert!(text.contains("\n  entries  rows\n        2     2  66.7 %  "));
    assert!(text.lines().all(|l| l.chars().count() <= 80 && l.trim_end() == l), "{text}");
}

#[test]
fn the_json_of_a_small_matrix() {
    let mut found = json_of("coordinate real symmetric", SMALL);
    for part in ["read", "analysis", "spy", "total"] {
        assert!(found["seconds"][part].as_f64().unwrap() >= 0.0, "{part}");
    }
    found.as_object_mut().unwrap().remove("seconds");
    let none = json!({ "count": 0, "first": null });
    let band = json!({ "lower": 1, "upper": 1, "lower_profile": 2, "upper_profile": 2 });
    let exact = json!({ "holds": true, "largest_difference": 0.0, "first": null });
    let too_many = "the 3 rows are fewer than the 16 that a pattern is for";
    let expected = json!({
        "version": 1,
        "declive": env!("CARGO_PKG_VERSION"),
        "matrix": {
            "source": "<stdin>", "rows": 3, "columns": 3, "nnz": 7, "complex": false, "duplicates": 0,
        },
        "header": {
            "layout": "coordinate", "field": "real", "symmetry": "symmetric",
            "rows": 3, "columns": 3, "entries": 5, "comments": 2,
        },
        "rows": {
            "min": 2, "max": 3, "mean": 7.0 / 3.0, "empty": none,
            "histogram": [{ "from": 2, "to": 2, "rows": 2 }, { "from": 3, "to": 4, "rows": 1 }],
        },
        "empty_columns": none,
        "values": { "zeros": none, "min": 1.0, "max": 4.0 },
        "band": band,
        "band_after_rcm": band,
        "symmetry": {
            "kind": "symmetric", "structural": true, "unmatched": none,
            "symmetric": exact, "hermitian": exact,
            "skew_symmetric": {
                "holds": false, "largest_difference": 2.0,
                "first": { "row": 1, "column": 1, "upper": 4.0, "lower": 4.0 },
            },
        },
        "diagonal": { "missing": none, "zero": none, "negative": none, "not_real": none, "min": 4.0, "max": 4.0 },
        "dominance": {
            "strict": 3, "equal": 0, "close": 0, "violated": none, "worst_row": 2, "worst_ratio": 0.5,
        },
        "positive_definite": {
            "verdict": "yes", "by": "strictly-dominant", "row": null, "column": null,
            "reason": "every diagonal entry is positive and larger than the others of its row together",
        },
        "solve": {
            "format": "auto", "method": "cg", "direct_first": true, "dense_first": false, "precond": "none",
            "precond_reason": "the diagonal is constant, so that jacobi would change nothing",
            "first_look": null, "remembered": [],
            "device_bytes": { "f64": 244, "f32": 144 },
        },
        "formats": {
            "each": [
                { "format": "dictionary", "bytes": null, "bytes_per_entry": null, "obstacle": too_many },
                { "format": "pattern", "bytes": null, "bytes_per_entry": null, "obstacle": too_many },
                // counts, values and columns of 2, 2 and 3 entries, rows; the slice; x and y
                { "format": "sell", "bytes": 116, "bytes_per_entry": 116.0 / 7.0, "obstacle": null },
                { "format": "csr", "bytes": 148, "bytes_per_entry": 148.0 / 7.0, "obstacle": null },
            ],
            "auto_on_gpu": "csr",
            "auto_on_cpu": "csr",
        },
        "spy": null,
    });
    assert_eq!(found, expected);
}

#[test]
fn what_the_header_claims_and_what_is_there() {
    let general = "2 2 6\n1 1 1\n1 2 3\n2 1 3\n2 2 4\n2 2 5\n1 1 1\n";
    let text = text("coordinate integer general", general);
    assert_eq!(line(&text, "header"), "coordinate integer general, 2 × 2, 6 entries, 0 comments");
    assert_eq!(line(&text, "found"), "real symmetric, 2 × 2, 4 entries");
    assert_eq!(line(&text, "duplicates"), "2 of the file, added up");
}

#[test]
fn verdicts() {
    let verdict = |banner: &str, body: &str| {
        let value = json_of(&format!("coordinate real {banner}"), body);
        let definite = &value["positive_definite"];
        let is_symmetric = definite["by"] != "hermitian";
        let method = match definite["verdict"].as_str() {
            Some("no") if is_symmetric => "minres",
            Some("no") => "idr",
            _ => "cg",
        };
        assert_eq!(value["solve"]["method"], method);
        assert!(!value["solve"]["device_bytes"].is_null());
        let [verdict, by, reason] = ["verdict", "by", "reason"].map(|k| definite[k].as_str().unwrap_or("").to_owned());
        (verdict, by, definite["row"].as_u64(), definite["column"].as_u64(), reason)
    };
    let (answer, by, row, column, reason) = verdict("general", "2 2 3\n1 1 1\n1 2 0.5\n2 2 1\n");
    assert_eq!((answer.as_str(), by.as_str(), row, column), ("no", "hermitian", Some(1), Some(2)));
    assert_eq!(reason, "not symmetric: a(1,2) = 0.5 but a(2,1) = 0");
    let (answer, by, row, column, reason) = verdict("symmetric", "2 2 2\n1 1 1\n2 2 -3\n");
    assert_eq!((answer.as_str(), by.as_str(), row, column), ("no", "diagonal", Some(2), None));
    assert_eq!(reason, "a(2,2) = -3 is not positive");
    let (.., reason) = verdict("symmetric", "2 2 2\n1 1 1\n2 1 1\n");
    assert_eq!(reason, "a(2,2) is not stored, which makes it 0");
    let (answer, by, row, column, reason) = verdict("symmetric", "2 2 1\n1 1 1\n");
    assert_eq!((answer.as_str(), by.as_str(), row, column), ("no", "empty-row", Some(2), None));
    assert_eq!(reason, "row 2 has no entries: the matrix is singular");
    let (answer, by, row, column, reason) = verdict("symmetric", "2 2 3\n1 1 1\n2 1 3\n2 2 4\n");
    assert_eq!((answer.as_str(), by.as_str(), row, column), ("no", "minor", Some(1), Some(2)));
    assert_eq!(reason, "a(1,2) = 3 is too large beside a(1,1) = 1 and a(2,2) = 4");
    let (answer, by, ..) = verdict("symmetric", "2 2 3\n1 1 1\n2 1 1.5\n2 2 4\n");
    assert_eq!((answer.as_str(), by.as_str()), ("maybe", ""));
    let (answer, by, ..) = verdict("symmetric", "2 2 3\n1 1 1\n2 1 -1\n2 2 2\n");
    assert_eq!((answer.as_str(), by.as_str()), ("yes", "chained-dominant"));
}

#[test]
fn lsmr_is_for_rectangles() {
    let text = text("coordinate real general", "2 3 1\n1 1 1\n");
    let first: Vec<_> = text.lines().take_while(|l| !l.is_empty()).collect();
    assert_eq!(first.join(" "), "Rectangular: declive solve finds the least squares, by lsmr.");
    assert_eq!(line(&text, "method"), "lsmr");
    assert_eq!(line(&text, "precond"), "jacobi: it scales the columns to norm 1");
}

#[test]
fn idr_is_for_what_is_not_symmetric() {
    for (banner, body) in [("general", "2 2 2\n1 1 1\n1 2 1\n"), ("skew-symmetric", "2 2 1\n2 1 1\n")] {
        let text = text(&format!("coordinate real {banner}"), body);
        assert_eq!(text.lines().next(), Some("Not symmetric: a matrix for declive solve."));
        assert!(line(&text, "method").starts_with("idr: not symmetric: a(1,2) = "), "{text}");
    }
}

#[test]
fn minres_is_for_what_is_not_definite() {
    for (body, precond, why) in [
        ("1 1 1\n1 1 0\n", "none", "a(1,1) = 0 is not positive"),
        ("2 2 2\n1 1 1\n2 2 -3\n", "jacobi", "a(2,2) = -3 is not positive"),
        ("2 2 1\n1 1 1\n", "none", "row 2 has no entries: the matrix is singular"),
        ("2 2 3\n1 1 1\n2 1 3\n2 2 4\n", "jacobi", "a(1,2) = 3 is too large beside a(1,1) = 1 and a(2,2) = 4"),
    ] {
        let text = text("coordinate real symmetric", body);
        let first: Vec<_> = text.lines().take_while(|l| !l.is_empty()).collect();
        let expected = match why.starts_with("row") {
            true => "Symmetric, but singular: declive solve finds an x where b is 0 in the rows without entries.",
            false => "Symmetric, but not positive definite: a matrix for declive solve.",
        };
        assert_eq!(first.join(" "), expected);
        assert_eq!(line(&text, "method"), format!("minres: {why}"));
        assert!(line(&text, "precond").starts_with(precond), "{text}");
    }
}

#[test]
fn rectangles_lack_what_only_squares_have() {
    let body = "2 4 3\n1 2 1\n1 4 0\n1 1 2\n";
    let value = json_of("coordinate real general", body);
    for part in ["symmetry", "diagonal", "dominance", "positive_definite", "band_after_rcm"] {
        assert!(value[part].is_null(), "{part}");
    }
    assert_eq!(value["band"], json!({ "lower": 0, "upper": 3, "lower_profile": 0, "upper_profile": 4 }));
    assert_eq!(value["rows"]["empty"], json!({ "count": 1, "first": 2 }));
    assert_eq!(value["empty_columns"], json!({ "count": 1, "first": 3 }));
    assert_eq!(value["values"]["zeros"], json!({ "count": 1, "first": 1 }));
    let text = text("coordinate real general", body);
    assert_eq!(line(&text, "found"), "real rectangular, 2 × 4, 3 entries");
    assert_eq!(line(&text, "bandwidth"), "0 below, 3 above the diagonal; profile 0 below, 4 above");
    assert_eq!(line(&text, "reordered"), "none: reverse Cuthill–McKee is for square matrices");
    assert_eq!(line(&text, "empty columns"), "1, column 3");
    assert!(!text.contains("Symmetry") && !text.contains("Definiteness"));
}

#[test]
fn matrices_without_rows_or_entries() {
    let text = text("coordinate real general", "0 0 0\n");
    assert!(text.starts_with("Symmetric positive definite"));
    let value = json_of("coordinate real general", "2 2 0\n");
    assert_eq!(value["positive_definite"]["row"], 1);
    assert_eq!(value["rows"]["histogram"], json!([{ "from": 0, "to": 0, "rows": 2 }]));
    assert_eq!((&value["values"]["max"], &value["diagonal"]["missing"]["count"]), (&Value::Null, &json!(2)));
}

#[test]
fn an_uneven_diagonal_calls_for_jacobi() {
    let place = Place::new();
    let text = place.run("info --generate jumps:8,contrast=1000,seed=2").ok();
    let precond = line(&text, "precond");
    assert!(precond.starts_with("jacobi: it evens out the diagonal, which varies by a factor of "), "{precond}");
    assert!(!text.contains("  header"));
    assert_eq!(line(&text, "matrix"), "jumps:8,contrast=1000,seed=2");
}

#[test]
fn formats_by_hand() {
    let place = Place::new();
    let value = |spec: &str| place.run(&format!("info --generate {spec} --json")).ends(0).json()["formats"].take();
    let bytes = |formats: &Value| -> Vec<(String, Option<u64>)> {
        let of = |one: &Value| (one["format"].as_str().unwrap().to_owned(), one["bytes"].as_u64());
        formats["each"].as_array().unwrap().iter().map(of).collect()
    };
    let named = |all: [(&str, Option<u64>); 4]| all.map(|(name, bytes)| (name.to_owned(), bytes)).to_vec();
    // 16 rows, 64 entries. In slices: 8 bytes of counts, 64 values of a byte, 64 columns and 16 rows of two, made up to 240;
    // five numbers of the slice. In both, 256 bytes of vectors.
    let small = value("poisson2d:4");
    let expected = [
        ("dictionary", None),
        ("pattern", None),
        ("sell", Some(240 + 20 + 256)),
        ("csr", Some(64 * 12 + 17 * 4 + 256)),
    ];
    assert_eq!(bytes(&small), named(expected));
    assert_eq!(small["each"][0]["obstacle"], "the 16 rows have more than 1 pattern, or too long ones");
    assert_eq!(small["each"][3]["bytes_per_entry"], 1092.0 / 64.0);
    assert_eq!((&small["auto_on_gpu"], &small["auto_on_cpu"]), (&json!("csr"), &json!("csr")));
    // 400 rows, 1920 entries, 9 patterns with 33 entries together
    let larger = value("poisson2d:20");
    let patterns = 400 * 2 + 9 * 12 + 33 * 16 + 2 * 400 * 8;
    let expected = [("dictionary".to_owned(), Some(patterns)), ("pattern".to_owned(), Some(patterns + 1920 * 8))];
    assert_eq!(bytes(&larger)[..2], expected);
    assert_eq!((&larger["auto_on_gpu"], &larger["auto_on_cpu"]), (&json!("dictionary"), &json!("dictionary")));
    let text = place.run("info --generate random-spd:1500,seed=7").ok();
    assert_eq!(line(&text, "format"), "auto: by bytes sell on a GPU, csr on a CPU");
    assert!(line(&text, "dictionary").starts_with("does not fit: the 1500 rows have more than 93 patterns"), "{text}");
    assert!(line(&text, "csr").ends_with(" B an entry"), "{text}");
    // nothing to solve
    assert_eq!(json_of("coordinate real general", "2 3 1\n1 1 1\n")["formats"], Value::Null);
}

#[test]
fn reordering_narrows_the_band() {
    let value = Place::new().run("info --generate poisson2d:60x8 --json").ends(0).json();
    assert_eq!(value["band"]["lower"], 60);
    let after = value["band_after_rcm"]["lower"].as_u64().unwrap();
    assert!((8..=9).contains(&after), "{after}");
    assert!(value["header"].is_null());
}

#[test]
fn pictures_by_their_ending() {
    let place = Place::new();
    place.write("A.mtx", file("coordinate real symmetric", SMALL));
    let text = place.run("info A.mtx --spy A.svg").ok();
    assert_eq!(line(&text, "picture"), "A.svg");
    let svg = place.read("A.svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains(">A.mtx</text>"));
    let value = place.run("info A.mtx --spy A.PNG --json").ends(0).json();
    assert_eq!(value["spy"], "A.PNG");
    let png = fs::read(place.path("A.PNG")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xaeB`\x82"));
}

#[test]
fn bad_requests_are_refused_before_the_matrix_is_read() {
    let place = Place::new();
    place.run("info no-such.mtx --spy A.jpg").fails(2, &["A.jpg", ".svg or .png"]);
    place.run("info no-such.mtx --spy -").fails(2, &[".svg or .png"]);
    place.run("info no-such.mtx --spy no/such/folder.svg").fails(2, &["no/such/folder.svg"]);
    place.write("A.svg", "a matrix by an odd name");
    place.run("info A.svg --spy ./A.svg").fails(2, &["would overwrite A.svg"]);
    assert_eq!(place.read("A.svg"), "a matrix by an odd name");
    place.run("info").misused(&["A.mtx", "--generate"]);
    place.run("info A.mtx --generate poisson2d:4").misused(&["cannot be used with"]);
}

#[test]
fn bad_matrices_are_named() {
    let place = Place::new();
    place.run("info no-such.mtx").fails(2, &["no-such.mtx"]);
    place.run_with("info -", "not a matrix\n").fails(2, &["<stdin>:1"]);
    place.run("info --generate nonsense:4").misused(&["nonsense"]);
    let broken = place.run_with("info - --spy A.png", file("coordinate real general", "1 1 1\n1 2 1\n"));
    broken.fails(2, &["<stdin>:3"]);
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn the_help_names_every_option() {
    let help = Place::new().run("info --help").ok();
    for word in ["A.mtx", "--generate", "--spy", "--json", "Examples"] {
        assert!(help.contains(word), "{word}");
    }
}

/// What a solve would begin with, when it looks for something faster, and what former solves took.
#[test]
fn what_a_solve_would_go_through() {
    let place = Place::new();
    let info = || place.run("info --generate circuit:100");
    let first = info().ok();
    assert_eq!(line(&first, "method"), "cg");
    let look = line(&first, "if slow");
    assert!(look.starts_with("amg, if more iterations are left than it takes with its set-up"), "{look}");
    assert!(!first.contains("remembered"));
    let solve = "solve --generate circuit:100 --rhs random:1 --rtol 1e-10 --devices host --json";
    let solved = place.run(solve).ends(0).json();
    let json = place.run("info --generate circuit:100 --json").ends(0).json();
    let advice = &json["solve"];
    // a host looks as it was told, and each quarter later again
    let [on_cpu, on_gpu] = ["on_cpu", "on_gpu"].map(|kind| advice["first_look"][kind].as_u64().unwrap());
    let left = solved["switches"][0]["iteration"].as_u64().unwrap();
    assert!(on_cpu <= left && left <= 4 * on_cpu && on_gpu > on_cpu, "{on_cpu}, {left}; {on_gpu}");
    let known = &advice["remembered"][0];
    assert_eq!([&known["method"], &known["precond"]], ["cg", "amg"]);
    assert!(known["seconds"].as_f64().unwrap() > 0.0 && known["others"] == json!([]));
    let words = line(&info().ok(), "remembered");
    assert!(words.starts_with("auto begins with cg by amg, which took ") && words.contains("on host, "), "{words}");
    // not of other matrices, nor where multigrid is for none of this kind
    assert!(!place.run("info --generate circuit:101").ok().contains("remembered"));
    let upwind = place.run("info --generate convection3d:16 --json").ends(0).json();
    assert!(upwind["solve"]["first_look"]["on_cpu"].is_u64() && upwind["solve"]["remembered"] == json!([]));
    let other = place.run("info --generate stokes2d:40 --json").ends(0).json();
    assert!(other["solve"]["first_look"].is_null());
}
