//! The OpenCL C of a program's passes: see `cl/passes.cl` for what they are made of, and for the order of sums.

pub(crate) mod persistent;

use std::collections::BTreeMap;
use std::fmt::Write;

use super::deferred::Deferred;
use super::program::{Pass, Program, Step};
use super::scalar::{Form, Node};
use super::text::{Check, CheckKind, Line, Slot, Term, X};
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
/// partial sums of passes are. Among several ranks it has totals in place of partial sums, which the [`meeting`] before it has left, and
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
        let arriving = arriving(pass, program).map(|k| format!("v{k}"));
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

/// What several ranks do before a pass: a kernel in whose first group they sum what the pass needs, and leave the totals; the other groups
/// send what other ranks need of a vector.
///
/// ```text
/// NAME_meeting(done, n, tiles, now, before, [older, has_former], limit, log, (partials, first, count) of products…,
///              sums, [former], stride, memory, send, sent, sum, exchange, behind, most_looks, vector)
/// ```
pub(crate) fn meeting(pass: &Pass, program: &Program, columns: &Columns) -> String {
    let totals = totals_of(pass, program, columns);
    let declared = arguments(pass, program, Given::Partials, |of, name| format!("{of}{name}"));
    let mut text = format!(
        "KERNEL void {}(__global const int *done, {declared}, \
         __global volatile ulong *memory, __global const uint *send, uint sent, uint sum, uint exchange, uint behind, \
         uint most_looks, __global real *vector)\n{{\n    __local acc4 scratch[GROUP_SIZE];\n    \
         const int is_on = !*done;\n    const uint is_one = get_num_groups(0) == 1, sender = get_group_id(0) - !is_one;\n    \
         together t = {{0, memory, log + behind + BEHIND, log + behind, send, 0, sent, 0, 0, 0, sum, exchange, 0, most_looks}};\n    \
         send_halo(&t, is_on, vector, sender, get_num_groups(0) - !is_one);\n",
        meeting_name(pass)
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
pub(crate) const MEETING: &str = "_meeting";

/// The name of the kernel in which several ranks meet before a pass.
pub(crate) fn meeting_name(pass: &Pass) -> String {
    format!("{}{MEETING}", pass.name)
}

/// How many totals a pass needs.
pub(crate) fn totals_before(pass: &Pass, program: &Program, columns: &Columns) -> usize {
    totals_of(pass, program, columns).len()
}

/// The value that a work-item puts: none of its own the first, which has the number of values, then one each.
fn own_value(totals: &[Total]) -> String {
    let each = totals.iter().enumerate();
    let each: String = each.map(|(k, total)| format!("get_local_id(0) == {} ? {} : ", k + 1, total.name)).collect();
    format!("{each}0")
}

/// The function that does to part of a halo what a pass does to owned elements.
fn on_halo_function(pass: &Pass) -> String {
    let (vectors, loads) = (pass.vectors(), pass.loads());
    let at = |slot: Slot| vectors.iter().position(|v| *v == slot).unwrap_or_default();
    let mut text = format!(
        "static inline void do_{}(uint n, uint pieces, __global const uint *firsts, uint group, uint groups",
        pass.name
    );
    (0..pass.factors().len()).for_each(|k| text.push_str(&format!(", const real k{k}")));
    (0..vectors.len()).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    text.push_str(
        ")\n{\n    for (uint piece = group; piece < pieces; piece += groups)\n        \
         for (uint i = n + firsts[piece] + get_local_id(0); i < n + firsts[piece + 1]; i += GROUP_SIZE) {\n        ",
    );
    for slot in &vectors {
        let value = if loads.contains(slot) { format!(" = v{}[i]", at(*slot)) } else { String::new() };
        let _ = write!(text, "real e{}{value}; ", at(*slot));
    }
    text.push_str(&element(pass, &at, "(acc)", &|_, _| String::new()));
    pass.stores().iter().for_each(|slot| text.push_str(&format!("v{0}[i] = e{0}; ", at(*slot))));
    text.push_str("\n    }\n}\n\n");
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

/// What a pass forms of the iteration before, ahead of its own.
#[derive(Default)]
struct Former {
    /// What is read of the log.
    reads: String,
    /// Sums that it needs.
    totals: Vec<Total>,
    /// What is formed, once sums are there.
    text: String,
    /// When the run goes on.
    conditions: Vec<String>,
    /// Columns of the log, and what they get.
    results: Vec<(usize, String)>,
}

impl Former {
    fn of(last: Option<&Pass>, program: &Program, columns: &Columns) -> Self {
        let Some(last) = last else { return Self::default() };
        let mut head = Head::of_former(last, program, columns);
        let checks = last.before.iter().chain(&last.after);
        let conditions = checks.map(|check| goes_on(check, &head.name(check.node))).collect();
        let mut results: Vec<(usize, String)> =
            last.forms.iter().filter_map(|node| Some((columns.column(*node)?, head.name(*node)))).collect();
        let mut carried = String::new();
        for (k, next) in program.carried.iter().map(|carried| carried.next).enumerate() {
            if last.forms.contains(&next) {
                let (column, value) = (columns.carried(k), head.name(next));
                let _ = writeln!(carried, "    const acc c{k} = has_former ? {value} : log[before + {column}];");
                results.push((column, value));
            }
        }
        let parts = |sum: &usize| Total {
            name: head.total(*sum),
            at: format!("former + {sum} * stride"),
            count: "has_former ? tiles : 0".into(),
            apart: 1,
        };
        let totals = last.awaits.iter().map(parts).collect();
        Self { reads: head.reads, totals, text: head.text + &carried, conditions, results }
    }
}

/// The scalars of a pass as they are formed on the device.
struct Head<'a> {
    program: &'a Program,
    columns: &'a Columns,
    pass: &'a Pass,
    /// What the pass forms first, of the iteration before.
    finished: Option<&'a Pass>,
    /// Where the rows of its iteration and of the one before are.
    rows: [&'static str; 2],
    /// What names of scalars and of sums begin with.
    prefixes: [&'static str; 2],
    names: BTreeMap<Node, String>,
    /// What is read of the log.
    reads: String,
    /// What is formed, once sums are there.
    text: String,
}

impl<'a> Head<'a> {
    /// Those of a pass of the present iteration.
    fn of(pass: &'a Pass, program: &'a Program, columns: &'a Columns) -> Self {
        let finished = program.finished_by(pass);
        let (rows, prefixes) = (["now", "before"], ["n", "t"]);
        let (names, reads, text) = (BTreeMap::new(), String::new(), String::new());
        Self { program, columns, pass, finished, rows, prefixes, names, reads, text }
    }

    /// Those of what the iteration before has left to be formed.
    fn of_former(last: &'a Pass, program: &'a Program, columns: &'a Columns) -> Self {
        let (rows, prefixes) = (["before", "older"], ["m", "u"]);
        Self { rows, prefixes, finished: None, ..Self::of(last, program, columns) }
    }

    /// The name of the total of a sum.
    fn total(&self, sum: usize) -> String {
        format!("{}{sum}", self.prefixes[1])
    }

    /// The name of a scalar, which is formed unless it is there.
    fn name(&mut self, node: Node) -> String {
        if let Some(name) = self.names.get(&node) {
            return name.clone();
        }
        let is_formed_before = !self.pass.forms.contains(&node)
            && self
                .program
                .passes()
                .take_while(|pass| pass.name != self.pass.name)
                .any(|pass| pass.forms.contains(&node));
        let [now, before] = self.rows;
        let form = self.program.scalars.form(node);
        let of_log = match (self.columns.column(node), form) {
            (Some(column), _) if is_formed_before => Some(format!("log[{now} + {column}]")),
            (_, Form::Carried(k)) => Some(format!("log[{before} + {}]", self.columns.carried(k))),
            _ => None,
        };
        let name = format!("{}{}", self.prefixes[0], node.0);
        self.names.insert(node, name.clone());
        match (of_log, form) {
            (_, Form::Carried(k)) if self.is_finished_here(k) => {
                self.names.insert(node, format!("c{k}"));
                return format!("c{k}");
            }
            (Some(place), _) => {
                let _ = writeln!(self.reads, "    const acc {name} = {place};");
            }
            (None, form) => {
                let value = self.value(form);
                let _ = writeln!(self.text, "    const acc {name} = {value};");
            }
        }
        name
    }

    /// Whether the pass itself forms what the iteration before has left in carried scalar `k`.
    fn is_finished_here(&self, k: usize) -> bool {
        self.finished.is_some_and(|last| last.forms.contains(&self.program.carried[k].next))
    }

    fn value(&mut self, form: Form) -> String {
        match form {
            Form::Constant(value) => format!("(acc)({value:?})"),
            Form::Sum(sum) => self.total(sum),
            Form::Carried(k) => unreachable!("carried scalar {k} is in the log"),
            Form::Negative(a) => format!("-{}", self.name(a)),
            Form::Root(a) => format!("sqrt({})", self.name(a)),
            Form::Plus(a, b) => format!("{} + {}", self.name(a), self.name(b)),
            Form::Minus(a, b) => format!("{} - {}", self.name(a), self.name(b)),
            Form::Times(a, b) => format!("{} * {}", self.name(a), self.name(b)),
            Form::Over(a, b) => format!("{} / {}", self.name(a), self.name(b)),
            Form::Larger(a, b) => format!("fmax({}, {})", self.name(a), self.name(b)),
            Form::Choice(a, b, c) => format!("{} > 0 ? {} : {}", self.name(a), self.name(b), self.name(c)),
        }
    }
}

/// The function that does what a pass does with the elements of a launch, factors given; in the GPU shape the `first` work-items, of whole
/// groups, do something else.
fn function(pass: &Pass, style: Style) -> String {
    let vectors = pass.vectors();
    let at = |slot: Slot| vectors.iter().position(|v| *v == slot).unwrap_or_default();
    let mut text = format!("static inline void do_{}(uint first, uint n, uint tiles", pass.name);
    (0..pass.factors().len()).for_each(|k| text.push_str(&format!(", const real k{k}")));
    text.push_str(", __global acc *sums, uint stride, __local acc4 *scratch");
    (0..vectors.len()).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    text.push_str(")\n{\n");
    if !pass.lines.is_empty() {
        match style.shape {
            Shape::Gpu => gpu(&mut text, pass, style, &at),
            Shape::Cpu => cpu(&mut text, pass, &at),
        }
    }
    text.push_str("}\n\n");
    text
}

/// What is done with an element, whose present values are `e` and the vector's number; sums are added up by `sum(k, …)`.
fn element(pass: &Pass, at: &dyn Fn(Slot) -> usize, convert: &str, sum: &dyn Fn(usize, String) -> String) -> String {
    let factors = pass.factors();
    let factor = |node: Node| format!("k{}", factors.iter().position(|factor| *factor == node).unwrap_or_default());
    let mut text = String::new();
    let mut sums = 0;
    for line in &pass.lines {
        match line {
            Line::Assign { to, terms } => {
                let term = |term: &Term| {
                    let value = format!("e{}", at(term.vector));
                    let value = term.scale.map_or(value.clone(), |d| format!("(e{} * {value})", at(d)));
                    term.factor.map_or(value.clone(), |node| format!("{} * {value}", factor(node)))
                };
                let terms: Vec<String> = terms.iter().map(term).collect();
                let _ = write!(text, "e{} = {}; ", at(*to), terms.join(" + "));
            }
            Line::Dot { of: [a, b], weights, .. } => {
                let wide = |slot: Slot| format!("{convert}(e{})", at(slot));
                let product = format!("{} * {}", wide(*a), wide(*b));
                let product = weights.map_or(product.clone(), |w| format!("{} * ({product})", wide(w)));
                let _ = write!(text, "{} ", sum(sums, product));
                sums += 1;
            }
            Line::Defer(Deferred { of: [p, r], alpha, former, .. }) => {
                let [alpha, former] = [alpha, former].map(|node| factor(*node));
                let [x, p, r] = [X, *p, *r].map(at);
                let _ = write!(text, "e{x} = e{x} + ({alpha} * e{p} + deferred_at(i, {former}) * (e{p} - e{r})); ");
            }
            Line::Complete(Deferred { of: [p, r], former, .. }) => {
                let (former, [x, p, r]) = (factor(*former), [X, *p, *r].map(at));
                let finite = if convert == "(acc)" { "finite_or_0" } else { "finite_or_0_8" };
                let _ = write!(text, "e{x} = e{x} + {finite}(deferred_at(i, {former}) * (e{p} - e{r})); ");
            }
            Line::Multiply { .. } | Line::Check(_) => {}
        }
    }
    text
}

/// Where an element of a vector is not to be loaded or stored, if its update is deferred.
fn unless_deferred(pass: &Pass, slot: Slot) -> String {
    let next =
        pass.lines.iter().find_map(|line| if let Line::Defer(deferred) = line { Some(deferred.next) } else { None });
    let k = pass.factors().iter().position(|factor| Some(*factor) == next);
    k.filter(|_| slot == X).map_or(String::new(), |k| format!("if (!is_deferred(i, k{k})) "))
}

fn gpu(text: &mut String, pass: &Pass, style: Style, at: &dyn Fn(Slot) -> usize) {
    let Style { fronts, rounds, .. } = style;
    let (loads, stores, sums) = (pass.loads(), pass.stores(), pass.sums());
    let at_once = fronts * rounds;
    text.push_str(
        "    const uint sets = (get_global_size(0) - first) / LANES;\n    \
         const uint set = get_global_id(0) < first ? tiles : (get_global_id(0) - first) / LANES;\n",
    );
    text.push_str("    const uint lane = get_local_id(0) % LANES;\n");
    for k in 0..sums.len() {
        let zeros = vec!["0"; fronts].join(", ");
        let _ = writeln!(text, "    acc a{k}[{fronts}] = {{{zeros}}};");
    }
    let _ = writeln!(
        text,
        "    for (uint left = (n + {rounds} * tiles * LANES - 1) / ({rounds} * tiles * LANES); left-- > 0;) {{"
    );
    for load in &loads {
        let _ = writeln!(text, "        real x{}[{at_once}];", at(*load));
    }
    let each = |text: &mut String, body: &str| {
        let _ = writeln!(
            text,
            "        UNROLL_BY({at_once})\n        for (uint k = 0; k < {at_once}; k++) {{\n            \
             const uint tile = set + k % {fronts} * sets;\n            \
             const uint i = ((left * {rounds} + {last} - k / {fronts}) * tiles + tile) * LANES + lane;\n            \
             if (tile < tiles && i < n) {{ {body}}}\n        }}",
            last = rounds - 1
        );
    };
    let load = |load: &Slot| format!("{}x{1}[k] = v{1}[i]; ", unless_deferred(pass, *load), at(*load));
    let loading: String = loads.iter().map(load).collect();
    each(text, &loading);
    let mut body = String::new();
    for slot in pass.vectors() {
        let value = if loads.contains(&slot) { format!(" = x{}[k]", at(slot)) } else { String::new() };
        let _ = write!(body, "real e{}{value}; ", at(slot));
    }
    body.push_str(&element(pass, at, "(acc)", &|k, product| format!("a{k}[k % {fronts}] += {product};")));
    for store in &stores {
        let _ = write!(body, "{}v{1}[i] = e{1}; ", unless_deferred(pass, *store), at(*store));
    }
    each(text, &body);
    text.push_str("    }\n");

    let places: Vec<(usize, usize)> = (0..sums.len()).flat_map(|k| (0..fronts).map(move |front| (k, front))).collect();
    if !places.is_empty() {
        let numbers: Vec<String> = places.iter().map(|(k, front)| format!("a{k}[{front}]")).collect();
        together(text, &numbers, "");
        text.push_str("    if (lane == 0) {\n");
        for ((k, front), part) in places.iter().zip(numbers) {
            let tile = format!("set + {front} * sets");
            let _ = writeln!(
                text,
                "        if ({tile} < tiles)\n            sums[{} * stride + {tile}] = {part};",
                sums[*k]
            );
        }
        text.push_str("    }\n");
    }
}

fn cpu(text: &mut String, pass: &Pass, at: &dyn Fn(Slot) -> usize) {
    let (loads, stores, sums) = (pass.loads(), pass.stores(), pass.sums());
    text.push_str(
        "    const uint len = tile_len(n, tiles);\n    \
         uint tile = (uint)((ulong)tiles * get_group_id(0) / get_num_groups(0));\n    \
         const uint last = (uint)((ulong)tiles * (get_group_id(0) + 1) / get_num_groups(0));\n    \
         for (; tile < last; tile++) {\n        \
         uint i = min(n, tile * len);\n        const uint end = min(n, i + len);\n",
    );
    for k in 0..sums.len() {
        let _ = writeln!(text, "        acc8 a{k} = 0; acc b{k} = 0;");
    }
    let block = |text: &mut String,
                 real: &str,
                 load: &dyn Fn(usize) -> String,
                 store: &dyn Fn(usize) -> String,
                 convert,
                 sum: &dyn Fn(usize, String) -> String| {
        let mut body = String::new();
        for slot in pass.vectors() {
            let _ = write!(body, "{real} e{0} = 0; ", at(slot));
            if loads.contains(&slot) {
                let _ = write!(body, "{}e{1} = {2}; ", unless_deferred(pass, slot), at(slot), load(at(slot)));
            }
        }
        body.push_str(&element(pass, at, convert, sum));
        for slot in &stores {
            let _ = write!(body, "{}{} ", unless_deferred(pass, *slot), store(at(*slot)));
        }
        text.push_str(&body);
    };
    text.push_str("        for (; i + 8 <= end; i += 8) { ");
    let load8 = |k: usize| format!("vload8(0, v{k} + i)");
    let store8 = |k: usize| format!("vstore8(e{k}, 0, v{k} + i);");
    block(text, "real8", &load8, &store8, "convert_acc8", &|k, product| format!("a{k} += {product};"));
    text.push_str("}\n        for (; i < end; i++) { ");
    let load = |k: usize| format!("v{k}[i]");
    let store = |k: usize| format!("v{k}[i] = e{k};");
    block(text, "real", &load, &store, "(acc)", &|k, product| format!("b{k} += {product};"));
    text.push_str("}\n");
    for (k, sum) in sums.iter().enumerate() {
        let _ = writeln!(text, "        sums[{sum} * stride + tile] = sum8(a{k}) + b{k};");
    }
    text.push_str("    }\n");
}
