//! A method as it is run: what was said, in as few passes over the vectors as it can be done in.
//!
//! A *pass* sets some vectors to linear combinations and forms some sums. It loads each array once, and stores once what it sets.
//! A line joins the pass of the line before, unless it needs a sum of that pass, or there is a product between. Then lines move to
//! the next pass where that saves arrays: the iterate of conjugate gradients, whose next value nobody waits for, goes along with the
//! direction.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::deferred::Deferred;
use super::scalar::{Form, Node, Scalars};
use super::text::{Carried, Check, Kind, Line, MATRIX, OWN, Preconditioner, R, Recorder, Recording, Slot, WEIGHTS};

/// A method, fused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Program {
    /// The method's name.
    pub(crate) method: &'static str,
    /// The vectors' names, by their place.
    pub(crate) names: Vec<&'static str>,
    /// All scalars.
    pub(crate) scalars: Scalars,
    /// Number of sums.
    pub(crate) sums: usize,
    /// What an iteration leaves to the next.
    pub(crate) carried: Vec<Carried>,
    /// What a run begins with: it forms r·r and what the test looks at,
    pub(crate) begin: Vec<Step>,
    /// which is this.
    pub(crate) norm2: Node,
    /// What is done before the first iteration.
    pub(crate) start: Vec<Step>,
    /// The same for a run that takes over the direction of the one before.
    pub(crate) resume: Vec<Step>,
    /// What an iteration does.
    pub(crate) iteration: Vec<Step>,
    /// What is formed and looked at of sums that the last pass of an iteration leaves: by the first pass of the next one.
    pub(crate) last: Option<Pass>,
    /// The update of x of which half is deferred,
    pub(crate) deferred: Option<Deferred>,
    /// and what makes up for it when a run ends.
    pub(crate) complete: Vec<Step>,
    /// Where the vector in each place is in the next iteration: that which is at `order[k]` now comes to place k.
    pub(crate) order: Vec<Slot>,
    /// The vector that a run may take over from the one before.
    pub(crate) direction: Option<Slot>,
    /// Vectors that stay as they are, and their elements on this rank.
    pub(crate) given: Vec<(Slot, Arc<Vec<f64>>)>,
    /// Vectors of random numbers, which stay, too.
    pub(crate) random: Vec<Slot>,
    /// Iterations after which a run ends for another one to begin with the true residual, in double and in single precision.
    pub(crate) replace_every: Option<[u64; 2]>,
    /// Whether p·A p is a difference, which may have lost its sign to rounding.
    pub(crate) derives_curvature: bool,
    /// Vectors that must be zeros when a run begins: they are used before they are set.
    pub(crate) zeroed: Vec<Slot>,
    /// Whether ranks keep each vector up to date on its halo, too: what is multiplied, and what that is made of;
    pub(crate) has_halo: Vec<bool>,
    /// and the operator whose halo that is.
    pub(crate) operator_of: Vec<usize>,
    /// The sum in whose place the tolerance of a run is, if the method asks for it.
    pub(crate) tolerance: Option<usize>,
}

/// A part of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The norms of the first residual.
    Begin,
    /// What comes before the first iteration,
    Start,
    /// or if the run takes over the direction of the one before.
    Resume,
    /// An iteration.
    Iteration,
    /// The updates that were deferred.
    Complete,
}

/// A part of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// y = A x, with sums of products of the two.
    Multiply(Multiply),
    /// A pass over vectors.
    Pass(Pass),
}

impl Step {
    /// The sums that it forms, if it is a product.
    fn sums_of_product(&self) -> Vec<usize> {
        if let Self::Multiply(multiply) = self { multiply.sums().collect() } else { Vec::new() }
    }
}

