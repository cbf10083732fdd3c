"""`static.function`: trace once per structure, plan once per size, then one native call.

A call's *signature* is what decides which trace serves it: the nesting of the arguments; per array its dtype,
number of dimensions and which sizes are 1; static values (bool, str, None and other hashables); the kind of each
number. Numbers are data. Sizes are not part of the signature: a trace has guards on them, and a new size that
fulfils the guards only makes a new plan.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from common import mode
from common import tensor as tensors
from common.dtypes import SUPPORTED
from common.errors import ArgumentError, DTypeError, GradientError, ShapeError, TraceError
from common.spec import Spec
from common.tensor import TensorBase
from common.tree import flatten, unflatten
from static.graph import Graph, Value
from static.interpreter import interpret
from static.passes import PassReport, run_passes
from static.trace import Trace
from static.tracer import Tracer
from static.verify import verify


class Traced:
    """One trace of a function, compiled.

    Attributes
    ----------
    trace : guards, captured inputs, assumptions.
    graph : after the passes; `raw` is before them.
    program : the compiled program, None when interpreted.
    """

    def __init__(self, owner: Function, leaves: list[Any], structure: Any) -> None:
        start = perf_counter()
        self.trace = trace = Trace(owner.__name__)
        self.positions = [i for i, x in enumerate(leaves) if _is_data(x)]
        with mode.activate_trace(trace):
            arguments = list(leaves)
            source = (owner.code.co_filename, owner.code.co_firstlineno, owner.code.co_name)
            for i in self.positions:
                x = leaves[i]
                if isinstance(x, (int, float)):
                    arguments[i] = trace.number_argument(i, x, source)
                else:
                    arguments[i] = Tracer(trace.argument(Spec(x.shape, x.dtype), source), trace)
            args, kwargs = unflatten(structure, arguments)
            result, self.out_structure = flatten(owner.target(*args, **kwargs))
            self.results = [x if not isinstance(x, TensorBase) else None for x in result]
            outputs = [trace.payload(x) for x in result if isinstance(x, TensorBase)]
        self.raw, self.grad_targets = trace.finish(outputs)
        self.cleared = [x for x, grad in trace.grads.values() if grad is None]
        self.returned = len(outputs)
        verify(self.raw, "tracing")
        self.seconds = {"trace": perf_counter() - start}
        start = perf_counter()
        self.graph, self.passes = run_passes(self.raw)
        self.seconds["passes"] = perf_counter() - start
        start = perf_counter()
        self.program = None if owner.options["interpret"] else _compile(self.graph, owner.options["fuse"])
        self.seconds["compile"] = perf_counter() - start
        self.fixed = dict(trace.fixed)
        self.plans: dict[Any, Any] = {}
        self.symbolic = [(p, i) for p, i in enumerate(self.positions) if not isinstance(leaves[i], (int, float))]

    def env(self, leaves: list[Any]) -> dict[Any, int]:
        """Values of the dimension atoms for the arrays of a call."""
        env: dict[Any, int] = {}
        for position, i in self.symbolic:
            for axis, n in enumerate(leaves[i].shape):
                env["in", position, axis] = n
        return env

    def holds(self, leaves: list[Any], env: Mapping[Any, int]) -> str | None:
        """Why this trace does not serve a call; None if it does."""
        for i, value in self.fixed.items():
            if leaves[i] != value or type(leaves[i]) is not type(value):
                return f"argument {i} is {leaves[i]}, the trace used it as the Python number {value}"
        for guard in self.trace.guards:
            if not guard.check(env):
                return f"sizes do not fulfil {guard}"
        return self.state_changed()

    def state_changed(self) -> str | None:
        """Why captured state does not fit the trace; None if it does."""
        for x, was_none in self.trace.assumed.values():
            if (x._grad is None) is not was_none:
                return f"the gradient of a tensor of shape {tuple(x.shape)} {'is set' if was_none else 'is None'} now"
        captured = self.raw.inputs[len(self.positions) :]
        for value, source in zip(captured, self.trace.captured, strict=True):
            array = source.array()
            if array.shape != value.shape or array.dtype != value.dtype:
                return f"captured state has become {array.dtype}{list(array.shape)}, it was {value.spec}"
        return None

    def run(self, plan: Any, arrays: list[Any], wrap: Callable[[np.ndarray], Any] | None) -> Any:
        """Run a plan on the arguments' arrays, then carry out what concerns Python objects."""
        outputs = plan(*arrays, *(source.array() for source in self.trace.captured))
        for x in self.cleared:
            x._grad = None
        returned = self.returned
        for x, array in zip(self.grad_targets, outputs[returned:]):
            x._grad = _state_tensor(array)
        if self.out_structure == "*" and returned == 1:
            return outputs[0] if wrap is None else wrap(outputs[0])
        values = iter(outputs[:returned] if wrap is None else map(wrap, outputs[:returned]))
        return unflatten(self.out_structure, [next(values) if x is None else x for x in self.results])


