"""Solving, by the package's own interface."""

from datetime import timedelta

import numpy as np
import pytest
from conftest import DATA, residual, system
from scipy.io import mmread
from scipy.sparse import csr_array

import declive


@pytest.mark.parametrize("name", ["poisson2d.mtx", "jumps.mtx", "elasticity3d.mtx", "graph-laplacian.mtx", "random-spd.mtx"])
def test_systems_of_the_repository(name, devices, rng):
    a = system(name)
    b = rng.standard_normal(a.shape[0])
    for options in [{}, {"method": "cg"}, {"method": "cg", "precond": "amg"}, {"method": "minres"}, {"method": "direct"}]:
        chosen = {} if options.get("method") == "direct" else {"devices": devices}
        result = declive.solve(a, b, rtol=1e-9, **options, **chosen)
        assert result.converged, (options, result)
        assert residual(a, b, result.x) <= 1.01e-9, options
        assert result.residual <= 1e-9
        assert abs(result.residual - residual(a, b, result.x)) <= 1e-12


def test_the_right_hand_side_of_the_repository():
    a, b = system("jumps.mtx"), np.asarray(mmread(DATA / "jumps-b.mtx"))
    result = declive.solve(a, b)
    assert result.converged and result.x.shape == b.shape == (720, 2)
    assert all(residual(a, b[:, k], result.x[:, k]) <= 1.01e-8 for k in range(2))


def test_unsymmetric_and_indefinite(devices, rng):
    for a in [declive.gallery.convection3d(8), declive.gallery.helmholtz3d(8), declive.gallery.stokes2d(8)]:
        b = rng.standard_normal(a.shape[0])
        result = declive.solve(a, b, devices=devices)
        assert result.converged, result
        assert residual(a, b, result.x) <= 1.01e-8


def test_complex(devices, rng):
    for a in [declive.gallery.gauge2d(12), declive.gallery.helmholtz3d_absorbing(6)]:
        n = a.shape[0]
        b = rng.standard_normal(n) + 1j * rng.standard_normal(n)
        x0 = rng.standard_normal(n) * 1j
        for first in (None, x0):
            result = declive.solve(a, b, first, devices=devices)
            assert result.converged and result.x.dtype == np.complex128
            assert residual(a, b, result.x) <= 1.01e-8
        several = np.stack([b, 1j * b, b.conj()], axis=1)
        result = declive.Solver(a, devices=devices).solve(several)
        assert result.converged and result.x.shape == several.shape
        assert all(residual(a, several[:, k], result.x[:, k]) <= 1.01e-8 for k in range(3))


def test_complex_right_hand_side_of_a_real_matrix(rng):
    a = declive.gallery.poisson2d(12)
    b = rng.standard_normal(144) + 1j * rng.standard_normal(144)
    result = declive.solve(a, b)
    assert result.converged
    assert residual(a, b, result.x) <= 1.01e-8
    with pytest.raises(declive.InputError, match="dtype=complex"):
        declive.Solver(a).solve(b)


def test_rectangular(rng):
    a = declive.gallery.fit2d(8)
    b = rng.standard_normal(a.shape[0])
    result = declive.solve(a, b, rtol=1e-10)
    assert result.converged and result.method == "lsmr" and result.x.shape == (a.shape[1],)
    gradient = a.T @ (b - a @ result.x)
    assert np.linalg.norm(gradient) <= 1e-8 * np.linalg.norm(a.T @ b)


def test_many_right_hand_sides(devices, rng):
    a = declive.gallery.jumps(10)
    n = a.shape[0]
    solver = declive.Solver(a, method="cg", devices=devices, rtol=1e-9)
    b = rng.standard_normal((n, 5))
    result = solver.solve(b)
    assert result.x.shape == (n, 5) and result.converged and len(result.columns) == 5
    for k, one in enumerate(result.columns):
        assert residual(a, b[:, k], result.x[:, k]) <= 1.01e-9
        assert np.array_equal(one.x, result.x[:, k]) and one.iterations > 10
        assert len(one.history) == one.iterations + 1
    assert result.iterations == sum(one.iterations for one in result.columns)
    assert result.residual == max(one.residual for one in result.columns)
    # in either order of memory, and one column
    assert np.array_equal(solver.solve(np.asfortranarray(b)).x, result.x)
    assert solver.solve(b[:, :1]).x.shape == (n, 1)
    # from a guess that solves it
    again = solver.solve(b, result.x)
    assert again.converged and again.iterations == 0


def test_other_values_in_the_pattern(devices, rng):
    a = declive.gallery.variable(8)
    b = rng.standard_normal(a.shape[0])
    solver = declive.Solver(a, method="cg", devices=devices)
    first = solver.solve(b)
    for other in [3.0 * a, (3.0 * a).data]:
        solver.update_values(other)
        second = solver.solve(b)
        assert second.converged
        assert residual(3.0 * a, b, second.x) <= 1.01e-8
        assert np.allclose(3.0 * second.x, first.x, rtol=1e-5)
    with pytest.raises(declive.InputError, match="pattern"):
        solver.update_values(declive.gallery.poisson2d(8))
    with pytest.raises(declive.InputError, match="the values"):
        solver.update_values(a.data[:-1])
    with pytest.raises(declive.InputError, match="finite"):
        solver.update_values(np.full(a.nnz, np.nan))
    assert solver.solve(b).converged  # as before


