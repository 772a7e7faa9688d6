"""Suggestions: the smallest changes that make a pod fit, each verified by the filters."""
