"""Tests of objects that create pods."""
