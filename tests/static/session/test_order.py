"""Random graphs of reads, writes and control dependencies against a few lines of Python that carry them out."""

import random
from typing import Any, NamedTuple

import pytest

import static as tw

VARIABLES = 3


class Made(NamedTuple):
    """An operation of the oracle: what it computes of which earlier operations, and what it waits for.

    Attributes
    ----------
    kind : "read" (a variable), "sum" (of operands), "write" (the operand to a variable), "add" (to a variable) or
        "group".
    """

    kind: str
    variable: int
    operands: tuple[int, ...]
    waits: tuple[int, ...]


def draw(rng: random.Random) -> list[Made]:
    """A program; operations that have a value are operands of later ones."""
    program: list[Made] = []
    for i in range(rng.randint(4, 16)):
        values = [j for j in range(i) if program[j].kind != "group"]
        waits = tuple(rng.sample(range(i), min(i, rng.choice([0, 0, 0, 1, 2]))))
        kind = rng.choice(["read", "sum", "write", "add", "group"]) if values else "read"
        count = {"read": 0, "group": 0, "sum": 2}.get(kind, 1)
        operands = tuple(rng.choice(values) for _ in range(count))
        program.append(Made(kind, rng.randrange(VARIABLES), operands, waits))
    return program


def expected(program: list[Made], fetches: list[int], values: list[float]) -> list[float | None]:
    """The result of a run; changes the values of the variables."""
    needed: set[int] = set()
    stack = list(fetches)
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack += [*program[i].operands, *program[i].waits]
    results: dict[int, float | None] = {}
    for i in sorted(needed):
        made = program[i]
        given = [results[j] for j in made.operands]
        if made.kind == "read":
            results[i] = values[made.variable]
        elif made.kind == "group":
            results[i] = None
        elif made.kind == "sum":
            results[i] = (given[0] + given[1]) % 64  # type: ignore[operator]
        else:
            before = values[made.variable] if made.kind == "add" else 0.0
            results[i] = values[made.variable] = (before + given[0]) % 64  # type: ignore[operator]
    return [results[i] for i in fetches]


def build(program: list[Made]) -> tuple[list[Any], list[Any]]:
    """The same program in the default graph: its variables and its operations."""
    variables = [tw.Variable(float(i + 1), name=f"v{i}") for i in range(VARIABLES)]
    made: list[Any] = []
    for op in program:
        v = variables[op.variable]
        with tw.control_dependencies([made[i] for i in op.waits]):
            if op.kind == "read":
                made.append(tw.identity(v))
            elif op.kind == "group":
                made.append(tw.no_op())
            elif op.kind == "sum":
                made.append(tw.identity((made[op.operands[0]] + made[op.operands[1]]) % 64.0))
            elif op.kind == "write":
                made.append(v.assign(made[op.operands[0]] % 64.0))
            else:
                made.append(v.assign((v + made[op.operands[0]]) % 64.0))
    return variables, made


@pytest.mark.parametrize(("seed", "interpret", "count"), [(0, True, 60), (1, True, 60), (2, False, 8)])
def test_runs_do_what_their_order_says(seed, interpret, count):
    rng = random.Random(seed)
    for _ in range(count):
        program = draw(rng)
        with tw.Graph().as_default():
            variables, made = build(program)
            init = tw.global_variables_initializer()
            session = tw.Session(interpret=interpret)
        session.run(init)
        values = [float(i + 1) for i in range(VARIABLES)]
        for _ in range(3):
            fetches = rng.sample(range(len(program)), rng.randint(1, min(4, len(program))))
            for _ in range(2):  # the second time is the short way
                wanted = expected(program, fetches, values)
                found = session.run([made[i] for i in fetches])
                assert [None if x is None else float(x) for x in found] == wanted, (program, fetches)
                assert [float(x) for x in session.run(variables)] == values, (program, fetches)
