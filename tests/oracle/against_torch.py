"""``python -m tests.oracle.against_torch``: the same training runs in PyTorch, where it is installed.

An oracle from outside: equal up to rounding, step by step, for every optimiser; not part of the suite, which needs
no PyTorch. Prints the largest relative difference of any parameter and exits with 1 if one is too large.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np

import dynamic

STEPS, ALLOWED = 30, 2e-4
OPTIMISERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01},
    "SGD dampening": {"lr": 0.05, "momentum": 0.9, "dampening": 0.3},
    "SGD nesterov": {"lr": 0.05, "momentum": 0.9, "nesterov": True},
    "SGD maximize": {"lr": 1e-3, "maximize": True},
    "Adam": {"lr": 0.01, "weight_decay": 0.01},
    "Adam amsgrad": {"lr": 0.01, "amsgrad": True, "maximize": True},
    "AdamW": {"lr": 0.01},
    "AdamW amsgrad": {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True},
    "RMSprop": {"lr": 1e-3, "weight_decay": 0.01},
    "RMSprop centered": {"lr": 1e-3, "centered": True, "momentum": 0.5, "eps": 1e-3},
    "Adagrad": {"lr": 0.01, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1},
    "Adadelta": {"lr": 0.5, "weight_decay": 0.01},
    "Adamax": {"weight_decay": 0.01},
    "NAdam": {"weight_decay": 0.01},
    "RAdam": {"lr": 0.05, "weight_decay": 0.01},
}


def build(tw: ModuleType) -> Any:
    """Make the model: embedding, layer norm, two linear layers."""

    class Model(tw.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = tw.nn.Embedding(20, 8)
            self.norm = tw.nn.LayerNorm(24)
            self.hidden = tw.nn.Linear(24, 16)
            self.output = tw.nn.Linear(16, 5)

        def forward(self, index: Any) -> Any:
            x = self.norm(tw.flatten(self.table(index), 1))
            return self.output(tw.tanh(self.hidden(x)) * tw.sigmoid(x[:, :16]) + tw.nn.functional.gelu(x[:, 8:]))

    return Model()


def run(tw: ModuleType, name: str, start: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return all parameters, flattened, after every step."""
    model = build(tw)
    for key, p in model.named_parameters():
        with tw.no_grad():
            p.copy_(tw.tensor(start[key]))
    optimizer = getattr(tw.optim, name.partition(" ")[0])(model.parameters(), **OPTIMISERS[name])
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(STEPS):
        index, target = tw.tensor(rng.integers(0, 20, (32, 3))), tw.tensor(rng.integers(0, 5, 32))
        optimizer.zero_grad()
        tw.nn.functional.cross_entropy(model(index), target).backward()
        optimizer.step()
        seen.append(np.concatenate([p.detach().numpy().ravel() for p in model.parameters()]))
    return seen


def main() -> int:
    """Compare all optimisers."""
    import torch

    dynamic.manual_seed(0)
    start = {name: p.numpy().copy() for name, p in build(dynamic).named_parameters()}
    worst = 0.0
    for name in OPTIMISERS:
        pairs = zip(run(dynamic, name, start), run(torch, name, start), strict=True)
        found = max(float(np.max(np.abs(a - b) / (np.abs(b) + 1e-2))) for a, b in pairs)
        print(f"{name:15} largest relative difference over {STEPS} steps: {found:.2e}")
        worst = max(worst, found)
    return int(not worst <= ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
