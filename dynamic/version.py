"""The version, and PyTorch's names for parts of a build: there are no libraries of GPUs."""

from common.version import like_pytorch as __version__

cuda = hip = xpu = None
debug = False
git_version = ""

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
