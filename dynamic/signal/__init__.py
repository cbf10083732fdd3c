"""Signals, under the names of `torch.signal`."""

from dynamic.signal import windows as windows

__all__ = ["windows"]
