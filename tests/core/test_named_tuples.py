"""Our `NamedTuple` is that of `typing`, and its classes are made much earlier."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
import typing
from timeit import repeat

import pytest

from common.core.named_tuples import NamedTuple
from tests.conftest import ROOT


class Ours(NamedTuple):
    """Of three fields."""

    first: int
    second: dict[str, int] | None
    third: str = "c"

    @property
    def twice(self) -> int:
        return self.first * 2

    def own(self) -> int:
        return super().__len__()  # by the cell of a class, which typing's does not take


class Theirs(typing.NamedTuple):
    """Of three fields."""

    first: int
    second: dict[str, int] | None
    third: str = "c"

    @property
    def twice(self) -> int:
        return self.first * 2


def test_objects_are_as_those_of_typing():
    ours, theirs = Ours(1, second=None), Theirs(1, second=None)
    assert ours == theirs == (1, None, "c")
    assert hash(ours) == hash(theirs)
    assert ours.twice == 2
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert Ours._fields == Theirs._fields
    assert Ours._field_defaults == Theirs._field_defaults
    assert Ours.__match_args__ == Theirs.__match_args__
    assert ours._replace(first=5) == theirs._replace(first=5)
    assert type(ours._replace(first=5)) is Ours
    assert Ours._make("abc") == Theirs._make("abc")
    assert ours.own() == 3
    for made in (copy.copy(ours), copy.deepcopy(ours), *(pickle.loads(pickle.dumps(ours, p)) for p in range(6))):
        assert made == ours
        assert type(made) is Ours
    names = [list(inspect.signature(kind).parameters) for kind in (Ours, Theirs)]
    assert names[0] == names[1]
    assert Ours.__doc__ == Theirs.__doc__
    assert type(Ours) is type
    match ours:
        case Ours(1, None, third=x):
            assert x == "c"
        case _:
            raise AssertionError


@pytest.mark.parametrize(
    "wrong",
    [lambda kind: kind(1), lambda kind: kind(1, 2, 3, 4), lambda kind: kind(1, 2, fourth=3),
     lambda kind: kind._make("a"), lambda kind: kind(1, 2)._replace(fourth=1),
     lambda kind: setattr(kind(1, 2), "first", 3), lambda kind: setattr(kind(1, 2), "fourth", 3)],
)  # fmt: skip
def test_what_typing_refuses_is_refused(wrong):
    for kind in (Theirs, Ours):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            wrong(kind)


def test_defaults_come_last():
    with pytest.raises(TypeError, match="without a default"):

        class Wrong(NamedTuple):
            a: int = 1
            b: int


def test_classes_are_made_in_a_third_of_the_time():
    def made(base):
        class Made(base):
            a: dict[str, int]
            b: tuple[int, int] = (1, 2)

        return Made

    ours, theirs = (
        min(repeat(lambda base=base: made(base), number=50, repeat=7)) for base in (NamedTuple, typing.NamedTuple)
    )
    assert ours < theirs / 3


SPY = """
import typing
made, new = [], typing.NamedTupleMeta.__new__
def spy(kind, name, bases, space):
    made.append(space.get("__module__", ""))
    return new(kind, name, bases, space)
typing.NamedTupleMeta.__new__ = spy
import static, dynamic
static.function(static.grad(lambda x: (x * x).sum()))(static.tensor([1.0]))
print(*(name for name in made if name.startswith(("common", "static", "dynamic"))))
"""


def test_engines_make_none_of_typing():
    done = subprocess.run([sys.executable, "-c", SPY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


COLLECTING = """
import gc, sys
def trace(frame, event, argument):
    if frame.f_code.co_filename.endswith("named_tuples.py"):
        frame.f_trace_opcodes = True
        gc.collect()
        return trace
sys.settrace(trace)
from common.core.named_tuples import NamedTuple
sys.settrace(None)
class Made(NamedTuple):
    a: int
    b: int
assert (Made(1, 2).a, Made(1, 2).b) == (1, 2), vars(Made)
"""


def test_the_collector_finds_nothing_to_clear():
    """Between any two instructions of the file."""
    subprocess.run([sys.executable, "-c", "from __future__ import annotations" + COLLECTING], cwd=ROOT, check=True)
