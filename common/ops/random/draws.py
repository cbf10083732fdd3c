"""Random draws: pure functions of a generator's seed and offset, so that both engines draw the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.core.op import NativeCall
from common.core.spec import Spec, numel
from common.ops._define import kernel
from common.ops._samples import draws


def _spec(seed: Spec, offset: Spec, *, shape: tuple[Any, ...], dtype: np.dtype) -> Spec:
    return Spec(tuple(shape), np.dtype(dtype))


def _native(distribution: str) -> Callable[..., list[NativeCall]]:
    def native(specs: Sequence[Spec], outs: Sequence[Spec], attrs: dict[str, Any]) -> list[NativeCall]:
        from common.kernels.arrays import philox

        source = getattr(philox, f"{distribution}_source")(outs[0].dtype)
        return [NativeCall(source, distribution, (numel(outs[0].shape),))]

    return native


def _oracle(distribution: str) -> Callable[..., np.ndarray]:
    def oracle(seed: np.ndarray, offset: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        from common.kernels.arrays import philox

        draw = getattr(philox, f"{distribution}_oracle")
        y: np.ndarray = draw(int(seed), int(offset), int(numel(shape)), dtype)
        return y.reshape(shape)

    return oracle


rand_ = kernel(
    "rand", ("seed", "offset"), _spec, _native("uniform"), _oracle("uniform"),
    doc="Uniform on [0, 1); element i is a function of (seed, offset + i), see `common.kernels.arrays.philox`.",
    attrs=("shape", "dtype"), samples=draws,
)  # fmt: skip

randn_ = kernel(
    "randn", ("seed", "offset"), _spec, _native("normal"), _oracle("normal"),
    doc="Normal with mean 0 and variance 1, by Box and Muller; element i is a function of (seed, offset + i).",
    attrs=("shape", "dtype"), samples=draws,
)  # fmt: skip
