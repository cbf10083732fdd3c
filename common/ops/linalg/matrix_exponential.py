"""The exponential of matrices."""

from __future__ import annotations

from typing import Any

from common.core.op import Op
from common.ops.linalg._lapack import lapack, mT, require_square, square_samples
from common.ops.math.arithmetic import zeros_like
from common.ops.shape.cat import cat
from common.ops.shape.slices import narrow


def _rule(g: Any, x: Any) -> Any:
    n, turned = x.shape[-1], mT(x)
    blocks = cat([cat([turned, g], -1), cat([zeros_like(g), turned], -1)], -2)
    return narrow(narrow(matrix_exp_(blocks), -2, 0, n), -1, n, n)


matrix_exp_: Op = lapack(
    "matrix_exp", ("x",), lambda x: x, (_rule,), samples=square_samples(shift=0.3), node_name="LinalgMatrixExp",
    doc="I + x + x x / 2 + x x x / 6 + ..., by SciPy. d/dx is the upper right block of exp([[x^T, g], [0, x^T]]).",
)  # fmt: skip


def matrix_exp(x: Any) -> Any:
    """The exponentials of square matrices.

    Parameters
    ----------
    x : (..., n, n)

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.linalg.matrix_exp(tw.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    require_square("linalg.matrix_exp", x)
    return matrix_exp_(x)


__all__ = ["matrix_exp"]
