"""The passport of bits: one hash per program of a fixed set, to be compared between machines and ways to run it."""
