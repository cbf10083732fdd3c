"""The pictures that pages show of their own programs; ``python -m tests.helpers.page_pictures`` draws them.

A page makes a ``picture`` in an example, and shows it below: ``![title: what is to be seen](file.svg)``.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.tools.pictures.picture import Picture

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHOWN = re.compile(r"^!\[(.*?)\]\((.*?\.svg)\)$", re.MULTILINE)


def pages() -> list[Path]:
    """The pages in English that make pictures."""
    found = (page for page in sorted(DOCS.rglob("*.md")) if DOCS / "zh" not in page.parents)
    return [page for page in found if ">>> picture = " in page.read_text(encoding="utf-8")]


def drawn(page: Path) -> Iterator[tuple[Path, str]]:
    """Run a page's examples; yield each picture that it makes with its file.

    Items lose their lines, which are other files on other machines.
    """
    text = page.read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": "__main__"}
    done = 0
    for shown in SHOWN.finditer(text):
        part = text[done : shown.start()]
        if ">>> picture = " not in part:
            continue
        done = shown.end()
        test = doctest.DocTestParser().get_doctest(part, space, page.name, str(page), 0)
        with contextlib.redirect_stdout(io.StringIO()):  # what is printed is proved by the test of the page
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
        space = test.globs
        picture = space["picture"]
        items = [item._replace(line="") for item in picture.items]
        yield page.parent / shown[2], Picture(items, shown[1].partition(":")[0], picture.legend).to_svg()


if __name__ == "__main__":
    for made in pages():
        for path, text in drawn(made):
            path.write_text(text, encoding="utf-8")
