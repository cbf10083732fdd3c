"""Objects for the steps of hostile scripts, and steps about objects: modules, optimisers, loaders, files."""

# Calls that break types on purpose.
# mypy: disable-error-code="misc, assignment, index, dict-item, return-value, attr-defined"

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import dynamic
import dynamic.utils.data
import static
from common.tensor.base import TensorBase
from tests.helpers.hostile_values import VALUES

f4 = np.float32
DTYPES = ["float32", "float32", "float64", "int64", "int32", "uint8", "bool"]
SHAPES: list[tuple[int, ...]] = [(), (1,), (3,), (2, 3), (3, 2), (0,), (0, 3), (2, 0), (1, 3), (2, 2, 3), (4, 1)]
KEYS: list[Callable[[], Any]] = [
    lambda: 0, lambda: -1, lambda: 5, lambda: slice(1, None), lambda: slice(None, None, 2), lambda: slice(3, 1),
    lambda: None, lambda: ..., lambda: (..., 0), lambda: (slice(None), 0), lambda: (0, None, slice(1)),
    lambda: True, lambda: [0, 1], lambda: np.int64(1), lambda: dynamic.tensor([0, 0]), lambda: dynamic.tensor(1),
    lambda: np.array([True, False]), lambda: (dynamic.tensor([0, 1]), slice(None)), lambda: 10**20,
]  # fmt: skip
VIEWS: list[Callable[[Any, Any], Any]] = [
    lambda x, k: x[k], lambda x, k: x.view(-1), lambda x, k: x.t(), lambda x, k: x.transpose(0, -1),
    lambda x, k: x.expand(2, *x.shape), lambda x, k: x.unsqueeze(0), lambda x, k: x.squeeze(), lambda x, k: x.detach(),
    lambda x, k: x.narrow(0, 0, k), lambda x, k: x.split(k)[0], lambda x, k: x.unbind()[0], lambda x, k: x.chunk(2)[-1],
    lambda x, k: x.diagonal(), lambda x, k: x.unfold(0, 2, 1), lambda x, k: x.reshape(k), lambda x, k: x.flatten(),
    lambda x, k: x.movedim(0, k), lambda x, k: x.as_strided((2, 2), (1, 1), k), lambda x, k: x.select(k, 0),
    lambda x, k: x.view(k), lambda x, k: x.permute(k), lambda x, k: x.swapaxes(0, k), lambda x, k: x.expand(k),
    lambda x, k: x.view_as(k), lambda x, k: x.unflatten(0, k), lambda x, k: x.tensor_split(k)[0], lambda x, k: x.T,
]  # fmt: skip
OPS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x * y, lambda x, y: x + 1, lambda x, y: (x * x).sum(), lambda x, y: x.sin(), lambda x, y: x @ y,
    lambda x, y: dynamic.cat([x, y]), lambda x, y: x.clone(), lambda x, y: x.to(y), lambda x, y: x.sum(0),
    lambda x, y: dynamic.where(x > 0, x, y), lambda x, y: x.softmax(-1), lambda x, y: x.index_select(0, y),
    lambda x, y: x.cumsum(0), lambda x, y: x.max(0), lambda x, y: x.sort(), lambda x, y: x.masked_fill(y > 0, 0),
    lambda x, y: x.norm(), lambda x, y: x.gather(0, y), lambda x, y: x / y, lambda x, y: x**y, lambda x, y: x // y,
    lambda x, y: dynamic.einsum("...i,...i", x, y), lambda x, y: x.var(), lambda x, y: dynamic.stack([x, y]),
    lambda x, y: x.flip(0), lambda x, y: x.roll(1), lambda x, y: x.repeat(2, 1), lambda x, y: x == y, lambda x, y: -x,
]  # fmt: skip
WRITES = [
    "add_", "sub_", "mul_", "div_", "copy_", "fill_", "zero_", "masked_fill_", "index_add_", "index_copy_", "clamp_",
    "scatter_", "scatter_add_", "index_fill_", "uniform_", "normal_", "sin_", "exp_", "pow_", "requires_grad_",
    "detach_", "squeeze_", "unsqueeze_", "transpose_", "t_", "resize_", "set_", "swapaxes_", "bernoulli_", "random_",
    "put_", "masked_scatter_", "addmm_", "lerp_", "where_", "tril_", "cumsum_", "copysign_", "remainder_", "relu_",
]  # fmt: skip


