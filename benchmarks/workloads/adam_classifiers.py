"""Rows d and g: classifiers with Adam; in d products begin to count, in g the traffic of the optimiser does, too."""

from types import ModuleType

import numpy as np

from benchmarks.workload import Inputs, Program, Workload, training

WIDTHS, WIDE = (784, 256, 128, 10), (784, 512, 512, 10)


class ClassifierAdam(Workload):
    """A multilayer perceptron of three layers, relu, cross-entropy, Adam step."""

    def __init__(self, name: str, widths: tuple[int, int, int, int], batch: int, seed: int) -> None:
        self.name, self.widths, self.batch, self.seed = name, widths, batch, seed

    @property
    def title(self) -> str:
        """The title, with the sizes that are trained."""
        return f"MLP {'-'.join(map(str, self.widths))}, relu, cross-entropy, batch {self.batch}, Adam step"

    def inputs(self) -> list[Inputs]:
        """Return four batches of images (batch, 784) float32 in 0..1 and labels (batch,) int64, both at random."""
        rng = np.random.default_rng(self.seed)
        images = rng.random((4, self.batch, self.widths[0]), np.float32)
        labels = rng.integers(0, self.widths[-1], (4, self.batch))
        return [(x.copy(), t.copy()) for x, t in zip(images, labels, strict=True)]

    def make(self, tw: ModuleType) -> Program:
        """Build the classifier."""
        tw.manual_seed(0)
        a, b, c, d = self.widths
        nn = tw.nn
        model = nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c), nn.ReLU(), nn.Linear(c, d))
        optimizer = tw.optim.Adam(model.parameters(), lr=0.001)
        return training(tw, model, optimizer, nn.functional.cross_entropy)


WORKLOADS = [ClassifierAdam("d-mlp-adam", WIDTHS, 64, 4), ClassifierAdam("g-mlp-adam", WIDE, 128, 6)]
