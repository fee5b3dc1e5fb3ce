//! What C calls.
//!
//! Comments of public items are those of the header: they are written for users of C, in ASCII.

// what callers promise stands in the header's first comment, once for all functions
#![allow(clippy::missing_safety_doc)]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use declive::Reason;
use declive::matrix::AnyCsr;
use declive::solve::options;

use crate::arrays::{Index, Taking, matrix};
use crate::failure::{self, Failure, Result, c_text, run};
use crate::pointers::{at, length, slice, slice_mut, text};
use crate::solver::{Handle, Near, State, complex};

/// Done; of a solve: converged, and b - A x was recomputed.
pub const DECLIVE_OK: c_int = 0;
/// A solve has not converged: x is the best approximation reached, and its outcome tells why.
pub const DECLIVE_NOT_CONVERGED: c_int = 1;
/// The call or its input is wrong: a null pointer, an unknown option, a file or a matrix that is not what it should be.
pub const DECLIVE_INPUT: c_int = 2;
/// The machine failed: a device, a driver, or too little memory.
pub const DECLIVE_MACHINE: c_int = 3;
/// A defect of the library. The solver can only be destroyed then.
pub const DECLIVE_INTERNAL: c_int = 4;

/// A flag of declive_set_csr_...: values are complex, each two doubles, the real and the imaginary part. All values, right-hand sides
/// and solutions of this matrix are so then.
pub const DECLIVE_COMPLEX: c_uint = 1;
/// A flag of declive_set_csr_...: rows, columns and entries are counted from 1, as in Fortran, so that row_ptr begins with 1.
pub const DECLIVE_ONE_BASED: c_uint = 2;
/// A flag of declive_set_csr_...: the arrays are used where they are. They must stay, and must not change, until the solver has another
/// matrix or is destroyed. values always are used so, columns of 32 bits and row pointers of 64 bits if they are counted from 0;
/// the others are copied all the same.
pub const DECLIVE_BORROW: c_uint = 4;

/// A flag of declive_solve_columns: x holds a first guess.
pub const DECLIVE_GUESS: c_uint = 1;

/// Why a solve ended: the stop test holds for b - A x, recomputed.
pub const DECLIVE_REASON_CONVERGED: c_int = 0;
/// The system has no solution, and x is one of least squares.
pub const DECLIVE_REASON_LEAST_SQUARES: c_int = 1;
/// The limit on iterations.
pub const DECLIVE_REASON_MAX_ITERS: c_int = 2;
/// The limit on time.
pub const DECLIVE_REASON_TIME_LIMIT: c_int = 3;
/// The residual no longer falls: the precision is exhausted, or the matrix is singular.
pub const DECLIVE_REASON_STAGNATION: c_int = 4;
/// The residual no longer falls, and is one of rounding: no x in double precision is better.
pub const DECLIVE_REASON_ROUNDING: c_int = 5;
/// The residual has grown beyond all bounds.
pub const DECLIVE_REASON_DIVERGENCE: c_int = 6;
/// The method needs a positive definite matrix, and this is none.
pub const DECLIVE_REASON_INDEFINITE: c_int = 7;
/// The matrix is singular, and no x solves the system, as far as can be told.
pub const DECLIVE_REASON_SINGULAR: c_int = 8;
/// The method would divide by zero.
pub const DECLIVE_REASON_BREAKDOWN: c_int = 9;
/// An infinity or a NaN turned up.
pub const DECLIVE_REASON_NON_FINITE: c_int = 10;
/// declive_cancel, or a callback, has ended it.
pub const DECLIVE_REASON_INTERRUPTED: c_int = 11;
/// Another one, which declive_reason_text tells.
pub const DECLIVE_REASON_OTHER: c_int = 12;

/// A solver: options, a matrix, and how the last solve went.
pub struct Solver(Handle);

