//! What a machine asks of whoever does its passes.

use std::ops::Range;

use super::batch::Batch;
use super::program::{Pass, Program, Stage};
use super::text::Slot;
use crate::backend::{Backend, Record};
use crate::error::Result;
use crate::partition::HaloPlan;

/// Iterations take turns with room for sums: those of an iteration's passes stay until the next one has formed what it needs of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn(pub(crate) usize);

impl Turn {
    /// That of the passes of an iteration; 0 comes before the first.
    pub(crate) fn of(iteration: u64) -> Self {
        Self((iteration % 2) as usize)
    }

    /// That of its products, whose sums are needed together with those that the passes of the former iteration have left.
    pub(crate) fn of_products(iteration: u64) -> Self {
        Self::of(iteration + 1)
    }
}

/// A pass of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Which {
    /// The part that it is in,
    pub(crate) stage: Stage,
    /// and its place there.
    pub(crate) step: usize,
    /// Whether it is what ranks do on their halos.
    pub(crate) is_halo: bool,
}

impl Which {
    /// The name of its kernel, where the host gives the factors: that of an iteration's pass has another one that forms them.
    pub(crate) fn kernel(self, pass: &Pass) -> String {
        let has_other = self.stage == Stage::Iteration && !self.is_halo;
        if has_other { format!("{}_given", pass.name) } else { pass.name.clone() }
    }
}

/// What does passes: a device or the host.
pub(crate) trait PassBackend: Backend {
    /// The passes of a program, ready to be done, and what they leave.
    type Passes;

    /// Makes the passes of a program ready.
    ///
    /// # Errors
    /// A compiler that fails, or not enough memory.
    fn compile(&self, program: &Program) -> Result<Self::Passes>;

    /// Does a pass, with these factors, on the elements in `place` of those of `vectors` that are in these slots, and sets this rank's parts of its
    /// sums out. Of several [columns](Backend::columns), the first factor of each comes first, then the second of each, and so on; then 1 for each
    /// that the pass is done for, or 0.
    ///
    /// # Errors
    /// A failing device.
    fn pass(
        &self,
        passes: &mut Self::Passes,
        which: Which,
        pass: &Pass,
        factors: &[f64],
        vectors: (&mut [Self::Vector], &[Slot]),
        place: (Range<usize>, Turn),
    ) -> Result<()>;

    /// Room for the sums of product `product` of an iteration, to be put back with them.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn take_dots(&self, passes: &mut Self::Passes, product: usize, turn: Turn) -> Result<Self::ProductSums>;

    /// Puts it back.
    fn put_dots(&self, passes: &mut Self::Passes, product: usize, turn: Turn, dots: Self::ProductSums);

    /// Replaces values by their sums over all ranks, at most [`MAX_SUMS`](crate::comm::MAX_SUMS) of them.
    ///
    /// # Errors
    /// A failing rank.
    fn sum_over_ranks(&self, values: &mut [f64]) -> Result<()>;

    /// Lets this rank's parts of sums set out, as what has been enqueued will have left them, beside whatever is enqueued
    /// later: [`parts`](Self::parts) of the same sums comes before any other.
    ///
    /// # Errors
    /// A failing device.
    fn send_parts(&self, passes: &mut Self::Passes, wanted: &[(usize, Turn)]) -> Result<()> {
        let _ = (passes, wanted);
        Ok(())
    }

    /// This rank's parts of sums, waited for, by their numbers; those of several columns side by side.
    ///
    /// # Errors
    /// A failing device.
    fn parts(&self, passes: &mut Self::Passes, wanted: &[(usize, Turn)], values: &mut [f64]) -> Result<()>;

    /// Whether passes form their factors by themselves, so that nothing waits for the host: [`pass_ahead`](Self::pass_ahead) in place
    /// of [`pass`](Self::pass).
    fn runs_ahead(&self) -> bool {
        false
    }

    /// Prepares for a run of iterations ahead of the host, before the first of which carried scalars have these values.
    ///
    /// # Errors
    /// A failing device.
    fn begin_ahead(&self, passes: &mut Self::Passes, carried: &[f64]) -> Result<()> {
        let _ = (passes, carried);
        Ok(())
    }

