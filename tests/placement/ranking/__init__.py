"""Tests of rankings, and of what they keep."""
