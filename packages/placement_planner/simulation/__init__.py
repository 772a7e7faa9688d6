"""Simulate a trace of pods in virtual time, under policies and scheduler profiles."""
