//! A matrix whose values change from step to step, as in time or in a nonlinear solve: `cargo run --release --example steps [PROBLEM]`.

use std::time::Instant;

use declive::matrix::gallery::Spec;
use declive::{Control, HugePages, Setup, Solver, Stop};

/// Large arrays are filled sooner.
#[global_allocator]
static MEMORY: HugePages = HugePages;

fn main() -> declive::Result<()> {
    let problem = std::env::args().nth(1).unwrap_or_else(|| "variable:40".into());
    let a = problem.parse::<Spec>()?.build()?;
    let (n, values) = (a.n_rows(), a.values().to_vec());
    let start = Instant::now();
    let mut solver = Solver::new(a, &Setup::default())?;
    println!("a new solver for {n} rows: {:.3} s", start.elapsed().as_secs_f64());

    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
    for step in 1..=4 {
        // a material that gets stiffer
        let stiffer: Vec<f64> = values.iter().map(|v| v * (1.0 + 0.01 * f64::from(step))).collect();
        let start = Instant::now();
        solver.update_values(stiffer)?;
        let (updated, start) = (start.elapsed().as_secs_f64(), Instant::now());
        let outcome = solver.solve_into(&b, &mut x, &Stop::default(), Control::default())?; // from the x of the step before
        let solved = start.elapsed().as_secs_f64();
        println!("step {step}: values {updated:.3} s, solve {solved:.3} s, {} iterations", outcome.iterations);
    }
    Ok(())
}
