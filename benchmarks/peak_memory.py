"""Peak memory of a process, as the operating system counts it: everything, allocated by whom ever."""

import sys
from pathlib import Path

STATUS = Path("/proc/self/status")
METHODS = {
    True: "VmHWM of /proc/self/status: peak resident bytes of this program image",
    False: "ru_maxrss of getrusage: peak resident bytes of this process",
}


def method() -> str:
    """Say how :func:`peak` measures on this machine."""
    return METHODS[STATUS.is_file()]


def peak() -> int:
    """Return the peak resident memory of this process so far, in bytes.

    On Linux ru_maxrss is not used: it survives exec, so a child would report its parent's peak.
    """
    if STATUS.is_file():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024
