"""Tests of `common.control`: loops, branches, side effects and Python called from programs."""
