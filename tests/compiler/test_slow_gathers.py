"""Processors on which an instruction that gathers takes longer than loads get none; the bits are the same on all."""

from __future__ import annotations

from functools import partial

import pytest

import dynamic  # noqa: F401  provides the functions that kernels name
from common.compiler import llvm_engine, llvm_library
from common.compiler.compile import meaning
from common.compiler.translate import translate

FEATURES = "+avx,+avx2,+fma,+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512cd"
PLACES = ("p[c]", "c * n", "c * 11")


def _source(place: str, condition: str) -> str:
    return f"""def far(bufs, args):
    x = buffer(bufs, 0, float32)
    p = buffer(bufs, 1, int64)
    y = buffer(bufs, 2, float32)
    n = args[1]
    for c in range(args[0]):
        y[c] = x[{place}]{f" if {condition} else y[c]" if condition else ""}
    return 0
"""


@pytest.mark.parametrize(
    ("name", "loads"),
    [("skylake-avx512", True), ("icelake-server", True), ("sapphirerapids", False), ("znver4", False)],
)
def test_processors_are_known_by_name(monkeypatch, name, loads):
    monkeypatch.delenv("NUMBA_CPU_FEATURES", raising=False)
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    monkeypatch.setattr(llvm_library, "host", lambda: (name, FEATURES))
    found, features = llvm_engine.cpu.__wrapped__()
    assert found == name
    assert features.split(",")[: FEATURES.count("+")] == FEATURES.split(",")
    assert (llvm_engine.NO_GATHERS in features.split(",")) == loads


@pytest.mark.parametrize("condition", ["", "c < n"])
@pytest.mark.parametrize("place", PLACES)
def test_code_gathers_where_that_is_fast_only(monkeypatch, place, condition):
    """Elements in steps are loaded lane by lane; LLVM makes loads of the gathers of others."""
    llvm_library.initialise_all()
    for more, gathers in (("", True), (f",{llvm_engine.NO_GATHERS}", False)):
        features = FEATURES + more
        monkeypatch.setattr("common.compiler.translate.cpu", lambda features=features: ("skylake-avx512", features))
        text, _ = translate(_source(place, condition), "far", partial(meaning, kernel="far"), False, True)
        assert ("masked.gather" in text) == (gathers or place == "p[c]" or bool(condition))
        machine = llvm_library.LlvmMachine("x86_64-unknown-linux-gnu", "skylake-avx512", features, here=False)
        module = llvm_library.LlvmModule(text)
        llvm_engine.tidy(module)
        module.place(machine)
        assert ("gather" in machine.emit_assembly(module)) == gathers