/// How a solve went for one right-hand side. Norms are of doubles; of complex systems, those of the complex vectors.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Why it ended: DECLIVE_REASON_...
    pub reason: c_int,
    /// 1 if it converged, else 0.
    pub converged: c_int,
    /// Iterations of all methods that took part.
    pub iterations: i64,
    /// How often b - A x, recomputed, did not meet the test that its recurrence had met, so that the iteration went on.
    pub restarts: i64,
    /// Elements of declive_history.
    pub history_length: i64,
    /// ||b - A x||_2 / ||b||_2, recomputed in more than double precision.
    pub relative_residual: f64,
    /// ||b - A x||_2.
    pub residual_2: f64,
    /// The largest |b - A x|.
    pub residual_inf: f64,
    /// ||b||_2.
    pub rhs_2: f64,
    /// ||b - A x||_inf / (||A||_inf ||x||_inf + ||b||_inf): some 1e-16 is as good as it gets.
    pub backward_error: f64,
    /// ||b - A x||_2 / ||b||_2 by the recurrence of the method.
    pub recurrence_relative_residual: f64,
    /// Of methods of least squares, ||A' r||_2 / (a ||r||_2) for r = b - A x, with the root mean square a of the norms of A's columns; else NaN.
    pub optimality: f64,
    /// Seconds to build kernels that were needed for the first time.
    pub compile_seconds: f64,
    /// Seconds to take b and the first guess to the devices.
    pub upload_seconds: f64,
    /// Seconds in the iteration.
    pub solve_seconds: f64,
    /// Seconds to bring x back.
    pub gather_seconds: f64,
    /// Seconds to recompute b - A x.
    pub verify_seconds: f64,
}

/// Called now and then in a solve, with the user's pointer, iterations done, ||r||_2 / ||b||_2 by the recurrence, where that has to
/// arrive, and seconds in the iteration. A result other than 0 ends the solve with DECLIVE_REASON_INTERRUPTED.
pub type Progress = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        iterations: i64,
        relative_residual: f64,
        target: f64,
        seconds: f64,
    ) -> c_int,
>;

/// Sets z to an approximation of the inverse of A times r, both of n elements, in the order of the matrix.
pub type Preconditioner = Option<unsafe extern "C" fn(user: *mut c_void, n: i64, r: *const f64, z: *mut f64)>;

/// The user's pointer, which the library only hands back.
#[derive(Clone, Copy)]
struct User(*mut c_void);

// SAFETY: it is never followed here; users are told that callbacks come from other threads.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    /// The pointer: by a method, so that closures have the whole of it.
    fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// What a call gives that has nothing to give but a code.
fn code(call: impl FnOnce() -> Result<()>) -> c_int {
    run(call).err().unwrap_or(DECLIVE_OK)
}

/// The handle behind a pointer.
///
/// # Safety
/// The pointer is null or from [`declive_create`], and not destroyed for `'a`.
unsafe fn handle<'a>(s: *const Solver) -> Result<&'a Handle> {
    // SAFETY: by contract; the handle itself is never changed but through its lock and its atomic flag.
    unsafe { at("the solver", s) }.map(|solver| &solver.0)
}

/// Runs a call with all of a solver.
///
/// # Safety
/// As [`handle`].
unsafe fn with(s: *const Solver, call: impl FnOnce(&mut State) -> Result<()>) -> c_int {
    // SAFETY: by contract.
    code(|| call(&mut *unsafe { handle(s) }?.state()?))
}

/// Runs a call that gives a text, or null.
///
/// # Safety
/// As [`handle`].
unsafe fn text_of(s: *const Solver, name: &'static str, call: impl FnOnce(&State) -> Result<String>) -> *const c_char {
    let kept = run(|| {
        // SAFETY: by contract.
        let mut state = unsafe { handle(s) }?.state()?;
        let text = call(&state)?;
        Ok(state.keep(name, text))
    });
    kept.unwrap_or(std::ptr::null())
}

