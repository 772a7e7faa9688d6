"""Tests of `check`."""
