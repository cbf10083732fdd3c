"""Products of vectors and matrices, and functions made of them."""
