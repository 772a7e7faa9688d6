"""Tests of the output of commands."""
