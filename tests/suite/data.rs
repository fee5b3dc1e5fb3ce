//! The systems in `data/`: each is what the generator makes, bit for bit, and each can be solved on every kind of rank.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{PRECONDS, relative_residual, require_opencl, setup, solve};
use declive::Csr;
use declive::device::{Choice, list};
use declive::matrix::gallery::{Spec, random_vector};
use declive::matrix::stats::Stats;
use declive::matrix_market::{Symmetry, read_matrix, read_vectors, write_vectors};
use declive::solve::{Method, Precision, Precond};

/// Name of the file, and the problem in it.
const SYSTEMS: &[(&str, &str)] = &[
    ("poisson2d", "poisson2d:24x18"),
    ("jumps", "jumps:10x9x8,seed=3"),
    ("elasticity3d", "elasticity3d:5x2x2"),
    ("graph-laplacian", "graph-laplacian:400,degree=3,seed=5"),
    ("random-spd", "random-spd:500,degree=4,seed=9"),
];

/// Right-hand sides for `jumps.mtx`.
const RHS: &str = "jumps-b.mtx";

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(file)
}

fn read(name: &str) -> Csr {
    read_matrix(&data(&format!("{name}.mtx"))).unwrap().a
}

/// A random column, and the one whose solution is 1 everywhere.
fn right_hand_sides(a: &Csr) -> [Vec<f64>; 2] {
    [random_vector(a.n_rows(), 7), a.mul_vec(&vec![1.0; a.n_cols()])]
}

/// The host, a device, and all devices together, by their numbers: each is a rank of its own, even if
/// several are the same processor.
fn devices() -> Vec<Choice> {
    require_opencl();
    let all: Vec<String> = list().devices.iter().map(|device| device.index.to_string()).collect();
    let all = all.join(",");
    ["host", "0", &all, &format!("{all},host")].iter().map(|s| s.parse().unwrap()).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn each_file_is_what_the_generator_makes() {
    for (name, spec) in SYSTEMS {
        let file = read_matrix(&data(&format!("{name}.mtx"))).unwrap();
        let made = spec.parse::<Spec>().unwrap().build().unwrap();
        assert_eq!((file.header.symmetry, file.duplicates), (Symmetry::Symmetric, 0), "{name}");
        assert_eq!((file.a.row_ptr(), file.a.col_idx()), (made.row_ptr(), made.col_idx()), "{name}");
        assert_eq!(bits(file.a.values()), bits(made.values()), "{name}");
    }
    let (file, made) = (read_vectors(&data(RHS)).unwrap(), right_hand_sides(&read("jumps")));
    assert_eq!(file.iter().map(|v| bits(v)).collect::<Vec<_>>(), made.map(|v| bits(&v)));
}

#[test]
fn the_page_beside_the_files_is_true() {
    let page = std::fs::read_to_string(data("README.md")).unwrap();
    for (name, spec) in SYSTEMS {
        let a = read(name);
        let longest = Stats::of(&a).row_max;
        let row = format!("| `{name}.mtx` | {} | {} | {longest} |", a.n_rows(), a.nnz());
        assert!(page.contains(&row), "data/README.md should have {row}");
        let command = format!("declive generate {spec} -o data/{name}.mtx\n");
        assert!(page.contains(&command), "data/README.md should have {command}");
    }
    let listed = SYSTEMS.iter().map(|(name, _)| format!("{name}.mtx")).chain([RHS.into()]).collect::<BTreeSet<_>>();
    let files = std::fs::read_dir(data("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.filter(|f| f.ends_with(".mtx")).collect::<BTreeSet<_>>(), listed);
}

#[test]
fn each_system_can_be_solved_everywhere() {
    for (name, _) in SYSTEMS {
        let a = read(name);
        let b = random_vector(a.n_rows(), 4);
        for devices in devices() {
            for precond in PRECONDS {
                let o = solve(&a, &b, &setup(Method::Cg, precond, Precision::F64, &devices), 1e-10);
                let what = format!("{name}, {devices}, {precond}: {}", o.reason);
                assert!(o.reason.converged(), "{what}");
                assert!(relative_residual(&a, &b, &o.x) <= 1.01e-10, "{what}");
            }
        }
    }
}

#[test]
fn the_known_solution_is_found() {
    let (a, b) = (read("jumps"), read_vectors(&data(RHS)).unwrap());
    for devices in devices() {
        let o = solve(&a, &b[1], &setup(Method::Cg, Precond::Jacobi, Precision::F64, &devices), 1e-12);
        assert!(o.reason.converged(), "{devices}: {}", o.reason);
        assert!(o.x.iter().all(|x| (x - 1.0).abs() < 1e-7), "{devices}");
    }
}

/// Not a test: `cargo test --test suite -- --ignored data::` writes the right-hand sides anew.
#[test]
#[ignore = "writes data/jumps-b.mtx"]
fn write_the_right_hand_sides() {
    let columns = right_hand_sides(&read("jumps"));
    let comments = ["for jumps.mtx: a random vector of seed 7, and A times a vector of ones".into()];
    write_vectors(std::fs::File::create(data(RHS)).unwrap(), &columns, &comments).unwrap();
}
