"""Pruning of modules: functions that set elements of their parameters to 0, and keep them so at each call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError
from common.core.int_arguments import mapping, members
from common.nn import functions as F
from common.nn.module import Module
from common.nn.pruning_methods import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    IdentityPruning,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    combined,
    hook_of,
    present,
)


def identity(module: Module, name: str) -> Module:
    """Prune nothing, but make mask and parameter as pruning does."""
    IdentityPruning.apply(module, name)
    return module


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
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Any = None) -> Module:
    """Set the elements of least magnitude to 0; see `random_unstructured`.

    Parameters
    ----------
    importance_scores : (...) as the parameter, whose magnitudes count instead.
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Set random slices along `dim` to 0; see `random_unstructured`."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Module:
    """Set the slices along `dim` of least norm of order `n` to 0; see `l1_unstructured`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Any) -> Module:
    """Set elements to 0 where a mask (...) is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Any = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    Parameters
    ----------
    parameters : pairs of modules and names.
    pruning_method : one whose `PRUNING_TYPE` is "unstructured", such as `L1Unstructured`.
    importance_scores : tensors by pair, in place of the parameters.
    kwargs : what makes the method: ``amount``.

    Raises
    ------
    ArgumentError : another method, or no such parameter.
    """
    pairs = members(parameters, "global_unstructured", "parameters")
    given = mapping({} if importance_scores is None else importance_scores, "global_unstructured", "importance_scores")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
                            f"{pruning_method} of type {method.PRUNING_TYPE}")  # fmt: skip
    with mode.GradSwitch(False):
        found = [present(*pair) for pair in pairs]
        values = [(given[pair] if pair in given else getattr(*pair)).detach() for pair in pairs]
        flat = [F.cat([F.reshape(x, (-1,)) for x in some]) for some in (values, [m for _, m in found])]
        keep = combined(method, *flat)
    start = 0
    for (module, name), (x, _) in zip(pairs, found, strict=True):
        part = keep[start : start + x.numel()]
        start += x.numel()
        custom_from_mask(module, name, F.reshape(part, tuple(x.shape)))


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one, with its zeros.

    Raises
    ------
    ArgumentError : it is not pruned.
    """
    found = hook_of(module, name)
    if found is not None:
        place, hook = found
        hook.remove(module)
        del module._module_hooks.forward_pre[place]  # type: ignore[union-attr]
        return module
    raise ArgumentError(
        f"Parameter '{name}' of module {type(module).__name__} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in (m._module_hooks.forward_pre.values() if m._module_hooks else ())
    )


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip
