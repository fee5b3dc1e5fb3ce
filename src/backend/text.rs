//! The vocabulary in which a Krylov method is written.
//!
//! A method is a function that says once what a run does before its first iteration and what an iteration does, over handles of
//! vectors and scalars, as a textbook would. Nothing is computed then: a [`Recorder`] takes note, and [`Program`] fuses what was
//! noted into as few passes over the vectors as it can.
//!
//! ```text
//! q.set(a * p);                      q = A p
//! let alpha = rho / p.dot(q);        α = ρ / p·q
//! x += alpha * p;                    x = x + α p
//! ```
//!
//! [`Program`]: super::program::Program

mod algebra;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

pub(crate) use self::algebra::{Combination, Scalar, Value, Vector};
use super::deferred::Deferred;
use super::scalar::{Form, Node, Scalars};
use crate::backend::Record;

/// A vector's place among those of a program.
pub(crate) type Slot = usize;

/// The iterate.
pub(crate) const X: Slot = 0;
/// The residual b − A x: true when a run begins.
pub(crate) const R: Slot = 1;
/// The weights of the squares of r in what the test looks at; it exists only where the system is scaled.
pub(crate) const WEIGHTS: Slot = 2;
/// The first that is a method's own.
pub(crate) const OWN: Slot = 3;

/// The operator A.
pub(crate) const MATRIX: usize = 0;
/// The operator Aᵀ, of methods that multiply by it.
pub(crate) const TRANSPOSE: usize = 1;
/// The first operator of a preconditioner that has some, of methods that don't multiply by Aᵀ.
pub(crate) const OF_PRECONDITIONER: usize = 1;

/// What a method says, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// `to` = Σ terms, added from the first to the last.
    Assign {
        /// The vector that is set.
        to: Slot,
        /// What it is set to.
        terms: Vec<Term>,
    },
    /// Sum `sum` is x·y, or Σ w x y with weights.
    Dot {
        /// Which sum.
        sum: usize,
        /// The vectors.
        of: [Slot; 2],
        /// The weights.
        weights: Option<Slot>,
        /// Whether x is multiplied by i: the imaginary part of xᴴ y.
        turned: bool,
    },
    /// x = x + α p in every other run of elements, of which the others follow in the next iteration: see
    /// [`Deferred`].
    Defer(Deferred),
    /// What is left of that is done.
    Complete(Deferred),
    /// y = A x, Aᵀ x, or a product with a matrix of the preconditioner.
    Multiply {
        /// The number of the operator: [`MATRIX`], [`TRANSPOSE`], or one from [`OF_PRECONDITIONER`] on.
        operator: usize,
        /// Whether ranks exchange the halo of x for this product, as nobody has kept it up to date.
        fills: bool,
        /// The vector that is multiplied.
        x: Slot,
        /// The product.
        y: Slot,
    },
    /// Something is to be looked at.
    Check(Check),
}

/// A term of a linear combination.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Term {
    /// What the vector is multiplied by; 1 without.
    pub(crate) factor: Option<Node>,
    /// A vector whose elements multiply those of the vector; 1 without.
    pub(crate) scale: Option<Slot>,
    /// Whether the vector is multiplied by i.
    pub(crate) turned: bool,
    /// The vector.
    pub(crate) vector: Slot,
}

/// A scalar that decides whether an iteration goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Check {
    /// The scalar.
    pub(crate) node: Node,
    /// What it is.
    pub(crate) kind: CheckKind,
}

impl Check {
    /// What is told of it, when its value is known.
    pub(crate) fn record(self, iteration: u64, value: f64) -> Record {
        match self.kind {
            CheckKind::Curvature => Record::Curvature { iteration, pq: value },
            CheckKind::Breakdown => Record::Breakdown { iteration, value },
            CheckKind::Minimum => Record::Minimum { iteration, value },
            CheckKind::Norm => Record::Residual { iteration, rr: value },
        }
    }

