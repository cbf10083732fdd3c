"""The proofs of a run: the core of each (`--quick`), one dtype per example (the plain command), or all (`--all`).

Examples that differ in a dtype or a way only are rotated: each has one choice in every run, so that all choices occur
over the examples, and its other choices are `slow`. What is chosen depends on the example's name alone.
"""

from __future__ import annotations

import functools
import inspect
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

#: What a file holds that marks tests as quick.
MARKS_QUICK = re.compile(r"mark\.quick|\bcore\(|core=")

#: Whether this run makes the core of each proof only; set by `tests.conftest`.
quick = False

#: Whether this run leaves out what is slow; set by `tests.conftest`.
sampled = False

Chosen = Callable[[Any], bool]


def every(example: Any) -> bool:
    """Choose every example."""
    return True


def no(example: Any) -> bool:
    """Choose no example."""
    return False


def share(name: str, count: int) -> int:
    """A number below `count` for a name, the same in every process and on every machine."""
    return zlib.crc32(name.encode()) % count


def named(x: Any) -> str:
    """The label of a case, the name of an op or a type, a text as it is."""
    return str(getattr(x, "label", None) or getattr(x, "name", None) or getattr(x, "__name__", None) or x)


def chosen(example: Any, choices: Sequence[Any]) -> Any:
    """The choice that `rotated` makes for an example in every run.

    Names that differ in their last digits only have the same: ``index_add-2``, ``index_add-0`` and ``index_add1`` share
    kernels.
    """
    name = named(example)
    return choices[share(name.rstrip("-0123456789") or name, len(choices))]


def rotated(examples: Iterable[Any], choices: Sequence[Any], core: Chosen = no, seldom: Chosen = no) -> list[Any]:
    """Parameters ``(example, choice)``: one choice of each example in every run, the others marked `slow`.

    Parameters
    ----------
    core : which examples are among the core of the proof; they are marked `quick`.
    seldom : which examples are `slow` with every choice, because others prove the same.
    """
    params = []
    for example in examples:
        for choice in choices:
            level = _level(example, core, seldom) if choice == chosen(example, choices) else [pytest.mark.slow]
            params.append(pytest.param(example, choice, id=f"{named(example)}-{named(choice)}", marks=level))
    return params


def core(examples: Iterable[Any], quick: Chosen = every, seldom: Chosen = no) -> list[Any]:
    """Examples as parameters, some of them marked `quick`, others `slow` if they are `seldom` needed."""
    return [pytest.param(x, id=named(x), marks=_level(x, quick, seldom)) for x in examples]


def examples(count: int) -> int:
    """How many random examples a run makes of `count`: all with ``--all`` and for files that are named, else half."""
    return -(-count // 2) if quick or sampled else count


def _level(example: Any, core: Chosen, seldom: Chosen) -> list[Any]:
    """The marks of an example."""
    return [pytest.mark.slow] if seldom(example) else [pytest.mark.quick] if core(example) else []


def first(count: int, examples: Iterable[Any], core: int = 0) -> list[Any]:
    """Examples as parameters: the first `count` in every run, the others `slow`; the first `core` of them `quick`."""
    params = []
    for i, x in enumerate(examples):
        level = [pytest.mark.quick] if i < core else [pytest.mark.slow] if i >= count else []
        params.append(pytest.param(x, id=named(x), marks=level))
    return params


def each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every value of one argument, as one test: for checks that take less time than a test's set-up.

    A failure says in a note which value it was. A direct call may give the argument, and is then a plain call.
    """
    listed = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def for_each(*args: Any, **kwargs: Any) -> None:
            for value in [kwargs[name]] if name in kwargs else listed:
                try:
                    test(*args, **{**kwargs, name: value})
                except BaseException as error:
                    error.add_note(f"with {name} = {named(value)}")
                    raise

        signature = inspect.signature(test)
        others = [parameter for parameter in signature.parameters.values() if parameter.name != name]
        for_each.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return for_each

    return decorate
