"""A compiled call, ready to leave the process: its call table, and names of arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ArgumentError
from common.core.polynomials import Guard
from common.core.tree import flatten
from common.tensor.base import TensorBase
from static.export.program_file import example_of
from static.jit.function import CompiledFunction
from static.lowering.ir.step import Step
from static.lowering.memory.call_table import Frame
from static.tracing.signature import native_array


class CompiledCall(NamedTuple):
    """A compiled call.

    Attributes
    ----------
    name : an identifier.
    frame : sizes, arguments and kernel calls.
    inputs, outputs : names of the arguments in the frame; an output that is returned is named after its first place.
    places : of the tensors that are returned, the outputs that they are.
    state : what the last inputs are: arrays as they are now, not copied.
    guards : what sizes must fulfil.
    steps : of the frame's calls: what each computes, with the user's lines.
    """

    name: str
    frame: Frame
    inputs: list[str]
    outputs: list[str]
    places: list[int]
    state: list[Any]
    guards: Sequence[Guard]
    steps: Sequence[Step]


def compiled_call(
    caller: str, f: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str | None = None
) -> CompiledCall:
    """Compile a call whose results are not recorded.

    Parameters
    ----------
    caller : the function that asks, for messages.
    args, kwargs : an example of the arguments; without any, `f` is a compiled function that has been called.
    name : of the program; that of `f` by default.

    Raises
    ------
    ArgumentError : `f` is no function, is interpreted, or has no name that is an identifier.
    """
    target = f.target if isinstance(f, CompiledFunction) else f
    if not callable(target):
        raise ArgumentError(f"{caller}() takes a function or a module, not {type(f).__name__}")
    if not (args or kwargs):
        if not isinstance(f, CompiledFunction):
            raise ArgumentError(f"{caller}() needs an example of the arguments, or a compiled function")
        args, kwargs = example_of(f.newest)
    leaves, structure = flatten((tuple(args), dict(kwargs)))
    for i, x in enumerate(leaves):
        if isinstance(x, (TensorBase, np.ndarray, np.generic)):
            leaves[i] = native_array(np.asarray(x.payload if isinstance(x, TensorBase) else x), i)
    how = f.control_flow if isinstance(f, CompiledFunction) else None
    traced: Any = CompiledFunction(target, control_flow=how).prepare(leaves, structure, None)[0]
    own = name or traced.name.strip("<>")
    if not own.isidentifier():
        raise ArgumentError(f"{caller}(): {own!r} is no name of a function: give one with name=")
    executable = traced.executable
    if executable is None:
        raise ArgumentError(f"{caller}(): the function is interpreted, and has no kernels")
    names = [f"x{i}" for i in range(len(traced.positions))]
    names += [getattr(source.owner, "name", "") or f"state{i}" for i, (_, source) in enumerate(traced.captured)]
    places = list(traced.places)
    first = {k: i for i, k in reversed([*enumerate(places)])}
    outputs = [f"result{first[k]}" for k in range(len(traced.raw.outputs) - len(traced.grad_targets))]
    outputs += [f"{getattr(x, 'name', '') or f'tensor{i}'}.grad" for i, x in enumerate(traced.grad_targets)]
    state = [source.payload for _, source in traced.captured]

    with executable.known():
        lowered = executable.lowered
    return CompiledCall(own, lowered.frame, names, outputs, places, state, traced.trace.guards, lowered.steps)
