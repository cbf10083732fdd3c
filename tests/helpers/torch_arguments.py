"""Random arguments that mean the same here and in PyTorch; see `tests.oracle.functions_against_torch`."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

import dynamic
from common.api.surface import CREATION
from tests.helpers.fuzz_arguments import Operands, is_older_reduction, shape, values

Rng = np.random.Generator
DTYPES = ["float32"] * 6 + ["float64"] * 2 + ["int64"] * 2 + ["bool", "uint8", "int32"]
#: Functions that mean indices or classes by these names.
INDICES = frozenset(["index", "indices"])
CLASSES = frozenset(["nll_loss", "cross_entropy"])
SIGNS = frozenset(["margin_ranking_loss", "hinge_embedding_loss", "soft_margin_loss"])
PROBABLE = frozenset(["bernoulli", "binomial", "binary_cross_entropy", "logit", "dropout", "multinomial", "poisson"])
_OTHER_NAMES = frozenset(["generator", "axis", "keepdims", "more", "out"])
#: Names of `*parameters` as keywords.
AS_LIST = frozenset(["shape", "dims", "order", "size", "sizes"])
FLAGS = frozenset(
    [
     "keepdim", "descending", "largest", "sorted", "right", "out_int32", "unbiased", "return_inverse",
     "return_counts", "replacement", "is_causal",
     "invert", "equal_nan", "log_target", "as_tuple", "accumulate", "stable", "requires_grad",
    ]
)  # fmt: skip
CHOICES: dict[str, list[Any]] = {
    "reduction": ["mean", "sum", "none", "none", "avg"],
    "mode": ["constant", "constant", "reflect", "replicate", "circular"],
    "indexing": ["ij", "xy"],
    "side": ["left", "right"],
    "approximate": ["none", "tanh"],
    "rounding_mode": [None, "floor", "trunc", "trunc", "round"],
    "training": [False],
    "label_smoothing": [0.0, 0.1, 0.5],
    "ignore_index": [-100, 0, 1],
    "eps": [1e-5, 1e-3, 0.1],
    "correction": [0, 1, 2, 5],
    "n": [0, 1, 2, 3, -1],
    "steps": [0, 1, 2, 5, 8],
    "k": [0, 1, 2, 3],
    "num_classes": [-1, 3, 8],
    "decimals": [0, 1, 2, -1],
    "delta": [0.5, 1.0, 2.0],
    "rtol": [1e-5, 0.1],
    "atol": [1e-8, 0.5],
    "step": [1, 2, 0.5, -1, 3],
    "base": [2, 10.0],
    "output_size": [None],
    "p": [2, 1, 0, 3, 0.5, math.inf, -math.inf, "fro"],
    "chunks": [1, 2, 3, 0, 7],
    "threshold": [20.0, 1.0, 0.1],
    "num_samples": [1, 2, 3],
    "num_groups": [1, 2, 3],
    "lambd": [0.5, 0.25, 0, -1.0],
    "q": [0.0, 0.25, 0.5, 1.0, 1.5],
    "interpolation": ["linear", "lower", "higher", "midpoint", "nearest"],
    "momentum": [0.1],
    "dropout_p": [0.0],
    "scale": [None, 0.5],
    "dx": [1, 0.5],
    "dims": [],
    "minlength": [0, 2, 10, -1],
    "bins": [1, 3, 10, 0],
    "reduce": ["sum", "prod", "mean", "amax", "amin", "median"],
    "swap": [False, True],
    "full": [False, True],
    "log_input": [True, False],
    "include_self": [True, False],
}


class Drawn:
    """A call.

    Attributes
    ----------
    method : whether the first argument's method is called.
    ordinary : no special values among the operands, so that gradients can be compared.
    """

    def __init__(self, name: str, args: list[Any], kwargs: dict[str, Any], method: bool, ordinary: bool) -> None:
        self.name, self.args, self.kwargs, self.method, self.ordinary = name, args, kwargs, method, ordinary

    def __str__(self) -> str:
        parts = [show(x) for x in self.args] + [f"{k}={show(x)}" for k, x in self.kwargs.items()]
        return f"{'.' * self.method}{self.name}({', '.join(parts)})"


def show(x: Any) -> str:
    """An argument on one line."""
    if isinstance(x, (list, tuple)) and any(isinstance(y, np.ndarray) for y in x):
        return f"[{', '.join(map(show, x))}]"
    if isinstance(x, np.dtype):
        return x.name
    if not isinstance(x, np.ndarray):
        return repr(x)
    return f"{x.dtype}{list(x.shape)}{np.array2string(x.ravel()[:6], separator=',', max_line_width=1000, precision=4)}"


class Arguments(Operands):
    """The arguments of one call."""

    def __init__(self, rng: Rng, name: str) -> None:
        super().__init__(rng)
        self.name = name
        self.base = self.start_shape()
        self.ordinary = bool(rng.random() < 0.6)
        self.first_dtype = self.pick(DTYPES)

    def pick(self, options: Any) -> Any:
        """One of several."""
        return options[int(self.rng.integers(len(options)))]

    def start_shape(self) -> tuple[int, ...]:
        """The first operand's shape: of two or three dimensions mostly for matrices."""
        wanted = {
            "mm": 2, "addmm": 2, "mv": 2, "bmm": 3, "baddbmm": 3, "trace": 2, "linear": 2, "dot": 1,
            "outer": 1, "addr": 2, "addmv": 1, "matrix_power": 2, "fliplr": 2, "bilinear": 2, "tril": 2,
            "triu": 2, "nll_loss": 2, "cross_entropy": 2, "cross": 2, "multi_dot": 2, "chain_matmul": 2,
        }.get(self.name)  # fmt: skip
        size = shape(self.rng)
        if wanted and self.rng.random() < 0.85:
            size = tuple(int(n) for n in self.rng.choice([0, 1, 2, 3, 3, 4], wanted))
        if self.name in ("matrix_power",) and len(size) > 1 and self.rng.random() < 0.8:
            size = (*size[:-1], size[-2])
        if self.name == "cross" and size:
            size = (*size[:-1], 3)
        return size

    def array(self, size: tuple[int, ...], dtype: str) -> np.ndarray:
        """Values: ordinary ones away from 0 and from each other, or any."""
        rng = self.rng
        if np.dtype(dtype).kind == "f" and self.name in PROBABLE:
            return np.asarray(rng.random(size), dtype)
        if np.dtype(dtype).kind == "f" and self.ordinary:
            return np.asarray(
                rng.permutation(np.arange(math.prod(size))).reshape(size) * 0.37 - 1.03 + rng.random() * 0.1, dtype
            )
        return values(rng, size, dtype)

    def operand(self, name: str) -> Any:
        """A tensor, or now and then a number in place of one that is not the first."""
        rng = self.rng
        if not self.made:
            x = self.array(self.base, self.first_dtype)
            self.made.append(x)
            return x
        if name in ("other", "exponent", "end", "min", "max") and rng.random() < 0.2:
            return self.pick([0, 1, 2, -1, 2.5, 0.5, True, -3])
        x0 = self.made[0]
        dtype = self.pick(DTYPES) if rng.random() < 0.2 else str(x0.dtype)
        size = self.related(name)
        if name in INDICES:
            most = max(1, min(self.base)) if self.base else 1
            return np.asarray(rng.integers(0, most, size), "int64")
        if name in ("mask", "condition"):
            return np.asarray(rng.random(size) < 0.5)
        if name == "target" and self.name in CLASSES and rng.random() < 0.85:
            classes = self.base[1] if len(self.base) > 1 else self.base[0] if self.base else 1
            size = (*self.base[:1], *self.base[2:]) if len(self.base) > 1 else ()
            return np.asarray(rng.integers(0, max(classes, 1), size), "int64")
        if name == "target" and self.name in SIGNS:
            return np.asarray(rng.choice([-1, 1], size), dtype)
        x = self.array(size, dtype)
        self.made.append(x)
        return x

    def related(self, name: str) -> tuple[int, ...]:
        """A shape that goes with the first operand's."""
        rng, b, f = self.rng, self.base, self.name
        n = int(rng.integers(0, 4))
        if rng.random() < 0.06:
            return shape(rng)
        if name in ("mat2", "vec", "vec2", "vec1", "mat1", "mat", "batch1", "batch2", "tensor") or f in (
            "matmul",
            "inner",
            "linear",
            "kron",
        ):
            return self.product(name, n)
        if name == "index" and f in ("index_select", "index_add", "index_copy", "index_fill", "index_reduce"):
            return (n,) if rng.random() < 0.9 else ()
        if name == "source" and f in ("index_add", "index_copy", "index_reduce"):
            return b
        if name == "weight" and f in CLASSES:
            return (b[1],) if len(b) > 1 else b
        if name in ("weight", "bias", "running_mean", "running_var") and f in ("batch_norm", "group_norm", "prelu"):
            return b[1:2]
        if name in ("weight", "bias") and f in ("layer_norm", "rms_norm"):
            return b[-1:]
        if f == "embedding":
            return (5, 3)
        if name == "boundaries":
            return (n,)
        if f in (
            "gather",
            "scatter",
            "scatter_add",
            "scatter_reduce",
            "take_along_dim",
            "cross",
            "dot",
            "cosine_similarity",
        ):
            return b if rng.random() < 0.7 else tuple(max(k - 1, 0) for k in b)
        return b if rng.random() < 0.6 else self.fitting()

    def product(self, name: str, n: int) -> tuple[int, ...]:
        """A shape whose product with the first operand's, or into it, exists."""
        b, f = self.base, self.name
        rows, columns = (b[-2], b[-1]) if len(b) > 1 else (1, b[-1] if b else 1)
        table: dict[str, tuple[int, ...]] = {
            "mat2": (columns, n),
            "vec": (columns,),
            "vec2": (n,),
            "tensor": b,
        }
        if f == "addmm":
            table = {"mat1": (rows, 3), "mat2": (3, columns)}
        if f == "addmv":
            table = {"mat": (columns, 2), "vec": (2,)}
        if f == "addr":
            table = {"vec1": (rows,), "vec2": (columns,)}
        if f == "baddbmm":
            table = {"batch1": (*b[:1], rows, 2), "batch2": (*b[:1], 2, columns)}
        if f == "bmm":
            table = {"mat2": (*b[:1], columns, n)}
        if f == "linear":
            table = {"weight": (4, columns), "bias": (4,)}
        if f == "inner":
            table = {"other": (n, columns)}
        if f == "matmul":
            table = {"other": self.pick([(columns,), (columns, n), (*b[:-2], columns, n), (2, columns, n)])}
        return table.get(name, b)

    def dim(self) -> int:
        """A dimension; rarely none of the operand's."""
        n = max(len(self.base), 1)
        return int(self.rng.integers(-n, n)) if self.rng.random() < 0.92 else self.pick([n, -n - 1, 7])

    def dims(self) -> tuple[int, ...]:
        """Several dimensions."""
        n = max(len(self.base), 1)
        some = self.rng.permutation(n)[: int(self.rng.integers(0, n + 1))]
        return tuple(int(d) - (n if self.rng.random() < 0.3 else 0) for d in some)

    def sizes(self, name: str) -> Any:
        """Sizes, or counts per dimension, as the function means them."""
        rng, b, f = self.rng, self.base, self.name
        if f in CREATION or f == "full":
            return shape(rng)
        if f in ("permute",):
            n = len(b)
            return tuple(int(d) - (n if rng.random() < 0.3 else 0) for d in rng.permutation(n))
        if f in ("flip", "rot90", "roll"):
            return self.dims()[:2] if f == "rot90" else self.dims()
        if f in ("reshape", "view"):
            total = math.prod(b)
            return self.pick([(total,), (-1,), (-1, 1), (1, total), b, b[::-1], (*b, 1), (2, -1), (-1, 0)])
        if f in ("expand", "broadcast_to"):
            return self.pick([b, (2, *b), tuple(-1 for _ in b), tuple(3 if n == 1 else n for n in b), (0, *b), b[1:]])
        if f == "unflatten":
            return self.pick([(-1, 1), (1, -1), (2, -1), (-1,), (1, 1)])
        return tuple(int(n) for n in rng.integers(0, 3, max(0, len(b) + int(rng.integers(-1, 2)))))

    def value(self, name: str) -> Any:
        """An argument for a parameter."""
        rng, f = self.rng, self.name
        if name == "dtype":
            if f.startswith("rand") or f == "rand":
                return np.dtype(
                    self.pick(
                        ["float32", "float64"] if "int" not in f and "perm" not in f else ["int64", "int32", "float32"]
                    )
                )
            return np.dtype(self.pick(DTYPES))
        if name in ("tensors", "indices") and (f != "take_along_dim"):
            if f == "index_put":
                return tuple(
                    np.asarray(rng.integers(0, max(n, 1), 3), "int64") for n in self.base[: int(rng.integers(1, 3))]
                )
            many = [self.operand("other") for _ in range(int(rng.integers(1, 4)))]
            return [x if isinstance(x, np.ndarray) else self.array(self.base, self.first_dtype) for x in many]
        if f == "tensordot" and name == "dims":
            return self.pick([0, 1, 2])
        if name == "pad":
            return tuple(int(n) for n in rng.integers(-1, 3, 2 * int(rng.integers(0, len(self.base) + 2))))
        if name == "normalized_shape":
            return self.base[-int(rng.integers(1, 3)) :]
        if name == "values" and f in ("index_put", "heaviside"):
            return self.array(() if rng.random() < 0.5 or f == "index_put" else self.base, str(self.made[0].dtype))
        if name == "repeats" and f == "repeat":
            return self.sizes(name)
        if name == "repeats":
            return self.pick([0, 1, 2, 3, np.array(2), -1])
        if name == "shifts":
            return self.pick([1, -2, 0, (1,), (1, 2), 5])
        if name in FLAGS:
            return bool(rng.integers(2))
        if name == "p" and f == "dropout":
            return self.pick([0.0, 0.5])
        if CHOICES.get(name):
            return self.pick(CHOICES[name])
        if name in AS_LIST or name == "dims":
            return self.sizes(name)
        if name in ("split_size_or_sections", "indices_or_sections"):
            return self.pick([1, 2, 3, (1, 1), (0, 1, 2), (1, -1), 0])
        if name in ("source", "destination") and f in ("movedim", "moveaxis"):
            return self.dim() if rng.random() < 0.6 else self.dims()
        if name == "dim" and f in MANY_DIMS and rng.random() < 0.4:
            return self.dims()
        if name == "axis0" or name == "axis1" or name.startswith("dim") or name in ("start_dim", "end_dim"):
            return self.dim()
        if (name in ("min", "max") and (rng.random() < 0.7 or f == "histc")) or (
            name
            in (
                "fill_value",
                "value",
                "alpha",
                "beta",
                "margin",
                "low",
                "high",
                "start",
                "end",
                "nan",
                "posinf",
                "neginf",
                "min_val",
                "max_val",
                "negative_slope",
            )
            and f not in ("lerp",)
        ):
            whole = self.pick([0, 1, 2, 5, -1, -2, 3])
            return (
                whole
                if f in ("narrow", "select", "slice_scatter", "select_scatter", "randint", "randint_like")
                or rng.random() < 0.5
                else self.pick([0.5, 1.5, -0.25, 2.0])
            )
        if name in ("diagonal", "offset", "length", "row", "col", "m"):
            return int(rng.integers(-2, 4)) if name in ("diagonal", "offset") else int(rng.integers(0, 4))
        if name == "equation":
            return self.pick(["ij,jk->ik", "i,i", "ij->ji", "...j,...j->...", "ii->i"])
        if name == "index" and f in ("select", "select_scatter"):
            return int(rng.integers(-2, 3))
        if name == "sorter":
            return None
        if name == "weight" and f == "lerp" and rng.random() < 0.4:
            return 0.3
        return self.operand(name)


