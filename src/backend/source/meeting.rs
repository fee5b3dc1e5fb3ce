//! What several ranks do between launches: see `cl/together.cl`.

use std::fmt::Write;

use super::{Columns, Given, Total, add_totals, arguments, totals_of};
use crate::backend::program::{Pass, Program, Step};

/// What several ranks do before a pass: a kernel in whose first group they sum what the pass needs, and leave the totals; the other groups
/// send what other ranks need of a vector.
///
/// ```text
/// NAME_meeting(done, n, tiles, now, before, [older, has_former], limit, log, (partials, first, count) of products…,
///              sums, [former], stride, memory, send, sent, sum, exchange, behind, most_looks, vector)
/// ```
pub(crate) fn kernel(pass: &Pass, program: &Program, columns: &Columns) -> String {
    let totals = totals_of(pass, program, columns);
    let declared = arguments(pass, program, Given::Partials, |of, name| format!("{of}{name}"));
    let mut text = format!(
        "KERNEL void {}(__global const int *done, {declared}, \
         __global volatile ulong *memory, __global const uint *send, uint sent, uint sum, uint exchange, uint behind, \
         uint most_looks, __global real *vector)\n{{\n    __local acc4 scratch[GROUP_SIZE];\n    \
         const int is_on = !*done;\n    const uint is_one = get_num_groups(0) == 1, sender = get_group_id(0) - !is_one;\n    \
         together t = {{0, memory, log + behind + BEHIND, log + behind, send, 0, sent, 0, 0, 0, sum, exchange, 0, most_looks}};\n    \
         send_halo(&t, is_on, vector, sender, get_num_groups(0) - !is_one);\n",
        name(pass)
    );
    let count = totals.len();
    if count > 0 {
        add_totals(&mut text, &totals, "get_group_id(0) > 0 || !is_on ? 0 : ");
        let _ = writeln!(
            text,
            "    const int is_sum = is_on && get_group_id(0) == 0;\n    const acc own = {};\n    if (is_sum)\n        \
             put_values(&t, {count}, own);\n    barrier(CLK_LOCAL_MEM_FENCE);\n    \
             if (is_sum && get_local_id(0) < {count})\n        t.totals[get_local_id(0)] = take_total(&t, get_local_id(0));",
            own_value(&totals)
        );
    }
    text.push_str("}\n\n");
    text
}

/// Which of a pass's vectors is that whose halo arrives before it, if that is one of them and always the same.
pub(crate) fn arriving(pass: &Pass, program: &Program) -> Option<usize> {
    let at = program.iteration.iter().position(|step| matches!(step, Step::Pass(other) if other.name == pass.name))?;
    match program.iteration.get(at.checked_sub(1)?)? {
        Step::Multiply(multiply) => pass.vectors().iter().position(|slot| *slot == multiply.y),
        Step::Pass(_) => None,
    }
}

/// How the names of these kernels end.
pub(crate) const SUFFIX: &str = "_meeting";

/// The name of the kernel in which several ranks meet before a pass.
pub(crate) fn name(pass: &Pass) -> String {
    format!("{}{SUFFIX}", pass.name)
}

/// How many totals a pass needs.
pub(crate) fn totals_before(pass: &Pass, program: &Program, columns: &Columns) -> usize {
    totals_of(pass, program, columns).len()
}

/// The value that a work-item puts: none of its own the first, which has the number of values, then one each.
pub(super) fn own_value(totals: &[Total]) -> String {
    let each = totals.iter().enumerate();
    let each: String = each.map(|(k, total)| format!("get_local_id(0) == {} ? {} : ", k + 1, total.name)).collect();
    format!("{each}0")
}