/// A product with the matrix.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Multiply {
    /// The number of the operator.
    pub(crate) operator: usize,
    /// Whether ranks exchange the halo of x for this product.
    pub(crate) fills: bool,
    /// The vector that is multiplied.
    pub(crate) x: Slot,
    /// The product.
    pub(crate) y: Slot,
    /// The sum that is x·y, if there is one.
    pub(crate) xy: Option<usize>,
    /// The sum that is y·y.
    pub(crate) yy: Option<usize>,
    /// Whether a pass awaits one of these sums before the next product: then all of y is there.
    pub(crate) is_awaited: bool,
}

impl Multiply {
    /// Its sums.
    pub(crate) fn sums(&self) -> impl Iterator<Item = usize> {
        [self.xy, self.yy].into_iter().flatten()
    }
}

/// A pass over vectors.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Pass {
    /// Its name in timings and tuning, and that of its kernel.
    pub(crate) name: String,
    /// What is done with each element, in order: assignments and dot products.
    pub(crate) lines: Vec<Line>,
    /// What is looked at before: if it fails, nothing is done.
    pub(crate) before: Vec<Check>,
    /// What is looked at, too, though it ends the run only after the pass.
    pub(crate) after: Vec<Check>,
    /// Scalars that are first formed for this pass and are needed later on.
    pub(crate) forms: Vec<Node>,
    /// The sums that those, and the factors of the pass, are formed of, and that were not formed before.
    pub(crate) awaits: Vec<usize>,
    /// Whether elements are pairs of real and imaginary parts.
    pub(crate) is_complex: bool,
}

impl Pass {
    /// Vectors that it loads, in the order of their first use.
    pub(crate) fn loads(&self) -> Vec<Slot> {
        let (mut loads, mut set) = (Vec::new(), Vec::new());
        for line in &self.lines {
            for slot in line.reads() {
                if !set.contains(&slot) && !loads.contains(&slot) {
                    loads.push(slot);
                }
            }
            set.extend(line.sets());
        }
        loads
    }

    /// Vectors that it stores, in the order in which they are first set.
    pub(crate) fn stores(&self) -> Vec<Slot> {
        let mut stores = Vec::new();
        for to in self.lines.iter().filter_map(Line::sets) {
            if !stores.contains(&to) {
                stores.push(to);
            }
        }
        stores
    }

    /// All vectors that it has to do with: those that it loads, then others that it stores.
    pub(crate) fn vectors(&self) -> Vec<Slot> {
        let mut all = self.loads();
        for slot in self.stores() {
            if !all.contains(&slot) {
                all.push(slot);
            }
        }
        all
    }

    /// Arrays that it moves: each that it loads counts once, and each that it stores; half of one whose update is deferred.
    pub(crate) fn arrays_moved(&self) -> usize {
        let is_deferred = self.lines.iter().any(|line| matches!(line, Line::Defer(_)));
        self.loads().len() + self.stores().len() - usize::from(is_deferred)
    }

    /// The sums that it forms, in order.
    pub(crate) fn sums(&self) -> Vec<usize> {
        let sum = |line: &Line| if let Line::Dot { sum, .. } = line { Some(*sum) } else { None };
        self.lines.iter().filter_map(sum).collect()
    }

    /// The factors of its terms, each once, in the order of their first use.
    pub(crate) fn factors(&self) -> Vec<Node> {
        let mut factors = Vec::new();
        for node in self.lines.iter().flat_map(Line::factors) {
            if !factors.contains(&node) {
                factors.push(node);
            }
        }
        factors
    }

    /// What it does to vectors that ranks keep up to date on their halos.
    pub(crate) fn on_halo(&self, has_halo: &[bool]) -> Self {
        let is_kept = |line: &&Line| matches!(line, Line::Assign { to, .. } if has_halo[*to]);
        Self {
            lines: self.lines.iter().filter(is_kept).cloned().collect(),
            name: self.name.strip_suffix("_step").unwrap_or(&self.name).to_owned() + "_halo",
            is_complex: self.is_complex,
            ..Self::default()
        }
    }
}

