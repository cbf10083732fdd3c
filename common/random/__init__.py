"""Generators and draws from distributions."""
