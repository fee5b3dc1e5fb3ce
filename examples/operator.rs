//! A system known by its products alone, as a function on the host: `cargo run --release --example operator [SIDE]`.

use declive::{Control, HostOperator, OperatorSolver, Setup, Stop};

fn main() -> declive::Result<()> {
    let side: usize = std::env::args().nth(1).and_then(|side| side.parse().ok()).unwrap_or(60);
    let n = side * side;

    // −Δu on a square, by five points, with 0 on the boundary. Nobody stores the matrix.
    let laplace = move |u: &[f64], v: &mut [f64]| {
        for (k, out) in v.iter_mut().enumerate() {
            let (i, j) = (k % side, k / side);
            let beside = [
                (i > 0).then(|| u[k - 1]),
                (i + 1 < side).then(|| u[k + 1]),
                (j > 0).then(|| u[k - side]),
                (j + 1 < side).then(|| u[k + side]),
            ];
            *out = 4.0 * u[k] - beside.into_iter().flatten().sum::<f64>();
        }
    };
    let a = HostOperator::new(n, laplace).with_diagonal(vec![4.0; n]);

    let mut solver = OperatorSolver::new(a, &Setup::default())?;
    let outcome = solver.solve(&vec![1.0; n], None, &Stop::default(), Control::default())?;
    let error = outcome.residual.relative_2;
    println!("{}, after {} iterations: ‖b − A x‖ / ‖b‖ = {error:.2e}", outcome.reason, outcome.iterations);
    Ok(())
}
