"""The decorators with which ops are defined: one per kind of op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from common.core.dtypes import compute_dtypes
from common.core.errors import EmptyError
from common.core.op import Op
from common.core.rule_code import rule_parameters
from common.core.shapes import broadcast_shapes, contiguous_strides
from common.core.spec import Spec
from common.evaluate import rules
from common.evaluate.immediate import Immediate
from common.ops._samples import Draw, Samples, away_from_zero, of_elementwise, of_reduction, truth

assert rules  # runs ops on arrays

Rules = Sequence[Callable[..., Any] | None]
DOMAINS = ("any", "number", "float", "real", "bool")


def elementwise(
    name: str,
    scalar: Callable[..., Any],
    rules: Rules = (),
    *,
    doc: str,
    domain: str = "any",
    result: str = "same",
    attrs: tuple[str, ...] = (),
    node_name: str | None = None,
    draw: Draw | None = None,
    samples: Samples | None = None,
    **fields: Any,
) -> Op:
    """Define an elementwise op by its scalar expression.

    Parameters
    ----------
    scalar : the expression; its parameter names are the names of the operands. A parameter `condition` is a truth
        value and takes no part in promotion.
    domain : "any", "number" (bools become int64), "float" (ints become float32), "real" (tensors of floats only, though
        numbers may be ints) or "bool".
    result : "same" as the computing dtype, or "bool".
    draw : makes an operand inside the domain for the generated tests, by default values of both signs.
    samples : makes all operands instead.
    fields : others of the record, such as `costly`, `refuses`, `neutral`: see `common.core.op.Op`.
    """
    assert domain in DOMAINS, f"the domain of {name} is one of {', '.join(DOMAINS)}, not {domain!r}"

    def spec(*specs: Spec, **attrs: Any) -> Spec:
        if "dtype" in attrs:
            return Spec(specs[0].shape, np.dtype(attrs["dtype"]), specs[0].weak)  # a number stays one
        _, dtype, weak = compute_dtypes(op, specs)
        return Spec(broadcast_shapes(*(s.shape for s in specs), op=name), dtype, weak)

    inputs = tuple(n for n in rule_parameters(scalar) if n not in attrs)
    if samples is None:
        samples = of_elementwise(inputs, draw or (truth if domain == "bool" else away_from_zero))
    op = Op(name, "elementwise", inputs, spec, rules, doc, node_name=node_name, scalar=scalar, domain=domain,
            result=result, attrs=attrs, samples=samples, **fields)  # fmt: skip
    if not scalar.__module__.startswith("common."):
        # keys of the compiler's cache cover the package's own files; a user's definition has to name itself
        from common.compiler.compile import define_scalar

        define_scalar(name, scalar)
    return op


def reduction(
    name: str,
    reduce: str,
    rules: Rules,
    *,
    doc: str,
    node_name: str | None = None,
    identity: bool = True,
    samples: Samples = of_reduction,
) -> Op:
    """Define a reduction over ``dim`` (a sorted tuple of non-negative ints), with ``keepdim``.

    Parameters
    ----------
    reduce : "sum", "prod", "max" or "min".
    identity : whether it has a value over no elements.
    """

    def spec(x: Spec, *, dim: tuple[int, ...], keepdim: bool) -> Spec:
        if not identity:
            for axis in dim:
                if x.shape[axis] == 0:
                    raise EmptyError(
                        f"{name}(): Expected reduction dim {axis} to have non-zero size: the op has no identity"
                    )
        if keepdim:
            shape = tuple(1 if i in dim else n for i, n in enumerate(x.shape))
        else:
            shape = tuple(n for i, n in enumerate(x.shape) if i not in dim)
        dtype = np.dtype(np.int64) if reduce in ("sum", "prod") and x.dtype.kind in "biu" else x.dtype
        return Spec(shape, dtype)

    return Op(name, "reduction", ("x",), spec, rules, doc, node_name=node_name, reduce=reduce,
              attrs=("dim", "keepdim"), samples=samples)  # fmt: skip


def view(
    name: str,
    strided: Callable[..., Any],
    array: Callable[..., Any],
    rules: Rules,
    *,
    doc: str,
    samples: Samples,
    node_name: str | None = None,
    **fields: Any,
) -> Op:
    """Define a view by its map ``strided(offset, shape, strides, **attrs) -> (offset, shape, strides) | None``.

    Offsets and strides count elements. None means: only possible on a contiguous operand.
    """

    def spec(x: Spec, **attrs: Any) -> Spec:
        placed = strided(0, x.shape, contiguous_strides(x.shape), **attrs)
        return Spec(placed[1], x.dtype)

    attrs = rule_parameters(strided)[3:]
    return Op(name, "view", ("x",), spec, rules, doc, node_name=node_name, strided=strided, array=array,
              attrs=attrs, samples=samples, **fields)  # fmt: skip


def kernel(
    name: str,
    inputs: tuple[str, ...],
    spec: Callable[..., Any],
    native: Callable[..., Any],
    oracle: Callable[..., Any],
    rules: Rules = (),
    *,
    doc: str,
    node_name: str | None = None,
    nout: int = 1,
    attrs: tuple[str, ...] = (),
    samples: Samples,
    **fields: Any,
) -> Op:
    """Define an op by compiled kernels: ``native(in_specs, out_specs, attrs) -> [NativeCall, ...]``.

    `fields` are others of the record, such as `product`.
    """
    return Op(name, "kernel", inputs, spec, rules, doc, node_name=node_name, nout=nout, attrs=attrs, native=native,
              oracle=oracle, samples=samples, **fields)  # fmt: skip


def composite(
    name: str,
    forward: Callable[..., Any],
    rules: Rules,
    *,
    inputs: tuple[str, ...],
    doc: str,
    node_name: str | None = None,
    nout: int = 1,
    reduce: str | None = None,
    parts: str = "",
    samples: Samples,
) -> Op:
    """Define an op whose forward is written with ops but which has a gradient rule of its own.

    Parameters
    ----------
    reduce : where it is a sum over ``dim``, with ``keepdim``, of a function of its elements: its name in
        `common.kernels.arrays.mapped_sums`; or a name in `common.evaluate.own_kernels`. The eager engine then runs one
        kernel, without the memory between the ops.
    """
    attrs = tuple(p for p in rule_parameters(forward) if p not in inputs)
    return Op(name, "composite", inputs, lambda *a, **k: None, rules, doc, node_name=node_name, nout=nout,
              attrs=attrs, forward=forward, reduce=reduce, parts=parts, samples=samples)  # fmt: skip


#: Composites whose rules are for arrays, see `on_arrays`.
for_arrays: set[Op] = set()
#: ``f(op, saved, attrs, g, needs)`` differentiates the ops of a composite; `common.autograd.backward` puts it here.
by_ops: list[Callable[..., tuple[Any, ...]]] = []


def on_arrays(op: Op, serves: Callable[..., bool]) -> None:
    """Let the rules of a composite be for arrays, as functions that run kernels; else its gradient is that of its ops.

    Where a pass is recorded, the node is taken apart first, see `common.autograd.backward_pass`.

    Parameters
    ----------
    serves : ``serves(saved, attrs)``: whether the rules take these arrays.
    """
    rules = op.backward

    def backward(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        found = rules if type(g) is Immediate and serves(saved, attrs) else partial(by_ops[0], op)
        return found(saved, attrs, g, needs)

    op.backward = backward
    for_arrays.add(op)
