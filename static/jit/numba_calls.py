"""Compiled functions for the user's own numba code.

numba has no derivatives; this gives it those of compiled functions. `njit` makes a numba function of a program: arrays
in, arrays out, all of it machine code. The program runs by its table (`common.runtime.unlocked`), in memory that the
call allocates, so any number of threads may be in it, with or without Python's lock.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, ShapeError
from common.core.tree import LEAF, Structure, flatten
from common.runtime.argument_checks import ARRAY, FLOAT, ArgumentCheck
from common.runtime.builtins import is_native
from common.runtime.unlocked import FreeProgram
from common.tensor.arrays import concrete
from common.tensor.base import TensorBase
from static.graph.regions import NeedsRoom
from static.graph.side_effects import Mismatch
from static.jit.function import CompiledFunction, function
from static.jit.traced import CompiledTrace
from static.tracing.signature import native_array

_kept: list[Any] = []
"""Objects that the user's machine code was compiled against; numba does not tell when that ends."""


def njit(target: Callable[..., Any], *examples: Any) -> Any:
    """Make a function that code compiled by `numba.njit` can call.

    Parameters
    ----------
    target : what `function` takes or has made; also `grad(f)`, `value_and_grad(f)`, ....
    *examples : arrays and numbers like those of later calls, or tuples of them. Shapes, dtypes and the types of numbers
        are those of the examples for good; their contents do not matter.

    Returns
    -------
    numba function
        Called with arrays of any layout, from compiled code (also in ``prange`` or with ``nogil=True``) or from Python,
        it returns new arrays, or tuples of them, with the bits of ``target(*arguments)``.

    Raises
    ------
    ArgumentError : the function writes to state, arguments or gradients, draws random numbers, or returns or takes what
        numba code cannot: lists, dicts, text.

    Notes
    -----
    A call raises ShapeError for other sizes, and what the function's ops raise, without the user's line; other types
    are refused by numba when it compiles the caller. State is read by reference, as at every call of a compiled
    function, but must stay the same array: `p.data = x` ends the function's use, ``p.copy_(x)`` does not. Nothing else
    of Python is looked at again, so a module keeps the mode that it was in. Code that has been compiled against the
    function keeps it alive until the process ends; numba does not store such code on disk (``cache=True``).

    Examples
    --------
    Newton's method in numba, with a gradient and a second derivative that numba does not have:

    >>> import numba, numpy as np, static
    >>> def f(x):
    ...     return (static.exp(x) - 2 * x).sum()
    >>> x = np.zeros(3)
    >>> slope = static.njit(static.grad(f), x)
    >>> curvature = static.njit(static.grad(lambda x: static.grad(f)(x).sum()), x)
    >>> @numba.njit
    ... def newton(x, steps):
    ...     for _ in range(steps):
    ...         x = x - slope(x) / curvature(x)
    ...     return x
    >>> newton(x, 6)
    array([0.69314718, 0.69314718, 0.69314718])
    """
    compiled = target if isinstance(target, CompiledFunction) else function(target)
    traced, plan = _specialise(compiled, examples)
    _check(compiled, traced)
    if not is_native("run"):
        raise ArgumentError("njit() needs this interpreter's arrays in a known layout, which it does not find here")
    state, plan = [source.owner for _, source in traced.captured], plan.alone()
    program = plan.free(state)
    outputs = plan.arguments[len(traced.positions) + len(state) :]
    failures = [(first, last, _worded(compiled, error)) for first, last, error in plan.failures()]
    failures += [(-1 - i, -1 - i, _replaced(compiled, i)) for i in range(len(traced.positions), len(plan.arguments))]
    source, scope = _wrapper(compiled, traced, plan.arguments[: len(traced.positions)], outputs, program, failures)
    _kept.append((program, plan, state))
    exec(compile(source, f"<njit {compiled.__name__}>", "exec"), scope)
    import numba

    return numba.njit(nogil=True)(scope[_identifier(compiled.__name__)])


