"""Calls of functions that PyTorch's database of operators has beside those of the themes."""

from __future__ import annotations

import numpy as np

import common.ops.functional as F
from common.ops.create import signal_windows as windows
from common.ops.reduce import masked
from common.ops.shape import spectra
from tests.helpers.cases import PROGRAMS, Case, Index, P, T, Tied, Whole, X, case

for _name in ("angle", "sgn", "isposinf", "isneginf", "isreal"):
    case(_name, getattr(F, _name), X("n", 3), differentiable=False)
for _name in ("conj", "conj_physical", "positive", "real", "resolve_conj", "resolve_neg"):
    case(_name, lambda x, name=_name: getattr(F, name)(x) * 2, X("n", 3))
for _name in ("is_conj", "is_neg"):
    case(_name, lambda x, name=_name: x * (1 + getattr(F, name)(x)), X("n", 3))

case("adjoint", lambda x: F.adjoint(x) * 2, X(2, "n", 3))
case("alias_copy", F.alias_copy, X("n", 3))
case("detach", F.detach, X("n", 3), differentiable=False)
case("detach_copy", F.detach_copy, X("n", 3), differentiable=False)
case("diagonal_copy", lambda x: F.diagonal_copy(x, 1), X("n", 4))
case("expand_copy", lambda x: F.expand_copy(x, (2, -1, 3)), X("n", 1))
case("narrow_copy", lambda x: F.narrow_copy(x, 1, 1, 2), X("n", 4))
case("permute_copy", lambda x: F.permute_copy(x, (1, 0)), X("n", 3))
case("select_copy", lambda x: F.select_copy(x, 1, -1), X("n", 3))
case("slice_copy", lambda x: F.slice_copy(x, 1, 1, None, 2), X("n", 5))
case("split_copy", lambda x: F.split_copy(x, 2, 1), X("n", 5))
case("split_with_sizes_copy", lambda x: F.split_with_sizes_copy(x, (1, 3), 1), X("n", 4))
case("squeeze_copy", lambda x: F.squeeze_copy(x, 1), X("n", 1))
case("t_copy", F.t_copy, X("n", 3))
case("transpose_copy", lambda x: F.transpose_copy(x, 0, 1), X("n", 3))
case("unbind_copy", lambda x: F.unbind_copy(x, 1), X("n", 2))
case("unfold_copy", lambda x: F.unfold_copy(x, 1, 2, 1), X("n", 4))
case("unsqueeze_copy", lambda x: F.unsqueeze_copy(x, 0), X("n", 3))
case("view_copy", lambda x: F.view_copy(x, (-1,)), X("n", 3))

case("as_strided", lambda x: F.as_strided(x, (2, 2, 2), (1, 1, 4)) * 2, X(3, 4))
case("segment_reduce", lambda x, n: F.segment_reduce(x, "mean", lengths=n * 2 + 1, initial=0.5, unsafe=True), X("n", 3),
     Index(2, limit=3), empty=False)  # fmt: skip
case("segment_reduce", lambda x, n: F.segment_reduce(x, "prod", offsets=F.sort(n)[0], axis=1), X("n", 5, 2),
     Index("n", 4, limit=5))  # fmt: skip
case("as_strided_copy", lambda x: F.as_strided_copy(x, (3, 2), (2, 1), 1), X(8))
case("as_strided_scatter", lambda x, v: F.as_strided_scatter(x, v, (2, 2), (1, 3), 1), X(3, 3), X(2, 2))
case("diagonal_scatter", lambda x, v: F.diagonal_scatter(x, v, -1), X(4, 3), X(3))

case("addbmm", lambda x, a, b: F.addbmm(x, a, b, beta=0.5, alpha=2), X(2, 3), X("n", 2, 4), X("n", 4, 3))
case("block_diag", F.block_diag, X("n", 2), X(3), X())
case("broadcast_shapes", lambda x: x * F.broadcast_shapes((2, 1), 3)[1], X("n"))
case("cartesian_prod", F.cartesian_prod, X("n"), X(2), X(3))
case("combinations", F.combinations, X(4))
case("combinations", lambda x: F.combinations(x, 3, True), X(3))
case("diagflat", lambda x: F.diagflat(x, -1), X("n", 2))
case("unravel_index", lambda i: F.unravel_index(i, (3, 4)), Index("n", limit=12), differentiable=False)
case("cov", lambda x: F.cov(x, correction=0), X(3, "n"), empty=False)
case("cov", F.cov, X(3, 4))
case("cov", lambda x, i, w: F.cov(x, fweights=i, aweights=w), X(3, 4), Index(4, limit=3), P(4), differentiable=False)
case("corrcoef", F.corrcoef, X(3, 4))
case("gcd", F.gcd, Whole("n", 3), Whole(3), differentiable=False)
case("lcm", F.lcm, Whole("n", 3), Whole(3), differentiable=False)
case("gradient", lambda x: F.gradient(x, spacing=[0.5, 2.0]), X(3, 4))
case("gradient", lambda x: F.gradient(x, spacing=[np.array([0.0, 1.0, 3.0])], dim=0, edge_order=2), X(3, "n"))
case("trapz", lambda y, x: F.trapz(y, x), X("n", 4), X(4))
case("histogram", lambda x: F.histogram(x, 4), X("n", 3), differentiable=False, empty=False)
case("histogram", lambda x, w: F.histogram(x, 3, range=(-1.0, 1.0), weight=w, density=True).hist, X("n", 3), P("n", 3),
     differentiable=False)  # fmt: skip
