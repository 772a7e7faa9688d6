"""Replay and simulation."""
