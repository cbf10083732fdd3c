"""A loop whose number of iterations the data decide, and its gradient."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Array, Inputs, Program, Workload

SIZE, TOLERANCE = 1000, 1e-5


def uniform(rng: np.random.Generator, scale: float) -> Array:
    """Return (1000,) float32 between 0.5 and 0.5 + scale."""
    return (rng.random(SIZE) * scale + 0.5).astype(np.float32)


class Newton(Workload):
    """Newton's iteration for x^3 + a x = b, 1000 equations until all are solved, and the gradient through it"""

    name = "newton"
    outputs = ("roots", "g_a", "g_b")

    def inputs(self) -> list[Inputs]:
        """Return four sets of a and b, (1000,) float32; they take 8 to 13 iterations."""
        rng = np.random.default_rng(98)
        scales = [(2.0, 10.0**k) for k in range(4)]
        return [(uniform(rng, a), uniform(rng, b)) for a, b in scales]

    def make(self, tw: ModuleType) -> Program:
        """Build the iteration and the gradient of the sum of roots."""

        def roots(a: Any, b: Any) -> Any:
            def better(state: Any) -> Any:
                x, _ = state
                step = (x * x * x + a * x - b) / (3 * x * x + a)
                return x - step, tw.amax(tw.abs(step / (x + 1)).detach())

            return tw.while_loop(lambda state: state[1] > TOLERANCE, better, (b + 1, (b[0] * 0 + 1).detach()))[0]

        def total(a: Any, b: Any) -> Any:
            x = roots(a, b)
            return x.sum(), x

        def call(a: Any, b: Any) -> Any:
            (_, x), gradients = tw.value_and_grad(total, (0, 1), has_aux=True)(a, b)
            return (x, *gradients)

        return Program(tw.function(call))


WORKLOADS = [Newton()]
