//! The OpenCL C of a program's passes: see `cl/passes.cl` for what they are made of, and for the order of sums.

mod elements;
pub(crate) mod meeting;
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
use crate::kernels::pass::Given;

/// Who takes part in iterations of which the host gives no factors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranks {
    /// A device alone.
    Alone,
    /// Several ranks, whose sums and halos are exchanged between passes, in a launch of their own,
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

/// Arguments of a pass that forms its factors, in order; `f` gives the text for each, by its type and name.
fn arguments(pass: &Pass, program: &Program, given: Given, f: impl Fn(&str, &str) -> String) -> String {
    let partials = partials(program);
    let mut all: Vec<String> = vec![f("uint ", "n"), f("uint ", "tiles"), f("uint ", "now"), f("uint ", "before")];
    if program.finished_by(pass).is_some() {
        all.extend([f("uint ", "older"), f("uint ", "has_former")]);
    }
    all.extend([f("acc ", "limit"), f("__global acc *", "log")]);
    for product in products_of(pass, &partials).into_iter().filter(|_| given != Given::Totals) {
        all.push(f("__global const acc *", &format!("dots{product}")));
        all.extend(["first", "count"].map(|what| f("uint ", &format!("{what}{product}"))));
    }
    all.push(f("__global acc *", "sums"));
    if program.finished_by(pass).is_some() && given != Given::Totals {
        all.push(f("__global const acc *", "former"));
    }
    all.push(f("uint ", "stride"));
    let vectors = if given == Given::Partials { 0 } else { pass.vectors().len() };
    all.extend((0..vectors).map(|k| f("__global real *", &format!("v{k}"))));
    all.join(", ")
}

/// A pass of a device that is ahead of the host, which forms its factors itself: a function, which tells whether the run goes on, and a
/// kernel.
///
/// ```text
/// NAME(done, done_next, n, tiles, now, before, [older, has_former], limit, log, (partials, first, count) of products…,
///      sums, [former], stride, vectors…)
/// NAME(done, done_next, n, tiles, now, before, [older, has_former], limit, log, sums, stride, vectors…,
///      memory, firsts, sent, halo, pieces, first, exchange, behind, most_looks, is_arriving, [arriving])
/// ```
///
/// `now`, `before` and `older` say where the rows of this iteration and of former ones are in the log, `sums` and `former` where
/// partial sums of passes are. Among several ranks it has totals in place of partial sums, which the [`meeting`](mod@meeting) before it has left, and
/// its `first` work-items do to the halo what concerns it, once that of the vector that is arriving has come.
pub(crate) fn ahead(pass: &Pass, program: &Program, columns: &Columns, style: Style, ranks: Ranks) -> String {
    let mut text = function(pass, style);
    let is_shared = ranks == Ranks::BetweenLaunches;
    let on_halo = pass.on_halo(&program.has_halo);
    if is_shared && !on_halo.lines.is_empty() {
        text.push_str(&on_halo_function(&on_halo));
    }
    text.push_str(&step(pass, program, columns, ranks));
    let needs = if is_shared { Given::Totals } else { Given::All };
    let declared = arguments(pass, program, needs, |of, name| format!("{of}{name}"));
    let given = arguments(pass, program, needs, |_, name| name.into());
    let [mut of_ranks, mut together, mut shared] = [const { String::new() }; 3];
    if is_shared {
        of_ranks.push_str(
            ", __global volatile ulong *memory, __global const uint *firsts, uint sent, uint halo, uint pieces, \
             uint first, uint exchange, uint behind, uint most_looks, uint is_arriving",
        );
        let arriving = meeting::arriving(pass, program).map(|k| format!("v{k}"));
        of_ranks.push_str(if arriving.is_some() { "" } else { ", __global real *arriving" });
        together.push_str(
            "    together t = {0, memory, log + behind + BEHIND, log + behind, 0, firsts, sent, halo, pieces, 0, 0, exchange, 0, \
             most_looks};\n",
        );
        shared = format!("&t, is_arriving ? {} : 0, first, ", arriving.as_deref().unwrap_or("arriving"));
    }
    let name = &pass.name;
    let _ = write!(
        text,
        "KERNEL void {name}(__global const int *done, __global int *done_next, {declared}{of_ranks})\n{{\n    \
         __local acc4 scratch[GROUP_SIZE];\n{together}    \
         const int goes_on = form_{name}(!*done, scratch, {shared}{given});\n    \
         if (get_global_id(0) == 0)\n        *done_next = !goes_on;\n}}\n\n"
    );
    text
}

/// The function of a pass that forms its factors itself: of partial sums, or among several ranks of totals that are there. Then it also
/// does to the halo what concerns it, within a launch once that of the vector that is `arriving` has come.
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

    let needs = if ranks == Ranks::BetweenLaunches { Given::Totals } else { Given::All };
    let declared = arguments(pass, program, needs, |of, name| format!("{of}{name}"));
    // within a launch all groups have part of the halo
    let [of_ranks, first, groups] = match ranks {
        Ranks::Alone => ["", "0", ""],
        Ranks::BetweenLaunches => ["together *t, __global real *arriving, uint first, ", "first", "first / GROUP_SIZE"],
        Ranks::WithinLaunch => ["together *t, __global real *arriving, ", "0", "get_num_groups(0)"],
    };
    let mut text =
        format!("static inline int form_{name}(int is_on, __local acc4 *scratch, {of_ranks}{declared})\n{{\n");
    let reads = former.reads.clone() + &head.reads;
    let _ = write!(text, "#if READ_EARLY\n{reads}#endif\n");
    let totals = totals_of(pass, program, columns);
    if ranks == Ranks::Alone {
        add_totals(&mut text, &totals, "");
    } else {
        for (k, Total { name, .. }) in totals.iter().enumerate() {
            let _ = writeln!(text, "    const acc {name} = t->totals[{k}];");
        }
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
        let _ = write!(text, "    do_{name}({first}, goes_on ? n : 0, tiles");
        factors.iter().for_each(|factor| text.push_str(&format!(", (real){factor}")));
        text.push_str(", sums, stride, scratch");
        (0..pass.vectors().len()).for_each(|k| text.push_str(&format!(", v{k}")));
        text.push_str(");\n");
    }
    if ranks != Ranks::Alone {
        let _ = writeln!(
            text,
            "    const uint group = get_group_id(0), groups = {groups};\n    \
             take_halo(t, goes_on && arriving && group < groups, arriving, n, group, groups);"
        );
    }
    if ranks != Ranks::Alone && !on_halo.lines.is_empty() {
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

/// When a check lets the iteration go on.
fn goes_on(check: &Check, value: &str) -> String {
    let least = match check.kind {
        CheckKind::Curvature => "0",
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
