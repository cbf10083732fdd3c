"""Functions that users hang into a backward pass, and the order in which they run.

For a node: hooks of its result's tensors, each seeing the total once, in order of registration; `retain_grad`; the
node's pre-hooks; the rules; its hooks. For a leaf, after the last node that contributes to it: hooks of the tensor,
pre-hooks of its AccumulateGrad, the addition to `.grad`, post-accumulate hooks, hooks of the AccumulateGrad. A pass in
which nothing has hooks does not come here.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Container, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from common.core import mode
from common.core.errors import ArgumentError, GradientError, ShapeError
from common.core.weak import WhileKeysLive
from common.tensor.base import TensorBase, wrap
from common.tensor.hook_handles import Hook, HookTable, RemovableHandle, hooks_of
from common.tensor.leaf_status import kept
from common.tensor.node import NODE_CLASSES, Edge, Node
from common.tensor.observers import check_contributions, checking, in_rule

# ------------------------------------------------------------------ registration


def register_hook(x: TensorBase, hook: Hook) -> RemovableHandle:
    """Call `hook` with the gradient of `x`, once it is complete, in every backward pass that computes it.

    Parameters
    ----------
    hook : ``hook(grad)`` returns None, or a tensor of the same shape and dtype to go on with instead.

    Returns
    -------
    RemovableHandle : its `remove` takes the hook out.

    Raises
    ------
    GradientError : `x` does not require grad.
    """
    if not x.requires_grad:
        raise GradientError("cannot register a hook on a tensor that doesn't require gradient")
    if x.grad_fn is None:
        return RemovableHandle(hooks_of(x).tensor.setdefault(x.output_nr, HookTable()), hook)
    return RemovableHandle(hooks_of(x.grad_fn).tensor.setdefault(x.output_nr, {}), hook)


def _backward_hooks(x: TensorBase) -> Any:
    """PyTorch's dict of a tensor's hooks; None where it has none. Hooks of a tensor without gradient never run."""
    hooks = getattr(x if x.grad_fn is None else x.grad_fn, "_hooks", None)
    return None if hooks is None else hooks.tensor.get(x.output_nr)


def _set_backward_hooks(x: TensorBase, hooks: Any) -> None:
    owner: Any = x if x.grad_fn is None else x.grad_fn
    mode.note_change()
    if hooks is None:
        if getattr(owner, "_hooks", None) is not None:
            owner._hooks.tensor.pop(x.output_nr, None)
    elif isinstance(hooks, dict):
        hooks_of(owner).tensor[x.output_nr] = hooks
    else:
        raise ArgumentError(f"Tensor._backward_hooks must be a dict or None, got {type(hooks).__name__}")


BACKWARD_HOOKS = property(_backward_hooks, _set_backward_hooks, kept("_backward_hooks"), _backward_hooks.__doc__)


def register_post_accumulate_grad_hook(x: TensorBase, hook: Hook) -> RemovableHandle:
    """Call ``hook(x)`` after a backward pass has added to ``x.grad``.

    Raises
    ------
    GradientError : `x` does not require grad, or is not a leaf.
    """
    if not x.requires_grad:
        raise GradientError("cannot register a hook on a tensor that doesn't require gradient")
    if x.grad_fn is not None:
        raise GradientError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle(hooks_of(x).accumulated, hook)


def retain_grad(x: TensorBase) -> None:
    """Keep the gradient of a tensor that is no leaf in its `.grad`; nothing for leaves, which do anyway.

    Raises
    ------
    GradientError : `x` does not require grad.
    """
    if not x.requires_grad:
        raise GradientError("can't retain_grad on Tensor that has requires_grad=False")
    if x.grad_fn is not None:
        hooks_of(x.grad_fn).retained[x.output_nr] = weakref.ref(x)


def retains_grad(x: TensorBase) -> bool:
    """Whether `retain_grad` was called on a tensor that is no leaf."""
    hooks = getattr(x.grad_fn, "_hooks", None)
    kept = hooks.retained.get(x.output_nr) if hooks is not None else None
    return kept is not None and kept() is x


def register_multi_grad_hook(tensors: Sequence[TensorBase], hook: Hook, *, mode: str = "all") -> RemovableHandle:
    """Call a hook for several tensors' gradients at once.

    Parameters
    ----------
    tensors : they require grad.
    hook : mode "all": ``hook(grads)`` with a list of gradients, None for tensors that the pass does not reach, once the
        last of them is there. Mode "any": ``hook(grad)`` with the first.
    mode : "all" or "any".

    Raises
    ------
    ArgumentError : another mode.
    GradientError : a tensor does not require grad.
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    seen: WhileKeysLive[Any, list[Any]] = WhileKeysLive()
    edges = [x.edge for x in tensors]

    def arrived(position: int) -> Hook:
        def one(grad: Any) -> None:
            run = _running.get()
            if mode == "any":
                if seen.get(run) is None:
                    seen.put(run, [])
                    hook(grad)
                return
            grads = seen.get(run) or seen.put(run, [None] * len(edges))
            grads[position] = grad
            expected = sum(1 for edge in edges if run.reaches(edge))
            if sum(1 for g in grads if g is not None) == expected:
                hook(grads)

        return one

    return _Handles([register_hook(x, arrived(i)) for i, x in enumerate(tensors)])


