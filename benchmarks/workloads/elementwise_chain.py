"""Row a: a chain of elementwise functions on a million elements."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

SIZE = 1_000_000


class Elementwise(Workload):
    """y = tanh(x*w + b)*x + exp(-x*x) and its gradients, 1e6 elements"""

    outputs = ("y", "gx", "gw", "gb")

    def __init__(self, dtype: str) -> None:
        self.name = f"a-{dtype}"
        self.dtype = np.dtype(dtype)

    @property
    def title(self) -> str:
        """The first line of the docstring, with the dtype."""
        return f"{super().title}, {self.dtype}"

    def inputs(self) -> list[Inputs]:
        """Return two sets of x, w, b and a cotangent, each (1000000,)."""
        rng = np.random.default_rng(1)
        return [tuple(rng.standard_normal(SIZE).astype(self.dtype) for _ in range(4)) for _ in range(2)]

    def make(self, tw: ModuleType) -> Program:
        """Build y and the pullback of a given cotangent."""

        def y_of(x: Any, w: Any, b: Any) -> Any:
            return tw.tanh(x * w + b) * x + tw.exp(-x * x)

        @tw.function  # type: ignore[untyped-decorator]
        def call(x: Any, w: Any, b: Any, cotangent: Any) -> Any:
            y, pullback = tw.vjp(y_of, x, w, b)
            return (y, *pullback(cotangent))

        return Program(call)


WORKLOADS = [Elementwise("float32"), Elementwise("float64")]
