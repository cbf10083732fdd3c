"""How an engine, or a class of tensors, makes its own version of a public function."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from common.core.aliases import (
    OLDER_FACTORS,
    OPERANDS,
    RENAMED,
    RENAMED_IN,
    SECOND_NAMES,
    SEQUENCES,
    older_factors,
    older_reduction,
    with_older_reduction,
)
from common.core.devices import dense, on_cpu
from common.core.op import Op
from common.methods import asking
from common.methods.in_place_functions import over
from common.tensor import create
from common.tensor.base import TensorBase
from common.tensor.diagnose import PublicFunction, stumbled

#: Windows of signals.
WINDOWS = frozenset(
    ["bartlett", "bartlett_window", "blackman", "blackman_window", "cosine", "exponential", "fftfreq", "gaussian",
     "general_cosine", "general_hamming", "hamming", "hamming_window", "hann", "hann_window", "kaiser",
     "kaiser_window", "nuttall", "rfftfreq"]
)  # fmt: skip
#: Functions that take ``requires_grad=``, as `tensor` does.
LEAVES = frozenset(
    ["arange", "asarray", "empty", "empty_like", "empty_permuted", "empty_strided", "eye", "full", "full_like",
     "linspace", "logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn",
     "randn_like", "randperm", "range", "scalar_tensor", "zeros", "zeros_like", *WINDOWS]
)  # fmt: skip


#: Functions that take ``device=``, and what else PyTorch's take about memory, which here changes nothing.
PLACED = LEAVES | {"as_tensor", "tensor", "tril_indices", "triu_indices"}
#: Functions that take ``inplace=``, as those of PyTorch's `nn.functional`.
INPLACE = frozenset(
    ["alpha_dropout", "celu", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "feature_alpha_dropout",
     "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "rrelu", "selu", "silu",
     "threshold"]
)  # fmt: skip
_ABOUT_MEMORY = {"device": None, "layout": None, "pin_memory": False}


def _about_memory(name: str) -> dict[str, Any]:
    """The arguments that a function takes although they change nothing, memory's above all, with their defaults."""
    if name == "clone":
        return {"memory_format": None}
    if name in ("softmax", "log_softmax", "softmin"):
        return {"_stacklevel": 3}
    if name not in PLACED:
        return {}
    return {**_ABOUT_MEMORY, **({"memory_format": None} if name.startswith("empty") or name.endswith("_like") else {})}


def signature_of(function: Any) -> inspect.Signature:
    """The signature of a public function; that of an op is its operands."""
    if isinstance(function, Op):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in function.inputs])
    return inspect.signature(function)


