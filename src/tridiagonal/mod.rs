//! Batches of tridiagonal systems `a(i) x_{i−1} + b(i) x_i + c(i) x_{i+1} = d(i)`, on an OpenCL device or on the host.
//!
//! A [`Shape`] says how many systems there are, how large, how they lie in arrays, and whether they are periodic; [`Systems`] are coefficients,
//! checked; a [`Solver`] has them where they are solved, for any number of right-hand sides. One system is a batch of one.
//!
//! Devices don't exchange rows, which is right for systems that are [diagonally dominant](Systems::is_dominant), or symmetric and positive
//! definite. Others have their residuals formed, and where these tell that rows had to be exchanged, the host solves once more.
//!
//! | method | where | bytes a row, in elements |
//! |---|---|---|
//! | [`Method::Thomas`] | device, host | 9: a, b, c, d; two written and read, x |
//! | [`Method::CyclicReduction`], [`Method::ParallelCyclicReduction`] | device, up to what local memory holds | 5 |
//! | [`Method::Hybrid`] | device, up to what registers hold | 5 |
//! | [`Method::Partition`] | device, host | 9: a, b, c, d twice, x |
//! | [`Method::Pivoting`] | host | |
//!
//! | module | its part |
//! |---|---|
//! | `systems` | what is to be solved |
//! | `host`, `pivoting` | elimination on the host's threads, without and with exchanges of rows; residuals |
//! | `device` | a device, and the levels of its partition method |
//! | `kept` | which method was the fastest on a device |
//! | `periodic` | circles that are opened and closed again |
//! | `solver` | the API |
//! | `block_systems`, `block_solver` | the same for systems of small blocks, and narrow bands |

mod block_solver;
mod block_systems;
#[cfg(test)]
mod block_tests;
mod device;
mod host;
mod kept;
mod periodic;
mod pivoting;
mod solver;
mod systems;
#[cfg(test)]
mod tests;

pub use block_solver::BlockSolver;
pub(crate) use block_solver::BlocksOnDevice;
pub use block_systems::{BlockShape, BlockSystems};
pub(crate) use device::OnDevice;
pub(crate) use kept::keep;
pub use solver::{Check, Method, Options, Outcome, Solver};
pub use systems::{Layout, Shape, Systems};
