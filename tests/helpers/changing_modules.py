"""Modules that change between the calls of compiled functions: their state, layers, hooks, gradients and optimisers.

A compiled function keeps a program for what it has read of a module. A run is a function of its seed: it calls three
functions of one module, `CHANGES` apart, so that a change which the compiled engine does not notice differs from the
eager one. As a command it draws new runs until one differs or the time is over::

    python -m tests.helpers.changing_modules --seconds 600 --seed 7
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dynamic
import static
from tests.helpers.until import draw


class Scene:
    """A module of one engine, its optimiser, and the functions that are called between the changes."""

    def __init__(self, tw: Any, seed: int, compiled: Callable[[Any], Any]) -> None:
        self.tw, self.rng, self.choose = tw, np.random.default_rng(seed), random.Random(seed)
        self.hooks: list[Any] = []
        self.model = self.made()
        self.refit()
        self.functions = [compiled(f) for f in (self.step, self.by_hand, self.losses)]
        self.look = compiled(self.evaluated)

    def array(self, *shape: int) -> Any:
        return self.tw.as_tensor(self.rng.standard_normal(shape))

    def linear(self) -> Any:
        layer = self.tw.nn.Linear(3, 3, dtype=self.tw.float64)
        with self.tw.no_grad():
            for p in layer.parameters():
                p.copy_(self.array(*p.shape) * 0.7)
        return layer

    def made(self) -> Any:
        """Layers in every container, a buffer that is written while training, and attributes that `forward` reads."""
        tw, scene = self.tw, self

        class Model(tw.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.layers = tw.nn.ModuleList([scene.linear() for _ in range(2)])
                self.kinds = tw.nn.ModuleDict({"a": tw.nn.Tanh(), "b": tw.nn.ReLU()})
                self.factors = tw.nn.ParameterList([tw.nn.Parameter(scene.array(3))])
                self.shifts = tw.nn.ParameterDict({"u": tw.nn.Parameter(scene.array(3))})
                self.norm = tw.nn.BatchNorm1d(3, dtype=tw.float64)
                self.head = tw.nn.Sequential(scene.linear(), tw.nn.Sigmoid())
                self.register_buffer("seen", scene.array(3))
                self.kind, self.scale = "a", 1.0

            def forward(self, x: Any) -> Any:
                for layer in self.layers:
                    x = self.kinds[self.kind](layer(x))
                for p in self.factors:
                    x = x * p
                for name in self.shifts:
                    x = x + self.shifts[name]
                if self.training:
                    with tw.no_grad():
                        self.seen.mul_(0.9).add_(x.detach().mean(0) * 0.1)
                return self.head(self.norm(x) * self.scale) - self.seen

        return Model()

    def refit(self) -> None:
        learnt = [p for p in self.model.parameters() if p.requires_grad]
        make = self.choose.choice((self.tw.optim.Adam, self.tw.optim.SGD))
        self.model.optimizer = make(learnt or list(self.model.parameters()), lr=0.05)

    def step(self, x: Any) -> Any:
        self.model.optimizer.zero_grad()
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        self.model.optimizer.step()
        return loss

    def by_hand(self, x: Any) -> Any:
        self.model.zero_grad()
        loss = self.model(x).sum()
        loss.backward()
        with self.tw.no_grad():
            for p in self.model.parameters():
                if p.grad is not None:
                    p.sub_(p.grad * 0.1)
        return loss

    def losses(self, x: Any) -> Any:
        """Gradients are added to those that are there."""
        loss = (self.model(x) ** 2).sum()
        loss.backward()
        return loss

    def evaluated(self, x: Any) -> Any:
        with self.tw.no_grad():
            return self.model(x)

    def state(self) -> list[Any]:
        """What the module holds now: parameters, buffers, gradients."""
        given = [p.grad for _, p in sorted(self.model.named_parameters())]
        return [*(v for _, v in sorted(self.model.state_dict().items())), *given]


Change = Callable[[Scene], Any]


def _hooked(s: Scene) -> None:
    s.hooks.append(s.model.norm.register_forward_hook(lambda _module, _given, made: made * 1.1))


def _hooked_backward(s: Scene) -> None:
    double = lambda _module, given, _made: tuple(None if g is None else g * 2 for g in given)  # noqa: E731
    s.hooks.append(s.model.head[0].register_full_backward_hook(double))


def _hooked_leaf(s: Scene) -> None:
    p = next((p for p in s.model.parameters() if p.requires_grad), None)
    if p is not None:
        s.hooks.append(p.register_hook(lambda g: g * 0.5))


def _unhooked(s: Scene) -> None:
    if s.hooks:
        s.hooks.pop(s.choose.randrange(len(s.hooks))).remove()


def _gradients(s: Scene) -> None:
    for p in s.model.parameters():
        p.grad = None if s.choose.random() < 0.5 else s.array(*p.shape)


def _loaded(s: Scene) -> None:
    kept = {name: (v * 0.9).clone() if v.is_floating_point() else v for name, v in s.model.state_dict().items()}
    s.model.load_state_dict(kept, assign=s.choose.random() < 0.5)


def _written(s: Scene) -> None:
    with s.tw.no_grad():
        s.model.head[0].weight.mul_(0.9)


def _pruned(s: Scene) -> None:
    s.tw.nn.utils.prune.l1_unstructured(s.model.head[0], "weight", 2)
    s.refit()


def _reparametrised(s: Scene) -> None:
    if not hasattr(s.model.layers[0], "parametrizations"):
        s.tw.nn.utils.parametrizations.weight_norm(s.model.layers[0])
        s.refit()


def _optional(s: Scene) -> None:
    for group in s.model.optimizer.param_groups:
        group[s.choose.choice(("lr", "weight_decay"))] = s.choose.choice((0.0, 0.1, 0.02))


CHANGES: dict[str, Change] = {
    "layer appended": lambda s: s.model.layers.append(s.linear()),
    "layer removed": lambda s: s.model.layers.pop(-1) if len(s.model.layers) > 1 else None,
    "layer replaced": lambda s: s.model.layers.__setitem__(-1, s.linear()),
    "layer inserted": lambda s: s.model.layers.insert(len(s.model.layers), s.tw.nn.Identity()),
    "activation replaced": lambda s: s.model.kinds.__setitem__("a", s.choose.choice((s.tw.nn.GELU, s.tw.nn.SiLU))()),
    "attribute": lambda s: setattr(s.model, "kind", s.choose.choice("ab")),
    "number": lambda s: setattr(s.model, "scale", s.choose.choice((0.5, 1.0, 2))),
    "parameter appended": lambda s: s.model.factors.append(s.tw.nn.Parameter(s.array(3))),
    "parameter replaced": lambda s: s.model.factors.__setitem__(0, s.tw.nn.Parameter(s.array(3))),
    "parameter of a name": lambda s: s.model.shifts.__setitem__(s.choose.choice("uvw"), s.tw.nn.Parameter(s.array(3))),
    "parameter removed": lambda s: s.model.shifts.pop(list(s.model.shifts)[-1]) if len(s.model.shifts) > 1 else None,
    "head replaced": lambda s: s.model.head.__setitem__(1, s.tw.nn.Tanh()),
    "bias absent": lambda s: setattr(s.model.head[0], "bias", None),
    "tied": lambda s: setattr(s.model.head[0], "weight", s.model.layers[0].weight)
    if isinstance(s.model.layers[0], s.tw.nn.Linear) and not hasattr(s.model.layers[0], "parametrizations")
    and "weight" in s.model.head[0]._parameters else None,
    "data": lambda s: setattr(next(s.model.parameters()), "data", s.array(*next(s.model.parameters()).shape)),
    "written": _written,
    "buffer set": lambda s: setattr(s.model, "seen", s.array(3)),
    "buffer registered": lambda s: s.model.register_buffer("seen", s.array(3)),
    "momentum": lambda s: setattr(s.model.norm, "momentum", s.choose.choice((0.1, 0.5, None))),
    "mode": lambda s: s.model.train(not s.model.training),
    "frozen": lambda s: s.model.layers[0].requires_grad_(s.choose.random() < 0.5),
    "norm frozen": lambda s: s.model.norm.weight.requires_grad_(not s.model.norm.weight.requires_grad),
    "gradients": _gradients,
    "no gradients": lambda s: s.model.zero_grad(set_to_none=s.choose.random() < 0.5),
    "loaded": _loaded,
    "hook": _hooked,
    "backward hook": _hooked_backward,
    "hook of a leaf": _hooked_leaf,
    "hook removed": _unhooked,
    "pruned": _pruned,
    "parametrised": _reparametrised,
    "option": _optional,
    "another optimiser": Scene.refit,
    "optimiser loaded": lambda s: s.model.optimizer.load_state_dict(s.model.optimizer.state_dict()),
    "eager step": lambda s: s.by_hand(s.array(4, 3)),
}  # fmt: skip


def run(tw: Any, seed: int, compiled: Callable[[Any], Any]) -> tuple[list[str], list[Any]]:
    """Names of the changes, and the values of one run; the last is the error that ended it, if one did."""
    scene = Scene(tw, seed, compiled)
    names: list[str] = []
    values: list[Any] = []
    try:
        for _ in range(scene.choose.randint(4, 12)):
            names.append(scene.choose.choice(list(CHANGES)))
            CHANGES[names[-1]](scene)
            x = scene.array(scene.choose.choice((2, 4)), 3)
            values += [scene.choose.choice(scene.functions)(x), scene.look(x), *scene.state()]
    except Exception as error:
        values.append(type(error))
    return names, [v.detach().numpy().copy() if isinstance(v, tw.Tensor) else v for v in values]


def check(seed: int) -> None:
    """Compare the engines on one run.

    Raises
    ------
    AssertionError : a bit differs, or one engine has an error and the other has none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names, eager = run(dynamic, seed, lambda f: f)
        _, compiled = run(static, seed, static.function)
    assert len(eager) == len(compiled), f"run {seed}, {names}: {eager[-1]}, {compiled[-1]}"
    for place, (a, b) in enumerate(zip(eager, compiled, strict=True)):
        same = np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else a is b
        assert same, f"run {seed}, {names}: value {place} of {len(eager)} is {b}, not {a}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw runs until the time is over."""
    draw(check, "runs", __doc__, arguments)


if __name__ == "__main__":
    main()
