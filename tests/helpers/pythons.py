"""A smoke test on every Python that the machine has; ``python3 -m tests.helpers.pythons``. Standard library only.

Each Python from 3.11 on, found in PATH or among pyenv's versions, gets a new environment with what the benchmarks and
the tests need, and runs the quick command and a few tests there. One that is missing, or that cannot install offline,
is named and does not fail the check; a failing test does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MINORS = range(11, 16)
NEEDED = ("hypothesis", "mpmath")
COMMANDS = (
    ("-m", "benchmarks", "--quick", "-k", "e-tiny-mlp", "--json", os.devnull),
    ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_same_script.py", "tests/test_readme.py",
     "tests/test_bootstrap.py", "tests/runtime/test_steps.py"),
)  # fmt: skip


def main() -> int:
    """Run the check; 1 if a Python fails it."""
    found = dict(pythons())
    say(f"found {', '.join(f'{version} ({path})' for version, path in found.items()) or 'none'}")
    failed = [version for version, path in found.items() if not passes(version, path)]
    say(f"failed: {', '.join(failed)}" if failed else "none failed")
    return int(bool(failed))


def pythons() -> Iterator[tuple[str, str]]:
    """Versions and commands of the Pythons that start, one per minor version."""
    installed = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for minor in MINORS:
        paths = [shutil.which(f"python3.{minor}"), *sorted(map(str, installed.glob(f"3.{minor}.*/bin/python")))]
        for path in filter(None, paths):
            asked = [path, "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.startswith(f"3.{minor}."):
                yield done.stdout.strip(), path
                break


def passes(version: str, path: str) -> bool:
    """Whether a Python passes, or cannot be tried."""
    environment = {**os.environ, "PIP_RETRIES": os.environ.get("PIP_RETRIES", "1")}
    with tempfile.TemporaryDirectory() as home:
        python = str(Path(home) / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet"]
        for step in ([path, "-m", "venv", "--without-pip", home], [*pip, f"{ROOT}[bench]", *NEEDED]):
            done = subprocess.run(step, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                last = (done.stderr.strip() or done.stdout.strip() or "?").splitlines()[-1]
                say(f"{version} not tried: {' '.join(step[:4])} ... ended with: {last}")
                return True
        for command in COMMANDS:
            done = subprocess.run([python, *command], cwd=ROOT, capture_output=True, text=True, check=False,
                                  env={**environment, "TWINGRAD_CACHE": str(Path(home) / "cache")})  # fmt: skip
            if done.returncode:
                print(done.stdout[-4000:], done.stderr[-4000:], file=sys.stderr)
                say(f"{version} failed: python {' '.join(command)}")
                return False
    say(f"{version} passes")
    return True


def say(text: str) -> None:
    """Print one line."""
    print(f"pythons: {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
