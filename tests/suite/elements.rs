//! `declive bench fem`: iterations with finite elements, as its users see it.

use serde_json::Value;

use crate::common::process::Place;

#[test]
fn all_ways_are_timed_on_all_devices() {
    let place = Place::new();
    let args = "bench fem --element triangle6 --size 6 --iterations 5 --devices 0,host --json \
                --ways assembled,by-node,coloured,by-node-stored,coloured-stored";
    let found: Value = place.run(args).ends(0).json();
    assert_eq!([&found["elements"], &found["unknowns"]], [72, 169]);
    assert!(found["colours"]["colours"].as_u64().unwrap() >= found["colours"]["least"].as_u64().unwrap());
    let entries = found["entries"].as_array().unwrap();
    // each device alone, and both together
    let named = |entry: &Value| format!("{} {}", entry["way"].as_str().unwrap(), entry["on"].as_str().unwrap());
    assert_eq!(entries.len(), 15);
    assert_eq!(
        entries[..3].iter().map(named).collect::<Vec<_>>(),
        ["assembled 0", "assembled host", "assembled 0,host"]
    );
    for entry in entries {
        assert_eq!(entry["iterations"], 5, "{entry}");
        let [residual, first] = [&entry["residual"], &entries[0]["residual"]].map(|v| v.as_f64().unwrap());
        assert!((residual / first - 1.0).abs() < 1e-9, "{entry}");
        assert!(entry["iteration"].as_f64().unwrap() > 0.0 && entry["bytes_per_iteration"].as_u64().unwrap() > 0);
        let is_alone = !entry["on"].as_str().unwrap().contains(',');
        assert_eq!(entry["halo"] == 0, is_alone, "{entry}");
    }
}

#[test]
fn a_table_is_printed() {
    let place = Place::new();
    let args =
        "bench fem --element tetrahedron4 --size 3 --model elasticity --ways by-node --iterations 2 --devices host";
    let text = place.run(args).ends(0).out;
    assert!(text.contains("elasticity in 162 elements tetrahedron4, 192 unknowns, f64: 2 iterations"), "{text}");
    assert!(text.contains("by-node") && text.contains("host") && !text.contains("colours"), "{text}");
    let args = "bench fem --element triangle3 --capacitor 1 --ways by-node --iterations 2 --devices host";
    let text = place.run(args).ends(0).out;
    assert!(text.contains("diffusion in 1,076 elements triangle3, 594 unknowns"), "{text}");
}

#[test]
fn what_is_wrong_is_misuse() {
    let place = Place::new();
    place.run("bench fem --element square").misused(&["square", "triangle3"]);
    place.run("bench fem --ways all").misused(&["all", "by-node"]);
    place.run("bench fem --size 0").misused(&["--size"]);
    place.run("bench fem --capacitor 2 --devices host").misused(&["capacitor", "tetrahedron10"]);
    place.run("bench fem --size 4000 --element tetrahedron4 --devices host").misused(&["nodes"]);
}
