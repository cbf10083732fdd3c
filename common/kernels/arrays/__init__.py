"""Loops over arrays as kernel source or LLVM: copies, sums, products of matrices, indices, sorts, random numbers."""
