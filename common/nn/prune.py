"""Pruning: parameters with elements set to 0 by a mask, which a pre-hook applies at each call.

As in PyTorch, ``<name>_orig`` is the parameter, ``<name>_mask`` a buffer, and ``<name>`` their product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from common.core import mode
from common.core.dtypes import default_float
from common.core.errors import ArgumentError, NotDefinedError
from common.core.int_arguments import mapping, members
from common.nn import functions as F
from common.nn.module import Module
from common.random.generator import randperm
from common.tensor.create import lift
from common.tensor.leaf import Parameter


def _count(amount: Any, size: int) -> int:
    """How many of `size` elements an amount is.

    Raises
    ------
    ArgumentError : a negative amount, a fraction above 1, or more elements than there are.
    """
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise ArgumentError(f"Invalid type for amount: {type(amount).__name__}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1.0):
        raise ArgumentError(f"amount={amount} should either be a float in the range [0.0, 1.0] or a non-negative "
                            "integer")  # fmt: skip
    if isinstance(amount, int):
        if amount > size:
            raise ArgumentError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return amount
    return round(amount * size)


class BasePruningMethod:
    """A way of pruning: `apply` prunes a parameter of a module by what `compute_mask` keeps.

    An instance is the pre-hook that multiplies by the mask.
    """

    _tensor_name = ""  # PyTorch's name, by which its programs find the hook

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __call__(self, module: Module, inputs: Any) -> None:
        """Set the parameter before a call of its module."""
        object.__setattr__(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Any:
        """The parameter of a module times its mask."""
        original = getattr(module, f"{self._tensor_name}_orig")
        return original * getattr(module, f"{self._tensor_name}_mask").to(original.dtype)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of a tensor, of the mask so far."""
        raise NotDefinedError(f"{type(self).__name__} has to define compute_mask(t, default_mask)")

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor (...) times the mask that `compute_mask` makes of it, or of its `importance_scores` (...)."""
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, F.ones_like(t) if default_mask is None else default_mask).to(t.dtype)

    def remove(self, module: Module) -> None:
        """See the function `remove`."""
        remove(module, self._tensor_name)

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, **kwargs: Any) -> Module:
        """Prune a parameter of a module."""
        value, mask = _present(module, name)
        method = cls(*args, **kwargs)
        return _masked(module, name, method.compute_mask(value, mask.clone()), method)


class PruningContainer(BasePruningMethod):
    """The pre-hook of a parameter that has been pruned more than once: a sequence of what did it, the first first."""

    def __init__(self, *args: BasePruningMethod) -> None:
        super().__init__()
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Append a way of pruning the same parameter.

        Raises
        ------
        ArgumentError : it is none, or prunes another parameter.
        """
        if method is not None and not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method).__name__} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name not in ("", method._tensor_name):
            raise ArgumentError(
                f"Can only add pruning methods acting on the parameter named {self._tensor_name!r} to this "
                f"PruningContainer. Found {method._tensor_name!r}"
            )
        if method is not None:
            self._tensor_name = method._tensor_name
            self._pruning_methods += (method,)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of the newest way of pruning, of what the mask so far leaves."""
        return self._pruning_methods[-1].compute_mask(t, default_mask) * default_mask

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]


def _hook(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The pre-hook of a pruned parameter, and its id."""
    for i, hook in module._hooks.forward_pre.items() if module._hooks else ():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return i, hook
    return None


