"""Hooks of optimisers: around steps, and around saving and loading."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from common.tensor.hook_handles import Hook, RemovableHandle

_before_all: dict[int, Hook] = {}
_after_all: dict[int, Hook] = {}


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimiser; it may return new arguments."""
    return RemovableHandle(_before_all, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimiser."""
    return RemovableHandle(_after_all, hook)


class Hooked:
    """The hooks of optimisers; a subclass's own `step` calls them too.

    Attributes
    ----------
    has_stepped : whether `step` was ever called, if only in a trace: compiled programs do not call it again.
    """

    has_stepped = False
    _before_step: Any = MappingProxyType({})  # of a subclass that does not call __init__
    _after_step: Any = MappingProxyType({})

    def __init__(self) -> None:
        self._before_step, self._after_step = {}, {}
        self._before_saving: dict[int, Hook] = {}
        self._after_saving: dict[int, Hook] = {}
        self._before_loading: dict[int, Hook] = {}
        self._after_loading: dict[int, Hook] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            setattr(cls, "step", _with_hooks(cls.__dict__["step"]))  # noqa: B010  mypy refuses to assign a method

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before `step`; it may return new arguments, as a pair."""
        return RemovableHandle(self._before_step, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after `step`."""
        return RemovableHandle(self._after_step, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict`."""
        return _registered(self._before_saving, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; it may return another one."""
        return _registered(self._after_saving, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before `load_state_dict`; it may return another one."""
        return _registered(self._before_loading, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after `load_state_dict`."""
        return _registered(self._after_loading, hook, prepend)


def _registered(hooks: dict[int, Hook], hook: Hook, prepend: bool) -> RemovableHandle:
    others = dict(hooks) if prepend else {}
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, hook)
    hooks.update(others)
    return handle


def changed(hooks: dict[int, Hook], owner: Any, value: Any) -> Any:
    """A value after hooks that may each return another one."""
    for hook in tuple(hooks.values()):
        other = hook(owner, value)
        value = value if other is None else other
    return value


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.has_stepped:
            self.has_stepped = True
        if not (self._before_step or self._after_step or _before_all or _after_all):
            return step(self, *args, **kwargs)
        for hook in (*_before_all.values(), *self._before_step.values()):
            other = hook(self, args, kwargs)
            if other is not None:
                args, kwargs = other
        result = step(self, *args, **kwargs)
        for hook in (*self._after_step.values(), *_after_all.values()):
            hook(self, args, kwargs)
        return result

    return hooked
