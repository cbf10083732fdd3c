"""Row h: an LSTM cell, unrolled: forty small products that wait for each other, and elementwise functions between.

Its sizes are those where neither side of the work is negligible: the weights (192 x 512, 0.4 MB) fit into a core's
second-level cache, a step's products take about as long as its five elementwise functions of 32 x 128 elements.
"""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload, training

STEPS, BATCH, WIDTH, HIDDEN, CLASSES = 20, 32, 64, 128, 10


class UnrolledLSTM(Workload):
    """LSTM cell 64-128 unrolled over 20 steps, linear 128-10, cross-entropy, batch 32, SGD step"""

    name = "h-lstm-cell"

    def inputs(self) -> list[Inputs]:
        """Return four batches of sequences (20, 32, 64) float32 and labels (32,) int64, both at random."""
        rng = np.random.default_rng(7)
        sequences = rng.standard_normal((4, STEPS, BATCH, WIDTH)).astype(np.float32)
        labels = rng.integers(0, CLASSES, (4, BATCH))
        return [(x.copy(), t.copy()) for x, t in zip(sequences, labels, strict=True)]

    def make(self, tw: ModuleType) -> Program:
        """Build cell and output layer."""
        tw.manual_seed(0)

        class SequenceClassifier(tw.nn.Module):  # type: ignore[misc, name-defined]
            """A class per sequence."""

            def __init__(self) -> None:
                super().__init__()
                self.cell = tw.nn.LSTMCell(WIDTH, HIDDEN)
                self.output = tw.nn.Linear(HIDDEN, CLASSES)

            def forward(self, sequence: Any) -> Any:
                h = c = tw.zeros(BATCH, HIDDEN)
                for t in range(STEPS):
                    h, c = self.cell(sequence[t], (h, c))
                return self.output(h)

        model = SequenceClassifier()
        optimizer = tw.optim.SGD(model.parameters(), lr=0.1)
        return training(tw, model, optimizer, tw.nn.functional.cross_entropy)


WORKLOADS = [UnrolledLSTM()]
