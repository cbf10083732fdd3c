"""`testing`: whether tensors are close, and tensors of random numbers for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, CheckError
from common.random.generator import default_generator
from common.tensor.arrays import to_array
from common.tensor.base import TensorBase, wrap

#: Relative and absolute tolerance per dtype, as PyTorch has them.
TOLERANCES = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Pass if ``|actual - expected| <= atol + rtol |expected|`` everywhere, in sequences and mappings too.

    Parameters
    ----------
    actual, expected : tensors, arrays, numbers, or sequences or mappings of these.
    rtol, atol : both or none; by default 1.3e-6 and 1e-5 for float32, 1e-7 for float64, 0 for integers.
    equal_nan : whether two NaNs are equal.
    check_dtype : whether dtypes must be equal.
    allow_subclasses, check_device, check_layout, check_stride : accepted.
    msg : the error's text instead, or a function of it.

    Raises
    ------
    CheckError : they are not close; it is an AssertionError.
    ArgumentError : one tolerance without the other.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.testing.assert_close(tw.tensor([1.0, 2.0]), tw.tensor([1.0, 2.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError("rtol and atol must both be specified or both be unspecified")

    def fail(text: str) -> None:
        raise CheckError(msg(text) if callable(msg) else text if msg is None else msg)

    def compare(a: Any, b: Any, where: str) -> None:
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if a.keys() != b.keys():
                fail(f"The keys of the mappings do not match: {sorted(map(str, a))} and {sorted(map(str, b))}{where}")
            for key in a:
                compare(a[key], b[key], f"{where} at {key!r}")
            return
        if isinstance(a, Sequence) and isinstance(b, Sequence):
            if len(a) != len(b):
                fail(f"The length of the sequences mismatch: {len(a)} != {len(b)}{where}")
            for i, pair in enumerate(zip(a, b, strict=True)):
                compare(*pair, f"{where} at {i}")
            return
        numbers = not isinstance(a, TensorBase) or not isinstance(b, TensorBase)
        x, y = _array(a), _array(b)
        if x.shape != y.shape:
            fail(f"The values for attribute 'shape' do not match: {x.shape} != {y.shape}{where}")
        if check_dtype and not numbers and x.dtype != y.dtype:
            fail(f"The values for attribute 'dtype' do not match: {x.dtype} != {y.dtype}{where}")
        relative, absolute = (max(t) for t in zip(_tolerance(x), _tolerance(y), strict=True))
        if rtol is not None and atol is not None:
            relative, absolute = rtol, atol
        close = np.isclose(x, y, rtol=relative, atol=absolute, equal_nan=equal_nan)
        if not close.all():
            worst = np.abs(np.subtract(x, y, dtype=np.float64))
            fail(
                f"Tensor-likes are not close!{where}\n\nMismatched elements: {(~close).sum()} / {close.size} "
                f"({100 * (~close).mean():.1f}%)\nGreatest absolute difference: {worst.max()} "
                f"(up to {absolute} allowed)\nrelative tolerance: {relative}"
            )

    compare(actual, expected, "")


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """`assert_close` as it was called before: NaNs are equal, and dtypes may differ.

    Parameters
    ----------
    actual, expected : tensors, arrays, or what becomes one.
    rtol, atol : both or none.
    equal_nan : whether two NaNs are equal.
    msg : the error's text instead.

    Raises
    ------
    CheckError : they are not close; it is an AssertionError.
    ArgumentError : one tolerance without the other.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.testing.assert_allclose(tw.tensor([1, 2]), [1.0, 2.0])
    """
    actual, expected = (x if isinstance(x, TensorBase) else wrap(to_array(x)) for x in (actual, expected))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _array(x: Any) -> np.ndarray:
    return x.detach().numpy() if isinstance(x, TensorBase) else np.asarray(x)


def _tolerance(x: np.ndarray) -> tuple[float, float]:
    return TOLERANCES.get(x.dtype.name, (0.0, 0.0))


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor of random numbers in [low, high), by default [-9, 9) for floats, and what fits for integers.

    Parameters
    ----------
    shape : sizes, or one sequence of them.
    dtype : of the tensor.
    requires_grad : whether gradients are wanted.
    noncontiguous : whether it is every second element of a larger one.
    exclude_zero : zeros become the smallest positive number, or 1.
    device, memory_format : accepted.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    wanted = np.dtype(dtype)
    smallest, largest = {"f": (-9, 9), "b": (0, 2), "u": (0, 10)}.get(wanted.kind, (-9, 10))
    least, most = smallest if low is None else low, largest if high is None else high
    full = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    drawn = np.asarray(default_generator.draw("rand", tuple(full), np.dtype(np.float64)))
    values = least + drawn * (most - least)
    made = (values if wanted.kind == "f" else np.floor(values)).astype(wanted)
    if exclude_zero:
        made[made == 0] = np.finfo(wanted).tiny if wanted.kind == "f" else 1
    made = made[..., ::2] if noncontiguous and sizes else made
    return wrap(made).requires_grad_(requires_grad)


__all__ = ["assert_allclose", "assert_close", "make_tensor"]
