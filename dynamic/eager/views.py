"""The short path of views: the first call works out shape and strides, later calls are one native builtin.

Per arguments, a method keeps the builtin and the recipe of the last form that it met. The builtin checks dtype, sizes
and strides itself; if it declines, the method looks the form up. Results that are no views, named arguments, and all
calls while something watches take the general way, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import ref

import numpy as np

from common.core import mode
from common.core.errors import TwingradError
from common.core.members import give
from common.core.op import Op, rules_changed
from common.core.unbroadcast import INTS
from common.evaluate import specialise as eager
from common.evaluate.kinds import copy_of
from common.evaluate.native_results import view_of
from common.evaluate.specialise import Recipe, recipe
from common.ops import functional
from common.ops.index.coordinates import index_get
from common.tensor import boundary
from common.tensor.base import InferenceTensor, Tensor, TensorBase, wrap
from common.tensor.leaf import Leaf
from common.tensor.view_families import Family, show_unrecorded, unrecorded
from dynamic.eager.remembered import Memory

_grad_enabled = mode.grad_mode.get
_LIMIT = 4096
SMALL = 8192
"""Elements up to which numpy is done with a mask or with rows before our kernels have begun."""

#: A builtin that makes a view, and the recipe of the op that it stands for.
Way = tuple[Callable[[Any], Any], Recipe]


class _OpProbe:
    """Stands for a tensor of an array's shape and dtype; a function of it gives its op, with attributes."""

    __op_priority__ = 2
    __slots__ = ("dtype", "shape")

    def __init__(self, x: np.ndarray) -> None:
        self.shape, self.dtype = x.shape, x.dtype

    ndim = property(lambda self: len(self.shape))

    @staticmethod
    def __apply_op__(op: Op, operands: Any, attrs: Any) -> Any:
        return op, attrs


class _Ways:
    """The ways of one method.

    Attributes
    ----------
    recent : per arguments the way of the form that they last met.
    copies : whether it copies where a view is none, as `view` does not.
    """

    __slots__ = ("ask", "copies", "recent", "_known")

    def __init__(self, ask: Callable[..., Any], copies: bool = False) -> None:
        self.ask, self.copies = ask, copies
        self.recent: dict[Any, Way] = {}
        self._known: dict[Any, Way | None] = {}
        rules_changed.append(self._forget)

    def _forget(self, op: Op) -> None:
        self.recent.clear()
        self._known.clear()

    def view(self, a: Any, key: Any, arguments: tuple[Any, ...]) -> Any:
        """The view of a tensor whose form is another than the last one's; None if the general way is to be taken."""
        y, found = self.part(getattr(a, "payload", None), key, *arguments)
        if y is None:
            return None
        show: Any = _shown_parts if type(y) is tuple else _shown
        return show(a, y, found)

    def part(self, x: Any, key: Any, *arguments: Any) -> tuple[Any, Any]:
        """`view` of an array: an array, or a tuple of them; and its recipe. Another thread may forget both."""
        if type(x) is not np.ndarray:
            return None, None
        form = (x.shape, x.dtype, x.strides, key)
        way = self._known.get(form, Ellipsis)
        if way is Ellipsis:
            if len(self._known) >= _LIMIT:
                self._known.clear()
                self.recent.clear()
            way = self._known[form] = self._made(x, arguments)
        try:
            if way is None or (y := way[0](x)) is None:
                return None, None
        except ValueError:  # such as too many elements; who takes all arguments says what is wrong
            return None, None
        self.recent[key] = way
        return y, way[1]

    def _made(self, x: np.ndarray, arguments: tuple[Any, ...]) -> Way | None:
        try:
            asked = self.ask(_OpProbe(x), *arguments)
        except TwingradError:
            raise
        except Exception:  # the general way says which argument is to blame
            return None
        if type(asked) is not tuple or len(asked) != 2 or not isinstance(asked[0], Op):
            return None
        op, attrs = asked
        found = recipe(op, ((x.shape, x.dtype),), attrs)
        if op.kind == "view":
            builtin = found.builtin if x.flags.c_contiguous else view_of(op, attrs, x.shape, x.dtype, x.strides)
            if builtin is None and self.copies:
                builtin = copy_of(op, attrs, x)
            return None if builtin is None else (builtin, found)
        if found.spec is None:
            found.run(x)
        asked = op.forward(_OpProbe(x), **attrs)
        parts = [view_of(part, its, x.shape, x.dtype, x.strides) for part, its in asked]
        return None if any(part is None for part in parts) else (_all(parts), found)


