"""Valid calls of everything that the engines' public modules list, made by the names of parameters.

For what has no call of its own in `tests.helpers.hostile_calls`: each parameter gets its default, or what `SAMPLES` has
under its name; of a class an instance is made so, and its public methods are called.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from enum import EnumMeta
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import dynamic
import dynamic.utils.data
import static
from common.tensor.base import TensorBase

Make = Callable[[np.random.Generator], tuple[Callable[..., Any], list[Any], dict[str, Any]]]

#: Beginnings of names: what stays after the call, and what refuses every call with an error of PyTorch's.
NOT_CALLED = ("register_module_", "install_as_torch", "load_library")
#: What a call would end, wait for, or change beyond the call; and what the rows of all tensors and modules call.
_LEFT_OUT = frozenset(["describe_escape", "forward", "function", "register_module"])


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """The public modules of an engine: those of `dynamic`, which both have, besides its short paths."""
    yield package
    for found in pkgutil.walk_packages(dynamic.__path__, "dynamic."):
        name = found.name.partition(".")[2]
        if not name.startswith(("eager", "__main__")):
            yield importlib.import_module(f"{package.__name__}.{name}")


def plain(value: Any) -> Any:
    """A function without what is wrapped around it."""
    while True:
        value = getattr(value, "__func__", value)
        inner = getattr(value, "__guarded__", None) or getattr(value, "__wrapped__", None)
        if inner is None or inner is value:
            return value
        value = inner


def listed() -> dict[str, Any]:
    """Every public function and class by its longest-known name; one that both engines share is there once."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for package in (dynamic, static):
        for module in modules(package):
            for name in module.__all__:
                value = getattr(module, name)
                if callable(value) and not isinstance(value, (np.dtype, EnumMeta)) and id(plain(value)) not in seen:
                    seen.add(id(plain(value)))
                    found[f"{module.__name__}.{name}"] = value
    return found


def methods(kind: type) -> dict[str, Any]:
    """The public methods of a class and those of the package's classes that it inherits."""
    found: dict[str, Any] = {}
    for owner in kind.__mro__:
        if not _is_ours(owner):
            continue
        for name, value in vars(owner).items():
            value = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if type(value) is FunctionType and name not in _LEFT_OUT and (not name.startswith("_") or name in _SYNTAX):
                found.setdefault(name, value)
    return found


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("common", "dynamic", "static")


_SYNTAX = frozenset(["__call__", "__getitem__", "__setitem__", "__contains__", "__iter__", "__len__", "__enter__"])


def _line() -> Any:
    return dynamic.nn.Linear(3, 2)


def _trained() -> Any:
    module = _line()
    module(dynamic.ones(2, 3)).sum().backward()
    return module


def _optimizer() -> Any:
    return dynamic.optim.SGD(_trained().parameters(), lr=0.1, momentum=0.9)


def _dataset() -> Any:
    return dynamic.utils.data.TensorDataset(dynamic.ones(4, 3), dynamic.ones(4))


def _matrix() -> Any:
    return dynamic.eye(3) * 2 + 0.1


def _double(x: Any, *rest: Any) -> Any:
    return x * 2


def _packed() -> Any:
    return dynamic.nn.utils.rnn.pack_sequence([dynamic.ones(3, 2), dynamic.ones(2, 2)])


def _twice(y: Any) -> Any:
    return (y * y).sum()


