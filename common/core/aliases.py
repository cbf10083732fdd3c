"""NumPy's argument names `axis` and `keepdims` beside PyTorch's `dim` and `keepdim`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.core.source_lines import warn_user

ALIASES = {"dim": "axis", "keepdim": "keepdims"}


class _Absent:
    """The default of an argument that may come under its other name."""

    def __repr__(self) -> str:
        return "..."


ABSENT: Any = _Absent()


def accept_numpy_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with keywords `axis` for `dim` and `keepdims` for `keepdim`, where it has these.

    The wrapper is generated as text: it costs 50 ns, a generic one with ``*args, **kwargs`` four times that.

    Examples
    --------
    >>> def shape(x, dim, keepdim=False):
    ...     return dim, keepdim
    >>> accept_numpy_names(shape)(None, axis=1, keepdims=True)
    (1, True)
    """
    signature = inspect.signature(function)
    others = [ALIASES[name] for name in signature.parameters if name in ALIASES]
    space: dict[str, Any] = {"function": function, "ABSENT": ABSENT, "resolve": _resolve}
    heads = []
    keywords = [name for name, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY]
    for name, p in signature.parameters.items():
        required = p.default is p.empty
        space[f"default_{name}"] = ABSENT if required else p.default
        has_default = name in ALIASES or not required
        if name not in keywords:
            heads.append(f"{name}=default_{name}" if has_default else name)
    heads += ["*", *(f"{name}=default_{name}" for name in keywords), *(f"{other}=ABSENT" for other in others)]
    lines = [f"def {function.__name__}({', '.join(heads)}):"]
    for name, other in ALIASES.items():
        if name in signature.parameters:
            lines.append(
                f"    if {other} is not ABSENT or {name} is ABSENT: "
                f"{name} = resolve({function.__name__!r}, {name!r}, {name}, default_{name}, {other})"
            )
    passed = [f"{name}={name}" if name in keywords else name for name in signature.parameters]
    lines.append(f"    return function({', '.join(passed)})")
    exec(compile("\n".join(lines), f"{__file__}: {function.__name__}", "exec"), space)
    wrapper: Callable[..., Any] = space[function.__name__]
    wrapper.__doc__, wrapper.__module__ = function.__doc__, function.__module__
    return wrapper


def _resolve(function: str, name: str, given: Any, default: Any, alias: Any) -> Any:
    if alias is ABSENT:
        raise ArgumentError(f"{function}() missing required argument: '{name}'")
    if given is not default:
        raise ArgumentError(f"{function}() got both {name!r} and its alias {ALIASES[name]!r}")
    return alias


def older_reduction(size_average: Any, reduce: Any, reduction: str = "mean") -> str:
    """Translate PyTorch's older arguments of losses: the mean by default, a sum without `size_average`, nothing
    without `reduce`. A word in their place is true, as in PyTorch, and warned of.

    Parameters
    ----------
    reduction : without the other two, PyTorch's older name of the mean.

    Examples
    --------
    >>> older_reduction(False, None), older_reduction(None, False), older_reduction(True, True)
    ('sum', 'none', 'mean')
    """
    if reduce is not None and not reduce:
        return "none"
    result = "mean" if size_average is None or size_average else "sum"
    if word := next((x for x in (size_average, reduce) if isinstance(x, str)), None):
        warn_user(
            f"size_average and reduce args will be deprecated: {word!r} stands in their place and so counts as true, "
            f"as in PyTorch, which is reduction={result!r}; write reduction={word!r}"
        )
    elif size_average is None and reduce is None:
        warn_user(f"reduction={reduction!r} is deprecated, please use reduction='mean' instead")
    return result


#: Arguments that stand for `reduction` in functions that have it.
OLDER_REDUCTION = ("size_average", "reduce")
_NEWER = frozenset(
    ["ctc_loss", "gaussian_nll_loss", "huber_loss", "linear_cross_entropy", "triplet_margin_with_distance_loss"]
)


