"""A module on several devices, of which there is one."""

from typing import TYPE_CHECKING

from common.core import absent
from common.nn.parallel import DataParallel

__all__ = ["DataParallel"]

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
