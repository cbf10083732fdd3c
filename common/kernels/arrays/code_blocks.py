"""Building blocks of hand-written machine code: internal functions, loops, vectors with a masked tail.

Needs llvmlite; loaded only when a kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from llvmlite import ir

from common.compiler.llvm_engine import cpu

WORD = ir.IntType(64)
INDEX = ir.IntType(32)


def internal(
    module: ir.Module,
    name: str,
    result: ir.Type,
    parameters: Sequence[ir.Type],
    define: Callable[[ir.Function, ir.IRBuilder], None],
) -> ir.Function:
    """Return the module's own function `name`, defined at first use by ``define(function, builder)``."""
    full = f"twingrad.{name}"
    known = module.globals.get(full)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(result, parameters), full)
    function.linkage = "internal"
    define(function, ir.IRBuilder(function.append_basic_block()))
    return function


@cache
def word(value: int) -> ir.Constant:
    """Return an int64 constant."""
    return ir.Constant(WORD, value)


@cache
def picks(*lanes: int) -> ir.Constant:
    """Return a vector of small numbers, such as those of the lanes that a shuffle takes."""
    return ir.Constant(ir.VectorType(INDEX, len(lanes)), lanes)


def zero(kind: ir.Type) -> ir.Constant:
    """Return +0.0, or 0, or a vector of them."""
    return ir.Constant(kind, None)


def align(kind: ir.Type) -> int:
    """Return the bytes of one element: buffers are aligned to their dtype, not to vectors."""
    return {"float": 4, "double": 8}.get(str(kind)) or kind.width // 8


