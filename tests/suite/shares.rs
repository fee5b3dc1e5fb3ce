//! Who gets which rows, and what becomes of it.

use crate::common::process::Place;
use crate::common::{relative_residual, require_opencl, setup};
use declive::matrix::gallery::{Spec, random_vector};
use declive::solve::{Method, Precision, Precond, ShareSource};
use declive::{Control, Solver, Stop};

/// Uneven shares, ranks without rows, on devices and beside the host.
#[test]
fn forced_shares_are_obeyed() {
    require_opencl();
    let a = "jumps:12".parse::<Spec>().unwrap().build().unwrap();
    let b = random_vector(a.n_rows(), 3);
    for (devices, shares) in [
        ("0,0,0", "3:1:1"),
        ("0,0,0", "0:1:0"),
        ("0,host", "1:5"),
        ("0,host", "0:1"),
        ("0,host", "1:0"),
        ("host,0,host,0,0", "1:0:7:0.5:2"),
    ] {
        for (method, precond) in [(Method::Cg, Precond::Jacobi), (Method::CgClassic, Precond::None)] {
            for precision in [Precision::F64, Precision::Mixed] {
                let setup =
                    setup(method, precond, precision, &devices.parse().unwrap()).with_shares(shares.parse().unwrap());
                let case = format!("{devices} {shares} {method} {precision}");
                let mut solver = Solver::new(a.clone(), &setup).unwrap();
                let wanted: Vec<f64> = setup.shares.as_ref().unwrap().parts().to_vec();
                let whole: f64 = wanted.iter().sum();
                for (rank, share) in solver.ranks().iter().zip(&wanted) {
                    assert_eq!(rank.share_source, ShareSource::ByHand);
                    assert!((rank.share - share / whole).abs() < 0.01, "{case}: {}", rank.share);
                    assert_eq!(rank.rows == 0, *share == 0.0, "{case}");
                }
                assert_eq!(solver.ranks().iter().map(|rank| rank.rows).sum::<usize>(), a.n_rows());
                let outcome = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
                assert!(outcome.reason.converged(), "{case}: {}", outcome.reason);
                assert!(relative_residual(&a, &b, &outcome.x) <= 1e-8, "{case}");
            }
        }
    }
}

#[test]
fn shares_on_the_command_line() {
    let place = Place::new();
    let solve = |rest: &str| place.run(&format!("solve --generate poisson2d:40 --tune off {rest}"));
    let report = solve("--devices host,host,host --shares 1:0:3 --json").ends(0).json();
    let rows: Vec<u64> = report["ranks"].as_array().unwrap().iter().map(|r| r["rows"].as_u64().unwrap()).collect();
    assert!(rows[1] == 0 && rows[0].abs_diff(400) <= 2 && rows.iter().sum::<u64>() == 1600, "{rows:?}");
    assert_eq!(
        (&report["options"]["shares"], &report["ranks"][2]["share_source"]),
        (&"1:0:3".into(), &"by hand".into())
    );
    let text = solve("--devices host,host --shares 1:3").ok();
    assert!(text.contains("by hand") && text.contains(" 75.0"), "{text}");
    solve("--devices host,host --shares 1:2:3").misused(&["--shares 1:2:3 has 3 numbers", "there are 2 ranks"]);
    solve("--devices host --shares 0:0").misused(&["all shares are 0"]);
    solve("--devices host --shares 1:x").misused(&["unknown share 'x'"]);
    solve("--devices host,host --shares=-1:2").misused(&["a share is -1"]);
}

/// `auto` is `cg`, on one device and on several; what was asked for is what ranks follow.
#[test]
fn the_method_that_ranks_follow() {
    let place = Place::new();
    let method = |rest: &str| {
        let report = place.run(&format!("solve --generate poisson2d:50 {rest} --json")).ends(0).json();
        report["options"]["method"].as_str().unwrap().to_owned()
    };
    for devices in ["0", "0,0"] {
        for tune in ["off", "quick"] {
            assert_eq!(method(&format!("--devices {devices} --tune {tune}")), "cg");
            assert_eq!(method(&format!("--devices {devices} --tune {tune} --method auto")), "cg");
        }
        for asked in ["cg", "cg-single-reduction", "cg-pipelined", "cg-classic"] {
            assert_eq!(method(&format!("--devices {devices} --tune quick --method {asked}")), asked);
        }
    }
    // checkpoints say so, too
    assert_eq!(method("--devices 0,0 --checkpoint a.ckpt"), "cg");
    let (checkpoint, words) = (std::fs::read(place.path("a.ckpt")).unwrap(), "method cg,");
    assert!(checkpoint.windows(words.len()).any(|part| part == words.as_bytes()));
}

/// The first solve measures, the next one remembers; with `--tune off` nothing is measured, remembered or known.
#[test]
fn speeds_are_measured_and_remembered() {
    let place = Place::new();
    let solve = |tune: &str| {
        let args = format!(
            "solve --generate poisson2d:150 --method cg --precond jacobi --devices 0,host --tune {tune} --json"
        );
        place.run(&args).ends(0).json()
    };
    let sources = |report: &serde_json::Value| -> Vec<String> {
        report["ranks"].as_array().unwrap().iter().map(|r| r["share_source"].as_str().unwrap().to_owned()).collect()
    };
    let expected = |report: &serde_json::Value| report["forecast"]["microseconds_per_iteration"].as_f64();
    let shares = |report: &serde_json::Value| -> f64 {
        report["ranks"].as_array().unwrap().iter().map(|r| r["share"].as_f64().unwrap()).sum()
    };
    for tune in ["off", "stored"] {
        let report = solve(tune);
        assert_eq!((sources(&report), expected(&report)), (vec!["even".to_owned(); 2], None), "{tune}");
    }
    let first = solve("quick");
    assert_eq!(sources(&first), ["measured", "measured"]);
    assert!((shares(&first) - 1.0).abs() < 1e-12);
    for tune in ["stored", "quick", "full"] {
        let again = solve(tune);
        // unless rows were moved in the middle of the solve, which tells more
        let moved = !again["solves"][0]["moves"].as_array().unwrap().is_empty();
        assert!(moved || sources(&again) == ["remembered", "remembered"], "{tune}");
        assert!(expected(&again).is_some_and(|micros| micros > 0.0), "{tune}");
        assert!((shares(&again) - 1.0).abs() < 1e-12);
    }
    let off = solve("off");
    assert_eq!((sources(&off), expected(&off)), (vec!["even".to_owned(); 2], None));
    assert!(place.run("tune --show").ok().contains("An iteration took"));
    // a store that can't be read is as none
    for file in std::fs::read_dir(place.cache().join("tuning")).unwrap() {
        std::fs::write(file.unwrap().path(), "{").unwrap();
    }
    assert_eq!(sources(&solve("stored")), ["even", "even"]);
}
