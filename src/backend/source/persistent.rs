//! The kernel that does several iterations in one launch, of a device alone, of several ranks together, or of many columns by a group each:
//! see `cl/persistent.cl`, `cl/together.cl` and [`batch`].

use std::fmt::Write;

use super::elements::{function, on_halo_function};
use super::{
    Columns, Ranks, Style, TOGETHER, arguments, batch, partials, products_of, step, sums_over_ranks, totals_of,
};
use crate::backend::barriers::barriers;
use crate::backend::program::{Multiply, Pass, Program, Step};
use crate::comm::live::MOST_VALUES;

/// Whose iterations a launch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Those of a device alone,
    Device,
    /// of one of several ranks,
    Ranks,
    /// or of many columns, by a group each.
    Columns,
}

/// The kernel that does several iterations in one launch, and the functions that it needs: see `cl/persistent.cl`.
///
/// ```text
/// NAME(matrix…, done, done_next, n, tiles, at, log_len, row_len, has_former, limit, log, iterations,
///                   sums, former, first of each product…, stride, words, turn, vectors…)
/// ```
///
/// Once the run is over, the rest of the iteration does nothing: barriers stand in no branch, which some runtimes can't compile. The
/// first iteration has row `at` of the `log_len` rows of the log, each of `row_len` numbers.
///
/// If several ranks share it, see `cl/together.cl`, there are more arguments: `(memory, indices, begin, end, sent, halo,
/// pieces, sum, exchange, ranks, most_looks)`, `indices` those of the pieces and of what products send. If each group has a column of
/// its own, see [`batch`], `limit` is an array, and in place of `words` and `turn` there are the sizes of what a column has.
pub(crate) fn kernel(program: &Program, columns: &Columns, style: Style, of: Of) -> String {
    let mut text = String::new();
    let (is_shared, is_batch) = (of == Of::Ranks, of == Of::Columns);
    let ranks = if is_shared { Ranks::WithinLaunch } else { Ranks::Alone };
    // where nothing but such launches could form the end of the last iteration
    let last = program.last.as_ref().filter(|_| of != Of::Device);
    for pass in program.passes().chain(last) {
        text.push_str(&function(pass, style));
        let on_halo = pass.on_halo(&program.has_halo);
        if is_shared && !on_halo.lines.is_empty() {
            text.push_str(&on_halo_function(&on_halo));
        }
        text.push_str(&step(pass, program, columns, ranks));
    }
    let products = program.products();
    let _ = write!(
        text,
        "KERNEL void {}(ROWS_ARGS, __global const int *done, __global int *done_next, uint n, uint tiles, uint at, \
         uint log_len, uint row_len, uint has_former, {}, __global acc *log, uint iterations, \
         __global acc *sums, __global acc *former",
        name(program, of),
        if is_batch { "__global const acc *limits" } else { "acc limit" }
    );
    (0..products).for_each(|k| text.push_str(&format!(", uint first{k}")));
    text.push_str(if is_batch { batch::SIZES } else { ", uint stride, __global uint *words, uint turn" });
    text.push_str(&vectors(program));
    if is_shared {
        text.push_str(
            ", __global volatile ulong *memory, __global const uint *indices, uint begin, uint end, uint sent, uint halo, \
             uint pieces, uint sum, uint exchange, uint ranks, uint most_looks",
        );
    }
    text.push_str(
        ")\n{\n    __local acc4 scratch[GROUP_SIZE];\n    __local uint said;\n    ROWS_LOCAL\n    \
         __local acc2 *scratch2 = (__local acc2 *)scratch;\n    uint passed = 0, i = 0;\n",
    );
    if is_batch {
        text.push_str(&batch::own(program));
        let _ = writeln!(
            text,
            "    done += column, done_next += column, log += column * {}, former += column * sums_room;\n    \
             const acc limit = limits[column];",
            columns.width
        );
    }
    text.push_str("    int goes_on = !*done;\n");
    text.push_str(if is_batch {
        batch::BARRIER // before one says there that the run is over
    } else if is_shared {
        "    __local acc totals[MOST_VALUES];\n    \
         together all = {words, memory, log + log_len * row_len, indices, sent, halo, pieces, 0, sum, exchange, ranks, most_looks};\n    \
         together *t = &all;\n    \
         sending sent_rows = {0, indices + pieces + 1, begin, end};\n    const sending *send = &sent_rows;\n    if (!all_ranks_are_there(t, goes_on, turn, at, &said))\n        return;\n"
    } else {
        "    if (!all_are_there(words, turn, log + log_len * row_len, at, &said))\n        return;\n"
    });
    text.push_str("    while (goes_on && i < iterations) {\n");
    if is_shared {
        text.push_str("        const uint has_iteration = has_former || i > 0;\n        {\n        const uint has_former = has_iteration;\n");
    }
    let waits = barriers(program);
    let (mut product, mut sends, mut takes) = (0, false, None);
    for (step, waits) in program.iteration.iter().zip(waits) {
        let meets = match step {
            Step::Pass(pass) if is_shared => sums_over_ranks(pass, program, columns),
            _ => false,
        };
        if let (Step::Pass(pass), true) = (step, meets) {
            meeting(&mut text, pass, program, columns, std::mem::take(&mut sends));
        } else if waits || matches!(step, Step::Pass(_)) && sends {
            text.push_str(match of {
                Of::Device => "        all_groups(words, ++passed);\n",
                Of::Ranks => "        all_groups(words, ++t->passed);\n",
                Of::Columns => batch::BARRIER,
            });
            text.push_str(if std::mem::take(&mut sends) { RAISE } else { "" });
        }
        match step {
            Step::Multiply(multiply) => {
                if is_shared {
                    (sends, takes) = (true, Some(multiply.y));
                    text.push_str(
                        "        t->exchange++;\n        sent_rows.to = (__global ulong *)sent_slot(t) + FLAG;\n",
                    );
                }
                let _ = writeln!(
                    text,
                    "        leave_dots(ROWS_TIMES(w{}, w{}), scratch2, former, first{product});",
                    multiply.x, multiply.y
                );
                product += 1;
            }
            Step::Pass(pass) => {
                let vectors = pass.vectors();
                let given = arguments(pass, program, ranks, |_, name| match name {
                    "now" => "(at + i) % log_len * row_len".into(),
                    "before" => "(at + i + log_len - 1) % log_len * row_len".into(),
                    "older" => "(at + i + log_len - 2) % log_len * row_len".into(),
                    "has_former" => "has_former || i > 0".into(),
                    _ if name.starts_with("dots") => "former".into(),
                    _ if name.starts_with("count") => "get_num_groups(0)".into(),
                    _ => match name.strip_prefix('v').and_then(|k| vectors.get(k.parse::<usize>().ok()?)) {
                        Some(slot) => format!("w{slot}"),
                        None => name.into(),
                    },
                });
                let of_ranks = match takes {
                    _ if !is_shared => String::new(),
                    Some(y) if !pass.on_halo(&program.has_halo).lines.is_empty() => {
                        takes = None;
                        format!("t, totals, w{y}, ")
                    }
                    _ => "t, totals, 0, ".into(),
                };
                let _ = writeln!(text, "        goes_on = form_{}(goes_on, scratch, {of_ranks}{given});", pass.name);
            }
        }
    }
    if is_shared {
        text.push_str("        }\n");
    }
    // vectors and sums take turns
    for (slot, from) in program.order.iter().enumerate().filter(|(slot, from)| *slot != **from) {
        let _ = writeln!(text, "        __global real *next{slot} = w{from};");
    }
    for (slot, _) in program.order.iter().enumerate().filter(|(slot, from)| *slot != **from) {
        let _ = writeln!(text, "        w{slot} = next{slot};");
    }
    text.push_str(
        "        __global acc *next_sums = former;\n        former = sums;\n        sums = next_sums;\n        i++;\n    }\n",
    );
    if let Some(last) = last {
        text.push_str("    {\n    __global acc *sums = former;\n");
        let of_ranks = if is_shared { "t, totals, 0, " } else { "" };
        if is_shared {
            meeting(&mut text, last, program, columns, false);
        } else {
            text.push_str(batch::BARRIER);
        }
        let given = arguments(last, program, ranks, |_, name| match name {
            "now" => "(at + i + log_len - 1) % log_len * row_len".into(),
            "before" => "(at + i + log_len - 2) % log_len * row_len".into(),
            _ => name.into(),
        });
        let _ = writeln!(text, "    goes_on = form_{}(goes_on, scratch, {of_ranks}{given});\n    }}", last.name);
    }
    text.push_str("    if (get_global_id(0) == 0) {\n        *done_next = !goes_on;\n");
    // what stays as it is, to be found in the row of the last iteration that was asked for
    for (k, _) in program.carried.iter().enumerate().filter(|(_, carried)| carried.stays) {
        let column = columns.carried(k);
        let _ = writeln!(
            text,
            "        for (uint k = i; k < iterations; k++)\n            \
             log[(at + k) % log_len * row_len + {column}] = log[(at + k + log_len - 1) % log_len * row_len + {column}];"
        );
    }
    text.push_str("    }\n}\n");
    text
}