impl Program {
    /// What `method` says of such a system, with a preconditioner to be applied, if there is one.
    pub(crate) fn new(
        name: &'static str,
        of: Kind,
        preconditioner: Option<Arc<dyn Preconditioner>>,
        method: impl FnOnce(&Recorder),
    ) -> Self {
        let recorder = Recorder::new(of, preconditioner);
        method(&recorder);
        assert!(!recorder.forgets_preconditioner(), "{name} applies no preconditioner");
        let recording = recorder.finish();
        let Recording {
            direction, ref given, ref kept, ref random, replace_every, derives_curvature, tolerance, ..
        } = recording;
        let taken_over: Vec<Slot> = direction.iter().chain(kept).copied().collect();
        let (given, random) = (given.clone(), random.clone());
        let Recording { names, mut scalars, sums, mut carried, begin, norm2, start, iteration, order, .. } = recording;
        assert!(products_stay(&iteration, &order), "{name}: a product is set to something else before the next one");
        let operators = halos(&iteration, &order);
        assert!(halos_agree(&iteration, &operators), "{name}: a halo is not that of the next product");
        let has_halo = operators.iter().map(Option::is_some).collect();
        let operator_of = operators.iter().map(|operator| operator.unwrap_or(MATRIX)).collect();
        let is_given = |slot: &Slot| random.contains(slot) || given.iter().any(|(other, _)| other == slot);
        let mut zeroed = used_before_set(start.iter().chain(&iteration));
        zeroed.retain(|slot| !is_given(slot));
        let mut steps = fuse(&iteration, &scalars, true);
        let deferred = Deferred::find(&mut steps, &order, &mut scalars, &mut carried);
        // what else looks at the direction and at x from outside knows where they are
        assert!(direction.is_none_or(|slot| slot == OWN), "{name}: the direction is the first vector of a method");
        let is_known = |deferred: Deferred| deferred.of == [OWN, R];
        assert!(deferred.is_none_or(is_known), "{name}: x is updated by the direction, and that by r");
        let complete = Pass { lines: deferred.map(Line::Complete).into_iter().collect(), ..Pass::default() };
        let mut program = Self {
            method: name,
            begin: fuse(&begin, &scalars, false),
            norm2: norm2.unwrap_or_else(|| unreachable!("every text begins with it")),
            start: fuse(&start, &scalars, false),
            resume: fuse(&without(&start, &taken_over), &scalars, false),
            iteration: steps,
            last: None,
            complete: deferred.map(|_| Step::Pass(complete)).into_iter().collect(),
            deferred,
            names,
            scalars,
            sums,
            carried,
            order,
            direction,
            given,
            random,
            replace_every,
            derives_curvature,
            zeroed,
            has_halo,
            operator_of,
            tolerance,
        };
        program.form_scalars();
        program.find_awaited();
        program.name_passes();
        program.passes_mut().for_each(|(pass, _)| pass.is_complex = of.is_complex);
        program
    }

    /// Finds out of which products a sum is awaited before the next one, or the end of the iteration.
    fn find_awaited(&mut self) {
        let steps = self.iteration.clone();
        for (k, step) in self.iteration.iter_mut().enumerate() {
            let Step::Multiply(multiply) = step else { continue };
            let until_next =
                steps[k + 1..].iter().map_while(|step| if let Step::Pass(pass) = step { Some(pass) } else { None });
            let sums: Vec<usize> = multiply.sums().collect();
            multiply.is_awaited = until_next.flat_map(|pass| &pass.awaits).any(|sum| sums.contains(sum));
        }
    }

    /// The steps of a part.
    pub(crate) fn steps(&self, stage: Stage) -> &[Step] {
        match stage {
            Stage::Begin => &self.begin,
            Stage::Start => &self.start,
            Stage::Resume => &self.resume,
            Stage::Iteration => &self.iteration,
            Stage::Complete => &self.complete,
        }
    }

    /// Arrays that the passes of an iteration move, by the rule of bytes: its products not counted.
    pub(crate) fn arrays_moved(&self) -> usize {
        self.passes().map(Pass::arrays_moved).sum()
    }

