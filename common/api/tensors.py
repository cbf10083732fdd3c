"""Tensors as both engines offer them: with their methods, and a collector that large tapes do not slow down.

Their ops take the general path of `common.tensor.record`. `dynamic` puts short paths with the same results in the place
of the commonest methods; in a process that has imported it, all tensors have them.
"""

from __future__ import annotations

from typing import Any

import common.autograd.node_calls
import common.autograd.saved_values  # noqa: F401  gives nodes their `_saved_*`
from common.api import standard
from common.core import absent
from common.methods.install import install_methods
from common.random import sampling
from common.tensor import copies
from common.tensor.base import TensorBase


def load(*parts: Any) -> Any:
    """A tensor out of a pickle, which imports this module before."""
    return copies.loaded(*parts)


install_methods(TensorBase, {**sampling.METHODS, **standard.METHODS})
absent.install(TensorBase)
copies.install(TensorBase, load)