SAMPLES: dict[str, Callable[[], Any]] = {
    "A": _matrix, "B": lambda: dynamic.ones(3, 2), "LU": _matrix, "LD": _matrix, "x": _matrix, "input": _matrix,
    "a": _matrix, "b": _matrix, "other": _matrix, "tau": lambda: dynamic.ones(3), "pivots": lambda: dynamic.tensor(
        [1, 2, 3]), "tensors": lambda: [_matrix(), _matrix()], "tensor": lambda: _line().weight, "n": lambda: 1,
    "module": _line, "model": _line, "modules": lambda: [_line()], "name": lambda: "weight",
    "parametrization": lambda: dynamic.nn.Tanh(), "amount": lambda: 0.5, "mask": lambda: dynamic.ones(2, 3),
    "importance_scores": lambda: None, "pruning_method": lambda: dynamic.nn.utils.prune.L1Unstructured,
    "parameters": lambda: list(_trained().parameters()), "params": lambda: list(_trained().parameters()),
    "vec": lambda: dynamic.ones(8), "optimizer": _optimizer, "dataset": _dataset, "datasets": lambda: [
        _dataset(), _dataset()], "data_source": _dataset, "lengths": lambda: [1, 3], "indices": lambda: [0, 2],
    "sampler": lambda: dynamic.utils.data.SequentialSampler(range(4)), "weights": lambda: [0.5, 0.5],
    "batch_size": lambda: 2, "drop_last": lambda: False, "num_samples": lambda: 3, "batch": lambda: [1.0, 2.0],
    "data": lambda: [1.0, 2.0], "sequences": lambda: [dynamic.ones(3, 2), dynamic.ones(2, 2)],
    "padded_sequences": lambda: dynamic.ones(3, 2, 2), "sequence": _packed, "packed_sequences": _packed,
    "permutation": lambda: dynamic.tensor([1, 0]), "func": lambda: _double, "function": lambda: _double,
    "f": lambda: _double, "fn": lambda: _double, "functions": lambda: [_double, _double], "segments": lambda: 2,
    "hook": lambda: _double, "loc": lambda: dynamic.zeros(3), "scale": lambda: dynamic.ones(3),
    "rate": lambda: dynamic.ones(3), "low": lambda: dynamic.zeros(3), "high": lambda: dynamic.ones(3) * 2,
    "probs": lambda: dynamic.ones(3) / 3, "covariance_matrix": _matrix, "value": lambda: dynamic.ones(3),
    "q": lambda: dynamic.distributions.Normal(dynamic.zeros(3), dynamic.ones(3)),
    "event_shape": tuple, "batch_shape": tuple, "sample_shape": lambda: (2,), "swa_lr": lambda: 0.05,
    "loader": lambda: [dynamic.ones(2, 3)], "nonlinearity": lambda: "relu", "size": lambda: (2, 3),
    "example_inputs": lambda: (dynamic.ones(3),), "obj": _line, "enabled": lambda: True, "device": lambda: "cpu",
    "device_type": lambda: "cpu", "closure": lambda: lambda: dynamic.tensor(1.0), "log_dir": lambda: "runs",
    "tag": lambda: "a", "scalar_value": lambda: 1.0, "values": lambda: dynamic.ones(3), "text_string": lambda: "b",
    "input_to_model": lambda: dynamic.ones(2, 3), "img_tensor": lambda: dynamic.ones(3, 4, 4),
    "main_tag": lambda: "a", "tag_scalar_dict": lambda: {"b": 1.0}, "hparam_dict": lambda: {"a": 1.0},
    "metric_dict": lambda: {"b": 1.0}, "labels": lambda: dynamic.tensor([0, 1, 1]), "predictions": lambda: dynamic.rand(
        3), "mat": _matrix, "fmt": lambda: "%.2f", "path": lambda: "a.json", "state_dict": dict, "out": lambda: None,
    "input_ids": lambda: [0], "obj_type": lambda: int, "rotation": lambda: 0, "k": lambda: 2, "ndim": lambda: 2,
    "primals": lambda: (dynamic.ones(3),), "seed": lambda: 3, "new_state": lambda: dynamic.get_rng_state(),
    "state": lambda: dynamic.Generator().get_state(), "memory_fraction": lambda: 0.5, "bound": lambda: 1.0,
    "inputs": lambda: dynamic.ones(3), "condition": lambda: dynamic.tensor(True), "item": lambda: 0,
    "key": lambda: 0, "idx": lambda: 0, "index": lambda: 0, "epoch": lambda: 1, "shape": lambda: (2, 3),
    "error_message": lambda: "message", "message": lambda: "message", "metrics": lambda: 1.0, "T_max": lambda: 3,
    "T_0": lambda: 2, "gamma": lambda: 0.9, "lr_lambda": lambda: lambda e: 0.5, "milestones": lambda: [1, 2],
    "kernel_size": lambda: 1, "padding": lambda: 1, "normalized_shape": lambda: 3, "type": lambda: "cpu",
    "max_lr": lambda: 0.5, "total_steps": lambda: 5, "step_size": lambda: 1, "path_or_buf": lambda: "a.csv",
}  # fmt: skip

