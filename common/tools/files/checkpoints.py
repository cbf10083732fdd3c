"""`Checkpoints`: training that goes on after a stop as if there had been none."""

from __future__ import annotations

import hashlib
import os
import random as python_random
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from common.core.errors import ArgumentError, FileError, StateError
from common.core.numerics import NUMERICS_VERSION
from common.core.source_lines import warn_user
from common.random.generator import Generator, default_generator
from common.tensor.base import TensorBase
from common.tools.files.save_load import from_bytes, to_bytes
from common.tools.files.whole_file import whole_file

_NAME = re.compile(r"step-(\d{12,})\.safetensors")
_DIGEST = 64
_OWN = "twingrad.checkpoint"
#: Files that this process has locked, by process and place on the disk; a lock lasts as long as the process.
_owned: dict[tuple[int, int, int], int] = {}


class Checkpoints:
    """A folder of checkpoints: everything that decides how training goes on, by bits.

    Each is one file, of safetensors, with its structure as JSON; no pickle. It is on the disk, whole, when `save`
    returns, or it is not there: a process that is killed, a full disk or a machine that stops leaves the earlier ones.
    Saved besides the parts are the default generator, and the states of Python's `random` and of numpy's.

    Parameters
    ----------
    folder : made if it is not there.
    keep : how many of the newest stay.
    parts : by name, what is saved and restored in place: whatever has ``state_dict`` and ``load_state_dict`` (modules,
        optimisers, schedules, loaders), generators of this library and of numpy, tensors.

    Attributes
    ----------
    notes : what `save` was told with the checkpoint that was restored last.

    Raises
    ------
    ArgumentError : a part that has no state, or `keep` below 1.

    Examples
    --------
    >>> import dynamic as tw, tempfile
    >>> model = tw.nn.Linear(2, 1)
    >>> optimizer = tw.optim.Adam(model.parameters())
    >>> folder = tempfile.mkdtemp()
    >>> checkpoints = tw.Checkpoints(folder, model=model, optimizer=optimizer)
    >>> checkpoints.resume()
    0
    >>> _ = checkpoints.save(10, loss=0.5)
    >>> checkpoints.resume(), checkpoints.notes
    (10, {'loss': 0.5})
    """

    def __init__(self, folder: Any, *, keep: int = 3, **parts: Any) -> None:
        if type(keep) is not int or keep < 1:
            raise ArgumentError(f"Checkpoints(): keep is how many stay, at least 1, not {keep!r}")
        if not parts:
            raise ArgumentError("Checkpoints(): name the parts to save, as in Checkpoints(folder, model=model)")
        for name, part in parts.items():
            _state_of(name, part)
        self.folder, self.keep, self.parts = Path(os.fsdecode(folder)), keep, parts
        self.notes: dict[str, Any] = {}

    def save(self, step: int, **notes: Any) -> Path:
        """Write the state after `step` steps, and remove what is older than the newest `keep`.

        Parameters
        ----------
        step : at least 0.
        notes : plain data to be found in `notes` again, such as the epoch.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        FileError : it could not be written, as on a full disk; earlier checkpoints are as they were.
        StateError : another process writes to the folder.
        ArgumentError : notes or a state that a file cannot hold.
        """
        if type(step) is not int or step < 0:
            raise ArgumentError(f"Checkpoints.save(): step is how many steps were done, not {step!r}")
        state = {
            "step": step,
            "numerics": NUMERICS_VERSION,
            "notes": notes,
            "parts": self._state(),
            "random": _random(),
        }
        data = to_bytes({_OWN: "0" * _DIGEST, **state})
        digest = hashlib.sha256(data).hexdigest().encode()
        at = data.index(b"0" * _DIGEST)
        path = self.folder / f"step-{step:012d}.safetensors"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _own(self.folder)
            with whole_file(path) as beside, beside.open("xb") as file:
                for piece in (data[:at], digest, data[at + _DIGEST :]):
                    file.write(piece)
        except OSError as error:
            raise FileError(
                f"Checkpoints.save(): the state of step {step} could not be written to {self.folder}: "
                f"{error.strerror or error}; earlier checkpoints are as they were"
            ) from error
        kept = self.steps()
        for old in [x for x in kept if x != step][: max(0, len(kept) - self.keep)]:
            self._path(old).unlink(missing_ok=True)
        return path

    def steps(self) -> list[int]:
        """Steps of which there are checkpoints, in ascending order."""
        if not self.folder.is_dir():
            return []
        return sorted(int(found[1]) for x in self.folder.iterdir() if (found := _NAME.fullmatch(x.name)))

    def restore(self, step: int) -> dict[str, Any]:
        """Put all parts into the state of a checkpoint; return its notes.

        Raises
        ------
        StateError : there is none of this step, its file is damaged, or it does not fit the parts; these are as before.
        """
        path = self._path(step)
        state = _read(path)
        if state["numerics"] != NUMERICS_VERSION:
            warn_user(
                f"{path} is of numerics {state['numerics']}, this is {NUMERICS_VERSION}: training goes on, but with "
                "other bits than it would have had there"
            )  # fmt: skip
        saved = state["parts"]
        if sorted(saved) != sorted(self.parts):
            raise StateError(f"{path} has the parts {sorted(saved)}, these checkpoints {sorted(self.parts)}")
        before = {name: _copied(x) for name, x in self._state().items()}
        try:
            self._load(saved)
        except Exception as error:
            self._load(before)
            raise StateError(f"{path} does not fit: {error}") from error
        _set_random(state["random"])
        self.notes = dict(state["notes"])
        return self.notes

    def resume(self) -> int:
        """Restore the newest checkpoint that is intact; return how many steps it is after, 0 if there is none.

        Warns
        -----
        UserWarning
            A file that is damaged is left out.
        """
        for step in reversed(self.steps()):
            try:
                _read(self._path(step))
            except StateError as error:
                warn_user(f"{error}; going on from an earlier checkpoint")
                continue
            self.restore(step)
            return step
        return 0

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:012d}.safetensors"

    def _state(self) -> dict[str, Any]:
        return {name: _state_of(name, part) for name, part in self.parts.items()}

    def _load(self, saved: Mapping[str, Any]) -> None:
        for name, part in self.parts.items():
            _put(part, saved[name])


