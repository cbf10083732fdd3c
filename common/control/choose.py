"""`cond` and `switch`, with the signatures of jax.lax.

Outside a trace they run Python; in a trace they become branches of the compiled program. In both a construct is one
node of the tape, which can be differentiated any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.control import tangents
from common.control.body import Body
from common.control.branches import Choice, run_choice
from common.control.loop_arguments import INTEGER, Function, call, require_functions, scalar
from common.control.results import Results
from common.control.structures import tensors
from common.core import mode
from common.core.dtypes import bool_, int64
from common.core.errors import ArgumentError, DTypeError
from common.core.int_arguments import shown
from common.core.op import REGISTRY
from common.core.tree import unflatten
from common.tensor.base import TensorBase
from common.tensor.node import next_number

assert tangents  # runs branches with tangents

#: Default of `operand`, which may be None.
_NOTHING: Any = type("_Nothing", (), {"__repr__": lambda self: "..."})()


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any, operand: Any = _NOTHING) -> Any:
    """``true_fun(*operands)`` if `pred` holds, else ``false_fun(*operands)``; only one of them runs.

    Both are traced, so both must return the same structure, shapes and dtypes. A Python number takes the dtype of what
    the other function returns in its place.

    Parameters
    ----------
    pred : 0-d tensor or number; not 0 means true.
    true_fun, false_fun : functions of `operands`; they may use other tensors too, which get gradients as well.
    operands : trees of tensors.
    operand : the only one of them, as a keyword.

    Raises
    ------
    ArgumentError : `pred` is no scalar, what is to be a function is none, or there are `operands` and an `operand`.
    ArgumentError, ShapeError, DTypeError : the functions' results differ; the message shows both.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.cond(tw.tensor(2.0) > 1, lambda x: x * 2, lambda x: -x, tw.tensor([1.0, 3.0]))
    tensor([2., 6.])
    """
    require_functions("cond", true_fun=true_fun, false_fun=false_fun)
    if pred is None:
        raise ArgumentError("cond predicate is None; it must be a scalar: a bool, a number or a 0-d tensor")
    chosen = scalar(pred, "cond: Pred")
    with mode.no_grad():
        if chosen.dtype != bool_:
            chosen = REGISTRY["ne"](chosen, 0)
        chosen = REGISTRY["to"](chosen, dtype=int64, x_dtype=bool_)
    functions = [("false_fun", false_fun), ("true_fun", true_fun)]
    return _choose("cond", chosen, functions, _operands("cond", operands, operand))


def switch(index: Any, branches: Sequence[Function], *operands: Any, operand: Any = _NOTHING) -> Any:
    """``branches[index](*operands)``; an index out of range is moved to the nearest that is in range.

    Parameters
    ----------
    index : 0-d integer tensor or int.
    branches : functions of `operands`, see `cond`.
    operands : trees of tensors.
    operand : the only one of them, as a keyword.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError : see `cond`; or `index` is no integer.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.switch(5, [lambda x: x, lambda x: x * 10], tw.tensor([1.0, 2.0]))
    tensor([10., 20.])
    """
    if not isinstance(branches, (tuple, list)):
        raise ArgumentError(f"switch: branches must be a sequence of functions, not {type(branches).__name__}")
    if not branches:
        raise ArgumentError("switch: Empty branch sequence")
    named = [(f"branches[{i}]", branch) for i, branch in enumerate(branches)]
    require_functions("switch", **dict(named))
    if isinstance(index, (tuple, list)):
        raise ArgumentError(f"switch: Branch index must be scalar, got {shown(index)} of shape ({len(index)},).")
    chosen = scalar(index, "switch: Index", INTEGER)
    if chosen.dtype.kind not in "iu":
        raise DTypeError(f"switch: Index type must be an integer, got {chosen.dtype}.")
    with mode.no_grad():
        if chosen.dtype != int64:
            chosen = REGISTRY["to"](chosen, dtype=int64, x_dtype=chosen.dtype)
        chosen = REGISTRY["minimum"](REGISTRY["maximum"](chosen, 0), len(branches) - 1)
    return _choose("switch", chosen, named, _operands("switch", operands, operand))


def _operands(name: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _NOTHING:
        return operands
    if operands:
        raise ArgumentError(f"{name}: operands are given by position and by the keyword `operand`; use one of the two")
    return (operand,)


def _choose(name: str, index: Any, branches: list[tuple[str, Function]], operands: tuple[Any, ...]) -> Any:
    given, structure = tensors(operands, f"{name}: an operand")
    results = Results(name)

    def step(i: int, leaves: list[TensorBase], _: Body | None) -> Body:
        role, function = branches[i]
        body = Body(leaves, next_number())
        body.carried = results.of(role, function, call(name, function, *unflatten(structure, leaves)))
        return body

    carried, _ = run_choice(Choice(name, index, len(branches), step, given, None, results.settle))
    return unflatten(results.structure, carried)
