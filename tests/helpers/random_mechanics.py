"""Random programs about views, writes, hooks and control flow, the same for every module with PyTorch's names.

A program has a pool of float64 tensors. Each step picks some of them by a seeded generator and does one thing: a view,
an op, a write, a detour by `detach`, a hook, a branch or loop that depends on a value, a backward pass. Errors are
outcomes: the program notes the class and goes on. What it is worth in the end is what it has noted: every value,
`requires_grad`, `is_leaf`, and all gradients.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NoReturn

from common.core.errors import GradientError, IndexRangeError, ShapeError
from tests.helpers.noted import BUILT_IN, STRICTER, Note, Refused

_STRICTER = re.compile(
    "modified by an inplace operation|view and its base or another view|mode and its base or another view"
    "|some elements of the input tensor and the written-to tensor refer to"
    "|more than one element of the written-to tensor refers to"
)


class Stop(Exception):
    """A backward pass was refused; what comes after it need not agree."""


class Program:
    """A random program on a module.

    Parameters
    ----------
    tw : the module.
    traceable : leave out what a trace cannot have: values, hooks, backward passes.
    """

    def __init__(self, tw: Any, seed: int, steps: int = 12, traceable: bool = False) -> None:
        self.tw, self.rng, self.steps, self.traceable = tw, random.Random(seed), steps, traceable
        self.notes: list[Note] = []
        self.pool: list[Any] = []
        self.leaves: list[Any] = []
        self.repeating: list[Any] = []

    # -------------------------------------------------------------- the whole

    def inputs(self) -> list[Any]:
        """Nested lists: two matrices, a vector and a number; the last matrix is not differentiated."""
        numbers = random.Random(self.rng.random())

        def filled(*shape: int) -> Any:
            if not shape:
                return round(numbers.uniform(-1.5, 1.5), 3)
            return [filled(*shape[1:]) for _ in range(shape[0])]

        return [filled(3, 4), filled(4), filled(), filled(3, 4)]

    def run(self, arguments: list[Any]) -> Any:
        """All steps on tensors; return the sum of what is in the pool."""
        self.leaves = arguments[:-1]
        self.pool = [*arguments[:-1], arguments[-1] * 1, arguments[0] * 1, arguments[0] * arguments[2]]
        for _ in range(self.steps):
            self.step()
        total: Any = 0.0
        for position, x in enumerate(self.pool):
            part = self.attempt(f"sum of t{position}", lambda: (x * (0.5 + 0.25 * position)).sum())  # noqa: B023
            total = total if part is None else total + part
        return total

    def differentiate(self) -> list[Note]:
        """Run in an engine that computes at once, and note everything."""
        tw = self.tw
        arguments = [tw.tensor(a, dtype=tw.float64) for a in self.inputs()]
        for leaf in arguments[:-1]:
            leaf.requires_grad_()
        try:
            total = self.run(arguments)
            for position, x in enumerate(self.pool):
                self.note(f"value {position}", x.detach().tolist())
                flags = self.attempt(f"flags {position}", lambda: (x.requires_grad, x.is_leaf))  # noqa: B023
                self.note(f"flags {position}", flags)
            self.backward("the end", total, False)
            for position, x in enumerate(self.pool):
                kept = x.grad if x.is_leaf or x.retains_grad else None
                self.note(f"gradient {position}", None if kept is None else kept.tolist())
        except Stop:
            pass
        return self.notes

    def note(self, what: str, seen: Any) -> None:
        """Write an observation down."""
        self.notes.append(Note(what, seen))

    def stop(self, what: str) -> NoReturn:
        """The end of what has to agree: PyTorch refuses here what is well defined."""
        self.note(what, STRICTER)
        raise Stop

    def step(self) -> None:
        """One thing that a program does."""
        kinds = [self.view] * 6 + [self.write] * 6 + [self.op] * 3 + [self.dirty, self.detour]
        if not self.traceable:
            kinds += [self.branch, self.loop, self.hook, self.retain, self.pass_back, self.masked]
            kinds += [self.dirty, self.quiet]
        kind = self.rng.choice(kinds)
        self.attempt(kind.__name__, kind)

    def attempt(self, what: str, act: Callable[[], Any]) -> Any:
        """Do something that may be refused: the class of the error is noted."""
        try:
            result = act()
        except BUILT_IN as error:
            if self.traceable and not isinstance(error, (GradientError, IndexRangeError, ShapeError)):
                raise  # a trace refuses more
            if _STRICTER.search(str(error)) and not self.traceable:
                self.stop(what)
            self.note(what, Refused([c.__name__ for c in BUILT_IN if isinstance(error, c)]))
            return None
        self.note(what, "done")
        return result

    def pick(self) -> tuple[str, Any]:
        """A tensor of the pool and what to call it."""
        position = self.rng.randrange(len(self.pool))
        return f"t{position}", self.pool[position]

    def keep(self, what: str, act: Callable[[], Any]) -> None:
        """A tensor for the pool."""
        result = self.attempt(f"t{len(self.pool)} = {what}", act)
        if result is not None:
            self.pool.append(result)

    # -------------------------------------------------------------- steps

    def mode(self) -> tuple[str, Any]:
        """Seldom without recording."""
        quiet = self.rng.random() < 0.15
        return ("no_grad: " if quiet else ""), (self.tw.no_grad if quiet else nullcontext)

    def view(self) -> None:
        """A view of a tensor, or of a view."""
        name, x = self.pick()
        text, make = self.shown(x)
        # PyTorch 2.13 says that a view made without recording requires grad, against its documentation
        prefix, mode = ("", nullcontext) if x.requires_grad else self.mode()

        def act() -> Any:
            with mode():
                return make(x)

        self.keep(f"{prefix}{name}{text}", act)
        if "expand" in text or any(x is y for y in self.repeating):
            self.repeating.append(self.pool[-1])

    def shown(self, x: Any) -> tuple[str, Callable[[Any], Any]]:
        """A random view of `x`: how it is written, and what makes it."""
        rng, n = self.rng, len(x.shape)
        d, e = (rng.randrange(-n, n), rng.randrange(-n, n)) if n else (0, 0)
        size = int(x.shape[d]) if n else 1
        i = rng.randrange(-size, size) if size else 0
        a = rng.randrange(size + 1)
        length = rng.randrange(size - a + 1)
        step = rng.choice((1, 1, 2))
        count = rng.choice((1, 2, 3))
        piece = rng.randrange(3)
        sizes = [int(m) for m in x.shape]
        flipped, joined = sizes[::-1], regrouped(sizes, rng)
        choices: list[tuple[str, Callable[[Any], Any]]] = [
            (f"[{i}]", lambda x: x[i]),
            (f"[{a}:]", lambda x: x[a:]),
            (f"[..., ::{step}]", lambda x: x[..., ::step]),
            (f"[:, {i}]", lambda x: x[:, i]),
            ("[None]", lambda x: x[None]),
            (f".select({d}, {i})", lambda x: x.select(d, i)),
            (f".narrow({d}, {a}, {length})", lambda x: x.narrow(d, a, length)),
            (f".transpose({d}, {e})", lambda x: x.transpose(d, e)),
            (".t()", lambda x: x.t()),
            (f".unsqueeze({d})", lambda x: x.unsqueeze(d)),
            (f".squeeze({d})", lambda x: x.squeeze(d)),
            (".reshape(-1)", lambda x: x.reshape(-1)),
            (f".view({flipped})", lambda x: x.view(*flipped) if flipped else x.view(1)),
            (f".reshape({flipped})", lambda x: x.reshape(flipped)),
            (f".expand(2, *{sizes})", lambda x: x.expand(2, *sizes)),
            (f".permute({list(range(n))[::-1]})", lambda x: x.permute(list(range(n))[::-1])),
            (f".split({count}, {d})[{piece}]", lambda x: _one(x.split(count, d), piece)),
            (f".chunk({count}, {d})[{piece}]", lambda x: _one(x.chunk(count, d), piece)),
            (f".unbind({d})[{piece}]", lambda x: _one(x.unbind(d), piece)),
            (".flatten()", lambda x: x.flatten()),
            (".diagonal()", lambda x: x.diagonal()),
            (f".movedim({d}, {e})", lambda x: x.movedim(d, e)),
        ]
        choices += [
            (f".view({joined})", lambda x: x.view(joined)),
            (f".reshape({joined})", lambda x: x.reshape(joined)),
        ]
        return rng.choice(choices)

    def op(self) -> None:
        """A new tensor; some ops save what later writes may overwrite."""
        (a, x), (b, z) = self.pick(), self.pick()
        tw = self.tw
        choices: list[tuple[str, Callable[[], Any]]] = [
            (f"{a} * 1.5", lambda: x * 1.5),
            (f"{a} + {b}", lambda: x + z),
            (f"{a} * {b}", lambda: x * z),
            (f"{a} - {b} * 2", lambda: x - z * 2),
            (f"{a}.sin()", lambda: x.sin()),
            (f"{a}.tanh()", lambda: x.tanh()),
            (f"{a}.clone()", lambda: x.clone()),
            (f"{a}.sum(0)", lambda: x.sum(0)),
            (f"stack([{a}, {a}])", lambda: tw.stack([x, x])),
            (f"cat([{a}, {b}])", lambda: tw.cat([x, z])),
        ]
        self.keep(*self.rng.choice(choices))

    def write(self) -> None:
        """A write to a tensor, which may be a view, with or without history."""
        (a, x), (b, z) = self.pick(), self.pick()
        prefix, mode = self.mode()
        n = len(x.shape)
        size = int(x.shape[0]) if n else 1
        i = self.rng.randrange(size) if size else 0
        number = self.rng.choice((0.5, -1.0, 2.0))

        def augmented() -> None:
            y = x
            y += z

        def scaled() -> None:
            y = x
            y *= number

        choices: list[tuple[str, Callable[[], Any]]] = [
            (f"{a}.add_({b})", lambda: x.add_(z)),
            (f"{a}.sub_({number})", lambda: x.sub_(number)),
            (f"{a}.mul_({number})", lambda: x.mul_(number)),
            (f"{a}.mul_({b})", lambda: x.mul_(z)),
            (f"{a}.div_(2.0)", lambda: x.div_(2.0)),
            (f"{a}.zero_()", lambda: x.zero_()),
            (f"{a}.fill_({number})", lambda: x.fill_(number)),
            (f"{a}.copy_({b})", lambda: x.copy_(z)),
            (f"{a} += {b}", augmented),
            (f"{a} *= {number}", scaled),
            (f"{a}[{i}] = {number}", lambda: x.__setitem__(i, number)),
            (f"{a}[{i}] = {b}", lambda: x.__setitem__(i, z)),
            (f"{a}[...] = {b}", lambda: x.__setitem__(Ellipsis, z)),
            (f"{a}[{i}:] = {b}", lambda: x.__setitem__(slice(i, None), z)),
            (f"{a}[..., {i}] = {number}", lambda: x.__setitem__((Ellipsis, i), number)),
        ]
        if any(x is y for y in self.repeating):  # a part of it may be written in PyTorch, if it repeats nothing itself
            choices = choices[:10]
        text, change = self.rng.choice(choices)

        def act() -> None:
            _ = x.grad_fn  # PyTorch makes a view of what was overwritten anew only when somebody looks
            with mode():
                change()

        self.attempt(prefix + text, act)

    def dirty(self) -> None:
        """A function of the user's own that overwrites its argument."""
        name, x = self.pick()
        factor = self.rng.choice((0.5, -2.0))

        class Times(self.tw.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.mark_dirty(x)
                return x.mul_(factor)

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * factor

        def act() -> None:
            _ = x.grad_fn
            if not (x.is_leaf and x.requires_grad):  # PyTorch overwrites a leaf before it refuses to
                Times.apply(x)

        self.attempt(f"{name} overwritten by Times({factor})", act)

    def quiet(self) -> None:
        """A view without recording, of which a view is written with it, or without."""
        name, x = self.pick()
        text, make = self.shown(x)
        inner, make_inner = self.shown(x)
        mode = self.rng.choice((self.tw.no_grad, self.tw.inference_mode))
        (prefix, outer), deeper = self.mode(), self.rng.random() < 0.3

        def act() -> None:
            with mode():
                v = make(x)
            if v is not None and any(n > 1 for n in v.shape):
                if deeper:
                    v = make_inner(v)
                with outer():
                    if v is not None:
                        v.add_(0.25)

        if x.requires_grad and "reshape" not in text and "flatten" not in text:  # which may copy in one library only
            self.attempt(f"{prefix}view without recording: {name}{text}, {inner}, add_", act)

    def masked(self) -> None:
        """A write where a condition holds."""
        (a, x), number = self.pick(), self.rng.choice((0.0, 0.75))
        # PyTorch records such a write to an expanded tensor, which it deprecates, but has no gradient of it: the error
        # comes in the backward pass. Here the write itself is refused
        history = x.requires_grad and any(x is y for y in self.repeating)
        choices: list[tuple[str, Callable[[], Any]]] = [
            (f"{a}[{a} > 0] = {number}", lambda: x.__setitem__(x.detach() > 0, number)),
            (f"{a}.masked_fill_({a} < 0, {number})", lambda: x.masked_fill_(x.detach() < 0, number)),
        ]
        text, change = self.rng.choice(choices)
        if not history:
            self.attempt(text, change)

    def detour(self) -> None:
        """The same memory without history."""
        name, x = self.pick()
        self.keep(f"{name}.detach()", lambda: x.detach())

    def branch(self) -> None:
        """A branch by a value."""
        name, x = self.pick()
        self.note(f"if {name}.sum() > 0", bool(x.detach().sum().item() > 0))
        if x.detach().sum().item() > 0:
            self.op()
        else:
            self.write()

    def loop(self) -> None:
        """A loop whose length depends on a value."""
        name, x = self.pick()
        y, count = x, 0
        while count < 4 and abs(y.detach().sum().item()) < 8.0:
            y = y * 1.5 + 0.25
            count += 1
        self.note(f"while |{name}.sum()| < 8", count)
        self.pool.append(y * 1.0)

    def hook(self) -> None:
        """A hook that scales a gradient; on a tensor of its own, as PyTorch 2.13 may crash on views."""
        name, x = self.pick()
        scale = self.rng.choice((2.0, -0.5))
        x = x * 1.0
        self.pool.append(x)
        self.attempt(f"t{len(self.pool) - 1} = {name} * 1; register_hook(* {scale})",
                     lambda: x.register_hook(lambda g: g * scale))  # fmt: skip

    def retain(self) -> None:
        """Ask for the gradient of a result; see `hook`."""
        name, x = self.pick()
        x = x * 1.0
        self.pool.append(x)
        self.attempt(f"t{len(self.pool) - 1} = {name} * 1; retain_grad()", lambda: x.retain_grad())

    def pass_back(self) -> None:
        """A backward pass in the middle."""
        name, x = self.pick()
        self.backward(name, x, self.rng.random() < 0.8)
        for position, leaf in enumerate(self.leaves):
            self.note(f"leaf {position}", None if leaf.grad is None else leaf.grad.tolist())

    def backward(self, name: str, x: Any, retain: bool) -> None:
        """A backward pass; a refusal about overwritten values ends the comparison, as PyTorch refuses more."""
        what = f"{name}.sum().backward(retain_graph={retain})"
        try:
            x.sum().backward(retain_graph=retain)
        except RuntimeError as error:
            if _STRICTER.search(str(error)) and not self.traceable:
                self.stop(what)
            self.note(what, Refused(["RuntimeError"]))
            raise Stop from None
        self.note(what, "done")


def regrouped(sizes: list[int], rng: random.Random) -> list[int]:
    """Other sizes for as many elements: neighbours joined, others cut in two, ones put in between."""
    made: list[int] = []
    for n in sizes:
        if made and rng.random() < 0.4:
            made[-1] *= n
        elif n > 2 and n % 2 == 0 and rng.random() < 0.5:
            made += [2, n // 2]
        else:
            made.append(n)
        if rng.random() < 0.15:
            made.append(1)
    return made


def _one(parts: Any, i: int) -> Any:
    """One of several parts; a lone part may be written in one library and not in the other."""
    return parts[i] if len(parts) > 1 else None
