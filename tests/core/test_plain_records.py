"""Records are dataclasses, and are made much earlier."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from timeit import repeat

import pytest

from common.core import plain_records as records


def made(record, field, **options):
    @record(**options)
    class Base:
        """A base."""

        first: int
        second: list[int] = field(default_factory=list)
        third: str = "c"

    @record(**options)
    class Derived(Base):
        """With more."""

        fourth: int = 4
        fifth: int = field(init=False)

        def __post_init__(self) -> None:
            self.fifth = self.first * 5

    return Base, Derived


KINDS = [{}, {"slots": True}, {"eq": False}, {"eq": False, "slots": True}]
BOTH = [(records.record, records.field), (dataclasses.dataclass, dataclasses.field)]


def told(call):
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("options", KINDS)
def test_objects_are_as_those_of_dataclasses(options):
    found = []
    for record, field in BOTH:
        base, derived = made(record, field, **options)
        x, y, z = base(1), base(1, third="z"), derived(2, [3])
        x.second.append(7)
        found.append([
            (x.first, x.second, x.third, y.second, y.third), (z.second, z.third, z.fourth, z.fifth), repr(x), repr(z),
            base(1) == base(1), base(1) == y, base(2, [3]) == z, base(1) != base(1),
            told(lambda base=base: hash(base(1)) and 0), told(base),
            told(lambda base=base: base(1, 2, 3, 4)), told(lambda base=base: base(1, sixth=2)),
            told(lambda x=x: setattr(x, "sixth", 1)), base.__match_args__, derived.__match_args__,
            hasattr(x, "__dict__"), copy.copy(z).fifth, copy.deepcopy(x).second, base.__doc__, base.__qualname__,
        ])  # fmt: skip
    assert found[0] == found[1]


@records.record(slots=True)
class Kept:
    """One that a pickle finds."""

    a: int
    b: list[int] = records.field(default_factory=list)


def test_records_are_pickled_and_name_their_fields():
    kept = Kept(1, [2])
    assert all(pickle.loads(pickle.dumps(kept, protocol)) == kept for protocol in range(2, 6))
    assert records.names(Kept) == records.names(kept) == ("a", "b")


def test_classes_are_made_in_half_of_the_time():
    ours, theirs = (min(repeat(lambda of=of: made(*of, slots=True), number=20, repeat=7)) for of in BOTH)
    assert ours < theirs / 2
