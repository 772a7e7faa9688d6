"""Runs of the program, and its files."""
