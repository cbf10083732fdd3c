"""Special functions: Bessel's, incomplete gamma functions, the normal distribution's, and Hurwitz' zeta function."""
