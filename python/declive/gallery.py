"""Test matrices, as SciPy's ``csr_array``: grids, meshes, circuits, graphs; symmetric positive definite unless told otherwise.

Each function takes sizes (one stands for all axes) and what shapes the problem. ``scramble`` is the seed of a random order of rows and columns.

>>> from declive import gallery
>>> gallery.poisson3d(10, 20, 30).shape
(6000, 6000)
>>> gallery.make("poisson2d:3x2").nnz
20
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _declive
from ._arrays import Array, to_scipy


def make(problem: str) -> Any:
    """The matrix of a problem as ``declive generate`` names it, such as ``poisson3d:100`` or ``jumps:64,seed=7``."""
    return to_scipy(_declive.generate(problem))


def problems() -> dict[str, str]:
    """The names of all problems, and what they are."""
    return {name: about for name, about, _ in _declive.problems()}


def coordinates(problem: str) -> Array:
    """Where the nodes of a problem are, an array of (nodes, 3): of ``elasticity3d``, ``elasticity3d-jumps`` and ``tetrahedra``. For
    ``declive.solve(..., precond="amg", coordinates=…)``."""
    found = np.empty(_declive.coordinates(problem))
    _declive.coordinates(problem, found)
    return found.reshape(-1, 3)


def _named(name: str, sides: tuple[int | None, ...], **parameters: float | None) -> Any:
    size = "x".join(str(side) for side in sides if side is not None)
    given = "".join(f",{key}={value!r}" for key, value in parameters.items() if value is not None)
    return make(f"{name}:{size}{given}")


def poisson2d(nx: int, ny: int | None = None, *, scramble: int | None = None) -> Any:
    """5-point Laplacian on a square."""
    return _named("poisson2d", (nx, ny), scramble=scramble)


def poisson3d(nx: int, ny: int | None = None, nz: int | None = None, *, scramble: int | None = None) -> Any:
    """7-point Laplacian in a cube."""
    return _named("poisson3d", (nx, ny, nz), scramble=scramble)


def poisson3d27(nx: int, ny: int | None = None, nz: int | None = None, *, scramble: int | None = None) -> Any:
    """27-point operator of HPCG in a cube."""
    return _named("poisson3d27", (nx, ny, nz), scramble=scramble)


def anisotropic(nx: int, ny: int | None = None, nz: int | None = None, *, epsilon: float | None = None, scramble: int | None = None) -> Any:
    """7-point diffusion, weak along z: ``epsilon`` there."""
    return _named("anisotropic", (nx, ny, nz), epsilon=epsilon, scramble=scramble)


def jumps(
    nx: int, ny: int | None = None, nz: int | None = None, *, contrast: float | None = None, seed: int | None = None, scramble: int | None = None
) -> Any:
    """Diffusion through random blocks of two materials."""
    return _named("jumps", (nx, ny, nz), contrast=contrast, seed=seed, scramble=scramble)


def variable(
    nx: int, ny: int | None = None, nz: int | None = None, *, sigma: float | None = None, seed: int | None = None, scramble: int | None = None
) -> Any:
    """Diffusion with another lognormal coefficient in every cell; ``sigma`` is the standard deviation of its logarithm."""
    return _named("variable", (nx, ny, nz), sigma=sigma, seed=seed, scramble=scramble)


def reservoir(nx: int, ny: int | None = None, nz: int | None = None, *, seed: int | None = None, scramble: int | None = None) -> Any:
    """Flow in layers of rock of SPE10's kind; (60, 220, 85) is its size."""
    return _named("reservoir", (nx, ny, nz), seed=seed, scramble=scramble)


def circuit(
    nx: int,
    ny: int | None = None,
    *,
    layers: int | None = None,
    pads: int | None = None,
    missing: float | None = None,
    seed: int | None = None,
    scramble: int | None = None,
) -> Any:
    """Power grid of a chip: layers of wires, vias and pads; sizes are in points of the lowest layer."""
    return _named("circuit", (nx, ny), layers=layers, pads=pads, missing=missing, seed=seed, scramble=scramble)


def elasticity3d(nx: int, ny: int | None = None, nz: int | None = None, *, scramble: int | None = None) -> Any:
    """Linear elasticity of a clamped block, 3 unknowns a node; sizes are in elements."""
    return _named("elasticity3d", (nx, ny, nz), scramble=scramble)


