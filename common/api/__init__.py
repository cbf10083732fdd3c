"""The public names that both engines offer."""
