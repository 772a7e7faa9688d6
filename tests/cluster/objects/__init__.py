"""Tests of the objects beside nodes and pods."""
