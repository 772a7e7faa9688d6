"""Tests of the output of the command `simulate`."""
