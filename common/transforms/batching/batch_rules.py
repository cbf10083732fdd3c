"""How the ops of one example become ops of all examples: a rule per kind of op.

A rule is ``rule(op, operands, attrs, count)``. Operands are `Batched` values, of which at least one is mapped, or
numbers; the result is a tensor, or a tuple of such, with all examples along dimension 0; None where the rule does not
serve these operands. Rules run outside of the call of `vmap` and call ops there.

What most ops need follows from their record: an elementwise op aligns its operands, and every other one that is not
named here moves the dimensions that its attributes name by one, and puts the examples in front of the sizes that they
list. Ops that work on the last dimensions of their operands, as linear algebra does, take a dimension in front as
their own. What has no rule runs example by example (`one_by_one`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.core import mode
from common.core.dispatch import apply
from common.core.errors import ShapeError
from common.core.op import REGISTRY, Op, out_specs
from common.core.spec import numel
from common.ops.create.creation import arange_, full_, made
from common.ops.linalg.matmul import bmm_, mm_
from common.ops.shape.cat import stack
from common.ops.shape.split import unbind
from common.ops.shape.view import permute_, reshape_
from common.tensor.base import spec_of
from common.tensor.create import lift
from common.transforms.batching.batch_operands import aligned, bare, folded, in_front, is_mapped, spread, swapped
from common.transforms.batching.batched import Batched

Operands = Sequence[Any]
Attributes = Mapping[str, Any]
Rule = Callable[[Op, Operands, Attributes, Any], Any]


def rule_of(op: Op) -> Rule | None:
    """The rule of an op; None for what runs as what it is made of, or example by example."""
    if op.kind == "elementwise":
        return elementwise
    found = _RULES.get(op.name) or _RULES.get(op.name.rstrip("0123456789"))
    return moved if found is None and op.kind in ("reduction", "view") else found


# ------------------------------------------------------------------ rules


def elementwise(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """Align the examples' dimensions; what they share broadcasts as it does for one."""
    ndim = max([len(x.spec.shape) for x in operands if type(x) is Batched])
    return apply(op, [aligned(x, ndim, count) if is_mapped(x) else bare(x) for x in operands], attrs)


#: New values of attributes, by name: of the value, of the number of examples, and of how many there are.
_MOVED: dict[str, Callable[[Any, Any], Any]] = {
    "dim": lambda dim, count: tuple([d + 1 for d in dim]) if type(dim) is tuple else dim + 1,
    "dims": lambda dims, count: tuple([d + 1 for d in dims]),
    "dim1": lambda dim, count: dim + 1,
    "dim2": lambda dim, count: dim + 1,
    "shape": lambda shape, count: (count, *shape),
    "new_shape": lambda shape, count: (count, *shape),
    "sizes": lambda sizes, count: (count, *sizes),
    "starts": lambda starts, count: (0, *starts),
    "steps": lambda steps, count: (1, *steps),
}


