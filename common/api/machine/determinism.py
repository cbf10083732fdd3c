"""Switches between fast and reproducible results: here every result has one value, so they change nothing."""

from __future__ import annotations

from common.core.errors import ArgumentError

_PRECISIONS = ("highest", "high", "medium")
_asked = {"deterministic": False, "warn_only": False}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that do not depend on threads or runs; they never do here."""
    _asked["deterministic"], _asked["warn_only"] = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """The last setting of `use_deterministic_algorithms`; results are deterministic in any case."""
    return _asked["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The `warn_only` of `use_deterministic_algorithms`."""
    return _asked["warn_only"]


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted: products of float32 are computed in float32, at the "highest" precision.

    Raises
    ------
    ArgumentError : not "highest", "high" or "medium".
    """
    if precision not in _PRECISIONS:
        raise ArgumentError(
            f"set_float32_matmul_precision(): precision must be one of {_PRECISIONS}, not {precision!r}"
        )


def get_float32_matmul_precision() -> str:
    """The precision of products of float32: "highest"."""
    return "highest"


def set_num_interop_threads(num: int) -> None:
    """Accepted: operations run one after the other, each on `get_num_threads` threads.

    Raises
    ------
    ArgumentError : not a positive integer.
    """
    if not isinstance(num, int) or num < 1:
        raise ArgumentError(f"set_num_interop_threads(): a positive int is needed, not {num!r}")


def get_num_interop_threads() -> int:
    """How many operations run at once: 1."""
    return 1


def compiled_with_cxx11_abi() -> bool:
    """True, as in current builds of PyTorch."""
    return True
