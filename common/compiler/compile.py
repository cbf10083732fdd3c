"""From kernel source to an address: memory, then disk, then LLVM.

The ABI of every kernel is numba's own, without wrappers::

    int32 kernel(int64 *status, void **exception, int64 *bufs, int64 *args)

``bufs[j]`` is the address of the j-th buffer, ``args[j]`` a size, stride or scalar.  ``*status`` is what the
source returns: 0, or a positive error code of the kernel.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from common.compiler import disk_cache as disk
from common.compiler import host_kernels, image, llvm_engine
from common.compiler.environment_stamp import hashed_files, stamp, version_file
from common.compiler.fingerprint import fingerprint
from common.compiler.machine_functions import PREFIX
from common.core.garbage import collecting_later
from common.core.interrupts import heard_later
from common.core.locks import make_lock

LLVM, NUMBA = COMPILERS = "llvm", "numba"
"""Compilers of kernel text: our own translation to LLVM, and numba's front end. The bits are the same."""


def checked(compiler: Any, caller: str) -> str | None:
    """Return the name of a compiler, or None for that of the process.

    Raises
    ------
    ArgumentError
        There is no such compiler; the error names `caller`.
    """
    if compiler is not None and compiler not in COMPILERS:
        from common.core.errors import ArgumentError

        raise ArgumentError(f'{caller}: compiler is "llvm" or "numba", or None for TWINGRAD_COMPILER, not {compiler!r}')
    return compiler


def default_compiler() -> str:
    """Return the compiler of this process: what TWINGRAD_COMPILER says, "llvm" if it is unset.

    Raises
    ------
    ArgumentError
        It names no compiler.
    """
    return checked(os.environ.get("TWINGRAD_COMPILER") or LLVM, "TWINGRAD_COMPILER") or LLVM


class Origin(NamedTuple):
    """Where the machine code of a kernel came from in this process, and what that took.

    Attributes
    ----------
    place : "compiled" or "disk".
    seconds : from the request to the address.
    start : `time.perf_counter` at the request; later users of the kernel find it in memory.
    """

    place: str
    seconds: float
    start: float


_addresses: dict[tuple[str, str], int] = {}
_origins: dict[tuple[str, str], Origin] = {}
_providers: list[Callable[[str], Any]] = []
_foreign: dict[str, str] = {}
_lock = make_lock()


def add_namespace(provider: Callable[[str], Any]) -> None:
    """Let kernel source use the names that `provider` knows.

    Parameters
    ----------
    provider : callable
        ``provider(name)`` returns None for an unknown name, else a scalar expression (a Python function over
        `common.compiler.primitives`) or a `common.compiler.machine_functions.MachineFunction`.  It is asked only when a
        kernel is compiled, only for names that its source uses, and after later providers.  Its definitions must lie in
        the hashed folders of this package; others are named with `define_scalar`.
    """
    _providers.insert(0, provider)


def define_scalar(name: str, function: Callable[..., Any]) -> None:
    """Let kernel source call a scalar expression of a user's own op; its code becomes part of the key."""
    _foreign[name] = fingerprint(function)
    _providers.insert(0, {name: function}.get)


def compile_kernel(source: str, name: str, compiler: str | None = None, ready_made: bool = False) -> int:
    """Return the address of the kernel `name` that `source` defines, compiled at most once per machine.

    Parameters
    ----------
    source : str
        Text of one function ``def name(bufs, args)``, see `common.compiler.translate`.
    name : str
        The function's name.
    compiler : str, optional
        "llvm" or "numba"; that of the process by default, see `default_compiler`.
    ready_made : bool
        Whether the text is the package's own, and not made for one program, see `common.compiler.disk_cache`.

    Raises
    ------
    CompileError
        The source is not a kernel, or uses a name that nothing provides.

    Examples
    --------
    >>> address = compile_kernel('''def double_all(bufs, args):
    ...     x = buffer(bufs, 0, int64)
    ...     for i in range(args[0]):
    ...         x[i] = x[i] + x[i]
    ...     return 0''', "double_all")
    """
    of = source, compiler or default_compiler()
    address = _addresses.get(of)
    if address is None:
        with _lock:
            address = _addresses.get(of)
            if address is None:
                address = _addresses[of] = _get(source, name, of[1], ready_made)
    return address


@contextmanager
def batch() -> Iterator[None]:
    """Kernels that are compiled in this block share what is done once for many."""
    with llvm_engine.batch():
        yield
    with _lock:
        _texts().store()


