"""Tensors that show one memory: a write to one of them is a write to all.

A *family* is a tensor, the base, and its views, each with the chain of view ops that leads to it. When a write has
history, the base gets a new place on the tape: that of the written value, or, if a view was written, of `view_set`.
Then every live view is made anew from the base, at once and in order of creation, so that looking at a graph never
changes it. In a trace, where there is no memory, elements take the same way as histories.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any
from weakref import ref

import numpy as np

from common.autograd import hooks
from common.core import mode
from common.core.dispatch import Attrs, apply
from common.core.errors import GradientError, ShapeError
from common.core.shapes import overlapping
from common.evaluate.specialise import Recipe, recipe
from common.ops.shape.view_scatter import path_along, placed, view_set
from common.tensor import base as tensors
from common.tensor import hook_handles
from common.tensor.node import Node
from common.tensor.view_families import Family, Opaque, Path, Place, ViewStep, family_of, known_family, steps_to
from common.tensor.write_log import repeated

#: Writes that give all elements of a tensor that are one element of memory one value.
ONE_VALUE = frozenset({"fill", "zero", "masked_fill"})
#: Writes after which nothing depends on the old contents.
_FILLS = frozenset({"fill", "zero"})

#: Why a view without a family may not be written with history, by the last entry of its place.
_REFUSALS = {
    why: f"A view was created in {why} mode and is being modified inplace with grad mode enabled, or a view of a view "
    "which was created so is being modified. Given that this use case is ambiguous and error-prone, it is forbidden. "
    f"Move both the view and the write inside the {block} block, or both outside"
    for why, block in (("no_grad", "no_grad"), ("inference", "inference_mode"))
} | {
    "left": "the tensor that this view shows was given other memory by an assignment to .data, so it is not known what "
    "the view belongs to; write to a copy (.clone())",
}


def path_of(x: Any, name: str) -> Path:
    """The chain to a view that may be written with history.

    Raises
    ------
    GradientError : the view was made without recording, by a user-defined function or an op with several views, or it
        shows a leaf that requires grad.
    ShapeError : several of its elements are one element of memory.
    """
    place = getattr(x, "_family", None)
    if type(place) is tuple and place[0] is None:
        raise _refusal(place, name)
    family, base, steps = family_of(x)
    if family is not None and family.is_quiet(known_family(x)):
        raise _refusal((None, base, None, None, None, "no_grad"), name)
    shown = place[1] if type(place) is tuple else base
    if shown is not x and shown.requires_grad and shown.is_leaf:
        raise GradientError(
            f"a view of a leaf Variable that requires grad is being used in an in-place operation ({name}_). Use "
            "no_grad() for an update of a parameter, or the functional form."
        )
    for step in steps:
        if step.position is not None and step.op.parts != "slices":
            function = step.op.node_name.rstrip("0123456789").removesuffix("Backward")
            raise _one_of_several(name, step.position, function)
    if (name not in _FILLS and repeats(x)) or in_windows(x):
        raise overlap(name)
    return path_along(steps, base)


def _refusal(place: Place, name: str) -> GradientError:
    """The error for a write with history to a view that has no family."""
    why = place[5]
    if type(why) is not Opaque:
        return GradientError(f"{name}_(): {_REFUSALS[why]}")
    if why.several:
        return _one_of_several(name, 0, why.function)
    return GradientError(
        f"{name}_(): Output 0 of {why.function} is a view and is being modified inplace. This view was created "
        "inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
        "view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
        "gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
    )


def _one_of_several(name: str, position: int, function: str) -> GradientError:
    """The error for a write with history to one of the views that a function returns."""
    return GradientError(
        f"{name}_(): Output {position} of {function} is a view and is being modified inplace. This view is the output "
        "of a function that returns multiple views. Such functions do not allow the output views to be modified "
        "inplace; use a slice, or the functional form"
    )


class _Overwritten:
    """The op of a result of a user-defined function whose memory has been written since: it has no gradient any more.

    Parameters
    ----------
    function : its name.
    """

    kind, name, nout = "function", "overwritten", 1
    attrs = saved_inputs = saved_shapes = ()
    saves_output = False
    differentiable = frees = True

    def __init__(self, function: str) -> None:
        self.function = function
        self.node_name = f"{function}Backward"

    def backward(self, saved: Any, attrs: Any, g: Any, needs: Any) -> Any:
        """Refuse to differentiate."""
        raise GradientError(
            f"Output 0 of {self.node_name} is a view and its base or another view of its base has been modified "
            "inplace. This view was created inside a custom Function (or because an input was returned as-is) and the "
            "autograd logic to handle view+inplace would override the custom backward associated with the custom "
            "Function, leading to incorrect gradients. You can fix this by cloning the output of the custom Function."
        )


def in_windows(x: Any) -> bool:
    """Whether elements of a view are shared by windows that overlap; a trace relies on what of its sizes decides."""
    if isinstance(x.payload, np.ndarray):
        return overlapping(x.payload.shape, x.payload.strides)
    _, base, steps = family_of(x)
    if not any(step.op.name == "unfold" and step.attrs["step"] < step.attrs["size"] for step in steps):
        return False
    place = placed(base.shape, path_along(steps, base))
    return place is None or overlapping(*place[1:])


def repeats(x: Any) -> tuple[int, ...]:
    """Dimensions along which all elements of a tensor are one element of memory, as after `expand`."""
    array = x.payload
    if isinstance(array, np.ndarray):
        return () if array.flags.writeable else repeated(array.shape, array.strides)
    _, base, steps = family_of(x)
    place = placed(base.shape, path_along(steps, base)) if steps else None
    return () if place is None else repeated(*place[1:])


def overlap(name: str) -> ShapeError:
    """The error for a write to elements that are one element of memory."""
    return ShapeError(
        f"{name}_(): unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation"
    )


def require_writable(x: Any, name: str) -> None:
    """Refuse a write with history to a tensor that may not have one; see `path_of`."""
    if type(known_family(x)) is tuple or type(getattr(x, "_family", None)) is tuple:
        path_of(x, name)


def stands_alone(x: Any) -> bool:
    """Whether a write with history concerns this tensor only: it has no views, is none, and is no leaf that learns."""
    return getattr(x, "_family", None) is None and not (x._requires_grad and x.grad_fn is None)


def follow(x: Any, value: Any) -> None:
    """Give a tensor the place of `value` on the tape, where one of them has one."""
    if x.grad_fn is not None or value._requires_grad:
        _move(x, value.grad_fn, value.output_nr, value._requires_grad)


def rebind(x: Any, value: Any, name: str, with_history: bool) -> None:
    """After a write: give a tensor, and so its base and all views of that, the place of `value` on the tape.

    In a trace, which has no memory, it is this that gives them the elements of `value`.

    Parameters
    ----------
    with_history : whether anything is to be differentiated.

    Raises
    ------
    GradientError, ShapeError : see `path_of`.
    TraceError : see `static.tracing.trace`.
    """
    trace = mode.current_trace()
    if trace is None and not with_history:
        return
    family, base, steps = family_of(x)
    if trace is not None and family is None and not with_history:
        trace.set_elements(x, value)
        return
    with mode.GradSwitch(with_history):
        if steps and family is not None:
            path = path_of(x, name) if with_history else path_along(steps, base)
            if with_history and (known := getattr(x.grad_fn, "_hooks", None)) is not None:
                known.tensor.pop(x.output_nr, None)  # as in PyTorch: the view gets another node, with hooks of its own
            if not with_history and ((name not in ONE_VALUE and repeats(x)) or in_windows(x)):
                raise overlap(name)
            if trace is None:
                _move(base, _written(base, value, path), 0)
            else:
                new = view_set(base, value, path=path)
                trace.set_elements(base, new)
                if with_history:
                    _move(base, new.grad_fn, new.output_nr, new.requires_grad)
        else:
            if trace is not None:
                trace.set_elements(x, value)
            if with_history:
                follow(x, value)
        if family is not None:
            _regenerate(family, base, trace, with_history)


def part_written(x: Any, value: Any, path: Path, name: str) -> None:
    """After a write of `value` to what `path` shows of `x`, with history and outside traces: x's place on the tape."""
    new = tensors.wrap(x.payload)  # stands for the result of `view_set`, whose elements are in x's memory already
    new.grad_fn, new._requires_grad = _written(x, value, path), True
    rebind(x, new, name, True)


