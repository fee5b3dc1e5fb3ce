//! The tests of the library and of the command from outside: one program, since each that is built and linked takes
//! its time.

#![allow(clippy::unwrap_used)] // the helpers, which are not seen to be tests

mod common;
mod packing;

mod amg;
mod arrays;
mod bench;
mod checkpoints;
mod cli;
mod columns;
mod complex;
mod convert;
mod data;
mod dense;
mod devices;
mod differential;
mod direct;
mod elements;
mod exchange;
mod factored;
mod faults;
mod fdtd;
mod fem;
mod formats;
mod gallery;
mod gmres;
mod hostile;
mod info;
mod interchange;
mod least_squares;
mod matrices;
mod matrix_market;
mod minres;
mod mixed;
mod npz;
mod operator;
mod options;
mod persistent;
mod preconditioner;
#[cfg(feature = "mpi")]
mod processes;
mod readme;
mod reorder;
mod report;
mod scaling;
mod segments;
mod shares;
mod single_sum;
mod singular;
mod solve;
mod solve_into;
mod store;
mod study;
mod transversal;
mod tridiagonal;
mod tune;
mod tuned;
mod turns;
mod unsymmetric;
mod values;
mod write;

/// A file that is no module would never be compiled.
#[test]
fn every_file_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let module = file.file_stem().unwrap().to_str().unwrap();
        let is_listed = include_str!("main.rs").lines().any(|line| line == format!("mod {module};"));
        assert!(module == "main" || is_listed, "{} is not in main.rs", file.display());
    }
}
