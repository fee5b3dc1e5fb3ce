//! Vectors, scalars and their combinations, as a method writes them.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use super::{Line, Operator, Recorder, Term};
use crate::backend::scalar::{Form, Node};

/// A x, or Aᵀ x.
pub(crate) struct Product<'k>(Operator, Vector<'k>);

/// A vector of the program.
#[derive(Clone, Copy)]
pub(crate) struct Vector<'k> {
    pub(super) of: &'k Recorder,
    pub(super) handle: usize,
}

/// A scalar of the program.
#[derive(Clone, Copy)]
pub(crate) struct Scalar<'k> {
    pub(super) of: &'k Recorder,
    pub(super) node: Node,
}

/// A linear combination of vectors.
pub(crate) struct Combination<'k> {
    pub(super) of: &'k Recorder,
    pub(super) terms: Vec<Term>,
}

/// What a vector can be set to.
pub(crate) trait Value<'k> {
    /// Takes note of it.
    fn assign(self, to: Vector<'k>);
}

impl<'k> Value<'k> for Combination<'k> {
    fn assign(self, to: Vector<'k>) {
        self.of.note(Line::Assign { to: self.of.place(to), terms: self.terms });
    }
}

impl<'k> Value<'k> for Vector<'k> {
    fn assign(self, to: Vector<'k>) {
        Combination::from(self).assign(to);
    }
}

impl<'k> Value<'k> for Product<'k> {
    fn assign(self, to: Vector<'k>) {
        let Self(Operator(operator), x) = self;
        let [x, y] = [x, to].map(|v| to.of.place(v));
        to.of.note(Line::Multiply { operator, x, y });
    }
}

impl<'k> Vector<'k> {
    /// This vector = `value`: a linear combination of vectors, or a product with the matrix.
    pub(crate) fn set(self, value: impl Value<'k>) {
        value.assign(self);
    }

    /// The product with another vector, element by element.
    pub(crate) fn times(self, other: Vector<'k>) -> Combination<'k> {
        let [scale, vector] = [self, other].map(|v| self.of.place(v));
        Combination { of: self.of, terms: vec![Term { factor: None, scale: Some(scale), vector }] }
    }

    /// The dot product with another vector.
    pub(crate) fn dot(self, other: Vector<'k>) -> Scalar<'k> {
        self.of.dot(self, other, None)
    }
}

impl<'k> From<Vector<'k>> for Combination<'k> {
    fn from(v: Vector<'k>) -> Self {
        Self { of: v.of, terms: vec![Term { factor: None, scale: None, vector: v.of.place(v) }] }
    }
}

impl Combination<'_> {
    fn negative(mut self) -> Self {
        for term in &mut self.terms {
            let form = term.factor.map_or(Form::Constant(-1.0), Form::Negative);
            term.factor = Some(self.of.form(form).node);
        }
        self
    }
}

impl<'k> Scalar<'k> {
    /// Its number.
    #[cfg(test)]
    pub(crate) fn node(self) -> Node {
        self.node
    }

    /// The square root.
    pub(crate) fn sqrt(self) -> Self {
        self.of.form(Form::Root(self.node))
    }

    /// `then` where this is positive, else `other`.
    pub(crate) fn choose(self, then: Self, other: Self) -> Self {
        self.of.form(Form::Choice(self.node, then.node, other.node))
    }

    /// The smaller of two.
    pub(crate) fn smaller(self, other: Self) -> Self {
        -(-self).larger(-other)
    }

    /// The larger of two.
    pub(crate) fn larger(self, other: Self) -> Self {
        self.of.form(Form::Larger(self.node, other.node))
    }
}

impl<'k> Mul<Vector<'k>> for Operator {
    type Output = Product<'k>;

    fn mul(self, x: Vector<'k>) -> Product<'k> {
        Product(self, x)
    }
}

impl<'k> Mul<Vector<'k>> for Scalar<'k> {
    type Output = Combination<'k>;

    fn mul(self, v: Vector<'k>) -> Combination<'k> {
        Combination {
            of: self.of,
            terms: vec![Term { factor: Some(self.node), scale: None, vector: self.of.place(v) }],
        }
    }
}

impl Neg for Scalar<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.of.form(Form::Negative(self.node))
    }
}

macro_rules! operators {
    ($($trait:ident, $method:ident, $form:ident;)+) => {$(
        impl $trait for Scalar<'_> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                self.of.form(Form::$form(self.node, other.node))
            }
        }

        impl<'k> $trait<Scalar<'k>> for f64 {
            type Output = Scalar<'k>;

            fn $method(self, other: Scalar<'k>) -> Scalar<'k> {
                other.of.number(self).$method(other)
            }
        }
    )+};
}
operators! {
    Add, add, Plus;
    Sub, sub, Minus;
    Mul, mul, Times;
    Div, div, Over;
}

macro_rules! combinations {
    ($($of:ty),+) => {$(
        impl<'k, C: Into<Combination<'k>>> Add<C> for $of {
            type Output = Combination<'k>;

            fn add(self, other: C) -> Combination<'k> {
                let mut all = Combination::from(self);
                all.terms.extend(other.into().terms);
                all
            }
        }

        impl<'k, C: Into<Combination<'k>>> Sub<C> for $of {
            type Output = Combination<'k>;

            fn sub(self, other: C) -> Combination<'k> {
                let mut all = Combination::from(self);
                all.terms.extend(other.into().negative().terms);
                all
            }
        }
    )+};
}
combinations!(Vector<'k>, Combination<'k>);

impl<'k, C: Into<Combination<'k>>> AddAssign<C> for Vector<'k> {
    fn add_assign(&mut self, other: C) {
        self.set(*self + other);
    }
}

impl<'k, C: Into<Combination<'k>>> SubAssign<C> for Vector<'k> {
    fn sub_assign(&mut self, other: C) {
        self.set(*self - other);
    }
}
