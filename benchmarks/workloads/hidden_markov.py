"""A hidden Markov model: how likely what was seen is, by a scan, and by its gradient where the chain was."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.workload import Inputs, Program, Workload

STATES, SYMBOLS, LENGTH = 8, 6, 100


class HiddenMarkov(Workload):
    """Hidden Markov model, 8 states, 100 symbols: likelihood by the forward algorithm, gradients of all its logits

    References
    ----------
    Rabiner, A tutorial on hidden Markov models, 1989, section III; the gradient holds the posterior of its (37).
    """

    name = "hidden-markov"
    outputs = ("loss", "g_start", "g_moves", "g_shows")

    def inputs(self) -> list[Inputs]:
        """Return four sets of logits of starts (8,), moves (8, 8) and symbols (8, 6), and symbols (100,)."""
        rng = np.random.default_rng(20)
        shapes = ((STATES,), (STATES, STATES), (STATES, SYMBOLS))
        return [
            (*(rng.standard_normal(s).astype(np.float32) for s in shapes), rng.integers(0, SYMBOLS, LENGTH))
            for _ in range(4)
        ]

    def make(self, tw: ModuleType) -> Program:
        """Build the negative logarithm of the likelihood and its gradients."""

        def loss(start: Any, moves: Any, shows: Any, seen: Any) -> Any:
            start, moves, shows = (tw.log_softmax(x, -1) for x in (start, moves, shows))

            def step(at: Any, symbol: Any) -> Any:
                return tw.logsumexp(at[:, None] + moves, 0) + shows[:, symbol], None

            at, _ = tw.scan(step, start + shows[:, seen[0]], seen[1:])
            return -tw.logsumexp(at, 0)

        def call(start: Any, moves: Any, shows: Any, seen: Any) -> Any:
            value, gradients = tw.value_and_grad(loss, (0, 1, 2))(start, moves, shows, seen)
            return (value, *gradients)

        return Program(tw.function(call))


WORKLOADS = [HiddenMarkov()]
