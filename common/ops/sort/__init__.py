"""Order: sorts, quantiles, distinct elements."""
