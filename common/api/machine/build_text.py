"""What `torch.__config__` tells of a build: versions, and the number of threads."""

from __future__ import annotations

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The versions of what computes, a line each, and that MKL is not among it."""
    import llvmlite.binding
    import numpy
    import scipy

    from common.version import like_pytorch

    return "\n".join(
        f"  - {name} {version}"
        for name, version in {
            "Twingrad": like_pytorch,
            "LLVM": ".".join(map(str, llvmlite.binding.llvm_version_info)),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "Build settings:": "USE_MKL=OFF",
        }.items()
    )


def get_pretty_env_info() -> str:
    """What `show` and `parallel_info` tell, as programs write it to their logs."""
    return f"{show()}\n{parallel_info()}"


def parallel_info() -> str:
    """How many threads operations use."""
    import os

    from common.runtime.thread_pool import get_num_threads

    return f"get_num_threads() : {get_num_threads()}\nos.cpu_count() : {os.cpu_count()}"
