"""How far apart the elements of one vector may be in memory."""

CLOSE = 8
"""Steps up to which vectors hold all elements in between, if the text says how far these are apart."""

NEAR = 2 * CLOSE
"""Steps up to which one loop reads or writes several columns, rather than a loop for each."""
