"""What matrices and vectors may be, what is copied, and what is wrong with others."""

import tracemalloc

import numpy as np
import pytest
from conftest import residual
from scipy.sparse import coo_array, csc_array, csc_matrix, csr_array, csr_matrix

import declive
from declive import _arrays


def small():
    return declive.gallery.poisson2d(9)


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, csc_array, csc_matrix, coo_array])
def test_formats(kind):
    a, b = small(), np.arange(81.0)
    result = declive.solve(kind(a), b)
    assert result.converged and residual(a, b, result.x) <= 1.01e-8


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int64, np.int8])
def test_types_of_numbers(dtype):
    a, b = small().astype(dtype), np.arange(81).astype(dtype)
    result = declive.solve(a, b)
    assert result.converged and residual(small(), b.astype(result.x.dtype), result.x) <= 1.01e-8
    assert result.x.dtype == (np.complex128 if np.dtype(dtype).kind == "c" else np.float64)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_types_of_indices(index):
    a, b = small(), np.arange(81.0)
    a.indptr, a.indices = a.indptr.astype(index), a.indices.astype(index)
    x = declive.solve(a, b).x
    assert residual(small(), b, x) <= 1.01e-8
    of_tuple = declive.solve((a.data, a.indices, a.indptr), b).x
    assert np.array_equal(of_tuple, x)


def test_dense_arrays_and_lists():
    a, b = small(), np.arange(81.0)
    x = declive.solve(a.toarray(), b.tolist()).x
    assert residual(a, b, x) <= 1.01e-8
    assert np.allclose(declive.solve([[2.0, 1.0], [1.0, 3.0]], [1.0, 2.0]).x, [0.2, 0.6])


def test_rows_in_any_order_and_with_duplicates():
    a, b = small(), np.arange(81.0)
    c = a.tocoo()
    order = np.random.default_rng(1).permutation(c.nnz)
    twice = csr_array(coo_array((np.r_[0.5 * c.data, 0.5 * c.data], tuple(np.r_[k[order], k[order]] for k in c.coords)), shape=a.shape))
    mixed = csr_array((np.r_[a.data[order], 0.0], tuple(np.r_[k[order], 0] for k in c.coords)), shape=a.shape)
    backwards = a.copy()
    for i in range(81):
        row = slice(a.indptr[i], a.indptr[i + 1])
        backwards.indices[row], backwards.data[row] = a.indices[row][::-1], a.data[row][::-1]
    backwards = csr_array((backwards.data, backwards.indices, a.indptr), shape=a.shape)
    before = backwards.indices.copy()
    for other in (mixed, backwards):
        assert abs(other - a).max() == 0.0
        assert residual(a, b, declive.solve(other, b).x) <= 1.01e-8
    assert twice.shape == a.shape
    assert np.array_equal(backwards.indices, before), "the caller's stays as it is"


class Foreign:
    """An array of another library, by DLPack alone."""

    def __init__(self, values):
        self._values = values

    def __dlpack__(self, **keywords):
        return self._values.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


def test_dlpack_and_the_buffer_protocol():
    a, b = small(), np.arange(81.0)
    assert np.shares_memory(_arrays.array(Foreign(b)), b)
    x = declive.solve((Foreign(a.data), Foreign(a.indices), Foreign(a.indptr)), Foreign(b)).x
    assert residual(a, b, x) <= 1.01e-8
    assert np.array_equal(declive.solve(a, memoryview(b)).x, x)


def test_arrays_of_scipy_are_used_where_they_are():
    a = declive.gallery.poisson3d(40)
    _, indptr, indices, data = _arrays.rows(a)
    assert np.shares_memory(data, a.data) and np.shares_memory(indices, a.indices) and np.shares_memory(indptr, a.indptr)
    b = np.ones(a.shape[0])
    declive.solve(a, b, devices="host", method="cg", max_iters=1)
    tracemalloc.start()
    result = declive.solve(a, b, devices="host", method="cg", max_iters=20)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.iterations == 20
    assert peak < 2 * b.nbytes, "x, and little else"


def test_a_copy_is_ones_own():
    a, b = small(), np.arange(81.0)
    solver = declive.Solver(a, copy=True, method="cg")
    a.data *= 2.0
    assert residual(small(), b, solver.solve(b).x) <= 1.01e-8


def test_what_is_wrong_with_a_matrix():
    a, b = small(), np.ones(81)
    bad = a.copy()
    bad.data[3] = np.nan
    with pytest.raises(declive.InputError, match="NaN"):
        declive.solve(bad, b)
    for indices in ([0, 5], [0, -1], [1, 0]):
        for index in (np.int32, np.int64):
            with pytest.raises(ValueError, match="not a CSR matrix"):
                declive.solve((np.ones(2), np.array(indices, index), np.array([0, 2, 2], index)), np.ones(2))
    for indptr in ([0, -1, 2], [0, 1, 7], [1, 1, 2]):
        for index in (np.int32, np.int64):
            with pytest.raises(ValueError, match="row_ptr"):
                declive.solve((np.ones(2), np.array([0, 1], index), np.array(indptr, index)), np.ones(2))
    with pytest.raises(declive.InputError, match="integers"):
        declive.solve((np.ones(2), np.array([0.0, 1.0]), np.array([0, 1, 2])), np.ones(2))
    with pytest.raises(declive.InputError, match="numbers are needed"):
        declive.solve(np.array([["a", "b"], ["c", "d"]]), np.ones(2))
    with pytest.raises(declive.InputError, match="two dimensions"):
        declive.solve(np.ones(3), np.ones(3))


def test_what_is_wrong_with_a_vector():
    a = small()
    for b, text in [(np.ones(80), "80 rows"), (np.ones((81, 1, 1)), "3 dimensions"), (np.full(81, np.inf), "not a finite"), (["x"] * 81, "numbers")]:
        with pytest.raises(declive.InputError, match=text):
            declive.solve(a, b)
    with pytest.raises(declive.InputError, match="x0 has the shape"):
        declive.solve(a, np.ones(81), np.ones(80))
    with pytest.raises(declive.InputError, match="no columns"):
        declive.solve(a, np.ones((81, 0)))


def test_what_is_wrong_with_an_option():
    a, b = small(), np.ones(81)
    with pytest.raises(declive.InputError, match=r"unknown option 'preconditioner'.*precond"):
        declive.solve(a, b, preconditioner="amg")
    with pytest.raises(declive.InputError, match=r"there are: .*minres"):
        declive.solve(a, b, method="conjugate")
    with pytest.raises(declive.InputError, match="tolerance"):
        declive.solve(a, b, rtol=-1.0)
    with pytest.raises(declive.InputError, match="is no option of a solve"):
        declive.Solver(a).solve(b, method="cg")
    with pytest.raises(declive.DeviceError, match="no usable device"):
        declive.solve(a, b, devices=[7])
    with pytest.raises(declive.InputError, match="not symmetric"):
        declive.solve(declive.gallery.convection3d(4), np.ones(64), method="cg")


def test_options_have_a_text():
    listed = declive.options()
    assert {"method", "precond", "devices", "rtol", "max_iters"} <= set(listed)
    a, b = small(), np.ones(81)
    result = declive.solve(a, b, method="cg", devices=["host", "host"], shares=[1, 2], assume_symmetric=True, max_iters=np.int64(500), rtol=np.float32(0.001))
    report = result.report()
    assert report["setup"]["devices"] == "host,host" and report["setup"]["shares"] == "1:2" and report["setup"]["assume_symmetric"] is True
    assert len(report["ranks"]) == 2 and report["stop"]["max_iters"] == 500
