"""Hostile programs of several steps: views are written, then differentiated, then traced; modes are left in any order.

``python -m tests.helpers.hostile --scripts 2000 --seed 7`` runs many; ``--from 12 --count 1`` repeats one. A script has
a pool of what its steps have made: tensors, views, tracers of traces that are over, modules, optimisers, functions.
Each step takes its operands from the pool, or a hostile value in place of one. A failure is what it is for single
calls, see `tests.helpers.hostile`; a refusal of one step does not end a script.
"""

# Calls that break types on purpose.
# mypy: disable-error-code="misc, assignment, index, dict-item, return-value, attr-defined"

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import dynamic
import dynamic.utils.data
import static
from common.tensor.base import TensorBase
from tests.helpers.fuzz_arguments import draw_call
from tests.helpers.hostile_objects import KEYS, OPS, VIEWS, WRITES, ObjectSteps
from tests.helpers.hostile_public import methods

f4 = np.float32
ATTRIBUTES = [
    "data", "grad", "requires_grad", "shape", "dtype", "T", "mT", "is_leaf", "device", "name", "names",
    "_version", "payload_", "itemsize", "nbytes", "ndim", "retains_grad", "_base", "is_cuda", "layout",
    "real", "imag", "H", "is_sparse", "volatile", "_backward_hooks", "__dict__", "_grad_fn",
]  # fmt: skip