/// All vectors, as the last arguments of a kernel.
pub(super) fn vectors(program: &Program) -> String {
    (0..program.names.len()).map(|slot| format!(", __global real *w{slot}")).collect()
}

/// The name of the kernel that does several iterations in one launch.
pub(crate) fn name(program: &Program, of: Of) -> String {
    let end = match of {
        Of::Device => "_persistent",
        Of::Ranks => TOGETHER,
        Of::Columns => "_batch",
    };
    program.method.replace('-', "_") + end
}

/// What several ranks do together in a launch of several iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meetings {
    /// Sums over ranks in an iteration,
    pub(crate) of_iteration: u32,
    /// and at the end of a launch.
    pub(crate) of_end: u32,
    /// Exchanges of halos in an iteration.
    pub(crate) exchanges: u32,
}

/// How often ranks meet, if they can have iterations of this program without the host: with products that passes leave as they are
/// while their halos are exchanged, a sum between one exchange and the next, and sums of no more values than travel together.
pub(crate) fn meetings(program: &Program) -> Option<Meetings> {
    let columns = Columns::of(program);
    let (mut of_iteration, mut exchanges, mut has_summed) = (0, 0, true);
    for step in &program.iteration {
        match step {
            Step::Multiply(Multiply { y, .. }) => {
                let is_left = program.passes().all(|pass| !pass.stores().contains(y));
                if !(program.has_halo[*y] && is_left && has_summed) {
                    return None;
                }
                (exchanges, has_summed) = (exchanges + 1, false);
            }
            Step::Pass(pass) if sums_over_ranks(pass, program, &columns) => {
                (of_iteration, has_summed) = (of_iteration + 1, true);
            }
            Step::Pass(_) => {}
        }
    }
    let mut counts = program.passes().chain(&program.last).map(|pass| totals_of(pass, program, &columns).len());
    let is_possible = exchanges > 0 && of_iteration >= exchanges && counts.all(|count| count <= MOST_VALUES);
    is_possible.then_some(Meetings { of_iteration, of_end: u32::from(program.last.is_some()), exchanges })
}

/// The sum over ranks of what a pass needs, by the group that comes last. Meanwhile, behind a product, another one says that what is sent
/// of it is there.
fn meeting(text: &mut String, pass: &Pass, program: &Program, columns: &Columns, sends: bool) {
    let products = products_of(pass, &partials(program));
    text.push_str("        {\n    come(t, &said);\n");
    for k in &products {
        let _ = writeln!(text, "    const uint count{k} = get_num_groups(0);");
    }
    let meanwhile = if sends { RAISE } else { "" };
    super::meeting(text, &totals_of(pass, program, columns), products, ["goes_on", "said"], meanwhile);
    text.push_str("        }\n");
}

/// One says that what other ranks need of a product is there.
const RAISE: &str = "    if (goes_on && get_group_id(0) == 0 && get_local_id(0) == 0)\n        raise_sent(t);\n";
