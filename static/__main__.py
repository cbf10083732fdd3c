"""``python3 -m static FILE.py``: run a program that imports torch, with this engine in its place."""

from common.api import as_torch


def install_as_torch() -> None:
    """Let ``import torch`` mean this engine from here on, in the whole process.

    Libraries and scripts in Python that compute with PyTorch's tensors then run as they are.

    Raises
    ------
    RuntimeError
        If PyTorch has been imported, or the other engine has taken its place.
    """
    as_torch.install_as_torch("static")


if __name__ == "__main__":
    as_torch.run("static")
