//! `declive fem` as a process: the examples, files, errors, exit codes.

use std::fs;

use declive::verify;
use scraper::{Html, Selector};
use serde_json::Value;

use crate::common::process::{Place, Run};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/fem");

const SQUARE: &str = "
[mesh]
square = [6, 5]
[physics]
kind = 'diffusion'
[regions.square]
conductivity = 2.0
[sides.left]
value = 1.0
[sides.right]
value = 4.0
[[probes]]
name = 'middle'
point = [0.5, 0.5]
";

fn json(run: Run) -> Value {
    serde_json::from_str(&run.ok()).unwrap()
}

fn close(value: &Value, expected: f64, relative: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() <= relative * expected.abs(), "{value:e} for {expected:e}");
}

/// What comes in through sides, or the force on them, along an axis.
fn sum(report: &Value, component: u64) -> f64 {
    let reactions = report["reactions"].as_array().unwrap().iter();
    reactions.filter(|r| r["component"] == component).map(|r| r["total"].as_f64().unwrap()).sum()
}

#[test]
fn the_capacitor() {
    let place = Place::new();
    let report = json(place.run_without_opencl(&format!("fem {DATA}/capacitor.toml --json --png u.png")));
    assert_eq!((&report["mesh"]["nodes"], &report["mesh"]["elements"]), (&9277.into(), &18080.into()));
    assert_eq!((&report["converged"], &report["known"]), (&true.into(), &88.into()));
    close(&report["conductance"], 589.73e-12, 1e-4);
    close(&report["probes"][0]["gradient"][0][1], 60.47e3, 1e-3);
    assert!(sum(&report, 0).abs() < 1e-9 * report["reactions"][0]["total"].as_f64().unwrap());
    // ½ C ΔV²
    close(&report["energy"], 0.5 * report["conductance"].as_f64().unwrap() * 48.0 * 48.0, 1e-9);
    assert!(fs::read(place.path("u.png")).unwrap().starts_with(b"\x89PNG"));
}

/// Known values that are larger than all loads by twelve decades: the residual is that of the rest.
#[test]
fn small_conductivities_are_iterated_for_as_large_ones() {
    let place = Place::new();
    for (name, kappa) in [("large", "2.0"), ("small", "2e-12")] {
        place.write(&format!("{name}.toml"), SQUARE.replace("2.0", kappa).replace("[6, 5]", "[40, 30]"));
        let options = "--json --method cg --precond jacobi --rtol 1e-10";
        let report = json(place.run_without_opencl(&format!("fem {name}.toml {options}")));
        close(&report["probes"][0]["value"][0], 2.5, 1e-8);
        close(&report["conductance"], kappa.parse().unwrap(), 1e-8);
        assert!(report["iterations"].as_u64().unwrap() > 30);
    }
}

#[test]
fn a_plate_and_a_bar() {
    let place = Place::new();
    let plate = json(place.run_without_opencl(&format!("fem {DATA}/plate.toml --json --vtu p.vtu")));
    // three times as much at the top of the hole, and some more, as the plate is small
    let stress = plate["probes"][0]["stress"][0].as_f64().unwrap();
    assert!((3.0e6..3.7e6).contains(&stress), "{stress:e}");
    assert!((sum(&plate, 0) + 5e4).abs() < 1e-6 && sum(&plate, 1).abs() < 1e-6);
    let text = place.read("p.vtu");
    let document = roxmltree::Document::parse(&text).unwrap();
    let names: Vec<_> = document.descendants().filter_map(|node| node.attribute("Name")).collect();
    assert_eq!(names, ["Points", "connectivity", "offsets", "types", "u", "region", "gradient", "stress", "von_mises"]);

    for options in ["", "--method cg --precond amg --rtol 1e-11"] {
        let bar = json(place.run_without_opencl(&format!("fem {DATA}/bar.toml --json {options}")));
        // the weight of both halves, and the load
        assert!((sum(&bar, 2) - 420e3).abs() < 1e-3 && sum(&bar, 0).abs() < 1e-3, "{bar}");
        close(&bar["probes"][0]["value"][2], -3.12864e-4, 1e-4);
    }
}

