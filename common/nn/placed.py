"""Where parameters lie."""

from __future__ import annotations

from typing import Any

from common.core.errors import ArgumentError


def require_cpu(device: Any) -> None:
    """Accept None and the CPU as a module's device.

    Raises
    ------
    ArgumentError : another device.
    """
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise ArgumentError(f"there is no device {str(device)!r} but the CPU; leave it out")
