"""Where the arrays of a program lie: lifetimes, reuse, updates in place, the arena."""
