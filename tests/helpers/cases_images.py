"""Calls of convolutions, pooling and what else is done with images; see `tests.helpers.cases`."""

from __future__ import annotations

import common.ops.functional as F
from tests.helpers.cases import P, Tied, U, X, case

case("conv1d", lambda x, w, b: F.conv1d(x, w, b, padding=1), X("n", 2, 5), X(3, 2, 3), X(3))
case("conv1d", lambda x, w: F.conv1d(x, w, padding="same", dilation=3, groups=2), X("n", 2, 4), X(4, 1, 2))
case("conv1d", lambda x, w: F.conv1d(x, w, stride=2, padding=x.shape[0]), X("n", 5), X(2, "n", 3), empty=False)
case("conv2d", lambda x, w, b: F.conv2d(x, w, b), X("n", 2, 4, 3), X(3, 2, 3, 2), X(3))
case("conv2d", lambda x, w: F.conv2d(x, w, stride=2, padding=(1, 0), dilation=(1, 2), groups=2), X(2, 4, "n", 5),
     X(2, 2, 1, 2), empty=False)  # fmt: skip
case("conv3d", lambda x, w: F.conv3d(x, w, None, (1, 2, 1), 1), X("n", 1, 2, 3, 2), X(2, 1, 2, 2, 1))
case("conv_transpose1d", lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1), X("n", 2, 3), X(2, 3, 3), X(3))
case("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, None, (2, 1), (0, 1), groups=2, dilation=(1, 2)),
     X(2, 2, "n", 3), X(2, 1, 2, 2), empty=False)  # fmt: skip
case("conv_transpose3d", lambda x, w: F.conv_transpose3d(x, w), X("n", 1, 2, 1, 2), X(1, 2, 1, 2, 2))

for _n, _shape in ((1, ("n", 2, 5)), (2, ("n", 2, 4, 5)), (3, ("n", 1, 3, 2, 4))):
    for _kind in ("max", "avg"):
        _pool, _adaptive = getattr(F, f"{_kind}_pool{_n}d"), getattr(F, f"adaptive_{_kind}_pool{_n}d")
        case(f"{_kind}_pool{_n}d", lambda x, f=_pool: f(x, 2, 1, 1), X(*_shape))
        case(f"{_kind}_pool{_n}d", lambda x, f=_pool: f(x, 2, ceil_mode=True), X(*_shape))
        case(f"adaptive_{_kind}_pool{_n}d", lambda x, f=_adaptive: f(x, 2), X(*_shape))
    _lp, _unpool, _max = getattr(F, f"lp_pool{_n}d"), getattr(F, f"max_unpool{_n}d"), getattr(F, f"max_pool{_n}d")
    case(f"lp_pool{_n}d", lambda x, f=_lp: f(x, 3, 2, 1), P(*_shape))
    case(f"max_unpool{_n}d", lambda x, f=_unpool, g=_max: f(*g(x, 2, return_indices=True), 2), X(2, *_shape[1:-1], 4))
case("max_pool2d", lambda x: F.max_pool2d(x, (2, 1), (1, 2), 0, (2, 3), return_indices=True), X(2, 3, 5, "n"),
     empty=False)  # fmt: skip
case("max_pool2d", lambda x: F.max_pool2d(x, 2), Tied(2, 1, 4, 4), differentiable=False)
case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), X(2, 4, "n"), empty=False)
case("avg_pool3d", lambda x: F.avg_pool3d(x, 2, divisor_override=3), X(1, 2, 2, 3, 2))
case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, None)), X(2, 5, "n"), empty=False)
case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 1), X("n", 2, 3, 3))
case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 2), True), X(2, "n", 4), empty=False)
case("unfold", lambda x: F.unfold(x, (2, 3), 1, 1, (2, 1)), X("n", 2, 3, 4))
case("fold", lambda x: F.fold(x, (3, 4), 2, 1, 0, 1), X("n", 8, 6))
case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), X("n", 4, 2, 3))
case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), X(3, "n", 4, 2))
case("channel_shuffle", lambda x: F.channel_shuffle(x, 3), X("n", 6, 2))
case("instance_norm", lambda x, w, b: F.instance_norm(x, None, None, w, b), X("n", 3, 4), X(3), X(3))
case("instance_norm", lambda x, m, v: F.instance_norm(x, m, v, use_input_stats=False), X("n", 3, 2, 2), X(3), P(3))
case("local_response_norm", lambda x: F.local_response_norm(x, 2, 0.5, 0.7, 2.0), X("n", 3, 4))
case("local_response_norm", lambda x: F.local_response_norm(x, 3), X(2, "n", 2, 2))
for _mode in ("nearest", "nearest-exact", "area", "linear"):
    case("interpolate", lambda x, m=_mode: F.interpolate(x, 5, mode=m), X("n", 2, 3))
case("interpolate", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), X(2, 1, "n", 3), empty=False)
case("interpolate", lambda x: F.interpolate(x, (3, 4), mode="bicubic", align_corners=True), X(1, 2, 2, "n"),
     empty=False)  # fmt: skip
for _mode in ("bilinear", "bicubic"):
    case("interpolate", lambda x, m=_mode: F.interpolate(x, (2, 3), mode=m, antialias=True), X(2, 1, "n", 5),
         empty=False)  # fmt: skip
case("interpolate", lambda x: F.interpolate(x, (3, 1, 4), mode="trilinear"), X("n", 1, 2, 2, 3))
case("affine_grid", lambda t: F.affine_grid(t, (t.shape[0], 1, 3, 2)), X("n", 2, 3), empty=False)
case("affine_grid", lambda t: F.affine_grid(t, (2, 1, 3, 2, 1), True), X(2, 3, 4))
for _mode, _padding in (("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection")):
    case("grid_sample", lambda x, g, m=_mode, p=_padding: F.grid_sample(x, g, m, p), X(2, 2, 3, "n"), X(2, 2, 3, 2),
         empty=False)  # fmt: skip
case("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=True), X("n", 1, 2, 3, 2), U("n", 1, 2, 2, 3))
