"""A result as notebooks show it: a table of the facts, and how the residual fell as a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from ._arrays import Array

WIDTH, HEIGHT = 460, 190
LEFT, TOP, RIGHT, BOTTOM = 48, 10, 12, 30
MOST_CURVES = 8
MOST_POINTS = 400


def of(report: dict[str, Any], histories: Sequence[Array]) -> str:
    """The table, and the chart if there were iterations."""
    devices = ", ".join(dict.fromkeys(rank["device"] for rank in report["ranks"]))
    matrix = report.get("matrix")
    facts = [
        ("result", f"{report['reason']}: {report['reason_text']}"),
        ("residual", f"{report['rel_residual_2']:.2e} relative, recomputed"),
        ("iterations", f"{report['iterations']:,}"),
        ("method", f"{report['method']}, preconditioner {report['precond']}"),
        ("system", f"{matrix['rows']:,} rows, {matrix['nnz']:,} entries" if matrix else "an operator"),
        ("devices", devices),
        ("time", f"{sum(report['seconds'].values()):.3g} s, of it {report['seconds'].get('solve', 0.0):.3g} s to solve"),
    ]
    rows = "".join(f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{escape(text)}</td></tr>" for name, text in facts)
    drawn = [curve for curve in histories if len(_shown(curve)) > 1][:MOST_CURVES]
    return f"<table>{rows}</table>{_chart(drawn) if drawn else ''}"


def _shown(history: Array) -> list[int]:
    """Places of numbers that have a logarithm, of which a curve has some hundreds."""
    step = max(1, len(history) // MOST_POINTS)
    kept = (k for k in range(len(history)) if k % step == 0 or k == len(history) - 1)
    return [k for k in kept if history[k] > 0 and math.isfinite(history[k])]


def _chart(histories: Sequence[Array]) -> str:
    positive = [float(v) for history in histories for v in history if v > 0 and math.isfinite(v)]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    high = max(high, low + 1)
    longest = max(len(history) for history in histories) - 1

    def place(iteration: float, value: float) -> str:
        across = LEFT + iteration / longest * (WIDTH - LEFT - RIGHT)
        down = TOP + (high - math.log10(value)) / (high - low) * (HEIGHT - TOP - BOTTOM)
        return f"{across:.1f},{down:.1f}"

    def curve(history: Array) -> str:
        points = " ".join(place(k, float(history[k])) for k in _shown(history))
        return f"<polyline points='{points}' fill='none' stroke='#1f6fb4' stroke-width='1.5' stroke-opacity='0.8'/>"

    step = max(1, (high - low) // 5)
    lines = []
    for power in range(low, high + 1, step):
        left, right = place(0, 10.0**power), place(longest, 10.0**power)
        y = left.split(",")[1]
        lines.append(f"<polyline points='{left} {right}' stroke='#888' stroke-opacity='0.35' fill='none'/>")
        lines.append(f"<text x='{LEFT - 6}' y='{float(y) + 4:.1f}' text-anchor='end'>1e{power}</text>")
    labels = (
        f"<text x='{LEFT}' y='{HEIGHT - 10}'>0</text>"
        f"<text x='{WIDTH - RIGHT}' y='{HEIGHT - 10}' text-anchor='end'>{longest:,}</text>"
        f"<text x='{(LEFT + WIDTH - RIGHT) / 2}' y='{HEIGHT - 10}' text-anchor='middle'>iterations; relative residual</text>"
    )
    style = "font:11px sans-serif;fill:currentColor"
    body = "".join(lines) + labels + "".join(curve(history) for history in histories)
    return f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{HEIGHT}' style='{style}' role='img'>{body}</svg>"
