//! Files of everything, and what is wrong.

use super::*;
use crate::fem::Condition;

const SMALL: &str = r#"
    [mesh]
    square = [4, 4]
    [physics]
    kind = "diffusion"
    [regions."*"]
    conductivity = 2
    [sides.left]
    value = 1.0
"#;

fn read(text: &str) -> Result<()> {
    let plan = Plan::parse(text, Path::new(""))?;
    let mesh = plan.mesh()?;
    plan.problem(&mesh)?;
    plan.probes(&mesh).map(|_| ())
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn a_file_of_everything() {
    let text = r#"
        title = "all"
        [mesh]
        cube = [2, 2, 2]
        order = 2
        scale = 1e-3
        [physics]
        kind = "elasticity"
        [regions.cube]
        young = 2e11
        poisson = 0.3
        source = [0, 0, -9.81]
        [sides.left]
        value = [0, "free", 0.5]
        flux = ["free", 2, "free"]
        [sides.bottom]
        robin = { coefficient = [0, 0, 5], outside = [0, 0, 1] }
        [sides.right]
        flux = [1, 2, 3]
        [[probes]]
        point = [0, 0, 1e-3]
        [[probes]]
        name = "corner"
        point = [1e-3, 0, 0]
        [picture]
        from = [0, 0]
        to = [1, 0.5]
    "#;
    let plan = Plan::parse(text, Path::new("")).unwrap();
    let mesh = plan.mesh().unwrap();
    assert_eq!((mesh.points().len(), mesh.quality().bounds), (125, [[0.0, 1e-3]; 3]));
    let problem = plan.problem(&mesh).unwrap();
    let kinds: Vec<_> = problem
        .conditions
        .iter()
        .map(|(side, condition)| match condition {
            Condition::Value { component, value } => (*side, *component, value([0.0; 3])),
            Condition::Flux { component, value } => (*side, 10 + component, value([0.0; 3])),
            Condition::Robin { component, coefficient, outside } => (*side, 20 + component, coefficient * outside),
        })
        .collect();
    let expected = [(0, 0, 0.0), (0, 2, 0.5), (0, 11, 2.0), (4, 20, 0.0), (4, 21, 0.0), (4, 22, 5.0)];
    assert_eq!(kinds[..6], expected);
    assert_eq!(kinds[6..], [(1, 10, 1.0), (1, 11, 2.0), (1, 12, 3.0)]);
    let probes = plan.probes(&mesh).unwrap();
    assert_eq!((probes[0].name.as_str(), probes[1].name.as_str()), ("1", "corner"));
    assert_eq!((plan.window, plan.title.as_deref()), (Some([[0.0, 0.0], [1.0, 0.5]]), Some("all")));
    assert_eq!(plan.only_values(), None);
    let small = Plan::parse(SMALL, Path::new("")).unwrap();
    assert_eq!(small.only_values(), Some(vec![("left".to_string(), 1.0)]));
}

#[test]
fn what_is_wrong_is_named() {
    let more = |more: &str| error(&format!("{SMALL}{more}"));
    let other = |from: &str, to: &str| {
        assert!(SMALL.contains(from));
        error(&SMALL.replace(from, to))
    };
    let cases = [
        (more("colour = 3"), "line 10: unknown field `colour`"),
        (other("value = 1.0", "value = \"x\""), "line 9: a number, or a list"),
        (other("square = [4, 4]", "square = [4]"), "line 3"),
        (other("square = [4, 4]", ""), "line 2: mesh: one of file, square, cube and capacitor"),
        (other("square = [4, 4]", "square = [4, 4]\ncapacitor = 1"), "line 2: mesh: one of"),
        (other("[4, 4]", "[4, 4]\norder = 3"), "line 2: mesh: order is 1 or 2"),
        (other("[4, 4]", "[4, 4]\nscale = -1"), "can't be scaled by -1"),
        (other("[4, 4]", "[0, 4]"), "a cell in each direction"),
        (other("\"diffusion\"", "\"waves\""), "line 5: unknown physics 'waves'; there are: diffusion, elasticity"),
        (
            other("sides.left", "sides.lid"),
            "line 8: sides.lid: the mesh has no such side; it has: left, right, bottom, top",
        ),
        (other("regions.\"*\"", "regions.air"), "line 6: regions.air: the mesh has no such region; it has: square"),
        (other("[regions.\"*\"]\n    conductivity = 2", ""), "no table [regions.square], but the mesh has that region"),
        (other("conductivity = 2", ""), "line 6: regions.\"*\": conductivity is missing"),
        (other("conductivity = 2", "young = 2"), "line 6: regions.\"*\": young is nothing of diffusion"),
        (other("conductivity = 2", "conductivity = -2"), "conductivity = -2 of region square"),
        (
            other("conductivity = 2", "conductivity = 2\nsource = [1, 2]"),
            "line 6: regions.\"*\": source has 2 numbers, but a node has 1",
        ),
        (other("conductivity = 2", "conductivity = 2\nsource = [\"free\"]"), "can't be \"free\""),
        (other("value = 1.0", "value = [1, 2]"), "line 8: sides.left: value has 2 numbers"),
        (other("value = 1.0", "value = nan"), "line 8: sides.left: value is NaN"),
        (other("value = 1.0", "value = 1\nflux = 1"), "line 8: sides.left: flux where the value is known"),
        (other("value = 1.0", "robin = { coefficient = -1 }"), "line 8: side 'left': h = -1"),
        (more("[[probes]]\npoint = [0, 0, 0]"), "line 10: probes: point has 3 coordinates; the mesh has 2"),
        (more("[sides.left]"), "line 10"),
        (other("square = [4, 4]", "file = \"no-such.msh\""), "no-such.msh"),
    ];
    for (message, part) in cases {
        assert!(message.contains(part), "{message}\nwithout {part}");
    }
}
