"""LeNet-5 on the handwritten digits: two convolutions with pools, three layers."""

from types import ModuleType
from typing import Any

from benchmarks.lessons import Classifier
from benchmarks.workload import Inputs, Program, training
from benchmarks.workloads.digits import large_batches


def network(tw: ModuleType) -> Any:
    """Return LeNet-5 for images (n, 1, 32, 32), made of the layers of `tw`: an engine, or torch."""
    nn = tw.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10),
    )  # fmt: skip


class LeNet(Classifier):
    """LeNet-5 on digits of 32 x 32 pixels, cross-entropy, batch 32, Adam step"""

    name = "lenet"
    steps, goal = 132, 0.95

    def inputs(self) -> list[Inputs]:
        """Return the batches of one epoch."""
        return large_batches(32)

    def build(self, tw: ModuleType) -> tuple[Any, Program]:
        """Build network and training step."""
        tw.manual_seed(0)
        model = network(tw)
        optimizer = tw.optim.Adam(model.parameters(), lr=0.002)
        return model, training(tw, model, optimizer, tw.nn.functional.cross_entropy)


WORKLOADS = [LeNet()]
