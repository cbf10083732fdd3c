"""Losses and how they are reduced."""