def _specialise(compiled: CompiledFunction, examples: tuple[Any, ...]) -> tuple[CompiledTrace, Any]:
    """The trace and the plan for calls with arrays and numbers like the examples."""
    leaves, structure = flatten((examples, {}))
    for i, x in enumerate(leaves):
        if isinstance(x, TensorBase):
            leaves[i] = x = concrete(x)
        if not isinstance(x, (np.generic, np.ndarray)) and type(x) not in (int, float):
            what = f"argument {i} is a {type(x).__name__}, not an array or a number"
            raise ArgumentError(f"njit(): {compiled.__name__}: {what}")
        leaves[i] = native_array(np.asarray(x), i) if isinstance(x, (np.generic, np.ndarray)) else x
    return compiled.prepare(leaves, structure, None)


def _check(compiled: CompiledFunction, traced: CompiledTrace) -> None:
    """Refuse what cannot be done without Python."""
    name = compiled.__name__
    if not traced.compiled:
        raise ArgumentError(f"njit(): {name} is interpreted, there is no machine code to call")
    if traced.grad_targets or traced.cleared or any(source.kind == "grad" for _, source in traced.captured):
        raise ArgumentError(f"njit(): {name} reads or sets `.grad`; return gradients instead, see grad, value_and_grad")
    if traced.writes or traced.written_leaves:
        what = "an argument" if traced.written_leaves else "state (random numbers advance their generator's)"
        raise ArgumentError(f"njit(): {name} writes to {what}; take it as an argument and return what it becomes")
    if traced.trace.fixed:
        raise ArgumentError(f"njit(): {name} uses argument {min(traced.trace.fixed)} as a Python number: fix it first")
    if not traced.returned:
        raise ArgumentError(f"njit(): {name} returns no array")


def _worded(compiled: CompiledFunction, error: Exception) -> Exception:
    """An exception as compiled code can raise it: class and text."""
    if isinstance(error, NeedsRoom):
        return ArgumentError(
            f"{compiled.__name__}: a loop runs more often than there is room for; make the function anew after a call "
            "from Python that runs as often"
        )
    if isinstance(error, Mismatch):
        return ArgumentError(f"{compiled.__name__}: Python would decide otherwise here than for the examples")
    return type(error)(str(error.args[0]))


def _replaced(compiled: CompiledFunction, position: int) -> Exception:
    return ArgumentError(
        f"{compiled.__name__}: captured state has become another array since njit(); write to it in place, or make the "
        f"function anew (input {position})"
    )


def _wrapper(
    compiled: CompiledFunction,
    traced: CompiledTrace,
    inputs: Sequence[ArgumentCheck],
    outputs: Sequence[ArgumentCheck],
    program: FreeProgram,
    failures: Sequence[tuple[int, int, Exception]],
) -> tuple[str, dict[str, Any]]:
    """The text of a numba function that runs the program, and the names that it uses."""
    name = _identifier(compiled.__name__)
    structure = traced.structure[1][0]
    names = _parameters(compiled.target, len(structure[1]))
    leaves = [x for part, x in zip(structure[1], names, strict=True) for x in _paths(compiled, part, x)]
    scope: dict[str, Any] = {"_empty": np.empty, "_uint8": np.uint8, "_run": _runner(program)}
    lines = [f"def {name}({', '.join(names)}):"]
    for i, (path, argument) in enumerate(zip(leaves, inputs, strict=True)):
        scope[f"_accept{i}"] = _acceptor(f"{compiled.__name__}: argument {path}", argument)
        lines.append(f"    _in{i} = _accept{i}({path})")
    for i, argument in enumerate(outputs):
        scope[f"_dtype{i}"] = argument.dtype
        lines.append(f"    _out{i} = _empty({argument.shape!r}, _dtype{i})")
    given = [*(f"_in{i}" for i in range(len(inputs))), *(f"_out{i}" for i in range(len(outputs)))]
    lines.append(f"    _memory = _empty({program.nbytes}, _uint8)")
    lines.append(f"    _code = _run(({', '.join(given)},), _memory)")
    lines.append("    if _code != 0:")
    for first, last, error in failures:
        scope[type(error).__name__] = type(error)
        lines += [
            f"        if {first} <= _code <= {last}:",
            f"            raise {type(error).__name__}({str(error)!r})",
        ]
    lines.append("        raise SystemError('a program ended in an unknown way')")
    values = iter(f"_out{k}" for k in traced.places)
    results = iter([next(values) if x is None else repr(x) for x in traced.results])
    lines.append(f"    return {_returned(compiled, traced.out_structure, results)}")
    return "\n".join(lines) + "\n", scope


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "compiled"


