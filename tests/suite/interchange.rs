//! Matrices from and to the types of `sprs` and `matrix-market-rs`, and as triplets.

use declive::matrix::interchange::{to_mtx_dense, to_mtx_sparse};
use declive::matrix::{Complex64, Scalar};
use declive::{Csr, Error};
use matrix_market_rs::{MtxData, SymInfo};
use proptest::prelude::*;
use sprs::{CsMat, CsMatI, TriMat, TriMatI};

// ( 4 . -1 )
// ( . 3  . )
// (-1 .  5 )
fn small() -> Csr {
    Csr::new(3, 3, vec![0, 2, 3, 5], vec![0, 2, 1, 0, 2], vec![4.0, -1.0, 3.0, -1.0, 5.0]).unwrap()
}

fn refused<T: Scalar>(a: Result<Csr<T>, Error>, why: &str) {
    match a {
        Err(Error::InvalidCsr(what)) => assert!(what.contains(why), "{what}"),
        other => panic!("{other:?}"),
    }
}

/// Triplets of a matrix in any order, some at the same place.
fn triplets() -> impl Strategy<Value = (usize, usize, Vec<(u32, u32, f64)>)> {
    (0usize..20, 0usize..20).prop_flat_map(|(m, n)| {
        let most = if m * n == 0 { 0 } else { 120 };
        let triplet = (0..m.max(1) as u32, 0..n.max(1) as u32, -1e3..1e3);
        prop::collection::vec(triplet, 0..=most).prop_map(move |t| (m, n, t))
    })
}

fn unzip<T>(triplets: Vec<(u32, u32, T)>) -> (Vec<u32>, Vec<u32>, Vec<T>) {
    let (places, values): (Vec<_>, Vec<_>) = triplets.into_iter().map(|(i, j, v)| ((i, j), v)).unzip();
    let (rows, cols) = places.into_iter().unzip();
    (rows, cols, values)
}

fn matrix() -> impl Strategy<Value = Csr> {
    triplets().prop_map(|(m, n, t)| {
        let (rows, cols, values) = unzip(t);
        Csr::from_triplets(m, n, &rows, &cols, &values).unwrap()
    })
}

fn complex(a: &Csr) -> Csr<Complex64> {
    let (m, n, row_ptr, col_idx, values) = a.clone().into_raw_parts();
    Csr::new(m, n, row_ptr, col_idx, values.into_iter().map(|v| Complex64::new(v, 1.0 - v)).collect()).unwrap()
}

fn transposed(a: &Csr) -> Csr {
    let (rows, cols, values) = a.to_triplets();
    Csr::from_triplets(a.n_cols(), a.n_rows(), &cols, &rows, &values).unwrap()
}

