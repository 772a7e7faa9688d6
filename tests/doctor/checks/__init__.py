"""Checks of doctor by topic."""
