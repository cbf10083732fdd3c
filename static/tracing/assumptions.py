"""Assumptions of a trace about Python objects, checked before each call.

A trace follows one path through Python code. Which one depends on attributes of modules (`training`, sizes, which
object is a parameter), on hooks of modules and tensors, on `requires_grad`, on the default dtype, and on whether
subnormal numbers are flushed to zero. Every change of these is counted (`common.core.mode.changes`), so a call compares
one number, and looks at the facts only after something has changed somewhere.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from common.core import mode
from common.core.dtypes import default_changed, default_float
from common.core.numerics import flushes
from common.nn.module_hooks import of_all
from common.nn.tables import held, within
from common.tensor.leaf import Leaf

if TYPE_CHECKING:
    from common.nn.module import Module
    from common.tensor.base import TensorBase

_PLAIN = (bool, int, float, str, tuple, type(None))
default_changed.append(mode.note_change)


class Facts:
    """The facts on which one trace relies."""

    def __init__(self) -> None:
        self._modules: dict[int, tuple[Module, dict[str, Any]]] = {}
        self._read: dict[int, Module] = {}
        self._below: list[tuple[Module, dict[str, Any]]] = []
        self._tensors: list[tuple[TensorBase, bool]] = []
        self.uncounted: list[tuple[TensorBase, bool]] = []
        self._hooks: list[tuple[Any, tuple[int, ...]]] = []
        self._default = default_float()
        self._flushed = flushes()

    def note_module(self, module: Module, whole: bool = True) -> None:
        """The program has called a module or read an attribute; not `whole`, asked for its members."""
        if whole:
            self._modules.setdefault(id(module), (module, {}))
        else:
            self._read.setdefault(id(module), module)

    def note_tensor(self, x: TensorBase) -> None:
        """The program has captured a tensor."""
        (self._tensors if isinstance(x, Leaf) else self.uncounted).append((x, x.requires_grad))

    @property
    def has_modules(self) -> bool:
        """Whether the program has called modules."""
        return bool(self._modules or self._read)

    @property
    def has_gradients(self) -> bool:
        """Whether the program has captured a tensor that requires grad."""
        return any(needed for _, needed in (*self._tensors, *self.uncounted))

    def finish(self, differentiates: bool) -> None:
        """Read the modules' attributes. What the traced program itself has changed is as it will find it again.

        Parameters
        ----------
        differentiates : whether there is a backward pass in it, in which hooks of tensors run.
        """
        for module, attributes in self._modules.values():
            attributes.update(_attributes(module))
        seen: set[int] = set()
        below = [m for module, _ in self._modules.values() for m in within(module, seen)]
        members = {id(m): m for m in below} | self._read
        self._below = [(m, held(m)) for i, m in members.items() if i not in self._modules]
        tensors = (*self._tensors, *self.uncounted) if differentiates else ()
        owners = (*(m for m, _ in self._modules.values()), *(x for x, _ in tensors), None)
        self._hooks = [(owner, _hooks(owner)) for owner in owners]

    def objection(self) -> str | None:
        """The fact that has changed, in words; None if all hold."""
        if self._default != default_float():
            return f"the default dtype is {default_float()} now, it was {self._default}"
        if self._flushed != flushes():
            return "subnormal numbers are " + ("kept now" if self._flushed else "flushed to zero now")
        for module, known in self._modules.values():
            now = _attributes(module)
            if _are(now, known):
                continue
            for name in known.keys() | now.keys():
                before, after = known.get(name), now.get(name)
                if not _same(before, after):
                    return f"{type(module).__name__}.{name} is {_text(after)} now, it was {_text(before)}"
        for module, known in self._below:
            if not _are(held(module), known):
                return f"{type(module).__name__} has other members now"
        for owner, ids in self._hooks:
            if _hooks(owner) != ids:
                return f"hooks of {'all modules' if owner is None else _named(owner)} have come or gone"
        for x, needed in (*self._tensors, *self.uncounted):
            if x.requires_grad is not needed:
                return f"requires_grad of {_named(x)} is {x.requires_grad} now, it was {needed}"
        return None


def _attributes(module: Module) -> dict[str, Any]:
    """The attributes that are objects of their own; parameters, buffers and sub-modules included."""
    return {**{name: x for name, x in module.__dict__.items() if not name.startswith("_")}, **held(module)}


def _hooks(owner: Any) -> tuple[int, ...]:
    """The ids of the hooks of a module or tensor, or of all modules."""
    where = "_hooks" if hasattr(owner, "payload") else "_module_hooks"
    hooks = of_all if owner is None else getattr(owner, where, None)
    return () if hooks is None else hooks.ids()


def _named(owner: Any) -> str:
    """A module or tensor, in words."""
    if not hasattr(owner, "payload"):
        return type(owner).__name__
    return getattr(owner, "name", "") or f"a tensor of shape {tuple(owner.shape)}"


def _are(now: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether attributes are the same objects, in the same order."""
    return len(now) == len(known) and all(map(is_, now.values(), known.values())) and [*now] == [*known]


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, _PLAIN) and bool(a == b))


def _text(x: Any) -> str:
    return repr(x) if isinstance(x, _PLAIN) else f"another {type(x).__name__}"
