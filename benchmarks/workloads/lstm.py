"""A recurrent character model: an LSTM as a scan over the text that charlm reads too."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload, training
from benchmarks.workloads.charlm import VOCABULARY, corpus

STEPS, WIDTH, HIDDEN, BATCH = 32, 32, 128, 32


def batches(count: int = 8) -> list[Inputs]:
    """Return `count` batches of characters (32, 32) and of those that follow them, (1024,), int64, by time."""
    text = corpus()
    rng = np.random.default_rng(97)
    sets: list[Inputs] = []
    for _ in range(count):
        at = rng.integers(0, len(text) - STEPS - 1, size=BATCH) + np.arange(STEPS)[:, None]
        sets.append((text[at], text[at + 1].flatten()))
    return sets


class RecurrentModel(Workload):
    """LSTM language model: embedding 96x32, scan over 32 characters, 128 units, cross-entropy, batch 32, Adam."""

    name = "lstm"

    def inputs(self) -> list[Inputs]:
        """Return eight batches of text."""
        return batches()

    def make(self, tw: ModuleType) -> Program:
        """Build embedding, cell and output layer."""
        tw.manual_seed(0)

        class NextCharacter(tw.nn.Module):  # type: ignore[misc, name-defined]
            """Predict each next character from all before it."""

            def __init__(self) -> None:
                super().__init__()
                self.embedding = tw.nn.Embedding(VOCABULARY, WIDTH)
                self.cell = tw.nn.Linear(WIDTH + HIDDEN, 4 * HIDDEN)
                self.output = tw.nn.Linear(HIDDEN, VOCABULARY)

            def step(self, state: Any, x: Any) -> Any:
                h, c = state
                gates = self.cell(tw.cat([x, h], 1))
                i, f, o, u = (gates[:, k * HIDDEN : (k + 1) * HIDDEN] for k in range(4))
                c = tw.sigmoid(f) * c + tw.sigmoid(i) * tw.tanh(u)
                h = tw.sigmoid(o) * tw.tanh(c)
                return (h, c), h

            def forward(self, codes: Any) -> Any:
                start = tw.zeros(BATCH, HIDDEN)
                _, states = tw.scan(self.step, (start, start), self.embedding(codes))
                return self.output(tw.reshape(states, (-1, HIDDEN)))

        model = NextCharacter()
        optimizer = tw.optim.Adam(model.parameters(), lr=0.003)
        return training(tw, model, optimizer, tw.nn.functional.cross_entropy)


WORKLOADS = [RecurrentModel()]
