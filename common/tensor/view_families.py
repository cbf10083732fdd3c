"""Tensors that show one memory: a *family* is a tensor, the base, and its views, each with the chain that leads to it.

A view that was made while nothing was recorded, or that a user-defined function has returned, is in no family, but
knows the base whose memory it shows: a recorded write to it would be one to the base that no chain describes.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from common.core import mode
from common.core.op import Op
from common.tensor.write_log import writes_to

_grad_enabled = mode.grad_mode.get


class Family:
    """A tensor and its live views.

    Attributes
    ----------
    views : in order of creation, held weakly; dead entries are dropped as the list doubles.
    opaque : what user-defined functions returned of its memory.
    quiet : in a trace, places of views that were made without recording.
    """

    __slots__ = ("__weakref__", "limit", "opaque", "quiet", "views")

    def __init__(self) -> None:
        self.views: list[ref[Any]] = []
        self.limit = 16
        self.opaque: tuple[Opaque, ...] = ()
        self.quiet: tuple[Place, ...] = ()

    def drop_dead(self) -> None:
        """Forget views that are gone."""
        self.views = [r for r in self.views if r() is not None]
        self.limit = 2 * len(self.views) + 16

    def is_quiet(self, place: Any) -> bool:
        """Whether in a trace a view, or what it is a view of, was made without recording."""
        while self.quiet and type(place) is tuple:
            if any(place is quiet for quiet in self.quiet):
                return True
            place = place[2]
        return False

    def alive(self) -> list[Any]:
        """The live views in order of creation."""
        return [view for view in [r() for r in self.views] if view is not None]


class ViewStep(NamedTuple):
    """One op of the chain to a view; `position` is that of the result among several, or of the only part of a split."""

    op: Op
    attrs: Any
    position: int | None

    def taken(self, result: Any) -> Any:
        """The view's part of the op's result."""
        return result[self.position or 0] if type(result) is tuple else result


class Opaque:
    """Results of a user-defined function that show memory of its arguments: what `backward` says of them holds only
    until a recorded write, and no chain of view ops leads to them.

    Attributes
    ----------
    function : its name.
    several : whether the function has several results.
    views : the results and their views, held weakly.
    """

    __slots__ = ("function", "several", "views")

    def __init__(self, function: str, several: bool) -> None:
        self.function, self.several = function, several
        self.views: list[ref[Any]] = []


#: A view's place in its family, a plain tuple because every view makes one: the family, its base, the `Place` of
#: the operand (None for the base itself), op, attributes and position of the last step. A view that was made without
#: recording has no family, but knows its base; in place of a position stands the mode, or what a function returned, and
#: in place of attributes, under `inference_mode`, how many writes there had been.
#: Views keep the base, as in PyTorch; the base keeps its family, and that keeps nobody.
Place = tuple[Family | None, Any, Any, Op | None, Any, Any]

_NO_GRAD = (None, None, None, "no_grad")

#: The place of a view whose base has left for other memory.
LEFT: Place = (None, None, None, None, None, "left")


def note_view(x: Any, view: Any, op: Op, attrs: Any, position: int | None = None) -> None:
    """Note that `view`, a result of `op`, shows elements of `x`."""
    trace: Any = mode.current_trace() if mode.tracing else None
    if trace is None and not _grad_enabled():
        view._family = unrecorded(x)
        return
    captured = trace is not None and isinstance(x.payload, np.ndarray)
    known = trace.families.get(id(x)) if captured else getattr(x, "_family", None)
    if type(known) is tuple:
        family, base, *_ = known
        if family is None:
            show_unrecorded(view, known)
            return
    else:
        family, base = known, x
        if family is None:
            family = Family()
            if captured:
                trace.families[id(x)] = family
            else:
                x._family = family
        known = None
    place = view._family = (family, base, known, op, attrs, position)
    if not _grad_enabled():
        family.quiet += (place,)
    views = family.views
    views.append(ref(view))
    if len(views) > family.limit:
        family.drop_dead()


def unrecorded(x: Any) -> Place:
    """The place of a view of `x` that is made while nothing is recorded."""
    known = getattr(x, "_family", None)
    inference = mode.tracing and mode.is_inference_mode_enabled()
    if type(known) is not tuple:
        base = x
    elif known[0] is None:
        return (*known[:4], writes_to(x.payload), known[5]) if inference and known[5] == "inference" else known
    else:
        base = known[1]
    return (None, base, None, None, writes_to(x.payload), "inference") if inference else (None, base, *_NO_GRAD)


def is_outdated(x: Any) -> bool:
    """Whether the memory of a view made under `inference_mode` has been written since: its history would be another."""
    place = getattr(x, "_family", None)
    return type(place) is tuple and place[5] == "inference" and writes_to(x.payload) != place[4]


def show_unrecorded(view: Any, place: Place) -> None:
    """Give a view the place of what it is made of, which has no family."""
    view._family = place
    if type(place[5]) is Opaque:
        place[5].views.append(ref(view))


def make_opaque(y: Any, x: Any, function: str, several: bool) -> None:
    """Note that `y`, which a user-defined function has returned as (one of) its result(s), shows memory of `x`."""
    known = getattr(x, "_family", None)
    base = known[1] if type(known) is tuple else x
    if base is None:
        return
    trace = mode.current_trace()
    if trace is not None:
        if type(getattr(y, "_family", None)) is tuple:
            leave_family(y)
        trace.note_alias(y, base)
        return
    family = base._family if type(getattr(base, "_family", None)) is Family else None
    if family is None:
        family = base._family = Family()
    shown = Opaque(function, several)
    family.opaque += (shown,)
    show_unrecorded(y, (None, base, None, None, None, shown))


def make_only(view: Any) -> None:
    """Note that a view is all that a function with several views, such as a split, has returned."""
    place = getattr(view, "_family", None)
    if type(place) is tuple and place[0] is not None:
        view._family = (*place[:5], 0)


def is_recorded(x: Any) -> bool:
    """Whether a write to a tensor concerns the tape: it requires grad, or the tensor whose memory it shows does."""
    if x._requires_grad:
        return True
    place = getattr(x, "_family", None)
    return type(place) is tuple and place[1] is not None and place[1]._requires_grad


def note_array(x: Any, view: Any, op: Op, attrs: Any, position: int | None = None) -> None:
    """`note_view` where the result shows the operand's memory; some reshapes are copies."""
    array, y = x.payload, view.payload
    owner = y.base
    if owner is array or (owner is not None and owner is array.base) or np.may_share_memory(y, array):
        note_view(x, view, op, attrs, position)


