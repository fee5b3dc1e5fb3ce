"""What a solve gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from . import _html
from ._arrays import Array


class Result:
    """How a solve ended, and the solution or the best approximation reached.

    Of several right-hand sides, ``x`` has a column for each, and :attr:`columns` what became of each; what is said of all is the sum of iterations,
    the largest residual, and the first reason other than convergence.

    >>> import declive, numpy as np
    >>> A = declive.gallery.poisson2d(30)
    >>> b = np.ones(900)
    >>> result = declive.solve(A, b, rtol=1e-10)
    >>> result.converged, result.reason
    (True, 'Converged')
    >>> bool(np.linalg.norm(b - A @ result.x) <= 1e-10 * np.linalg.norm(b))
    True
    """

    def __init__(self, x: Array, solves: list[tuple[str, bytes]], common: str) -> None:
        self.x = x
        """The solution: an array of the shape that b has."""
        self._solves = [json.loads(facts) for facts, _ in solves]
        self._histories = [history for _, history in solves]
        self._common = common

    def _first(self, key: str) -> Any:
        """Of the first right-hand side that has not converged, or else of the last."""
        failed = (solve for solve in self._solves if not solve["converged"])
        return next(failed, self._solves[-1])[key]

    def _worst(self, key: str) -> float:
        found = [float("nan") if solve[key] is None else solve[key] for solve in self._solves]
        return float(np.max(found))  # a NaN is the worst

    @property
    def converged(self) -> bool:
        """Whether b − A x, recomputed in more than double precision, meets the test (of a system without a solution: is the least)."""
        return all(solve["converged"] for solve in self._solves)

    @property
    def reason(self) -> str:
        """Why the solve ended: ``Converged``, ``LeastSquares``, ``MaxIters``, ``TimeLimit``, ``Stagnation``, ``Rounding``, ``Divergence``,
        ``IndefiniteOperator``, ``Singular``, ``Breakdown`` or ``NonFinite``."""
        return str(self._first("reason"))

    @property
    def reason_text(self) -> str:
        """The same in a sentence."""
        return str(self._first("reason_text"))

    @property
    def iterations(self) -> int:
        """Iterations of the Krylov method; 0 by factors."""
        return sum(solve["iterations"] for solve in self._solves)

    @property
    def residual(self) -> float:
        """‖b − A x‖₂ / ‖b‖₂, recomputed from the matrix and b in more than double precision."""
        return self._worst("rel_residual_2")

    @property
    def backward_error(self) -> float:
        """‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞): about 1e-16 is as good as double precision can ask for. NaN for operators."""
        return self._worst("backward_error")

    @property
    def history(self) -> Array:
        """‖r‖₂ / ‖b‖₂ by the recurrence: before the first iteration, then after each. Of the first right-hand side; see :attr:`columns`."""
        return np.frombuffer(self._histories[0])

    @property
    def columns(self) -> list[Result]:
        """The results of the right-hand sides, one by one."""
        if len(self._solves) == 1:
            return [self]
        return [self._column(k) for k in range(len(self._solves))]

    def _column(self, k: int) -> Result:
        one = object.__new__(Result)
        one.x, one._common = self.x[:, k], self._common
        one._solves, one._histories = [self._solves[k]], [self._histories[k]]
        return one

    @property
    def method(self) -> str:
        """The method that was followed at last."""
        return str(self.report()["method"])

    @property
    def precond(self) -> str:
        """Its preconditioner; ``none`` where that is one of the caller's own."""
        return str(self.report()["precond"])

    def report(self) -> dict[str, Any]:
        """All that is known, as data: by the names that ``declive solve --json`` has. ``solves`` has the figures of each right-hand side."""
        common: dict[str, Any] = json.loads(self._common)
        switches = [switch for solve in self._solves for switch in solve["switches"]]
        if switches:
            common |= {"method": switches[-1]["to"], "precond": switches[-1]["precond"]}
        seconds = dict(common.pop("seconds"))
        for solve in self._solves:
            for stage, time in solve["seconds"].items():
                seconds[stage] = seconds.get(stage, 0.0) + time
        figures = {"converged": self.converged, "reason": self.reason, "reason_text": self.reason_text, "iterations": self.iterations}
        figures |= {key: self._first(key) for key in ("bytes_per_iteration", "microseconds_per_iteration", "gigabytes_per_second")}
        worst = ("rel_residual_2", "recurrence_rel_residual_2", "backward_error", "residual_2", "residual_inf", "rhs_2")
        figures |= {key: self._worst(key) for key in worst}
        return figures | {"seconds": seconds} | common | {"solves": self._solves}

    def __repr__(self) -> str:
        how = "converged" if self.converged else f"not converged, {self.reason}"
        many = f" for {len(self._solves)} right-hand sides" if len(self._solves) > 1 else ""
        return f"<declive.Result{many}: {how} after {self.iterations} iterations, residual {self.residual:.2e}>"

    def _repr_html_(self) -> str:
        return _html.of(self.report(), [np.frombuffer(history) for history in self._histories])
