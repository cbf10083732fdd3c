"""The calls that `benchmarks.ops` times: each operator, with no library named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any, NamedTuple

import numpy as np

Operands = Callable[[np.random.Generator, int], list[np.ndarray]]


class Call(NamedTuple):
    """One operator.

    Attributes
    ----------
    f : ``f(tw, *tensors)``.
    operands : ``operands(rng, elements)``, arrays.
    differentiable : whether its backward is timed.
    random : whether each call gives other numbers.
    sums : of a product, how many terms one element of the result is the sum of; None for what moves more than it adds.
    """

    name: str
    f: Callable[..., Any]
    operands: Operands
    differentiable: bool = True
    random: bool = False
    sums: Callable[[Sequence[np.ndarray]], int] | None = None


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers from the normal distribution, float32."""
    return rng.standard_normal(shape).astype(np.float32)


def rows_of(n: int) -> tuple[int, int]:
    """A matrix of n elements with rows of about 100 to 1000."""
    columns = 1 << (isqrt(n).bit_length() - 1)
    return n // columns, columns


def flat(*kinds: str) -> Operands:
    """Vectors: (n)ormal, (p)ositive, inside (-1, 1): u, inside (0, 1): q, (a)bove 1, (b)ool, (i)nt."""

    def one(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
        if kind == "n":
            return normal(rng, n)
        if kind == "b":
            return rng.integers(0, 2, n).astype(np.bool_)
        if kind == "i":
            return rng.integers(1, 100, n)
        low, high = {"p": (0.1, 4.0), "u": (-0.95, 0.95), "a": (1.1, 4.0), "q": (0.02, 0.98)}[kind]
        return rng.uniform(low, high, n).astype(np.float32)

    return lambda rng, n: [one(rng, n, kind) for kind in kinds]


def matrix(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """One matrix of n numbers."""
    return [normal(rng, *rows_of(n))]


def _matrix_and_indices(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    rows, columns = rows_of(n)
    return [normal(rng, rows, columns), rng.integers(0, columns, (rows, columns))]


def _source_and_indices(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    rows, columns = rows_of(n)
    return [normal(rng, rows, columns), rng.integers(0, rows, rows), normal(rng, rows, columns)]


def _classes(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    rows, columns = rows_of(n)
    return [normal(rng, rows, columns), rng.integers(0, columns, rows)]


def _batch_norm(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    rows, columns = rows_of(n)
    return [normal(rng, rows, columns), normal(rng, columns), normal(rng, columns)]


def _images(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    side = max(4, isqrt(n // 16))
    return [normal(rng, 2, 8, side, side)]


def squares(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Two square matrices; products grow faster than their elements, so these are smaller."""
    side = max(4, isqrt(n) // 2)
    return [normal(rng, side, side), normal(rng, side, side)]


def _batches(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    return [normal(rng, max(1, n // 256), 16, 16), normal(rng, max(1, n // 256), 16, 16)]


def _heads(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    length = max(4, isqrt(n // 64))
    return [normal(rng, 2, 4, length, 16) for _ in range(3)]


def _unary(kind: str, *names: str, differentiable: bool = True) -> list[Call]:
    return [Call(name, named(name), flat(kind), differentiable) for name in names]


def named(name: str) -> Callable[..., Any]:
    """A public function."""
    return lambda tw, *x: getattr(tw, name)(*x)


def inner(arrays: Sequence[np.ndarray]) -> int:
    """The terms of one element of a product of matrices."""
    return arrays[0].shape[-1]


def functional(name: str, **options: Any) -> Callable[..., Any]:
    """A function of `nn.functional` with options."""
    return lambda tw, *x: getattr(tw.nn.functional, name)(*x, **options)


CALLS = [
    *_unary("n", "abs", "neg", "exp", "expm1", "sin", "cos", "tan", "atan", "asinh", "sinh", "cosh", "tanh", "sigmoid",
            "relu", "erf", "erfc", "square", "sinc", "exp2"),
    *_unary("p", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "lgamma", "digamma"),
    *_unary("u", "asin", "acos", "atanh", "erfinv"),
    *_unary("a", "acosh"),
    *_unary("q", "logit"),
    *_unary("n", "floor", "ceil", "round", "trunc", "frac", "sign", "isnan", "isfinite", differentiable=False),
    *(Call(name, named(name), flat("n", "n")) for name in ("add", "sub", "mul", "maximum", "minimum", "atan2")),
    *(Call(name, named(name), flat("n", "p")) for name in ("div", "fmod", "remainder", "hypot", "copysign")),
    *(Call(name, named(name), flat("n", "n"), False) for name in ("eq", "lt", "floor_divide")),
    *(Call(name, named(name), flat("b", "b"), False) for name in ("logical_and", "logical_xor")),
    Call("bitwise_and", named("bitwise_and"), flat("i", "i"), False),
    Call("pow(x, y)", named("pow"), flat("p", "n")),
    Call("x ** 2", lambda tw, x: x**2, flat("n")),
    Call("x ** 3", lambda tw, x: x**3, flat("n")),
    Call("x ** 0.5", lambda tw, x: x**0.5, flat("p")),
    Call("x ** -1", lambda tw, x: x**-1, flat("p")),
    Call("x ** -0.5", lambda tw, x: x**-0.5, flat("p")),
    Call("x ** -2", lambda tw, x: x**-2, flat("p")),
    Call("x ** 4", lambda tw, x: x**4, flat("n")),
    Call("x ** 1.5", lambda tw, x: x**1.5, flat("p")),
    Call("x + 1", lambda tw, x: x + 1, flat("n")),
    Call("2 * x", lambda tw, x: 2 * x, flat("n")),
    Call("1 / x", lambda tw, x: 1 / x, flat("p")),
    Call("x > 0", lambda tw, x: x > 0, flat("n"), False),
    Call("x % 3", lambda tw, x: x % 3, flat("n")),
    Call("clamp", lambda tw, x: x.clamp(-1, 1), flat("n")),
    Call("clamp min", lambda tw, x: x.clamp(min=0.5), flat("n")),
    Call("lerp", lambda tw, x, y: tw.lerp(x, y, 0.3), flat("n", "n")),
    Call("addcmul", lambda tw, x, y, z: tw.addcmul(x, y, z, value=0.5), flat("n", "n", "n")),
    Call("addcdiv", lambda tw, x, y, z: tw.addcdiv(x, y, z, value=0.5), flat("n", "n", "p")),
    Call("where", lambda tw, c, x, y: tw.where(c, x, y), flat("b", "n", "n")),
    Call("masked_fill", lambda tw, x, c: x.masked_fill(c, -1.0), flat("n", "b")),
    Call("nan_to_num", named("nan_to_num"), flat("n")),
    *(Call(name, functional(name), flat("n")) for name in
      ("elu", "celu", "selu", "gelu", "silu", "mish", "softplus", "softsign", "leaky_relu", "hardswish", "hardsigmoid",
       "hardtanh", "relu6", "logsigmoid", "tanhshrink", "hardshrink", "softshrink")),
    *(Call(name, functional(name), flat("n", "n"))
      for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")),
    Call("binary_cross_entropy", lambda tw, x, y: tw.nn.functional.binary_cross_entropy(x, y.detach()),
         flat("q", "q")),
    Call("bce_with_logits", lambda tw, x, y: tw.nn.functional.binary_cross_entropy_with_logits(x, y.detach()),
         flat("n", "q")),
    Call("kl_div", lambda tw, x, y: tw.nn.functional.kl_div(x, y.detach(), reduction="sum"), flat("n", "q")),
    Call("cross_entropy", functional("cross_entropy"), _classes),
    Call("nll_loss", functional("nll_loss"), _classes),
    Call("cosine_similarity", functional("cosine_similarity", dim=1), lambda r, n: matrix(r, n) + matrix(r, n)),
    *(Call(f"{name}()", named(name), flat("n"))
      for name in ("sum", "mean", "prod", "var", "std", "norm", "max", "min")),
    *(Call(f"{name}(1)", lambda tw, x, name=name: getattr(tw, name)(x, 1), matrix)
      for name in ("sum", "mean", "max", "min", "amax", "var", "std", "logsumexp", "cumsum", "cumprod", "median")),
    *(Call(f"{name}(0)", lambda tw, x, name=name: getattr(tw, name)(x, 0), matrix)
      for name in ("sum", "mean", "max", "amax", "cumsum", "var")),
    *(Call(name, lambda tw, x, name=name: getattr(tw, name)(x, 1), matrix, False)
      for name in ("argmax", "argmin", "all", "any")),
    Call("argsort", lambda tw, x: tw.argsort(x, dim=1, stable=True), matrix, False),
    Call("sort", lambda tw, x: tw.sort(x, 1), matrix),
    Call("topk", lambda tw, x: tw.topk(x, 5, 1), matrix),
    Call("kthvalue", lambda tw, x: tw.kthvalue(x, 5, 1), matrix),
    Call("softmax", lambda tw, x: tw.softmax(x, 1), matrix),
    Call("log_softmax", lambda tw, x: tw.log_softmax(x, 1), matrix),
    Call("layer_norm", lambda tw, x, w, b: tw.nn.functional.layer_norm(x, x.shape[1:], w, b), _batch_norm),
    Call("batch_norm", lambda tw, x, w, b: tw.nn.functional.batch_norm(x, None, None, w, b, training=True),
         _batch_norm),
    Call("normalize", functional("normalize"), matrix),
    Call("gather", lambda tw, x, i: tw.gather(x, 1, i), _matrix_and_indices),
    Call("take", lambda tw, x, i: tw.take(x, i), _matrix_and_indices),
    Call("scatter", lambda tw, x, i: x.scatter(1, i, 1.0), _matrix_and_indices),
    Call("scatter_add", lambda tw, x, i: x.scatter_add(1, i, x), _matrix_and_indices),
    Call("index_select", lambda tw, x, i, y: tw.index_select(x, 0, i), _source_and_indices, False),
    Call("index_add", lambda tw, x, i, y: x.index_add(0, i, y), _source_and_indices),
    Call("x[i]", lambda tw, x, i, y: x[i] + y * 0, _source_and_indices),
    Call("cat", lambda tw, x, y: tw.cat([x, y]), flat("n", "n")),
    Call("cat(1)", lambda tw, x, y: tw.cat([x, y], 1), lambda r, n: matrix(r, n) + matrix(r, n)),
    Call("stack", lambda tw, x, y: tw.stack([x, y]), flat("n", "n")),
    Call("flip", lambda tw, x: x.flip(1), matrix),
    Call("roll", lambda tw, x: x.roll(3, 1), matrix),
    Call("pad", lambda tw, x: tw.nn.functional.pad(x, (1, 2)), matrix),
    Call("repeat", lambda tw, x: x.repeat(2, 1), matrix),
    Call("tril", named("tril"), matrix),
    Call("x.T.contiguous()", lambda tw, x: x.T.contiguous(), matrix),
    Call("clone", lambda tw, x: x.clone(), flat("n")),
    Call("x.double()", lambda tw, x: x.double(), flat("n"), False),
    Call("zeros", lambda tw, x: tw.zeros(x.shape), flat("n"), False),
    Call("zeros_like", lambda tw, x: tw.zeros_like(x), flat("n"), False),
    Call("arange", lambda tw, x: tw.arange(x.shape[0]), flat("n"), False),
    Call("randn", lambda tw, x: tw.randn(x.shape), flat("n"), False, True),
    Call("rand", lambda tw, x: tw.rand(x.shape), flat("n"), False, True),
    Call("dot", named("dot"), flat("n", "n")),
    Call("mm", named("mm"), squares, sums=inner),
    Call("mv", lambda tw, x, y: tw.mv(x, y[0]), squares),
    Call("bmm", named("bmm"), _batches, sums=inner),
    Call("einsum", lambda tw, x, y: tw.einsum("ij,jk->ik", x, y), squares, sums=inner),
    Call("linear", lambda tw, x, y: tw.nn.functional.linear(x, y), squares, sums=inner),
    Call("attention", functional("scaled_dot_product_attention"), _heads),
    Call("max_pool2d", functional("max_pool2d", kernel_size=2), _images),
    Call("avg_pool2d", functional("avg_pool2d", kernel_size=2), _images),
]  # fmt: skip
