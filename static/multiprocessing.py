"""Python's `multiprocessing`, and `spawn`: tensors go to other processes as copies."""

from typing import TYPE_CHECKING, Any

from common.api.machine.processes import *  # noqa: F403
from common.api.machine.processes import __all__ as __all__
from common.api.machine.processes import python_name
from common.api.places import publish

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return python_name(name)


publish(__name__)
