"""Graphs as text, DOT and SVG."""
