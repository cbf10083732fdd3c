"""LLVM by the C functions of llvmlite's library: those that compiling a kernel takes.

Importing `llvmlite.binding` takes 18 ms, of which 5 load the library; the rest are forty Python modules for all that
LLVM can do. A program's first call took a third of its time for that. The modules lie in a context of the project's
own, so numba's threads may compile beside it.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Sequence
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.core.locks import make_lock

_lock = make_lock()
_TEXT = ctypes.POINTER(c_char_p)
_POINTER, _FLAG, _NUMBER = c_void_p, c_bool, c_int
_PASSES = ("AlwaysInliner", "GlobalDCE", "SROA", "InstCombine", "SimplifyCFG")

_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("InitializeNativeTarget", "InitializeNativeAsmPrinter"), (None,)),
    **dict.fromkeys(("InitializeAllTargetInfos", "InitializeAllTargets", "InitializeAllTargetMCs"), (None,)),
    "InitializeAllAsmPrinters": (None,),
    "SetCommandLine": (None, c_char_p, c_char_p),
    "DisposeString": (None, _POINTER),
    # processors
    **dict.fromkeys(("GetHostCPUName", "GetProcessTriple"), (None, _TEXT)),
    "GetHostCPUFeatures": (_NUMBER, _TEXT),
    "GetTargetFromTriple": (_POINTER, c_char_p, _TEXT),
    "CreateTargetMachine": (_POINTER, _POINTER, *[c_char_p] * 3, _NUMBER, *[c_char_p] * 2, _NUMBER, _NUMBER, c_char_p),
    "CreateTargetMachineData": (_POINTER, _POINTER),
    "CopyStringRepOfTargetData": (None, _POINTER, _TEXT),
    "DisposeTargetData": (None, _POINTER),
    "TargetMachineEmitToMemory": (_POINTER, _POINTER, _POINTER, _NUMBER, _TEXT),
    "GetBufferStart": (_POINTER, _POINTER),
    "GetBufferSize": (c_size_t, _POINTER),
    "DisposeMemoryBuffer": (None, _POINTER),
    # modules
    "ContextCreate": (_POINTER,),
    "ParseAssembly": (_POINTER, _POINTER, c_char_p, _TEXT),
    "DisposeModule": (None, _POINTER),
    "PrintModuleToString": (None, _POINTER, _TEXT),
    "VerifyModule": (_FLAG, _POINTER, _TEXT),
    "LinkModules": (_NUMBER, _POINTER, _POINTER, _TEXT),
    **dict.fromkeys(("SetTarget", "SetDataLayout"), (None, _POINTER, c_char_p)),
    **dict.fromkeys(("ModuleFunctionsIter", "FunctionsIterNext"), (_POINTER, _POINTER)),
    **dict.fromkeys(("ModuleGlobalsIter", "GlobalsIterNext"), (_POINTER, _POINTER)),
    **dict.fromkeys(("DisposeFunctionsIter", "DisposeGlobalsIter"), (None, _POINTER)),
    # what a module defines
    "IsDeclaration": (_NUMBER, _POINTER),
    "GetValueName": (c_char_p, _POINTER),
    "SetValueName": (None, _POINTER, c_char_p),
    "GetLinkage": (_NUMBER, _POINTER),
    **dict.fromkeys(("SetLinkage", "SetVisibility"), (None, _POINTER, _NUMBER)),
    # passes
    "CreatePipelineTuningOptions": (_POINTER,),
    **{f"PTOSet{name}": (None, _POINTER, _FLAG) for name in ("LoopInterleaving", "LoopVectorization")},
    **{f"PTOSet{name}": (None, _POINTER, _FLAG) for name in ("SLPVectorization", "LoopUnrolling")},
    "CreatePassBuilder": (_POINTER, _POINTER, _POINTER),
    "buildPerModuleDefaultPipeline": (_POINTER, _POINTER, _NUMBER, _NUMBER),  # the last up to llvmlite 0.45
    "CreateNewModulePassManager": (_POINTER,),
    **{f"module_Add{name}Pass": (None, _POINTER) for name in _PASSES},
    "RunNewModulePassManager": (None, _POINTER, _POINTER, _POINTER),
    "DisposeNewModulePassManger": (None, _POINTER),
    **dict.fromkeys(("DisposePassBuilder", "DisposePipelineTuningOptions"), (None, _POINTER)),
}
"""Functions of llvmlite: what each returns, and takes."""

_READ = re.compile(r"version = '0\.(4[5-9]|50)\.")
"""Versions whose functions these are; of others, what llvmlite itself declares is looked at before the first call."""


@cache
def _library() -> ctypes.CDLL:
    name = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}.get(sys.platform, "libllvmlite.so")
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise ImportError("kernels are compiled with llvmlite, which is not installed; numba installs it")
    if not _READ.search(Path(spec.origin).with_name("_version.py").read_text("utf-8")) and (
        other := declared_otherwise()
    ):
        from common.core.errors import CompileError

        raise CompileError(
            "kernels are compiled with llvmlite, 0.45 to 0.50; what is installed has other C functions "
            f"({', '.join(other)})"
        )
    library = ctypes.CDLL(str(Path(spec.origin).parent / "binding" / name))
    for start in ("Target", "AsmPrinter"):
        getattr(library, f"LLVMPY_InitializeNative{start}")()
    return library


def declared_otherwise() -> list[str]:
    """Return the functions of which llvmlite's Python modules declare other arguments, or that it does not have."""
    from llvmlite.binding import ffi

    def sizes(kinds: Sequence[Any]) -> list[int]:
        return [ctypes.sizeof(kind) for kind in kinds]

    other = []
    for name, (_, *ours) in _PROTOTYPES.items():
        theirs = getattr(getattr(ffi.lib, f"LLVMPY_{name}", None), "argtypes", ())
        if theirs is not None and sizes(theirs) != sizes(ours)[: len(theirs) or None]:
            other.append(name)
    return other