def write_recipe(view: Recipe, part: np.ndarray) -> Recipe:
    """The recipe of `view_set` for a write to what one view op, by its recipe, shows of a base."""
    attrs = Attrs(path=path_along((ViewStep(view.op, view.attrs, None),), None))
    return recipe(view_set, (view.forms[0], (part.shape, part.dtype)), attrs)


def _written(base: Any, value: Any, path: Path) -> Node:
    """The node of a base in which a view was written: that of `view_set`, whose elements are in memory already."""
    from common.core.source_lines import user_frame

    op, attrs = view_set, {"path": path}
    edges = (base.edge, value.edge)
    forms = tuple((x.shape, x.dtype) if edge is not None else None for x, edge in zip((base, value), edges))
    return Node(op, attrs, edges, op.save((base, value), None), forms, *user_frame(3))


#: What the function of a transform has written, that had no history before; None outside one.
_given_history: ContextVar[list[ref[Any]] | None] = ContextVar("twingrad_given_history", default=None)


def note_history(x: Any) -> None:
    """Tell the transform whose function runs that a write is about to give `x` a history, if it has none."""
    if (noted := _given_history.get()) is not None and x.grad_fn is None and not x._requires_grad:
        noted.append(ref(x))


class WrittenInside:
    """Context manager around the function of a transform: it sees which tensors without history get one by a write."""

    def __enter__(self) -> WrittenInside:
        self._outer, self._noted = _given_history.get(), list[ref[Any]]()
        self._token = _given_history.set(self._noted)
        return self

    def __exit__(self, *exc: object) -> None:
        _given_history.reset(self._token)

    def end(self, returned: Iterable[Any], goes_on: bool) -> None:
        """Make those constants again that outlive the function: their history is the transform's own.

        Parameters
        ----------
        returned : what the function returned, which keeps it.
        goes_on : whether something outside differentiates that history, too: an outer transform decides then.
        """
        if goes_on:
            if self._outer is not None:
                self._outer.extend(self._noted)
            return
        kept = set(map(id, returned))
        for x in (r() for r in self._noted):
            if x is not None and id(x) not in kept:
                x.grad_fn, x.output_nr, x._requires_grad = None, 0, False