    /// Vectors that stay as they are, of which all columns share one: the weights, those that are given, and random ones.
    pub(crate) fn shared(&self) -> Vec<Slot> {
        let given = self.given.iter().map(|(slot, _)| *slot);
        std::iter::once(WEIGHTS).chain(given).chain(self.random.iter().copied()).collect()
    }

    /// Vectors beside the iterate, the residual and the weights.
    pub(crate) fn own_vectors(&self) -> usize {
        self.names.len() - OWN
    }

    /// Products of an iteration.
    pub(crate) fn products(&self) -> usize {
        self.iteration.iter().filter(|step| matches!(step, Step::Multiply(_))).count()
    }

    /// How often an iteration, or else what comes before the first one, multiplies by each operator.
    pub(crate) fn products_by_operator(&self) -> Vec<u64> {
        let steps = if self.iteration.is_empty() { &self.start } else { &self.iteration };
        let mut counts = vec![0; MATRIX + 1];
        for step in steps {
            if let Step::Multiply(Multiply { operator, .. }) = step {
                counts.resize(counts.len().max(operator + 1), 0);
                counts[*operator] += 1;
            }
        }
        counts
    }

    /// Whether a pass is the first of an iteration.
    pub(crate) fn is_first(&self, pass: &Pass) -> bool {
        self.passes().next().is_some_and(|first| first.name == pass.name)
    }

    /// What of the former iteration a pass forms ahead of its own.
    pub(crate) fn finished_by(&self, pass: &Pass) -> Option<&Pass> {
        self.last.as_ref().filter(|_| self.is_first(pass))
    }

