"""Hamiltonian Monte Carlo: draws from a posterior by its gradient."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

ROWS, FEATURES, DRAWS, LEAPS, STEP = 64, 4, 20, 8, 0.3


class Hamiltonian(Workload):
    """Hamiltonian Monte Carlo: 20 draws of a logistic regression's 4 weights, 8 leapfrog steps each

    References
    ----------
    Neal, MCMC using Hamiltonian dynamics, 2011, figure 2.
    """

    name = "hamiltonian"
    outputs = ("draws", "accepted")

    def inputs(self) -> list[Inputs]:
        """Return four sets of rows (64, 4), labels (64,), momenta (20, 4) and chances (20,), all float64."""
        rng = np.random.default_rng(21)
        sets: list[Inputs] = []
        for _ in range(4):
            x = rng.standard_normal((ROWS, FEATURES))
            y = (rng.random(ROWS) < 1 / (1 + np.exp(-x @ [1.0, -1.0, 0.5, 0.0]))).astype(np.float64)
            sets.append((x, y, rng.standard_normal((DRAWS, FEATURES)), rng.random(DRAWS)))
        return sets

    def make(self, tw: ModuleType) -> Program:
        """Build the scan over draws; each is a loop of leapfrog steps, and a choice."""

        def call(x: Any, y: Any, momenta: Any, chances: Any) -> Any:
            def energy(w: Any) -> Any:
                scores = x @ w
                return (tw.nn.functional.softplus(scores) - y * scores).sum() + 0.5 * (w * w).sum()

            slope = tw.grad(energy)

            def leap(_: Any, state: Any) -> Any:
                w, p = state
                p = p - STEP / 2 * slope(w)
                w = w + STEP * p
                return w, p - STEP / 2 * slope(w)

            def draw(w: Any, noise: Any) -> Any:
                p, chance = noise
                new, end = tw.fori_loop(0, LEAPS, leap, (w, p))
                rise = energy(new) - energy(w) + 0.5 * (end * end).sum() - 0.5 * (p * p).sum()
                taken = tw.log(chance) < -rise
                w = tw.where(taken, new, w)
                return w, (w, taken)

            return tw.scan(draw, x[0] * 0, (momenta, chances))[1]

        return Program(tw.function(call))


WORKLOADS = [Hamiltonian()]
