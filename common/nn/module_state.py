"""The state of a module in dictionaries: parameters and buffers by qualified name, saved and loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ArgumentError, NotDefinedError, ShapeError, StateError
from common.core.int_arguments import mapping
from common.core.source_lines import user_frame
from common.tensor.base import TensorBase
from common.tensor.fitting import converted as fitted
from common.tensor.fitting import misfit
from common.tensor.hook_handles import RemovableHandle
from common.tensor.leaf import Buffer, Leaf, Parameter, sharing
from common.tensor.write_log import log_write

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Keys of `load_state_dict` without a partner.

    Attributes
    ----------
    missing_keys : names of the module that were not given.
    unexpected_keys : names that were given and that the module does not have.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class StateHooks:
    """Hooks that run when state is saved and loaded: dictionaries by the id of their handles."""

    def __init__(self) -> None:
        self.save_pre: dict[int, Callable[..., Any]] = {}
        self.save_post: dict[int, Callable[..., Any]] = {}
        self.load_pre: dict[int, Callable[..., Any]] = {}
        self.load_post: dict[int, Callable[..., Any]] = {}


class Stateful:
    """The part of `Module` that saves and loads."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent: set[str]
    _state_hooks: StateHooks | None = None

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by qualified name, under every name that leads to them.

        Parameters
        ----------
        destination : a dictionary to put them into; by default a new one.
        prefix : put before every name.
        keep_vars : give the parameters themselves, instead of tensors without history that share their memory.

        Returns
        -------
        dict
            Later training shows in it, as in PyTorch: ``copy.deepcopy`` it to keep what there is now.
        """
        found: dict[str, Any] = {} if destination is None else destination
        hooks = self._state_hooks
        for hook in list(hooks.save_pre.values()) if hooks else ():
            hook(self, prefix, keep_vars)
        for name, leaf in self._own_state():
            found[prefix + name] = leaf if keep_vars or not isinstance(leaf, Leaf) else sharing(leaf)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            found[prefix + EXTRA] = self.get_extra_state()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(hooks.save_post.values()) if hooks else ():
            hook(self, found, prefix, {})
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy arrays or tensors into the parameters and buffers of the same names.

        Parameters
        ----------
        state_dict : as from `state_dict`; shapes agree, dtypes are converted where the values fit, see
            `common.tensor.fitting`.
        strict : refuse missing and unexpected names.
        assign : make them new parameters and buffers instead, with their dtypes; then optimisers have to be made anew.

        Returns
        -------
        IncompatibleKeys : names without partner.

        Raises
        ------
        StateError : names are missing or unexpected, or a value does not fit a dtype; nothing is changed.
        ShapeError : an array has another shape than the state of its name; nothing is changed.
        """
        mapping(state_dict, "load_state_dict", "state_dict")
        state = dict(state_dict)
        own: dict[str, tuple[Stateful, str]] = {}
        for prefix, module in self._below(""):
            for hook in list(module._state_hooks.load_pre.values()) if module._state_hooks else ():
                hook(module, state, prefix, {}, strict, [], [], [])
            own.update({prefix + name: (module, name) for name, _ in module._own_state()})
            if type(module).set_extra_state is not Stateful.set_extra_state:
                own[prefix + EXTRA] = module, EXTRA
        keys = IncompatibleKeys([n for n in own if n not in state], [n for n in state if n not in own])
        arrays = {n: _array(state[n]) for n, (_, name) in own.items() if n in state and name != EXTRA}
        self._refuse(keys, own, arrays, strict, assign)
        frame = user_frame(1)
        for name, array in arrays.items():
            own[name][0]._load(own[name][1], array, state[name], assign, frame)
        for name, (module, last) in own.items():
            if last == EXTRA and name in state:
                module.set_extra_state(state[name])
        for _, module in self._below(""):
            for hook in list(module._state_hooks.load_post.values()) if module._state_hooks else ():
                hook(module, keys)
        return keys

    def _refuse(
        self, keys: IncompatibleKeys, own: Any, arrays: dict[str, np.ndarray], strict: bool, assign: bool
    ) -> None:
        """Raise what speaks against loading; `arrays` get the dtypes of what they are loaded into."""
        errors = []
        if strict and keys.unexpected_keys:
            errors.append(f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}.")
        if strict and keys.missing_keys:
            errors.append(f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}.")
        kind: type[Exception] = StateError
        for name, array in list(arrays.items()):
            leaf = own[name][0]._leaf(own[name][1])
            wanted = tuple(leaf.shape)
            fitting = array if assign else fitted(array, leaf.dtype)
            if fitting is None:
                errors.append(f"dtype mismatch for {name}: {misfit(array, leaf.dtype)}.")
            else:
                arrays[name] = fitting
            if array.shape != wanted:
                kind = ShapeError if not errors else kind
                errors.append(
                    f"size mismatch for {name}: copying a param with shape {array.shape} from checkpoint, the shape in "
                    f"current model is {wanted}."
                )
        if errors:
            raise kind("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *errors]))

    def _load(self, name: str, array: np.ndarray, given: Any, assign: bool, frame: Any) -> None:
        leaf = self._leaf(name)
        if not assign:
            log_write(leaf.payload, *frame)
            np.copyto(leaf.payload, array)
        elif isinstance(leaf, Parameter):
            setattr(self, name, given if isinstance(given, Parameter) else Parameter(array, leaf.requires_grad))
        else:
            setattr(self, name, array)

    def _leaf(self, name: str) -> Any:
        return self._parameters[name] if name in self._parameters else self._buffers[name]

    def _own_state(self) -> Iterator[tuple[str, Any]]:
        """The state that this module itself holds and saves."""
        for name, leaf in (*self._parameters.items(), *self._buffers.items()):
            if leaf is not None and name not in self._non_persistent:
                yield name, leaf

    def _below(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """The module and those below it, under every name, as prefixes."""
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module._below(f"{prefix}{name}.")

    def get_extra_state(self) -> Any:
        """Further state to save; a subclass that defines it defines `set_extra_state`, too."""
        raise NotDefinedError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise NotDefinedError("Reached a code path in Module.set_extra_state() that should never be called.")

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before this module's state is saved."""
        return RemovableHandle(self._hooks_of_state().save_pre, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after this module's state is saved."""
        return RemovableHandle(self._hooks_of_state().save_post, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, {}, strict, [], [], [])`` before loading; it may change the state."""
        return RemovableHandle(self._hooks_of_state().load_pre, hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change both lists."""
        return RemovableHandle(self._hooks_of_state().load_post, hook)

    def _hooks_of_state(self) -> StateHooks:
        if self._state_hooks is None:
            object.__setattr__(self, "_state_hooks", StateHooks())
        hooks: Any = self._state_hooks
        return hooks


def _array(x: Any) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else np.asarray(getattr(x, "payload", x))


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def converted(name: str, value: Any, what: str) -> Any:
    """A value for the place of something that is registered."""
    if value is None:
        return None
    if what == "buffer":
        if isinstance(value, (TensorBase, np.ndarray)):
            return value if isinstance(value, Buffer) else Buffer(value)
        wanted = "Tensor or None required"
        raise ArgumentError(f"cannot assign {type(value).__name__!r} object to buffer {name!r} ({wanted})")
    wanted = "Parameter" if what == "parameter" else "nn.Module"
    advice = "; to change its elements, use copy_() under no_grad()" if isinstance(value, TensorBase) else ""
    raise ArgumentError(
        f"cannot assign {type(value).__name__!r} as {what} {name!r} ({wanted} or None expected){advice}"
    )
