//! Launch parameters for each kernel of each device, found by measurement.
//!
//! How many work-groups a kernel is started with, and how large they are, changes its time by a factor of several, and
//! what is best differs from device to device and from kernel to kernel (V. Bueno, *Solving linear systems on several
//! GPUs with OpenCL*, PUC-Rio 2013, sections 4.3 and 4.4). So both are measured.
//! [`experiment`](crate::experiments::experiment()) tells where the time of a method's iterations then goes.

mod candidates;
mod contest;
pub(crate) mod device;
pub(crate) mod formats;
mod found;
pub(crate) mod kept;
mod kernel_bench;
mod mode;
pub(crate) mod products;
mod search;
pub(crate) mod stopwatch;
pub mod store;
mod watch;
pub(crate) mod workload;

pub use crate::kernels::gemm::Tiles;
pub use crate::timing::Timing;
pub use device::{MAX_SEARCHED_PER_UNIT, rank, ranks_to_tune};
pub use found::{Chosen, Curve, DeviceFacts, Found, KernelFound, Launch, Point, Search};
pub use kept::keep;
pub use mode::Tune;
pub use products::{ProductTime, keep_product, products};
pub use watch::Watch;