def add(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return x + y: IEEE 754 for floats, wrapping for integers."""
    element = x.type.element if isinstance(x.type, ir.VectorType) else x.type
    return builder.add(x, y) if isinstance(element, ir.IntType) else builder.fadd(x, y)


def multiply(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return x * y: IEEE 754 for floats, wrapping for integers."""
    element = x.type.element if isinstance(x.type, ir.VectorType) else x.type
    return builder.mul(x, y) if isinstance(element, ir.IntType) else builder.fmul(x, y)


class While:
    """``while condition(*carried)``: values carried from one iteration to the next.

    Inside ``with``, `carried` are the current values and `next` receives the new ones; after it, `carried`
    are the final ones.

    Parameters
    ----------
    builder : IRBuilder
    condition : callable
        ``condition(*carried) -> i1``, emitted before each iteration.
    *initial : IR values
    """

    def __init__(self, builder: ir.IRBuilder, condition: Callable[..., ir.Value], *initial: ir.Value) -> None:
        self._builder, self._condition, self._initial = builder, condition, initial

    def __enter__(self) -> While:
        builder, before = self._builder, self._builder.block
        self._head, body, self._end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
        builder.branch(self._head)
        builder.position_at_end(self._head)
        self.carried = [builder.phi(value.type) for value in self._initial]
        for phi, value in zip(self.carried, self._initial, strict=True):
            phi.add_incoming(value, before)
        builder.cbranch(self._condition(*self.carried), body, self._end)
        builder.position_at_end(body)
        self.next: Sequence[ir.Value] = ()
        return self

    def __exit__(self, *exception: object) -> None:
        for phi, value in zip(self.carried, self.next, strict=True):
            phi.add_incoming(value, self._builder.block)
        self._builder.branch(self._head)
        self._builder.position_at_end(self._end)


class ForLoop:
    """``for i in range(0, stop, step)`` with values carried along, as in `While`; `index` is the current i.

    ``stop`` is a multiple of ``step``.
    """

    def __init__(self, builder: ir.IRBuilder, stop: ir.Value, step: int, *initial: ir.Value) -> None:
        self._builder, self._step = builder, step
        self._while = While(builder, lambda i, *_: builder.icmp_signed("<", i, stop), word(0), *initial)

    def __enter__(self) -> ForLoop:
        self.index, *self.carried = self._while.__enter__().carried
        self.next: Sequence[ir.Value] = ()
        return self

    def __exit__(self, *exception: object) -> None:
        self._while.next = [self._builder.add(self.index, word(self._step)), *self.next]
        self._while.__exit__(*exception)


def load_lanes(builder: ir.IRBuilder, address: ir.Value, width: int) -> ir.Value:
    """Load `width` consecutive elements as one vector."""
    vector = ir.VectorType(address.type.pointee, width)
    return builder.load(address, align=align(vector.element), typ=vector)


def store_lanes(builder: ir.IRBuilder, lanes: ir.Value, address: ir.Value) -> None:
    """Store a vector as consecutive elements."""
    builder.store(lanes, builder.bitcast(address, lanes.type.as_pointer()), align=align(lanes.type.element))


def load_some(builder: ir.IRBuilder, address: ir.Value, some: ir.Value, missing: ir.Constant) -> ir.Value:
    """Load the first `some` elements of a vector, or those of a mask; the others are those of `missing`, not read."""
    vector = missing.type
    masked, mask = _masked(builder.module, "load", vector), _mask(builder, vector.count, some)
    return builder.call(masked, [address, INDEX(align(vector.element)), mask, missing])


def store_some(builder: ir.IRBuilder, lanes: ir.Value, address: ir.Value, some: ir.Value) -> None:
    """Store the first `some` elements of a vector, or those of a mask; write nothing else.

    Without AVX-512 a store under a mask may take as long as twelve others. Then a number of elements is stored by
    halves of the vector, by halves of these, and so on; for a mask it is asked first whether it has all elements.
    """
    vector, masks_are_fast = lanes.type, "+avx512f" in cpu()[1]
    if masks_are_fast:
        _store_masked(builder, lanes, address, _mask(builder, vector.count, some))
    elif isinstance(some.type, ir.VectorType):
        bits = ir.IntType(vector.count)
        every = builder.icmp_signed("==", builder.bitcast(some, bits), ir.Constant(bits, -1))
        with builder.if_else(every) as (then, otherwise):
            with then:
                store_lanes(builder, lanes, address)
            with otherwise:
                _store_masked(builder, lanes, address, some)
    else:
        name = f"store_first_{vector.count}.{vector.element}"
        by_halves = internal(builder.module, name, ir.VoidType(), [vector, address.type, WORD], _store_by_halves)
        builder.call(by_halves, [lanes, address, some])


def _store_masked(builder: ir.IRBuilder, lanes: ir.Value, address: ir.Value, mask: ir.Value) -> None:
    masked = _masked(builder.module, "store", lanes.type)
    builder.call(masked, [lanes, address, INDEX(align(lanes.type.element)), mask])


def _store_by_halves(function: ir.Function, builder: ir.IRBuilder) -> None:
    """``void (lanes, address, some)``: a half of what is left of the vector for each bit of their number."""
    lanes, address, some = function.args
    width = lanes.type.count
    with builder.if_then(builder.icmp_signed(">=", some, word(width))):
        store_lanes(builder, lanes, address)
        builder.ret_void()
    left = builder.select(builder.icmp_signed("<", some, word(0)), word(0), some)
    nothing = ir.Constant(lanes.type, ir.Undefined)
    while width > 1:
        width //= 2
        low, high = (builder.shuffle_vector(lanes, nothing, picks(*range(a, a + width))) for a in (0, width))
        takes = builder.icmp_signed("!=", builder.and_(left, word(width)), word(0))
        with builder.if_then(takes):
            store_lanes(builder, low, address)
        lanes, nothing = builder.select(takes, high, low), ir.Constant(low.type, ir.Undefined)
        address = builder.gep(address, [builder.select(takes, word(width), word(0))])
    builder.ret_void()


def first_lanes(builder: ir.IRBuilder, width: int, count: ir.Value) -> ir.Value:
    """Return the mask of the first `count` lanes."""
    return builder.icmp_signed("<", picks(*range(width)), spread(builder, builder.trunc(count, INDEX), width))


def _mask(builder: ir.IRBuilder, width: int, some: ir.Value) -> ir.Value:
    return some if isinstance(some.type, ir.VectorType) else first_lanes(builder, width, some)


def _masked(module: ir.Module, what: str, vector: ir.VectorType) -> ir.Function:
    suffix = {"float": "f32", "double": "f64"}.get(str(vector.element)) or f"i{vector.element.width}"
    name, pointer = f"llvm.masked.{what}.v{vector.count}{suffix}.p0", ir.PointerType()
    mask = ir.VectorType(ir.IntType(1), vector.count)
    operands = [pointer, INDEX, mask, vector] if what == "load" else [vector, pointer, INDEX, mask]
    result = vector if what == "load" else ir.VoidType()
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, operands), name)


def fold_vector(
    builder: ir.IRBuilder, lanes: ir.Value, combine: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value] =
    add
) -> ir.Value:
    """Combine lane j with lane j + h for h = width/2, ..., 1 and return lane 0."""
    width = lanes.type.count
    while width > 1:
        half = width // 2
        nothing = ir.Constant(lanes.type, ir.Undefined)
        low, high = (builder.shuffle_vector(lanes, nothing, picks(*range(a, a + half))) for a in (0, half))
        lanes, width = combine(builder, low, high), half
    return builder.extract_element(lanes, INDEX(0))


