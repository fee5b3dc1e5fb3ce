//! Maxwell's equations in the time domain, by the finite differences of [Yee 1966](https://doi.org/10.1109/TAP.1966.1138693).
//!
//! ```text
//! μ ∂H/∂t = −∇ × E − σ* H        ε ∂E/∂t = ∇ × H − σ E
//! ```
//!
//! E and H are known at places half a cell apart and at times half a step apart, so that differences between neighbours are
//! derivatives just where and when they are needed: second order in space and time. With `a = (1 − s) / (1 + s)` and `b = (Δt / ε) / (1 + s)`, `s = σ Δt / 2 ε`,
//! a step is `E ← a E + b ∇ × H`, and the same with μ and σ* of H. It is stable up to a [largest step](Problem::largest_step).
//!
//! A [`Problem`] says what there is: a [`Grid`], [`Material`]s, [`Pml`] layers in front of walls that are perfect conductors, [`Source`]s
//! and [`Probe`]s. A [`Simulation`] has it on devices. The grid is divided among ranks by planes; on any devices, and on any number of
//! them, the fields have the same bits.
//!
//! | module | its part |
//! |---|---|
//! | `problem`, with `grid`, `material`, `shape`, `source`, `pml` | what is to be computed, checked |
//! | `slab` | a rank's planes, how arrays have them, and the layers among them |
//! | `host`, `opencl` | a rank on the host's threads, on a device |
//! | `ranks`, `team`, `placement` | steps of all ranks and their halos; fields of all; who has which planes |
//! | `file`, `picture` | problems as files, with the feature `cli`; pictures of fields, with the feature `picture` |
//! | `simulation`, `state`, `energy` | the API; checkpoints; the energy of discrete fields |

mod backend;
mod energy;
#[cfg(feature = "cli")]
mod file;
mod grid;
mod host;
mod material;
mod opencl;
#[cfg(feature = "picture")]
mod picture;
mod placement;
mod pml;
mod problem;
mod ranks;
mod shape;
mod simulation;
mod slab;
mod source;
mod state;
mod team;
#[cfg(test)]
mod tests;

#[cfg(feature = "cli")]
pub use file::{Plan, Snapshot};
pub use grid::{Component, Grid, Mode};
pub use material::{MOST_MATERIALS, Material, Vacuum};
#[cfg(feature = "picture")]
pub use picture::Picture;
pub use pml::{Growth, Pml};
pub use problem::{COURANT, Probe, Problem, TimeStep};
pub use shape::Shape;
pub use simulation::{Options, RankInfo, Simulation};
pub use source::{Source, Waveform};
pub use state::State;
