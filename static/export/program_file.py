"""Programs in files: `save`, `load`, and `export`. A file runs without the user's source, and holds no pickle.

The file is a zip archive, uncompressed: ``program.json`` (graphs, how arguments nest, guards), ``weights.safetensors``
(state by name), perhaps machine code. Its comment is the SHA-256 of all other bytes, so that whatever was altered is
noticed. What is read is checked as if somebody had written it by hand: ops, operands, shapes. See docs/saved.md.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, GraphError, StateError, TwingradError
from common.core.numerics import NUMERICS_VERSION
from common.nn.module import Module
from common.tensor.base import TensorBase
from common.tools.files.safetensors import arrays_of
from common.tools.files.strict_json import parsed
from common.tools.files.whole_file import whole_file
from static.export import file_values
from static.export.file_state import WrittenPrograms, state_of
from static.export.held_graph import check
from static.export.program_function import ProgramFunction
from static.export.recorded import RecordedCall, record
from static.graph import serialize
from static.graph.verify import verify
from static.jit.compile_module import CompiledModule
from static.jit.function import CompiledFunction
from static.tracing.captured import Captured

FORMAT = 1
"""Version of the file; `load` refuses others."""
PROGRAM, WEIGHTS, NATIVE = "program.json", "weights.safetensors", "native/"
_DIGEST = 64


def export(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function's program for such arguments, as a compiled function that needs the function no more.

    Parameters
    ----------
    f : a module, a function of tensors, or what `function`, `compile` or a transform made of one.
    args, kwargs : an example of its arguments; sizes other than 1 may change, as far as the function allows. Without
        any, the calls that a compiled function has traced so far.

    Returns
    -------
    callable
        With ``state_dict()``, ``parameters()`` and ``named_parameters()``: it shares its state with `f`. For
        `static.save`.

    Raises
    ------
    TraceError : it cannot be traced, or Python decides in it on traced values.

    Examples
    --------
    >>> import numpy as np, static
    >>> layer = static.nn.Linear(3, 2)
    >>> program = static.export(layer, np.ones((4, 3), np.float32))
    >>> list(program.state_dict()), program(np.ones((5, 3), np.float32)).shape
    (['weight', 'bias'], torch.Size([5, 2]))
    """
    if isinstance(f, ProgramFunction) and not (args or kwargs):
        return f
    compiled = type(f).forward if isinstance(f, CompiledModule) else f
    options = compiled.options._asdict() if isinstance(compiled, CompiledFunction) else {}
    names = {id(x): name for name, x in _named(f)}
    if args or kwargs or not isinstance(compiled, CompiledFunction):
        return ProgramFunction([record(f, args, kwargs)], names, **options)
    examples = {key[0:1] + key[2:]: traces for key, traces in compiled._by_signature.items() if traces}
    if not examples:
        raise ArgumentError(
            f"{type(f._plain).__name__ if isinstance(f, CompiledModule) else f.__name__} has not been traced yet: "
            "call it once, or give export() an example of its arguments"
        )
    calls = [example_of(traces[-1]) for traces in examples.values()]
    if isinstance(f, CompiledModule):
        calls = [(args[1:], kwargs) for args, kwargs in calls]
    return ProgramFunction([record(f, *call) for call in calls], names, **options)


def _named(f: Any) -> list[tuple[str, Any]]:
    return [*f.named_parameters(), *f.named_buffers()] if isinstance(f, Module) else []


