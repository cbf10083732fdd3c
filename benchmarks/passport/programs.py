"""The programs of the passport: every op with its gradients, every workload, training runs.

A program is a function of a `Way` and returns named groups of arrays: what went in and what came out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from benchmarks.passport.exact_numbers import Array, ExactNumbers
from benchmarks.passport.trainings import TRAININGS
from benchmarks.passport.ways import Way
from benchmarks.workload import Workload, discover, to_array

DTYPES = ("float32", "float64")
STEPS = 3
OF_PYTHON = ("workload/charlm", "workload/gpt", "workload/lstm")
"""Programs whose text is Python's own help, which changes with its version."""


@dataclass(frozen=True)
class Record:
    """The arguments and results of a program; None is a gradient that is not there."""

    inputs: list[Array]
    results: list[Array | None]


@dataclass(frozen=True)
class PassportProgram:
    """One program of the passport.

    Attributes
    ----------
    name : its kind and its name, such as "op/exp".
    run : the program, in one way.
    pure : whether it is one function of arrays, which can be saved and made a library.
    """

    name: str
    run: Callable[[Way], Record]
    pure: bool = False


def programs(select: Iterable[str] = ()) -> list[PassportProgram]:
    """Return the programs whose name contains one of `select`, all of them by default.

    Raises
    ------
    LookupError
        If an entry of `select` matches nothing.
    """
    found = [
        *_ops(),
        *_workloads(),
        *(PassportProgram(f"training/{name}", _training(f)) for name, f in TRAININGS.items()),
    ]
    wanted = list(select)
    for text in wanted:
        if not any(text in program.name for program in found):
            raise LookupError(f"no program's name contains {text!r}; there are op/, workload/ and training/ programs")
    return [p for p in found if not wanted or any(text in p.name for text in wanted)]


def depends_on_the_machine(program: PassportProgram) -> bool:
    """Whether LAPACK or SciPy computes some of a program's results, or its inputs come with Python."""
    from common.compiler import host_kernels
    from common.evaluate import specialise
    from common.kernels.linalg import elimination

    seen: list[str] = []

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is host_kernels.host_call.__code__:
            function, specs = frame.f_locals["function"], frame.f_locals["specs"]
            shape = specs[0].shape
            if function not in elimination.FUNCTIONS or not shape[-2] == shape[-1] <= elimination.SMALL:
                seen.append(function)

    specialise.forget()  # so that what each op calls is looked up again
    sys.setprofile(watch)
    try:
        program.run(Way("dynamic"))
    finally:
        sys.setprofile(None)
    return bool(seen) or program.name in OF_PYTHON


def _ops() -> Iterator[PassportProgram]:
    import common.ops.functional
    from common.core.op import REGISTRY

    assert common.ops.functional  # defines the ops
    for name in sorted(REGISTRY.homes):
        if not REGISTRY[name].literal:
            yield PassportProgram(f"op/{name}", _samples_of(name), pure=True)


def _samples_of(name: str) -> Callable[[Way], Record]:
    """All samples of an op in both dtypes, and their gradients, as one program."""

    def run(way: Way) -> Record:
        from common.core.op import REGISTRY

        op, numbers = REGISTRY[name], ExactNumbers(name)
        samples = [sample for dtype in DTYPES for sample in op.samples(numbers, dtype)]
        seeds = [_cotangents(op, numbers, *sample) for sample in samples]
        given = [np.asarray(x) for (operands, _), more in zip(samples, seeds, strict=True) for x in (*operands, *more)]

        def program(*arrays: Any) -> list[Any]:
            rest, results = iter(arrays), []
            for (operands, attrs), more in zip(samples, seeds, strict=True):
                taken = list(islice(rest, len(operands)))
                results += _with_gradients(way.tw, op, taken, attrs, list(islice(rest, len(more))))
            return results

        return Record(given, [x if x is None else to_array(x) for x in way.call(program, given)])

    return run


def apply(op: Any, operands: Iterable[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """The results of an op; of one without operands, those of the trace if one is open."""
    from common.core import mode
    from common.evaluate.specialise import run
    from dynamic import as_tensor

    given = tuple(operands)
    if given:
        made = op(*given, **attrs)
    else:
        trace = mode.current_trace()
        made = as_tensor(run(op, (), attrs)) if trace is None else trace.wrap(trace.record(op, (), attrs))
    return tuple(made) if isinstance(made, tuple | list) else (made,)


def _leaves(tw: Any, operands: Iterable[Any]) -> list[Any]:
    """Tensors of their own; floating-point ones are differentiated."""
    tensors = [tw.as_tensor(x).detach() for x in operands]
    return [x.requires_grad_() if x.dtype.kind == "f" else x for x in tensors]


def _cotangents(op: Any, numbers: ExactNumbers, operands: Iterable[Any], attrs: dict[str, Any]) -> list[Array]:
    """The first cotangents of a sample: for each result that has a history, numbers of its shape."""
    import dynamic

    made = apply(op, _leaves(dynamic, operands), attrs)
    return [np.asarray(numbers.normal(size=tuple(y.shape)), y.dtype) for y in made if y.requires_grad]


def _with_gradients(tw: Any, op: Any, operands: list[Any], attrs: dict[str, Any], seeds: list[Any]) -> list[Any]:
    """Results of one sample, and its gradients by all operands that have one."""
    leaves = _leaves(tw, operands)
    made = apply(op, leaves, attrs)
    results = [y.detach() for y in made]
    roots = [y for y in made if y.requires_grad]
    if roots:
        inputs = [x for x in leaves if x.requires_grad]
        results += tw.autograd.grad(roots, inputs, [tw.as_tensor(s) for s in seeds], allow_unused=True)
    return results


def _workloads() -> Iterator[PassportProgram]:
    for workload in discover():
        yield PassportProgram(f"workload/{workload.name}", _calls_of(workload))


def _calls_of(workload: Workload) -> Callable[[Way], Record]:
    """Three calls: what each returns and the gradients that it leaves; parameters and optimiser state at the end."""

    def run(way: Way) -> Record:
        given = list(islice(cycle(workload.inputs()), STEPS))
        program = workload.make(way.tw)
        results: list[Array | None] = []
        for arrays in given:
            returned = program.call(*arrays)
            results += [*workload.results(returned).values(), *program.gradients().values()]
        return Record([x for arrays in given for x in arrays], [*results, *program.state().values()])

    return run


def _training(train: Callable[[Any, ExactNumbers], tuple[list[Array], list[Any]]]) -> Callable[[Way], Record]:
    def run(way: Way) -> Record:
        way.tw.manual_seed(0)
        given, results = train(way.tw, ExactNumbers(train.__name__))
        return Record(given, [to_array(x).copy() for x in results])

    return run
