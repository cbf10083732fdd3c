"""A Gaussian process: how likely the data are under a kernel's parameters, by a Cholesky factor."""

import math
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

POINTS = 64


class GaussianProcess(Workload):
    """Gaussian process, 64 points, squared exponential kernel: likelihood by Cholesky, gradients by its 3 parameters

    References
    ----------
    Rasmussen, Williams, Gaussian processes for machine learning, 2006, algorithm 2.1 and equation 5.8.
    """

    name = "gaussian-process"
    outputs = ("loss", "g_logs")

    def inputs(self) -> list[Inputs]:
        """Return four sets of logarithms (3,) of length, height and noise, places (64,) and values (64,), float64."""
        rng = np.random.default_rng(19)
        sets: list[Inputs] = []
        for _ in range(4):
            x = np.sort(rng.random(POINTS) * 6)
            y = np.sin(x) + 0.2 * rng.standard_normal(POINTS)
            sets.append((np.log([1.0, 1.0, 0.3]) + 0.2 * rng.standard_normal(3), x, y))
        return sets

    def make(self, tw: ModuleType) -> Program:
        """Build the negative logarithm of the likelihood and its gradient."""

        def loss(logs: Any, x: Any, y: Any) -> Any:
            length, height, noise = tw.exp(logs).unbind()
            apart = (x[:, None] - x[None, :]) / length
            kernel = height**2 * tw.exp(-0.5 * apart * apart) + noise**2 * tw.eye(POINTS, dtype=tw.float64)
            factor = tw.linalg.cholesky(kernel)
            z = tw.linalg.solve_triangular(factor, y[:, None], upper=False)
            return 0.5 * (z * z).sum() + tw.log(factor.diagonal()).sum() + 0.5 * POINTS * math.log(2 * math.pi)

        return Program(tw.function(tw.value_and_grad(loss)))


WORKLOADS = [GaussianProcess()]
