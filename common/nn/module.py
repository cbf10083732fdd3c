"""`Module`: named parameters, buffers and sub-modules, and a `forward` that uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, TypeVar

from common.core import absent, mode, scopes
from common.core.errors import ArgumentError, MissingAttributeError, NotDefinedError, RegistrationError
from common.core.op import REGISTRY
from common.core.pickling import FunctionHolder
from common.nn.module_conversions import Convertible
from common.nn.module_hooks import Hookable, as_registered, call_with_hooks, of_all
from common.nn.module_state import Stateful, converted
from common.nn.tables import TABLES, Table, TableAttribute, join
from common.nn.where import name_module
from common.tensor.base import TensorBase
from common.tensor.boundary import guards_itself, refuse
from common.tensor.create import lift
from common.tensor.leaf import Buffer, Leaf, Parameter

M = TypeVar("M", bound="Module")


class Module(Convertible, Stateful, Hookable, FunctionHolder):
    """Base class of everything that has parameters.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and modules to attributes, and defines
    ``forward``. It belongs to neither engine: the same object can be run by both.

    Attributes
    ----------
    training : set by `train` and `eval`, for modules whose forward differs.
    call_super_init : whether ``Module.__init__`` calls that of the next base, with the arguments that it got.

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
    call_super_init = False
    _parameters, _buffers, _modules = TableAttribute(), TableAttribute(), TableAttribute()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            given = f"an argument {next(iter(kwargs))!r}" if kwargs else f"{len(args)} arguments"
            raise ArgumentError(f"{type(self).__name__}: Module.__init__() takes none, but got {given}")
        for name in TABLES:
            object.__setattr__(self, name, Table())
        object.__setattr__(self, "_non_persistent_buffers_set", set())
        object.__setattr__(self, "training", True)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; each subclass defines it."""
        raise NotDefinedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    @guards_itself
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` between the hooks; arrays among the arguments become tensors."""
        try:
            if kwargs:
                kwargs = {name: lift(x) for name, x in kwargs.items()}
            if mode.tracing and (trace := mode.current_trace()) is not None:
                trace.note_module(self)
            if mode.tracing or self._module_hooks is not None or of_all.used:
                with scopes.inside(self):
                    return call_with_hooks(self, self._module_hooks, tuple(map(lift, args)), kwargs)
            if kwargs or len(args) != 1:
                return self.forward(*map(lift, args), **kwargs)
            (x,) = args
            return self.forward(x if isinstance(x, TensorBase) else lift(x))
        except Exception as error:
            name_module(error, self)
            refuse(error, self.forward, type(self).__name__, *args, **kwargs)
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        tables = self.__dict__
        if "_modules" not in tables and isinstance(value, (Parameter, Module, Buffer)):
            raise MissingAttributeError(f"cannot assign {name!r} before Module.__init__() call")
        mode.note_change()
        for kind, table, what in (
            (Parameter, "_parameters", "parameter"), (Module, "_modules", "module"), (Buffer, "_buffers", "buffer")
        ):  # fmt: skip
            if isinstance(value, kind):
                value = as_registered(what, self, name, value)
                for other in (tables, *(tables[x] for x in TABLES if x != table)):
                    other.pop(name, None)
                if kind is not Buffer:
                    self._non_persistent_buffers_set.discard(name)
                tables[table][name] = value
                if kind is Module or value.name:  # other names may lead to it
                    self._rename_leaves("")
                else:
                    value.name = name
                return
        for table, what in (("_parameters", "parameter"), ("_modules", "child module"), ("_buffers", "buffer")):
            if name in tables.get(table, ()):
                tables[table][name] = converted(name, value, what)
                return
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        tables = self.__dict__
        for table in TABLES:
            found = tables.get(table)
            if found and name in found:
                if mode.tracing and (trace := mode.current_trace()) is not None:
                    trace.note_module(self)
                return found[name]
        if name in (computed := tables.get("_computed_parameters", ())):
            return computed[name](self)
        if mode.tracing and "_modules" in tables and (trace := mode.current_trace()) is not None:
            trace.note_module(self, whole=False)  # `hasattr` may have another answer later
        kind = type(self).__name__
        begun = "" if "_modules" in tables else f": {kind}.__init__ has to call super().__init__() first"
        none = f"{kind!r} object has no attribute {name!r}{begun}"
        raise MissingAttributeError(absent.missing(kind, name) if name in absent.MODULE else none, name=name, obj=None)

    def __delattr__(self, name: str) -> None:
        mode.note_change()
        for table in TABLES:
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        named = (*self._parameters, *self._buffers, *self._modules)
        return [*super().__dir__(), *(name for name in named if not name[:1].isdigit())]  # one can write x.name

    # ------------------------------------------------------------------ registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make a parameter an attribute; None keeps the place for one.

        Raises
        ------
        ArgumentError : `param` is no Parameter.
        RegistrationError : the name is empty, has a dot, or is taken.
        """
        self._refuse_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise ArgumentError(
                f"cannot assign {type(param).__name__!r} object to parameter {name!r} (nn.Parameter or None required)"
            )
        self._parameters[name] = None if param is None else as_registered("parameter", self, name, param)
        self._rename_leaves("")

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Make an array or tensor a buffer, with memory of its own: part of the state, without gradient.

        Parameters
        ----------
        name, tensor : None keeps the place for one; of what requires grad the tensor itself, so that gradients pass.
        persistent : whether `state_dict` has it.

        Raises
        ------
        ArgumentError : `tensor` is neither array nor tensor.
        RegistrationError : the name is empty, has a dot, or is taken.
        """
        self._refuse_name("buffer", name, self._buffers)
        self._buffers[name] = converted(name, as_registered("buffer", self, name, tensor), "buffer")
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)
        self._rename_leaves("")

    def register_module(self, name: str, module: Module | None) -> None:
        """Make a module an attribute, below this one; the same as `add_module`."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Module | None) -> None:
        """Make a module an attribute, below this one; None keeps the place for one.

        Raises
        ------
        ArgumentError : `module` is no Module.
        RegistrationError : the name is empty, has a dot, or is taken; or this module lies below `module`.
        """
        if module is not None and not isinstance(module, Module):
            raise ArgumentError(f"{type(module).__name__} is not a Module subclass")
        self._refuse_name("module", name, self._modules)
        self._modules[name] = as_registered("module", self, name, module)
        self._rename_leaves("")

    def _refuse_name(self, what: str, name: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise ArgumentError(f"{what} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise RegistrationError(f'{what} name can\'t contain ".", got: {name}')
        if not name:
            raise RegistrationError(f'{what} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise RegistrationError(f"attribute '{name}' already exists")

    def _rename_leaves(self, prefix: str) -> None:
        """Give every leaf the qualified name that this module knows it by."""
        for name, leaf in self._named_leaves(prefix):
            if isinstance(leaf, Leaf):
                leaf.name = name

    # ------------------------------------------------------------------ looking around

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        return map(_second, self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names, each once."""
        found = {id(m): (name, m) for name, m in reversed(self._modules.items()) if m is not None}
        return ((name, m) for name, m in self._modules.items() if m is not None and found[id(m)][0] == name)

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over this module and all below it with qualified names, parents first.

        Parameters
        ----------
        memo : modules to leave out; grows.
        prefix : the name of this module.
        remove_duplicate : each once, also if several names lead to it.
        """
        if not (memo is None or isinstance(memo, set)):
            raise ArgumentError(f"named_modules(): argument 'memo' must be set, not {type(memo).__name__}")
        seen = set() if memo is None else memo
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if remove_duplicate and module in seen:
                continue
            seen.add(module)
            yield name, module
            if below := module._modules:
                stack += [(join(name, child), m) for child, m in reversed(below.items()) if m is not None]

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all below it, each once if `remove_duplicate`."""
        return map(_second, self.named_modules(remove_duplicate=remove_duplicate))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with qualified names such as ``0.weight``.

        Parameters
        ----------
        prefix : the name of this module.
        recurse : also those of the modules below.
        remove_duplicate : each once, also if several names lead to it.
        """
        return self._named_leaves(prefix, ("_parameters",), recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each once: what an optimiser takes."""
        return map(_second, self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Buffer]]:
        """All buffers with qualified names; see `named_parameters`."""
        return self._named_leaves(prefix, ("_buffers",), recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Buffer]:
        """All buffers, each once."""
        return map(_second, self.named_buffers(recurse=recurse))

    def _named_leaves(
        self,
        prefix: str,
        tables: tuple[str, ...] = ("_parameters", "_buffers"),
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for name, module in self.named_modules(None, prefix, remove_duplicate) if recurse else ((prefix, self),):
            for table in tables:
                for leaf_name, leaf in getattr(module, table).items():
                    if leaf is not None and not (remove_duplicate and id(leaf) in seen):
                        seen.add(id(leaf))
                        yield join(name, leaf_name), leaf

    def get_submodule(self, target: str) -> Module:
        """The module of a qualified name; this one for "".

        Raises
        ------
        AttributeError : there is none.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise MissingAttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise MissingAttributeError(f"`{name}` is not an nn.Module")
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a qualified name.

        Raises
        ------
        AttributeError : there is none.
        """
        return self._found_below(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Buffer:
        """The buffer of a qualified name.

        Raises
        ------
        AttributeError : there is none.
        """
        return self._found_below(target, "_buffers", "a buffer")

    def _found_below(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise MissingAttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in getattr(module, table):
            raise MissingAttributeError(f"`{name}` is not {what}")
        return getattr(module, name)

    # ------------------------------------------------------------------ changing everything

    def apply(self: M, fn: Callable[[Module], Any]) -> M:
        """Call `fn` with every module below and then with this one, for example to initialise parameters."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set `training` here and below.

        Raises
        ------
        ArgumentError : `mode` is no bool.
        """
        if not isinstance(mode, bool):
            raise ArgumentError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: M) -> M:
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Switch the recording of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; or set them to 0."""
        outside = mode.current_trace() is None
        for p in self.parameters():
            if set_to_none:
                setattr(p, "_grad" if outside else "grad", None)
            elif p.grad is not None:
                p.grad = REGISTRY["zeros_like"](p.grad.detach())

    # ------------------------------------------------------------------ as text

    def extra_repr(self) -> str:
        """The arguments that `repr` shows."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        shown, children = self.extra_repr(), self._shown_children()
        lines = [*shown.splitlines(), *(child.replace("\n", "\n  ") for child in children)]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({shown})"
        return "\n  ".join([f"{self._get_name()}(", *lines]) + "\n)"

    def _shown_children(self) -> list[str]:
        return [f"({name}): {module!r}" for name, module in self._modules.items()]


_second = itemgetter(1)
