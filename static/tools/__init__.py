"""Seeing what a program is and does: explanations, pictures, stepping through it, and comparing its bits."""