class Script(ObjectSteps):
    """A program of some steps; `wrong` are the objections to what they raised, `steps` what ran.

    Parameters
    ----------
    number, seed : which.
    objection : ``objection(error) -> str | None``.
    """

    name, args, kwargs = "script", [], {}  # type: ignore[var-annotated]

    def __init__(self, number: int, seed: int, objection: Callable[[BaseException], str | None]) -> None:
        self.rng = np.random.default_rng([seed, number, 77])
        self.number, self.objection = number, objection
        self.tw = [dynamic, static][int(self.rng.integers(2))]
        self.pool: list[Any] = []
        self.open: list[AbstractContextManager[Any]] = []
        self.steps: list[str] = []
        self.wrong: list[str] = []

    def __str__(self) -> str:
        return f"script in {self.tw.__name__}:\n    " + "\n    ".join(self.steps)

    def __call__(self) -> None:
        self.attempt("tensor", self.tensor)
        kinds = [self.tensor, self.view, self.view, self.write, self.write, self.op, self.op, self.attribute, self.read,
                 self.backward, self.hook, self.mode, self.trace, self.trace, self.control, self.control, self.setitem,
                 self.method, self.transform, self.copied]  # fmt: skip
        rare = [self.module, self.optimizer, self.loader, self.distribution, self.session, self.file, self.function]
        if self.pick([True, False, False]):
            kinds = [self.pick(rare)] * 8 + kinds
        for _ in range(int(self.rng.integers(3, 16))):
            kind = self.pick(kinds)
            self.attempt(kind.__name__, kind)
        while self.open:
            self.attempt("leave", lambda: self.open.pop().__exit__(None, None, None))

    # ------------------------------------------------------------------ steps

    def view(self) -> Any:
        make, key = self.index(VIEWS), self.odd(self.index(KEYS)(), 0.2)
        return make(self.x(), key)

    def op(self) -> Any:
        return self.index(OPS)(self.x(), self.x())

    def write(self) -> Any:
        name, x = self.index(WRITES), self.x()
        few = [self.pick([self.x(), 0, 1, 0.5, self.any()]) for _ in range(int(self.rng.integers(0, 4)))]
        getattr(x, name)(*few)

    def setitem(self) -> None:
        self.x()[self.odd(self.index(KEYS)(), 0.2)] = self.pick([self.x(), 2.0, self.any()])

    def attribute(self) -> None:
        x, name = self.x(), self.index(ATTRIBUTES)
        if isinstance(x, TensorBase):
            if self.rng.random() < 0.15:
                delattr(x, name)
            else:
                setattr(x, name, self.pick([self.x(), None, True, False, self.any()]))

    def read(self) -> Any:
        x = self.x()
        names = [n for n in dir(type(x)) if not n.startswith("__")] if isinstance(x, TensorBase) else ["shape"]
        value = getattr(x, self.index(names))
        repr(x)
        return value if isinstance(value, TensorBase) else None

    def method(self) -> Any:
        name = self.index(_METHODS)
        call = draw_call(self.rng, name, _signature(name))
        own = self.x()
        return getattr(own, name)(*map(self.odd, call.args), **{k: self.odd(v) for k, v in call.kwargs.items()})

    def backward(self) -> Any:
        x, tw = self.x(), self.tw
        how = self.index([
            lambda: x.sum().backward(), lambda: x.backward(), lambda: x.backward(self.x(), self.pick([True, False])),
            lambda: tw.autograd.grad(x.sum(), self.x(), allow_unused=True),
            lambda: tw.autograd.grad(x, [self.x(), self.x()]),
            lambda: x.sum().backward(retain_graph=True, create_graph=True), lambda: x.sum().backward(inputs=[self.x()]),
            lambda: tw.autograd.grad((x * x).sum(), x, create_graph=True)[0].sum().backward(),
            lambda: tw.autograd.backward([x.sum(), self.x().sum()]), lambda: x.retain_grad(),
            lambda: tw.autograd.grad(x, x, self.x(), is_grads_batched=self.pick([True, False])),
        ])  # fmt: skip
        found = how()
        return found[0] if isinstance(found, tuple) else found

    def hook(self) -> Any:
        answer = self.index([lambda g: None, lambda g: g * 2, lambda g: g[..., None], lambda g: 3.0,
                                                                          lambda g: self.any(),
                             lambda g: g.add_(1), self.raising, lambda g: self.x().mul_(2),
                             lambda g: (g * g).sum().backward()])  # fmt: skip
        x = self.x()
        if self.rng.random() < 0.3 and getattr(x, "grad_fn", None) is not None:
            return x.grad_fn.register_hook(lambda *a: answer(a[0][0]) if self.pick([0, 1]) else None)
        return self.pick([x.register_hook, x.register_post_accumulate_grad_hook])(answer)

    def mode(self) -> None:
        tw, graph = self.tw, self.tw.autograd.graph
        made = self.index([
            tw.no_grad, tw.enable_grad, tw.inference_mode, lambda: tw.set_grad_enabled(self.odd(False)),
            lambda: graph.saved_tensors_hooks(lambda x: self.odd(x, 0.3),
            lambda x: self.odd(x, 0.1)), tw.random.fork_rng,
            lambda: tw.autograd.detect_anomaly(check_nan=self.pick([True, False])), graph.save_on_cpu,
            lambda: graph.disable_saved_tensors_hooks("no hooks here"), graph.allow_mutation_on_saved_tensors,
            lambda: static.Graph().as_default(), lambda: static.name_scope("a"), lambda: tw.profiler.profile(),
        ])()  # fmt: skip
        if self.open and self.rng.random() < 0.4:  # in any order
            self.open.pop(int(self.rng.integers(len(self.open)))).__exit__(None, None, None)
        else:
            made.__enter__()
            self.open.append(made)

    def trace(self) -> Any:
        options: dict[str, Any] = {}
        if self.rng.random() < 0.3:
            options = self.pick([{"fuse": False}, {"interpret": True}, {"control_flow": "guard"}, {"max_traces": 1},
                                 {"donate_argnums": 0}, {"memory_budget": 1000}, {"compiler": "llvm"}])  # fmt: skip
        f = self.tw.function(self.body(), **(options if self.tw is static else {}))
        result = f(*[self.any() for _ in range(int(self.rng.integers(0, 3)))])
        if self.rng.random() < 0.4:
            result = f(self.x())
        return result if isinstance(result, TensorBase) else f

    def control(self) -> Any:
        tw, one, two = self.tw, self.body(), self.body()
        x, y = self.any(), self.any()
        count, length = self.odd(self.pick([0, 1, 3])), self.odd(self.pick([None, 2, 3]))
        if isinstance(count, (int, np.integer)) and count > 1000:  # a loop that is told to go on for years does so
            count = 3
        act = self.index([
            lambda: tw.cond(self.pick([True, tw.tensor(False), x]), one, two, x),
            lambda: tw.switch(self.odd(count), [one, two], x),
            lambda: tw.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, one(s[1])), (0, x)),
            lambda: tw.while_loop(self.body(), one, x) if self.rng.random() < 0.1 else None,
            lambda: tw.fori_loop(0, count, one, x),
            lambda: tw.scan(lambda c, s: (one(c), two(s)), x, y, length=length),
            lambda: tw.scan(one, x, y), lambda: tw.map(one, x), lambda: tw.associative_scan(lambda a, b: a + b, x),
            lambda: tw.utils.checkpoint.checkpoint(one, x),
            lambda: tw.pure_callback(one, tw.ShapeDtypeStruct((3,), "float32"), x),
        ])  # fmt: skip
        if self.rng.random() < 0.4:
            return tw.function(act)() if self.rng.random() < 0.6 else tw.grad(lambda _: act())(self.x())
        return act()

    def transform(self) -> Any:
        tw, f, x = self.tw, self.body(), self.any()
        return self.index([
            lambda: tw.grad(f)(x), lambda: tw.vmap(f)(x),
            lambda: tw.vmap(f, in_dims=self.odd(1), out_dims=self.odd(-1))(x),
            lambda: tw.func.jvp(f, (x,), (self.any(),)), lambda: tw.vjp(f, x)[1](self.any()),
            lambda: tw.func.hessian(f)(x),
            lambda: tw.func.jacrev(f)(x), lambda: tw.func.jacfwd(f)(x), lambda: tw.vmap(tw.grad(f))(x),
            lambda: tw.autograd.functional.jacobian(f, x), lambda: tw.func.linearize(f, x)[1](self.any()),
            lambda: tw.grad(tw.function(f), argnums=self.odd(0))(x), lambda: tw.function(tw.vmap(f))(x),
        ])()  # fmt: skip

    def copied(self) -> Any:
        thing = self.any()
        return self.index([copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), repr, lambda x: x == x,
                           self.tw.as_tensor, np.asarray, lambda x: list(x)[:3], len, bool, self.tw.tensor,
                           lambda x: np.from_dlpack(x), float,
                           lambda x: format(x, ".2f"), hash, dir])(thing)  # fmt: skip


_METHODS = sorted(n for n in methods(dynamic.Tensor) if not n.startswith("_") and n not in ("timeit", "backward"))


def _signature(name: str) -> Any:
    import inspect

    signature = inspect.signature(getattr(dynamic.Tensor, name))
    return signature.replace(parameters=list(signature.parameters.values())[1:])