#: Parameters that mean something else in one place: "function.parameter".
_ELSEWHERE: dict[str, Callable[[], Any]] = {
    "checkpoint_sequential.input": lambda: dynamic.ones(2, 3),
    "set_checkpoint_early_stop.enable": lambda: True,
    "kl_divergence.p": lambda: dynamic.distributions.Normal(dynamic.zeros(3), dynamic.ones(3)),
    "Bernoulli.probs": lambda: dynamic.ones(3) / 2,
    "Categorical.probs": lambda: dynamic.ones(3) / 3,
    "Categorical.value": lambda: dynamic.tensor(1),
    "Bernoulli.value": lambda: dynamic.ones(3),
    "increment_version.tensor": lambda: dynamic.ones(2),
    "cross.input": lambda: dynamic.ones(2, 3),
    "cross.other": lambda: dynamic.ones(2, 3),
    "multi_dot.tensors": lambda: [_matrix(), _matrix(), _matrix()],
    "update_bn.model": lambda: dynamic.nn.Sequential(dynamic.nn.Linear(3, 2), dynamic.nn.BatchNorm1d(2)),
    "MultivariateNormal.value": lambda: dynamic.ones(3),
    "invert_permutation.permutation": lambda: dynamic.tensor([1, 0]),
    "pad_packed_sequence.sequence": _packed,
    "remove_parametrizations.module": lambda: _parametrized(),
    "remove.module": lambda: _pruned(),
    "global_unstructured.parameters": lambda: [(_line(), "weight")],
}


def _parametrized() -> Any:
    return dynamic.nn.utils.parametrizations.weight_norm(_line())


def _pruned() -> Any:
    return dynamic.nn.utils.prune.identity(_line(), "weight")


