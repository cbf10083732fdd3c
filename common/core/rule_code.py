"""Code made of an op's gradient rules: one function for a backward pass, and one that saves what it reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]

#: Names of outputs in rules: all of them, all but the first, the first alone; and what a node saves of outputs `y`.
#: Outputs that no rule reads may be overwritten before the backward pass.
OUTPUTS = {"y": "y", "rest": "(None, *y[1:])", "first": "(y[0], *(None for _ in y[1:]))"}


def rule_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a rule. A code object lists them 20 times faster than `inspect.signature`."""
    code = getattr(function, "__code__", None)
    several = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & several or hasattr(function, "__wrapped__"):
        return tuple(inspect.signature(function).parameters)
    return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


class _OneOfSeveral:
    """One operand's part of a rule that serves several."""

    def __init__(self, rule: Rule, place: int) -> None:
        self.joint, self.place, self.__code__ = rule, place, rule.__code__  # what names its parameters

    def __call__(self, *arguments: Any) -> Any:
        return self.joint(*arguments)[self.place]


def joint_rules(rule: Rule, count: int) -> tuple[Rule, ...]:
    """Rules of `count` operands whose gradients one function computes together: it returns a tuple of them.

    A backward pass calls it once. It computes all of them, also where not every operand needs one. An op has one.
    """
    return tuple(_OneOfSeveral(rule, i) for i in range(count))


def joint_rule(rule: Rule | None) -> Rule | None:
    """The function that computes a rule's gradient together with those of other operands; None if there is none."""
    return rule.joint if isinstance(rule, _OneOfSeveral) else None


def joint_place(rule: Rule | None) -> int | None:
    """The place of this rule's result among those of `joint_rule`; None if there is none."""
    return rule.place if isinstance(rule, _OneOfSeveral) else None


def generate_backward(op: Any) -> Callable[..., tuple[Any, ...]]:
    """Compose the rules into one function, so that no name is looked up when backward runs."""
    where = {name: f"saved[{i}]" for i, name in enumerate(op.saves)}
    where["g"] = "g"
    parts: list[str] = []
    lines: list[str] = []
    for i, names in enumerate(rule_parameters(rule) if rule else () for rule in op.rules):
        call = f"({', '.join(where.get(n) or f'attrs[{n!r}]' for n in names)})"
        rule = op.rules[i]
        if isinstance(rule, _OneOfSeveral):
            lines = lines or [f"    joint = rule{i}.joint{call}\n"]
            call = f"joint[{rule.place}]"
        else:
            call = f"rule{i}{call}"
        parts.append(f"{call} if needs[{i}] is not None else None" if rule else "None")
    source = f"def backward(saved, attrs, g, needs):\n{''.join(lines)}    return ({''.join(f'{x}, ' for x in parts)})\n"
    scope: dict[str, Any] = {f"rule{i}": rule for i, rule in enumerate(op.rules)}
    exec(compile(source, f"{__file__}: backward of {op.name}", "exec"), scope)
    return scope["backward"]


def generate_save(op: Any) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
    """Compose what a node keeps of operands and results into one function."""
    parts = [
        *(f"p[{i}], " for i in op.saved_inputs),
        *(f"p[{i}].shape, " for i in op.saved_shapes),
        *(f"{source}, " for name, source in OUTPUTS.items() if name in op.saves),
    ]
    save: Callable[[Sequence[Any], Any], tuple[Any, ...]] = eval(f"lambda p, y: ({''.join(parts)})")
    return save
