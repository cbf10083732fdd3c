"""Machine code of one call of BLAS gemm, of sharing tiles, and of holding BLAS to one thread. Needs llvmlite."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.blas import HOLD, RELEASE, SHARE, dot_symbol, gemm_symbol, tile_symbol
from common.kernels.blocks import WORD, internal, word

_INT = ir.IntType(32)
_CHAR = ir.IntType(8)


def external(module: ir.Module, name: str, kind: ir.FunctionType) -> ir.Function:
    """Return the declaration of a function that `common.native.engine.define` names."""
    return module.globals.get(name) or ir.Function(module, kind, name)


def call_gemm(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, b, c, m, n, k, lda, ldb, ldc, trans_a, trans_b)``: c = op(a) @ op(b), row-major.

    BLAS is column-major and sees transposed arrays: it computes c.T = op(b).T @ op(a).T. Sizes < 2**31.
    """

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        x, y, out, m, n, k, ldx, ldy, ldout, trans_x, trans_y = function.args

        def passed(value: ir.Value) -> ir.Value:
            slot = b.alloca(value.type)
            b.store(value, slot)
            return slot

        def flag(trans: ir.Value) -> ir.Value:
            return b.select(b.icmp_signed("!=", trans, word(0)), _CHAR(ord("T")), _CHAR(ord("N")))

        ints = [b.trunc(value, _INT) for value in (n, m, k, ldy, ldx, ldout)]
        flags = [passed(flag(trans)) for trans in (trans_y, trans_x)]
        columns, rows, inner, second, first, leading = map(passed, ints)
        one, nothing = passed(ir.Constant(kind, 1.0)), passed(ir.Constant(kind, 0.0))
        arguments = [*flags, columns, rows, inner, one, y, second, x, first, nothing, out, leading]
        signature = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        b.call(external(module, gemm_symbol(str(kind)), signature), arguments)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"gemm.{kind}", ir.VoidType(), [pointer] * 3 + [WORD] * 8, define)


def call_dot(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (a, b, c, k)``: c[0] = the dot product of k elements of a and of b."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        x, y, out, k = function.args
        count, one = (b.alloca(_INT) for _ in range(2))
        b.store(b.trunc(k, _INT), count)
        b.store(_INT(1), one)
        arguments = [count, x, one, y, one]
        signature = ir.FunctionType(kind, [argument.type for argument in arguments])
        b.store(b.call(external(module, dot_symbol(str(kind)), signature), arguments), out)
        b.ret_void()

    pointer = kind.as_pointer()
    return internal(module, f"dot.{kind}", ir.VoidType(), [pointer] * 3 + [WORD], define)


def _word(module: ir.Module, name: str) -> ir.GlobalVariable:
    """The declaration of a word that `common.native.pool.define_for_threads` names."""
    return module.globals.get(name) or ir.GlobalVariable(module, WORD, name)


def there_are_threads(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``i64 ()``: not 0 if `share_tiles` can be called."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        tile, share = (b.load(_word(module, name)) for name in (tile_symbol(str(kind)), SHARE))
        b.ret(b.zext(b.and_(*(b.icmp_unsigned("!=", address, word(0)) for address in (tile, share))), WORD))

    return internal(module, f"there_are_threads.{kind}", WORD, [], define)


def share_tiles(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (bufs, args, count, tasks)``: all tiles of a product, by the threads of `common.native.pool`."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        tile = b.load(_word(module, tile_symbol(str(kind))))
        signature = ir.FunctionType(ir.VoidType(), [WORD, *(argument.type for argument in function.args)])
        share = b.inttoptr(b.load(_word(module, SHARE)), signature.as_pointer())
        b.call(share, [tile, *function.args])
        b.ret_void()

    words = WORD.as_pointer()
    return internal(module, f"share_tiles.{kind}", ir.VoidType(), [words, words, WORD, WORD], define)


def hold_threads(module: ir.Module) -> ir.Function:
    """``void ()``: hold BLAS to one thread until all that hold it have released it."""
    return _calling(module, HOLD)


def release_threads(module: ir.Module) -> ir.Function:
    """``void ()``: hold BLAS no longer."""
    return _calling(module, RELEASE)


def _calling(module: ir.Module, symbol: str) -> ir.Function:
    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        b.call(external(module, symbol, ir.FunctionType(ir.VoidType(), [])), [])
        b.ret_void()

    return internal(module, f"calling.{symbol}", ir.VoidType(), [], define)
