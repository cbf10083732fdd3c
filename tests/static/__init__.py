"""Tests of the compiling engine, a folder per room, and the programs that they share."""
