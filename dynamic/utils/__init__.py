"""Utilities around differentiation."""

from dynamic.utils import checkpoint as checkpoint

__all__ = ["checkpoint"]
