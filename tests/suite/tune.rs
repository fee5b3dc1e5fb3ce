//! `declive tune` as a process: what it finds, keeps, shows and forgets, and that a solve uses it.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use crate::common::process::{Place, interrupt, started};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The one file of a device in the store.
fn stored(place: &Place) -> PathBuf {
    let files = fs::read_dir(place.cache().join("tuning")).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    assert_eq!(files.len(), 1);
    files.remove(0)
}

/// Runs a solve of 12³ rows; tells how many kernels were launched as the store has it.
fn kernels_tuned(place: &Place, options: &str) -> Option<String> {
    let devices = if options.contains("--devices") { "" } else { "--devices 0" };
    let run = place.run(&format!("solve --generate poisson3d:12 {devices} -vv --json {options}"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let limit = if options.contains("f32") { 1e-5 } else { 1e-8 };
    assert!(run.json()["rel_residual_2"].as_f64().unwrap() <= limit);
    let line = run.err.lines().find(|line| line.contains("kernels are launched as"))?;
    Some(line.rsplit_once(": ").unwrap().1.split(' ').next().unwrap().into())
}

#[test]
fn from_measurement_to_solve() {
    let place = Place::new();
    assert_eq!(kernels_tuned(&place, "").unwrap(), "0");
    let report = place.run("tune --devices 0 --generate poisson3d:12 --json --report r.html").ends(0).json();
    let found = &report["devices"][0];
    assert_eq!((&found["order"], &found["nnz"], &found["precision"]), (&1728.into(), &11232.into(), &"f64".into()));
    let kernels = found["kernels"].as_array().unwrap();
    // compressed rows, and rows of a few patterns with their values
    assert_eq!(kernels.len(), 13);
    for kernel in kernels {
        let name = &kernel["kernel"];
        let times = ["default", "chosen"].map(|which| {
            let timing = &kernel[which]["timing"];
            let [low, median, high] = ["low", "median", "high"].map(|part| timing[part].as_f64().unwrap());
            assert!(0.0 < low && low <= median && median <= high, "{name}: {timing}");
            median
        });
        // those two have to go along with the row blocks of the third product
        let is_free = name != "spmv_csr" && name != "residual_csr";
        assert!(!is_free || times[1] <= times[0], "{name} is slower than without tuning: {times:?}");
        let curves = kernel["curves"].as_array().unwrap();
        let begins_with_one = |curve: &Value| curve["points"][0]["groups_per_unit"] == 1;
        assert!(!curves.is_empty() && curves.iter().all(begins_with_one), "{name}");
        assert_eq!(kernel["elements"], 1728);
        // each launch once; on a CPU of two sizes
        let part = |curve: &Value| ["group_size", "block_nnz"].map(|part| curve[part].as_u64().unwrap());
        let mut tried: Vec<[u64; 2]> = curves.iter().map(part).collect();
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(tried.len(), curves.len(), "{name}: {tried:?}");
        assert!([1, 64].iter().all(|size| tried.iter().any(|launch| launch[0] == *size)), "{name}: {tried:?}");
        assert_eq!(tried.iter().any(|launch| launch[1] == 1024), name.as_str().unwrap().ends_with("_csr"), "{tried:?}");
        assert!(kernel["bytes"].as_u64().unwrap() > 0);
    }
    let page = place.read("r.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("spmv_dot_csr") && page.contains("<svg"));

    assert_eq!(kernels_tuned(&place, "").unwrap(), "13");
    assert_eq!(kernels_tuned(&place, "--tune off"), None);
    assert_eq!(kernels_tuned(&place, "--precision f32 --rtol 1e-5").map(|n| n == "13"), Some(false));
    let kept = place.run("tune --show --json").ends(0).json();
    assert_eq!(kept["devices"][0]["kernels"].as_array().unwrap().len(), 13);
    assert!(place.run("tune --show").ok().contains("spmv_dot_csr"));
    assert_eq!(place.run("tune --clear").ok(), "Forgot what was kept of 1 device.\n");
    assert_eq!(place.run("tune --clear").ok(), "Nothing was kept.\n");
    assert_eq!(place.run("tune --show").ok(), "Nothing is kept: 'declive tune' measures.\n");
    assert_eq!(kernels_tuned(&place, "").unwrap(), "0");
}

/// One device as three ranks: beside the whole, which one device has, the block of one of three.
#[test]
fn blocks_of_several_ranks() {
    let place = Place::new();
    let tune = |devices: &str| {
        let text = format!("tune --devices {devices} --generate poisson3d:12 --search first-minimum --json");
        let report = place.run(&text).ends(0).json();
        let found = report["devices"].as_array().unwrap().clone();
        assert!(found.iter().all(|one| one["indices"] == serde_json::json!([0])));
        let part = |one: &Value| ["order", "nnz", "halo"].map(|part| one[part].as_u64().unwrap());
        found.iter().map(part).collect::<Vec<_>>()
    };
    assert_eq!(tune("0,0"), [[1728, 11232, 0]]);
    let solve = || kernels_tuned(&place, "--devices 0,0,0").unwrap();
    // vectors of a third are one step away, products are two
    assert_eq!(solve(), "7");
    let found = tune("0,0,0");
    let middle = |[rows, entries, halo]: [u64; 3]| rows.abs_diff(576) <= 12 && entries < 4000 && halo == 288;
    assert!(found.len() == 2 && found[0] == [1728, 11232, 0] && middle(found[1]), "{found:?}");
    assert_eq!(solve(), "13");
}

/// Launch parameters that differ from kernel to kernel, and are of both shapes, change no result; those that no device
/// can have are not used.
#[test]
fn edited_by_hand() {
    let place = Place::new();
    place.run("tune --devices 0 --generate poisson3d:12 --search first-minimum").ok();
    let path = stored(&place);
    let mut content = json(&fs::read_to_string(&path).unwrap());
    for entry in content["entries"].as_array_mut().unwrap() {
        let launch = match entry["kernel"].as_str().unwrap() {
            "spmv_dot_csr" => [64, 2, 128],
            "spmv_csr" => [16, 3, 128],
            "residual_csr" => [1, 1, 1],
            "next_direction" => [32, 1, 0],
            "dot_partial" => [1 << 19, 1, 0],
            "next_iterate" => [1 << 20, 1, 0],
            "next_residual" => [64, 1000, 0],
            _ => [8, 2, 0],
        };
        for (k, part) in ["group_size", "groups_per_unit", "block_nnz"].into_iter().enumerate() {
            entry["launch"][part] = launch[k].into();
        }
        if launch[2] > 1 {
            entry["launch"]["items_per_row"] = 4.into();
        }
    }
    fs::write(&path, content.to_string()).unwrap();
    // not the three impossible ones, and not the product that was cut for other row blocks
    assert_eq!(kernels_tuned(&place, "").unwrap(), "9");
    assert_eq!(kernels_tuned(&place, "--method cg-classic --precond jacobi").unwrap(), "9");
}

#[test]
fn a_damaged_store_is_no_obstacle() {
    let place = Place::new();
    place.run("tune --devices 0 --order 1000 --search first-minimum").ok();
    fs::write(stored(&place), "{ \"version\": 1, ").unwrap();
    let run = place.run("solve --generate poisson3d:12 --devices 0");
    assert_eq!((run.code, run.err.matches("warning: ").count()), (Some(0), 1), "{}", run.err);
    place.run("tune --devices 0 --order 1000 --search first-minimum --dry-run").ok();
    assert_eq!(fs::read_to_string(stored(&place)).unwrap(), "{ \"version\": 1, ");
    place.run("tune --devices 0 --order 1000 --search first-minimum").ok();
    assert_eq!(json(&fs::read_to_string(stored(&place)).unwrap())["version"], 1);
}

/// Of a matrix so small that there is one group a unit at most.
#[test]
fn the_first_minimum() {
    let place = Place::new();
    let report = place.run("tune --devices 0 --order 30 --search first-minimum --json").json();
    assert_eq!(report["devices"][0]["search"], "first-minimum");
    let kernels = report["devices"][0]["kernels"].as_array().unwrap();
    assert!(kernels.len() >= 7, "{report}");
    for curve in kernels.iter().flat_map(|kernel| kernel["curves"].as_array().unwrap()) {
        // in steps of one, up to the first rise
        let of = |name: &str| {
            curve["points"].as_array().unwrap().iter().map(move |point| point[name].clone()).collect::<Vec<_>>()
        };
        assert!(of("groups_per_unit").iter().zip(1..).all(|(groups, k)| *groups == k), "{curve}");
        let times: Vec<f64> = of("timing").iter().map(|timing| timing["median"].as_f64().unwrap()).collect();
        assert!(times.windows(2).rev().skip(1).all(|two| two[1] <= two[0]), "{curve}");
    }
}

/// The first signal ends tuning, not the program.
#[cfg(unix)]
#[test]
fn an_interrupted_solve_ends_tuning() {
    let place = Place::new();
    let args = "solve --generate poisson3d:40 --devices 0 --tune full -v -o x.mtx";
    let (mut child, mut err) = started(place.command(args), "tuning all kernels");
    interrupt(&child);
    let (mut out, mut rest) = (String::new(), String::new());
    err.read_to_string(&mut rest).unwrap();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{out}{rest}");
    assert!(out.starts_with("Not converged") && out.contains("Interrupted"), "{out}");
    assert!(rest.contains("not tuned: interrupted"), "{rest}");
    assert_eq!(place.vectors("x.mtx")[0], vec![0.0; 64_000]);
    assert!(!place.cache().join("tuning").exists());
}

#[test]
fn what_can_not_be_tuned() {
    let place = Place::new();
    place.run("tune --devices host").fails(3, &["the host"]);
    place.run("tune missing.mtx").fails(2, &["missing.mtx"]);
    place.run("tune A.mtx --order 5").misused(&["--order"]);
    place.run("tune --show --clear").misused(&["--clear"]);
    place.run("tune --search hasty").misused(&["first-minimum"]);
    place.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 1\n");
    place.run("tune a.mtx").fails(2, &["square"]);
}
