//! An iteration of the conjugate gradients of the crate kryst, and its product, on the systems of files.
//!
//! ```text
//! cargo build --release --manifest-path benches/peers/kryst/Cargo.toml
//! benches/peers/kryst/target/release/declive-peer-kryst A.npz [MORE.npz] [--iterations 50]
//! ```
//!
//! Double precision, no preconditioner, on all cores. Prints one JSON document a line, for each file: microseconds as
//! [lower quartile, median, upper quartile].

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use declive::matrix::gallery::random_vector;
use declive::{Csr, npz};
use kryst::context::ksp_context::Workspace;
use kryst::matrix::LinOp;
use kryst::matrix::op::CsrOp;
use kryst::matrix::sparse::CsrMatrix;
use kryst::parallel::{RayonComm, UniverseComm};
use kryst::preconditioner::PcSide;
use kryst::solver::{CgSolver, LinearSolver};
use serde_json::{Value, json};

/// Solves that are timed, after one for nothing, and a quarter of the products.
const BLOCKS: usize = 5;

/// Microseconds of what `call` counts.
fn quartiles(blocks: usize, mut call: impl FnMut() -> Result<usize, Box<dyn Error>>) -> Result<Value, Box<dyn Error>> {
    let mut samples = Vec::new();
    for _ in 0..=blocks {
        let start = Instant::now();
        let count = call()?;
        samples.push(start.elapsed().as_secs_f64() * 1e6 / count as f64);
    }
    samples.remove(0);
    samples.sort_by(f64::total_cmp);
    let last = samples.len() - 1;
    Ok(json!({ "microseconds": [samples[last / 4], samples[last / 2], samples[3 * last / 4]] }))
}

fn measure(path: &str, iterations: usize) -> Result<Value, Box<dyn Error>> {
    let a: Csr = npz::read(Path::new(path))?.into_real().ok_or_else(|| format!("{path} is complex"))?;
    let (n, nnz) = (a.n_rows(), a.nnz());
    let (_, _, row_ptr, cols, values) = a.into_raw_parts();
    let cols = cols.into_iter().map(|j| j as usize).collect();
    let comm = UniverseComm::Rayon(RayonComm::new());
    let a = Arc::new(CsrMatrix::from_csr(n, n, row_ptr, cols, values));
    let a = CsrOp::new(a).with_comm(comm.clone());
    let (b, mut y) = (random_vector(n, 1), vec![0.0; n]);
    let product = quartiles(4 * BLOCKS, || {
        a.try_matvec(&b, &mut y)?;
        Ok(1)
    })?;
    let mut solver = CgSolver::new(0.0, iterations);
    let mut workspace = Workspace::default();
    LinearSolver::setup_workspace(&mut solver, &mut workspace);
    let cg = quartiles(BLOCKS, || {
        let mut x = vec![0.0; n];
        let (a, side, work) = (&a as &dyn LinOp<S = f64>, PcSide::Left, Some(&mut workspace));
        Ok(LinearSolver::solve(&mut solver, a, None, &b, &mut x, side, &comm, None, work)?.iterations)
    })?;
    let threads = rayon::current_num_threads();
    Ok(json!({"version": 1, "file": path, "n": n, "nnz": nnz, "threads": threads, "product": product, "cg": cg}))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut files, mut iterations) = (Vec::new(), 50);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--iterations" => iterations = words.next().ok_or("--iterations needs a number")?.parse()?,
            option if option.starts_with('-') => return Err(format!("unknown option {option}").into()),
            file => files.push(file.to_owned()),
        }
    }
    for file in files {
        println!("{}", measure(&file, iterations)?);
    }
    Ok(())
}
