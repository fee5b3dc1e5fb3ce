"""Matrices from and to files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _declive
from ._arrays import matrix, to_scipy


def read(path: str | os.PathLike[str]) -> Any:
    """Reads a matrix as SciPy's ``csr_array``: Matrix Market, compressed or not, an archive of the SuiteSparse collection, or SciPy's ``.npz``. The first
    bytes tell. All threads parse; what is malformed raises an error that names the line.

    >>> import declive, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "A.mtx.gz")
    ...     declive.write(path, declive.gallery.poisson2d(3), symmetry="symmetric")
    ...     declive.read(path).shape
    (9, 9)
    """
    return to_scipy(_declive.read(os.fspath(path)))


def write(path: str | os.PathLike[str], A: Any, *, symmetry: str = "general", comments: Sequence[str] = ()) -> None:
    """Writes a matrix, to the last bit, in the format that the ending of the name tells: ``.npz``; ``.mtx``, or that with ``.gz``, ``.bz2``, ``.xz`` or
    ``.zst``. ``symmetry`` (``symmetric``, ``skew-symmetric``, ``hermitian``) and comments are for Matrix Market: entries above the diagonal then are
    left out, once it is checked that they can be."""
    matrix(A).write(os.fspath(path), symmetry, list(comments))