fn in_pool<T: Send>(threads: usize, f: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

// ---------------------------------------------------------------------------------------- triplets

#[test]
fn triplets_by_rows() {
    let (rows, cols, values) = small().to_triplets();
    assert_eq!((rows, cols, values), (vec![0, 0, 1, 2, 2], vec![0, 2, 1, 0, 2], vec![4.0, -1.0, 3.0, -1.0, 5.0]));
    let empty = Csr::<f64>::new(3, 0, vec![0; 4], vec![], vec![]).unwrap();
    assert_eq!(empty.to_triplets(), (vec![], vec![], vec![]));
    assert_eq!(Csr::<f64>::from_triplets(3, 0, &[], &[], &[]).unwrap(), empty);
    assert_eq!(Csr::<f64>::from_triplets(0, 0, &[], &[], &[]).unwrap().row_ptr(), [0]);
}

#[test]
fn triplets_that_make_no_matrix() {
    refused(Csr::from_triplets(2, 2, &[0, 2], &[0, 0], &[1.0, 1.0]), "triplet 1 is at (2, 0), outside 2 × 2");
    refused(Csr::from_triplets(2, 2, &[0], &[2], &[1.0]), "triplet 0 is at (0, 2), outside 2 × 2");
    refused(Csr::from_triplets(2, 2, &[0], &[0, 1], &[1.0]), "1 row indices, 2 column indices and 1 values");
    refused(Csr::<f64>::from_triplets(usize::MAX, 1, &[], &[], &[]), "beyond 32-bit indices");
    assert!(matches!(Csr::from_triplets(1, 1, &[0], &[0], &[f64::NAN]), Err(Error::NotFinite { .. })));
    let sum = Csr::from_triplets(1, 1, &[0, 0], &[0, 0], &[f64::MAX, f64::MAX]);
    assert!(matches!(sum, Err(Error::NotFinite { .. })));
}

#[test]
fn sums_take_the_order_given() {
    let (big, one) = (1e16, 1.0);
    let sum = |values: [f64; 3]| Csr::from_triplets(1, 1, &[0; 3], &[0; 3], &values).unwrap().values()[0];
    assert_eq!(sum([big, one, -big]), 0.0);
    assert_eq!(sum([big, -big, one]), 1.0);
}

proptest! {
    #[test]
    fn triplets_are_added_up((m, n, t) in triplets()) {
        let mut dense = vec![vec![None; n]; m];
        for &(i, j, v) in &t {
            let at: &mut Option<f64> = &mut dense[i as usize][j as usize];
            *at = Some(at.map_or(v, |sum| sum + v));
        }
        let (rows, cols, values) = unzip(t);
        for threads in [1, 2, 5] {
            let a = in_pool(threads, || Csr::from_triplets(m, n, &rows, &cols, &values)).unwrap();
            for (i, row) in dense.iter().enumerate() {
                for (j, &value) in row.iter().enumerate() {
                    prop_assert_eq!(a.get(i, j).map(f64::to_bits), value.map(f64::to_bits));
                }
            }
        }
    }

    #[test]
    fn there_and_back(a in matrix()) {
        let z = complex(&a);
        let (rows, cols, values) = z.to_triplets();
        prop_assert_eq!(&Csr::from_triplets(z.n_rows(), z.n_cols(), &rows, &cols, &values).unwrap(), &z);

        prop_assert_eq!(&Csr::try_from(CsMatI::<f64, u32, usize>::from(a.clone())).unwrap(), &a);
        prop_assert_eq!(&Csr::try_from(CsMat::from(a.clone())).unwrap(), &a);
        prop_assert_eq!(&Csr::try_from(CsMat::from(a.clone()).into_csc()).unwrap(), &a);
        prop_assert_eq!(&Csr::try_from(CsMat::from(a.clone()).transpose_into()).unwrap(), &transposed(&a));
        prop_assert_eq!(&Csr::try_from(CsMat::from(a.clone()).to_other_types::<i16, f64, u16>()).unwrap(), &a);
        prop_assert_eq!(&Csr::try_from(CsMat::from(z.clone()).into_csc()).unwrap(), &z);

        prop_assert_eq!(&Csr::try_from(TriMatI::<f64, u32>::from(a.clone())).unwrap(), &a);
        prop_assert_eq!(&Csr::try_from(TriMat::from(a.clone())).unwrap(), &a);
        prop_assert_eq!(&Csr::try_from(TriMat::from(z.clone())).unwrap(), &z);

        prop_assert_eq!(&Csr::try_from(MtxData::from(a.clone())).unwrap(), &a);
        prop_assert_eq!(&Csr::try_from(MtxData::from(z.clone())).unwrap(), &z);
        let dense = Csr::try_from(to_mtx_dense(&z, SymInfo::General).unwrap()).unwrap();
        prop_assert_eq!(dense.nnz(), z.n_rows() * z.n_cols());
        for i in 0..z.n_rows() {
            for j in 0..z.n_cols() {
                prop_assert_eq!(dense.get(i, j), Some(z.get(i, j).unwrap_or_default()));
            }
        }
    }

    #[test]
    fn sprs_agrees((m, n, t) in triplets()) {
        let mut theirs = TriMatI::<f64, i32>::new((m, n));
        t.iter().for_each(|&(i, j, v)| theirs.add_triplet(i as usize, j as usize, v));
        let by_rows: CsMatI<f64, i32> = theirs.to_csr();
        let ours = Csr::try_from(theirs).unwrap();
        let theirs = by_rows;
        prop_assert_eq!((ours.n_rows(), ours.n_cols()), theirs.shape());
        prop_assert_eq!(ours.nnz(), theirs.nnz());
        for (&v, (i, j)) in theirs.iter() {
            // sprs adds in an order of its own
            prop_assert!((ours.get(i as usize, j as usize).unwrap() - v).abs() <= 1e-9);
        }
    }

    #[test]
    fn symmetric_data_there_and_back(a in matrix()) {
        let (mut rows, mut cols, mut values) = a.to_triplets();
        let n = a.n_rows().max(a.n_cols());
        let (r, c, v) = transposed(&a).to_triplets();
        rows.extend(r);
        cols.extend(c);
        values.extend(v);
        let a = Csr::from_triplets(n, n, &rows, &cols, &values).unwrap();
        prop_assert_eq!(&Csr::try_from(to_mtx_sparse(&a, SymInfo::Symmetric).unwrap()).unwrap(), &a);
        let dense = Csr::try_from(to_mtx_dense(&a, SymInfo::Symmetric).unwrap()).unwrap();
        prop_assert_eq!(dense.nnz(), n * n);
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            prop_assert_eq!(dense.get(i, j), Some(a.get(i, j).unwrap_or(0.0)));
        }
    }
}

