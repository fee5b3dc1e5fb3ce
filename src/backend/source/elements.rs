//! What a pass does with elements: with owned ones, in both shapes of a kernel, and with those of halos.

use std::fmt::Write;

use super::{Style, together};
use crate::backend::deferred::Deferred;
use crate::backend::program::Pass;
use crate::backend::scalar::Node;
use crate::backend::text::{Line, Slot, Term, X};
use crate::kernels::Shape;

/// What elements are taken as.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements {
    /// The type,
    real: &'static str,
    /// what makes it one of sums,
    convert: &'static str,
    /// the function that multiplies by i,
    turned: &'static str,
    /// that which sets numbers to 0 that are not finite,
    finite_or_0: &'static str,
    /// and how many there are in it.
    count: usize,
}

impl Elements {
    const ONE: Self = Self { real: "real", convert: "(acc)", turned: "", finite_or_0: "finite_or_0", count: 1 };
    const TWO: Self = Self { real: "real2", convert: "convert_acc2", turned: "turned2", finite_or_0: "", count: 2 };
    const EIGHT: Self =
        Self { real: "real8", convert: "convert_acc8", turned: "turned8", finite_or_0: "finite_or_0_8", count: 8 };

    /// Those of the GPU shape, and of what is left in the other one: a pair of real and imaginary part belongs together.
    pub(super) fn of(pass: &Pass) -> Self {
        if pass.is_complex { Self::TWO } else { Self::ONE }
    }

    /// Lets vectors and `n` be those of such elements, in a function over `n` numbers.
    fn begin(self, text: &mut String, n: &str, vectors: usize) {
        if self.count > 1 {
            text.push_str(n);
            (0..vectors).for_each(|k| {
                let _ = writeln!(text, "    __global {0} *p{k} = (__global {0} *)v{k};", self.real);
            });
        }
    }

    /// What the names of vectors begin with.
    fn vector(self) -> &'static str {
        if self.count > 1 { "p" } else { "v" }
    }

    /// A product of such elements as a number.
    fn sum(self, product: &str) -> String {
        if self.count > 1 { format!("sum2({product})") } else { product.into() }
    }
}

/// The function that does to part of a halo what a pass does to owned elements.
pub(super) fn on_halo_function(pass: &Pass) -> String {
    let (vectors, loads) = (pass.vectors(), pass.loads());
    let at = |slot: Slot| vectors.iter().position(|v| *v == slot).unwrap_or_default();
    let mut text = format!(
        "static inline void do_{}(uint n, uint pieces, __global const uint *firsts, uint group, uint groups",
        pass.name
    );
    (0..pass.factors().len()).for_each(|k| text.push_str(&format!(", const real k{k}")));
    (0..vectors.len()).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    let of = Elements::of(pass);
    let (real, v, count) = (of.real, of.vector(), of.count);
    text.push_str(")\n{\n");
    of.begin(&mut text, "", vectors.len());
    let _ = write!(
        text,
        "    for (uint piece = group; piece < pieces; piece += groups)\n        \
         for (uint i = (n + firsts[piece]) / {count} + get_local_id(0); i < (n + firsts[piece + 1]) / {count}; i += GROUP_SIZE) {{\n        ",
    );
    for slot in &vectors {
        let value = if loads.contains(slot) { format!(" = {v}{}[i]", at(*slot)) } else { String::new() };
        let _ = write!(text, "{real} e{}{value}; ", at(*slot));
    }
    text.push_str(&element(pass, &at, of, &|_, _| String::new()));
    pass.stores().iter().for_each(|slot| text.push_str(&format!("{v}{0}[i] = e{0}; ", at(*slot))));
    text.push_str("\n    }\n}\n\n");
    text
}

