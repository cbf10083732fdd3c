"""Gradient checkpointing: nothing is saved inside a function, which runs again when backward needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from common.autograd.backward import relay, view_of
from common.autograd.backward_pass import collect
from common.autograd.region import Recorded, RegionOp, captured_edges, outputs_of
from common.core import mode
from common.core.errors import GradientError
from common.core.source_lines import locate, user_frame, warn_user
from common.core.tree import flatten, unflatten
from common.random import generator as random
from common.tensor import write_log
from common.tensor.base import TensorBase
from common.tensor.external_writes import exposed, seal
from common.tensor.node import Edge, Node, next_number
from common.tensor.observers import saved_tensors_hooks
from common.tensor.read_saved import with_edge
from common.tensor.write_log import postpone


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] | None = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what its ops save; backward runs it again on the same arguments.

    Arguments and captured leaves must stay as they are until then, as values that an op has saved. The call is one node
    of the tape. Bits are those of a `function`: contributions to each argument and to each tensor
    that `function` uses are totalled inside.

    Parameters
    ----------
    function : called with the other arguments; the same results each time.
    use_reentrant : accepted, as in PyTorch; there is one implementation, which has the limits of neither. PyTorch asks
        for it, so a call without it warns.
    preserve_rng_state : draw the same random numbers when running again.
    context_fn : gives two context managers: in the first the function runs at first, in the second when it runs again.
    determinism_check, debug, early_stop : accepted, as in PyTorch; shapes of results are always compared.

    Raises
    ------
    GradientError : in backward, if running again gave results of other shapes, or what it reads was overwritten.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([0.0], requires_grad=True)
    >>> checkpoint(lambda x: tw.exp(x) * 3, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([3.])
    """
    if use_reentrant is None:
        _ask_for_reentrant("checkpoint")
    first, second = (context_fn or noop_context_fn)()
    if not mode.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    leaves, structure = flatten((args, kwargs))
    arguments = [view_of(x) if isinstance(x, TensorBase) and x.requires_grad else x for x in leaves]
    start = next_number()
    try:
        with first, _Discarding(lambda x: None, _never), random.counted() as drawn:
            returned = _call(function, arguments, structure)
    except _NeedsSaved:
        if context_fn is not None:
            raise GradientError(
                "a checkpointed function that has a context_fn cannot call backward on what it computes inside"
            ) from None
        with _State(drawn.count) if _drew(drawn.count) else nullcontext(), random.counted() as drawn:
            returned = _call(function, arguments, structure)
    results, out_structure = flatten(returned)
    recorded = [x for x in results if isinstance(x, TensorBase) and x.requires_grad]
    if not recorded:
        return returned
    order = collect([x.edge for x in recorded], start)
    views = [(x.edge, view.edge) for x, view in zip(leaves, arguments) if view is not x]
    outputs = [x.edge for x in recorded]
    captured = captured_edges(order, outputs, start, {id(edge) for _, edge in views})
    drew = preserve_rng_state and _drew(drawn.count)
    again = _Again(
        function, structure, [_kept(x) for x in leaves], captured, [tuple(x.shape) for x in recorded],
        _State(drawn.count) if drew else None, second,
    )  # fmt: skip
    op: Any = _CheckpointOp("checkpoint", len(recorded))
    node = Node(op, None, (*(edge for edge, _ in views), *captured), (again,), None, *user_frame(2))
    if write_log.last_write > start:  # an argument that the function itself has overwritten
        for array in _arrays(x for x in again.leaves if type(x) is _Kept):
            postpone(array, start)
    if exposed:
        seal(node)
    made = outputs_of(node, recorded)
    if len(made) > 1:  # each result has a node, as in PyTorch: a hook there runs for this result only
        made = {key: relay(x) for key, x in made.items()}
    return unflatten(out_structure, [made.get(id(x), x) for x in results])


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call functions one after the other, in segments of which all but the last are checkpoints.

    Parameters
    ----------
    functions : a sequence of functions or modules, or a `Sequential`.
    segments : how many; each has as many functions, and the last one the rest.
    input : of the first function.
    use_reentrant, kwargs : see `checkpoint`.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor([0.0], requires_grad=True)
    >>> checkpoint_sequential([tw.exp, tw.square, tw.sqrt], 2, x, use_reentrant=False).backward()
    >>> x.grad
    tensor([1.])
    """
    if use_reentrant is None:
        _ask_for_reentrant("checkpoint_sequential")
        use_reentrant = True
    listed = list(functions) if isinstance(functions, Sequence) else list(functions.children())
    size = len(listed) // segments

    def segment(start: int, end: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for function in listed[start:end]:
                x = function(x)
            return x

        return run

    last = size * (segments - 1)
    for start in range(0, last, size or 1):
        input = checkpoint(segment(start, start + size), input, use_reentrant=use_reentrant, **kwargs)
    return segment(last, len(listed))(input)


def _ask_for_reentrant(name: str) -> None:
    warn_user(
        f"utils.checkpoint.{name}: the use_reentrant parameter should be passed explicitly, because PyTorch has two "
        "implementations and asks for one. use_reentrant=False is recommended; here both values mean the same."
    )


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing: a `context_fn` for `checkpoint`."""
    return nullcontext(), nullcontext()


