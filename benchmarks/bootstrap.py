"""Make the two commands run on a bare machine: Python 3.11+ and pip are enough.

``python3 -m benchmarks`` and ``python3 -m tests`` call :func:`bootstrap` before they import anything else.
In a checkout whose dependencies are missing it makes ``.venv``, installs the project there, editable and with
the extra that the command needs, and re-executes the command inside. Where it cannot, one line says what to run.
Standard library only; this file and the two ``__main__.py`` are read by Python 3.6 too, which is told what is needed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
MARKER = "twingrad-{extra}.sha256"  # written last, so that an interrupted first run starts over
PYTHON = (3, 11)


def bootstrap(module: str, extra: str, needs: "tuple[str, ...]") -> None:
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
        With the command's own exit code after it ran in ``.venv``; or with one line of text: Python is too old,
        another module has the name of a package of this project, something is missing in the user's own
        environment, or the set-up failed (an offline machine).
    """
    require_python(module)
    require_own_packages()
    home = ROOT / ".venv"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = home / MARKER.format(extra=extra)
    own = (ROOT / "pyproject.toml").is_file()
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest() if own else ""
    made = own and python.exists() and marker.is_file() and marker.read_text() == wanted
    missing = [name for name in needs if not find_spec(name)]
    if not missing or (made and Path(sys.prefix).resolve() == home.resolve()):
        return
    forbidden = os.environ.get("TWINGRAD_NO_BOOTSTRAP") == "1"
    if forbidden or not own or in_environment():
        why = " (TWINGRAD_NO_BOOTSTRAP=1 forbids to install it)" if forbidden else ""
        what = f"-e '{ROOT}[{extra}]'" if own else f"'twingrad[{extra}]'"
        end(f"the environment {sys.prefix} lacks {', '.join(missing)}{why}; run: {pip(sys.executable)} install {what}")
    if not made:
        say(f"first run: installing twingrad[{extra}] into {home} (once, a minute or more; needs a network)")
        try:
            run([sys.executable, "-m", "venv", "--without-pip", str(home)], home / "twingrad-venv.log")
            marker.unlink(missing_ok=True)
            run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python),
                 "install", "--editable", f"{ROOT}[{extra}]"], home / f"twingrad-{extra}.log")  # fmt: skip
        except (OSError, RuntimeError) as problem:
            end(f"set-up failed: {problem}; with a network, run again: {sys.executable} -m {module}; or in an "
                f"environment of your own: python3 -m pip install -e '{ROOT}[{extra}]'")  # fmt: skip
        marker.write_text(wanted)
        say(f"done; running {module}")
    sys.stdout.flush()
    command = [str(python), "-m", module, *sys.argv[1:]]
    if os.name == "nt":  # execv returns to the shell at once there
        raise SystemExit(subprocess.call(command))
    os.execv(command[0], command)


def require_python(module: str) -> None:
    """End with the name of a newer Python, if this one is too old."""
    if sys.version_info[:2] >= PYTHON:
        return
    newer = "one of them"
    for minor in range(19, PYTHON[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and not subprocess.call([found, "-c", ""], stderr=subprocess.DEVNULL):
            newer = found
    this = ".".join(map(str, sys.version_info[:3]))
    end(f"Python 3.11 or newer is needed, this is {this} ({sys.executable}); run: {newer} -m {module}")


def require_own_packages() -> None:
    """End with the path of what Python would import in place of a package of this project."""
    for name in ("common", "dynamic", "static", "benchmarks"):
        spec = find_spec(name) if (ROOT / name).is_dir() else None
        if spec is not None:
            found = Path(spec.origin or (spec.submodule_search_locations or [""])[0]).resolve()
            if found != ROOT / name / "__init__.py":
                end(f"{found} is in the way of Twingrad's own package {str(ROOT / name)!r}: rename it, or run the "
                    "command in another folder, or put it later in PYTHONPATH")  # fmt: skip


def in_environment() -> bool:
    """Tell whether this interpreter belongs to a virtual or conda environment; there the user decides."""
    return sys.prefix != sys.base_prefix or (Path(sys.prefix) / "conda-meta").is_dir()


def pip(python: str) -> str:
    """Return the command that installs into the environment of an interpreter, which may have no pip."""
    base = getattr(sys, "_base_executable", sys.executable)
    return f"{python} -m pip" if find_spec("pip") else f"{base} -m pip --python {python}"


def run(command: "list[str]", log: Path) -> None:
    """Run one step of the set-up; its output goes to a file, and its newest line to a terminal."""
    log.parent.mkdir(exist_ok=True)
    last = ""
    with log.open("w", encoding="utf-8") as file:
        step = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
            env={"PIP_RETRIES": "1", **os.environ, "PIP_USER": "0"},
        )  # fmt: skip
        for line in step.stdout or ():
            file.write(line)
            if line.strip() and (line.startswith("ERROR") or not last.startswith("ERROR")):
                last = line.strip()
            if sys.stderr.isatty():
                print(f"\r{last[:78]:78}", end="\r", file=sys.stderr, flush=True)
    if step.wait():
        raise RuntimeError(f"{last or step.returncode} (all that it said is in {log})")


def say(text: str) -> None:
    """Print one line of progress on stderr."""
    print(f"twingrad: {text}", file=sys.stderr, flush=True)


def end(text: str) -> NoReturn:
    """End the command with one line on stderr."""
    raise SystemExit(f"twingrad: {text}")
