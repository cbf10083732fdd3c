"""Values and derivatives against references that share no code: mpmath, numpy's formulas, finite differences."""