    /// Sums that a pass needs: those that the former iteration has left to it, and its own.
    pub(crate) fn awaited_by<'a>(&'a self, pass: &'a Pass) -> [&'a [usize]; 2] {
        [self.finished_by(pass).map_or(&[], |last| &last.awaits), &pass.awaits]
    }

    /// The passes of an iteration.
    pub(crate) fn passes(&self) -> impl Iterator<Item = &Pass> {
        self.iteration.iter().filter_map(|step| if let Step::Pass(pass) = step { Some(pass) } else { None })
    }

    /// All that is looked at in an iteration, in order.
    pub(crate) fn checks(&self) -> impl Iterator<Item = Check> {
        self.passes().chain(&self.last).flat_map(|pass| pass.before.iter().chain(&pass.after)).copied()
    }

    /// Scalars that are needed when an iteration is over: what it leaves to the next, and what is looked at.
    fn results(&self) -> BTreeSet<Node> {
        self.carried.iter().map(|carried| carried.next).chain(self.checks().map(|check| check.node)).collect()
    }

    /// Decides which pass of an iteration forms which scalars, so that later ones find them. What is left at the end, a pass of
    /// its own forms.
    fn form_scalars(&mut self) {
        // a pass of checks alone comes last of all
        if let Some(Step::Pass(pass)) =
            self.iteration.pop_if(|step| matches!(step, Step::Pass(pass) if pass.lines.is_empty()))
        {
            self.last = Some(pass);
        }
        let results = self.results();
        let needed = |pass: &Pass| {
            let checks = pass.before.iter().chain(&pass.after).map(|check| check.node);
            pass.factors().into_iter().chain(checks).collect::<BTreeSet<Node>>()
        };
        let mut later: BTreeSet<Node> = results.clone();
        let mut needs: Vec<BTreeSet<Node>> = Vec::new();
        for step in self.iteration.iter().rev() {
            needs.push(later.clone());
            if let Step::Pass(pass) = step {
                later.extend(needed(pass));
            }
        }
        needs.reverse();

        let (mut there, mut formed) = (BTreeSet::new(), BTreeSet::new());
        let scalars = self.scalars.clone();
        let form = |pass: &mut Pass, later: &BTreeSet<Node>, there: &BTreeSet<usize>, formed: &mut BTreeSet<Node>| {
            let is_ready = |node: Node| !scalars.awaits(node, &|sum| !there.contains(&sum));
            let own = needed(pass);
            let is_number = |node: &Node| matches!(scalars.form(*node), Form::Constant(_));
            let is_formed_here = |node: &Node| is_ready(*node) && !formed.contains(node) && !is_number(node);
            pass.forms = later.iter().copied().filter(is_formed_here).collect();
            let nodes = own.iter().chain(&pass.forms).copied().collect();
            pass.awaits = scalars.sums_of(nodes, formed).into_iter().collect();
            formed.extend(pass.forms.iter().copied());
        };
        for (step, later) in self.iteration.iter_mut().zip(&needs) {
            match step {
                Step::Multiply(multiply) => there.extend(multiply.sums()),
                Step::Pass(pass) => {
                    form(pass, later, &there, &mut formed);
                    there.extend(pass.sums());
                }
            }
        }
        let is_number = |node: &Node| matches!(scalars.form(*node), Form::Constant(_));
        if self.last.is_some() || results.iter().any(|node| !formed.contains(node) && !is_number(node)) {
            let mut last = self.last.take().unwrap_or_default();
            form(&mut last, &results, &there, &mut formed);
            // sums of products are gone when the next iteration has its own
            let of_products: Vec<usize> = self.iteration.iter().flat_map(Step::sums_of_product).collect();
            if self.passes().next().is_none() || last.awaits.iter().any(|sum| of_products.contains(sum)) {
                self.iteration.push(Step::Pass(last));
            } else {
                self.last = Some(last);
            }
        }
    }

    /// Names passes by what they set, or by their sums; the only one of an iteration is the method's step.
    fn name_passes(&mut self) {
        let (method, names) = (self.method.replace('-', "_"), self.names.clone());
        let is_one = self.passes().count() == 1;
        let mut used: Vec<String> = Vec::new();
        let mut name = |pass: &mut Pass, of: Option<&str>| {
            let mut parts: Vec<&str> = pass.stores().into_iter().map(|slot| names[slot]).collect();
            if !pass.sums().is_empty() {
                parts.push("dots");
            }
            if parts.is_empty() {
                parts.push("scalars");
            }
            let name = format!("{method}_{}", of.map_or_else(|| parts.join("_"), String::from));
            let count = used.iter().filter(|other| **other == name).count();
            used.push(name.clone());
            pass.name = if count == 0 { name } else { format!("{name}_{}", count + 1) };
        };
        let step = is_one.then_some("step");
        for (pass, stage) in self.passes_mut() {
            let of = match stage {
                Some(Stage::Iteration) => step,
                Some(Stage::Begin) => Some("norms"),
                Some(Stage::Complete) => Some("complete"),
                Some(Stage::Start | Stage::Resume) => None,
                None => Some("last"),
            };
            name(pass, of);
        }
    }

    /// All passes, and the parts that they are in; none is that of [`last`](Self::last).
    fn passes_mut(&mut self) -> impl Iterator<Item = (&mut Pass, Option<Stage>)> {
        let parts = [
            (&mut self.iteration, Stage::Iteration),
            (&mut self.begin, Stage::Begin),
            (&mut self.start, Stage::Start),
            (&mut self.resume, Stage::Resume),
            (&mut self.complete, Stage::Complete),
        ];
        fn pass(step: &mut Step) -> Option<&mut Pass> {
            if let Step::Pass(pass) = step { Some(pass) } else { None }
        }
        parts
            .into_iter()
            .flat_map(move |(steps, stage)| steps.iter_mut().filter_map(pass).map(move |pass| (pass, Some(stage))))
            .chain(self.last.iter_mut().map(|last| (last, None)))
    }
}

