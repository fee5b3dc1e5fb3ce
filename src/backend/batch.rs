//! Many columns of a system that is so small that a work-group iterates for one.

use std::ops::Range;

use super::vectors::{Backend, Record};
use crate::error::Result;

/// Runs of a program for many columns, each with scalars and an end of its own. Vectors of columns lie one behind the other.
pub(crate) trait Batch<O: Backend>: Send {
    /// The most iterations of a launch.
    fn longest(&self) -> u64;

    /// Forms the residuals of these columns, and does what comes before the first iteration. Gives what the test looks at of each.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    fn begin(&mut self, backend: &O, on: On<'_, O>, b: &[O::Real], x: &[O::Real]) -> Result<Vec<f64>>;

    /// Goes on from there, for columns whose run is not `over`, until ‖r‖² is at most that column's limit, or a check fails.
    ///
    /// # Errors
    /// A failing device, or not enough memory.
    fn start(&mut self, backend: &O, limits: &[f64], over: &[bool]) -> Result<()>;

    /// Enqueues these iterations.
    ///
    /// # Errors
    /// A failing device.
    fn launch(&mut self, backend: &O, on: On<'_, O>, iterations: Range<u64>) -> Result<()>;

    /// Launches that nobody has looked at yet.
    fn under_way(&self) -> usize;

    /// Waits for the first of these, and tells `see` what each column's iterations were, in order, until it says that the column's run is
    /// over. Gives the iterations of the launch.
    ///
    /// # Errors
    /// A failing device.
    fn look(
        &mut self,
        backend: &O,
        over: &[bool],
        see: &mut dyn FnMut(usize, &Record) -> bool,
    ) -> Result<Option<Range<u64>>>;

    /// The iterates.
    ///
    /// # Errors
    /// A failing device.
    fn finish(&mut self, backend: &O, on: On<'_, O>) -> Result<Vec<O::Real>>;
}

/// What a batch works with.
pub(crate) struct On<'a, O: Backend> {
    /// All rows of the matrix.
    pub(crate) rows: O::Rows<'a>,
    /// The weights of the residual, if the system is scaled.
    pub(crate) weights: Option<&'a O::Vector>,
}
