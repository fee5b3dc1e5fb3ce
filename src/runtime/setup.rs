//! What is fixed when a solver is built: method, preconditioner, precision, devices and so on.

use serde::Serialize;

use super::shares::Shares;
use crate::device::Choice;
use crate::krylov::{Method, RESTART};
use crate::named::{as_text, named};
use crate::operator::{Exchange, Format};
use crate::precond::{NearNull, Precond};
use crate::real::Precision;
use crate::setters::setters;
use crate::tune::Tune;

/// The most right-hand sides at a time.
pub(crate) const MOST_COLUMNS: usize = 1024;

named! {
    /// The order of the rows and columns on the ranks. Whatever it is, right-hand sides, solutions and reports are in
    /// the order given.
    Reorder, "order":
    Auto = "auto", "Reverse Cuthill–McKee if neighbouring rows then share far more of what they need.";
    None = "none", "As given.";
    Rcm = "rcm", "Reverse Cuthill–McKee.";
}

named! {
    /// What becomes of a solve when a device fails.
    OnFailure, "answer to a failing device":
    Stop = "stop", "The solve ends with the error.";
    Continue = "continue", "The other devices take over its rows, and go on from the last snapshot of x.";
}

/// What is fixed when a [`Solver`](crate::Solver) is built.
///
/// ```
/// use declive::Setup;
/// use declive::solve::{Method, Precision};
///
/// let setup = Setup::default().with_method(Method::Minres).with_devices("host".parse()?);
/// assert_eq!((setup.method, setup.precision), (Method::Minres, Precision::F64));
/// # Ok::<(), declive::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Setup {
    /// The method. [`Method::Auto`] goes through [candidates](crate::solve::candidates) that the matrix decides on, each from the x that
    /// the one before has reached; of a rectangular matrix it is `lsmr`. [`Solver::method`](crate::Solver::method) tells which it is.
    pub method: Method,
    /// The preconditioner. That by the diagonal, the default, is a scaling of the system, made once; an iteration then reads the
    /// diagonal for its test: see [`Precond::Jacobi`]. With [`Method::Auto`], [`Precond::Transversal`] may take its place, or
    /// [`Precond::Amg`] if this `may_change`. [`Precond::Fsai`], [`Precond::BlockJacobi`] and [`Precond::Ilu0`] are matrices that the host makes:
    /// [`Solver::precond_entries`](crate::Solver::precond_entries).
    pub precond: Precond,
    /// Whether [`Method::Auto`] may leave the preconditioner for [`Precond::Amg`] once that is forecast to take less time, though nothing
    /// has failed. So it is by default; setting a preconditioner ends it.
    pub may_change: bool,
    /// What [`Precond::Amg`] has to interpolate well; `None` is a constant for each unknown of a node, if the matrix is made of full
    /// blocks, else one constant.
    #[serde(skip)]
    pub near_null: Option<NearNull>,
    /// The most steps of a cycle of [`Method::Gmres`], from 1 to [`MOST_RESTART`](crate::solve::MOST_RESTART): each takes a vector's
    /// memory, and the time of two passes over those of the steps before. More of them take fewer iterations.
    pub restart: u32,
    /// The precision of the iteration.
    pub precision: Precision,
    /// The devices, each of which becomes a rank.
    #[serde(serialize_with = "as_text")]
    pub devices: Choice,
    /// Skip the check that the matrix is symmetric.
    pub assume_symmetric: bool,
    /// Where launch parameters and formats come from.
    pub tune: Tune,
    /// How devices store their rows.
    pub format: Format,
    /// What part of the rows each rank gets, by their cost; `None` finds out. With [`Choice::Auto`], all devices that it
    /// would consider then are ranks.
    pub shares: Option<Shares>,
    /// In which order the ranks have the rows. Another than that given takes the memory of the matrix once more on the
    /// host, until the devices have their rows.
    pub reorder: Reorder,
    /// How halos get from device to device.
    pub exchange: Exchange,
    /// What happens when a device fails, when the solver is built or in a solve. With [`OnFailure::Continue`] a solve sets its
    /// iterate aside from time to time, every 10 s unless [`Control::checkpoint`](crate::Control::checkpoint) says otherwise. Each time costs
    /// the transfer of x and p to the host, whose memory has up to six more vectors then.
    pub on_failure: OnFailure,
    /// The most right-hand sides that [`Solver::solve_columns`](crate::Solver::solve_columns) solves for side by side, up to 1024;
    /// 1 is one after the other. More than 16 are those of a small system on a GPU, of which a work-group has one.
    pub columns: usize,
    /// Whether the matrix is the real form of a complex one: found out, and noted here for whoever opens ranks.
    #[serde(skip)]
    pub(crate) is_complex: bool,
    /// Whether there is a preconditioner of the caller's own, for methods that can have one.
    #[serde(skip)]
    pub(crate) has_given: bool,
}

impl Setup {
    /// Whether the method applies a preconditioner that is no text: one of the caller's own, or `amg`.
    pub(crate) fn applies_given(&self) -> bool {
        (self.has_given || self.precond == Precond::Amg) && self.method.takes_given()
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            precond: Precond::Jacobi,
            may_change: true,
            near_null: None,
            restart: RESTART,
            precision: Precision::F64,
            devices: Choice::default(),
            assume_symmetric: false,
            tune: Tune::Stored,
            format: Format::Auto,
            shares: None,
            reorder: Reorder::Auto,
            exchange: Exchange::Auto,
            on_failure: OnFailure::Stop,
            columns: MOST_COLUMNS,
            is_complex: false,
            has_given: false,
        }
    }
}

impl Setup {
    /// The same with this preconditioner, which then stays.
    #[must_use]
    pub fn with_precond(self, precond: Precond) -> Self {
        Self { precond, may_change: false, ..self }
    }
}

setters! { Setup:
    with_may_change = may_change: bool;
    with_near_null = near_null: NearNull as Some;
    with_method = method: Method;
    with_restart = restart: u32;
    with_precision = precision: Precision;
    with_devices = devices: Choice;
    with_assume_symmetric = assume_symmetric: bool;
    with_tune = tune: Tune;
    with_format = format: Format;
    with_shares = shares: Shares as Some;
    with_reorder = reorder: Reorder;
    with_exchange = exchange: Exchange;
    with_on_failure = on_failure: OnFailure;
    with_columns = columns: usize;
}