def _masked(module: Module, name: str, keep: Any, method: BasePruningMethod) -> Module:
    """Set elements to 0 where `keep` is 0, besides those that are already."""
    if f"{name}_orig" not in module._parameters:
        if not isinstance(module._parameters.get(name), Parameter):
            raise ArgumentError(f"{type(module).__name__} has no parameter {name!r} to prune")
        original = module._parameters.pop(name)
        module.register_parameter(f"{name}_orig", original)
        module.register_buffer(f"{name}_mask", F.ones_like(original.detach()))
    with mode.GradSwitch(False):
        mask = getattr(module, f"{name}_mask")
        mask.copy_(mask * keep.to(mask.dtype))
    method._tensor_name = name
    found = _hook(module, name)
    if found is None:
        module.register_forward_pre_hook(method)
    elif isinstance(found[1], PruningContainer):
        found[1].add_pruning_method(method)
    else:
        module._hooks.forward_pre[found[0]] = PruningContainer(found[1], method)  # type: ignore[union-attr]
    method(module, ())
    return module


def _present(module: Module, name: str) -> tuple[Any, Any]:
    """The parameter and its mask so far."""
    original = module._parameters.get(f"{name}_orig")
    if original is not None:
        return original.detach(), getattr(module, f"{name}_mask")
    value = module._parameters.get(name)
    if value is None:
        raise ArgumentError(f"{type(module).__name__} has no parameter {name!r} to prune")
    return value.detach(), F.ones_like(value.detach())


def _without(order: Any, count: int, shape: tuple[Any, ...]) -> Any:
    """Ones, and zeros at the first `count` of an order of the elements."""
    ones = F.reshape(F.ones_like(order.to(default_float())), (-1,))
    return F.reshape(F.index_fill(ones, 0, order[:count], 0.0), shape)


def identity(module: Module, name: str) -> Module:
    """Prune nothing, but make mask and parameter as pruning does."""
    with mode.GradSwitch(False):
        value, _ = _present(module, name)
        keep = F.ones_like(value)
    return _masked(module, name, keep, Identity())


def _unstructured(module: Module, name: str, amount: Any, scores: Any, kind: type[BasePruningMethod]) -> Module:
    with mode.GradSwitch(False):
        value, mask = _present(module, name)
        left = F.reshape(mask, (-1,)) > 0
        alive = F.argsort(F.where(left, 0, 1), stable=True)[: int(F.sum(left).item())]
        count = _count(amount, int(alive.shape[0]))
        order = alive[scores(F.reshape(value, (-1,))[alive])]
        keep = _without(F.cat((order, F.argsort(F.where(left, 1, 0), stable=True)[: left.shape[0] - order.shape[0]])),
                        count, tuple(value.shape))  # fmt: skip
    return _masked(module, name, keep, kind(amount))


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Set random elements of a parameter to 0.

    Parameters
    ----------
    module, name : the parameter.
    amount : an int, how many; or a float, which part of those that are left.

    Raises
    ------
    ArgumentError : no such parameter or amount.
    """
    return _unstructured(module, name, amount, lambda x: lift(randperm(int(x.shape[0]))), RandomUnstructured)


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Any = None) -> Module:
    """Set the elements of least magnitude to 0; see `random_unstructured`.

    Parameters
    ----------
    importance_scores : (...) as the parameter, in place of the magnitudes.
    """
    if importance_scores is not None:
        flat = F.reshape(importance_scores.detach(), (-1,))
        _, mask = _present(module, name)
        alive = F.nonzero(F.reshape(mask, (-1,)) > 0)[:, 0]
        return _unstructured(module, name, amount, lambda x: F.argsort(F.abs(flat[alive]), stable=True), L1Unstructured)
    return _unstructured(module, name, amount, lambda x: F.argsort(F.abs(x), stable=True), L1Unstructured)


def _structured(module: Module, name: str, amount: Any, dim: int, order: Any, method: BasePruningMethod) -> Module:
    with mode.GradSwitch(False):
        value, mask = _present(module, name)
        if value.ndim < 2:
            raise ArgumentError(f"Structured pruning can only be applied to multidimensional tensors. Found tensor of "
                                f"shape {tuple(value.shape)} with {value.ndim} dims")  # fmt: skip
        n = int(value.shape[dim])
        row = _without(order(value * mask), _count(amount, n), (n,))
        keep = F.ones_like(value) * F.reshape(row, [n if i == dim % value.ndim else 1 for i in range(value.ndim)])
    return _masked(module, name, keep, method)


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Set random slices along `dim` to 0; see `random_unstructured`."""
    method = RandomStructured(amount, dim)
    return _structured(module, name, amount, dim, lambda x: lift(randperm(int(x.shape[dim]))), method)


