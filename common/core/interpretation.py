"""The protocol that every interpreter of recorded calls follows, written in one place.

A call ``op(*operands, **attrs)`` means what its operands make of it (`common.core.dispatch`). Where these are stand-ins
for arrays, their *interpretation* writes the call down, or follows it as far as it needs to:

===========================================  ==========================================================
implementation                               what becomes of a call
===========================================  ==========================================================
`common.evaluate.kinds`                      runs at once: the eager engine, on arrays
`static.tracing.trace.Trace`                 a node of a graph, which is compiled
`static.session.recording.GraphTrace`        a node of the graph of a session, which runs in part
`common.control.shape_trace.AbstractTrace`   shapes and dtypes of its results: a branch that is not taken
`common.evaluate.straight_line`              a line of a gradient rule for operands of some shapes
`common.transforms.batching`                 one call outside, for all examples of a batch (`vmap`)
`common.optim.fused_step`                    a line of the kernel of an optimiser's update
`dynamic.eager.views`                        which op a method calls, and with which attributes
`dynamic.eager.remembered`                   a line of the ops that a public function comes to
===========================================  ==========================================================

An *open trace* does more: while it is open, everything else that a program does to tensors goes through it too, such as
writes, gradients and questions about elements. It is what `common.core.mode.current_trace` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from common.core.spec import Spec


class Interpreter(Protocol):
    """A way to run an op on operands of some class, see `common.core.dispatch`."""

    def __call__(self, op: Any, operands: Sequence[Any], attrs: Mapping[str, Any], /) -> Any:
        """Run, or record, an op; the result is one, or a tuple for an op with several."""


class Interpretation(Protocol):
    """An interpreter that follows the calls of a program on stand-ins for arrays."""

    def record(self, op: Any, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The stand-in for the result of a call; a tuple of them for an op with several results."""


class OpenTrace(Interpretation, Protocol):
    """An interpretation of everything that a program does to tensors, while it is open.

    Attributes
    ----------
    name : of what is traced, for messages.
    replays : whether calls repeat what Python has done; see `common.core.mode.replayed`.
    origin : the tape's node whose gradient rule is running, or None.
    scope : where the program is: modules and composites, outermost first.
    hooks : how many hooks of tensors, nodes and modules have run.
    differentiates : whether there has been a backward pass, which looks for hooks of tensors.
    families : id of a tensor from outside -> its views in this trace.
    decide : answers Python's questions about elements; None refuses them.
    draw : ``draw(generator, name, shape, dtype)``, where random numbers are not drawn as by any other program; or None.
    drawn_by : ``drawn_by(parameters, into)``, asked before random numbers are drawn for parameters that are tensors,
        or to be written into a tensor; or None.
    note_node : ``note_node(node, operands, results)``, told of nodes of the tape whose results no recorded ops
        gave, such as that of a user's Function; or None.
    map_function : ``map_function(function, args, kwargs)``, the results of a user's Function by its own rule for
        batches; or None.
    shortly : ``shortly(op, operands, attrs)``, stand-ins for the operands and for the result of an op, where that takes
        no more; it gives None where operands have to be looked at; or None.
    pulled : ``pulled(node, g, needs)``, what a node contributes to its operands, in their shapes and dtypes; it gives
        None where the rules are to be run op by op; or None.
    outside : context of what runs around this trace, which ``holds(payload)`` only what belongs to it; None where
        everything belongs to the trace.
    """

    name: str
    replays: bool
    origin: Any
    scope: list[str]
    hooks: int
    differentiates: bool = False
    families: dict[int, Any]
    decide: Any
    draw: Any = None
    drawn_by: Any = None
    note_node: Any = None
    map_function: Any = None
    shortly: Any = None
    pulled: Any = None
    outside: Any = None
    holds: Any = None

    # ------------------------------------------------------------------ values and tensors

    def payload(self, x: Any) -> Any:
        """The stand-in for an operand: a tensor, an array or a number."""

    def wrap(self, payload: Any) -> Any:
        """A tensor without history of a stand-in."""

    def constant(self, value: Any) -> Any:
        """The stand-in for a number."""

    def repeated(self, name: Any, given: Any, make: Callable[[], Any]) -> Any:
        """Call ``make()``; the result may be copied from a call of the same name with like operands."""

    # ------------------------------------------------------------------ what lies in memory

    def note_views(self, op: Any, attrs: Any, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Note which results of an op show the memory of its first operand."""

    def note_alias(self, alias: Any, x: Any, same: bool = False, shows: Callable[[], bool] | None = None) -> None:
        """Note that two tensors show one memory while both live, `same`: the same elements; or that sizes say so."""

    def set_elements(self, x: Any, new: Any) -> None:
        """An in-place write: from here on `x` stands for `new`."""

    def get_grad(self, x: Any) -> Any:
        """`.grad` as the program sees it."""

    def set_grad(self, x: Any, grad: Any) -> None:
        """``x.grad = grad``."""

    def adds_in_place(self, grad: Any) -> bool:
        """Whether an accumulated gradient is added to the memory of this one."""

    # ------------------------------------------------------------------ what is more than an op

    def act(self, kind: str, operands: Sequence[Any], attrs: Any) -> None:
        """Something is done, see `common.control.print_assert`."""

    def callback(self, call: Any, operands: Sequence[Any], specs: Sequence[Spec]) -> Any:
        """Python is called, see `common.control.callback`."""

    def run_loop(self, request: Any) -> Any:
        """A loop, see `common.control.loop`."""

    def run_choice(self, choice: Any) -> Any:
        """Branches, see `common.control.branches`."""

    def note_module(self, module: Any, whole: bool = True) -> None:
        """The program relies on a module that it has called; not `whole`, on the members whose tables it has read."""

    # ------------------------------------------------------------------ what no trace can know

    def refuse_value(self, x: Any) -> Any:
        """Explain that elements have no Python value here; raises."""

    def refuse_size(self, function: str, instead: str) -> Any:
        """Explain that the size of a result would depend on the elements; raises."""

    def refuse_data(self, x: Any) -> Any:
        """Explain that `.data` may not be replaced here; raises."""
