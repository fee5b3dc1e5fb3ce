"""Options of the library, which takes all of them by name as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from . import _declive


def text(value: Any) -> str:
    """A value as the library reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f"{value.total_seconds()!r}s"
    if isinstance(value, (list, tuple)):
        return ",".join(text(one) for one in value)
    if isinstance(value, str):
        return value
    if hasattr(value, "item"):  # a number of NumPy's
        value = value.item()
    return repr(value) if isinstance(value, float) else str(value)


def named(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Those that are given, which is all but ``None``."""
    shares = options.get("shares")
    if isinstance(shares, (list, tuple)):
        options = {**options, "shares": ":".join(text(one) for one in shares)}
    return [(name, text(value)) for name, value in options.items() if value is not None]


def options() -> dict[str, str]:
    """All options of :func:`declive.solve` and :class:`declive.Solver`, with what they are, their values, and what they are by themselves.

    >>> import declive
    >>> print(declive.options()["rtol"])
    Converged when ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol); while it is not set, 1e-8, and 0 beside backward_error: a number from 0 up [1e-8]
    """
    return {name: f"{about}: {values} [{usual}]" for name, about, values, usual in _declive.options()}