#[test]
fn a_wall_in_words() {
    let place = Place::new();
    let text = place.run_without_opencl(&format!("fem {DATA}/wall.toml")).ok();
    let parts = [
        "Converged in",
        "a wall with a film",
        "128 triangles of first order",
        "left (8 edges)",
        "81, of which 9 are known",
        "from 10 to 20",
        "10 comes in through left",
        "1 at (0.5, 0.5): u = 15, ∇u = (-10,",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    // with a film there is no one difference
    assert!(!text.contains("Q / ΔV"));
    assert_eq!(place.run_without_opencl(&format!("fem {DATA}/wall.toml -q")).ends(0).out, "");
}

#[test]
fn files() {
    let place = Place::new();
    place.write("square.toml", SQUARE);
    let report =
        json(place.run_without_opencl("fem square.toml --json -o x.mtx --write-system s --vtu u.vtu --png u.png"));
    assert_eq!(report["files"]["system"], serde_json::json!(["s-A.mtx", "s-b.mtx"]));
    let (a, b, x) = (place.matrix("s-A.mtx"), place.vectors("s-b.mtx"), place.vectors("x.mtx"));
    assert_eq!((a.n_rows(), x[0].len()), (42, 42));
    assert!(verify::residual(&a, &b[0], &x[0]).relative_2 < 1e-12);
    // u = 1 + 3 x, six cells across
    assert!(x[0].iter().enumerate().all(|(node, u)| (u - 1.0 - 0.5 * (node % 7) as f64).abs() < 1e-12));
    close(&report["conductance"], 2.0, 1e-12);
    place.run_without_opencl("fem square.toml -q -o x.npy --report r.html").ends(0);
    let page = Html::parse_document(&place.read("r.html"));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    let count = |selector: &str| page.select(&Selector::parse(selector).unwrap()).count();
    assert_eq!((count("img"), count("section"), count("table")), (1, 5, 4));
    assert!(place.read("r.html").contains("comes in through right"));
    assert_eq!(place.names(), ["r.html", "s-A.mtx", "s-b.mtx", "square.toml", "u.png", "u.vtu", "x.mtx", "x.npy"]);
}

#[test]
fn a_mesh_alone() {
    let place = Place::new();
    fs::copy(format!("{DATA}/plate.msh"), place.path("plate.msh")).unwrap();
    let text = place.run_without_opencl("fem plate.msh").ok();
    for part in ["149 triangles", "91", "steel (149 elements)", "hole (7 edges)", "bandwidth", "--template prints"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report = json(place.run_without_opencl("fem plate.msh --json"));
    close(&report["quality"]["volume"], 25.0 - std::f64::consts::FRAC_PI_4, 1e-2);
    assert_eq!(report["sides"][4]["name"], "hole");
    // what it prints is a problem
    place.write("plate.toml", place.run_without_opencl("fem plate.msh --template").ok());
    let report = json(place.run_without_opencl("fem plate.toml --json"));
    assert_eq!((&report["mesh"]["nodes"], &report["extremes"][0][1]), (&91.into(), &1.0.into()));
    let missing = place.run_without_opencl("fem plate.msh --vtu u.vtu").ends(2);
    assert!(missing.err.contains("--vtu needs a problem") && missing.err.contains("--template"), "{}", missing.err);
    let none = place.run_without_opencl("fem plate.toml --template").ends(2);
    assert!(none.err.contains("--template is for a mesh"), "{}", none.err);
}

#[test]
fn what_ends_otherwise() {
    let place = Place::new();
    place.write("square.toml", SQUARE);
    let short = place.run_without_opencl("fem square.toml --method cg --precond none --max-iters 1 -o x.mtx").ends(1);
    assert!(short.out.contains("Not converged after 1 iteration") && place.path("x.mtx").exists(), "{}", short.out);
    fs::remove_file(place.path("x.mtx")).unwrap();
    place.write("broken.msh", "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 1 1 1\n2 1 0 x\n");
    place.write("of-broken.toml", SQUARE.replace("square = [6, 5]", "file = 'broken.msh'"));
    place.write("lid.toml", SQUARE.replace("sides.left", "sides.lid"));
    place.write("colour.toml", format!("{SQUARE}colour = 1\n"));
    place.write("outside.toml", SQUARE.replace("[0.5, 0.5]", "[0.5, 1.5]"));
    place.write(
        "cube.toml",
        SQUARE.replace("square", "cube").replace("[6, 5]", "[1, 1, 1]").replace("[0.5, 0.5]", "[0, 0, 0]"),
    );
    place.write("beside.toml", format!("{SQUARE}[picture]\nfrom = [-2.0, -2.0]\nto = [-1.0, -1.0]\n"));
    place.write("tiny.toml", format!("{SQUARE}[picture]\nfrom = [0.0, 0.0]\nto = [1e-310, 1e-310]\n"));
    let cases = [
        ("fem no-such.toml", "no-such.toml"),
        ("fem beside.toml --png u.png", "beside.toml: a picture from [-2.0, -2.0] to [-1.0, -1.0] shows nothing"),
        ("fem tiny.toml --report r.html", "tiny.toml: a picture from [0.0, 0.0] to [1e-310, 1e-310] has no size"),
        ("fem broken.msh", "broken.msh: line 6: 'x' is no"),
        ("fem of-broken.toml", "of-broken.toml: broken.msh: line 6: 'x' is no"),
        ("fem lid.toml", "lid.toml: line 8: sides.lid: the mesh has no such side; it has: left, right, bottom, top"),
        ("fem colour.toml", "colour.toml: line 15: unknown field `colour`"),
        ("fem outside.toml", "outside.toml: probe middle at [0.5, 1.5, 0.0] is outside of the mesh"),
        ("fem cube.toml --png u.png", "--png is for meshes in the plane"),
        ("fem square.toml --vtu u --png u", "--vtu and --png both name u"),
        ("fem square.toml --vtu square.toml", "--vtu would overwrite square.toml, which is an input"),
        ("fem square.toml --vtu -", "--vtu needs a file"),
        ("fem square.toml -o x.txt", "-o x.txt: the name should end in .mtx"),
        ("fem square.toml --method nothing", "nothing"),
        ("fem square.toml --rtol -1", "a tolerance is a number from 0 up"),
    ];
    let before = place.names();
    for (args, part) in cases {
        let run = place.run_without_opencl(args).ends(2);
        assert!(run.err.contains(part), "{args}: {}", run.err);
    }
    assert_eq!(place.names(), before);
    place.run_without_opencl("fem square.toml --devices gpu").ends(3);
}

/// With the matrix and without, on one rank and two: the same field.
#[test]
fn fields_do_not_depend_on_the_operator() {
    let place = Place::new();
    for problem in ["plate", "wall"] {
        let run = |options: &str| json(place.run(&format!("fem {DATA}/{problem}.toml --rtol 1e-11 --json {options}")));
        let reference = run("--operator assembled --method direct --devices host");
        assert!(reference["entries"].as_u64().unwrap() > 0 && reference["operator"] == "assembled");
        for options in [
            "--operator by-node --method cg --devices 0",
            "--operator coloured --method cg --devices 0,host",
            "--operator by-node --method cg --precond chebyshev --devices 0,0",
            "--operator by-node --precond amg --devices 0",
            "--operator by-node --precond block-jacobi --devices host",
        ] {
            let report = run(options);
            assert_eq!((&report["converged"], &report["entries"]), (&true.into(), &Value::Null), "{options}");
            close(&report["energy"], reference["energy"].as_f64().unwrap(), 1e-6);
            let colours = report["colours"]["colours"].as_u64();
            assert_eq!(colours.is_some_and(|colours| colours > 4), options.contains("coloured"), "{options}");
            let [found, expected] =
                [&report, &reference].map(|report| report["reactions"][0]["total"].as_f64().unwrap());
            assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1e-9), "{options}: {found:e}, {expected:e}");
        }
    }
    let error = place.run(&format!("fem {DATA}/wall.toml --operator by-node --write-system s"));
    error.misused(&["--write-system", "by-node"]);
    place.run(&format!("fem {DATA}/wall.toml --operator none")).misused(&["none", "assembled, by-node, coloured"]);
}
