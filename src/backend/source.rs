//! The OpenCL C of a program's passes: see `cl/passes.cl` for what they are made of, and for the order of sums.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::program::{Pass, Program, Step};
use super::scalar::{Form, Node};
use super::text::{Check, CheckKind, Line, Slot};
use crate::kernels::Shape;

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
        let formed = program.passes().flat_map(|pass| &pass.forms).copied();
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

/// The kernel of a pass with factors that the host gives, and of the same on a halo, `begin .. begin + n`.
///
/// ```text
/// NAME_given(begin, n, tiles, factors…, sums, stride, vectors…)
/// ```
pub(crate) fn given(pass: &Pass, style: Style) -> String {
    let mut text = function(pass, style);
    let name = &pass.name;
    let factors = pass.factors().len();
    let vectors = pass.vectors().len();
    let _ = write!(text, "KERNEL void {name}_given(uint begin, uint n, uint tiles");
    (0..factors).for_each(|k| text.push_str(&format!(", acc f{k}")));
    text.push_str(", __global acc *sums, uint stride");
    (0..vectors).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    let _ = writeln!(text, ")\n{{\n    __local acc4 scratch[GROUP_SIZE];");
    let _ = write!(text, "    {name}(n, tiles");
    (0..factors).for_each(|k| text.push_str(&format!(", (real)f{k}")));
    text.push_str(", sums, stride, scratch");
    (0..vectors).for_each(|k| text.push_str(&format!(", v{k} + begin")));
    text.push_str(");\n}\n\n");
    text
}

/// The kernel of a pass on a device that works alone, which forms its factors itself.
///
/// ```text
/// NAME_alone(n, tiles, now, before, limit, log, done, done_next, (partials, count) of products…, sums, stride, vectors…)
/// ```
///
/// `now` and `before` say where the rows of this iteration and of the former one are in the log.
pub(crate) fn alone(pass: &Pass, program: &Program, columns: &Columns, style: Style) -> String {
    let partials = partials(program);
    let mut text = function(pass, style);
    let name = &pass.name;
    let _ = write!(
        text,
        "KERNEL void {name}_alone(uint n, uint tiles, uint now, uint before, acc limit, __global acc *log, \
         __global const int *done, __global int *done_next"
    );
    for product in products_of(pass, &partials) {
        let _ = write!(text, ", __global const acc *dots{product}, uint count{product}");
    }
    text.push_str(", __global acc *sums, uint stride");
    (0..pass.vectors().len()).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    text.push_str(")\n{\n    __local acc4 scratch[GROUP_SIZE];\n    const int was_done = *done;\n");
    totals(&mut text, pass, &partials);

    let mut head = Head { program, columns, pass, names: BTreeMap::new(), text: String::new() };
    let factors: Vec<String> = pass.factors().into_iter().map(|node| head.name(node)).collect();
    let [before, after] = [&pass.before, &pass.after]
        .map(|checks| checks.iter().map(|check| goes_on(check, &head.name(check.node))).collect::<Vec<_>>());
    let formed: Vec<(usize, String)> =
        pass.forms.iter().filter_map(|node| Some((columns.column(*node)?, head.name(*node)))).collect();
    let is_first = program.passes().next().is_some_and(|first| first.name == pass.name);
    let is_left_here = |next: Node| {
        let is_plain = matches!(program.scalars.form(next), Form::Constant(_) | Form::Carried(_));
        pass.forms.contains(&next) || is_plain && is_first
    };
    let left: Vec<(usize, String)> = program
        .carried
        .iter()
        .enumerate()
        .filter(|(_, carried)| is_left_here(carried.next))
        .map(|(k, carried)| (columns.carried(k), head.name(carried.next)))
        .collect();
    text.push_str(&head.text);
    let all = |conditions: &[String]| conditions.iter().map(|c| format!(" && {c}")).collect::<String>();
    let _ = writeln!(text, "    const int goes_on = !was_done{};", all(&before));
    let _ = writeln!(text, "    if (get_global_id(0) == 0) {{\n        if (!was_done) {{");
    for (column, value) in formed.iter().chain(&left) {
        let _ = writeln!(text, "            log[now + {column}] = {value};");
    }
    let _ = writeln!(text, "        }}\n        *done_next = !(goes_on{});\n    }}", all(&after));
    let _ = write!(text, "    {name}(goes_on ? n : 0, tiles");
    factors.iter().for_each(|factor| text.push_str(&format!(", (real){factor}")));
    text.push_str(", sums, stride, scratch");
    (0..pass.vectors().len()).for_each(|k| text.push_str(&format!(", v{k}")));
    text.push_str(");\n}\n\n");
    text
}

/// When a check lets the iteration go on.
fn goes_on(check: &Check, value: &str) -> String {
    let least = match check.kind {
        CheckKind::Curvature => "0",
        CheckKind::Norm => "limit",
    };
    format!("{value} > {least} && isfinite({value})")
}

