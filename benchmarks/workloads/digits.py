"""Handwritten digits: the training step of the README, on the real 1,797 images."""

from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks.workload import Array, Inputs, Program, Workload, training

DATA = Path(__file__).resolve().parent.parent / "data" / "digits.npz"
BATCH = 64


def load() -> tuple[Array, Array]:
    """Return images (1797, 64) float32 in 0..1 and labels (1797,) int64, shuffled once with a fixed seed."""
    with np.load(DATA) as file:
        images, labels = file["images"], file["labels"]
    order = np.random.default_rng(1797).permutation(len(labels))
    return (images[order] / np.float32(16)).astype(np.float32), labels[order].astype(np.int64)


def batches() -> list[Inputs]:
    """Return the 28 full batches of 64 images and labels."""
    images, labels = load()
    starts = range(0, len(labels) - BATCH + 1, BATCH)
    return [(images[i : i + BATCH].copy(), labels[i : i + BATCH].copy()) for i in starts]


class Digits(Workload):
    """digits classifier: MLP 64-128-10, tanh, cross-entropy, batch 64, SGD with momentum."""

    name = "digits"

    def inputs(self) -> list[Inputs]:
        """Return the batches of one epoch."""
        return batches()

    def make(self, tw: ModuleType) -> Program:
        """Build the README's script."""
        tw.manual_seed(0)
        model = tw.nn.Sequential(tw.nn.Linear(64, 128), tw.nn.Tanh(), tw.nn.Linear(128, 10))
        optimizer = tw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        return training(tw, model, optimizer, tw.nn.functional.cross_entropy)


WORKLOADS = [Digits()]