def fold_vectors(
    builder: ir.IRBuilder,
    vectors: Sequence[ir.Value],
    combine: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value] = add,
) -> ir.Value:
    """`fold_vector` of each of several vectors, a power of two, as lanes of one: each addition is for many."""
    groups, width = 1, vectors[0].type.count

    def halves(x: ir.Value, y: ir.Value, count: int) -> ir.Value:
        """The lower and upper halves of all groups of lanes, of which x and y have `count`, combined."""
        starts = [i * width + h for h in (0, width // 2) for i in range(count)]
        lower, upper = ([a + j for a in starts[n * count : (n + 1) * count] for j in range(width // 2)] for n in (0, 1))
        return combine(builder, *(builder.shuffle_vector(x, y, picks(*lanes)) for lanes in (lower, upper)))

    while len(vectors) > 1:
        groups *= 2
        vectors = [halves(x, y, groups) for x, y in zip(vectors[::2], vectors[1::2], strict=True)]
        width //= 2
    (folded,) = vectors
    while width > 1:
        folded = halves(folded, ir.Constant(folded.type, ir.Undefined), groups)
        width //= 2
    return folded


class ForStrips:
    """``for start in range(0, stop, step)``; gives the start and the length, `step` or what is left.

    If strips are `whole`, the last one begins before what is left, so that it is as long as the others; it is shorter
    only if it is the only one.
    """

    def __init__(self, b: ir.IRBuilder, stop: ir.Value, step: int, whole: bool = False) -> None:
        self._b, self._stop, self._step, self._whole = b, stop, word(step), whole
        self._while = While(b, lambda i: b.icmp_signed("<", i, stop), word(0))

    def __enter__(self) -> tuple[ir.Value, ir.Value]:
        (start,) = self._while.__enter__().carried
        b, step = self._b, self._step
        self._while.next = [b.add(start, step)]
        if self._whole:
            length = least(b, step, self._stop)
            return least(b, start, b.sub(self._stop, length)), length
        return start, least(b, step, b.sub(self._stop, start))

    def __exit__(self, *exception: object) -> None:
        self._while.__exit__(*exception)


def cases(
    b: ir.IRBuilder, value: ir.Value, bounds: Sequence[tuple[int, int]], write: Callable[[int], None]
) -> None:
    """``write(meaning)`` for the first of (bound, meaning) whose bound is below a value, or for the last."""
    (bound, meaning), *others = bounds
    if not others:
        write(meaning)
        return
    with b.if_else(b.icmp_signed(">", value, word(bound))) as (here, there):
        with here:
            write(meaning)
        with there:
            cases(b, value, others, write)


def least(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return the smaller integer."""
    return b.select(b.icmp_signed("<", x, y), x, y)


def spread(b: ir.IRBuilder, x: ir.Value, width: int) -> ir.Value:
    """Return a vector of one element."""
    nothing = ir.Constant(ir.VectorType(x.type, width), ir.Undefined)
    first = b.insert_element(nothing, x, INDEX(0))
    return b.shuffle_vector(first, nothing, picks(*[0] * width))


def fused(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """Return x * y + z, rounded once."""
    vector = z.type
    name = f"llvm.fma.v{vector.count}{vector.element.intrinsic_name}"
    known = b.module.globals.get(name) or ir.Function(b.module, ir.FunctionType(vector, [vector] * 3), name)
    return b.call(known, [x, y, z])


def wide(function: ir.Function) -> None:
    """Let LLVM use registers of 64 bytes where there are any."""
    set.add(function.attributes, '"prefer-vector-width"="512"')


def apart(function: ir.Function) -> None:
    """A function of its own: it has many registers to save, or would be there several times."""
    function.attributes.add("noinline")
    wide(function)


def prefetch(b: ir.IRBuilder, address: ir.Value) -> None:
    """Ask for a line of the cache that is read soon; an address beyond an array does no harm."""
    name, number = "llvm.prefetch.p0", ir.IntType(32)
    signature = ir.FunctionType(ir.VoidType(), [ir.PointerType(), number, number, number])
    b.call(b.module.globals.get(name) or ir.Function(b.module, signature, name), [address, *map(number, (0, 3, 1))])


def next_place(b: ir.IRBuilder, *where: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """How far the next place in windows is, and its x and y.

    There are kw places in a row and kh such rows in a plane; a place is dx elements behind another, or at the end of a
    row dy, or of a plane dz. It is number x in its row, which is number y in its plane.
    """
    kw, kh, dx, dy, dz, x, y = where
    along, below = b.add(x, word(1)), b.add(y, word(1))
    ends, closes = b.icmp_signed("==", along, kw), b.icmp_signed("==", below, kh)
    way = b.select(ends, b.select(closes, dz, dy), dx)
    return way, b.select(ends, word(0), along), b.select(ends, b.select(closes, word(0), below), y)
