"""Machine code of the maximum and minimum of contiguous elements. Needs llvmlite.

NaN propagates (the result is the canonical NaN), +0 is above -0; n >= 1. Integers are signed; bools are bytes of 0
and 1, of which none have the maximum 0 and the minimum 1. The order of a maximum does not
matter then, so four vectors run side by side. Comparing is enough for every element but zeros and NaN: NaNs
are noticed on the way, and only when the extreme is a zero its sign is searched in a second pass, which ends
at the first zero of the winning sign.
"""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.code_blocks import (
    WORD,
    ForLoop,
    While,
    align,
    fold_vector,
    internal,
    load_lanes,
    load_some,
    word,
)

_BYTES = 64
"""Bytes of one vector: an AVX-512 register; LLVM splits it where registers are shorter."""
_SHORT_BYTES = 16
"""Bytes of one vector where rows are too short for the other."""
_CHAINS = 4
_TOGETHER = 8
"""Rows that are taken in at once."""
_NAMES = {">": "max", "<": "min"}


def maximum_all(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``kind (kind* x, i64 n)``: the maximum of n >= 1 elements; of n >= 0 truth values."""
    return _extreme(module, kind, ">", truth)


def minimum_all(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``kind (kind* x, i64 n)``: the minimum of n >= 1 elements; of n >= 0 truth values."""
    return _extreme(module, kind, "<", truth)


def _worst(kind: ir.Type, order: str, truth: bool) -> float:
    """The element that every other one is at least as good as."""
    if truth:
        return 0 if order == ">" else 1
    if not isinstance(kind, ir.IntType):
        return float("-inf") if order == ">" else float("inf")
    return -(2 ** (kind.width - 1)) if order == ">" else 2 ** (kind.width - 1) - 1


def _extreme(module: ir.Module, kind: ir.Type, order: str, truth: bool) -> ir.Function:
    floating = not isinstance(kind, ir.IntType)
    width = _BYTES // align(kind)
    vector, flags = ir.VectorType(kind, width), ir.VectorType(ir.IntType(1), width)
    worse = ir.Constant(vector, [_worst(kind, order, truth)] * width)

    def better(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        first = b.fcmp_ordered(order, x, y) if floating else b.icmp_signed(order, x, y)
        return b.select(first, x, y)

    def unordered(b: ir.IRBuilder, seen: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
        return b.or_(seen, b.fcmp_unordered("uno", x, y)) if floating else seen

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        x, n = function.args
        step = width * _CHAINS
        bulk = b.and_(n, word(-step))
        with ForLoop(b, bulk, step, *[worse] * _CHAINS, ir.Constant(flags, None)) as loop:
            *best, nans = loop.carried
            starts = [b.add(loop.index, word(k * width)) for k in range(_CHAINS)]
            loaded = [load_lanes(b, b.gep(x, [start]), width) for start in starts]
            for first, second in zip(loaded[::2], loaded[1::2], strict=True):
                nans = unordered(b, nans, first, second)
            loop.next = [*(better(b, new, old) for new, old in zip(loaded, best, strict=True)), nans]
        *chains, nans = loop.carried
        top = better(b, better(b, chains[0], chains[1]), better(b, chains[2], chains[3]))
        going = lambda i, *_: b.icmp_signed("<", i, n)  # noqa: E731
        with While(b, going, bulk, top, nans) as tail:
            index, top, nans = tail.carried
            rest = b.sub(n, index)
            count = b.select(b.icmp_signed("<", rest, word(width)), rest, word(width))
            some = load_some(b, b.gep(x, [index]), count, worse)
            tail.next = [b.add(index, word(width)), better(b, some, top), unordered(b, nans, some, some)]
        _, top, nans = tail.carried
        result = fold_vector(b, top, better)
        if not floating:
            b.ret(result)
            return
        with b.if_then(_any(b, nans), likely=False):
            b.ret(ir.Constant(kind, float("nan")))
        with b.if_then(b.fcmp_ordered("==", result, ir.Constant(kind, 0.0)), likely=False):
            b.ret(b.call(_signed_zero(module, kind, order), [x, n]))
        b.ret(result)

    name = f"{_NAMES[order]}.{'truth' if truth else kind}"
    return internal(module, name, kind, [kind.as_pointer(), WORD], define)


def _any(b: ir.IRBuilder, flags: ir.Value) -> ir.Value:
    mask = ir.IntType(flags.type.count)
    return b.icmp_unsigned("!=", b.bitcast(flags, mask), mask(0))


def _signed_zero(module: ir.Module, kind: ir.Type, order: str) -> ir.Function:
    """``kind (kind* x, i64 n)``: +0 (max) or -0 (min) if x has one, else the other zero."""
    bits = {"float": 32, "double": 64}[str(kind)]
    width = _BYTES * 8 // bits
    whole = ir.IntType(bits)
    pattern = ir.Constant(whole, 0 if order == ">" else -(2 ** (bits - 1)))
    missing = ir.Constant(ir.VectorType(whole, width), [1] * width)
    wanted, other = (0.0, -0.0) if order == ">" else (-0.0, 0.0)

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("noinline")
        x, n = function.args
        x = b.bitcast(x, whole.as_pointer())
        with While(b, lambda i: b.icmp_signed("<", i, n), word(0)) as walk:
            (index,) = walk.carried
            rest = b.sub(n, index)
            count = b.select(b.icmp_signed("<", rest, word(width)), rest, word(width))
            some = load_some(b, b.gep(x, [index]), count, missing)
            found = b.icmp_signed("==", some, ir.Constant(missing.type, [pattern.constant] * width))
            with b.if_then(_any(b, found)):
                b.ret(ir.Constant(kind, wanted))
            walk.next = [b.add(index, word(width))]
        b.ret(ir.Constant(kind, other))

    return internal(module, f"signed_zero.{_NAMES[order]}.{kind}", kind, [kind.as_pointer(), WORD], define)


def maximum_of_rows(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``void (kind* to, kind* from, i64 n, i64 rows)``: to[i] = maximum(to[i], from[i], from[n + i], ...), `rows` rows.

    The two do not overlap.
    """
    return _of_rows(module, kind, ">")


def minimum_of_rows(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``void (kind* to, kind* from, i64 n, i64 rows)``: to[i] = minimum(to[i], from[i], from[n + i], ...)."""
    return _of_rows(module, kind, "<")


def _of_rows(module: ir.Module, kind: ir.Type, order: str) -> ir.Function:
    """Several rows per pass over the extremes so far, which are loaded and stored once for all."""
    name, pointer = f"{_NAMES[order]}_of_rows.{kind}", kind.as_pointer()

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        to, source, n, rows = function.args
        bulk = b.and_(rows, word(-_TOGETHER))
        for first, last, together in ((word(0), bulk, _TOGETHER), (bulk, rows, 1)):
            with While(b, lambda r, last=last: b.icmp_signed("<", r, last), first) as walk:
                start = b.gep(source, [b.mul(walk.carried[0], n)])
                b.call(_pass(module, kind, order, together), [to, start, n])
                walk.next = [b.add(walk.carried[0], word(together))]
        b.ret_void()

    return internal(module, name, ir.VoidType(), [pointer, pointer, WORD, WORD], define)


def _pass(module: ir.Module, kind: ir.Type, order: str, rows: int) -> ir.Function:
    """``void (kind* to, kind* from, i64 n)``: take in some rows of n; an extreme may be taken twice.

    So a last vector that is not full begins where its end is that of the row, and none is masked.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        function.attributes.add("noinline")  # keeps noalias
        to, source, n = function.args
        to.add_attribute("noalias")
        source.add_attribute("noalias")

        def take(index: ir.Value, count: int) -> None:
            places = [b.gep(source, [b.add(index, b.mul(n, word(r)))]) for r in range(rows)]
            own = b.gep(to, [index])
            best = _choose(b, [load_lanes(b, place, count) for place in (own, *places)], order)
            b.store(best, b.bitcast(own, best.type.as_pointer()), align=align(kind))

        for width in (_BYTES // align(kind), _SHORT_BYTES // align(kind)):
            last = b.sub(n, word(width))
            with b.if_then(b.icmp_signed(">=", last, word(0))):
                with While(b, lambda i, last=last: b.icmp_signed("<", i, last), word(0)) as walk:
                    take(walk.carried[0], width)
                    walk.next = [b.add(walk.carried[0], word(width))]
                take(last, width)
                b.ret_void()
        with ForLoop(b, n, 1) as loop:
            take(loop.index, 1)
        b.ret_void()

    pointer = kind.as_pointer()
    name = f"{_NAMES[order]}_of_{rows}_rows.{kind}"
    return internal(module, name, ir.VoidType(), [pointer, pointer, WORD], define)


def _choose(b: ir.IRBuilder, vectors: list[ir.Value], order: str) -> ir.Value:
    """Return the extremes of vectors, lane by lane.

    ``a > b ? a : b`` and ``b > a ? b : a`` are the same number but for zeros, where they are b and a: "and" gives +0
    if either is, and "or" gives -0.
    """
    kind, floating = vectors[0].type, not isinstance(vectors[0].type.element, ir.IntType)
    whole = ir.VectorType(ir.IntType(8 * align(kind.element)), kind.count)

    def better(x: ir.Value, y: ir.Value) -> ir.Value:
        if not floating:
            return b.select(b.icmp_signed(order, x, y), x, y)
        both = [b.select(b.fcmp_ordered(order, p, q), p, q) for p, q in ((x, y), (y, x))]
        join = b.and_ if order == ">" else b.or_
        return b.bitcast(join(*(b.bitcast(one, whole) for one in both)), kind)

    best = vectors[0]
    for vector in vectors[1:]:
        best = better(best, vector)
    if not floating:
        return best
    pairs = zip(vectors[::2], [*vectors[1::2], vectors[-1]], strict=False)
    nans = [b.fcmp_unordered("uno", x, y) for x, y in pairs]
    nan = nans[0]
    for other in nans[1:]:
        nan = b.or_(nan, other)
    return b.select(nan, ir.Constant(kind, [float("nan")] * kind.count), best)