def _all(parts: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """One call for several views; the first builtin looks at the operand for all of them."""
    first, rest = parts[0], parts[1:]

    def views(x: Any) -> Any:
        y = first(x)
        return None if y is None else (y, *[view(x) for view in rest])

    return views


def _shown_parts(a: Any, parts: tuple[np.ndarray, ...], found: Recipe) -> Any:
    """The views of an op with several, see `_shown`; they share a node."""
    tensors = eager.shown(found, parts, a)
    if tensors is None:
        return None
    place: Any = None if _grad_enabled() else unrecorded(a)
    family, base, above = _place_of(a) if place is None else (None, None, place)
    for position, t in enumerate(tensors):
        if family is None:
            show_unrecorded(t, above)
        else:
            t._family = (family, base, above, found.op, found.attrs, position)
            family.views.append(ref(t))
    if family is not None and len(family.views) > family.limit:
        family.drop_dead()
    return tensors


def _place_of(a: Any) -> tuple[Family | None, Any, Any]:
    """The place of a new view of `a`: the family, its base, and the place of `a` if it is a view itself."""
    place = getattr(a, "_family", None)
    if type(place) is tuple:
        return place[0], place[1], place
    if place is None:
        place = a._family = Family()
    return place, a, None


def _shown(a: Any, y: np.ndarray, found: Recipe) -> Any:
    """A view as a tensor: on the tape, and in the family of `a`; None if the general way is to be taken.

    A copy in place of a view has memory of its own, and belongs to no family.
    """
    t = eager.shown(found, y, a)
    if t is None or y.base is None:
        return t
    place: Any = getattr(a, "_family", None)
    if not _grad_enabled():  # see `unrecorded`; under `inference_mode` nobody comes here
        base = a if type(place) is not tuple else place[1]
        t._family = place if type(place) is tuple and place[0] is None else (None, base, None, None, None, "no_grad")
        return t
    if type(place) is tuple:
        family, base = place[0], place[1]
    else:
        family, base, place = place, a, None
        if family is None:
            family = a._family = Family()
    if family is None:
        show_unrecorded(t, place)
    else:
        t._family = (family, base, place, found.op, found.attrs, None)
        views = family.views
        views.append(ref(t))
        if len(views) > family.limit:
            family.drop_dead()
    return t


def _sized(name: str) -> Callable[..., Any]:
    """A method whose arguments are ints, or one tuple or list of them."""
    function = getattr(functional, name, None) or getattr(TensorBase, name)
    ways = _Ways(function, name in ("reshape", "flatten"))
    recent = ways.recent

    def general(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(TensorBase, name)(self, *arguments, **named)  # made when it is first asked for

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        if mode.tracing or named:
            return general(self, *arguments, **named)
        key, sizes = arguments, arguments
        if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
            sizes = tuple(arguments[0])
            key = arguments = (sizes,)
        for n in sizes:
            if type(n) is not int:
                return general(self, *arguments)
        if not isinstance(self, TensorBase):  # called on the class, without its tensor
            return general(self, *arguments)
        way = recent.get(key)
        if way is not None and (x := way[0](self.payload)) is not None:
            y = _shown(self, x, way[1])
        else:
            y = ways.view(self, key, arguments)
        return general(self, *arguments) if y is None else y

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _cutting(name: str) -> Callable[..., Any]:
    """A method with several views as its result; of its arguments the short path takes ints."""
    function = getattr(functional, name)
    ways = _Ways(function)
    recent = ways.recent

    def general(self: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(TensorBase, name)(self, *arguments, **named)  # it may have names of its own

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        if mode.tracing or named:
            return general(self, *arguments, **named)
        for n in arguments:
            if type(n) is not int:
                return general(self, *arguments)
        way = recent.get(arguments)
        if way is not None and (x := way[0](self.payload)) is not None:
            y = _shown_parts(self, x, way[1])
        else:
            y = ways.view(self, arguments, arguments)
        return general(self, *arguments) if y is None else y

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _transposed(name: str) -> property:
    general = getattr(TensorBase, name).fget
    ways = _Ways(general)
    recent = ways.recent

    def turned(self: Any) -> Any:
        if mode.tracing:
            return general(self)
        way = recent.get(name)
        if way is not None and (x := way[0](self.payload)) is not None:
            y = _shown(self, x, way[1])
        else:
            y = ways.view(self, name, ())
        return general(self) if y is None else y

    return property(turned)


_general_getitem = boundary.guarded(TensorBase.__getitem__)
parts = _Ways(functional.getitem)
recent_parts = parts.recent


_keys = Memory()


def known_key(key: Any) -> Any:
    """A key of Python's own ints and slices, None and Ellipsis as something with a hash; None for another one."""
    kind = type(key)
    if kind is slice:
        return ((key.start, key.stop, key.step),)
    if kind is not tuple:
        return None
    entries = []
    for k in key:
        kind = type(k)
        if kind is slice:
            entries.append((k.start, k.stop, k.step))
        elif kind is int or k is None or k is Ellipsis:
            entries.append(k)
        else:
            return None
    return tuple(entries)


def _as_numbers(key: Any) -> Any:
    """A key whose tensors are ints without dimensions as one of Python's ints, which shows the memory; None of others.

    What is remembered of a key of tensors are elements, copied.
    """
    several = type(key) is tuple
    entries = []
    for k in key if several else (key,):
        if type(k) is Tensor:
            array = k.payload
            if type(array) is not np.ndarray or array.ndim or array.dtype.kind != "i":
                return None
            k = int(array)
        entries.append(k)
    return tuple(entries) if several else entries[0]


@cache
def keys_among_slices() -> Any:
    """The functions of such keys, which few programs have."""
    from dynamic.eager import keys_among_slices

    return keys_among_slices


def _chosen(self: Any, key: Any, rows: bool = True) -> Any:
    """The elements where a mask holds, or perhaps rows; None where a native kernel is to take them."""
    if mode.tracing or mode.inference_seen:
        return None
    x, k = self.payload, key.payload
    if type(x) is not np.ndarray or k.dtype != bool or k.ndim == 0:
        return None
    if k.shape != (x.shape[: k.ndim] if rows else x.shape):
        return None
    if self._requires_grad and _grad_enabled():
        from common.ops.sort.data_dependent import positions

        return index_get(self, [wrap(places) for places in positions(k)], 0)
    return wrap(x[k]) if x.size <= SMALL else None


def _masked_select(x: Any, mask: Any) -> Any:
    y = None if x._requires_grad and x.ndim != 1 else _chosen(x, mask, rows=False)
    return functional.masked_select(x, mask) if y is None else y


def _getitem(self: Any, key: Any) -> Any:
    """`x[key]`; the short path takes Python's own ints and slices, None and Ellipsis, alone or several.

    What a key of tensors of ints comes to is remembered.
    """
    if mode.tracing:
        return _general_getitem(self, key)
    known = key if type(key) is int else known_key(key)
    if known is None and (numbers := _as_numbers(key)) is not None:
        key, known = numbers, numbers if type(numbers) is int else known_key(numbers)
    if known is None:
        if type(key) is Tensor and (y := _chosen(self, key)) is not None:
            return y
        if type(key) is tuple and {*map(type, key)} != {Tensor}:
            y = keys_among_slices().at(self, key)
            return _general_getitem(self, key) if y is NotImplemented else y
        if type(key) is list and key and INTS.issuperset(map(type, key)):
            key = wrap(np.array(key, np.int64))
        if (y := eager.recalled(_keys, self, key)) is None:
            y = _keys.meet((self, key), functional.getitem)
        return _general_getitem(self, key) if y is NotImplemented else y
    try:
        way = recent_parts.get(known)
    except TypeError:  # a slice by what has no hash
        return _general_getitem(self, key)
    if way is not None and (x := way[0](self.payload)) is not None:
        y = _shown(self, x, way[1])
    else:
        y = parts.view(self, known, (key,))
    return _general_getitem(self, key) if y is None else y


#: Methods of eager tensors, and of parameters outside a trace.
METHODS: dict[str, Any] = {
    name: _sized(name)
    for name in ("expand", "flatten", "narrow", "permute", "reshape", "select", "squeeze", "t", "transpose",
                 "unsqueeze", "view")
}  # fmt: skip
METHODS |= {name: _cutting(name) for name in ("chunk", "split", "unbind")}
METHODS |= {"T": _transposed("T"), "mT": _transposed("mT"), "__getitem__": _getitem}
for _class in (Tensor, Leaf):
    give(_class, METHODS)
#: Functions that are no methods here.
FUNCTIONS: dict[str, Any] = {"masked_select": _masked_select}
give(InferenceTensor, {name: getattr(functional, name, None) or getattr(TensorBase, name) for name in METHODS})
