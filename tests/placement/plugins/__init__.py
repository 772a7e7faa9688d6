"""Tests of the plugins, one table each."""
