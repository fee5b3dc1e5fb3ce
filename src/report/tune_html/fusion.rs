//! An iteration by fused and by separate kernels.

use declive::tune::{Found, Fusion, Iteration};
use maud::{Markup, html};

use super::figures::{NONE, Unit, column, factor};
use super::table::{Column, table};
use crate::report::units::count;

/// Whether there is something to compare.
pub(super) fn is_known(found: &[Found]) -> bool {
    found.iter().any(|one| one.fusion().is_some())
}

/// A table for each device.
pub(super) fn section(found: &[Found]) -> Markup {
    html! {
        p {
            "The kernels of an iteration without a preconditioner, with the chosen parameters, each timed alone. Fused: "
            "spmv_dot_csr and cg_step, as in cg. Separate: spmv_csr, dot_partial twice, next_iterate, "
            "next_residual and next_direction, as in cg-classic. What the host adds is not in it; it adds more to more "
            "launches."
        }
        @for one in found {
            @if let Some(fusion) = one.fusion() {
                h3 { (one.device.name) }
                (compared(one, &fusion))
            }
        }
    }
}

fn compared(found: &Found, fusion: &Fusion) -> Markup {
    let both = [fusion.fused, fusion.separate];
    let unit = Unit::of_all(both.map(|one| one.seconds));
    let with_ratio = |of: &dyn Fn(&Iteration) -> f64, ratio: Option<f64>| {
        let mut cells = column(&[of(&both[0]), of(&both[1])]);
        cells.push(ratio.map_or_else(String::new, |ratio| if ratio.is_finite() { factor(ratio) } else { NONE.into() }));
        cells
    };
    let mut launches: Vec<String> = both.iter().map(|one| count(one.launches)).collect();
    launches.push(String::new());
    let columns = [
        Column::new("launches", launches),
        Column::new(
            format!("time,\u{a0}{}", unit.name),
            with_ratio(&|one| unit.per_second * one.seconds, Some(fusion.time_ratio())),
        ),
        Column::new("MB", with_ratio(&|one| 1e-6 * one.bytes as f64, Some(fusion.bytes_ratio()))),
        Column::new("GB/s", with_ratio(&|one| 1e-9 * one.bytes as f64 / one.seconds, None)),
    ];
    let names = ["fused", "separate", "separate / fused"];
    table(&format!("Fused and separate, {}", found.device.name), "iteration", &names, &columns)
}
