"""Tests of `check` and `capacity`."""
