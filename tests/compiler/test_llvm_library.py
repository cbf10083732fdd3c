"""LLVM by its C functions: modules, machines, and what is said when LLVM refuses."""

import ctypes
import re
import threading

import pytest
from llvmlite import binding

from common.compiler import llvm_library
from common.compiler.llvm_engine import parse, target_machine
from common.compiler.llvm_library import LlvmMachine, LlvmModule
from common.core.errors import CompileError

TWO = "declare i32 @other(i32)\n@word = external global i64\ndefine i32 @own(i32 %x) {\n ret i32 %x\n}\n"


def test_the_library_has_every_function():
    for name in llvm_library._PROTOTYPES:
        llvm_library._function(name)


def test_llvmlite_declares_the_same_arguments(monkeypatch):
    assert llvm_library.declared_otherwise() == []
    monkeypatch.setitem(llvm_library._PROTOTYPES, "SetLinkage", (None, ctypes.c_void_p))
    monkeypatch.setitem(llvm_library._PROTOTYPES, "Nowhere", (None, ctypes.c_void_p))
    assert llvm_library.declared_otherwise() == ["SetLinkage", "Nowhere"]


def test_a_version_that_is_not_known_is_looked_at(monkeypatch):
    monkeypatch.setattr(llvm_library, "_READ", re.compile("never"))
    assert llvm_library._library.__wrapped__()
    monkeypatch.setitem(llvm_library._PROTOTYPES, "SetLinkage", (None, ctypes.c_void_p))
    with pytest.raises(CompileError, match=r"what is installed has other C functions \(SetLinkage\)"):
        llvm_library._library.__wrapped__()


def test_a_function_that_a_version_lacks_is_named(monkeypatch):
    monkeypatch.setitem(llvm_library._PROTOTYPES, "Nowhere", (None,))
    with pytest.raises(CompileError, match="this version of llvmlite has no function Nowhere"):
        llvm_library._call("Nowhere")


def test_processor_and_platform_are_those_that_llvmlite_tells():
    name, features = llvm_library.host()
    assert name == binding.get_host_cpu_name()
    assert sorted(features.split(",")) == sorted(binding.get_host_cpu_features().flatten().split(","))
    assert llvm_library.process_triple() == binding.get_process_triple()
    theirs = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
    assert target_machine().layout == str(theirs.target_data)


def test_symbols_are_renamed_and_hidden():
    module = LlvmModule(TWO)
    names = {symbol.name: symbol.is_declaration for symbol in (*module.functions, *module.global_variables)}
    assert names == {"other": True, "own": False, "word": True}
    own = next(symbol for symbol in module.functions if symbol.name == "own")
    own.hide()
    own.name = "renamed"
    assert "define hidden i32 @renamed" in str(module)
    assert not own.is_internal
    own.make_internal()
    assert own.is_internal
    assert "define internal i32 @renamed" in str(module)


def test_modules_are_linked():
    module, other = LlvmModule(TWO), LlvmModule("define i32 @other(i32 %x) {\n ret i32 7\n}\n")
    module.link_in(other)
    assert {symbol.name for symbol in module.functions if not symbol.is_declaration} == {"own", "other"}
    with pytest.raises(RuntimeError, match="symbol multiply defined"):
        module.link_in(LlvmModule("define i32 @other(i32 %x) {\n ret i32 7\n}\n"))


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: LlvmModule("define i32 @f( {"), "LLVM IR parsing error"),
        (lambda: parse("define i32 @f(i32 %x) {\n %y = add i32 %z, 1\n %z = add i32 %x, 1\n ret i32 %y\n}\n"),
         "does not dominate all uses"),
        (lambda: LlvmMachine("nothing-at-all", "", "", here=False), "nothing-at-all"),
    ],
)  # fmt: skip
def test_what_llvm_refuses_is_said(attempt, message):
    with pytest.raises(RuntimeError, match=message):
        attempt()


def test_threads_take_turns():
    """Modules share a context, which LLVM does not guard."""
    found = []

    def work(number):
        for i in range(30):
            module = parse(f"define i32 @f{number}(i32 %x) {{\n %y = add i32 %x, {i}\n ret i32 %y\n}}\n")
            target_machine().run(module, ["SROA", "InstCombine"])
            found.append(len(target_machine().emit_object(module)) > 0)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 120