def _parameters(target: Callable[..., Any], count: int) -> list[str]:
    """Names for the arguments: the user's where there are such."""
    try:
        found = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        found = ()  # type: ignore[assignment]
    names = [x.name for x in found if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)][:count]
    return names if len(names) == count else [f"x{i}" for i in range(count)]


def _paths(compiled: CompiledFunction, structure: Structure, name: str) -> Iterator[str]:
    """The expressions of the leaves of an argument."""
    if structure == LEAF:
        yield name
    elif structure is not None and structure[0] is tuple:
        for i, part in enumerate(structure[1]):
            yield from _paths(compiled, part, f"{name}[{i}]")
    else:
        raise ArgumentError(f"njit(): {compiled.__name__} takes arrays, numbers and tuples of them, not {structure}")


def _returned(compiled: CompiledFunction, structure: Structure, results: Iterator[str]) -> str:
    """The expression of a result."""
    if structure is None:
        return "None"
    if structure == LEAF:
        return next(results)
    if structure[0] is not tuple:
        raise ArgumentError(f"njit(): {compiled.__name__} returns a {structure[0].__name__}; only tuples are possible")
    return f"({''.join(f'{_returned(compiled, part, results)}, ' for part in structure[1])})"


def _acceptor(what: str, argument: ArgumentCheck) -> Callable[..., Any]:
    """A function for numba code that returns an argument as the program takes it; refuses what does not fit."""
    from numba import types
    from numba.core.errors import TypingError
    from numba.extending import overload
    from numba.np.numpy_support import from_dtype

    shape, own, dtype = argument.shape, argument.dtype, from_dtype(argument.dtype)
    text = f"{what} must have shape {shape}, as in the example"

    def accept(x: Any) -> Any:
        return x

    def typed(x: Any) -> Any:
        if argument.kind != ARRAY:
            wanted = types.Float if argument.kind == FLOAT else types.Integer
            if not isinstance(x, wanted):
                raise TypingError(f"{what} must be a {'float' if wanted is types.Float else 'int'}, not {x}")
            return (lambda x: np.float64(x)) if wanted is types.Float else (lambda x: np.int64(x))
        if x == dtype and not shape:

            def hold(x: Any) -> Any:
                array = np.empty((), own)
                array[()] = x
                return array

            return hold
        if not isinstance(x, types.Array) or x.dtype != dtype or x.ndim != len(shape):
            raise TypingError(f"{what} must be an array of {dtype} with {len(shape)} dimensions, not {x}")
        if x.layout == "C" and x.aligned:

            def take(x: Any) -> Any:
                if x.shape != shape:
                    raise ShapeError(text)
                return x

            return take

        def copy(x: Any) -> Any:
            if x.shape != shape:
                raise ShapeError(text)
            return x.copy()

        return copy

    overload(accept, strict=False)(typed)
    return accept


def _runner(program: FreeProgram) -> Callable[..., Any]:
    """A function for numba code that runs a program on a tuple of arrays and numbers, in the given memory."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    word, byte = ir.IntType(64), ir.IntType(8)

    def run(typing_context: Any, given: Any, memory: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = list(signature.args[0])
            words = cgutils.alloca_once(builder, ir.ArrayType(word, len(kinds)))
            for i, kind in enumerate(kinds):
                value = builder.extract_value(arguments[0], i)
                if isinstance(kind, types.Array):
                    value = builder.ptrtoint(context.make_array(kind)(context, builder, value).data, word)
                elif isinstance(kind, types.Float):
                    value = builder.bitcast(value, word)
                builder.store(value, cgutils.gep_inbounds(builder, words, 0, i))
            block = context.make_array(signature.args[1])(context, builder, arguments[1])
            kind = ir.FunctionType(word, [byte.as_pointer()] * 3)
            table, address = (
                context.add_dynamic_addr(builder, x, info="a Twingrad program")  # numba does not store it on disk then
                for x in (program.table.ctypes.data, program.address)
            )
            call = builder.bitcast(address, kind.as_pointer())
            return builder.call(call, [table, builder.bitcast(words, byte.as_pointer()), block.data])

        return types.int64(given, memory), generate

    made: Callable[..., Any] = intrinsic(run)
    return made
