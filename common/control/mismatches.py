"""Messages about two trees of tensors that differ: which components, and how."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from common.control.structures import Said, TreeSpec, equal_shapes
from common.core.errors import ArgumentError, DTypeError, FormError
from common.core.tree import LEAF, MAPS, Structure


class Compared(NamedTuple):
    """Two trees that must be alike.

    Attributes
    ----------
    structures, types : beginnings of the message, if they are nested differently, or hold different tensors.
    nested, held : sentences about one component: `{at}` is its place, `{a}` and `{b}` what the two trees have there.
    at : of the path to a component: its place in words.
    first, second : each tree in words, for the end of the message.
    """

    structures: str
    types: str
    nested: str
    held: str
    at: Callable[[str], str]
    first: str | Said
    second: str | Said

    def require_equal(self, one: TreeSpec, other: TreeSpec) -> None:
        """Refuse trees that differ.

        Raises
        ------
        ArgumentError, FormError, DTypeError : which names the components that differ, and shows both trees.
        """
        trees = f"{self.first} is\n  {{}}\nbut {self.second} is\n  {{}}\nthey must have the same "
        if one.structure != other.structure:
            found = [
                self.nested.format(at=self.at(path), a=a, b=b) + f", so {why}"
                for path, a, b, why in _nestings(one.structure, other.structure, "")
            ]
            raise ArgumentError(f"{self.structures}\n\n{_listed(found)}\n\n{trees.format(one, other)}structure")
        paths = list(_paths(one.structure, ""))
        kinds, found = set(), []
        for path, a, b in zip(paths, one.specs, other.specs, strict=True):
            differ = [
                what for what, fits in (("dtypes", a.dtype == b.dtype), ("shapes", equal_shapes(a, b))) if not fits
            ]
            if differ:
                kinds.update(differ)
                why = ", and ".join(f"the {what} do not match" for what in differ)
                found.append(self.held.format(at=self.at(path), a=type_of(a), b=type_of(b)) + f", so {why}")
        if found:
            error, what = (
                (FormError, "shapes")
                if "shapes" in kinds
                else (DTypeError, "dtypes: convert one of them with .to(dtype)")
            )
            raise error(f"{self.types}\n\n{_listed(found)}\n\n{trees.format(one, other)}{what}")


def carries(name: str, function: Callable[..., Any], position: int, second: Said) -> Compared:
    """Compare a loop's initial values with the values that its function carries on.

    Parameters
    ----------
    position : of the parameter of `function` that takes what is carried.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    known = names[position] if position < len(names) else "carry"
    both = f"{name} body function carry input and carry output must have"
    return Compared(
        f"{both} the same pytree structure, but they differ:",
        f"{both} equal types, but they differ:",
        "the input carry {at} {a} but the corresponding component of the carry output {b}",
        "the input carry {at} has type {a} but the corresponding output carry component has type {b}",
        lambda path: f"component {known}{path}" if path else known,
        f"{name}: init",
        second,
    )


def outputs(name: str, first: Said, second: Said, roles: tuple[str, str]) -> Compared:
    """Compare the results of two branches, or of two runs of a function."""
    return Compared(
        f"{name} branch outputs must have the same pytree structure, but they differ:",
        f"{name} branches must have equal output types but they differ:",
        f"{roles[0]} output{{at}} {{a}} but {roles[1]} output{{at}} {{b}}",
        f"the output of {roles[0]}{{at}} has type {{a}} but the corresponding output of {roles[1]}{{at}} has type "
        "{b}",
        lambda path: f" at path {path}" if path else "",
        first,
        second,
    )


def _listed(found: list[str]) -> str:
    if len(found) == 1:
        (only,) = found
        return f"{'The' + only[3:] if only.startswith('the ') else only}."
    return ";\n".join(f"  * {each}" for each in found) + "."


def type_of(x: Any) -> str:
    """Dtype and shape of a tensor, an array or a spec; of anything else its class."""
    return f"{x.dtype}[{','.join(map(str, x.shape))}]" if hasattr(x, "dtype") else type(x).__name__


def _steps(structure: Any) -> list[str]:
    """How the parts of a node are reached."""
    kind, parts = structure[0], structure[-1]
    if kind in MAPS:
        return [f"[{key!r}]" for key in structure[1]]
    if hasattr(kind, "_fields"):
        return [f".{name}" for name in kind._fields]
    return [f"[{i}]" if kind in (tuple, list) else f"[<flat index {i}>]" for i in range(len(parts))]


def _paths(structure: Structure, path: str) -> Iterator[str]:
    """The paths of the leaves."""
    if structure == LEAF:
        yield path
    elif structure is not None:
        for step, part in zip(_steps(structure), structure[-1], strict=True):
            yield from _paths(part, path + step)


def _nestings(a: Structure, b: Structure, path: str) -> Iterator[tuple[str, str, str, str]]:
    """Path, both sides in words, and the difference, of all nodes that differ."""
    if a == b:
        return
    if not (isinstance(a, tuple) and isinstance(b, tuple)) or a[0] is not b[0]:
        yield path, _kind(a), _kind(b), "their Python types differ"
        return
    kind, m, n = a[0], len(a[-1]), len(b[-1])
    if m != n and kind in (tuple, list):
        yield (
            path,
            f"is a {kind.__name__} of length {m}",
            f"is a {kind.__name__} of length {n}",
            "the lengths do not match",
        )
    elif m != n:
        yield path, _children(kind, m), _children(kind, n), "the numbers of children do not match"
    elif a[:-1] != b[:-1]:
        x, y = (f"is a {kind} with pytree metadata {side[1]!r}" for side in (a, b))
        yield path, x, y, "the pytree node metadata does not match"
    else:
        for step, x, y in zip(_steps(a), a[-1], b[-1], strict=True):
            yield from _nestings(x, y, path + step)


def _children(kind: type, size: int) -> str:
    return f"is a {kind} with {size} child{'' if size == 1 else 'ren'}"


def _kind(structure: Structure) -> str:
    if structure == LEAF:
        return "is a pytree leaf"
    return "is None" if structure is None else f"is a {structure[0]}"