    /// Whether this value lets the iteration go on, where ‖r‖² ends the run at `limit`.
    pub(crate) fn lets_go_on(self, value: f64, limit: f64) -> bool {
        let least = if self.kind == CheckKind::Norm { limit } else { 0.0 };
        value > least && value.is_finite()
    }
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckKind {
    /// p·A p: what comes later is done only if it is positive.
    Curvature,
    /// What the method divides by, or so: the same.
    Breakdown,
    /// How far ‖r‖ is from the least there is: the run ends, and nothing is done of what comes later, unless it is positive.
    Minimum,
    /// ‖r‖² of the iterate that the lines before have left: the run ends once it meets the test.
    Norm,
}

impl CheckKind {
    /// Whether nothing is done of what comes later if it fails.
    pub(crate) fn is_guard(self) -> bool {
        matches!(self, Self::Curvature | Self::Breakdown | Self::Minimum)
    }
}

/// A scalar that one iteration leaves to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Carried {
    /// Its value before the first iteration.
    pub(crate) first: Node,
    /// Its value after an iteration, of which its present value may be a part.
    pub(crate) next: Node,
    /// Whether it stays as it is where an iteration does nothing, since the run is over.
    pub(crate) stays: bool,
}

impl Line {
    /// Vectors that it uses.
    pub(crate) fn reads(&self) -> Vec<Slot> {
        match self {
            Self::Assign { terms, .. } => {
                terms.iter().flat_map(|term| [Some(term.vector), term.scale]).flatten().collect()
            }
            Self::Dot { of, weights, .. } => of.iter().chain(weights).copied().collect(),
            Self::Defer(deferred) | Self::Complete(deferred) => vec![X, deferred.of[0], deferred.of[1]],
            Self::Multiply { x, .. } => vec![*x],
            Self::Check(_) => Vec::new(),
        }
    }

    /// The vector that it sets.
    pub(crate) fn sets(&self) -> Option<Slot> {
        match self {
            Self::Assign { to, .. } | Self::Multiply { y: to, .. } => Some(*to),
            Self::Defer(_) | Self::Complete(_) => Some(X),
            Self::Dot { .. } | Self::Check(_) => None,
        }
    }

    /// The scalars that vectors are multiplied by.
    pub(crate) fn factors(&self) -> Vec<Node> {
        match self {
            Self::Assign { terms, .. } => terms.iter().filter_map(|term| term.factor).collect(),
            Self::Defer(Deferred { alpha, former, next, .. }) => vec![*alpha, *former, *next],
            Self::Complete(deferred) => vec![deferred.former],
            Self::Dot { .. } | Self::Multiply { .. } | Self::Check(_) => Vec::new(),
        }
    }
}

/// What was recorded.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) names: Vec<&'static str>,
    /// What a run begins with: r·r, and what the test looks at,
    pub(crate) begin: Vec<Line>,
    /// which is this.
    pub(crate) norm2: Option<Node>,
    pub(crate) scalars: Scalars,
    /// Whether elements are pairs of real and imaginary parts.
    pub(crate) is_complex: bool,
    /// Number of sums.
    pub(crate) sums: usize,
    pub(crate) carried: Vec<Carried>,
    /// Before the first iteration.
    pub(crate) start: Vec<Line>,
    /// An iteration.
    pub(crate) iteration: Vec<Line>,
    /// Where the vector in each place is found in the next iteration.
    pub(crate) order: Vec<Slot>,
    /// The vector that a run may take over from the one before, in place of its value at the start,
    pub(crate) direction: Option<Slot>,
    /// and others that go with it.
    pub(crate) kept: Vec<Slot>,
    /// Vectors that stay as they are, and their elements.
    pub(crate) given: Vec<(Slot, Arc<Vec<f64>>)>,
    /// Vectors of random numbers, which stay, too.
    pub(crate) random: Vec<Slot>,
    /// Iterations after which the residual is replaced, in double and in single precision.
    pub(crate) replace_every: Option<[u64; 2]>,
    /// Whether p·A p is a difference.
    pub(crate) derives_curvature: bool,
    /// The sum whose place has what the caller of a run gives as [tolerance](Recorder::tolerance).
    pub(crate) tolerance: Option<usize>,
}

