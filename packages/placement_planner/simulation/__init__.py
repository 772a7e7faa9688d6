"""Simulation: a trace of pods in virtual time, by policy and scheduler profile."""
