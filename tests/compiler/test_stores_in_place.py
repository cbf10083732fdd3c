"""A choice between an element and more, stored over that element: by a whole store, where one under a mask is slow."""

from __future__ import annotations

import platform

import llvmlite.binding as llvm
import numpy as np
import pytest

import dynamic
import static
from tests.bits import assert_all_same_bits
from tests.compiler.test_last_vectors import assert_as_python, source_of, written

__all__ = ["written"]  # a fixture

CHOICES = {
    "where": "y[q + i] = where(y[q + i] > x[i], y[q + i], x[i])",
    "minimum": "y[q + i] = minimum(y[q + i], x[i])",
    "relu": "y[q + i] = where(y[q + i] > float32(0), y[q + i], float32(0))",
    "truth values": "z[q + i] = where(x[i] > float32(0), z[q + i], z[q + i] & False)",
}


def by_avx2(text):
    """The machine code for a processor with AVX2."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine("haswell", opt=3)
    module = llvm.parse_assembly(text)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
    passes.getModulePassManager().run(module, passes)
    return machine.emit_assembly(module)


@pytest.mark.parametrize("name", CHOICES)
def test_no_vector_of_a_row_is_stored_under_a_mask(written, name):
    source = source_of(CHOICES[name])
    assert_as_python(written(source), source, 40)
    text = written(source.replace("in range(n)", "in range(64)"))
    assert "freeze" in text
    if platform.machine() in ("x86_64", "AMD64"):
        assert "vmaskmov" not in by_avx2(text)


def test_what_is_stored_elsewhere_is_stored_as_it_is(written):
    assert "freeze" not in written(source_of("y[q + i] = where(x[q + i] > x[i], x[q + i], x[i])"))


def test_bits_of_choices_in_place():
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(70, 30)).astype(np.float32), rng.normal(size=(30, 37)).astype(np.float32)
    x[0], w[0, 0] = -0.0, np.nan

    def program(tw, x, w):
        y = x @ w
        return tw.relu(y), tw.minimum(y * 1, w[:1]), tw.where(y > 0, y, w[1]), (y + 0).clamp(-1, 1)

    found = static.function(lambda x, w: program(static, x, w))(x, w)
    expected = program(dynamic, dynamic.tensor(x), dynamic.tensor(w))
    assert_all_same_bits(list(found), [y.numpy() for y in expected], "in place")