/// What a method must know of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kind {
    /// Whether it is scaled, so that r·r is not what the test looks at.
    pub(crate) is_scaled: bool,
    /// Whether it is the [real form](crate::matrix::equivalent::Form::General) of a complex one: neighbouring elements are then real and
    /// imaginary parts, and scalars are complex.
    pub(crate) is_complex: bool,
}

impl Kind {
    /// A real system that is not scaled.
    pub(crate) const PLAIN: Self = Self { is_scaled: false, is_complex: false };
}

/// A preconditioner M ≈ A as a rank has it, after its set-up: symmetric and positive definite, with an inverse that is cheap to
/// apply.
pub(crate) trait Preconditioner: fmt::Debug + Send + Sync {
    /// The vectors that its application reads: their names, and this rank's elements.
    fn vectors(&self) -> Vec<(&'static str, Arc<Vec<f64>>)>;

    /// The names of vectors in which it keeps what is between.
    fn between(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Says z = M⁻¹ r, in terms of these vectors, those between behind the ones that it reads, and of the matrices that `k` gives.
    fn apply<'k>(&self, k: &'k Recorder, vectors: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>);

    /// r·z, after z = M⁻¹ r, where something else is the same number.
    fn dot<'k>(&self, _vectors: &[Vector<'k>], r: Vector<'k>, z: Vector<'k>) -> Scalar<'k> {
        r.dot(z)
    }

    /// Whether M may be another one in each iteration, as where it iterates itself.
    fn varies(&self) -> bool {
        false
    }
}

/// Takes note of what a method says.
pub(crate) struct Recorder {
    state: RefCell<State>,
    is_complex: bool,
    has_weights: bool,
    preconditioner: Option<Arc<dyn Preconditioner>>,
    /// Whether the method has asked for it.
    is_preconditioned: Cell<bool>,
}

#[derive(Default)]
struct State {
    all: Recording,
    part: Part,
    /// Where the vector of each handle is now.
    place: Vec<Slot>,
    /// How often each place was written.
    writes: Vec<u64>,
    /// Dot products whose vectors were not written since.
    dots: Vec<Dot>,
}

/// The part of a method that is being said.
#[derive(Clone, Copy, Default)]
enum Part {
    #[default]
    Begin,
    Start,
    Iteration,
}

/// A dot product that was formed.
struct Dot {
    of: [Slot; 2],
    weights: Option<Slot>,
    turned: bool,
    /// How often its vectors had been written.
    writes: [u64; 2],
    node: Node,
}

impl Recorder {
    /// Takes note of a method for such a system, with a preconditioner that the method applies, if there is one.
    pub(crate) fn new(of: Kind, preconditioner: Option<Arc<dyn Preconditioner>>) -> Self {
        let Kind { is_scaled: has_weights, is_complex } = of;
        let state = RefCell::default();
        let recorder = Self { state, is_complex, has_weights, preconditioner, is_preconditioned: Cell::default() };
        recorder.state.borrow_mut().all.is_complex = is_complex;
        for name in ["x", "r", "w"] {
            recorder.vector(name);
        }
        let r = recorder.r();
        r.dot(r);
        let norm2 = recorder.norm2(r).real();
        {
            let state = &mut *recorder.state.borrow_mut();
            (state.all.norm2, state.part) = (Some(norm2), Part::Start);
        }
        recorder
    }

    /// Whether a preconditioner was given that the method has not asked for.
    pub(crate) fn forgets_preconditioner(&self) -> bool {
        self.preconditioner.is_some() && !self.is_preconditioned.get()
    }

    /// What was noted.
    pub(crate) fn finish(self) -> Recording {
        let State { mut all, place, .. } = self.state.into_inner();
        all.order = place;
        all
    }

