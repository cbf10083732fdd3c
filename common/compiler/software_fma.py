"""Fused multiply-adds for processors without the instruction, such as x86-64-v2: exact, on whole vectors.

LLVM would call libm for each element, and libm, where it has no instruction either, changes the processor's rounding
mode for each call. Here a sum is *rounded to odd* first: of the two numbers around an inexact sum, the one whose last
bit is 1. What follows rounds once to the nearest and sees on which side the sum lies [1]_.

- float32: product and sum in float64, where the product is exact, then rounded to float32. Only where that sum lies in
  the middle between two float32, or below all normal ones, it is rounded to odd.
- float64: product and sum as pairs of numbers without error; what is small of them rounded to odd, then added. Elements
  whose pairs could overflow or underflow call libm.

References
----------
.. [1] S. Boldo, G. Melquiond: Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd.
   IEEE Transactions on Computers 57 (2008).
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from functools import cache

from common.compiler.llvm_library import LlvmMachine, LlvmModule

_PROBE = """
declare float @llvm.fma.f32(float, float, float)
define float @probe(float %x, float %y, float %z) {
  %r = call float @llvm.fma.f32(float %x, float %y, float %z)
  ret float %r
}
"""
_INTRINSIC = re.compile(r"llvm\.fma\.(?:v(\d+))?f(32|64)")
_SPLIT, _LARGE, _SMALL = float(2**27 + 1), 2.0**990, 2.0**-960


def spell_out(module: LlvmModule, machine: LlvmMachine) -> None:
    """Define in a module, ready for the emission of code, the fused multiply-adds that the processor lacks."""
    fused = {f: found for f in module.functions if (found := _INTRINSIC.fullmatch(f.name))}
    if not fused or _has_instruction(machine):
        return
    texts, counts, own = [], set[int](), set[str]()
    for function, found in fused.items():
        name = function.name.replace("llvm.fma", "twingrad_fma").replace(".", "_")
        function.name, (count, bits) = name, found.groups()
        own.add(name)
        counts.add(int(count or 0))
        texts.append((FusedSingle if bits == "32" else FusedDouble)(name, int(count or 0)).text())
    texts += [f"declare i1 @llvm.vector.reduce.or.v{n}i1(<{n} x i1>)" for n in counts if n]
    made = LlvmModule("declare double @llvm.fma.f64(double, double, double)\n" + "\n".join(texts))
    made.place(machine)
    module.link_in(made)
    for function in module.functions:
        if function.name in own:
            function.make_internal()


@cache
def _has_instruction(machine: LlvmMachine) -> bool:
    """Whether code for a target machine calls no function for a fused multiply-add; 3 ms where it does not say so."""
    if "+fma" in machine.features.split(","):
        return True
    probe = LlvmModule(_PROBE)
    probe.place(machine)
    return "fmaf" not in machine.emit_assembly(probe)


class FusedText(ABC):
    """LLVM IR of a function of three vectors.

    Parameters
    ----------
    count : elements; 0 for a number.
    """

    element = "float"

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count
        self.lines: list[str] = []

    def kind(self, element: str) -> str:
        """The type of as many elements."""
        return f"<{self.count} x {element}>" if self.count else element

    def all(self, element: str, number: object) -> str:
        """A constant in every element."""
        text = f"0x{_bits(number):016x}" if isinstance(number, float) else str(number)
        return f"<{', '.join([f'{element} {text}'] * self.count)}>" if self.count else text

    def let(self, text: str) -> str:
        """A new name for what an instruction gives."""
        self.lines.append(f"%t{len(self.lines)} = {text}")
        return f"%t{len(self.lines) - 1}"

    def of(self, op: str, x: str, y: str, element: str = "double") -> str:
        """The result of an instruction of two operands."""
        return self.let(f"{op} {self.kind(element)} {x}, {y}")

    def cast(self, op: str, x: str, before: str, after: str) -> str:
        """A conversion."""
        return self.let(f"{op} {self.kind(before)} {x} to {self.kind(after)}")

    def two_sum(self, x: str, y: str) -> tuple[str, str]:
        """A sum and its error."""
        s = self.of("fadd", x, y)
        b = self.of("fsub", s, x)
        return s, self.of("fadd", self.of("fsub", x, self.of("fsub", s, b)), self.of("fsub", y, b))

    def odd_sum(self, x: str, y: str) -> str:
        """A sum rounded to odd: where it has an error and ends in 0, the next number towards the error."""
        s, error = self.two_sum(x, y)
        word, other = self.cast("bitcast", s, "double", "i64"), self.cast("bitcast", error, "double", "i64")
        even = self.of("icmp eq", self.of("and", word, self.all("i64", 1), "i64"), self.all("i64", 0), "i64")
        inexact = self.of("fcmp one", error, self.all("double", 0.0))
        apart = self.of("ashr", self.of("xor", word, other, "i64"), self.all("i64", 63), "i64")
        step = self.of("or", apart, self.all("i64", 1), "i64")
        moved = self.cast("sext", self.of("and", even, inexact, "i1"), "i1", "i64")
        return self.cast("bitcast", self.of("add", word, self.of("and", step, moved, "i64"), "i64"), "i64", "double")

    def branch(self, rare: str) -> None:
        """Go on with the rare case if one element is so; what follows "often:" is for the others."""
        if self.count:
            rare = self.let(f"call i1 @llvm.vector.reduce.or.v{self.count}i1({self.kind('i1')} {rare})")
        self.lines += [f"br i1 {rare}, label %rare, label %often", "rare:"]

    def text(self) -> str:
        """The whole function."""
        result = self.body()
        kind = self.kind(self.element)
        body = "\n  ".join([*self.lines, f"ret {kind} {result}"])
        return f"define {kind} @{self.name}({kind} %x, {kind} %y, {kind} %z) noinline nounwind {{\n  {body}\n}}"

    @abstractmethod
    def body(self) -> str:
        """Write the instructions; the name of the result."""


class FusedSingle(FusedText):
    """In float32."""

    def body(self) -> str:
        """By one sum in float64."""
        x, y, z = (self.cast("fpext", f"%{name}", "float", "double") for name in "xyz")
        product = self.of("fmul", x, y)
        whole = self.of("fadd", product, z)
        word = self.cast("bitcast", whole, "double", "i64")
        tail = self.of("and", word, self.all("i64", 2**29 - 1), "i64")
        middle = self.of("icmp eq", tail, self.all("i64", 2**28), "i64")
        size = self.of("and", word, self.all("i64", 2**63 - 1), "i64")
        shifted = self.of("add", size, self.all("i64", 2**63 - 1), "i64")  # 0, which is exact, becomes the largest
        below = self.of("icmp slt", shifted, self.all("i64", _bits(2.0**-126) - 2**63 - 1), "i64")
        self.branch(self.of("or", middle, below, "i1"))
        rare = self.cast("fptrunc", self.odd_sum(product, z), "double", "float")
        self.lines += [f"ret {self.kind('float')} {rare}", "often:"]
        return self.cast("fptrunc", whole, "double", "float")


class FusedDouble(FusedText):
    """In float64."""

    element = "double"

    def body(self) -> str:
        """By pairs of numbers without error."""
        product = self.of("fmul", "%x", "%y")
        self.leave(product)
        (a, b), (c, d) = self.halves("%x"), self.halves("%y")
        rest = self.of("fsub", self.of("fmul", a, c), product)
        rest = self.of("fadd", self.of("fadd", rest, self.of("fmul", a, d)), self.of("fmul", b, c))
        rest = self.of("fadd", rest, self.of("fmul", b, d))
        high, low = self.two_sum("%z", rest)
        whole, left = self.two_sum(product, high)
        result = self.of("fadd", whole, self.odd_sum(low, left))
        exact = self.of("fcmp oeq", rest, self.all("double", 0.0))
        kind = self.kind("double")
        return self.let(f"select {self.kind('i1')} {exact}, {kind} {self.of('fadd', product, '%z')}, {kind} {result}")

    def halves(self, x: str) -> tuple[str, str]:
        """Two numbers of at most 26 bits whose sum is x."""
        t = self.of("fmul", x, self.all("double", _SPLIT))
        high = self.of("fsub", t, self.of("fsub", t, x))
        return high, self.of("fsub", x, high)

    def leave(self, product: str) -> None:
        """Call libm for all elements where a pair of numbers could overflow or underflow."""
        kind, intrinsic = self.kind("double"), "fabs" + (f".v{self.count}f64" if self.count else ".f64")
        sizes = [self.let(f"call {kind} @llvm.{intrinsic}({kind} {x})") for x in ("%x", "%y", "%z", product)]
        safe = self.of("fcmp oge", sizes[3], self.all("double", _SMALL))
        for x in ("%x", "%y"):
            safe = self.of("or", safe, self.of("fcmp oeq", x, self.all("double", 0.0)), "i1")
        for x in sizes:
            safe = self.of("and", safe, self.of("fcmp ole", x, self.all("double", _LARGE)), "i1")
        self.branch(self.of("xor", safe, self.all("i1", "true"), "i1"))
        result = "poison"
        for i in range(self.count or 1):
            x, y, z = (self.let(f"extractelement {kind} %{n}, i32 {i}") if self.count else f"%{n}" for n in "xyz")
            one = self.let(f"call double @llvm.fma.f64(double {x}, double {y}, double {z})")
            result = self.let(f"insertelement {kind} {result}, double {one}, i32 {i}") if self.count else one
        self.lines += [f"ret {kind} {result}", "often:"]

    def text(self) -> str:
        """The function, and what it calls."""
        kind, own = self.kind("double"), f".v{self.count}f64" if self.count else ".f64"
        return f"declare {kind} @llvm.fabs{own}({kind})\n{super().text()}"


def _bits(number: float) -> int:
    (word,) = struct.unpack("<Q", struct.pack("<d", number))
    return int(word)
