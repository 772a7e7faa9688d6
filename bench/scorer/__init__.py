"""Benchmarks of the scorer and the scheduler extender alone."""
