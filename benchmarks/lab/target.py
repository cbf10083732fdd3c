"""``FILE.py:NAME`` as a workload: a function, a module with or without an optimiser, a ``make()``, or a `Workload`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.draws import seed
from benchmarks.lab import arguments as given
from benchmarks.lab import peers, training
from benchmarks.lab.libraries import in_its_place, package, use
from benchmarks.lab.program import MARK
from benchmarks.lab.source import load
from benchmarks.lab.ways import Way
from benchmarks.peers import Built
from benchmarks.workload import Array, Inputs, Program, Workload, to_array

SEEDS = (0, 1)
"""Of the input sets that are made from ``--args``."""


@dataclass(frozen=True)
class Target:
    """The program to measure, as plain data: a new process finds the same.

    Attributes
    ----------
    file, name : of the program; an empty name means ``make``, or the file's only public function.
    args : as ``--args``; empty for what the file says itself.
    sizes : numbers of the sizes that `args` names.
    grad : measure value and gradient; None takes what the file says.
    loss, optimizer : of a module, see `benchmarks.lab.training.step`.
    control_flow : of `static.function`.
    """

    file: str
    name: str = ""
    args: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    grad: bool | None = None
    loss: str = ""
    optimizer: str = ""
    control_flow: str | None = None

    @staticmethod
    def parse(text: str) -> Target:
        """Return the target that ``FILE.py:NAME`` names."""
        file, colon, name = text.rpartition(":")
        if not colon or name.endswith(".py") or "/" in name or "\\" in name:
            file, name = text, ""
        return Target(str(Path(file).resolve()), name)

    @property
    def text(self) -> str:
        """The target as a line that `from_text` reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> Target:
        """Return what `text` gave."""
        return Target(**json.loads(text))

    def at(self, **sizes: int) -> Target:
        """Return the same program for other sizes."""
        return replace(self, sizes={**self.sizes, **sizes})


def is_target(text: str) -> bool:
    """Whether a word of the command line names a file rather than a workload of the project."""
    return text.partition(":")[0].endswith(".py") or ".py:" in text or text.startswith("{")


