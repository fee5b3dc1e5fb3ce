//! OpenCL devices: the only module that speaks to OpenCL itself.

mod ahead;
mod choice;
mod clock;
mod context;
mod faults;
mod info;
mod live;
mod memory;
mod pinned;
mod programs;
mod same;
mod select;
mod shared;
mod staging;
mod sums;
mod transfers;

pub use ahead::{Ahead, OpeningAhead, open_ahead};
pub use choice::{Choice, Pick};
pub(crate) use clock::Moment;
pub(crate) use context::{Context, Grid, Kernel, Queue, Timed};
pub(crate) use faults::{Call, Doing};
pub use info::{Info, Kind, together};
pub(crate) use live::LiveMemory;
pub(crate) use memory::DeviceVec;
pub(crate) use opencl3::Result as ClResult;
pub(crate) use opencl3::event::Event;
pub(crate) use opencl3::kernel::Kernel as ClKernel;
pub(crate) use opencl3::program::Program;
pub(crate) use pinned::Pinned;
pub use same::Identity;
pub use select::{Listing, Rejected, Selection, list, select};
pub(crate) use select::{NOT_AMONG, usable};
pub(crate) use shared::SharedContext;
pub(crate) use staging::Filling;
pub(crate) use sums::SumsRead;
pub(crate) use transfers::{Landing, PendingRead, PendingWrite};
