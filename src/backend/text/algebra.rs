//! Vectors, scalars and their combinations, as a method writes them.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use super::{Line, Operator, Recorder, Term};
use crate::backend::scalar::{Form, Node};

/// A product with A, or with another matrix.
pub(crate) struct Product<'k>(Operator, Vector<'k>);

/// A vector of the program.
#[derive(Clone, Copy)]
pub(crate) struct Vector<'k> {
    pub(super) of: &'k Recorder,
    pub(super) handle: usize,
}

/// A scalar of the program: a real one, or a complex one of two real ones.
#[derive(Clone, Copy)]
pub(crate) struct Scalar<'k> {
    pub(super) of: &'k Recorder,
    pub(super) real: Node,
    pub(super) imaginary: Option<Node>,
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
        let Self(Operator { number: operator, fills }, x) = self;
        let [x, y] = [x, to].map(|v| to.of.place(v));
        to.of.note(Line::Multiply { operator, fills, x, y });
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
        Combination { of: self.of, terms: vec![Term { factor: None, scale: Some(scale), turned: false, vector }] }
    }

    /// The dot product with another vector: xᴴ y in a complex system.
    pub(crate) fn dot(self, other: Vector<'k>) -> Scalar<'k> {
        self.of.dot(self, other)
    }
}

impl<'k> From<Vector<'k>> for Combination<'k> {
    fn from(v: Vector<'k>) -> Self {
        let vector = v.of.place(v);
        Self { of: v.of, terms: vec![Term { factor: None, scale: None, turned: false, vector }] }
    }
}

impl Combination<'_> {
    fn negative(mut self) -> Self {
        for term in &mut self.terms {
            let form = term.factor.map_or(Form::Constant(-1.0), Form::Negative);
            term.factor = Some(self.of.form(form).real);
        }
        self
    }
}

impl<'k> Scalar<'k> {
    /// Its number.
    ///
    /// # Panics
    /// If it is complex.
    pub(crate) fn real(self) -> Node {
        assert!(self.imaginary.is_none(), "a complex scalar where it must be real");
        self.real
    }

    /// The numbers of its parts.
    #[cfg(test)]
    pub(crate) fn both(self) -> (Node, Option<Node>) {
        (self.real, self.imaginary)
    }

    /// The real scalar of this form.
    fn form(self, form: Form) -> Self {
        self.of.form(form)
    }

    /// Its real and imaginary part, if it has one.
    fn parts(self) -> (Self, Option<Self>) {
        let real = |real| Self { of: self.of, real, imaginary: None };
        (real(self.real), self.imaginary.map(real))
    }

    fn complex(real: Self, imaginary: Option<Self>) -> Self {
        Self { imaginary: imaginary.map(Self::real), ..real }
    }

    /// The square root of a real scalar.
    pub(crate) fn sqrt(self) -> Self {
        self.form(Form::Root(self.real()))
    }

    /// Its conjugate.
    pub(crate) fn conj(self) -> Self {
        let (real, imaginary) = self.parts();
        Self::complex(real, imaginary.map(|imaginary| -imaginary))
    }

    /// The square of its modulus.
    pub(crate) fn modulus2(self) -> Self {
        match self.parts() {
            (a, None) => a * a,
            (a, Some(b)) => a * a + b * b,
        }
    }

    /// Its modulus.
    pub(crate) fn modulus(self) -> Self {
        if self.imaginary.is_some() { self.modulus2().sqrt() } else { self.larger(-self) }
    }

    /// `then` where this, a real scalar, is positive, else `other`.
    pub(crate) fn choose(self, then: Self, other: Self) -> Self {
        let choice = |then: Self, other: Self| self.form(Form::Choice(self.real(), then.real(), other.real()));
        let zero = || self.of.number(0.0);
        let ((a, b), (c, d)) = (then.parts(), other.parts());
        let imaginary = if b.is_some() || d.is_some() {
            Some(choice(b.unwrap_or_else(zero), d.unwrap_or_else(zero)))
        } else {
            None
        };
        Self::complex(choice(a, c), imaginary)
    }

    /// The smaller of two real scalars.
    pub(crate) fn smaller(self, other: Self) -> Self {
        -(-self).larger(-other)
    }

    /// The larger of two real scalars.
    pub(crate) fn larger(self, other: Self) -> Self {
        self.form(Form::Larger(self.real(), other.real()))
    }

    /// a + b.
    fn plus(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        let sum = |a: Self, b: Self| self.form(Form::Plus(a.real, b.real));
        let imaginary = if let (Some(b), Some(d)) = (b, d) { Some(sum(b, d)) } else { b.or(d) };
        Self::complex(sum(a, c), imaginary)
    }

    /// a − b.
    fn minus(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        let difference = |a: Self, b: Self| self.form(Form::Minus(a.real, b.real));
        let imaginary = match (b, d) {
            (Some(b), Some(d)) => Some(difference(b, d)),
            (b, d) => b.or(d.map(|d| -d)),
        };
        Self::complex(difference(a, c), imaginary)
    }

    /// a b.
    fn times(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        let product = |a: Self, b: Self| self.form(Form::Times(a.real, b.real));
        match (b, d) {
            (Some(b), Some(d)) => Self::complex(product(a, c) - product(b, d), Some(product(a, d) + product(b, c))),
            _ => Self::complex(product(a, c), d.map(|d| product(a, d)).or(b.map(|b| product(b, c)))),
        }
    }

    /// a / b.
    fn over(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.parts(), other.parts());
        let quotient = |a: Self, b: Self| self.form(Form::Over(a.real, b.real));
        let Some(d) = d else { return Self::complex(quotient(a, c), b.map(|b| quotient(b, c))) };
        // by the larger part, so that no square is out of range
        let largest = c.modulus().larger(d.modulus());
        let conjugate = Self::complex(quotient(c, largest), Some(-quotient(d, largest)));
        let (real, imaginary) = (self * conjugate).parts();
        let size = c * quotient(c, largest) + d * quotient(d, largest);
        Self::complex(quotient(real, size), imaginary.map(|imaginary| quotient(imaginary, size)))
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
        let term = |factor, turned| Term { factor: Some(factor), scale: None, turned, vector: self.of.place(v) };
        let imaginary = self.imaginary.map(|factor| term(factor, true));
        Combination { of: self.of, terms: [term(self.real, false)].into_iter().chain(imaginary).collect() }
    }
}

impl Neg for Scalar<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        let negative = |of: Self| self.form(Form::Negative(of.real));
        let (real, imaginary) = self.parts();
        Self::complex(negative(real), imaginary.map(negative))
    }
}

macro_rules! operators {
    ($($trait:ident, $method:ident, $form:ident;)+) => {$(
        impl $trait for Scalar<'_> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                self.$form(other)
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
    Add, add, plus;
    Sub, sub, minus;
    Mul, mul, times;
    Div, div, over;
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
