"""The measured step of a module or function: a step of a training loop, or a gradient."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.lab.ways import Way
from benchmarks.workload import Program


def is_module(thing: Any) -> bool:
    """Whether something is a module, or a class of modules."""
    return hasattr(thing, "named_parameters") and hasattr(thing, "forward")


def trains(thing: Any) -> bool:
    """Whether something is a module with parameters to train; the step of another one is its call."""
    return is_module(thing) and any(p.requires_grad for _, p in thing.named_parameters())


def step(tw: Any, model: Any, loss: str, optimizer: str, made: Any = None) -> Program:
    """Return zero_grad, forward, backward and, with an optimiser, its step, as one compiled function.

    Parameters
    ----------
    tw : engine
    model : Module
    loss : str
        A function of ``nn.functional`` of the output and the last argument; the mean square of the output without.
    optimizer : str
        A call such as ``"SGD(lr=0.1)"``; no step without.
    made : Optimizer, optional
        Taken in place of `optimizer`.
    """
    optimizer_of = made if made is not None or not optimizer else _optimizer(tw, model, optimizer)

    def forward(*arguments: Any) -> Any:
        if loss:
            return getattr(tw.nn.functional, loss)(model(*arguments[:-1]), arguments[-1])
        return total(model(*arguments), lambda x: (x * x).mean())

    def training_step(*arguments: Any) -> Any:
        model.zero_grad()
        value = forward(*arguments)
        value.backward()
        if optimizer_of is not None:
            optimizer_of.step()
        return value

    return Program(tw.function(training_step), list(model.named_parameters()), optimizer_of)


def check(tw: Any, loss: str, optimizer: str) -> None:
    """Raise ValueError where a loss or an optimiser is not one of the engine's."""
    if loss and not callable(getattr(tw.nn.functional, loss, None)):
        raise ValueError(f"--loss is a function of nn.functional such as cross_entropy, not {loss!r}")
    if optimizer:
        _named(tw, optimizer)


def gradient(tw: Any, function: Callable[..., Any], positions: Sequence[int]) -> Any:
    """Return value and gradient of a function, of its floating arguments; what is no number is summed.

    Raises
    ------
    ValueError
        If there is nothing to differentiate.
    """
    if not positions:
        raise ValueError('--grad needs an argument that is a floating array, as in --args "f32[64]"')

    inner = tw.part(function) if isinstance(tw, Way) else function

    def scalar(*arguments: Any) -> Any:
        return total(inner(*arguments), lambda x: x.sum())

    return tw.function(tw.value_and_grad(scalar, tuple(positions)))


def total(result: Any, reduce: Callable[[Any], Any]) -> Any:
    """Return one number of a result, or of the first of several."""
    while isinstance(result, tuple | list):
        result = result[0]
    return reduce(result) if result.ndim else result


def state_of(thing: Any) -> tuple[list[tuple[str, Any]], Any]:
    """Return the parameters, by name, and the optimiser that a function refers to, by closure or globally."""
    function = inspect.unwrap(thing)
    if not inspect.isfunction(function):
        function = inspect.unwrap(getattr(thing, "target", thing))
    if not inspect.isfunction(function):
        return [], None
    found = inspect.getclosurevars(function)
    values = {**found.globals, **found.nonlocals}
    parameters: dict[int, tuple[str, Any]] = {}
    for name, p in _parameters(values):
        parameters.setdefault(id(p), (name, p))
    optimizer = next((x for x in values.values() if hasattr(x, "param_groups") and hasattr(x, "state_dict")), None)
    if optimizer is not None:
        known = [p for group in optimizer.param_groups for p in group["params"]]
        named = {id(p): name for name, p in parameters.values()}
        ordered = {id(p): (named.get(id(p), f"parameter {i}"), p) for i, p in enumerate(known)}
        parameters = {**ordered, **{key: x for key, x in parameters.items() if key not in ordered}}
    return list(parameters.values()), optimizer


def _parameters(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if is_module(value) and not isinstance(value, type):
            yield from ((f"{name}.{inner}", p) for inner, p in value.named_parameters())
        elif getattr(value, "requires_grad", False) is True:
            yield name, value


def _optimizer(tw: Any, model: Any, text: str) -> Any:
    """The optimiser that a call such as ``SGD(lr=0.1)`` names."""
    kind, options = _named(tw, text)
    return kind(model.parameters(), **options)


def _named(tw: Any, text: str) -> tuple[Any, dict[str, Any]]:
    """The class and the options of ``SGD(lr=0.1)``."""
    call = ast.parse(text, mode="eval").body
    if isinstance(call, ast.Name):
        call = ast.Call(call, [], [])
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise ValueError(f'--optimizer is a call such as "SGD(lr=0.1, momentum=0.9)", not {text!r}')
    options = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    kind = getattr(tw.optim, call.func.id, None)
    if kind is None:
        raise ValueError(f"there is no optimiser {call.func.id!r} in optim")
    return kind, options
