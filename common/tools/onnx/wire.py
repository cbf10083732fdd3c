"""The wire format of protocol buffers: numbered fields of four kinds. Nothing is believed of the bytes.

References
----------
Protocol Buffers, Encoding: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from common.core.errors import StateError

Payload = int | memoryview
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and where it ends.

    Raises
    ------
    StateError : it does not end, or is too long.
    """
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
    raise StateError("damaged: a number does not end")


def signed(number: int) -> int:
    """The int64 that an unsigned number stands for."""
    return number - (1 << 64) if number >> 63 else number


def fields(data: memoryview) -> Iterator[tuple[int, Payload]]:
    """The fields of a message in their order: number, and an int or bytes.

    Raises
    ------
    StateError : a field reaches over the end, or is of no known kind.
    """
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, at = varint(data, at)
        if size is None or not number or size > len(data) - at:
            raise StateError(f"damaged: field {number} of kind {kind} does not fit into its message")
        yield number, data[at : at + size]
        at += size


def integers(value: Payload) -> list[int]:
    """A repeated int64: one number, or all of them in one field."""
    if isinstance(value, int):
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(signed(number))
    return found


def numbers(value: Payload, code: str) -> list[float]:
    """A repeated float ("f") or double ("d")."""
    size = struct.calcsize(f"<{code}")
    if isinstance(value, int) or len(value) % size:
        raise StateError("damaged: floats that are no whole number of them")
    return [x for (x,) in struct.iter_unpack(f"<{code}", value)]


def whole(value: Payload) -> int:
    """A number.

    Raises
    ------
    StateError : the field has bytes.
    """
    if isinstance(value, int):
        return signed(value)
    raise StateError("damaged: a number is expected where bytes are")


def message(value: Payload) -> memoryview:
    """Bytes.

    Raises
    ------
    StateError : the field is a number.
    """
    if isinstance(value, int):
        raise StateError("damaged: bytes are expected where a number is")
    return value


def text(value: Payload) -> str:
    """A string.

    Raises
    ------
    StateError : it is no UTF-8.
    """
    try:
        return str(message(value), "utf-8")
    except UnicodeDecodeError:
        raise StateError("damaged: a text is no UTF-8") from None