def ln_structured(module: Module, name: str, amount: Any, n: float, dim: int, importance_scores: Any = None) -> Module:
    """Set the slices along `dim` of least norm of order `n` to 0; see `random_unstructured`."""

    def order(x: Any) -> Any:
        x = x if importance_scores is None else importance_scores.detach()
        rows = F.reshape(F.transpose(x, 0, dim), (x.shape[dim], -1))
        return F.argsort(F.norm(rows, n, 1), stable=True)

    return _structured(module, name, amount, dim, order, LnStructured(amount, n, dim))


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Set elements to 0 where a mask (...) is 0."""
    return _masked(module, name, lift(mask), CustomFromMask(mask))


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters as if they were one.

    Parameters
    ----------
    parameters : pairs of modules and names.
    pruning_method : `L1Unstructured` or `RandomUnstructured`.
    importance_scores : tensors by pair, in place of the magnitudes.
    kwargs : ``amount``.
    """
    pairs = members(parameters, "global_unstructured", "parameters")
    given = mapping({} if importance_scores is None else importance_scores, "global_unstructured", "importance_scores")
    with mode.GradSwitch(False):
        found = [_present(*pair) for pair in pairs]
        whole = Module()
        values = [given[pair].detach() if pair in given else x for pair, (x, _) in zip(pairs, found, strict=True)]
        whole.register_parameter("all", Parameter(F.cat([F.reshape(x, (-1,)) for x in values])))
        custom_from_mask(whole, "all", F.cat([F.reshape(m, (-1,)) for _, m in found]))
        pruning_method.apply(whole, "all", **kwargs)
        start = 0
        for (module, name), (x, _) in zip(pairs, found, strict=True):
            part = whole.all_mask[start : start + x.numel()]
            start += x.numel()
            custom_from_mask(module, name, F.reshape(part, tuple(x.shape)))


class _OfFunction(BasePruningMethod):
    """One that a function of this module defines."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """See `BasePruningMethod.compute_mask`."""
        whole = Module()
        whole.register_parameter("all", Parameter(t.detach()))
        custom_from_mask(whole, "all", default_mask)
        type(self).apply(whole, "all", *self.args, **self.kwargs)
        return whole.all_mask


class IdentityPruning(_OfFunction):
    """See `identity`."""

    apply = staticmethod(identity)


Identity = IdentityPruning  # PyTorch's name


class L1Unstructured(_OfFunction):
    """See `l1_unstructured`."""

    apply = staticmethod(l1_unstructured)


class RandomUnstructured(_OfFunction):
    """See `random_unstructured`."""

    apply = staticmethod(random_unstructured)


class LnStructured(_OfFunction):
    """See `ln_structured`."""

    apply = staticmethod(ln_structured)


class RandomStructured(_OfFunction):
    """See `random_structured`."""

    apply = staticmethod(random_structured)


class CustomFromMask(_OfFunction):
    """See `custom_from_mask`."""

    apply = staticmethod(custom_from_mask)


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with its zeros.

    Raises
    ------
    ArgumentError : it is not pruned.
    """
    found = _hook(module, name)
    if found is not None:
        del module._hooks.forward_pre[found[0]]  # type: ignore[union-attr]
        original, mask = module._parameters.pop(f"{name}_orig"), module._buffers.pop(f"{name}_mask")
        with mode.GradSwitch(False):
            original.copy_(original * mask)
        module.__dict__.pop(name, None)
        setattr(module, name, original)
        return module
    raise ArgumentError(
        f"Parameter '{name}' of module {type(module).__name__} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in (m._hooks.forward_pre.values() if m._hooks else ())
    )


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip
