"""Marks in kernel text that say how LLVM treats its loops."""

ROLLED = "# rolled"
"""On a line of its own: LLVM unrolls no loop of this kernel.

For kernels that move elements through many loops, of which a call runs one: the code is half as long and compiles 1.3
to 2.3x as fast, and runs as before, because such a loop waits for memory. Additions at indices and sorts of short rows
gain up to a fifth by unrolled loops; they have no mark.
"""

CLOSE = 8
"""Steps up to which vectors hold all elements in between, if the text says how far these are apart."""
