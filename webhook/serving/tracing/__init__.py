"""Traces of admissions."""
