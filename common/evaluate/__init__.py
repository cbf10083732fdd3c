"""One op on arrays: what the eager engine runs, static's interpreter and constant folding."""
