//! A matrix on a rank: the block of rows that the rank owns, times a vector whose halo other ranks fill.

pub(crate) mod by_dictionary;
pub(crate) mod choice;
pub(crate) mod csr;
pub(crate) mod device_rows;
pub(crate) mod dictionary;
pub(crate) mod distributed;
pub(crate) mod exchange;
mod format;
pub(crate) mod function;
pub mod host;
mod main_pattern;
pub(crate) mod opencl;
pub(crate) mod plan;
pub(crate) mod row_blocks;
mod segments;
pub(crate) mod sell;
mod text;

pub use exchange::Exchange;
pub use format::Format;
pub use function::HostOperator;
pub use text::{Columns, DeviceOperator};
