//! Which devices work on a system, on which rows, and in what order these are.

mod choose;
pub(crate) mod columns;
mod forecast;
mod latency;
mod multigrid;
mod performance_model;
mod placement;
mod reorder;
mod speed;
mod survey;

pub(crate) use choose::{Chosen, choose};
pub use forecast::{DeviceSet, Forecast};
pub(crate) use multigrid::for_multigrid;
pub(crate) use performance_model::speeds;
pub(crate) use placement::{Speed, shared, steadied};
pub use reorder::{Cause, Reordering};
pub(crate) use reorder::{Ordered, is_in_good_order};
pub use survey::{FormatBytes, FormatSurvey, formats};
