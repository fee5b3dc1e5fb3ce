//! Solves large sparse linear systems `A x = b` on every OpenCL device of a machine at once.
//!
//! ```text
//! A.mtx ─ matrix_market ┐
//! A.npz ─ npz ──────────┴ Csr ─ partition ─┬ rank 0: device 0 ┐
//!                                          ├ rank 1: device 1 ├ the same solver text, sums and halos through one
//!                                          └ rank 2: the host ┘ Communicator ─ x ─ verify ─ Outcome
//! ```
//!
//! ```
//! use declive::matrix::gallery;
//! use declive::{Setup, Solver, Stop};
//!
//! # fn main() -> declive::Result<()> {
//! let a = gallery::poisson3d([10, 10, 10])?;
//! let b = vec![1.0; a.n_rows()];
//! # let setup = Setup::default().with_devices("host".parse()?);
//! # #[cfg(any())]
//! let setup = Setup::default();
//! let mut solver = Solver::new(a, &setup)?;
//! let outcome = solver.solve(&b, None, &Stop::default(), Default::default())?;
//! assert!(outcome.reason.converged() && outcome.residual.relative_2 <= 1e-8);
//! # Ok(())
//! # }
//! ```
//!
//! | module | what is there |
//! |---|---|
//! | [`matrix_market`] | the strict reader and the writer |
//! | [`npz`] | SciPy's sparse matrices, read and written |
//! | [`matrix`] | [`Csr`], [facts](matrix), [reordering](matrix::reorder), [generated systems](matrix::gallery) |
//! | [`matrix::interchange`] | matrices from and to other crates' types |
//! | [`dense`] | dense systems: LU, Cholesky and LDLᵀ factors on several devices or the host |
//! | [`device`] | which OpenCL devices there are, and which to use |
//! | [`solve`] | the [`Solver`], its options and outcomes; the [`ComplexSolver`](solve::ComplexSolver); the [`OperatorSolver`] of what is known by its products alone |
//! | [`distributed`] | systems that several processes have, for the [`SharedSolver`](solve::SharedSolver) |
//! | [`checkpoint`] | files from which a solve goes on |
//! | [`fdtd`] | electromagnetic fields in time |
//! | [`fem`] | finite elements: diffusion and elasticity on meshes, from files of Gmsh to fields |
//! | [`tridiagonal`], [`banded`] | batches of tridiagonal systems on any device; banded and block tridiagonal ones on the host |
//! | [`timeline`] | when a rank did what |
//! | [`tune`] | launch parameters for each kernel of each device, found by measurement |
//! | [`experiments`] | where the time of solves goes |
//! | [`scaling`] | what an iteration would take on many GPUs of many nodes: a model |
//! | [`bandwidth`] | what a device's memory gives |
//! | [`verify`] | b − A x in compensated arithmetic |
//!
//! | feature, all of them default but `mpi` | what needs it |
//! |---|---|
//! | `cli` | the command `declive`, and problems of [`fdtd`] and [`fem`] as files; brings `compression` and `picture` |
//! | `compression` | compressed files: `.mtx.gz` and the like, deflated arrays of `.npz` |
//! | `interchange` | [`matrix::interchange`], with the crates that it is about |
//! | `mpi` | the module `mpi`: processes that solve a system together. Needs an installed MPI, and libclang to build |
//! | `picture` | [`matrix::spy`], pictures of [`fdtd`] and [`fem`], and files of [`fem`] for ParaView |
//!
//! Inside: `partition` cuts the rows and plans halos, `comm` is how ranks synchronise, `backend`, `operator` and `precond` are what a
//! rank can do, `krylov` has the methods, `runtime` the ranks that follow them, `schedule` says which devices work on which
//! rows; `kernels` launches what stands in `cl/`, `memory` has large arrays and mapped files, `cache` what is kept between
//! runs.
//! `docs/architecture.md` tells how they work together.

mod alongside;
mod backend;
pub mod banded;
pub mod bandwidth;
mod banner;
mod cache;
pub mod checkpoint;
mod comm;
pub mod dense;
pub mod device;
mod direct;
pub mod distributed;
pub mod error;
pub mod experiments;
pub mod fdtd;
pub mod fem;
mod kernels;
mod krylov;
pub mod matrix;
pub mod matrix_market;
mod memory;
#[cfg(feature = "mpi")]
pub mod mpi;
mod named;
pub mod npz;
mod operator;
mod partition;
#[cfg(feature = "picture")]
mod picture;
mod precond;
mod real;
mod runtime;
pub mod scaling;
mod schedule;
mod setters;
pub mod solve;
pub mod timeline;
mod timing;
pub mod tridiagonal;
pub mod tune;
pub mod verify;

pub use error::{Error, ErrorKind, Result};
pub use matrix::Csr;
pub use memory::{HugePages, exit_when_short, peak_bytes};
pub use solve::{
    Columns, Control, DeviceOperator, HostOperator, HostPreconditioner, OperatorSolver, Outcome, Reason, Setup, Solver,
    Stop,
};
