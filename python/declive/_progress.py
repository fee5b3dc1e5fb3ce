"""How far a solve is, in a terminal or a notebook."""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import Any


class Progress:
    """A line that is written anew, and goes away in the end."""

    def __init__(self) -> None:
        self._first = math.nan
        self._width = 0
        self._display = _notebook()

    def __call__(self, iterations: int, residual: float, target: float, seconds: float) -> None:
        if math.isnan(self._first):
            self._first = max(residual, target)
        self._show(self._line(iterations, residual, target, seconds))

    def _line(self, iterations: int, residual: float, target: float, seconds: float) -> str:
        part = 1.0
        if residual > target > 0 and self._first > target:
            part = min(max(math.log(self._first / residual) / math.log(self._first / target), 0.0), 1.0)
        bar = "█" * round(20 * part) + "░" * (20 - round(20 * part))
        return f"{bar} {iterations} iterations, residual {residual:.1e} (to {target:.0e}), {seconds:.1f} s"

    def _show(self, line: str) -> None:
        if self._display is not None:
            self._display.update({"text/plain": line}, raw=True)
            return
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._display is not None:
            self._display.update({"text/plain": ""}, raw=True)
        elif self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()


def _notebook() -> Any:
    """A place in a notebook's output, if this is one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    return display({"text/plain": ""}, raw=True, display_id=True)
