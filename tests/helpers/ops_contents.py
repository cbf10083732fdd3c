"""Where each op and public function is defined: what `common/ops/_contents.py` has to say.

``python -m tests.helpers.ops_page`` writes it. Run by itself in a new process, this module prints the text.
"""

import importlib
import subprocess
import sys
from pathlib import Path
from pkgutil import walk_packages
from textwrap import indent, wrap

from common import ops
from common.core.op import Op, rules_changed

TABLE = Path(next(iter(ops.__path__))) / "_contents.py"
HEAD = '''"""Where each op and each public function is defined, so that a program loads those that it uses.

Written by `python -m tests.helpers.ops_page`.
"""

#: Per module of this package: its public functions, and its ops.
CONTENTS = {
'''


def text() -> str:
    """The file's text, found out in a new process: where an op is defined shows when it is registered."""
    command = [sys.executable, "-m", "tests.helpers.ops_contents"]
    return subprocess.run(command, cwd=TABLE.parents[2], capture_output=True, text=True, check=True).stdout


def _main() -> None:
    found: dict[str, tuple[list[str], list[str]]] = {}

    def note(op: Op) -> None:
        frame = sys._getframe()
        while frame.f_code.co_name != "<module>":
            assert frame.f_back is not None
            frame = frame.f_back
        found.setdefault(frame.f_globals["__name__"], ([], []))[1].append(op.name)

    rules_changed.append(note)
    for name in sorted(m.name for m in walk_packages(ops.__path__, f"{ops.__name__}.") if not m.ispkg):
        if name.endswith((".functional", "._contents")):
            continue
        public = getattr(importlib.import_module(name), "__all__", ())
        found.setdefault(name, ([], []))[0].extend(public)
    lines = []
    for name in sorted(found):
        words = " | ".join(" ".join(sorted(set(each))) for each in found[name]).strip()
        if not name.rpartition(".")[2].startswith("_"):
            lines += [f'    "{name.removeprefix(f"{ops.__name__}.")}":{_quoted("" if words == "|" else words)},']
    print("\n".join([HEAD + lines[0], *lines[1:], "}  # fmt: skip"]))


def _quoted(words: str) -> str:
    """Words as a string, in lines of at most 120 characters."""
    parts = wrap(words, 108)
    if len(words) < 76:
        return f' "{words}"'
    return "\n" + indent("\n".join([*(f'"{part} "' for part in parts[:-1]), f'"{parts[-1]}"']), " " * 8)


if __name__ == "__main__":
    _main()
