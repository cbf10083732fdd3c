"""A character language model on English text that every Python installation has."""

from itertools import islice
from pydoc_data.topics import topics
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload, training

CONTEXT, WIDTH, HIDDEN, BATCH = 16, 24, 128, 128
VOCABULARY = 96  # the printable ASCII characters and one for all others


def corpus() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the text of Python's own help topics as (n,) int64 character codes in 0..95."""
    text = "\n".join(topics[name] for name in sorted(topics))
    codes = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8).astype(np.int64) - 32
    return np.where((codes >= 0) & (codes < VOCABULARY - 1), codes, VOCABULARY - 1)


def batches(count: int = 8) -> list[Inputs]:
    """Return `count` batches of contexts (128, 16) and next characters (128,), int64."""
    text = corpus()
    rng = np.random.default_rng(96)

    def draw() -> Any:
        while True:
            at = rng.integers(0, len(text) - CONTEXT - 1, size=BATCH)
            yield text[at[:, None] + np.arange(CONTEXT)], text[at + CONTEXT]

    return list(islice(draw(), count))


class CharacterTraining(Workload):
    """character language model: embedding 96x24, MLP 384-128-96, tanh, cross-entropy, batch 128, Adam."""

    name = "charlm"

    def inputs(self) -> list[Inputs]:
        """Return eight batches of text."""
        return batches()

    def make(self, tw: ModuleType) -> Program:
        """Build embedding, hidden layer and output layer."""
        tw.manual_seed(0)

        class CharacterModel(tw.nn.Module):  # type: ignore[misc, name-defined]
            """Predict the next character from the 16 before it."""

            def __init__(self) -> None:
                super().__init__()
                self.embedding = tw.nn.Embedding(VOCABULARY, WIDTH)
                self.hidden = tw.nn.Linear(CONTEXT * WIDTH, HIDDEN)
                self.output = tw.nn.Linear(HIDDEN, VOCABULARY)

            def forward(self, codes: Any) -> Any:
                return self.output(tw.tanh(self.hidden(tw.flatten(self.embedding(codes), 1))))

        model = CharacterModel()
        optimizer = tw.optim.Adam(model.parameters(), lr=0.003)
        return training(tw, model, optimizer, tw.nn.functional.cross_entropy)


WORKLOADS = [CharacterTraining()]