def bind(
    name: str,
    function: Any,
    template: Callable[..., list[str]],
    home: str,
    takes_operands: bool = True,
    write_out: Callable[..., Any] | None = None,
    in_place: bool = False,
    **scope: Any,
) -> Callable[..., Any]:
    """An engine's version of a public function, with the same signature.

    Parameters
    ----------
    template : ``template(operands, sequences, call) -> lines`` of the body; `call` is the call of `function`.
    takes_operands : whether parameters with the names of operands are operands.
    write_out : what makes a call with the argument `out`, see `common.api.out.written`.
    home : file of the engine's package; frames of the result count as the package's own.
    in_place : whether it takes ``inplace=``, to write the result over its first operand.
    scope : names that the body uses.

    The function is generated as text, because a generic wrapper with ``*args, **kwargs`` would cost more than the
    fastest ops themselves (benchmarks/gates/test_chain.py).
    """
    signature = signature_of(function)
    leaf = name in LEAVES and "requires_grad" not in signature.parameters
    renamed = {**RENAMED, **RENAMED_IN.get(name, {})}
    parameters = with_older_reduction(name, list(signature.parameters.values()))
    older = len(parameters) > len(signature.parameters)
    public = {p.name: renamed.get(p.name, p.name) for p in parameters}
    defaults: dict[str, Any] = {}
    heads: list[str] = []
    passed: list[str] = []
    again: list[str] = []
    starred = False
    several = ""
    for p in parameters:
        shown = public[p.name]
        if p.kind is p.VAR_POSITIONAL:
            starred = True
            several = shown if p.name in SEQUENCES else ""
            heads.append(f"*{shown}")
            passed.append(f"*{shown}")
            again.append(f"*{shown}")
            continue
        keyword = p.kind is p.KEYWORD_ONLY
        if keyword and not starred:
            starred = True
            heads.append("*_factors" if name in OLDER_FACTORS else "*")
        if p.name in signature.parameters:
            kind = signature.parameters[p.name].kind
            passed.append(f"{p.name}={shown}" if kind is p.KEYWORD_ONLY else shown)
        again.append(f"{shown}={shown}" if keyword else shown)
        if p.default is not p.empty:
            defaults[f"_{shown}"] = p.default
        heads.append(shown if p.default is p.empty else f"{shown}=_{shown}")
    call = f"_function({', '.join(passed)})"
    if leaf:
        heads += ["requires_grad=False"] if starred else ["*", "requires_grad=False"]
        call = f"(_leaf({call}) if requires_grad else {call})"
    starred = starred or leaf
    if in_place:
        heads.append("inplace=False")
    second = SECOND_NAMES.get(name)
    if second:
        heads += [*([] if starred else ["*"]), f"{second[0]}=None"]
        starred = True
    placed = {p: default for p, default in _about_memory(name).items() if p not in signature.parameters}
    if placed:
        heads += [*([] if starred else ["*"]), *(f"{p}={default}" for p, default in placed.items())]
        starred = True
    if write_out is not None:
        heads += ["out=None"] if starred else ["*", "out=None"]
    if several:  # operands one by one, or as one list
        call = f"({call.replace(f'*{several}', several, 1)} if listed else {call})"
    sequences = tuple(public[p.name] for p in parameters if p.name in SEQUENCES and p.default is not None)
    body = template([public[n] for n in public if n in OPERANDS], [*sequences], call)
    if several:
        body[:0] = [
            f"listed = len({several}) == 1 and isinstance({several}[0], (list, tuple))",
            f"if listed: {several} = {several}[0]",
        ]
    if write_out is not None:
        if not takes_operands:  # what makes tensors of sizes
            again = [x.replace("dtype=dtype", "dtype=_dtype_for(out, dtype)") for x in again]
        body[:0] = [f"if out is not None: return _write_out({name!r}, out, {', '.join(['_itself', *again])})"]
    if in_place:
        body[:0] = [f"if inplace: return _over({name!r}, {', '.join(['_itself', *again])})"]
    if "device" in placed:
        body[:0] = [f"if device is not None: _on_cpu(device, {name!r})"]
    if "layout" in placed:
        body[:0] = [f"if layout is not None: _dense(layout, {name!r})"]
    if second:
        body[:0] = [f"if {second[0]} is not None: {second[1]} = {second[0]}"]
    if name == "einsum":
        from common.ops.linalg.einsum import spelled

        scope["_spelled"] = spelled
        body[:0] = [f"if equation.__class__ is not str: equation, *{several} = _spelled(equation, {several})"]
    if older:
        body[:0] = [
            "if size_average is not None or reduce is not None or reduction == 'elementwise_mean':",
            "    reduction = _older(size_average, reduce, reduction)",
        ]
    if "*_factors" in heads:
        operands = passed[: heads.index("*_factors")]
        options = [x for x in again if "=" in x] + ["out=out"] * (write_out is not None)
        rest = ", ".join([f"({', '.join([*operands, '*_factors'])})", str(len(operands)), *options])
        again_by_name = f"_by_name({name!r}, _itself, {rest})"
        body[:0] = [f"if _factors: return {again_by_name}"]
    given = ", ".join(f"{shown!r}: {shown}" for shown in public.values())
    lines = ["try:", *(f"    {line}" for line in body)]
    lines += ["except _stumbles as error:", f"    return _stumbled(_itself, _place, {{{given}}}, error)"]
    source = f"def {name}({', '.join(heads)}):\n" + "".join(f"    {line}\n" for line in lines)
    place = PublicFunction(
        name,
        tuple(public[n] for n in public if takes_operands and n in OPERANDS),
        sequences if takes_operands else (),
        tuple(public[n] for n, p in signature.parameters.items() if p.default is not p.empty),
        tuple(public[n] for n, p in signature.parameters.items() if type(p.default) in (int, float)),
        signature,
    )
    diagnosis = {
        "_stumbles": Exception,
        "_stumbled": _refuse,
        "_place": place,
        "_leaf": _leaf,
        "_write_out": write_out,
        "_on_cpu": on_cpu,
        "_dense": dense,
        "_over": over,
        "_older": older_reduction,
        "_by_name": _by_name,
        "_dtype_for": _dtype_for,
    }
    space: dict[str, Any] = {**diagnosis, **scope, **defaults, "_function": function}
    exec(compile(source, str(Path(home).parent / f"<{name}>"), "exec"), space)
    bound: Callable[..., Any] = space[name]
    space["_itself"] = bound  # one of its parameters may have its name
    bound.__doc__ = function.doc if isinstance(function, Op) else function.__doc__
    parameters = [p.replace(name=public[p.name]) for p in parameters]
    out = (("out", None),) * (write_out is not None)
    if in_place:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter("inplace", kind, default=False))
    others = [(second[0], None)] if second else []
    for added, default in [*others, *[("requires_grad", False)] * leaf, *placed.items(), *out]:
        parameters.append(inspect.Parameter(added, inspect.Parameter.KEYWORD_ONLY, default=default))
    bound.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    made.append(bound)
    if asking.called is not None:
        _let_ask(bound)
    return bound


