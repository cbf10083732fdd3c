"""`cond` and `switch`, with the signatures of jax.lax.

Outside a trace they run Python; in a trace they become branches of the compiled program. In both a construct is one
node of the tape, which can be differentiated any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common import mode
from common.autograd.node import next_number
from common.control.body import Body
from common.control.branches import Choice, run_choice
from common.control.given import Function, call, scalar
from common.control.trees import Form, Said, require_equal, tensors
from common.dtypes import bool_, int64
from common.errors import ArgumentError, DTypeError
from common.op import REGISTRY
from common.tensor.base import TensorBase
from common.tree import unflatten


def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """``true_fn(*operands)`` if `pred` holds, else ``false_fn(*operands)``; only one of them runs.

    Both are traced, so both must return the same structure, shapes and dtypes.

    Parameters
    ----------
    pred : 0-d tensor or number; not 0 means true.
    true_fn, false_fn : functions of `operands`; they may use other tensors too, which get gradients as well.
    operands : trees of tensors.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError : the functions' results differ; the message shows both.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cond(tw.tensor(2.0) > 1, lambda x: x * 2, lambda x: -x, tw.tensor([1.0, 3.0]))
    tensor([2., 6.])
    """
    chosen = scalar(pred, "cond: pred")
    with mode.no_grad():
        if chosen.dtype != bool_:
            chosen = REGISTRY["ne"](chosen, 0)
        chosen = REGISTRY["to"](chosen, dtype=int64, x_dtype=bool_)
    return _choose("cond", chosen, [("false_fn", false_fn), ("true_fn", true_fn)], operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """``branches[index](*operands)``; an index out of range is moved to the nearest that is in range.

    Parameters
    ----------
    index : 0-d integer tensor or int.
    branches : functions of `operands`, see `cond`.
    operands : trees of tensors.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError : see `cond`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.switch(5, [lambda x: x, lambda x: x * 10], tw.tensor([1.0, 2.0]))
    tensor([10., 20.])
    """
    if not branches:
        raise ArgumentError("switch: branches is empty")
    chosen = scalar(index, "switch: index")
    if chosen.dtype.kind not in "iu":
        raise DTypeError(f"switch: index must be an integer, not {chosen.dtype}")
    with mode.no_grad():
        if chosen.dtype != int64:
            chosen = REGISTRY["to"](chosen, dtype=int64, x_dtype=chosen.dtype)
        chosen = REGISTRY["minimum"](REGISTRY["maximum"](chosen, 0), len(branches) - 1)
    named = [(f"branches[{i}]", branch) for i, branch in enumerate(branches)]
    return _choose("switch", chosen, named, operands)


def _choose(name: str, index: Any, branches: list[tuple[str, Function]], operands: tuple[Any, ...]) -> Any:
    given, structure = tensors(operands, f"{name}: an operand")
    forms: list[tuple[Said, Form]] = []

    def step(i: int, leaves: list[TensorBase], _: Body | None) -> Body:
        role, function = branches[i]
        body = Body(leaves, next_number())
        first = forms[0][1] if forms else None
        body.carried, made = tensors(
            call(name, function, *unflatten(structure, leaves)), f"{name}: the result of {role}", first
        )
        forms.append((Said(f"the result of {role} ({{}})", function), Form(made, body.carried)))
        require_equal(name, *forms[0], *forms[-1])
        return body

    results, _ = run_choice(Choice(name, index, len(branches), step, given, None))
    return unflatten(forms[0][1].structure, results)
