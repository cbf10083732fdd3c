"""An engine in PyTorch's place: libraries and scripts that import ``torch`` get the engine instead.

The names are PyTorch's, so a library in Python that computes with PyTorch's tensors runs as it is. ``import torch.nn``
and ``import dynamic.nn`` give one module, under two names.
"""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from common.version import like_pytorch

#: PyTorch's top-level names, and the part of the engine that each is.
PLACES = {"torch": "", "functorch": ".func"}


class TorchImports(MetaPathFinder):
    """Finds an engine's modules under PyTorch's names.

    Parameters
    ----------
    engine : the package that stands for PyTorch.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the engine's module of that name.

        Raises
        ------
        ModuleNotFoundError : with the reason, if the engine has none; not in `importlib.util.find_spec`, which asks
            whether there is one.
        """
        top, dot, rest = fullname.partition(".")
        if top not in PLACES:
            return None
        own = f"{self.engine}{PLACES[top]}{dot}{rest}"
        found = importlib.util.find_spec(own)
        if found is None:
            if sys._getframe(2).f_code.co_name != "find_spec":
                importlib.import_module(own)  # says why there is none
            return None
        places = found.submodule_search_locations
        return importlib.util.spec_from_loader(fullname, _SameModule(own), is_package=places is not None)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """Tell `importlib.metadata` which version of PyTorch the engine is like."""
        if context.name == "torch":
            yield _LikeTorch()


class _SameModule(Loader):
    """Gives a module that has been loaded under its own name."""

    def __init__(self, own: str) -> None:
        self._own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._own)
        self._name, self._spec = spec.name, module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, name = self._spec, self._name  # the import wrote its own there
        if name == "torch":  # by these names libraries see whose a module and a tensor are
            module.__name__ = module.Tensor.__module__ = name
        for place, inner in list(sys.modules.items()):  # some are made by the module they belong to, and have no spec
            if place.startswith(f"{self._own}."):
                sys.modules.setdefault(name + place[len(self._own) :], inner)


class _LikeTorch(Distribution):
    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {like_pytorch}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Path:
        return Path(path)


def install_as_torch(engine: str) -> None:
    """Let ``import torch`` mean an engine from here on, in the whole process.

    Raises
    ------
    RuntimeError
        If `torch` has been imported, or the other engine has taken its place.
    """
    there = sys.modules.get("torch")
    if there is not None and there is not sys.modules[engine]:
        raise RuntimeError(
            f"'torch' has been imported already, from {there.__file__}: call {engine}.install_as_torch() in a new "
            "process, before anything that imports torch"
        )
    if not any(isinstance(finder, TorchImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchImports(engine))
    importlib.import_module("torch")


def run(engine: str) -> None:
    """Run the script that the command names, or with ``-m`` the module, with an engine in PyTorch's place."""
    arguments = sys.argv[1:]
    by_name = arguments[:1] == ["-m"]
    if len(arguments) <= by_name or arguments[0] in ("-h", "--help"):
        raise SystemExit(f"usage: python3 -m {engine} FILE.py [arguments], or -m MODULE [arguments]\n"
                         f"Runs a program that imports torch, with {engine} in its place.")  # fmt: skip
    install_as_torch(engine)
    sys.argv = arguments[by_name:]
    if by_name:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    if not Path(sys.argv[0]).is_file():
        raise SystemExit(f"python3 -m {engine}: there is no file {sys.argv[0]}")
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
