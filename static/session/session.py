"""Sessions: values of a graph's variables, and runs of its operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from common.compiler.compile import checked
from common.core import mode
from common.core.bounded import put_within
from common.core.errors import ArgumentError, SessionError
from common.core.pickling import Bound
from common.core.switching import Change, Switched, Switching
from common.core.tree import flatten
from common.random.generator import default_generator
from common.tensor.observers import checking, observed
from static.lowering.ir.options import CompileOptions
from static.session.compiled_cut import Compiled
from static.session.cut import Cut, describe
from static.session.defaults import default_session, get_default_graph
from static.session.feeds import feed
from static.session.graph_tensor import GraphTensor, Operation
from static.session.repeated_call import REFUSED, RepeatedCall, SessionCallable
from static.session.run_program import RunProgram, replayed
from static.session.session_graph import Graph
from static.tools.replay import TracedCall

KEPT_CALLS = 256


class VariableSlot:
    """The value that a session has of a variable.

    Attributes
    ----------
    payload : the array; written in place.
    ready : whether it has been given a value.
    """

    __slots__ = ("payload", "ready")

    def __init__(self, payload: np.ndarray, ready: bool) -> None:
        self.payload, self.ready = payload, ready


class Prepared(NamedTuple):
    """A run that can be carried out.

    Attributes
    ----------
    feeds, others : the arrays of the program's inputs; states and constants, as `Session.owners` gives them.
    wanted, structure : what is fetched, and how it is nested.
    """

    compiled: Compiled
    feeds: list[np.ndarray]
    others: list[Any]
    wanted: list[GraphTensor | Operation]
    structure: Any


class Session(Bound, Switching):
    """Values of a graph's variables, and what runs its operations.

    As a context manager it is the default session, and its graph the default graph; the end of the block closes it.

    Parameters
    ----------
    graph : the default graph if None.
    fuse : as for `function`: merge operations into common loops; the bits do not depend on it.
    compiler : of the kernels, "llvm" or "numba", as for `function`; the same bits.
    interpret : run operations one by one instead of compiling them; the same bits.

    Attributes
    ----------
    graph : its graph.
    version : that of the graph for which the calls that it knows hold; -1 if it is closed.

    Examples
    --------
    >>> import static as tw
    >>> with tw.Graph().as_default():
    ...     w = tw.Variable([1.0, 2.0], name="w")
    ...     x = tw.placeholder(tw.float32, [2], name="x")
    ...     y = (w * x).sum()
    ...     with tw.Session() as session:
    ...         session.run(tw.global_variables_initializer())
    ...         session.run({"y": y, "w": w}, {x: [3.0, 4.0]})
    {'y': array(11., dtype=float32), 'w': array([1., 2.], dtype=float32)}
    """

    _instead = "make one of the graph on the other side, and take the variables' values there with a Saver"

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        fuse: bool = True,
        interpret: bool = False,
        compiler: str | None = None,
    ) -> None:
        self.graph = get_default_graph() if graph is None else graph
        self._fuse, self._interpret, self._compiler = fuse, interpret, checked(compiler, "Session()")
        self._slots: dict[int, tuple[Any, VariableSlot]] = {}
        self._calls: dict[Any, RepeatedCall] = {}
        self.version = self.graph.version
        self._closed = False
        seed = default_generator.initial_seed() if self.graph.seed is None else self.graph.seed
        key = np.array((int(seed) + 2**63) % 2**64 - 2**63, np.int64)
        for state, value in ((default_generator.key, key), (default_generator.offset, np.array(0, np.int64))):
            self._slots[id(state)] = state, VariableSlot(value, True)

    # ------------------------------------------------------------------ running

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Compute `fetches`.

        Operations run in the order in which they were made; nothing that is not needed is run. If something fails, no
        variable has changed.

        Parameters
        ----------
        fetches : a tensor, variable or operation, its name, or nested lists, tuples, named tuples and dicts of them.
        feed_dict : tensor, or its name -> array, number or list to take its place. Any tensor can be fed.

        Returns
        -------
        Arrays nested as `fetches`; None for an operation.

        Raises
        ------
        SessionError : the session is closed, a placeholder is not fed, or a variable is not initialised.
        ShapeError, DTypeError : what is fed does not fit its tensor.
        GraphError : something belongs to another graph. MissingNameError : a name that nothing has.
        ArgumentError : something that is no tensor, operation or name.
        """
        if mode.tracing and observed():
            return self.newly(fetches, feed_dict or {})[1]
        try:
            kind = type(fetches)
            key: Any = (kind, *fetches) if kind is list or kind is tuple else fetches
            call = self._calls.get((key, *feed_dict) if feed_dict else key)
        except TypeError:  # nested fetches: the general way looks into them
            call = None
        if call is not None and self.version == self.graph.version:
            result = call.attempt(feed_dict.values() if feed_dict else ())
            if result is not REFUSED:
                return result
        call, result = self.newly(fetches, feed_dict or {})
        if call is not None:
            self._remember(fetches, feed_dict, call)
        return result

    def newly(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> tuple[RepeatedCall | None, Any]:
        """The fetched values, and a repeated call for the next time; None where it is interpreted or watched."""
        profile = mode.profiling.get() if mode.tracing else None
        with nullcontext() if profile is None else profile.span("Session.run", "compiled"):
            run = self._prepare(fetches, feed_dict)
            compiled, wanted = run.compiled, run.wanted
            watched = bool(mode.tracing) and checking.get()
            arrays = [x if isinstance(x, np.ndarray) else x.payload for x in run.others]
            plan, outputs = compiled.run(run.feeds, arrays, watched)
            for state in compiled.cut.written:
                if self.owns(state):
                    self.slot(state).ready = True
            positions = {value.key: i for i, value in enumerate(compiled.cut.outputs)}
            places = [positions[x.payload.key] if isinstance(x, GraphTensor) else None for x in wanted]
            call = RepeatedCall(self, compiled, plan, places, run.structure)
            result = call.finish(outputs[0] if call.is_one else outputs)
            return None if self._interpret or watched else call, result

    def _prepare(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> Prepared:
        """Everything that a run needs.

        Raises
        ------
        As `run`.
        """
        self._refuse_closed()
        if self.version != self.graph.version:
            self.version = self.graph.version
            self._calls = {}
        try:
            leaves, structure = flatten(fetches)
        except RecursionError:
            raise ArgumentError("the fetches contain themselves") from None
        if fetches is None:
            raise ArgumentError("None is no tensor and no operation of a graph, and no name of one")
        wanted = [self.graph.as_graph_element(x) for x in leaves]
        fed = [self._feedable(x) for x in feed_dict]
        key = (tuple(wanted), tuple(fed), self._fuse, self._interpret, self._compiler)
        compiled = self.graph.compiled.get(key)
        if compiled is None:
            cut = Cut(self.graph, wanted, fed)
            compiled = self.graph.compiled[key] = Compiled(
                cut, CompileOptions(self._fuse, self._compiler), self._interpret
            )
        arrays = [feed(x, value) for x, value in zip(fed, feed_dict.values(), strict=True)]
        self._refuse_uninitialised(compiled.cut)
        return Prepared(compiled, arrays, self.owners(compiled.cut), wanted, structure)

    def program(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> RunProgram:
        """The compiled program of a run, which is not carried out, to look at.

        Returns
        -------
        RunProgram
            ``explain()``, ``dump(folder)``, ``source``, ``graph`` and ``picture``, as of a `function`.

        Examples
        --------
        >>> import static as tw
        >>> with tw.Graph().as_default(), tw.Session() as session:
        ...     x = tw.placeholder(tw.float32, [None], name="x")
        ...     program = session.program((x * 2.0 + 1.0).sum(), {x: [1.0, 2.0]})
        >>> [kernel.ops for kernel in program.explain().kernels]
        [('mul', 'add', 'sum')]
        """
        run = self._prepare(fetches, feed_dict or {})
        return RunProgram(run.compiled, *run.compiled.planned(tuple(x.shape for x in run.feeds))[:2])

    def replayed(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> TracedCall:
        """A run for tools that run it op by op, such as `static.debug`."""
        run = self._prepare(fetches, feed_dict or {})
        return replayed(run.compiled, run.feeds, run.others)

    def _remember(self, fetches: Any, feed_dict: Mapping[Any, Any] | None, call: RepeatedCall) -> None:
        key: Any = (type(fetches), *fetches) if type(fetches) in (list, tuple) else fetches
        try:
            put_within(self._calls, (key, *feed_dict) if feed_dict else key, call, KEPT_CALLS)
        except TypeError:  # a key without a hash
            return

    def _feedable(self, x: Any) -> GraphTensor:
        found = self.graph.as_graph_element(x)
        if not isinstance(found, GraphTensor):
            raise ArgumentError(f"{found!r} cannot be fed: only tensors have values")
        return found

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] = ()) -> SessionCallable:
        """A function of the values of `feed_list`, in this order, that returns what ``run(fetches, ...)`` does."""
        return SessionCallable(self, fetches, [self._feedable(x) for x in feed_list])

    # ------------------------------------------------------------------ state

    def owns(self, state: Any) -> bool:
        """Whether a state has a value of this session's own: variables, and the default generator."""
        return isinstance(state, GraphTensor) or id(state) in self._slots

    def slot(self, state: Any) -> VariableSlot:
        """The value of a state that belongs to this session."""
        if id(state) not in self._slots:
            self._slots[id(state)] = state, VariableSlot(np.zeros(state.shape, state.dtype), False)
        return self._slots[id(state)][1]

    def owners(self, cut: Cut) -> list[Any]:
        """Owners of the inputs behind the feeds: arrays that stay the same objects, and tensors with own memory."""
        trace = self.graph.trace
        states = [self.slot(x).payload if self.owns(x) else x for x in cut.states]
        return [*states, *(trace.roles[node.id].of for node in cut.constants)]

    def _refuse_uninitialised(self, cut: Cut) -> None:
        missing = [x for x in cut.read if self.owns(x) and not self.slot(x).ready]
        if missing:
            names = ", ".join(map(describe, missing[:5]))
            raise SessionError(
                f"attempting to use uninitialized value {names}: run global_variables_initializer() first, or restore "
                "them"
            )

    def values(self, variables: Sequence[Any]) -> list[np.ndarray]:
        """Copies of the values of variables.

        Raises
        ------
        SessionError : one is not initialised.
        """
        return [np.array(x) for x in self.run(list(variables))] if variables else []

    def load(self, values: Mapping[Any, Any]) -> None:
        """Give variables values, by variable; nothing is changed if one does not fit.

        Raises
        ------
        ShapeError, DTypeError : a value does not fit its variable.
        """
        self._refuse_closed()
        arrays = {self.graph.as_graph_element(x): feed(x, value) for x, value in values.items()}
        for x, array in arrays.items():
            slot = self.slot(x)
            np.copyto(slot.payload, array)
            slot.ready = True

    # ------------------------------------------------------------------ life

    def _refuse_closed(self) -> None:
        if self._closed:
            raise SessionError("attempted to use a closed Session: make another one")

    def close(self) -> None:
        """Forget all values; a closed session runs nothing."""
        self._closed, self.version = True, -1
        self._calls, self._slots = {}, {}

    def as_default(self) -> Any:
        """Context manager: `eval` and `Operation.run` use this session."""
        return default_session(self)

    def _default(self) -> Change:
        """The session and its graph are the default ones."""
        self._refuse_closed()
        blocks: Any = self.graph.as_default(), self.as_default()
        graph, session = (block._change() for block in blocks)
        return Change((*graph.on, *session.on), (*session.off, *graph.off), self)

    def _change(self) -> Change:
        change = self._default()
        return change._replace(off=(*change.off, self.close))


class InteractiveSession(Session):
    """A session that is the default one from its construction until it is closed.

    Examples
    --------
    >>> import static as tw
    >>> session = tw.InteractiveSession(tw.Graph())
    >>> (tw.constant([1.0, 2.0]) * 2.0).eval()
    array([2., 4.], dtype=float32)
    >>> session.close()
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        fuse: bool = True,
        interpret: bool = False,
        compiler: str | None = None,
    ) -> None:
        super().__init__(graph, fuse=fuse, interpret=interpret, compiler=compiler)
        self._block: Switched | None = Switched(self._default)
        self._block.__enter__()

    def close(self) -> None:
        """Forget all values, and end being the default session."""
        super().close()
        block, self._block = self._block, None
        if block is not None:
            block.__exit__(None, None, None)


def set_random_seed(seed: int) -> None:
    """The seed of random numbers in sessions of the default graph that are made from here on."""
    get_default_graph().seed = int(seed)
