//! Krylov methods, and the solver that runs them on ranks.

mod options;
mod outcome;
mod session;

pub use options::{Control, Method, Precision, Precond, Progress, Setup, Stop};
pub use outcome::{Criterion, Indefinite, Outcome, Reason, Split};
pub use session::{RankInfo, SetupTimes, Solver};
