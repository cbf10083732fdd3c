"""Definitions of ops that call LAPACK, and checks of matrices by public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.compiler.host_kernels import host_call
from common.core.errors import DTypeError, ShapeError
from common.core.op import NativeCall, Op, out_specs
from common.core.rule_code import rule_parameters
from common.core.shapes import broadcast_shapes
from common.core.sizes import same, same_shape
from common.core.spec import Spec
from common.ops._define import Rules, kernel
from common.ops._samples import Samples, away_from_zero
from common.ops.math.arithmetic import ones_like
from common.ops.shape.diagonal import diagonal_, undiagonal
from common.ops.shape.view import expand, transpose

MODULE = "common.kernels.linalg.lapack"
NATIVE = "common.kernels.linalg.small_systems"


def lapack(
    name: str,
    inputs: tuple[str, ...],
    spec: Callable[..., Any],
    rules: Rules = (),
    *,
    function: str | None = None,
    native: bool | str = False,
    nout: int = 1,
    doc: str,
    samples: Samples,
    node_name: str | None = None,
) -> Op:
    """Define an op by a function of `common.kernels.linalg.lapack`, of its operands and then its attributes.

    Parameters
    ----------
    spec : its attributes are those of the op, in the order in which the function takes them.
    function : the function's name, by default that of the op.
    native : whether `common.kernels.linalg.small_systems` writes native source for small matrices; or the module that
        does.
    """
    attrs = tuple(p for p in rule_parameters(spec) if p not in inputs)
    called, written = function or name, NATIVE if native is True else native or ""

    def calls(specs: Sequence[Spec], outs: Sequence[Spec], values: dict[str, Any]) -> list[NativeCall]:
        return [host_call(MODULE, called, specs, outs, [values[p] for p in attrs], written)]

    def oracle(*arrays: np.ndarray, **values: Any) -> Any:
        from common.kernels.linalg import lapack as functions

        found = getattr(functions, called)(*arrays, *(values[p] for p in attrs))
        outs = out_specs(spec(*(Spec(x.shape, x.dtype) for x in arrays), **values))
        made = tuple(np.array(np.broadcast_to(y, s.shape), s.dtype, order="C") for y, s in
                     zip(found if type(found) is tuple else (found,), outs, strict=True))  # fmt: skip
        return made if nout > 1 else made[0]

    return kernel(name, inputs, spec, calls, oracle, rules, doc=doc, nout=nout, attrs=attrs, samples=samples,
                  node_name=node_name)  # fmt: skip


def mT(x: Any) -> Any:
    """The matrices transposed."""
    return transpose(x, -2, -1)


def identity_like(x: Any) -> Any:
    """Identity matrices like square ones; of ops, so that rules can have them."""
    place = {"offset": 0, "dim1": x.ndim - 2, "dim2": x.ndim - 1}
    return undiagonal(ones_like(diagonal_(x, **place)), shape=tuple(x.shape), **place)


def require_matrix(name: str, x: Any, argument: str = "A") -> None:
    """Refuse what is no batch of floating-point matrices.

    Raises
    ------
    ShapeError, DTypeError : always for such.
    """
    if x.ndim < 2:
        raise ShapeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    if x.dtype.kind != "f":
        raise DTypeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}")


def require_square(name: str, x: Any, argument: str = "A") -> None:
    """Refuse what is no batch of floating-point square matrices.

    Raises
    ------
    ShapeError, DTypeError : always for such.
    """
    require_matrix(name, x, argument)
    rows, columns = x.shape[-2:]
    if not same(rows, columns) and rows != columns:
        raise ShapeError(
            f"{name}: {argument} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def require_one_dtype(name: str, a: Any, b: Any) -> None:
    """Refuse operands of two dtypes.

    Raises
    ------
    DTypeError : always for such.
    """
    if a.dtype != b.dtype:
        raise DTypeError(f"{name}: Expected A and B to have the same dtype, but found {a.dtype} and {b.dtype} instead")


def in_one_batch(name: str, *operands: tuple[Any, int]) -> list[Any]:
    """Operands with their batch dimensions broadcast; each comes with the number of its own dimensions."""
    batches = [x.shape[: x.ndim - own] for x, own in operands]
    lead = batches[0] if all(same_shape(b, batches[0]) for b in batches) else broadcast_shapes(*batches, op=name)
    return [
        x if same_shape(b, lead) else expand(x, (*lead, *x.shape[x.ndim - own :]))
        for (x, own), b in zip(operands, batches, strict=True)
    ]


def square_samples(*more: tuple[int, ...], shift: float = 3.0, symmetric: bool = False, **attrs: Any) -> Samples:
    """Well-conditioned matrices, alone and in a batch, with operands of further shapes."""

    def samples(rng: Any, dtype: Any) -> list[Any]:
        cases = []
        for lead in ((), (2,)):
            x = rng.normal(size=(*lead, 3, 3))
            x = (x @ x.swapaxes(-1, -2) if symmetric else x) + shift * np.diag([1.0, 1.7, 2.9])
            others = (away_from_zero(rng, (*lead, *shape), dtype) for shape in more)
            cases.append(((np.asarray(x, dtype), *others), dict(attrs)))
        return cases

    return samples


def matrix_samples(*shapes: tuple[int, ...], **attrs: Any) -> Samples:
    """Matrices of full rank and different singular values."""

    def samples(rng: Any, dtype: Any) -> list[Any]:
        cases = []
        for shape in shapes:
            x = rng.normal(size=shape) + 2 * np.eye(shape[-2], shape[-1]) * np.arange(1, shape[-1] + 1)
            cases.append(((np.asarray(x, dtype),), dict(attrs)))
        return cases

    return samples
