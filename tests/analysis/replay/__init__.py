"""Replay of recorded admissions."""
