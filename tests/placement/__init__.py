"""Tests of the placement check."""
