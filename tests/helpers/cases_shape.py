"""Calls of the functions that cut, turn, repeat and pad; see `tests.helpers.cases`."""

from __future__ import annotations

import common.functional as F
from tests.helpers.cases import X, case

case("split", lambda x: F.split(x, 2, 1), X("n", 5))
case("split", lambda x: F.split(x, [1, 0, 4], -1), X("n", 5))
case("split", lambda x: F.split(x, [4, 1], 1)[1] * 2, X("n", 5))  # a part without gradient
case("split", lambda x: F.split(x, x.shape[0], 0), X("n", 3), empty=False)
case("split", lambda x: F.split(x, [x.shape[1], 2], 0)[::-1], X(6, 4))
case("chunk", lambda x: F.chunk(x, 3, 1), X("n", 7))
case("chunk", lambda x: F.chunk(x, 2), X("n", 2))
case("tensor_split", lambda x: F.tensor_split(x, 3, 1), X("n", 7))
case("tensor_split", lambda x: F.tensor_split(x, (2, 1, -1), 1), X("n", 7))
case("unbind", lambda x: F.unbind(x, 1), X("n", 3))
case("unbind", lambda x: F.unbind(x, -1)[1], X("n", 3, 2))
case("unbind", lambda x: F.unbind(x), X("n", 2))

case("flip", lambda x: F.flip(x, 0), X("n", 3))
case("flip", lambda x: F.flip(x, (-1, 0)), X("n", 3, 4))
case("flip", lambda x: F.flip(x, 0, 1) * x, X("n", 3))
case("flip", lambda x: F.flip(x, ()), X("n"))
case("fliplr", F.fliplr, X("n", 3))
case("flipud", F.flipud, X("n", 3))
case("movedim", lambda x: F.movedim(x, 0, -1), X("n", 2, 3))
case("movedim", lambda x: F.movedim(x, (0, 1), (1, 2)) * 2, X("n", 2, 3))
case("moveaxis", lambda x: F.moveaxis(x, -1, 0), X("n", 2, 3))
case("swapaxes", lambda x: F.swapaxes(x, 0, -1), X("n", 2, 3))
case("swapdims", lambda x: F.swapdims(x, 1, 0), X("n", 2, 3))

case("diagonal", F.diagonal, X("n", "n"))
case("diagonal", lambda x: F.diagonal(x, -1), X("n", 4))
case("diagonal", lambda x: F.diagonal(x, 1, 2, 0), X("n", 3, "n"))
case("diagonal", lambda x: F.diagonal(x, 9) * 2, X("n", 3))
case("diag", F.diag, X("n"))
case("diag", lambda x: F.diag(x, -2), X("n"))
case("diag", lambda x: F.diag(x, 1), X(4, "n"))
case("diag_embed", F.diag_embed, X("n", 3))
case("diag_embed", lambda x: F.diag_embed(x, -1, 0, 2), X(3, "n"))
case("tril", F.tril, X("n", 4))
case("tril", lambda x: F.tril(x, -1), X(2, "n", "n"))
case("tril", lambda x: F.tril(x * 2, x.shape[0]), X("n", 4))
case("triu", F.triu, X("n", 4))
case("triu", lambda x: F.triu(x, 2), X(2, 3, "n"))