def example_of(traced: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Arguments like those of a trace."""
    from common.core.sizes import hint
    from common.core.tree import unflatten

    leaves: list[Any] = list(traced.static_leaves)
    for i, value in zip(traced.positions, traced.raw.inputs, strict=False):
        if value.spec.weak:
            leaves[i] = traced.trace.fixed.get(i, 0 if value.dtype.kind == "i" else 0.5)
        else:
            leaves[i] = np.broadcast_to(np.zeros((), value.dtype), tuple(hint(n) for n in value.shape))
    args, kwargs = unflatten(traced.structure, leaves)
    return args, kwargs


# ------------------------------------------------------------------------------------------------- writing


def save(f: Any, path: Any, *, native: bool = False) -> None:
    """Write a function's program to a file, with all its state; it is there whole or not at all.

    Parameters
    ----------
    f : a compiled function that has been called, or what `export` gives.
    path : of the file, or a file opened for writing bytes.
    native : put the machine code in, for processors like this one.

    Raises
    ------
    ArgumentError : something in it is no plain data, such as a callback to Python.
    """
    data = to_bytes(f, native=native)
    if hasattr(path, "write"):
        path.write(data)
        return
    with whole_file(Path(path)) as beside:
        beside.write_bytes(data)


def to_bytes(f: Any, *, native: bool = False) -> bytes:
    """The file of a function's program."""
    from safetensors.numpy import save as pack

    exported: ProgramFunction = export(f)
    written = WrittenPrograms(exported.names)
    for _, x in exported.named_state():
        written.tensor(x)
    programs = [written.program(x) for x in exported.programs]
    options = {name: x for name, x in exported.options._asdict().items() if x is not None}
    about = {"format": FORMAT, "numerics": NUMERICS_VERSION, "name": exported.__name__, "options": options}
    text = json.dumps({**about, "state": written.state, "programs": programs}, indent=1)
    entries = {PROGRAM: text.encode(), WEIGHTS: pack(written.arrays)}
    data = _zipped(entries)
    if native:
        from static.export.native_code import entries_of

        data = _zipped({**entries, **{NATIVE + name: code for name, code in entries_of(data).items()}})
    return data


def _zipped(entries: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content)
        archive.comment = b"0" * _DIGEST
    body = made.getvalue()[:-_DIGEST]
    return body + hashlib.sha256(body).hexdigest().encode()


def reduced(f: CompiledFunction) -> Any:
    """The pickled form of a function that has no public name: its program; None if a file cannot hold it."""
    try:
        return of_bytes, (to_bytes(f),)
    except TwingradError:
        return None


# ------------------------------------------------------------------------------------------------- reading


def is_program(data: bytes) -> bool:
    """Whether bytes begin as those of a file of a program do."""
    return data[:4] == b"PK\x03\x04" and data[30 : 30 + len(PROGRAM)] == PROGRAM.encode()


def load(path: Any, *, native: bool = False, **options: Any) -> Any:
    """The function of a file that `save` wrote.

    Parameters
    ----------
    path : of the file, or a file opened for reading bytes.
    native : run the machine code in the file, if it has some for this processor. It is not checked, so it must come
        from somebody whom you trust as you would trust a program; without it, nothing of the file is executed, and
        kernels are compiled anew from the graph.
    options : of `static.function`.

    Raises
    ------
    StateError : the file is damaged or altered, of another version, or says something that no program is.
    """
    data: bytes = path.read() if hasattr(path, "read") else Path(path).read_bytes()
    name = getattr(path, "name", "the file") if hasattr(path, "read") else os.fspath(path)
    return of_bytes(data, str(name), native=native, **options)


def of_bytes(data: bytes, name: str = "the pickle", *, native: bool = False, **options: Any) -> Any:
    """The function of a file's bytes.

    Raises
    ------
    StateError : see `load`.
    """
    entries = _entries(data, name)
    try:
        about = parsed(entries[PROGRAM])
        versions = about["format"], about["numerics"]
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise StateError(f"load(): {name} is damaged, or no program: {error}") from error
    if versions[0] != FORMAT:
        raise StateError(f"load(): {name} has format {versions[0]!r}; this version reads {FORMAT}: save it again")
    if versions[1] != NUMERICS_VERSION:
        raise StateError(
            f"load(): {name} was made for numerics version {versions[1]!r}, and this is {NUMERICS_VERSION}: its bits "
            "would not be those that it had; load it with the version that saved it, or save it again"
        )
    try:
        found = _built(about, arrays_of(entries[WEIGHTS], WEIGHTS)[0], options)
    except TwingradError as error:
        raise StateError(f"load(): {name} holds no valid program: {error}") from error
    except Exception as error:
        raise StateError(f"load(): {name} is damaged: {type(error).__name__}: {error}") from error
    if native:
        from static.export.native_code import install

        install({n.removeprefix(NATIVE): code for n, code in entries.items() if n.startswith(NATIVE)})
    return found


def _entries(data: bytes, name: str) -> dict[str, bytes]:
    """The parts of a file by name.

    Raises
    ------
    StateError : it is no such file, or not the bytes that were written.
    """
    if not is_program(data):
        raise StateError(f"load(): {name} is no file of a program, which static.save(function, path) writes")
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise StateError(f"load(): {name} is damaged: it has not the bytes that were written; it may be cut off")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if any(x.compress_type != zipfile.ZIP_STORED or x.file_size > len(data) for x in infos):
                raise StateError(f"load(): {name} is damaged: its parts are compressed, or larger than it is")
            if len({x.filename for x in infos}) != len(infos):
                raise StateError(f"load(): {name} is damaged: two of its parts have one name")
            return {x.filename: archive.read(x) for x in infos}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError) as error:
        if isinstance(error, TwingradError):
            raise
        raise StateError(f"load(): {name} is damaged: {error}") from error


