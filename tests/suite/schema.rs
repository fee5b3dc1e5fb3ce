//! The report of a solve is what its JSON Schema says.

use std::path::Path;
use std::process::Command;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

const SCHEMA: &str = "report.schema.json";

fn schema() -> (Schemas, SchemaIndex) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let text = include_str!("../../docs/report.schema.json");
    compiler.add_resource(SCHEMA, serde_json::from_str(text).unwrap()).unwrap();
    let index = compiler.compile(SCHEMA, &mut schemas).unwrap_or_else(|error| panic!("{error:#}"));
    (schemas, index)
}

/// The report of a solve on the host.
fn report(args: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_declive"))
        .args(["solve", "--json"])
        .args(args.split_whitespace())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("OCL_ICD_VENDORS", "/nonexistent")
        .env_remove("OCL_ICD_FILENAMES")
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{args}: {error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn reports_follow_it() {
    let (schemas, index) = schema();
    for args in [
        "data/jumps.mtx",
        "data/jumps.mtx -b data/jumps-b.mtx --method cg --devices host,host",
        "data/jumps.mtx --method cg --max-iters 1",
        "data/poisson2d.mtx --method cg --rhs random:1..3 --shares 2:1 --devices host,host",
        "--generate poisson3d:12 --precond amg",
        "--generate convection3d:8 --precond ilu0",
        "--generate convection3d:6 --precond transversal",
        "--generate stokes2d:10",
        "--generate fit2d:20",
        "--generate helmholtz3d:6",
        "--generate dense:300 --method dense",
        "data/graph-laplacian.mtx",
    ] {
        let report = report(args);
        schemas.validate(&report, index).unwrap_or_else(|error| panic!("{args}: {error:#}"));
    }
}

#[test]
fn other_documents_do_not() {
    let (schemas, index) = schema();
    let report = report("data/jumps.mtx");
    let changes: [fn(&mut Value); 5] = [
        |report| drop(report.as_object_mut().unwrap().remove("converged")),
        |report| report["unknown"] = json!(1),
        |report| report["version"] = json!(2),
        |report| report["iterations"] = json!(-1),
        |report| report["seconds"]["solve"] = json!("long"),
    ];
    for (k, change) in changes.into_iter().enumerate() {
        let mut changed = report.clone();
        change(&mut changed);
        assert!(schemas.validate(&changed, index).is_err(), "change {k}");
    }
}
