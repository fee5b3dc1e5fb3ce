//! The vector operations of a rank: all that a solver does beside products with the matrix.
//!
//! A solver is written once over [`Ops`], and runs as the same text on every rank, whether the rank is an OpenCL device or
//! the host, alone or one of several. Vectors are distributed: each rank holds the elements of its own rows, and an operation
//! works on those. Sums over all ranks are formed by [`Ops::all_sum`] alone.

pub mod host;
pub(crate) mod opencl;
pub(crate) mod trials;

use std::time::Instant;

use crate::comm::{Communicator, MAX_SUMS};
use crate::error::Result;
use crate::real::Real;
use crate::timeline::{Split, Timeline};

/// What became known of an iteration of conjugate gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Record {
    /// p·q of an iteration, counted from 1: the curvature along its direction.
    Curvature {
        /// Which one.
        iteration: u64,
        /// p·A p.
        pq: f64,
    },
    /// The residual that its step has left.
    Residual {
        /// Which one.
        iteration: u64,
        /// r·M⁻¹r.
        rho: f64,
        /// What the test looks at: ‖r‖₂².
        rr: f64,
    },
}

/// The operations of one rank.
pub trait Ops {
    /// Element of a vector.
    type Real: Real;
    /// The rank's part of a vector, perhaps with room for a halo behind it.
    type Vector;
    /// A rank's block of rows, where one kernel can have all of it.
    type Rows<'a>;
    /// Up to four sums that are formed together. While a device works alone they stay on it, as partial sums.
    type Sum;

    /// The rank's place among the others.
    fn comm(&self) -> &dyn Communicator<Self::Real>;

    /// Replaces the communicator, between solves.
    fn set_comm(&mut self, comm: Box<dyn Communicator<Self::Real>>);

    /// Number of rows that this rank owns.
    fn n_owned(&self) -> usize;

    /// A vector of zeros with room for `halo` elements behind the owned ones; `what` names it in errors.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn vector(&self, halo: usize, what: &'static str) -> Result<Self::Vector>;

    /// A vector without elements, to stand in the place of one that is elsewhere.
    ///
    /// # Errors
    /// A failing device.
    fn nothing(&self) -> Result<Self::Vector>;

    /// Sets all elements of a vector to 0, those of its halo, too.
    ///
    /// # Errors
    /// A failing device.
    fn clear(&self, v: &mut Self::Vector) -> Result<()>;

    /// Room for `components` sums, 1, 2 or 4.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn sum(&self, components: usize) -> Result<Self::Sum>;

    /// Sets the owned elements of a vector.
    ///
    /// # Errors
    /// A failing device.
    fn write(&self, from: &[Self::Real], to: &mut Self::Vector) -> Result<()>;

    /// Gets the owned elements of a vector.
    ///
    /// # Errors
    /// A failing device.
    fn read(&self, from: &Self::Vector, to: &mut [Self::Real]) -> Result<()>;

    /// `to = from`, owned elements.
    ///
    /// # Errors
    /// A failing device.
    fn copy(&self, from: &Self::Vector, to: &mut Self::Vector) -> Result<()>;

    /// This rank's part of x·y becomes component `component` of `sum`. Building block 1 of 5 (Bueno 2013, section 4.2).
    ///
    /// # Errors
    /// A failing device.
    fn dot_product(&self, x: &Self::Vector, y: &Self::Vector, sum: &mut Self::Sum, component: usize) -> Result<()>;

    /// x += alpha p. Building block 2.
    ///
    /// # Errors
    /// A failing device.
    fn next_iterate(&self, alpha: f64, p: &Self::Vector, x: &mut Self::Vector) -> Result<()>;

    /// r −= alpha q. Building block 3.
    ///
    /// # Errors
    /// A failing device.
    fn next_residual(&self, alpha: f64, q: &Self::Vector, r: &mut Self::Vector) -> Result<()>;

    /// p = z + beta p. Building block 4. (The fifth is [`LinearOperator::apply`](crate::operator::LinearOperator::apply).)
    ///
    /// # Errors
    /// A failing device.
    fn next_direction(&self, beta: f64, z: &Self::Vector, p: &mut Self::Vector) -> Result<()>;

    /// y = d x, element by element.
    ///
    /// # Errors
    /// A failing device.
    fn multiply(&self, d: &Self::Vector, x: &Self::Vector, y: &mut Self::Vector) -> Result<()>;

