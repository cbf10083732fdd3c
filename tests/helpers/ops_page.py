"""Write docs/ops.md from the registry and the public functions: ``python -m tests.helpers.ops_page``.

It also writes `common/ops/_contents.py`, which says where they are, and the reference, see `tests.helpers.api_pages`.
"""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import dynamic
from common.api import surface
from common.core.op import REGISTRY
from common.core.subgradients import TABLE
from tests.helpers import api_pages, ops_contents

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"

HEAD = """# Ops and functions

*Written by `python -m tests.helpers.ops_page` from the records of the ops and the docstrings of the functions.* Shapes
broadcast as in NumPy and PyTorch unless the text says otherwise; g is the cotangent, y the result. Which bits a result
has is said in [numerics.md](numerics.md); what the kinds mean in [the op record](design/01-op-record.md).
Functions of which PyTorch documents `out=` have it.
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _table(*rows: list[str]) -> str:
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join([lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]]) + "\n"


def _summary(doc: str) -> str:
    """The first paragraph of a docstring."""
    return inspect.cleandoc(doc).partition("\n\n")[0]


def page() -> str:
    """The page's text; ops of which there is one per number of operands or results are left out."""
    ops = [
        REGISTRY[n] for n in sorted(REGISTRY) if not re.fullmatch(r"(cat|split|unbind)\d+|index_\D+([2-9]|\d\d+)", n)
    ]
    records = [[f"`{op.name}`", op.kind, ", ".join(op.inputs), ", ".join(op.attrs), op.doc] for op in ops]
    offered = sorted({**surface.FUNCTIONS, **surface.CREATION})
    functions = [
        [f"`{name}{api_pages.signature(getattr(dynamic, name))}`", _summary(getattr(dynamic, name).__doc__)]
        for name in offered
    ]
    choices = [[f"`{name}`", each.where, each.choice] for name in sorted(TABLE) for each in TABLE[name]]
    return "\n".join([
        HEAD,
        "## Functions",
        "",
        "Names of both engines, at the top level, and most of them also methods of tensors. In formulas x and a stand",
        "for the operand `input`, b for `other`. `axis` and `keepdims` may be written for `dim` and `keepdim`.",
        "",
        _table(["function", "what it gives"], *functions),
        "## Ops",
        "",
        "What graphs and tapes are made of. `cat` is one op per number of operands: `cat2`, `cat3`, ...; likewise",
        "`split` and `unbind`, by the number of results, and `index_get1` and its kin, by the number of indices.",
        "",
        _table(["op", "kind", "operands", "attributes", "formula and derivative"], *records),
        "## Subgradients",
        "",
        "What a gradient is where there is no derivative: at kinks, jumps, ties, and at the borders of a domain. The",
        "choices are PyTorch's, except where the text says so; the record of an op has its own as `subgradients`.",
        "",
        _table(["op or function", "where", "gradient"], *choices),
    ])  # fmt: skip


if __name__ == "__main__":
    if ops_contents.TABLE.read_text(encoding="utf-8") != (found := ops_contents.text()):
        ops_contents.TABLE.write_text(found, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "tests.helpers.ops_page"], check=True)  # which reads the new list
    else:
        PAGE.write_text(page(), encoding="utf-8")
        api_pages.write()
