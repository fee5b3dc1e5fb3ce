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
    /// Before anything is known.
    pub(super) fn new(program: &Program) -> Self {
        let [carried, sums] = [program.carried.len(), program.sums].map(|count| vec![f64::NAN; count]);
        Self { carried, sums, is_over: false }
    }

    /// Takes note of the tolerance of a run.
    pub(super) fn set_tolerance(&mut self, program: &Program, tolerance: f64) {
        program.tolerance.iter().for_each(|sum| self.sums[*sum] = tolerance);
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
