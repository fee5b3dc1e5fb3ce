//! What C gets for what it gives: solutions, and an error for each wrong call.

#![allow(clippy::unwrap_used)]
// all are calls of the interface, with pointers to what lives beside them, or that it has to refuse
#![allow(clippy::undocumented_unsafe_blocks)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Barrier, Mutex};

use declive_capi::interface::*;

/// A solver of the host, destroyed at the end.
struct Own(*mut Solver);

// SAFETY: solvers may be used by any thread, one call at a time, and cancelled by any.
unsafe impl Sync for Own {}

impl Own {
    fn new() -> Self {
        let mut s = null_mut();
        assert_eq!(unsafe { declive_create(&mut s) }, DECLIVE_OK);
        let own = Self(s);
        own.set("devices", "host");
        own
    }

    /// One with the matrix of [`tridiagonal`].
    fn of(n: usize, flags: c_uint, arrays: &Arrays) -> Self {
        let own = Self::new();
        own.ok(own.csr(n, arrays, flags));
        own
    }

    fn set(&self, name: &str, value: &str) {
        self.ok(self.try_set(name, value));
    }

    fn try_set(&self, name: &str, value: &str) -> c_int {
        let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
        unsafe { declive_set(self.0, name.as_ptr(), value.as_ptr()) }
    }

    fn get(&self, name: &str) -> Option<String> {
        let name = CString::new(name).unwrap();
        text(unsafe { declive_get(self.0, name.as_ptr()) })
    }

    fn csr(&self, n: usize, (row_ptr, col_idx, values): &Arrays, flags: c_uint) -> c_int {
        let (n, nnz) = (n as i64, col_idx.len() as i64);
        unsafe {
            declive_set_csr_i64_i32(self.0, n, n, nnz, row_ptr.as_ptr(), col_idx.as_ptr(), values.as_ptr(), flags)
        }
    }

    fn solve(&self, b: &[f64], x: &mut [f64]) -> c_int {
        unsafe { declive_solve(self.0, b.as_ptr(), x.as_mut_ptr()) }
    }

    fn outcome(&self, column: i64) -> Outcome {
        let mut outcome = std::mem::MaybeUninit::uninit();
        self.ok(unsafe { declive_get_outcome(self.0, column, outcome.as_mut_ptr(), size_of::<Outcome>()) });
        unsafe { outcome.assume_init() }
    }

    fn ok(&self, code: c_int) {
        assert_eq!(code, DECLIVE_OK, "{}", last_error());
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        assert_eq!(unsafe { declive_destroy(self.0) }, DECLIVE_OK);
    }
}

type Arrays = (Vec<i64>, Vec<i32>, Vec<f64>);

/// [−1, diagonal, −1], with indices from `base` on.
fn tridiagonal(n: usize, diagonal: f64, base: i32) -> Arrays {
    let (mut row_ptr, mut col_idx, mut values) = (vec![i64::from(base)], Vec::new(), Vec::new());
    for i in 0..n {
        for j in i.saturating_sub(1)..(i + 2).min(n) {
            col_idx.push(j as i32 + base);
            values.push(if i == j { diagonal } else { -1.0 });
        }
        row_ptr.push(col_idx.len() as i64 + i64::from(base));
    }
    (row_ptr, col_idx, values)
}

/// ‖b − A x‖ / ‖b‖, of indices from 0.
fn residual((row_ptr, col_idx, values): &Arrays, b: &[f64], x: &[f64]) -> f64 {
    let r = |i: usize| {
        let entries = row_ptr[i] as usize..row_ptr[i + 1] as usize;
        b[i] - entries.map(|k| values[k] * x[col_idx[k] as usize]).sum::<f64>()
    };
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    norm(&mut (0..b.len()).map(r)) / norm(&mut b.iter().copied())
}

fn text(from: *const c_char) -> Option<String> {
    (!from.is_null()).then(|| unsafe { CStr::from_ptr(from) }.to_str().unwrap().to_owned())
}

fn last_error() -> String {
    text(declive_last_error()).unwrap()
}

