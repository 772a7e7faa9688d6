"""Tests of the sources and the output of the command `audit`."""