def _refuse(function: Callable[..., Any], place: PublicFunction, arguments: dict[str, Any], error: Exception) -> Any:
    """Raise what stopped a function, as an error of the library; or ask a class that takes functions over."""
    given = (y for x in arguments.values() for y in (x if type(x) in (tuple, list) else (x,)))
    if asking.called is None and any(
        hasattr(type(x), "__torch_function__") and not isinstance(x, TensorBase) for x in given
    ):
        importlib.import_module("common.methods.torch_function").ask()
        args, kwargs = [], {}
        for name, p in inspect.signature(function).parameters.items():
            if p.kind is p.VAR_POSITIONAL:
                args += arguments[name]
            elif p.default is p.empty:
                args.append(arguments[name])
            elif arguments.get(name, p.default) is not p.default:
                kwargs[name] = arguments[name]
        return function(*args, **kwargs)
    raise stumbled(place, arguments, error)


#: Every function that `bind` has made.
made: list[Any] = []
#: Names in a bound function's own globals: who answers, the function, and what it did before it asked.
_called: Any
_itself: Any
_plain: Any
_ASKING = (lambda *args, **kwargs: _called(_itself, _plain, args, kwargs)).__code__  # noqa: F821


def _let_ask(function: Any) -> None:
    """Give a function other code, which asks: whoever holds the function sees that."""
    space, code = function.__globals__, function.__code__
    plain = FunctionType(code, space, function.__name__, function.__defaults__)
    plain.__kwdefaults__ = function.__kwdefaults__
    space["_called"], space["_plain"] = asking.called, plain
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = _ASKING.replace(
        co_filename=code.co_filename, co_name=code.co_name, co_qualname=code.co_qualname
    )


@asking.when_begun
def _let_all_ask() -> None:
    for function in made:
        _let_ask(function)


def _by_name(name: str, itself: Callable[..., Any], given: tuple[Any, ...], operands: int, **options: Any) -> Any:
    """Call a function whose factors are given first, see `older_factors`."""
    args, options = older_factors(name, operands, given, options)
    return itself(*args, **options)


def _dtype_for(out: Any, dtype: Any) -> Any:
    """The dtype in which a function writes to `out`: that of `out` where none is given."""
    return getattr(out, "dtype", None) if dtype is None else dtype


def _leaf(x: Any) -> Any:
    """A function's result as a leaf that records."""
    return create.lift(x).requires_grad_()
