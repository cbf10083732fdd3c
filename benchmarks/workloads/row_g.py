"""Row g: a classifier that matrix products and the optimiser's memory traffic dominate."""

from types import ModuleType

import numpy as np

from benchmarks.workload import Inputs, Program, Workload, training

WIDTHS = (784, 512, 512, 10)
BATCH = 128


class WideClassifier(Workload):
    """MLP 784-512-512-10, relu, cross-entropy, batch 128, Adam step"""

    name = "g-mlp-adam"

    def inputs(self) -> list[Inputs]:
        """Return four batches of images (128, 784) float32 in 0..1 and labels (128,) int64, both at random."""
        rng = np.random.default_rng(6)
        images = rng.random((4, BATCH, WIDTHS[0]), np.float32)
        labels = rng.integers(0, WIDTHS[-1], (4, BATCH))
        return [(x.copy(), t.copy()) for x, t in zip(images, labels, strict=True)]

    def make(self, tw: ModuleType) -> Program:
        """Build the classifier."""
        tw.manual_seed(0)
        a, b, c, d = WIDTHS
        nn = tw.nn
        model = nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c), nn.ReLU(), nn.Linear(c, d))
        optimizer = tw.optim.Adam(model.parameters(), lr=0.001)
        return training(tw, model, optimizer, nn.functional.cross_entropy)


WORKLOADS = [WideClassifier()]
