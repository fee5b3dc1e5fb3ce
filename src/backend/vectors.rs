//! The vectors of a rank, and what is done with them beside passes and products with the matrix.
//!
//! Vectors are distributed: each rank, an OpenCL device or the host, alone or one of several, holds the elements of its own rows, and
//! an operation works on those. [`Backend::dots`] alone leads to sums over all ranks.

use std::time::{Duration, Instant};

use crate::comm::Communicator;
use crate::error::Result;
use crate::real::Real;
use crate::timeline::{Split, Timeline};

/// What became known of an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Record {
    /// p·q of an iteration, counted from 1: the curvature along its direction.
    Curvature {
        /// Which one.
        iteration: u64,
        /// p·A p.
        pq: f64,
    },
    /// What must be positive for the method to go on.
    Breakdown {
        /// Which one.
        iteration: u64,
        /// How far it is from breaking down.
        value: f64,
    },
    /// What is positive as long as other iterates have a smaller residual.
    Minimum {
        /// Which one.
        iteration: u64,
        /// How far the residual is from the least there is.
        value: f64,
    },
    /// The residual that its step has left.
    Residual {
        /// Which one.
        iteration: u64,
        /// What the test looks at: ‖r‖₂².
        rr: f64,
    },
}

/// The operations of one rank.
pub trait Backend {
    /// Element of a vector.
    type Real: Real;
    /// The rank's part of a vector, perhaps with room for a halo behind it.
    type Vector;
    /// A rank's block of rows, where one kernel can have all of it.
    type Rows<'a>;
    /// This rank's part of x·y and of y·y of a product y = A x; on a device as partial sums.
    type ProductSums;

    /// The rank's place among the others.
    fn comm(&self) -> &dyn Communicator<Self::Real>;

    /// Replaces the communicator, between solves.
    fn set_comm(&mut self, comm: Box<dyn Communicator<Self::Real>>);

    /// Takes the communicator, and leaves one of a rank alone.
    fn take_comm(&mut self) -> Box<dyn Communicator<Self::Real>>;

    /// Elements of a vector that this rank owns: its rows, times [`columns`](Self::columns).
    fn n_owned(&self) -> usize;

    /// Right-hand sides that are solved for together: a vector has as many columns, side by side. Element (row, column) is number
    /// `row * columns + column`.
    fn columns(&self) -> usize {
        1
    }

    /// The same rank, alone, with vectors of so many columns.
    ///
    /// # Errors
    /// More elements than a device can address, or not enough memory.
    fn with_columns(&self, columns: usize) -> Result<Self>
    where
        Self: Sized;

    /// A vector of zeros with room for `halo` elements behind the owned ones; `what` names it in errors.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn vector(&self, halo: usize, what: &'static str) -> Result<Self::Vector>;

    /// A vector of one column that all share, with these elements for the owned rows and room for `halo` others.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn shared_vector(&self, elements: &[Self::Real], halo: usize, what: &'static str) -> Result<Self::Vector>;

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

    /// Room for the sums of a product.
    ///
    /// # Errors
    /// Not enough memory on the device.
    fn product_sums(&self) -> Result<Self::ProductSums>;

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

    /// x·y over all ranks, of each of these pairs, with one all-reduce for [`MAX_SUMS`](crate::comm::MAX_SUMS) of them. Building
    /// block 1 of 5 (Bueno 2013, section 4.2).
    ///
    /// # Errors
    /// A failing device or rank.
    fn dots(&self, pairs: &[[&Self::Vector; 2]]) -> Result<Vec<f64>>;

    /// x·y over all ranks.
    ///
    /// # Errors
    /// A failing device or rank.
    fn dot(&self, x: &Self::Vector, y: &Self::Vector) -> Result<f64> {
        Ok(self.dots(&[[x, y]])?[0])
    }

    /// y += a x. Building block 2, the next iterate.
    ///
    /// # Errors
    /// A failing device.
    fn axpy(&self, a: f64, x: &Self::Vector, y: &mut Self::Vector) -> Result<()>;

    /// y −= a x. Building block 3, the next residual.
    ///
    /// # Errors
    /// A failing device.
    fn axmy(&self, a: f64, x: &Self::Vector, y: &mut Self::Vector) -> Result<()>;

    /// y = x + b y. Building block 4, the next direction. (The fifth is
    /// [`LinearOperator::apply`](super::LinearOperator::apply).)
    ///
    /// # Errors
    /// A failing device.
    fn xpby(&self, x: &Self::Vector, b: f64, y: &mut Self::Vector) -> Result<()>;

    /// y = d x, element by element.
    ///
    /// # Errors
    /// A failing device.
    fn multiply(&self, d: &Self::Vector, x: &Self::Vector, y: &mut Self::Vector) -> Result<()>;

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

    /// Seconds of kernels an iteration since this was last asked, or since the run began, in which `iteration` is next: of
    /// those that do not wait for other ranks, and of those that do; `None` if none was timed.
    ///
    /// # Errors
    /// A failing device.
    fn kernel_seconds(&self, iteration: u64) -> Result<Option<[f64; 2]>>;

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

    /// What compilers took so far.
    fn compiled(&self) -> Duration {
        Duration::ZERO
    }
}

/// Operations between the vectors of a rank in the precision of its iteration and those, of the same rows, of
/// operations `W` in a wider one.
pub trait Widens<W: Backend>: Backend {
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