/// That a call failed so, for a reason with these words.
#[track_caller]
fn fails(code: c_int, expected: c_int, words: &str) {
    let error = last_error();
    assert!(code == expected && error.contains(words), "{code}: {error}");
}

#[test]
fn options_are_set_and_told() {
    let s = Own::new();
    s.set("precond", "amg");
    assert_eq!(s.get("precond").unwrap(), "amg");
    fails(s.try_set("precondition", "amg"), DECLIVE_INPUT, "unknown option 'precondition'; there are: method, precond");
    fails(s.try_set("precond", "magic"), DECLIVE_INPUT, "precond = magic: unknown preconditioner 'magic'");
    assert_eq!(s.get("precondition"), None);
    assert!(last_error().contains("unknown option"));
    fails(unsafe { declive_set(s.0, null(), c"1".as_ptr()) }, DECLIVE_INPUT, "name is a null pointer");
    fails(unsafe { declive_set(s.0, c"rtol".as_ptr(), null()) }, DECLIVE_INPUT, "value is a null pointer");
    fails(unsafe { declive_set(s.0, c"rtol".as_ptr(), c"\xff".as_ptr()) }, DECLIVE_INPUT, "is not UTF-8");
    let options = text(declive_options()).unwrap();
    assert!(options.lines().all(|line| line.split('\t').count() == 4), "{options}");
    assert!(options.contains("\nrtol\t"), "{options}");
    assert_eq!(text(declive_version()).unwrap(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn matrices_of_all_kinds_of_arrays() {
    let n = 500;
    let b: Vec<f64> = (0..n).map(|i| (i % 7) as f64 - 2.5).collect();
    let zero_based = tridiagonal(n, 2.5, 0);
    for flags in [0, DECLIVE_BORROW, DECLIVE_ONE_BASED, DECLIVE_ONE_BASED | DECLIVE_BORROW] {
        let (row_ptr, col_idx, values) = tridiagonal(n, 2.5, (flags & DECLIVE_ONE_BASED != 0).into());
        let short: Vec<i32> = row_ptr.iter().map(|&p| p as i32).collect();
        let long: Vec<i64> = col_idx.iter().map(|&j| j.into()).collect();
        let (size, nnz, v) = (n as i64, col_idx.len() as i64, values.as_ptr());
        for kind in 0..3 {
            let s = Own::new();
            s.ok(unsafe {
                match kind {
                    0 => declive_set_csr_i32(s.0, size, size, nnz, short.as_ptr(), col_idx.as_ptr(), v, flags),
                    1 => declive_set_csr_i64(s.0, size, size, nnz, row_ptr.as_ptr(), long.as_ptr(), v, flags),
                    _ => declive_set_csr_i64_i32(s.0, size, size, nnz, row_ptr.as_ptr(), col_idx.as_ptr(), v, flags),
                }
            });
            let sizes = unsafe { (declive_rows(s.0), declive_cols(s.0), declive_nnz(s.0), declive_is_complex(s.0)) };
            assert_eq!(sizes, (size, size, nnz, 0));
            let mut x = vec![f64::NAN; n];
            s.ok(s.solve(&b, &mut x));
            assert!(residual(&zero_based, &b, &x) <= 1e-8, "kind {kind}, flags {flags}");
        }
    }
}

#[test]
fn wrong_matrices_are_errors() {
    let s = Own::new();
    let (row_ptr, col_idx, values) = tridiagonal(3, 2.0, 0);
    let [p, j, v] = [row_ptr.as_ptr().cast::<c_void>(), col_idx.as_ptr().cast(), values.as_ptr().cast()];
    let csr = |n_rows: i64, nnz: i64, [p, j, v]: [*const c_void; 3], flags| unsafe {
        declive_set_csr_i64_i32(s.0, n_rows, 3, nnz, p.cast(), j.cast(), v.cast(), flags)
    };
    fails(csr(-1, 7, [p, j, v], 0), DECLIVE_INPUT, "n_rows = -1");
    fails(csr(3, -7, [p, j, v], 0), DECLIVE_INPUT, "nnz = -7");
    fails(csr(3, i64::MAX, [p, j, v], 0), DECLIVE_INPUT, "more than there can be");
    fails(csr(3, 7, [null(), j, v], 0), DECLIVE_INPUT, "row_ptr is a null pointer");
    fails(csr(3, 7, [p, null(), v], 0), DECLIVE_INPUT, "col_idx is a null pointer");
    fails(csr(3, 7, [p, j, null()], 0), DECLIVE_INPUT, "values is a null pointer");
    fails(csr(3, 7, [p.wrapping_byte_add(1), j, v], 0), DECLIVE_INPUT, "row_ptr does not begin at a multiple of 8");
    fails(csr(3, 6, [p, j, v], 0), DECLIVE_INPUT, "row_ptr runs from 0 to 7, but there are 6 values");
    fails(csr(3, 7, [p, j, v], DECLIVE_ONE_BASED), DECLIVE_INPUT, "row_ptr[0] is 0, but the first is 1");
    fails(csr(3, 7, [p, j, v], 8), DECLIVE_INPUT, "0x8 is no flag");
    for flags in [0, DECLIVE_BORROW] {
        for (columns, words) in [([0, 2, 0, 1, 2, 1, 5], "row 3"), ([0, 2, 0, 2, 1, 1, 2], "row 2")] {
            fails(csr(3, 7, [p, columns.as_ptr().cast(), v], flags), DECLIVE_INPUT, words);
        }
        let negative = [0, 1, -1, 1, 2, 1, 2];
        let words = if flags == 0 { "col_idx[2] is -1" } else { "row 2" };
        fails(csr(3, 7, [p, negative.as_ptr().cast(), v], flags), DECLIVE_INPUT, words);
        let infinite = [1.0, 1.0, 1.0, f64::INFINITY, 1.0, 1.0, 1.0];
        fails(csr(3, 7, [p, j, infinite.as_ptr().cast()], flags), DECLIVE_INPUT, "inf");
    }
    // none of them was taken
    assert_eq!(unsafe { declive_rows(s.0) }, -1);
    let (b, mut x) = ([1.0; 3], [0.0; 3]);
    fails(s.solve(&b, &mut x), DECLIVE_INPUT, "there is no matrix yet");
    fails(unsafe { declive_setup(s.0) }, DECLIVE_INPUT, "there is no matrix yet");
    fails(unsafe { declive_update_values(s.0, 7, values.as_ptr()) }, DECLIVE_INPUT, "there is no matrix yet");
}

#[test]
fn a_null_solver_is_an_error_everywhere() {
    let (b, mut x) = ([1.0; 3], [0.0; 3]);
    let codes = unsafe {
        [
            declive_create(null_mut()),
            declive_set(null_mut(), c"rtol".as_ptr(), c"1".as_ptr()),
            declive_set_csr_i32(null_mut(), 0, 0, 0, null(), null(), null(), 0),
            declive_read(null_mut(), c"a.mtx".as_ptr()),
            declive_update_values(null_mut(), 0, null()),
            declive_set_coordinates(null_mut(), 3, 0, null()),
            declive_set_near_null(null_mut(), 0, 0, null()),
            declive_set_preconditioner(null_mut(), None, null_mut()),
            declive_set_progress(null_mut(), None, null_mut()),
            declive_setup(null_mut()),
            declive_solve(null_mut(), b.as_ptr(), x.as_mut_ptr()),
            declive_solve_columns(null_mut(), 1, b.as_ptr(), x.as_mut_ptr(), 0),
            declive_cancel(null()),
            declive_get_outcome(null(), 0, null_mut(), 0),
            declive_history(null(), 0, null_mut(), null_mut()),
        ]
    };
    assert_eq!(codes, [DECLIVE_INPUT; 15]);
    assert!(last_error().contains("the solver is a null pointer"));
    let numbers = unsafe { [declive_rows(null()), declive_cols(null()), declive_nnz(null())] };
    assert_eq!((numbers, unsafe { declive_is_complex(null()) }), ([-1; 3], -1));
    let texts = unsafe {
        [
            declive_get(null_mut(), c"rtol".as_ptr()),
            declive_reason_text(null_mut(), 0),
            declive_method(null_mut()),
            declive_precond(null_mut()),
            declive_report(null_mut()),
        ]
    };
    assert!(texts.iter().all(|text| text.is_null()));
    assert_eq!(unsafe { declive_destroy(null_mut()) }, DECLIVE_OK);
}

#[test]
fn wrong_solves_are_errors() {
    let arrays = tridiagonal(4, 2.5, 0);
    let s = Own::of(4, 0, &arrays);
    let (b, mut x) = ([1.0; 4], [0.0; 8]);
    unsafe {
        fails(declive_solve(s.0, null(), x.as_mut_ptr()), DECLIVE_INPUT, "b is a null pointer");
        fails(declive_solve(s.0, b.as_ptr(), null_mut()), DECLIVE_INPUT, "x is a null pointer");
        let x = x.as_mut_ptr();
        fails(declive_solve(s.0, x.add(1), x), DECLIVE_INPUT, "b and x lie in the same memory");
        fails(declive_solve_columns(s.0, 0, b.as_ptr(), x, 0), DECLIVE_INPUT, "columns = 0");
        fails(declive_solve_columns(s.0, -1, b.as_ptr(), x, 0), DECLIVE_INPUT, "columns = -1");
        fails(declive_solve_columns(s.0, i64::MAX, b.as_ptr(), x, 0), DECLIVE_INPUT, "more than there can be");
        fails(declive_solve_columns(s.0, 1, b.as_ptr(), x, 2), DECLIVE_INPUT, "is no flag");
    }
    fails(s.solve(&[1.0, f64::NAN, 1.0, 1.0], &mut x), DECLIVE_INPUT, "b: entry 2 is NaN");
    fails(
        unsafe { declive_get_outcome(s.0, 0, null_mut(), 8) },
        DECLIVE_INPUT,
        "the last solve had 0 right-hand sides",
    );
    s.ok(s.solve(&b, &mut x));
    fails(unsafe { declive_get_outcome(s.0, 1, null_mut(), 8) }, DECLIVE_INPUT, "column = 1");
    fails(unsafe { declive_get_outcome(s.0, 0, null_mut(), 8) }, DECLIVE_INPUT, "outcome is a null pointer");
    fails(unsafe { declive_history(s.0, 0, null_mut(), null_mut()) }, DECLIVE_INPUT, "history is a null pointer");
    fails(
        unsafe { declive_update_values(s.0, 9, b.as_ptr()) },
        DECLIVE_INPUT,
        "nnz = 9, but the matrix has 10 entries",
    );
    fails(unsafe { declive_update_values(s.0, 10, null()) }, DECLIVE_INPUT, "values is a null pointer");
    fails(unsafe { declive_set_coordinates(s.0, 1, 4, b.as_ptr()) }, DECLIVE_INPUT, "dim = 1");
    fails(unsafe { declive_set_near_null(s.0, 4, -1, b.as_ptr()) }, DECLIVE_INPUT, "count = -1");
    // a choice that is met when the solver is made anew
    s.set("devices", "99");
    fails(s.solve(&b, &mut x), DECLIVE_MACHINE, "devices = 99");
    s.set("devices", "host");
    s.ok(s.solve(&b, &mut x));
}

#[test]
fn facts_of_a_solve() {
    let n = 300;
    let arrays = tridiagonal(n, 2.01, 0);
    let s = Own::of(n, DECLIVE_BORROW, &arrays);
    s.set("method", "cg");
    assert!(unsafe { declive_method(s.0) }.is_null());
    s.ok(unsafe { declive_setup(s.0) });
    assert_eq!(text(unsafe { declive_method(s.0) }).unwrap(), "cg");
    assert_eq!(text(unsafe { declive_precond(s.0) }).unwrap(), "jacobi");
    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
    s.ok(s.solve(&b, &mut x));
    let outcome = s.outcome(0);
    let true_residual = residual(&arrays, &b, &x);
    assert!((outcome.reason, outcome.converged) == (DECLIVE_REASON_CONVERGED, 1) && outcome.iterations > 10);
    assert!((outcome.relative_residual / true_residual - 1.0).abs() < 1e-3 && true_residual <= 1e-8);
    assert!(outcome.backward_error < 1e-8 && outcome.optimality.is_nan() && outcome.solve_seconds > 0.0);
    assert!(outcome.history_length > outcome.iterations);
    let (mut history, mut length) = (null(), 0);
    s.ok(unsafe { declive_history(s.0, 0, &mut history, &mut length) });
    let history = unsafe { std::slice::from_raw_parts(history, usize::try_from(length).unwrap()) };
    assert!(length == outcome.history_length && (history[0] - 1.0).abs() < 1e-6 && history[history.len() - 1] <= 1e-8);
    assert!(text(unsafe { declive_reason_text(s.0, 0) }).unwrap().starts_with("Converged: "));

    // a caller of an earlier version, with fewer fields
    let mut first = [0u8; 24];
    s.ok(unsafe { declive_get_outcome(s.0, 0, first.as_mut_ptr().cast(), 16) });
    assert_eq!(first[8..16], outcome.iterations.to_ne_bytes());
    assert_eq!(first[16..], [0; 8]);

    let report: serde_json::Value = serde_json::from_str(&text(unsafe { declive_report(s.0) }).unwrap()).unwrap();
    assert_eq!(report["solves"][0]["iterations"], outcome.iterations);
    assert_eq!(report["solves"][0]["rel_residual_2"], outcome.relative_residual);
    assert_eq!((&report["matrix"]["rows"], &report["ranks"][0]["kind"]), (&n.into(), &"host".into()));
    assert_eq!((&report["options"]["setup"]["devices"], &report["method"]), (&"host".into(), &"cg".into()));
}

/// By OpenCL, if there is a device: closing it leaves solvers that use it as they are, and the next opens it again.
#[test]
fn devices_that_nobody_uses_are_closed() {
    let arrays = tridiagonal(300, 2.5, 0);
    let b = vec![1.0; 300];
    for _ in 0..3 {
        let own = Own::of(300, 0, &arrays);
        own.set("devices", "auto");
        own.set("method", "cg");
        for _ in 0..2 {
            let mut x = vec![0.0; 300];
            own.ok(own.solve(&b, &mut x));
            assert!(residual(&arrays, &b, &x) <= 1e-8);
            assert_eq!(declive_close_idle(), DECLIVE_OK);
        }
    }
}

#[test]
fn what_does_not_converge_says_why() {
    let n = 2000;
    let arrays = tridiagonal(n, 2.0, 0);
    let s = Own::of(n, DECLIVE_BORROW, &arrays);
    s.set("method", "cg");
    s.set("max_iters", "5");
    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
    fails(s.solve(&b, &mut x), DECLIVE_NOT_CONVERGED, "MaxIters: the limit on iterations");
    let outcome = s.outcome(0);
    assert_eq!((outcome.reason, outcome.converged, outcome.iterations), (DECLIVE_REASON_MAX_ITERS, 0, 5));
    assert!(x.iter().any(|x| *x != 0.0), "the best approximation reached");
    // of several right-hand sides, b = 0 is solved
    let b: Vec<f64> = (0..2 * n).map(|k| f64::from(u8::from(k >= n))).collect();
    let mut x = vec![0.0; 2 * n];
    let code = unsafe { declive_solve_columns(s.0, 2, b.as_ptr(), x.as_mut_ptr(), 0) };
    fails(code, DECLIVE_NOT_CONVERGED, "right-hand side 1: MaxIters");
    assert_eq!([0, 1].map(|k| s.outcome(k).reason), [DECLIVE_REASON_CONVERGED, DECLIVE_REASON_MAX_ITERS]);
}

#[test]
fn a_first_guess_and_other_values() {
    let n = 400;
    for set_up_first in [false, true] {
        let mut arrays = tridiagonal(n, 2.2, 0);
        let s = Own::of(n, 0, &arrays);
        s.set("method", "cg");
        let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
        if set_up_first {
            s.ok(s.solve(&b, &mut x));
            assert!(residual(&arrays, &b, &x) <= 1e-8);
        }
        arrays.2.iter_mut().for_each(|value| *value *= 2.0);
        s.ok(unsafe { declive_update_values(s.0, arrays.2.len() as i64, arrays.2.as_ptr()) });
        s.ok(s.solve(&b, &mut x));
        assert!(residual(&arrays, &b, &x) <= 1e-8);
        s.ok(unsafe { declive_solve_columns(s.0, 1, b.as_ptr(), x.as_mut_ptr(), DECLIVE_GUESS) });
        assert_eq!(s.outcome(0).iterations, 0);
        // options of the set-up make another solver, of the values that there are now
        s.set("method", "minres");
        s.ok(s.solve(&b, &mut x));
        assert!(residual(&arrays, &b, &x) <= 1e-8);
        assert_eq!(text(unsafe { declive_method(s.0) }).unwrap(), "minres");
        arrays.2[0] = f64::NAN;
        fails(
            unsafe { declive_update_values(s.0, arrays.2.len() as i64, arrays.2.as_ptr()) },
            DECLIVE_INPUT,
            "the values: entry 1 is NaN",
        );
        s.ok(s.solve(&b, &mut x));
    }
}

#[test]
fn complex_systems() {
    let n = 200;
    let (row_ptr, col_idx, real) = tridiagonal(n, 2.5, 0);
    let values: Vec<f64> = real.iter().flat_map(|&v| [v, if v > 0.0 { 0.5 } else { 0.0 }]).collect();
    let arrays = (row_ptr, col_idx, values);
    for flags in [DECLIVE_COMPLEX, DECLIVE_COMPLEX | DECLIVE_BORROW] {
        let s = Own::of(n, flags, &arrays);
        assert_eq!(unsafe { (declive_is_complex(s.0), declive_nnz(s.0)) }, (1, arrays.1.len() as i64));
        let b: Vec<f64> = (0..2 * n).map(|k| (k % 5) as f64 - 1.5).collect();
        let mut x = vec![0.0; 2 * n];
        let check = |x: &[f64], scale: f64| {
            let mut r2 = 0.0;
            for i in 0..n {
                let mut r = [b[2 * i], b[2 * i + 1]];
                for k in arrays.0[i] as usize..arrays.0[i + 1] as usize {
                    let (j, v) = (arrays.1[k] as usize, [scale * arrays.2[2 * k], scale * arrays.2[2 * k + 1]]);
                    r[0] -= v[0] * x[2 * j] - v[1] * x[2 * j + 1];
                    r[1] -= v[0] * x[2 * j + 1] + v[1] * x[2 * j];
                }
                r2 += r[0] * r[0] + r[1] * r[1];
            }
            r2.sqrt() / b.iter().map(|b| b * b).sum::<f64>().sqrt()
        };
        s.ok(s.solve(&b, &mut x));
        assert!(check(&x, 1.0) <= 1e-8);
        let doubled: Vec<f64> = arrays.2.iter().map(|v| 2.0 * v).collect();
        s.ok(unsafe { declive_update_values(s.0, arrays.1.len() as i64, doubled.as_ptr()) });
        s.ok(s.solve(&b, &mut x));
        assert!(check(&x, 2.0) <= 1e-8);
        s.ok(unsafe { declive_set_preconditioner(s.0, Some(identity), null_mut()) });
        fails(s.solve(&b, &mut x), DECLIVE_INPUT, "for real matrices");
        s.ok(unsafe { declive_set_preconditioner(s.0, None, null_mut()) });
        s.ok(unsafe { declive_set_near_null(s.0, n as i64, 1, b.as_ptr()) });
        fails(s.solve(&b, &mut x), DECLIVE_INPUT, "for real matrices");
    }
}

unsafe extern "C" fn identity(user: *mut c_void, n: i64, r: *const f64, z: *mut f64) {
    unsafe { std::ptr::copy_nonoverlapping(r, z, n as usize) };
    if let Some(calls) = unsafe { user.cast::<AtomicI64>().as_ref() } {
        calls.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_preconditioner_of_the_caller() {
    let n = 100;
    let arrays = tridiagonal(n, 2.5, 0);
    let s = Own::of(n, DECLIVE_BORROW, &arrays);
    s.set("method", "cg");
    let calls = AtomicI64::new(0);
    s.ok(unsafe { declive_set_preconditioner(s.0, Some(identity), (&raw const calls).cast_mut().cast()) });
    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
    s.ok(s.solve(&b, &mut x));
    assert!(residual(&arrays, &b, &x) <= 1e-8);
    assert!(calls.load(Ordering::Relaxed) >= s.outcome(0).iterations);
    s.set("method", "bicgstab");
    fails(s.solve(&b, &mut x), DECLIVE_INPUT, "can't have a preconditioner of the caller's own");
}

#[test]
fn multigrid_with_what_it_has_to_know() {
    let side = 20;
    let a = declive::matrix::gallery::elasticity3d([side, 4, 4]).unwrap();
    let coordinates = declive::matrix::gallery::elasticity3d_coordinates([side, 4, 4]).unwrap();
    let (n, nodes) = (a.n_rows(), coordinates.len());
    let row_ptr: Vec<i64> = a.row_ptr().iter().map(|&p| p as i64).collect();
    let col_idx: Vec<i32> = a.col_idx().iter().map(|&j| j as i32).collect();
    let arrays = (row_ptr, col_idx, a.values().to_vec());
    let s = Own::of(n, DECLIVE_BORROW, &arrays);
    s.set("method", "cg");
    s.set("precond", "amg");
    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
    s.ok(s.solve(&b, &mut x));
    let plain = s.outcome(0).iterations;
    let by_node = coordinates.concat();
    s.ok(unsafe { declive_set_coordinates(s.0, 3, nodes as i64, by_node.as_ptr()) });
    s.ok(s.solve(&b, &mut x));
    assert!(residual(&arrays, &b, &x) <= 1e-8);
    assert!(s.outcome(0).iterations < plain, "{} instead of {plain}", s.outcome(0).iterations);
    s.ok(unsafe { declive_set_coordinates(s.0, 3, nodes as i64 - 1, by_node.as_ptr()) });
    fails(s.solve(&b, &mut x), DECLIVE_INPUT, "no whole number of unknowns");
    s.ok(unsafe { declive_set_near_null(s.0, n as i64, 1, b.as_ptr()) });
    s.set("block_size", "3");
    s.ok(s.solve(&b, &mut x));
    assert!(residual(&arrays, &b, &x) <= 1e-8);
    s.ok(unsafe { declive_set_near_null(s.0, 3, 1, b.as_ptr()) });
    assert_eq!(s.solve(&b, &mut x), DECLIVE_INPUT, "{}", last_error());
}

#[test]
fn files() {
    let s = Own::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
    fails(unsafe { declive_read(s.0, path("none.mtx").as_ptr()) }, DECLIVE_INPUT, "none.mtx: No such file");
    std::fs::write(folder.path().join("bad.mtx"), "%%MatrixMarket matrix\n").unwrap();
    fails(unsafe { declive_read(s.0, path("bad.mtx").as_ptr()) }, DECLIVE_INPUT, "bad.mtx");
    fails(unsafe { declive_read(s.0, null()) }, DECLIVE_INPUT, "path is a null pointer");
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2\n2 1 -1\n2 2 2\n";
    std::fs::write(folder.path().join("a.mtx"), text).unwrap();
    let a = declive::Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, -1.0, -1.0, 2.0]).unwrap();
    declive::npz::write(std::fs::File::create(folder.path().join("a.npz")).unwrap(), &a).unwrap();
    for name in ["a.mtx", "a.npz"] {
        s.ok(unsafe { declive_read(s.0, path(name).as_ptr()) });
        let mut x = [0.0; 2];
        s.ok(s.solve(&[1.0, 1.0], &mut x));
        assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-7), "{name}: {x:?}");
    }
}

/// What a watched solve tells, and what it is told.
struct Watched {
    solver: *mut Solver,
    codes: Mutex<Vec<(c_int, String)>>,
    goes_on: c_int,
    seen: Barrier,
}

unsafe extern "C" fn watch(user: *mut c_void, iterations: i64, residual: f64, target: f64, seconds: f64) -> c_int {
    assert!(iterations >= 0 && residual >= 0.0 && target >= 0.0 && seconds >= 0.0);
    let watched = unsafe { &*user.cast::<Watched>() };
    let mut codes = watched.codes.lock().unwrap();
    if codes.is_empty() {
        // another call of the same solver has to wait for its turn
        let set = unsafe { declive_set(watched.solver, c"rtol".as_ptr(), c"1".as_ptr()) };
        let destroyed = unsafe { declive_destroy(watched.solver) };
        codes.extend([set, destroyed].map(|code| (code, last_error())));
        watched.seen.wait();
    }
    watched.goes_on
}

/// A solve that would not end for hours.
fn endless(arrays: &Arrays, n: usize) -> Own {
    let s = Own::of(n, DECLIVE_BORROW, arrays);
    for (name, value) in
        [("method", "cg"), ("precond", "none"), ("rtol", "0"), ("atol", "1e-300"), ("max_iters", "1000000000000")]
    {
        s.set(name, value);
    }
    s
}

#[test]
fn solves_are_ended_from_other_threads_and_callbacks() {
    let n = 200_000;
    let arrays = tridiagonal(n, 2.0, 0);
    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);
    for goes_on in [0, 1] {
        let s = endless(&arrays, n);
        let watched = Watched { solver: s.0, codes: Mutex::default(), goes_on, seen: Barrier::new(2) };
        s.ok(unsafe { declive_set_progress(s.0, Some(watch), (&raw const watched).cast_mut().cast()) });
        std::thread::scope(|scope| {
            let own = &s;
            scope.spawn(|| {
                watched.seen.wait();
                if goes_on == 0 {
                    assert_eq!(unsafe { declive_cancel(own.0) }, DECLIVE_OK);
                }
            });
            fails(s.solve(&b, &mut x), DECLIVE_NOT_CONVERGED, "Interrupted");
        });
        assert_eq!(s.outcome(0).reason, DECLIVE_REASON_INTERRUPTED);
        let codes = watched.codes.into_inner().unwrap();
        assert!(
            codes.iter().all(|(code, why)| *code == DECLIVE_INPUT && why.contains("in use by another call")),
            "{codes:?}"
        );
    }
    // before a solve, it ends the next one, and that alone
    let small = tridiagonal(50, 2.5, 0);
    let s = Own::of(50, 0, &small);
    s.set("method", "cg");
    let (b, mut x) = ([1.0; 50], [0.0; 50]);
    assert_eq!(unsafe { declive_cancel(s.0) }, DECLIVE_OK);
    fails(s.solve(&b, &mut x), DECLIVE_NOT_CONVERGED, "Interrupted");
    s.ok(s.solve(&b, &mut x));
    assert!(residual(&small, &b, &x) <= 1e-8);
}

#[test]
fn errors_are_those_of_the_thread() {
    let s = Own::new();
    assert_eq!(s.try_set("nothing", "1"), DECLIVE_INPUT);
    let elsewhere = std::thread::spawn(last_error).join().unwrap();
    assert_eq!(elsewhere, "");
    assert!(last_error().contains("'nothing'"));
    // one that succeeds leaves it
    s.set("rtol", "1e-9");
    assert!(last_error().contains("'nothing'"));
}

#[test]
fn solvers_work_in_threads_of_their_own() {
    let n = 300;
    let arrays = tridiagonal(n, 2.1, 0);
    std::thread::scope(|scope| {
        for k in 1..=4 {
            let arrays = &arrays;
            scope.spawn(move || {
                let s = Own::of(n, DECLIVE_BORROW, arrays);
                let (b, mut x) = (vec![f64::from(k); n], vec![0.0; n]);
                s.ok(s.solve(&b, &mut x));
                assert!(residual(arrays, &b, &x) <= 1e-8);
            });
        }
    });
}