def with_older_reduction(name: str, parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """A function's parameters with the two that stand for `reduction`, in PyTorch's places, if it has them there.

    Examples
    --------
    >>> def nll_loss(x, target, weight=None, *, ignore_index=-100, reduction="mean"): ...
    >>> [p.name for p in with_older_reduction("nll_loss", list(inspect.signature(nll_loss).parameters.values()))]
    ['x', 'target', 'weight', 'size_average', 'ignore_index', 'reduce', 'reduction']
    """
    names = [p.name for p in parameters]
    if "reduction" not in names or name in _NEWER:
        return parameters
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    average, reduce = (inspect.Parameter(p, kind, default=None) for p in OLDER_REDUCTION)
    parameters = [p.replace(kind=kind) for p in parameters]
    at = names.index("reduction")
    first = at - (names[at - 1] in ("ignore_index", "eps") and "swap" not in names)
    return [*parameters[:first], average, *parameters[first:at], reduce, *parameters[at:]]


#: Functions that older programs give their factors first, by position: the names of the factors. Of two, a call has the
#: first one or both.
OLDER_FACTORS: dict[str, tuple[str, ...]] = {
    "add": ("alpha",), "sub": ("alpha",), "addcmul": ("value",), "addcdiv": ("value",),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}  # fmt: skip


def older_factors(
    name: str, operands: int, given: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The operands, and the options with the factors, of a call in PyTorch's older order, which is warned of.

    Parameters
    ----------
    name, operands : of the function, and how many it has.
    given : all that was given by position: ``(x, alpha, other)``, ``(x, value, tensor1, tensor2)``, or
        ``(beta, x, alpha, mat1, mat2)``, where a method has `x` first.
    options : all that was given by name, or has its default, which is 1 for a factor.

    Raises
    ------
    ArgumentError : other arguments.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     older_factors("add", 2, (1.0, 3, 2.0), {"out": None})
    ((1.0, 2.0), {'out': None, 'alpha': 3})
    """
    names, rest = OLDER_FACTORS[name], list(given)
    x = rest.pop(1 if len(names) > 1 and isinstance(rest[0], (int, float, np.number)) else 0)
    more = len(rest) - (operands - 1)
    if not 1 <= more <= len(names) or any(getattr(factor, "ndim", 0) for factor in rest[:more]):
        raise ArgumentError(f"{name}() takes {operands} positional arguments but {len(given)} were given")
    twice = [factor for factor in names if type(options.get(factor, 1)) is not int or options.get(factor, 1) != 1]
    if twice:
        raise ArgumentError(f"{name}() got multiple values for argument {twice[0]!r}")
    warn_user(f"This overload of {name} is deprecated: give operands first, and {' and '.join(names[:more])} by name")
    return (x, *rest[more:]), {**options, **dict(zip(names, rest[:more]))}


#: Parameters that have a second name, which the functions at PyTorch's top level have: the name, and the parameter.
SECOND_NAMES = dict.fromkeys(("dropout", "alpha_dropout", "feature_alpha_dropout"), ("train", "training"))

#: Parameters that are operands in every function that has them, and those that are sequences of operands.
OPERANDS = frozenset(
    ["A", "a", "anchor", "append", "attn_mask", "B", "b", "batch1", "batch2", "bias", "bias_k", "bias_v",
     "boundaries", "condition", "grid", "high", "in_proj_bias", "in_proj_weight", "index", "input", "input_mask",
     "input1", "input2", "k_proj_weight", "key", "key_padding_mask", "LD", "low", "LU", "LU_data", "LU_pivots",
     "mask", "mat", "mat1", "mat2", "negative", "offsets", "other_mask", "out_proj_bias", "out_proj_weight",
     "per_sample_weights", "pivots", "pos_weight", "positive", "prepend", "q", "q_proj_weight", "query",
     "running_mean", "running_var", "sorted_sequence", "sorter", "src", "static_k", "static_v", "target", "tau",
     "tensor1", "tensor2", "theta", "v_proj_weight", "values", "var", "vec", "vec1", "vec2", "weight", "weights", "x",
     "x1", "x2"]
)  # fmt: skip
SEQUENCES = frozenset(["indices", "tensors"])
#: PyTorch's names of the operands; by function where they differ from the usual ones.
RENAMED = {"x": "input", "a": "input", "b": "other"}
RENAMED_IN = {
    "pow": {"b": "exponent"}, "mm": {"b": "mat2"}, "bmm": {"b": "mat2"}, "embedding": {"index": "input"},
    "embedding_bag": {"index": "input"},
    "take_along_dim": {"index": "indices"}, "select": {"position": "index"}, "select_scatter": {"position": "index"},
    "linear_cross_entropy": {"weight": "linear_weight", "bias": "linear_bias", "weights": "weight"},
    "general_cosine": {"a": "a"},
    "gumbel_softmax": {"x": "logits"}, "select_copy": {"position": "index"}, "split_copy": {"x": "self"},
    "unravel_index": {"index": "indices"}, "segment_reduce": {"x": "data", "at": "indices"},
    "one_hot": {"index": "input"},
    **{f"max_unpool{n}d": {"index": "indices"} for n in (1, 2, 3)}, "split": {"x": "tensor"},
    "index_add": {"src": "source"}, "index_copy": {"src": "source"}, "masked_scatter": {"src": "source"},
    "put": {"src": "source"}, "index_reduce": {"src": "source"},
    **{
        name: {"A": "input"} for name in (
            "cholesky", "cholesky_ex", "cond", "eigh", "eigvalsh", "householder_product", "ldl_factor",
            "ldl_factor_ex", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "norm", "pinv",
            "solve_triangular", "tensorinv", "vector_norm",
        )
    },
    "lstsq": {"A": "input", "B": "b"}, "tensorsolve": {"A": "input", "B": "other"}, "vander": {"x": "x"},
    "vecdot": {"x": "x"}, "broadcast_to": {"shape": "size"}, "ormqr": {"tau": "input2", "b": "input3"},
    "orgqr": {"tau": "input2"},
    "mv": {"b": "vec"}, "dot": {"b": "tensor"}, "outer": {"b": "vec2"}, "ger": {"b": "vec2"},
    "tensordot": {"a": "a", "b": "b"}, "heaviside": {"b": "values"}, "lerp": {"b": "end"},
    "multi_head_attention_forward": {"src": "value"},
    "scaled_dot_product_attention": {"src": "value"}, "isin": {"x": "elements", "b": "test_elements"},
    "trapezoid": {"src": "y", "x": "x"}, "trapz": {"src": "y", "x": "x"},
    "cumulative_trapezoid": {"src": "y", "x": "x"},
    "float_power": {"b": "exponent"},
    "randint_like": {"first": "low", "last": "high"},
    "dynamic_slice": {"x": "operand"}, "dynamic_slice_in_dim": {"x": "operand", "index": "start_index"},
    "dynamic_index_in_dim": {"x": "operand"}, "dynamic_update_slice": {"x": "operand", "src": "update"},
    "dynamic_update_slice_in_dim": {"x": "operand", "src": "update", "index": "start_index"},
    "dynamic_update_index_in_dim": {"x": "operand", "src": "update"},
}  # fmt: skip
