"""The names that both engines offer, and how an engine makes its own version of a function.

Everything a program needs is listed here once; `dynamic` and `static` bind it, and a test holds them equal. What
a bound function does with arrays is all that differs: `dynamic` makes tensors of them, `static` runs on them at once
and returns arrays. Inside a trace both record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import acts, callback, create, dtypes, functional, mode, out, safetensors
from common.aliases import RENAMED, RENAMED_IN
from common.autograd import transforms, vmap
from common.control import choose, iterate
from common.diagnose import STUMBLES, Place, stumbled
from common.native import pool
from common.op import Op
from common.ops import create as fills
from common.ops import spaced
from common.random import distributions
from common.random import generator as random
from common.tensor import eager, printing

assert eager  # gives tensors their methods

#: Parameters that are operands in every function that has them, and those that are sequences of operands.
OPERANDS = frozenset(
    [
        "a",
        "anchor",
        "append",
        "attn_mask",
        "b",
        "batch1",
        "batch2",
        "bias",
        "boundaries",
        "condition",
        "high",
        "index",
        "input",
        "input1",
        "input2",
        "key",
        "low",
        "mask",
        "mat",
        "mat1",
        "mat2",
        "negative",
        "pos_weight",
        "positive",
        "prepend",
        "q",
        "query",
        "running_mean",
        "running_var",
        "sorted_sequence",
        "sorter",
        "src",
        "target",
        "tensor1",
        "tensor2",
        "values",
        "var",
        "vec",
        "vec1",
        "vec2",
        "weight",
        "weights",
        "x",
        "x1",
        "x2",
    ]
)
SEQUENCES = frozenset(["indices", "tensors"])

FUNCTIONS: dict[str, Any] = {
    **{name: getattr(functional, name) for name in functional.__all__ if name != "getitem"},
    "dropout": random.dropout,
    "rand_like": random.rand_like,
    "randint_like": random.randint_like,
    "randn_like": random.randn_like,
    "bernoulli": distributions.bernoulli,
    "multinomial": distributions.multinomial,
}
CREATION: dict[str, Any] = {
    **{name: getattr(fills, name) for name in ("zeros", "ones", "empty", "full", "arange", "eye")},
    **{name: getattr(spaced, name) for name in ("linspace", "logspace", "tril_indices", "triu_indices")},
    **{name: getattr(random, name) for name in ("rand", "randn", "randint", "randperm")},
    "normal": distributions.normal,
    "tensor": create.tensor, "as_tensor": create.as_tensor,
    "from_numpy": create.from_numpy, "from_dlpack": create.from_dlpack,
}  # fmt: skip
#: Functions that take ``requires_grad=``, as `tensor` does.
LEAVES = frozenset(
    ["arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "logspace", "normal", "ones",
     "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
     "randperm", "zeros", "zeros_like"]
)  # fmt: skip
NN_FUNCTIONS = (
    "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding",
    "gaussian_nll_loss", "gelu", "glu", "group_norm", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "logsigmoid", "margin_ranking_loss", "mish", "mse_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize",
    "one_hot", "pad", "pairwise_distance", "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
)  # fmt: skip
TRANSFORMS: dict[str, Any] = {
    "grad": transforms.grad, "value_and_grad": transforms.value_and_grad, "vjp": transforms.vjp, "vmap": vmap.vmap,
}  # fmt: skip
CONTROL: dict[str, Any] = {
    "cond": choose.cond, "switch": choose.switch, "while_loop": iterate.while_loop, "fori_loop": iterate.fori_loop,
    "scan": iterate.scan, "map": iterate.map,
}  # fmt: skip
MODES: dict[str, Any] = {
    "no_grad": mode.no_grad, "enable_grad": mode.enable_grad, "set_grad_enabled": mode.set_grad_enabled,
    "is_grad_enabled": mode.is_grad_enabled, "inference_mode": mode.inference_mode,
    "is_inference_mode_enabled": mode.is_inference_mode_enabled,
}  # fmt: skip
OUTSIDE: dict[str, Any] = {
    "set_printoptions": printing.set_printoptions,
    "get_printoptions": printing.get_printoptions,
    "save_file": safetensors.save_file,
    "load_file": safetensors.load_file,
}
ACTS: dict[str, Any] = {
    "print": acts.print, "assert_": acts.assert_, "ShapeDtypeStruct": callback.ShapeDtypeStruct,
}  # fmt: skip
#: Functions that run Python, which a compiled program calls.
HOST: dict[str, Any] = {"pure_callback": callback.pure_callback}
THREADS: dict[str, Any] = {"set_num_threads": pool.set_num_threads, "get_num_threads": pool.get_num_threads}
DTYPES: dict[str, Any] = {
    "float32": dtypes.float32, "float64": dtypes.float64, "int8": dtypes.int8, "int16": dtypes.int16,
    "int32": dtypes.int32, "int64": dtypes.int64, "uint8": dtypes.uint8, "bool": dtypes.bool_,
    "float": dtypes.float32, "double": dtypes.float64, "long": dtypes.int64,
}  # fmt: skip
RANDOM: dict[str, Any] = {
    "Generator": random.Generator, "manual_seed": random.manual_seed, "get_rng_state": random.get_rng_state,
    "set_rng_state": random.set_rng_state, "seed": random.seed, "initial_seed": random.initial_seed,
    "default_generator": random.default_generator,
}  # fmt: skip

#: Everything at the top level of an engine that this module provides; the engines add `function`, `Tensor`, and
#: the modules `nn`, `optim`, `autograd`, `profiler` and `random`.
NAMES = (
    *FUNCTIONS, *CREATION, *CONTROL, *TRANSFORMS, *MODES, *OUTSIDE, *ACTS, *HOST, *THREADS, *DTYPES, *RANDOM,
)  # fmt: skip
ENGINE_NAMES = ("Tensor", "autograd", "func", "function", "nn", "optim", "profiler", "random", "utils")


def on_demand(space: dict[str, Any], *tables: tuple[Callable[..., Any], dict[str, Any]]) -> tuple[Any, Any]:
    """A module's ``__getattr__`` and ``__dir__`` for functions that are bound when they are first asked for.

    Binding all of them takes longer than everything else that an import does.

    Parameters
    ----------
    space : the module's globals, in which bound functions stay.
    tables : pairs of ``bind(names) -> functions`` and the functions by name.
    """

    def module_getattr(name: str) -> Any:
        for bind, functions in tables:
            if name in functions:
                space[name] = bind({name: functions[name]})[name]
                return space[name]
        raise AttributeError(f"module {space['__name__']!r} has no attribute {name!r}")

    for _, functions in tables:
        for name in functions.keys() & space.keys():  # a submodule of that name, loaded before
            del space[name]
            module_getattr(name)
    return module_getattr, lambda: sorted({*space, *space["__all__"]})


def owned(functions: dict[str, Any], module: str) -> dict[str, Any]:
    """Functions that `module` offers under these names, told so: a pickle finds them there."""
    for name, function in functions.items():
        function.__module__, function.__name__, function.__qualname__ = module, name, name
    return functions


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
    takes_out: bool = False,
    **scope: Any,
) -> Callable[..., Any]:
    """An engine's version of a public function, with the same signature.

    Parameters
    ----------
    template : ``template(operands, sequences, call) -> lines`` of the body; `call` is the call of `function`.
    takes_operands : whether parameters with the names of operands are operands.
    takes_out : whether it gets a parameter `out`, see `common.out`.
    home : file of the engine's package; frames of the result count as the package's own.
    scope : names that the body uses.

    The function is generated as text, because a generic wrapper with ``*args, **kwargs`` would cost more than the
    fastest ops themselves (benchmarks/test_chain.py).
    """
    signature = signature_of(function)
    leaf = name in LEAVES and "requires_grad" not in signature.parameters
    renamed = {**RENAMED, **RENAMED_IN.get(name, {})}
    public = {p: renamed.get(p, p) for p in signature.parameters}
    defaults: dict[str, Any] = {}
    heads: list[str] = []
    passed: list[str] = []
    again: list[str] = []
    starred = False
    several = ""
    for p in signature.parameters.values():
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
            heads.append("*")
        passed.append(f"{p.name}={shown}" if keyword else shown)
        again.append(f"{shown}={shown}" if keyword else shown)
        if p.default is not p.empty:
            defaults[f"_{shown}"] = p.default
        heads.append(shown if p.default is p.empty else f"{shown}=_{shown}")
    call = f"_function({', '.join(passed)})"
    if leaf:
        heads += ["requires_grad=False"] if starred else ["*", "requires_grad=False"]
        call = f"(_leaf({call}) if requires_grad else {call})"
    if takes_out:
        heads += ["out=None"] if starred else ["*", "out=None"]
    if several:  # operands one by one, or as one list
        call = f"({call.replace(f'*{several}', several, 1)} if listed else {call})"
    body = template(
        [public[n] for n in public if n in OPERANDS], [public[n] for n in public if n in SEQUENCES], call
    )  # fmt: skip
    if several:
        body[:0] = [
            f"listed = len({several}) == 1 and isinstance({several}[0], (list, tuple))",
            f"if listed: {several} = {several}[0]",
        ]
    if takes_out:
        body[:0] = [f"if out is not None: return _write_out({name!r}, out, {name}({', '.join(again)}))"]
    given = ", ".join(f"{shown!r}: {shown}" for shown in public.values())
    lines = ["try:", *(f"    {line}" for line in body)]
    lines += ["except _stumbles as error:", f"    raise _stumbled(_place, {{{given}}}, error)"]
    source = f"def {name}({', '.join(heads)}):\n" + "".join(f"    {line}\n" for line in lines)
    place = Place(
        name,
        tuple(public[n] for n in public if takes_operands and n in OPERANDS),
        tuple(public[n] for n in public if takes_operands and n in SEQUENCES),
        tuple(public[n] for n, p in signature.parameters.items() if p.default is not p.empty),
        tuple(public[n] for n, p in signature.parameters.items() if type(p.default) in (int, float)),
    )
    diagnosis = {"_stumbles": STUMBLES, "_stumbled": stumbled, "_place": place, "_leaf": _leaf, "_write_out": out.write}
    space: dict[str, Any] = {**diagnosis, **scope, **defaults, "_function": function}
    exec(compile(source, str(Path(home).parent / f"<{name}>"), "exec"), space)
    bound: Callable[..., Any] = space[name]
    bound.__doc__ = function.doc if isinstance(function, Op) else function.__doc__
    parameters = [p.replace(name=public[p.name]) for p in signature.parameters.values()]
    for added, default in (("requires_grad", False),) * leaf + (("out", None),) * takes_out:
        parameters.append(inspect.Parameter(added, inspect.Parameter.KEYWORD_ONLY, default=default))
    bound.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return bound


def _leaf(x: Any) -> Any:
    """What a function has made, recording operations on it."""
    return create.lift(x).requires_grad_()
