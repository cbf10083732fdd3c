"""Fused multiply-adds where the processor has none: rounded once, as the exact rational number is."""

import ctypes
import platform
from fractions import Fraction
from math import floor, log2

import numpy as np
import pytest
from llvmlite import binding

from common.compiler import llvm_library, software_fma

CODE = """
declare {kind} @{name}({kind}, {kind}, {kind})
define void @run(ptr %x, ptr %y, ptr %z, ptr %out) {{
  %a = load {kind}, ptr %x, align 4
  %b = load {kind}, ptr %y, align 4
  %c = load {kind}, ptr %z, align 4
  %r = call {kind} @{name}({kind} %a, {kind} %b, {kind} %c)
  store {kind} %r, ptr %out, align 4
  ret void
}}
"""
ON_X86 = platform.machine() == "x86_64"
CPUS = [("x86-64-v2", True), ("x86-64-v3", False)] if ON_X86 else [("", False)]
N, SPECIAL = 240, (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan)


def machine(cpu):
    return llvm_library.LlvmMachine(llvm_library.process_triple(), cpu, "", here=True)


def fused(bits, count):
    """A function of arrays, compiled for a processor without the instruction, if this kind of processor can be that."""
    target = machine("x86-64-v2" if ON_X86 else "")
    element = "float" if bits == 32 else "double"
    kind, name = (f"<{count} x {element}>", f"llvm.fma.v{count}f{bits}") if count else (element, f"llvm.fma.f{bits}")
    module = llvm_library.LlvmModule(CODE.format(kind=kind, name=name))
    module.place(target)
    software_fma.spell_out(module, target)
    module.verify()
    theirs = binding.Target.from_triple(target.triple)
    theirs = theirs.create_target_machine(
        "x86-64-v2" if ON_X86 else "", reloc="static", codemodel="jitdefault", jit=True
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), theirs)
    engine.finalize_object()
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(engine.get_function_address("run"))

    def run(x, y, z):
        out, size = np.empty_like(x), (count or 1) * x.itemsize
        for at in range(0, x.nbytes, size):
            call(*(a.ctypes.data + at for a in (x, y, z, out)))
        return out

    run.engine = engine  # its code lives as long
    return run


def operands(bits):
    """Numbers of all sizes; sums that cancel, that lie in the middle, or just beside it; and special ones."""
    dtype, word = (np.float32, np.uint32) if bits == 32 else (np.float64, np.uint64)
    rng, digits = np.random.default_rng(bits), 23 if bits == 32 else 52

    def any_bits():
        return rng.integers(0, 2**bits, N, dtype=word).view(dtype)

    def scaled():
        return (rng.normal(size=N) * 2.0 ** rng.integers(-bits, bits, N)).astype(dtype)

    def tiny():
        return rng.integers(0, 2**18, N, dtype=word).view(dtype)

    x, y = scaled(), scaled()
    ulp, signs = dtype(2.0**-digits), rng.integers(-1, 2, N).astype(dtype)
    turned = 16 if bits == 32 else 40  # (1 + d) (1 - d) = 1 - d^2, which float64 shows no longer beside 1
    half = dtype(2.0 ** -((digits + 1) // 2)), dtype(2.0 ** -(digits + 1 - (digits + 1) // 2))
    beside = half[0] * dtype(1 + 2.0**-turned), half[1] * dtype(1 - 2.0**-turned)
    ends = (1 + rng.integers(0, 9, N).astype(dtype) * ulp) * rng.choice([dtype(-1), dtype(1)], N)
    special = np.array([*SPECIAL, *(getattr(np.finfo(dtype), n) for n in ("max", "tiny", "smallest_subnormal"))], dtype)
    yield any_bits(), any_bits(), any_bits()
    yield scaled(), scaled(), scaled()
    yield x, y, -(x * y) * (1 + signs * ulp)
    for one, other in (half, beside):
        yield np.full(N, one), np.full(N, other), ends
    small, odds = dtype(2.0 ** (np.finfo(dtype).minexp // 2)), rng.integers(2**16, 2**22, N, dtype=word).view(dtype)
    yield np.full(N, beside[0] * small), np.full(N, beside[1] * small), odds * rng.choice([dtype(-1), dtype(1)], N)
    yield scaled() * dtype(2.0 ** -(bits + 8)), scaled() * dtype(2.0 ** (-70 if bits == 32 else -950)), tiny()
    yield tiny(), scaled(), tiny()
    yield tuple(rng.choice(special, N) for _ in range(3))


def rounded(exact, dtype):
    """The number of a dtype that is nearest to a fraction other than 0, ties to even."""
    info = np.finfo(dtype)
    top = floor(log2(abs(exact.numerator)) - log2(exact.denominator))
    top += (abs(exact) >= Fraction(2) ** (top + 1)) - (abs(exact) < Fraction(2) ** top)
    step = Fraction(2) ** max(top - info.nmant, info.minexp - info.nmant)
    value = round(exact / step) * step
    largest = Fraction(float(info.max))
    if abs(value) > largest:
        return dtype(np.copysign(np.inf, float(np.sign(exact.numerator))))
    return dtype(np.copysign(float(value), -1 if exact < 0 else 1))


@pytest.mark.parametrize("count", [0, 4, 16])
@pytest.mark.parametrize("bits", [32, 64])
def test_a_fused_multiply_add_is_rounded_once(bits, count):
    run = fused(bits, count)
    for x, y, z in operands(bits):
        found = run(*map(np.ascontiguousarray, (x, y, z)))
        with np.errstate(all="ignore"):
            plain = np.where(np.isfinite(x) & np.isfinite(y) & np.isinf(z), z, x * y + z)  # right if not finite or 0
        for a, b, c, got, simple in zip(x, y, z, found, plain, strict=True):
            wanted = simple
            if np.isfinite([a, b, c]).all():
                exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
                if exact:
                    wanted = rounded(exact, x.dtype.type)
                elif a and b:  # they cancel: the product may have underflowed in the plain sum
                    wanted = x.dtype.type(0)
            if np.isnan(wanted):
                assert np.isnan(got), (a, b, c)
            else:
                assert got.tobytes() == wanted.tobytes(), (a, b, c, got, wanted)


@pytest.mark.parametrize(("cpu", "own"), CPUS)
def test_only_what_has_no_instruction_gets_them(cpu, own):
    target = machine(cpu)
    module = llvm_library.LlvmModule(CODE.format(kind="<16 x float>", name="llvm.fma.v16f32"))
    module.place(target)
    software_fma.spell_out(module, target)
    assert any(f.name == "twingrad_fma_v16f32" for f in module.functions) == own
    assert "fmaf" not in target.emit_assembly(module)
