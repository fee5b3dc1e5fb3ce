"""The functions with SciPy's signatures, beside SciPy's own: results, codes, callbacks, and what is refused."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse.linalg as linalg
from conftest import residual, system
from scipy.sparse import csr_array, diags_array, eye_array

import declive

SOLVERS = ["cg", "minres", "bicgstab", "gmres"]
DEFINITE = ["poisson2d.mtx", "jumps.mtx", "elasticity3d.mtx", "graph-laplacian.mtx", "random-spd.mtx"]


def both(name):
    return getattr(declive, name), getattr(linalg, name)


def keywords(name):
    """So that SciPy doesn't warn of a default that is to change."""
    return {"callback_type": "x"} if name == "gmres" else {}


@pytest.mark.parametrize("name", SOLVERS)
def test_signatures(name):
    ours, theirs = (inspect.signature(f).parameters for f in both(name))
    named = [p for p in ours.values() if p.kind is not p.VAR_KEYWORD]
    assert [p.name for p in named] == list(theirs)
    assert [(p.kind, p.default) for p in named] == [(p.kind, p.default) for p in theirs.values()]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("file", DEFINITE)
def test_solutions(name, file, rng):
    a = system(file)
    b = rng.standard_normal(a.shape[0])
    for f in both(name):
        x, info = f(a, b, rtol=1e-10, maxiter=5000)
        assert info == 0 and x.shape == b.shape
        # minres of SciPy compares with ‖A‖ ‖x‖, too
        assert residual(a, b, x) <= (1.01e-10 if f is not linalg.minres else 1e-5), f


@pytest.mark.parametrize("name", SOLVERS)
def test_the_usual_tolerance(name):
    a = declive.gallery.poisson2d(20)
    b = np.ones(400)
    x, info = both(name)[0](a, b)
    assert info == 0 and 1e-9 < residual(a, b, x) <= 1.01e-5


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_absolute_tolerance(name):
    a = declive.gallery.poisson2d(20)
    b = 1e3 * np.ones(400)
    for f in both(name):
        for rtol, atol in [(0.0, 1e-2), (1e-12, 1e-1), (1e-3, 1e-9)]:
            x, info = f(a, b, rtol=rtol, atol=atol)
            limit = max(rtol * np.linalg.norm(b), atol)
            assert info == 0 and np.linalg.norm(b - a @ x) <= 1.01 * limit
    for atol in (-1.0, "legacy", None):
        for f in both(name):
            with pytest.raises(ValueError, match="atol"):
                f(a, b, atol=atol)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres", "minres"])
def test_codes_of_limits(name):
    a = declive.gallery.jumps(10)
    b = np.ones(1000)
    for f in both(name):
        extra = {"restart": 4} if name == "gmres" else {}
        x, info = f(a, b, rtol=1e-12, maxiter=3, **extra)
        assert info == 3 and residual(a, b, x) > 1e-3, f


def test_cycles_and_steps():
    a = declive.gallery.convection3d(8)
    b = np.ones(512)
    for f in both("gmres"):
        for kind, expected in [("x", 3), ("pr_norm", 12), ("legacy", 3)]:
            seen = []
            _, info = f(a, b, rtol=1e-12, restart=4, maxiter=3, callback=seen.append, callback_type=kind)
            assert (info, len(seen)) == (3, expected), (f, kind)
            assert all(np.ndim(one) == (1 if kind == "x" else 0) for one in seen)
        with pytest.warns(DeprecationWarning, match="callback_type"):
            f(a, b, callback=lambda _: None)
        with pytest.raises(ValueError, match="callback_type"):
            f(a, b, callback_type="residual", callback=lambda _: None)


def test_steps_of_gmres_fall(devices):
    a = declive.gallery.convection3d(8)
    b = np.ones(512)
    norms = []
    x, info = declive.gmres(a, b, callback=norms.append, callback_type="pr_norm", devices=devices)
    assert info == 0 and np.all(np.diff(norms) <= 1e-12) and norms[-1] <= 1e-5
    assert abs(residual(a, b, x) / norms[-1] - 1.0) < 1e-6


