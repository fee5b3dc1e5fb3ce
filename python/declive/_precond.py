"""Preconditioners: of the library for others, and of others for the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _declive
from ._arrays import array, Array, is_operator, matrix, numbers, of_bytes, parts
from ._errors import InputError
from ._options import named


class Preconditioner:
    """M ≈ A⁻¹ of the library, made and applied on the host: for methods of SciPy's and others that take a ``LinearOperator`` as ``M``.

    ``name`` is ``jacobi``, ``amg`` (multigrid), ``block-jacobi``, ``fsai``, ``ilu0``, ``chebyshev`` or ``none``. Options are ``coordinates``,
    ``near_null`` and ``block_size``, as :class:`declive.Solver` has them, and ``assume_symmetric``.

    >>> import declive, numpy as np
    >>> from scipy.sparse.linalg import cg
    >>> A = declive.gallery.jumps(12)
    >>> M = declive.Preconditioner(A, "amg")
    >>> x, info = cg(A, np.ones(A.shape[0]), M=M)
    >>> info
    0
    """

    def __init__(self, A: Any, name: str = "amg", *, coordinates: Any = None, near_null: Any = None, **options: Any) -> None:
        from ._solver import near_null_of

        made = matrix(A)
        near = near_null_of(coordinates, near_null, options)
        self._made = _declive.Preconditioner(made, named({**options, "precond": name}), near)
        self.name = name
        self.shape: tuple[int, int] = made.shape
        self.dtype = np.dtype(np.complex128 if made.is_complex else np.float64)

    def matvec(self, r: Any) -> Array:
        """M r, of the shape of ``r``: a vector, or (n, 1)."""
        r = numbers(r, "r")
        if r.shape not in ((self.shape[0],), (self.shape[0], 1)):
            raise InputError(f"r has the shape {r.shape}, but the preconditioner {self.shape}")
        if r.dtype.kind == "c" and self.dtype.kind != "c":
            return self.matvec(r.real) + 1j * self.matvec(r.imag)
        z = np.empty(r.shape, self.dtype)
        self._made.apply(parts(r.astype(self.dtype, copy=False)), parts(z))
        return z

    def __matmul__(self, r: Any) -> Array:
        r = array(r)
        if r.ndim == 1:
            return self.matvec(r)
        return np.stack([self.matvec(column) for column in r.T], axis=1)

    __call__ = matvec

    def __repr__(self) -> str:
        return f"<declive.Preconditioner: {self.name} for {self.shape[0]} rows>"


def given(m: Any, is_complex: bool) -> Any:
    """A preconditioner of the caller's own as the library takes it: one of its own, a matrix, or a function of bytes."""
    if isinstance(m, Preconditioner) and (m.dtype.kind == "c") == is_complex:
        return m._made
    if not is_operator(m):
        return matrix(m, is_complex=is_complex)
    return of_bytes(m.matvec, "M r", "the preconditioner gives complex numbers, but the system is real", is_complex)
