//! The [`Solver`], the [`ComplexSolver`] and the [`OperatorSolver`], what they are told, and what they give.

mod any_operator;
mod chain;
mod columns;
mod complex;
mod dense;
mod dense_columns;
mod factorised;
mod facts;
mod iteration_times;
mod memory;
mod methods;
mod null_space;
mod operator;
mod operator_precond;
pub mod options;
mod outcome;
mod patience;
mod preconditioner;
mod reach;
mod rebalancing;
mod recovery;
mod rounds;
mod session;
mod shared;
mod statistics;
mod subject;
mod turns;
mod under_way;
mod values;

pub use crate::krylov::{Criterion, Indefinite, MOST_RESTART, Method, Reason, Singularity};
pub use crate::operator::choice::{FormatCandidate, FormatChoice, Why};
pub use crate::operator::{Columns, DeviceOperator, Exchange, Format, HostOperator};
pub use crate::precond::{Hierarchy, HostPreconditioner, LevelInfo, NearNull, Precond};
pub use crate::real::Precision;
pub use crate::runtime::{
    Checkpoint, Checkpoints, Control, Early, OnFailure, Progress, RankInfo, Reorder, Setup, SetupTimes, ShareSource,
    Shares, Stop, device_bytes,
};
pub use crate::schedule::{Cause, DeviceSet, Forecast, FormatBytes, FormatSurvey, Reordering, formats};
pub use crate::timeline::Split;
pub use crate::tune::Tune;
pub use any_operator::{Operator, RanksOperator};
pub use chain::{Candidate, candidates};
pub use complex::ComplexSolver;
pub use dense::{DenseFactors, Exchanges, dense_first, is_dense};
pub use factorised::factorises_first;
pub use memory::{Remembered, Took, remembered};
pub use operator::OperatorSolver;
pub use options::Options;
pub use outcome::{Move, Outcome, Switch};
pub use patience::first_look;
pub use preconditioner::Preconditioner;
pub use recovery::DeviceFailure;
pub use session::Solver;
pub use shared::{Cut, SharedSolver};
