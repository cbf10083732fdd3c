"""Machine code that shares tasks among threads: tiles of a product, items of attention. Needs llvmlite."""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.attention_blocks import part_symbol
from common.kernels.arrays.code_blocks import WORD, internal, word
from common.kernels.arrays.gemm import tile_symbol
from common.runtime.thread_pool import SHARE


def _word(module: ir.Module, name: str) -> ir.GlobalVariable:
    """The declaration of a word that `common.runtime.thread_pool.define_for_threads` names."""
    return module.globals.get(name) or ir.GlobalVariable(module, WORD, name)


def there_are_threads(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``i64 ()``: not 0 if `share_tiles` can be called."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        tile, share = (b.load(_word(module, name)) for name in (tile_symbol(str(kind)), SHARE))
        b.ret(b.zext(b.and_(*(b.icmp_unsigned("!=", address, word(0)) for address in (tile, share))), WORD))

    return internal(module, f"there_are_threads.{kind}", WORD, [], define)


def share_tiles(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (bufs, args, count, tasks)``: all tiles of a product, by the threads of `common.runtime.thread_pool`."""
    return _share(module, f"share_tiles.{kind}", tile_symbol(str(kind)))


def share_items(module: ir.Module, kind: ir.Type, kernel: str) -> ir.Function:
    """The same for the items of a kernel; `there_are_threads` tells of it too."""
    return _share(module, f"share_{kernel}.{kind}", part_symbol(kernel, str(kind)))


def _share(module: ir.Module, name: str, symbol: str) -> ir.Function:
    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        task = b.load(_word(module, symbol))
        signature = ir.FunctionType(ir.VoidType(), [WORD, *(argument.type for argument in function.args)])
        share = b.inttoptr(b.load(_word(module, SHARE)), signature.as_pointer())
        b.call(share, [task, *function.args])
        b.ret_void()

    words = WORD.as_pointer()
    return internal(module, name, ir.VoidType(), [words, words, WORD, WORD], define)
