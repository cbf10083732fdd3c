"""``python -m tests.oracle.functions_against_torch [names]``: random calls of every function, here and in PyTorch.

An oracle from outside for semantics: not part of the suite, which needs no PyTorch. Each function that PyTorch has
under the same name (``torch``, ``torch.nn.functional``, methods) gets the same random arguments in both. Both have to
raise, with errors of one kind, or both have to return the same shapes and dtypes, values and gradients that agree up
to rounding, and nan in the same places; and results have nodes of the same name. Then the names of parameters are
compared.

What differs on purpose is in `tests.helpers.torch_differences`; every other disagreement is printed, and makes the exit
status 1.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import warnings
import zlib
from collections import Counter
from typing import Any

import numpy as np

import dynamic
from common.api import surface
from tests.helpers.torch_arguments import Drawn, draw
from tests.helpers.torch_differences import DELIBERATE

#: What PyTorch's parameters say about devices, memory and old ways of calling; there is nothing to offer.
NOT_OFFERED = frozenset(
    [
        "out",
        "layout",
        "device",
        "pin_memory",
        "memory_format",
        "size_average",
        "reduce",
        "inplace",
        "names",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
        "max_norm",
        "padding_idx",
        "compute_mode",
        "tensors",
        "Tensor",
        "LongTensor",
        "_complex",
        "_stacklevel",
        "sparse_grad",
        "out_dtype",
        "args",
        "matrices",
        "kwargs",
    ]
)
#: The same for one function: names that only PyTorch's documentation or one of several overloads has.
NOT_OFFERED_IN = {
    "one_hot": {"tensor"},
    "scatter": {"reduce"},
    "searchsorted": {"values"},
    "squeeze": {"List"},
    "tensor_split": {"indices", "sections"},
    "true_divide": {"dividend", "divisor"},
    "view": {"dtype"},
}
#: Functions whose elements are drawn: shape and dtype are compared.
DRAWN = frozenset(
    [
        "bernoulli",
        "binomial",
        "dropout",
        "empty",
        "empty_like",
        "multinomial",
        "normal",
        "poisson",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "randperm",
    ]
)


def tensor(module: Any, x: Any, grad: bool) -> Any:
    """An argument for an engine; arrays become tensors, and float ones leaves if gradients are wanted."""
    if isinstance(x, (list, tuple)) and any(isinstance(y, np.ndarray) for y in x):
        return type(x)(tensor(module, y, grad) for y in x)
    if not isinstance(x, np.ndarray):
        return getattr(module, x.name) if isinstance(x, np.dtype) else x
    made = module.tensor(x.copy()) if module is dynamic else module.from_numpy(x.copy())
    return made.requires_grad_() if grad and x.dtype.kind == "f" else made


def outputs(y: Any) -> list[Any]:
    """All tensors and numbers of a result, in order."""
    if isinstance(y, (tuple, list)):
        return [part for each in y for part in outputs(each)]
    return [y]


def find(module: Any, name: str) -> Any:
    """The function: of the module itself, or of nn.functional."""
    homes = [module, module.nn.functional, getattr(module, "linalg", None)]
    found = (getattr(home, name, None) for home in (homes[1:] if name in NN_FIRST else homes))
    return next((function for function in found if function is not None), None)


#: Functions of data, which are no business of random tensors.
OF_DATA = frozenset(["as_tensor", "from_dlpack", "from_numpy", "tensor"])
#: Functions that are meant as those of nn.functional where PyTorch has two of one name.
NN_FIRST = frozenset(surface.NN_FUNCTIONS) - {"relu", "sigmoid", "tanh", "selu", "celu"}


class Result:
    """The result of a call: its outputs and gradients as arrays, or its error."""

    def __init__(self, module: Any, call: Drawn, grad: bool) -> None:
        self.error: Exception | None = None
        self.outputs: list[np.ndarray] = []
        self.gradients: list[np.ndarray | None] = []
        self.nodes: list[str | None] = []
        args = [tensor(module, x, grad) for x in call.args]
        kwargs = {k: tensor(module, x, grad) for k, x in call.kwargs.items()}
        try:
            if call.method:
                y = getattr(args[0], call.name)(*args[1:], **kwargs)
            else:
                y = find(module, call.name)(*args, **kwargs)
        except Exception as error:
            self.error = error
            return
        found = outputs(y)
        self.outputs = [np.asarray(z.detach().numpy() if hasattr(z, "detach") else z) for z in found]
        leaves = [x for x in flat(args, kwargs) if getattr(x, "requires_grad", False)]
        nodes = [getattr(z, "grad_fn", None) for z in found]
        self.nodes = [None if node is None else node.name() for node in nodes]
        total: Any = 0.0
        for z in found:
            if getattr(z, "requires_grad", False):
                weight = np.cos(np.arange(z.numel(), dtype=np.float64)).reshape(tuple(z.shape)) + 1.5
                total = total + (z * tensor(module, weight.astype(str(z.dtype).replace("torch.", "")), False)).sum()
        if getattr(total, "requires_grad", False):
            try:
                total.backward()
            except Exception as error:
                self.error = error
                return
            self.gradients = [None if x.grad is None else np.asarray(x.grad.numpy()) for x in leaves]
        elif leaves:
            self.gradients = [None for _ in leaves]


def flat(args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """All arguments, and elements of lists."""
    return [y for x in [*args, *kwargs.values()] for y in (x if isinstance(x, (list, tuple)) else [x])]


def differ(a: np.ndarray, b: np.ndarray, what: str, single: bool) -> str:
    """How two arrays disagree, of a call that has float32 in it or has not; "" if they do not."""
    if a.shape != b.shape:
        return f"{what}: shape {a.shape}, PyTorch {b.shape}"
    if a.dtype != b.dtype:
        return f"{what}: dtype {a.dtype}, PyTorch {b.dtype}"
    if a.dtype.kind != "f":
        return "" if np.array_equal(a, b) else f"{what}: {a.ravel()[:8]}, PyTorch {b.ravel()[:8]}"
    x, y = a.astype(np.float64), b.astype(np.float64)
    near = 3e-5 if single or a.dtype == np.float32 else 1e-9
    scale = np.max(np.abs(y), initial=1e-30, where=np.isfinite(y))
    same = np.isclose(x, y, rtol=near, atol=near * min(max(scale, 1e-3), 1e3), equal_nan=True)
    if same.all():
        return ""
    return f"{what}: {a[~same][:4]}, PyTorch {b[~same][:4]}"


def rounded_to_single(call: Drawn) -> bool:
    """Whether a call may round to float32: it has such operands, or several integers, which make one without others."""
    dtypes = [x.dtype for x in flat(call.args, call.kwargs) if isinstance(x, np.ndarray)]
    return "float32" in str(call) or sum(dtype.kind in "iub" for dtype in dtypes) > 1


def disagreement(call: Drawn, grad: bool) -> str:
    """How the engines disagree about a call; "" if they do not."""
    import torch

    theirs, ours = Result(torch, call, grad), Result(dynamic, call, grad)
    if theirs.error is not None and ours.error is not None:
        if isinstance(ours.error, type(theirs.error)):
            return ""
        return f"error: {described(ours.error)}, PyTorch {described(theirs.error)}"
    if theirs.error is not None:
        return f"accepted: PyTorch {described(theirs.error)}"
    if ours.error is not None:
        return f"refused: {described(ours.error)}"
    single = rounded_to_single(call)
    if len(ours.outputs) != len(theirs.outputs):
        return f"{len(ours.outputs)} outputs, PyTorch {len(theirs.outputs)}"
    for i, (a, b) in enumerate(zip(ours.outputs, theirs.outputs, strict=True)):
        if call.name in DRAWN:
            a, b = np.zeros_like(a), np.zeros_like(b)
        if found := differ(a, b, f"output {i}", single):
            return found
    for i, (g, h) in enumerate(zip(ours.gradients, theirs.gradients, strict=True)):
        if (g is None) != (h is None):  # an operand without influence: none, or zeros
            if np.any(g if h is None else h):
                return f"gradient {i}: {g}, PyTorch {h}"
        elif g is not None and h is not None and (found := differ(g, h, f"gradient {i}", single)):
            return found
    for name, wanted in zip(ours.nodes, theirs.nodes, strict=True):
        if name != wanted and name is not None and wanted is not None:
            return f"node: {name}, PyTorch {wanted}"
    return ""


def described(error: Exception) -> str:
    """The class of an error and the first line of its message."""
    return f"{type(error).__name__} ({str(error).strip().partition(chr(10))[0][:160]})"


def why(name: str, text: str) -> str:
    """The reason of a deliberate difference, or ""."""
    return next(
        (reason for f, part, reason in DELIBERATE if (f == "*" or re.fullmatch(f, name)) and re.search(part, text)), ""
    )


def compare(name: str, count: int, deliberate: Counter[str]) -> tuple[Counter[str], dict[str, str]]:
    """Compare calls of a function: how often each kind of disagreement, an example of each; and note the reasons."""
    kinds: Counter[str] = Counter()
    examples: dict[str, str] = {}
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    signature = inspect.signature(find(dynamic, name) or getattr(dynamic.Tensor, name))
    for i in range(count):
        call = draw(rng, name, signature)
        text = disagreement(call, grad=i % 2 == 0 and call.ordinary and name not in DRAWN)
        if not text:
            continue
        if reason := why(name, f"{call}::{text}"):
            deliberate[reason] += 1
            continue
        kind = re.sub(r"[-\d.\[\]]+", "#", text)[:70]
        kinds[kind] += 1
        if kind not in examples or len(str(call)) < len(examples[kind].partition("\n")[0]):
            examples[kind] = f"{call}\n        {text}"
    return kinds, examples


def parameters_of(function: Any) -> set[str]:
    """Names of parameters: of the signature, or of every form that the documentation shows."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        pass
    name, found = function.__name__, set()
    for line in (function.__doc__ or "").splitlines():
        if match := re.match(rf"\s*(?:\.\. (?:function|method):: )?(?:torch\.)?{name}\((.*)\)(?: ->.*)?$", line):
            found |= set(re.findall(r"(?:^|[,(])\s*(\w+)", re.sub(r"=\([^)]*\)", "", match[1])))
    return found


def main() -> int:
    """Compare all functions, or those named."""
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--calls", type=int, default=200)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong, deliberate = 0, Counter[str]()
    names = given.names or [n for n in (*surface.FUNCTIONS, *surface.CREATION) if n not in OF_DATA]
    for name in names:
        there = find(torch, name) or getattr(torch.Tensor, name, None)
        if there is None:
            print(f"{name}: PyTorch has no function of this name")
            continue
        kinds, examples = compare(name, given.calls, deliberate)
        ours = set(inspect.signature(find(dynamic, name)).parameters)
        missing = parameters_of(there) - ours - NOT_OFFERED - NOT_OFFERED_IN.get(name, set()) - {"input", "self"}
        lacks = f"; parameters missing: {sorted(missing)}" if missing else ""
        print(f"{name}: {given.calls} calls, {sum(kinds.values())} disagree{lacks}")
        for kind, often in kinds.most_common():
            print(f"    {often} x {examples[kind]}")
        wrong += sum(kinds.values()) + len(missing)
    print(f"\n{len(names)} functions, {given.calls} calls each: {wrong} disagreements. Deliberate ones:")
    for reason, often in deliberate.most_common():
        print(f"    {often} x {reason}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