case("histogramdd", lambda x: F.histogramdd(x, [2, 3], range=(-1.0, 1.0, -2.0, 2.0)).hist, X("n", 2),
     differentiable=False)  # fmt: skip
case("nonzero_static", lambda x: F.nonzero_static(x, size=4), Tied("n", 3), differentiable=False)
case("rsub", lambda x, y: F.rsub(x, y, alpha=2), X("n", 3), X(3))
case("fill", lambda x, v: F.fill(x, v), X("n", 3), X())
case("renorm", lambda x: F.renorm(x, 2, 0, 0.9), X(3, 4))
case("t", lambda x: F.t(x) * 2, X("n", 3))
case("is_same_size", lambda x, y: x * (1 + F.is_same_size(x, y)), X("n"), X("n"))
case("vander", lambda x: F.vander(x, 4), X("n"))
case("sum_to_size", lambda x: F.sum_to_size(x, 1, 3), X("n", 3))
case("pdist", F.pdist, X(4, 3))
case("lu", lambda x: F.lu(x + np.eye(3, dtype=x.dtype) * 4)[0], X(3, 3))
case("constant_pad_nd", lambda x: F.constant_pad_nd(x, (1, 2), 3.0), X("n", 3))
case("grid_sampler", lambda x, g: F.grid_sampler(x, g, 1, 1, True), X(1, 2, 3, 4), X(1, "n", 2, 2),
     differentiable=False)  # fmt: skip
case("grid_sampler_2d", lambda x, g: F.grid_sampler_2d(x, g, 0, 0, False), X(1, 1, 3, 4), X(1, 2, 2, 2),
     differentiable=False)  # fmt: skip
case("grid_sampler_3d", lambda x, g: F.grid_sampler_3d(x, g, 0, 2, True), X(1, 1, 2, 3, 2), X(1, 2, 1, 2, 3),
     differentiable=False)  # fmt: skip
case("upsample", lambda x: F.upsample(x, scale_factor=2), X("n", 2, 3))
case("upsample_nearest", lambda x: F.upsample_nearest(x, (5, 2)), X("n", 1, 3, 4))
case("upsample_bilinear", lambda x: F.upsample_bilinear(x, scale_factor=2), X("n", 1, 2, 3))
case("linear_cross_entropy", lambda x, w, t, b: F.linear_cross_entropy(x, w, t, bias=b), X("n", 3), X(5, 3),
     Index("n"), X(5), empty=False)  # fmt: skip

_M = masked.FUNCTIONS
_TWO = np.array([True, True, False, False])  # of every row; of no elements a mean is nan


def _masked(name):
    """A call of `masked.<name>` with a mask, numbers that a derivative is asked of."""

    def f(x, m):
        m = F.logical_or(m, _TWO)
        y = _M[name](x, *((2.0,) if name == "normalize" else ()), 1, mask=m)
        if name == "log_softmax":
            return F.where(m, y, 0.0)
        return F.unsqueeze(y, 1) * x if name.startswith("arg") else y

    return f


for _name in sorted(_M.keys() - {"logaddexp"}):
    PROGRAMS.append(Case(f"masked.{_name}", _masked(_name), (X("n", 4), T("n", 4))))
PROGRAMS += [
    Case("masked.logaddexp", lambda x, y, m: _M["logaddexp"](x, y, other_mask=m), (X("n"), X("n"), T("n"))),
    Case("fft.fftshift", spectra.fftshift, (X("n", 4),)),
    Case("fft.ifftshift", lambda x: spectra.ifftshift(x, 1), (X("n", 5),)),
    Case("fft frequencies", lambda x: x * spectra.fftfreq(5) + spectra.rfftfreq(8, 2.0), (X("n", 5),)),
    Case("windows", lambda x: tuple(
        x * f(5, **({"a": [0.5, 0.3]} if name == "general_cosine" else {})) for name, f in windows.FUNCTIONS.items()
    ), (X("n", 5),)),
    Case("windows that repeat", lambda x: tuple(
        x * f(5, sym=False, dtype="float64")
        for f in (windows.hann, windows.kaiser, windows.cosine, windows.gaussian)
    ), (X("n", 5),)),
]  # fmt: skip
case("native_layer_norm", lambda x, w, b: F.native_layer_norm(x, [4], w, b, 1e-3)[0], X("n", 4), X(4), X(4))
case("native_group_norm", lambda x, w: F.native_group_norm(x, w, None, 2, 4, 3, 2, 1e-3), X(2, 4, 3), X(4))
case("native_batch_norm", lambda x, w, b: F.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-3)[0], X("n", 3, 2),
     X(3), X(3), empty=False)  # fmt: skip
case("native_batch_norm", lambda x, m, v: F.native_batch_norm(x, None, None, m, v, False, 0.1, 1e-3)[0], X("n", 3),
     X(3), P(3))  # fmt: skip
case("norm", lambda x: F.norm(x, "nuc", (0, 2), True), X(3, 2, 4))
