"""Symbolic sizes: ints that know how they follow from the inputs' dimensions.

A `Dim` is a polynomial with integer coefficients over *atoms*; an atom is one dimension of one input, or a
floor division or remainder that the polynomials cannot express. The normal form makes equality structural.
Every `Dim` carries a *hint*, its value in the call that is being traced. Comparing or concretising a `Dim`
decides by the hint and records a *guard*: later calls with other sizes reuse the trace if all guards hold.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Mapping
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from common.core.polynomials import Atom, Guard, Terms, add, constant_of, divide, evaluate, is_plain, multiply, solve
from common.core.switching import Change, switching


def _terms(value: Dim | int) -> Terms:
    if isinstance(value, Dim):
        return value.terms
    return (((), int(value)),) if value else ()


def _size(x: Any) -> Any:
    """A size's operand: numpy's integers become Python's; anything else stays."""
    if isinstance(x, (Dim, int)):
        return x
    return int(x) if isinstance(x, (np.integer, np.ndarray)) and x.ndim == 0 and x.dtype.kind in "iu" else x


class Dim:
    """A size that is known only per call; see the module's docstring.

    Arithmetic with ints and other Dims stays symbolic. ``int(d)``, ``range(d)`` and comparisons record a
    guard, and so does ``d ** 0.5``. Otherwise with floats, and in ``/``, a Dim becomes a weak traced number.
    """

    __slots__ = ("terms", "hint", "scope")

    def __init__(self, terms: Terms, hint: int, scope: DimScope) -> None:
        self.terms, self.hint, self.scope = terms, hint, scope

    def _make(self, terms: Terms, hint: int) -> Any:
        if not terms:
            return 0
        if len(terms) == 1 and not terms[0][0]:
            return terms[0][1]
        return Dim(terms, hint, self.scope)

    def __add__(self, other: Any) -> Any:
        other = _size(other)
        if not isinstance(other, (Dim, int)):
            return self.scope.number(self) + other
        return self._make(add(self.terms, _terms(other)), self.hint + hint(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        other = _size(other)
        if not isinstance(other, (Dim, int)):
            return self.scope.number(self) - other
        return self._make(add(self.terms, _terms(other), -1), self.hint - hint(other))

    def __rsub__(self, other: Any) -> Any:
        other = _size(other)
        if not isinstance(other, int):
            return other - self.scope.number(self)
        return self._make(add(_terms(other), self.terms, -1), other - self.hint)

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:  # by far the commonest
            if other == 1:
                return self
            return Dim(tuple([(x, c * other) for x, c in self.terms]), self.hint * other, self.scope) if other else 0
        other = _size(other)
        if not isinstance(other, (Dim, int)):
            return self.scope.number(self) * other
        return self._make(multiply(self.terms, _terms(other)), self.hint * hint(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self.scope.number(self) / (self.scope.number(other) if isinstance(other, Dim) else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.scope.number(self)

    def __floordiv__(self, other: Any) -> Any:
        return self._quotient("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._quotient("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._quotient("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._quotient("%", other, self)

    def __pow__(self, other: Any) -> Any:
        other = _size(other)
        if type(other) is not int or other < 0:
            return int(self) ** (int(other) if isinstance(other, Dim) else other)  # what Python makes of a size
        power: Any = 1
        for _ in range(other):
            power = power * self
        return power

    def __rpow__(self, other: Any) -> Any:
        return other ** int(self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def _quotient(self, operator: str, a: Any, b: Any) -> Any:
        a, b = _size(a), _size(b)
        if isinstance(a, float) or isinstance(b, float):  # what Python makes of a size
            a, b = (int(x) if isinstance(x, Dim) else x for x in (a, b))
            return a // b if operator == "//" else a % b
        if not isinstance(a, (Dim, int)) or not isinstance(b, (Dim, int)):
            return NotImplemented
        exact = divide(_terms(a), _terms(b))
        value = hint(a) // hint(b) if operator == "//" else hint(a) % hint(b)
        if exact is not None:
            return self._make(exact, value) if operator == "//" else 0
        return Dim((((((operator, _terms(a), _terms(b))),), 1),), value, self.scope)

    def _decide(self, relation: str, a: Any, b: Any) -> bool:
        a, b = _size(a), _size(b)
        left, right = _terms(a), _terms(b)
        holds = hint(a) == hint(b) if relation == "==" else hint(a) < hint(b)
        return holds if left == right else self.scope.decide(relation, left, right, holds)

    def __eq__(self, other: object) -> bool:
        other = _size(other)
        if not isinstance(other, (Dim, int)):
            return NotImplemented
        return self._decide("==", self, other)

    def __lt__(self, other: Any) -> bool:
        return self._decide("<", self, other)

    def __gt__(self, other: Any) -> bool:
        return self._decide("<", other, self)

    def __le__(self, other: Any) -> bool:
        return not self._decide("<", other, self)

    def __ge__(self, other: Any) -> bool:
        return not self._decide("<", self, other)

    def __hash__(self) -> int:
        return hash(self.terms)

    def __bool__(self) -> bool:
        return not self._decide("==", self, 0)

    def __index__(self) -> int:
        return self.scope.concrete(self)

    __int__ = __index__

    def __invert__(self) -> int:
        return ~int(self)

    def __float__(self) -> float:
        return float(self.__index__())

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The size in this call, as numpy asks for it: ``np.arange(n)`` has ints."""
        return np.array(int(self), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Answer numpy's operators of sizes by sizes, and what needs a number by the one of this call."""
        if any(hasattr(type(x), "__op_priority__") for x in inputs):
            return NotImplemented
        own = _OPERATORS.get(ufunc.__name__) if method == "__call__" and not options else None
        if own is not None and all(isinstance(x, _NUMBERS) for x in inputs):
            return own(*(x.item() if isinstance(x, np.generic) else x for x in inputs))
        return getattr(ufunc, method)(*(int(x) if isinstance(x, Dim) else x for x in inputs), **options)

    def __repr__(self) -> str:
        """The size in this call, as messages say it; `named` tells where it comes from."""
        return str(self.hint)


def _of_bits(operator: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Dim, Any], Any]:
    """An operator of bits, which gives a number: the trace holds for this size."""
    order = slice(None, None, -1 if swapped else 1)
    return lambda *two: operator(*map(int, two[order])) if isinstance(two[1], (Dim, int)) else NotImplemented


for _name, _operator in {"and": op.and_, "or": op.or_, "xor": op.xor, "lshift": op.lshift, "rshift": op.rshift}.items():
    setattr(Dim, f"__{_name}__", _of_bits(_operator, False))
    setattr(Dim, f"__r{_name}__", _of_bits(_operator, True))

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": op.add, "subtract": op.sub, "multiply": op.mul, "divide": op.truediv, "floor_divide": op.floordiv,
    "remainder": op.mod, "power": op.pow, "negative": op.neg, "positive": op.pos, "absolute": abs, "maximum": max,
    "minimum": min, "equal": op.eq, "not_equal": op.ne, "less": op.lt, "less_equal": op.le, "greater": op.gt,
    "greater_equal": op.ge}  # fmt: skip
_NUMBERS = (Dim, int, float, np.generic)


class DimScope:
    """Where the Dims of one trace put their guards.

    Parameters
    ----------
    constant : turns a Dim into a weak value of the graph.
    number : turns a Dim into a weak traced number.
    """

    def __init__(self, constant: Callable[[Dim], Any], number: Callable[[Dim], Any]) -> None:
        self.guards: dict[str, Guard] = {}
        self.constant, self.number = constant, number
        self.sizes: tuple[int, Mapping[Atom, int]] | None = None
        self.renamed: dict[Atom, Terms] = {}
        self._recorded: set[tuple[str, Terms, Terms]] = set()
        self._canonical: dict[Terms, Terms] = {}
        self._numbers: dict[Terms, int] = {}

    def decide(self, relation: str, left: Terms, right: Terms, holds: bool) -> bool:
        """Rely on a relation between sizes, which holds for their hints or does not."""
        if (relation, left, right) not in self._recorded:
            self._recorded.add((relation, left, right))
            self.rely(relation, left, right, holds)
        return holds

    def rely(self, relation: str, left: Terms, right: Terms, holds: bool) -> None:
        """Record a relation; sizes that it makes equal are one."""
        self.guard(Guard(relation, left, right, holds))
        if relation == "==" and holds:
            self.unify(left, right)

    def concrete(self, dim: Dim) -> int:
        """The number that Python asks for: calls with this size only."""
        self.rely("==", dim.terms, _terms(dim.hint), True)
        return dim.hint

    def guard(self, guard: Guard) -> None:
        """Record a guard once."""
        self.guards.setdefault(str(guard), guard)

    def settled(self, dim: Dim) -> Any:
        """A size of a new value: a number where it is known, or is 1 in the traced call, which is then a guard.

        Sizes of 1 are numbers, because broadcasting depends on them.
        """
        terms = self.canonical(dim.terms)
        if not any(atoms for atoms, _ in terms):
            return constant_of(terms)
        return 1 if dim.hint == 1 and self.decide("==", dim.terms, _terms(1), True) else dim

    def known(self, x: Any) -> Any:
        """An attribute with numbers in place of sizes that are known by now; itself if there are none."""
        if isinstance(x, Dim):
            terms = self.canonical(x.terms)
            return x if any(atoms for atoms, _ in terms) else constant_of(terms)
        if not isinstance(x, tuple) or not (self.renamed or self._numbers):
            return x
        found = tuple([self.known(part) if isinstance(part, (tuple, Dim)) else part for part in x])
        return found if any(a is not b for a, b in zip(x, found, strict=True)) else x

    def unify(self, left: Terms, right: Terms) -> None:
        """Sizes that a guard keeps equal are one from here on; what equals a number is that number.

        ``n == m`` and ``n - 1 == m`` give m another name, and ``n - 1 == m - 2`` one of the two.
        """
        a, b = self.canonical(left), self.canonical(right)
        if not is_plain(b):
            a, b = b, a
        if a == b:
            return
        if not any(atoms for atoms, _ in a):
            self._fix(b, constant_of(a))
        elif not any(atoms for atoms, _ in b):
            self._fix(a, constant_of(b))
        elif (solved := solve(add(b, a, -1), b[0][0][:1] if is_plain(b) else ())) is not None:
            self.rename(*solved)

    def _fix(self, terms: Terms, number: int) -> None:
        """A polynomial has a value: so has its only dimension, if it is ``a * n + b``."""
        rest = [term for term in terms if term[0]]
        ((atom, *more), factor), value = rest[0], number - constant_of(tuple(term for term in terms if not term[0]))
        if len(rest) == 1 and not more and value % factor == 0:
            self.rename(atom, _terms(value // factor))
        elif self.canonical(terms) == terms:
            self._numbers[terms] = number
            self._canonical.clear()

    def rename(self, atom: Atom, root: Terms) -> None:
        """A dimension is what others make, or a number, from here on."""
        self.renamed[atom] = root
        self._canonical.clear()
        self._recorded.clear()  # what is decided again may make more sizes one by now

    @switching
    def knowing(self, renamed: dict[Atom, Terms]) -> Change:
        """A context in which no sizes are one but those of `renamed`, which takes up what is found out there."""
        on, off = (
            (partial(setattr, self, "renamed", known), self._canonical.clear, self._recorded.clear)
            for known in (renamed, self.renamed)
        )
        return Change(on, off)

    def canonical(self, terms: Terms) -> Terms:
        """`terms` with unified dimensions written as one, and dimensions that are numbers as these."""
        if not self.renamed and not self._numbers:
            return terms
        known = self._canonical.get(terms)
        if known is None:
            known = self._written_as_one(terms)
            if known in self._numbers:
                known = _terms(self._numbers[known])
            self._canonical[terms] = known
        return known

    def _written_as_one(self, terms: Terms) -> Terms:
        out: Terms = ()
        for atoms, coefficient in terms:
            product: Terms = (((), coefficient),)
            for atom in atoms:
                root = self.renamed.get(atom)
                product = multiply(product, (((atom,), 1),) if root is None else self._written_as_one(root))
            out = add(out, product)
        return out

    def input(self, position: int, axis: int, value: int) -> Dim:
        """The Dim of one axis of one input."""
        return Dim((((("in", position, axis),), 1),), value, self)


def hint(value: Any) -> int:
    """The value in the traced call, or see `common.core.far_sizes`; no guard: for what changes speed, never results."""
    if not isinstance(value, Dim):
        return value
    sizes = value.scope.sizes
    return value.hint if sizes is None or sizes[0] != get_ident() else evaluate(value.terms, sizes[1])


def meant(value: Any) -> Any:
    """A size that a user has given: where it is negative in this call, and so means something else, as that number."""
    subtracts = isinstance(value, Dim) and any(coefficient < 0 for _, coefficient in value.terms)  # else no guard
    return int(value) if subtracts and value < 0 else value


def same(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for every call, without adding a guard."""
    if isinstance(a, int):
        return bool(a == b) if isinstance(b, int) else key(a) == key(b)
    return key(a) == key(b) if isinstance(b, int) else a.terms == b.terms or key(a) == key(b)


def same_shape(a: Any, b: Any) -> bool:
    """Whether two shapes are equal for every call, without adding a guard."""
    if len(a) != len(b):
        return False
    for m, n in zip(a, b):  # noqa: SIM110  a generator would double its time
        if m is not n and not same(m, n):
            return False
    return True


def key(value: Any) -> Any:
    """A hashable name of a size: equal names are equal sizes in every call."""
    if isinstance(value, Dim):
        return value.scope.canonical(value.terms)
    return _terms(value)


def resolve(value: Any, env: Mapping[Atom, int]) -> Any:
    """`value` with every Dim replaced by its size for `env`; looks into tuples and lists."""
    if isinstance(value, Dim):
        return evaluate(value.terms, env)
    if isinstance(value, (tuple, list)):
        return type(value)(resolve(v, env) for v in value)
    return value
