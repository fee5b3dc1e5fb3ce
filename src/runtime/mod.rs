//! Ranks, and what keeps them going: opened on devices with their rows of a system, run until their [`Monitor`] says so,
//! snapshots of their iterates meanwhile.

mod control;
mod iterate;
mod iteration_time;
mod least_squares;
pub(crate) mod loaded;
pub(crate) mod memory_check;
mod monitor;
pub(crate) mod patience;
mod rank;
pub(crate) mod rebalance;
mod setup;
mod shares;
pub(crate) mod snapshot;
mod team;
mod watch;
mod whole;

pub use control::{Checkpoint, Checkpoints, Control, Early, Progress, Stop};
#[cfg(test)]
pub(crate) use iterate::Plain;
pub use memory_check::device_bytes;
pub(crate) use monitor::Monitor;
pub(crate) use rank::columns::ColumnsEnded;
pub(crate) use rank::operator::{OfPreconditioner, rows_a_second};
pub(crate) use rank::{Ended, SHARED_LEVEL};
pub use setup::{OnFailure, Reorder, Setup};
pub(crate) use shares::by_speed;
pub use shares::{ShareSource, Shares};
pub(crate) use snapshot::Position;
pub(crate) use team::{Placement, Ranks};
pub use team::{RankInfo, SetupTimes};
pub(crate) use watch::{End, Goal, Watch};
pub(crate) use whole::Whole;
