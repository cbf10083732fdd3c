"""A file's ops that are made when they are used, one per number of operands or results, are made in a new process."""

import subprocess
import sys

import numpy as np
import pytest

import static
from common.core.op import REGISTRY

X = np.arange(9, dtype=np.float32).reshape(3, 3)


def many(x):
    half = [static.tensor([0, 1])] * 6
    wide = x[:2, :2].reshape(2, 2, 1, 1, 1, 1).expand(2, 2, 2, 2, 2, 2)
    placed = static.zeros(2, 2, 2, 2, 2, 2).index_put(tuple(half), x[0, :2], accumulate=True)
    first, *_ = x.split(1, 0)
    return static.cat([x, x]), static.stack([x] * 5), first, sum(x.unbind(1)), wide[tuple(half)], placed


def test_a_new_process_makes_the_ops(tmp_path):
    program = static.function(many)
    wanted = program(X)
    static.save(program, tmp_path / "many.tw")
    code = (
        "import sys, numpy as np, static\n"
        "f = static.load(sys.argv[1])\n"
        "results = f(np.arange(9, dtype=np.float32).reshape(3, 3))\n"
        "print(*(np.asarray(x).tobytes().hex() for x in results))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "many.tw")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [np.asarray(x).tobytes().hex() for x in wanted]


@pytest.mark.parametrize("name", ["cat2", "stack32", "slices40", "index_last9"])
def test_an_op_of_a_family_is_known_by_its_name(name):
    assert name in REGISTRY
    assert REGISTRY[name].name == name


@pytest.mark.parametrize("name", ["cat", "cat0", "cat02", "cat33", "cat-2", "split1048577", "index_get65", "7", ""])
def test_other_names_are_of_no_op(name):
    assert name not in REGISTRY
    with pytest.raises(KeyError):
        REGISTRY[name]
