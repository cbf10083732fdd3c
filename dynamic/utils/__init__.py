"""Utilities around differentiation."""

from typing import TYPE_CHECKING

from common.core import absent
from dynamic.utils import checkpoint

__all__ = ["checkpoint"]

if not TYPE_CHECKING:
    __getattr__ = absent.getter(__name__)
