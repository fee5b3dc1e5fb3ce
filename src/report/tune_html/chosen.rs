//! The chosen parameters.

use declive::tune::{Found, KernelFound, Launch};
use maud::{Markup, html};

use super::figures::{Unit, column, factor, hundredths};
use super::table::{Column, table};
use crate::report::units::{count, plural};

/// A table for each device.
pub(super) fn section(found: &[Found]) -> Markup {
    html! {
        @for one in found {
            h3 { (one.device.name) }
            (kernels(one))
            @for (launch, names) in defaults(&one.kernels) {
                p.small { "Default launch of " (names.join(", ")) ": " (in_words(launch)) "." }
            }
        }
    }
}

fn kernels(found: &Found) -> Markup {
    let kernels = &found.kernels;
    let names: Vec<&str> = kernels.iter().map(|kernel| &*kernel.kernel).collect();
    let unit = Unit::of_all(kernels.iter().map(|kernel| kernel.chosen.timing.median));
    let numbers = |of: &dyn Fn(&KernelFound) -> f64| column(&kernels.iter().map(of).collect::<Vec<_>>());
    let times = |of: &dyn Fn(&KernelFound) -> f64| numbers(&|kernel| unit.per_second * of(kernel));
    let texts = |of: &dyn Fn(&KernelFound) -> String| kernels.iter().map(of).collect::<Vec<_>>();
    let mut columns = vec![
        Column::new(format!("best,\u{a0}{}", unit.name), times(&|k| k.chosen.timing.median)),
        Column::new("groups a\u{a0}unit", texts(&|k| count(k.chosen.launch.groups_per_unit))),
        Column::new("local\u{a0}size", texts(&|k| count(k.chosen.launch.group_size))),
    ];
    if kernels.iter().any(|kernel| kernel.chosen.launch.block_nnz > 0) {
        let block = |entries| if entries > 0 { count(entries) } else { String::new() };
        columns.push(Column::new("row\u{a0}block", texts(&|k| block(k.chosen.launch.block_nnz))));
        let items = |launch: Launch| if launch.block_nnz > 0 { count(launch.items_per_row) } else { String::new() };
        columns.push(Column::new("items a\u{a0}row", texts(&|k| items(k.chosen.launch))));
    }
    columns.extend([
        Column::new("GB/s", numbers(&|k| 1e-9 * k.bytes_per_second())),
        Column::new(
            "of\u{a0}the limit,\u{a0}%",
            texts(&|k| hundredths(k.bytes_per_second() / found.limit_bytes_per_second)),
        ),
        Column::new("×\u{a0}default", texts(&|k| factor(k.speedup()))),
    ]);
    table(&format!("Chosen parameters, {}", found.device.name), "kernel", &names, &columns)
}

/// The default launches, each with its kernels.
fn defaults(kernels: &[KernelFound]) -> Vec<(Launch, Vec<&str>)> {
    let mut launches: Vec<(Launch, Vec<&str>)> = Vec::new();
    for kernel in kernels {
        let launch = kernel.default.launch;
        match launches.iter_mut().find(|(known, _)| *known == launch) {
            Some((_, names)) => names.push(&kernel.kernel),
            None => launches.push((launch, vec![&kernel.kernel])),
        }
    }
    // where there is but one, names say nothing
    if let [(_, names)] = &mut *launches {
        *names = vec!["all kernels"];
    }
    launches
}

fn in_words(launch: Launch) -> String {
    let Launch { group_size, groups_per_unit, block_nnz, items_per_row } = launch;
    let groups = plural(groups_per_unit, "group");
    let mut text = format!("{groups} a unit of {}", plural(group_size, "work-item"));
    if block_nnz > 0 {
        text += &format!(", row blocks of {}", plural(block_nnz, "entry"));
    }
    if items_per_row > 1 {
        text += &format!(", {} a row", plural(items_per_row, "work-item"));
    }
    text
}
