"""Public names of PyTorch that are neither here nor explained; ``python -m tests.helpers.torch_names`` where it is.

Prints nothing if the table of `common.core.absent` is complete.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

import dynamic
import static

SPACES = ("", "nn", "nn.functional", "nn.utils", "linalg", "special", "fft", "optim", "optim.lr_scheduler", "autograd",
          "autograd.functional", "func", "utils", "random", "profiler", "Tensor")  # fmt: skip


def public(module: Any) -> Iterator[str]:
    """Names that belong to a module of PyTorch, without what it has imported from Python."""
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name, None)
        home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or "torch"
        if not name.startswith("_") and str(home).startswith("torch"):
            yield name


def unexplained(engine: Any, torch: Any) -> Iterator[str]:
    """The names, with their modules."""
    for space in SPACES:
        path = space.split(".") if space else []
        theirs = functools.reduce(getattr, path, torch)
        ours = dynamic.tensor([[1.0]]) if space == "Tensor" else functools.reduce(getattr, path, engine)
        for name in public(theirs):
            try:
                getattr(ours, name)
            except AttributeError as error:
                if ": " not in str(error):
                    yield f"{space or 'torch'}.{name}"


if __name__ == "__main__":
    import torch

    for engine in (dynamic, static):
        print("\n".join(unexplained(engine, torch)))