@cache
def _function(name: str) -> Any:
    try:
        function = getattr(_library(), f"LLVMPY_{name}")
    except AttributeError as error:
        from common.core.errors import CompileError

        raise CompileError(
            f"this version of llvmlite has no function {name}, which compiles kernels; install one that numba asks for"
        ) from error
    function.restype, *function.argtypes = _PROTOTYPES[name]
    return function


def _call(name: str, *operands: Any) -> Any:
    """Call a function; one at a time, because modules share a context."""
    with _lock:
        return _function(name)(*operands)


def _told(name: str, *operands: Any) -> tuple[Any, str]:
    """Call a function whose last operand is where it leaves a text; return what it returns, and the text."""
    text = c_char_p()
    result = _call(name, *operands, ctypes.byref(text))
    said = (text.value or b"").decode()
    if text:
        _call("DisposeString", text)
    return result, said


def host() -> tuple[str, str]:
    """Return LLVM's name of this processor, and its features; no features where LLVM cannot tell them."""
    name, (known, features) = _told("GetHostCPUName")[1], _told("GetHostCPUFeatures")
    return name, features if known else ""


@cache
def process_triple() -> str:
    """Return LLVM's name of this platform."""
    return _told("GetProcessTriple")[1]


def initialise_all() -> None:
    """Let `LlvmMachine` be one of any platform, not of this one only."""
    for name in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
        _call(f"InitializeAll{name}")


def set_option(option: str) -> None:
    """Throw one of LLVM's switches, which are the process's."""
    _call("SetCommandLine", b"twingrad", option.encode())


@cache
def _context() -> Any:
    return _call("ContextCreate")


class LlvmMachine:
    """A processor that code is generated for; lives as long as the process.

    Parameters
    ----------
    triple : LLVM's name of a platform.
    cpu, features : LLVM's names of a processor of it; empty for any.
    here : whether the code will run in this process, wherever its memory lies.

    Raises
    ------
    RuntimeError
        LLVM does not know them.
    """

    def __init__(self, triple: str, cpu: str, features: str, here: bool) -> None:
        self.triple, self.features = triple, features
        target, error = _told("GetTargetFromTriple", triple.encode())
        if not target:
            raise RuntimeError(error)
        on_x86 = triple.startswith(("x86_64", "i386", "i686"))
        named = triple + "-elf" if here and os.name == "nt" else triple  # what runs here is ELF there, too
        words = (b"static" if on_x86 else b"default", b"jitdefault") if here else (b"pic", b"default")
        self._machine = _call(
            "CreateTargetMachine", target, named.encode(), cpu.encode(), features.encode(), 2, *words, 0, here, b""
        )
        if not self._machine:
            raise RuntimeError(f"LLVM cannot make code for {triple} {cpu}")
        data = _call("CreateTargetMachineData", self._machine)
        self.layout = _told("CopyStringRepOfTargetData", data)[1]
        _call("DisposeTargetData", data)

    def emit_object(self, module: LlvmModule) -> bytes:
        """Return a module as object code."""
        return self._emit(module, True)

    def emit_assembly(self, module: LlvmModule) -> str:
        """Return a module as text of the processor's instructions."""
        return self._emit(module, False).decode()

    def _emit(self, module: LlvmModule, as_object: bool) -> bytes:
        buffer, error = _told("TargetMachineEmitToMemory", self._machine, module.pointer, as_object)
        if not buffer:
            raise RuntimeError(error)
        try:
            return ctypes.string_at(_call("GetBufferStart", buffer), _call("GetBufferSize", buffer))
        finally:
            _call("DisposeMemoryBuffer", buffer)

    def run(self, module: LlvmModule, passes: Sequence[str] = (), vectorise: bool = False) -> None:
        """Run passes over a module in place: the named ones, or LLVM's pipeline of level 1 with vectors of loops."""
        options = _call("CreatePipelineTuningOptions")
        for name in ("LoopInterleaving", "LoopVectorization"):
            _call(f"PTOSet{name}", options, vectorise)
        for name in ("SLPVectorization", "LoopUnrolling"):
            _call(f"PTOSet{name}", options, False)
        builder = _call("CreatePassBuilder", self._machine, options)
        manager = _call("buildPerModuleDefaultPipeline", builder, 1, 0) if vectorise else None
        manager = manager or _call("CreateNewModulePassManager")
        for name in passes:
            _call(f"module_Add{name}Pass", manager)
        _call("RunNewModulePassManager", manager, module.pointer, builder)
        _call("DisposeNewModulePassManger", manager)
        _call("DisposePassBuilder", builder)
        _call("DisposePipelineTuningOptions", options)


