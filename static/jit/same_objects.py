"""Results that are objects of the caller's: an argument, captured state or a gradient that a function returns as it is.

The eager engine returns that very tensor, and so does a compiled function; what `detach()` makes of one is a tensor in
its memory, and so is a view of one. A result with history is not such a one: it is a result of the node that the call
makes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.dispatch import apply
from common.core.sizes import Dim, resolve
from common.core.tree import flatten
from common.tensor.base import TensorBase, wrap
from common.tensor.view_families import ViewStep, family_of
from static.tracing.signature import native_array
from static.tracing.trace import Trace


class Same(NamedTuple):
    """Where a call finds an object.

    Attributes
    ----------
    kind : "given" (a leaf of the arguments), "held" (a tensor), "grad" (the gradient of a tensor).
    of : the leaf's number; the tensor.
    alias : whether the result is another tensor in the same memory.
    steps : the chain of view ops that leads from there to the result.
    """

    kind: str
    of: Any
    alias: bool = False
    steps: tuple[ViewStep, ...] = ()

    def find(
        self, leaves: Sequence[Any], env: Callable[[Sequence[Any]], Mapping[Any, int]], made: dict[Any, Any]
    ) -> Any:
        """The object in a call; None if the engine has made a copy of it.

        Parameters
        ----------
        leaves : of the call's arguments.
        env : of them, the sizes.
        made : what view ops have made in this call: views that are results of one op share it.
        """
        x = leaves[self.of] if self.kind == "given" else self.of._grad if self.kind == "grad" else self.of
        if not isinstance(x, TensorBase):
            if type(x) is not np.ndarray or native_array(x, 0) is not x:
                return None
            x = wrap(x)
        elif self.alias:
            x = wrap(x.payload)
        if self.steps:
            x = made.setdefault((self.kind, self.of if self.kind == "given" else id(self.of), self.alias), x)
        for step in self.steps:
            key = id(x), id(step.attrs)
            if key not in made or (step is self.steps[-1] and step.position is None):  # a tensor of its own
                made[key] = x, apply(step.op, (x,), _resolved(step.attrs, leaves, env))
            x = step.taken(made[key][1])
        return x


def _resolved(attrs: Mapping[str, Any], leaves: Sequence[Any], env: Callable[..., Mapping[Any, int]]) -> Any:
    """Attributes with the sizes of a call."""
    if not any(map(_is_sized, attrs.values())):
        return attrs
    known = env(leaves)
    return {name: resolve(value, known) for name, value in attrs.items()}


def _is_sized(value: Any) -> bool:
    """Whether an attribute depends on the sizes of a call."""
    return isinstance(value, Dim) or (type(value) is tuple and any(map(_is_sized, value)))


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
                if alias is x and (same := find(base, new, True)) is not None:
                    return same._replace(alias=True)
            return None

        def shown(x: Any) -> Same | None:
            if (same := find(x, True)) is not None or (recording and x.requires_grad):
                return same
            _, base, steps = family_of(x)
            if not steps or (same := find(base, True)) is None:
                return None
            return same._replace(steps=steps)

        self.grads = [
            (owner, same)
            for owner, grad in trace.grads.values()
            if grad is not None and grad is not owner._grad and (same := find(grad, False)) is not None
        ]
        self.results = {k: same for k, x in enumerate(returned) if (same := shown(x)) is not None}
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

    def put(self, values: list[Any], call: tuple[Any, Any], env: Callable[[Sequence[Any]], Mapping[Any, int]]) -> None:
        """Put the objects of a call in the place of results, and leave them as gradients.

        Parameters
        ----------
        values : the results of the program.
        call : positional and named arguments.
        env : of their leaves the sizes.
        """
        leaves, made = flatten(call)[0], dict[Any, Any]()
        for owner, same in self.grads:
            if (x := same.find(leaves, env, made)) is not None:
                owner._grad = x
        for k, same in self.results.items():
            if (x := same.find(leaves, env, made)) is not None:
                values[k] = x