def _state_tensor(array: np.ndarray) -> TensorBase:
    if tensors.eager_class is not None:
        return tensors.eager_class(array)
    from common.leaf import Buffer

    return Buffer(array)


def _compile(graph: Graph, fuse: bool) -> Any:
    from static.compile import compile_graph

    return compile_graph(graph, fuse=fuse)


class _Interpreted:
    """A plan that runs the interpreter."""

    def __init__(self, graph: Graph, env: Mapping[Any, int]) -> None:
        self.graph, self.env = graph, env

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        return interpret(self.graph, [np.ascontiguousarray(x) if x.ndim else x for x in arrays], self.env)


def _is_data(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic, TensorBase)) or type(x) in (int, float)


class Function:
    """A function that runs as a compiled program; made by `function`.

    Attributes
    ----------
    traces : all traces so far, in order.
    retraces : why each later trace was made.
    """

    def __init__(self, target: Callable[..., Any], *, fuse: bool = True, interpret: bool = False) -> None:
        functools.update_wrapper(self, target)
        self.target = target
        self.code = getattr(target, "__code__", Function.__init__.__code__)
        self.options = {"fuse": fuse, "interpret": interpret}
        self.traces: list[Traced] = []
        self.retraces: list[str] = []
        self._by_signature: dict[Any, list[Traced]] = {}
        self._fast: dict[Any, tuple[Traced, Any]] = {}
        self._plans_made = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the arguments' present contents.

        Raises
        ------
        TraceError : the function asks a traced value for its elements.
        ArgumentError, DTypeError, ShapeError : an argument that no program can take.
        """
        if mode.tracing and mode.current_trace() is not None:
            return self.target(*args, **kwargs)
        if not kwargs:
            key = []
            for x in args:
                if type(x) is np.ndarray:
                    key.append(x.shape)
                    key.append(x.dtype)
                else:
                    break
            else:
                hit = self._fast.get(tuple(key))
                if hit is not None and (not hit[0].trace.assumed or hit[0].state_changed() is None):
                    return hit[0].run(hit[1], args, None)
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, structure = flatten((args, kwargs))
        wrap: Callable[[np.ndarray], Any] | None = None
        for i, x in enumerate(leaves):
            if isinstance(x, TensorBase):
                leaves[i] = self._array_of(x, i)
                wrap = wrap or type(x)
            elif isinstance(x, (np.generic, np.ndarray)):
                leaves[i] = _native_array(np.asarray(x), i)
        traced, env = self._find(leaves, structure)
        arrays = [leaves[i] for i in traced.positions]
        arrays = [x if isinstance(x, np.ndarray) else np.array(x) for x in arrays]
        size = tuple(sorted(env.items()))
        plan = traced.plans.get(size)
        if plan is None:
            program = traced.program
            plan = traced.plans[size] = _Interpreted(traced.graph, env) if program is None else program.plan(env)
            self._plans_made += 1
        if wrap is None and not kwargs and all(type(x) is np.ndarray for x in args):
            self._fast[tuple(part for x in args for part in (x.shape, x.dtype))] = (traced, plan)
        return traced.run(plan, arrays, wrap)

    def _array_of(self, x: TensorBase, position: int) -> np.ndarray:
        if isinstance(x, Tracer):
            raise x.describe_escape()
        if x.requires_grad and mode.is_grad_enabled():
            raise GradientError(
                f"argument {position} of {self.__name__} requires grad, but a compiled program returns values without "
                "history: differentiate inside it (backward(), grad, value_and_grad), or pass .detach()"
            )
        return x.data

    def _find(self, leaves: list[Any], structure: Any) -> tuple[Traced, dict[Any, int]]:
        """A trace that serves the call, made if there is none."""
        signature = (structure, tuple(_signature(x, i) for i, x in enumerate(leaves)))
        try:
            known = self._by_signature.setdefault(signature, [])
        except TypeError as error:
            raise ArgumentError(f"{self.__name__}: a static argument must be hashable: {error}") from None
        reasons = []
        for traced in reversed(known):
            env = traced.env(leaves)
            reason = traced.holds(leaves, env)
            if reason is None:
                return traced, env
            reasons.append(reason)
        if self.traces:
            self.retraces.append(reasons[0] if reasons else "the arguments' structure, dtypes, ranks or static values differ")
        traced = Traced(self, leaves, structure)
        known.append(traced)
        self.traces.append(traced)
        return traced, traced.env(leaves)

    @property
    def graph(self) -> Any:
        """The newest program as a networkx.DiGraph, see `static.graph.Graph.dag`."""
        return self._newest().graph.dag

    @property
    def source(self) -> str:
        """The generated Python source of the newest program."""
        program = self._newest().program
        return str(self._newest().graph) if program is None else program.source

    def _newest(self) -> Traced:
        if not self.traces:
            raise TraceError(f"{self.__name__} has not been traced yet: call it once")
        return self.traces[-1]

    def explain(self) -> Explanation:
        """What was traced, rewritten, fused and compiled, as data that prints well."""
        return Explanation(self)


class Explanation:
    """Facts about a `Function`.

    Attributes
    ----------
    function : the function.
    passes : reports of the newest trace's passes.
    guards, captures, groups, retraces : lines of text.
    seconds : phase -> seconds of the newest trace.
    """

    def __init__(self, function: Function) -> None:
        newest = function._newest()
        self.function = function
        self.passes: list[PassReport] = newest.passes
        self.guards = [str(guard) for guard in newest.trace.guards]
        self.guards += [f"argument {i} == {value!r}" for i, value in newest.fixed.items()]
        self.captures = [_describe_capture(source, value) for source, value in zip(
            newest.trace.captured, newest.raw.inputs[len(newest.positions) :], strict=True)]  # fmt: skip
        self.groups: list[str] = [] if newest.program is None else list(newest.program.explain_lines())
        self.retraces = list(function.retraces)
        self.seconds = dict(newest.seconds)
        self.plans = function._plans_made

    def __str__(self) -> str:
        lines = [f"{self.function.__name__}: {len(self.function.traces)} trace(s), {self.plans} plan(s)"]
        lines += [f"  {name}: {seconds * 1e3:.1f} ms" for name, seconds in self.seconds.items()]
        lines += [f"  pass {p.name}: {p.before} -> {p.after} nodes" for p in self.passes]
        for title in ("captures", "guards", "groups", "retraces"):
            entries = getattr(self, title)
            lines += [f"{title}:" if entries else f"{title}: none", *(f"  {entry}" for entry in entries)]
        return "\n".join(lines)

    __repr__ = __str__


def _describe_capture(source: Any, value: Value) -> str:
    name = getattr(source.owner, "name", None) or type(source.owner).__name__
    return f"{source.kind} {name} {value.spec}, first used at {value.node.source[0]}:{value.node.source[1]}"


def _native_array(x: np.ndarray, position: int) -> np.ndarray:
    """The array in native byte order; refused if its dtype has no ops."""
    if x.dtype not in SUPPORTED:
        native = x.dtype.newbyteorder("=")
        if native in SUPPORTED:
            return x.astype(native)
        raise DTypeError(
            f"argument {position} has dtype {x.dtype}; supported are {[d.name for d in SUPPORTED]}. Convert it first."
        )
    return x


def _signature(x: Any, position: int) -> Any:
    if isinstance(x, np.ndarray):
        return (x.dtype, tuple(n == 1 for n in x.shape))
    return type(x) if type(x) in (int, float) else ("static", type(x), x)


def function(target: Callable[..., Any] | None = None, *, fuse: bool = True, interpret: bool = False) -> Any:
    """Compile a function: traced once per structure of its arguments, then one native call per step.

    Parameters
    ----------
    target : the function; omitted when used as a decorator with options.
    fuse : merge ops into common loops; the bits do not depend on it.
    interpret : run the graph node by node with the eager kernels instead of compiling it.

    Examples
    --------
    >>> import numpy as np, static
    >>> @static.function
    ... def f(x):
    ...     return static.tanh(x) * 2
    >>> f(np.zeros(3, np.float32))
    array([0., 0., 0.], dtype=float32)
    """
    if target is None:
        return functools.partial(function, fuse=fuse, interpret=interpret)
    return Function(target, fuse=fuse, interpret=interpret)


__all__ = ["Explanation", "Function", "ShapeError", "function"]
