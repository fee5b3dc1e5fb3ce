//! OpenCL devices.

mod choice;
mod info;
mod select;

pub use choice::{Choice, Pick};
pub use info::{Info, Kind};
pub use select::{Listing, Rejected, Selection, list, measure_copy_bandwidth, select};
