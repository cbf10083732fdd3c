"""The base of optimisers: groups of parameters with options, state, hooks, and saving.

Numbers among the options are state as well: writing ``optimizer.param_groups[0]["lr"]`` takes effect in compiled
programs without a new trace.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import lru_cache, partial
from typing import Any
from weakref import ref

import numpy as np

from common.core.errors import ArgumentError, NotDefinedError, StateError
from common.core.int_arguments import mapping, members, shown
from common.core.source_lines import warn_user
from common.ops.math.arithmetic import zeros_like
from common.optim.group import ParameterGroup
from common.optim.minimize import Minimizing
from common.optim.step_hooks import Hooked, changed
from common.tensor.base import TensorBase
from common.tensor.fitting import converted, misfit
from common.tensor.leaf import Buffer


def _state_buffer(p: TensorBase, name: str, value: np.ndarray) -> Buffer:
    buffer = Buffer.over(value if value.flags.c_contiguous else value.copy())
    buffer.name = f"{getattr(p, 'name', '') or 'parameter'}.{name}"
    return buffer


@lru_cache(maxsize=64)
def _numbers(kind: Any) -> list[str]:
    """The options of a class whose defaults are numbers."""
    return [x.name for x in inspect.signature(kind).parameters.values() if type(x.default) in (int, float)]


class _Required:
    """Stands in older programs' defaults for an option that every group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

#: What an optimiser is given: parameters, pairs of names and parameters, or groups.
ParamsT = Iterable[Any]