@pytest.mark.parametrize("name", ["cg", "bicgstab", "minres"])
def test_callbacks(name, devices):
    a = declive.gallery.poisson2d(12)
    b = np.arange(144.0)
    ours, theirs = [], []
    x, info = getattr(declive, name)(a, b, rtol=1e-8, M="none", callback=lambda x: ours.append(x.copy()), devices=devices)
    getattr(linalg, name)(a, b, rtol=1e-8, callback=lambda x: theirs.append(x.copy()))
    assert info == 0 and np.array_equal(ours[-1], x)
    assert len(ours) > 10
    if name == "cg":  # the same method step by step
        for mine, other in list(zip(ours, theirs, strict=False))[:10]:
            assert np.allclose(mine, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_zero_right_hand_side(name):
    a = declive.gallery.poisson2d(6)
    for f in both(name):
        x, info = f(a, np.zeros(36))
        assert info == 0 and not x.any()


@pytest.mark.parametrize("name", SOLVERS)
def test_first_guess(name):
    a = declive.gallery.poisson2d(8)
    b = np.arange(64.0)
    exact = np.linalg.solve(a.toarray(), b)
    for f in both(name):
        for guess in (exact, exact[:, None]):
            kept = guess.copy()
            x, info = f(a, b, guess)
            assert info == 0 and np.array_equal(guess, kept) and np.allclose(x, exact)
        calls = []
        x, _ = f(a, b, exact, callback=calls.append, **keywords(name))
        assert not calls or f in (linalg.minres, linalg.bicgstab), "nothing is left to do"


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("dtype", "fdFD")
def test_types(name, dtype):
    a = declive.gallery.poisson2d(8).astype(dtype)
    b = np.arange(64).astype(dtype)
    for f in both(name):
        if f is linalg.minres and dtype in "fFD":
            continue  # which works in double precision
        x, info = f(a, b)
        assert info == 0 and x.dtype.char == dtype, f
    x, _ = both(name)[0](a, np.arange(64))
    assert x.dtype == np.result_type(a.dtype, np.float64)


@pytest.mark.parametrize("name", SOLVERS)
def test_shapes(name):
    a = declive.gallery.poisson2d(6)
    for f in both(name):
        assert f(a, np.ones((36, 1)))[0].shape == (36,)
        for b in (np.ones(35), np.ones((1, 36)), np.ones((36, 2))):
            with pytest.raises(ValueError, match="incompatible"):
                f(a, b)
        with pytest.raises(ValueError, match="incompatible"):
            f(a, np.ones(36), np.ones(35))
        with pytest.raises(ValueError, match="square"):
            f(csr_array(np.ones((3, 2))), np.ones(3))
        with pytest.raises(TypeError):
            f(a, np.ones(36), None, 1e-5)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_preconditioners(name):
    a = declive.gallery.jumps(8)
    b = np.ones(512)
    inverse = 1.0 / a.diagonal()
    operator = linalg.LinearOperator(a.shape, matvec=lambda r: inverse * r, dtype=float)
    for f in both(name):
        for m in (operator, diags_array(inverse), np.diag(inverse)):
            x, info = f(a, b, M=m, rtol=1e-8)
            assert info == 0 and residual(a, b, x) <= 1e-7, f
        with pytest.raises(ValueError, match="different shapes"):
            f(a, b, M=eye_array(511))
        if name != "gmres":
            x, info = f(a, b, "Mb", M=operator)
            assert info == 0 and residual(a, b, x) <= 1.01e-5


def test_a_good_preconditioner_takes_few_iterations():
    a = declive.gallery.convection3d(6)
    b = np.ones(216)
    inverse = linalg.aslinearoperator(np.linalg.inv(a.toarray()))
    for name in ("bicgstab", "gmres"):
        for f in both(name):
            calls = []
            x, info = f(a, b, M=inverse, callback=calls.append, **keywords(name))
            assert info == 0 and len(calls) <= 2 and residual(a, b, x) <= 1e-5
    guess = np.linspace(0.0, 1.0, 216)
    x, info = declive.bicgstab(a, b, guess, M=inverse, rtol=1e-9)
    assert info == 0 and residual(a, b, x) <= 1.01e-9


def test_operators(rng):
    a = declive.gallery.poisson2d(10)
    b = rng.standard_normal(100)
    operator = linalg.aslinearoperator(a)
    for name in SOLVERS:
        for f in both(name):
            x, info = f(operator, b, rtol=1e-8)
            assert info == 0 and residual(a, b, x) <= 1e-5, f
    unsymmetric = declive.gallery.convection3d(5)
    b = np.ones(125)
    for name in ("bicgstab", "gmres"):
        x, info = getattr(declive, name)(linalg.aslinearoperator(unsymmetric), b)
        assert info == 0 and residual(unsymmetric, b, x) <= 1.01e-5


def test_shift():
    a = declive.gallery.poisson2d(10)
    b = np.ones(100)
    for f in both("minres"):
        for one in (a, linalg.aslinearoperator(a)):
            x, info = f(one, b, shift=1.5, rtol=1e-10)
            assert info == 0 and residual(a - 1.5 * eye_array(100), b, x) <= 1e-7


def test_what_differs_on_purpose(capsys):
    unsymmetric, indefinite = declive.gallery.convection3d(4), declive.gallery.helmholtz3d(6, wavenumber=1.5)
    b = np.ones(64)
    # a matrix that is not what the method is for is an error, unless one insists
    for name in ("cg", "minres"):
        with pytest.raises(declive.InputError, match="symmetric"):
            getattr(declive, name)(unsymmetric, b)
        getattr(declive, name)(unsymmetric, b, assume_symmetric=True)
    assert declive.cg(indefinite, np.ones(216))[1] < 0
    # no preconditioner of one's own for minres
    with pytest.raises(declive.InputError, match="gmres"):
        declive.minres(declive.gallery.poisson2d(8), b, M=eye_array(64))
    assert declive.minres(declive.gallery.poisson2d(8), b, M="jacobi", show=True)[1] == 0
    # infinite numbers are refused
    with pytest.raises(declive.InputError, match="finite"):
        declive.cg(declive.gallery.poisson2d(8), np.full(64, np.nan))


def test_names_of_preconditioners_and_options(devices):
    a = declive.gallery.jumps(8)
    b = np.ones(512)
    for name, m in [("cg", "amg"), ("cg", "jacobi"), ("minres", "fsai"), ("bicgstab", "ilu0"), ("gmres", "amg")]:
        x, info = getattr(declive, name)(a, b, M=m, rtol=1e-9, devices=devices, precision="f64")
        assert info == 0 and residual(a, b, x) <= 1.01e-9
    with pytest.raises(declive.InputError, match="unknown preconditioner"):
        declive.cg(a, b, M="ilu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        declive.gmres(a, b)
