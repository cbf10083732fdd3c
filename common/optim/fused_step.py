"""A step outside a trace as one native call: per parameter one kernel, one loop over its elements.

An update is elementwise. Run on terms instead of tensors it writes itself down: what is made of 0-d values before the
loop, everything else inside. The kernel calls the same scalar functions in the same order as the ops would, so it has
their bits, but reads and writes every array once. All parameters go into one plan, so 100 small ones cost hardly more
than the arithmetic (`benchmarks/gates/test_optim.py`). Arrays that a plan refuses, such as transposed ones, are left to
ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from common.compiler.compile import compile_kernel
from common.compiler.literals import literal
from common.compiler.loop_ir import Call, Kernel, Let, Loop, Place, Store
from common.core.dtypes import compute_dtypes, number_spec, operand_dtypes
from common.core.interpretation import Interpretation
from common.core.op import REGISTRY, Op
from common.core.operators import install
from common.core.spec import Spec
from common.optim.group import ParameterGroup, Update
from common.runtime.builtins import make_run
from common.runtime.program_plan import ProgramPlan
from common.tensor import write_log

#: A parameter, its gradient and its state.
Active = tuple[Any, Any, dict[str, Any]]


class Updating(Protocol):
    """An optimiser, as far as its step is concerned."""

    def update(self, options: dict[str, Any], p: Any, g: Any, state: dict[str, Any]) -> Update:
        """New values of a parameter and of its state."""
        ...


CHUNK = 8
"""Parameters per native call: a call compares each new address, such as a gradient's, with all others."""


class _UpdateTerm:
    """A value in the kernel that is being written: one per element, or one per parameter."""

    __op_priority__ = 1

    def __init__(self, text: str, dtype: np.dtype, each: bool, writer: _KernelLines) -> None:
        self.text, self.dtype, self.each, self.writer = text, dtype, each, writer

    @property
    def spec(self) -> Spec:
        """As promotion sees it: any size for elements."""
        return Spec((2,) if self.each else (), self.dtype)

    def to(self, dtype: Any) -> _UpdateTerm:
        """The value in another dtype."""
        wanted = np.dtype(dtype)
        return (
            self if wanted == self.dtype else self.writer.let(Call(f"to_{wanted.name}", [self.text]), wanted, self.each)
        )

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> _UpdateTerm:
        writer: _KernelLines = next(x.writer for x in operands if isinstance(x, _UpdateTerm))
        return writer.record(op, operands, attrs)


install(_UpdateTerm, REGISTRY, comparisons=False)


class _KernelLines(Interpretation):
    """The lines of a kernel before and inside its loop."""

    def __init__(self) -> None:
        self.dtypes: list[np.dtype] = []
        self.before: list[Any] = []
        self.inside: list[Any] = []
        self.last: list[Any] = []
        self.after: list[Any] = []

    def buffer(self, x: Any, each: bool) -> _UpdateTerm:
        """The next buffer: an array of all elements, or a 0-d one."""
        slot = len(self.dtypes)
        self.dtypes.append(x.dtype)
        return self.let(Place(f"b{slot}", "", "c" if each else ""), x.dtype, each)

    def let(self, value: Any, dtype: np.dtype, each: bool) -> _UpdateTerm:
        """A name for a value."""
        name = f"t{len(self.before) + len(self.inside)}"
        (self.inside if each else self.before).append(Let(name, value))
        return _UpdateTerm(name, dtype, each, self)

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> _UpdateTerm:
        """An elementwise op on terms and numbers, by the rules of promotion."""
        assert op.scalar is not None, f"an update is elementwise; {op.name} is not"
        specs = [x.spec if isinstance(x, _UpdateTerm) else number_spec(x) for x in operands]
        wanted = operand_dtypes(op, specs)
        texts = [
            x.to(d).text if isinstance(x, _UpdateTerm) else literal(x, d) for x, d in zip(operands, wanted, strict=True)
        ]
        each = any(isinstance(x, _UpdateTerm) and x.each for x in operands)
        return self.let(Call(op.name, texts), compute_dtypes(op, specs)[1], each)

    def store(self, slot: int, value: Any, each: bool) -> None:
        """Write to a buffer, after everything has been read."""
        store = Store(Place(f"b{slot}", "", "c" if each else ""), value.to(self.dtypes[slot]).text)
        (self.last if each else self.after).append(store)

    def source(self, name: str) -> str:
        """The kernel; its argument is the number of elements."""
        loop = Loop("c", "n0", [*self.inside, *self.last])
        return Kernel(self.dtypes, 1, [*self.before, loop, *self.after]).source(name)


