"""Texts of definitions are made once per machine, and are those that a process without them makes."""

from __future__ import annotations

import re
from functools import partial

import pytest

import dynamic  # noqa: F401  (its ops are known to kernels)
from common.compiler import compile as compile_module
from common.compiler import disk_cache, module_text
from common.compiler.compile import make_key, meaning
from common.compiler.fingerprint import package_fingerprint
from common.compiler.known_texts import KnownTexts
from common.compiler.translate import translate
from common.kernels.math.gamma import polygamma_of_order
from tests.compiler.test_processes import finish, start

KERNEL = """def {name}(bufs, args):
    x = buffer(bufs, 0, float32)
    y = buffer(bufs, 1, float32)
    acc = buffer(bufs, 2, float32)
    for i in range(args[0]):
        y[i] = {number}(exp(add(x[i], float32({value}))))
    y[0] = block_sum(x, 0, args[0])
    y[1] = fold_lanes(acc, 0)
    return 0
"""
SHARED = """def {name}(bufs, args):
    x = buffer(bufs, 0, float32)
    share_parts(bufs, args, x, args[0], args[1])
    return 0
"""


@pytest.fixture
def afresh(monkeypatch):
    """A process that has written no definition yet."""
    for name in ("_scalars", "_machines", "_prints"):
        monkeypatch.setattr(module_text, name, {})


def text_of(kernel, texts, **names):
    source = kernel.format(name="k", value=1.5, number="abs") if not names else kernel.format(**names)
    return translate(source, "symbol", partial(meaning, kernel="k"), True, True, texts)


def test_known_texts_are_those_that_are_made(monkeypatch, afresh):
    texts = KnownTexts()
    made = text_of(KERNEL, texts)
    assert len(texts._known) >= 4
    for name in ("_scalars", "_machines", "_prints"):
        monkeypatch.setattr(module_text, name, {})
    monkeypatch.setattr("common.compiler.definition_code.scalar_code", None)
    monkeypatch.setattr("common.compiler.definition_code.machine_code", None)
    assert text_of(KERNEL, texts) == made


def test_functions_that_name_their_kernel_name_each():
    first, other = (
        translate(SHARED.format(name="k"), symbol, partial(meaning, kernel="k"), True, True)[0]
        for symbol in ("first_kernel", "other_kernel")
    )
    assert 'ptrtoint (ptr @"first_kernel" to i64)' in first
    assert re.sub("first_kernel", "other_kernel", first) == other


def test_what_a_user_defines_is_not_kept(afresh):
    compile_module.define_scalar("test_texts_halved", lambda x: x * 0.5)
    texts = KnownTexts()
    text_of(KERNEL, texts, name="k", value=1.0, number="test_texts_halved")
    known = set(texts._known)
    text_of(KERNEL, texts, name="k", value=1.0, number="exp")
    assert known == set(texts._known)


def test_definitions_of_one_name_are_told_apart():
    first, other, same = (package_fingerprint(huge_of(number)) for number in (1.0, 2.0, 1.0))
    assert first is not None
    assert first == same != other


def huge_of(number):
    definition = polygamma_of_order(int(number))
    assert definition.__module__.startswith("common.")
    return definition


def test_what_others_have_stored_meanwhile_stays(fresh_cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "_apart", True)
    monkeypatch.setattr(disk_cache, "ready_made_directory", lambda: fresh_cache)
    one, other = KnownTexts(make_key), KnownTexts(make_key)
    for texts, form, text in ((one, "a", ("first", None, 3)), (other, "b", "second")):
        texts.of("definition")
        texts.add("definition", form, text)
    one.store()
    other.store()
    assert KnownTexts(make_key).of("definition") == {"a": ("first", None, 3), "b": "second"}
    assert KnownTexts(make_key).of("another") == {}


def test_a_program_of_a_file_keeps_none(fresh_cache):
    texts = KnownTexts(make_key)
    texts.of("definition")
    texts.add("definition", "a", "text")
    texts.store()
    assert not fresh_cache.exists() or not list(fresh_cache.iterdir())


def test_a_kernel_of_known_definitions_is_compiled_without_llvmlites_instructions(tmp_path):
    code = f"""
import sys, dynamic
from common.compiler.compile import compile_kernel
compile_kernel({KERNEL!r}.format(name="k", value=VALUE, number="abs"), "k")
print("llvmlite.ir" in sys.modules)
"""
    finish(start(code.replace("VALUE", "2.5"), tmp_path / "one"))
    assert finish(start(code.replace("VALUE", "3.5"), tmp_path / "other")).strip() == "False"
