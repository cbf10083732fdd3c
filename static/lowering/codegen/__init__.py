"""A group of items as the loops of one kernel."""