class UserProgram(Workload):
    """A program of a user's.

    Parameters
    ----------
    target : Target
    engine : module
        With which the file is read before anything is measured, to see what it holds.

    Raises
    ------
    LookupError
        If the file or the name is not there.
    ValueError
        If it is not said on what the program runs, or the loss or optimiser is not one.
    """

    def __init__(self, target: Target, engine: ModuleType) -> None:
        self._engine = package(engine)
        use(self._engine)
        module = load(Path(target.file), engine, self._engine)
        self.target = replace(target, name=target.name or _only(module, target.file))
        thing = _thing(module, self.target)
        marks = getattr(thing, MARK, {})
        sizes = {**marks.get("sizes", {}), **target.sizes}
        grad = bool(marks.get("grad")) if target.grad is None else target.grad
        self.target = replace(self.target, args=target.args or marks.get("arguments", ""), sizes=sizes, grad=grad)
        self.sweep: str = marks.get("sweep", "")
        told = ", ".join(f"{name}={n}" for name, n in sizes.items())
        self.name = f"{Path(target.file).stem}:{self.target.name}" + (f" ({told})" if told else "")
        self.about = _first_line(thing)
        self.mode = self._mode(thing)
        training.check(engine, self.target.loss, self.target.optimizer)
        self._inputs: list[Inputs] | None = None
        self._own = module

    @property
    def key(self) -> str:
        """The target as text."""
        return self.target.text

    @property
    def title(self) -> str:
        """The program to measure, in a line."""
        return f"{self.about} [{self.mode}]" if self.about else self.mode

    def _mode(self, thing: Any) -> str:
        target = self.target
        if target.grad:
            return "value and gradient"
        if training.is_module(thing) and training.trains(_instance(thing) if isinstance(thing, type) else thing):
            return f"training step, {target.optimizer}" if target.optimizer else "forward and backward"
        return "as written"

    def inputs(self) -> list[Inputs]:
        """Return two input sets: of ``--args``, of the file's ``inputs()``, or of what ``make()`` returned."""
        if self._inputs is None:
            use(self._engine)
            self._inputs = self._find_inputs()
        return self._inputs

    def _find_inputs(self) -> list[Inputs]:
        target, thing = self.target, _thing(self._own, self.target)
        if target.args:
            wanted = given.parse(target.args)
            _fit(thing, target.name, len(wanted))
            return [given.arrays(wanted, target.sizes, seed) for seed in SEEDS]
        if isinstance(thing, Workload):
            return thing.inputs()
        own = getattr(self._own, "inputs", None)
        if callable(own):
            return _sets(own())
        made = _made(thing, self._engine_of(self._own)) if _is_maker(thing) else None
        if isinstance(made, tuple) and len(made) == 2 and not hasattr(made[1], "param_groups"):
            return _sets(made[1])
        wants = made[0] if isinstance(made, tuple) else made.call if isinstance(made, Program) else made
        names = _required(wants if wants is not None else thing)
        if names:
            raise ValueError(
                f'{target.name} takes ({", ".join(names)}): say on what, as in --args "f32[64,128]"; '
                f"{given.GRAMMAR}; or let the file have a function inputs()"
            )
        return [(), ()]

    def _engine_of(self, module: ModuleType) -> Any:
        return module.__dict__["__engine_import__"]("")

    def make(self, tw: Any) -> Program:
        """Load the file with the engine, and build the program."""
        name = package(tw)
        use(name)
        program = self._program(*self._found(tw, name))
        return replace(program, call=in_its_place(program.call, name))

    def exported(self, tw: Any) -> Callable[..., Any]:
        """Load the file with the engine; what leaves: a module as it answers, or the program that would be measured."""
        name, target = package(tw), self.target
        use(name)
        tw, thing, optimizer = self._found(tw, name)
        if training.is_module(thing) and not (optimizer or target.optimizer or target.loss or target.grad):
            return thing
        return self._program(tw, thing, optimizer).call

    def _found(self, tw: Any, name: str) -> tuple[Any, Any, Any]:
        """The engine as the file sees it, what the name stands for, and an optimiser that comes with it."""
        target = self.target
        if target.control_flow and name == "static":
            tw = Way(tw, control_flow=target.control_flow)
        seed(tw)
        module = load(Path(target.file), tw, name)
        thing = _thing(module, target)
        if isinstance(thing, Workload):
            return tw, thing.make(tw), None
        if _is_maker(thing):
            thing = _made(thing, tw)
        optimizer = None
        if isinstance(thing, tuple):
            thing, second = thing
            optimizer = second if hasattr(second, "param_groups") else None
        if isinstance(thing, type):
            thing = _instance(thing)
        return tw, thing, optimizer

    def _program(self, tw: Any, thing: Any, optimizer: Any) -> Program:
        target = self.target
        if isinstance(thing, Program):
            return thing
        if training.trains(thing):
            _fit_forward(thing, len(self.inputs()[0]), target.loss)
            return training.step(tw, thing, target.loss, target.optimizer, optimizer)
        parameters, found = training.state_of(thing)
        if target.grad:
            thing = training.gradient(tw, thing, given.floating(self.inputs()[0]))
        elif inspect.isfunction(thing) or inspect.ismethod(thing):
            thing = tw.function(thing)
        elif training.is_module(thing):
            thing = tw.function(thing.__call__)
        return Program(thing, parameters, optimizer or found)

    def peer(self, name: str, initial: dict[str, Array]) -> Built | None:
        """Return ``NAME_jax`` and the like, where the file has it; for PyTorch the file itself, run by PyTorch."""
        return peers.build(self._own, self.target.name, name, self.inputs(), initial, self.make)

    def results(self, returned: Any) -> dict[str, Array]:
        """Name everything that a call returned, however it is nested."""
        from common.core.tree import flatten

        leaves, _ = flatten(returned)
        kept = [x for x in leaves if hasattr(x, "shape") or isinstance(x, int | float | bool)]
        return {f"result {i}" if len(kept) > 1 else "result": to_array(x).copy() for i, x in enumerate(kept)}


