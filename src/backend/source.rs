//! The OpenCL C of a program's passes: see `cl/passes.cl` for what they are made of, and for the order of sums.

pub(crate) mod batch;
pub(crate) mod columns;
mod elements;
pub(crate) mod persistent;
mod scalars;

use std::collections::BTreeMap;
use std::fmt::Write;

use self::elements::{function, on_halo_function};
use self::scalars::{Former, Head};
use super::program::{Pass, Program, Step};
use super::scalar::{Form, Node};
use super::text::{Check, CheckKind};
use crate::kernels::Shape;

/// Who takes part in iterations of which the host gives no factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// A device alone.
    Alone,
    /// Several ranks, whose sums and halos are exchanged where a pass begins that has a launch of its own,
    BetweenLaunches,
    /// or within a launch of several iterations.
    WithinLaunch,
}

/// How passes are written for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Their shape.
    pub(crate) shape: Shape,
    /// Tiles that a work-item has under way side by side, in the GPU shape.
    pub(crate) fronts: usize,
    /// Elements of each of them that it has under way.
    pub(crate) rounds: usize,
}

/// Where the scalars of an iteration are in its row of the log: first what it leaves to the next iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    carried: usize,
    of: BTreeMap<Node, usize>,
    /// Numbers in a row.
    pub(crate) width: usize,
}

impl Columns {
    /// Those of a program.
    pub(crate) fn of(program: &Program) -> Self {
        let carried = program.carried.len();
        let formed = program.passes().chain(&program.last).flat_map(|pass| &pass.forms).copied();
        let of: BTreeMap<Node, usize> = formed.enumerate().map(|(k, node)| (node, carried + k)).collect();
        let width = (carried + of.len()).max(1);
        Self { carried, of, width }
    }

    /// The column of a scalar that a pass forms.
    pub(crate) fn column(&self, node: Node) -> Option<usize> {
        self.of.get(&node).copied()
    }

    /// The column of carried scalar `k`, for the next iteration.
    pub(crate) fn carried(&self, k: usize) -> usize {
        debug_assert!(k < self.carried);
        k
    }
}

/// Where the partial sums of each sum are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Partials {
    /// Those that a pass has left.
    Pass,
    /// Those that product `k` of the iteration has left, in pairs; whether it is the second of each.
    Product(usize, bool),
}

/// Where the sums of an iteration come from.
pub(crate) fn partials(program: &Program) -> BTreeMap<usize, Partials> {
    let mut all = BTreeMap::new();
    let mut products = 0;
    for step in &program.iteration {
        match step {
            Step::Multiply(multiply) => {
                all.extend(multiply.xy.map(|sum| (sum, Partials::Product(products, false))));
                all.extend(multiply.yy.map(|sum| (sum, Partials::Product(products, true))));
                products += 1;
            }
            Step::Pass(pass) => all.extend(pass.sums().into_iter().map(|sum| (sum, Partials::Pass))),
        }
    }
    all
}

/// The products whose partial sums a pass adds, in order.
pub(crate) fn products_of(pass: &Pass, partials: &BTreeMap<usize, Partials>) -> Vec<usize> {
    let product = |sum| if let Some(Partials::Product(k, _)) = partials.get(sum) { Some(*k) } else { None };
    let mut products: Vec<usize> = pass.awaits.iter().filter_map(product).collect();
    products.sort_unstable();
    products.dedup();
    products
}

/// The kernel of a pass with factors that the host gives, for the elements `begin .. begin + n`.
///
/// ```text
/// KERNEL(begin, n, tiles, factors…, sums, stride, vectors…)
/// ```
pub(crate) fn given(pass: &Pass, kernel: &str, style: Style) -> String {
    let mut text = function(pass, style);
    let factors = pass.factors().len();
    let vectors = pass.vectors().len();
    let _ = write!(text, "KERNEL void {kernel}(uint begin, uint n, uint tiles");
    (0..factors).for_each(|k| text.push_str(&format!(", acc f{k}")));
    text.push_str(", __global acc *sums, uint stride");
    (0..vectors).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    let _ = writeln!(text, ")\n{{\n    __local acc4 scratch[GROUP_SIZE];");
    let _ = write!(text, "    do_{}(0, n, tiles", pass.name);
    (0..factors).for_each(|k| text.push_str(&format!(", (real)f{k}")));
    text.push_str(", sums, stride, scratch");
    (0..vectors).for_each(|k| text.push_str(&format!(", v{k} + begin")));
    text.push_str(");\n}\n\n");
    text
}

