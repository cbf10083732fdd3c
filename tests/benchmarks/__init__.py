"""The measuring library measures what it says."""