class _Handles(RemovableHandle):
    """Several handles as one."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take all hooks out."""
        for handle in self._handles:
            handle.remove()


# ------------------------------------------------------------------ the pass

_running: ContextVar[Any] = ContextVar("twingrad_hooked_pass")


def note_hook() -> None:
    """Tell the trace that is open, if any, that a hook runs: it will not run again when the program does."""
    trace = mode.current_trace()
    if trace is not None:
        trace.hooks += 1


class HookedPass:
    """The hooks that one backward pass meets.

    Parameters
    ----------
    reached : the nodes that lead from the roots.
    order : those that it handles, in descending number.
    roots : edges of the roots.
    wanted : edges whose total is asked for; None for all leaves.
    bare : whether gradients are arrays or values instead of tensors.
    deposit : adds a leaf's total to its `.grad`; None if totals are returned.
    part : whether what it gives is contributed to a pass outside, where hooks of leaves run.
    """

    def __init__(
        self,
        reached: Sequence[Node],
        order: Sequence[Node],
        roots: Sequence[Edge],
        wanted: set[Any] | None,
        bare: bool,
        deposit: Any,
        part: bool,
    ) -> None:
        self.bare, self.deposit = bare, deposit
        self._nodes, nodes = set(order), set(reached)
        self._wanted = [edge for edge in wanted or () if (edge[0] if type(edge) is tuple else edge) in nodes]
        last: dict[Any, Node | None] = {edge: None for edge in roots if isinstance(edge, TensorBase)}
        for node in order:
            for edge in node.edges:
                if isinstance(edge, TensorBase) and (wanted is None or edge in wanted):
                    last[edge] = node
        self._leaves: dict[Node | None, list[Any]] = {}
        for leaf, latest in last.items() if not part else ():
            self._leaves.setdefault(latest, []).append(leaf)
        self._all = last
        self._profile = _profile()

    def reaches(self, edge: Edge) -> bool:
        """Whether the pass computes the gradient of a slot."""
        return edge in self._all or edge in self._wanted or (edge[0] if type(edge) is tuple else edge) in self._nodes

    def _tensor(self, g: Any) -> Any:
        return wrap(g) if g is not None and not isinstance(g, TensorBase) else g

    def _payload(self, g: Any) -> Any:
        if not self.bare or not isinstance(g, TensorBase):
            return g
        trace = mode.current_trace()
        return g.payload if trace is None else trace.payload(g)

    def _changed(self, hook: Hook, grad: Any) -> Any:
        note_hook()
        new = hook(grad)
        if new is None:
            return grad
        if not isinstance(new, TensorBase):
            raise ArgumentError(f"a hook must return None or a tensor, got {type(new).__name__}")
        if tuple(new.shape) != tuple(grad.shape) or new.dtype != grad.dtype:
            raise ShapeError(
                f"hook {getattr(hook, '__name__', hook)!r} has changed the gradient from {grad.dtype} of shape "
                f"{tuple(grad.shape)} to {new.dtype} of shape {tuple(new.shape)}"
            )
        return new

    def arrive(self, owner: Any, totals: dict[Edge, Any]) -> None:
        """Run the hooks of a node's, or leaf's, tensors on their totals."""
        hooks = getattr(owner, "_hooks", None)
        if hooks is None:
            return
        for output in sorted({*hooks.tensor, *hooks.retained}):
            slot = (owner, output) if output else owner
            total = totals.get(slot)
            if total is None:
                if isinstance(owner, Node) and owner.op.nout > 1 and _reached(owner, totals):
                    for hook in list(hooks.tensor.get(output, {}).values()):
                        hook(None)  # as PyTorch does, of a result that the pass leaves out
                continue
            grad = self._tensor(total)
            for hook in list(hooks.tensor.get(output, {}).values()):
                grad = self._changed(hook, grad)
            totals[slot] = self._payload(grad)
            kept = hooks.retained[output]() if output in hooks.retained else None
            if kept is not None:
                own = wrap(np.array(grad.payload)) if isinstance(grad.payload, np.ndarray) and self.bare else grad
                kept._grad = own if kept._grad is None else kept._grad + own

    def before(self, node: Node, g: Any) -> Any:
        """Run a node's pre-hooks on the gradients of its outputs."""
        hooks = getattr(node, "_hooks", None)
        if hooks is not None and hooks.before:
            grads = tuple(self._tensor(x) for x in (g if node.op.nout > 1 else (g,)))
            for hook in list(hooks.before.values()):
                note_hook()
                new = hook(grads)
                grads = grads if new is None else tuple(new) if isinstance(new, (tuple, list)) else (new,)
            bare = tuple(self._payload(x) for x in grads)
            g = bare if node.op.nout > 1 else bare[0]
        if self._profile is not None:
            self._rule = self._profile.open()
        if checking.get():
            self._inside = in_rule.set([] if node.op.kind == "function" else None)
        return g

    def after(self, node: Node, contributions: tuple[Any, ...], g: Any) -> tuple[Any, ...]:
        """Run a node's hooks on the gradients of its inputs and outputs."""
        if self._profile is not None:
            gs = g if node.op.nout > 1 else (g,)
            frame = node.code, node.lasti
            self._profile.close(self._rule, node.name(), "rule", [x for x in gs if x is not None], node.number, frame)
        if checking.get():
            seen = in_rule.get() or []
            in_rule.reset(self._inside)
            trace = mode.current_trace()
            if trace is None or trace.outside is not None:  # other traces have no elements
                check_contributions(node, contributions, g, seen)
        hooks = getattr(node, "_hooks", None)
        if hooks is None or not hooks.after:
            return contributions
        outputs = tuple(self._tensor(x) for x in (g if node.op.nout > 1 else (g,)))
        inputs = tuple(self._tensor(x) for x in contributions)
        for hook in list(hooks.after.values()):
            note_hook()
            new = hook(inputs, outputs)
            if new is not None:
                inputs = tuple(new) if isinstance(new, (tuple, list)) else (new,)
                if len(inputs) != len(contributions):
                    raise ArgumentError(
                        f"a hook of {node.name()} returned {len(inputs)} gradients for {len(contributions)} inputs"
                    )
        return tuple(self._payload(x) for x in inputs)

    def pass_by(self, node: Node, g: Any) -> None:
        """Run the hooks of a node whose result is one of the `inputs` of `backward`: the pass ends there."""
        if self.deposit is not None and g is not None and getattr(node, "_hooks", None) is not None:
            self.after(node, (None,) * len(node.edges), self.before(node, g))

    def retire(self, node: Node | None, totals: dict[Edge, Any]) -> None:
        """Finish the leaves to which no later node contributes."""
        for leaf in self._leaves.get(node, ()):
            if totals.get(leaf) is None:
                continue
            self.arrive(leaf, totals)
            hooks = getattr(leaf, "_hooks", None)
            if self.deposit is None or hooks is None:
                continue
            total = totals[leaf]
            for hook in list(hooks.before.values()):
                new = hook((self._tensor(total),))
                if new is not None:
                    total = self._payload(new[0] if isinstance(new, (tuple, list)) else new)
            if self.deposit(leaf, total):
                totals.pop(leaf)
                for hook in list(hooks.accumulated.values()):
                    if hook(leaf) is not None:
                        raise GradientError("Tensor post accumulate grad hooks should return None.")
                for hook in list(hooks.after.values()):
                    hook((), (self._tensor(total),))

    def __enter__(self) -> HookedPass:
        self._token = _running.set(self)
        if self._profile is not None:
            self._pass = self._profile.open()
        return self

    def __exit__(self, *exc: object) -> None:
        _running.reset(self._token)
        if self._profile is not None:
            self._profile.close(self._pass, "backward", "backward")


def _reached(node: Node, totals: dict[Edge, Any]) -> bool:
    """Whether any of a node's results has a gradient."""
    return any(totals.get(slot) is not None for slot in (node, *((node, i) for i in range(1, node.op.nout))))


def _profile() -> Any:
    """The profile that is open; a trace is not measured."""
    return mode.profiling.get() if mode.current_trace() is None else None


def watched_pass(
    order: Sequence[Node], useful: Container[Any] | None, roots: Sequence[Edge], *how: Any
) -> HookedPass | None:
    """A pass over the useful nodes of `order` if any node or leaf has hooks, or something watches; else None."""
    edges = itertools.chain(roots, *(node.edges for node in order))
    watched = (
        checking.get()
        or _profile() is not None
        or any(hasattr(node, "_hooks") for node in order)
        or any(hasattr(edge, "_hooks") for edge in edges if type(edge) not in NODE_CLASSES)
    )
    if not watched:
        return None
    return HookedPass(order, order if useful is None else [node for node in order if node in useful], roots, *how)
