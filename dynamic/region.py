"""`function`: runs as it is, and is differentiated as one node.

A compiled function is one node of an eager program's tape. So that both engines add gradients in the same order,
the eager `function` is one node too: the contributions to each argument and each captured tensor are totalled
inside, then contributed once (docs/numerics.md, point 5). What is recorded inside stays as the node's saved value.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import MethodType
from typing import Any

from common import mode
from common.autograd.derivatives import view_of
from common.autograd.node import Edge, Node, next_number
from common.autograd.region import Recorded, RegionOp, captured_edges, outputs_of
from common.autograd.tape import collect
from common.boundary import refuse
from common.convert.runtime import convert
from common.create import lift
from common.frames import user_frame
from common.number import Number
from common.pickling import Made
from common.tensor.base import Tensor, TensorBase
from common.tree import flatten, unflatten

_inside: ContextVar[bool] = ContextVar("twingrad_region", default=False)


def function(
    target: Callable[..., Any] | None = None,
    *,
    fuse: bool = True,
    compiler: str | None = None,
    interpret: bool = False,
    passes: Sequence[Callable[..., Any]] | None = None,
    max_traces: int = 64,
    control_flow: str | None = None,
    compile: str = "now",
    memory_budget: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Run a function as it is; the same decorator compiles it in the other engine.

    Called from outside, it is differentiated as one node; inside another `function` or a trace it is a plain call.
    Arrays among the arguments become tensors. Numbers keep float64 precision and give way to the dtypes they meet.

    Parameters
    ----------
    target : the function; omitted when used as a decorator with options.
    fuse, compiler, interpret, passes, max_traces, compile, memory_budget, donate_argnums : options of the compiling
        engine, without effect here.
    control_flow : "convert" rewrites `if`, `while` and `for` as the other engine does, so that bits of gradients are
        equal; other values have no effect.

    Examples
    --------
    >>> import dynamic as tw
    >>> @tw.function
    ... def f(x):
    ...     return x * x
    >>> f(tw.tensor([3.0]))
    tensor([9.])
    """
    if target is None:
        return functools.partial(function, control_flow=control_flow)
    return Region(target, control_flow)


class Region(Made):
    """A function that is differentiated as one node; made by `function`.

    Parameters
    ----------
    target, control_flow : see `function`.
    """

    def __init__(self, target: Callable[..., Any], control_flow: str | None = None) -> None:
        functools.update_wrapper(self, target)
        self._target = convert(target) if control_flow == "convert" else target
        self._maker = "dynamic", "function", (target,), {"control_flow": control_flow}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function as one node, or plainly inside another or a trace."""
        target = self._target
        try:
            leaves, structure = flatten((args, kwargs))
            leaves = [lift(x) for x in leaves]
        except Exception as error:
            refuse(error, target, getattr(target, "__name__", "function"), *args, **kwargs)
            raise
        if _inside.get() or mode.current_trace() is not None:
            args, kwargs = unflatten(structure, leaves)
            return target(*args, **kwargs)
        token = _inside.set(True)
        try:
            return _run(target, leaves, structure)
        finally:
            _inside.reset(token)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As an attribute of a class: a method."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<dynamic.function {getattr(self, '__qualname__', type(self._target).__name__)}>"


@contextlib.contextmanager
def inlining() -> Iterator[None]:
    """A context in which a `function` is a plain call, because something around it is one."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def _run(target: Callable[..., Any], leaves: list[Any], structure: Any) -> Any:
    """Call `target` on views of the arguments that require grad, and put one node on the tape."""
    recording = mode.is_grad_enabled()
    arguments: list[Any] = [Number(x) if type(x) is float else x for x in leaves]
    viewed: list[tuple[Edge, Edge]] = []
    for i, x in enumerate(leaves):
        if recording and isinstance(x, TensorBase) and x.requires_grad:
            arguments[i] = view_of(x)
            viewed.append((x.edge, arguments[i].edge))
    start = next_number()
    args, kwargs = unflatten(structure, arguments)
    results, out_structure = flatten(target(*args, **kwargs))
    results = [float(x) if type(x) is Number else x for x in results]
    recorded = list({id(x): x for x in results if isinstance(x, TensorBase) and x.requires_grad}.values())
    if recorded and recording:
        replaced = _as_node(target, start, viewed, recorded)
        results = [replaced.get(id(x), x) for x in results]
    return unflatten(out_structure, results)


def _as_node(
    target: Callable[..., Any], start: int, viewed: list[tuple[Edge, Edge]], recorded: list[TensorBase]
) -> dict[int, TensorBase]:
    """The results as outputs of one node; without history where `backward` has used it up inside."""
    replaced: dict[int, TensorBase] = {}
    order = collect([x.edge for x in recorded], start)
    if any(node.saved is None for node in order):
        for x in recorded:
            if any(node.saved is None for node in collect([x.edge], start)):
                replaced[id(x)] = Tensor(x.payload)
        recorded = [x for x in recorded if id(x) not in replaced]
        order = collect([x.edge for x in recorded], start)
    if not recorded:
        return replaced
    outputs = [x.edge for x in recorded]
    captured = captured_edges(order, outputs, start, {id(view) for _, view in viewed})
    edges = (*(edge for edge, _ in viewed), *captured)
    saved = Recorded(outputs, [*(view for _, view in viewed), *captured], start, edges)
    op: Any = RegionOp(getattr(target, "__name__", "function"), len(recorded))
    return replaced | outputs_of(Node(op, None, edges, (saved,), None, *user_frame(2)), recorded)
