"""Tests of what the server counts."""