/// Arguments of a pass that forms its factors, in order; `f` gives the text for each, by its type and name. Among several ranks the
/// partial sums of products are in `former`: the driver takes longer for each array.
fn arguments(pass: &Pass, program: &Program, ranks: Ranks, f: impl Fn(&str, &str) -> String) -> String {
    let products = products_of(pass, &partials(program));
    let has_former = program.finished_by(pass).is_some() || ranks != Ranks::Alone && !products.is_empty();
    let mut all: Vec<String> = vec![f("uint ", "n"), f("uint ", "tiles"), f("uint ", "now"), f("uint ", "before")];
    if program.finished_by(pass).is_some() {
        all.extend([f("uint ", "older"), f("uint ", "has_former")]);
    }
    all.extend([f("acc ", "limit"), f("__global acc *", "log")]);
    for product in products {
        all.extend((ranks == Ranks::Alone).then(|| f("__global const acc *", &format!("dots{product}"))));
        all.extend(["first", "count"].map(|what| f("uint ", &format!("{what}{product}"))));
    }
    all.push(f("__global acc *", "sums"));
    all.extend(has_former.then(|| f("__global const acc *", "former")));
    all.push(f("uint ", "stride"));
    all.extend((0..pass.vectors().len()).map(|k| f("__global real *", &format!("v{k}"))));
    all.join(", ")
}

/// A pass of a device that is ahead of the host, which forms its factors itself: a function, which tells whether the run goes on, and a
/// kernel.
///
/// ```text
/// NAME(done, done_next, n, tiles, now, before, [older, has_former], limit, log, (partials, first, count) of products…,
///      sums, [former], stride, vectors…)
/// NAME_together(done, done_next, n, tiles, now, before, [older, has_former], limit, log, (first, count) of products…,
///               sums, [former], stride, vectors…,
///               memory, firsts, sent, halo, pieces, front, sum, exchange, behind, most_looks, is_arriving, [arriving])
/// ```
///
/// `now`, `before` and `older` say where the rows of this iteration and of former ones are in the log, `sums` and `former` where
/// partial sums of passes are. Among several ranks the first group sums over ranks what the pass needs, and the others of the `front`
/// work-items do to the halo what concerns it, once that of the vector that is arriving has come.
pub(crate) fn ahead(pass: &Pass, program: &Program, columns: &Columns, style: Style, ranks: Ranks) -> String {
    let mut text = function(pass, style);
    let is_shared = ranks == Ranks::BetweenLaunches;
    let on_halo = pass.on_halo(&program.has_halo);
    if is_shared && !on_halo.lines.is_empty() {
        text.push_str(&on_halo_function(&on_halo));
    }
    text.push_str(&step(pass, program, columns, ranks));
    let declared = arguments(pass, program, ranks, |of, name| format!("{of}{name}"));
    let given = arguments(pass, program, ranks, |_, name| name.into());
    let [mut of_ranks, mut together, mut shared] = [const { String::new() }; 3];
    if is_shared {
        of_ranks.push_str(
            ", __global volatile ulong *memory, __global const uint *firsts, uint sent, uint halo, uint pieces, uint front, \
             uint sum, uint exchange, uint behind, uint most_looks, uint is_arriving",
        );
        let arriving = arriving(pass, program).map(|k| format!("v{k}"));
        of_ranks.push_str(if arriving.is_some() { "" } else { ", __global real *arriving" });
        together.push_str(
            "    __local acc totals[MOST_VALUES];\n    \
             together t = {0, memory, log + behind, firsts, sent, halo, pieces, 0, sum, exchange, 0, most_looks};\n",
        );
        shared = format!("&t, totals, is_arriving ? {} : 0, front, ", arriving.as_deref().unwrap_or("arriving"));
    }
    let (name, kernel) = (&pass.name, kernel_ahead(pass, ranks));
    let _ = write!(
        text,
        "KERNEL void {kernel}(__global const int *done, __global int *done_next, {declared}{of_ranks})\n{{\n    \
         __local acc4 scratch[GROUP_SIZE];\n{together}    \
         const int goes_on = form_{name}(!*done, scratch, {shared}{given});\n    \
         if (get_global_id(0) == 0)\n        *done_next = !goes_on;\n}}\n\n"
    );
    text
}

