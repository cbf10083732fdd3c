"""Tests of `common.compiler`: kernel text to machine code, images, the disk cache."""
