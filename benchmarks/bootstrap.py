"""Make the two commands run on a bare machine: Python 3.11+ and pip are enough.

``python3 -m benchmarks`` and ``python3 -m tests`` call :func:`bootstrap` before they import anything else.
In a checkout whose dependencies are missing it makes ``.venv``, installs the project there, editable and with
the extra that the command needs, and re-executes the command inside. Standard library only.
"""

import hashlib
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKER = "twingrad-{extra}.sha256"  # written last, so that an interrupted first run starts over


def bootstrap(module: str, extra: str, needs: tuple[str, ...]) -> None:
    """Re-execute ``python -m module`` in the checkout's ``.venv`` if this interpreter lacks what it needs.

    Parameters
    ----------
    module : str
        The command, as given to ``python -m``.
    extra : str
        The optional dependencies of the project that the command needs.
    needs : tuple of str
        Top-level modules whose presence shows that nothing has to be done.

    Raises
    ------
    SystemExit
        With the command's own exit code after it ran in ``.venv``, or with a message if the set-up failed.
    """
    if os.environ.get("TWINGRAD_NO_BOOTSTRAP") == "1" or in_environment():
        return
    if not (ROOT / "pyproject.toml").is_file() or all(find_spec(name) for name in needs):
        return
    home = ROOT / ".venv"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = home / MARKER.format(extra=extra)
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    if not (python.exists() and marker.is_file() and marker.read_text() == wanted):
        say(f"first run: installing twingrad[{extra}] into {home} (once; needs a network)")
        marker.unlink(missing_ok=True)
        run([sys.executable, "-m", "venv", "--without-pip", str(home)])
        run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python),
             "install", "--editable", f"{ROOT}[{extra}]"])  # fmt: skip
        marker.write_text(wanted)
        say(f"done; running {module}")
    sys.stdout.flush()
    command = [str(python), "-m", module, *sys.argv[1:]]
    if os.name == "nt":  # execv returns to the shell at once there
        raise SystemExit(subprocess.call(command))
    os.execv(command[0], command)


def in_environment() -> bool:
    """Tell whether this interpreter belongs to a virtual or conda environment; there the user decides."""
    return sys.prefix != sys.base_prefix or (Path(sys.prefix) / "conda-meta").is_dir()


def run(command: list[str]) -> None:
    """Run one step of the set-up with its output on stderr: stdout belongs to the command's result."""
    say(" ".join(command))
    done = subprocess.run(command, stdout=2, check=False, env={**os.environ, "PIP_USER": "0"})
    if done.returncode:
        raise SystemExit(f"twingrad: set-up failed: {' '.join(command)} returned {done.returncode}; "
                         "run the command again to retry, or install into an environment of your own: "
                         "python3 -m pip install -e '.[test]'")  # fmt: skip


def say(text: str) -> None:
    """Print one line of progress on stderr."""
    print(f"twingrad: {text}", file=sys.stderr, flush=True)
