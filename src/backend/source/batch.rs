//! Many columns of a small system, each iterated for by a work-group of its own: no group waits for another.
//!
//! A launch of several iterations ([`persistent`](super::persistent)) is written as for a single group, and each group is told by
//! `cl/batch.cl` that it is the only one. It finds the vectors, the sums, and the rows of the log of its column at distances that a
//! column takes. Another kernel does what comes before the first iteration.

use std::fmt::Write;

use super::elements::function;
use super::persistent::{Of, vectors};
use super::{Columns, Style};
use crate::backend::program::{Pass, Program, Stage, Step};
use crate::backend::text::{R, X};

/// Arguments behind those of the sums: the distance of partial sums, and what a column has of vectors and sums.
pub(super) const SIZES: &str = ", uint stride, uint vector_len, uint sums_room";

/// Lets all of a group see what all of it have written.
pub(super) const BARRIER: &str = "        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n";

/// The kernel of several iterations of each column, the one that comes before, and the one that comes last, if there is something to do:
///
/// ```text
/// NAME_begin_batch(matrix…, b, n, tiles, sums, stride, vector_len, sums_room, vectors…)
/// NAME_end_batch(log, row, row_len, n, tiles, sums, stride, vector_len, sums_room, vectors…)
/// ```
///
/// The first one forms r = b − A x and does what begins a run, with the sums of that; the other one makes the updates of x that were deferred,
/// by the factors in `row` of the log. A row of the log has the numbers of all columns, one column after the other, and `row_len` is that of all.
/// `None` if what begins a run has a pass whose factors are formed of sums.
pub(crate) fn kernels(program: &Program, columns: &Columns, style: Style) -> Option<String> {
    let mut text = super::persistent::kernel(program, columns, style, Of::Columns);
    let steps = || program.steps(Stage::Begin).iter().chain(program.steps(Stage::Start));
    let passes = || steps().filter_map(|step| if let Step::Pass(pass) = step { Some(pass) } else { None });
    passes().for_each(|pass| text.push_str(&function(pass, style)));
    let _ = write!(
        text,
        "KERNEL void {}(ROWS_ARGS, __global const real *b, uint n, uint tiles, __global acc *sums{SIZES}{})\n{{\n    __local acc4 scratch[GROUP_SIZE];\n    ROWS_LOCAL\n{}    b += column * vector_len;\n    \
         ROWS_TIMES(w{X}, w{R});\n{BARRIER}    \
         for (uint i = get_local_id(0); i < n; i += GROUP_SIZE) {{\n        w{R}[i] = b[i] - w{R}[i];\n",
        begin_name(program),
        vectors(program),
        own(program)
    );
    for slot in &program.zeroed {
        let _ = writeln!(text, "        w{slot}[i] = 0;");
    }
    text.push_str("    }\n");
    let known = program.scalars.values(&vec![f64::NAN; program.sums], &vec![f64::NAN; program.carried.len()]);
    for step in steps() {
        text.push_str(BARRIER);
        match step {
            Step::Multiply(multiply) => {
                let _ = writeln!(text, "    ROWS_TIMES(w{}, w{});", multiply.x, multiply.y);
            }
            Step::Pass(pass) => done(&mut text, program, pass, &known)?,
        }
    }
    text.push_str("}\n");
    if let (Some(Step::Pass(pass)), Some(deferred)) = (program.complete.first(), program.deferred) {
        end(&mut text, program, pass, columns.carried(deferred.carried), columns.width, style);
    }
    Some(text)
}

/// The kernel that comes last: its factor is that which the last iteration has left.
fn end(text: &mut String, program: &Program, pass: &Pass, place: usize, width: usize, style: Style) {
    text.push_str(&function(pass, style));
    let _ = write!(
        text,
        "KERNEL void {}(__global const acc *log, uint row, uint row_len, uint n, uint tiles, __global acc *sums{SIZES}{})\n{{\n    __local acc4 scratch[GROUP_SIZE];\n{}    const real factor = (real)log[row * row_len + column * {width} + {place}];\n    \
         if (factor != 0)\n        do_{}(0, n, tiles, factor, sums, stride, scratch",
        end_name(program),
        vectors(program),
        own(program),
        pass.name
    );
    pass.vectors().iter().for_each(|slot| text.push_str(&format!(", w{slot}")));
    text.push_str(");\n}\n");
}

/// The call of a pass, if its factors are among the scalars that are known without any sum.
fn done(text: &mut String, program: &Program, pass: &Pass, known: &[f64]) -> Option<()> {
    let _ = write!(text, "    do_{}(0, n, tiles", pass.name);
    for factor in pass.factors() {
        let value = known[factor.0];
        if program.scalars.awaits(factor, &|_| true) || !value.is_finite() {
            return None;
        }
        let _ = write!(text, ", (real){value:?}");
    }
    text.push_str(", sums, stride, scratch");
    pass.vectors().iter().for_each(|slot| text.push_str(&format!(", w{slot}")));
    text.push_str(");\n");
    Some(())
}

/// The name of the kernel that comes before the first iteration.
pub(crate) fn begin_name(program: &Program) -> String {
    program.method.replace('-', "_") + "_begin_batch"
}

/// The name of the kernel that comes last.
pub(crate) fn end_name(program: &Program) -> String {
    program.method.replace('-', "_") + "_end_batch"
}

/// Lets sums and vectors be those of the group's column; all columns share some vectors.
pub(super) fn own(program: &Program) -> String {
    let shared = program.shared();
    let own: String = (0..program.names.len())
        .filter(|slot| !shared.contains(slot))
        .map(|slot| format!(", w{slot} += column * vector_len"))
        .collect();
    format!("    const size_t column = own_column();\n    sums += column * sums_room{own};\n")
}
