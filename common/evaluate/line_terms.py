"""Terms: what rules and composites are given in place of arrays where their lines are written down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from numpy import broadcast_shapes

from common.core.op import REGISTRY, Op
from common.core.operators import install
from common.core.rule_code import joint_rule, rule_parameters
from common.evaluate.fused_lines import DelayedOp, is_costly
from common.evaluate.fused_rows import DelayedReduction

_VARIABLE = re.compile(r"\bv\d+\b")


class NotStraightError(Exception):
    """The rule depends on more than the forms of its operands."""


class Term:
    """An expression over the names that a rule was given; `spec` has no shape on the short path.

    An elementwise one is written down when its text is first asked for: until then it may become part of another.

    Attributes
    ----------
    uses : how many elementwise ops take it.
    apart : whether its elements do not follow each other in memory, nor do those of its rows.
    """

    __op_priority__ = 1
    uses, apart = 0, False

    def __init__(self, text: str, spec: Any, trail: Any, made: DelayedOp | DelayedReduction | None = None) -> None:
        self.written, self.spec, self.trail, self.made = text, spec, trail, made
        for x in made.operands if type(made) is DelayedOp else ():
            if isinstance(x, Term):
                x.uses += 1

    @property
    def text(self) -> str:
        """The name of its value, which is written down if need be."""
        if not self.written:
            self.written = self.trail.write(self)
        return self.written

    @property
    def shape(self) -> Any:
        """Sizes of all dimensions.

        Raises
        ------
        NotStraightError : no shape is known.
        """
        if self.spec.shape is None:
            raise NotStraightError
        return self.spec.shape

    dtype = property(lambda self: self.spec.dtype)
    ndim = property(lambda self: len(self.shape))

    def __bool__(self) -> bool:
        raise NotStraightError

    @staticmethod
    def __apply_op__(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        trail = next(x.trail for x in operands if isinstance(x, Term))
        return trail.record(op, operands, attrs)


@cache
def give_operators() -> None:
    """Let terms have operators, when the first is made: by then the registry has ops."""
    install(Term, REGISTRY, comparisons=False)


def released(lines: Sequence[str]) -> list[str]:
    """Lines that forget each variable behind the last one that names it: its memory serves what follows."""
    named = [{*_VARIABLE.findall(line)} for line in lines]
    out = []
    for at, line in enumerate(lines):
        done = named[at].difference(*named[at + 1 :]) if at + 1 < len(lines) else ()
        out += [line, *(f"{x} = None" for x in sorted(done))]
    return out


def function_of(head: str, lines: Sequence[str], scope: dict[str, Any]) -> Any:
    """The function of a head and lines."""
    exec(_compile("".join([f"def {head}:\n", *(f"    {line}\n" for line in lines)])), scope)
    return scope[head.partition("(")[0]]


@lru_cache(maxsize=1024)
def _compile(source: str) -> Any:
    return compile(source, f"{__file__}: straight lines", "exec")


def is_new(x: Any, other: Any, made: Mapping[Any, Any]) -> bool:
    """Whether a kernel has made x, which `other` does not make larger.

    Parameters
    ----------
    made : what kernels and views have made, by recipe and operands.
    """
    by_kernel = any(known is x and found.op.kind == "kernel" for (found, *_), known in made.items())
    return by_kernel and broadcast_shapes(x.shape, other.shape) == x.shape


def without_ones(x: Any, shape: Any) -> DelayedReduction | None:
    """A delayed sum over the first dimensions of which only the others are asked for."""
    if not isinstance(x, Term) or x.written or type(x.made) is not DelayedReduction or not x.made.is_of_columns():
        return None
    return x.made if tuple(shape) == x.made.operand.spec.shape[len(x.made.dim) :] else None


def write_sums(term: Term) -> None:
    """Write down the sums of costly functions that a delayed op needs: before it, so that it reads what they read."""
    for x in term.made.operands if type(term.made) is DelayedOp else ():
        if isinstance(x, Term) and not x.written:
            write_sums(x)
            if type(x.made) is DelayedReduction and is_costly(x.made.operand):
                x.made.operand.text, x.text  # noqa: B018


def shared_results(op: Op, known: Mapping[str, Any]) -> Sequence[Any]:
    """Write down the part of a rule that several operands share, before all else."""
    joint = next(filter(None, map(joint_rule, op.rules)), None)
    if joint is None:
        return ()
    results = joint(*(known[name] for name in rule_parameters(joint)))
    for x in results:
        x.text  # noqa: B018
    return results
