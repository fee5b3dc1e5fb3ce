"""Matrices and vectors as the library takes them: NumPy's arrays of doubles, without a copy where they are that already."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._declive import Matrix
from ._errors import InputError

Array = np.ndarray[Any, Any]


def array(value: Any) -> Array:
    """An array of NumPy's of whatever has the buffer protocol, ``__array__`` or DLPack, in memory of the host: where it is, if that can be."""
    if isinstance(value, np.ndarray):
        return value
    has_array = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    if hasattr(value, "__dlpack__") and not has_array:
        return np.from_dlpack(value)
    return np.asarray(value)


def numbers(value: Any, what: str) -> Array:
    """An array of doubles, real or complex, of any shape."""
    found = array(value)
    if found.dtype.kind not in "biufc":
        raise InputError(f"{what} has elements of the type {found.dtype}; numbers are needed")
    return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64, copy=False)


def parts(vector: Array) -> Array:
    """The same memory as doubles of one dimension: of complex numbers the real and the imaginary parts by turns."""
    return np.ascontiguousarray(vector).reshape(-1).view(np.float64)


def is_operator(a: Any) -> bool:
    """Whether it is known by its products alone."""
    return hasattr(a, "matvec") and not hasattr(a, "tocsr") and not isinstance(a, np.ndarray)


def rows(a: Any) -> tuple[tuple[int, int], Array, Array, Array]:
    """The shape, row pointers, columns and values of a matrix by rows, whose columns rise strictly in each row.

    Takes what has the attributes of SciPy's sparse matrices, a tuple ``(data, indices, indptr)`` of a square matrix, and whatever is an array of
    two dimensions. Arrays of SciPy's ``csr`` with sorted columns and doubles are used where they are.
    """
    shape: tuple[int, ...]
    if isinstance(a, tuple) and len(a) == 3:
        data, indices, indptr = a[0], array(a[1]), array(a[2])
        shape = (len(indptr) - 1, len(indptr) - 1)
    elif hasattr(a, "tocsr"):
        if getattr(a, "format", None) != "csr":
            a = a.tocsr()
        if not a.has_canonical_format:
            a = a.copy()
            a.sum_duplicates()
        (data, indices, indptr), shape = (a.data, a.indices, a.indptr), a.shape
    else:
        data, indices, indptr, shape = _of_dense(array(a))
    if len(shape) != 2:
        raise InputError(f"a matrix has two dimensions, not {len(shape)}")
    return (int(shape[0]), int(shape[1])), _indices(indptr), _indices(indices), numbers(data, "the matrix")


def matrix(a: Any, *, is_complex: bool = False) -> Matrix:
    """The library's matrix of these rows; a complex one, if that is needed."""
    if isinstance(a, Matrix):
        return a
    shape, indptr, indices, data = rows(a)
    if is_complex:
        data = data.astype(np.complex128, copy=False)
    return Matrix(shape, indptr, indices, parts(data), data.dtype.kind == "c")


def _indices(values: Any) -> Array:
    found = array(values)
    if found.dtype.kind not in "iu":
        raise InputError(f"indices are of the type {found.dtype}; integers are needed")
    wanted = np.int32 if found.dtype.itemsize == 4 and found.dtype.kind == "i" else np.int64
    return np.ascontiguousarray(found, dtype=wanted)


def _of_dense(a: Array) -> tuple[Array, Array, Array, tuple[int, ...]]:
    if a.ndim != 2:
        raise InputError(f"a matrix has two dimensions, not {a.ndim}")
    row, column = np.nonzero(a)
    indptr = np.zeros(a.shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=a.shape[0]), out=indptr[1:])
    return a[row, column], column, indptr, a.shape


def to_scipy(made: Matrix) -> Any:
    """SciPy's ``csr_array`` of a matrix of the library's."""
    try:
        from scipy.sparse import csr_array
    except ImportError as error:
        raise ImportError("matrices are given as SciPy's csr_array: install scipy") from error
    m, n = made.shape
    index = np.int32 if max(m, n, made.nnz) <= np.iinfo(np.int32).max else np.int64
    indptr, indices = np.empty(m + 1, index), np.empty(made.nnz, index)
    data = np.empty(made.nnz, np.complex128 if made.is_complex else np.float64)
    made.fill(indptr, indices, data.view(np.float64))
    a = csr_array((data, indices, indptr), shape=(m, n))
    a.has_canonical_format = True
    return a


def of_bytes(function: Any, what: str, wrong: str, is_complex: bool) -> Any:
    """A function of vectors as the library calls it: with the bytes of a vector, for the parts of another one.

    ``what`` is what it gives, and ``wrong`` the error where that is complex, but the system is real.
    """
    kind = np.complex128 if is_complex else np.float64

    def apply(vector: bytearray) -> Array:
        found = numbers(function(np.frombuffer(vector, dtype=kind)), what)
        if found.dtype.kind == "c" and not is_complex:
            raise InputError(wrong)
        return parts(found.astype(kind, copy=False))

    return apply
