"""Row c: layer normalisation."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

ROWS, WIDTH = 4096, 512


class LayerNormGradients(Workload):
    """layer norm and the gradients of input, weight and bias, 4096x512 float32"""

    name = "c-layer-norm"
    outputs = ("y", "gx", "gw", "gb")

    def inputs(self) -> list[Inputs]:
        """Return two sets of x (4096, 512), weight and bias (512,), and a cotangent (4096, 512)."""
        rng = np.random.default_rng(3)
        shapes = ((ROWS, WIDTH), (WIDTH,), (WIDTH,), (ROWS, WIDTH))
        return [tuple(rng.standard_normal(s).astype(np.float32) for s in shapes) for _ in range(2)]

    def make(self, tw: ModuleType) -> Program:
        """Build the normalised rows and the pullback of a given cotangent."""

        def normalise(x: Any, weight: Any, bias: Any) -> Any:
            return tw.nn.functional.layer_norm(x, (WIDTH,), weight, bias)

        @tw.function  # type: ignore[untyped-decorator]
        def call(x: Any, weight: Any, bias: Any, cotangent: Any) -> Any:
            y, pullback = tw.vjp(normalise, x, weight, bias)
            return (y, *pullback(cotangent))

        return Program(call)


WORKLOADS = [LayerNormGradients()]
