"""Modules as functions of their parameters: called with other tensors in the places of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from common.core import mode
from common.core.errors import ArgumentError, StateError
from common.core.switching import Change, switching
from common.ops.shape.cat import stack
from common.tensor.base import TensorBase
from common.tensor.create import lift

Places = dict[str, tuple[dict[str, Any], str]]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers than its own.

    Parameters
    ----------
    module : its own are back in their places afterwards, whatever happens. Meanwhile no other thread may call it.
    parameter_and_buffer_dicts : tensors by qualified name, or a sequence of such dictionaries. Names may be those of
        tensors that are plain attributes, too. What the module assigns to a name stands in the dictionary afterwards.
    args : the arguments, a tuple; or one that is no tuple.
    kwargs : its keyword arguments.
    tie_weights : a parameter of several names is replaced under all of them, if one is given.
    strict : refuse missing and unknown names.

    Returns
    -------
    Any
        What the module returns, with history that leads to the given tensors.

    Raises
    ------
    ArgumentError : a name in two dictionaries.
    StateError : with `strict`, names are missing or unknown; two tensors for one tied parameter.

    Examples
    --------
    >>> import dynamic as tw
    >>> layer = tw.nn.Linear(2, 1)
    >>> x, state = tw.tensor([[1.0, 2.0]]), {"weight": tw.tensor([[3.0, 4.0]]), "bias": tw.zeros(1)}
    >>> functional_call(layer, state, x)
    tensor([[11.]])
    >>> tw.func.grad(lambda state: tw.func.functional_call(layer, state, x).sum())(state)["weight"]
    tensor([[1., 2.]])
    """
    given = _merged(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    places = _places(module)
    chosen = _chosen(places, given, tie_weights, strict)
    if not strict:
        others = _other_places(module, [name for name in given if name not in places])
        places, chosen = places | others, chosen | {name: lift(given[name]) for name in others}
    with _replaced(places, chosen):
        result = module(*positional, **(kwargs or {}))
        if isinstance(parameter_and_buffer_dicts, dict) and mode.current_trace() is None:
            for name in given.keys() & places.keys():  # what the module has put in a tensor's place is its new state
                table, last = places[name]
                if table.get(last, chosen[name]) is not chosen[name]:
                    parameter_and_buffer_dicts[name] = table[last]
        return result


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(d, Mapping) for d in dicts):
        raise ArgumentError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts).__name__}"
        )
    names = [name for d in dicts for name in d]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ArgumentError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: x for d in dicts for name, x in d.items()}


def _chosen(places: Places, given: Mapping[str, Any], tie_weights: bool, strict: bool) -> dict[str, Any]:
    """The tensors that are to stand in the places of a module's parameters and buffers, by name."""
    unexpected = [name for name in given if name not in places]
    if strict and unexpected:
        raise StateError(f"Error(s) in functional_call: unexpected key(s): {unexpected}")
    chosen = {name: lift(given[name]) for name in given if name in places}
    if tie_weights:
        chosen = _tied(places, chosen)
    missing = [name for name in places if name not in chosen]
    if strict and missing:
        raise StateError(f"Error(s) in functional_call: missing key(s): {missing}")
    return chosen


@switching
def _replaced(places: Places, chosen: Mapping[str, Any]) -> Change:
    """A context in which tensors stand in the places of a module's own."""
    on, off = [], []
    for name, x in chosen.items():  # steps that no signal divides
        table, last = places[name]
        on.append(partial(dict.__setitem__, table, last, x))
        off.append(partial(dict.__setitem__, table, last, table[last]) if last in table else partial(table.pop, last))
    return Change(tuple(on), tuple(off))


def _other_places(module: Any, names: Sequence[str]) -> Places:
    """Where tensors stand, or may, that are neither parameters nor buffers, but attributes of a module."""
    found: Places = {}
    modules = dict(module.named_modules(remove_duplicate=False)) if names else {}
    for name in names:
        path, _, last = name.rpartition(".")
        if (m := modules.get(path)) is not None:
            table = m.__dict__
            if isinstance(table[last], TensorBase) if last in table else not hasattr(m, last):
                found[name] = (table, last)
    return found


def _places(module: Any) -> Places:
    """Every name of a parameter or buffer, and where it stands."""
    found: Places = {}
    for name, m in module.named_modules(remove_duplicate=False):
        for table in (m._parameters, m._buffers):
            found.update({f"{name}.{last}" if name else last: (table, last) for last in table})
    return found


def _tied(places: Places, chosen: dict[str, Any]) -> dict[str, Any]:
    """The values chosen for parameters, each under all names of its parameter."""
    groups: dict[int, list[str]] = {}
    for name, (table, last) in places.items():
        if table[last] is not None:
            groups.setdefault(id(table[last]), []).append(name)
    out = dict(chosen)
    for names in groups.values():
        tensors = {id(chosen[name]): chosen[name] for name in names if name in chosen}
        if len(tensors) > 1:
            raise StateError(
                f"functional_call got multiple values for keys {names}, which are tied. Consider using "
                "tie_weights=False"
            )
        for x in tensors.values():
            out.update(dict.fromkeys(names, x))
    return out


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of equal modules, stacked, for `vmap` over `functional_call`.

    Parameters
    ----------
    models : of one class, all in training mode or none.

    Returns
    -------
    parameters, buffers : dictionaries of new leaves, (len(models), ...) each.

    Raises
    ------
    StateError : there are none, or they differ in class, in mode, or in which parameters require grad.
    """
    if not models:
        raise StateError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise StateError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise StateError("stack_module_state: Expected all models to be of the same class.")
    stacked: list[dict[str, Any]] = []
    for kind in ("named_parameters", "named_buffers"):
        columns: dict[str, list[Any]] = {}
        for model in models:
            for name, x in getattr(model, kind)():
                columns.setdefault(name, []).append(x)
        for name, xs in columns.items():
            if len({x.requires_grad for x in xs}) > 1:
                raise StateError(
                    f"stack_module_state: Expected {name!r} to have the same .requires_grad in each model: set it "
                    "before stacking, or stack those models on their own"
                )
        stacked.append(
            {name: stack([x.detach() for x in xs]).requires_grad_(xs[0].requires_grad) for name, xs in columns.items()}
        )
    return stacked[0], stacked[1]


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Take the running statistics away from all batch normalisation in a module, so that `vmap` can run it.

    Under `vmap` each example would write its own statistics to buffers that all of them share, which is refused.
    Without buffers, layers use the statistics of their input, in training and outside.

    Parameters
    ----------
    root : changed in place.

    Returns
    -------
    module : `root`.

    Examples
    --------
    >>> import dynamic as tw
    >>> net = tw.func.replace_all_batch_norm_modules_(tw.nn.Sequential(tw.nn.BatchNorm1d(2), tw.nn.ReLU()))
    >>> net[0].running_mean is None, net[0].track_running_stats, dict(net.named_buffers())
    (True, False, {})
    """
    from common.nn.normalization import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]
