"""What a program is and does, as data.

Costs, explanations, pictures, text files, and where a non-finite result began.
"""