/// Whether no product is set to something else in its iteration, nor, wherever it is then, before the next one: ranks exchange
/// it meanwhile.
fn products_stay(iteration: &[Line], order: &[Slot]) -> bool {
    let products: Vec<Slot> =
        iteration.iter().filter_map(|line| if let Line::Multiply { y, .. } = line { Some(*y) } else { None }).collect();
    let later = products.last().and_then(|last| order.iter().position(|from| from == last));
    let first = iteration.iter().position(|line| matches!(line, Line::Multiply { .. })).unwrap_or(0);
    let is_set = |lines: &[Line], slot| lines.iter().any(|line| matches!(line, Line::Assign { to, .. } if *to == slot));
    !products.into_iter().any(|y| is_set(iteration, y)) && !later.is_some_and(|y| is_set(&iteration[..first], y))
}

/// Vectors that are used before they are set, but for the iterate, the residual and the weights.
fn used_before_set<'a>(lines: impl Iterator<Item = &'a Line>) -> Vec<Slot> {
    let (mut set, mut used) = (BTreeSet::new(), BTreeSet::new());
    for line in lines {
        used.extend(line.reads().into_iter().filter(|slot| *slot >= OWN && !set.contains(slot)));
        set.extend(line.sets());
    }
    used.into_iter().collect()
}

/// The lines that do not set `taken_over`.
fn without(lines: &[Line], taken_over: &[Slot]) -> Vec<Line> {
    let is_other = |line: &&Line| match line {
        Line::Assign { to, .. } | Line::Multiply { y: to, .. } => !taken_over.contains(to),
        _ => true,
    };
    lines.iter().filter(is_other).cloned().collect()
}

/// A line and its place in the text.
type Numbered = (usize, Line);

/// A pass being put together.
#[derive(Default)]
struct Draft {
    lines: Vec<Numbered>,
    checks: Vec<(usize, Check)>,
}

enum Part {
    Multiply(Multiply),
    Pass(Draft),
}

impl Draft {
    fn pass(&self) -> Pass {
        let lines = self.lines.iter().map(|(_, line)| line.clone()).collect();
        let is_late = |at: usize| self.lines.iter().any(|(line, _)| *line < at);
        let of =
            |late: bool| self.checks.iter().filter(|(at, _)| is_late(*at) == late).map(|(_, check)| *check).collect();
        Pass { lines, before: of(false), after: of(true), ..Pass::default() }
    }

    fn sums(&self) -> Vec<usize> {
        self.pass().sums()
    }
}

/// Puts lines together. If `products_sum`, products form sums of their own.
fn fuse(lines: &[Line], scalars: &Scalars, products_sum: bool) -> Vec<Step> {
    let mut parts: Vec<Part> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let awaits = |node: Node, sums: &[usize]| scalars.awaits(node, &|sum| sums.contains(&sum));
        match line {
            Line::Multiply { operator, fills, x, y } => {
                let (operator, fills, x, y) = (*operator, *fills, *x, *y);
                parts.push(Part::Multiply(Multiply { operator, fills, x, y, xy: None, yy: None, is_awaited: false }))
            }
            Line::Dot { sum, of: [a, b], weights: None, turned: false }
                if products_sum && is_of_product(parts.last(), [*a, *b]) =>
            {
                let Some(Part::Multiply(multiply)) = parts.last_mut() else { continue };
                *(if a == b { &mut multiply.yy } else { &mut multiply.xy }) = Some(*sum);
            }
            Line::Dot { .. } => draft(&mut parts, |_| true).lines.push((at, line.clone())),
            Line::Assign { .. } | Line::Defer(_) | Line::Complete(_) => {
                let factors = line.factors();
                let joins = |draft: &Draft| !factors.iter().any(|factor| awaits(*factor, &draft.sums()));
                draft(&mut parts, joins).lines.push((at, line.clone()));
            }
            Line::Check(check) => {
                let is_guard = check.kind.is_guard();
                let joins = |draft: &Draft| {
                    !(awaits(check.node, &draft.sums()) || is_guard && draft.lines.iter().any(|(line, _)| *line < at))
                };
                draft(&mut parts, joins).checks.push((at, *check));
            }
        }
    }
    sink(&mut parts);
    let step = |part: &Part| match part {
        Part::Multiply(multiply) => Step::Multiply(multiply.clone()),
        Part::Pass(draft) => Step::Pass(draft.pass()),
    };
    parts.iter().map(step).collect()
}

