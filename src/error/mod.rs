//! What can go wrong, and whose it is to mend.
//!
//! What an error says of options it says in fields of [`Setup`](crate::Setup), such as `precision = f32`; so do the reasons and
//! notes of a solve.
//!
//! Policy: whatever comes from outside (files, arguments, devices) ends in an [`Error`]; a violated contract
//! inside the crate (a vector of the wrong length handed to a kernel) panics. *Not converging* is neither: it is
//! a [`Reason`](crate::solve::Reason) in an [`Outcome`](crate::solve::Outcome).

pub(crate) mod matrix_market;
pub(crate) mod npz;
pub(crate) mod unwritable;

use std::path::PathBuf;

use unwritable::Unwritable;

use num_complex::Complex64;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error with the offending thing and what to do about it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Matrix Market file that is not what it should be.
    #[error(transparent)]
    MatrixMarket(#[from] matrix_market::Error),

    /// A matrix that can't be written as asked for.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),

    /// A `.npz` file that is not what it should be.
    #[error(transparent)]
    Npz(#[from] npz::Error),

    /// A file that can't be opened, read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::sync::Arc<std::io::Error>,
    },

    /// A file of a kind that the crate was built without.
    #[error("{path}: {what} are not read by this program, which is built without the feature \"{feature}\"", path = path.display())]
    MissingFeature {
        /// The file.
        path: PathBuf,
        /// What is in it.
        what: String,
        /// The feature of the crate that reads it.
        feature: &'static str,
    },

    /// A file that no solve can go on from, or not this one.
    #[error("{path}: {reason}", path = path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// Arrays that do not form a compressed sparse row matrix.
    #[error("not a CSR matrix: {0}")]
    InvalidCsr(String),

    /// Numbers that are not those from 0 to n − 1 in some order.
    #[error("not a permutation: {0}")]
    InvalidPermutation(String),

    /// A system needs as many equations as unknowns.
    #[error("the matrix has {rows} rows and {cols} columns; a system to solve needs a square matrix")]
    NotSquare {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },

    /// A method for square matrices was given another.
    #[error(
        "the matrix has {rows} rows and {cols} columns, and {method} needs a square one; method = lsmr finds the least squares for any"
    )]
    Rectangular {
        /// The method.
        method: &'static str,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },

    /// Two things whose sizes must agree do not.
    #[error("{what} has {found} rows, but the matrix has {expected}")]
    SizeMismatch {
        /// The offending thing.
        what: String,
        /// The length that was needed.
        expected: usize,
        /// The length that was found.
        found: usize,
    },

    /// A dense matrix that has no factors, as it is singular in the precision in which it is factorised.
    #[error(
        "the matrix is singular in {precision} precision: column {column} has no pivot once the columns before it are eliminated"
    )]
    SingularMatrix {
        /// The column, from 1.
        column: usize,
        /// `single` or `double`.
        precision: &'static str,
    },

    /// A dense matrix that has no Cholesky factor.
    #[error(
        "the matrix is not positive definite in {precision} precision: column {column} has no positive pivot; use LU factors"
    )]
    NotDefinite {
        /// The column, from 1.
        column: usize,
        /// `single` or `double`.
        precision: &'static str,
    },

    /// A dense matrix that has no L D Lᵀ factors without exchanges of rows, which are those of devices.
    #[error(
        "the matrix has no LDLᵀ factors without pivots in {precision} precision: after random butterflies, pivot {column} is 0 \
         but for rounding errors; use LU factors, or LDLᵀ on the host"
    )]
    NeedsPivots {
        /// The step, from 1.
        column: usize,
        /// `single` or `double`.
        precision: &'static str,
    },

    /// A method for symmetric systems was given another. Rows and columns are counted from 1, as in the file.
    #[error(
        "the matrix is not symmetric: a({row},{col}) = {upper:e} but a({col},{row}) = {lower:e}; \
         {method} needs a symmetric one; method = auto takes any \
         (assume_symmetric = true solves with the matrix as it is)"
    )]
    NotSymmetric {
        /// The method.
        method: &'static str,
        /// Row of the offending entry, from 1.
        row: usize,
        /// Column of the offending entry, from 1.
        col: usize,
        /// Its value.
        upper: f64,
        /// The value across the diagonal.
        lower: f64,
    },

    /// A method for Hermitian complex systems was given another. Rows and columns are counted from 1, as in the file.
    #[error(
        "the matrix is not Hermitian: a({row},{col}) = {upper:e} and a({col},{row}) = {lower:e} are not conjugates; \
         {method} needs a Hermitian one; method = auto takes any \
         (assume_symmetric = true solves with the matrix as it is)"
    )]
    NotHermitian {
        /// The method.
        method: &'static str,
        /// Row of the offending entry, from 1.
        row: usize,
        /// Column of the offending entry, from 1.
        col: usize,
        /// Its value.
        upper: Complex64,
        /// The value across the diagonal.
        lower: Complex64,
    },

    /// A function in place of a matrix that is not symmetric, as two random vectors u and v have shown.
    #[error(
        "the operator is not symmetric: u·(A v) = {uav:e} but v·(A u) = {vau:e} for random u and v; \
         it must set every element of y to that of A x, for a symmetric A \
         (assume_symmetric = true solves with it as it is)"
    )]
    OperatorNotSymmetric {
        /// u·(A v).
        uav: f64,
        /// v·(A u).
        vau: f64,
    },

    /// An infinity or a NaN where a number belongs, or a value outside the range of the precision asked for.
    #[error("{what}: entry {index} is {value}, which is not a finite number in this precision")]
    NotFinite {
        /// The vector or matrix.
        what: String,
        /// Position, from 1.
        index: usize,
        /// The value.
        value: f64,
    },

    /// A matrix whose entries span more than single precision does. The row counts from 1.
    #[error(
        "a({row},{row}) = {value:e} vanishes in single precision beside entries of {largest:e}; use precision = f64"
    )]
    BeyondSingle {
        /// Row of a diagonal entry, from 1.
        row: usize,
        /// Its value.
        value: f64,
        /// The largest entry of the matrix.
        largest: f64,
    },

    /// Elimination without exchanges of rows that has come to a pivot of 0. Systems and rows count from 0.
    #[error(
        "system {system}: the pivot of row {row}, counted from 0, is zero where rows are not exchanged; method = pivoting exchanges them"
    )]
    ZeroPivot {
        /// The system.
        system: usize,
        /// The row.
        row: usize,
    },

    /// A system of a batch that has no solution, or no single one, in this precision. Systems and rows count from 0.
    #[error("system {system} is singular: no row is left with a pivot for unknown {row}, counted from 0")]
    SingularSystem {
        /// The system.
        system: usize,
        /// The unknown.
        row: usize,
    },

    /// A method for narrow bands was given a matrix with a wider one. Rows and columns count from 1, as in the file.
    #[error(
        "the matrix has no narrow band: a({row},{col}) is {distance} off the diagonal, and method = tridiagonal takes up to {most}; \
         method = auto takes any",
        distance = row.abs_diff(*col)
    )]
    NotBanded {
        /// Row of an entry.
        row: usize,
        /// Its column.
        col: usize,
        /// The most that an entry may be off the diagonal.
        most: usize,
    },

    /// A request that contradicts itself or names something that doesn't exist.
    #[error("{0}")]
    Usage(String),

    /// More memory than the machine can give.
    #[error("out of memory: {what} would take {bytes} bytes")]
    OutOfMemory {
        /// What the memory was for.
        what: String,
        /// How much it needs.
        bytes: u64,
    },

    /// No device of the kind asked for.
    #[error("no usable device for devices = {wanted}; found: {found}")]
    NoDevice {
        /// The request.
        wanted: String,
        /// What there is, with the reason why each is not usable.
        found: String,
    },

    /// A kernel that the device's compiler refused.
    #[error("{device}: building the kernels failed ({code}){log}", log = below(log))]
    KernelBuild {
        /// The device.
        device: String,
        /// OpenCL's error.
        code: String,
        /// The compiler's log.
        log: String,
    },

    /// A block of the system that doesn't fit on its device.
    #[error("{device}: {what} needs {need_bytes} bytes, but {limit} is {have_bytes} bytes; {hint}")]
    OutOfDeviceMemory {
        /// The device.
        device: String,
        /// What was to be placed there.
        what: String,
        /// Its size.
        need_bytes: u64,
        /// The limit that it exceeds, in words.
        limit: &'static str,
        /// That limit's size.
        have_bytes: u64,
        /// What may help.
        hint: String,
    },

    /// A block of the system beyond what a device's kernels can count.
    #[error(
        "{device}: {what} is beyond the {limit} that kernels count in 32 bits; more devices, by devices = all or a list, \
         share it into smaller blocks"
    )]
    TooManyElements {
        /// The device.
        device: String,
        /// What was to be placed there, with its number of elements.
        what: String,
        /// The most it can be.
        limit: usize,
    },

    /// Devices that failed one after the other, until none was left to go on with.
    #[error("no device is left to go on with: {0}")]
    NoDeviceLeft(String),

    /// A solver whose devices failed in a former solve.
    #[error("this solver's devices failed in a former solve; build another solver")]
    SolverBroken,

    /// An OpenCL call that failed.
    #[error("{device}: {doing}: {call} failed: {code}{meaning}")]
    OpenCl {
        /// The device, with its number: see [`Info::label`](crate::device::Info::label).
        device: String,
        /// What it was doing, such as `launching cg_step in iteration 130`.
        doing: String,
        /// The call.
        call: &'static str,
        /// OpenCL's name for the error.
        code: String,
        /// In brackets, what it means; nothing if the name says it.
        meaning: &'static str,
    },

    /// Ranks whose running kernels could not add up numbers.
    #[error("{ranks} met in {sums} sums; {why}")]
    NotMet {
        /// All of them.
        ranks: String,
        /// Sums in which all have met.
        sums: u32,
        /// What went wrong.
        why: String,
    },

    /// A rank's thread that panicked: a defect of this program.
    #[error("internal error on rank {rank}: {message}")]
    RankPanicked {
        /// The rank.
        rank: usize,
        /// The panic's message.
        message: String,
    },

    /// Work without a result was ended by its caller.
    #[error("interrupted")]
    Interrupted,

    /// Another process of the job failed, which tells why.
    #[error("process {process} failed: {why}")]
    ProcessFailed {
        /// Its number.
        process: usize,
        /// What it said.
        why: String,
        /// Whose that is to mend.
        kind: ErrorKind,
    },

    /// A call of MPI that failed.
    #[error("{call} failed: {message}")]
    Mpi {
        /// The call.
        call: &'static str,
        /// What MPI says of it.
        message: String,
    },

    /// Another rank failed first; its own error is the one that is reported.
    #[error("another rank failed")]
    PeerFailed,
}

