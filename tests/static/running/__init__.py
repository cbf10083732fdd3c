"""Tests of `static.running`: compiled programs, from the disk too."""