// ---------------------------------------------------------------------------------------- sprs

#[test]
fn triplets_of_sprs_with_duplicates() {
    let t = TriMatI::<f64, u16>::from_triplets(
        (3, 3),
        vec![2, 0, 1, 2, 0, 0],
        vec![2, 2, 1, 0, 0, 0],
        vec![5.0, -1.0, 3.0, -1.0, 1.0, 3.0],
    );
    assert_eq!(Csr::try_from(t).unwrap(), small());
}

#[test]
fn indices_beyond_32_bits() {
    let wide = |cols, col| CsMat::new((1, cols), vec![0, 1], vec![col], vec![1.0]);
    refused(Csr::try_from(wide(1 << 33, 0)), "beyond 32-bit indices");
    refused(Csr::try_from(wide(1 << 33, 1 << 32)), "index 4294967296 is not within 32 bits");
    let t = TriMat::from_triplets((1, 1 << 33), vec![0], vec![1 << 32], vec![1.0]);
    refused(Csr::try_from(t), "index 4294967296 is not within 32 bits");
    refused(Csr::try_from(TriMat::<f64>::new((1 << 33, 1))), "beyond 32-bit indices");
}

#[test]
fn values_that_are_not_finite() {
    let a = CsMat::new((1, 2), vec![0, 2], vec![0, 1], vec![1.0, f64::INFINITY]);
    assert!(matches!(Csr::try_from(a), Err(Error::NotFinite { index: 2, .. })));
}

// ---------------------------------------------------------------------------------------- matrix-market-rs

#[test]
fn sparse_data() {
    // either triangle, and duplicates
    let places = vec![[0, 0], [2, 0], [0, 2], [1, 1], [2, 2]];
    let general = MtxData::Sparse([3, 3], places, vec![4.0, -1.0, -1.0, 3.0, 5.0], SymInfo::General);
    assert_eq!(Csr::try_from(general).unwrap(), small());
    let places = vec![[0, 0], [2, 0], [1, 1], [2, 2], [2, 0]];
    let lower = MtxData::Sparse([3, 3], places, vec![4.0, -0.5, 3.0, 5.0, -0.5], SymInfo::Symmetric);
    assert_eq!(Csr::try_from(lower).unwrap(), small());
    let upper = MtxData::Sparse([2, 2], vec![[0, 1]], vec![Complex64::I], SymInfo::Symmetric);
    assert_eq!(Csr::try_from(upper).unwrap().to_triplets(), (vec![0, 1], vec![1, 0], vec![Complex64::I; 2]));
}