MANY_DIMS = frozenset(
    [
     "sum", "mean", "amax", "amin", "all", "any", "std", "var", "std_mean", "var_mean", "logsumexp", "nansum",
     "nanmean", "count_nonzero", "norm", "squeeze",
    ]
)  # fmt: skip


def draw(rng: Rng, name: str, signature: inspect.Signature) -> Drawn:
    """A call of a function: some arguments by their names, all of them now and then; or as a method."""
    import torch

    made = Arguments(rng, name)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    named = rng.random() < 0.25
    methods = hasattr(torch.Tensor, name) and hasattr(dynamic.Tensor, name)
    functions = hasattr(torch, name) or hasattr(torch.nn.functional, name)
    method = methods and (not functions or rng.random() < 0.3)
    if name == "embedding":
        made.first_dtype = "int64"
    for p in signature.parameters.values():
        if p.name in _OTHER_NAMES or is_older_reduction(p) or (name, p.name) == ("permute", "dims"):
            continue
        optional = p.default is not p.empty and repr(p.default) != "..."
        named = named or p.name == "reduction"  # PyTorch has old arguments before it
        if optional and rng.random() < 0.5:
            named = True
            continue
        value = made.value(p.name)
        if p.kind is p.VAR_POSITIONAL and p.name == "tensors":
            args += list(value)
        elif p.kind is p.VAR_POSITIONAL and not named:
            args.append(value)
        elif (named and (args or not method)) or p.kind is p.KEYWORD_ONLY:
            kwargs[p.name] = value
        else:
            args.append(value)
    method = method and bool(args) and isinstance(args[0], np.ndarray)
    return Drawn(name, args, kwargs, method, made.ordinary)