class Optimizer(Minimizing, Hooked):
    """Base of optimisers, the project's and users': a subclass defines `step`.

    Parameters
    ----------
    params : parameters, pairs of names and parameters, or dicts with "params" and options that differ from `defaults`.
    defaults : options.

    Attributes
    ----------
    param_groups : a `ParameterGroup` per dict.
    state : parameter -> name -> value; empty dicts for a subclass to fill, if it makes no `initial_state`.
    optional, structural : names of options that leave a term out where they are 0, or decide what the program is.
    makes_state : whether the names in `state` are those of `initial_state`, and no others.
    saves_initial : whether `state_dict` has the state of parameters that no step has updated.

    Raises
    ------
    ArgumentError : no parameters, something that is not a leaf tensor, or a parameter in two groups.

    Examples
    --------
    >>> import dynamic as tw
    >>> class SignDescent(tw.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @tw.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.sub_(group["lr"] * p.grad.sign())
    >>> w = tw.nn.Parameter([1.0, -2.0])
    >>> optimizer = SignDescent([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([ 0.5000, -1.5000])
    """

    optional: tuple[str, ...] = ()
    structural: tuple[str, ...] = ()
    makes_state = False
    saves_initial = False

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__()
        if isinstance(params, TensorBase):
            raise ArgumentError("params argument given to the optimizer should be an iterable of Tensors or dicts")
        self.defaults = defaults
        if not any(isinstance(x, _Required) for x in defaults.values()):
            self._parsed({"params": []})  # what is wrong with the options is said before what is with the parameters
        given = members(params, "Optimizer", "params")
        if not given:
            raise ArgumentError("optimizer got an empty parameter list")
        self.param_groups: list[ParameterGroup] = []
        self.state: defaultdict[TensorBase, dict[str, Any]] = defaultdict(dict)
        # its size grows with each group and term: read in a trace, so that one added later is noticed
        self._group_count = Buffer(np.zeros(0, np.bool_))
        for options in given if isinstance(given[0], Mapping) else [{"params": given}]:
            self.add_param_group(options)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}", *(f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params")]
            lines += [""] if i + 1 < len(self.param_groups) else []
        return "\n".join([*lines, ")"])

    def _check_numbers(self, group: ParameterGroup) -> None:
        """Refuse what is no number where the default is one."""
        kind: Any = type(self)
        for name in _numbers(kind):
            if name not in group.fixed:
                continue
            value = group.fixed[name]
            absent = value is None and name in self.optional
            if not absent and not isinstance(value, (int, float, np.number, TensorBase)):
                raise ArgumentError(f"option {name!r} must be a number, not {type(value).__name__} ({shown(value)})")

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Update further parameters.

        Parameters
        ----------
        param_group : "params", and options that differ from the defaults; "param_names", if "params" does not name
            them.

        Raises
        ------
        ArgumentError : something that is not a leaf tensor, a parameter that is in another group already, or names of
            only some parameters.
        """
        listed = param_group["params"]
        members = [listed] if isinstance(listed, TensorBase) else list(listed)
        named = sum(isinstance(x, tuple) for x in members)
        if 0 < named < len(members):
            raise ArgumentError("all optimizer params should be with/without names. Some param names are missing")
        names = [x[0] for x in members if isinstance(x, tuple)] or param_group.get("param_names")
        if self.param_groups and bool(names) != ("param_names" in self.param_groups[0]):
            raise ArgumentError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if names else 'without'} names to the optimizer"
            )
        members = [x[1] if isinstance(x, tuple) else x for x in members]
        for p in members:
            _refuse_other(p)
            if not (p.is_leaf or p.retains_grad or self.defaults.get("differentiable")):
                raise ArgumentError("can't optimize a non-leaf Tensor")
            if p in self.state:
                raise ArgumentError("some parameters appear in more than one parameter group")
        if len({id(p) for p in members}) < len(members):
            warn_user(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error. "
                "Such a parameter is updated once for each time that it is there: give it once"
            )
        group = self._parsed({**{k: x for k, x in param_group.items() if k != "param_names"}, "params": members})
        if names:
            group.extra["param_names"] = names
        self.param_groups.append(group)
        group.belong(ref(self))
        self.make_state(group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for group in self.param_groups:
            group.belong(ref(self))

    def note_members(self) -> None:
        """A program has put other parameters into a group, or other state in place of theirs."""

    def complete(self) -> None:
        """Make the state that is missing since."""

    def make_state(self, group: ParameterGroup) -> None:
        """Make what the updates of a group need and its parameters do not have."""
        for p in group.params:
            _refuse_other(p)
            make = getattr(p, "slot", partial(_state_buffer, p))  # a graph's variables have state in each session
            state = self.state[p]
            for name, value in self.initial_state(group, _memory(p)).items():
                if name not in state:
                    state[name] = make(name, value)
        self.forget_programs()

    def forget_programs(self) -> None:
        """Steps are traced and compiled anew: groups, their state or what decides the program has changed."""
        self._group_count.payload = np.zeros(len(self._group_count.payload) + 1, np.bool_)

    def _parsed(self, options: dict[str, Any]) -> ParameterGroup:
        """A group of options, which are within their ranges."""
        group = ParameterGroup({**self.defaults, **options}, self.optional, self.structural)
        self._check_numbers(group)
        self.check(group)
        return group

    def check(self, group: ParameterGroup) -> None:
        """Refuse options outside their range."""

    def initial_state(self, group: ParameterGroup, p: TensorBase) -> dict[str, np.ndarray]:
        """Arrays that a parameter's updates read and write; none, unless a subclass says so."""
        return {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients; or set them to 0."""
        for group in self.param_groups:
            for p in group.params:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad = zeros_like(p.grad.detach())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters; a subclass defines it.

        Raises
        ------
        NotDefinedError : it does not.
        """
        raise NotDefinedError(f"{type(self).__name__} does not define step(), which updates the parameters")

    # ------------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """Copies of all state as tensors, by the parameter's position, and the groups' options: PyTorch's layout.

        A parameter whose state is as before the first step has none in it.
        """
        for hook in tuple(self._before_saving.values()):
            hook(self)
        members = (p for group in self.param_groups for p in group.params)
        position: dict[TensorBase, int] = {}
        for i, p in enumerate(members):
            position.setdefault(p, i)
        groups = [{**{k: v for k, v in group.items() if k != "params"}, "params": [position[p] for p in group.params]}
                  for group in self.param_groups]  # fmt: skip
        states = {position[p]: {n: _copied(x) for n, x in self.state[p].items()}
                  for group in self.param_groups for p in group.params if self._made_state(group, p)}  # fmt: skip
        saved = {"state": states, "param_groups": groups}
        return changed(self._after_saving, self, saved)

    def _made_state(self, group: ParameterGroup, p: TensorBase) -> bool:
        """Whether there is state to save: one that differs from the initial one, which loading makes anew."""
        state = self.state.get(p)
        if not state or self.saves_initial or not self.makes_state:
            return bool(state)
        fresh = self.initial_state(group, _memory(p))
        return any(name not in fresh or not np.array_equal(x.payload, fresh[name]) for name, x in state.items())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, here or in PyTorch; nothing is changed if it does not fit.

        Options are those that were saved, also where this optimiser was made with others.

        Raises
        ------
        ArgumentError : it belongs to an optimiser of another structure.
        StateError : state of another name or shape.
        """
        mapping(state_dict, "load_state_dict", "state_dict")
        self.complete()
        state_dict = changed(self._before_loading, self, dict(state_dict))
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ArgumentError("loaded state dict has a different number of parameter groups")
        for group, other in zip(self.param_groups, saved, strict=True):
            if len(group.params) != len(other["params"]):
                raise ArgumentError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"a different number of parameters, {len(other['params'])} for {len(group.params)}"
                )
        before, states = [group.kept() for group in self.param_groups], {p: dict(x) for p, x in self.state.items()}
        try:
            for group, other in zip(self.param_groups, saved, strict=True):
                group.update({name: value for name, value in other.items() if name != "params"})
            self._load_own_state(saved, state_dict["state"])
        except Exception:
            for restore in before:
                restore()
            self.state.clear()
            self.state.update(states)
            self.forget_programs()
            raise
        for hook in tuple(self._after_loading.values()):
            hook(self)

    def _load_own_state(self, saved: Any, states: Mapping[Any, Any]) -> None:
        """Take over the state of all parameters, or of none."""
        arrays: list[tuple[Buffer, Any]] = []
        free: dict[TensorBase, dict[str, Any]] = {}
        for group, other in zip(self.param_groups, saved, strict=True):
            for p, i in zip(group.params, other["params"], strict=True):
                found = states.get(i, {})
                if self.makes_state:
                    arrays += self._buffers_for(group, p, found)
                else:  # also none: what a subclass has filled in since is forgotten
                    free[p] = {name: _tensor(value) for name, value in found.items()}
        self.state.update(free)
        for buffer, value in arrays:
            np.copyto(buffer.payload, value)

    def _buffers_for(self, group: ParameterGroup, p: TensorBase, saved: Mapping[str, Any]) -> list[tuple[Buffer, Any]]:
        """Buffers of one parameter and their new contents; what is not saved is as before the first step."""
        unknown = [name for name, x in saved.items() if name not in self.state[p] and x is not None]
        if unknown and "step" not in unknown:
            raise StateError(f"loaded state dict has state {unknown}, which this optimiser does not keep")
        fresh, found = self.initial_state(group, _memory(p)), []
        for name, buffer in self.state[p].items():
            given = saved.get(name)
            if given is None:
                value = fresh[name] if name in fresh else np.zeros_like(buffer.payload)  # none if its term has gone
            else:
                value = given.payload if type(given) is Buffer else np.asarray(given)
            if value.shape != buffer.shape:
                raise StateError(f"size mismatch for {name}: copying {value.shape} into {buffer.shape}")
            fitting = converted(value, buffer.dtype)
            if fitting is None:
                raise StateError(f"dtype mismatch for {name}: {misfit(value, buffer.dtype)}")
            found.append((buffer, fitting))
        return found


def _memory(p: TensorBase) -> TensorBase:
    """The tensor that gives `initial_state` its shape and dtype: the parameter, or its like in a session."""
    return p if isinstance(p.payload, np.ndarray) else Buffer(np.zeros(p.shape, p.dtype))


def _refuse_other(p: Any) -> None:
    """Refuse what is no tensor among parameters."""
    if not isinstance(p, TensorBase):
        raise ArgumentError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")


def _copied(value: Any) -> Any:
    return Buffer.over(value.payload.copy()) if isinstance(value, TensorBase) else deepcopy(value)


def _tensor(value: Any) -> Any:
    return Buffer(value.copy()) if isinstance(value, np.ndarray) else deepcopy(value)


__all__ = ["ParameterGroup", "Optimizer"]
