"""Chains of many small operations: they show the cost of an engine's bookkeeping."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Array, Inputs, Program, Workload

LENGTH = 100  # operations


def mul_add(x: Any, w: Any, b: Any, tw: ModuleType) -> Any:
    """Return x after 50 times x*w + b; x, w, b : (8,)."""
    for _ in range(LENGTH // 2):
        x = x * w + b
    return x


def mixed(x: Any, w: Any, b: Any, tw: ModuleType) -> Any:
    """Return x : (8, 8) after 14 rounds of seven operations: mul, add, tanh, matmul, sum, mul, add."""
    for _ in range(LENGTH // 7):
        h = tw.tanh(x * b + b)
        x = tw.matmul(h, w)
        x = x * 0.5 + tw.sum(x, dim=0)
    return x


class Chain(Workload):
    """chain of 100 mul/add on 8 float32, forward and backward"""

    name = "chain"
    outputs = ("y", "gx", "gw", "gb")
    body = staticmethod(mul_add)
    shapes: tuple[tuple[int, ...], ...] = ((8,), (8,), (8,))

    def inputs(self) -> list[Inputs]:
        """Return two sets of x, w, b and a random cotangent of x's shape."""
        rng = np.random.default_rng(100)
        shapes = (*self.shapes, self.shapes[0])

        def draw(shape: tuple[int, ...]) -> Array:
            # |value| from 0.7 to 1.2: a product of 50 stays far from subnormal numbers, which cost extra time
            values: Array = rng.uniform(0.7, 1.2, shape) * rng.choice([-1, 1], shape)
            return values.astype(np.float32)

        return [tuple(map(draw, shapes)) for _ in range(2)]

    def make(self, tw: ModuleType) -> Program:
        """Build the chain and its pullback."""
        body = self.body

        @tw.function  # type: ignore[untyped-decorator]
        def call(x: Any, w: Any, b: Any, cotangent: Any) -> Any:
            y, pullback = tw.vjp(lambda x, w, b: body(x, w, b, tw), x, w, b)
            return (y, *pullback(cotangent))

        return Program(call)


class MixedChain(Chain):
    """chain of 98 mixed operations on 8x8 float32 (mul, add, tanh, matmul, sum, broadcast)"""

    name = "mixed-chain"
    body = staticmethod(mixed)
    shapes = ((8, 8), (8, 8), (8,))


WORKLOADS = [Chain(), MixedChain()]