/// The function that does what a pass does with the elements of a launch, factors given; in the GPU shape the `first` work-items, of whole
/// groups, do something else.
pub(super) fn function(pass: &Pass, style: Style) -> String {
    let vectors = pass.vectors();
    let at = |slot: Slot| vectors.iter().position(|v| *v == slot).unwrap_or_default();
    let mut text = format!("static inline void do_{}(uint first, uint n, uint tiles", pass.name);
    (0..pass.factors().len()).for_each(|k| text.push_str(&format!(", const real k{k}")));
    text.push_str(", __global acc *sums, uint stride, __local acc4 *scratch");
    (0..vectors.len()).for_each(|k| text.push_str(&format!(", __global real *v{k}")));
    text.push_str(")\n{\n");
    if !pass.lines.is_empty() {
        match style.shape {
            Shape::Gpu => {
                Elements::of(pass).begin(&mut text, "    n /= 2;\n", vectors.len());
                gpu(&mut text, pass, style, &at);
            }
            Shape::Cpu => cpu(&mut text, pass, &at),
        }
    }
    text.push_str("}\n\n");
    text
}

/// What is done with an element, whose present values are `e` and the vector's number; sums are added up by `sum(k, …)`.
pub(super) fn element(
    pass: &Pass,
    at: &dyn Fn(Slot) -> usize,
    of: Elements,
    sum: &dyn Fn(usize, String) -> String,
) -> String {
    let Elements { convert, turned, finite_or_0, .. } = of;
    let factors = pass.factors();
    let factor = |node: Node| format!("k{}", factors.iter().position(|factor| *factor == node).unwrap_or_default());
    let mut text = String::new();
    let mut sums = 0;
    for line in &pass.lines {
        match line {
            Line::Assign { to, terms } => {
                let term = |term: &Term| {
                    let value = format!("e{}", at(term.vector));
                    let value = if term.turned { format!("{turned}({value})") } else { value };
                    let value = term.scale.map_or(value.clone(), |d| format!("(e{} * {value})", at(d)));
                    term.factor.map_or(value.clone(), |node| format!("{} * {value}", factor(node)))
                };
                let terms: Vec<String> = terms.iter().map(term).collect();
                let _ = write!(text, "e{} = {}; ", at(*to), terms.join(" + "));
            }
            Line::Dot { of: [a, b], weights, turned: is_turned, .. } => {
                let wide = |slot: Slot| format!("{convert}(e{})", at(slot));
                let first = if *is_turned { format!("{convert}({turned}(e{}))", at(*a)) } else { wide(*a) };
                let product = format!("{first} * {}", wide(*b));
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
                let _ = write!(text, "e{x} = e{x} + {finite_or_0}(deferred_at(i, {former}) * (e{p} - e{r})); ");
            }
            Line::Multiply { .. } | Line::Check(_) => {}
        }
    }
    text
}

/// Where an element of a vector is not to be loaded or stored, if its update is deferred.
pub(super) fn unless_deferred(pass: &Pass, slot: Slot) -> String {
    let next =
        pass.lines.iter().find_map(|line| if let Line::Defer(deferred) = line { Some(deferred.next) } else { None });
    let k = pass.factors().iter().position(|factor| Some(*factor) == next);
    k.filter(|_| slot == X).map_or(String::new(), |k| format!("if (!is_deferred(i, k{k})) "))
}

