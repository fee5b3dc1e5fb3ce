//! Where the groups of a persistent kernel must wait for each other.
//!
//! Passes take the same elements in the same work-items, so that one may follow the other at once, unless it needs a sum or a scalar
//! that the other leaves. A product reads elements that others have written, and takes rows in another way than passes do.

use std::collections::BTreeSet;

use super::program::{Multiply, Pass, Program, Step};
use super::scalar::Form;
use super::text::Slot;

/// What was done since the groups have last waited.
#[derive(Default)]
struct Since {
    /// Vectors that passes read, that they set, that products read, and that these set.
    pass_reads: BTreeSet<Slot>,
    pass_sets: BTreeSet<Slot>,
    product_reads: BTreeSet<Slot>,
    product_sets: BTreeSet<Slot>,
    /// Sums that were left, and that were read.
    sums: BTreeSet<usize>,
    sums_read: BTreeSet<usize>,
    /// Whether the log was written.
    log: bool,
}

/// Before which steps of an iteration the groups wait for each other, in every iteration but the first of a launch, where that does
/// no harm.
pub(crate) fn barriers(program: &Program) -> Vec<bool> {
    let mut all = vec![false; program.iteration.len()];
    let mut since = Since::default();
    // the second iteration sees what the first one leaves; a third, what barriers found then leave
    for _ in 0..3 {
        for (step, waits) in program.iteration.iter().zip(&mut all) {
            *waits |= match step {
                Step::Multiply(multiply) => since.delays_product(multiply),
                Step::Pass(pass) => since.delays_pass(pass, program),
            };
            if *waits {
                since = Since::default();
            }
            match step {
                Step::Multiply(multiply) => since.note_product(multiply),
                Step::Pass(pass) => since.note_pass(pass, program),
            }
        }
        since.reorder(&program.order);
    }
    all
}

impl Since {
    fn delays_product(&self, Multiply { x, y, .. }: &Multiply) -> bool {
        let is_changed = self.pass_sets.contains(x) || self.product_sets.contains(x);
        let is_in_use = [&self.pass_reads, &self.pass_sets, &self.product_reads, &self.product_sets];
        // partial sums of products have one place in every other iteration
        is_changed || is_in_use.iter().any(|of| of.contains(y)) || !self.sums_read.is_empty()
    }

    fn delays_pass(&self, pass: &Pass, program: &Program) -> bool {
        let (loads, stores) = (pass.loads(), pass.stores());
        let is_of_product = loads.iter().chain(&stores).any(|slot| self.product_sets.contains(slot))
            || stores.iter().any(|slot| self.product_reads.contains(slot));
        let awaits = awaited(pass, program);
        let is_summed = awaits.iter().any(|sum| self.sums.contains(sum))
            || pass.sums().iter().any(|sum| self.sums_read.contains(sum));
        is_of_product || is_summed || self.log && reads_log(pass, program)
    }

    fn note_product(&mut self, multiply: &Multiply) {
        self.product_reads.insert(multiply.x);
        self.product_sets.insert(multiply.y);
        self.sums.extend(multiply.sums());
    }

    fn note_pass(&mut self, pass: &Pass, program: &Program) {
        self.pass_reads.extend(pass.loads());
        self.pass_sets.extend(pass.stores());
        self.sums.extend(pass.sums());
        self.sums_read.extend(awaited(pass, program));
        self.log = true;
    }

    fn reorder(&mut self, order: &[Slot]) {
        let sets = [&mut self.pass_reads, &mut self.pass_sets, &mut self.product_reads, &mut self.product_sets];
        for set in sets {
            *set = (0..order.len()).filter(|slot| set.contains(&order[*slot])).collect();
        }
    }
}

/// The sums that a pass adds up, those that the iteration before has left, too.
fn awaited(pass: &Pass, program: &Program) -> Vec<usize> {
    let former = program.finished_by(pass).into_iter().flat_map(|last| &last.awaits);
    pass.awaits.iter().chain(former).copied().collect()
}

/// Whether a pass needs scalars that another may have left.
fn reads_log(pass: &Pass, program: &Program) -> bool {
    let checks = pass.before.iter().chain(&pass.after).map(|check| check.node);
    let is_formed = |node| !matches!(program.scalars.form(node), Form::Constant(_));
    program.is_first(pass) || pass.factors().into_iter().chain(checks).chain(pass.forms.iter().copied()).any(is_formed)
}
