"""The tangents of forward-mode derivatives, and the level that carries them on.

An op runs as ever; then the tangents of its results follow from those of its operands. There are no rules for this
direction: a gradient rule is linear in its cotangent, so its own gradient is the product with a tangent. Views show the
same part of the tangent.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from common.autograd import backward as reverse
from common.autograd.backward import view_of
from common.autograd.view_histories import replayed_from
from common.core import mode
from common.core.dispatch import apply
from common.core.errors import GradientError, NotDefinedError
from common.core.op import Op
from common.core.switching import Setting
from common.core.weak import WhileKeysLive, forgetting
from common.ops.math.arithmetic import zeros_like
from common.tensor.base import TensorBase
from common.tensor.node import Node
from common.tensor.observers import packers
from common.tensor.read_saved import saved_tensors
from common.tensor.record import record
from common.tensor.view_families import family_of
from common.tensor.write_log import writes_to


class _Dual(NamedTuple):
    """A tensor's tangent at one level.

    Attributes
    ----------
    tangent : None says that it has none, although what it is a view of may have one.
    made : whether `make_dual` or `unpack_dual` made it: views end there.
    """

    holder: weakref.ref[Any]
    tangent: Any
    made: bool


class Level:
    """The tangents of one open level; they are gone when it is left."""

    def __init__(self) -> None:
        self._duals: dict[int, _Dual] = {}
        self._nodes: WhileKeysLive[Node, tuple[Any, Any]] = WhileKeysLive()
        self.forget = self._duals.clear

    def tangent(self, x: Any) -> Any:
        """The tangent of an operand; that of a view is the view of its base's."""
        if not isinstance(x, TensorBase):
            return None
        known = self._duals.get(id(x))
        if known is not None:
            return known.tangent
        _, base, steps = family_of(x)
        below = self._duals.get(id(base)) if steps else None
        if below is None or below.tangent is None:
            return None
        with mode.activate_dual_level(None):
            shown = replayed_from(below.tangent, steps)
        self.set(x, shown)
        return shown

    def set(self, x: TensorBase, tangent: Any, made: bool = False) -> None:
        """Give a tensor a tangent; it lives as long as the tensor."""
        key, duals = id(x), self._duals
        duals[key] = _Dual(forgetting(x, duals, key), tangent, made)

    def copy(self) -> Level:
        """A level of its own with the same tangents, which stay there when this one is left."""
        made = Level()
        for holder, tangent, by_user in list(self._duals.values()):
            if (x := holder()) is not None:
                made.set(x, tangent, by_user)
        return made

    def hand_on(self, x: TensorBase, made: TensorBase) -> None:
        """Give a tensor that takes the place of another one its tangent."""
        if (tangent := self.tangent(x)) is not None:
            self.set(made, tangent)

    def hand_over(self, x: TensorBase, other: Level) -> None:
        """Give a tensor its tangent at another level, too."""
        if (tangent := self.tangent(x)) is not None:
            other.set(x, tangent)

    def shows(self, x: TensorBase) -> bool:
        """Whether a tensor is a view whose tangent has to be one too."""
        known = self._duals.get(id(x))
        return (known is None or not known.made) and bool(family_of(x)[2])

    def refuse(self, name: str, operands: Sequence[Any], why: str = "") -> None:
        """Refuse operands with tangents, where nothing carries them on.

        Raises
        ------
        NotDefinedError : an operand has one.
        """
        if any(self.tangent(x) is not None for x in operands):
            raise NotDefinedError(f"Trying to use forward AD with {name} that does not support it{why}")

    def refuse_all(self, name: str) -> None:
        """Refuse what runs without carrying tangents on, whatever it uses.

        Raises
        ------
        NotDefinedError : a tensor has a tangent.
        """
        if any(dual.tangent is not None for dual in self._duals.values()):
            raise NotDefinedError(
                f"Trying to use forward AD with {name}() that does not support it; func.jvp of a function that calls "
                "it does"
            )

    #: Per kind of construct what runs it with tangents: see `common.control.tangents`.
    pushers: ClassVar[dict[type, Callable[[Level, Any], Any]]] = {}

    def push(self, construct: Any) -> Any:
        """Run branches, or a loop, and give the results their tangents."""
        return self.pushers[type(construct)](self, construct)

    # ------------------------------------------------------------------ ops

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Run an op, and give its results their tangents."""
        tangents = [self.tangent(x) for x in operands]
        with mode.activate_dual_level(None):
            result = record(op, operands, attrs)
            if all(t is None for t in tangents) or not op.differentiable:
                return result
            results = result if isinstance(result, tuple) else (result,)
            if any(y.dtype.kind == "f" for y in results):
                moved = self._pushed(op, operands, attrs, tangents, results)
                for y, tangent in zip(results, moved, strict=True):
                    if tangent is not None:
                        self.set(y, tangent)
                node = results[0].grad_fn
                if node is not None:
                    self._nodes.put(node, (tangents, [self.tangent(y) for y in results]))
        return result

    def _pushed(
        self, op: Op, operands: Sequence[Any], attrs: Any, tangents: Sequence[Any], results: Sequence[Any]
    ) -> list[Any]:
        """Per result its tangent: the gradient of what the op's rules give, with respect to the cotangents."""
        if op.kind == "view":
            shown = apply(op, (tangents[0],), attrs)
            return list(shown) if isinstance(shown, tuple) else [shown]
        recording = mode.is_grad_enabled() and any(
            isinstance(x, TensorBase) and x.requires_grad for x in (*operands, *tangents)
        )
        with mode.enable_grad(), Setting(packers, ()):
            moving = [x if t is None else self._own_slot(x) for x, t in zip(operands, tangents, strict=True)]
            again = record(op, moving, attrs)
            outputs = again if isinstance(again, tuple) else (again,)
            places = [i for i, y in enumerate(outputs) if y.requires_grad]
            seeds = [zeros_like(outputs[i].detach()).requires_grad_() for i in places]
            for seed in seeds:
                reverse.stand_ins.add(seed)
            at = [i for i, t in enumerate(tangents) if t is not None]
            pulled = reverse.grad(
                [outputs[i] for i in places], [moving[i] for i in at], seeds, create_graph=True, allow_unused=True
            )
            linear = [(g, tangents[i]) for i, g in zip(at, pulled, strict=True) if g is not None and g.requires_grad]
            found: Sequence[Any] = [None] * len(places)
            if linear:
                roots, cotangents = zip(*linear, strict=True)
                found = reverse.grad(roots, seeds, cotangents, create_graph=recording, allow_unused=True)
        moved: list[Any] = [None] * len(results)
        for i, tangent in zip(places, found, strict=True):
            if tangent is None:
                tangent = zeros_like(results[i].detach())
            elif any(t is not None and (tangent is t or shows(tangent, t)) for t in tangents):
                tangent = tangent.clone()  # rules may hand on what they were given; a later write is to this one only
            moved[i] = tangent
        return moved

    def _own_slot(self, x: TensorBase) -> TensorBase:
        """A tensor of the same elements and history whose gradient is a value of its own."""
        if x.requires_grad:
            return view_of(x)
        leaf: TensorBase = x.detach().requires_grad_()
        reverse.stand_ins.add(leaf)
        return leaf

    def saved_tensors(self, node: Node) -> Sequence[Any]:
        """A node's saved values, as tensors with the tangents of the operands and results that they were."""
        saved, known = saved_tensors(node), self._nodes.get(node)
        if known is None or node.op.kind in ("region", "function", "compiled"):
            return saved
        operands, results = known
        for value, position in zip(saved, node.op.saved_inputs):
            if isinstance(value, TensorBase) and operands[position] is not None and self.tangent(value) is None:
                self.set(value, operands[position])
        if node.op.saves_output:
            last = saved[-1]
            for value, tangent in zip(last if isinstance(last, tuple) else (last,), results):
                if value is not None and tangent is not None:
                    self.set(value, tangent)
        return saved

    # ------------------------------------------------------------------ functions of users

    def carry(
        self, function: Any, ctx: Any, args: Sequence[Any], given: Sequence[Any], made: Any, constant: Sequence[Any]
    ) -> None:
        """Give the results of a user-defined function the tangents that its `jvp` returns.

        Parameters
        ----------
        given : per argument its tangent before the function ran.
        made : the results, as `apply` returns them: one or a tuple.
        constant : those of them that have no derivative.

        Raises
        ------
        GradientError : a tangent is missing, or is one too many; or the function returns a view, or writes to an
            argument, and `jvp` does not do the same to the tangent.
        """
        name, before = function.__name__, [_writes(t) for t in given]
        with mode.activate_dual_level(None):
            returned = function.jvp(ctx, *(_materialized(x, t, ctx) for x, t in zip(args, given, strict=True)))
        results, tangents = (x if isinstance(x, tuple) else (x,) for x in (made, returned))
        if len(results) != len(tangents):
            raise GradientError(
                f"{name}.jvp returned an incorrect number of tangents (expected {len(results)}, got {len(tangents)})"
            )
        for position, (y, tangent) in enumerate(zip(results, tangents, strict=True)):
            if not isinstance(y, TensorBase) or y.dtype.kind != "f" or any(y is x for x in constant):
                if tangent is not None:
                    raise GradientError(
                        f"{name}.jvp returned a tangent for result {position}, which is not differentiable. You should "
                        "return None at that position instead."
                    )
                continue
            if tangent is None:
                continue
            if tuple(tangent.shape) != tuple(y.shape):
                raise GradientError(
                    f"{name}.jvp returned a tangent of shape {tuple(tangent.shape)} for result {position}, which has "
                    f"{tuple(y.shape)}"
                )
            if any(y is x for x in ctx._dirty):
                if not any(tangent is t and _writes(t) != count for t, count in zip(given, before, strict=True)):
                    raise GradientError(
                        "An inplace custom Function is not modifying the forward mode gradients inplace. If the "
                        "forward is modifying an input inplace, then the jvp function must modify the corresponding "
                        f"gradient inplace: {name}.jvp has to write to the tangent, and to return it."
                    )
            else:
                self._require_view(y, tangent, args, given)
            self.set(y, tangent)

    def _require_view(self, y: Any, tangent: Any, args: Sequence[Any], given: Sequence[Any]) -> None:
        """Refuse a tangent that is no view, of a result that is one."""
        for x, t in zip(args, given, strict=True):
            if t is None or not shows(y, x):
                continue
            said = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning "
            if type(getattr(tangent, "_family", None)) is not tuple:
                raise GradientError(f"{said}a view.")
            if not shows(tangent, t):
                which = "of the same base as the" if self.shows(x) else "of the"
                raise GradientError(f"{said}a view {which} given tangent.")

    # ------------------------------------------------------------------ writes

    def written(self, x: TensorBase, value: TensorBase) -> None:
        """After a write of `value` to `x`: its tangent is written to that of `x`, which may be part of another one."""
        new, own = self.tangent(value), self.tangent(x)
        if new is own:  # or both are None
            return
        with mode.activate_dual_level(None):
            if new is None:
                new = zeros_like(own.detach())
            if own is None:
                known = self._duals.get(id(x))
                _, base, steps = family_of(x)
                if not steps or (known is not None and known.made):
                    self.set(x, new.clone(), known is not None and known.made)
                    return
                whole = self.tangent(base)
                if whole is None:
                    whole = zeros_like(base.detach())
                    self.set(base, whole)
                own = replayed_from(whole, steps)
                self.set(x, own)
            own.copy_(new)


def shows(y: Any, x: Any) -> bool:
    """Whether a tensor shows memory of another one."""
    a, b = y.payload, x.payload
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def _writes(tangent: Any) -> int:
    """A number that changes with each write to a tangent: a count of writes; in a trace, the payload."""
    payload = getattr(tangent, "payload", None)
    return writes_to(payload) if isinstance(payload, np.ndarray) else id(payload)


def _materialized(x: Any, tangent: Any, ctx: Any) -> Any:
    """The tangent of an argument as `jvp` gets it."""
    if tangent is None and ctx._materialize and isinstance(x, TensorBase) and x.dtype.kind == "f":
        return zeros_like(x.detach())
    return tangent
