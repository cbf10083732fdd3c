"""Ways of pruning: what decides which elements of a parameter become 0.

As in PyTorch, ``<name>_orig`` is the parameter, ``<name>_mask`` a buffer, and ``<name>`` their product, here computed
whenever it is read. The pre-hook of the module tells what has pruned it. A parameter that is pruned again is pruned
among what is left: its hook becomes a `PruningContainer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, NotDefinedError, ShapeError
from common.nn import functions as F
from common.nn.computed import compute, compute_no_more
from common.nn.module import Module
from common.random.orders import randperm
from common.tensor.create import lift


def _check_amount(amount: Any) -> None:
    """Refuse what is neither a number of elements nor a part of them."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise ArgumentError(f"Invalid type for amount: {type(amount).__name__}. Must be int or float.")
    if not (0 <= amount <= 1.0 or (isinstance(amount, int) and amount > 0)):
        raise ArgumentError(f"amount={amount} should either be a float in the range [0.0, 1.0] or a non-negative "
                            "integer")  # fmt: skip


def _count(amount: Any, size: int) -> int:
    """How many of `size` elements an amount is.

    Raises
    ------
    ArgumentError : more elements than there are.
    """
    if isinstance(amount, float):
        return round(amount * size)
    if amount > size:
        raise ArgumentError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return int(amount)


class BasePruningMethod:
    """A way of pruning: `apply` prunes a parameter of a module by the mask that `compute_mask` makes.

    An instance stands among the module's pre-hooks. A subclass defines `compute_mask`, and says in
    `PRUNING_TYPE` what it is given of a parameter that is pruned already.

    Attributes
    ----------
    PRUNING_TYPE : "unstructured": the elements that are left, (n,); "structured": the slices along `dim` of which
        anything is left; "global": everything.

    Examples
    --------
    >>> import dynamic as tw
    >>> class EveryOther(tw.nn.utils.prune.BasePruningMethod):
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = tw.nn.Linear(2, 2)
    >>> _ = EveryOther.apply(layer, "bias")
    >>> layer.bias_mask
    tensor([0., 1.])
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name = ""  # PyTorch's name, by which its programs find the hook

    def __call__(self, module: Module, inputs: Any) -> None:
        """Do nothing before a call of the module: its attribute is computed whenever it is read."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask of a tensor (...), of the mask (...) so far; a subclass defines it."""
        raise NotDefinedError(f"{type(self).__name__} has to define compute_mask(t, default_mask)")

    def apply_mask(self, module: Module) -> Any:
        """The parameter of a module times its mask.

        Raises
        ------
        ArgumentError : the module has not been pruned by this.
        """
        if f"{self._tensor_name}_mask" not in module._buffers:
            raise ArgumentError(f"Module {type(module).__name__} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return original * getattr(module, f"{self._tensor_name}_mask").to(original.dtype)

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor (...) times the mask that `compute_mask` makes of it, or of its `importance_scores` (...)."""
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, F.ones_like(t) if default_mask is None else default_mask).to(t.dtype)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter an ordinary one, with its zeros; the pre-hook stays, see `prune.remove`."""
        name = self._tensor_name
        with mode.GradSwitch(False):
            pruned = self.apply_mask(module)
            original = module._parameters.pop(f"{name}_orig")
            original.copy_(pruned)
        del module._buffers[f"{name}_mask"]
        compute_no_more(module, name)
        setattr(module, name, original)

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module; an error leaves the module as it is.

        Parameters
        ----------
        module, name : the parameter.
        args, kwargs : what makes an instance.
        importance_scores : (...) as the parameter: what `compute_mask` is given in place of what the module computes
            with, where elements that are pruned already are 0.

        Raises
        ------
        ArgumentError : no such parameter.
        ShapeError : scores of another shape.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original, mask = present(module, name)
        scores = getattr(module, name).detach() if importance_scores is None else lift(importance_scores).detach()
        if scores.shape != original.shape:
            raise ShapeError(
                f"importance_scores should have the same shape as parameter {name} of {type(module).__name__}: "
                f"{tuple(original.shape)}, got {tuple(scores.shape)}"
            )
        found = hook_of(module, name)
        with mode.GradSwitch(False):
            keep = method.compute_mask(scores, mask.clone()) if found is None else combined(method, scores, mask)
            keep = keep.to(original.dtype)
        if found is None:
            parameter = module._parameters.pop(name)
            module.register_parameter(f"{name}_orig", parameter)
            module.register_buffer(f"{name}_mask", keep)
            module.register_forward_pre_hook(method)
            compute(module, name, method.apply_mask)
        else:
            mask.copy_(keep)
            place, hook = found
            if not isinstance(hook, PruningContainer):
                hook = module._module_hooks.forward_pre[place] = PruningContainer(hook)  # type: ignore[union-attr]
            hook.add_pruning_method(method)
        return method


def combined(method: BasePruningMethod, t: Any, mask: Any) -> Any:
    """The mask (...) of a tensor (...) of which a method prunes what a mask (...) has left."""
    left: Any
    if method.PRUNING_TYPE == "unstructured":
        left = mask == 1
    elif method.PRUNING_TYPE == "structured":
        dim = getattr(method, "dim", None)
        if dim is None or not -t.ndim <= dim < t.ndim:
            raise ArgumentError(f"{type(method).__name__}.dim has to be a dimension of a tensor of {t.ndim}, got {dim}")
        rows = F.reshape(F.transpose(mask, 0, dim), (mask.shape[dim], -1))
        left = (*[slice(None)] * (dim % t.ndim), F.any(rows != 0, 1))
    elif method.PRUNING_TYPE == "global":
        left = ...
    else:
        raise ArgumentError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE!r}: unstructured, structured or global")
    result = mask.to(t.dtype).clone()
    result[left] = method.compute_mask(t[left], mask[left]).to(t.dtype)
    return result


