//! `declive fdtd` as a process: results, files, checkpoints, exit codes.

use std::path::Path;

use declive::npz::read_vectors;
use scraper::{Html, Selector};
use serde_json::Value;

use crate::common::process::{Place, interrupt, started};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/fdtd");

const SMALL: &str = "
title = 'a <small> one'
mode = 'te'
cells = [31, 23]
step = 0.01
steps = 40
energy_every = 20
pml = { cells = 4 }
[[material]]
name = 'glass'
epsilon = 2.25
[[body]]
material = 'glass'
shape = { kind = 'ball', centre = [20, 12], radius = 4 }
[[source]]
component = 'hz'
at = [10, 11]
waveform = { kind = 'ricker', frequency = 2e9, delay = 5e-10 }
[[probe]]
name = 'p, one'
component = 'ex'
at = [20, 12]
[[snapshot]]
component = 'hz'
every = 10
";

fn array(path: &Path) -> Vec<Vec<f64>> {
    match read_vectors(path).unwrap() {
        declive::matrix::AnyVectors::Real(columns) => columns,
        declive::matrix::AnyVectors::Complex(_) => panic!("a complex field"),
    }
}

#[test]
fn published_figures() {
    let place = Place::new();
    let json = place.run_without_opencl(&format!("fdtd {DATA}/box.toml --json --probes p.csv -o out")).ok();
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["steps"], &report["finished"]), (&200.into(), &true.into()));
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * b.abs(), "{a:e} for {b:e}");
    let probes = place.read("p.csv");
    let row: Vec<f64> = probes.lines().nth(100).unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
    assert_eq!((probes.lines().next().unwrap(), row[0]), ("step,time,right,diagonal", 100.0));
    close(row[2], 1.995544695e-2);
    close(row[3], 2.751578381e-2);
    let hz = array(&place.path("out/hz-000200.npy"));
    assert_eq!((hz.len(), hz[0].len()), (150, 150));
    // element [i, j] of the array is row i of its column j
    close(hz[75][95], 6.219226766e-3);
    close(hz.iter().flatten().map(|v| v * v).sum::<f64>().sqrt(), 5.849538405);
    // the source is pinned to 0 after 40 steps, where it takes some energy
    let energy = report["energy"].as_array().unwrap();
    let [before, after] = [9, 19].map(|k| energy[k]["energy"].as_f64().unwrap());
    assert!((after / before - 1.0).abs() < 1e-2, "{before:e} {after:e}");
}

#[test]
fn files_and_reports() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let text = place.run("fdtd small.toml --devices host -o out --probes p.csv --report r.html").ok();
    for part in [
        "Made 40 steps",
        "31 × 23",
        "glass (ε 2.25)",
        "absorbing layers of 4 cells",
        "rank 0",
        "million cells a second",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let out = |name: &str| place.path(&format!("out/{name}"));
    for step in [10, 20, 30, 40] {
        assert!(out(&format!("hz-0000{step}.npy")).exists());
        assert!(std::fs::read(out(&format!("hz-0000{step}.png"))).unwrap().starts_with(b"\x89PNG"));
    }
    assert_eq!(place.read("p.csv").lines().next().unwrap(), "step,time,\"p, one\"");
    assert_eq!(place.read("p.csv").lines().count(), 41);
    let page = Html::parse_document(&place.read("r.html"));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    let count = |selector: &str| page.select(&Selector::parse(selector).unwrap()).count();
    assert_eq!((count("img"), count("svg"), count("section")), (4, 2, 4));
    assert!(place.read("r.html").contains("<h1>a &lt;small&gt; one</h1>"));
    assert_eq!(place.run("fdtd small.toml --devices host -q").ends(0).out, "");
}

#[test]
fn any_devices_have_the_same_bits() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let field = |devices: &str| {
        place.run(&format!("fdtd small.toml -q -o out --devices {devices}")).ok();
        std::fs::read(place.path("out/hz-000040.npy")).unwrap()
    };
    let host = field("host");
    for devices in ["0", "0,0", "host,0,host", "auto", "host,host,host,host,host"] {
        assert!(field(devices) == host, "{devices}");
    }
    let wide: Value =
        serde_json::from_str(&place.run("fdtd small.toml --json --devices host,host --shares 1:3").ok()).unwrap();
    assert_eq!((&wide["ranks"][0]["planes"], &wide["ranks"][1]["planes"]), (&5.into(), &18.into()));
    place.run("fdtd small.toml --devices host --shares 1:3").ends(2);
    place.run("fdtd small.toml --devices host --precision f32").ends(0);
}

