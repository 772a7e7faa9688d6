"""Tests of the command `reclaim`."""