def moved(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """Dimensions that attributes name are one further on; sizes that they list have the examples in front."""
    return apply(op, [spread(x, count) for x in operands], moved_attributes(op, attrs, count))


def moved_attributes(op: Op, attrs: Attributes, count: Any) -> Attributes:
    """Attributes of an op on one example as those of the op on all."""
    names = op.attrs
    return {name: _MOVED[name](x, count) if name in _MOVED and name in names else x for name, x in attrs.items()}


def leading(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """Ops on the last dimensions, and kernels that compute elements from elements: one in front is theirs."""
    return apply(op, [spread(x, count) for x in operands], attrs)


def searched(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """searchsorted: an example's values, of any shape, are one row beside its row of boundaries."""
    x, v = operands
    if len(x.spec.shape) > 1:
        return leading(op, operands, attrs, count)
    if not is_mapped(x):
        return apply(op, [x.value, v.value], attrs)
    row = reshape_(spread(v, count), new_shape=(count, numel(v.spec.shape)))
    return reshape_(apply(op, [x.value, row], attrs), new_shape=(count, *v.spec.shape))


def permuted(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """permute: the examples stay in front."""
    return apply(op, [operands[0].value], {**attrs, "dims": (0, *(d + 1 for d in attrs["dims"]))})


def selected(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """select: a slice of all examples, whose new dimensions are None."""
    new = {name: _MOVED[name](attrs[name], count) for name in ("starts", "sizes", "steps")}
    new["dims"] = (0, *(None if d is None else d + 1 for d in attrs["dims"]))
    return apply(op, [operands[0].value], {**attrs, **new})


def expanded(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """expand: new dimensions stand behind the examples."""
    (x,) = operands
    target = attrs["new_shape"]
    return apply(op, [aligned(x, len(target), count)], {**attrs, "new_shape": (count, *target)})


def repeated(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """repeat: the examples once."""
    (x,) = operands
    repeats = attrs["repeats"]
    return apply(op, [aligned(x, len(repeats), count)], {**attrs, "repeats": (1, *repeats)})


def product(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """mm: rows of all examples are rows of one matrix where the right factor is shared; else a product per example."""
    a, b = operands
    if is_mapped(a) and not is_mapped(b) and not attrs["trans_a"]:
        y = apply(mm_, [folded(a.value), b.value], attrs)
        return reshape_(y, new_shape=(count, a.spec.shape[0], y.shape[1]))
    return apply(bmm_, [spread(a, count), spread(b, count)], attrs)


def products(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """bmm: the items of all examples."""
    y = apply(op, [folded(spread(x, count)) for x in operands], attrs)
    return reshape_(y, new_shape=(count, operands[0].spec.shape[0], *y.shape[1:]))


def added_product(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """addmm: as one product, if only its rows are mapped."""
    x, a, b = operands
    if is_mapped(x) or is_mapped(b) or attrs["trans_a"] or len(x.spec.shape) > 1:
        y = product(op, (a, b), attrs, count) if is_mapped(a) or is_mapped(b) else None
        if y is None:
            shared = apply(mm_, [bare(a), bare(b)], attrs)
            return apply(REGISTRY["add"], [shared, aligned(x, 2, count)])
        return apply(REGISTRY["add"], [y, aligned(x, 2, count) if is_mapped(x) else bare(x)])
    y = apply(op, [bare(x), folded(a.value), bare(b)], attrs)
    return reshape_(y, new_shape=(count, a.spec.shape[0], y.shape[1]))


def vector_product(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """mv: vectors of all examples are the rows of one matrix."""
    a, b = operands
    if not is_mapped(a):
        return apply(mm_, [b.value, a.value], {"trans_a": False, "trans_b": True})
    if not is_mapped(b):
        y = apply(op, [folded(a.value), b.value], {})
        return reshape_(y, new_shape=(count, *y.shape[:0], a.spec.shape[0]))
    column = reshape_(b.value, new_shape=(count, *b.spec.shape, 1))
    y = apply(bmm_, [a.value, column], {"trans_a": False, "trans_b": False})
    return reshape_(y, new_shape=(count, a.spec.shape[0]))


def inner_product(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """dot: a row and a column per example."""
    a, b = operands
    row = reshape_(spread(a, count), new_shape=(count, 1, *a.spec.shape))
    column = reshape_(spread(b, count), new_shape=(count, *b.spec.shape, 1))
    return reshape_(apply(bmm_, [row, column], {"trans_a": False, "trans_b": False}), new_shape=(count,))


def items(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """Ops whose operands begin with items that are independent of each other, such as windows of images."""
    y = apply(op, [folded(spread(x, count)) for x in operands], attrs)
    n = operands[0].spec.shape[0]

    def parted(part: Any) -> Any:
        return reshape_(part, new_shape=(count, n, *part.shape[1:]))

    return tuple(map(parted, y)) if type(y) is tuple else parted(y)


def joined_columns(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """columns and from_columns: where channels come first, items are the third dimension of columns."""
    if not attrs["joined"]:
        return items(op, operands, attrs, count)
    (x,) = operands
    if op.name == "columns":
        y = apply(op, [folded(x.value)], attrs)
        y = reshape_(y, new_shape=(*y.shape[:2], count, x.spec.shape[0], y.shape[3]))
        return permute_(y, dims=(2, 0, 1, 3, 4))
    c, k, n, l = x.spec.shape
    columns = permute_(x.value, dims=(1, 2, 0, 3, 4))
    y = apply(op, [reshape_(columns, new_shape=(c, k, count * n, l))], attrs)
    return reshape_(y, new_shape=(count, n, *y.shape[1:]))


def convolution(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """A convolution of all items with shared weights; with others as what it is made of."""
    x, *weights = operands
    if any(map(is_mapped, weights)):
        return None
    y = apply(op, [folded(x.value), *map(bare, weights)], attrs)
    return reshape_(y, new_shape=(count, x.spec.shape[0], *y.shape[1:]))


def in_groups(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """Kernels of convolutions: items are groups; all but weights and a bias have channels behind their images."""
    given = [
        folded(x) if name in ("w", "b") else _channels(x)
        for name, x in zip(op.inputs, [spread(x, count) for x in operands], strict=True)
    ]
    y = apply(op, given, {**attrs, "groups": count * attrs["groups"]})
    if op.name == "conv_weight_panels":
        return reshape_(y, new_shape=(count, y.shape[0] // count, *y.shape[1:]))
    return swapped(reshape_(y, new_shape=(y.shape[0], count, y.shape[1] // count, *y.shape[2:])))


def _channels(x: Any) -> Any:
    """(count, n, c, ...) as (n, count c, ...)."""
    y = swapped(x)
    return reshape_(y, new_shape=(y.shape[0], y.shape[1] * y.shape[2], *y.shape[3:]))


def strided(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """as_strided: the same places of each example, which lie one after the other."""
    (x,) = operands
    step = (numel(x.spec.shape), *attrs["step"])
    return apply(op, [x.value], {**attrs, "size": (count, *attrs["size"]), "step": step})


def looked_up(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """index_select: shared rows at all indices, or the same indices of each example."""
    x, index = operands
    dim = attrs["dim"]
    if not is_mapped(index):
        return apply(op, [x.value, bare(index)], {"dim": dim + 1})
    if not is_mapped(x):
        flat = reshape_(index.value, new_shape=(numel(index.value.shape),))
        y = apply(op, [bare(x), flat], attrs)
        y = reshape_(y, new_shape=(*y.shape[:dim], *index.value.shape, *y.shape[dim + 1 :]))
        return in_front(y, dim)
    return _with_examples("index_get", x.value, (), [index], {"dim": dim, "wrap": False}, count)


def read_at(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """index_get: the same places of each example, or the places of each."""
    x, *indices = operands
    dim = attrs["dim"]
    if not any(map(is_mapped, indices)):
        return apply(op, [x.value, *map(bare, indices)], {**attrs, "dim": dim + 1})
    if is_mapped(x):
        return _with_examples("index_get", x.value, (), indices, attrs, count)
    ndim = max(len(i.spec.shape) for i in indices)
    y = apply(op, [bare(x), *(aligned(i, ndim, count) if is_mapped(i) else bare(i) for i in indices)], attrs)
    return in_front(y, dim)


def written_at(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """index_set, index_add and others: the same places of each example, or the places of each."""
    x, v, *indices = operands
    if not any(map(is_mapped, indices)):
        if not v.spec.shape and is_mapped(v):
            return None
        new = {**attrs, "dim": attrs["dim"] + 1}
        value = spread(v, count) if v.spec.shape else bare(v)
        return apply(op, [spread(x, count), value, *map(bare, indices)], new)
    if not v.spec.shape:
        return None
    return _with_examples(op.name[:-1], spread(x, count), (v,), indices, attrs, count)


def put_at(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """index_put_zeros: the same places of each example, or the places of each."""
    v, *indices = operands
    dim = attrs["dim"]
    if not any(map(is_mapped, indices)):
        return apply(op, [v.value, *map(bare, indices)], {**attrs, "dim": dim + 1})
    more = REGISTRY.get(f"index_put_zeros{len(indices) + 1}")
    if more is None:
        return None
    places = _places(indices, count)
    value = in_order(spread(v, count), dim, len(places[0].shape) - 1, inverse=False)
    y = apply(more, [value, *places], {**attrs, "extents": (count, *attrs["extents"]), "dim": 0})
    return in_order(y, dim, len(indices), inverse=True)


def in_order(value: Any, dim: int, several: int, *, inverse: bool) -> Any:
    """Examples, then `several` dimensions from `dim` of an example on, then the others; or back."""
    if dim == 0:
        return value
    ndim = len(value.shape)
    order = [0, *range(dim + 1, dim + 1 + several), *range(1, dim + 1), *range(dim + 1 + several, ndim)]
    if inverse:
        order = sorted(range(ndim), key=order.__getitem__)
    return permute_(value, dims=tuple(order))


def _places(indices: Operands, count: Any) -> list[Any]:
    """Indices with that of the example before them, which broadcast to one shape."""
    ndim = max(len(i.spec.shape) for i in indices)
    which = lift(made(arange_, start=0, step=1, count=count))
    rows = [aligned(i, ndim, count) if is_mapped(i) else bare(i) for i in indices]
    return [reshape_(which, new_shape=(count, *(1,) * ndim)), *rows]


def _with_examples(name: str, value: Any, written: Operands, indices: Operands, attrs: Attributes, count: Any) -> Any:
    """Places of each example: the example is one more index."""
    op = REGISTRY.get(f"{name}{len(indices) + 1}")
    if op is None:
        return None
    places, dim = _places(indices, count), attrs["dim"]
    rank = max(len(i.spec.shape) for i in indices)
    values = [in_order(spread(v, count), dim, rank, inverse=False) for v in written]
    y = apply(op, [in_order(value, dim, len(indices), inverse=False), *values, *places], {**attrs, "dim": 0})
    return in_order(y, dim, len(indices) if written else rank, inverse=True)


def on_all(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """Run an op on all examples; None for a composite without a rule, whose ops run on all examples.

    Raises
    ------
    ShapeError : shapes do not fit; in the words of the op for one example.
    """
    rule = rule_of(op)
    try:
        y = None if rule is None else rule(op, operands, attrs, count)
        return one_by_one(op, operands, attrs, count) if y is None and op.forward is None else y
    except ShapeError:
        try:
            op.spec(*map(spec_of, operands), **attrs)
        except ShapeError as own:
            raise own from None
        raise


def one_by_one(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    """Run an op once per example: what has no rule. In a graph, the scope of its nodes says so."""
    trace = mode.current_trace()
    if trace is not None:
        trace.scope.append(f"vmap: {op.name} one by one")
    try:
        return _rows(op, operands, attrs, count)
    finally:
        if trace is not None:
            trace.scope.pop()


def _rows(op: Op, operands: Operands, attrs: Attributes, count: Any) -> Any:
    columns = [unbind(x.value, 0) if is_mapped(x) else None for x in operands]
    rows = [
        apply(op, [bare(x) if column is None else column[i] for x, column in zip(operands, columns)], attrs)
        for i in range(int(count))
    ]
    if not rows:
        specs = op.spec(*map(spec_of, operands), **attrs)
        empty = [lift(made(full_, shape=(0, *spec.shape), value=0, dtype=spec.dtype)) for spec in out_specs(specs)]
        return tuple(empty) if type(specs) is tuple else empty[0]
    if type(rows[0]) is tuple:
        return tuple([stack(column, 0) for column in zip(*rows, strict=True)])
    return stack(rows, 0)


def _named(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


#: By name, without the number of operands where there is an op for each.
_RULES: dict[str, Rule] = {
    "permute": permuted, "select": selected, "expand": expanded, "repeat": repeated,
    "mm": product, "bmm": products, "addmm": added_product, "mv": vector_product, "dot": inner_product,
    "searchsorted": searched, "index_select": looked_up, "as_strided": strided,
    "index_get": read_at, "index_put_zeros": put_at,
    **_named("index_add index_mul index_max index_min index_set", written_at),
    **_named("columns from_columns", joined_columns),
    **_named("attention attention_backward attention_masked attention_masked_backward", items),
    **_named("window_sum window_max window_amax window_add window_put unpool", items),
    **_named("conv conv_bias conv_input", convolution),
    **_named("conv_panels conv_bias_panels conv_input_panels conv_weight_panels", in_groups),
    **_named(
        "argmax argmin cummax cummin cumprod cumsum delay gather scatter_zeros recurrence taken softmax log_softmax "
        "logsumexp logcumsumexp mean nansum norm std std_mean var var_mean sum_of_cubes sum_of_deviations "
        "sum_of_exponentials sum_of_magnitudes sum_of_squares normalize flip roll repeat_interleave unslice slice_set "
        "constant_pad_nd undiagonal overwrite cat stack", moved,
    ),
    **_named(
        "argsort top tril triu cholesky cofactors det eigh eigvalsh geqrf inv ldl ldl_solve lu matrix_exp pinv qr "
        "slogdet solve solve_triangular svd svdvals lstsq permutation pick spread one_hot", leading,
    ),
    **_named(
        "airy_ai airy_slope bessel_j0 bessel_j1 bessel_y0 bessel_y1 beta_quantile beta_quantile_by_a "
        "beta_quantile_by_b binomial_quantile chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v "
        "chebyshev_polynomial_w divisor erfcx gamma_quantile gamma_quantile_by_a gammainc gammaincc gcd "
        "hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l legendre_polynomial_p log_ndtr "
        "modified_bessel_k0 modified_bessel_k1 ndtri poisson_quantile polygamma scaled_modified_bessel_k0 "
        "scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
        "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w spherical_bessel_j0 spherical_bessel_j1 "
        "von_mises_draw within_bounds zeta", leading,
    ),
}  # fmt: skip
