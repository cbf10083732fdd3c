"""Handwritten digits: the training step of the README, on the real 1,797 images."""

from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks.workload import Array, Inputs, Program, Workload, training

DATA = Path(__file__).resolve().parent.parent / "data" / "digits.npz"
BATCH = 64
HELD_OUT = 360  # the last ones of `load`, which the lessons on digits do not train on


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


def large(images: Array) -> Array:
    """Return images (n, 64) as (n, 1, 32, 32), each pixel repeated 4 times in both directions."""
    return images.reshape(-1, 1, 8, 8).repeat(4, axis=2).repeat(4, axis=3)


def large_batches(size: int) -> list[Inputs]:
    """Return the full batches of images (size, 1, 32, 32) and labels (size,) that are not held out."""
    images, labels = load()
    starts = range(0, len(labels) - HELD_OUT - size + 1, size)
    return [(large(images[i : i + size]), labels[i : i + size].copy()) for i in starts]


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