    /// The iterate.
    pub(crate) fn x(&self) -> Vector<'_> {
        Vector { of: self, handle: X }
    }

    /// The residual.
    pub(crate) fn r(&self) -> Vector<'_> {
        Vector { of: self, handle: R }
    }

    /// The matrix.
    pub(crate) fn a(&self) -> Operator {
        Operator { number: MATRIX, fills: false }
    }

    /// One of the matrices of the preconditioner, from 0 on.
    pub(crate) fn of_preconditioner(&self, number: usize) -> Operator {
        Operator { number: OF_PRECONDITIONER + number, fills: false }
    }

    /// Its transpose.
    pub(crate) fn transpose(&self) -> Operator {
        Operator { number: TRANSPOSE, fills: false }
    }

    /// The ‖Aᵀ r‖ / ‖r‖ that ends a run, as its caller wants it.
    pub(crate) fn tolerance(&self) -> Scalar<'_> {
        let sum = self.new_sum();
        self.state.borrow_mut().all.tolerance = Some(sum);
        self.carried(self.form(Form::Sum(sum))) // as all scalars that stay
    }

    /// A vector of zeros when a run begins.
    pub(crate) fn vector(&self, name: &'static str) -> Vector<'_> {
        let state = &mut *self.state.borrow_mut();
        state.all.names.push(name);
        state.writes.push(0);
        let handle = state.place.len();
        state.place.push(handle);
        Vector { of: self, handle }
    }

    /// Room for all that a method needs beside: in the order of `names`.
    pub(crate) fn vectors<const N: usize>(&self, names: [&'static str; N]) -> [Vector<'_>; N] {
        names.map(|name| self.vector(name))
    }

    /// A vector of random numbers from −1 to 1, which stays as it is: the same ones however rows are shared.
    pub(crate) fn random(&self, name: &'static str) -> Vector<'_> {
        let vector = self.vector(name);
        self.state.borrow_mut().all.random.push(vector.handle);
        vector
    }

    /// The preconditioner; asked for once a method has its first vectors, which the caller of a run lends.
    pub(crate) fn preconditioner(&self) -> Preconditioning<'_> {
        assert!(self.state.borrow().place.len() >= OWN + 2, "the direction and the product come first");
        self.is_preconditioned.set(true);
        let given = |(name, elements): (&'static str, Arc<Vec<f64>>)| {
            let vector = self.vector(name);
            self.state.borrow_mut().all.given.push((vector.handle, elements));
            vector
        };
        let mut vectors: Vec<_> = self.preconditioner.iter().flat_map(|m| m.vectors()).map(given).collect();
        vectors.extend(self.preconditioner.iter().flat_map(|m| m.between()).map(|name| self.vector(name)));
        Preconditioning { of: self, vectors }
    }

    /// A real number.
    pub(crate) fn number(&self, value: f64) -> Scalar<'_> {
        self.form(Form::Constant(value))
    }

    /// A number that is complex if the system is.
    pub(crate) fn scalar(&self, value: f64) -> Scalar<'_> {
        let imaginary = self.is_complex.then(|| self.number(0.0).real());
        Scalar { imaginary, ..self.number(value) }
    }

    /// A scalar that each iteration leaves to the next; before the first it has this value, and is complex if that is.
    pub(crate) fn carried<'k>(&'k self, first: Scalar<'k>) -> Scalar<'k> {
        let carried = |first: Node| {
            let state = &mut *self.state.borrow_mut();
            let node = state.all.scalars.add(Form::Carried(state.all.carried.len()));
            state.all.carried.push(Carried { first, next: node, stays: false });
            node
        };
        let real = carried(first.real);
        Scalar { of: self, real, imaginary: first.imaginary.map(carried) }
    }

    /// What `scalar`, which is [`carried`](Self::carried), is in the next iteration.
    ///
    /// # Panics
    /// If it is real, and the value is not.
    pub(crate) fn next(&self, scalar: Scalar<'_>, value: Scalar<'_>) {
        assert!(scalar.imaginary.is_some() || value.imaginary.is_none(), "a complex value for a real scalar");
        let zero = scalar.imaginary.filter(|_| value.imaginary.is_none()).map(|_| self.number(0.0).real);
        let parts = [(Some(scalar.real), Some(value.real)), (scalar.imaginary, value.imaginary.or(zero))];
        let state = &mut *self.state.borrow_mut();
        for (scalar, value) in parts.into_iter().filter_map(|(scalar, value)| scalar.zip(value)) {
            let Form::Carried(k) = state.all.scalars.form(scalar) else { panic!("the scalar is not carried") };
            state.all.carried[k].next = value;
        }
    }

    /// What every iteration does; what was said before comes before the first.
    pub(crate) fn iteration(&self, lines: impl FnOnce()) {
        {
            let state = &mut *self.state.borrow_mut();
            state.part = Part::Iteration;
            state.dots.clear();
        }
        lines();
    }

    /// The direction of the first iteration: `first`, unless the run takes over that of the one before.
    pub(crate) fn direction<'k>(&self, p: Vector<'k>, first: impl Value<'k>) {
        self.state.borrow_mut().all.direction = Some(self.place(p));
        p.set(first);
    }

    /// A vector that is `first` when a run begins, unless that takes over the [direction](Self::direction) of the one before, and this
    /// with it.
    pub(crate) fn keep<'k>(&self, v: Vector<'k>, first: impl Value<'k>) {
        let slot = self.place(v);
        self.state.borrow_mut().all.kept.push(slot);
        v.set(first);
    }

    /// Two vectors take each other's place.
    pub(crate) fn swap(&self, a: Vector<'_>, b: Vector<'_>) {
        let state = &mut *self.state.borrow_mut();
        state.place.swap(a.handle, b.handle);
    }

    /// ‖b − A x‖² by the residual in `r`, in the units of the system as it was given.
    pub(crate) fn norm2<'k>(&'k self, r: Vector<'k>) -> Scalar<'k> {
        self.real_dot(r, r, self.has_weights.then_some(WEIGHTS), false)
    }

    /// Whether the system is scaled, so that r·r is not what the test looks at.
    pub(crate) fn is_scaled(&self) -> bool {
        self.has_weights
    }

    /// The iterate now has this ‖b − A x‖².
    pub(crate) fn watch(&self, norm2: Scalar<'_>) {
        self.note(Line::Check(Check { node: norm2.real(), kind: CheckKind::Norm }));
    }

    /// p·A p: the iteration goes on only if it is positive.
    pub(crate) fn require_definite(&self, curvature: Scalar<'_>) {
        self.note(Line::Check(Check { node: curvature.real(), kind: CheckKind::Curvature }));
    }

    /// The same for a p·A p that is a difference, which may have lost its sign to rounding: it is then looked at anew.
    pub(crate) fn require_definite_difference(&self, curvature: Scalar<'_>) {
        self.state.borrow_mut().all.derives_curvature = true;
        self.require_definite(curvature);
    }

    /// The iteration goes on only if this is positive; if not, the method can't, and begins anew from the residual.
    pub(crate) fn require_no_breakdown(&self, value: Scalar<'_>) {
        self.note(Line::Check(Check { node: value.real(), kind: CheckKind::Breakdown }));
    }

    /// The iteration goes on only if this is positive; if not, no other x has a smaller residual.
    pub(crate) fn require_descent(&self, value: Scalar<'_>) {
        self.note(Line::Check(Check { node: value.real(), kind: CheckKind::Minimum }));
    }

    /// After so many iterations, in double and in single precision, the residual is replaced by b − A x, and what the method forms
    /// before its first iteration is formed anew, with the direction as it is.
    pub(crate) fn replace_residual_every(&self, iterations: [u64; 2]) {
        self.state.borrow_mut().all.replace_every = Some(iterations);
    }

    fn form(&self, form: Form) -> Scalar<'_> {
        Scalar { of: self, real: self.state.borrow_mut().all.scalars.add(form), imaginary: None }
    }

    fn place(&self, v: Vector<'_>) -> Slot {
        self.state.borrow().place[v.handle]
    }

    fn note(&self, line: Line) {
        let state = &mut *self.state.borrow_mut();
        if let Some(to) = line.sets() {
            state.writes[to] += 1;
        }
        match state.part {
            Part::Begin => state.all.begin.push(line),
            Part::Start => state.all.start.push(line),
            Part::Iteration => state.all.iteration.push(line),
        }
    }

    fn new_sum(&self) -> usize {
        let state = &mut *self.state.borrow_mut();
        state.all.sums += 1;
        state.all.sums - 1
    }

    /// xᴴ y, whose imaginary part is (i x)·y.
    fn dot<'k>(&'k self, x: Vector<'k>, y: Vector<'k>) -> Scalar<'k> {
        let has_imaginary = self.is_complex && self.place(x) != self.place(y);
        let real = self.real_dot(x, y, None, false);
        Scalar { imaginary: has_imaginary.then(|| self.real_dot(x, y, None, true).real), ..real }
    }

    /// The sum of the products of elements, which is formed once as long as the vectors stay as they are; of those of i x if it is `turned`.
    fn real_dot<'k>(&'k self, x: Vector<'k>, y: Vector<'k>, weights: Option<Slot>, turned: bool) -> Scalar<'k> {
        let of = [x, y].map(|v| self.place(v));
        let writes = of.map(|slot| self.state.borrow().writes[slot]);
        let key = |of: [Slot; 2]| if turned { of } else { [of[0].min(of[1]), of[0].max(of[1])] };
        let known = self.state.borrow().dots.iter().find_map(|dot| {
            let is_same = key(dot.of) == key(of) && (dot.weights, dot.turned) == (weights, turned);
            let now = dot.of.map(|slot| self.state.borrow().writes[slot]);
            (is_same && dot.writes == now).then_some(dot.node)
        });
        if let Some(node) = known {
            return Scalar { of: self, real: node, imaginary: None };
        }
        let sum = self.new_sum();
        self.note(Line::Dot { sum, of, weights, turned });
        let scalar = self.form(Form::Sum(sum));
        self.state.borrow_mut().dots.push(Dot { of, weights, turned, writes, node: scalar.real });
        scalar
    }
}

