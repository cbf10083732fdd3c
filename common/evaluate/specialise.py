"""Running ops on arrays at once, for the eager engine and the interpreter.

What follows from an op, its attributes and the shapes and dtypes of its operands (kernel, integer arguments, layout,
conversions, rules of the gradient) is worked out once and kept as a `Recipe`. Elementwise ops run compiled loops
(`common.evaluate.kernels`). No numpy ufunc does arithmetic, so numpy's warnings and error state play no part.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import count
from typing import Any, TypeVar

import numpy as np

from common.core import op as ops
from common.core.aliases import ABSENT
from common.core.allocation import LARGE, refuse_beyond_memory, refuse_endless
from common.core.dispatch import NO_ATTRS, Attrs, interprets
from common.core.dtypes import SUPPORTED, default_changed, unsupported
from common.core.locks import make_lock
from common.core.op import Op, out_specs
from common.core.python_numbers import Int, Number, as_array, weak
from common.core.rule_code import OUTPUTS
from common.core.size_tuples import Size
from common.core.spec import numel
from common.runtime.apply_text import CONVERTS, SAVES_ALL, SAVES_NONE
from common.runtime.builtins import make_apply, make_finder, make_recall
from common.runtime.tape_state import Tape

Run = Callable[..., Any]
C = TypeVar("C", bound=Callable[..., None])
M = TypeVar("M", bound=Callable[[], Any])
NUMBERS = (bool, int, float)
_ndarray = np.ndarray
_LIMIT = 8192


class Recipe:
    """How an op runs, and is differentiated, for operands of given forms.

    Attributes
    ----------
    forms : per operand (shape, dtype), or the type of a Python number; None for a shape that does not count.
    run : the op on operands of these forms.
    spec : of the result, or of each; None for a composite that has not run yet.
    dtype : in which an elementwise op computes.
    builtin : native code for operands of that dtype and of contiguous layout; gives None for others. Or None.
    casts : whether operands are converted first, which is an op of its own where gradients are recorded.
    recorded : whether the result may have a gradient.
    keeps : what a node of it saves: 0 nothing, 2 two operands as they are, -1 something else.
    plan : how a node of it is made, see `common.runtime.apply_text`; None where `applied` is to decline.
    backward : ``backward(saved, attrs, g, needs)``: contributions in the operands' shapes and dtypes.
    """

    __slots__ = ("op", "forms", "attrs", "run", "spec", "dtype", "builtin", "casts", "recorded", "keeps", "plan",
                 "backward")  # fmt: skip

    run: Run
    forms: Any
    spec: Any
    dtype: Any
    builtin: Run | None
    plan: bytes | None
    backward: Callable[..., tuple[Any, ...]]

    def __init__(self, op: Op, forms: tuple[Any, ...], attrs: Mapping[str, Any]) -> None:
        # attributes that are known by identity stay alive with what was found by it
        self.op, self.forms, self.attrs = op, forms, attrs if type(attrs) is Attrs else dict(attrs)
        self.builtin = self.dtype = self.spec = None
        self.casts = False
        _PREPARE["rules"](self)
        _PREPARE[op.kind](self)
        if op.kind == "elementwise" and any(form in (Number, Int) for form in forms):
            _give_numbers(self)
        specs = () if self.spec is None else out_specs(self.spec)
        if op.kind != "view" and (nbytes := sum(numel(spec.shape) * spec.dtype.itemsize for spec in specs)) >= LARGE:
            _ask_for_memory(self, nbytes)
        self.keeps = 0 if not op.saves else 2 if op.saves == op.inputs and len(op.saves) == 2 else -1
        self.recorded = op.differentiable and all(spec.dtype.kind == "f" for spec in specs[:1])
        may = self.recorded if op.nout == 1 else op.differentiable
        self.plan = _plan(op, CONVERTS if may and self.casts else may)


def _plan(op: Op, recorded: int) -> bytes:
    outputs = next((i for i, name in enumerate(OUTPUTS, SAVES_ALL) if name in op.saves), SAVES_NONE)
    inputs, shapes = op.saved_inputs, op.saved_shapes
    return array("q", [recorded, op.kind == "view", len(inputs), *inputs, len(shapes), *shapes, outputs]).tobytes()


def _give_numbers(self: Recipe) -> None:
    """Let an op of numbers alone, of which one is weak, give a number: it is weak too, as in a graph."""
    run = self.run
    if all(isinstance(form, type) for form in self.forms):
        self.builtin, self.run = None, lambda *numbers: weak(run(*numbers).item())


def _ask_for_memory(self: Recipe, nbytes: int) -> None:
    """Let an op whose results are large look first whether there is memory for them."""
    name, run = self.op.name, self.run

    def asking(*operands: Any) -> Any:
        refuse_beyond_memory(name, nbytes)
        return run(*operands)

    self.builtin, self.run = None, asking


#: Who completes a recipe: by the kind of its op how it runs, and for "rules" how it is differentiated; "rules for any
#: shape" are also given dtypes of operands, and types of numbers.
_PREPARE: dict[str, Callable[..., None]] = {}


def prepares(kind: str) -> Callable[[C], C]:
    """Decorator: the function completes recipes of ops of a kind, or, for "rules", of all."""

    def register(complete: C) -> C:
        _PREPARE[kind] = complete
        return complete

    return register


recipes: dict[Any, Recipe] = {}
_wider: dict[Any, Recipe] = {}
_lock = make_lock()
_ops, _FEW = count(), 32


def _first_find(*operands: Any) -> Any:
    """Finds nothing, and makes the table after a few ops: a program that only draws parameters does not need it."""
    if next(_ops) >= _FEW:
        _make_tables()
    return None


def _make_tables() -> None:
    global find, applied, shown, _store, _cells
    with _lock:
        if find is _first_find:
            find, _store, _cells = make_finder()
            applied, shown = make_apply(_cells, tape())


#: ``find(op, attrs, *operands)``: the recipe for arrays and numbers, by a native table in front of `recipes`, or None.
#: Attributes count by identity, so these are `Attrs`. To be called as ``eager.find``.
find: Callable[..., Any] = _first_find
_store: Callable[..., None] = _first_find
_cells: Any = None


def _declines(*operands: Any) -> None:
    """Leave every op to the general way."""


#: ``applied(op, attrs, *operands)``: run an op that `find` knows on tensors and numbers, and record it; None where
#: `common.tensor.record.record` must do so. To be called as ``eager.applied``.
applied: Callable[..., Any] = _declines
#: ``shown(recipe, result, *tensors)``: the same for arrays that the op has made of tensors, in no family yet. To be
#: called as ``eager.shown``.
shown: Callable[..., Any] = _declines
#: ``recalled(memory, *arguments)``: the result of a public function by its line of ops; None where no line is kept,
#: NotImplemented where the function is to be called. ``keep(line, memory, *arguments)`` keeps a line. Both are to be
#: called as ``eager.recalled``.
recalled: Callable[..., Any] = _declines


def _first_keep(*given: Any) -> None:
    """Makes the table of lines for the first one."""
    global recalled, keep
    if given:
        with _lock:
            _make_tables()
            if keep is _first_keep:
                recalled, keep = make_recall(_cells, tape(), PLAIN)
        keep(*given)


keep: Callable[..., None] = _first_keep
#: A class of tuples, and classes of arguments of which one object is equal to itself alone.
PLAIN: tuple[type[Any], ...] = (Size, str, type(ABSENT), *map(type, SUPPORTED))
_memory: Callable[[], Any] | None = None


def makes_memories(make: M) -> M:
    """Decorator: the class keeps the lines of one function, for `remembered`."""
    global _memory
    _memory = make
    return make


def remembered(function: Run) -> Run:
    """Decorator: an engine that remembers public functions remembers this one too, of tensors and plain data."""
    known: Any = None

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal known
        if _memory is None or named:
            return function(*arguments, **named)
        if known is None:
            known = _memory()
        y = recalled(known, *arguments)
        if y is None:
            y = known.meet(arguments, function)
        return function(*arguments) if y is NotImplemented else y

    return call


#: Describes the engine's tensors and nodes, see `makes_tape`.
tape: Callable[[], Tape]


def makes_tape(make: Callable[[], Tape]) -> Callable[[], Tape]:
    """Decorator: the function describes the engine's tensors and nodes."""
    global tape
    tape = make
    return make