def llvm_text(source: str, name: str, compiler: str | None = None) -> str:
    """Return the LLVM IR of a kernel as text, before LLVM has optimised it; arguments as those of `compile_kernel`.

    Raises
    ------
    CompileError
        As `compile_kernel` does.
    """
    if source.startswith(host_kernels.MARK):
        return "".join(f"; {line}\n" for line in source.splitlines())
    return str(_FRONT_ENDS[compiler or default_compiler()](source, name, name)[0])


def origin(source: str, compiler: str | None = None) -> Origin | None:
    """Return where the machine code of a kernel came from; None if it has not been asked for yet."""
    return _origins.get((source, compiler or default_compiler()))


def load_ir(text: str, symbol: str) -> int:
    """Return the address of `symbol` in a module of LLVM IR text, from the disk cache where possible."""
    return _load_module(make_key(text), lambda: text, symbol)


def load_native(source: str, symbol: str) -> int:
    """Return the address of the last function of native source (`common.compiler.native_source`), named `symbol`."""

    def text() -> str:
        from common.compiler.native_source import translate_native

        return translate_native(source, symbol, partial(meaning, kernel=symbol))

    return _load_module(make_key(f"{symbol}\n{source}"), text, symbol)


def _load_module(key: str, text: Callable[[], str], symbol: str) -> int:
    with _lock:
        entry = disk.read(key, ready_made=True)
        if entry is None:
            with heard_later(), collecting_later():
                entry = _emitted(text, symbol)
            disk.write(key, entry, ready_made=True)
        return llvm_engine.load(entry.code, entry.symbol, entry.externals)


def _emitted(text: Callable[[], str], symbol: str) -> disk.Entry:
    module = llvm_engine.parse(text())
    llvm_engine.tidy(module)
    return disk.Entry(symbol, externals(module), llvm_engine.emit(module, symbol))


@cache
def _library(symbol: str) -> int:
    """Return the address of a `common.compiler.machine_functions.MachineFunction` with code of its own."""
    return _load_module(make_key(symbol), partial(library_text, symbol), symbol)


llvm_engine.define_family(PREFIX, _library)


def front_end(source: str, name: str, symbol: str) -> tuple[Any, int]:
    """Return the LLVM module of a kernel, and what LLVM has to do to it, see `llvm_engine.PIPELINE`."""
    return _translated(source, name, symbol)


def library_text(symbol: str) -> str:
    """Return the LLVM IR of a `common.compiler.machine_functions.MachineFunction` with code of its own."""
    _, name, dtype = symbol.split(".")
    return str(meaning(name, symbol).module(np.dtype(dtype)))


def make_key(text: str, compiler: str = LLVM) -> str:
    """Return the key of an entry: everything that the object code follows from."""
    digest = hashlib.sha256(_environment() + b"numba" * (compiler == NUMBA))
    digest.update(text.encode())
    for name in _foreign_names(text):
        digest.update(f"{name}={_foreign[name]}".encode())
    return digest.hexdigest()


def _foreign_names(text: str) -> list[str]:
    """The scalar expressions of a user's own ops that a text names, in order."""
    # the search alone goes through the text 40 times slower
    return sorted(name for name in _foreign if name in text and re.search(rf"\b{name}\b", text))


@cache
def _environment() -> bytes:
    """Return the hash of the compilers' versions, the CPU and the files that define kernels.

    It is kept in the cache under a stamp of all these, because only llvmlite tells the CPU.
    """
    key = stamp(hashed_files())
    if key is None:
        return _hash_environment()
    entry = disk.read(key, ready_made=True)
    if entry is None:
        entry = disk.Entry("environment", (), _hash_environment())
        disk.write(key, entry, ready_made=True)
    return entry.code


def _hash_environment() -> bytes:
    import llvmlite

    versions = sys.version, np.__version__, _numba_version(), llvmlite.__version__
    digest = hashlib.sha256(repr((versions, llvm_engine.cpu(), image.is_supported())).encode())
    for name, _, _ in hashed_files():
        path = Path(name)
        digest.update(f"{path.parent.name}/{path.name}".encode())
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.digest()


def _numba_version() -> str:
    """Return the text that holds numba's version; importing numba would cost 150 ms, its metadata 10 ms."""
    file = version_file("numba")
    if file is not None and file.exists():
        return file.read_text()
    from importlib.metadata import version

    return version("numba")


