"""Draws as pure functions of a seed and an offset."""
