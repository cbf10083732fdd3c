"""Row e: the smallest useful training step, where overhead is everything."""

from types import ModuleType

import numpy as np

from benchmarks.workload import Inputs, Program, Workload, training


class TinyRegression(Workload):
    """MLP 2-16-1, tanh, mean squared error, batch 8, SGD step"""

    name = "e-tiny-mlp"

    def inputs(self) -> list[Inputs]:
        """Return four batches of points (8, 2) and the values (8, 1) of x*y there, float32."""
        rng = np.random.default_rng(5)
        points = rng.uniform(-1, 1, (4, 8, 2)).astype(np.float32)
        return [(p.copy(), p[:, :1] * p[:, 1:]) for p in points]

    def make(self, tw: ModuleType) -> Program:
        """Build the regression."""
        tw.manual_seed(0)
        model = tw.nn.Sequential(tw.nn.Linear(2, 16), tw.nn.Tanh(), tw.nn.Linear(16, 1))
        optimizer = tw.optim.SGD(model.parameters(), lr=0.05)
        return training(tw, model, optimizer, tw.nn.functional.mse_loss)


WORKLOADS = [TinyRegression()]
