"""A residual network for small images: eight layers, batch norm, as in section 4.2 of its paper with n = 1."""

from itertools import islice
from types import ModuleType
from typing import Any

from benchmarks.lessons import Classifier
from benchmarks.workload import Inputs, Program, training
from benchmarks.workloads.digits import large_batches

WIDTHS = (16, 32, 64)


def network(tw: ModuleType) -> Any:
    """Return the network for images (n, 1, 32, 32), made of the layers of `tw`: an engine, or torch.

    References
    ----------
    He and others, Deep residual learning for image recognition, 2015.
    """
    nn = tw.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        """Two convolutions, added to what went in."""

        def __init__(self, inner: int, outer: int) -> None:
            super().__init__()
            stride = 1 if inner == outer else 2
            self.conv_1, self.norm_1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
            self.conv_2, self.norm_2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
            self.past = nn.Identity() if stride == 1 else nn.Conv2d(inner, outer, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            y = tw.relu(self.norm_1(self.conv_1(x)))
            return tw.relu(self.norm_2(self.conv_2(y)) + self.past(x))

    first, second, third = WIDTHS
    return nn.Sequential(
        nn.Conv2d(1, first, 3, 1, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU(),
        Block(first, first), Block(first, second), Block(second, third),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(third, 10),
    )  # fmt: skip


class ResNet(Classifier):
    """ResNet of 8 layers, 16 to 64 channels, on digits of 32 x 32 pixels, batch 32, SGD with momentum"""

    name = "resnet"
    steps, goal = 88, 0.94

    def inputs(self) -> list[Inputs]:
        """Return the batches of one epoch."""
        return large_batches(32)

    def build(self, tw: ModuleType) -> tuple[Any, Program]:
        """Build network and training step."""
        tw.manual_seed(0)
        model = network(tw)
        optimizer = tw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
        return model, training(tw, model, optimizer, tw.nn.functional.cross_entropy)

    def train(self, tw: ModuleType) -> float:
        """Train with a learning rate that falls like a cosine, and return the score."""
        model, program = self.build(tw)
        schedule = tw.optim.lr_scheduler.CosineAnnealingLR(program.optimizer, self.steps)
        for arguments in islice(self.material(), self.steps):
            program.call(*arguments)
            schedule.step()
        return self.score(tw, model)


WORKLOADS = [ResNet()]
