"""Functions that users hang into the calls of modules, and of their backward passes.

A call runs: pre-hooks of all modules, the module's own, `forward`, hooks of all modules, the module's own. Backward
hooks need two places of the tape, one before and one behind what `forward` records. These are nodes of an identity
`Function`, and what runs there is hung into them as any node hook is. A module without hooks does not come here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from common.autograd.function import Function
from common.autograd.hooks import note_hook
from common.core import mode
from common.core.errors import ArgumentError, GradientError, RegistrationError
from common.core.pickling import FunctionHolder
from common.core.tree import flatten, unflatten
from common.methods import asking
from common.tensor.base import TensorBase
from common.tensor.hook_handles import Hook, HookTable, RemovableHandle


class ModuleHooks(FunctionHolder):
    """The hooks of one module, or of all.

    Attributes
    ----------
    forward_pre, forward, backward_pre, backward : by the id of their handles.
    keywords : ids of forward hooks that get keyword arguments.
    always : ids of forward hooks that run although the call has failed.
    used : whether there has ever been one.
    """

    def __init__(self) -> None:
        self.forward_pre: dict[int, Hook] = HookTable()
        self.forward: dict[int, Hook] = HookTable()
        self.backward_pre: dict[int, Hook] = HookTable()
        self.backward: dict[int, Hook] = HookTable()
        self.keywords: set[int] = set()
        self.always: set[int] = set()
        self.used = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        RemovableHandle.go_beyond([*self.forward_pre, *self.forward, *self.backward_pre, *self.backward])

    def ids(self) -> tuple[int, ...]:
        """The ids of all hooks."""
        return (*self.forward_pre, *self.forward, *self.backward_pre, *self.backward)

    def add(self, kind: str, hook: Hook, prepend: bool = False, keywords: bool = False, always: bool = False) -> Any:
        """Register a hook; its handle takes it out."""
        self.used = True
        hooks: dict[int, Hook] = getattr(self, kind)
        handle = RemovableHandle(hooks, hook)
        if prepend:
            rest = {i: h for i, h in hooks.items() if i != handle.id}
            hooks.clear()
            hooks.update({handle.id: hook, **rest})
        if keywords:
            self.keywords.add(handle.id)
        if always:
            self.always.add(handle.id)
        return handle


class Hookable:
    """The part of `Module` that takes hooks."""

    _module_hooks: ModuleHooks | None = None

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before `forward`; it returns None or new arguments.

        Parameters
        ----------
        hook : with `with_kwargs`, ``hook(module, args, kwargs)`` returns None or a pair of new ones.
        prepend : run it before those that are there.
        with_kwargs : see `hook`.
        """
        return self._register_module_hook("forward_pre", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after `forward`; it returns None or a new output.

        Parameters
        ----------
        hook : with `with_kwargs`, ``hook(module, args, kwargs, output)``.
        prepend : run it before those that are there.
        with_kwargs : see `hook`.
        always_call : call it although something has raised; then what it returns goes nowhere.
        """
        return self._register_module_hook("forward", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` once the gradients of the results are there.

        Parameters
        ----------
        hook : gets a tuple, None where a result has no gradient; returns None or new gradients.
        prepend : run it before those that are there.
        """
        return self._register_module_hook("backward_pre", hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` once the gradients of the positional arguments are there.

        Parameters
        ----------
        hook : gets two tuples, None where there is no gradient; returns None or new gradients of the arguments.
        prepend : run it before those that are there.
        """
        return self._register_module_hook("backward", hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """`register_full_backward_hook`, by the name that older programs use."""
        return self._register_module_hook("backward", hook)

    # public programs list and clear hooks under PyTorch's names of these tables
    _forward_pre_hooks = property(lambda self: self._own_hooks().forward_pre)
    _forward_hooks = property(lambda self: self._own_hooks().forward)
    _backward_pre_hooks = property(lambda self: self._own_hooks().backward_pre)
    _backward_hooks = property(lambda self: self._own_hooks().backward)

    def _own_hooks(self) -> ModuleHooks:
        if self._module_hooks is None:
            object.__setattr__(self, "_module_hooks", ModuleHooks())
        hooks: Any = self._module_hooks
        found: ModuleHooks = hooks
        return found

    def _register_module_hook(self, kind: str, hook: Hook, *options: bool) -> RemovableHandle:
        handle: RemovableHandle = self._own_hooks().add(kind, hook, *options)
        return handle


#: Hooks of every module; see `register_module_forward_hook` and its kin.
of_all = ModuleHooks()


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before the `forward` of every module, see `Module.register_forward_pre_hook`."""
    handle: RemovableHandle = of_all.add("forward_pre", hook)
    return handle


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False, always_call: bool = False) -> Any:
    """Call ``hook(module, args, output)`` after the `forward` of every module, see `Module.register_forward_hook`."""
    return of_all.add("forward", hook, False, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` for every module, see `Module.register_full_backward_pre_hook`."""
    handle: RemovableHandle = of_all.add("backward_pre", hook)
    return handle


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` for every module, see `Module.register_full_backward_hook`."""
    handle: RemovableHandle = of_all.add("backward", hook)
    return handle


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """`register_module_full_backward_hook`, by the name that older programs use."""
    return register_module_full_backward_hook(hook)


# ------------------------------------------------------------------ what modules are given

_of_registration: dict[str, dict[int, Hook]] = {"parameter": OrderedDict(), "module": OrderedDict(),
                                                "buffer": OrderedDict()}  # fmt: skip


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when any module is given a parameter; it returns None or another one."""
    return RemovableHandle(_of_registration["parameter"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, child)`` when any module is given a child; it returns None or another one."""
    return RemovableHandle(_of_registration["module"], hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when any module is given a buffer; it returns None or another one."""
    return RemovableHandle(_of_registration["buffer"], hook)


def as_registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """The parameter, module or buffer (`kind`) that a module gets under a name, after the registration hooks.

    Raises
    ------
    RegistrationError : `module` lies below `value`; what goes through all modules would not come back.
    """
    for hook in tuple(_of_registration[kind].values()):
        new = hook(module, name, value)
        value = value if new is None else new
    if kind == "buffer" and not getattr(value, "persistent", True):
        module._non_persistent_buffers_set.add(name)
    seen, left = set[int](), [value] if kind == "module" else []
    while left:
        found = left.pop()
        if found is module:
            raise RegistrationError(
                f"cannot assign {type(value).__name__} as child module {name!r} of the {type(module).__name__} that it "
                f"contains: a module cannot contain itself; a list registers nothing: self.{name} = [module]"
            )
        if id(found) not in seen:
            seen.add(id(found))
            left += getattr(found, "__dict__", {}).get("_modules", {}).values()
    return value


# ------------------------------------------------------------------ a call


@asking.when_begun
def _every_call_comes_here() -> None:
    of_all.used = True


def call_with_hooks(module: Any, own: ModuleHooks | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a module's `forward` between its hooks and those of all modules."""
    own = own or ModuleHooks()
    called: set[int] = set()
    y: Any = None
    try:
        args, kwargs = _before(module, own, args, kwargs)
        behind = _Behind(module, own)
        args = behind.enter(args)
        y = _forward(module, args, kwargs)
        for hooks in (of_all, own):
            for i, hook in list(hooks.forward.items()):
                called.add(i)
                note_hook()
                new = hook(module, args, kwargs, y) if i in hooks.keywords else hook(module, args, y)
                y = y if new is None else new
        return behind.leave(y)
    except Exception:
        for hooks in (of_all, own):
            for i, hook in list(hooks.forward.items()):
                if i in hooks.always and i not in called:
                    (hook(module, args, kwargs, y) if i in hooks.keywords else hook(module, args, y))
        raise


def _forward(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `forward` gives; the library's own modules ask as functions do, since PyTorch's call these functions."""
    forward = type(module).forward
    home = forward.__module__
    own = home.startswith("common.nn.") and home != "common.nn.containers" and "forward" not in vars(module)
    if asking.called is None or not own:
        return module.forward(*args, **kwargs)
    return asking.called(forward, forward, (module, *args), kwargs)


def _before(module: Any, own: ModuleHooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments after the pre-hooks."""
    for hooks in (of_all, own):
        for i, hook in list(hooks.forward_pre.items()):
            note_hook()
            if i not in hooks.keywords:
                new = hook(module, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
                continue
            new = hook(module, args, kwargs)
            if new is None:
                continue
            if not (isinstance(new, tuple) and len(new) == 2):
                raise ArgumentError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
                )
            args, kwargs = new
    return args, kwargs


class BackwardHookFunction(Function):
    """The identity, for the sake of its node."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        """The arguments."""
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients."""
        return grads


class _Behind:
    """The backward hooks of one call: what they see and change, between its two identities."""

    def __init__(self, module: Any, own: ModuleHooks) -> None:
        self.module = module
        self.pre = [*of_all.backward_pre.values(), *own.backward_pre.values()]
        self.hooks = [*of_all.backward.values(), *own.backward.values()]
        self.active = bool(self.pre or self.hooks) and mode.is_grad_enabled()
        self.count = 0  # of arguments
        self.positions: list[int] = []  # of those that need a gradient
        self.grad_outputs: tuple[Any, ...] | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments behind an identity whose node runs the backward hooks."""
        self.count = len(args)
        if not self.active or not self.hooks:
            return args
        return self._behind_identity(args, lambda node: node.register_hook(self._after))

    def leave(self, y: Any) -> Any:
        """The results behind an identity whose node runs the backward pre-hooks."""
        if not self.active:
            return y
        inputs = self.positions
        leaves, structure = flatten(y)
        found = self._behind_identity(leaves, lambda node: node.register_prehook(self._before_rules))
        self.outputs, self.positions = self.positions, inputs
        self.results = len(leaves)
        return unflatten(structure, list(found))

    def _behind_identity(self, values: Sequence[Any], register: Callable[[Any], Any]) -> tuple[Any, ...]:
        self.positions = [i for i, x in enumerate(values) if isinstance(x, TensorBase) and x.requires_grad]
        if not self.positions:
            return tuple(values)
        copies = BackwardHookFunction.apply(*(values[i] for i in self.positions))
        register(copies[0].grad_fn)
        replaced = dict(zip(self.positions, copies, strict=True))
        return tuple(replaced.get(i, x) for i, x in enumerate(values))

    def _before_rules(self, grads: tuple[Any, ...]) -> Any:
        """The gradients of the results have arrived."""
        all_grads = _spread(grads, self.outputs, self.results)
        for hook in self.pre:
            new = hook(self.module, all_grads)
            if new is not None:
                all_grads = _checked(new, all_grads, "Backward pre hook", "grad_output")
        self.grad_outputs = all_grads
        if not self.positions:  # no argument needs a gradient: this is all that will be seen
            for hook in self.hooks:
                new = hook(self.module, (None,) * self.count, all_grads)
                if new is not None and any(g is not None for g in _as_tuple(new)):
                    raise GradientError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
            self.grad_outputs = None
        return tuple(all_grads[i] for i in self.outputs)

    def _after(self, grads: tuple[Any, ...], _: Any) -> Any:
        """The gradients of the arguments have arrived."""
        if self.grad_outputs is None:  # they came from elsewhere
            return None
        all_grads = _spread(grads, self.positions, self.count)
        for hook in self.hooks:
            new = hook(self.module, all_grads, self.grad_outputs)
            if new is not None:
                all_grads = _checked(new, all_grads, "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(all_grads[i] for i in self.positions)


def _spread(grads: Sequence[Any], positions: Sequence[int], count: int) -> tuple[Any, ...]:
    found = dict(zip(positions, grads, strict=True))
    return tuple(found.get(i) for i in range(count))


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _checked(new: Any, old: tuple[Any, ...], who: str, what: str) -> tuple[Any, ...]:
    given = _as_tuple(new)
    if len(given) != len(old):
        raise GradientError(f"{who} returned an invalid number of {what}, got {len(given)}, but expected {len(old)}")
    return given
