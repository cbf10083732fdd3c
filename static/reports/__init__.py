"""Reports on a program, as data.

Costs, explanations, pictures, text files, and where a non-finite result began.
"""