def _built(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], options: Mapping[str, Any]) -> Any:
    """The function that JSON and arrays describe; whatever is wrong raises something."""
    names: dict[int, str] = {}
    state: list[Any] = []
    for entry in about["state"]:
        x = state_of(entry, arrays)
        state.append(x)
        names[id(x)] = str(entry["name"])
    programs = []
    for data in about["programs"]:
        program = _program(data, state)
        check(program)
        programs.append(program)
    if not programs:
        raise ValueError("there is no program")
    own = {k: x for k, x in about["options"].items() if k in ("fuse", "compiler")}
    return ProgramFunction(programs, names, **{**own, **options})


def _program(data: Mapping[str, Any], state: Sequence[Any]) -> RecordedCall:
    graph = serialize.GraphReader().graph(data["graph"])
    verify(graph, "load()")
    if [node.outputs[0].key for node in graph.nodes if node.op is None] != sorted(v.key for v in graph.inputs):
        raise GraphError("the inputs are not the nodes that say so")
    positions = tuple(int(i) for i in data["positions"])
    captured = tuple(Captured(str(kind), state[int(number)]) for kind, number in data["captured"])
    leaves = tuple(file_values.value_of_json(x) for x in data["leaves"])
    if len(graph.inputs) != len(positions) + len(captured) or not set(positions) <= set(range(len(leaves))):
        raise GraphError("the inputs are not as many as the arguments and the state")
    for source, value in zip(captured, graph.inputs[len(positions) :], strict=True):
        of_tensor = isinstance(source.owner, TensorBase)
        if source.kind not in ("tensor", "grad", "array") or of_tensor is (source.kind == "array"):
            raise GraphError(f"state of kind {source.kind!r} is {type(source.owner).__name__}")
        array = source.owner if source.kind == "array" else source.owner.payload
        if tuple(array.shape) != tuple(value.shape) or array.dtype != value.dtype:
            raise GraphError(f"the state {value.spec} has {array.dtype}{list(array.shape)} in the file")
    targets, cleared = ([state[int(n)] for n in data[part]] for part in ("targets", "cleared"))
    without = tuple((state[int(n)], bool(was_none)) for n, was_none in data["without_grad"])
    if not all(isinstance(x, TensorBase) for x in (*targets, *cleared, *(x for x, _ in without))):
        raise GraphError("an array has no gradient")
    return RecordedCall(
        str(data["name"]), graph, frozenset(int(i) for i in data["quiet"]),
        file_values.structure_of_json(data["structure"]), leaves, positions,
        {int(i): file_values.value_of_json(x) for i, x in data["fixed"]}, captured,
        tuple(file_values.guard_of_json(x) for x in data["guards"]), file_values.structure_of_json(data["results"]),
        tuple(file_values.value_of_json(x) for x in data["constants"]), tuple(int(i) for i in data["places"]),
        tuple(targets), tuple(cleared), without,
    )  # fmt: skip
