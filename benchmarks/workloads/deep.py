"""A deep network of small layers: the cost of a hundred parameters and many equal kernels."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload, training

LAYERS, WIDTH, BATCH = 50, 64, 32


class Deep(Workload):
    """residual MLP of 50 layers of width 64, tanh, mean squared error, batch 32, Adam step"""

    name = "deep"

    def inputs(self) -> list[Inputs]:
        """Return four batches of x (32, 64) and targets (32, 64), float32, at random."""
        rng = np.random.default_rng(50)
        values = rng.standard_normal((4, 2, BATCH, WIDTH)).astype(np.float32)
        return [(x.copy(), target.copy()) for x, target in values]

    def make(self, tw: ModuleType) -> Program:
        """Build the network."""
        tw.manual_seed(0)

        class ResidualNetwork(tw.nn.Module):  # type: ignore[misc, name-defined]
            """x + tanh(layer(x)), layer by layer."""

            def __init__(self) -> None:
                super().__init__()
                self.layers = tw.nn.Sequential(*(tw.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))

            def forward(self, x: Any) -> Any:
                for layer in self.layers:
                    x = x + tw.tanh(layer(x))
                return x

        model = ResidualNetwork()
        optimizer = tw.optim.Adam(model.parameters(), lr=0.001)
        return training(tw, model, optimizer, tw.nn.functional.mse_loss)


WORKLOADS = [Deep()]