/// Runs a call that gives a number, or -1.
///
/// # Safety
/// As [`handle`].
unsafe fn number_of(s: *const Solver, call: impl FnOnce(&State) -> Result<usize>) -> i64 {
    // SAFETY: by contract.
    run(|| call(&*unsafe { handle(s) }?.state()?)).map_or(-1, |number| number as i64)
}

/// The version of the library, such as 0.1.0.
#[unsafe(no_mangle)]
pub extern "C" fn declive_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What went wrong in the last call of this thread that gave no DECLIVE_OK, or null for a text, or -1 for a number: with the offending
/// thing and what to do about it. Stays until the next such call of this thread. Empty if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn declive_last_error() -> *const c_char {
    failure::last()
}

/// All options, a line for each: its name, its values, what it is, and its default, with tabs between them.
#[unsafe(no_mangle)]
pub extern "C" fn declive_options() -> *const c_char {
    static LINES: OnceLock<CString> = OnceLock::new();
    let line = |option: &options::OptionInfo| {
        format!("{}\t{}\t{}\t{}\n", option.name, option.values(), option.about, option.default_value())
    };
    run(|| Ok(LINES.get_or_init(|| c_text(options::ALL.iter().map(line).collect::<String>())).as_ptr()))
        .unwrap_or(c"".as_ptr())
}

/// Closes the devices that no solver uses. When the last solver that used one is destroyed, it stays open for the next, which would
/// wait for the driver again; an NVIDIA GPU has some 500 MB of its memory taken as long.
#[unsafe(no_mangle)]
pub extern "C" fn declive_close_idle() -> c_int {
    code(|| {
        declive::device::close_idle();
        Ok(())
    })
}

/// Makes a solver with default options and no matrix, and puts it to *s. To be destroyed by declive_destroy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_create(s: *mut *mut Solver) -> c_int {
    code(|| {
        // SAFETY: the caller's promise.
        let place = unsafe { slice_mut("s", s, 1) }?;
        place[0] = Box::into_raw(Box::new(Solver(Handle::new())));
        Ok(())
    })
}

/// Destroys a solver, and all texts and arrays that it has given. When it returns, nobody reads borrowed arrays any more; it waits for a
/// factorisation that a limit on time has left running. Null is fine. A solver that another call is using stays, and the code is
/// DECLIVE_INPUT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_destroy(s: *mut Solver) -> c_int {
    code(|| {
        if s.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        match unsafe { handle(s) }?.state() {
            Err(in_use) if in_use.code != DECLIVE_INTERNAL => return Err(in_use),
            _ => (),
        }
        // SAFETY: it came from Box::into_raw, once, and nobody has it any more.
        drop(unsafe { Box::from_raw(s) });
        Ok(())
    })
}

/// Sets an option, such as "precond" to "amg" or "rtol" to "1e-10": names and values are those of the options of `declive solve`, which
/// declive_options lists. Devices, methods and the like hold from the next solve on, which then makes all anew; tolerances and limits
/// cost nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set(s: *mut Solver, name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(s, |state| state.set(text("name", name)?, text("value", value)?)) }
}

/// The value of an option; null for one that there is not. Stays until the next call of this function for the solver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_get(s: *mut Solver, name: *const c_char) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { text_of(s, "option", |state| state.get(text("name", name)?)) }
}

/// Gives the solver an n_rows x n_cols matrix as compressed sparse rows. Element i of row_ptr tells where row i begins in col_idx and values,
/// which have nnz elements; the last of its n_rows + 1 elements is where the last row ends. Columns rise strictly within a row. Integers have
/// 32 bits; columns up to 2^32 - 1 may be given as unsigned ones. flags are DECLIVE_COMPLEX, DECLIVE_ONE_BASED and DECLIVE_BORROW
/// or'ed together, or 0: then all is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set_csr_i32(
    s: *mut Solver,
    n_rows: i64,
    n_cols: i64,
    nnz: i64,
    row_ptr: *const i32,
    col_idx: *const i32,
    values: *const f64,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_csr(s, [n_rows, n_cols, nnz], row_ptr, col_idx, values, flags) }
}