_OF_DISTRIBUTIONS = ["sample", "rsample", "log_prob", "cdf", "icdf", "entropy", "mean", "variance", "expand",
                     "enumerate_support", "support", "stddev", "mode", "__repr__"]  # fmt: skip


class Stop(Exception):
    """An exception of the user's own code in a script."""


class Draws:
    """The pool of a script, and what is drawn from it."""

    rng: np.random.Generator
    tw: ModuleType
    pool: list[Any]
    steps: list[str]
    wrong: list[str]
    objection: Callable[[BaseException], str | None]

    def attempt(self, what: str, act: Callable[[], Any]) -> Any:
        """Run a step; what it makes goes into the pool."""
        self.steps.append(what)
        try:
            result = act()
        except Stop:
            return
        except Exception as error:
            if wrong := self.objection(error):
                self.wrong.append(f"step {len(self.steps)}: {wrong}")
            return
        if result is not None and len(self.pool) < 40:
            self.pool.append(result)

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def odd(self, value: Any, chance: float = 0.15) -> Any:
        """A value, or seldom a hostile one."""
        if self.rng.random() >= chance:
            return value
        odd = self.pick(VALUES)()
        if isinstance(odd, np.ndarray) and odd.size > 2**30:  # a script calls methods of numpy's, which would go on
            odd = odd[:2, :2]
        self.say(f"odd: {type(odd).__name__}")
        return odd

    def any(self) -> Any:
        """Something of the pool, or hostile."""
        return self.odd(self.pick(self.pool) if self.pool else None)

    def x(self) -> Any:
        """A tensor of the pool, mostly."""
        tensors = [x for x in self.pool if isinstance(x, TensorBase)]
        return self.odd(self.pick(tensors) if tensors else self.tensor(), 0.05)

    def say(self, text: str) -> None:
        if self.steps:
            self.steps[-1] += f" | {text}"

    def index(self, options: list[Any]) -> Any:
        at = int(self.rng.integers(len(options)))
        self.say(str(at))
        return options[at]

    def tensor(self) -> Any:
        dtype, shape = self.pick(DTYPES), self.pick(SHAPES)
        self.say(f"{dtype} {shape}")
        data = self.rng.integers(0, 3, shape).astype(dtype)
        x = self.tw.tensor(data) if self.rng.random() < 0.7 else self.tw.nn.Parameter(data, dtype[0] == "f")
        if dtype[0] == "f" and self.rng.random() < 0.6:
            x.requires_grad_()
            return x * 1.0 if self.rng.random() < 0.5 else x
        return x

    def body(self) -> Callable[..., Any]:
        """A function of the user's, of any number of arguments, with what users do in them."""
        kind, key, other = int(self.rng.integers(12)), self.pick(KEYS)(), self.x()
        act, then, write = self.pick(OPS), self.pick(VIEWS), self.pick(WRITES)
        self.say(f"body {kind}")

        def run(*args: Any) -> Any:
            x = args[-1] if args else other
            if kind == 0:
                self.pool.append(x)  # a tracer leaves its trace
                return x
            if kind == 1:
                getattr(x, write)(other)
                return x * 1
            if kind == 2:
                getattr(other, write)(x)  # what is captured is written
                return other * 1
            if kind == 3:
                return [x, None, (other, 2.5), {"a": x}]
            if kind == 4:
                return then(x, key) * 2
            if kind == 5:
                return x * 2 if bool((x > 0).all()) else other
            if kind == 6:
                x.sum().backward()
                return x.grad
            if kind == 7:
                return self.raising()
            if kind == 8:
                return self.any()
            if kind == 9:
                v = then(x, key)
                v += 1
                return x * 1
            if kind == 10:
                return self.tw.autograd.grad((x * other).sum(), x, allow_unused=True)
            return act(x, other)

        return run

    def raising(self, *_: Any) -> Any:
        raise Stop


