//! Passes over vectors of several columns, each of which has factors and sums of its own: see `cl/columns.cl`.

use std::fmt::Write;

use super::Style;
use super::elements::{Elements, element, front, unless_deferred};
use crate::backend::program::Pass;
use crate::backend::text::Slot;
use crate::kernels::Shape;

/// The kernel of a pass with factors that the host gives, for the elements `begin .. begin + n`, which are those of whole rows.
///
/// ```text
/// KERNEL(begin, n, tiles, factors, sums, stride, vectors…)
/// ```
///
/// `factors` has the first factor of each column, the second of each, and so on; then 1 for each column that the pass is done for, or 0.
/// The partial sum of a column in tile t is number `(sum * stride + t) * COLUMNS + column`. Vectors in `shared` slots have one column for
/// all.
pub(crate) fn given(pass: &Pass, kernel: &str, style: Style, shared: &[Slot]) -> String {
    let (vectors, factors) = (pass.vectors(), pass.factors().len());
    let at = |slot: Slot| vectors.iter().position(|v| *v == slot).unwrap_or_default();
    let mut text = format!(
        "KERNEL void {kernel}(uint begin, uint n, uint tiles, __global const acc *factors, __global acc *sums, uint stride"
    );
    (0..vectors.len()).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    text.push_str(")\n{\n");
    for slot in &vectors {
        let begin = if shared.contains(slot) { "begin / COLUMNS" } else { "begin" };
        let _ = writeln!(text, "    v{} += {begin};", at(*slot));
    }
    match style.shape {
        Shape::Gpu => gpu(&mut text, pass, factors, style, &at, shared),
        Shape::Cpu => cpu(&mut text, pass, factors, &at, shared),
    }
    text.push_str("}\n\n");
    text
}

/// A work-item's elements are all of one column, as the lanes of a tile are a multiple of the columns.
fn gpu(text: &mut String, pass: &Pass, factors: usize, style: Style, at: &dyn Fn(Slot) -> usize, shared: &[Slot]) {
    text.push_str(
        "    __local acc scratch[GROUP_SIZE];\n    \
         const uint sets = get_global_size(0) / LANES, set = get_global_id(0) / LANES;\n    \
         const uint lane = get_local_id(0) % LANES, column = lane % COLUMNS;\n",
    );
    for k in 0..factors {
        let _ = writeln!(text, "    const real k{k} = (real)factors[{k} * COLUMNS + column];");
    }
    let _ = writeln!(text, "    n = factors[{factors} * COLUMNS + column] > 0 ? n : 0;");
    front(text, pass, style, at, &|slot| if shared.contains(&slot) { "i / COLUMNS" } else { "i" });
    for (k, sum) in pass.sums().into_iter().enumerate() {
        for front in 0..style.fronts {
            let _ = writeln!(
                text,
                "    a{k}[{front}] = columns_sum(a{k}[{front}], scratch);\n    \
                 if (lane < COLUMNS && set + {front} * sets < tiles)\n        \
                 sums[({sum} * stride + set + {front} * sets) * COLUMNS + lane] = a{k}[{front}];"
            );
        }
    }
}

/// A work-item takes the rows of a tile one after the other, column by column.
fn cpu(text: &mut String, pass: &Pass, factors: usize, at: &dyn Fn(Slot) -> usize, shared: &[Slot]) {
    let (loads, sums) = (pass.loads(), pass.sums());
    let _ = writeln!(
        text,
        "    real f[{factors} + 1][COLUMNS];\n    for (uint k = 0; k < ({factors} + 1) * COLUMNS; k++)\n        \
         f[k / COLUMNS][k % COLUMNS] = (real)factors[k];\n    \
         const uint len = tile_len(n / COLUMNS, tiles) * COLUMNS;\n    \
         uint tile = (uint)((ulong)tiles * get_group_id(0) / get_num_groups(0));\n    \
         const uint last = (uint)((ulong)tiles * (get_group_id(0) + 1) / get_num_groups(0));\n    \
         for (; tile < last; tile++) {{\n        \
         uint row = min(n, tile * len);\n        const uint end = min(n, row + len);"
    );
    for k in 0..sums.len() {
        let _ = writeln!(text, "        acc a{k}[COLUMNS] = {{0}};");
    }
    let _ = writeln!(
        text,
        "        for (; row < end; row += COLUMNS)\n            for (uint column = 0; column < COLUMNS; column++) {{\n                \
         if (!(f[{factors}][column] > 0))\n                    continue;\n                const uint i = row + column;"
    );
    for k in 0..factors {
        let _ = writeln!(text, "                const real k{k} = f[{k}][column];");
    }
    text.push_str("                ");
    for slot in pass.vectors() {
        let _ = write!(text, "real e{} = 0; ", at(slot));
        if loads.contains(&slot) {
            let index = if shared.contains(&slot) { "i / COLUMNS" } else { "i" };
            let _ = write!(text, "{}e{1} = v{1}[{index}]; ", unless_deferred(pass, slot), at(slot));
        }
    }
    text.push_str(&element(pass, at, Elements::of(pass), &|k, product| format!("a{k}[column] += {product};")));
    for slot in pass.stores() {
        let _ = write!(text, "{}v{1}[i] = e{1}; ", unless_deferred(pass, slot), at(slot));
    }
    text.push_str("\n            }\n");
    for (k, sum) in sums.iter().enumerate() {
        let _ = writeln!(
            text,
            "        for (uint column = 0; column < COLUMNS; column++)\n            \
             sums[({sum} * stride + tile) * COLUMNS + column] = a{k}[column];"
        );
    }
    text.push_str("    }\n");
}