def prepare(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Recipe:
    """The recipe for arrays and Python numbers that `find` does not know; it will know them from now on."""
    key: list[Any] = [op]
    for x in operands:
        if isinstance(x, _ndarray):
            key += x.shape, x.dtype
        else:
            key.append(type(x))
    if attrs:
        key.append(attrs if type(attrs) is Attrs else tuple(attrs.items()))
    try:
        found = recipes.get(tuple(key)) if operands else None
    except TypeError:  # an attribute that is a list
        found = None
    if found is None:
        found = recipe(op, tuple([(x.shape, x.dtype) if isinstance(x, _ndarray) else type(x) for x in operands]), attrs)
    if type(attrs) is Attrs and find is not _first_find:
        _store(found, op, attrs, *operands)
        if not attrs and op.kind == "elementwise" and (wider := _for_any_shape(found)) is not None:
            _store(wider, op, NotImplemented, *operands)
    return found


def _for_any_shape(found: Recipe) -> Recipe | None:
    """The recipe for operands of one shape, whichever, if the builtin of this one takes them; only `applied` finds it.

    Its rules are written down once for all shapes, where that can be done.
    """
    op, forms, plain = found.op, found.forms, found.plan is not None and found.builtin is not None
    shapes = {form[0] for form in forms if type(form) is tuple}
    numbers = sum(type(form) is not tuple for form in forms)
    if not plain or len(shapes) != 1 or (numbers and len(forms) != 2) or op.saved_shapes:
        return None
    key = (op, bool(next(iter(shapes))), *(form[1] if type(form) is tuple else form for form in forms))
    wider = _wider.get(key)
    if wider is None:
        wider = object.__new__(Recipe)
        for name in ("op", "attrs", "spec", "dtype", "builtin", "casts", "recorded", "keeps", "plan"):
            setattr(wider, name, getattr(found, name))
        wider.run = None  # type: ignore[assignment]
        wider.forms = tuple(None if type(form) is tuple else form for form in forms) if numbers else None
        if found.recorded:
            _PREPARE["rules for any shape"](wider, key[2:])
        else:
            wider.backward = found.backward
        wider = _wider.setdefault(key, wider)  # other threads find it whole
    return wider


def forget() -> None:
    """Drop all recipes."""
    with _lock:
        recipes.clear()
        _wider.clear()
        if find is not _first_find:
            _store()
            keep()


def recipe(op: Op, forms: tuple[Any, ...], attrs: Mapping[str, Any]) -> Recipe:
    """The recipe of an op for operands of these forms; its key is op, forms one after the other, and attributes."""
    key: list[Any] = [op]
    for form in forms:
        key += form if type(form) is tuple else (form,)
    if attrs:
        # equality does not tell 0.0, -0.0 and False apart; without operands, attributes are such values
        key.append(repr(attrs) if not forms else attrs if type(attrs) is Attrs else tuple(attrs.items()))
    try:
        found = recipes.get(tuple(key))
    except TypeError:  # an attribute that is a list
        return Recipe(op, forms, attrs)
    if found is None:
        for form in forms:
            if type(form) is not tuple:
                continue
            if form[1] not in SUPPORTED:
                raise unsupported(form[1], f"{op.name}(): ")
            if op.kind != "view":
                refuse_endless(op.name, form[0])
        found = Recipe(op, forms, attrs)
        with _lock:
            if len(recipes) >= _LIMIT:
                del recipes[next(iter(recipes))]
            recipes[tuple(key)] = found
    return found


def _forget(op: Op) -> None:
    with _lock:
        for key in [key for key in list(recipes) if key[0] is op]:
            del recipes[key]
        for key in [key for key in list(_wider) if key[0] is op]:
            del _wider[key]
        if find is not _first_find:
            _store()


ops.rules_changed.append(_forget)
default_changed.append(forget)


@interprets(np.ndarray)
def run(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Run an op on arrays and Python numbers."""
    arrays = [
        as_array(x) if type(x) is not _ndarray and (not isinstance(x, NUMBERS) or isinstance(x, np.generic)) else x
        for x in operands
    ]
    attrs = attrs or NO_ATTRS
    found = find(op, attrs, *arrays) or prepare(op, arrays, attrs)
    return found.run(*arrays)


def refuse_large(op: Op, error: Exception) -> None:
    """Say which op has a result that does not fit into memory, if an error means that."""
    from common.core.allocation import allocation_error, too_large

    if too_large(error):
        raise allocation_error(op.name, error) from error
