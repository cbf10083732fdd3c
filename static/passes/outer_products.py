"""Products of a column and a row, which are elementwise: they share kernels with what adds them up."""

from __future__ import annotations

from typing import Any

from common.core.op import ADD, REGISTRY, Op
from common.core.spec import Spec
from common.kernels.arrays.reducers import PRODUCT
from common.ops.linalg.few_products import FEW_PRODUCTS
from common.ops.shape.view import reshape_
from static.graph import Graph, Node, Value, derived_id, rebuild
from static.graph.elements import product_sizes


def outer_products(graph: Graph) -> Graph:
    """product(x, y) -> fma(x, y, 0.0), of a column and a row;  x * y + 0.0, if one of them is a number.

    The gradient of a matrix that is multiplied by a vector is one. Sums begin at +0.0, so that products of zeros are
    never -0.0; only a product that is fused with the sum may be -0.0 because it is too small.
    """
    nodes: list[Node] = []
    replace: dict[tuple[int, int], Any] = {}
    for node in graph.nodes:
        made = _written(node) if _is_outer(node) else [node]
        nodes += made
        if made[-1] is not node:
            replace[node.outputs[0].key] = made[-1].outputs[0]
    return rebuild(graph, nodes, replace) if replace else graph


def _is_outer(node: Node) -> bool:
    if node.op is None or not node.op.product or set(node.attrs) != {"trans_a", "trans_b"}:
        return False
    inner = product_sizes(node)[2]
    floats = node.outputs[0].dtype.kind == "f" and all(type(x) is Value for x in node.operands)
    return floats and type(inner) is int and inner == 1


def _written(node: Node) -> list[Node]:
    (out,), made = node.outputs, list[Node]()
    *batch, rows, columns = out.shape

    def new(op: Op, operands: tuple[Any, ...], attrs: dict[str, Any], shape: tuple[Any, ...]) -> Value:
        spec = Spec(shape, out.dtype)
        made.append(Node(derived_id(node.id, len(made)), op, operands, attrs, [spec], node.source, node.scope))
        return made[-1].outputs[0]

    shapes = (*batch, rows, 1), (*batch, 1, columns)
    factors = [new(reshape_, (x,), {"new_shape": s}, s) for x, s in zip(node.operands, shapes, strict=True)]
    if any(type(size) is int and size == 1 for size in (rows, columns)):
        product = new(REGISTRY[PRODUCT.join], tuple(factors), {}, out.shape)
        new(REGISTRY[ADD], (product, 0.0), {}, out.shape)
    else:
        new(FEW_PRODUCTS[0], (0.0, *factors), {}, out.shape)
    return made
