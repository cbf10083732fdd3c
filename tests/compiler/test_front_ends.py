"""Two front ends, one meaning: kernels that `common.compiler.translate` makes have the bits of those that numba
makes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import proofs
from tests.helpers.proofs import share

ROOT = Path(__file__).parents[2]


def digest(x):
    """Dtype, shape and bits; a NaN is a NaN."""
    x = np.asarray(x)
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.asarray(np.nan, x.dtype), x)
    return hashlib.sha256(repr((x.dtype, x.shape)).encode() + np.asarray(x).tobytes()).hexdigest()


def of_loops(half):
    """Every elementwise op, or half of them, over bit patterns of a random generator, beyond the width of vectors."""
    from common.core.dtypes import compute_dtypes, operand_dtypes
    from common.core.errors import DTypeError
    from common.core.op import REGISTRY
    from common.evaluate import kernels as eager_kernels

    rng = np.random.default_rng(0)
    found = {}
    import dynamic  # noqa: F401  (fills the registry)

    for op in list(REGISTRY.values()):
        if op.kind != "elementwise" or op.attrs or (half and share(op.name, 2)):
            continue
        for dtype in [("float32", "float64", "int64")[share(op.name, 3)]]:
            ((operands, _), *_) = op.samples(rng, dtype)
            specs = [eager_kernels.form_spec(((), x.dtype)) for x in operands]
            try:
                dtypes, out = operand_dtypes(op, specs), compute_dtypes(op, specs)[1]
            except DTypeError:
                continue  # not defined for integers
            call = eager_kernels.general(op.name, dtypes, out, "f" * len(dtypes))
            arrays = [random_bits(rng, d, 1003) for d in dtypes]
            result = np.zeros(1003, out)
            assert call(*arrays, result, 1003, 1003) == 0
            found[f"{op.name} {dtype}"] = digest(result)
    return found


def random_bits(rng, dtype, n):
    """Half of them any bit pattern, the others ordinary numbers."""
    if dtype == np.bool_:
        return rng.integers(0, 2, n).astype(np.bool_)
    x = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    x[::2] = (3 * rng.normal(size=len(x[::2]))).astype(dtype)
    return x


def of_samples(half):
    """Every other op on its samples, and the programs of this test suite, compiled."""
    import static
    from common.core.op import REGISTRY
    from common.core.tree import flatten
    from common.evaluate.specialise import run
    from tests.helpers.cases import PROGRAMS

    rng = np.random.default_rng(1)
    found = {}
    for op in list(REGISTRY.values()):
        if op.kind in ("elementwise", "effectful") or op.name == "constant" or op.samples is None:
            continue
        for i, (operands, attrs) in enumerate(op.samples(rng, "float32")):
            results, _ = flatten(run(op, operands, attrs))
            found[f"{op.name} {i}"] = [digest(x) for x in results]
    for case in PROGRAMS:
        operands = case.draw(rng, "float32", 33)
        results, _ = flatten(static.function(case.f)(*operands))
        found[case.label] = [digest(x) for x in results]
    return found


@pytest.mark.parametrize("what", ["loops", pytest.param("samples", marks=pytest.mark.slow)])
def test_both_front_ends_give_the_same_bits(what):
    found = f"t.of_{what}({proofs.sampled})"
    code = f"import json; from tests.compiler import test_front_ends as t; print(json.dumps({found}))"
    found = []
    for compiler in ("numba", "llvm"):
        environment = {**os.environ, "TWINGRAD_COMPILER": compiler}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    by_numba, translated = found
    assert len(translated) > (50 if proofs.sampled else 100)
    assert {name for name in by_numba if by_numba[name] != translated.get(name)} == set()
    assert by_numba.keys() == translated.keys()
