//! The part of the Python package `declive` that is written in Rust: arrays in, arrays and JSON out. What its users see, and what they may
//! leave out, is decided in the package itself, `python/declive`.

mod arrays;
mod devices;
mod errors;
mod files;
mod functions;
mod matrix;
mod options;
mod preconditioner;
mod process;
mod report;
mod run;
mod solver;

/// Large arrays are filled sooner.
#[global_allocator]
static MEMORY: declive::HugePages = declive::HugePages;

/// What the package is made of.
#[pyo3::pymodule]
mod _declive {
    #[pymodule_export]
    use crate::devices::{close_idle, devices, find_launches};
    #[pymodule_export]
    use crate::files::{coordinates, generate, problems, read};
    #[pymodule_export]
    use crate::matrix::Matrix;
    #[pymodule_export]
    use crate::options::all_options;
    #[pymodule_export]
    use crate::preconditioner::Preconditioner;
    #[pymodule_export]
    use crate::solver::Solver;
}