class LlvmModule:
    """A module of LLVM IR.

    Attributes
    ----------
    in_order : whether its instructions are best left in their order, see `common.compiler.llvm_engine.emit`.

    Raises
    ------
    RuntimeError
        The text is not LLVM IR.
    """

    pointer: Any = None
    in_order = False

    def __init__(self, text: str) -> None:
        self.pointer, error = _told("ParseAssembly", _context(), text.encode())
        if not self.pointer:
            raise RuntimeError(f"LLVM IR parsing error\n{error}")

    def __del__(self) -> None:
        if self.pointer and not sys.is_finalizing():
            _call("DisposeModule", self.pointer)

    def __str__(self) -> str:
        return _told("PrintModuleToString", self.pointer)[1]

    def place(self, machine: LlvmMachine) -> None:
        """Make it one for a processor."""
        _call("SetTarget", self.pointer, machine.triple.encode())
        _call("SetDataLayout", self.pointer, machine.layout.encode())

    def verify(self) -> None:
        """Check that LLVM would take it.

        Raises
        ------
        RuntimeError
            It would not.
        """
        failed, error = _told("VerifyModule", self.pointer)
        if failed:
            raise RuntimeError(error)

    def link_in(self, other: LlvmModule) -> None:
        """Take all that another module holds, which is empty afterwards.

        Raises
        ------
        RuntimeError
            Both define the same.
        """
        pointer, other.pointer = other.pointer, None
        failed, error = _told("LinkModules", self.pointer, pointer)
        if failed:
            raise RuntimeError(error)

    @property
    def functions(self) -> list[LlvmSymbol]:
        """Functions that it defines or declares."""
        return self._symbols("Functions")

    @property
    def global_variables(self) -> list[LlvmSymbol]:
        """Variables that it defines or declares."""
        return self._symbols("Globals")

    def _symbols(self, kind: str) -> list[LlvmSymbol]:
        iterator, found = _call(f"Module{kind}Iter", self.pointer), []
        while pointer := _call(f"{kind}IterNext", iterator):
            found.append(LlvmSymbol(self, pointer))
        _call(f"Dispose{kind}Iter", iterator)
        return found


class LlvmSymbol:
    """A function or variable of a module."""

    def __init__(self, module: LlvmModule, pointer: Any) -> None:
        self._module, self._pointer = module, pointer

    @property
    def name(self) -> str:
        """Its name in the module."""
        return str(_call("GetValueName", self._pointer).decode())

    @name.setter
    def name(self, name: str) -> None:
        _call("SetValueName", self._pointer, name.encode())

    @property
    def is_declaration(self) -> bool:
        """Whether it is declared only."""
        return bool(_call("IsDeclaration", self._pointer))

    @property
    def is_internal(self) -> bool:
        """Whether other modules cannot name it."""
        return _call("GetLinkage", self._pointer) in (8, 9)  # internal, private

    def make_internal(self) -> None:
        """Let other modules not name it."""
        _call("SetLinkage", self._pointer, 8)

    def hide(self) -> None:
        """Let only what is linked with it name it."""
        _call("SetVisibility", self._pointer, 1)
