//! `declive bench scaling` as a process: tables, JSON, pictures, and machines that are none.

use serde_json::Value;

use crate::common::process::Place;

fn micros(iteration: &Value) -> f64 {
    1e6 * iteration["seconds"].as_f64().unwrap()
}

#[test]
fn tables_and_what_breaks_first() {
    let run = Place::new().run_without_opencl("bench scaling --gpus 10000,1,16").ends(0);
    assert_eq!(run.err, "");
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in
        ["100,000,000 rows a GPU", "Not measured.", "today: rows in slabs", "direct: ", "What breaks first", "fit with"]
    {
        assert!(words.contains(part), "{part} is not in\n{}", run.out);
    }
    // three tables of each of three ways, by rising numbers
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let numbers: Vec<_> = run.out.lines().filter(|line| line.starts_with("  ")).filter_map(first).collect();
    assert_eq!(numbers, ["GPUs", "1", "16", "10,000"].repeat(9));
}

#[test]
fn json_of_strong_scaling() {
    let place = Place::new();
    let json = place.run_without_opencl("bench scaling --rows 1e10 --gpus 100,1000 --json --svg s.svg").ends(0).json();
    assert_eq!(json["sizes"]["strong"], 10_000_000_000_u64);
    let ways = json["ways"].as_array().unwrap();
    assert_eq!(ways.iter().map(|way| way["way"].as_str().unwrap()).collect::<Vec<_>>(), ["today", "blocks", "direct"]);
    for way in ways {
        for entry in way["entries"].as_array().unwrap() {
            assert_eq!(entry["rows"], 1e10);
            let parts = entry["cg"]["parts"].as_object().unwrap().values().map(|part| part.as_f64().unwrap());
            assert!((1e6 * parts.sum::<f64>() - micros(&entry["cg"])).abs() < 1e-6, "{entry}");
        }
    }
    let of = |way: usize, entry: usize| micros(&ways[way]["entries"][entry]["cg"]);
    assert!(of(2, 1) < of(1, 1) && of(1, 1) < of(0, 1), "what is better takes less");
    let svg = place.read("s.svg");
    let tree = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<_> = tree.descendants().filter_map(|node| node.text()).collect();
    assert!(["cg", "cg with multigrid", "today", "GPUs", "1,000"].iter().all(|part| texts.contains(part)), "{texts:?}");
}

#[test]
fn a_machine_of_ones_own() {
    let place = Place::new();
    let template = place.run_without_opencl("bench scaling --template").ok();
    place.write("same.toml", &template);
    place.write("slow.toml", "[gpu]\nbandwidth_gb_s = 395.0\n");
    place.write("wrong.toml", "name = 'x'\n\n[network]\nlatency_us = -1.0\n");
    place.write("unknown.toml", "[network]\nlatency = 1.0\n");
    place.write("text.toml", "[network\n");
    let run = |args: &str| place.run_without_opencl(&format!("bench scaling --rows-per-gpu 1e8 --gpus 1 {args}"));
    let json = |args: &str| run(&format!("{args} --json")).ends(0).json();
    assert_eq!(json("")["ways"], json("--machine same.toml")["ways"]);
    let [usual, slow] = ["", "--machine slow.toml"].map(|args| micros(&json(args)["ways"][0]["entries"][0]["cg"]));
    assert!((9.5..10.5).contains(&(slow / usual)), "{slow} {usual}");
    run("--machine wrong.toml").fails(2, &["wrong.toml", "line 4: network.latency_us must be 0 or more"]);
    run("--machine unknown.toml").fails(2, &["unknown.toml", "line 2: ", "latency"]);
    run("--machine text.toml").fails(2, &["text.toml", "line 1: "]);
    run("--machine none.toml").fails(2, &["none.toml"]);
}

#[test]
fn the_model_beside_what_was_measured() {
    let json = Place::new().run_without_opencl("bench scaling --measured --json").ends(0).json();
    let all = json["comparisons"].as_array().unwrap();
    assert!(all.len() > 30);
    for one in all {
        let ratio = one["ratio"].as_f64().unwrap();
        assert!((0.75..1.25).contains(&ratio), "{one}");
    }
    let text = Place::new().run_without_opencl("bench scaling --measured").ok();
    assert!(text.contains("processes") && text.contains("951 to 969"), "{text}");
}

#[test]
fn wrong_usage() {
    let run = |args: &str| Place::new().run_without_opencl(&format!("bench scaling {args}"));
    run("--rows 100 --gpus 1000").fails(2, &["--rows 100", "--gpus 1000"]);
    run("--rows 1.5").misused(&["1e8"]);
    run("--rows 1e9 --rows-per-gpu 1e8").misused(&["--rows-per-gpu"]);
    run("--format auto").misused(&["dictionary, pattern, sell or csr"]);
    run("--stencil 5").misused(&["27"]);
    run("--svg -").fails(2, &["--svg needs a file"]);
}
