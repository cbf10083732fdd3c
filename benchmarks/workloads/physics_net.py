"""A physics-informed network: what it learns is that its second derivative obeys an equation."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

POINTS, HIDDEN = 64, 32


class PhysicsNet(Workload):
    """Network 1-32-1 that solves u'' = -pi^2 sin(pi x), u(0) = u(1) = 0, at 64 points: loss and gradients

    References
    ----------
    Raissi, Perdikaris, Karniadakis, Physics-informed neural networks, 2019.
    """

    name = "physics-net"
    outputs = ("loss", "g_w", "g_b", "g_v")

    def inputs(self) -> list[Inputs]:
        """Return four sets of points (64,), weights (32,), shifts (32,) and output weights (32,), all float32."""
        rng = np.random.default_rng(18)
        return [
            (
                rng.random(POINTS).astype(np.float32),
                *(rng.standard_normal(HIDDEN).astype(np.float32) for _ in range(2)),
                (rng.standard_normal(HIDDEN) / HIDDEN).astype(np.float32),
            )
            for _ in range(4)
        ]

    def make(self, tw: ModuleType) -> Program:
        """Build the loss of one point's second derivative, mapped over the points, and its gradients."""

        def u(x: Any, w: Any, b: Any, v: Any) -> Any:
            return (tw.tanh(w * x + b) * v).sum()

        second = tw.grad(tw.grad(u))

        def loss(w: Any, b: Any, v: Any, x: Any) -> Any:
            bend = tw.vmap(lambda point: second(point, w, b, v))(x)
            inside = ((bend + np.pi**2 * tw.sin(np.pi * x)) ** 2).mean()
            return inside + u(0.0, w, b, v) ** 2 + u(1.0, w, b, v) ** 2

        def call(x: Any, w: Any, b: Any, v: Any) -> Any:
            value, gradients = tw.value_and_grad(loss, (0, 1, 2))(w, b, v, x)
            return (value, *gradients)

        return Program(tw.function(call))


WORKLOADS = [PhysicsNet()]
