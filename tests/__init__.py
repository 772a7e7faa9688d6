"""Tests, laid out as the packages are."""
