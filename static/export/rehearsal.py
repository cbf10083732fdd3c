"""A first call of every program of a file, so that all that it runs is compiled."""

from __future__ import annotations

import numpy as np

from common.autograd.backward import backward
from common.compiler.disk_cache import keep_together
from common.core.errors import TwingradError
from common.core.sizes import hint
from common.core.tree import flatten, unflatten
from common.tensor.base import TensorBase, wrap
from static.export.program_file import load


def rehearse(path: str) -> None:
    """Load a file, and run its programs once, forward and backward, on zeros; all machine code goes to the cache."""
    keep_together()
    f = load(path)
    for program in f.programs:
        for history in (False, True):
            leaves = list(program.leaves)
            for i, value in zip(program.positions, program.graph.inputs, strict=False):
                if value.spec.weak:
                    leaves[i] = program.fixed.get(i, 0 if value.dtype.kind == "i" else 0.5)
                    continue
                leaves[i] = wrap(np.zeros(tuple(hint(n) for n in value.shape), value.dtype))
                if history and value.dtype.kind == "f":
                    leaves[i].requires_grad_()
            args, kwargs = unflatten(program.structure, leaves)
            try:
                results, _ = flatten(f(*args, **kwargs))
                again = [x for x in results if isinstance(x, TensorBase) and x.requires_grad]
                if again:
                    backward(again, [wrap(np.ones(tuple(y.shape), y.dtype)) for y in again])
            except TwingradError:  # zeros may be no arguments of it, such as classes that a step refuses
                continue
