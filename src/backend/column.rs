//! The scalars of a right-hand side, as the host has them.

use super::program::Program;

/// The scalars of a right-hand side.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) carried: Vec<f64>,
    /// Sums over all ranks, as far as they are known.
    pub(super) sums: Vec<f64>,
    /// Whether its run is over, while those of others go on: nothing of it changes any more.
    pub(super) is_over: bool,
}

impl Column {
    /// Before anything is known but the tolerance of a run.
    pub(super) fn new(program: &Program, tolerance: f64) -> Self {
        let mut sums = vec![f64::NAN; program.sums];
        program.tolerance.iter().for_each(|sum| sums[*sum] = tolerance);
        Self { carried: vec![f64::NAN; program.carried.len()], sums, is_over: false }
    }

    /// The values of all scalars.
    pub(super) fn values(&self, program: &Program) -> Vec<f64> {
        program.scalars.values(&self.sums, &self.carried)
    }

    /// What the iteration leaves to the next.
    pub(super) fn carry(&mut self, program: &Program) {
        let values = self.values(program);
        self.carried = program.carried.iter().map(|carried| values[carried.next.0]).collect();
    }
}