#[test]
fn dense_data() {
    let general = MtxData::Dense([2, 2], vec![1.0, 2.0, 3.0, 4.0], SymInfo::General);
    assert_eq!(Csr::try_from(general).unwrap().mul_vec(&[1.0, 0.0]), [1.0, 2.0]);
    let lower = MtxData::Dense([3, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], SymInfo::Symmetric);
    let a = Csr::try_from(lower.clone()).unwrap();
    assert_eq!(a.values(), [1.0, 2.0, 3.0, 2.0, 4.0, 5.0, 3.0, 5.0, 6.0]);
    assert_eq!(to_mtx_dense(&a, SymInfo::Symmetric).unwrap(), lower);
}

#[test]
fn data_that_make_no_matrix() {
    let sparse = |shape, places, symmetry| Csr::try_from(MtxData::Sparse(shape, places, vec![1.0; 2], symmetry));
    refused(sparse([2, 2], vec![[0, 0]], SymInfo::General), "1 places, but 2 values");
    refused(sparse([2, 2], vec![[0, 0], [2, 1]], SymInfo::General), "(2, 1), outside 2 × 2");
    refused(sparse([2, 2], vec![[0, 0], [0, usize::MAX]], SymInfo::General), "not within 32 bits");
    refused(sparse([2, 3], vec![[0, 0], [1, 1]], SymInfo::Symmetric), "can't be 2 × 3");
    refused(sparse([2, 2], vec![[1, 0], [0, 1]], SymInfo::Symmetric), "at (0, 1), and another one at (1, 0)");
    assert!(sparse([3, 3], vec![[1, 0], [0, 2]], SymInfo::Symmetric).is_ok());

    let dense = |shape, count, symmetry| Csr::try_from(MtxData::Dense(shape, vec![1.0; count], symmetry));
    refused(dense([2, 3], 5, SymInfo::General), "5 values do not make the array of a 2 × 3 matrix");
    refused(dense([2, 2], 4, SymInfo::Symmetric), "4 values do not make the lower triangle of a 2 × 2 matrix");
    refused(dense([usize::MAX, 2], 2, SymInfo::General), "2 values");
    refused(dense([2, 1], 1, SymInfo::Symmetric), "can't be 2 × 1");
    refused(dense([usize::MAX, 0], 0, SymInfo::General), "beyond 32-bit indices");
    assert_eq!(dense([0, 5], 0, SymInfo::General).unwrap().n_cols(), 5);
}

#[test]
fn matrices_that_are_not_symmetric() {
    let refused = |a: &Csr, why: &str| {
        for data in [to_mtx_sparse(a, SymInfo::Symmetric), to_mtx_dense(a, SymInfo::Symmetric)] {
            assert!(data.unwrap_err().to_string().contains(why));
        }
    };
    refused(&Csr::new(1, 2, vec![0, 0], vec![], vec![]).unwrap(), "can't be 1 × 2");
    refused(&Csr::new(2, 2, vec![0, 1, 1], vec![1], vec![1.0]).unwrap(), "(0, 1) and (1, 0) differ");
    refused(&Csr::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0]).unwrap(), "(0, 1) and (1, 0) differ");
}

#[test]
fn a_dense_matrix_larger_than_any_memory() {
    let a = Csr::<f64>::new(1, Csr::MAX_DIM, vec![0, 0], vec![], vec![]).unwrap();
    let tall = 1 << 16;
    let b = Csr::<f64>::new(tall, Csr::MAX_DIM, vec![0; tall + 1], vec![], vec![]).unwrap();
    assert!(matches!(to_mtx_dense(&b, SymInfo::General), Err(Error::OutOfMemory { bytes, .. }) if bytes > 1 << 50));
    assert_eq!(
        to_mtx_sparse(&a, SymInfo::General).unwrap(),
        MtxData::Sparse([1, Csr::MAX_DIM], vec![], vec![], SymInfo::General)
    );
}
