"""Weights that lie in a directory under their names on the web, and models that a directory's `hubconf.py` makes.

Nothing is downloaded: an error says which file is wanted, and where.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from common.core.errors import ArgumentError, MissingAttributeError, file_error
from common.tools.files.save_load import load as load_file

#: What of a file's name on the web is the beginning of its hash, in PyTorch.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

_chosen: list[str] = []


def get_dir() -> str:
    """The directory of weights: that of `set_dir`, the environment's TORCH_HOME/hub, or ~/.cache/torch/hub."""
    return _chosen[-1] if _chosen else str(Path(_get_torch_home()) / "hub")


def _get_torch_home() -> str:
    """The directory of files for PyTorch: the environment's TORCH_HOME, or ~/.cache/torch."""
    home = os.environ.get("TORCH_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "torch"
    return str(Path(home).expanduser())


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the directory of weights."""
    _chosen[:] = [str(Path(d).expanduser())]


def load_state_dict_from_url(
    url: str,
    model_dir: str | os.PathLike[str] | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """The weights of a file that somebody has put in place.

    Parameters
    ----------
    url : where they come from; the last part is the file's name.
    model_dir : where the file lies; "checkpoints" in `get_dir` by default.
    map_location, weights_only : see `load`.
    progress, check_hash : accepted.
    file_name : another name of the file.

    Raises
    ------
    FileError : there is no such file.
    """
    folder = Path(get_dir()) / "checkpoints" if model_dir is None else Path(model_dir)
    path = folder / (file_name or Path(urlparse(url).path).name)
    _refuse_download(url, path)
    return load_file(path, map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Refused where `dst` is no file: nothing is downloaded.

    Raises
    ------
    FileError : there is no such file.
    """
    _refuse_download(url, Path(dst))


def _refuse_download(url: str, path: Path) -> None:
    if not path.is_file():
        reason = f"nothing is downloaded; put what {url} gives in this place"
        raise file_error(FileNotFoundError(errno.ENOENT, reason, str(path)))


def _entries(repo: Any, source: str) -> ModuleType:
    """The module `hubconf.py` of a directory, which may import what lies beside it."""
    if source != "local":
        raise ArgumentError(f"hub: nothing is downloaded; clone {repo} and give its directory, with source='local'")
    place = Path(repo).expanduser() / "hubconf.py"
    if not place.is_file():
        raise file_error(FileNotFoundError(errno.ENOENT, "a model's directory has a hubconf.py", str(place)))
    spec = importlib.util.spec_from_file_location("hubconf", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(place.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(place.parent))
    return module


def _entry(repo: Any, model: str, source: str) -> Any:
    found = getattr(_entries(repo, source), model, None)
    if not callable(found):
        raise MissingAttributeError(f"Cannot find callable {model} in hubconf of {repo}")
    return found


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """What a function of a directory's `hubconf.py` makes.

    Parameters
    ----------
    repo_or_dir : the directory.
    model : the function.
    args, kwargs : its arguments; those of PyTorch about downloads are accepted.
    source : "local".

    Raises
    ------
    ArgumentError : another source: nothing is downloaded.
    FileError : there is no such file.
    AttributeError : no such function.
    """
    options = {k: x for k, x in kwargs.items() if k not in ("trust_repo", "force_reload", "verbose", "skip_validation")}
    return _entry(repo_or_dir, model, source)(*args, **options)


def entries(repo_or_dir: Any, *, source: str = "github", **options: Any) -> list[str]:
    """The names of the functions of a directory's `hubconf.py`; see `load`."""
    module = _entries(repo_or_dir, source)
    return [name for name, x in vars(module).items() if callable(x) and not name.startswith("_")]


def explain(repo_or_dir: Any, model: str, *, source: str = "github", **options: Any) -> str | None:
    """The docstring of a function of a directory's `hubconf.py`; see `load`."""
    told: str | None = _entry(repo_or_dir, model, source).__doc__
    return told


#: By PyTorch's names.
class tqdm:
    """What shows the progress of a download elsewhere: nothing is downloaded, and nothing shown.

    Parameters
    ----------
    iterable : of what is done.
    args, kwargs : options of tqdm, accepted.
    """

    def __init__(self, iterable: Any = (), *args: Any, **kwargs: Any) -> None:
        self.iterable = iterable

    def __iter__(self) -> Any:
        return iter(self.iterable or ())

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *raised: Any) -> None:
        pass

    def update(self, n: Any = 1) -> None:
        """Nothing is shown."""

    close = set_description = set_postfix = write = update


FUNCTIONS = {
    "download_url_to_file": download_url_to_file, "get_dir": get_dir, "help": explain, "list": entries, "load": load,
    "load_state_dict_from_url": load_state_dict_from_url, "set_dir": set_dir,
}  # fmt: skip