class ObjectSteps(Draws):
    """Steps about what is no tensor."""

    def function(self) -> Any:
        script, two = self, self.rng.random() < 0.3

        class F(self.tw.autograd.Function):  # type: ignore[name-defined]
            @staticmethod
            def forward(ctx: Any, *args: Any) -> Any:
                ctx.save_for_backward(*(script.odd(a, 0.05) for a in args))
                if script.rng.random() < 0.3:
                    ctx.mark_dirty(args[0].mul_(2))
                if script.rng.random() < 0.2:
                    ctx.mark_non_differentiable(script.any())
                y = script.pick([args[0], args[0] * 2, args[0][:1], script.any()])
                return (y, y) if two else y

            @staticmethod
            def backward(ctx: Any, *g: Any) -> Any:
                return script.pick([g[0], g[0] * 2, None, (g[0], g[0]), script.any(), ctx.saved_tensors[0]])

        y = F.apply(*[self.x() for _ in range(int(self.rng.integers(1, 3)))])
        (y[0] if two else y).sum().backward()
        return y

    def module(self) -> Any:
        nn = self.tw.nn
        module = next((m for m in self.pool if isinstance(m, nn.Module)), None)
        if module is None or self.rng.random() < 0.3:
            return self.index([lambda: nn.Linear(3, self.odd(2)), lambda: nn.BatchNorm1d(3),
                               lambda: nn.LSTM(3, 2), nn.Tanh,
                               lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(self.odd(0.5)), nn.LayerNorm(3)),
                               lambda: nn.MultiheadAttention(4, 2), lambda: nn.Embedding(4, 3)])()  # fmt: skip
        state, value = module.state_dict(), self.any()
        return self.index([
            lambda: module(self.x()), lambda: module(self.any(), self.any()), lambda: static.compile(module)(self.x()),
            lambda: module.load_state_dict({k: self.odd(v, 0.3) for k, v in state.items()}),
            lambda: setattr(module, self.pick([*state, "bias", "training", "forward", "a.b", ""]), value),
            lambda: delattr(module, self.pick([*state, "weight", "training"])), lambda: module.to(self.any()),
            lambda: module.register_buffer(self.odd("b"), self.any()), lambda: module.apply(self.any()),
            lambda: module.register_forward_hook(self.body()), lambda: module.register_parameter("p", self.any()),
            lambda: self.tw.func.functional_call(module, {k: self.any() for k in state}, (self.x(),)),
            lambda: module.train(self.any()), lambda: module.requires_grad_(self.any()), lambda: repr(module),
            lambda: module.register_full_backward_hook(self.body()),
            lambda: nn.utils.clip_grad_norm_(module.parameters(), self.odd(1.0)), lambda: copy.deepcopy(module),
        ])()  # fmt: skip

    def optimizer(self) -> Any:
        tw = self.tw
        kinds = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS", "Adadelta", "NAdam", "Rprop", "ASGD"]
        found = next((m for m in self.pool if isinstance(m, tw.optim.Optimizer)), None)
        if found is None or self.rng.random() < 0.2:
            p = tw.nn.Parameter(np.ones(3, f4))
            p.grad = self.odd(tw.ones(3))
            self.pool.append(p)
            return getattr(tw.optim, self.index(kinds))([p], lr=self.odd(0.1))
        p = found.param_groups[0]["params"][0]
        group = found.param_groups[0]
        state = found.state_dict()
        self.index([
            found.step, lambda: found.step(self.body()), found.zero_grad,
            lambda: found.load_state_dict(self.odd(state, 0.5)),
            lambda: found.load_state_dict({**state, self.pick([*state]): self.any()}),
            lambda: group.__setitem__(self.pick([*group]), self.any()),
            lambda: found.add_param_group({"params": self.any()}),
            lambda: found.state[p].update({k: self.any() for k in found.state[p]}), lambda: found.state.clear(),
            lambda: setattr(p, "grad", self.any()), lambda: p.data.resize_(2) if hasattr(p.data, "resize_") else None,
            lambda: tw.optim.lr_scheduler.StepLR(found, self.odd(1)).step(),
            lambda: found.param_groups.append(self.any()),
            lambda: tw.optim.lr_scheduler.OneCycleLR(found, self.odd(0.1), total_steps=self.odd(3)).step(self.any()),
            lambda: group["params"].append(self.any()), lambda: tw.function(found.step)(), lambda: repr(found),
        ])()  # fmt: skip
        self.attempt("step", found.step)
        return None

    def loader(self) -> Any:
        data, script = self.tw.utils.data, self

        class Items(data.Dataset):  # type: ignore[name-defined]
            def __len__(self) -> Any:
                return 5

            def __getitem__(self, i: Any) -> Any:
                return script.pick([np.ones(2, f4) * i, {"a": i}, (i, 2.0), script.any()])

        options = {
            "batch_size": self.odd(2),
            "shuffle": self.odd(self.pick([True, False])),
            "drop_last": self.odd(False),
            "collate_fn": self.odd(None),
            "generator": self.odd(None),
        }
        if self.rng.random() < 0.2:
            options = {"sampler": self.any(), "batch_sampler": self.odd(None, 0.5)}
        loader = data.DataLoader(self.odd(Items(), 0.2), **options)
        for _ in zip(loader, range(4), strict=False):
            pass
        return len(loader)

    def distribution(self) -> Any:
        d = self.tw.distributions
        names = [n for n in d.__all__ if isinstance(getattr(d, n), type) and issubclass(getattr(d, n), d.Distribution)]
        kind = getattr(d, self.index(names))
        made = kind(*[self.pick([self.x(), 0.5, 1.5, self.any()]) for _ in range(int(self.rng.integers(0, 4)))])
        for _ in range(4):
            name = self.pick(_OF_DISTRIBUTIONS)
            self.attempt(f"{kind.__name__}.{name}", lambda name=name: _called(getattr(made, name), self.any()))
        return d.kl_divergence(made, self.any()) if self.rng.random() < 0.3 else None

    def session(self) -> Any:
        static.reset_default_graph()
        p, v = static.placeholder("float32", self.odd([2, 3])), static.Variable(np.ones((2, 3), f4))
        y = self.pick(OPS)(p, v)
        s = static.Session(graph=self.odd(None, 0.05))
        if self.rng.random() < 0.8:
            s.run(static.global_variables_initializer())
        fetch = self.pick([y, [y, v], {"a": y}, "a:0", v.assign(y), static.gradients(y, [v]), self.any()])
        for _ in range(2):
            self.attempt("run", lambda: s.run(self.odd(fetch), {self.odd(p): self.odd(np.ones((2, 3), f4), 0.4)}))
        self.attempt("optimizer", lambda: s.run(static.train.GradientDescentOptimizer(0.1).minimize(y))
                     if hasattr(static, "train") else s.close())  # fmt: skip
        s.close()
        return self.pick([p, v, y, s.run])

    def file(self) -> Any:
        path, tw = Path("hostile.bin"), self.tw
        what = {"a": self.x(), "b": [self.any(), 1], "c": self.any()}
        save, load = self.index([
            (lambda: tw.save_file({"a": tw.ones(2, 3), "b": self.x()}, path), lambda: tw.load_file(path)),
            (lambda: tw.save(what, path), lambda: tw.load(path)),
            (lambda: tw.save(tw.nn.Linear(2, 2).state_dict(), path),
            lambda: tw.load(path, weights_only=self.odd(True))),
        ])  # fmt: skip
        save()
        raw = bytearray(path.read_bytes())
        for _ in range(int(self.rng.integers(0, 3))):
            at = int(self.rng.integers(len(raw) + 1))
            raw[at : at + int(self.rng.integers(3))] = self.rng.bytes(int(self.rng.integers(3)))
        path.write_bytes(raw)
        return load()


def _called(value: Any, x: Any) -> Any:
    if not callable(value):
        return value
    return value() if getattr(value, "__name__", "") in ("entropy", "__repr__", "enumerate_support") else value(x)