/// Whose an error is to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request or its input: wrong files, sizes, arguments.
    Input,
    /// The machine: devices, drivers, memory.
    Runtime,
}

impl Error {
    /// Whose it is to mend.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::MatrixMarket(_)
            | Self::Unwritable(_)
            | Self::Npz(_)
            | Self::Io { .. }
            | Self::MissingFeature { .. }
            | Self::Checkpoint { .. }
            | Self::InvalidCsr(_)
            | Self::InvalidPermutation(_)
            | Self::NotSquare { .. }
            | Self::Rectangular { .. }
            | Self::SizeMismatch { .. }
            | Self::NotSymmetric { .. }
            | Self::NotHermitian { .. }
            | Self::OperatorNotSymmetric { .. }
            | Self::NotFinite { .. }
            | Self::SingularMatrix { .. }
            | Self::NotDefinite { .. }
            | Self::NeedsPivots { .. }
            | Self::BeyondSingle { .. }
            | Self::NotBanded { .. }
            | Self::ZeroPivot { .. }
            | Self::SingularSystem { .. }
            | Self::Usage(_) => ErrorKind::Input,
            Self::ProcessFailed { kind, .. } => *kind,
            _ => ErrorKind::Runtime,
        }
    }

    /// Whether it is of the device that it came from, and not of the program or the system.
    pub(crate) fn is_of_device(&self) -> bool {
        matches!(self, Self::OpenCl { .. } | Self::OutOfDeviceMemory { .. } | Self::KernelBuild { .. })
    }

    /// An [`Error::Io`] for `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source: std::sync::Arc::new(source) }
    }
}

/// A compiler's log below a line, if it says anything.
fn below(log: &str) -> String {
    let log = log.trim_end();
    if log.is_empty() { String::new() } else { format!("; the build log follows\n{log}") }
}

/// A name with its control characters escaped.
pub(crate) fn one_line(name: &str) -> String {
    let mut line = String::new();
    for c in name.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}
