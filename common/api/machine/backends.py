"""`backends`: libraries that PyTorch can use and this project does not; their switches change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any


class Backend(ModuleType):
    """A library that is not used.

    Parameters
    ----------
    name : full name of the module.
    switches : its settings, which may be set to anything and change nothing.
    """

    def __init__(self, name: str, **switches: Any) -> None:
        super().__init__(name, f"{name.rpartition('.')[2]} is not used; its switches change nothing.")
        self.__dict__.update(switches)
        self.__all__ = ["flags", "is_available", *switches]
        self.__path__: list[str] = []

    @staticmethod
    def is_available() -> bool:
        """False."""
        return False

    is_built = is_available

    @staticmethod
    def version() -> None:
        """None: it is not there."""
        return

    @staticmethod
    @contextlib.contextmanager
    def flags(*args: Any, **switches: Any) -> Iterator[None]:
        """A block with other switches, which change nothing."""
        yield


#: The libraries, with their switches.
SWITCHES: dict[str, dict[str, Any]] = {
    "cpu": {},
    "cuda": {},
    "cudnn": {"enabled": False, "benchmark": False, "deterministic": True, "allow_tf32": False, "benchmark_limit": 10},
    "mkl": {},
    "mkldnn": {"enabled": False, "deterministic": True, "allow_tf32": False},
    "mps": {},
    "nnpack": {},
    "openmp": {},
    "opt_einsum": {"enabled": False, "strategy": None},
}
_CUDA = {"matmul": {"allow_tf32": False, "allow_fp16_reduced_precision_reduction": False,
                    "allow_bf16_reduced_precision_reduction": False, "fp32_precision": "ieee"}}  # fmt: skip


def get_cpu_capability() -> str:
    """The widest vector instructions of the processor that kernels use: "AVX512", "AVX2" or "DEFAULT"."""
    from common.compiler.llvm_engine import cpu

    features = cpu()[1].split(",")
    return next(
        (name for name, feature in (("AVX512", "+avx512vl"), ("AVX2", "+avx2")) if feature in features), "DEFAULT"
    )


def libraries(package: str) -> dict[str, Backend]:
    """A module for every library, below a package.

    Parameters
    ----------
    package : full name of `backends`.
    """
    made = {name: Backend(f"{package}.{name}", **switches) for name, switches in SWITCHES.items()}
    for name, switches in _CUDA.items():
        setattr(made["cuda"], name, Backend(f"{package}.cuda.{name}", **switches))
    for name, answer in (
        ("flash_sdp_enabled", False),
        ("mem_efficient_sdp_enabled", False),
        ("math_sdp_enabled", True),
    ):
        setattr(made["cuda"], name, lambda answer=answer: answer)
        setattr(made["cuda"], "enable_" + name.removesuffix("_enabled"), lambda enabled: None)
    made["cpu"].__dict__["get_cpu_capability"] = get_cpu_capability
    made["cuda"].__dict__["sdp_kernel"] = Backend.flags
    return made
