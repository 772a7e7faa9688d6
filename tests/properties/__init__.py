"""Invariants that hold for every pod, node and request."""
