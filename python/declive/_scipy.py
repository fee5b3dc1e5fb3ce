"""Functions with the signatures of ``scipy.sparse.linalg``, and the same meaning of what they take and give."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _declive
from ._arrays import Array, array, is_operator, matrix, numbers, parts
from ._errors import InputError
from ._options import text
from ._solver import Callback, Solver

Info = int
#: What ``info`` is where a method can't go on.
BREAKDOWN, NOT_DEFINITE = -10, -1


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    **options: Any,
) -> tuple[Array, Info]:
    """Conjugate gradients, for a symmetric (Hermitian) positive definite A: as :func:`scipy.sparse.linalg.cg`.

    ``M`` may also be the name of a preconditioner of the library's, such as ``"amg"``; by itself it is the diagonal. ``options`` are those of
    :func:`declive.solve`. Returns x and ``info``: 0 if ‖b − A x‖ ≤ max(rtol ‖b‖, atol), recomputed; the number of iterations if that was not
    reached; below 0 where the method can't go on, as A is not definite. ``callback(x)`` is called after each iteration, for which devices wait.

    >>> import declive, numpy as np
    >>> A = declive.gallery.poisson2d(20)
    >>> x, info = declive.cg(A, np.ones(400), atol=1e-8)
    >>> info
    0
    """
    return _solved(A, b, x0, "cg", rtol, atol, maxiter, M, callback, options)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    **options: Any,
) -> tuple[Array, Info]:
    """Stabilised bi-conjugate gradients, for any square A: as :func:`scipy.sparse.linalg.bicgstab`.

    Parameters and what is returned are those of :func:`declive.cg`. With a preconditioner of one's own, products are formed on the host.

    >>> import declive, numpy as np
    >>> A = declive.gallery.convection3d(8)
    >>> x, info = declive.bicgstab(A, np.ones(512), M="ilu0")
    >>> info
    0
    """
    if M is not None and not isinstance(M, str):
        return _right_preconditioned(A, b, x0, rtol, atol, maxiter, M, callback, options)
    return _solved(A, b, x0, "bicgstab", rtol, atol, maxiter, M, callback, options)


def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callback | None = None,
    show: bool = False,
    check: bool = False,
    **options: Any,
) -> tuple[Array, Info]:
    """Minimal residuals, for a symmetric (Hermitian) A − shift I: as :func:`scipy.sparse.linalg.minres`.

    The test is ‖b − A x‖ ≤ rtol ‖b‖, in place of SciPy's, which compares with ‖A‖ ‖x‖, too. ``M`` is the name of a preconditioner (``jacobi``, ``fsai``,
    ``none``), or ``None``: the method can't have one of the caller's own. ``show`` shows the progress, and ``check`` nothing more than is checked
    anyway.

    >>> import declive, numpy as np
    >>> A = declive.gallery.helmholtz3d(8)
    >>> x, info = declive.minres(A, np.ones(512), rtol=1e-8)
    >>> info
    0
    """
    if M is not None and not isinstance(M, str):
        raise InputError("minres can't have a preconditioner of the caller's own; M = 'jacobi' and 'fsai' are the library's, or use gmres")
    if shift != 0.0:
        A = _shifted(A, shift)
    return _solved(A, b, x0, "minres", rtol, 0.0, maxiter, M, callback, {**options, "progress": show})


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], object] | None = None,
    callback_type: str | None = None,
    **options: Any,
) -> tuple[Array, Info]:
    """Generalised minimal residuals with restarts, for any square A: as :func:`scipy.sparse.linalg.gmres`.

    ``maxiter`` counts cycles of ``restart`` steps (20 at most by itself), but steps with ``callback_type="legacy"``. ``callback`` gets x after each cycle with
    ``"x"``, and ‖r‖ / ‖b‖ after each step with ``"pr_norm"`` and ``"legacy"``: of the system itself, as M stands on the right here.

    >>> import declive, numpy as np
    >>> A = declive.gallery.convection3d(8)
    >>> x, info = declive.gmres(A, np.ones(512), restart=30, M="ilu0")
    >>> info
    0
    """
    if callback is not None and callback_type is None:
        warnings.warn(
            "gmres is called without callback_type, which then is 'legacy'; say callback_type='pr_norm' or 'x'", DeprecationWarning, stacklevel=2
        )
    callback_type = callback_type or "legacy"
    if callback_type not in ("x", "pr_norm", "legacy"):
        raise InputError(f"unknown callback_type {callback_type!r}; there are: 'x', 'pr_norm', 'legacy'")
    n = _order(A)
    steps = min(20 if restart is None else restart, max(n, 1))
    most = 10 * n if maxiter is None else maxiter
    counts_steps = callback is not None and callback_type == "legacy"
    iterations = most if counts_steps else most * steps
    by_x, by_norm = (callback, None) if callback_type == "x" else (None, callback)
    options = {**options, "restart": steps, "residual_callback": by_norm}
    x, info = _solved(A, b, x0, "gmres", rtol, atol, iterations, M, by_x, options)
    return x, most if info == iterations and info > 0 else info


def _solved(
    A: Any,
    b: Any,
    x0: Any,
    method: str,
    rtol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    callback: Callable[[Any], object] | None,
    options: dict[str, Any],
) -> tuple[Array, Info]:
    b, kind, x0 = _vectors(A, b, x0, M)
    n = len(b)
    limit = (5 if method == "minres" else 10) * n if maxiter is None else maxiter
    residual_callback, progress = options.pop("residual_callback", None), options.pop("progress", False)
    stop = {"rtol": rtol, "atol": _tolerance(atol), "max_iters": limit}
    solver = Solver(A, M=M, dtype=kind, method=method, **options)
    result = solver.solve(b, x0, progress=progress, callback=callback, residual_callback=residual_callback, **stop)
    return result.x.astype(kind, copy=False), _info(result, limit)


def _info(result: Any, limit: int) -> Info:
    if result.converged:
        return 0
    if result.reason == "MaxIters":
        return limit
    if result.reason in ("Stagnation", "Rounding", "TimeLimit"):
        return max(int(result.iterations), 1)
    return BREAKDOWN if result.reason == "Breakdown" else NOT_DEFINITE


def _right_preconditioned(
    A: Any, b: Any, x0: Any, rtol: float, atol: float, maxiter: int | None, M: Any, callback: Callback | None, options: dict[str, Any]
) -> tuple[Array, Info]:
    """BiCGStab for A M y = b − A x0 on the host, and x = x0 + M y: the residual is that of A x = b."""
    b, kind, x0 = _vectors(A, b, x0, M)
    double = np.complex128 if kind.kind == "c" else np.float64
    products = [_product(one, double) for one in (A, M)]
    of_a, of_m = products
    first = np.zeros(len(b), double) if x0 is None else numbers(x0, "x0").astype(double)
    rest = b.astype(double) - of_a(first) if first.any() else b.astype(double)
    target = max(rtol * float(np.linalg.norm(b)), _tolerance(atol))
    limit = 10 * len(b) if maxiter is None else maxiter
    operator = _Product((len(b), len(b)), np.dtype(double), lambda y: of_a(of_m(y)))
    take = None if callback is None else (lambda y: callback((first + of_m(y)).astype(kind, copy=False)))
    solver = Solver(operator, method="bicgstab", precond="none", **options)
    result = solver.solve(rest, callback=take, rtol=0.0, atol=target, max_iters=limit)
    return (first + of_m(result.x)).astype(kind, copy=False), _info(result, limit)


class _Product:
    """What is known by its products alone."""

    def __init__(self, shape: tuple[int, int], dtype: Any, matvec: Callable[[Array], Array]) -> None:
        self.shape, self.dtype, self.matvec = shape, dtype, matvec


def _product(one: Any, kind: Any) -> Callable[[Array], Array]:
    """The products of an operator, or of a matrix on all threads."""
    if is_operator(one):
        return lambda x: numbers(one.matvec(x), "a product").astype(kind, copy=False)
    made = matrix(one, is_complex=kind is np.complex128)

    def product(x: Array) -> Array:
        y = np.empty(made.shape[0], kind)
        made.multiply(parts(x), parts(y), False)
        return y

    return product


def _vectors(A: Any, b: Any, x0: Any, M: Any) -> tuple[Array, np.dtype[Any], Any]:
    """b and x0 as vectors, and the type that x is to have: that of SciPy's."""
    n = _order(A)
    b = array(b)
    if b.shape not in ((n,), (n, 1)):
        raise InputError(f"shapes of A {(n, n)} and b {b.shape} are incompatible")
    if b.dtype.char not in "fdFD":
        b = b.astype(np.float64)
    kind = np.result_type(_kind(A), b.dtype)
    kind = np.dtype(kind) if kind.char in "fdFD" else np.dtype(np.complex128 if kind.kind == "c" else np.float64)
    b = b.ravel()
    if M is not None and not isinstance(M, str):
        shape = tuple(getattr(M, "shape", None) or array(M).shape)
        if shape != (n, n):
            raise InputError(f"matrix and preconditioner have different shapes: {(n, n)} and {shape}")
    if isinstance(x0, str):
        if x0 != "Mb" or isinstance(M, str):
            raise InputError(f"x0 is {x0!r}; it is a vector, or 'Mb' beside a preconditioner of one's own")
        x0 = b if M is None else _product(M, np.complex128 if kind.kind == "c" else np.float64)(b.astype(kind.char.upper() if kind.kind == "c" else "d"))
    elif x0 is not None:
        x0 = array(x0)
        if x0.shape not in ((n,), (n, 1)):
            raise InputError(f"shapes of A {(n, n)} and x0 {x0.shape} are incompatible")
        x0 = x0.ravel()
    return b, kind, x0