/// How the names of kernels end that wait for other ranks.
pub(crate) const TOGETHER: &str = "_together";

/// The name of the kernel of a pass that forms its factors itself.
pub(crate) fn kernel_ahead(pass: &Pass, ranks: Ranks) -> String {
    format!("{}{}", pass.name, if ranks == Ranks::Alone { "" } else { TOGETHER })
}

/// Which of a pass's vectors is that whose halo arrives before it, if that is one of them and always the same.
pub(crate) fn arriving(pass: &Pass, program: &Program) -> Option<usize> {
    let at = program.iteration.iter().position(|step| matches!(step, Step::Pass(other) if other.name == pass.name))?;
    match program.iteration.get(at.checked_sub(1)?)? {
        Step::Multiply(multiply) => pass.vectors().iter().position(|slot| *slot == multiply.y),
        Step::Pass(_) => None,
    }
}

/// The function of a pass that forms its factors itself: of partial sums, or among several ranks of totals. Then it also does to the halo
/// what concerns it, once that of the vector that is `arriving` has come.
fn step(pass: &Pass, program: &Program, columns: &Columns, ranks: Ranks) -> String {
    let name = &pass.name;
    let mut head = Head::of(pass, program, columns);
    let former = Former::of(head.finished, program, columns);
    let on_halo = pass.on_halo(&program.has_halo);
    let factors_on_halo: Vec<String> = on_halo.factors().into_iter().map(|node| head.name(node)).collect();
    let factors: Vec<String> = pass.factors().into_iter().map(|node| head.name(node)).collect();
    let [before, after] = [&pass.before, &pass.after]
        .map(|checks| checks.iter().map(|check| goes_on(check, &head.name(check.node))).collect::<Vec<_>>());
    let formed: Vec<(usize, String)> =
        pass.forms.iter().filter_map(|node| Some((columns.column(*node)?, head.name(*node)))).collect();
    let is_first = program.is_first(pass);
    let is_left_here = |next: Node| {
        let is_plain = matches!(program.scalars.form(next), Form::Constant(_) | Form::Carried(_));
        pass.forms.contains(&next) || is_plain && is_first
    };
    let left = program.carried.iter().enumerate().filter(|(_, carried)| is_left_here(carried.next));
    let left: Vec<(usize, String, bool)> =
        left.map(|(k, carried)| (columns.carried(k), head.name(carried.next), carried.stays)).collect();

    let declared = arguments(pass, program, ranks, |of, name| format!("{of}{name}"));
    // within a launch all groups have part of the halo; else some in front, behind the one that sums
    let [of_ranks, front, groups] = match ranks {
        Ranks::Alone => ["", "0", ""],
        Ranks::WithinLaunch => [
            "together *t, __local acc *totals, __global real *arriving, ",
            "0",
            "get_group_id(0), groups = get_num_groups(0)",
        ],
        Ranks::BetweenLaunches => [
            "together *t, __local acc *totals, __global real *arriving, uint front, ",
            "front",
            "get_group_id(0) - 1, groups = front / GROUP_SIZE - 1",
        ],
    };
    let mut text =
        format!("static inline int form_{name}(int is_on, __local acc4 *scratch, {of_ranks}{declared})\n{{\n");
    if ranks != Ranks::Alone {
        let _ = writeln!(text, "    const uint group = {groups};");
    }
    if ranks == Ranks::BetweenLaunches {
        text.push_str("    if (is_on && arriving && group == 0 && get_local_id(0) == 0)\n        raise_sent(t);\n");
    }
    let reads = former.reads.clone() + &head.reads;
    let _ = write!(text, "#if READ_EARLY\n{reads}#endif\n");
    let totals = totals_of(pass, program, columns);
    match ranks {
        Ranks::Alone => add_totals(&mut text, &totals, ""),
        Ranks::WithinLaunch => {}
        Ranks::BetweenLaunches => {
            meeting(&mut text, &totals, products_of(pass, &partials(program)), ["is_on", "get_group_id(0) == 0"], "");
        }
    }
    for (k, Total { name, .. }) in totals.iter().enumerate().filter(|_| ranks != Ranks::Alone) {
        let _ = writeln!(text, "    const acc {name} = totals[{k}];");
    }
    let _ = write!(text, "#if !READ_EARLY\n{reads}#endif\n");
    text.push_str(&former.text);
    text.push_str(&head.text);
    let all = |conditions: &[String]| conditions.iter().map(|c| format!(" && {c}")).collect::<String>();
    let was_met = if former.conditions.is_empty() {
        String::new()
    } else {
        format!(" && (!has_former || ({}))", former.conditions.join(" && "))
    };
    let _ = writeln!(text, "    const int goes_on = is_on{was_met}{};", all(&before));
    text.push_str("    if (get_global_id(0) == 0) {\n");
    if !former.results.is_empty() {
        text.push_str("        if (is_on && has_former) {\n");
        for (column, value) in &former.results {
            let _ = writeln!(text, "            log[before + {column}] = {value};");
        }
        text.push_str("        }\n");
    }
    text.push_str("        if (is_on) {\n");
    for (column, value) in &formed {
        let _ = writeln!(text, "            log[now + {column}] = {value};");
    }
    for (column, value, _) in left.iter().filter(|(_, _, stays)| !stays) {
        let _ = writeln!(text, "            log[now + {column}] = {value};");
    }
    text.push_str("        }\n");
    for (column, value, _) in left.iter().filter(|(_, _, stays)| *stays) {
        let _ = writeln!(text, "        log[now + {column}] = goes_on ? {value} : log[before + {column}];");
    }
    text.push_str("    }\n");
    if !pass.lines.is_empty() {
        let _ = write!(text, "    do_{name}({front}, goes_on ? n : 0, tiles");
        factors.iter().for_each(|factor| text.push_str(&format!(", (real){factor}")));
        text.push_str(", sums, stride, scratch");
        (0..pass.vectors().len()).for_each(|k| text.push_str(&format!(", v{k}")));
        text.push_str(");\n");
    }
    if ranks != Ranks::Alone {
        text.push_str("    take_halo(t, goes_on && arriving && group < groups, arriving, n, group, groups);\n");
    }
    if ranks != Ranks::Alone && !on_halo.lines.is_empty() {
        if pass.is_complex {
            text.push_str("    barrier(CLK_GLOBAL_MEM_FENCE);\n"); // one takes a pair of which two have taken the parts
        }
        let _ = write!(
            text,
            "    do_{}(n, goes_on && group < groups ? t->pieces : 0, t->firsts, group, groups",
            on_halo.name
        );
        factors_on_halo.iter().for_each(|factor| text.push_str(&format!(", (real){factor}")));
        for slot in on_halo.vectors() {
            let k = pass.vectors().iter().position(|other| *other == slot).unwrap_or_default();
            let _ = write!(text, ", v{k}");
        }
        text.push_str(");\n");
    }
    let _ = writeln!(text, "    return goes_on{};\n}}\n", all(&after));
    text
}

