"""`Module`: named parameters, buffers and sub-modules, and a `forward` that uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from common.autograd.mutation import log_write
from common.create import lift, to_array
from common.errors import ArgumentError, DTypeError, ShapeError, StateError
from common.frames import user_frame
from common.leaf import Buffer, Leaf, Parameter
from common.op import REGISTRY
from common.tensor import TensorBase

M = TypeVar("M", bound="Module")


class Module:
    """Base class of everything that has parameters.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and modules to attributes, and defines
    ``forward``. It belongs to neither engine: the same object can be run by both.

    Attributes
    ----------
    training : set by `train` and `eval`, for modules whose forward differs.

    Examples
    --------
    >>> import numpy as np
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = Parameter(np.ones(3, np.float32))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    training: bool

    def __init__(self) -> None:
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, {})
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; defined by each subclass."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`; arrays among the arguments become tensors."""
        if kwargs:
            kwargs = {name: lift(x) for name, x in kwargs.items()}
        return self.forward(*map(lift, args), **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if "_modules" not in tables:
            raise AttributeError(f"cannot assign {name!r} before Module.__init__() call")
        if isinstance(value, TensorBase) and not isinstance(value, Leaf) and name in tables["_parameters"]:
            raise ArgumentError(
                f"cannot assign a {type(value).__name__} as parameter {name!r} (Parameter or None expected); to "
                "change its elements, use copy_() under no_grad()"
            )
        for table in ("_parameters", "_buffers", "_modules"):
            tables[table].pop(name, None)
        for kind, table in ((Parameter, "_parameters"), (Buffer, "_buffers"), (Module, "_modules")):
            if isinstance(value, kind):
                tables.pop(name, None)
                tables[table][name] = value
                self._rename("")
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if self.__dict__[table].pop(name, None) is not None:
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Make a parameter an attribute; None makes the attribute None."""
        setattr(self, name, parameter)

    def register_buffer(self, name: str, tensor: Any) -> None:
        """Make an array or tensor a buffer: part of the state, without gradient."""
        setattr(self, name, tensor if isinstance(tensor, Buffer) or tensor is None else Buffer(tensor))

    def _rename(self, prefix: str) -> None:
        """Give every leaf the qualified name that this module knows it by."""
        for name, leaf in self._leaves(prefix):
            leaf.name = name

    # ------------------------------------------------------------------ looking around

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        return iter(self._modules.values())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names."""
        return iter(self._modules.items())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """Iterate over this module and all below it with qualified names, each once, parents first."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            below = [(_join(name, child), m) for child, m in module._modules.items()]
            stack.extend(reversed(below))

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """All parameters with qualified names such as ``0.weight``, each once."""
        return ((n, p) for n, p in self._leaves(prefix) if isinstance(p, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """All parameters, each once: what an optimiser takes."""
        return (p for _, p in self.named_parameters())

    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Buffer]]:
        """All buffers with qualified names, each once."""
        return ((n, b) for n, b in self._leaves(prefix) if isinstance(b, Buffer))

    def buffers(self) -> Iterator[Buffer]:
        """All buffers, each once."""
        return (b for _, b in self.named_buffers())

    def _leaves(self, prefix: str) -> Iterator[tuple[str, Leaf]]:
        seen: set[int] = set()
        for name, module in self.named_modules(prefix):
            for leaf_name, leaf in (*module._parameters.items(), *module._buffers.items()):
                if id(leaf) not in seen:
                    seen.add(id(leaf))
                    yield _join(name, leaf_name), leaf

    # ------------------------------------------------------------------ state

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of every parameter's and buffer's array by qualified name."""
        return {name: leaf.data.copy() for name, leaf in self._state("")}

    def _state(self, prefix: str) -> Iterator[tuple[str, Leaf]]:
        """All parameters and buffers under every name that leads to them."""
        for name, leaf in (*self._parameters.items(), *self._buffers.items()):
            yield _join(prefix, name), leaf
        for name, module in self._modules.items():
            yield from module._state(_join(prefix, name))

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Copy arrays or tensors into the parameters and buffers of the same names.

        Parameters
        ----------
        state : as from `state_dict`; shapes agree, dtypes are converted.
        strict : refuse missing and unexpected names; nothing is changed then.

        Raises
        ------
        StateError : names are missing or unexpected.
        ShapeError : an array has another shape than the state of its name.
        """
        own = dict(self._state(""))
        missing, unexpected = [n for n in own if n not in state], [n for n in state if n not in own]
        if strict and (missing or unexpected):
            raise StateError(
                f"Error(s) in loading state_dict for {type(self).__name__}: missing key(s): {missing}, unexpected "
                f"key(s): {unexpected}"
            )
        arrays = {n: np.asarray(getattr(x, "data", x) if not isinstance(x, np.ndarray) else x)
                  for n, x in state.items() if n in own}  # fmt: skip
        for name, array in arrays.items():
            if array.shape != own[name].shape:
                raise ShapeError(f"size mismatch for {name}: copying {array.shape} into {own[name].shape}")
        for name, array in arrays.items():
            log_write(own[name].data, *user_frame(1))
            np.copyto(own[name].data, array, casting="same_kind")

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call `fn` with every module below and then with this one, for example to initialise parameters."""
        for module in self._modules.values():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set `training` here and below."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Switch the recording of all parameters."""
        for p in self.parameters():
            p.requires_grad = bool(requires_grad)
        return self

    def to(self: M, dtype: Any) -> M:
        """Convert all floating-point parameters and buffers, in place; gradients are forgotten.

        Raises
        ------
        DTypeError : `dtype` is not float32 or float64.
        """
        wanted = np.dtype(dtype)
        if wanted.kind != "f":
            raise DTypeError(f"Module.to only accepts floating point dtypes, but got {wanted}")
        for _, leaf in self._leaves(""):
            if leaf.dtype.kind == "f" and leaf.dtype != wanted:
                leaf.data, leaf.grad = to_array(leaf.data, wanted), None
        return self

    def double(self: M) -> M:
        """``to(float64)``."""
        return self.to(np.float64)

    def float(self: M) -> M:
        """``to(float32)``."""
        return self.to(np.float32)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; or set them to 0."""
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad = REGISTRY["zeros_like"](p.grad.detach())

    # ------------------------------------------------------------------ as text

    def extra_repr(self) -> str:
        """The arguments that `repr` shows."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in self._modules.items()]
        head = f"{type(self).__name__}({self.extra_repr()}"
        return head + "".join(f"\n  {line}" for line in lines) + ("\n)" if lines else ")")


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