def elasticity3d_jumps(
    nx: int, ny: int | None = None, nz: int | None = None, *, contrast: float | None = None, seed: int | None = None, scramble: int | None = None
) -> Any:
    """The same through random blocks of two materials."""
    return _named("elasticity3d-jumps", (nx, ny, nz), contrast=contrast, seed=seed, scramble=scramble)


def tetrahedra(
    nx: int, ny: int | None = None, nz: int | None = None, *, shuffle: int | None = None, seed: int | None = None, scramble: int | None = None
) -> Any:
    """Linear elasticity on an unstructured mesh; sizes are in cells of six tetrahedra."""
    return _named("tetrahedra", (nx, ny, nz), shuffle=shuffle, seed=seed, scramble=scramble)


def graph_laplacian(
    n: int, *, degree: int | None = None, skew: int | None = None, shift: float | None = None, seed: int | None = None, scramble: int | None = None
) -> Any:
    """Shifted Laplacian of a random graph, some rows very long."""
    return _named("graph-laplacian", (n,), degree=degree, skew=skew, shift=shift, seed=seed, scramble=scramble)


def random_spd(n: int, *, degree: int | None = None, seed: int | None = None, scramble: int | None = None) -> Any:
    """Random places and values, diagonally dominant."""
    return _named("random-spd", (n,), degree=degree, seed=seed, scramble=scramble)


def tridiagonal(n: int, *, scramble: int | None = None) -> Any:
    """Second difference on a line: −1 2 −1."""
    return _named("tridiagonal", (n,), scramble=scramble)


def band(n: int, *, width: int | None = None, scramble: int | None = None) -> Any:
    """Dense band."""
    return _named("band", (n,), width=width, scramble=scramble)


def dense_rows(n: int, *, dense: int | None = None, scramble: int | None = None) -> Any:
    """A line of which some points are tied to all others: dense rows among sparse ones."""
    return _named("dense-rows", (n,), dense=dense, scramble=scramble)


def neumann2d(nx: int, ny: int | None = None, *, scramble: int | None = None) -> Any:
    """5-point Laplacian in a closed square, semidefinite: constants are its null space."""
    return _named("neumann2d", (nx, ny), scramble=scramble)


def helmholtz3d(nx: int, ny: int | None = None, nz: int | None = None, *, wavenumber: float | None = None, scramble: int | None = None) -> Any:
    """Waves between the walls of a cube, indefinite."""
    return _named("helmholtz3d", (nx, ny, nz), wavenumber=wavenumber, scramble=scramble)


def stokes2d(nx: int, ny: int | None = None, *, scramble: int | None = None) -> Any:
    """Slow flow on a staggered grid, indefinite; sizes are in cells."""
    return _named("stokes2d", (nx, ny), scramble=scramble)


def convection3d(nx: int, ny: int | None = None, nz: int | None = None, *, peclet: float | None = None, scramble: int | None = None) -> Any:
    """7-point diffusion and upwind convection round a cube, not symmetric."""
    return _named("convection3d", (nx, ny, nz), peclet=peclet, scramble=scramble)


def markov(n: int, *, scramble: int | None = None) -> Any:
    """I − Pᵀ of three queues in a circle, singular and not symmetric; the size is in customers."""
    return _named("markov", (n,), scramble=scramble)


def fit2d(nx: int, ny: int | None = None, *, points: int | None = None, seed: int | None = None, scramble: int | None = None) -> Any:
    """Heights at the nodes of a grid by those at points in its cells, rectangular; sizes are in cells."""
    return _named("fit2d", (nx, ny), points=points, seed=seed, scramble=scramble)


def helmholtz3d_absorbing(
    nx: int,
    ny: int | None = None,
    nz: int | None = None,
    *,
    wavenumber: float | None = None,
    damping: float | None = None,
    scramble: int | None = None,
) -> Any:
    """Waves in a cube whose faces absorb them, complex symmetric."""
    return _named("helmholtz3d-absorbing", (nx, ny, nz), wavenumber=wavenumber, damping=damping, scramble=scramble)


def gauge2d(
    nx: int, ny: int | None = None, *, disorder: float | None = None, shift: float | None = None, seed: int | None = None, scramble: int | None = None
) -> Any:
    """Periodic 5-point Laplacian with random phases, Hermitian positive definite."""
    return _named("gauge2d", (nx, ny), disorder=disorder, shift=shift, seed=seed, scramble=scramble)
