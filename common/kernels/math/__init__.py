"""Scalar definitions of mathematics over exact primitives: one expression for the oracle and for compiled code."""
