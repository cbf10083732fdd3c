"""Row b: softmax cross-entropy."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload


class CrossEntropy(Workload):
    """softmax cross-entropy and its gradient, 256x1000 float32"""

    name = "b-cross-entropy"
    outputs = ("loss", "gradient")

    def inputs(self) -> list[Inputs]:
        """Return two sets of logits (256, 1000) and classes (256,)."""
        rng = np.random.default_rng(2)
        return [
            ((3 * rng.standard_normal((256, 1000))).astype(np.float32), rng.integers(0, 1000, 256)) for _ in range(2)
        ]

    def make(self, tw: ModuleType) -> Program:
        """Build the loss and its gradient."""

        @tw.function  # type: ignore[untyped-decorator]
        def call(logits: Any, classes: Any) -> Any:
            return tw.value_and_grad(tw.nn.functional.cross_entropy)(logits, classes)

        return Program(call)


WORKLOADS = [CrossEntropy()]
