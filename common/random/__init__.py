"""Generators, what is drawn from them, and how often."""
