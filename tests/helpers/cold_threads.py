"""Threads that meet everything first at the same time: ``python -m tests.helpers.cold_threads --seconds 60 --seed 0``.

A process that has just begun runs small programs of both engines in several threads, which take turns after a few
instructions. Each result must have the bits that the program gives afterwards, when it runs alone.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dynamic
import static

Program = Callable[[Any, Any], list[Any]]
THREADS, ROUNDS = 6, 24
ROOT = Path(__file__).parents[2]


def _values(tw: Any, key: int, *shape: int) -> Any:
    return tw.tensor(np.random.default_rng(key).standard_normal(shape).astype(np.float32), requires_grad=True)


def _elementwise(tw: Any, key: Any) -> list[Any]:
    x = _values(tw, key, 3 + key % 3, 4)
    y = (x * x + x.exp() - x / 3).relu().sum()
    y.backward()
    return [y, x.grad]


def _parts(tw: Any, key: Any) -> list[Any]:
    x = _values(tw, key, 5, 6)
    y = x.clone()
    y[1:3] = y[2:4] * 2
    y[:, 0] += 1
    (g,) = tw.autograd.grad((y**3).sum(), x, create_graph=True)
    (g * g).sum().backward()
    return [g, x.grad, x.T.reshape(-1), x[..., ::2] + 1, x.sort(0)[0], x.max(1)[1]]


def _layers(tw: Any, key: Any) -> list[Any]:
    x, w = _values(tw, key, 2, 3, 8, 8), _values(tw, key + 1, 4, 3, 3, 3)
    functional = tw.nn.functional
    y = functional.max_pool2d(functional.conv2d(x, w, padding=1).relu(), 2)
    loss = functional.cross_entropy(functional.layer_norm(y.flatten(1), (64,)), tw.tensor([1, 40]))
    loss.backward()
    return [loss, x.grad, w.grad]


def _compiled(tw: Any, key: Any) -> list[Any]:
    x = _values(tw, key, 6)
    f = tw.function(lambda x: (x.sin() * x).cumsum(0))
    return [f(x), tw.grad(lambda x: f(x).sum())(x), tw.vmap(f)(_values(tw, key, 2, 3))]


def _training(tw: Any, key: Any) -> list[Any]:
    layer = tw.nn.Linear(4, 2)
    with tw.no_grad():
        for i, p in enumerate(layer.parameters()):
            p.copy_(_values(tw, key + i, *p.shape))
    optimizer = tw.optim.Adam(layer.parameters(), lr=0.01)

    @tw.function
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (layer(x).tanh() ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return [*(step(_values(tw, key, 7, 4).detach()) for _ in range(3)), *layer.parameters()]


def _loops(tw: Any, key: Any) -> list[Any]:
    x = _values(tw, key, 3)
    _, y = tw.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * 1.5), (tw.tensor(0), x))
    total, sums = tw.scan(lambda c, v: (c + v, c * v), tw.zeros(()), x)
    (y.sum() + sums.sum() + total).backward()
    return [y, sums, x.grad]


PROGRAMS: list[Program] = [_elementwise, _parts, _layers, _compiled, _training, _loops]
SHARED = {tw: tw.function(lambda *xs: sum((x * x).sum() for x in xs)) for tw in (dynamic, static)}


def _one_for_all(tw: Any, key: Any) -> list[Any]:
    r = random.Random(key)
    return [SHARED[tw](*(_values(tw, key + i, *[2] * r.randint(0, 3)) for i in range(r.randint(1, 3))))]


PROGRAMS.append(_one_for_all)


def bits(program: Program, engine: Any, key: int) -> list[bytes]:
    """The results of a program, as bytes."""
    return [x.detach().numpy().tobytes() for x in program(engine, key)]


def run(seed: int) -> list[str]:
    """Run programs in threads, then alone; return what differs, or was raised."""
    runs = [(program, engine, key) for program in PROGRAMS for engine in (dynamic, static) for key in range(3)]
    found: list[tuple[Any, Any]] = []
    start = threading.Barrier(THREADS)

    def body(number: int) -> None:
        mine = runs[:]
        random.Random(seed if number % 2 else seed * 100 + number).shuffle(mine)  # half of the threads do the same
        start.wait()
        for case in mine[:ROUNDS]:
            try:
                found.append((case, bits(*case)))
            except Exception as error:
                found.append((case, repr(error)))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=body, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    alone = {case: bits(*case) for case in {case for case, _ in found}}
    return [f"{program.__name__} {engine.__name__} {key}: {result if isinstance(result, str) else 'other bits'}"
            for (program, engine, key), result in found if result != alone[program, engine, key]]  # fmt: skip


def in_new_process(seed: int) -> str:
    """Run `run` in a process of its own; return what it says, nothing if all is well."""
    command = [sys.executable, "-m", "tests.helpers.cold_threads", "--here", "--seed", str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"status {done.returncode}\n{done.stdout}{done.stderr[-2000:]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="once, in this process")
    given = parser.parse_args()
    if given.here:
        print("".join(f"{line}\n" for line in run(given.seed)), end="")
        return
    seed, wrong, end = given.seed, 0, time.monotonic() + given.seconds
    while time.monotonic() < end:
        if said := in_new_process(seed):
            wrong += 1
            print(f"seed {seed}: {said}")
        seed += 1
    print(f"{seed - given.seed} processes, from seed {given.seed} on: {wrong or 'none'} wrong")


if __name__ == "__main__":
    main()
