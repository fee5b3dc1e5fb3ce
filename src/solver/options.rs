//! What a caller chooses: method, preconditioner, precision, devices, when to stop.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::Shares;
use crate::device::Choice;
use crate::error::Error;

/// Declares an enum whose values have names and one-line descriptions: one table serves parsing, printing and help.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident, $what:literal: $($(#[$vdoc:meta])* $variant:ident = $name:literal, $text:literal;)+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $type { $($(#[$vdoc])* #[doc = $text] $variant,)+ }

        impl $type {
            /// All of them, in the order of the help.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// One line of description.
            #[must_use]
            pub fn describe(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(s: &str) -> std::result::Result<Self, Error> {
                Self::ALL.iter().copied().find(|v| v.name() == s).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|v| v.name()).collect();
                    Error::Usage(format!("unknown {} '{s}'; there are: {}", $what, names.join(", ")))
                })
            }
        }
    };
}

pub(super) use named;

named! {
    /// The Krylov method.
    Method, "method":
    Auto = "auto", "cg on one device; on several, cg or one whose devices need less to meet, whichever is expected to be faster.";
    Cg = "cg", "Preconditioned conjugate gradients with fused kernels; the scalars stay on the device when it works alone.";
    CgClassic = "cg-classic", "Conjugate gradients from five separate kernels, partial sums added on the host (Bueno 2013).";
    CgSingleReduction = "cg-single-reduction", "Conjugate gradients with the sums of an iteration in one (Chronopoulos and Gear 1989).";
    CgPipelined = "cg-pipelined", "Conjugate gradients whose sums travel while the product runs (Ghysels and Vanroose 2014).";
}

impl Method {
    /// All that an iteration can be by: all but [`Method::Auto`].
    pub const FORCED: &[Self] = Self::ALL.split_at(1).1;

    /// Whether the method has the diagonal as preconditioner in the form of a scaling of the system.
    pub(crate) fn scales(self) -> bool {
        self != Self::CgClassic
    }

    /// Vectors beside the residual and the iterate that the method has by recurrence: A p, A r and so on.
    pub(crate) fn recurrences(self) -> u64 {
        match self {
            Self::Auto | Self::Cg | Self::CgClassic => 0,
            Self::CgSingleReduction => 1,
            Self::CgPipelined => 3,
        }
    }

    /// How many vectors an iteration reads and writes beside its product, by the byte rule: each array that an operation reads
    /// counts once, and each that it writes; of x, a step of `cg` has half. `is_scaled` tells whether the matrix is scaled by its
    /// diagonal, so that the test needs weights.
    pub(crate) fn vectors_moved(self, precond: Precond, is_scaled: bool) -> u64 {
        match self {
            Self::Auto | Self::Cg => 6 + u64::from(is_scaled),
            Self::CgSingleReduction => 9 + u64::from(is_scaled),
            Self::CgPipelined => 13 + u64::from(is_scaled),
            Self::CgClassic => 13 + if precond == Precond::Jacobi { 5 } else { 0 },
        }
    }
}

named! {
    /// The preconditioner.
    Precond, "preconditioner":
    None = "none", "No preconditioner.";
    Jacobi = "jacobi", "The inverse of the diagonal: the system is scaled by it; cg-classic multiplies by it.";
}

named! {
    /// The precision of the matrix and the vectors on the ranks. The answer is checked in more than double precision
    /// in any case.
    Precision, "precision":
    F64 = "f64", "Double precision.";
    F32 = "f32", "Single precision; sums in double precision where the device has it.";
    Mixed = "mixed", "Single precision in the iteration; the residuals it goes on from, and the iterate, in double.";
}

impl Precision {
    /// Bytes of an element in the iteration.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::Mixed => 4,
        }
    }

    /// The precision of the matrix and the vectors of the iteration.
    pub(crate) fn of_vectors(self) -> Self {
        match self {
            Self::F64 => Self::F64,
            Self::F32 | Self::Mixed => Self::F32,
        }
    }

    /// Whether devices must compute in double precision.
    #[must_use]
    pub fn needs_f64(self) -> bool {
        self != Self::F32
    }
}

named! {
    /// Where the launch parameters of kernels come from, and the formats of [`Format::Auto`]: `quick` and `full`
    /// measure what is not kept of these.
    Tune, "way of tuning":
    Off = "off", "Usual values.";
    Stored = "stored", "What is kept from former runs, and usual values for the rest; nothing is tried.";
    Quick = "quick", "What is kept; for the rest, iterations after the 100th try other numbers of work-groups.";
    Full = "full", "What 'declive tune' would find for systems of about this size: looked for now, unless it is kept.";
}

named! {
    /// How rows are stored. The host, which has the matrix anyway, takes `csr` for `pattern` and `sell`.
    Format, "format":
    Auto = "auto", "For each block of rows what was measured to be fastest on it, or else what reads the fewest bytes.";
    Csr = "csr", "Compressed rows: a column and a value for each entry.";
    Sell = "sell", "In slices of rows: columns once a block or in two bytes, values in as few bytes as keep their bits.";
    Pattern = "pattern", "For rows of a few kinds by their columns: no column is stored but those of the kinds.";
    Stencil = "stencil", "For rows of a few kinds by columns and values: neither is stored but those of the kinds.";
}

