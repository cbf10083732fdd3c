"""Bodies of control flow in mapped functions: the contexts in which they run, and those of all examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from common.control.body import Body
from common.control.shape_trace import AbstractTensor, AbstractTrace
from common.core import mode
from common.core.errors import TraceError
from common.core.op import REGISTRY
from common.random.draw_counts import uncounted
from common.tensor.base import TensorBase
from common.transforms.batching.batched import Batched, BatchedTensor, number


def outside_of(trace: Any, old: Any) -> tuple[Any, bool]:
    """The loop or the branches of all examples behind those of one; and whether they are from outside themselves."""
    if old is None:
        return None, False
    ours = type(old.engine) is tuple and old.engine[0] is trace
    return (old.engine[1], False) if ours else (old, True)


@contextmanager
def for_shapes(trace: Any, name: str) -> Iterator[AbstractTrace]:
    """Context in which the function is traced for its shapes; what runs outside meanwhile."""
    outer = trace.outer
    trace.outer = abstract = outer if isinstance(outer, AbstractTrace) else AbstractTrace(name)
    try:
        with mode.activate_trace(trace), uncounted():
            yield abstract
    finally:
        trace.outer = outer


def has_shapes_only(trace: Any, x: Any) -> bool:
    """Whether a write to a tensor is one in a function that does not run, to a tensor from outside of that."""
    abstract = isinstance(trace.outer, AbstractTrace)
    return abstract and type(x) is BatchedTensor and x.trace is trace and type(x.payload.value) is not AbstractTensor


@contextmanager
def body_of(trace: Any, name: str, old: Any, some: bool) -> Iterator[None]:
    """Context in which a user's function runs as a body: for `some` examples, or to be recorded, it may not write."""
    outer = trace.outer
    while type(outer) is type(trace):
        outer = outer.outer
    alone = old is None and (some or not (outer is None or isinstance(outer, AbstractTrace)))
    if alone:
        trace.bodies.append((name, number(), []))
    try:
        yield
    finally:
        if alone:
            trace.bodies.pop()


def require_inside(trace: Any, x: Any) -> None:
    """Refuse a write in a body to a tensor of the mapped function around it.

    All examples run what some leave alone, so that the write would reach all; what is recorded has no place for it.

    Raises
    ------
    TraceError : the tensor is from outside the body.
    """
    name, first, given = trace.bodies[-1] if trace.bodies else ("", 0, ())
    if type(x) is BatchedTensor and x.payload.number < first and not any(x is own for own in given):
        raise TraceError(
            f"vmap: {name}: a function that it runs writes to a tensor of shape {tuple(x.shape)} from outside; return "
            "the new value instead"
        )


class BodyOfAll(Body):
    """One iteration of all examples.

    Attributes
    ----------
    example : the iteration as it is for one.
    loop : the loop, which can `carry` what its example carries on.
    """

    __slots__ = ("example", "loop")

    example: Body
    loop: Any

    def keep(self, goes_on: TensorBase, kept: Sequence[bool]) -> None:
        """Let examples of a `vmap` around keep what they have; the example's own tape has to know of it, too."""
        trace = self.loop.trace
        with trace.reopened():
            keep(self.example, trace.wrap(Batched(goes_on, False, trace)), kept)
        self.loop.carry(self)


def keep(body: Body, goes_on: TensorBase, kept: Sequence[bool]) -> None:
    """Let an example that is done keep what it has; `kept` says what it hands through anyway."""
    if isinstance(body, BodyOfAll):
        body.keep(goes_on, kept)
        return
    body.carried = [
        was if same else REGISTRY["where"](goes_on, new, was) for new, was, same in zip(body.carried, body.inputs, kept)
    ]
