"""Tools for a function that somebody calls: stepping through it, comparing its bits, watching for nan."""