def _get(source: str, name: str, compiler: str, ready_made: bool) -> int:
    start = perf_counter()
    if source.startswith(host_kernels.MARK):
        text, symbol = host_kernels.native(source)
        address = load_native(text, symbol) if text else host_kernels.address(source)
        _origins[source, compiler] = Origin("compiled", perf_counter() - start, start)
        return address
    key, ready_made = make_key(source, compiler), ready_made and not _foreign_names(source)
    entry = disk.read(key, ready_made)
    place = "compiled" if entry is None else "disk"
    if entry is None:
        with heard_later(), collecting_later():
            entry = _compile(source, name, f"twingrad_{key[:32]}", compiler, not ready_made)
        disk.write(key, entry, ready_made)
        if not llvm_engine.is_batch():
            _texts().store()
    address = llvm_engine.load(entry.code, entry.symbol, entry.externals)
    _origins[source, compiler] = Origin(place, perf_counter() - start, start)
    return address


def _compile(source: str, name: str, symbol: str, compiler: str, few_passes: bool) -> disk.Entry:
    module, left = _FRONT_ENDS[compiler](source, name, symbol, few_passes, True)
    if left == llvm_engine.PIPELINE:
        llvm_engine.optimise(module)
    elif left == llvm_engine.TIDYING:
        llvm_engine.tidy(module)
    return disk.Entry(symbol, externals(module), llvm_engine.emit(module, symbol, few_passes))


def _translated(source: str, name: str, symbol: str, one_program: bool = False, here: bool = False) -> tuple[Any, int]:
    from common.compiler.registers import Refused
    from common.compiler.translate import translate

    try:
        text, left = translate(source, symbol, partial(meaning, kernel=name), one_program, here, _texts())
        return llvm_engine.parse(text), left
    except (Refused, SyntaxError) as error:
        from common.core.errors import CompileError

        raise CompileError(f"kernel {name} cannot be compiled: {error}\n\n{source}") from error


def _by_numba(source: str, name: str, symbol: str, *_: bool) -> tuple[Any, int]:
    from numba.core.errors import NumbaError

    from common.compiler.numba_frontend import lower_source

    try:
        return lower_source(source, name, symbol, partial(meaning, kernel=name)), llvm_engine.PIPELINE
    except NumbaError as error:
        from common.core.errors import CompileError

        raise CompileError(f"kernel {name} cannot be compiled: {error}\n\n{source}") from error


@cache
def _texts() -> Any:
    from common.compiler.known_texts import KnownTexts

    return KnownTexts(make_key)


_FRONT_ENDS: dict[str, Callable[..., tuple[Any, int]]] = {LLVM: _translated, NUMBA: _by_numba}

_meanings: dict[str, Any] = {}


def meaning(used: str, kernel: str) -> Any:
    """Return the scalar definition or `common.compiler.machine_functions.MachineFunction` that kernel source names.

    Raises
    ------
    CompileError
        Nothing provides the name.
    """
    if used not in _meanings:
        value = _conversions().get(used)
        for provider in _providers:
            value = provider(used) if value is None else value
        if value is None:
            from common.core.errors import CompileError

            raise CompileError(f"kernel {kernel} uses the name {used!r}, which nothing provides")
        _meanings[used] = value
    return _meanings[used]


@cache
def _conversions() -> dict[str, Callable[[Any], Any]]:
    from common.compiler.primitives import convert
    from common.compiler.registers import DTYPES
    from common.core.dtypes import name_of

    found: dict[str, Callable[[Any], Any]] = {
        f"to_{name_of(dtype)}": partial(convert, dtype=dtype) for dtype in DTYPES.values()
    }
    return found | {"to_bool8": found["to_bool"]}  # numpy's name of it where a program has written np.bool = bool


def externals(module: Any) -> tuple[str, ...]:
    """Return the symbols that a module uses but does not define; mathematical functions are refused.

    libm is not correctly rounded and differs between systems; the project's own definitions are used instead.
    """
    names = [function.name for function in module.functions if function.is_declaration]
    from common.core.errors import CompileError

    for name in names:
        if re.match(r"llvm\.(exp|log|pow|sin|cos|tan|sinh|cosh|tanh)[.\d]*\.", name):
            raise CompileError(f"a kernel would call libm for {name}")
    names += [variable.name for variable in module.global_variables if variable.is_declaration]
    return tuple(sorted(name for name in names if not name.startswith("llvm.")))