/// The matrix of the system, its transpose, or one of the preconditioner.
#[derive(Clone, Copy)]
pub(crate) struct Operator {
    number: usize,
    fills: bool,
}

impl Operator {
    /// The same in a product with a vector whose halo is exchanged for it: one that is made of what has other halos.
    pub(crate) fn filling(self) -> Self {
        Self { fills: true, ..self }
    }
}

/// The preconditioner of a method, or that there is none: M = 1.
pub(crate) struct Preconditioning<'k> {
    of: &'k Recorder,
    /// Those that its application reads, and those between.
    vectors: Vec<Vector<'k>>,
}

impl<'k> Preconditioning<'k> {
    /// Whether there is none.
    pub(crate) fn is_identity(&self) -> bool {
        self.of.preconditioner.is_none()
    }

    /// Room for M⁻¹ r: r itself without a preconditioner.
    pub(crate) fn vector(&self, name: &'static str, r: Vector<'k>) -> Vector<'k> {
        if self.is_identity() { r } else { self.of.vector(name) }
    }

    /// z = M⁻¹ r, where z is a [`vector`](Self::vector) of it.
    pub(crate) fn apply(&self, r: Vector<'k>, z: Vector<'k>) {
        if let Some(m) = &self.of.preconditioner {
            m.apply(self.of, &self.vectors, r, z);
        }
    }

    /// r·z, after z = M⁻¹ r.
    pub(crate) fn dot(&self, r: Vector<'k>, z: Vector<'k>) -> Scalar<'k> {
        self.of.preconditioner.as_ref().map_or_else(|| r.dot(z), |m| m.dot(&self.vectors, r, z))
    }

    /// Two vectors of it take each other's place, as those that they are of do.
    pub(crate) fn swap(&self, a: Vector<'k>, b: Vector<'k>) {
        if !self.is_identity() {
            self.of.swap(a, b);
        }
    }
}