def _order(A: Any) -> int:
    shape = getattr(A, "shape", None)
    if shape is None:
        shape = (len(A[2]) - 1,) * 2 if isinstance(A, tuple) else array(A).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"expected square matrix, but got shape={tuple(shape)}")
    return int(shape[0])


def _kind(A: Any) -> np.dtype[Any]:
    if isinstance(A, _declive.Matrix):
        return np.dtype(np.complex128 if A.is_complex else np.float64)
    kind = getattr(A[0] if isinstance(A, tuple) else A, "dtype", None)
    if kind is None:
        return np.dtype(np.float64) if is_operator(A) else array(A).dtype
    found: np.dtype[Any] = np.dtype(kind)
    return found


def _tolerance(atol: Any) -> float:
    if isinstance(atol, str) or atol is None or not atol >= 0:
        raise InputError(f"atol = {text(atol)} is no tolerance; use a number from 0 on")
    return float(atol)


def _shifted(A: Any, shift: float) -> Any:
    """A − shift I."""
    if is_operator(A):
        return _Product(A.shape, np.dtype(A.dtype), lambda x: A.matvec(x) - shift * x)
    from scipy.sparse import csr_array, eye_array

    return csr_array(A) - shift * eye_array(A.shape[0], format="csr")


def aslinearoperator(A: Any) -> Any:
    """A as SciPy's ``LinearOperator``, whose products with A and Aᵀ all threads form, on the host.

    The library has products on devices only inside of its methods.

    >>> import declive, numpy as np
    >>> A = declive.gallery.poisson2d(20)
    >>> product = declive.aslinearoperator(A) @ np.ones(400)
    >>> bool(np.allclose(product, A @ np.ones(400)))
    True
    """
    from scipy.sparse.linalg import LinearOperator

    made = matrix(A)
    kind = np.dtype(np.complex128 if made.is_complex else np.float64)

    def multiply(x: Any, transpose: bool) -> Array:
        x = numbers(x, "x")
        if x.dtype.kind == "c" and kind.kind != "c":
            return multiply(x.real, transpose) + 1j * multiply(x.imag, transpose)
        y = np.empty(made.shape[1 if transpose else 0], kind)
        x = x.astype(kind, copy=False)
        made.multiply(parts(np.conj(x) if transpose else x), parts(y), transpose)
        return np.conj(y) if transpose else y

    return LinearOperator(made.shape, matvec=lambda x: multiply(x, False), rmatvec=lambda x: multiply(x, True), dtype=kind)