#[test]
fn on_from_a_checkpoint() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.run("fdtd small.toml -q --devices host -o whole --probes whole.csv").ok();
    place.run("fdtd small.toml -q --devices host --steps 17 --checkpoint c.ckpt").ok();
    let text = place.run("fdtd small.toml --devices host,host --resume c.ckpt -o parted --probes parted.csv").ok();
    assert!(text.contains("resumed         c.ckpt"), "{text}");
    let of = |folder: &str| std::fs::read(place.path(&format!("{folder}/hz-000040.npy"))).unwrap();
    assert!(of("whole") == of("parted"));
    assert_eq!(place.read("whole.csv"), place.read("parted.csv"));

    place.write("other.toml", SMALL.replace("2.25", "2.5"));
    let error = place.run("fdtd other.toml --devices host --resume c.ckpt").ends(2).err;
    assert!(error.contains("c.ckpt: it is of another problem"), "{error}");
    place.write("no.ckpt", "nothing of the kind");
    let error = place.run("fdtd small.toml --devices host --resume no.ckpt").ends(2).err;
    assert!(error.contains("no checkpoint of declive fdtd"), "{error}");
}

#[test]
fn interrupted() {
    let place = Place::new();
    place.write(
        "long.toml",
        SMALL
            .replace("steps = 40", "steps = 1000000000")
            .replace("every = 10", "every = 500000000")
            .replace("energy_every = 20", ""),
    );
    let command = place.command("fdtd long.toml --devices host --checkpoint c.ckpt --json -v");
    let (mut child, err) = started(command, "stepping");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(err);
    assert!(std::fs::metadata(place.path("c.ckpt")).unwrap().len() > 3 * 31 * 23 * 8);
}

#[test]
fn what_is_wrong() {
    let place = Place::new();
    let fails = |text: &str, part: &str| {
        place.write("bad.toml", text);
        let error = place.run_without_opencl("fdtd bad.toml").ends(2).err;
        assert!(error.contains("bad.toml: ") && error.contains(part), "{part}: {error}");
    };
    fails("mode = ", "line 1: ");
    fails("\u{feff}\u{0}", "line 1: ");
    fails(&SMALL.replace("energy_every = 20", "dt = 1e-10"), "beyond the largest stable step");
    fails(&SMALL.replace("at = [10, 11]", "at = [31, 11]"), "source 1 of hz is at cell [31, 11], outside the grid");
    fails(
        &SMALL.replace("'glass'\nshape", "'gold'\nshape"),
        "body 1: there is no material 'gold'; there are: vacuum, glass",
    );
    fails(&SMALL.replace("cells = 4", "cells = 40"), "don't fit");
    fails(&SMALL.replace("steps = 40", "steps = 0"), "from 1 up");
    fails(&SMALL.replace("[31, 23]", "[100000000, 100000000]"), "any machine");
    place.write("small.toml", SMALL);
    place.run_without_opencl("fdtd none.toml").ends(2);
    place.run_without_opencl("fdtd small.toml --devices 7").ends(3);
    let error = place.run_without_opencl("fdtd small.toml --report small.toml").ends(2).err;
    assert!(error.contains("would overwrite"), "{error}");
    place.write("bare.toml", "mode = 'tm'\ncells = [1, 1]\nstep = 1\nsteps = 1\n");
    assert!(place.run_without_opencl("fdtd bare.toml --probes p.csv").ends(2).err.contains("[[probe]]"));
    assert!(place.run_without_opencl("fdtd bare.toml -o out").ends(2).err.contains("[[snapshot]]"));
    place.run_without_opencl("fdtd bare.toml").ends(0);
    place.write("huge.toml", "mode = '3d'\ncells = [60000, 60000, 10000]\nstep = 1\nsteps = 1\n");
    assert!(place.run_without_opencl("fdtd huge.toml").ends(3).err.contains("out of memory"));
}

#[test]
fn problems_of_the_repository() {
    let place = Place::new();
    for file in std::fs::read_dir(DATA).unwrap() {
        let file = file.unwrap().path();
        let text = place.run_without_opencl(&format!("fdtd {} --steps 3", file.display())).ok();
        assert!(text.contains("Made 3 steps"), "{text}");
    }
}