def find(name: str, engine: ModuleType) -> Workload:
    """Return the workload of a name: one of the project's, or a target as text."""
    if is_target(name):
        target = Target.from_text(name) if name.startswith("{") else Target.parse(name)
        return UserProgram(target, engine)
    from benchmarks.workload import discover

    return next(w for w in discover() if w.name == name)


def _thing(module: ModuleType, target: Target) -> Any:
    if not hasattr(module, target.name):
        public = ", ".join(_public(module)) or "nothing public"
        raise LookupError(f"{target.file} has no {target.name!r}; it has: {public}")
    thing = getattr(module, target.name)
    return thing() if isinstance(thing, type) and issubclass(thing, Workload) else thing


def _public(module: ModuleType) -> list[str]:
    return [
        name for name, x in vars(module).items() if name[0] != "_" and getattr(x, "__module__", "") == module.__name__
    ]


def _only(module: ModuleType, file: str) -> str:
    """The name that is meant where none is given."""
    if callable(getattr(module, "make", None)):
        return "make"
    found = [name for name in _public(module) if inspect.isfunction(getattr(module, name)) and name != "inputs"]
    if len(found) == 1:
        return found[0]
    raise LookupError(f"{file} has {', '.join(found) or 'no functions'}: say which, as in {Path(file).name}:NAME")


def _is_maker(thing: Any) -> bool:
    if not inspect.isfunction(thing):
        return False
    names = list(inspect.signature(thing).parameters)
    return f"{thing.__name__}_".startswith("make_") or names[:1] in (["tw"], ["engine"])


def _instance(kind: type) -> Any:
    """An object of a class that is made without arguments."""
    names = [p.name for p in inspect.signature(kind).parameters.values() if p.default is p.empty and p.kind < 2]
    if names:
        raise ValueError(
            f"{kind.__name__} is made with ({', '.join(names)}): write `def make(tw): return {kind.__name__}(...)` in "
            "a file beside it, and measure that"
        )
    return kind()


def _made(thing: Callable[..., Any], tw: Any) -> Any:
    return thing(tw) if inspect.signature(thing).parameters else thing()


def _sets(value: Any) -> list[Inputs]:
    """A tuple or list of arguments is one input set, a list of those several; at least two, of arrays."""
    from common.core.tree import flatten, unflatten

    several = isinstance(value, list) and value and all(isinstance(x, tuple | list) for x in value)
    leaves, structure = flatten(value if several else [value])
    sets = unflatten(structure, [to_array(x) if hasattr(x, "detach") else x for x in leaves])
    sets = [tuple(x) if isinstance(x, tuple | list) else (x,) for x in sets]
    return sets if len(sets) > 1 else sets * 2


def _fit(thing: Any, name: str, count: int) -> None:
    """Raise ValueError where a function doesn't take that many arguments."""
    if not inspect.isfunction(thing) or _is_maker(thing):
        return
    signature = inspect.signature(thing)
    try:
        signature.bind(*[None] * count)
    except TypeError as problem:
        raise ValueError(f"{name}{signature} does not take the {count} of --args: {problem}") from None


def _fit_forward(model: Any, count: int, loss: str) -> None:
    """Raise ValueError where a module doesn't take the arguments, without the one that is a loss's."""
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*[None] * (count - bool(loss)))
    except TypeError as problem:
        given = f"the first {count - 1} of {count} arguments, the last is for --loss" if loss else f"{count} arguments"
        hint = "" if loss else "; if the last is what a loss compares with: --loss mse_loss"
        raise ValueError(f"{type(model).__name__}.forward{signature} does not take {given}: {problem}{hint}") from None


def _required(thing: Any) -> list[str]:
    if isinstance(thing, type):
        thing = getattr(thing, "forward", thing)
        return list(inspect.signature(thing).parameters)[1:]
    thing = getattr(thing, "forward", thing)
    try:
        parameters = inspect.signature(getattr(thing, "__wrapped__", thing)).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind in positional]


def _first_line(thing: Any) -> str:
    return (getattr(thing, "__doc__", None) or "").strip().partition("\n")[0].rstrip(".")
