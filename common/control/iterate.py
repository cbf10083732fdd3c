"""`while_loop`, `fori_loop`, `scan` and `map`, with the signatures of jax.lax.

Outside a trace they run Python; in a trace they become loops of the compiled program. In both a construct is one node
of the tape, which can be differentiated any number of times.
"""

from __future__ import annotations

from functools import wraps
from operator import index as as_index
from typing import Any

from common.control import tangents
from common.control.body import Body, leaf
from common.control.checkpointed_while import Thinning, run_thinned
from common.control.loop import Request, run_loop
from common.control.loop_arguments import Function, call, carried_on, index_of, initial, require_functions, scalar
from common.control.mismatches import outputs, type_of
from common.control.segments import in_segments
from common.control.shape_trace import Abstract
from common.control.structures import Said, TreeSpec, place_of, tensors
from common.core.dtypes import bool_, promote
from common.core.errors import ArgumentError, DTypeError, ShapeError
from common.core.int_arguments import shown
from common.core.op import REGISTRY
from common.core.sizes import Dim, same
from common.core.spec import Spec
from common.core.tree import flatten, unflatten
from common.tensor.base import TensorBase
from common.tensor.node import next_number

assert tangents  # runs loops with tangents


def while_loop(cond_fun: Function, body_fun: Function, init_val: Any, checkpoint: int | None = None) -> Any:
    """Replace `init_val` by ``body_fun(init_val)`` as long as ``cond_fun(init_val)`` holds.

    Reverse mode works, however many iterations the data ask for: what is carried is saved for each of them, or, with
    `checkpoint`, for a few.

    Parameters
    ----------
    cond_fun : of what is carried; returns a 0-d bool tensor, or an integer: not 0 means true.
    body_fun : of what is carried; returns the same structure, shapes and dtypes.
    init_val : tree of tensors.
    checkpoint : k keeps at most k of the states for the gradient, every second, fourth, eighth, ... one as the loop
        goes on, and runs the iterations between two of them again: for T iterations the memory is that of k + 2 T / k
        states, with k near the root of 2 T least. Contributions to one value are totalled between kept states first.

    Raises
    ------
    ArgumentError, ShapeError, DTypeError : the result of `body_fun` differs from `init_val`; the message shows both.
    DTypeError : `cond_fun` returns a float, which is hardly ever 0.
    ArgumentError : `checkpoint` is less than 2, or given and `body_fun` writes to tensors from outside.

    Notes
    -----
    Ctrl-C interrupts a compiled loop too, between two iterations; no state has changed then.

    Examples
    --------
    >>> import dynamic as tw
    >>> x = tw.tensor(2.0, requires_grad=True)
    >>> y = tw.while_loop(lambda y: y < 100, lambda y: y * y, x)
    >>> y.backward()
    >>> y.item(), x.grad.item()
    (256.0, 1024.0)
    """
    require_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    given, structure = initial(init_val, "while_loop: init_val", body_fun)
    form = TreeSpec(structure, given)

    what = Said("while_loop: cond_fun must return a boolean scalar; the result of {}", cond_fun)

    def holds(leaves: list[TensorBase]) -> TensorBase:
        answer = scalar(call("while_loop", cond_fun, unflatten(structure, leaves)), what)
        if answer.dtype.kind == "f":
            raise DTypeError(f"{what} is {type_of(answer)}: compare it with a bound")
        return answer if answer.dtype == bool_ else REGISTRY["ne"](answer, 0)

    def step(leaves: list[TensorBase], _: Body | None) -> Body:
        body = Body(leaves, next_number())
        body.carried = carried_on(
            "while_loop", body_fun, call("while_loop", body_fun, unflatten(structure, leaves)), form
        )
        return body

    if checkpoint is not None:
        return unflatten(structure, run_thinned(Thinning(step, holds, given, as_index(checkpoint))))
    carried, _, _ = run_loop(Request("while_loop", step, given, [], [], None, holds, False, None))
    return unflatten(structure, carried)


