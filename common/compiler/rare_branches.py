"""A definition that few arguments need, in a loop that stays vectorised.

``y = f(x)`` costs a vectorised loop the slowest of f's cases in every element. `emit_beyond` emits a *call* of a
function that returns its second operand unless |x| is above a bound. LLVM may not vectorise the branch inside,
but the function names variants of itself for vectors (LLVM's "vector-function-abi-variant"): the vectoriser
widens the loop with them. A variant tests all lanes at once and goes on; only if one of them is beyond the bound
are the lanes taken one by one. The variants are inlined after vectorisation, so that the
loop pays for two comparisons and a branch that is never taken.

What takes lanes one by one has machine code of its own if the definition has an attribute ``apart``, the symbol of the
`common.compiler.machine_functions.MachineFunction` that does it, without its dtype: it is compiled once per machine,
and not with every kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from common.compiler.fingerprint import certain_fingerprint, package_fingerprint

__all__ = ["PREFIX", "define_each", "emit_beyond", "emit_lookup", "has_fixed_names"]

PREFIX = "tw_beyond"
_LANES = (2, 4, 8, 16)
_WORD, _BYTE = ir.IntType(64), ir.IntType(8)
Emit = Callable[..., ir.Value]


def emit_beyond(
    module: ir.Module, kind: ir.Type, lanes: int, bound: float, definition: Any, emit: Emit, others: int
) -> ir.Function:
    """Return the function ``(x, y, *others)``: y, but where |x| > bound the result of `emit` on x, or on the others.

    Parameters
    ----------
    kind, lanes : type of one operand, and how many of them a vector has.
    definition : callable
        What `emit` emits; it is emitted once per module, type and bound.
    emit : callable
        ``emit(builder, *operands)`` emits the definition.
    others : int
        How many there are.
    """
    made: dict[Any, ir.Function] = module.__dict__.setdefault("_twingrad_beyond", {})
    key = definition, str(kind), bound, others
    own = getattr(definition, "apart", "")
    name = f"{PREFIX}_{definition.__name__.strip('_<>')}_{kind}"
    if not own:
        name += f"_{_fixed(definition, bound, others) or len(made)}"
    if (key, "each") not in made:
        made[key, "each"] = (
            _declare_each(module, own, kind) if own else define_each(module, name, kind, bound, emit, others)
        )
    if (key, lanes) not in made:
        each = made[key, "each"]
        if lanes > 1:
            made[key, lanes] = _define_variant(module, f"{name}_{lanes}", kind, others, lanes, bound, each)
        else:
            made[key, lanes] = _define(module, name, kind, others, bound, each)
    return made[key, lanes]


def has_fixed_names(module: ir.Module) -> bool:
    """Whether functions that `emit_beyond` has defined in a module have the same names, and texts, in any other."""
    made = module.__dict__.get("_twingrad_beyond", ())
    keys = [key for key, _ in made]
    return all(getattr(key[0], "apart", "") or _fixed(key[0], *key[2:]) for key in keys)


def _fixed(definition: Any, bound: float, others: int) -> str:
    """What tells a definition of the package from all others; nothing of one that is not the package's."""
    known = package_fingerprint(definition)
    return (certain_fingerprint((known, bound, others)) or "")[:16] if known else ""


def _declare_each(module: ir.Module, name: str, kind: ir.Type) -> ir.Function:
    symbol = f"{name}.{'float32' if kind == ir.FloatType() else 'float64'}"
    signature = ir.FunctionType(ir.VoidType(), [_WORD, *[ir.PointerType()] * 2])
    function = module.globals.get(symbol)
    if function is None:
        function = ir.Function(module, signature, symbol)
        set.add(function.attributes, "cold")
    return function


def emit_lookup(builder: ir.IRBuilder, module: ir.Module, table: tuple[int, ...], index: ir.Value) -> ir.Value:
    """Emit ``table[index]``, an int64; the index must be inside."""
    name = f"tw_table_{hash(table) & 0xFFFFFFFFFFFF:x}"
    kind = ir.ArrayType(_WORD, len(table))
    data = module.globals.get(name)
    if data is None:
        data = ir.GlobalVariable(module, kind, name)
        data.linkage, data.global_constant = "internal", True
        data.initializer = ir.Constant(kind, list(table))
    return builder.load(builder.gep(data, [ir.Constant(_WORD, 0), index], inbounds=True))


def _function(module: ir.Module, name: str, result: ir.Type, *operands: ir.Type, attributes: str) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(result, operands), name)
    function.linkage = "internal"
    for attribute in ("nounwind", "willreturn", *attributes.split()):
        set.add(function.attributes, attribute)  # llvmlite's own `add` does not know all of them
    return function


