//! Krylov methods, and the solver that runs them on ranks.

mod account;
mod aside;
mod balance;
mod cg;
mod cg_classic;
mod cg_pipelined;
mod cg_single_reduction;
mod choose;
mod fit;
mod ground;
mod iterate;
mod monitor;
mod moves;
mod options;
mod outcome;
mod pace;
mod placement;
mod rank;
mod recurrence;
mod reorder;
mod rounds;
mod scaling;
mod session;
mod shares;
mod survey;
mod survivors;
mod team;
mod tempo;
mod whole;
mod workspace;

pub use crate::operator::choice::{Candidate, FormatChoice, Why};
pub use choose::{DeviceSet, Forecast};
pub use fit::device_bytes;
pub use options::{
    Checkpoint, Checkpoints, Control, Exchange, Format, Method, OnFailure, Precision, Precond, Progress, Reorder,
    Setup, Stop, Tune,
};
pub use outcome::{Criterion, Indefinite, Move, Outcome, Reason, Split};
pub use reorder::{Cause, Reordering};
pub use session::{RankInfo, SetupTimes, Solver};
pub use shares::{ShareSource, Shares};
pub use survey::{FormatSurvey, formats};
pub use survivors::DeviceFailure;
