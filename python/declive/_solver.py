"""Solving, for one right-hand side or many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from . import _declive
from ._arrays import array, Array, is_operator, numbers, of_bytes, parts, rows
from ._errors import DecliveError, InputError
from ._options import named
from ._precond import given
from ._progress import Progress
from ._result import Result

#: Options that a solve may have its own of.
STOP = ("rtol", "atol", "backward_error", "max_iters", "time_limit")

Callback = Callable[[Array], object]


class Solver:
    """A matrix on its devices, ready for many right-hand sides.

    Parameters
    ----------
    A
        A square matrix: of SciPy's (``csr`` with sorted columns, doubles and 32-bit indices is used where it is, and **must not be changed while the
        solver is there**; ``copy=True`` copies it), a tuple ``(data, indices, indptr)``, an array of two dimensions; or a ``LinearOperator``, whose
        products are formed by Python, on the host. A rectangular matrix gets least squares.
    M
        A preconditioner of one's own, M ≈ A⁻¹: a ``LinearOperator``, a matrix or :class:`declive.Preconditioner`; or the name of one, as
        ``precond``. For ``cg``, ``gmres`` and ``auto``.
    coordinates, near_null
        For ``amg``: where the nodes of a mesh are, an array of (nodes, 2 or 3), so that motions of rigid bodies are interpolated exactly; or vectors,
        (rows, some), that are.
    diagonal
        Of an operator, if it is known: for ``jacobi``.
    **options
        ``method``, ``precond``, ``precision``, ``devices``, ``rtol``, ``atol``, ``max_iters``, ``time_limit`` and so on:
        :func:`declive.options` lists them.

    Examples
    --------
    >>> import declive, numpy as np
    >>> A = declive.gallery.poisson2d(30)
    >>> solver = declive.Solver(A, method="cg", precond="amg", rtol=1e-9)
    >>> B = np.random.default_rng(1).standard_normal((900, 3))
    >>> result = solver.solve(B)
    >>> result.x.shape, result.converged
    ((900, 3), True)
    """

    def __init__(
        self,
        A: Any,
        *,
        M: Any = None,
        coordinates: Any = None,
        near_null: Any = None,
        diagonal: Any = None,
        copy: bool = False,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        if isinstance(M, str):
            options, M = {**options, "precond": M}, None
        self._is_complex = _is_complex(A) or (dtype is not None and np.dtype(dtype).kind == "c")
        self._lock, self._is_busy = threading.RLock(), False
        m = None if M is None else given(M, self._is_complex)
        if is_operator(A):
            if coordinates is not None or near_null is not None:
                raise InputError("coordinates and near_null are for matrices, and this is an operator")
            self.shape = (int(A.shape[0]), int(A.shape[1]))
            self._solver = _of_operator(A, diagonal, named(options), m, self._is_complex)
            return
        self._pattern: tuple[Array, Array] | None = None
        if not isinstance(A, _declive.Matrix):
            shape, indptr, indices, data = rows(A)
            if copy:
                indptr, indices, data = indptr.copy(), indices.copy(), data.copy()
            if self._is_complex:
                data = data.astype(np.complex128, copy=False)
            self._pattern = (indptr, indices)
            A = _declive.Matrix(shape, indptr, indices, parts(data), self._is_complex)
        self.shape = A.shape
        near = near_null_of(coordinates, near_null, options)
        self._solver = _declive.Solver.of_matrix(A, named(options), near, m)

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        progress: bool = False,
        callback: Callback | None = None,
        residual_callback: Callable[[float], object] | None = None,
        **stop: Any,
    ) -> Result:
        """Solves A x = b, from ``x0`` or zero.

        Columns of a ``b`` of two dimensions are solved for side by side. ``rtol``, ``atol``, ``backward_error``, ``max_iters`` and ``time_limit`` may be
        others than the solver's. ``progress`` shows how far it is. ``callback`` gets each x (of ``gmres``, after each cycle), and
        ``residual_callback`` each ‖r‖₂ / ‖b‖₂: devices then wait for Python in every iteration. The interpreter's lock is released meanwhile, and
        Ctrl-C interrupts.

        Not converging raises nothing: see :attr:`Result.converged`.
        """
        unknown = [name for name in stop if name.replace("-", "_") not in STOP]
        if unknown:
            raise InputError(f"'{unknown[0]}' is no option of a solve, which are {', '.join(STOP)}; others are the solver's")
        b = numbers(b, "b")
        if b.ndim not in (1, 2):
            raise InputError(f"b has {b.ndim} dimensions; it is a vector, or has one for each column")
        m, n = self.shape
        if b.shape[0] != m:
            raise InputError(f"b has {b.shape[0]} rows, but the matrix has {m}")
        if b.dtype.kind == "c" and not self._is_complex:
            raise InputError("b is complex, but the solver is of a real matrix; make it with dtype=complex")
        kind = np.complex128 if self._is_complex else np.float64
        count = 1 if b.ndim == 1 else b.shape[1]
        x = _first(x0, (n, *b.shape[1:]), kind)
        if count == 0:
            raise InputError("b has no columns")
        with self._in_turn(), Progress() if progress else nullcontext() as shown:
            tell = _teller(shown, residual_callback)
            take = None if callback is None else _taker(callback, kind)
            each = callback is not None or residual_callback is not None
            solves = self._solver.solve(parts(b.astype(kind, copy=False).T), parts(x), count, named(stop), tell, take, each)
            report = self._solver.report(named(stop))
        x = x.T
        iterations = [int(np.frombuffer(history).size - 1) for _, history in solves]
        if callback is not None and count == 1 and iterations[0] > 0:
            callback(x.copy())
        if residual_callback is not None and count == 1 and iterations[0] > 0:
            residual_callback(float(np.frombuffer(solves[0][1])[-1]))
        return Result(x, solves, report)

    def update_values(self, A: Any) -> None:
        """Gives the matrix other values in the same pattern: a matrix of that, or its values row by row in the order of the columns. What can stay on
        the devices stays there."""
        found = array(A) if not hasattr(A, "tocsr") else None
        if found is not None and found.ndim == 1:
            values = numbers(found, "the values")
        else:
            _, indptr, indices, values = rows(A)
            if self._pattern is None or not all(np.array_equal(*pair) for pair in zip(self._pattern, (indptr, indices), strict=True)):
                raise InputError("the matrix has another pattern; build another solver")
        if values.dtype.kind == "c" and not self._is_complex:
            raise InputError("the values are complex, but the solver is of a real matrix")
        with self._in_turn():
            self._solver.update_values(parts(values.astype(np.complex128 if self._is_complex else np.float64, copy=False)))

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """One thread at a time; others wait, where Ctrl-C interrupts them."""
        with self._lock:
            if self._is_busy:
                raise DecliveError("a callback of a solve can't use the solver that calls it; make another one")
            self._is_busy = True
            try:
                yield
            finally:
                self._is_busy = False


def solve(A: Any, b: Any, x0: Any = None, *, progress: bool = False, callback: Callback | None = None, **options: Any) -> Result:
    """Solves A x = b.

    The method is found for the matrix: conjugate gradients where it is symmetric and positive definite, others where it is not, with multigrid
    where that is forecast to take less, and sparse factors as a last resort. Parameters are those of :class:`Solver` and :meth:`Solver.solve`.

    >>> import declive, numpy as np
    >>> A = declive.gallery.jumps(12)
    >>> result = declive.solve(A, np.ones(A.shape[0]), method="cg", rtol=1e-9, devices="host")
    >>> result.reason_text
    'the relative residual is below rtol'
    """
    stop = {name: options.pop(name) for name in STOP if name in options}
    b = numbers(b, "b")
    solver = Solver(A, dtype=options.pop("dtype", b.dtype), **options)
    return solver.solve(b, x0, progress=progress, callback=callback, **stop)


def _is_complex(a: Any) -> bool:
    if isinstance(a, _declive.Matrix):
        return bool(a.is_complex)
    if isinstance(a, tuple):
        return bool(array(a[0]).dtype.kind == "c")
    kind = getattr(a, "dtype", None)
    return bool((np.dtype(kind) if kind is not None else array(a).dtype).kind == "c")


def _first(x0: Any, shape: tuple[int, ...], kind: Any) -> Array:
    """The first guess, column after column: an array of our own, which becomes the solution."""
    if x0 is None:
        return np.zeros(shape[::-1], dtype=kind)
    x0 = numbers(x0, "x0")
    if x0.shape != shape:
        raise InputError(f"x0 has the shape {x0.shape}, but x has {shape}")
    if x0.dtype.kind == "c" and kind is np.float64:
        raise InputError("x0 is complex, but the system is real")
    return np.array(x0.T, dtype=kind, order="C", copy=True)


def _teller(shown: Progress | None, residual: Callable[[float], object] | None) -> Callable[[int, float, float, float], None] | None:
    if shown is None and residual is None:
        return None

    def tell(iterations: int, found: float, target: float, seconds: float) -> None:
        if shown is not None:
            shown(iterations, found, target, seconds)
        if residual is not None:
            residual(found)

    return tell


def _taker(callback: Callback, kind: Any) -> Callable[[bytearray, int], None]:
    def take(x: bytearray, iterations: int) -> None:
        callback(np.frombuffer(x, dtype=kind))

    return take


def near_null_of(coordinates: Any, vectors: Any, options: dict[str, Any]) -> tuple[bool, Array, int, int | None] | None:
    """What multigrid is to interpolate well, as the library takes it; takes the size of blocks out of the options."""
    if coordinates is None and vectors is None:
        return None
    if coordinates is not None and vectors is not None:
        raise InputError("coordinates and near_null say the same; give one of them")
    found = numbers(vectors if coordinates is None else coordinates, "near_null" if coordinates is None else "coordinates")
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.dtype.kind == "c":
        raise InputError("coordinates and near_null are real arrays of two dimensions, with a row for each node, or of the matrix")
    unknowns = options.pop("block_size", None)
    return coordinates is not None, parts(found.T), found.shape[1], unknowns


def _of_operator(a: Any, diagonal: Any, options: list[tuple[str, str]], m: Any, is_complex: bool) -> _declive.Solver:
    m_rows, n = a.shape
    if m_rows != n:
        raise InputError(f"the operator has {m_rows} rows and {n} columns; a system to solve needs a square one")
    product = of_bytes(a.matvec, "a product", "the operator gives complex numbers, but says that it is real: set its dtype", is_complex)
    known = None if diagonal is None else numbers(diagonal, "the diagonal")
    if known is not None and is_complex:
        known = np.repeat(known.real, 2)  # of the real form
    return _declive.Solver.of_function(n * (2 if is_complex else 1), product, None if known is None else parts(known), options, m)
