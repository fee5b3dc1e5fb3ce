//! Processes that solve a system together, by MPI. Needs the feature `mpi`.

pub use crate::comm::processes::mpi::World;
