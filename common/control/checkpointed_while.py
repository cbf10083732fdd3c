"""A while loop that keeps a few states for its gradient, however often it runs: thinning by doubling.

Every state is kept until there are as many as may be kept; then every second one is dropped, and from there on every
second state is kept, then every fourth, and so on. So of T iterations between k / 2 and k states are there in the end,
one per `stride` iterations. The gradient goes through these segments from the last to the first. It runs the
iterations of a segment again, from the state that was kept, as a loop like any other, and differentiates that.

The gradient is a loop over segments, made of the same parts as all control flow; so it is the same in both engines, and
can be differentiated again. Contributions to one value are totalled per segment first.

References
----------
Wang, Moin, Iaccarino, Minimal repetition dynamic checkpointing algorithm for unsteady adjoint calculation, 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from common.control.body import Body, Cotangents, as_tensors, id_of, leaf, owned, payload_of, pulled, tensor_of
from common.control.loop import LoopOp, Request, Step, attach, run_loop, trace_once
from common.control.shape_trace import AbstractTensor, AbstractTrace
from common.core import mode
from common.core.dtypes import int64
from common.core.errors import ArgumentError
from common.core.op import REGISTRY
from common.ops.create.creation import full_, made
from common.ops.shape.cat import cat
from common.random.generator import default_generator
from common.tensor.base import TensorBase, wrap
from common.tensor.node import Edge, Node, next_number
from common.tensor.read_saved import with_edge

Condition = Callable[[list[TensorBase]], TensorBase]

NAME = "while_loop"


class Thinning(NamedTuple):
    """A while loop to be run that keeps at most `size` states for its gradient.

    Attributes
    ----------
    level : that in which `step` gives its leaves the tangents that are carried beside them.
    """

    step: Step
    holds: Condition
    given: list[TensorBase]
    size: int
    level: Any = None


def run_thinned(asked: Thinning) -> list[TensorBase]:
    """Run such a loop, and put it on the tape if a gradient may be wanted.

    Raises
    ------
    ArgumentError : the size is less than 2, or the body writes to a tensor from outside.
    """
    step, holds, given, size, _ = asked
    if size < 2:
        raise ArgumentError(f"while_loop: checkpoint is {size}; at least two states are kept")
    if mode.tracing and (level := mode.dual_level.get()) is not None:
        pushed: list[TensorBase] = level.push(asked)
        return pushed
    request = Request(NAME, step, given, [], [], None, holds, False, None)
    watching = _Watching(NAME)
    with mode.activate_trace(watching):
        body = trace_once(request, None)
    edges = [*(x.edge for x in given), *body.captured]
    if not mode.is_grad_enabled() or all(edge is None for edge in edges):
        return run_loop(request)[0]
    run = _run if mode.current_trace() is None else _record
    with mode.no_grad():
        ran = run(step, holds, given, size // 2, watching.draws)
    results = [wrap(x) for x in ran.results]
    thinned = Thinned(asked, ran, body.captured)
    attach(_ThinnedOp(NAME, 2 * len(given)), edges, thinned, results)
    return results


class _Watching(AbstractTrace):
    """A run for shapes that notes what cannot be done twice."""

    draws = False

    def set_elements(self, x: TensorBase, new: Any) -> None:
        """A write: drawing again is possible, other state would be written twice.

        Raises
        ------
        ArgumentError : `x` is a tensor from outside.
        """
        if x is default_generator.offset:
            self.draws = True
        elif not isinstance(x, AbstractTensor):
            raise ArgumentError(
                f"while_loop: with checkpoint the function runs again for the gradient, but it writes to a tensor of "
                f"shape {tuple(x.shape)} from outside; carry the value instead"
            )


class _Ran(NamedTuple):
    """The results and checkpoints of a run.

    Attributes
    ----------
    results : payloads of what is carried at the end.
    kept : payloads of stacks of kept states, and of the generator's offsets if numbers are drawn.
    lengths : a payload: how many iterations follow each kept state before the next; 0 for rows that are not used.
    segments : how many rows there are.
    """

    results: list[Any]
    kept: list[Any]
    lengths: Any
    segments: Any


def _run(step: Step, holds: Condition, given: list[TensorBase], half: int, draws: bool) -> _Ran:
    """Run in Python."""
    state: list[Any] = [x.payload for x in given]
    body: Body | None = None
    kept = [np.empty((2 * half, *x.shape), x.dtype) for x in state]
    if draws:
        kept.append(np.empty(2 * half, np.int64))
    done, count, stride = 0, 0, 1
    while bool(holds([leaf(x, False) for x in state]).payload.item()):
        if done == count * stride:
            if count == 2 * half:
                for stack in kept:
                    stack[:half] = stack[::2].copy()
                count, stride = half, 2 * stride
            for stack, x in zip(kept, [*state, *([default_generator.offset.payload] if draws else [])], strict=True):
                stack[count] = x
            count += 1
        body = step([leaf(x, False) for x in state], None)
        state = [x.payload for x in body.carried]
        done += 1
    results = [np.array(x, order="C") for x in state] if body is None else [owned(x, body) for x in body.carried]
    lengths = np.minimum(done - stride * np.arange(count, dtype=np.int64), stride)
    return _Ran(results, [x[:count] for x in kept], lengths, count)


def _record(step: Step, holds: Condition, given: list[TensorBase], half: int, draws: bool) -> _Ran:
    """Run in a trace: a loop over phases, in each of which as many states are kept as were dropped."""
    one, zero = (tensor_of(made(full_, shape=(), value=n, dtype=int64)) for n in (1, 0))
    n = len(given)

    def rows(start: Sequence[TensorBase], stride: TensorBase, count: int) -> tuple[list[TensorBase], list[TensorBase]]:
        """Keep `count` states, `stride` iterations apart; what is carried: whether it goes on, how often, the state."""

        def iteration(leaves: list[TensorBase], _: Body | None) -> Body:
            body = Body(leaves, next_number())
            new = step(leaves[3:], None).carried
            body.carried = [leaves[0] + one, holds(new), leaves[2] + one, *new]
            return body

        def segment(leaves: list[TensorBase], _: Body | None) -> Body:
            body = Body(leaves, next_number())
            body.stacked = [*leaves[1:], *([default_generator.offset.clone()] if draws else [])]
            within = Request(NAME, iteration, [zero, *leaves], [], [], None, goes_on, False, None)
            body.carried = run_loop(within)[0][1:]
            return body

        def goes_on(leaves: list[Any]) -> Any:
            return leaves[1] & (leaves[0] < stride)

        carried, stacked, _ = run_loop(Request(NAME, segment, start, [], [], count, None, False, None))
        return carried, stacked

    def phase(leaves: list[TensorBase], _: Body | None) -> Body:
        body = Body(leaves, next_number())
        stride = leaves[0] + leaves[0]
        carried, new = rows(leaves[1 : n + 3], stride, half)
        kept = [cat([old[::2], more], 0) for old, more in zip(leaves[n + 3 :], new, strict=True)]
        body.carried = [stride, *carried, *kept]
        return body

    carried, kept = rows([holds(given), zero, *given], one, 2 * half)
    start = [one, *carried, *kept]
    ended, _, _ = run_loop(Request(NAME, phase, start, [], [], None, lambda leaves: leaves[1], False, None))
    stride, done, stacks = ended[0], ended[2], ended[n + 3 :]
    lengths = payload_of(REGISTRY["minimum"](REGISTRY["sub"](done, stacks[0]), stride))
    return _Ran([payload_of(x) for x in ended[3 : n + 3]], [payload_of(x) for x in stacks[1:]], lengths, 2 * half)


class Thinned:
    """The loop that ran; the saved value of its node.

    Attributes
    ----------
    captured : edges to what the function uses from outside.
    """

    node: ref[Node]

    def __init__(self, asked: Thinning, ran: _Ran, captured: list[Edge]) -> None:
        self.step, self.level = asked.step, asked.level
        self.ran, self.captured = ran._replace(results=[]), captured
        self.floats = [x.dtype.kind == "f" for x in ran.results]

    def pull(self, g: Sequence[Any]) -> tuple[Any, ...]:
        """Contributions to what the loop began with and to what is captured, by a loop over segments.

        Raises
        ------
        NotDefinedError : tensors have forward-mode tangents, and the pass is recorded, or inside `vmap`.
        """
        around = mode.tangents_around()
        if around is None or self.level is None:
            return self._pulled(g)
        if mode.is_grad_enabled() or mode.dual_level.get() is None:
            around.refuse_all(f"the gradient of {NAME}")
        given = [None if c is None else tensor_of(c) for c in g]
        for c in given:
            if c is not None:
                around.hand_over(c, self.level)
        with mode.activate_dual_level(self.level):
            found = self._pulled(given)
        for c in found:
            if c is not None:
                self.level.hand_over(c, around)
        return found

    def _pulled(self, g: Sequence[Any]) -> tuple[Any, ...]:
        recording = mode.is_grad_enabled()
        n, kept = len(self.floats), self.ran.kept
        finals = [
            None if not wanted else tensor_of(made(full_, shape=x.shape[1:], value=0.0, dtype=x.dtype))
            if c is None else tensor_of(c)
            for wanted, x, c in zip(self.floats, kept, g)
        ]  # fmt: skip
        hidden = [None if c is None else tensor_of(c) for c in g[n:]]
        stacks: list[TensorBase] = [
            with_edge(x, (self.node(), n + k)) if recording and self.floats[k] else wrap(x)
            for k, x in enumerate(kept[:n])
        ]
        stacks += [wrap(x) for x in kept[n:]]

        def step(leaves: list[TensorBase], _: Body | None) -> Body:
            place = iter(leaves)
            cotangents = [None if c is None else next(place) for c in finals]
            length, states = next(place), [next(place) for _ in range(n)]
            offset = [next(place) for _ in kept[n:]]
            more = [None if c is None else next(place) for c in hidden]
            start = next_number()
            inputs = [x if x.requires_grad else leaf(payload_of(x), True) for x in states]
            segment = Body(inputs, start)
            with mode.enable_grad(), _drawing_from(*offset) if offset else nullcontext():
                segment.carried = self._again(inputs, length)
            out = pulled(segment, Cotangents(cotangents, [], {}, more), (n, 0))
            out.inputs = leaves
            return out

        rows = [wrap(self.ran.lengths), *stacks, *(c for c in hidden if c is not None)]
        request = Request(
            NAME, step, [c for c in finals if c is not None], rows, [], self.ran.segments, None, True, None
        )
        carried, _, sums = run_loop(request)
        back = iter(carried)
        out: list[Any] = [next(back) if wanted else None for wanted in self.floats]
        out += [sums.get(id_of(edge)) for edge in self.captured]
        return tuple(out if as_tensors() else map(payload_of, out))

    def _again(self, inputs: list[TensorBase], length: TensorBase) -> list[TensorBase]:
        """So many iterations, from a kept state."""
        zero = tensor_of(made(full_, shape=(), value=0, dtype=int64))

        def iteration(leaves: list[TensorBase], _: Body | None) -> Body:
            body = Body(leaves, next_number())
            body.carried = [leaves[0] + 1, *self.step(leaves[1:], None).carried]
            return body

        def goes_on(leaves: list[Any]) -> Any:
            return leaves[0] < length

        request = Request(NAME, iteration, [zero, *inputs], [], [], None, goes_on, False, None)
        return run_loop(request)[0][1:]


@contextmanager
def _drawing_from(kept: TensorBase) -> Any:
    """The default generator stands where it stood, and afterwards where it stands now."""
    offset = default_generator.offset
    with mode.no_grad():
        now = offset.clone()
        offset.copy_(kept)
    try:
        yield
    finally:
        with mode.no_grad():
            offset.copy_(now)


class _ThinnedOp(LoopOp):
    """The op of such a loop's node."""

    def arrays(self, saved: tuple[Any]) -> list[np.ndarray]:
        """Arrays that the function reads again: leaves that it captured."""
        payloads = [getattr(edge, "payload", None) for edge in saved[0].captured]
        return [x for x in payloads if isinstance(x, np.ndarray)]