/// The same with integers of 64 bits. There are at most 2^32 - 1 columns all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set_csr_i64(
    s: *mut Solver,
    n_rows: i64,
    n_cols: i64,
    nnz: i64,
    row_ptr: *const i64,
    col_idx: *const i64,
    values: *const f64,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_csr(s, [n_rows, n_cols, nnz], row_ptr, col_idx, values, flags) }
}

/// The same with row pointers of 64 bits and columns of 32: the types of which DECLIVE_BORROW copies nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set_csr_i64_i32(
    s: *mut Solver,
    n_rows: i64,
    n_cols: i64,
    nnz: i64,
    row_ptr: *const i64,
    col_idx: *const i32,
    values: *const f64,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_csr(s, [n_rows, n_cols, nnz], row_ptr, col_idx, values, flags) }
}

/// # Safety
/// As [`handle`]; arrays have the lengths that the header says, and stay as it says.
unsafe fn set_csr<P: Index, I: Index>(
    s: *mut Solver,
    [n_rows, n_cols, nnz]: [i64; 3],
    row_ptr: *const P,
    col_idx: *const I,
    values: *const f64,
    flags: c_uint,
) -> c_int {
    let take = |state: &mut State| {
        known(flags, DECLIVE_COMPLEX | DECLIVE_ONE_BASED | DECLIVE_BORROW)?;
        let has = |flag: c_uint| flags & flag != 0;
        let shape = [length("n_rows", n_rows)?, length("n_cols", n_cols)?];
        let nnz = length("nnz", nnz)?;
        let taking = Taking { base: i64::from(has(DECLIVE_ONE_BASED)), borrows: has(DECLIVE_BORROW) };
        let parts = if has(DECLIVE_COMPLEX) { nnz.saturating_mul(2) } else { nnz };
        // SAFETY: the caller's promise; what is borrowed is waited for before it may go.
        let (row_ptr, col_idx, values) = unsafe {
            (
                slice("row_ptr", row_ptr, shape[0].saturating_add(1))?,
                slice("col_idx", col_idx, nnz)?,
                slice("values", values, parts)?,
            )
        };
        let (a, lent) = if has(DECLIVE_COMPLEX) {
            let (a, lent) = matrix(shape, row_ptr, col_idx, complex(values), taking)?;
            (AnyCsr::from(a), lent)
        } else {
            let (a, lent) = matrix(shape, row_ptr, col_idx, values, taking)?;
            (AnyCsr::from(a), lent)
        };
        state.take(a, taking.borrows.then_some(lent));
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, take) }
}

/// Refuses flags that have no meaning.
fn known(flags: c_uint, all: c_uint) -> Result<()> {
    match flags & !all {
        0 => Ok(()),
        unknown => Err(Failure::input(format!("flags = {flags:#x}: {unknown:#x} is no flag of this call"))),
    }
}

/// Reads the matrix from a file: Matrix Market, compressed or not, an archive of the SuiteSparse collection, or SciPy's .npz. path is UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_read(s: *mut Solver, path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(s, |state| state.read(Path::new(text("path", path)?))) }
}

/// Rows of the matrix; -1 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_rows(s: *const Solver) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { number_of(s, |state| Ok(state.matrix()?.n_rows())) }
}

/// Columns of the matrix; -1 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_cols(s: *const Solver) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { number_of(s, |state| Ok(state.matrix()?.n_cols())) }
}

/// Entries of the matrix; -1 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_nnz(s: *const Solver) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { number_of(s, |state| Ok(state.matrix()?.nnz())) }
}

/// 1 if the matrix is complex, 0 if it is real; -1 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_is_complex(s: *const Solver) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { number_of(s, |state| Ok(usize::from(state.matrix()?.is_complex()))) as c_int }
}

