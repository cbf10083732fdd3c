"""More calls that `benchmarks.ops` times: indices, layers, linear algebra and special functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import numpy as np

from benchmarks.ops_calls import Call, Operands, flat, functional, inner, matrix, named, normal, rows_of, squares

Rng = np.random.Generator


def _linalg(name: str, *arguments: Any) -> Callable[..., Any]:
    return lambda tw, *x: getattr(tw.linalg, name)(*x, *arguments)


def _special(name: str) -> Callable[..., Any]:
    return lambda tw, *x: getattr(tw.special, name)(*x)


def _indices(rng: Rng, n: int) -> list[np.ndarray]:
    """A matrix, and indices of half of its rows without repetition."""
    rows, columns = rows_of(n)
    return [normal(rng, rows, columns), rng.permutation(rows)[: rows // 2], normal(rng, rows // 2, columns)]


def _mask(rng: Rng, n: int) -> list[np.ndarray]:
    return [normal(rng, n), rng.integers(0, 2, n).astype(np.bool_)]


def _ints(low: int, high: int, count: int = 1) -> Operands:
    return lambda rng, n: [rng.integers(low, high, n) for _ in range(count)]


def _sorted(rng: Rng, n: int) -> list[np.ndarray]:
    return [np.sort(normal(rng, 100)), normal(rng, n)]


def _image(channels: int) -> Operands:
    def made(rng: Rng, n: int) -> list[np.ndarray]:
        side = max(4, isqrt(n // (2 * channels)))
        return [normal(rng, 2, channels, side, side)]

    return made


def _line(channels: int) -> Operands:
    return lambda rng, n: [normal(rng, 2, channels, max(8, n // (2 * channels)))]


def _convolved(image: Operands, *weights: tuple[int, ...]) -> Operands:
    return lambda rng, n: [*image(rng, n), *(normal(rng, *shape) for shape in weights)]


def _taps(arrays: Sequence[np.ndarray]) -> int:
    return arrays[1][0].size


def _definite(rng: Rng, n: int) -> list[np.ndarray]:
    """A batch of positive definite matrices, and right-hand sides."""
    x = normal(rng, max(1, n // 256), 16, 16)
    return [x @ x.swapaxes(1, 2) + 16 * np.eye(16, dtype=np.float32), normal(rng, max(1, n // 256), 16, 4)]


def _tiny(rng: Rng, n: int) -> list[np.ndarray]:
    """A batch of positive definite matrices of three rows, and right-hand sides."""
    x = normal(rng, max(1, n // 9), 3, 3)
    return [x @ x.swapaxes(1, 2) + np.diag(np.arange(1, 4, dtype=np.float32)), normal(rng, max(1, n // 9), 3, 1)]


def _first(operands: Operands, count: int = 1) -> Operands:
    return lambda rng, n: operands(rng, n)[:count]


def _vectors(rng: Rng, n: int) -> list[np.ndarray]:
    return [normal(rng, isqrt(n)), normal(rng, isqrt(n))]


def _points(rng: Rng, n: int) -> list[np.ndarray]:
    return [normal(rng, isqrt(n), 16), normal(rng, isqrt(n), 16)]


def _table(rng: Rng, n: int) -> list[np.ndarray]:
    return [rng.integers(0, 64, max(1, n // 64)), normal(rng, 64, 64)]


def _targets(rng: Rng, n: int) -> list[np.ndarray]:
    return [normal(rng, n), np.where(rng.integers(0, 2, n) > 0, 1, -1).astype(np.float32)]


def _pair(rng: Rng, n: int) -> list[np.ndarray]:
    return matrix(rng, n) + matrix(rng, n)


def _small(rng: Rng, n: int) -> list[np.ndarray]:
    return [normal(rng, isqrt(n), isqrt(n))]


FUNCTIONS = [
    *(Call(name, named(name), flat("n", "n"), False) for name in ("ne", "ge", "le", "gt", "isclose", "nextafter")),
    *(Call(name, named(name), flat("b", "b"), False) for name in ("logical_or",)),
    *(Call(name, named(name), flat("i", "i"), False) for name in ("bitwise_or", "bitwise_xor", "gcd", "lcm")),
    Call("bitwise_not", named("bitwise_not"), _ints(0, 100), False),
    Call("logical_not", named("logical_not"), flat("b"), False),
    Call("int add", named("add"), _ints(0, 100, 2), False),
    Call("int // 7", lambda tw, x: x // 7, _ints(0, 100), False),
    Call("int sum", named("sum"), _ints(0, 100), False),
    Call("int to float", lambda tw, x: x.float(), _ints(0, 100), False),
    Call("float to int", lambda tw, x: x.long(), flat("n"), False),
    *(Call(name, named(name), flat("n"), False) for name in ("isinf", "isposinf", "signbit", "sgn", "positive")),
    *(Call(name, named(name), flat("n", "n")) for name in
      ("fmax", "fmin", "logaddexp", "logaddexp2", "dist", "vdot", "inner", "rsub")),
    *(Call(name, named(name), flat("n")) for name in
      ("angle", "deg2rad", "rad2deg", "nansum", "nanmean", "ravel")),
    Call("xlogy", named("xlogy"), flat("p", "p")),
    Call("ldexp", named("ldexp"), flat("n", "n")),
    Call("heaviside", named("heaviside"), flat("n", "n"), False),
    Call("float_power", lambda tw, x: tw.float_power(x, 2.0), flat("p"), False),
    Call("mvlgamma", lambda tw, x: tw.mvlgamma(x, 2), flat("a")),
    Call("polygamma", lambda tw, x: tw.polygamma(1, x), flat("p")),
    *(Call(f"special.{name}", _special(name), flat("n")) for name in ("i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr",
                                                                     "erfcx")),
    *(Call(f"special.{name}", _special(name), flat("p")) for name in ("entr",)),
    *(Call(f"special.{name}", _special(name), flat("q")) for name in ("ndtri",)),
    *(Call(f"special.{name}", _special(name), flat("p", "p"), False) for name in ("gammainc", "zeta")),
    Call("special.xlog1py", _special("xlog1py"), flat("n", "p")),
    *(Call(f"special.{name}", _special(name), flat("p"), False) for name in ("bessel_j0", "bessel_y1")),
    # copies and layouts
    Call("add a row", lambda tw, x, w, b: x + w, lambda r, n: [*matrix(r, n), *(normal(r, rows_of(n)[1]),) * 2]),
    Call("mul a column", lambda tw, x, w: x * w, lambda r, n: [*matrix(r, n), normal(r, rows_of(n)[0], 1)]),
    Call("add transposed", lambda tw, x: x + x.t().contiguous().t(), matrix),
    Call("x[1:-1] + x[2:]", lambda tw, x: x[1:-1] + x[2:], flat("n")),
    Call("x[:, ::2] * 2", lambda tw, x: x[:, ::2] * 2, matrix),
    Call("reshape", lambda tw, x: x.reshape(-1), matrix),
    Call("transpose", lambda tw, x: x.transpose(0, 1), matrix),
    Call("permute copy", lambda tw, x: x.permute(0, 2, 3, 1).contiguous(), _image(8)),
    Call("unsqueeze", lambda tw, x: x.unsqueeze(0), matrix),
    Call("squeeze", lambda tw, x: x.squeeze(), matrix),
    Call("expand + 0", lambda tw, x: x.expand(8, -1) + 0, lambda r, n: [normal(r, n // 8)]),
    Call("x[0]", lambda tw, x: x[0], matrix),
    Call("x[:, 1:]", lambda tw, x: x[:, 1:], matrix),
    Call("narrow", lambda tw, x: x.narrow(1, 1, 3), matrix),
    Call("chunk", lambda tw, x: tw.chunk(x, 2), matrix),
    Call("split", lambda tw, x: tw.split(x, 3), matrix),
    Call("unbind", lambda tw, x: tw.unbind(x, 1), lambda r, n: [normal(r, n // 8, 8)]),
    Call("diagonal", lambda tw, x: tw.diagonal(x), _small),
    Call("diag", named("diag"), _small),
    Call("diag_embed", named("diag_embed"), lambda r, n: [normal(r, isqrt(n))]),
    Call("trace", named("trace"), _small),
    Call("triu", named("triu"), matrix),
    Call("rot90", named("rot90"), matrix),
    Call("fliplr", named("fliplr"), matrix),
    Call("roll flat", lambda tw, x: tw.roll(x, 7), matrix),
    Call("tile", lambda tw, x: tw.tile(x, (2, 1)), matrix),
    Call("repeat_interleave", lambda tw, x: tw.repeat_interleave(x, 2, 1), matrix),
    Call("hstack", lambda tw, x, y: tw.hstack([x, y]), _pair),
    Call("vstack", lambda tw, x, y: tw.vstack([x, y]), _pair),
    Call("stack(1)", lambda tw, x, y: tw.stack([x, y], 1), _pair),
    Call("meshgrid", lambda tw, x, y: tw.meshgrid(x, y, indexing="ij"), _vectors),
    Call("outer", named("outer"), _vectors),
    Call("kron", named("kron"), lambda r, n: [normal(r, 4, 4), normal(r, max(1, n // 64), 4)]),
    Call("unfold", lambda tw, x: x.unfold(1, 4, 4) * 2, matrix),
    Call("ones_like", named("ones_like"), flat("n"), False),
    Call("full", lambda tw, x: tw.full(x.shape, 2.5), flat("n"), False),
    Call("empty_like", named("empty_like"), flat("n"), False, True),
    Call("eye", lambda tw, x: tw.eye(x.shape[0]), _small, False),
    Call("linspace", lambda tw, x: tw.linspace(0, 1, x.shape[0]), flat("n"), False),
    Call("randint", lambda tw, x: tw.randint(10, x.shape), flat("n"), False, True),
    Call("bernoulli", lambda tw, x: tw.bernoulli(x), flat("q"), False, True),
    Call("multinomial", lambda tw, x: tw.multinomial(x, 8, replacement=True), flat("p"), False, True),
    Call("randperm", lambda tw, x: tw.randperm(x.shape[0]), flat("n"), False, True),
    Call("dropout", functional("dropout", p=0.3), flat("n"), True, True),
    # in place
    Call("add_", lambda tw, x, y: x.add_(y), flat("n", "n"), False, True),
    Call("mul_ number", lambda tw, x: x.mul_(1.0), flat("n"), False, True),
    Call("zero_", lambda tw, x: x.zero_(), flat("n"), False),
    Call("fill_", lambda tw, x: x.fill_(1.5), flat("n"), False),
    Call("copy_", lambda tw, x, y: x.copy_(y), flat("n", "n"), False),
    Call("clamp_", lambda tw, x: x.clamp_(-1, 1), flat("n"), False),
    Call("addcmul_", lambda tw, x, y: x.addcmul_(y, y, value=1e-9), flat("n", "n"), False, True),
    Call("lerp_", lambda tw, x, y: x.lerp_(y, 0.1), flat("n", "n"), False, True),
    Call("x[1:] = 0", lambda tw, x: (x.__setitem__(slice(1, None), 0.0), x)[1], flat("n"), False),
    # indices
    Call("index_copy", lambda tw, x, i, y: x.index_copy(0, i, y), _indices),
    Call("index_fill", lambda tw, x, i, y: x.index_fill(0, i, 1.0), _indices),
    Call("index_put", lambda tw, x, i, y: x.index_put((i,), y), _indices),
    Call("x[i, j]", lambda tw, x, i, y: x[i, i % 8], _indices),
    Call("take_along_dim", lambda tw, x, i: tw.take_along_dim(x, i, 1), lambda r, n: [
        *matrix(r, n), r.integers(0, rows_of(n)[1], rows_of(n))]),
    Call("scatter_reduce", lambda tw, x, i: x.scatter_reduce(1, i, x, "amax"), lambda r, n: [
        *matrix(r, n), r.integers(0, rows_of(n)[1], rows_of(n))], False),
    Call("masked_select", named("masked_select"), _mask),
    Call("x[mask]", lambda tw, x, m: x[m], _mask),
    Call("masked_scatter", lambda tw, x, m: x.masked_scatter(m, x), _mask, False),
    Call("nonzero", named("nonzero"), flat("b"), False),
    Call("count_nonzero", named("count_nonzero"), flat("n"), False),
    Call("searchsorted", named("searchsorted"), _sorted, False),
    Call("bucketize", lambda tw, s, x: tw.bucketize(x, s), _sorted, False),
    Call("bincount", named("bincount"), _ints(0, 100), False),
    Call("histc", lambda tw, x: tw.histc(x, 20, -3, 3), flat("n"), False),
    Call("unique", named("unique"), _ints(0, 100), False),
    Call("unique_consecutive", named("unique_consecutive"), _ints(0, 3), False),
    Call("isin", named("isin"), lambda r, n: [r.integers(0, 100, n), r.integers(0, 100, 10)], False),
    Call("embedding", functional("embedding"), _table),
    Call("one_hot", lambda tw, x: tw.nn.functional.one_hot(x, 16), lambda r, n: [r.integers(0, 16, n // 16)], False),
    # reductions
    *(Call(f"{name}(1)", lambda tw, x, name=name: getattr(tw, name)(x, 1), matrix)
      for name in ("amin", "prod", "nansum", "logcumsumexp", "nanmedian")),
    *(Call(f"{name}(1)", lambda tw, x, name=name: getattr(tw, name)(x, 1), matrix, False)
      for name in ("cummax", "cummin", "mode", "count_nonzero")),
    *(Call(f"{name}(0)", lambda tw, x, name=name: getattr(tw, name)(x, 0), matrix)
      for name in ("std", "prod", "min", "logsumexp", "softmax")),
    *(Call(f"{name}(0)", lambda tw, x, name=name: getattr(tw, name)(x, 0), matrix, False)
      for name in ("argmax", "all", "sort")),
    Call("norm of rows", lambda tw, x: tw.norm(x, dim=1), matrix),
    Call("norm of columns", lambda tw, x: tw.norm(x, dim=0), matrix),
    Call("argmax()", named("argmax"), flat("n"), False),
    Call("all()", named("all"), flat("b"), False),
    Call("sort flat", named("sort"), flat("n"), False),
    Call("median()", named("median"), flat("n"), False),
    Call("quantile", lambda tw, x: tw.quantile(x, 0.3, 1), matrix),
    Call("aminmax", lambda tw, x: tw.aminmax(x), flat("n")),
    Call("var_mean", lambda tw, x: tw.var_mean(x, 1), matrix),
    Call("diff", lambda tw, x: tw.diff(x), flat("n")),
    Call("trapezoid", lambda tw, x: tw.trapezoid(x), matrix),
    Call("allclose", lambda tw, x: tw.tensor(tw.allclose(x, x)), flat("n"), False),
    Call("equal", lambda tw, x: tw.tensor(tw.equal(x, x)), flat("n"), False),
    Call("renorm", lambda tw, x: tw.renorm(x, 2, 0, 1.0), matrix),
    Call("cov", named("cov"), lambda r, n: [normal(r, 16, n // 16)]),
    # rows of a few elements, of which one operand repeats
    Call("points by weights", lambda tw, x, y: x * y, lambda r, n: [normal(r, n // 3, 3), normal(r, n // 3, 1)]),
    Call("points and a row", lambda tw, x, y: x + y, lambda r, n: [normal(r, n // 3, 3), normal(r, 3)]),
    Call("logits and a row", lambda tw, x, y: x + y, lambda r, n: [normal(r, n // 10, 10), normal(r, 10)]),
    Call("differences of pairs", lambda tw, x: x[:, None] - x, lambda r, n: [normal(r, isqrt(n // 3), 3)]),
    # products
    Call("addmm", lambda tw, x, y: tw.addmm(x, x, y), squares, sums=inner),
    Call("baddbmm", lambda tw, x, y: tw.baddbmm(x, x, y), lambda r, n: [
        normal(r, max(1, n // 64), 8, 8), normal(r, max(1, n // 64), 8, 8)]),
    Call("bmm 3", named("bmm"), lambda r, n: [normal(r, max(1, n // 9), 3, 3), normal(r, max(1, n // 9), 3, 3)]),
    Call("bmm 8", named("bmm"), lambda r, n: [normal(r, max(1, n // 64), 8, 8), normal(r, max(1, n // 64), 8, 8)],
         sums=inner),
    Call("x.T @ y", lambda tw, x, y: x.t() @ y, squares, sums=inner),
    Call("x @ y.T", lambda tw, x, y: x @ y.t(), squares, sums=inner),
    Call("matmul of heads", named("matmul"), lambda r, n: [
        normal(r, 2, 4, max(1, isqrt(n // 8)), 16), normal(r, 2, 4, 16, max(1, isqrt(n // 8)))]),
    Call("linear + bias", functional("linear"), lambda r, n: [*squares(r, n), normal(r, max(4, isqrt(n) // 2))],
         sums=inner),
    Call("tensordot", lambda tw, x, y: tw.tensordot(x, y, 1), squares, sums=inner),
    Call("einsum bij", lambda tw, x, y: tw.einsum("bij,bjk->bik", x, y), lambda r, n: [
        normal(r, max(1, n // 256), 16, 16), normal(r, max(1, n // 256), 16, 16)]),
    Call("addr", lambda tw, x, y: tw.addr(tw.outer(x, y), x, y), _vectors),
    Call("cdist", named("cdist"), _points),
    Call("pairwise_distance", functional("pairwise_distance"), _pair),
    Call("cross", lambda tw, x, y: tw.cross(x, y, dim=1), lambda r, n: [normal(r, n // 3, 3), normal(r, n // 3, 3)]),
    Call("matrix_power", lambda tw, x: tw.matrix_power(x, 3), _first(squares)),
    # linear algebra
    *(Call(f"linalg.{name}", _linalg(name), _first(_definite)) for name in ("cholesky", "inv", "det")),
    Call("linalg.slogdet", lambda tw, x: tw.linalg.slogdet(x)[1], _first(_definite)),
    Call("linalg.solve", _linalg("solve"), _definite),
    *(Call(f"linalg.{name} 3", _linalg(name), _first(_tiny)) for name in ("cholesky", "inv", "det")),
    Call("linalg.solve 3", _linalg("solve"), _tiny),
    Call("linalg.lu_factor 3", lambda tw, x: tw.linalg.lu_factor(x)[0], _first(_tiny), False),
    *(Call(f"linalg.eigh{n}", lambda tw, x: tw.linalg.eigh(x)[0], _first(of), False)
      for n, of in (("", _definite), (" 3", _tiny))),
    Call("linalg.eigvalsh", _linalg("eigvalsh"), _first(_definite), False),
    Call("linalg.qr", _linalg("qr"), _first(_definite), False),
    Call("linalg.svdvals", _linalg("svdvals"), _first(_definite), False),
    Call("linalg.matrix_exp", lambda tw, x: tw.linalg.matrix_exp(x * 0.01), _first(_definite), False),
    Call("linalg.vector_norm", _linalg("vector_norm"), flat("n")),
    Call("linalg.matrix_norm", _linalg("matrix_norm"), matrix),
    Call("linalg.vecdot", _linalg("vecdot"), _pair),
    # layers
    Call("conv1d", functional("conv1d", padding=1), _convolved(_line(8), (8, 8, 3)), sums=_taps),
    Call("conv2d", functional("conv2d", padding=1), _convolved(_image(8), (8, 8, 3, 3)), sums=_taps),
    Call("conv2d 1x1", functional("conv2d"), _convolved(_image(8), (16, 8, 1, 1)), sums=_taps),
    Call("conv2d depthwise", functional("conv2d", padding=1, groups=8), _convolved(_image(8), (8, 1, 3, 3))),
    Call("conv_transpose2d", functional("conv_transpose2d", stride=2), _convolved(_image(8), (8, 8, 2, 2))),
    Call("max_pool1d", functional("max_pool1d", kernel_size=2), _line(8)),
    Call("avg_pool1d", functional("avg_pool1d", kernel_size=2), _line(8)),
    Call("max_pool2d 3", functional("max_pool2d", kernel_size=3, stride=2, padding=1), _image(8)),
    Call("adaptive_avg_pool2d", functional("adaptive_avg_pool2d", output_size=1), _image(8)),
    Call("interpolate", functional("interpolate", scale_factor=2), _image(8)),
    Call("bilinear", functional("interpolate", scale_factor=2, mode="bilinear"), _image(8)),
    Call("pixel_shuffle", functional("pixel_shuffle", upscale_factor=2), _image(8)),
    Call("pad reflect", functional("pad", pad=(1, 1, 1, 1), mode="reflect"), _image(8)),
    Call("im2col", functional("unfold", kernel_size=3), _image(8), ),
    Call("group_norm", lambda tw, x: tw.nn.functional.group_norm(x, 2), _image(8)),
    Call("instance_norm", functional("instance_norm"), _image(8)),
    Call("batch_norm images", lambda tw, x: tw.nn.functional.batch_norm(x, None, None, training=True), _image(8)),
    Call("rms_norm", lambda tw, x: tw.nn.functional.rms_norm(x, x.shape[1:]), matrix),
    Call("local_response_norm", functional("local_response_norm", size=3), _image(8)),
    Call("glu", functional("glu"), matrix),
    Call("prelu", functional("prelu"), lambda r, n: [*matrix(r, n), normal(r, 1)]),
    Call("threshold", functional("threshold", threshold=0.1, value=2.0), flat("n")),
    Call("softmin", functional("softmin", dim=1), matrix),
    Call("causal attention", functional("scaled_dot_product_attention", is_causal=True), lambda r, n: [
        normal(r, 2, 4, max(4, isqrt(n // 64)), 16) for _ in range(3)]),
    # losses
    Call("poisson_nll_loss", functional("poisson_nll_loss"), flat("n", "p")),
    Call("gaussian_nll_loss", functional("gaussian_nll_loss"), flat("n", "n", "p")),
    Call("soft_margin_loss", lambda tw, x, y: tw.nn.functional.soft_margin_loss(x, y.detach()), _targets),
    Call("hinge_embedding_loss", lambda tw, x, y: tw.nn.functional.hinge_embedding_loss(x, y.detach()), _targets),
    Call("margin_ranking_loss", lambda tw, x, y: tw.nn.functional.margin_ranking_loss(x, x * 0.5, y.detach()),
         _targets),
    Call("triplet_margin_loss", lambda tw, x, y: tw.nn.functional.triplet_margin_loss(x, y, x * 2), _pair),
    Call("cosine_embedding_loss", lambda tw, x, y: tw.nn.functional.cosine_embedding_loss(
        x, y, tw.ones(x.shape[0])), _pair),
    Call("cross_entropy smooth", functional("cross_entropy", label_smoothing=0.1), lambda r, n: [
        *matrix(r, n), r.integers(0, rows_of(n)[1], rows_of(n)[0])]),
    Call("multi_margin_loss", functional("multi_margin_loss"), lambda r, n: [
        *matrix(r, n), r.integers(0, rows_of(n)[1], rows_of(n)[0])]),
]  # fmt: skip