    /// Enqueues a pass, number `number` of those of an iteration, on vectors of which the halo of one may be `arriving`: it is exchanged
    /// before. Nothing is done once the run is over: when ‖r‖² is at most `limit`, or a check has failed.
    ///
    /// # Errors
    /// A failing device.
    fn pass_ahead(
        &self,
        passes: &mut Self::Passes,
        (pass, number): (&Pass, usize),
        iteration: u64,
        limit: f64,
        (v, arriving): (&mut [Self::Vector], Option<Slot>),
    ) -> Result<()> {
        let _ = (passes, pass, number, iteration, limit, v, arriving);
        unreachable!("only what runs ahead does so")
    }

    /// Prepares for several iterations in one launch with all of these rows, where `bytes` are moved in an iteration, if it is worth
    /// that, and if the device can do it.
    ///
    /// # Errors
    /// Not enough memory.
    fn prepare_several(
        &self,
        passes: &mut Self::Passes,
        program: &Program,
        rows: Option<Self::Rows<'_>>,
        halo: Option<&HaloPlan>,
        bytes: u64,
    ) -> Result<()> {
        let _ = (passes, program, rows, halo, bytes);
        Ok(())
    }

    /// Begins a run of iterations that several ranks make without the host, with all of these rows, before the first of which carried scalars
    /// have these values and halos are filled: all as the one that can do least. Says whether all can; collective.
    ///
    /// # Errors
    /// A failing device or rank.
    fn begin_together(
        &self,
        passes: &mut Self::Passes,
        program: &Program,
        rows: Option<Self::Rows<'_>>,
        carried: &[f64],
    ) -> Result<bool>;

    /// Ends it, once all that was launched is over: until then kernels need each other.
    ///
    /// # Errors
    /// A failing device.
    fn end_together(&self, passes: &mut Self::Passes) -> Result<()>;

    /// Enqueues several iterations from `iteration` on, at most `most`, and tells which one comes next. That may be an earlier one,
    /// where it has become known that former launches were refused: all is then as it was before that iteration. `None`, and nothing
    /// is done, if iterations are to be made one by one.
    ///
    /// # Errors
    /// A failing device.
    fn several_ahead(
        &self,
        passes: &mut Self::Passes,
        rows: Option<Self::Rows<'_>>,
        (iteration, most): (u64, u64),
        limit: f64,
        v: &mut [Self::Vector],
    ) -> Result<Option<u64>> {
        let _ = (passes, rows, iteration, most, limit, v);
        Ok(None)
    }

    /// `to` = columns `which` of `from`, which has `of` of them. `to` has as many columns as the backend; those beyond `which` are anything.
    ///
    /// # Errors
    /// A failing device.
    fn take_columns(
        &self,
        passes: &Self::Passes,
        from: (&Self::Vector, usize),
        which: &[usize],
        to: &mut Self::Vector,
    ) -> Result<()>;

    /// Compiles a program of which a work-group iterates for a column of its own, of so many; `None` if that can't be done with these
    /// rows.
    ///
    /// # Errors
    /// A compiler that fails.
    fn batch(&self, program: Program, rows: Self::Rows<'_>, columns: usize) -> Result<Option<Box<dyn Batch<Self>>>>
    where
        Self: Sized,
    {
        let _ = (program, rows, columns);
        Ok(None)
    }

    /// Lets launches of several iterations fail from now on; says whether there are any.
    #[cfg(test)]
    fn refuse_several(&self, passes: &mut Self::Passes) -> bool {
        let _ = passes;
        false
    }

    /// What carried scalar `k` is after iteration `iteration`, the last one that was enqueued, or, if the run was over before, what it
    /// was then.
    ///
    /// # Errors
    /// A failing device.
    fn carried_ahead(&self, passes: &Self::Passes, iteration: u64, k: usize) -> Result<f64> {
        let _ = (passes, iteration, k);
        unreachable!("only what runs ahead does so")
    }

    /// Adds to `records` what has become known up to `iteration`, late and in batches, or with `drain` all of it.
    ///
    /// # Errors
    /// A failing device.
    fn look(
        &self,
        passes: &mut Self::Passes,
        program: &Program,
        iteration: u64,
        drain: bool,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let _ = (passes, program, iteration, drain, records);
        Ok(())
    }
}