def given(name: str, function: Any, taken: int = 0, kind: str = "") -> tuple[list[Any], dict[str, Any]] | None:
    """Arguments for a function by the names of its parameters; None if it tells none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[taken:]
    except (TypeError, ValueError):
        return None
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for p in parameters:
        sample = _ELSEWHERE.get(f"{name}.{p.name}") or _ELSEWHERE.get(f"{kind}.{p.name}") or SAMPLES.get(p.name)
        if p.kind is p.VAR_KEYWORD or (p.kind is p.VAR_POSITIONAL and sample is None and "forward" in name):
            continue
        if p.default is not p.empty:
            value = p.default
        elif sample is not None:
            value = sample()
        else:
            annotation = p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", "")
            value = _BY_TYPE.get(annotation.partition("|")[0].strip().partition("[")[0], _matrix)()
        if p.kind is p.VAR_POSITIONAL:
            args += value if isinstance(value, (list, tuple)) else [value]
        elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY:
            args.append(value)
        else:
            kwargs[p.name] = value
    return args, kwargs


_BY_TYPE: dict[str, Callable[[], Any]] = {
    "int": lambda: 1, "float": lambda: 0.5, "bool": lambda: True, "str": lambda: "a", "Callable": lambda: _double,
    "Sequence": lambda: [1, 2], "Iterable": lambda: [1, 2], "tuple": lambda: (1, 2), "list": lambda: [1, 2],
    "dict": dict, "Mapping": dict, "Module": _line,
}  # fmt: skip


#: Instances of classes that their parameters' names do not make.
INSTANCES: dict[str, Callable[[], Any]] = {
    "Node": lambda: (dynamic.ones(2, requires_grad=True) * 2).grad_fn,
    "GradientEdge": lambda: dynamic.autograd.graph.get_gradient_edge(dynamic.ones(2, requires_grad=True) * 2),
    "RemovableHandle": lambda: dynamic.ones(2, requires_grad=True).register_hook(_double),
    "PackedSequence": _packed,
    "EventList": lambda: _profile().events(),
    "FunctionEvent": lambda: _profile().events()[0],
    "Dataset": _dataset,
    "StackDataset": lambda: dynamic.utils.data.StackDataset(_dataset(), _dataset()),
    "IterableDataset": lambda: dynamic.utils.data.ChainDataset([]),
    "SequentialLR": lambda: _sequential(),
    "SummaryWriter": lambda: importlib.import_module("dynamic.utils.tensorboard").SummaryWriter("runs"),
    "InteractiveSession": lambda: static.Session(),
    "Categorical": lambda: dynamic.distributions.Categorical(dynamic.ones(3) / 3),
    "Bernoulli": lambda: dynamic.distributions.Bernoulli(dynamic.ones(3) / 2),
    "MultivariateNormal": lambda: dynamic.distributions.MultivariateNormal(dynamic.zeros(3), _matrix()),
    "inference_mode": lambda: dynamic.inference_mode(),
    "no_grad": lambda: dynamic.no_grad(),
    "enable_grad": lambda: dynamic.enable_grad(),
    "device": lambda: dynamic.device("cpu"),
    "Size": lambda: dynamic.Size([2, 3]),
    "Tensor": lambda: dynamic.ones(2, 3),
    "TensorDataset": _dataset,
    "ParametrizationList": lambda: _parametrized().parametrizations.weight,
    "Function": lambda: dynamic.autograd.Function,
}


def _profile() -> Any:
    with dynamic.profiler.profile() as profile:
        dynamic.ones(2) * 2
    return profile


def _sequential() -> Any:
    optimizer, schedulers = _optimizer(), dynamic.optim.lr_scheduler
    return schedulers.SequentialLR(optimizer, [schedulers.ConstantLR(optimizer)] * 2, [1])


def _call(name: str, function: Any) -> Make:
    def make(rng: np.random.Generator) -> Any:
        found = given(name, function)
        return (function, *(([], {}) if found is None else found))

    return make


def _method(kind: str, name: str, instance: Callable[[], Any]) -> Make:
    def make(rng: np.random.Generator) -> Any:
        bound = getattr(instance(), name)
        args, kwargs = given(name, bound, kind=kind) or ([], {})
        return _used_up(bound), args, kwargs

    return make


def _used_up(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of which what it yields is taken, a little of it if it does not end."""

    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return [y for y, _ in zip(result, range(100), strict=False)] if inspect.isgenerator(result) else result

    return call


def code_of(value: Any) -> Any:
    """The code that runs when a function or class is called; None if Python has none of its own."""
    if isinstance(value, type):
        found = (vars(kind)[m] for kind in value.__mro__[:-1] for m in ("__init__", "__new__") if m in vars(kind))
        value = next((f for f in found if hasattr(plain(f), "__code__")), None)
    return getattr(plain(value), "__code__", None)


def instance_of(name: str, kind: Any) -> Callable[[], Any] | None:
    """The maker of a class's instances; None for a class that nobody makes."""
    if name in INSTANCES:
        return INSTANCES[name]

    def make() -> Any:
        args, kwargs = given(name, kind) or ([], {})
        return kind(*args, **kwargs)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make()
    except Exception:
        return None
    return make


def table(known: dict[str, Any]) -> dict[str, Make]:
    """Calls of what the public modules list and `known`, calls by name, does not have; and of the classes' methods."""
    found: dict[str, Make] = {}
    seen: set[int] = set()
    for path, value in listed().items():
        name = path.rpartition(".")[2]
        if name.startswith(NOT_CALLED):
            continue
        if path not in known and f"session.{name}" not in known and ".".join(path.split(".")[-2:]) not in known:
            found[path] = _call(name, value)
        if isinstance(value, type) and not issubclass(value, TensorBase) and _is_ours(value):
            new = {m: f for m, f in methods(value).items() if id(plain(f)) not in seen and f"{name}.{m}" not in known}
            make = instance_of(name, value) if new else None
            if make is not None:
                seen |= {id(plain(f)) for f in new.values()}
                found |= {f"{path}.{method}": _method(name, method, make) for method in new}
    return found
