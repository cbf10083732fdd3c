"""Run docs/tutorial.md in PyTorch: ``python -m tests.tutorial``. In this engine the page runs with all others."""

import doctest
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tutorial.md"


def run(engine: str) -> doctest.TestResults:
    """Run the page with another module in the place of `dynamic`; what prints differently is told."""
    text = PAGE.read_text(encoding="utf-8").replace("import dynamic as torch", f"import {engine} as torch")
    text = text.replace("from dynamic.", f"from {engine}.")
    page = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    return doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(page)


if __name__ == "__main__":
    failed, attempted = run("torch")
    print(f"{attempted - failed} of {attempted} lines print in PyTorch what the page says")
    sys.exit(failed > 0)
