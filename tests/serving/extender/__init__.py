"""Tests of the scheduler extender."""