def _define(module: ir.Module, name: str, kind: ir.Type, others: int, bound: float, each: ir.Function) -> ir.Function:
    """Define ``name(x, y, *others)`` and the variants for vectors that LLVM's vectoriser may call instead."""
    _keep(module, [_define_variant(module, f"{name}_v{n}", kind, others, n, bound, each) for n in _LANES])
    # It must still be a call when loops are vectorised
    scalar = _function(module, name, kind, *[kind] * (2 + others), attributes="memory(none) noinline")
    variants = ",".join(f"_ZGV_LLVM_N{n}vv{'v' * others}_{name}({name}_v{n})" for n in _LANES)
    set.add(scalar.attributes, f'"vector-function-abi-variant"="{variants}"')
    _write_beyond(scalar, kind, 1, bound, each)
    return scalar


def _beyond(builder: ir.IRBuilder, x: ir.Value, bound: float) -> ir.Value:
    above, below = (
        builder.fcmp_ordered(op, x, _constant(x.type, number)) for op, number in ((">", bound), ("<", -bound))
    )
    return builder.or_(above, below)


def _constant(kind: ir.Type, number: float) -> ir.Constant:
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [ir.Constant(kind.element, number)] * kind.count)
    return ir.Constant(kind, number)


def define_each(module: ir.Module, name: str, kind: ir.Type, bound: float, emit: Emit, others: int = 0) -> ir.Function:
    """Define ``name_each(n, x, y, ...)``: ``y[i] = emit(x[i])`` in memory where |x[i]| > bound; as small as it is rare.

    Other parameters as in `emit_beyond`.
    """
    attributes = "memory(none) noinline optnone cold"
    slow = _function(module, f"{name}_slow", kind, *[kind] * (others or 1), attributes=attributes)
    builder = ir.IRBuilder(slow.append_basic_block())
    builder.ret(emit(builder, *slow.args))
    pointers = [kind.as_pointer()] * (2 + others)
    function = _function(module, f"{name}_each", ir.VoidType(), _WORD, *pointers, attributes="noinline optnone cold")
    count, xs, ys, *rest = function.args
    start, loop, rare, step, end = (function.append_basic_block() for _ in range(5))
    ir.IRBuilder(start).branch(loop)
    builder = ir.IRBuilder(loop)
    i = builder.phi(_WORD)
    x = builder.load(builder.gep(xs, [i]))
    builder.cbranch(_beyond(builder, x, bound), rare, step)
    builder = ir.IRBuilder(rare)
    operands = [builder.load(builder.gep(z, [i])) for z in rest]
    builder.store(builder.call(slow, operands or [x]), builder.gep(ys, [i]))
    builder.branch(step)
    builder = ir.IRBuilder(step)
    following = builder.add(i, ir.Constant(_WORD, 1))
    i.add_incoming(ir.Constant(_WORD, 0), start)
    i.add_incoming(following, step)
    builder.cbranch(builder.icmp_unsigned("<", following, count), loop, end)
    ir.IRBuilder(end).ret_void()
    return function


def _define_variant(
    module: ir.Module, name: str, kind: ir.Type, others: int, lanes: int, bound: float, each: ir.Function
) -> ir.Function:
    """Define the function for a vector of lanes."""
    vector = ir.VectorType(kind, lanes)
    function = _function(module, name, vector, *[vector] * (2 + others), attributes="memory(none) alwaysinline")
    _write_beyond(function, vector, lanes, bound, each)
    return function


def _write_beyond(function: ir.Function, vector: ir.Type, lanes: int, bound: float, each: ir.Function) -> None:
    """Write a function that returns its second operand, of lanes that are beyond the bound what `each` gives."""
    x, y = function.args[:2]
    start, rare, end = (function.append_basic_block() for _ in range(3))
    builder = ir.IRBuilder(start)
    places = [builder.alloca(vector) for _ in function.args]
    mask = _beyond(builder, x, bound)
    if lanes > 1:
        mask = builder.bitcast(mask, ir.IntType(lanes))
    builder.cbranch(builder.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0)), rare, end)
    builder = ir.IRBuilder(rare)
    for operand, place in zip(function.args, places, strict=True):
        builder.store(operand, place)
    # Through memory: how vectors are passed depends on attributes of both functions
    pointers = zip(places, each.ftype.args[1:], strict=False)
    builder.call(each, [ir.Constant(_WORD, lanes), *(builder.bitcast(place, kind) for place, kind in pointers)])
    repaired = builder.load(places[1])
    builder.branch(end)
    builder = ir.IRBuilder(end)
    result = builder.phi(vector)
    result.add_incoming(y, start)
    result.add_incoming(repaired, rare)
    builder.ret(result)


def _keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Keep functions that nothing calls before vectorisation."""
    name, pointer = "llvm.compiler.used", _BYTE.as_pointer()
    used = module.globals.get(name)
    kept = [*(used.initializer.constant if used else ()), *(function.bitcast(pointer) for function in functions)]
    kind = ir.ArrayType(pointer, len(kept))
    if used is None:
        used = ir.GlobalVariable(module, kind, name)
        used.linkage, used.section = "appending", "llvm.metadata"
    used.value_type, used.type = kind, kind.as_pointer()
    used.initializer = ir.Constant(kind, kept)
