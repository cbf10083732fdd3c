"""Looking at programs on the disk."""

from __future__ import annotations

import numpy as np

import static
from common.compiler import disk_cache
from tests.bits import assert_all_same_bits

F32 = np.float32


def programs(folder):
    """The programs in a folder."""
    entries = (disk_cache.unpack(file.stem, file.read_bytes()) for file in folder.glob("*.kernel"))
    return [entry for entry in entries if entry is not None and entry.symbol == "program"]


def called(f, *args, **options):
    compiled = static.function(f, **options)
    result = compiled(*args)
    return compiled, result if isinstance(result, tuple) else (result,)


def network():
    """A training step, anew from the same parameters."""
    static.manual_seed(1)
    model = static.nn.Sequential(static.nn.Linear(6, 8), static.nn.Tanh(), static.nn.Linear(8, 3))
    optimizer = static.optim.Adam(model.parameters(), lr=0.01)

    def step(x, labels):
        optimizer.zero_grad()
        loss = static.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def assert_keys_differ(folder, functions, *args):
    """Each function is a program of its own, is found again, and has the bits of the interpreter."""
    for count, f in enumerate(functions, 1):
        compiled, results = called(f, *args)
        assert "lower" in compiled.newest.seconds
        assert len(programs(folder)) == count
        _, expected = called(f, *args, interpret=True)
        assert_all_same_bits(results, expected, f"program {count}")
        again, results = called(f, *args)
        assert "disk" in again.newest.seconds
        assert_all_same_bits(results, expected, f"program {count}")
