"""Arithmetic on shapes; every function but `unrepeated`, which looks at an array, works on symbolic sizes too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.core.errors import ShapeError
from common.core.sizes import hint


def plain_shape(x: Any) -> tuple[Any, ...]:
    """The sizes of a tensor, value or array as a plain tuple, which is quicker to read than a tensor's `shape`."""
    shape: tuple[Any, ...] = getattr(x, "payload", x).shape
    return shape


def broadcast_shapes(*shapes: tuple[Any, ...], op: str = "broadcast") -> tuple[Any, ...]:
    """The common shape under NumPy's and PyTorch's broadcasting.

    Raises
    ------
    ShapeError : two sizes differ and neither is 1.
    """
    ndim = max(map(len, shapes), default=0)
    out: list[Any] = [1] * ndim
    for shape in shapes:
        for axis, extent in enumerate(shape, ndim - len(shape)):
            known = out[axis]
            if extent is known or (isinstance(extent, int) and extent == 1):
                continue
            if isinstance(known, int) and known == 1:
                out[axis] = extent
            elif known != extent:
                raise ShapeError(
                    f"{op}: shapes {' and '.join(str(tuple(shape)) for shape in shapes)} do not broadcast: The "
                    f"size of tensor a ({known}) must match the size of tensor b ({extent}) at non-singleton dimension "
                    f"{axis}"
                )
    return tuple(out)


def contiguous_strides(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides in elements of a C-contiguous array of `shape`."""
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def overlapping(shape: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether places that differ in a dimension with a stride are one, as in windows that overlap.

    Examples
    --------
    >>> overlapping((3, 2), (1, 1)), overlapping((3, 2), (2, 1)), overlapping((3, 2), (0, 1))
    (True, False, False)
    """
    reach: Any = 0
    found = [(abs(s), n) for n, s in zip(shape, strides, strict=True) if s != 0 and n > 1]
    # what is compared in this order holds for other sizes that compare alike
    for stride, n in sorted(found, key=lambda pair: (hint(pair[0]), hint(pair[1]))):
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def unrepeated(x: Any) -> Any:
    """An array without the repetitions that broadcasting makes of its elements, of which there may be 2**40."""
    return x[tuple([slice(1) if step == 0 and n else slice(None) for n, step in zip(x.shape, x.strides, strict=True)])]