    /// A step of the method with a single sum, with α and β known: p = r + β p; s = A r + β s; x += α p; r −= α s; and this
    /// rank's part of r·r, and of what the test looks at. 72 bytes a row in double precision, 80 with weights.
    ///
    /// # Errors
    /// A failing device.
    fn single_step(&self, step: SingleStep<'_, Self>) -> Result<()>;

    /// A step of the pipelined method, with α and β known: z = A t + β z; s = t + β s; p = r + β p; x += α p; r −= α s;
    /// t −= α z; and this rank's part of r·r, of what the test looks at, and of r·t. 104 bytes a row in double precision,
    /// 112 with weights.
    ///
    /// # Errors
    /// A failing device.
    fn pipelined_step(&self, step: PipelinedStep<'_, Self>) -> Result<()>;

    /// Lets this rank's parts of sums set out, as what has been enqueued will have left them, beside whatever is enqueued
    /// later. [`all_sum`](Self::all_sum) of the same sums comes before any other. A device that works alone does nothing.
    ///
    /// # Errors
    /// A failing device.
    fn start_sum(&self, sums: &mut [&mut Self::Sum]) -> Result<()>;

    /// Completes sums over all ranks, at once. A device that works alone leaves its partial sums to the next kernel.
    ///
    /// # Errors
    /// A failing device, or a failing rank.
    fn all_sum(&self, sums: &mut [&mut Self::Sum]) -> Result<()>;

    /// The components of a completed sum, brought to the host if they are still on the device.
    ///
    /// # Errors
    /// A failing device.
    fn settle(&self, sum: &mut Self::Sum) -> Result<[f64; MAX_SUMS]>;

    /// Errors count the iterations of the next run from behind `before` former ones.
    fn count_from(&self, before: u64);

    /// Prepares for a run of iterations from 1 on.
    ///
    /// # Errors
    /// A failing device.
    fn begin(&self) -> Result<()>;

    /// Called at the start of each iteration.
    ///
    /// # Errors
    /// A failing device.
    fn begin_iteration(&self, iteration: u64) -> Result<()>;

    /// Seconds of kernels an iteration since this was last asked, or since the run began, in which `iteration` is next;
    /// `None` if none was timed.
    ///
    /// # Errors
    /// A failing device.
    fn pace(&self, iteration: u64) -> Result<Option<f64>>;

    /// Called at the end of a run, of which iteration `last` was the last that counted.
    ///
    /// # Errors
    /// A failing device.
    fn end_run(&self, last: u64) -> Result<()>;

    /// Records from now on what the rank does and when, on the time axis of `origin`, since which `before` iterations were done.
    ///
    /// # Errors
    /// A failing device.
    fn record(&self, origin: Instant, before: u64) -> Result<()>;

    /// Waits until all is done, and gives what was recorded; nothing if it was not asked for.
    ///
    /// # Errors
    /// A failing device.
    fn take_timeline(&self) -> Result<Timeline>;

    /// Waits until all is done, and says where the time went since the last call, over `iterations` iterations.
    ///
    /// # Errors
    /// A failing device.
    fn finish(&self, iterations: u64) -> Result<Split>;
}

/// Operations between the vectors of a rank in the precision of its iteration and those, of the same rows, of
/// operations `W` in a wider one.
pub trait Widens<W: Ops>: Ops {
    /// to = from, rounded to nearest, owned elements. 12 bytes a row.
    ///
    /// # Errors
    /// A failing device.
    fn narrow(&self, from: &W::Vector, to: &mut Self::Vector) -> Result<()>;

    /// x += d, d = 0, owned elements. 24 bytes a row.
    ///
    /// # Errors
    /// A failing device.
    fn add_wide(&self, d: &mut Self::Vector, x: &mut W::Vector) -> Result<()>;
}

/// Arguments of [`LinearOperator::apply_dots`](crate::operator::LinearOperator::apply_dots).
pub struct Product<'a, O: Ops + ?Sized> {
    /// What has yet to be done to the halo of x.
    pub step: Option<HaloStep<'a, O>>,
    /// The vector that is multiplied.
    pub x: &'a mut O::Vector,
    /// Where A x will be; with `step`, the halo of what is there now arrives.
    pub y: &'a mut O::Vector,
    /// Where this rank's part of x·y and y·y will be.
    pub dots: &'a mut O::Sum,
}

/// The step that was made last, on the halo of the vector x that is multiplied next, a residual or the product of one, and on that of
/// the product d of the direction, or of its product: d = y + β d, x −= α d, where y is what the former product has left.
pub struct HaloStep<'a, O: Ops + ?Sized> {
    /// α and β.
    pub scalars: Scalars,
    /// d.
    pub d: &'a mut O::Vector,
}

/// α and β of a step: with β = 0 a direction begins, and nothing is read of the former one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalars {
    /// The length of the step.
    pub alpha: f64,
    /// What the direction has of the former one.
    pub beta: f64,
}

impl From<[f64; 2]> for Scalars {
    fn from([alpha, beta]: [f64; 2]) -> Self {
        Self { alpha, beta }
    }
}

impl Scalars {
    /// As a rank computes with them: the same bits on all that compute in the same precision.
    pub(crate) fn of<T: Real>(self) -> [T; 2] {
        [self.alpha, self.beta].map(T::from_f64)
    }
}

/// Arguments of [`Ops::single_step`].
pub struct SingleStep<'a, O: Ops + ?Sized> {
    /// α and β.
    pub scalars: Scalars,
    /// Weights of the squares of r in what the test looks at; 1 without.
    pub weights: Option<&'a O::Vector>,
    /// The iterate.
    pub x: &'a mut O::Vector,
    /// The residual.
    pub r: &'a mut O::Vector,
    /// The direction.
    pub p: &'a mut O::Vector,
    /// A p.
    pub s: &'a mut O::Vector,
    /// A r.
    pub q: &'a O::Vector,
    /// r·r after the step, and what the test looks at.
    pub rho: &'a mut O::Sum,
}

/// Arguments of [`Ops::pipelined_step`].
pub struct PipelinedStep<'a, O: Ops + ?Sized> {
    /// α and β.
    pub scalars: Scalars,
    /// Weights of the squares of r in what the test looks at; 1 without.
    pub weights: Option<&'a O::Vector>,
    /// The iterate.
    pub x: &'a mut O::Vector,
    /// The residual.
    pub r: &'a mut O::Vector,
    /// A r.
    pub t: &'a mut O::Vector,
    /// The direction.
    pub p: &'a mut O::Vector,
    /// A p.
    pub s: &'a mut O::Vector,
    /// A s.
    pub z: &'a mut O::Vector,
    /// A t.
    pub q: &'a O::Vector,
    /// r·r after the step, what the test looks at, and r·t.
    pub sums: &'a mut O::Sum,
}
