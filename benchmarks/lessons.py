"""Workloads that learn something: each is trained on the data that the project ships, to a result that it states."""

from abc import abstractmethod
from collections.abc import Iterable
from itertools import cycle, islice
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload
from benchmarks.workloads.digits import BATCH, HELD_OUT, large, load


class Lesson(Workload):
    """A workload that states what its training reaches.

    Attributes
    ----------
    measure : what :meth:`score` returns, in words.
    goal : the least score after `steps` steps.
    """

    measure: str
    goal: float
    steps: int

    @abstractmethod
    def build(self, tw: ModuleType) -> tuple[Any, Program]:
        """Return the model and the program that trains it, made with the engine `tw`."""

    @abstractmethod
    def score(self, tw: ModuleType, model: Any) -> float:
        """Return how well the trained `model` does on data that no step has seen; more is better."""

    def make(self, tw: ModuleType) -> Program:
        """Build the program."""
        return self.build(tw)[1]

    def material(self) -> Iterable[Inputs]:
        """Return what the steps of a whole training read, in order; by default the inputs, again and again."""
        return cycle(self.inputs())

    def train(self, tw: ModuleType) -> float:
        """Train a new model with the engine `tw` and return its score."""
        model, program = self.build(tw)
        for arguments in islice(self.material(), self.steps):
            program.call(*arguments)
        return self.score(tw, model)


class Noisy(Lesson):
    """A lesson whose steps read images (64, 64) and normal noise (64, `latent`), float32: new noise in every step."""

    latent: int
    seed: int

    def inputs(self) -> list[Inputs]:
        """Return the batches of one epoch."""
        return self._epochs(1)

    def material(self) -> list[Inputs]:
        """Return new noise for every step."""
        return self._epochs(1 + self.steps // len(self.inputs()))

    def _epochs(self, count: int) -> list[Inputs]:
        images = load()[0][:-HELD_OUT]
        rng = np.random.default_rng(self.seed)
        starts = [i for _ in range(count) for i in range(0, len(images) - BATCH + 1, BATCH)]
        noise = (BATCH, self.latent)
        return [(images[i : i + BATCH].copy(), rng.standard_normal(noise).astype(np.float32)) for i in starts]


class Classifier(Lesson):
    """A classifier of the digits as images of 32 x 32 pixels."""

    measure = "part of 360 held-out digits that are named right"

    def score(self, tw: ModuleType, model: Any) -> float:
        """Return the part of the held-out digits named right."""
        images, labels = (array[-HELD_OUT:] for array in load())
        model.eval()
        with tw.no_grad():
            named = model(tw.tensor(large(images))).argmax(1).numpy()
        model.train()
        return float((named == labels).mean())
