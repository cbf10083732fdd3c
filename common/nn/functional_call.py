"""Modules as functions of their parameters: called with other tensors in the places of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from common.core.errors import ArgumentError, StateError
from common.core.switching import Change, switching
from common.ops.shape.cat import stack
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
    parameter_and_buffer_dicts : tensors by qualified name, or a sequence of such dictionaries.
    args : the arguments, a tuple; or one that is no tuple.
    kwargs : its keyword arguments.
    tie_weights : a parameter of several names is replaced under all of them, if one is given.
    strict : refuse missing and unknown names; unknown ones are ignored otherwise, as in PyTorch.

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
    with _replaced(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


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


@switching
def _replaced(module: Any, given: Mapping[str, Any], tie_weights: bool, strict: bool) -> Change:
    """A context in which tensors stand in the places of a module's parameters and buffers."""
    places = _places(module)
    unexpected = [name for name in given if name not in places]
    if strict and unexpected:
        raise StateError(f"Error(s) in functional_call: unexpected key(s): {unexpected}")
    chosen = {name: lift(given[name]) for name in given if name in places}
    if tie_weights:
        chosen = _tied(places, chosen)
    missing = [name for name in places if name not in chosen]
    if strict and missing:
        raise StateError(f"Error(s) in functional_call: missing key(s): {missing}")
    own = {name: places[name][0][places[name][1]] for name in chosen}
    on, off = (
        tuple(partial(dict.__setitem__, *places[name], x) for name, x in tensors.items())  # which no signal divides
        for tensors in (chosen, own)
    )
    return Change(on, off)


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
