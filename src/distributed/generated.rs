//! Rows of generated systems.

use super::balance::rebalanced;
use super::rows::{Rows, even_starts};
use crate::Result;
use crate::comm::processes::{Processes, agreed};
use crate::matrix::gallery::Spec;

/// Makes a test system, so that each process has some rows, which cost about as much on all. Collective.
///
/// Of stencils on grids, each process makes only its own rows: `poisson2d`, `poisson3d`, `poisson3d27`, `anisotropic`, `jumps`,
/// `variable`, `neumann2d`, `helmholtz3d` and `convection3d`, unless they are scrambled. All other systems each process
/// makes as a whole, and keeps its own rows: that takes the memory and the time of one process alone.
///
/// # Errors
/// As [`Spec::build`]; a failed process.
pub fn generated(processes: &dyn Processes, spec: &Spec) -> Result<Rows> {
    rebalanced(processes, agreed(processes, own_rows(processes, spec))?)
}

fn own_rows(processes: &dyn Processes, spec: &Spec) -> Result<Rows> {
    let own = processes.process();
    let starts = |n_rows: usize| even_starts(n_rows as u64, processes.count());
    let mut n_rows = 0;
    let some = spec.build_rows(|n| {
        n_rows = n;
        let starts = starts(n);
        starts[own] as usize..starts[own + 1] as usize
    })?;
    match some {
        Some(a) => Rows::of(&a, [0, a.n_rows()], starts(n_rows), n_rows as u64),
        None => {
            let a = spec.build()?;
            let starts = starts(a.n_rows());
            Rows::of(&a, [starts[own] as usize, starts[own + 1] as usize], starts, a.n_rows() as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::joined;
    use super::*;
    use crate::comm::processes::simulated::processes;
    use crate::matrix::gallery::Problem;

    #[test]
    fn as_one_makes_them() {
        for problem in Problem::ALL.iter().filter(|problem| !problem.class.is_complex()) {
            for size in [1, 6] {
                for end in ["", ",scramble=3"] {
                    let spec: Spec = format!("{}:{size}{end}", problem.name).parse().unwrap();
                    let Ok(a) = spec.build() else { continue };
                    for count in [1, 2, 3, 5] {
                        let parts = processes(count, |all| generated(&*all, &spec).unwrap());
                        assert_eq!(joined(&parts), a, "{spec} by {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn errors_reach_all() {
        let spec: Spec = "gauge2d:5".parse().unwrap();
        let errors = processes(2, |all| generated(&*all, &spec).unwrap_err().to_string());
        assert!(errors.iter().all(|error| error.contains("complex")), "{errors:?}");
    }
}
