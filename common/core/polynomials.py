"""Polynomials with integer coefficients over atoms: they represent symbolic sizes, and facts about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Atom = tuple[Any, ...]
Terms = tuple[tuple[tuple[Atom, ...], int], ...]


class Guard:
    """A fact about sizes on which a trace relies: ``left <relation> right`` was `holds` when traced.

    What is equal has one order: numbers stand last.
    """

    __slots__ = ("relation", "left", "right", "holds")

    def __init__(self, relation: str, left: Terms, right: Terms, holds: bool) -> None:
        if relation == "==" and (_is_number(left), left) > (_is_number(right), right):
            left, right = right, left
        self.relation, self.left, self.right, self.holds = relation, left, right, holds

    def check(self, env: Mapping[Atom, int]) -> bool:
        """Whether the guard holds for the sizes in `env`; one that divides by a size of 0 does not."""
        try:
            a, b = evaluate(self.left, env), evaluate(self.right, env)
        except ZeroDivisionError:
            return False
        return (a == b if self.relation == "==" else a < b) is self.holds

    def __str__(self) -> str:
        relation = self.relation if self.holds else {"==": "!=", "<": ">="}[self.relation]
        return f"{render(self.left)} {relation} {render(self.right)}"


def evaluate(terms: Terms, env: Mapping[Atom, int]) -> int:
    """The value of a polynomial for the atoms' values in `env`."""
    total = 0
    for atoms, coefficient in terms:
        product = coefficient
        for atom in atoms:
            product *= _atom_value(atom, env)
        total += product
    return total


def _is_number(terms: Terms) -> bool:
    return not any(atoms for atoms, _ in terms)


def _atom_value(atom: Atom, env: Mapping[Atom, int]) -> int:
    if atom[0] in ("in", "room"):
        return env[atom]
    a, b = evaluate(atom[1], env), evaluate(atom[2], env)
    return a // b if atom[0] == "//" else a % b


def render(terms: Terms) -> str:
    """A polynomial as text, for `explain()`."""
    if not terms:
        return "0"
    parts = []
    for atoms, coefficient in terms:
        names = [_atom_name(atom) for atom in atoms]
        if coefficient != 1 or not names:
            names.insert(0, str(coefficient))
        parts.append("*".join(names))
    return " + ".join(parts)


def _atom_name(atom: Atom) -> str:
    if atom[0] == "in":
        return f"{atom[1] if isinstance(atom[1], str) else f'arg{atom[1]}'}.shape[{atom[2]}]"
    if atom[0] == "room":
        return f"room{atom[1]}"
    return f"({render(atom[1])} {atom[0]} {render(atom[2])})"


def add(a: Terms, b: Terms, sign: int = 1) -> Terms:
    """A sum, or a difference for a sign of -1."""
    table = dict(a)
    for atoms, coefficient in b:
        table[atoms] = table.get(atoms, 0) + sign * coefficient
    return tuple(sorted(((k, v) for k, v in table.items() if v), key=repr))


def multiply(a: Terms, b: Terms) -> Terms:
    """A product."""
    table: dict[tuple[Atom, ...], int] = {}
    for atoms_a, ca in a:
        for atoms_b, cb in b:
            key = tuple(sorted(atoms_a + atoms_b, key=repr))
            table[key] = table.get(key, 0) + ca * cb
    return tuple(sorted(((k, v) for k, v in table.items() if v), key=repr))


def divide(a: Terms, b: Terms) -> Terms | None:
    """The exact quotient by a monomial, or None."""
    if len(b) != 1:
        return None
    divisor, cb = b[0]
    out = []
    for atoms, ca in a:
        rest = list(atoms)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if ca % cb:
            return None
        out.append((tuple(rest), ca // cb))
    return tuple(sorted(out, key=repr))


def solve(terms: Terms, first: tuple[Atom, ...] = ()) -> tuple[Atom, Terms] | None:
    """A dimension of an input that a polynomial determines if it is 0, and its value: of ``n - m - 1`` m and n - 1.

    It is one that no product and no quotient holds, with a coefficient of 1 or -1; of several the last one.

    Parameters
    ----------
    first : dimensions to be preferred.
    """
    singles = {atoms[0]: c for atoms, c in terms if len(atoms) == 1 and abs(c) == 1}
    counts = Counter(atom for atoms, _ in terms for atom in _within(atoms))
    open_ = [a for a in singles if counts[a] == 1 and (a in first or a[0] == "in")]
    if not open_:
        return None
    atom = max(open_, key=lambda a: (a in first, repr(a)))
    return atom, multiply(add((((atom,), singles[atom]),), terms, -1), ((((), singles[atom]),)))


def _within(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Atoms, and those that quotients and remainders among them have been made of."""
    for atom in atoms:
        yield atom
        if atom[0] in ("//", "%"):
            for terms in atom[1:]:
                yield from _within(a for atoms, _ in terms for a in atoms)


def is_plain(terms: Terms) -> bool:
    """Whether a polynomial is one dimension of one input, and nothing else."""
    return len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1


def constant_of(terms: Terms) -> int:
    """The value of a polynomial without dimensions."""
    return sum(coefficient for _, coefficient in terms)
