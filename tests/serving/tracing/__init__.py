"""Tests of traces of admissions."""
