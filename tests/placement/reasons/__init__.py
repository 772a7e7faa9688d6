"""Tests of diagnoses, warnings and what is unknown."""
