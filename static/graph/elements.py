"""Values of a few elements, element by element.

An element is what a function of numbers makes of the elements of its operands, or of arrays of these, one number for
each place in the dimensions that stay. Views and joined values only say where an element is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign
from typing import Any

import numpy as np

from common.core.numerics import BLOCK, LANES
from common.core.op import ADD, REGISTRY
from common.core.sizes import Dim, same, same_shape
from common.core.spec import Spec
from common.kernels.arrays.reducers import PRODUCT, REDUCERS, SUM
from common.ops.create.creation import full_
from common.ops.linalg.few_products import FEW_PRODUCTS, MOST
from common.ops.shape.cat import stack_of
from common.ops.shape.slices import select_
from common.ops.shape.view import expand_, reshape_
from static.graph.nodes import Graph, Node, Value, derived_id, rebuild

Index = tuple[int | None, ...]
"""An element: its place in each dimension, None in those that it has all of."""
Mask = tuple[bool, ...]
"""Which dimensions of a value are written out."""
Key = tuple[int, int]


def size_of(n: Any) -> Any:
    """A size, as a number if it is known by now."""
    return n.scope.known(n) if isinstance(n, Dim) else n


def shape_of(x: Value) -> tuple[Any, ...]:
    """The sizes of a value, as numbers as far as they are known by now."""
    return tuple(map(size_of, x.shape))


def product_sizes(node: Node, size: Callable[[Any], Any] = size_of) -> tuple[Any, Any, Any]:
    """Rows, columns, and the inner size of a product of matrices; `size` says which number a size is."""
    rows, columns = node.outputs[0].shape[-2:]
    return size(rows), size(columns), size(node.operands[0].shape[-2 if node.attrs["trans_a"] else -1])


def is_elementwise(node: Node) -> bool:
    """Whether a node computes each element of its one result from one of each operand."""
    return node.op is not None and node.op.kind == "elementwise" and len(node.outputs) == 1


def is_reduction(node: Node) -> bool:
    """Whether a node reduces floats, in an order that `Elements` knows."""
    known = node.op is not None and node.op.kind == "reduction" and node.op.reduce in REDUCERS
    return known and type(node.operands[0]) is Value and node.outputs[0].dtype.kind == "f"


class Elements:
    """The elements of values, made when somebody asks for them.

    Parameters
    ----------
    apart : the values that are taken apart, and which of their dimensions: what elementwise functions, reductions, and
        products of matrices give.
    """

    def __init__(self, graph: Graph, apart: dict[Key, Mask]) -> None:
        self.graph, self.apart = graph, apart
        self.nodes: list[Node] = []
        self.known: dict[tuple[Key, Index], Any] = {}
        self.whole: dict[Key, Any] = {}
        self.waiting: dict[Key, Node] = {}
        self.zeros: set[Key] = set()
        self.above: set[Key] = set()  # sums that are never -0.0

    def rebuilt(self) -> Graph:
        """The graph without what is taken apart; what needs one of these values gets it put together."""
        for node in self.graph.nodes:
            if node.outputs and (node.outputs[0].key in self.apart or self.is_element(node)):
                continue
            for x in node.values:
                self.put_together(x)
            self.nodes.append(node)
        for value in self.graph.results:
            self.put_together(value)
        return rebuild(self.graph, self.nodes, self.whole)

    def is_element(self, node: Node) -> bool:
        """Whether a view shows one element of what is taken apart, which then takes its place."""
        x = node.outputs[0]
        seen: Any = x, (None,) * len(x.shape)
        while seen is not None and seen[0].key not in self.apart:
            op = seen[0].node.op
            seen = _seen(seen[0].node, seen[1]) if op is not None and op.kind == "view" else None
        if seen is None or tuple(i is not None for i in seen[1]) != self.apart[seen[0].key]:
            return False
        self.whole[x.key] = self.element(*seen)
        return True

    def of_region(self, places: Sequence[Sequence[Index]]) -> Graph:
        """A graph that gives the elements of each of its results one by one."""
        apart = self.apart.keys()
        self.waiting = {x.key: node for node in self.graph.nodes for x in node.outputs if x.key not in apart}
        for x in self.graph.inputs:
            self.present(x)
        outputs = [self.element(x, i) for x, own in zip(self.graph.outputs, places, strict=True) for i in own]
        return rebuild(Graph(self.graph.inputs, self.nodes, outputs, []), self.nodes, self.whole)

    def present(self, x: Value) -> Value:
        """A value as a whole, for whose node it is time now."""
        self.put_together(x)
        if (node := self.waiting.pop(x.key, None)) is not None:
            for y in node.values:
                self.present(y)
            self.nodes.append(node)
        return x

    def put_together(self, x: Value) -> None:
        """Let `whole` have a value that is needed as an array."""
        mask = self.apart.get(x.key)
        if mask is None or x.key in self.whole:
            return
        sizes = [n for n, out in zip(shape_of(x), mask, strict=True) if out]
        elements = []
        for place in map(iter, np.ndindex(*sizes)):
            elements.append(self.element(x, tuple(next(place) if out else None for out in mask)))
        lead = x.shape[: len(mask) - len(sizes)]
        made = elements[0]
        if len(elements) > 1:
            shape = (*lead, len(elements))
            made = self.node(x, stack_of(len(elements)), tuple(elements), {"dim": len(lead)}, shape, -1)
        if len(made.shape) != len(x.shape) or len(sizes) > 1:
            made = self.node(x, reshape_, (made,), {"new_shape": x.shape}, x.shape, -2)
        self.whole[x.key] = made

    def element(self, x: Any, index: Index) -> Any:
        """The element of a value; of all places, in the dimensions of which its index says nothing."""
        if type(x) is not Value:
            return x
        if not x.shape and x.key not in self.apart and (x.node.op is None or x.node.op.kind != "view"):
            return self.present(x)
        if (x.key, index) not in self.known:
            self.known[x.key, index] = self._made(x, index)
        return self.known[x.key, index]

    def _made(self, x: Value, index: Index) -> Any:
        op = x.node.op
        if x.key in self.apart:
            if is_elementwise(x.node):
                return self._of_function(x, index)
            return self._of_product(x, index) if op is None or op.product else self._of_reduction(x, index)
        seen = None if op is None else _seen(x.node, index)
        if isinstance(seen, float):
            return self._of_number(x, index, seen)
        if seen is None:
            return self._selected(x, index) if x.shape else self.present(x)
        return self.element(*seen)

    def _of_function(self, x: Value, index: Index) -> Value:
        operands = []
        for y in x.node.operands:
            if type(y) is Value:
                own = index[len(index) - len(y.shape) :]
                one = [type(n) is int and n == 1 for n in shape_of(y)]
                y = self.element(y, tuple(0 if a and i is not None else i for a, i in zip(one, own, strict=True)))
            operands.append(y)
        if x.node.name == ADD and x.dtype.kind == "f":
            return self._sum(x, index, operands)
        return self._numbered(x, index, x.node.op, operands, x.node.attrs)

    def _sum(self, x: Value, index: Index, operands: Sequence[Any]) -> Any:
        """A sum, which +0.0 changes only where it may be -0.0."""
        zeros = [y.key in self.zeros if type(y) is Value else _is_zero(y) for y in operands]
        shape = _kept(x, index)
        for zero, other in zip(zeros, reversed(operands), strict=True):
            if zero and type(other) is Value and same_shape(other.shape, shape):
                if other.key in self.zeros or other.key in self.above:
                    return other
        made = self._numbered(x, index, x.node.op, operands, x.node.attrs)
        if any(zeros) or any(type(y) is Value and y.key in self.above for y in operands):
            self.above.add(made.key)
        return made

    def _of_number(self, x: Value, index: Index, number: float) -> Value:
        """An element that is a number."""
        made = self._numbered(x, index, full_, (), {"shape": _kept(x, index), "value": number, "dtype": x.dtype})
        if _is_zero(number):
            self.zeros.add(made.key)
        return made

    def _of_product(self, x: Value, index: Index) -> Value:
        """A chain of fused multiply-adds; of a row or a column the sum of the products, as a reduction adds them up."""
        node, (*batch, i, j) = x.node, index
        (a, b), (m, n, k) = node.operands, product_sizes(node)
        pairs = []
        for p in range(k):
            left = self.element(a, (*batch, p, i) if node.attrs["trans_a"] else (*batch, i, p))
            pairs.append((left, self.element(b, (*batch, j, p) if node.attrs["trans_b"] else (*batch, p, j))))
        if any(type(size) is int and size == 1 for size in (m, n)):
            terms = [self._numbered(x, index, REGISTRY[PRODUCT.join], pair, {}, -p) for p, pair in enumerate(pairs, 1)]
            return self._folded(x, index, SUM.join, terms)
        total: Any = 0.0
        for p in range(0, k, MOST):
            factors = [factor for pair in pairs[p : p + MOST] for factor in pair]
            total = self._numbered(x, index, FEW_PRODUCTS[len(factors) // 2 - 1], (total, *factors), {}, p)
        return total

    def _of_reduction(self, x: Value, index: Index) -> Value:
        node = x.node
        assert node.op is not None
        (y,), dims = node.operands, node.attrs["dim"]
        kept = [d for d in range(len(y.shape)) if d not in dims]
        own = index if not node.attrs["keepdim"] else tuple(index[d] for d in kept)
        terms = []
        for place in np.ndindex(*[shape_of(y)[d] for d in dims]):
            where = dict(zip((*dims, *kept), (*place, *own), strict=True))
            terms.append(self.element(y, tuple(where[d] for d in range(len(y.shape)))))
        return self._folded(x, index, REDUCERS[node.op.reduce].join, terms)

    def _folded(self, x: Value, index: Index, join: str, terms: list[Value]) -> Value:
        """The terms, fewer than a block, in lanes, which are folded by halves; see `common.core.numerics`."""
        assert len(terms) <= BLOCK
        for j in range(LANES, len(terms)):
            pair = terms[j % LANES], terms[j]
            terms[j % LANES] = self._numbered(x, index, REGISTRY[join], pair, {}, LANES * LANES + j)
        terms = terms[:LANES]
        half = LANES // 2
        while half:
            for j in range(half, min(2 * half, len(terms))):
                pair = terms[j - half], terms[j]
                terms[j - half] = self._numbered(x, index, REGISTRY[join], pair, {}, half + j * LANES)
            terms, half = terms[:half], half // 2
        return self._numbered(x, index, REGISTRY[join], (terms[0], 0.0), {}) if join == SUM.join else terms[0]

    def _selected(self, x: Value, index: Index) -> Value:
        starts = tuple(0 if i is None else i for i in index)
        sizes = tuple(n if i is None else 1 for n, i in zip(x.shape, index, strict=True))
        dims = tuple(d for d, i in enumerate(index) if i is None)
        attrs = {"starts": starts, "sizes": sizes, "steps": (1,) * len(index), "dims": dims}
        return self._numbered(x, index, select_, (self.present(x),), attrs)

    def _numbered(self, x: Value, index: Index, op: Any, operands: Any, attrs: Any, *more: int) -> Value:
        numbers = (len(index), *(-1 if i is None else i for i in index))
        return self.node(x, op, tuple(operands), attrs, _kept(x, index), *numbers, *more)

    def node(self, x: Value, op: Any, operands: tuple[Any, ...], attrs: Any, shape: Any, *numbers: int) -> Value:
        """A node in the place of what makes a value."""
        spec, number = Spec(tuple(shape), x.dtype, x.spec.weak), derived_id(x.node.id, x.index, *numbers)
        self.nodes.append(Node(number, op, operands, attrs, [spec], x.node.source, x.node.scope))
        return self.nodes[-1].outputs[0]


def _kept(x: Value, index: Index) -> tuple[Any, ...]:
    """The sizes of the dimensions of which there is all."""
    return tuple(n for n, i in zip(x.shape, index, strict=True) if i is None)


def _is_zero(number: Any) -> bool:
    """Whether a number is +0.0."""
    return number == 0 and copysign(1, number) > 0


def _seen(node: Node, index: Index) -> tuple[Any, Index] | float | None:
    """Of which operand, and where, a view or a joined value shows an element, or which number it is; else None."""
    assert node.op is not None
    way, attrs = node.op.parts, node.attrs
    x = node.operands[0] if node.operands else None
    if way == "turn":
        order = [attrs["dims"][i] for i, place in enumerate(index) if place is None]
        own = dict(zip(attrs["dims"], index, strict=True))
        return (x, tuple(own[d] for d in range(len(index)))) if order == sorted(order) else None
    if way in ("stack up", "join"):
        return _of_joined(node, attrs["dim"], index, way == "stack up")
    if type(x) is not Value:
        literal = x is None and node.op.kind == "kernel" and node.outputs[0].dtype.kind == "f" and None not in index
        return float(node.op.oracle(**attrs)[index]) if literal and _is_known(node.outputs[0]) else None
    if way == "part":
        return _of_part(x, attrs, index)
    if way == "pad" and "sizes" in attrs:
        return _of_padded(x, attrs, index)
    if node.op is expand_ and None not in index:
        last = index[len(index) - len(x.shape) :]
        return x, tuple(0 if size_of(n) == 1 else i for n, i in zip(x.shape, last, strict=True))
    if node.op.form_only and x.dtype == node.outputs[0].dtype:
        return _reshaped(x, node.outputs[0].shape, index)
    return None


def _is_known(x: Value) -> bool:
    return all(type(n) is int for n in x.shape)


def _of_joined(node: Node, dim: int, index: Index, stacked: bool) -> tuple[Any, Index] | None:
    """The operand of which an element of a joined value is, and where."""
    place, before, behind = index[dim], index[:dim], index[dim + 1 :]
    if place is None:
        return None
    if stacked:
        return node.operands[place], (*before, *behind)
    for x in node.operands:
        size = size_of(x.shape[dim])
        if type(size) is not int:
            return None
        if place < size:
            return x, (*before, place, *behind)
        place -= size
    return None


def _of_part(x: Value, attrs: dict[str, Any], index: Index) -> tuple[Value, Index] | None:
    """Where an element of a part of a value is in that value."""
    dims = attrs.get("dims", tuple(range(len(index))))
    own: list[int | None] = list(attrs["starts"])
    if any(type(start) is not int for start in own) or None in dims or list(dims) != sorted(dims):
        return None
    for d, place in zip(dims, index, strict=True):
        start, step = attrs["starts"][d], attrs["steps"][d]
        if place is None and not (start == 0 and step == 1 and same(attrs["sizes"][d], x.shape[d])):
            return None
        own[d] = None if place is None else start + place * step
    return x, tuple(own)


def _of_padded(x: Value, attrs: dict[str, Any], index: Index) -> tuple[Value, Index] | float | None:
    """Where an element of a part among zeros is in that part; 0 outside of it."""
    own: list[int | None] = []
    for place, start, size, step, n in zip(
        index, attrs["starts"], attrs["sizes"], attrs["steps"], attrs["shape"], strict=True
    ):
        if place is None:
            if not (type(start) is int and start == 0 and same(size, n)):
                return None
            own.append(None)
            continue
        if any(type(i) is not int for i in (start, size, step)):
            return None
        number, rest = divmod(place - start, step)
        if rest or not 0 <= number < size:
            return 0.0
        own.append(number)
    return _reshaped(x, attrs["sizes"], tuple(own))


def _reshaped(x: Value, to: Sequence[Any], index: Index) -> tuple[Value, Index] | None:
    """Where an element of a value under another shape, whose first dimensions stay, is in that value."""
    kept = next((d for d, i in enumerate(index) if i is not None), len(index))
    if None in index[kept:] or len(x.shape) < kept or not all(map(same, x.shape[:kept], to[:kept])):
        return None
    before, after = shape_of(x)[kept:], tuple(map(size_of, to[kept:]))
    if not all(type(n) is int for n in (*before, *after)) or np.prod(before) != np.prod(after):
        return None
    own = [i for i in index[kept:] if i is not None]
    place = np.ravel_multi_index(own, after) if after else 0
    return x, (*index[:kept], *map(int, np.unravel_index(place, before) if before else ()))


__all__ = ["Elements", "Key", "Mask", "is_elementwise", "is_reduction", "product_sizes", "shape_of", "size_of"]
