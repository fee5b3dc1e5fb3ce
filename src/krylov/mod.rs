//! Krylov methods, each written once for all ranks, and what they need.
//!
//! A method is a text over a [`Recorder`](crate::backend::text::Recorder), which [`run()`] runs, or a function over
//! [`Backend`](crate::backend::Backend). Either gets an [`Iterate`] and a [`Judge`], who tells when it ends.

mod application;
mod bicgstab;
mod bicgstab2;
mod cg;
mod cg_classic;
mod cg_flexible;
mod cg_pipelined;
mod cg_single_reduction;
mod cg_textbook;
mod gmres;
mod idr;
mod iterate;
mod judge;
mod least_squares;
mod lsmr;
mod method;
mod minres;
mod previous_step;
mod run;
mod steepest;
mod verdict;
mod workspace;

pub(crate) use application::{Application, Through};
pub(crate) use cg_classic::cg_classic;
pub(crate) use cg_flexible::{OF_SCALED, Preconditioned, cg_flexible};
pub(crate) use gmres::{Gmres, gmres};
pub use gmres::{MOST_RESTART, RESTART};
pub(crate) use iterate::Iterate;
pub(crate) use judge::Judge;
pub use method::Method;
pub(crate) use previous_step::curvature;
pub(crate) use run::{lend, run};
pub(crate) use verdict::Verdict;
pub use verdict::{Criterion, Indefinite, Reason, Singularity};
pub(crate) use workspace::Workspace;
