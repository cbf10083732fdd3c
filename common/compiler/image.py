"""Object code without LLVM: linked once when it is stored, copied to executable memory when it is used.

LLVM's object files for x86-64 hold absolute addresses of 64 bits and no others, because the JIT's code model is the
large one. `link` lays the sections out behind each other and notes where addresses are missing: so far into the image
itself, or of a symbol. `load` copies an image into fresh pages, fills these words in and makes the pages executable
and read-only. That takes about 50 us, where loading LLVM takes 6 ms. Whatever else an object file asks for,
and every other platform, is left to llvmlite: `link` returns None and `is_supported` is false.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

MAGIC = b"\x00twimage"  # no object file starts like this
_HEAD = struct.Struct("<8sQII")  # magic, entry, number of addresses in the image, of symbols
_WITHIN = struct.Struct("<QQ")  # where, distance from the image's start
_OUTSIDE = struct.Struct("<QqI")  # where, addend, length of the name that follows

_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, alignment, entry size
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_RELOCATION = struct.Struct("<QQq")  # where, symbol and type, addend
_X86_64, _PROGBITS, _SYMTAB, _RELA, _NOBITS, _ALLOCATED = 62, 1, 2, 4, 8, 2
_ABSOLUTE_64 = 1


def outlive(memory: object) -> None:
    """Keep what machine code uses as long as the process: finalisers may call it after modules have been cleared."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))


@cache
def is_supported() -> bool:
    """Whether this process may make memory executable, on a platform whose object files `link` knows."""
    if not (sys.platform == "linux" and platform.machine() == "x86_64" and ctypes.sizeof(ctypes.c_void_p) == 8):
        return False
    try:
        _executable(b"\xc3")  # ret
    except OSError:  # forbidden, as hardened systems do
        return False
    return True


def link(code: bytes, symbol: str) -> bytes | None:
    """Return an object file as an image with the entry `symbol`; None if it needs more than `load` can do."""
    if not is_supported() or code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", code, 18)[0] != _X86_64:
        return None
    (at,) = struct.unpack_from("<Q", code, 40)
    (count,) = struct.unpack_from("<H", code, 60)
    sections = [_SECTION.unpack_from(code, at + i * _SECTION.size) for i in range(count)]
    image, places = bytearray(), {}
    for i, (_, kind, flags, _, offset, size, _, _, alignment, _) in enumerate(sections):
        if not flags & _ALLOCATED or kind not in (_PROGBITS, _NOBITS):
            continue  # unwinding tables too: kernels never raise
        image += bytes(-len(image) % max(alignment, 1))
        places[i] = len(image)
        image += code[offset : offset + size] if kind == _PROGBITS else bytes(size)
    symbols = _symbols(code, sections)
    within, outside = [], []
    for _, kind, _, _, offset, size, _, target, _, _ in sections:
        if kind != _RELA or target not in places:
            continue
        for where, info, addend in _RELOCATION.iter_unpack(code[offset : offset + size]):
            name, home, value = symbols[info >> 32]
            if info & 0xFFFFFFFF != _ABSOLUTE_64 or (home and home not in places):
                return None
            if home:
                within.append(_WITHIN.pack(places[target] + where, places[home] + value + addend))
            else:
                outside.append(_OUTSIDE.pack(places[target] + where, addend, len(name)) + name)
    entries = [places[home] + value for name, home, value in symbols if name == symbol.encode() and home in places]
    if len(entries) != 1:
        return None
    head = _HEAD.pack(MAGIC, entries[0], len(within), len(outside))
    return b"".join([head, *within, *outside, image])


def _symbols(code: bytes, sections: list[tuple[Any, ...]]) -> list[tuple[bytes, int, int]]:
    """Name, section and value of each symbol."""
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind == _SYMTAB:
            names = sections[link][4]
            return [
                (code[names + name : code.index(b"\0", names + name)], home, value)
                for name, _, _, home, value, _ in _SYMBOL.iter_unpack(code[offset : offset + size])
            ]
    return []


def load(image: bytes, address_of: Callable[[str], int]) -> int:
    """Return the address of an image's entry, in memory that stays.

    Parameters
    ----------
    image : bytes
        What `link` returned.
    address_of : callable
        ``address_of(symbol)`` for each symbol that the image uses.

    Raises
    ------
    OSError
        The system refuses to make memory executable.
    """
    _, entry, inside, outside = _HEAD.unpack_from(image)
    at, words = _HEAD.size, []
    for _ in range(inside):
        words.append(_WITHIN.unpack_from(image, at))
        at += _WITHIN.size
    symbols = []
    for _ in range(outside):
        where, addend, length = _OUTSIDE.unpack_from(image, at)
        at += _OUTSIDE.size + length
        symbols.append((where, address_of(image[at - length : at].decode()) + addend))

    def fill(pages: mmap.mmap, start: int) -> None:
        for where, distance in words:
            struct.pack_into("<Q", pages, where, start + distance)
        for where, address in symbols:
            struct.pack_into("<Q", pages, where, address & 0xFFFFFFFFFFFFFFFF)

    return _executable(image[at:], fill) + entry


def _executable(code: bytes, fill: Callable[[mmap.mmap, int], None] | None = None) -> int:
    """Copy code to pages of its own, complete it, and make them executable; never writable at the same time."""
    size = -(-max(len(code), 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    pages[: len(code)] = code
    if fill is not None:
        fill(pages, start)
    if _mprotect()(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")
    outlive(pages)
    return start


@cache
def _mprotect() -> Any:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    return function