/// Gives the matrix other values in the same pattern, as for a next step in time: nnz doubles in the order of the entries, twice as many if it is
/// complex. They are copied. Most solvers keep all but the values. After an error the former values stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_update_values(s: *mut Solver, nnz: i64, values: *const f64) -> c_int {
    let update = |state: &mut State| {
        let a = state.matrix()?;
        let (expected, parts) = (a.nnz(), if a.is_complex() { 2 } else { 1 });
        if usize::try_from(nnz) != Ok(expected) {
            return Err(Failure::input(format!("nnz = {nnz}, but the matrix has {expected} entries")));
        }
        // SAFETY: the caller's promise.
        state.update(unsafe { slice("values", values, parts * expected) }?)
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, update) }
}

/// For precond = amg: where the nodes of a mesh are, dim = 2 or 3 numbers for each, one node after the other, so that motions of rigid bodies are
/// known. Unknowns of a node are consecutive rows: its displacements and, in frames and shells, its rotations. Copied; nodes = 0
/// forgets them. Takes the place of near-null vectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set_coordinates(
    s: *mut Solver,
    dim: c_int,
    nodes: i64,
    coordinates: *const f64,
) -> c_int {
    let set = |state: &mut State| {
        let (dim, nodes) = (length("dim", dim.into())?, length("nodes", nodes)?);
        if !matches!(dim, 2 | 3) {
            return Err(Failure::input(format!("dim = {dim}; nodes have 2 or 3 coordinates")));
        }
        // SAFETY: the caller's promise.
        let all = unsafe { slice("coordinates", coordinates, nodes.saturating_mul(dim)) }?;
        let axis = |k: usize| all.iter().skip(k).step_by(dim).copied().collect();
        state.set_near(if nodes == 0 { Near::Unknown } else { Near::Coordinates((0..dim).map(axis).collect()) });
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, set) }
}

/// For precond = amg: count vectors of n elements, one after the other, that A makes hardly anything of, and a cycle interpolates exactly.
/// Copied; count = 0 forgets them. Takes the place of coordinates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set_near_null(s: *mut Solver, n: i64, count: c_int, vectors: *const f64) -> c_int {
    let set = |state: &mut State| {
        let (n, count) = (length("n", n)?, length("count", count.into())?);
        // SAFETY: the caller's promise.
        let all = unsafe { slice("vectors", vectors, n.saturating_mul(count)) }?;
        let vector = |k: usize| all[k * n..(k + 1) * n].to_vec();
        state.set_near(if count == 0 { Near::Unknown } else { Near::Vectors((0..count).map(vector).collect()) });
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, set) }
}

/// A preconditioner of the caller's own in place of "precond", for method = cg, gmres or auto and real matrices; null forgets it. It is called by
/// one thread at a time, which may be another one each time, and must not call the solver. For cg it should be symmetric and
/// positive definite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set_preconditioner(s: *mut Solver, apply: Preconditioner, user: *mut c_void) -> c_int {
    let user = User(user);
    let set = |state: &mut State| {
        state.set_preconditioner(apply.map(|apply| {
            let apply = move |r: &[f64], z: &mut [f64]| {
                // SAFETY: the caller's promise; both have that length.
                unsafe { apply(user.pointer(), r.len() as i64, r.as_ptr(), z.as_mut_ptr()) }
            };
            Arc::new(apply) as Arc<dyn declive::HostPreconditioner>
        }));
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, set) }
}

/// Watches solves; null ends that. It is called from a thread of the library, should return soon, and must not call the solver, but for
/// declive_cancel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_set_progress(s: *mut Solver, progress: Progress, user: *mut c_void) -> c_int {
    let user = User(user);
    let set = |state: &mut State| {
        state.watch = progress.map(|progress| {
            let watch = move |at: &declive::solve::Progress| {
                let (iterations, seconds) = (at.iterations as i64, at.elapsed.as_secs_f64());
                // SAFETY: the caller's promise.
                unsafe { progress(user.pointer(), iterations, at.rel_residual_2, at.target, seconds) == 0 }
            };
            Box::new(watch) as crate::solver::Watch
        });
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, set) }
}

