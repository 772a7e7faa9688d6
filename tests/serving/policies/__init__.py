"""Tests of the policies in force."""
