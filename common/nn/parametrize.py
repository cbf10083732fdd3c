"""Parameters as functions of others: a module computes an attribute from trained ones whenever it is read.

The class of the module is exchanged for one of its own, with a property for each such attribute. What is trained lies
in ``module.parametrizations.<name>.original``, as in PyTorch, so that state dicts fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from operator import not_
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, ShapeError
from common.core.switching import Change, switching, when
from common.nn.containers import ModuleDict, ModuleList
from common.nn.module import Module
from common.tensor.base import TensorBase
from common.tensor.leaf import Buffer, Parameter

_INVERSE = "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...)."
_cache: dict[tuple[int, str], Any] = {}
_open: list[bool] = []


class ParametrizationList(ModuleList):
    """The functions of one attribute, applied one after the other, and what the first of them gets.

    Parameters
    ----------
    modules : the functions.
    original : the parameter or buffer so far.
    unsafe : whether results are not checked.

    Attributes
    ----------
    original : what is trained; where a function's ``right_inverse`` gives several, ``original0``, ``original1``, ...
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        new: Any = original
        with mode.GradSwitch(False):
            for module in reversed(list(modules)):
                new = _inverted(module, new)
        self.is_tensor = not isinstance(new, (tuple, list))
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._take(original, new)
            return
        kind = Parameter if isinstance(original, Parameter) else Buffer
        for i, x in enumerate(new):
            if not isinstance(x, TensorBase):
                raise ArgumentError(f"{_INVERSE} Got element {i} of the sequence with type {type(x).__name__}")
            leaf = kind(x)
            if kind is Parameter:
                leaf._requires_grad = original.requires_grad and leaf.dtype.kind == "f"
            setattr(self, f"original{i}", leaf)

    def _take(self, original: Any, new: Any) -> None:
        """Keep the one original, which optimisers know, with its new elements."""
        if not isinstance(new, TensorBase):
            raise ArgumentError(f"{_INVERSE} Got {type(new).__name__}")
        if new.dtype != original.dtype:
            raise ArgumentError(
                f"When `right_inverse` outputs one tensor, it may not change the dtype: {original.dtype}, {new.dtype}"
            )
        if new is not original:
            with mode.no_grad():
                original.set_(new)
        self.original = original

    def originals(self) -> tuple[Any, ...]:
        """The arguments of the first function."""
        return (
            (self.original,) if self.is_tensor else tuple(getattr(self, f"original{i}") for i in range(self.ntensors))
        )

    def right_inverse(self, value: Any) -> None:
        """Change what is trained so that the attribute becomes `value`."""
        with mode.GradSwitch(False):
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise ArgumentError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            for own, new in zip(self.originals(), (value,) if self.is_tensor else value, strict=True):
                own.copy_(new)

    def forward(self) -> Any:
        """The attribute."""
        first, *rest = self
        x = first(*self.originals())
        for module in rest:
            x = module(x)
        return x


