"""One op on arrays, for the eager engine, static's interpreter and constant folding."""