/// The totals that a pass needs: of what the former iteration has left to be formed, then its own.
fn totals_of(pass: &Pass, program: &Program, columns: &Columns) -> Vec<Total> {
    let (head, partials) = (Head::of(pass, program, columns), partials(program));
    let mut totals = Former::of(head.finished, program, columns).totals;
    let own = |sum: &usize| {
        let (at, count, apart) = match partials.get(sum) {
            Some(Partials::Product(k, is_second)) => {
                (format!("dots{k} + 2 * first{k} + {}", usize::from(*is_second)), format!("count{k}"), 2)
            }
            Some(Partials::Pass) | None => (format!("sums + {sum} * stride"), "tiles".into(), 1),
        };
        Total { name: head.total(*sum), at, count, apart }
    };
    totals.extend(pass.awaits.iter().map(own));
    totals
}

/// Whether a pass needs sums over ranks.
pub(crate) fn sums_over_ranks(pass: &Pass, program: &Program, columns: &Columns) -> bool {
    !totals_of(pass, program, columns).is_empty()
}

/// The sum over ranks of what a pass needs: if it `is_on`, the group that `is_one` adds the partial sums of its rank, and puts and takes.
/// `meanwhile` something else is done.
fn meeting(text: &mut String, totals: &[Total], products: Vec<usize>, [is_on, is_one]: [&str; 2], meanwhile: &str) {
    let count = totals.len();
    if count == 0 {
        return;
    }
    text.push_str("    {\n");
    for k in products {
        let _ = writeln!(text, "    __global const acc *dots{k} = former;");
    }
    add_totals(text, totals, &format!("!({is_on} && {is_one}) ? 0 : "));
    // the first work-item has the number of values, then each has one
    let each = totals.iter().enumerate();
    let own: String = each.map(|(k, total)| format!("get_local_id(0) == {} ? {} : ", k + 1, total.name)).collect();
    let _ = writeln!(
        text,
        "    const acc own = {own}0;\n    if ({is_on} && {is_one})\n        put_values(t, {count}, own);\n{meanwhile}    \
         barrier(CLK_LOCAL_MEM_FENCE);\n    if ({is_on} && {is_one})\n        tell_totals(t, {count});\n    \
         hear_totals(t, {is_on}, {count}, totals);\n    }}"
    );
}

