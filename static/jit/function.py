"""`static.function`: trace once per structure, plan once per size, then one native call.

A call's *signature* decides which traces may serve it: the nesting of the arguments; per array its dtype, number
of dimensions and which sizes are 1; the type of each number; static values (bool, str and other hashables).
Numbers are data. Sizes are not part of the signature: a trace has guards on them, and a new size that fulfils the
guards only makes a new plan. Calls whose sizes were seen before find their plan in one dictionary. The plan of the
last call is tried first when all arguments are plain arrays and numbers: the native call checks each of them anyway.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any

import numpy as np

from common.autograd.region_calls import regional
from common.compiler.compile import checked
from common.core import mode
from common.core.errors import ArgumentError, TraceError
from common.core.garbage import collecting_later
from common.core.int_arguments import callable_argument, members, shown
from common.core.pickling import MadeCallable
from common.core.python_numbers import check_range, is_foreign, taken
from common.core.tree import flatten
from common.runtime.run_text import BAD_ARGUMENT
from common.tensor.base import Tensor, TensorBase
from common.tensor.boundary import refuse
from common.tensor.observers import checking
from static.graph.regions import NeedsRoom
from static.graph.side_effects import Mismatch
from static.jit.branching import Branching
from static.jit.into import Into
from static.jit.shown import TraceReports
from static.jit.traced import CompiledTrace
from static.lowering.ir.options import CompileOptions
from static.passes import Pass
from static.running.plan import Plan
from static.running.python_calls import journal
from static.tracing.signature import PLAIN, difference, form, kind, native_array
from static.tracing.tracer import Tracer

_grad_enabled = mode.grad_mode.get

NAMES = ("interpret", "passes", "max_traces", "control_flow", "memory_budget", "donate_argnums")
"""Options of `function` besides the target and `CompileOptions`."""


class CompiledFunction(MadeCallable, TraceReports, Branching):
    """A function that runs as a compiled program; made by `function`.

    Attributes
    ----------
    traces : all traces so far, in order.
    retraces : why each trace after the first was made.
    plans_made : how many sizes have been planned.
    """

    __name__: str

    def __init__(
        self,
        target: Callable[..., Any],
        *,
        fuse: bool = True,
        compiler: str | None = None,
        share_memory: bool = True,
        interpret: bool = False,
        passes: Sequence[Pass] | None = None,
        max_traces: int = 64,
        control_flow: str | None = None,
        memory_budget: int | None = None,
        donate_argnums: int | Sequence[int] = (),
    ) -> None:
        self.look_like(target)
        self.__name__ = getattr(target, "__name__", type(target).__name__)
        code = getattr(target, "__code__", None)
        self.home = (code.co_filename, code.co_firstlineno, code.co_name) if code else ("<unknown>", 0, self.__name__)
        self.inlined = self.target = self.converted(target) if control_flow == "convert" else target
        self.options = CompileOptions(fuse, compiler, share_memory)
        self.interpret, self.max_traces, self.control_flow = interpret, max_traces, control_flow
        self.memory_budget, self.plans_made, self.donate_argnums = memory_budget, 0, _numbers(donate_argnums)
        self.passes: tuple[Pass, ...] | None = None if passes is None else tuple(passes)
        given = {**self.options._asdict(), **{name: getattr(self, name) for name in NAMES}}
        self._maker = "static", "function", (target,), given
        self.traces: list[CompiledTrace] = []
        self.retraces: list[str] = []
        self._by_signature: dict[Any, list[CompiledTrace]] = {}
        self._by_call: dict[Any, tuple[CompiledTrace, Any]] = {}
        self._last: tuple[CompiledTrace, Any] | None = None
        self._after: dict[Any, tuple[CompiledTrace, Any]] = {}
        self._fixed: list[int] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the arguments' present contents.

        Raises
        ------
        TraceError : the function asks a traced value for its elements.
        ArgumentError, DTypeError : an argument that no program can take.
        """
        if mode.tracing:
            if mode.current_trace() is not None:
                return self.inlined(*args, **kwargs)
            if mode.dual_level.get() is not None:  # tangents go from op to op
                return regional(self.inlined)(*args, **kwargs)
            if (profile := mode.profiling.get()) is not None:
                with profile.span(self.__name__, "compiled", args):
                    return self.general(args, kwargs)
            if checking.get():
                return self.general(args, kwargs)
            if mode.is_inference_mode_enabled():
                return self.general(args, kwargs)
        hit = None if kwargs else self._last
        while hit is not None:
            traced, plan = hit
            if traced.recording is not None and traced.recording is not _grad_enabled():
                break
            step = plan.step
            if step is None or traced.checked != mode.changes or traced.watches:
                step = self._step(traced, plan)
            result = step(*args)
            if type(result) is not int:
                return result if traced.plain else traced.deliver(result, (args, {}))
            try:
                plan.explain(result)
            except Mismatch as miss:
                other = self._after.get((traced, miss.decision, miss.bits))
                if other is None:
                    return self.general(args, kwargs, (hit, miss))
                hit = self._last = other
                continue
            break
        return self.general(args, kwargs)

    def _step(self, traced: CompiledTrace, plan: Any) -> Callable[..., Any]:
        """The plan as one native call, if its state is unchanged; else a function that refuses."""
        if traced.assumption_objection() is not None:  # the call itself looks at the forms of arrays
            return lambda *_: BAD_ARGUMENT
        if plan.call is None:
            plan.call = traced.bind(plan)
        plan.step = None if traced.watches else plan.call
        step: Callable[..., Any] = plan.call
        return step

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As an attribute of a class: a method, whose object is a static argument."""
        return self if instance is None else MethodType(self, instance)

    def general(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        missed: tuple[tuple[CompiledTrace, Any], Mismatch] | None = None,
        into: Into | None = None,
    ) -> Any:
        """Call the function whatever its arguments are; `into` writes its results."""
        try:
            return self._general(args, kwargs, missed, into)
        except Exception as error:
            refuse(error, self.target, self.__name__, *args, **kwargs)
            raise

    def _general(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        missed: tuple[tuple[CompiledTrace, Any], Mismatch] | None,
        into: Into | None,
    ) -> Any:
        leaves, structure = flatten((args, kwargs))
        is_plain, keeps, copied, differentiated = True, False, [], {}
        recording = mode.is_grad_enabled()
        for i, x in enumerate(leaves):
            if isinstance(x, TensorBase):
                if isinstance(x, Tracer):
                    raise x.describe_escape()
                if recording and x.requires_grad:
                    differentiated[i] = x
                leaves[i] = x.payload
                if type(x) is not Tensor or x._requires_grad:
                    is_plain, keeps = False, True
            elif isinstance(x, (np.generic, np.ndarray)) or is_foreign(x):
                leaves[i] = native_array(taken(x), i)
                if leaves[i] is not x:
                    copied.append(i)
            elif type(x) is int:
                check_range(x)
            is_plain = is_plain and type(leaves[i]) in PLAIN
        fixed = [repr(leaves[i]) for i in self._fixed if i < len(leaves)]
        # results that are written to arrays of the caller's have no history
        history = tuple(differentiated) if recording and (into is None or differentiated) else None
        key = (structure, history, *map(form, leaves), *fixed)
        try:
            hit = self._by_call.get(key) or self._switched(key)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{self.__name__}: a static argument must be hashable, == a bool: {error}") from None
        if hit is None or hit[0].outgrown(hit[1].env) or hit[0].state_objection() is not None:
            hit = self.prepare(leaves, structure, history)
            unseen = [i for i in hit[0].trace.fixed if i not in self._fixed]
            if unseen:  # from now on these numbers are part of the key
                self._fixed += unseen
                key = (*key, *(repr(leaves[i]) for i in unseen))
            self._keep(key, hit)
        if missed is not None:
            hit = self._other_path(*missed, key, leaves, (structure, history))
        while True:
            try:
                how = is_plain and not kwargs, keeps, copied, list(differentiated.values())
                return self._run(hit, (args, kwargs), leaves, how, into)
            except NeedsRoom as need:
                hit = self._with_more_room(hit[0], need, key, leaves)
            except Mismatch as miss:
                hit = self._other_path(hit, miss, key, leaves, (structure, history))

    def _switched(self, key: Any) -> tuple[CompiledTrace, Any] | None:
        """The trace that serves the call with recording switched the other way, if that makes no difference."""
        structure, history, *rest = key
        hit = None if history else self._by_call.get((structure, () if history is None else None, *rest))
        return hit if hit is not None and hit[0].recording is None else None

    def _run(
        self, hit: tuple[CompiledTrace, Any], call: Any, leaves: list[Any], how: tuple[Any, ...], into: Into | None
    ) -> Any:
        (traced, plan), (args, _) = hit, call
        direct, keeps, copied, wanted = how
        if mode.tracing and checking.get():
            plan = traced.watched(leaves)
        if any(i in traced.written_leaves for i in copied):
            raise ArgumentError(
                f"{self.__name__} writes to an argument that is not an array in native byte order: the "
                "write would be lost"
            )
        direct = direct and type(plan) is Plan and traced.op is None and not traced.trace.fixed
        arrays = [leaves[i] for i in traced.positions]
        if into is not None:
            return into.run(traced, plan, arrays, direct, call)
        if direct:
            self._last = hit
            if plan.call is None and not mode.tracing:  # a plan's first call is made like the later ones
                result = self._step(traced, plan)(*args)
                if type(result) is not int:
                    return result if traced.plain else traced.deliver(result, (args, {}))
                plan.explain(result, room=True)
        return traced.run(plan, arrays, keeps, wanted, call)

    def into(self, out: Any) -> Into:
        """Write the results to given arrays, instead of new ones at each call.

        Parameters
        ----------
        out : array, or arrays nested as the results are. They are contiguous and writeable, overlap no argument and no
            captured state, and keep their contents only until the next call; after an error these are undefined.

        Returns
        -------
        callable
            Takes the function's arguments and returns `out`. Make it once for many calls.

        Raises
        ------
        ArgumentError : something in `out` is no such array.

        Examples
        --------
        >>> import numpy as np, static
        >>> f = static.function(lambda x: (x * 2, x.sum()))
        >>> twice, total = np.empty(3), np.empty(())
        >>> f.into((twice, total))(np.array([1.0, 2.0, 3.0]))[0] is twice
        True
        >>> twice, total
        (array([2., 4., 6.]), array(6.))
        """
        return Into(self, out)

    @collecting_later()
    def prepare(self, leaves: list[Any], structure: Any, history: tuple[int, ...] | None) -> tuple[CompiledTrace, Any]:
        """A trace that serves the call, made if there is none, and its plan."""
        signature = (structure, history, *map(kind, leaves))
        known = self._by_signature.setdefault(signature, [])
        if not history:
            switched = self._by_signature.get((structure, () if history is None else None, *signature[2:]), ())
            known = [*(x for x in switched if x.recording is None), *known]
        reasons = []
        for traced in reversed(known):
            env = traced.env(leaves)
            reason = traced.objection(leaves, env)
            if reason is None:
                break
            reasons.append(reason)
        else:
            served = [known for known, traces in self._by_signature.copy().items() if traces]
            traced = self._trace(
                signature, leaves, (structure, history), reasons[0] if reasons else difference(signature, served)
            )
            env = traced.env(leaves)
        return traced, self._plan(traced, env)

    def _trace(self, signature: Any, leaves: list[Any], call: tuple[Any, Any], reason: str) -> CompiledTrace:
        """A new trace."""
        if self.traces:
            self._check_budget(reason)
            self.retraces.append(reason)
        try:
            traced = CompiledTrace(self, leaves, *call)
        except BaseException:
            journal.end()  # the call is not repeated after all
            raise
        self._by_signature[signature].append(traced)
        self.traces.append(traced)
        return traced

    def _plan(self, traced: CompiledTrace, env: Mapping[Any, int]) -> Any:
        self.plans_made += 1
        return traced.plan(env)

    def _check_budget(self, reason: str) -> None:
        if len(self.traces) < self.max_traces:
            return
        raise TraceError(
            f"{self.__name__} has been traced {len(self.traces)} times, its max_traces, and this call needs another "
            f"trace: {reason}. Each trace is compiled: pass what varies as an array or as a number that is only "
            f"computed with, or allow more with function(max_traces=...); explain().retraces lists the reasons so far"
        )


def function(
    target: Callable[..., Any] | None = None,
    *,
    fuse: bool = True,
    compiler: str | None = None,
    share_memory: bool = True,
    interpret: bool = False,
    passes: Sequence[Callable[..., Any]] | None = None,
    max_traces: int = 64,
    control_flow: str | None = None,
    memory_budget: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Compile a function: traced once per structure of its arguments, then one native call per step.

    Parameters
    ----------
    target : the function; omitted when used as a decorator with options.
    fuse : merge ops into common loops; the bits do not depend on it.
    compiler : of the kernels: "llvm", this project's own translation, or "numba", whose front end and optimiser take
        longer; the bits are the same. None takes that of the environment variable TWINGRAD_COMPILER, "llvm" if unset.
        See docs/compilers.md for when to choose which.
    share_memory : let values that do not live at the same time lie in the same memory; False shows what that buys.
    interpret : run the graph node by node with the eager kernels instead of compiling it.
    passes : rewrites of the graph, in order; `static.passes.PIPELINE` by default. A pass that is not part of that is
        checked on the arguments of each call that is traced: it must change no bit.
    max_traces : how often the function may be traced before a call that needs another trace is refused.
    control_flow : what happens where Python asks a traced value for its elements, as in ``if x.sum() > 0``. None
        refuses; "guard" traces the path that the call takes, others when they first occur; "convert" rewrites `if`,
        `while` and `for` from source to `cond` and loops. See docs/control.md.
    memory_budget : bytes for the temporaries of a call (`explain().arena_bytes`), for the sizes of the call that is
        traced, in one thread. Where they would take more, what is needed much later is computed again there, the
        cheapest first (`explain().recomputed`). Of a call on tensors that need gradients: bytes kept for the backward
        pass, besides arguments, parameters and results. None keeps what costs more than to load it.
    donate_argnums : numbers of positional arguments whose arrays the caller does not need any more. A result of the
        same shape and dtype is written over each of them, unless the call raises, and has that memory; read-only
        arrays are left alone, and so are parameters and tensors that require grad. `explain().donations` says what
        was used.

    Raises
    ------
    ArgumentError : the target is not callable, an option is out of range; in a call: the budget cannot be kept to.

    Examples
    --------
    >>> import numpy as np, static
    >>> @static.function
    ... def f(x):
    ...     return static.tanh(x) * 2
    >>> f(np.zeros(3, np.float32))
    tensor([0., 0., 0.])
    """
    options: dict[str, Any] = {"fuse": fuse, "compiler": checked(compiler, "function()"), "interpret": interpret}
    options |= {"passes": passes, "max_traces": max_traces, "control_flow": control_flow}
    options |= {"memory_budget": memory_budget, "donate_argnums": donate_argnums, "share_memory": bool(share_memory)}
    if target is None:
        return functools.partial(function, **options)
    callable_argument(target, "function", "target")
    if max_traces < 1 or not all(map(callable, passes or ())):
        raise ArgumentError("function(): max_traces is at least 1, and passes are functions from a Graph to a Graph")
    if control_flow not in (None, "guard", "convert"):
        raise ArgumentError(f'function(): control_flow is None, "guard" or "convert", not {control_flow!r}')
    if not all(isinstance(n, int) and n >= 0 for n in _numbers(donate_argnums)):
        raise ArgumentError(
            f"function(): donate_argnums are numbers of positional arguments, not {shown(donate_argnums)}"
        )
    return CompiledFunction(target, **options)


def _numbers(given: Any) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(members(given, "function", "donate_argnums"))