named! {
    /// The order of the rows and columns on the ranks. Whatever it is, right-hand sides, solutions and reports are in
    /// the order given.
    Reorder, "order":
    Auto = "auto", "Reverse Cuthill–McKee if neighbouring rows then share far more of what they need.";
    None = "none", "As given.";
    Rcm = "rcm", "Reverse Cuthill–McKee.";
}

named! {
    /// How elements of a halo get from device to device. Sums go through the host in any case.
    Exchange, "model of exchange":
    HostStaged = "host-staged", "Through pinned memory of the host, which all devices read and write themselves.";
    HostCopied = "host-copied", "Through plain memory of the host; drivers copy it to pinned memory of their own.";
    SharedContext = "shared-context", "From array to array in one OpenCL context, for devices of one platform.";
}

named! {
    /// What becomes of a solve when a device fails.
    OnFailure, "answer to a failing device":
    Stop = "stop", "The solve ends with the error.";
    Continue = "continue", "The other devices take over its rows, and go on from the last iterate that was set aside.";
}

/// What is fixed when a [`Solver`](super::Solver) is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The Krylov method. [`Method::Auto`] becomes another one when the solver is built: see
    /// [`Solver::method`](super::Solver::method).
    pub method: Method,
    /// The preconditioner. That by the diagonal, the default, is a scaling of the system, made once, and costs an iteration next
    /// to nothing: see [`Precond::Jacobi`].
    pub precond: Precond,
    /// The precision of the iteration.
    pub precision: Precision,
    /// The devices, each of which becomes a rank.
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
    /// iterate aside from time to time, every 10 s unless [`Control::checkpoint`] says otherwise. Each time costs
    /// the transfer of x and p to the host, whose memory has up to six more vectors then.
    pub on_failure: OnFailure,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            precond: Precond::Jacobi,
            precision: Precision::F64,
            devices: Choice::default(),
            assume_symmetric: false,
            tune: Tune::Stored,
            format: Format::Auto,
            shares: None,
            reorder: Reorder::Auto,
            exchange: Exchange::HostStaged,
            on_failure: OnFailure::Stop,
        }
    }
}

/// When to stop: ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), or one of the limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// Relative to ‖b‖₂.
    pub rtol: f64,
    /// Absolute, in the units of b.
    pub atol: f64,
    /// At most so many iterations; `None` stands for [`Stop::default_max_iters`].
    pub max_iters: Option<u64>,
    /// At most so much time in the iteration.
    pub time_limit: Option<Duration>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { rtol: 1e-8, atol: 0.0, max_iters: None, time_limit: None }
    }
}

impl Stop {
    /// The limit on iterations for a system of order `n`, unless one is given: 10 n, between 1 000 and 200 000. In exact
    /// arithmetic n would do; rounding delays convergence on ill-conditioned systems by several times that.
    #[must_use]
    pub fn default_max_iters(n: usize) -> u64 {
        (10 * n as u64).clamp(1_000, 200_000)
    }
}

/// How a caller watches and ends a running solve.
#[derive(Clone, Copy, Default)]
pub struct Control<'a> {
    /// Set to true from anywhere, it ends the solve at its next check with [`Reason::Interrupted`](super::Reason::Interrupted).
    pub cancel: Option<&'a AtomicBool>,
    /// Called now and then, from the thread of rank 0; it should return quickly.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
    /// Record what each rank does when, for [`Outcome::timelines`](super::Outcome::timelines).
    pub timeline: bool,
    /// Hand out iterates on the way.
    pub checkpoint: Option<Checkpoints<'a>>,
    /// Iterations of a former solve that ended at the first guess: they count.
    pub done: u64,
}

/// To whom iterates go while a solve runs. See [`crate::checkpoint`] for files of them.
///
/// Ranks only read their iterate, at one and the same iteration: a solve has the same residuals with it as without.
#[derive(Clone, Copy)]
pub struct Checkpoints<'a> {
    /// How long the iteration goes on, at least, between two of them.
    pub every: Duration,
    /// Called from a thread of its own, while the ranks go on. There is no next one before it comes back.
    pub take: &'a (dyn Fn(&Checkpoint<'_>) + Sync),
}

/// An iterate on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoint<'a> {
    /// The iterate, in the order and the units of the system as it was given.
    pub x: &'a [f64],
    /// Iterations done.
    pub iterations: u64,
    /// ‖r‖₂ / ‖b‖₂ then, by the recurrence.
    pub rel_residual_2: f64,
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("cancel", &self.cancel)
            .field("timeline", &self.timeline)
            .field("checkpoint", &self.checkpoint.map(|checkpoint| checkpoint.every))
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

/// Where a running solve is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Iterations done.
    pub iterations: u64,
    /// ‖r‖₂ / ‖b‖₂ by the recurrence.
    pub rel_residual_2: f64,
    /// Where ‖r‖₂ / ‖b‖₂ has to arrive.
    pub target: f64,
    /// Since the start of the iteration.
    pub elapsed: Duration,
}