def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any, *, unroll: int | bool | None = None) -> Any:
    """Replace `init_val` by ``body_fun(i, init_val)`` for i from `lower` to `upper` - 1.

    Parameters
    ----------
    lower, upper : numbers, sizes, or 0-d tensors. If one is a floating point number, i is lower, lower + 1, ... below
        upper.
    body_fun : of i, a 0-d int64 tensor if both bounds are ints, and what is carried; returns the same structure, shapes
        and dtypes.
    init_val : tree of tensors.
    unroll : as in JAX; changes nothing here, where an iteration costs less than an operation.

    Raises
    ------
    ArgumentError : a floating point bound beyond 2^53, from which on i + 1 is i; otherwise see `while_loop`.
    ShapeError, DTypeError : see `while_loop`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.fori_loop(0, 5, lambda i, x: x + i, tw.tensor(0.0))
    tensor(10.)
    """
    require_functions("fori_loop", body_fun=body_fun)
    _refuse_less_than("fori_loop", "unroll", unroll, 0)
    if not (_is_size(lower) and _is_size(upper)):
        start, stop = (index_of(x, name) for x, name in ((lower, "lower"), (upper, "upper")))
        if start.dtype != stop.dtype:
            start = start.to(promote(start.dtype, stop.dtype))

        @wraps(body_fun)
        def again(state: Any) -> Any:
            return state[0] + 1, body_fun(*state)

        return while_loop(lambda state: state[0] < stop, again, (start, init_val))[1]
    lower, upper = (x if isinstance(x, Dim) else as_index(x) for x in (lower, upper))
    for name, bound in (("lower", lower), ("upper", upper)):
        if type(bound) is int and not -(2**63) <= bound < 2**63:
            raise ArgumentError(f"fori_loop(): {name} = {bound} is no int64, which the loop counts in")
    count = upper - lower
    if count < 0:
        count = 0
    first = index_of(lower, "lower")
    given, structure = initial(init_val, "fori_loop: init_val", lambda state: body_fun(index_of(0, "lower"), state))
    form = TreeSpec(structure, given)

    def step(leaves: list[TensorBase], _: Body | None) -> Body:
        body = Body(leaves, next_number())
        result = call("fori_loop", body_fun, leaves[0], unflatten(structure, leaves[1:]))
        results = carried_on("fori_loop", body_fun, result, form, 1)
        body.carried = [leaves[0] + 1, *results]
        return body

    carried, _, _ = run_loop(Request("fori_loop", step, [first, *given], [], [], count, None, False, None))
    return unflatten(structure, carried[1:])


