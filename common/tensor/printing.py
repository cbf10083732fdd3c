"""Tensors as text, laid out as PyTorch's users know it: four digits, columns, the middle of large ones left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from common.core.dtypes import bool_, default_float, int64
from common.core.errors import ArgumentError
from common.core.int_arguments import flag, integer, shown


@dataclass(frozen=True)
class PrintOptions:
    """How tensors are printed; see `set_printoptions`."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed; what is None stays as it is, but for `sci_mode`, which is then chosen by the values.

    Parameters
    ----------
    precision : digits after the point, at most 1,074: no float64 has more.
    threshold : more elements than this are summarised.
    edgeitems : how many at each end of a summarised dimension are shown.
    linewidth : characters per line.
    profile : "default", "short" (2 digits, 2 items) or "full" (never summarised), set before the others.
    sci_mode : whether floats are written with an exponent.

    Raises
    ------
    ArgumentError : an unknown profile, or an option that is no number, too small or too great.
    """
    global options
    profiles = {
        "default": PrintOptions(),
        "short": PrintOptions(precision=2, edgeitems=2),
        "full": PrintOptions(threshold=math.inf),
    }
    if profile is not None and not (isinstance(profile, str) and profile in profiles):
        raise ArgumentError(f"profile {profile!r} is unknown; use one of {sorted(profiles)}")
    is_float = isinstance(threshold, float) and threshold >= 0
    given: dict[str, Any] = {
        "precision": _at_least(0, precision, "precision", 1074),
        "threshold": threshold if is_float else _at_least(0, threshold, "threshold"),
        "edgeitems": _at_least(1, edgeitems, "edgeitems"),
        "linewidth": _at_least(1, linewidth, "linewidth"),
    }
    sci_mode = None if sci_mode is None else flag(sci_mode, "set_printoptions", "sci_mode")
    base = options if profile is None else profiles[profile]
    options = replace(base, **{k: v for k, v in given.items() if v is not None}, sci_mode=sci_mode)


def _at_least(least: int, value: Any, name: str, most: float = math.inf) -> int | None:
    if value is None:
        return None
    option: int = integer(value, "set_printoptions", name)
    if option < least:
        raise ArgumentError(f"set_printoptions(): {name} must be at least {least}, got {option}")
    if option > most:
        raise ArgumentError(f"set_printoptions(): {name} must be at most {most}, got {shown(option)}")
    return option


def get_printoptions() -> dict[str, Any]:
    """The present options, by name."""
    return {field.name: getattr(options, field.name) for field in fields(options)}


def _tensor_str(self: Any, indent: int) -> str:
    """The elements as they are printed, without ``tensor(``.

    Parameters
    ----------
    self : tensor, on which nothing is recorded.
    indent : how far lines after the first are moved to the right.
    """
    array = self.detach().numpy()
    cut = array.size > options.threshold
    return _nested(array, indent, *_writer(_edges(array) if cut else array), cut) if array.size else "[]"


class _PresentOptions:
    """The options as attributes, under which PyTorch keeps them."""

    def __getattr__(self, name: str) -> Any:
        return getattr(options, name)


PRINT_OPTS = _PresentOptions()


def text(array: np.ndarray, extra: list[str], kind: str = "tensor") -> str:
    """``tensor(...)`` of an array, with what else is to be said, such as its gradient's function.

    Parameters
    ----------
    kind : what stands before the elements: the name of a program's own class.
    """
    head = f"{kind}("
    body, notes = "[]", []
    if array.size:
        cut = array.size > options.threshold
        body = _nested(array, len(head), *_writer(_edges(array) if cut else array), cut)
    elif array.ndim != 1:
        notes.append(f"size={array.shape}")
    if array.dtype != default_float() and (array.dtype not in (int64, bool_) or not array.size):
        notes.append(f"dtype={array.dtype.name}")
    whole = f"{head}{body}"
    # the line on which the body ends, as PyTorch counts it: without what stands before its first line
    column = len(body) - body.rfind("\n") + 1 + len(head) * ("\n" not in body)
    for note in [*notes, *extra]:
        if column + len(note) + 2 > options.linewidth:
            whole += f",\n{' ' * len(head)}{note}"
            column = len(head) + len(note)
        else:
            whole += f", {note}"
            column += len(note) + 2
    return whole + ")"


def _edges(array: np.ndarray) -> np.ndarray:
    """The elements of an array that a summary shows."""
    for axis, n in enumerate(array.shape):
        if n > 2 * options.edgeitems:
            ends = np.r_[: options.edgeitems, n - options.edgeitems : n]
            array = array[(slice(None),) * axis + (ends,)]  # `take` would first copy what is expanded
    return array


def _writer(shown: np.ndarray) -> tuple[Callable[[Any], str], int]:
    """How every element is written, in one style, and the width of a column."""
    style: Callable[[Any], str] = str
    measured = shown
    if shown.dtype.kind == "f":
        measured = shown[np.isfinite(shown) & (shown != 0)].astype(np.float64)
        style = _float_style(measured)
    width = max((len(style(x)) for x in measured.ravel().tolist()), default=1)
    return lambda x: style(x).rjust(width), width


def _float_style(values: np.ndarray) -> Callable[[float], str]:
    """How floats are written, decided by the finite ones that are not 0."""
    digits, exponent = options.precision, options.sci_mode
    sizes = np.abs(values)
    if exponent is None:
        exponent = values.size > 0 and bool(
            sizes.max() > 1000.0 * sizes.min() or sizes.max() > 1e8 or sizes.min() < 1e-4
        )
    if exponent and values.size:
        return lambda x: f"{x:.{digits}e}"
    if (values == np.trunc(values)).all():
        return lambda x: f"{x:.0f}." if math.isfinite(x) else f"{x:.0f}"
    return lambda x: f"{x:.{digits}f}"


def _nested(array: np.ndarray, indent: int, write: Callable[[Any], str], width: int, cut: bool) -> str:
    """An array in brackets, its lines below each other."""
    if array.ndim == 0:
        return write(array.item())
    edge = options.edgeitems
    summary = cut and len(array) > 2 * edge
    shown = [*array[:edge], *array[-edge:]] if summary else list(array)
    if array.ndim > 1:
        parts = [_nested(row, indent + 1, write, width, cut) for row in shown]
        between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
        return f"[{between.join([*parts[:edge], '...', *parts[edge:]] if summary else parts)}]"
    parts = [write(x.item()) for x in shown]
    if summary:
        parts[edge:edge] = [" ..."]
    count = max(1, (options.linewidth - indent) // (width + 2))
    lines = [", ".join(parts[i : i + count]) for i in range(0, len(parts), count)]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"
