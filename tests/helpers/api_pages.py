"""Write docs/api from the docstrings of the public names: ``python -m tests.helpers.api_pages``.

A name has one entry: what a second module offers too is told in the entry of the first.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dynamic
import static
from common.api import surface
from common.nn.module import Module
from common.ops._contents import CONTENTS
from common.optim.optimizer import Optimizer
from common.tensor.base import TensorBase
from static.api.binding import EXPORTS, SESSION

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "api"
WIDTH = 120


class Page(NamedTuple):
    """A page of the reference.

    Attributes
    ----------
    title, promise : heading, and what its reader can look up.
    folders : of `common.ops`, whose functions are on it.
    names : further names of the top level.
    modules : whose names are on it, below the top level.
    fits : of these modules, only names in which this pattern is found.
    """

    title: str
    promise: str
    folders: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    fits: str = ""


_DRAWN = ("rand_like", "randint_like", "randn_like", "bernoulli", "binomial", "multinomial", "poisson", "rand",
          "randn", "randint", "randperm", "normal")  # fmt: skip
_OF_LAYERS = ("alpha_dropout", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
              "fractional_max_pool2d", "fractional_max_pool3d", "gumbel_softmax", "rrelu")  # fmt: skip

PAGES = {
    "tensors": Page(
        "Tensors", "the class, ways to make one, dtypes and constants", ("create",),
        ("Tensor", *(n for n in surface.CREATION if n not in _DRAWN), *surface.DTYPES, *surface.PLAIN),
        ("types",),
    ),
    "elementwise": Page("Elementwise functions", "arithmetic, comparisons, powers, activations", ("math", "special")),
    "reductions": Page("Sums, extremes, sorting", "reductions, running results, sorting and searching",
                       ("reduce", "sort"), (), ("masked",)),
    "shapes": Page("Shapes and indices", "reshaping, joining, splitting, gathering, scattering", ("shape", "index")),
    "products": Page("Products and linear algebra", "products of matrices, `einsum`, decompositions", ("linalg",),
                     ("multi_head_attention_forward", "pca_lowrank", "scaled_dot_product_attention", "svd_lowrank"),
                     ("linalg",)),
    "special": Page("Special functions and signals", "the functions of `special`, windows, frequencies", (), (),
                    ("special", "signal", "fft")),
    "functional": Page("Functions of networks", "convolution, pooling, losses, dropout, normalisation",
                       ("image", "loss"), _OF_LAYERS, ("nn.functional",)),
    "losses": Page("Losses", "losses as modules", (), (), ("nn",), "Loss$"),
    "image_modules": Page("Modules of images and norms", "convolution, pooling, padding, normalisation as modules", (),
                          (), ("nn",), "Conv|Pool|Pad|Fold|fold|Upsampl|Norm|Pixel|Shuffle"),
    "modules": Page("Modules", "the class, containers, layers", (), (), ("nn", "nn.modules", "nn.parameter",
                                                                          "nn.parallel")),
    "module_tools": Page("Tools for modules", "initial values, pruning, parametrizations, packed sequences", (), (),
                         ("nn.init", "_utils", "nn.utils")),
    "optim": Page("Optimisers", "optimisers, schedulers, averaged models", (), (), ("optim",)),
    "array_api": Page("The array API standard", "the namespace `array_api`, see [other libraries](../ecosystem.md)",
                      (), (), ("array_api",)),
    "parallel": Page("Several processes", "a batch divided among ranks", (), (), ("parallel",)),
    "autograd": Page(
        "Derivatives", "transforms of functions, the recorded graph, hooks, checkpoints", (),
        (*surface.TRANSFORMS, *surface.MODES, *surface.MARKS),
        ("autograd", "func", "library", "ops", "utils.checkpoint"),
    ),
    "control": Page(
        "Compiling and control flow", "`function`, loops and branches, printing inside, programs that leave", (),
        ("function", "compile", *surface.CONTROL, *surface.ACTS, *surface.HOST, "compare", "debug", "nan_watch", "njit",
         *EXPORTS, *surface.THREADS), ("jit", "tree_util"),
    ),
    "sessions": Page("Graphs and sessions", "what `static` has of TensorFlow 1", (), tuple(SESSION), ("summary",)),
    "random": Page("Random numbers", "generators, draws, distributions", (), (*_DRAWN, *surface.RANDOM),
                   ("random", "quasirandom", "distributions")),
    "data": Page("Files and data", "saving and loading, data sets and loaders", (), tuple(surface.OUTSIDE),
                 ("hub", "utils.data")),
    "tools": Page("Measuring and testing", "profiles, timers, TensorBoard, comparing tensors", (), (),
                  ("profiler", "testing", "utils")),
    "machine": Page(
        "Machine and precision", "what scripts of PyTorch ask of devices, back ends and precision", (),
        ("install_as_torch", *surface.SWITCHES),
        ("accelerator", "amp", "backends", "compiler", "cpu", "cuda", "distributed", "futures", "mps",
         "multiprocessing", "fx", "onnx", "quantization", "version", "xpu"),
    ),
}  # fmt: skip

HEAD = """*Written by `python -m tests.helpers.api_pages` from the docstrings.* Names are those of both engines,
unless one is named. How to read an entry: [the contents](README.md).
"""


# ------------------------------------------------------------------ what there is


def modules(engine: Any) -> Iterator[tuple[str, Any]]:
    """Public modules below an engine, by their path without the engine: those with a list of their names."""
    root = engine.__name__
    found = [m.name for m in pkgutil.walk_packages(dynamic.__path__, "dynamic.")]
    paths = [name.partition(".")[2] for name in found if not name.startswith("dynamic.eager")]
    paths += [name for name in engine.__all__ if inspect.ismodule(getattr(engine, name)) and name not in paths]
    todo = [(path, importlib.import_module(f"{root}.{path}")) for path in paths]
    for path, module in todo:
        if "__all__" in vars(module):
            yield path, module
        for name in sorted({*dir(module), *getattr(module, "__all__", ())}):
            inner, below = getattr(module, name, None), f"{path}.{name}"
            if inspect.ismodule(inner) and inner.__name__ == f"{root}.{below}" and below not in paths:
                paths.append(below)
                todo.append((below, inner))


def public(engine: Any) -> dict[str, Any]:
    """Every public name with its path, such as ``nn.functional.relu``, modules left out."""
    found = {name: getattr(engine, name) for name in engine.__all__}
    for path, module in modules(engine):
        found.update({f"{path}.{name}": getattr(module, name) for name in module.__all__})
    return {name: x for name, x in found.items() if not inspect.ismodule(x)}


def page_of(path: str) -> str:
    """The page on which a name belongs, by its module, or by where it is defined.

    Raises
    ------
    LookupError : it has no place.
    """
    module, _, name = path.rpartition(".")
    if module:
        places = [(len(m), bool(page.fits), key) for key, page in PAGES.items() for m in page.modules
                  if f"{module}.".startswith(f"{m}.") and re.search(page.fits, name)]  # fmt: skip
        if places:
            return max(places)[-1]
    else:
        home = next((where.partition(".")[0] for where, text in CONTENTS.items()
                     if name in text.partition("|")[0].split()), None)  # fmt: skip
        for key, page in PAGES.items():
            if name in page.names or (home is not None and home in page.folders):
                return key
    raise LookupError(
        f"tests.helpers.api_pages has no page for {path}. If it is new, `python -m tests.helpers.ops_page` notes where "
        "it lies; its folder of common/ops has to be in `PAGES`, or its name on a page there"
    )


class Entry(NamedTuple):
    """A name with all places that offer it."""

    path: str
    value: Any
    others: list[str]
    in_static: Any


def entries() -> dict[str, list[Entry]]:
    """Per page its entries, in the order of pages, modules and lists."""
    ours, compiled = public(dynamic), public(static)
    homes: dict[Any, Entry] = {}
    found: dict[str, list[Entry]] = {key: [] for key in PAGES}
    for path, value in {**compiled, **ours}.items():
        key = (path.rpartition(".")[2], inspect.getdoc(value) if callable(value) else repr(value))
        if key in homes and not (isinstance(value, str) or value is None):
            homes[key].others.append(path)
            continue
        differs = path in ours and inspect.getdoc(compiled[path]) != inspect.getdoc(value)
        homes[key] = Entry(path, value, [], compiled[path] if path not in ours or differs else None)
        found[page_of(path)].append(homes[key])
    return found


# ------------------------------------------------------------------ how it is told


def signature(function: Callable[..., Any]) -> str:
    """The parameters without annotations, and without numpy's names of PyTorch's."""
    if isinstance(function, enum.EnumType):
        return "(value)"  # Python's own signature is another in every version
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    parts, starred = [], False
    for p in parameters:
        if p.name in ("axis", "keepdims", "out"):
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        parts.append(str(p.replace(annotation=p.empty, default=p.empty if p.default is ... else p.default)))
    return re.sub(r" at 0x[0-9a-f]+", "", f"({', '.join(parts)})")


def summary(x: Any) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(x) or "").partition("\n\n")[0].split())


def parameters(x: Any) -> Iterator[str]:
    """Lines of a list: what a docstring says of each parameter."""
    text = (inspect.getdoc(x) or "").partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    told: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(" ") and told:
            told[-1][1] += " " + line.strip()
        elif line.strip():
            name, _, rest = line.partition(" : ")
            told.append([name, rest])
    for name, rest in told:
        yield from wrapped(f"- `{name}`: {rest}" if rest else f"- `{name}`", "  ")


def methods(kind: type, bases: tuple[type, ...] = (Module, Optimizer, TensorBase)) -> Iterator[str]:
    """Lines of a list: the public methods and properties that a class adds to those of `bases`."""
    base = next((b for b in bases if issubclass(kind, b) and kind is not b), None)
    for name in sorted(n for n in dir(kind) if not n.startswith("_")):
        x = inspect.getattr_static(kind, name)
        plain = x.__func__ if isinstance(x, (staticmethod, classmethod)) else x
        if isinstance(plain, property):
            plain, given = plain.fget, ""
        elif callable(plain):
            given = re.sub(r"^\((self|cls)(, )?", "(", signature(plain))
        else:
            continue
        if (base is not None and (hasattr(base, name) or name == "function")) or not summary(plain):
            continue  # a module's `function` is documented as such
        yield from wrapped(f"- `{name}{given}`: {summary(plain)}", "  ")


def methods_of_tensors() -> Iterator[str]:
    """The methods that are functions too, by name, and those that are not, with what they do."""
    functions = [name for name, x in public(dynamic).items() if "." not in name and not is_constant(x)]
    for item in grouped(methods(dynamic.Tensor, bases=())):
        name = item[0].removeprefix("- `").replace("(", "`").partition("`")[0]
        if name.removesuffix("_") not in functions:
            yield from item
    both = [name for name in functions if inspect.isroutine(getattr(dynamic.Tensor, name, None))]
    written = [f"{name}_" for name in functions if hasattr(dynamic.Tensor, f"{name}_")]
    yield ""
    yield from wrapped(f"Functions that are methods, too: {', '.join(f'`{name}`' for name in sorted(both))}.")
    yield ""
    yield from wrapped(
        f"Methods that write their result to the tensor: {', '.join(f'`{n}`' for n in sorted(written))}."
    )


def grouped(lines: Iterator[str]) -> Iterator[list[str]]:
    """Items of a list, each with its lines."""
    item: list[str] = []
    for line in lines:
        if item and not line.startswith(" "):
            yield item
            item = []
        item.append(line)
    if item:
        yield item


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most 120 columns."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def told(entry: Entry) -> list[str]:
    """The lines of an entry."""
    path, value, others, in_static = entry
    name = path.rpartition(".")[2]
    lines = [f"### {path}", ""]
    notes = ["Only in `static`."] if in_static is value else []
    if others:
        notes.append(f"Also {', '.join(f'`{other}`' for other in others)}.")
    lines += [*wrapped(f"`{name}{signature(value)}`"), "", *wrapped(" ".join([summary(value), *notes])), ""]
    lines += parameters(value)
    if value is dynamic.Tensor:
        lines += methods_of_tensors()
    elif inspect.isclass(value) and not issubclass(value, BaseException):
        lines += methods(value)
    if in_static is not None and in_static is not value:
        further = [*parameters(in_static)]
        lines += ["", *wrapped(f"In `static`: {summary(in_static)}"), ""] + further * (further != [*parameters(value)])
    return lines if lines[-1] == "" else [*lines, ""]


def is_constant(x: Any) -> bool:
    """Whether a name is data: a number, a dtype, a switch."""
    return not callable(x) or (isinstance(x, (np.dtype, type)) and getattr(x, "__module__", "") == "numpy")


def text_of(key: str, found: list[Entry]) -> str:
    """A page."""
    page = PAGES[key]
    lines = [f"# {page.title}", "", *wrapped(f"On this page: {page.promise}."), "", HEAD]
    constants = [entry for entry in found if is_constant(entry.value)]
    by_module: dict[str, list[Entry]] = {}
    for entry in found:
        if not is_constant(entry.value):
            by_module.setdefault(entry.path.rpartition(".")[0], []).append(entry)
    for module in sorted(by_module):
        lines += [f"## {module or 'At the top level'}", ""]
        for entry in sorted(by_module[module], key=lambda entry: entry.path.lower()):
            lines += told(entry)
    if constants:
        lines += ["## Constants, dtypes and switches", ""]
        names = [f"`{name}`" for entry in constants for name in (entry.path, *entry.others)]
        lines += [*wrapped(", ".join(sorted(names, key=str.lower)) + "."), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


CONTENTS_HEAD = """# Reference

After this page you know where a name is described. `python -m tests.helpers.api_pages` writes the pages from the
docstrings. A test holds them complete: every public name of both engines and of their public modules has one entry.

An entry has the signature, what the function gives, and its parameters. Functions of tensors take numbers and numpy's
arrays too. In descriptions x and a stand for the operand `input`, b for `other`; shapes are in parentheses, `(..., n)`
is any number of dimensions and then n. `axis` and `keepdims` may be written for `dim` and `keepdim`, and functions of
which PyTorch documents `out=` have it. `help(name)` also says what is raised, and has examples; formulas and
derivatives stand in [ops](../ops.md).

| page | what is on it | names |
|---|---|---|
"""


def texts() -> dict[str, str]:
    """The text of every page by its file's name."""
    found = entries()
    rows = [f"| [{page.title}]({key}.md) | {page.promise} | {sum(1 + len(e.others) for e in found[key])} |"
            for key, page in PAGES.items()]  # fmt: skip
    contents = CONTENTS_HEAD + "\n".join(rows) + "\n"
    return {"README.md": contents, **{f"{key}.md": text_of(key, found[key]) for key in PAGES}}


def write() -> None:
    """Write all pages."""
    for file, text in texts().items():
        (FOLDER / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
