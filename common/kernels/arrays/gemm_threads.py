"""Machine code that shares tasks among threads: tiles of a product, items of attention, parts of a kernel's own work.

Needs llvmlite.
"""

from __future__ import annotations

from llvmlite import ir

from common.kernels.arrays.attention_blocks import part_symbol
from common.kernels.arrays.code_blocks import WORD, ForLoop, internal, word
from common.kernels.arrays.gemm import tile_symbol
from common.runtime.pool_text import MOST_ARGS
from common.runtime.thread_pool import SHARE

_WORDS = WORD.as_pointer()


def _word(module: ir.Module, name: str) -> ir.GlobalVariable:
    """The declaration of a word that `common.runtime.thread_pool.define_for_threads` names."""
    return module.globals.get(name) or ir.GlobalVariable(module, WORD, name)


def there_are_threads(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``i64 ()``: not 0 if `share_tiles` can be called."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        tile, share = (b.load(_word(module, name)) for name in (tile_symbol(str(kind)), SHARE))
        b.ret(b.zext(b.and_(*(b.icmp_unsigned("!=", address, word(0)) for address in (tile, share))), WORD))

    return internal(module, f"there_are_threads.{kind}", WORD, [], define)


def there_are_helpers(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``i64 ()``: not 0 if `share_parts` can be called."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        b.ret(b.load(_word(module, SHARE)))

    return internal(module, f"there_are_helpers.{kind}", WORD, [], define)


def share_tiles(module: ir.Module, kind: ir.Type) -> ir.Function:
    """``void (bufs, args, count, tasks)``: all tiles of a product, by the threads of `common.runtime.thread_pool`."""
    return _share(module, f"share_tiles.{kind}", tile_symbol(str(kind)))


def share_items(module: ir.Module, kind: ir.Type, kernel: str) -> ir.Function:
    """The same for the items of a kernel; `there_are_threads` tells of it too."""
    return _share(module, f"share_{kernel}.{kind}", part_symbol(kernel, str(kind)))


def share_parts(module: ir.Module, kind: ir.Type, truth: bool = False) -> ir.Function:
    """``void (bufs, args, count, tasks)``: the kernel that calls it, part by part: `count` args, `tasks`, and which."""

    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        bufs, args, count, tasks = function.args
        own = b.alloca(WORD, word(MOST_ARGS))
        with ForLoop(b, count, 1) as each:
            b.store(b.load(b.gep(args, [each.index])), b.gep(own, [each.index]))
        b.store(tasks, b.gep(own, [count]))
        _call(module, b, _kernel_of(module), bufs, own, b.add(count, word(1)), tasks)
        b.ret_void()

    return internal(module, f"share_parts.{kind}", ir.VoidType(), [_WORDS, _WORDS, WORD, WORD], define)


def _kernel_of(module: ir.Module) -> ir.Value:
    """The address of the kernel that a module is written for, which has the module's name, or is numba's function."""
    names = [function.name for function in module.functions if function.linkage != "internal" and function.blocks]
    return ir.FormattedConstant(WORD, f'ptrtoint (ptr @"{names[0] if names else module.name}" to i64)')


def _share(module: ir.Module, name: str, symbol: str) -> ir.Function:
    def define(function: ir.Function, b: ir.IRBuilder) -> None:
        _call(module, b, b.load(_word(module, symbol)), *function.args)
        b.ret_void()

    return internal(module, name, ir.VoidType(), [_WORDS, _WORDS, WORD, WORD], define)


def _call(module: ir.Module, b: ir.IRBuilder, task: ir.Value, *arguments: ir.Value) -> None:
    """Call what shares tasks."""
    signature = ir.FunctionType(ir.VoidType(), [WORD, *(argument.type for argument in arguments)])
    share = b.inttoptr(b.load(_word(module, SHARE)), signature.as_pointer())
    b.call(share, [task, *arguments])