/// Takes the matrix to the devices, and makes what the method and the preconditioner need. The first solve does it, too: call this to
/// have it done, or its errors, before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_setup(s: *mut Solver) -> c_int {
    code(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { handle(s) }?;
        handle.state()?.set_up(&handle.cancel)?;
        Ok(())
    })
}

/// Solves A x = b, beginning with x = 0. b has an element for each row, x for each column. DECLIVE_NOT_CONVERGED leaves the best approximation
/// reached in x; after other codes, x has no meaning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_solve(s: *mut Solver, b: *const f64, x: *mut f64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { solve(s, 1, b, x, 0) }
}

/// Solves A X = B for several right-hand sides, one after the other in b, as their solutions in x: up to 16 go through the same
/// iterations, in which the matrix is read once for all of them. With DECLIVE_GUESS in flags, x holds first guesses. The code is
/// DECLIVE_NOT_CONVERGED if one of them has not converged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_solve_columns(
    s: *mut Solver,
    columns: i64,
    b: *const f64,
    x: *mut f64,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { solve(s, columns, b, x, flags) }
}

/// # Safety
/// As [`handle`]; b and x are null or have the lengths that the header says.
unsafe fn solve(s: *mut Solver, columns: i64, b: *const f64, x: *mut f64, flags: c_uint) -> c_int {
    code(|| {
        // SAFETY: the caller's promise.
        let handle = unsafe { handle(s) }?;
        let mut state = handle.state()?;
        known(flags, DECLIVE_GUESS)?;
        let columns = length("columns", columns)?;
        if columns == 0 {
            return Err(Failure::input("columns = 0; there is nothing to solve"));
        }
        let a = state.matrix()?;
        let elements = |n: usize| n.saturating_mul(if a.is_complex() { 2 } else { 1 }).saturating_mul(columns);
        let (of_b, of_x) = (elements(a.n_rows()), elements(a.n_cols()));
        // SAFETY: the caller's promise.
        let b = unsafe { slice("b", b, of_b) }?;
        if overlap(b, (x, of_x)) {
            return Err(Failure::input("b and x lie in the same memory; give x memory of its own"));
        }
        // SAFETY: the caller's promise, and it does not overlap b.
        let x = unsafe { slice_mut("x", x, of_x) }?;
        if flags & DECLIVE_GUESS == 0 {
            x.fill(0.0);
        }
        let solved = state.solve(columns, b, x, &handle.cancel);
        handle.cancel.store(false, Ordering::Relaxed);
        solved
    })
}

/// Whether an array has memory in common with another one of so many doubles.
fn overlap(b: &[f64], (x, of_x): (*mut f64, usize)) -> bool {
    let end = |start: usize, len: usize| start.saturating_add(len.saturating_mul(size_of::<f64>()));
    b.as_ptr().addr() < end(x.addr(), of_x) && x.addr() < end(b.as_ptr().addr(), b.len())
}

/// Ends the solve that runs, in another thread, with DECLIVE_REASON_INTERRUPTED; if none does, the next one. May be called at any time
/// while the solver is there, from any thread, and from a handler of signals.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_cancel(s: *const Solver) -> c_int {
    code(|| {
        // SAFETY: the caller's promise.
        unsafe { handle(s) }?.cancel.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// How the last solve went for right-hand side column, counted from 0: fills the first size bytes of *outcome, for which
/// sizeof *outcome is right. Later versions may have more fields at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_get_outcome(
    s: *const Solver,
    column: i64,
    outcome: *mut Outcome,
    size: usize,
) -> c_int {
    let get = |state: &mut State| {
        if size == 0 {
            return Err(Failure::input("size = 0; give sizeof *outcome"));
        }
        let found = facts(state.outcome(column)?);
        // SAFETY: the caller's promise: so many bytes can be written.
        let place = unsafe { slice_mut("outcome", outcome.cast::<u8>(), size.min(size_of::<Outcome>())) }?;
        // SAFETY: an outcome has so many bytes, and no padding.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const found).cast::<u8>(), place.len()) };
        place.copy_from_slice(bytes);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, get) }
}