class PruningContainer(BasePruningMethod):
    """The pre-hook of a parameter that has been pruned more than once: a sequence of what did it, the first first."""

    def __init__(self, *args: BasePruningMethod) -> None:
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
        """The mask of the newest way of pruning, which prunes of `t` what the mask so far leaves."""
        return combined(self._pruning_methods[-1], t, default_mask)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]


class IdentityPruning(BasePruningMethod):
    """See `identity`."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far."""
        return default_mask


Identity = IdentityPruning  # PyTorch's name


class _ByAmount(BasePruningMethod):
    """One that sets a number of elements, or of slices along `dim`, to 0: the first in an order.

    Raises
    ------
    ArgumentError : an amount that is no number of elements and no part of them.
    """

    dim: int | None = None

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def order(self, rows: Any) -> Any:
        """The order (n,) in which elements (n,) or slices (n, elements) go; a subclass defines it."""
        raise NotDefinedError(f"{type(self).__name__} has to define order(rows)")

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far, with 0 at what goes."""
        if self.dim is None:
            rows, size = F.reshape(t, (-1,)), t.numel()
        elif t.ndim < 2:
            raise ArgumentError(f"Structured pruning can only be applied to multidimensional tensors. Found tensor of "
                                f"shape {tuple(t.shape)} with {t.ndim} dims")  # fmt: skip
        else:
            size = t.shape[self.dim]
            rows = F.reshape(F.transpose(t, 0, self.dim), (size, -1))
        gone = self.order(rows)[: _count(self.amount, size)]
        if self.dim is not None:
            return F.index_fill(default_mask, self.dim, gone, 0)
        return F.reshape(F.index_fill(F.reshape(default_mask, (-1,)), 0, gone, 0), default_mask.shape)


class L1Unstructured(_ByAmount):
    """See `l1_unstructured`."""

    def order(self, rows: Any) -> Any:
        """By magnitude, the least first."""
        return F.argsort(F.abs(rows), stable=True)


class RandomUnstructured(_ByAmount):
    """See `random_unstructured`."""

    def order(self, rows: Any) -> Any:
        """A random one."""
        return lift(randperm(int(rows.shape[0])))


class LnStructured(_ByAmount):
    """See `ln_structured`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def order(self, rows: Any) -> Any:
        """By norm, the least first."""
        return F.argsort(F.norm(rows, self.n, 1), stable=True)


class RandomStructured(_ByAmount):
    """See `random_structured`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    order = RandomUnstructured.order


class CustomFromMask(BasePruningMethod):
    """See `custom_from_mask`."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask so far times this one."""
        return default_mask * lift(self.mask).to(default_mask.dtype)


def hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The pre-hook of a pruned parameter, and its id."""
    for i, hook in module._module_hooks.forward_pre.items() if module._module_hooks else ():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return i, hook
    return None


def present(module: Module, name: str) -> tuple[Any, Any]:
    """The parameter and its mask so far."""
    original = module._parameters.get(f"{name}_orig")
    if original is not None:
        return original.detach(), getattr(module, f"{name}_mask")
    value = module._parameters.get(name)
    if value is None:
        raise ArgumentError(f"{type(module).__name__} has no parameter {name!r} to prune")
    return value.detach(), F.ones_like(value.detach())