/// Adds up the partial sums that a pass needs: `t` and the number of the sum.
fn totals(text: &mut String, pass: &Pass, partials: &BTreeMap<usize, Partials>) {
    for sum in &pass.awaits {
        let place = match partials.get(sum) {
            Some(Partials::Product(k, is_second)) => format!("dots{k} + {}, count{k}, 2", usize::from(*is_second)),
            Some(Partials::Pass) | None => format!("sums + {sum} * stride, tiles, 1"),
        };
        let _ = writeln!(text, "    acc t{sum} = part_of_total({place});");
    }
    for sums in pass.awaits.chunks(4) {
        let parts: Vec<String> = sums.iter().map(|sum| format!("t{sum}")).collect();
        together(text, &parts, "first_", |text, parts| {
            for (sum, part) in sums.iter().zip(parts) {
                let _ = writeln!(text, "        t{sum} = {part};");
            }
        });
    }
}

/// Forms sums over lanes of up to four numbers at once, and does `then` with them.
fn together(text: &mut String, numbers: &[String], first: &str, then: impl FnOnce(&mut String, &[String])) {
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
    let parts: Vec<String> =
        (0..numbers.len()).map(|k| if width == 1 { "s".into() } else { format!("s.s{k}") }).collect();
    then(text, &parts);
    text.push_str("    }\n");
}

/// The scalars of a pass.
struct Head<'a> {
    program: &'a Program,
    columns: &'a Columns,
    pass: &'a Pass,
    names: BTreeMap<Node, String>,
    text: String,
}

impl Head<'_> {
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
        let value = match (self.columns.column(node), self.program.scalars.form(node)) {
            (_, Form::Constant(value)) => format!("(acc)({value:?})"),
            (Some(column), _) if is_formed_before => format!("log[now + {column}]"),
            (_, Form::Sum(sum)) => format!("t{sum}"),
            (_, Form::Carried(k)) => format!("log[before + {}]", self.columns.carried(k)),
            (_, Form::Negative(a)) => format!("-{}", self.name(a)),
            (_, Form::Root(a)) => format!("sqrt({})", self.name(a)),
            (_, Form::Plus(a, b)) => format!("{} + {}", self.name(a), self.name(b)),
            (_, Form::Minus(a, b)) => format!("{} - {}", self.name(a), self.name(b)),
            (_, Form::Times(a, b)) => format!("{} * {}", self.name(a), self.name(b)),
            (_, Form::Over(a, b)) => format!("{} / {}", self.name(a), self.name(b)),
        };
        let name = format!("n{}", node.0);
        let _ = writeln!(self.text, "    const acc {name} = {value};");
        self.names.insert(node, name.clone());
        name
    }
}

/// The function that does what a pass does with the elements of a launch, factors given.
fn function(pass: &Pass, style: Style) -> String {
    let vectors = pass.vectors();
    let at = |slot: Slot| vectors.iter().position(|v| *v == slot).unwrap_or_default();
    let mut text = format!("static inline void {}(uint n, uint tiles", pass.name);
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
    let mut text = String::new();
    let mut sums = 0;
    for line in &pass.lines {
        match line {
            Line::Assign { to, terms } => {
                let term = |term: &super::text::Term| match term.factor {
                    None => format!("e{}", at(term.vector)),
                    Some(node) => {
                        let k = factors.iter().position(|factor| *factor == node).unwrap_or_default();
                        format!("k{k} * e{}", at(term.vector))
                    }
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
            Line::Multiply { .. } | Line::Check(_) => {}
        }
    }
    text
}

fn gpu(text: &mut String, pass: &Pass, style: Style, at: &dyn Fn(Slot) -> usize) {
    let Style { fronts, rounds, .. } = style;
    let (loads, stores, sums) = (pass.loads(), pass.stores(), pass.sums());
    let at_once = fronts * rounds;
    text.push_str("    const uint set = get_global_id(0) / LANES, sets = get_global_size(0) / LANES;\n");
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
    let loading: String = loads.iter().map(|load| format!("x{0}[k] = v{0}[i]; ", at(*load))).collect();
    each(text, &loading);
    let mut body = String::new();
    for slot in pass.vectors() {
        let value = if loads.contains(&slot) { format!(" = x{}[k]", at(slot)) } else { String::new() };
        let _ = write!(body, "real e{}{value}; ", at(slot));
    }
    body.push_str(&element(pass, at, "(acc)", &|k, product| format!("a{k}[k % {fronts}] += {product};")));
    for store in &stores {
        let _ = write!(body, "v{0}[i] = e{0}; ", at(*store));
    }
    each(text, &body);
    text.push_str("    }\n");

    let places: Vec<(usize, usize)> = (0..sums.len()).flat_map(|k| (0..fronts).map(move |front| (k, front))).collect();
    for places in places.chunks(4) {
        let numbers: Vec<String> = places.iter().map(|(k, front)| format!("a{k}[{front}]")).collect();
        together(text, &numbers, "", |text, parts| {
            for ((k, front), part) in places.iter().zip(parts) {
                let _ = writeln!(
                    text,
                    "        if (lane == 0 && set + {front} * sets < tiles)\n            \
                     sums[{} * stride + set + {front} * sets] = {part};",
                    sums[*k]
                );
            }
        });
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
            let value = if loads.contains(&slot) { format!(" = {}", load(at(slot))) } else { String::new() };
            let _ = write!(body, "{real} e{}{value}; ", at(slot));
        }
        body.push_str(&element(pass, at, convert, sum));
        for slot in &stores {
            let _ = write!(body, "{} ", store(at(*slot)));
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