def _own(folder: Path) -> None:
    """Keep other processes from writing to a folder; the system gives it free when this process ends, however.

    Raises
    ------
    StateError : one writes there.
    """
    if sys.platform == "win32":
        return
    import fcntl

    path = folder / ".writer"
    path.touch()
    about = path.stat()
    key = os.getpid(), about.st_dev, about.st_ino
    if key in _owned:
        return
    number = os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise StateError(
            f"Checkpoints.save(): another process writes checkpoints to {folder}: give each run a folder of its own"
        ) from None
    _owned[key] = number
    for left in folder.glob(".step-*"):  # by a writer that was killed
        left.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any]:
    """The content of a file, whose every byte is as it was written.

    Raises
    ------
    StateError : it is not there, no checkpoint, or damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StateError(f"there is no checkpoint {path}: {error.strerror or error}") from error
    found = re.search(
        rf'{_OWN}\\?",\s*\\?"([0-9a-f]{{{_DIGEST}}})'.encode(), data[: 8 + int.from_bytes(data[:8], "little")]
    )
    if found is None:
        raise StateError(f"{path} is no checkpoint, or damaged")
    at = found.start(1)
    total = hashlib.sha256(data[:at])
    total.update(b"0" * _DIGEST)
    total.update(memoryview(data)[at + _DIGEST :])
    if total.hexdigest().encode() != found[1]:
        raise StateError(f"{path} is damaged: its bytes are not those that were written")
    state: dict[str, Any] = from_bytes(data, path)
    return state


def _state_of(name: str, part: Any) -> Any:
    """The saved state of a part."""
    if isinstance(part, Generator):
        return part.get_state()
    if isinstance(part, np.random.Generator):
        return _listed(part.bit_generator.state)
    if isinstance(part, TensorBase):
        return part.detach()
    if callable(getattr(part, "state_dict", None)) and callable(getattr(part, "load_state_dict", None)):
        return part.state_dict()
    raise ArgumentError(
        f"Checkpoints(): {name} is of type {type(part).__name__}, which has no state_dict and load_state_dict; plain "
        "data goes into the notes of save(step, ...)"
    )


def _put(part: Any, saved: Any) -> None:
    """Bring a part into a saved state, in place."""
    if isinstance(part, Generator):
        part.set_state(saved)
    elif isinstance(part, np.random.Generator):
        part.bit_generator.state = saved
    elif isinstance(part, TensorBase):
        if tuple(saved.shape) != tuple(part.shape) or saved.dtype != part.dtype:
            raise StateError(
                f"a tensor of {saved.dtype} {tuple(saved.shape)} for one of {part.dtype} {tuple(part.shape)}"
            )
        part.detach().copy_(saved)
    else:
        part.load_state_dict(saved)


def _copied(state: Any) -> Any:
    """A state that later updates in place leave as it is."""
    return from_bytes(to_bytes(state), "the present state")


def _random() -> dict[str, Any]:
    """The states of the generators that belong to the process."""
    state = {"default": default_generator.get_state(), "python": python_random.getstate()}
    if "numpy.random" in sys.modules:
        state["numpy"] = _listed(np.random.get_state(legacy=False))  # noqa: NPY002  programs may draw from it
    return state


def _listed(state: Any) -> Any:
    """The state of a generator of numpy, with lists of numbers for arrays of a dtype that tensors do not have."""
    if isinstance(state, Mapping):
        return {name: _listed(x) for name, x in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _set_random(state: Mapping[str, Any]) -> None:
    default_generator.set_state(state["default"])
    python_random.setstate(state["python"])
    if "numpy" in state:
        np.random.set_state(state["numpy"])  # noqa: NPY002


__all__ = ["Checkpoints"]