def _move(x: Any, node: Node | None, output: int, requires_grad: bool = True) -> None:
    """A new place on the tape; a retained gradient is that of the new place."""
    kept = hooks.retains_grad(x)
    if kept:
        del hook_handles.hooks_of(x.grad_fn).retained[x.output_nr]
    note_history(x)
    x.grad_fn, x.output_nr, x._requires_grad = node, output, requires_grad
    if kept and node is not None:
        hooks.retain_grad(x)


def _regenerate(family: Family, base: Any, trace: Any, with_history: bool) -> None:
    """Make all live views anew from the base; what user-defined functions made of it has no gradient any more."""
    if with_history and family.opaque:
        for shown in family.opaque:
            for view in [r() for r in shown.views]:
                if view is not None and view._requires_grad:
                    from common.core.source_lines import user_frame

                    op: Any = _Overwritten(shown.function)
                    _move(view, Node(op, None, (), (), (), *user_frame(3)), 0)
    alive = family.alive()
    for view in alive:
        made = replayed_from(base, steps_to(view._family))
        if trace is not None:
            trace.set_elements(view, made)
        if with_history and not family.is_quiet(view._family):
            _move(view, made.grad_fn, made.output_nr, made.requires_grad)
    family.views = [ref(view) for view in alive]  # without those that were made on the way


def replayed_from(base: Any, steps: tuple[ViewStep, ...]) -> Any:
    """Apply a chain of view ops to a tensor."""
    x = base
    for step in steps:
        x = step.taken(apply(step.op, (x,), step.attrs))
    return x
