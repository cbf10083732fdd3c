"""Which tensors show one memory: what a tensor knows of the views of it, and a view of the chain to it."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from common import mode
from common.op import Op

_grad_enabled = mode.grad_mode.get


class Family:
    """A tensor and its live views.

    Attributes
    ----------
    views : in order of creation, held weakly; dead entries are dropped as the list doubles.
    """

    __slots__ = ("__weakref__", "limit", "views")

    def __init__(self) -> None:
        self.views: list[ref[Any]] = []
        self.limit = 16

    def drop_dead(self) -> None:
        """Forget views that are gone."""
        self.views = [r for r in self.views if r() is not None]
        self.limit = 2 * len(self.views) + 16

    def alive(self) -> list[Any]:
        """The live views in order of creation."""
        return [view for view in [r() for r in self.views] if view is not None]


class Step(NamedTuple):
    """One op of the chain to a view; `position` is that of the result, None for an op with one."""

    op: Op
    attrs: Any
    position: int | None


#: What a view knows of its family, a plain tuple because every view makes one: the family, its base, the `Place` of
#: the operand (None for the base itself), op, attributes and position of the last step. A view that was made without
#: recording has no family. Views keep the base, as in PyTorch; the base keeps its family, and that keeps nobody.
Place = tuple[Family | None, Any, Any, Op | None, Any, int | None]

UNRECORDED: Place = (None, None, None, None, None, None)


def note_view(x: Any, view: Any, op: Op, attrs: Any, position: int | None = None) -> None:
    """Note that `view`, a result of `op`, shows elements of `x`."""
    trace: Any = mode.current_trace() if mode.tracing else None
    if trace is None and not _grad_enabled():
        view._family = UNRECORDED
        return
    captured = trace is not None and isinstance(x.payload, np.ndarray)
    known = trace.families.get(id(x)) if captured else getattr(x, "_family", None)
    if type(known) is tuple:
        family, base, *_ = known
        if family is None:
            view._family = known
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
    view._family = (family, base, known, op, attrs, position)
    views = family.views
    views.append(ref(view))
    if len(views) > family.limit:
        family.drop_dead()


def note_array(x: Any, view: Any, op: Op, attrs: Any, position: int | None = None) -> None:
    """`note_view` where the result shows the operand's memory; some reshapes are copies."""
    array, y = x.payload, view.payload
    owner = y.base
    if owner is array or (owner is not None and owner is array.base) or np.may_share_memory(y, array):
        note_view(x, view, op, attrs, position)


def _known(x: Any) -> Any:
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
            view._family = UNRECORDED
    if known is not None:
        del x._family


def family_of(x: Any) -> tuple[Family | None, Any, tuple[Step, ...]]:
    """The family of a tensor, its base, and the chain to the tensor, which is empty for the base."""
    known = _known(x)
    return (known[0], known[1], steps_to(known)) if type(known) is tuple else (known, x, ())


def steps_to(place: Place) -> tuple[Step, ...]:
    """The chain to a view."""
    steps: list[Step] = []
    at: Any = place
    while at is not None and at[0] is not None:
        steps.append(Step(*at[3:]))
        at = at[2]
    return tuple(reversed(steps))


def path_along(steps: tuple[Step, ...]) -> Path:
    """A chain of view ops as the attribute of `view_set`."""
    return tuple((step.op.name, tuple(step.attrs.items())) for step in steps)


def shows_writable(x: Any) -> bool:
    """Whether a tensor is a view of another one, whose memory may be written."""
    known = _known(x)
    base = known[1] if type(known) is tuple else None
    return base is not None and isinstance(base.payload, np.ndarray) and bool(base.payload.flags.writeable)


#: A chain of view ops: per op its name, and names and values of its attributes.
Path = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