def known_family(x: Any) -> Any:
    """The family of a base, the place of a view, None for other tensors."""
    trace = mode.current_trace()
    if trace is not None and isinstance(x.payload, np.ndarray):
        return trace.families.get(id(x))
    return getattr(x, "_family", None)


def leave_family(x: Any) -> None:
    """Take out a tensor that gets other memory; the views of a base keep the old one and have no family any more."""
    known = getattr(x, "_family", None)
    if type(known) is tuple:
        if known[0] is not None:
            known[0].views = [r for r in known[0].views if r() is not x]
    elif known is not None:
        for view in known.alive():
            view._family = LEFT
    if known is not None:
        x._family = None


def family_of(x: Any) -> tuple[Family | None, Any, tuple[ViewStep, ...]]:
    """The family of a tensor, its base, and the chain to the tensor, which is empty for the base."""
    known = known_family(x)
    return (known[0], known[1], steps_to(known)) if type(known) is tuple else (known, x, ())


def steps_to(place: Place) -> tuple[ViewStep, ...]:
    """The chain to a view."""
    steps: list[ViewStep] = []
    at: Any = place
    while at is not None and at[0] is not None:
        steps.append(ViewStep(*at[3:]))
        at = at[2]
    return tuple(reversed(steps))


def shows_writable(x: Any) -> bool:
    """Whether a tensor is a view of another one, whose memory may be written."""
    known = known_family(x)
    base = known[1] if type(known) is tuple else None
    return base is not None and isinstance(base.payload, np.ndarray) and bool(base.payload.flags.writeable)


#: A chain of view ops: per op its name, and names and values of its attributes.
Path = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
