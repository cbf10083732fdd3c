"""Tensors from nothing but sizes and numbers."""
