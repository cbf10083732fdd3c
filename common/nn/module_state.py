"""The state of a module in dictionaries: parameters and buffers by qualified name, saved and loaded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from common.core.errors import ArgumentError, NotDefinedError, ShapeError, StateError
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


class StateDict(OrderedDict[str, Any]):
    """The state of a module by qualified names; ``_metadata`` has the version of each module, as PyTorch's has."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._metadata: dict[str, Any] = {}

    def copy(self) -> StateDict:
        """The same state in another dictionary."""
        made = StateDict(self)
        made._metadata = self._metadata
        return made


class _Fitted(NamedTuple):
    """A value for a parameter or buffer of a module, or for its extra state."""

    module: Any
    name: str
    array: Any
    given: Any


class Loading(dict[str, Any]):
    """What is being loaded into a module and those below, and what has been found to fit."""

    def __init__(self, state: Mapping[str, Any], found: list[_Fitted]) -> None:
        super().__init__(state)
        self.found = found


class _SizeMismatch(str):
    """The line of an error about two shapes."""

    __slots__ = ()


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
    _non_persistent_buffers_set: set[str]
    _module_state_hooks: StateHooks | None = None
    _version = 1

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by qualified name, under every name that leads to them.

        Parameters
        ----------
        destination : a dictionary to put them into; by default a new one.
        prefix : put before every name.
        keep_vars : give the parameters themselves, instead of tensors without history that share their memory.

        Returns
        -------
        StateDict
            Later training shows in it, as in PyTorch: ``copy.deepcopy`` it to keep what there is now.
        """
        found: Any = StateDict() if destination is None else destination
        if hasattr(found, "_metadata"):
            found._metadata[prefix[:-1]] = {"version": self._version}
        hooks = self._module_state_hooks
        for hook in list(hooks.save_pre.values()) if hooks else ():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(hooks.save_post.values()) if hooks else ():
            hook(self, found, prefix, {"version": self._version})
        state: dict[str, Any] = found
        return state

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put the state of this module alone into `destination`; subclasses of public programs save otherwise."""
        for name, leaf in self._leaves_of_state():
            destination[prefix + name] = leaf if keep_vars else _without_history(leaf)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

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
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(f"Expected state_dict to be dict-like, got {type(state_dict).__name__}")
        keys, errors, found = IncompatibleKeys([], []), list[str](), list[_Fitted]()
        metadata = getattr(state_dict, "_metadata", {})

        waiting: list[tuple[Any, Loading, str]] = [(self, Loading(state_dict, found), "")]
        while waiting:
            module, state, prefix = waiting.pop()
            local = {**metadata.get(prefix[:-1], {}), "assign_to_params_buffers": assign}
            module._load_from_state_dict(state, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors)
            below = [(child, f"{prefix}{name}.") for name, child in module._modules.items() if child is not None]
            waiting += [
                (child, Loading({k: v for k, v in state.items() if k.startswith(path)}, found), path)
                for child, path in reversed(below)
            ]
        with_hooks = [(m, m._module_state_hooks) for _, m in self._modules_below("")]
        hooks = [(m, hook) for m, own in with_hooks if own for hook in list(own.load_post.values())]
        self._refuse_keys(keys, errors, strict and not hooks)
        _put(found, assign, user_frame(1))
        for module, hook in hooks:
            if hook(module, keys) is not None:
                raise StateError(
                    "Hooks registered with register_load_state_dict_post_hook are not expected to return new values; "
                    "change incompatible_keys in place"
                )
        self._refuse_keys(keys, [], strict)
        return keys

    def _refuse_keys(self, keys: IncompatibleKeys, errors: list[str], strict: bool) -> None:
        """Raise what speaks against loading."""
        shapes = bool(errors) and isinstance(errors[0], _SizeMismatch)
        found = [
            f"{text} key(s) in state_dict: {_quoted(names)}."
            for names, text in ((keys.missing_keys, "Missing"), (keys.unexpected_keys, "Unexpected"))
            if strict and names
        ]
        if found or errors:
            kind = ShapeError if shapes and not found else StateError
            raise kind("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *found, *errors]))

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Find the state of this module alone; subclasses of public programs change `state_dict` before.

        What fits is put into place when all modules have been looked at; at once, if `state_dict` is a dictionary of
        the subclass's own.
        """
        for hook in list(self._module_state_hooks.load_pre.values()) if self._module_state_hooks else ():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign, own, found = bool(local_metadata.get("assign_to_params_buffers")), dict(self._leaves_of_state()), []
        for name, leaf in own.items():
            if prefix + name in state_dict:
                given = state_dict[prefix + name]
                array = _fitting(prefix + name, _array(given), leaf, assign, error_msgs)
                if array is not None:
                    found.append(_Fitted(self, name, array, given))
            elif strict:
                missing_keys.append(prefix + name)
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if prefix + EXTRA in state_dict:
                found.append(_Fitted(self, EXTRA, None, state_dict[prefix + EXTRA]))
            elif strict:
                missing_keys.append(prefix + EXTRA)
            own[EXTRA] = None
        for key in state_dict if strict else ():
            first, _, rest = key.removeprefix(prefix).partition(".")
            if key.startswith(prefix) and first not in (self._modules if rest else own):
                unexpected_keys.append(key)
        if isinstance(state_dict, Loading):
            state_dict.found.extend(found)
        elif not error_msgs:
            _put(found, assign, user_frame(1))

    def _load_leaf(self, name: str, array: np.ndarray, given: Any, assign: bool, frame: Any) -> None:
        leaf = self._leaf_of_state(name)
        if not assign:
            log_write(leaf.payload, *frame)
            np.copyto(leaf.payload, array)
        elif isinstance(leaf, Parameter):
            setattr(self, name, given if isinstance(given, Parameter) else Parameter(array, leaf.requires_grad))
        else:
            setattr(self, name, array)

    def _leaf_of_state(self, name: str) -> Any:
        return self._parameters[name] if name in self._parameters else self._buffers[name]

    def _leaves_of_state(self) -> Iterator[tuple[str, Any]]:
        """The state that this module itself holds and saves."""
        for name, leaf in (*self._parameters.items(), *self._buffers.items()):
            if leaf is not None and name not in self._non_persistent_buffers_set:
                yield name, leaf

    def _modules_below(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """The module and those below it, under every name, as prefixes."""
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module._modules_below(f"{prefix}{name}.")

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
        """Have a hook change the state before this module finds its own in it.

        Parameters
        ----------
        hook : ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``;
            what it adds to the three lists counts.
        """
        return RemovableHandle(self._hooks_of_state().load_pre, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> Any:
        """`register_load_state_dict_pre_hook` by the name that older programs use, where hooks get no module."""
        return self.register_load_state_dict_pre_hook(hook if with_module else _WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change both lists."""
        return RemovableHandle(self._hooks_of_state().load_post, hook)

    def _hooks_of_state(self) -> StateHooks:
        if self._module_state_hooks is None:
            object.__setattr__(self, "_module_state_hooks", StateHooks())
        hooks: Any = self._module_state_hooks
        return hooks


class _WithoutModule:
    """A hook that gets the other arguments only."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(*args)


def _fitting(key: str, array: np.ndarray, leaf: Any, assign: bool, errors: list[str]) -> np.ndarray | None:
    """An array in the dtype of what it is loaded into, or a line in `errors`."""
    wanted, fitting = tuple(leaf.shape), array if assign else fitted(array, leaf.dtype)
    if fitting is None:
        errors.append(f"dtype mismatch for {key}: {misfit(array, leaf.dtype)}.")
    if array.shape == wanted:
        return fitting
    text = (
        f"size mismatch for {key}: copying a param with shape {array.shape} from checkpoint, the shape in current "
        f"model is {wanted}."
    )
    errors.append(_SizeMismatch(text))
    return None


def _put(found: list[_Fitted], assign: bool, frame: Any) -> None:
    """Load what has been found: extra state last."""
    for module, name, array, given in found:
        if name != EXTRA:
            module._load_leaf(name, array, given, assign, frame)
    for module, name, _, given in found:
        if name == EXTRA:
            module.set_extra_state(given)


def _array(x: Any) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else np.asarray(getattr(x, "payload", x))


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def as_buffer(value: Any) -> Any:
    """A buffer with the elements of an array or tensor; a tensor that requires grad itself, so that gradients pass."""
    return value if isinstance(value, Buffer) or _is_recorded(value) else Buffer(value)


def _is_recorded(x: Any) -> bool:
    return isinstance(x, TensorBase) and isinstance(x.payload, np.ndarray) and x.requires_grad


def _without_history(x: Any) -> Any:
    if isinstance(x, Leaf):
        return sharing(x)
    return x.detach() if _is_recorded(x) else x


def converted(name: str, value: Any, what: str) -> Any:
    """A value for the place of something that is registered."""
    if value is None:
        return None
    if what == "buffer":
        if isinstance(value, (TensorBase, np.ndarray)):
            return as_buffer(value)
        wanted = "Tensor or None required"
        raise ArgumentError(f"cannot assign {type(value).__name__!r} object to buffer {name!r} ({wanted})")
    wanted = "Parameter" if what == "parameter" else "nn.Module"
    advice = "; to change its elements, use copy_() under no_grad()" if isinstance(value, TensorBase) else ""
    raise ArgumentError(
        f"cannot assign {type(value).__name__!r} as {what} {name!r} ({wanted} or None expected){advice}"
    )