class set_checkpoint_early_stop:
    """Context manager, accepted as in PyTorch: whether running again stops once backward has what it needs.

    Here a checkpoint differentiates what running again records, so it always runs to the end.

    Parameters
    ----------
    enable : has no effect.
    """

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def _call(function: Callable[..., Any], leaves: list[Any], structure: Any) -> Any:
    args, kwargs = unflatten(structure, leaves)
    return function(*args, **kwargs)


class _NeedsSaved(BaseException):
    """Never leaves `checkpoint`: the function calls backward on what it computes, so it runs again and keeps that."""


def _never(packed: Any) -> Any:
    raise _NeedsSaved


def _drew(count: Any) -> bool:
    """Whether random numbers were drawn, or may have been."""
    return type(count) is not int or count > 0


class _Discarding(saved_tensors_hooks):
    """Nothing is kept; in a trace nothing is kept anyway."""

    in_a_trace = ""


class _State:
    """The state of the default generator before a call that drew `count` numbers."""

    def __init__(self, count: Any) -> None:
        with mode.no_grad():
            self._offset = random.default_generator.offset.clone() - count

    def __enter__(self) -> None:
        offset = random.default_generator.offset
        with mode.no_grad():
            self._now = offset.clone()
            offset.copy_(self._offset)

    def __exit__(self, *exc: object) -> None:
        with mode.no_grad():
            random.default_generator.offset.copy_(self._now)


class _Kept(NamedTuple):
    """An argument: not a tensor with a history, which that would keep alive; one without is kept `itself`.

    Attributes
    ----------
    level, tangent : its forward-mode tangent, and the level that has it.
    """

    payload: Any
    edge: Edge
    itself: Any
    level: Any
    tangent: Any


def _kept(x: Any) -> Any:
    if not isinstance(x, TensorBase):
        return x
    trace = mode.current_trace()
    itself = x if trace is None and x.edge is None else None
    level = mode.dual_level.get() if mode.tracing else None
    tangent = None if level is None else level.tangent(x)
    return _Kept(x.payload if trace is None else trace.payload(x), x.edge, itself, level, tangent)


def _arrays(holders: Iterable[Any]) -> list[np.ndarray]:
    """Payloads that are arrays, not values of a trace; a node has none."""
    payloads = [getattr(x, "payload", None) for x in holders]
    return [x for x in payloads if isinstance(x, np.ndarray)]


class _Again(NamedTuple):
    """The state that running a function again needs.

    Attributes
    ----------
    leaves, structure : the arguments.
    captured : edges of other tensors that it uses.
    shapes : of the results that require grad.
    state : of the random generator, None if nothing was drawn.
    around : the context in which the function runs.
    """

    function: Callable[..., Any]
    structure: Any
    leaves: list[Any]
    captured: list[Edge]
    shapes: list[Any]
    state: _State | None
    around: Any

    def run(self) -> tuple[list[TensorBase], list[Edge], int]:
        """Results that require grad, edges of the arguments that do, and the number from which on nodes are new."""
        arguments, edges = [], []
        with mode.enable_grad():
            for x in self.leaves:
                if type(x) is _Kept:
                    tensor = with_edge(x.payload, x.edge) if x.itself is None else x.itself
                    if x.tangent is not None and x.level is mode.tangents_around():
                        x.level.set(tensor, x.tangent)
                    if x.edge is not None:
                        tensor = view_of(tensor)
                        edges.append(tensor.edge)
                    x = tensor
                arguments.append(x)
            start = next_number()
            with self.around, self.state or nullcontext():
                returned = _call(self.function, arguments, self.structure)
        results = [x for x in flatten(returned)[0] if isinstance(x, TensorBase) and x.requires_grad]
        return results, edges, start


class _CheckpointOp(RegionOp):
    """The op of a checkpoint's node; its rule runs the function again and differentiates that."""

    def arrays(self, saved: tuple[_Again]) -> list[np.ndarray]:
        """Arrays that the function reads again: tensors among its arguments, and leaves that it captured."""
        (again,) = saved
        return [*_arrays(x for x in again.leaves if type(x) is _Kept), *_arrays(again.captured)]

    def backward(self, saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Contributions to the arguments and the captured tensors, each totalled inside."""
        (again,) = saved
        create_graph = mode.is_grad_enabled()
        results, edges, start = again.run()
        if [tuple(x.shape) for x in results] != again.shapes:
            code = getattr(again.function, "__code__", None)
            file, line, name = locate(code, 0) if code is not None else ("<unknown>", 0, repr(again.function))
            raise GradientError(
                f"checkpoint: {name} at {file}:{line} gave results of shapes {again.shapes} at first and of "
                f"{[tuple(x.shape) for x in results]} when it ran again for backward; it has to compute the same"
            )
        outside = (*(x.edge for x in again.leaves if type(x) is _Kept and x.edge is not None), *again.captured)
        inner = Recorded([x.edge for x in results], [*edges, *again.captured], start, outside)
        with mode.GradSwitch(create_graph):
            return self.contributions(inner, (g,) if self.nout == 1 else g, needs, retain=False)


__all__ = ["checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_early_stop"]