/// Whether a dot product is one that the product before leaves.
fn is_of_product(last: Option<&Part>, [a, b]: [Slot; 2]) -> bool {
    let Some(Part::Multiply(Multiply { x, y, .. })) = last else { return false };
    (a == *y && (b == *x || b == *y)) || (a == *x && b == *y)
}

/// The pass that is being put together, if the next line can join it, or else a new one.
fn draft(parts: &mut Vec<Part>, joins: impl Fn(&Draft) -> bool) -> &mut Draft {
    if !matches!(parts.last(), Some(Part::Pass(draft)) if joins(draft)) {
        parts.push(Part::Pass(Draft::default()));
    }
    let Some(Part::Pass(draft)) = parts.last_mut() else { unreachable!("a pass was just added") };
    draft
}

/// Moves assignments to the pass that follows where the two then move fewer arrays.
fn sink(parts: &mut [Part]) {
    for k in (1..parts.len()).rev() {
        let [.., Part::Pass(first), Part::Pass(second)] = &mut parts[..=k] else { continue };
        for i in (0..first.lines.len()).rev() {
            let (at, line) = first.lines[i].clone();
            let (reads, Line::Assign { to, .. }) = (line.reads(), line) else { continue };
            let is_free = first.lines[i + 1..].iter().all(|(_, line)| {
                line.sets().is_none_or(|other| other != to && !reads.contains(&other)) && !line.reads().contains(&to)
            });
            let is_guarded = second.checks.iter().any(|(check, guard)| guard.kind.is_guard() && *check > at);
            if !is_free || is_guarded {
                continue;
            }
            let before = first.pass().arrays_moved() + second.pass().arrays_moved();
            let line = first.lines.remove(i);
            second.lines.insert(0, line);
            if first.pass().arrays_moved() + second.pass().arrays_moved() >= before {
                let line = second.lines.remove(0);
                first.lines.insert(i, line);
            }
        }
    }
}

/// Which vectors ranks keep up to date on their halos, and of which operator these are: vectors that are multiplied in an iteration, and
/// all that they are made of.
///
/// # Panics
/// If a vector needs the halos of two operators.
fn halos(iteration: &[Line], order: &[Slot]) -> Vec<Option<usize>> {
    let mut operators = vec![None; order.len()];
    let need = |operators: &mut Vec<Option<usize>>, slot: Slot, operator: usize| {
        assert!(operators[slot].is_none_or(|other| other == operator), "a vector with the halos of two operators");
        operators[slot] = Some(operator);
    };
    let mut seen = None;
    while seen.as_ref() != Some(&operators) {
        seen = Some(operators.clone());
        for line in iteration.iter().rev() {
            match line {
                Line::Multiply { operator, fills: false, x, .. } => need(&mut operators, *x, *operator),
                Line::Assign { to, .. } => {
                    let Some(operator) = operators[*to] else { continue };
                    line.reads().into_iter().for_each(|of| need(&mut operators, of, operator));
                }
                _ => {}
            }
        }
        for (k, from) in order.iter().enumerate() {
            if let Some(operator) = operators[k] {
                need(&mut operators, *from, operator);
            }
        }
    }
    operators
}

/// Whether each product finds the halos that were left for it: what is set between two products, the first one's own among it, is kept
/// on the halo of the second one's operator, if on any.
fn halos_agree(iteration: &[Line], operators: &[Option<usize>]) -> bool {
    let mut next = iteration.iter().find_map(product);
    iteration.iter().rev().all(|line| {
        let agrees = line.sets().is_none_or(|slot| operators[slot].is_none_or(|operator| next == Some(operator)));
        next = product(line).or(next);
        agrees
    })
}

/// The operator of a product.
fn product(line: &Line) -> Option<usize> {
    if let Line::Multiply { operator, .. } = line { Some(*operator) } else { None }
}
