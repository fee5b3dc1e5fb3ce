//! Solves a system that the program makes itself, for two right-hand sides: `cargo run --release --example solve`.

use declive::matrix::gallery;
use declive::{Control, Setup, Solver, Stop};

fn main() -> declive::Result<()> {
    let a = gallery::jumps([40, 40, 40], 1e4, 1)?; // or matrix_market::read_matrix, Csr::new, Csr::try_from
    let n = a.n_rows();

    // The matrix goes to the devices once…
    let mut solver = Solver::new(a, &Setup::default())?;

    // …and serves any number of right-hand sides.
    for b in [vec![1.0; n], gallery::random_vector(n, 2)] {
        let outcome = solver.solve(&b, None, &Stop::default(), Control::default())?;
        let error = outcome.residual.relative_2;
        println!("{}, after {} iterations: ‖b − A x‖ / ‖b‖ = {error:.2e}", outcome.reason, outcome.iterations);
    }
    Ok(())
}
