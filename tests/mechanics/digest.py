"""The result of a program as one number: the bits of all tensors that it holds when it ends.

``python -m tests.mechanics.digest`` runs every program in a process that has only `static` imported; names and numbers
come out as JSON. `test_mechanics.py` compares them with those in `dynamic`. With ``--pages`` it runs every page of the
documentation instead, and prints those whose examples fail.
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from common.core.tree import flatten
from common.tensor.base import TensorBase

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"
#: Without the pages in Chinese, whose examples are those of the English ones.
PAGES = [DOCS.parent / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if DOCS / "zh" not in page.parents)]


def digest(program: Any, tw: Any) -> str:
    """Run a program with an engine; a hash of what it has held.

    Programs share a stream of random numbers, so it begins anew.
    """
    seen = sha256()

    def enter(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code is not program.__code__:  # functions inside may be traced, or run more than once
            return None
        frame.f_trace_lines = False
        return leave

    def leave(frame: Any, event: str, argument: Any) -> Any:
        if event == "return":
            for name, value in sorted(frame.f_locals.items()):
                for x in flatten(value)[0] if isinstance(value, (tuple, list, dict, TensorBase)) else ():
                    for part in (x, getattr(x, "_grad", None)):
                        if isinstance(part, (TensorBase, np.ndarray)):
                            _add(seen, name, getattr(part, "payload", part))
        return leave

    tw.manual_seed(0)
    before = sys.gettrace()
    sys.settrace(enter)
    try:
        program(tw)
    finally:
        sys.settrace(before)
    return seen.hexdigest()


def _add(seen: Any, name: str, x: Any) -> None:
    if type(x) is np.ndarray:  # not a value of a trace
        # nan is nan, whatever its bits
        bits = np.where(np.isnan(x), np.array(np.nan, x.dtype), x) if x.dtype.kind == "f" else x
        seen.update(f"{name} {x.dtype} {x.shape} ".encode() + np.ascontiguousarray(bits).tobytes())


OF_BOTH = "contributing.md", "sharp-bits.md", "4-control-flow.md"
"""Pages that show where the engines differ; and one that changes them, see tests/test_docs.py."""
NAMES_DYNAMIC = re.compile(r"(?m)^(>>>|\.\.\.) .*\bdynamic\b")
"""Examples of a page that hold in `static` alone if it takes the place of `dynamic`; others are of `static` anyway."""


def main() -> None:
    """Print the numbers of all programs in `static` alone, or the pages whose examples fail."""
    import static
    from tests.mechanics.collect import PROGRAMS

    if "--pages" in sys.argv:
        sys.modules["dynamic"] = static  # what the pages import
        pages = [page for page in PAGES if page.name not in OF_BOTH and NAMES_DYNAMIC.search(page.read_text("utf-8"))]
        found = {str(page): told for page in pages if (told := _failures(page))}
    else:
        found = {name: digest(program, static) for name, program in PROGRAMS.items()}
        assert "dynamic" not in sys.modules
    print(json.dumps(found))


def _failures(page: Path) -> str:
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, page.name, str(page), 0)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    return "".join(told)


if __name__ == "__main__":
    main()
