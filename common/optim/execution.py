"""Options that say how PyTorch carries out a step; only `differentiable` changes anything here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from common.core.errors import ArgumentError
from common.tensor.base import TensorBase


class Execution(TypedDict, total=False):
    """Options that every optimiser accepts besides its own.

    A step is one native call however many parameters there are, so `foreach`, `fused` and `capturable` are kept in
    the groups for scripts that read them, and change nothing. With `differentiable` steps are recorded operations:
    gradients go through them, to parameters that are results themselves.
    """

    foreach: bool | None
    fused: bool | None
    capturable: bool
    differentiable: bool


DEFAULTS: Execution = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}


def execution(kind: str, given: Mapping[str, Any], numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `Execution`, completed.

    Parameters
    ----------
    kind : the optimiser's name.
    given : keyword arguments.
    numbers : its own options: of these PyTorch's loops over lists of tensors take no tensors.

    Raises
    ------
    ArgumentError : another keyword, or options that exclude each other.
    """
    for name in given:
        if name not in DEFAULTS:
            raise ArgumentError(f"{kind}.__init__() got an unexpected keyword argument {name!r}")
    options: dict[str, Any] = {**DEFAULTS, **given}
    if options["fused"] and options["differentiable"]:
        raise ArgumentError("`fused` does not support `differentiable`")
    if options["fused"] and options["foreach"]:
        raise ArgumentError("`fused` and `foreach` cannot be `True` together.")
    if options["foreach"] and not options["capturable"]:
        parts = {"lr": numbers.get("lr"), **{f"betas[{i}]": x for i, x in enumerate(numbers.get("betas", ()))}}
        for name, value in parts.items():
            if isinstance(value, TensorBase):
                raise ArgumentError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
    return options
