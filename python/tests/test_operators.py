"""Operators, and preconditioners of one's own and of the library."""

import numpy as np
import pytest
import scipy.sparse.linalg as linalg
from conftest import residual
from scipy.sparse import csr_array, diags_array

import declive


def test_an_operator(rng):
    a = declive.gallery.poisson2d(15)
    b = rng.standard_normal(225)
    calls = []

    def product(x):
        calls.append(len(x))
        return a @ x

    operator = linalg.LinearOperator(a.shape, matvec=product, dtype=float)
    for options in [{}, {"diagonal": a.diagonal()}, {"method": "gmres", "assume_symmetric": True}]:
        result = declive.solve(operator, b, **options)
        assert result.converged and residual(a, b, result.x) <= 1.01e-8
        assert np.isnan(result.backward_error)
    assert set(calls) == {225}
    with pytest.raises(declive.InputError, match="devices"):
        declive.solve(operator, b, devices="0")
    with pytest.raises(declive.InputError, match="no values"):
        declive.Solver(operator).update_values(np.ones(5))


def test_a_complex_operator(rng):
    a = declive.gallery.gauge2d(8)
    b = rng.standard_normal(64) + 1j * rng.standard_normal(64)
    result = declive.solve(linalg.aslinearoperator(a), b)
    assert result.converged and residual(a, b, result.x) <= 1.01e-8
    result = declive.solve(linalg.aslinearoperator(a), b, diagonal=a.diagonal(), method="cg")
    assert result.converged and residual(a, b, result.x) <= 1.01e-8


def test_what_an_operator_raises_comes_through(rng):
    b = rng.standard_normal(10)

    def fails(x):
        raise ZeroDivisionError("by design")

    with pytest.raises(ZeroDivisionError, match="by design"):
        declive.solve(linalg.LinearOperator((10, 10), matvec=fails, dtype=float), b)
    calls = []

    def fails_later(x):
        calls.append(1)
        if len(calls) > 5:
            raise ZeroDivisionError("later")
        return np.arange(1.0, 11.0) * x

    with pytest.raises(ZeroDivisionError, match="later"):
        declive.solve(linalg.LinearOperator((10, 10), matvec=fails_later, dtype=float), b)
    with pytest.raises(declive.InputError, match="square"):
        declive.solve(linalg.LinearOperator((10, 9), matvec=fails, dtype=float), b)
    short = linalg.LinearOperator((10, 10), matvec=lambda x: x, dtype=float)
    short.matvec = lambda x: x[:-1]
    with pytest.raises(ValueError, match="9 elements in place of 10"):
        declive.solve(short, b)


def test_a_preconditioner_of_ones_own(devices, rng):
    a = declive.gallery.jumps(8)
    b = rng.standard_normal(512)
    inverse = 1.0 / a.diagonal()
    operator = linalg.LinearOperator(a.shape, matvec=lambda r: inverse * r, dtype=float)
    of_library = declive.Preconditioner(a, "jacobi")
    plain = declive.solve(a, b, method="cg", precond="none", devices=devices)
    found = [declive.solve(a, b, method="cg", M=m, devices=devices) for m in (operator, diags_array(inverse), csr_array(diags_array(inverse)), of_library)]
    for result in found:
        assert result.converged and residual(a, b, result.x) <= 1.01e-8
        assert abs(result.iterations - found[0].iterations) <= 1 and result.iterations < plain.iterations / 2
    with pytest.raises(declive.InputError, match="cg, gmres or auto"):
        declive.solve(a, b, method="minres", M=operator, devices=devices)


def test_a_complex_preconditioner(rng):
    a = declive.gallery.gauge2d(10, shift=0.01)
    n = a.shape[0]
    b = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    inverse = np.linalg.inv(a.toarray())
    for m in (linalg.aslinearoperator(inverse), csr_array(inverse)):
        result = declive.solve(a, b, method="cg", M=m)
        assert result.converged and result.iterations <= 3 and residual(a, b, result.x) <= 1.01e-8


@pytest.mark.parametrize("name", ["none", "jacobi", "amg", "block-jacobi", "fsai", "ilu0", "chebyshev"])
def test_preconditioners_of_the_library_for_scipy(name, rng):
    a = declive.gallery.jumps(10, contrast=100.0)
    b = rng.standard_normal(1000)
    m = declive.Preconditioner(a, name)
    assert m.shape == a.shape and m.dtype == np.float64
    u, v = rng.standard_normal((2, 1000))
    both = 2.0 * (m @ u) + m @ v
    assert np.allclose(m @ (2.0 * u + v), both, atol=1e-5 * np.abs(both).max()), "multigrid is in single precision"
    assert np.allclose((m @ np.stack([u, v], axis=1))[:, 1], m @ v)
    if name != "ilu0":
        assert abs(u @ (m @ v) - v @ (m @ u)) <= 1e-6 * abs(u @ (m @ u))
        x, info = linalg.cg(a, b, M=m, rtol=1e-8, maxiter=2000)
    else:
        x, info = linalg.gmres(a, b, M=m, rtol=1e-8, maxiter=100)
    assert info == 0 and residual(a, b, x) <= 1e-7


def test_multigrid_takes_fewer_iterations_in_scipy():
    a = declive.gallery.jumps(16)
    b = np.ones(a.shape[0])
    counts = []
    for m in (None, declive.Preconditioner(a, "amg")):
        count = []
        _, info = linalg.cg(a, b, M=m, rtol=1e-8, callback=count.append)
        assert info == 0
        counts.append(len(count))
    assert counts[1] < counts[0] / 10


def test_multigrid_for_convection_in_scipy():
    a = declive.gallery.convection3d(14, peclet=100.0)
    b = np.ones(a.shape[0])
    counts = []
    for m in (None, declive.Preconditioner(a, "amg")):
        count = []
        x, info = linalg.gmres(a, b, M=m, rtol=1e-8, restart=30, callback=count.append, callback_type="pr_norm")
        assert info == 0 and residual(a, b, x) <= 1e-7
        counts.append(len(count))
    assert counts[1] < 30 and 4 * counts[1] < counts[0]


def test_what_is_no_preconditioner():
    a = declive.gallery.convection3d(5)
    with pytest.raises(declive.InputError, match="none in row 2"):
        declive.Preconditioner(csr_array([[1.0, 2.0], [1.0, -1.0]]), "amg")
    with pytest.raises(declive.InputError, match="ilu0"):
        declive.Preconditioner(a, "transversal")
    m = declive.Preconditioner(a, "ilu0")
    with pytest.raises(declive.InputError, match="shape"):
        m.matvec(np.ones(5))


def test_products():
    rng = np.random.default_rng(1)
    for a in (declive.gallery.fit2d(6), declive.gallery.helmholtz3d_absorbing(5)):
        operator = declive.aslinearoperator(a)
        x = rng.standard_normal(a.shape[1]) + 1j * rng.standard_normal(a.shape[1])
        y = rng.standard_normal(a.shape[0])
        assert np.allclose(operator @ x, a @ x) and np.allclose(operator.H @ y, a.conj().T @ y)
        assert np.allclose(operator @ np.stack([x, 2 * x], axis=1), a @ np.stack([x, 2 * x], axis=1))
