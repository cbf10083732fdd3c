"""Tests of `common.random`: draws and generators."""
