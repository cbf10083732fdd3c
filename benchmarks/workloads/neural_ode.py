"""A neural ordinary differential equation, whose gradient a second equation gives, solved backward in time."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

POINTS, HIDDEN, STEPS, END = 32, 16, 20, 1.0


def start(rng: np.random.Generator) -> Inputs:
    """Return weights and shifts of the field 2-16-2 and the state's cotangent, all float32."""
    shapes = ((2, HIDDEN), (HIDDEN,), (HIDDEN, 2), (2,))
    field = [(rng.standard_normal(shape) * 0.5).astype(np.float32) for shape in shapes]
    return (rng.standard_normal((POINTS, 2)).astype(np.float32), *field)


def runge_kutta(rate: Any, state: tuple[Any, ...], step: float) -> tuple[Any, ...]:
    """Return a state after one step of the classical method of fourth order."""

    def moved(slopes: tuple[Any, ...], by: float) -> tuple[Any, ...]:
        return tuple(x + by * k for x, k in zip(state, slopes, strict=True))

    first = rate(state)
    second = rate(moved(first, step / 2))
    third = rate(moved(second, step / 2))
    last = rate(moved(third, step))
    return tuple(
        x + step / 6 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip(state, first, second, third, last, strict=True)
    )


class NeuralOde(Workload):
    """Neural ODE of 32 points, field 2-16-2, 20 Runge-Kutta steps; gradient by the adjoint equation, backward in time

    References
    ----------
    Chen, Rubanova, Bettencourt, Duvenaud, Neural ordinary differential equations, 2018, algorithm 1.
    """

    name = "neural-ode"
    outputs = ("loss", "g_points", "g_w1", "g_b1", "g_w2", "g_b2")

    def inputs(self) -> list[Inputs]:
        """Return four sets of points (32, 2) and weights of the field."""
        rng = np.random.default_rng(17)
        return [start(rng) for _ in range(4)]

    def make(self, tw: ModuleType) -> Program:
        """Build the loss and its gradients: a loop forward, a loop backward, no state in between is kept."""
        step = END / STEPS

        def field(y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
            return tw.tanh(y @ w1 + b1) @ w2 + b2

        def call(y: Any, *weights: Any) -> Any:
            def forward(_: Any, state: Any) -> Any:
                return runge_kutta(lambda s: (field(s[0], *weights),), state, step)

            def backward(_: Any, state: Any) -> Any:
                def rate(s: Any) -> Any:  # of the state, its cotangent and the gradients so far
                    slope, back = tw.vjp(field, s[0], *weights)
                    return (slope, *(-g for g in back(s[1])))

                return runge_kutta(rate, state, -step)

            (y,) = tw.fori_loop(0, STEPS, forward, (y,))
            loss = (y * y).sum() / POINTS
            zeros = tuple(tw.zeros_like(w) for w in weights)
            _, *gradients = tw.fori_loop(0, STEPS, backward, (y, 2 * y / POINTS, *zeros))
            return (loss, *gradients)

        return Program(tw.function(call))


WORKLOADS = [NeuralOde()]
