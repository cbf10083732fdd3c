"""Signals, under the names of `torch.signal`."""

from static.signal import windows as windows

__all__ = ["windows"]
