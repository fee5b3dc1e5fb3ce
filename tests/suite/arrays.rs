//! Matrices from arrays that a program has already: owned, shared or borrowed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{choices, relative_residual, setup, solve_with, system};
use declive::matrix::{Complex64, gallery};
use declive::solve::{Method, Precision, Precond, Reorder};
use declive::{Csr, Error, Solver};
use sprs::CsMatViewI;

/// A matrix of another program, which counts how many of them there are.
struct Foreign {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    entries: Vec<f64>,
    alive: Arc<AtomicUsize>,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

fn foreign(a: &Csr) -> Foreign {
    let (_, _, offsets, columns, entries) = a.clone().into_raw_parts();
    Foreign { offsets, columns, entries, alive: Arc::new(AtomicUsize::new(1)) }
}

fn arrays(k: &Foreign) -> (&[usize], &[u32], &[f64]) {
    (&k.offsets, &k.columns, &k.entries)
}

#[test]
fn shared_arrays_stay_where_they_are() {
    let a = system("jumps:9,contrast=100,seed=3");
    let n = a.n_rows();
    let owner = Arc::new(foreign(&a));
    let alive = Arc::clone(&owner.alive);
    let shared = Csr::from_owner(n, n, &owner, arrays).unwrap();
    assert_eq!(shared, a);
    assert_eq!(shared.row_ptr().as_ptr(), owner.offsets.as_ptr());
    assert_eq!(shared.col_idx().as_ptr(), owner.columns.as_ptr());
    assert_eq!(shared.values().as_ptr(), owner.entries.as_ptr());
    let copy = shared.clone();
    assert_eq!(copy.values().as_ptr(), owner.entries.as_ptr(), "a clone shares them, too");
    drop((owner, shared));
    assert_eq!((alive.load(Ordering::Relaxed), &copy), (1, &a), "they live as long as a matrix needs them");
    drop(copy);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn shared_arrays_are_solved_with() {
    let a = system("jumps:9,contrast=100,seed=3");
    let n = a.n_rows();
    let b = gallery::random_vector(n, 4);
    for devices in choices() {
        for reorder in [Reorder::None, Reorder::Rcm] {
            let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &devices).with_reorder(reorder);
            let shared = Csr::from_owner(n, n, &Arc::new(foreign(&a)), arrays).unwrap();
            let o = solve_with(&mut Solver::new(shared, &setup).unwrap(), &b, 1e-9);
            assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-9, "{setup:?}: {}", o.reason);
            let usual = solve_with(&mut Solver::new(a.clone(), &setup).unwrap(), &b, 1e-9);
            assert_eq!((o.x, o.iterations), (usual.x, usual.iterations), "{setup:?}");
        }
    }
}

#[test]
fn indices_of_any_type() {
    let a = system("poisson2d:13x9");
    let n = a.n_rows();
    let signed: Vec<i32> = a.row_ptr().iter().map(|&p| p as i32).collect();
    let wide: Vec<i64> = a.col_idx().iter().map(|&j| j.into()).collect();
    let narrow: Vec<u8> = a.col_idx().iter().map(|&j| j as u8).collect();
    let single: Vec<u32> = a.row_ptr().iter().map(|&p| p as u32).collect();
    assert_eq!(Csr::from_slices(n, n, a.row_ptr(), a.col_idx(), a.values()).unwrap(), a);
    assert_eq!(Csr::from_slices(n, n, &signed, &wide, a.values()).unwrap(), a);
    assert_eq!(Csr::from_slices(n, n, &single, &narrow, a.values()).unwrap(), a);
    let i = Complex64::I;
    let complex = Csr::from_slices(1, 2, &[0u16, 2], &[0usize, 1], &[i, -i]).unwrap();
    assert_eq!(complex.values(), [i, -i]);
    let empty = Csr::from_slices(0, 0, &[0u32], &[] as &[u32], &[] as &[f64]).unwrap();
    assert_eq!((empty.n_rows(), empty.nnz()), (0, 0));
}

#[test]
fn what_is_no_matrix_is_refused_by_its_row() {
    let error = |row_ptr: &[i64], columns: &[i64], values: &[f64]| {
        Csr::from_slices(3, 3, row_ptr, columns, values).unwrap_err().to_string()
    };
    let values = [1.0, 2.0, 3.0];
    for (row_ptr, columns, words) in [
        ([0, 1, -2, 3], [0, 1, 2], "row_ptr of row 3 is -2"),
        ([0, 1, 2, 3], [0, -1, 2], "row 2 has column -1"),
        ([0, 0, 2, 3], [0, 1, 1 << 32], "row 3 has column 4294967296"),
        ([0, 2, 2, 3], [0, 3, 2], "the columns of row 1 do not rise strictly, or one is not below 3"),
        ([0, 1, 3, 3], [0, 2, 1], "the columns of row 2 do not rise strictly"),
        ([0, 2, 1, 3], [0, 1, 2], "row_ptr falls after row 2"),
        ([0, 1, 2, 4], [0, 1, 2], "row_ptr runs from 0 to 4, but there are 3 values"),
    ] {
        let found = error(&row_ptr, &columns, &values);
        assert!(found.contains(words), "{found}, not {words}");
    }
    assert!(error(&[0, 3], &[0, 1, 2], &values).contains("row_ptr has 2 elements, but 3 rows need 4"));
    assert!(error(&[0, 1, 2, 3], &[0, 1], &values).contains("2 column indices, but 3 values"));
    assert!(error(&[0, 1, 1, 3], &[0, 1, 2], &[1.0, f64::NAN, 1.0]).contains("in row 3: entry 2 is NaN"));

    // where they are shared, too
    let mut unsorted = foreign(&system("tridiagonal:7"));
    unsorted.columns.swap(2, 3);
    let refused = Csr::from_owner(7, 7, &Arc::new(unsorted), arrays);
    assert!(matches!(&refused, Err(Error::InvalidCsr(what)) if what.contains("row 2 ")), "{refused:?}");
}

#[test]
fn views_of_sprs() {
    let a = system("random-spd:300,seed=7");
    let view = CsMatViewI::<f64, u32, usize>::from(&a);
    assert_eq!(view.data().as_ptr(), a.values().as_ptr());
    assert_eq!(Csr::try_from(view).unwrap(), a);
    let by_columns = view.to_other_storage();
    assert!(by_columns.is_csc());
    assert_eq!(Csr::try_from(by_columns.view()).unwrap(), a);
}