fn gpu(text: &mut String, pass: &Pass, style: Style, at: &dyn Fn(Slot) -> usize) {
    text.push_str(
        "    const uint sets = (get_global_size(0) - first) / LANES;\n    \
         const uint set = get_global_id(0) < first ? tiles : (get_global_id(0) - first) / LANES;\n    \
         const uint lane = get_local_id(0) % LANES;\n",
    );
    front(text, pass, style, at, &|_| "i");
    let sums = pass.sums();
    let places: Vec<(usize, usize)> =
        (0..sums.len()).flat_map(|k| (0..style.fronts).map(move |front| (k, front))).collect();
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

/// What the work-items of a `set`, one of `sets`, do with the elements of its tiles: sum k of front f is then in `ak[f]`, each `lane`'s own.
/// Element i of a vector is at `index`.
pub(super) fn front(
    text: &mut String,
    pass: &Pass,
    style: Style,
    at: &dyn Fn(Slot) -> usize,
    index: &dyn Fn(Slot) -> &'static str,
) {
    let Style { fronts, rounds, .. } = style;
    let of = Elements::of(pass);
    let (real, v) = (of.real, of.vector());
    let (loads, stores) = (pass.loads(), pass.stores());
    let at_once = fronts * rounds;
    for k in 0..pass.sums().len() {
        let zeros = vec!["0"; fronts].join(", ");
        let _ = writeln!(text, "    acc a{k}[{fronts}] = {{{zeros}}};");
    }
    let _ = writeln!(
        text,
        "    for (uint left = (n + {rounds} * tiles * LANES - 1) / ({rounds} * tiles * LANES); left-- > 0;) {{"
    );
    for load in &loads {
        let _ = writeln!(text, "        {real} x{}[{at_once}];", at(*load));
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
    let load = |load: &Slot| {
        let (unless, at, index) = (unless_deferred(pass, *load), at(*load), index(*load));
        format!("{unless}x{at}[k] = {v}{at}[{index}]; ")
    };
    let loading: String = loads.iter().map(load).collect();
    each(text, &loading);
    let mut body = String::new();
    for slot in pass.vectors() {
        let value = if loads.contains(&slot) { format!(" = x{}[k]", at(slot)) } else { String::new() };
        let _ = write!(body, "{real} e{}{value}; ", at(slot));
    }
    body.push_str(&element(pass, at, of, &|k, product| format!("a{k}[k % {fronts}] += {};", of.sum(&product))));
    for store in &stores {
        let _ = write!(body, "{}{v}{1}[i] = e{1}; ", unless_deferred(pass, *store), at(*store));
    }
    each(text, &body);
    text.push_str("    }\n");
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
                 of: Elements,
                 load: &dyn Fn(usize) -> String,
                 store: &dyn Fn(usize) -> String,
                 sum: &dyn Fn(usize, String) -> String| {
        let mut body = String::new();
        for slot in pass.vectors() {
            let _ = write!(body, "{0} e{1} = 0; ", of.real, at(slot));
            if loads.contains(&slot) {
                let _ = write!(body, "{}e{1} = {2}; ", unless_deferred(pass, slot), at(slot), load(at(slot)));
            }
        }
        body.push_str(&element(pass, at, of, sum));
        for slot in &stores {
            let _ = write!(body, "{}{} ", unless_deferred(pass, *slot), store(at(*slot)));
        }
        text.push_str(&body);
    };
    text.push_str("        for (; i + 8 <= end; i += 8) { ");
    let load8 = |k: usize| format!("vload8(0, v{k} + i)");
    let store8 = |k: usize| format!("vstore8(e{k}, 0, v{k} + i);");
    block(text, Elements::EIGHT, &load8, &store8, &|k, product| format!("a{k} += {product};"));
    let of = Elements::of(pass);
    let count = of.count;
    let _ = write!(text, "}}\n        for (; i + {count} <= end; i += {count}) {{ ");
    let load = |k: usize| if count == 1 { format!("v{k}[i]") } else { format!("vload{count}(0, v{k} + i)") };
    let store =
        |k: usize| if count == 1 { format!("v{k}[i] = e{k};") } else { format!("vstore{count}(e{k}, 0, v{k} + i);") };
    block(text, of, &load, &store, &|k, product| format!("b{k} += {};", of.sum(&product)));
    text.push_str("}\n");
    for (k, sum) in sums.iter().enumerate() {
        let _ = writeln!(text, "        sums[{sum} * stride + tile] = sum8(a{k}) + b{k};");
    }
    text.push_str("    }\n");
}
