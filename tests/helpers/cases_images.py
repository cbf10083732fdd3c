"""Calls of convolutions, pooling and what else is done with images; see `tests.helpers.cases`."""

from __future__ import annotations

import common.ops.functional as F
from tests.helpers.cases import X, case

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
