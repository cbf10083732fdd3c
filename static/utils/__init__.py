"""Utilities around differentiation."""

from static.utils import checkpoint as checkpoint

__all__ = ["checkpoint"]
