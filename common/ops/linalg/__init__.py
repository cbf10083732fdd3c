"""Products of vectors and matrices, and what is made of them."""
