//! Krylov methods, and the solver that runs them on ranks.

mod cg;
mod cg_classic;
mod cg_pipelined;
mod cg_single_reduction;
mod fit;
mod iterate;
mod monitor;
mod options;
mod outcome;
mod rank;
mod recurrence;
mod reorder;
mod scaling;
mod session;
mod survey;
mod team;
mod workspace;

pub use crate::operator::choice::{Candidate, FormatChoice, Why};
pub use fit::device_bytes;
pub use options::{Control, Format, Method, Precision, Precond, Progress, Reorder, Setup, Stop, Tune};
pub use outcome::{Criterion, Indefinite, Outcome, Reason, Split};
pub use reorder::{Cause, Reordering};
pub use session::{RankInfo, SetupTimes, Solver};
pub use survey::{FormatSurvey, formats};
