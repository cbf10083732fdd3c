"""Images in other sizes: Resize and Upsample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.core.sizes import Dim
from common.ops import functional as F
from common.tools.onnx.applied import Applied, axis_of, meaning
from common.tools.onnx.host_values import known, sizes, tensor

_NEAREST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5), "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip


def _coordinates(way: str, count: int, n: int, scale: float, region: tuple[float, float]) -> np.ndarray:
    """Where the elements of a result lie in a dimension of n elements."""
    i = np.arange(count, dtype=np.float64)
    start, end = region
    if way == "align_corners":
        return i * ((n - 1) / (count - 1)) if count > 1 else i * 0
    if way == "asymmetric":
        return i / scale
    if way == "tf_crop_and_resize":
        step = (end - start) * (n - 1) / (count - 1) if count > 1 else 0.0
        return start * (n - 1) + i * step if count > 1 else np.full(1, 0.5 * (start + end) * (n - 1))
    if way == "pytorch_half_pixel" and count == 1:
        return i * 0
    if way == "half_pixel_symmetric":
        return n / 2 * (1 - count / (scale * n)) + (i + 0.5) / scale - 0.5
    if way in ("half_pixel", "pytorch_half_pixel"):
        return (i + 0.5) / scale - 0.5
    raise ArgumentError(f"coordinates are transformed by {way!r}")


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _matrix(a: Applied, mode: str, places: np.ndarray, n: int, scale: float) -> np.ndarray:
    """Weights (count, n): what each element of the result takes of each of the operand."""
    if mode == "nearest":
        chosen = _NEAREST[a.get("nearest_mode", "round_prefer_floor")](places)
        return np.eye(n)[np.clip(chosen, 0, n - 1).astype(np.int64)]
    made = np.zeros((len(places), n))
    cubic = mode == "cubic"
    narrow = min(scale, 1.0) if a.get("antialias", 0) else 1.0
    reach = (2 if cubic else 1) / narrow
    coefficient = a.get("cubic_coeff_a", -0.75)
    for row, x in enumerate(places):
        taps = np.arange(np.floor(x - reach) + 1, np.floor(x + reach) + 1)
        weights = _cubic((taps - x) * narrow, coefficient) if cubic else np.maximum(0, 1 - np.abs(taps - x) * narrow)
        if cubic and a.get("exclude_outside", 0):
            weights = np.where((taps < 0) | (taps >= n), 0, weights)
        if narrow != 1 or a.get("exclude_outside", 0):
            weights = weights / weights.sum()
        np.add.at(made[row], np.clip(taps, 0, n - 1).astype(np.int64), weights)
    return made


def _resized(
    a: Applied, x: Any, wanted: Sequence[Any], scales: Sequence[float], region: Sequence[Any], way: str
) -> Any:
    mode = a.get("mode", "nearest")
    for d, (count, scale) in enumerate(zip(wanted, scales, strict=True)):
        n = x.shape[d]
        if count == n and scale == 1 and way != "tf_crop_and_resize":
            continue
        places = _coordinates(way, count, n, scale, region[d])
        weights = _matrix(a, mode, places, n, scale)
        if mode == "nearest":
            x = F.index_select(x, d, tensor(np.argmax(weights, 1)))
        else:
            moved = F.matmul(F.movedim(x, d, -1), tensor(np.ascontiguousarray(weights.T).astype(x.dtype)))
            x = F.movedim(moved, -1, d)
        if way == "tf_crop_and_resize":
            outside = (places < 0) | (places > n - 1)
            steps = [1] * x.ndim
            steps[d] = count
            x = F.where(tensor(outside.reshape(steps)), a.get("extrapolation_value", 0.0), x)
    return x


@meaning("Resize", "Upsample")
def _resize(a: Applied, x: Any, region: Any = None, scales: Any = None, wanted: Any = None) -> Any:
    x = tensor(x)
    way = a.get("coordinate_transformation_mode", "half_pixel")
    if a.node.kind == "Upsample" or a.opset < 11:  # (x, scales)
        scales, region, way = a.get("scales", region), None, "asymmetric"
        a.node.attrs.setdefault("nearest_mode", "floor")
    a.node.attrs["mode"] = {"bilinear": "linear"}.get(a.get("mode", "nearest"), a.get("mode", "nearest"))
    if a.get("mode") not in ("nearest", "linear", "cubic"):
        raise ArgumentError(f"its mode is {a.get('mode')!r}")
    dims = [axis_of(d, x.ndim, "axis") for d in a.get("axes", list(range(x.ndim)))]
    shape: list[Any] = list(x.shape)
    factors = [1.0] * x.ndim
    given = None if scales is None else np.asarray(scales if isinstance(scales, list) else known(scales, "a scale"))
    if given is not None and given.size:
        if wanted is None or not len(sizes(wanted, "the size")):
            for d, scale in zip(dims, given.astype(float).tolist(), strict=True):
                factors[d] = scale
                if scale != 1:
                    shape[d] = int(np.floor(shape[d] * scale)) if type(shape[d]) is int else _scaled(shape[d], scale)
            wanted = None
    if wanted is not None:
        new = sizes(wanted, "the size")
        policy = a.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            each = [n / x.shape[d] for d, n in zip(dims, new, strict=True)]
            one = min(each) if policy == "not_larger" else max(each)
            new = [int(np.floor(x.shape[d] * one + 0.5)) for d in dims]
            for d in dims:
                factors[d] = one
        for d, n in zip(dims, new, strict=True):
            shape[d] = n
            if policy == "stretch" and type(n) is int and type(x.shape[d]) is int:
                factors[d] = n / x.shape[d]
    ends = [(0.0, 1.0)] * x.ndim
    if region is not None and way == "tf_crop_and_resize":
        listed = known(region, "the region").astype(float).tolist()
        for d, start, end in zip(dims, listed[: len(dims)], listed[len(dims) :], strict=True):
            ends[d] = (start, end)
    if any(isinstance(n, Dim) for d, n in enumerate(shape) if n is not x.shape[d]) or any(
        isinstance(x.shape[d], Dim) and factors[d] != 1 for d in range(x.ndim)
    ):
        return _of_any_size(a, x, shape, factors, way)
    return _resized(a, x, shape, factors, ends, way)


def _scaled(n: Dim, scale: float) -> Any:
    if scale != int(scale):
        raise ArgumentError(f"a size is {n}, which is scaled by {scale}: run the model uncompiled")
    return n * int(scale)


def _of_any_size(a: Applied, x: Any, shape: Sequence[Any], factors: Sequence[float], way: str) -> Any:
    """The cases that PyTorch's interpolation has, for sizes that stay symbolic."""
    mode, n = a.get("mode", "nearest"), x.ndim - 2
    if n < 1 or any(shape[d] != x.shape[d] for d in range(2)):
        made = _of_any_size(a, F.reshape(x, (1, 1, *x.shape)), [1, 1, *shape], [1.0, 1.0, *factors], way)
        return F.reshape(made, tuple(shape))
    if mode == "nearest" and way == "asymmetric" and a.get("nearest_mode", "round_prefer_floor") == "floor":
        return F.interpolate(x, size=tuple(shape[2:]), mode="nearest")
    if mode == "nearest" and all(f == int(f) for f in factors):  # an element is repeated, whatever the rounding
        if way in ("half_pixel", "pytorch_half_pixel", "asymmetric") and all(factors[d] == 1 for d in range(2)):
            return F.interpolate(x, size=tuple(shape[2:]), mode="nearest")
    kinds = {("linear", 1): "linear", ("linear", 2): "bilinear", ("linear", 3): "trilinear", ("cubic", 2): "bicubic"}
    if (
        (mode, n) in kinds
        and way in ("half_pixel", "pytorch_half_pixel", "align_corners")
        and not a.get("antialias", 0)
    ):
        return F.interpolate(x, size=tuple(shape[2:]), mode=kinds[mode, n], align_corners=way == "align_corners")
    raise ArgumentError(f"{mode} with coordinates {way!r} needs sizes that are known: run the model uncompiled")