def test_limits_are_no_errors(devices):
    a = declive.gallery.jumps(12)
    b = np.ones(a.shape[0])
    result = declive.solve(a, b, method="cg", max_iters=3, devices=devices)
    assert not result.converged and result.reason == "MaxIters" and result.iterations == 3
    assert "limit on iterations" in result.reason_text and "not converged" in repr(result)
    result = declive.solve(a, b, method="cg", time_limit=timedelta(0), devices=devices)
    assert result.reason == "TimeLimit"
    result = declive.solve(declive.gallery.helmholtz3d(6, wavenumber=1.5), np.ones(216), method="cg", devices=devices)
    assert result.reason == "IndefiniteOperator"


def test_first_guess_and_zero(devices):
    a = declive.gallery.poisson2d(20)
    b = np.ones(400)
    guess = np.linspace(0.0, 1.0, 400)
    kept = guess.copy()
    result = declive.solve(a, b, guess, devices=devices, method="cg")
    assert result.converged and np.array_equal(guess, kept), "the guess stays as it is"
    assert residual(a, b, result.x) <= 1.01e-8
    zero = declive.solve(a, 0.0 * b, guess, devices=devices)
    assert zero.converged and not zero.x.any()


def test_backward_error_and_tolerances():
    a = declive.gallery.poisson2d(20)
    b = np.ones(400)
    result = declive.solve(a, b, method="cg", backward_error=1e-12)
    norm = abs(a).sum(axis=1).max() * np.abs(result.x).max() + 1.0
    assert result.converged and np.abs(b - a @ result.x).max() / norm <= 1.1e-12
    assert result.backward_error <= 1e-12
    result = declive.solve(a, b, method="cg", rtol=0.0, atol=1e-6)
    assert result.converged and np.linalg.norm(b - a @ result.x) <= 1.01e-6


def test_coordinates_and_near_null_vectors():
    a = declive.gallery.tetrahedra(6)
    b = np.ones(a.shape[0])
    plain = declive.solve(a, b, method="cg", precond="amg", block_size=1)
    nodes = declive.gallery.coordinates("tetrahedra:6")
    assert 3 * len(nodes) == a.shape[0]
    rigid = declive.solve(a, b, method="cg", precond="amg", coordinates=nodes)
    constants = declive.solve(a, b, method="cg", precond="amg", near_null=np.tile(np.eye(3), (len(nodes), 1)), block_size=3)
    for result in (plain, rigid, constants):
        assert result.converged and residual(a, b, result.x) <= 1.01e-8
    assert rigid.iterations < constants.iterations < plain.iterations
    with pytest.raises(declive.InputError, match="whole number"):
        declive.solve(a, b, precond="amg", method="cg", coordinates=nodes[:-1])
    with pytest.raises(declive.InputError, match="one of them"):
        declive.solve(a, b, coordinates=nodes, near_null=b)


def test_a_singular_system():
    a = declive.gallery.neumann2d(12)
    rest = np.linspace(-1.0, 1.0, 144)
    result = declive.solve(a, rest)
    assert result.converged and residual(a, rest, result.x) <= 1.01e-8
    result = declive.solve(a, np.ones(144))
    assert result.reason == "Singular" and "sum to 0" in result.reason_text


def test_callbacks_see_each_iterate(devices):
    a = declive.gallery.jumps(8)
    b = np.ones(a.shape[0])
    seen, norms = [], []
    solver = declive.Solver(a, method="cg", devices=devices, rtol=1e-6)
    result = solver.solve(b, callback=seen.append, residual_callback=norms.append)
    assert len(seen) == len(norms) == result.iterations > 10
    assert np.array_equal(seen[-1], result.x)
    assert np.allclose(norms, result.history[1:], rtol=1e-12)
    for x, norm in zip(seen, norms, strict=True):
        assert abs(residual(a, b, x) / norm - 1.0) < 1e-6
    plain = solver.solve(b)
    assert np.array_equal(plain.x, result.x) and np.array_equal(plain.history, result.history)


def test_what_a_callback_raises_ends_the_solve(devices):
    a = declive.gallery.jumps(8)
    b = np.ones(a.shape[0])
    calls = []

    def stop(x):
        calls.append(x)
        if len(calls) == 3:
            raise KeyError("enough")

    solver = declive.Solver(a, method="cg", devices=devices)
    with pytest.raises(KeyError, match="enough"):
        solver.solve(b, callback=stop)
    assert len(calls) == 3
    with pytest.raises(declive.DecliveError, match="make another one"):
        solver.solve(b, callback=lambda x: solver.solve(b))
    assert solver.solve(b).converged, "it goes on"


def test_a_matrix_as_it_is():
    a = csr_array(np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]]))
    b = np.array([1.0, 2.0, 3.0])
    assert np.allclose(declive.solve(a, b).x, np.linalg.solve(a.toarray(), b), rtol=1e-7)


def test_devices_are_closed_and_opened_again(devices, rng):
    a = declive.gallery.poisson2d(20)
    b = rng.standard_normal(a.shape[0])
    kept = declive.Solver(a, method="cg", devices=devices)
    for _ in range(3):
        for result in (declive.solve(a, b, method="cg", devices=devices), kept.solve(b)):
            assert np.linalg.norm(b - a @ result.x) <= 1e-8 * np.linalg.norm(b)
        declive.close_idle()
