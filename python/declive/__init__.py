"""Solves large sparse linear systems ``A x = b`` on every OpenCL device of a machine at once, on the host's threads where there is none.

>>> import declive, numpy as np
>>> A = declive.gallery.poisson3d(20)  # or a matrix of SciPy's
>>> b = np.ones(A.shape[0])
>>> result = declive.solve(A, b)
>>> result.converged
True
>>> bool(np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b))
True
"""

from . import gallery
from ._devices import close_idle, devices, tune
from ._errors import DecliveError, DeviceError, InputError, OutOfMemoryError
from ._files import read, write
from ._options import options
from ._precond import Preconditioner
from ._result import Result
from ._scipy import aslinearoperator, bicgstab, cg, gmres, minres
from ._solver import Solver, solve

__all__ = [
    "DecliveError",
    "DeviceError",
    "InputError",
    "OutOfMemoryError",
    "Preconditioner",
    "Result",
    "Solver",
    "aslinearoperator",
    "bicgstab",
    "cg",
    "close_idle",
    "devices",
    "gallery",
    "gmres",
    "minres",
    "options",
    "read",
    "solve",
    "tune",
    "write",
]
__version__ = "0.1.0"
