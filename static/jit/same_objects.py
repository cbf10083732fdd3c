"""Results that are objects of the caller's: an argument, captured state or a gradient that a function returns as it is.

The eager engine returns that very tensor, and so does a compiled function; what `detach()` makes of one is a tensor in
its memory. A result with history is not such a one: it is a result of the node that the call makes. Neither is a view,
which a program computes like any other result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.tree import flatten
from common.tensor.base import TensorBase, wrap
from static.tracing.signature import native_array
from static.tracing.trace import Trace


class Same(NamedTuple):
    """Where a call finds an object.

    Attributes
    ----------
    kind : "given" (a leaf of the arguments), "held" (a tensor), "grad" (the gradient of a tensor).
    of : the leaf's number; the tensor.
    alias : whether the result is another tensor in the same memory.
    """

    kind: str
    of: Any
    alias: bool = False

    def find(self, leaves: Sequence[Any]) -> Any:
        """The object in a call whose arguments have these leaves; None if the engine has made a copy of it."""
        x = leaves[self.of] if self.kind == "given" else self.of._grad if self.kind == "grad" else self.of
        if isinstance(x, TensorBase):
            return wrap(x.payload) if self.alias else x
        return wrap(x) if type(x) is np.ndarray and native_array(x, 0) is x else None


class SameObjects:
    """The results and new gradients of a trace that are objects of the caller's.

    Parameters
    ----------
    returned : tensors that the function returned.
    arguments : number of a leaf -> tensor that stands for it.
    recording : whether what requires grad has history.

    Attributes
    ----------
    results : position among the returned tensors -> where the object is.
    grads : tensors whose gradient becomes such an object.
    """

    def __init__(self, trace: Trace, returned: Sequence[Any], arguments: dict[int, Any], recording: bool) -> None:
        replaced = [source.owner._grad for source in trace.captured if source.kind == "grad"]
        known = {id(x): Same("given", i) for i, x in arguments.items()}

        def find(x: Any, new: bool, alias: bool = False) -> Same | None:
            if recording and x.requires_grad and not alias:
                return None
            for owner, grad in trace.grads.values():
                if grad is x and (new or owner._grad is x):
                    return Same("grad", owner)
            if id(x) in known:
                return known[id(x)]
            if isinstance(x.payload, np.ndarray):
                return None if any(x is grad for grad in replaced) else Same("held", x)
            for alias, base in trace.detached():
                if alias is x and (shown := find(base, new, True)) is not None:
                    return shown._replace(alias=True)
            return None

        self.grads = [
            (owner, same)
            for owner, grad in trace.grads.values()
            if grad is not None and grad is not owner._grad and (same := find(grad, False)) is not None
        ]
        self.results = {k: same for k, x in enumerate(returned) if (same := find(x, True)) is not None}
        self._held = [(owner, same.of, owner._grad is same.of) for owner, same in self.grads if same.kind == "held"]

    def objection(self) -> str | None:
        """Whether a gradient has become, or is no longer, state that the program knows by another name; None if not."""
        for owner, held, was in self._held:
            if (owner._grad is held) is not was:
                return f"the gradient of a tensor of shape {tuple(owner.shape)} has become another"
        return None

    def leave(self, leaves: set[int]) -> None:
        """Copy these arguments, whose memory other results take over."""
        self.results = {k: same for k, same in self.results.items() if same.kind != "given" or same.of not in leaves}

    def __bool__(self) -> bool:
        return bool(self.grads or self.results)

    def put(self, values: list[Any], call: tuple[Any, Any]) -> None:
        """Put the objects of a call in the place of results, and leave them as gradients.

        Parameters
        ----------
        values : the results of the program.
        call : positional and named arguments.
        """
        leaves = flatten(call)[0]
        for owner, same in self.grads:
            if (x := same.find(leaves)) is not None:
                owner._grad = x
        for k, same in self.results.items():
            if (x := same.find(leaves)) is not None:
                values[k] = x