def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoint: int | None = None,
) -> Any:
    """Carry `init` through ``carry, y = f(carry, x)`` for each x of `xs`; return the last carry, and all y stacked.

    Parameters
    ----------
    f : returns a pair: what is carried on, of the structure, shapes and dtypes of `init`, and any tree of tensors.
    init : tree of tensors.
    xs : tree of tensors (length, ...), or None.
    length : number of iterations; needed if there are no `xs`.
    reverse : go from the last x to the first; y stand where their x do.
    unroll, _split_transpose : as in JAX; change nothing here, where an iteration costs less than an operation.
    checkpoint : k saves what is carried for the gradient every k iterations only, and runs the others again: for T
        iterations the memory is that of T / k + k, with k near the root of T least. Contributions to one value are
        totalled per k iterations first.

    Returns
    -------
    carry : as `init`.
    ys : tree of tensors (length, ...).

    Raises
    ------
    ArgumentError, ShapeError, DTypeError : lengths differ, `f` does not return a pair, or see `while_loop`.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.scan(lambda total, x: (total + x, total * x), tw.tensor(0.0), tw.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    require_functions("scan", f=f)
    _refuse_less_than("scan", "unroll", unroll, 0)
    rows, xs_structure = tensors(xs, "scan: xs")

    def row(x: TensorBase) -> TensorBase:
        return leaf(Abstract(Spec(tuple(x.shape[1:]), x.dtype)), False)

    def once(carry: Any) -> Any:
        return split(f(carry, unflatten(xs_structure, [row(x) for x in rows])))[0]

    def split(result: Any) -> tuple[Any, Any]:
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise ArgumentError(
                f"scan body output must be a pair, got {type_of(result)}. {place_of(f)} must return a pair (carry, y)"
            )
        return result[0], result[1]

    count = _length("scan", rows, length)
    if checkpoint is not None:
        return in_segments(scan, f, init, (rows, xs_structure), count, reverse, checkpoint)
    given, structure = initial(init, "scan: init", once)
    form = TreeSpec(structure, given)
    return run_scan(
        "scan", lambda carry, x: split(call("scan", f, carry, x)), f, form, given, (rows, xs_structure), count, reverse
    )


def map(f: Function, xs: Any, *, batch_size: int | None = None) -> Any:
    """``f(x)`` for each x of `xs`, stacked.

    Parameters
    ----------
    f : of one row of each; returns any tree of tensors.
    xs : tree of tensors (length, ...).
    batch_size : as in JAX; changes nothing here, where each row has the bits that it has alone.

    Raises
    ------
    ArgumentError, ShapeError : there are no `xs`, or their lengths differ.

    Examples
    --------
    >>> import dynamic as tw
    >>> tw.map(lambda x: x * x, tw.tensor([1.0, 2.0, 3.0]))
    tensor([1., 4., 9.])
    """
    require_functions("map", f=f)
    _refuse_less_than("map", "batch_size", batch_size, 1)
    rows = tensors(xs, "map: xs")
    nothing = TreeSpec(flatten(())[1], [])
    count = _length("map", rows[0], None)
    return run_scan("map", lambda _, x: ((), call("map", f, x)), f, nothing, [], rows, count, False)[1]


def run_scan(
    name: str, pair: Function, f: Function, form: TreeSpec, given: list[Any], xs: Any, count: Any, reverse: bool
) -> Any:
    """Carry values through the rows of `xs` with `pair`; its other results come back stacked.

    Parameters
    ----------
    pair, f : of what is carried and a row, returns both; and the user's function in it, for messages.
    form, given : of what is carried.
    xs : leaves and structure.
    """
    rows, xs_structure = xs
    n, out = len(given), list[TreeSpec]()

    def step(leaves: list[TensorBase], _: Body | None) -> Body:
        body = Body(leaves, next_number())
        carry, y = pair(unflatten(form.structure, leaves[:n]), unflatten(xs_structure, leaves[n:]))
        body.carried = carried_on(name, f, carry, form)
        body.stacked, y_structure = tensors(y, f"{name}: y")
        if out and out[0].fits(y_structure, body.stacked):
            return body
        y_form = TreeSpec(y_structure, body.stacked)
        if not out:
            out.append(y_form)
        elif not out[0].is_like(y_form):
            first, later = Said(f"{name}: y of {{}}", f), Said("y of {} in a later iteration", f)
            outputs(name, first, later, ("the first", "a later")).require_equal(out[0], y_form)
        return body

    carried, stacked, _ = run_loop(Request(name, step, given, rows, [], count, None, bool(reverse), None))
    return unflatten(form.structure, carried), unflatten(out[0].structure, stacked)


def _length(name: str, rows: list[TensorBase], length: Any) -> Any:
    for x in rows:
        if not len(x.shape):
            raise ShapeError(
                f"{name} got value with no leading axis to scan over: xs has a 0-d leaf; it goes through the first "
                "dimension of each"
            )
    if length is not None and not isinstance(length, Dim):
        try:
            length = as_index(length)
        except TypeError as error:
            raise ArgumentError(
                f"The `length` argument to `{name}` expects a concrete `int` value, got {shown(length)} "
                f"({type(length).__name__})"
            ) from error
    given = [x.shape[0] for x in rows]
    sizes = [*([] if length is None else [length]), *given]
    if not sizes:
        raise ArgumentError(f"{name}: without xs, length must be given")
    if any(not same(n, sizes[0]) and n != sizes[0] for n in sizes):
        if length is None:
            raise ShapeError(f"{name} got values with different leading axis sizes: {str(given)[1:-1]}.")
        raise ShapeError(f"{name} got `length` argument of {length} which disagrees with leading axis sizes {given}.")
    if sizes[0] < 0:
        raise ArgumentError(f"{name}: length is {sizes[0]}; it must not be negative")
    return sizes[0]


def _refuse_less_than(name: str, argument: str, number: Any, least: int) -> None:
    if isinstance(number, (Dim, TensorBase)):
        raise ArgumentError(
            f"The `{argument}` argument to `{name}` expects a concrete `int` or `bool` value, got {number!r}"
        )
    if number is not None and type(number) is not bool and (not isinstance(number, int) or number < least):
        raise ArgumentError(f"{name}: `{argument}` must be an int of at least {least}, got {number!r}")


def _is_size(x: Any) -> bool:
    if isinstance(x, (Dim, TensorBase)) or type(x) is bool:
        return isinstance(x, Dim)
    return hasattr(x, "__index__") and not getattr(x, "shape", ())
