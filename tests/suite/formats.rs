//! The format of a block of rows as a process sees it: by its bytes, or measured by one solve and remembered by the next.

use crate::common::process::{Place, Run, array};
use crate::common::relative_residual;
use declive::matrix::gallery;
use serde_json::Value;

/// Rows of a few patterns: compressed rows are near enough in bytes to be measured. 22,275 entries.
const SYSTEM: &str = "--generate variable:15 --rhs random:3";

/// The first rank of a solve on some devices, and what was logged.
fn solve(place: &Place, options: &str) -> (Value, String) {
    let run = place.run(&format!("solve {SYSTEM} --json -vv {options}")).ends(0);
    let report = run.json();
    assert!(report["rel_residual_2"].as_f64().unwrap() <= 1e-8);
    (report["ranks"].clone(), run.err)
}

/// The names of what was considered, and how many of them have times.
fn considered(rank: &Value) -> (Vec<&str>, usize) {
    let formats = rank["formats"].as_array().unwrap();
    let timed = formats.iter().filter(|one| one["microseconds"].as_f64() > Some(0.0)).count();
    (formats.iter().map(|one| one["format"].as_str().unwrap()).collect(), timed)
}

#[test]
fn one_solve_measures_and_the_next_remembers() {
    crate::common::require_opencl();
    let place = Place::new();
    let (first, log) = solve(&place, "--devices 0 --tune full");
    assert_eq!(first[0]["format_why"], "measured", "{log}");
    let (formats, timed) = considered(&first[0]);
    assert_eq!((timed, formats[0]), (formats.len(), first[0]["format"].as_str().unwrap()));
    assert!(log.contains("bytes as csr takes") && log.contains("bytes as pattern takes"), "{log}");
    for tune in ["full", "quick", "stored"] {
        let (again, log) = solve(&place, &format!("--devices 0 --tune {tune}"));
        assert_eq!(again[0]["format_why"], "remembered", "{log}");
        assert_eq!((&again[0]["format"], considered(&again[0])), (&first[0]["format"], (formats.clone(), timed)));
        assert!(log.contains("was measured in a former run") && !log.contains("bytes as"), "{log}");
    }
    // another block, another precision, other preconditioners' values: nothing is known of them
    let (other, _) = solve(&place, "--devices 0 --tune stored --precond none");
    assert_eq!(other[0]["format_why"], "fewest bytes");
    let text = place.run(&format!("solve {SYSTEM} --devices 0")).ok();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let format = first[0]["format"].as_str().unwrap();
    assert!(line.contains(&format!("stored as {format} (remembered: {format} ")), "{text}");
    let shown = place.run("tune --show").ok();
    assert!(shown.contains("3,375") && shown.contains("pattern "), "{shown}");
    let kept = place.run("tune --show --json").ends(0).json();
    assert_eq!(kept["devices"][0]["formats"][0]["format"], first[0]["format"]);
    place.run("tune --clear").ok();
    assert_eq!(solve(&place, "--devices 0 --tune stored").0[0]["format_why"], "fewest bytes");
}

#[test]
fn only_full_measures_and_off_remembers_nothing() {
    crate::common::require_opencl();
    let place = Place::new();
    for tune in ["off", "stored", "quick"] {
        let (ranks, log) = solve(&place, &format!("--devices 0 --tune {tune}"));
        assert_eq!((&ranks[0]["format_why"], considered(&ranks[0]).1), (&"fewest bytes".into(), 0), "{log}");
    }
    solve(&place, "--devices 0 --tune full");
    assert_eq!(solve(&place, "--devices 0 --tune off").0[0]["format_why"], "fewest bytes");
    let (ranks, log) = solve(&place, "--devices 0 --format csr");
    assert_eq!((&ranks[0]["format"], &ranks[0]["format_why"]), (&"csr".into(), &"forced".into()));
    assert!(!log.contains("former run;") && !log.contains("bytes as"), "{log}");
}

#[test]
fn each_rank_has_its_own() {
    crate::common::require_opencl();
    let place = Place::new();
    // a half has more entries than are too few to matter
    for why in ["measured", "remembered"] {
        let (ranks, log) = solve(&place, "--devices 0,0 --tune full");
        assert_eq!(ranks.as_array().unwrap().iter().map(|r| &r["format_why"]).collect::<Vec<_>>(), [why; 2], "{log}");
    }
    let (ranks, _) = solve(&place, "--devices 0,host,0 --tune full");
    assert_eq!((&ranks[1]["kind"], &ranks[1]["format_why"]), (&"host".into(), &"fewest bytes".into()));
    // of the two precisions, that of the iteration
    let mixed = "solve --generate elasticity3d:10 --devices 0 --precision mixed --tune full --json";
    let report = place.run(mixed).ends(0).json();
    assert_eq!(report["ranks"][0]["format_why"], "measured");
    let kept = place.run("tune --show --json").ends(0).json();
    let elements: Vec<_> = kept["devices"][0]["formats"].as_array().unwrap().iter().map(|f| &f["element"]).collect();
    assert_eq!(elements.iter().filter(|element| **element == "float").count(), 1, "{elements:?}");
}

#[test]
fn equal_solves_give_equal_bits_whatever_is_kept() {
    crate::common::require_opencl();
    for devices in ["0", "0,0", "host"] {
        let of = |place: &Place| {
            place.run(&format!("solve {SYSTEM} --devices {devices} -o x.mtx")).ok();
            place.read("x.mtx")
        };
        let place = Place::new();
        let first = of(&place);
        assert!(of(&place) == first, "{devices}: the second solve");
        for _ in 0..3 {
            assert!(of(&Place::new()) == first, "{devices}: nothing is kept");
        }
    }
}

/// Rows in no pattern: their slices are made where they go, of scaled rows and of others, and the levels of multigrid of these.
#[test]
fn slices_are_made_where_rows_go() {
    crate::common::require_opencl();
    let place = Place::new();
    place.run("generate tetrahedra:23 -o A.mtx").ok();
    let a = place.matrix("A.mtx");
    let b = gallery::random_vector(a.n_rows(), 3);
    place.write("b.mtx", array(std::slice::from_ref(&b)));
    for (options, on_device) in [
        ("--precond jacobi", true),
        ("--precond amg", true),
        ("--precond amg --format csr", false),
        ("--precond jacobi --precision mixed", true),
        ("--precond none --precision f32 --rtol 1e-4", true),
    ] {
        let args = format!("solve A.mtx -b b.mtx --method cg --devices 0 --tune off {options} -o x.mtx --json -vv");
        let mut command = place.command(&args);
        command.env("DECLIVE_SHAPE", "gpu");
        let run = Run::of(command, "").ends(0);
        let rtol = if options.contains("1e-4") { 1e-4 } else { 1e-8 };
        assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01 * rtol, "{options}");
        assert_eq!(run.err.contains("makes slices of the rows that it has"), on_device, "{options}: {}", run.err);
    }
}
