"""The elementary functions: definitions in mpmath, sample points, errors in ulp, and a loop around one."""
