"""Products of matrices of a few elements, element by element: rotations, covariances, states of filters.

The kernel of products takes some 20 ns for each of a batch of small matrices, and stores and reads what lies between
two of them. Here every element of such a product is a function of numbers, or of arrays of them, one per matrix of the
batch, and so is every element of what is computed of products and between them. So all of it is one loop::

    c = a @ b   ->   c00 = chain(a[..., 0, 0], b[..., 0, 0], a[..., 0, 1], b[..., 1, 0]), c01 = ...

An element has the bits that it has in the kernel of products.
"""

from __future__ import annotations

from math import prod

from common.ops.linalg.matmul import FEW, are_few
from static.graph import Graph, Node
from static.graph.elements import Elements, Key, Mask, is_elementwise, is_reduction, product_sizes, shape_of

MOST = 1024
"""Elements of all values that are taken apart: the time to compile grows with them."""
MOST_OF_ONE = 5 * FEW
"""Elements of a function of them."""
MOST_OF_MATRIX = 16
"""Elements of each matrix of a product that is written out wherever it is read: more do not stay in registers."""


def write_out_products(graph: Graph) -> Graph:
    """product(x, y) -> stack(chain(x[..., 0, 0], y[..., 0, 0], ...), ...), of matrices whose small sizes are known."""
    apart: dict[Key, Mask] = {}
    sizes, by_elements = 0, _ByElements(graph)
    for node in graph.nodes:
        mask = product_mask(node)
        if mask is None or not (_pays(*product_sizes(node)) or by_elements.reads(node)):
            continue
        if (sizes := sizes + _count(node, mask)) <= MOST:
            apart[node.outputs[0].key] = mask
    if not apart:
        return graph
    _extend(graph, apart)
    return Elements(graph, apart).rebuilt()


def product_mask(node: Node) -> Mask | None:
    """Which dimensions of a product are written out; None if it is no product, or stays as it is."""
    if node.op is None or not node.op.product or set(node.attrs) != {"trans_a", "trans_b"}:
        return None
    sizes = product_sizes(node)
    if not all(type(n) is int for n in sizes) or not are_few(*sizes) or node.outputs[0].dtype.kind != "f":
        return None
    return (*(False,) * (len(node.outputs[0].shape) - 2), True, True)


def _pays(rows: int, columns: int, inner: int) -> bool:
    """Whether a product alone takes less time written out than in the kernel, which reads rows by vectors."""
    if rows == 1 or columns == 1:
        return True
    return max(rows * columns, rows * inner, inner * columns) <= MOST_OF_MATRIX


class _ByElements:
    """What of a graph is read element by element."""

    def __init__(self, graph: Graph) -> None:
        self._users, self._bound = graph.users(), {value.key for value in graph.results}

    def reads(self, node: Node) -> bool:
        """Whether all that reads a matrix, or functions of its elements, takes single elements."""
        rank, waiting, seen = len(node.outputs[0].shape), [node.outputs[0].key], set[Key]()
        while waiting:
            key = waiting.pop()
            if key in self._bound or not (users := self._users.get(key)):
                return False
            for user in users:
                if is_elementwise(user) and len(user.outputs[0].shape) == rank:
                    waiting += {user.outputs[0].key} - seen
                    seen.add(user.outputs[0].key)
                elif not _takes_one(user, rank):
                    return False
        return True


def _takes_one(user: Node, rank: int) -> bool:
    """Whether a view shows one element of matrices."""
    part = user.op is not None and user.op.parts == "part" and "dims" in user.attrs
    return part and all(d is not None and d < rank - 2 for d in user.attrs["dims"])


def _count(node: Node, mask: Mask) -> int:
    """How many elements of a result are written out."""
    return prod(n for n, out in zip(shape_of(node.outputs[0]), mask, strict=True) if out)


def _fits(node: Node, mask: Mask) -> bool:
    """Whether the dimensions of a result that are written out have known sizes, not too large together."""
    shape = shape_of(node.outputs[0])
    if len(shape) != len(mask) or any(type(n) is not int for n, out in zip(shape, mask, strict=True) if out):
        return False
    return 0 < _count(node, mask) <= MOST_OF_ONE


def _extend(graph: Graph, apart: dict[Key, Mask]) -> None:
    """Add the elementwise functions of what is taken apart, and those that nothing else reads."""
    for node in graph.nodes:
        mask = _mask_of_function(node, apart)
        if mask is not None and _fits(node, mask):
            apart[node.outputs[0].key] = mask
    users, bound = graph.users(), {value.key for value in graph.results}
    for node in reversed(graph.nodes):
        if not is_elementwise(node) or (key := node.outputs[0].key) in apart or key in bound:
            continue
        found = {apart.get(user.outputs[0].key) for user in users.get(key, [])}
        if len(found) == 1 and (own := found.pop()) is not None and _fits(node, own):
            apart[key] = own


def _mask_of_function(node: Node, apart: dict[Key, Mask]) -> Mask | None:
    """Which dimensions of an elementwise function, or a reduction, are written out because those of an operand are."""
    if is_elementwise(node):
        count = len(node.outputs[0].shape)
        masks = {apart[x.key] for x in node.values if x.key in apart and len(x.shape) == count}
        return masks.pop() if len(masks) == 1 else None
    own = apart.get(node.operands[0].key) if is_reduction(node) else None
    if own is None or not all(own[d] for d in node.attrs["dim"]):
        return None
    return tuple(out for d, out in enumerate(own) if node.attrs["keepdim"] or d not in node.attrs["dim"])