def update_source(optimizer: Updating, group: ParameterGroup, active: Active) -> tuple[str, str] | None:
    """The kernel of one parameter's update and its name; buffers are p, g, the state, the numbers of the group.

    None where gradient or state have another shape or dtype than when the optimiser made them: ops take or refuse it.
    """
    p, g, state = active
    if g.shape != p.shape:
        return None
    writer = _KernelLines()
    own_p, own_g = writer.buffer(p, True), writer.buffer(g, True)
    # what does not have the parameter's shape is one number per parameter
    whole = {name: x.shape == p.shape and x.dtype == p.dtype for name, x in state.items()}
    if any(x.shape and not whole[name] for name, x in state.items()):
        return None
    own = {name: writer.buffer(x, whole[name]) for name, x in state.items()}
    options = group.options(lambda x: writer.buffer(x, False))
    new, new_state = optimizer.update(options, own_p, own_g, own)
    if any(value.each and not whole[name] for name, value in new_state.items()):
        return None
    for slot, name in enumerate(state, start=2):
        if name in new_state:
            writer.store(slot, new_state[name], whole[name])
    writer.store(0, new, True)
    name = f"update_{type(optimizer).__name__.lower()}"
    return writer.source(name), name


class FusedStep:
    """The plans of an optimiser: one per group and set of parameters that have a gradient.

    Attributes
    ----------
    name, written_at : see `common.tensor.write_log.WritingProgram`.
    """

    def __init__(self, name: str) -> None:
        self.name, self.written_at = name, -1
        self._plans: dict[Any, tuple[Any, Any]] = {}
        self._written: dict[Any, list[Any]] = {}

    def __reduce__(self) -> Any:
        return FusedStep, (self.name,)

    def forget(self) -> None:
        """Write and compile the kernels anew: what an update does has changed."""
        self._plans.clear()

    def run(self, optimizer: Updating, group: ParameterGroup, active: list[Active]) -> list[Active]:
        """Update parameters; those are left of which an array is not contiguous or overlaps another one."""
        numbers = [x.payload for parts in group.numbers.values() for x in parts]
        left: list[Active] = []
        for i in range(0, len(active), CHUNK):
            chunk = active[i : i + CHUNK]
            arrays: list[Any] = []
            for p, g, state in chunk:
                arrays += (p.payload, g.payload, *[x.payload for x in state.values()])
            if not self._run_chunk(optimizer, group, chunk, arrays + numbers):
                left += chunk
        if len(left) < len(active):
            self.written_at = write_log.number_write()
        return left

    def _run_chunk(self, optimizer: Updating, group: ParameterGroup, chunk: list[Active], arrays: list[Any]) -> bool:
        key = (id(group), len(arrays), *[id(p) for p, _, _ in chunk])
        plan, forms = self._plans.get(key, (None, None))
        if plan is not None and not plan(*arrays):
            return True
        now = [(type(x), x.dtype, x.shape) for x in arrays]
        if forms == now:  # refused for its layout: ops take any
            return False
        plan = self._plan(optimizer, group, chunk)
        self._plans[key] = plan, now
        if plan is None:
            return False
        self._written[key] = [x for p, _, state in chunk for x in (p, *state.values())]
        write_log.programs.add(self)
        return not plan(*arrays)

    def _plan(self, optimizer: Updating, group: ParameterGroup, active: list[Active]) -> Any:
        plan = ProgramPlan()
        calls, addresses = [], {}
        for entry in active:
            p, g, state = entry
            slots = [plan.add_array(p.dtype, p.shape, writes=True), plan.add_array(g.dtype, g.shape)]
            slots += [plan.add_array(x.dtype, x.shape, writes=True) for x in state.values()]
            kind = (p.dtype, g.dtype, g.shape == p.shape, *((x.shape == p.shape, x.dtype) for x in state.values()))
            if kind not in addresses:
                source = update_source(optimizer, group, entry)
                if source is None:
                    return None
                addresses[kind] = compile_kernel(*source)
            calls.append((addresses[kind], slots, p.payload.size))
        numbers = [plan.add_array(x.dtype, x.shape) for parts in group.numbers.values() for x in parts]
        for address, slots, size in calls:
            plan.add_call(address, [*slots, *numbers], [size])
        return make_run(plan)

    def written_arrays(self) -> list[np.ndarray]:
        """The memory that steps write."""
        return [x.payload for written in self._written.values() for x in written]


__all__ = ["FusedStep", "update_source"]