def _inverted(module: Module, value: Any) -> Any:
    """What a parametrization makes `value` of: that itself where it has no inverse."""
    try:
        return module.right_inverse(value) if hasattr(module, "right_inverse") else value
    except NotImplementedError:
        return value


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        if not _open:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _own_class(module: Module) -> None:
    """Give a module a class of its own, which properties can be added to."""
    cls = type(module)

    def setter(self: Any, name: str, value: Any) -> None:
        found = getattr(type(self), name, None)
        found.__set__(self, value) if isinstance(found, property) else cls.__setattr__(self, name, value)

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        state = {key: deepcopy(value, memo) for key, value in self.__dict__.items()}
        new = object.__new__(cls)
        new.__dict__.update(state)
        if "parametrizations" in new._modules:
            _own_class(new)
            for name in new.parametrizations:
                setattr(type(new), name, _property(name))
        return new

    def refused(self: Any, protocol: Any) -> Any:
        raise ArgumentError("Serialization of parametrized modules is only supported through state_dict()")

    space = {"__setattr__": setter, "__deepcopy__": copied, "__reduce_ex__": refused, "__module__": cls.__module__,
             "_plain": cls}  # fmt: skip
    object.__setattr__(module, "__class__", type(f"Parametrized{cls.__name__}", (cls,), space))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by another module.

    Parameters
    ----------
    module : gets the parametrization, and a class of its own.
    tensor_name : of a parameter or buffer.
    parametrization : its `forward` gives the attribute of what is trained; its ``right_inverse``, where it has one,
        the first value of what is trained. A further parametrization is applied to what the attribute is so far.
    unsafe : whether shape and dtype may change.

    Returns
    -------
    module : the same one.

    Raises
    ------
    ArgumentError : there is no such parameter or buffer; the parametrization returns no tensor, or changes the dtype;
        its ``right_inverse`` does.
    ShapeError : the parametrization changes the shape.

    Examples
    --------
    >>> import dynamic as tw
    >>> class Symmetric(tw.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).transpose(-1, -2)
    >>> layer = register_parametrization(tw.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    if not isinstance(parametrization, Module) or not isinstance(module, Module):
        raise ArgumentError("register_parametrization(): expected a module, a name and a module")
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known: Any = module.parametrizations[tensor_name]
        if not unsafe:
            _require_like(parametrization, getattr(module, tensor_name), tensor_name)
        known.unsafe = known.unsafe or unsafe
        known.append(parametrization)
        return module
    table = next((t for t in (module._parameters, module._buffers) if t.get(tensor_name) is not None), None)
    if table is None:
        raise ArgumentError(
            f"Module '{type(module).__name__}' does not have a parameter, a buffer, or a parametrized element with "
            f"name '{tensor_name}'"
        )
    original = table[tensor_name]
    shape, dtype = tuple(original.shape), original.dtype
    made = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with mode.GradSwitch(False):
            _require_same(made(), shape, dtype)
    delattr(module, tensor_name)
    if "parametrizations" not in module._modules:
        module.parametrizations = ModuleDict()
        _own_class(module)
    module.parametrizations[tensor_name] = made
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _require_same(result: Any, shape: tuple[Any, ...], dtype: Any) -> None:
    """Refuse a parametrization that gives no tensor of this shape and dtype."""
    if not isinstance(result, TensorBase):
        raise ArgumentError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what, got, wanted in (("dtype", result.dtype, dtype), ("shape", tuple(result.shape), shape)):
        if got != wanted:
            raise (ShapeError if what == "shape" else ArgumentError)(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                f"enabled: {got}, {wanted}"
            )


def _require_like(parametrization: Module, value: Any, name: str) -> None:
    """Refuse a further parametrization that changes shape or dtype, or whose inverse does."""
    with mode.GradSwitch(False):
        result = parametrization(value)
        _require_same(result, tuple(value.shape), value.dtype)
        inverse = _inverted(parametrization, result)
    if not isinstance(inverse, TensorBase):
        raise ArgumentError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what, got, wanted in (
        ("dtype", inverse.dtype, value.dtype), ("shape", tuple(inverse.shape), tuple(value.shape)),
    ):  # fmt: skip
        if got != wanted:
            raise ArgumentError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless `unsafe` flag is enabled: {got}, {wanted}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations: any, or one of an attribute."""
    known = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(known, ModuleDict):
        return False
    return bool(len(known)) if tensor_name is None else tensor_name in known


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make an attribute an ordinary parameter or buffer again.

    Parameters
    ----------
    module, tensor_name : see `register_parametrization`.
    leave_parametrized : whether it has its present value, instead of that of what was trained.

    Raises
    ------
    ArgumentError : it has no parametrization, or several originals that leave no value.
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"Module {type(module).__name__} does not have a parametrization on {tensor_name}")
    made: Any = module.parametrizations[tensor_name]
    original = made.originals()[0]
    if leave_parametrized:
        with mode.GradSwitch(False):
            value = made().detach()
        if made.is_tensor and tuple(value.shape) == tuple(original.shape):
            with mode.no_grad():
                original.copy_(value)
        else:
            original = Parameter(value) if isinstance(original, Parameter) else Buffer(value)
    elif not made.is_tensor:
        raise ArgumentError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
                            "terms of a sequence of tensors.")  # fmt: skip
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module._modules["parametrizations"]
        object.__setattr__(module, "__class__", type(module)._plain)  # type: ignore[attr-defined]
    setattr(module, tensor_name, original)
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize another module in the same way, with the same functions and what they train.

    Parameters
    ----------
    from_module : has the parametrizations.
    to_module : gets them; a parameter that it does not have is made.
    tensor_name : of one parametrized attribute; all by default.

    Returns
    -------
    to_module : the same one.
    """
    if not is_parametrized(from_module):
        return to_module
    tables: Any = from_module.parametrizations
    for name in list(tables) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for function in tables[name]:
            register_parametrization(to_module, name, function)
        made: Any = to_module.parametrizations[name]
        for key in tables[name]._parameters:
            setattr(made, key, getattr(tables[name], key))
    return to_module


@switching
def cached() -> Change:
    """Compute each parametrized attribute once inside, however often it is read."""
    return Change((partial(_open.append, True),), (_open.pop, when(_cache.clear, partial(not_, _open))))


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had."""
    return type(module)._plain if is_parametrized(module) else type(module)  # type: ignore[attr-defined]


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip
