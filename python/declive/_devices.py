"""The devices of this machine."""

from __future__ import annotations

import json
from typing import Any

from . import _declive
from ._arrays import matrix


def devices() -> list[dict[str, Any]]:
    """All OpenCL devices, and the host: what ``devices=`` takes (``index``, or ``host``), and whether ``auto`` takes it.

    >>> import declive
    >>> declive.devices()[-1]["name"]
    'host'
    """
    found = json.loads(_declive.devices())
    host = {"index": "host", "name": "host", "kind": "host", "f64": True, "auto": found["host_auto"]}
    return [*found["devices"], host]


def close_idle() -> None:
    """Closes the devices that no solver uses. After a solve they stay open for the next, which would wait for the driver again; an NVIDIA GPU has some
    500 MB of its memory taken as long."""
    _declive.close_idle()


def tune(A: Any = None, *, devices: str = "auto", precision: str = "f64") -> list[dict[str, Any]]:
    """Finds by measurement how each kernel runs fastest on each OpenCL device, and keeps it for later solves, as ``declive tune`` does: for a matrix, or for
    a 7-point operator. Takes from seconds to minutes. Returns what was found for each kind of device."""
    found: list[dict[str, Any]] = json.loads(_declive.tune(None if A is None else matrix(A), devices, precision))
    return found
