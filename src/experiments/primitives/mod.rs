//! How fast scans, compaction and sorting by key are on a device, and the host's own way beside them.

mod case;
mod on_device;
mod task;

pub use case::Case;
pub use on_device::{Launch, Measured, OnDevice};
pub use task::{Key, Task};
