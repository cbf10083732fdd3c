"""The machine and the versions behind a result: without them a figure means nothing."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "networkx", "torch", "jax", "jaxlib")


def describe() -> dict[str, Any]:
    """Return machine, versions and conditions as plain data."""
    from common.core.numerics import NUMERICS_VERSION
    from common.version import __version__

    return {
        "cpu": cpu_name(),
        "cores": cores(),
        "cores_in_machine": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "twingrad": __version__,
        "commit": commit(),
        "numerics_version": NUMERICS_VERSION,
        "packages": {name: found for name in PACKAGES if (found := package(name))},
    }


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_line(machine: dict[str, Any]) -> str:
    """Return the machine as a reader of a table wants it."""
    packages = machine["packages"]
    shown = ("numpy", "numba", "scipy", "torch", "jax")
    names = ", ".join(f"{name} {packages[name]}" for name in shown if name in packages)
    return (
        f"{machine['cpu']}, {machine['cores_in_machine']} cores, {machine['system']}, {machine['python']}, "
        f"{names}, twingrad {machine['twingrad']} (numerics {machine['numerics_version']})"
    )


def package(name: str) -> str | None:
    """Return the installed version of a distribution without importing it, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def cpu_name() -> str:
    """Return the processor's name, as well as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    if sys.platform == "darwin":
        return output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.machine()
    return platform.processor() or platform.machine()


def memory_bytes() -> int | None:
    """Return the machine's memory in bytes, or None where the system doesn't tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def commit() -> str | None:
    """Return the checkout's commit, marked when files differ from it; None outside a checkout."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    return output(["git", "-C", str(root), "describe", "--always", "--dirty"]) or None


def output(command: list[str]) -> str:
    """Return what a command prints, or an empty string if there is no such command or it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