fn facts(outcome: &declive::Outcome<()>) -> Outcome {
    let residual = &outcome.residual;
    Outcome {
        reason: reason_code(outcome.reason),
        converged: c_int::from(outcome.reason.converged()),
        iterations: outcome.iterations as i64,
        restarts: outcome.restarts.into(),
        history_length: outcome.history.len() as i64,
        relative_residual: residual.relative_2,
        residual_2: residual.norm_2,
        residual_inf: residual.norm_inf,
        rhs_2: residual.rhs_norm_2,
        backward_error: residual.backward_error,
        recurrence_relative_residual: outcome.recurrence_rel_residual_2,
        optimality: residual.optimality.unwrap_or(f64::NAN),
        compile_seconds: outcome.compile.as_secs_f64(),
        upload_seconds: (outcome.upload + outcome.precond).as_secs_f64(),
        solve_seconds: outcome.solve.as_secs_f64(),
        gather_seconds: outcome.gather.as_secs_f64(),
        verify_seconds: outcome.verify.as_secs_f64(),
    }
}

fn reason_code(reason: Reason) -> c_int {
    match reason {
        Reason::Converged(_) => DECLIVE_REASON_CONVERGED,
        Reason::LeastSquares => DECLIVE_REASON_LEAST_SQUARES,
        Reason::MaxIters => DECLIVE_REASON_MAX_ITERS,
        Reason::TimeLimit => DECLIVE_REASON_TIME_LIMIT,
        Reason::Stagnation => DECLIVE_REASON_STAGNATION,
        Reason::Rounding => DECLIVE_REASON_ROUNDING,
        Reason::Divergence => DECLIVE_REASON_DIVERGENCE,
        Reason::IndefiniteOperator(_) => DECLIVE_REASON_INDEFINITE,
        Reason::Singular(_) => DECLIVE_REASON_SINGULAR,
        Reason::Breakdown => DECLIVE_REASON_BREAKDOWN,
        Reason::NonFinite(_) => DECLIVE_REASON_NON_FINITE,
        Reason::Interrupted => DECLIVE_REASON_INTERRUPTED,
        _ => DECLIVE_REASON_OTHER,
    }
}

/// Why the last solve ended for right-hand side column, counted from 0, in words; null if there is none. Stays until the next call of this
/// function for the solver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_reason_text(s: *mut Solver, column: i64) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { text_of(s, "reason", |state| Ok(state.outcome(column)?.reason.to_string())) }
}

/// The residuals of the last solve for right-hand side column, counted from 0: ||r||_2 / ||b||_2 by the recurrence, before the first iteration and
/// after each. Puts the first of them to *history, and how many there are to *length. They stay until the next solve, or another matrix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_history(
    s: *const Solver,
    column: i64,
    history: *mut *const f64,
    length: *mut i64,
) -> c_int {
    let get = |state: &mut State| {
        // SAFETY: the caller's promise.
        let places = unsafe { (slice_mut("history", history, 1)?, slice_mut("length", length, 1)?) };
        let found = &state.outcome(column)?.history;
        (places.0[0], places.1[0]) = (found.as_ptr(), found.len() as i64);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(s, get) }
}

/// The method that the solver follows, such as cg; null before declive_setup or the first solve. Stays until the next call of this function
/// for the solver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_method(s: *mut Solver) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { text_of(s, "method", |state| Ok(state.solver()?.method().to_string())) }
}

/// The preconditioner that the solver has, such as jacobi; null before declive_setup or the first solve. Stays until the next call of this
/// function for the solver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_precond(s: *mut Solver) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { text_of(s, "precond", |state| Ok(state.solver()?.precond().to_string())) }
}

/// What is known of the solver and its last solve, as JSON, with devices, times and all right-hand sides; null before declive_setup or the
/// first solve. Stays until the next call of this function for the solver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn declive_report(s: *mut Solver) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { text_of(s, "report", State::report) }
}
