//! `declive bench study` as a process: tables, JSON and pictures of small sizes, and wrong usage.

use serde_json::Value;

use crate::common::process::Place;

/// What is drawn: the texts of a picture that is well formed.
fn texts(svg: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(svg).unwrap();
    assert!(tree.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")));
    assert!(tree.descendants().any(|node| node.attribute("class").is_some_and(|class| class.starts_with("line "))));
    tree.descendants()
        .filter(|node| node.tag_name().name() == "text")
        .filter_map(|node| node.text())
        .map(Into::into)
        .collect()
}

/// The series of a panel, whose values are all positive.
fn names(panel: &Value, sizes: usize) -> Vec<&str> {
    assert_eq!(panel["at"].as_array().unwrap().len(), sizes);
    let series = panel["series"].as_array().unwrap();
    for one in series {
        let values: Vec<f64> = one["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        assert!(values.len() == sizes && values.iter().all(|value| *value > 0.0), "{one}");
    }
    series.iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn tables_of_tridiagonal_systems() {
    let place = Place::new();
    let args = "bench study tridiagonal --devices 0 --repeat 1 --systems 2,5 --size 40,1000000000,20 --svg t.svg";
    let run = place.run(args).ends(0);
    assert_eq!(run.err, "");
    for part in ["f64: the median of 1 measurement.", ", 2 systems: million rows/s", "thomas ×", "2 of 1000000000"] {
        assert!(run.out.replace('\n', " ").contains(part), "{part} is not in\n{}", run.out);
    }
    let rows = run.out.lines().filter(|line| line.starts_with("  20 ") || line.starts_with("  40 ")).count();
    assert_eq!(rows, 4, "{}", run.out);
    let texts = texts(&place.read("t.svg"));
    assert!(["2 systems", "5 systems", "pcr", "host thomas", "40"].iter().all(|part| texts.iter().any(|t| t == part)));
}

#[test]
fn json_of_factors() {
    let place = Place::new();
    let json = place
        .run("bench study lu --devices 0 --repeat 1 --size 12,30 --precision f32 --json --svg l.svg")
        .ends(0)
        .json();
    assert_eq!(
        (&json["study"], &json["precision"], &json["notes"]),
        (&"lu".into(), &"f32".into(), &Value::Array(vec![]))
    );
    let panels = json["panels"].as_array().unwrap();
    assert_eq!((panels.len(), names(&panels[1], 2)), (2, vec!["32", "64", "128", "256", "host"]));
    assert!(names(&panels[0], 2).len() >= 4 && panels[0]["y"] == "GFLOP/s");
    assert!(texts(&place.read("l.svg")).iter().any(|text| text == "GFLOP/s"));
}

#[test]
fn json_of_fields() {
    let place = Place::new();
    let json = place.run("bench study fdtd --devices 0 --repeat 1 --size 60 --json").ends(0).json();
    let panels = json["panels"].as_array().unwrap();
    assert_eq!((panels.len(), &json["notes"]), (2, &Value::Array(vec![])));
    assert!(panels.iter().all(|panel| names(panel, 1).contains(&"128")));
}

#[test]
fn the_host_alone() {
    let place = Place::new();
    let text = place.run_without_opencl("bench study lu --size 10 --repeat 1").ok();
    assert!(text.contains("host, LU: GFLOP/s"), "{text}");
}

#[test]
fn wrong_usage() {
    let place = Place::new();
    place.run("bench study lu --precision mixed").fails(2, &["--precision mixed"]);
    place.run("bench study fdtd --svg -").fails(2, &["--svg needs a file"]);
    place.run("bench study lu --svg no/such/folder/l.svg").fails(2, &["no/such/folder/l.svg"]);
    place.run("bench study lu --devices 99").fails(3, &["99"]);
    place.run("bench study").misused(&["tridiagonal", "lu", "fdtd"]);
    place.run("bench study lu --systems 3").misused(&["--systems"]);
    place.run("bench study fdtd --size 0").misused(&["--size"]);
}
