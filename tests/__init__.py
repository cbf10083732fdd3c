"""The proofs: ``python3 -m tests``."""
