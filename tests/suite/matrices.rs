//! Published matrices, where there are any: the environment variable `DECLIVE_MATRICES` names a folder of `.mtx` and
//! `.mtx.gz` files. Without it the tests have nothing to do, and say so.
//!
//! `DECLIVE_PYTHON` names a Python interpreter with SciPy, which then reads each file, too.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{relative_residual, setup};
use declive::matrix::{AnyCsr, Scalar};
use declive::matrix_market::{Layout, Matrix, Reader, read_matrix};
use declive::solve::{Method, Precision, Precond};
use declive::{Control, Csr, Error, Reason, Solver, Stop};

/// The files whose name ends in one of these ways.
fn files(ends: &[&str]) -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("DECLIVE_MATRICES") else {
        eprintln!("DECLIVE_MATRICES is not set: no published matrices were tried");
        return None;
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| ends.iter().any(|end| f.to_str().is_some_and(|name| name.ends_with(end))));
    files.sort();
    assert!(!files.is_empty(), "no {} file in {}", ends.join(" or "), folder.display());
    Some(files)
}

#[test]
fn published_matrices_are_solved_or_refused_with_a_reason() {
    let Some(files) = files(&[".mtx"]) else { return };
    crate::common::require_opencl();
    for file in files {
        let a = match read_matrix(&file) {
            Ok(matrix) => matrix.a,
            Err(Error::MatrixMarket(e)) => {
                eprintln!("{e}");
                continue;
            }
            Err(e) => panic!("{}: {e}", file.display()),
        };
        let b = a.mul_vec(&vec![1.0; a.n_cols()]);
        for devices in ["host", "0", "0,0,host"] {
            let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &devices.parse().unwrap());
            let mut solver = match Solver::new(a.clone(), &setup) {
                Ok(solver) => solver,
                Err(e @ (Error::Rectangular { .. } | Error::NotSymmetric { .. })) => {
                    eprintln!("{}: {e}", file.display());
                    break;
                }
                Err(e) => panic!("{}: {e}", file.display()),
            };
            let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
            eprintln!("{}, {devices}: {} ({} iterations)", file.display(), o.reason, o.iterations);
            let residual = relative_residual(&a, &b, &o.x);
            assert!(o.x.iter().all(|v| v.is_finite()));
            match o.reason {
                // the plain residual here is less exact than the solver's own
                Reason::Converged(_) => assert!(o.residual.relative_2 <= 1e-8 && residual <= 1e-7, "{residual:e}"),
                Reason::Stagnation | Reason::MaxIters | Reason::IndefiniteOperator(_) => {
                    assert!(o.residual.relative_2 > 1e-8);
                }
                other => panic!("{}: {other}", file.display()),
            }
        }
    }
}

/// Reads the file named first with SciPy and compares with the arrays in the file named second: rows, columns, entries,
/// whether complex, whether the file is an array, row pointers, columns, values. Stored zeros count; those of an array
/// file do not. Prints `same`, or what differs.
const COMPARE: &str = r"
import sys
import numpy as np
import scipy.io
import scipy.sparse

with open(sys.argv[2], 'rb') as file:
    rows, cols, nnz, is_complex, is_array = map(int, np.fromfile(file, '<u8', 5))
    indptr = np.fromfile(file, '<u8', rows + 1)
    indices = np.fromfile(file, '<u4', nnz)
    values = np.fromfile(file, '<f8', nnz * (1 + is_complex))

theirs = scipy.io.mmread(sys.argv[1])
if scipy.sparse.issparse(theirs) == bool(is_array):
    sys.exit('layout')
if theirs.shape != (rows, cols):
    sys.exit(f'shape {theirs.shape}, not {(rows, cols)}')
if np.iscomplexobj(theirs) != bool(is_complex):
    sys.exit('field')
wide = theirs.astype('<c16' if is_complex else '<f8')
if is_array:
    i, j = np.nonzero(wide)
    v = wide[i, j]
else:
    order = np.lexsort((wide.col, wide.row))
    i, j, v = wide.row[order], wide.col[order], wide.data[order]
    if ((np.diff(i) == 0) & (np.diff(j) == 0)).any():
        sys.exit('duplicates')
ours = np.repeat(np.arange(rows), np.diff(indptr).astype(np.int64))
for what, a, b in [('rows', i, ours), ('columns', j, indices)]:
    if len(a) != len(b) or (a != b).any():
        sys.exit(what)
v = np.ascontiguousarray(v)
if v.tobytes() != values.tobytes():
    k = np.flatnonzero(v.view('<u8') != values.view('<u8'))[0] // (1 + is_complex)
    sys.exit(f'value {v[k]!r} at ({i[k] + 1}, {j[k] + 1}), not {values.view(v.dtype)[k]!r}')
print('same')
";

/// The arrays as `COMPARE` takes them.
fn arrays<T: Scalar>(a: &Csr<T>, complex: bool, layout: Layout) -> Vec<u8> {
    let header = [a.n_rows(), a.n_cols(), a.nnz(), complex.into(), (layout == Layout::Array).into()];
    let mut bytes: Vec<u8> = header.iter().chain(a.row_ptr()).flat_map(|&n| (n as u64).to_le_bytes()).collect();
    bytes.extend(a.col_idx().iter().flat_map(|j| j.to_le_bytes()));
    for v in a.values() {
        bytes.extend(v.re().to_le_bytes());
        if complex {
            bytes.extend(v.im().to_le_bytes());
        }
    }
    bytes
}

/// What SciPy says of a matrix and its file.
fn by_scipy(python: &OsString, file: &Path, matrix: &Matrix<AnyCsr>) -> String {
    let bytes = match &matrix.a {
        AnyCsr::Real(a) => arrays(a, false, matrix.header.layout),
        AnyCsr::Complex(a) => arrays(a, true, matrix.header.layout),
    };
    let mut ours = tempfile::NamedTempFile::new().unwrap();
    ours.write_all(&bytes).unwrap();
    let output = Command::new(python).arg("-c").arg(COMPARE).arg(file).arg(ours.path()).output().unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    String::from_utf8_lossy(&said).trim().to_string()
}

#[test]
fn published_matrices_are_read_as_scipy_reads_them() {
    let Some(files) = files(&[".mtx", ".mtx.gz"]) else { return };
    let python = std::env::var_os("DECLIVE_PYTHON");
    if python.is_none() {
        eprintln!("DECLIVE_PYTHON is not set: files were read, but not compared");
    }
    for file in files {
        let matrix = Reader::new().any_matrix(&file).unwrap_or_else(|e| panic!("{e}"));
        let (rows, cols, entries) = (matrix.a.n_rows(), matrix.a.n_cols(), matrix.a.nnz());
        let name = file.display();
        eprintln!("{name}: {rows} × {cols}, {entries} entries, {} duplicates", matrix.duplicates);
        assert_eq!((rows, cols), (matrix.header.rows, matrix.header.cols));
        if let Some(python) = &python {
            assert_eq!(by_scipy(python, &file, &matrix), "same", "{name}");
        }
    }
}