/// When a check lets the iteration go on.
fn goes_on(check: &Check, value: &str) -> String {
    let least = match check.kind {
        CheckKind::Curvature | CheckKind::Breakdown | CheckKind::Minimum => "0",
        CheckKind::Norm => "limit",
    };
    format!("{value} > {least} && isfinite({value})")
}

/// A total of partial sums: a variable, and where the parts are, how many, and how far apart.
struct Total {
    name: String,
    at: String,
    count: String,
    apart: usize,
}

/// Adds up partial sums, unless there are none: each work-item its part in one loop for all, so that what is loaded is waited for
/// together.
fn add_totals(text: &mut String, totals: &[Total], unless: &str) {
    let Some(most) =
        totals.iter().map(|total| total.count.clone()).reduce(|a, b| if a == b { a } else { format!("max({a}, {b})") })
    else {
        return;
    };
    for Total { name, .. } in totals {
        let _ = writeln!(text, "    acc {name} = 0;");
    }
    let _ = writeln!(text, "    for (uint k = first_part(), most = {unless}{most}; k < most; k += LANES) {{");
    for Total { name, at, count, apart } in totals {
        let _ = writeln!(text, "        {name} += k < ({count}) ? ({at})[k * {apart}] : (acc)0;");
    }
    text.push_str("    }\n");
    let names: Vec<String> = totals.iter().map(|total| total.name.clone()).collect();
    together(text, &names, "first_");
}

/// Puts sums over lanes in the place of numbers, up to four at once.
fn together(text: &mut String, numbers: &[String], first: &str) {
    for numbers in numbers.chunks(4) {
        let (width, suffix) = match numbers.len() {
            1 => (1, ""),
            2 => (2, "2"),
            _ => (4, "4"),
        };
        let mut all = numbers.to_vec();
        all.resize(width, "0".into());
        let _ = writeln!(
            text,
            "    {{\n        const acc{suffix} s = {first}lanes_sum{suffix}((acc{suffix})({}), (__local acc{suffix} *)scratch);",
            all.join(", ")
        );
        for (k, number) in numbers.iter().enumerate() {
            let part = if width == 1 { String::new() } else { format!(".s{k}") };
            let _ = writeln!(text, "        {number} = s{part};");
        }
        text.push_str("    }\n");
    }
}
