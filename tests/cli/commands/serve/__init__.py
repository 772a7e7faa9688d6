"""Tests of the command `serve`."""
